// Command codec writes the golden files that Coffer's codecs are held to, with the
// serializers that a kube-apiserver uses.
//
//	go run . -out DIR          writes DIR/*.txt
//	go run . -out DIR -check   fails when DIR differs from what would be written
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"strings"
)

func main() {
	out := flag.String("out", "", "directory of the golden files")
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	files := map[string]func() (string, error){
		"objects.txt":     objects,
		"quantities.txt":  quantities,
		"json.txt":        jsonCases,
		"yaml.txt":        yamlCases,
		"definitions.txt": definitions,
	}
	for name, make := range files {
		body, err := make()
		if err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
		}
		path := filepath.Join(*out, name)
		content := []byte(header() + body)
		if *check {
			old, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(old, content) {
				fail(fmt.Errorf("%s is stale: run cargo xtask generate", path))
			}
			continue
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "codec:", err)
	os.Exit(1)
}

func header() string {
	versions := []string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			switch dependency.Path {
			case "k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "sigs.k8s.io/yaml":
				versions = append(versions, dependency.Path+" "+dependency.Version)
			}
		}
	}
	sort.Strings(versions)
	return "# Written by peers/go/codec with " + strings.Join(versions, ", ") + ".\n"
}

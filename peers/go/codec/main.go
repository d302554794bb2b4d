// Command codec writes the golden files that Coffer's codecs are held to, with the
// serializers that a kube-apiserver uses.
//
//	go run . -out DIR   writes DIR/*.txt
package main

import (
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
		if err := os.WriteFile(filepath.Join(*out, name), []byte(header()+body), 0o644); err != nil {
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

// Command rules writes what the originals say about field management, patches,
// selectors, JSON errors and durations, for cases that are kept here.
//
//	go run . -out DIR          writes DIR/*.json
//	go run . -out DIR -check   fails when DIR differs from what would be written
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// golden is one file: where its answers come from, and the cases with the answers.
type golden struct {
	Modules []string `json:"modules"`
	Cases   any      `json:"cases"`
}

var files = map[string]func() (any, error){
	"fields.json":    fieldCases,
	"strategic.json": strategicCases,
	"jsonpatch.json": jsonPatchCases,
	"merge.json":     mergeCases,
	"selectors.json": selectorCases,
	"jsonerror.json": jsonErrorCases,
	"durations.json": durationCases,
}

func main() {
	out := flag.String("out", "", "directory of the golden files")
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string, check bool) error {
	modules, err := modules()
	if err != nil {
		return err
	}
	for name, cases := range files {
		answers, err := cases()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(golden{modules, answers}); err != nil {
			return err
		}
		path := filepath.Join(out, name)
		if !check {
			if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
				return err
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, text.Bytes()) {
			return fmt.Errorf("%s is stale: run go run . -out %s", path, out)
		}
	}
	return nil
}

// modules are the versions of the originals that answer.
func modules() ([]string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, fmt.Errorf("no build information")
	}
	var found []string
	for _, module := range info.Deps {
		for _, prefix := range []string{"k8s.io/api", "k8s.io/client-go", "sigs.k8s.io/structured-merge-diff", "gopkg.in/evanphx"} {
			if strings.HasPrefix(module.Path, prefix) {
				found = append(found, module.Path+" "+module.Version)
			}
		}
	}
	return append(found, info.GoVersion), nil
}

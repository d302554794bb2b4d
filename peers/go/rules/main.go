// Command rules writes what the originals say about field management, patches,
// selectors, JSON errors and durations, for cases that are kept here.
//
//	go run . -out DIR   writes DIR/*.json
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
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string) error {
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
		if err := os.WriteFile(filepath.Join(out, name), text.Bytes(), 0o644); err != nil {
			return err
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

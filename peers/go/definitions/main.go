// Command definitions writes the fields of the External Secrets Operator's own definitions: a line
// for each path of a schema, with its type, enumeration and default.
//
//	go run . -out DIR   writes DIR/definitions.txt
//
// The newest module that is published with its definitions is taken; later fields are not in it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"sigs.k8s.io/yaml"
)

const module = "github.com/external-secrets/external-secrets@v1.3.2"

// kinds are the files of the kinds that coffer serves.
var kinds = []string{"externalsecrets", "secretstores", "clustersecretstores"}

// providers are those whose fields are compared; of others only the name counts.
var providers = map[string]bool{"vault": true, "kubernetes": true, "fake": true}

type schema struct {
	Type                 string            `json:"type"`
	Format               string            `json:"format"`
	Enum                 []any             `json:"enum"`
	Default              any               `json:"default"`
	Required             []string          `json:"required"`
	Properties           map[string]schema `json:"properties"`
	Items                *schema           `json:"items"`
	AdditionalProperties *schema           `json:"additionalProperties"`
}

type definition struct {
	Spec struct {
		Group    string         `json:"group"`
		Scope    string         `json:"scope"`
		Names    map[string]any `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				Root schema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

func main() {
	out := flag.String("out", "", "directory of the golden file")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string) error {
	directory, err := download()
	if err != nil {
		return err
	}
	text := "# The fields of " + module + "\n"
	for _, kind := range kinds {
		lines, err := fields(filepath.Join(directory, "config", "crds", "bases", "external-secrets.io_"+kind+".yaml"))
		if err != nil {
			return err
		}
		for _, line := range lines {
			text += kind + " " + line + "\n"
		}
	}
	return os.WriteFile(filepath.Join(out, "definitions.txt"), []byte(text), 0o644)
}

func download() (string, error) {
	// The Go that runs this need not be on the PATH; who runs it says where it is.
	tool := os.Getenv("GO")
	if tool == "" {
		tool = "go"
	}
	output, err := exec.Command(tool, "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w", module, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(output, &found); err != nil {
		return "", err
	}
	return found.Dir, nil
}

func fields(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var parsed definition
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		return nil, err
	}
	names, err := json.Marshal(parsed.Spec.Names)
	if err != nil {
		return nil, err
	}
	lines := []string{fmt.Sprintf("names %s %s %s", parsed.Spec.Group, parsed.Spec.Scope, names)}
	for _, version := range parsed.Spec.Versions {
		if version.Name == "v1" {
			walk("", version.Schema.Root, &lines)
		}
	}
	sort.Strings(lines[1:])
	return lines, nil
}

func walk(path string, at schema, lines *[]string) {
	if name, found := strings.CutPrefix(path, "spec.provider."); found && !strings.Contains(name, ".") && !providers[name] {
		*lines = append(*lines, path+": "+at.Type)
		return
	}
	line := path + ": " + at.Type
	if at.Format != "" {
		line += " " + at.Format
	}
	for _, value := range []struct {
		name  string
		value any
		there bool
	}{
		{"enum", at.Enum, at.Enum != nil},
		{"default", at.Default, at.Default != nil},
		{"required", at.Required, at.Required != nil},
	} {
		if value.there {
			text, _ := json.Marshal(value.value)
			line += " " + value.name + "=" + string(text)
		}
	}
	*lines = append(*lines, line)
	for name, below := range at.Properties {
		walk(strings.TrimPrefix(path+"."+name, "."), below, lines)
	}
	if at.Items != nil {
		walk(path+"[]", *at.Items, lines)
	}
	if at.AdditionalProperties != nil {
		walk(path+"{}", *at.AdditionalProperties, lines)
	}
}

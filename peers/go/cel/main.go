// Command cel compiles and runs CEL expressions in the environments of a kube-apiserver.
//
//	cel              answers requests, one JSON document a line
//	go run . -out DIR   writes the golden files of crates/lang
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"strings"
)

func main() {
	out := flag.String("out", "", "directory of the golden files")
	flag.Parse()
	err := func() error {
		if *out != "" {
			return writeGolden(*out)
		}
		return answer(os.Stdin, os.Stdout)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cel:", err)
		os.Exit(1)
	}
}

func answer(requests io.Reader, answers io.Writer) error {
	lines := bufio.NewScanner(requests)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		request, err := decodeRequest(lines.Bytes())
		if err != nil {
			return fmt.Errorf("%w in %s", err, lines.Text())
		}
		answer, err := ask(request)
		if err != nil {
			return fmt.Errorf("%w in %s", err, lines.Text())
		}
		if err := writeLine(answers, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// writeGolden asks for each of the cases that are kept here.
func writeGolden(folder string) error {
	if err := os.WriteFile(filepath.Join(folder, "functions.txt"), []byte(header("#")+inventory()), 0o644); err != nil {
		return err
	}
	if err := writeConformance(folder); err != nil {
		return err
	}
	for name, requests := range cases() {
		var text bytes.Buffer
		text.WriteString(header("//"))
		var last []byte
		for _, request := range requests {
			// As it will be read, not as Go has it.
			line, err := encode(request)
			if err != nil {
				return err
			}
			read, err := decodeRequest(line)
			if err != nil {
				return err
			}
			answer, err := ask(read)
			if err != nil {
				return fmt.Errorf("%s: %w in %s", name, err, line)
			}
			surroundings, err := encode(Request{Types: request.Types, Sizes: request.Sizes, Activation: request.Activation,
				Schema: request.Schema, Authorizer: request.Authorizer})
			if err != nil {
				return err
			}
			same := bytes.Equal(surroundings, last) && len(`{"expression":""}`)+1 < len(surroundings)
			if same {
				request.Types, request.Sizes, request.Activation = nil, nil, nil
				request.Schema, request.Authorizer = nil, nil
			}
			last = surroundings
			if err := writeLine(&text, golden{request, same, *answer}); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(folder, name), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func writeConformance(folder string) error {
	cases, skipped, err := specCases()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	text.WriteString(header("//"))
	for _, one := range cases {
		if err := writeLine(&text, one); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "conformance.jsonl"), text.Bytes(), 0o644); err != nil {
		return err
	}
	names := header("#") + strings.Join(skipped, "\n") + "\n"
	return os.WriteFile(filepath.Join(folder, "conformance-skipped.txt"), []byte(names), 0o644)
}

func decodeRequest(line []byte) (*Request, error) {
	var request Request
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&request)
	return &request, err
}

type golden struct {
	Request
	// Types, sizes, activation, schema and authorizer are those of the line before.
	Same   bool   `json:"same,omitempty"`
	Answer Answer `json:"answer"`
}

func encode(value any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return line.Bytes(), err
}

func writeLine(to io.Writer, value any) error {
	line, err := encode(value)
	if err != nil {
		return err
	}
	_, err = to.Write(line)
	return err
}

func header(comment string) string {
	var versions []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			switch dependency.Path {
			case "cel.dev/expr", "k8s.io/apiserver", "k8s.io/apiextensions-apiserver", "github.com/google/cel-go":
				versions = append(versions, dependency.Path+" "+dependency.Version)
			}
		}
	}
	sort.Strings(versions)
	return comment + " Written by peers/go/cel with " + strings.Join(versions, ", ") + ".\n"
}

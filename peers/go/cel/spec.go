package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	celpb "cel.dev/expr"
	testpb "cel.dev/expr/conformance/test"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/encoding/prototext"

	// The messages that the cases name.
	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
)

// conformance is one case of cel-spec as Kubernetes' environment answers it.
type conformance struct {
	Name string `json:"name"`
	Request
	Answer Answer `json:"answer"`
	// What the specification wants, where Kubernetes answers otherwise.
	Specified string `json:"specified,omitempty"`
}

// whole files that Kubernetes' environment has nothing of.
var absent = map[string]string{
	"bindings_ext": "library not enabled: cel.bind", "block_ext": "library not enabled: cel.block", "encoders_ext": "library not enabled: base64",
	"math_ext": "library not enabled: math", "proto2": "protocol buffer messages", "proto2_ext": "protocol buffer messages", "proto3": "protocol buffer messages",
	"unknowns": "partial evaluation, which Kubernetes never asks for", "enums": "protocol buffer messages",
}

// specCases are the cases of the module cel.dev/expr, and the names of those that cannot be asked, with the reason.
func specCases() ([]conformance, []string, error) {
	folder, err := specFolder()
	if err != nil {
		return nil, nil, err
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.textproto"))
	if err != nil || len(paths) == 0 {
		return nil, nil, fmt.Errorf("no conformance files in %s: %v", folder, err)
	}
	sort.Strings(paths)
	var cases []conformance
	var skipped []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		var file testpb.SimpleTestFile
		if err := prototext.Unmarshal(text, &file); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, section := range file.GetSection() {
			for _, test := range section.GetTest() {
				name := file.GetName() + "/" + section.GetName() + "/" + test.GetName()
				if reason, ok := absent[file.GetName()]; ok {
					skipped = append(skipped, name+": "+reason)
					continue
				}
				one, reason, err := specCase(name, test)
				if err != nil {
					return nil, nil, fmt.Errorf("%s: %w", name, err)
				}
				if reason != "" {
					skipped = append(skipped, name+": "+reason)
					continue
				}
				cases = append(cases, *one)
			}
		}
	}
	return cases, skipped, nil
}

func specFolder() (string, error) {
	gotool := os.Getenv("GO")
	if gotool == "" {
		gotool = "go"
	}
	folder, err := exec.Command(gotool, "list", "-m", "-f", "{{.Dir}}", "cel.dev/expr").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(folder)), "tests", "simple", "testdata"), nil
}

func specCase(name string, test *testpb.SimpleTest) (*conformance, string, error) {
	if test.GetDisableMacros() {
		return nil, "macros switched off, which Kubernetes never does", nil
	}
	for _, mark := range []string{"TestAllTypes", "google.protobuf", "GlobalEnum", "NestedTestAllTypes"} {
		if strings.Contains(test.GetExpr(), mark) {
			return nil, "protocol buffer messages", nil
		}
	}
	if test.GetContainer() != "" {
		return nil, "a container, which no environment of Kubernetes has", nil
	}
	one := &conformance{Name: name, Request: Request{Expression: test.GetExpr()}}
	for _, declared := range test.GetTypeEnv() {
		if declared.GetFunction() != nil {
			return nil, "a function of its own", nil
		}
		kind, err := types.ProtoAsType(declared.GetIdent().GetType())
		if err != nil {
			return nil, "a type that is none of Kubernetes'", nil
		}
		if _, err := parseType(kind.String()); err != nil {
			return nil, "protocol buffer messages", nil
		}
		if one.Types == nil {
			one.Types = map[string]string{}
		}
		one.Types[declared.GetName()] = kind.String()
	}
	for name, bound := range test.GetBindings() {
		if bound.GetValue() == nil {
			return nil, "a variable that is an error or unknown", nil
		}
		value, err := cel.ProtoAsValue(types.DefaultTypeAdapter, bound.GetValue())
		if err != nil {
			return nil, "protocol buffer messages", nil
		}
		encoded, err := encodeValue(value)
		if err != nil {
			return nil, "protocol buffer messages", nil
		}
		if one.Activation == nil {
			one.Activation = map[string]any{}
		}
		one.Activation[name] = encoded
	}
	line, err := encode(one.Request)
	if err != nil {
		return nil, "", err
	}
	read, err := decodeRequest(line)
	if err != nil {
		return nil, "", err
	}
	answer, err := ask(read)
	if err != nil {
		return nil, "", err
	}
	one.Answer = *answer
	wanted, reason := specified(test, answer)
	if reason != "" {
		return nil, reason, nil
	}
	one.Specified = wanted
	return one, "", nil
}

// specified is what the case wants, or "" when the answer is that.
func specified(test *testpb.SimpleTest, answer *Answer) (string, string) {
	value := func(wanted *celpb.Value) (string, string) {
		converted, err := cel.ProtoAsValue(types.DefaultTypeAdapter, wanted)
		if err != nil {
			return "", "protocol buffer messages"
		}
		text := canonical(converted)
		if answer.Refused == "" && answer.Error == "" && answer.Result == text {
			return "", ""
		}
		return text, ""
	}
	switch matcher := test.GetResultMatcher().(type) {
	case nil:
		if answer.Result == "true" {
			return "", ""
		}
		return "true", ""
	case *testpb.SimpleTest_Value:
		return value(matcher.Value)
	case *testpb.SimpleTest_TypedResult:
		kind, err := types.ProtoAsType(matcher.TypedResult.GetDeducedType())
		if err != nil {
			return "", "a type that is none of Kubernetes'"
		}
		if answer.Type != kind.String() {
			return "type " + kind.String(), ""
		}
		if matcher.TypedResult.GetResult() == nil {
			return "", ""
		}
		return value(matcher.TypedResult.GetResult())
	case *testpb.SimpleTest_EvalError, *testpb.SimpleTest_AnyEvalErrors:
		if answer.Refused != "" || answer.Error != "" {
			return "", ""
		}
		return "an error", ""
	}
	return "", "partial evaluation, which Kubernetes never asks for"
}

// encodeValue is the other way of decode.
func encodeValue(value ref.Val) (any, error) {
	switch value := value.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(value), nil
	case types.Int:
		return int64(value), nil
	case types.Uint:
		return tag("$uint", strconv.FormatUint(uint64(value), 10)), nil
	case types.Double:
		return tag("$double", strconv.FormatFloat(float64(value), 'g', -1, 64)), nil
	case types.String:
		return string(value), nil
	case types.Bytes:
		return tag("$bytes", base64.StdEncoding.EncodeToString(value)), nil
	case types.Timestamp:
		return tag("$timestamp", value.Time.UTC().Format(time.RFC3339Nano)), nil
	case types.Duration:
		return tag("$duration", value.Duration.String()), nil
	case traits.Mapper:
		entries := []any{}
		for keys := value.Iterator(); keys.HasNext() == types.True; {
			key := keys.Next()
			first, err := encodeValue(key)
			if err != nil {
				return nil, err
			}
			second, err := encodeValue(value.Get(key))
			if err != nil {
				return nil, err
			}
			entries = append(entries, []any{first, second})
		}
		sort.Slice(entries, func(one, other int) bool {
			return fmt.Sprint(entries[one]) < fmt.Sprint(entries[other])
		})
		return tag("$map", entries), nil
	case traits.Lister:
		items := []any{}
		for elements := value.Iterator(); elements.HasNext() == types.True; {
			item, err := encodeValue(elements.Next())
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, nil
	}
	return nil, fmt.Errorf("no way to write a %s", value.Type().TypeName())
}

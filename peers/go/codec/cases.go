package main

import (
	stdjson "encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// quantities writes text and what it prints as, or the error.
func quantities() (string, error) {
	var out strings.Builder
	for _, text := range []string{
		"0", "1", "-1", "+1", "01", "0.5", ".5", "5.", "1.5", "1500m", "1000m", "100m", "1000", "1000k", "1k", "1M", "12e6", "12E6", "1e3", "1E3",
		"1E", "1Ei", "8Ei", "16Ei", "1Ki", "1024Ki", "1023Ki", "1536Mi", "1.5Gi", "0.5Ki", "0.5Mi", "512Ki", "8Ki", "9Ki", "0.1Ki", "1Mi", "1025Mi", "100Gi", "16393244Ki",
		"1n", "0.1n", "1.1n", "999999999n", "1u", "1000u", "1000000u", "0.0001", "0.00000000001", "123456789012345678", "12345678901234567890", "1.000", "1.0", "10.00",
		"-1.5Gi", "-0.5", "1e-3", "1e-9", "1e-12", "1e18", "1e19", "1e30", "1000E", "1000000E", "3e", "1 ", " 1", "1x", "x", "", "1.1.1", "1Kii", "1i", "--1", "e3", "1e+3", "1e+", "000", "0m", "0Ki", "-0",
		"110", "250m", "4", "2000000k", "1234k", "1230k", "1100m", "9223372036854775807", "9223372036854775808", "9223372036854775807Ki", "1.23456789012345678901234567890",
	} {
		q, err := resource.ParseQuantity(text)
		printed := q.String()
		if err != nil {
			printed = err.Error()
		}
		fmt.Fprintf(&out, "%s\t%s\n", text, printed)
	}
	return out.String(), nil
}

// jsonCases writes kind, input, the error (or strict error) or "", and the JSON or "", each as a JSON string.
func jsonCases() (string, error) {
	cases := []struct {
		kind   string
		inputs []string
	}{
		{"Secret", []string{
			`{}`, `{"type":""}`, `{"data":{"a":"aGk="}}`, `{"data":{"a":"aGk"}}`, `{"data":{"a":"aG-="}}`, `{"data":{"a":"aGl="}}`, `{"data":{"a":"a=Gk"}}`, `{"data":{"a":"=aGk"}}`,
			`{"data":{"a":"aG=k"}}`, `{"data":{"a":"aG=="}}`, `{"data":{"a":"aG==aG=="}}`, `{"data":{"a":"aG\nk\r="}}`, `{"data":{"a":"aG=\n"}}`, `{"data":{"a":"a"}}`, `{"data":{"a":"!!!!"}}`, `{"data":{"a":"aGkh!"}}`,
			`{"data":{"a":""}}`, `{"data":{"a":null}}`, `{"data":{"a":1}}`, `{"data":{"a":true}}`, `{"data":{"a":{}}}`, `{"data":{"a":[104,105]}}`, `{"data":{"a":["x"]}}`, `{"data":[]}`, `{"data":"x"}`, `{"data":null}`,
			`{"stringData":{"a":1}}`, `{"stringData":{"a":false}}`, `{"stringData":{"a":[]}}`, `{"stringData":{"a":null}}`, `{"stringData":{"b":"2","a":"1"}}`,
			`{"immutable":"yes"}`, `{"immutable":false}`, `{"immutable":null}`, `{"type":5}`, `{"type":5,"immutable":1}`,
			`{"metadata":{"name":1}}`, `{"metadata":[]}`, `{"metadata":null}`, `{"metadata":{"creationTimestamp":null}}`, `{"metadata":{"creationTimestamp":"2024-01-01T01:00:00.5+01:00"}}`,
			`{"metadata":{"creationTimestamp":"x"}}`, `{"metadata":{"creationTimestamp":5}}`, `{"metadata":{"generation":1.5}}`, `{"metadata":{"generation":9223372036854775808}}`, `{"metadata":{"generation":1e2}}`,
			`{"metadata":{"labels":{"a":1}}}`, `{"metadata":{"ownerReferences":[{"name":1}]}}`, `{"metadata":{"finalizers":["a",2]}}`, `{"metadata":{"finalizers":[null]}}`,
			`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{"z":1}},"time":"2024-01-01T00:00:00Z"}]}}`,
			`{"unknown":1}`, `{"Data":{}}`, `{"data":{"a":"aGk=","a":"aGk="},"type":"x","type":"y","foo":{},"foo":{}}`, `{"metadata":{"bogus":1,"name":"a","name":"b"}}`, `{"data":{"a":"aGk="},"data":{"b":"aGk="}}`,
			`{"metadata":{"ownerReferences":[{"x":1},{"kind":"a","kind":"b"}],"labels":{"x":"1","x":"2"}}}`, `{"metadata":{"labels":{"a.b/c":"1","a.b/c":"2"}}}`,
			``, ` `, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{"a":1 "b"}`, `[1 2]`, `[1,]`, `nul`, `nulx`, `trux`, `falsy`, `tru`, `{"a":01}`, `{"a":-}`, `{"a":-x}`, `{"a":1.}`, `{"a":1.x}`, `{"a":1e}`, `{"a":1ex}`,
			`{"a":"\x"}`, `{"a":"\u12x4"}`, "{\"a\":\"\n\"}", "{\"a\":\"\x01\"}", `{} x`, `{}{}`, `'`, `"`, `x`, "\x00", `[]`, `"x"`, `5`, `null`, "\xff", "é", `{"kind":5}`, `{"apiVersion":[]}`, `{"apiVersion":"a/b/c"}`,
			`{"type":"\ud800"}`, `{"type":"\ud83d\ude00"}`, `{"type":"\ud83dx"}`, "{\"type\":\"a\xffb\"}", `{"type":"<>&\u2028\u0008\f\/"}`,
		}},
		{"Pod", []string{
			`{"spec":{"containers":[{"name":"c","image":5}]}}`, `{"spec":{"containers":[{"name":"c","ports":[{"containerPort":"x"}]}]}}`, `{"spec":{"containers":[{"name":"c","ports":[{"containerPort":3000000000}]}]}}`,
			`{"spec":{"volumes":[{"name":"v","secret":{"secretName":1}}]}}`, `{"spec":{"volumes":[{"name":"v","secret":{"defaultMode":420,"items":[{"key":"a","path":"b","bogus":1}]}}]}}`,
			`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":1.5,"memory":"1024Mi"},"requests":{"cpu":"x"}}}]}}`, `{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":1.5,"memory":"1024Mi"}}}]}}`,
			`{"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":"http"}}},{"name":"d","livenessProbe":{"httpGet":{"port":80}}}]}}`, `{"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":1.5}}}]}}`, `{"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":{}}}}]}}`,
			`{"spec":{"containers":[{"name":"c","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}],"bogus":1}]}}`, `{"spec":{"containers":[null]}}`, `{"spec":{"terminationGracePeriodSeconds":0,"nodeSelector":{}}}`,
			`{"spec":{"containers":[{"name":"c","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":1}}}]}]}}`,
		}},
		{"Event", []string{`{"eventTime":"2024-01-01T00:00:00Z"}`, `{"eventTime":"2024-01-01T00:00:00.123456Z"}`, `{"eventTime":"2024-01-01T00:00:00.1234567Z"}`, `{"eventTime":null}`, `{"series":{"lastObservedTime":"x"}}`}},
	}
	var out strings.Builder
	for _, one := range cases {
		gvk := schema.GroupVersionKind{Version: "v1", Kind: one.kind}
		for _, input := range one.inputs {
			problem, text := "", ""
			object, _, err := strictSerializer.Decode([]byte(input), &gvk, nil)
			if err != nil {
				problem = err.Error()
			}
			if err == nil || runtime.IsStrictDecodingError(err) {
				encoded, err := encode(jsonSerializer, object)
				if err != nil {
					return "", err
				}
				text = strings.TrimSuffix(string(encoded), "\n")
			}
			// The input may be no UTF-8, so it is written as Latin-1 text.
			latin := make([]rune, len(input))
			for i := range len(input) {
				latin[i] = rune(input[i])
			}
			line, err := stdjson.Marshal([]string{one.kind, string(latin), problem, text})
			if err != nil {
				return "", err
			}
			out.Write(line)
			out.WriteByte('\n')
		}
	}
	return out.String(), nil
}

// yamlCases writes input, JSON or "", the error ("error: ") or strict error, the YAML of the JSON, and the JSON of a
// Secret read from the input, as JSON strings.
func yamlCases() (string, error) {
	var out strings.Builder
	for _, input := range yamlInputs {
		text, problem, again := "", "", ""
		converted, err := yaml.YAMLToJSON([]byte(input))
		if err != nil {
			problem = "error: " + err.Error()
		} else {
			text = string(converted)
			if _, err := yaml.YAMLToJSONStrict([]byte(input)); err != nil {
				problem = err.Error()
			}
			// Upstream cannot write every JSON (raw DEL); such a case has no YAML.
			if back, err := yaml.JSONToYAML(converted); err == nil {
				again = string(back)
			}
		}
		var typed corev1.Secret
		coerced := ""
		if err := yaml.Unmarshal([]byte(input), &typed); err == nil {
			encoded, err := stdjson.Marshal(typed)
			if err != nil {
				return "", err
			}
			coerced = string(encoded)
		}
		line, err := stdjson.Marshal([]string{input, text, problem, again, coerced})
		if err != nil {
			return "", err
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return out.String(), nil
}

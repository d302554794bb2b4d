// Command transform answers what the encryption code of kube-apiserver does.
//
// It reads one JSON object a line and writes one a line:
//
//	{"op":"encrypt"|"decrypt","provider":"aesgcm","name":"key1","key":B64,"context":"/registry/…","value":B64}
//	  -> {"value":B64,"stale":BOOL} or {"err":TEXT}
//	("kms v1", "kms v2" and "kms v2 key" have a plugin in this process that encrypts with the key)
//	{"op":"config","config":TEXT,"resources":["secrets","deployments.apps"]}
//	  -> {"prefixes":["k8s:enc:aesgcm:v1:key1:",""]} or {"err":TEXT}
//	{"op":"bench","config":TEXT,"direction":"to"|"from","context":"/registry/…","value":B64,"milliseconds":N}
//	  -> {"value":STORED,"nanoseconds":N} or {"err":TEXT}
//
// "config" loads an EncryptionConfiguration and names, for each resource, what a
// value that is written now starts with. "bench" loads one too, and tells how much CPU time of
// this process it takes to bring the value to or from storage as a Secret.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"k8s.io/klog/v2"
)

type request struct {
	Op        string
	Provider  string
	Name      string
	Key       []byte
	Context   string
	Value     []byte
	Config    string
	Resources []string
	Direction string
	// How long "bench" measures at least.
	Milliseconds int
}

type answer struct {
	Value       []byte   `json:"value,omitempty"`
	Stale       bool     `json:"stale,omitempty"`
	Prefixes    []string `json:"prefixes,omitempty"`
	Nanoseconds float64  `json:"nanoseconds,omitempty"`
	Err         string   `json:"err,omitempty"`
}

// A value of 1 MiB, in base64, with room to spare.
const longestLine = 16 << 20

func main() {
	// Every bad value would be logged.
	klog.SetLogger(klog.Logger{})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		if encoder.Encode(reply(lines.Bytes())) != nil || output.Flush() != nil {
			os.Exit(1)
		}
	}
	if lines.Err() != nil {
		os.Exit(1)
	}
}

func reply(line []byte) answer {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Err: "request: " + err.Error()}
	}
	var (
		result answer
		err    error
	)
	switch asked.Op {
	case "encrypt", "decrypt":
		result, err = transform(asked)
	case "config":
		result, err = load(asked)
	case "bench":
		result, err = bench(asked)
	default:
		return answer{Err: "request: unknown op " + asked.Op}
	}
	if err != nil {
		return answer{Err: err.Error()}
	}
	return result
}

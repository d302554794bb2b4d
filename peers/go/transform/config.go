package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
)

var writtenPrefix = regexp.MustCompile(`^k8s:enc:[a-z]+:v1:[^:]*:`)

func load(asked request) (answer, error) {
	directory, err := os.MkdirTemp("", "transform-peer-")
	if err != nil {
		return answer{}, err
	}
	defer os.RemoveAll(directory)
	// The file's path is in some errors: a relative one is the same everywhere.
	if err := os.WriteFile(filepath.Join(directory, "encryption.yaml"), []byte(asked.Config), 0o600); err != nil {
		return answer{}, err
	}
	if err := os.Chdir(directory); err != nil {
		return answer{}, err
	}
	defer os.Chdir("/")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, "encryption.yaml", false, "peer")
	if err != nil {
		return answer{}, err
	}
	transformers := encryptionconfig.StaticTransformers(loaded.Transformers)
	result := answer{Prefixes: []string{}}
	for _, resource := range asked.Resources {
		transformer := transformers.TransformerForResource(schema.ParseGroupResource(resource))
		written, err := transformer.TransformToStorage(ctx, []byte("value"), value.DefaultContext("/registry/x"))
		if err != nil {
			return answer{}, err
		}
		result.Prefixes = append(result.Prefixes, string(writtenPrefix.Find(written)))
	}
	return result, nil
}

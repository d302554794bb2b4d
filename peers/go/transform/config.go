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
	return configured(asked.Config, func(ctx context.Context, transformers value.ResourceTransformers) (answer, error) {
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
	})
}

// configured loads an EncryptionConfiguration as kube-apiserver does, for as long as it is used.
func configured(config string, use func(context.Context, value.ResourceTransformers) (answer, error)) (answer, error) {
	directory, err := os.MkdirTemp("", "transform-peer-")
	if err != nil {
		return answer{}, err
	}
	defer os.RemoveAll(directory)
	// The file's path is in some errors: a relative one is the same everywhere.
	if err := os.WriteFile(filepath.Join(directory, "encryption.yaml"), []byte(config), 0o600); err != nil {
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
	return use(ctx, encryptionconfig.StaticTransformers(loaded.Transformers))
}

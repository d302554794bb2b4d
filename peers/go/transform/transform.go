package main

import (
	"context"
	"crypto/aes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/apiserver/pkg/storage/value/encrypt/secretbox"
)

func transform(asked request) (answer, error) {
	prefixed, err := provider(asked)
	if err != nil {
		return answer{}, err
	}
	transformer := value.NewPrefixTransformers(errors.New("no matching prefix found"), prefixed)
	ctx, dataContext := context.Background(), value.DefaultContext(asked.Context)
	var result answer
	if asked.Op == "encrypt" {
		result.Value, err = transformer.TransformToStorage(ctx, asked.Value, dataContext)
	} else {
		result.Value, result.Stale, err = transformer.TransformFromStorage(ctx, asked.Value, dataContext)
	}
	return result, err
}

func provider(asked request) (value.PrefixTransformer, error) {
	if strings.HasPrefix(asked.Provider, "kms ") {
		return kms(asked)
	}
	cipher, err := build(asked.Provider, asked.Key)
	if err != nil {
		return value.PrefixTransformer{}, err
	}
	return prefixed(asked, cipher), nil
}

// prefixed is the provider's prefix around the key's, as the loader of configurations nests them.
func prefixed(asked request, cipher value.Transformer) value.PrefixTransformer {
	family := "AES"
	switch asked.Provider {
	case "identity":
		return value.PrefixTransformer{Transformer: cipher}
	case "secretbox":
		family = "Secretbox"
	}
	keys := value.NewPrefixTransformers(
		fmt.Errorf("no matching key was found for the provided %s transformer", family),
		value.PrefixTransformer{Prefix: []byte(asked.Name + ":"), Transformer: cipher},
	)
	return value.PrefixTransformer{Prefix: []byte("k8s:enc:" + asked.Provider + ":v1:"), Transformer: keys}
}

func build(provider string, key []byte) (value.Transformer, error) {
	switch provider {
	case "identity":
		return identity.NewEncryptCheckTransformer(), nil
	case "secretbox":
		if len(key) != 32 {
			return nil, fmt.Errorf("secretbox needs a key of 32 bytes, not %d", len(key))
		}
		return secretbox.NewSecretboxTransformer([32]byte(key)), nil
	case "aescbc", "aesgcm":
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if provider == "aescbc" {
			return aestransformer.NewCBCTransformer(block), nil
		}
		return aestransformer.NewGCMTransformer(block)
	}
	return nil, fmt.Errorf("unknown provider %q", provider)
}

// Command kms is a KMS plugin that owes nothing to coffer: it serves with the library of
// k8s.io/kms, and encrypts with a key of its own.
//
//	kms SOCKET KEYFILE       version 2
//	kms SOCKET KEYFILE v1    version 1, whose ciphertexts begin with the name of their key
//
// KEYFILE holds words: the first names the key that encrypts, all of them are keys that
// decrypt. It is read at each call, so that a test rotates by writing it. The word "ill"
// makes every call but Status fail, and Status say so.
package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/kms/pkg/service"
)

type plugin struct {
	keyFile string
}

const annotation = "key.kms.example.com"

func (p plugin) keys() ([]string, error) {
	text, err := os.ReadFile(p.keyFile)
	if err != nil {
		return nil, err
	}
	keys := strings.Fields(string(text))
	if len(keys) == 0 {
		return nil, errors.New("no key")
	}
	return keys, nil
}

func (p plugin) healthy() ([]string, error) {
	keys, err := p.keys()
	if err == nil && keys[len(keys)-1] == "ill" {
		err = errors.New("the key service is away")
	}
	return keys, err
}

func aead(key string) (cipher.AEAD, error) {
	hash := sha256.Sum256([]byte(key))
	block, err := aes.NewCipher(hash[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (p plugin) Status(context.Context) (*service.StatusResponse, error) {
	keys, err := p.keys()
	if err != nil {
		return nil, err
	}
	healthz := "ok"
	if _, err := p.healthy(); err != nil {
		healthz = err.Error()
	}
	return &service.StatusResponse{Version: "v2", Healthz: healthz, KeyID: keys[0]}, nil
}

func (p plugin) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	keys, err := p.healthy()
	if err != nil {
		return nil, err
	}
	sealer, err := aead(keys[0])
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, sealer.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return &service.EncryptResponse{
		Ciphertext:  sealer.Seal(nonce, nonce, data, []byte(keys[0])),
		KeyID:       keys[0],
		Annotations: map[string][]byte{annotation: []byte(keys[0])},
	}, nil
}

func (p plugin) Decrypt(_ context.Context, _ string, request *service.DecryptRequest) ([]byte, error) {
	keys, err := p.healthy()
	if err != nil {
		return nil, err
	}
	if string(request.Annotations[annotation]) != request.KeyID {
		return nil, errors.New("the annotations are not those of the key")
	}
	for _, key := range keys {
		if key != request.KeyID {
			continue
		}
		opener, err := aead(key)
		if err != nil {
			return nil, err
		}
		if len(request.Ciphertext) < opener.NonceSize() {
			return nil, errors.New("too short")
		}
		nonce, sealed := request.Ciphertext[:opener.NonceSize()], request.Ciphertext[opener.NonceSize():]
		return opener.Open(nil, nonce, sealed, []byte(key))
	}
	return nil, fmt.Errorf("no key %q", request.KeyID)
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: kms SOCKET KEYFILE [v1]")
		os.Exit(2)
	}
	if len(os.Args) == 4 && os.Args[3] == "v1" {
		if err := serveV1(os.Args[1], plugin{keyFile: os.Args[2]}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	server := service.NewGRPCService(os.Args[1], 5*time.Second, plugin{keyFile: os.Args[2]})
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

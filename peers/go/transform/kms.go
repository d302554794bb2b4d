package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"time"

	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
	kmsservice "k8s.io/kms/pkg/service"
)

// plugin encrypts with the key of a request, in this process: the test on the other side has
// the same. The nonce stands before the ciphertext, the key's name is authenticated.
type plugin struct {
	name string
	aead cipher.AEAD
}

const annotation = "key.example.com"

func newPlugin(name string, key []byte) (plugin, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return plugin{}, err
	}
	aead, err := cipher.NewGCM(block)
	return plugin{name: name, aead: aead}, err
}

func (p plugin) seal(data []byte) ([]byte, error) {
	nonce := make([]byte, p.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return p.aead.Seal(nonce, nonce, data, []byte(p.name)), nil
}

func (p plugin) open(data []byte) ([]byte, error) {
	if len(data) < p.aead.NonceSize() {
		return nil, errors.New("the stored data was shorter than the required size")
	}
	return p.aead.Open(nil, data[:p.aead.NonceSize()], data[p.aead.NonceSize():], []byte(p.name))
}

type pluginV1 struct{ plugin }

func (p pluginV1) Encrypt(data []byte) ([]byte, error) { return p.seal(data) }
func (p pluginV1) Decrypt(data []byte) ([]byte, error) { return p.open(data) }

type pluginV2 struct{ plugin }

func (p pluginV2) Status(context.Context) (*kmsservice.StatusResponse, error) {
	return &kmsservice.StatusResponse{Version: "v2", Healthz: "ok", KeyID: p.name}, nil
}

func (p pluginV2) Encrypt(_ context.Context, _ string, data []byte) (*kmsservice.EncryptResponse, error) {
	sealed, err := p.seal(data)
	if err != nil {
		return nil, err
	}
	annotations := map[string][]byte{annotation: []byte(p.name)}
	return &kmsservice.EncryptResponse{Ciphertext: sealed, KeyID: p.name, Annotations: annotations}, nil
}

func (p pluginV2) Decrypt(_ context.Context, _ string, request *kmsservice.DecryptRequest) ([]byte, error) {
	if request.KeyID != p.name || string(request.Annotations[annotation]) != p.name {
		return nil, errors.New("another key's")
	}
	return p.open(request.Ciphertext)
}

// kms is the transformer of an EncryptionConfiguration with one KMS provider: "kms v1", "kms v2",
// or "kms v2 key", which writes as Kubernetes did before it derived keys from seeds.
func kms(asked request) (value.PrefixTransformer, error) {
	base, err := newPlugin(asked.Name, asked.Key)
	if err != nil {
		return value.PrefixTransformer{}, err
	}
	if asked.Provider == "kms v1" {
		transformer := envelope.NewEnvelopeTransformer(pluginV1{base}, -1, aestransformer.NewGCMTransformer)
		return value.PrefixTransformer{Prefix: []byte("k8s:enc:kms:v1:" + asked.Name + ":"), Transformer: transformer}, nil
	}
	service := pluginV2{base}
	writer, object, cacheKey, err := kmsv2.GenerateTransformer(context.Background(), "peer", service, asked.Provider == "kms v2")
	if err != nil {
		return value.PrefixTransformer{}, err
	}
	state := kmsv2.State{
		Transformer:                           writer,
		EncryptedObjectKeyID:                  object.KeyID,
		EncryptedObjectEncryptedDEKSource:     object.EncryptedDEKSource,
		EncryptedObjectAnnotations:            object.Annotations,
		EncryptedObjectEncryptedDEKSourceType: object.EncryptedDEKSourceType,
		UID:                                   "peer",
		ExpirationTimestamp:                   time.Now().Add(time.Hour),
		CacheKey:                              cacheKey,
	}
	transformer := kmsv2.NewEnvelopeTransformer(service, asked.Name, func() (kmsv2.State, error) { return state, nil }, "peer")
	return value.PrefixTransformer{Prefix: []byte("k8s:enc:kms:v2:" + asked.Name + ":"), Transformer: transformer}, nil
}

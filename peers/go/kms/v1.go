package main

import (
	"bytes"
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
	"k8s.io/kms/apis/v1beta1"
	"k8s.io/kms/pkg/service"
)

type pluginV1 struct {
	v1beta1.UnsafeKeyManagementServiceServer
	plugin
}

func (p pluginV1) Version(context.Context, *v1beta1.VersionRequest) (*v1beta1.VersionResponse, error) {
	return &v1beta1.VersionResponse{Version: "v1beta1", RuntimeName: "peer", RuntimeVersion: "1"}, nil
}

func (p pluginV1) Encrypt(ctx context.Context, request *v1beta1.EncryptRequest) (*v1beta1.EncryptResponse, error) {
	if request.Version != "v1beta1" {
		return nil, errors.New("another version")
	}
	sealed, err := p.plugin.Encrypt(ctx, "", request.Plain)
	if err != nil {
		return nil, err
	}
	return &v1beta1.EncryptResponse{Cipher: append([]byte(sealed.KeyID+"/"), sealed.Ciphertext...)}, nil
}

func (p pluginV1) Decrypt(ctx context.Context, request *v1beta1.DecryptRequest) (*v1beta1.DecryptResponse, error) {
	name, sealed, found := bytes.Cut(request.Cipher, []byte("/"))
	if !found || request.Version != "v1beta1" {
		return nil, errors.New("no ciphertext of this plugin")
	}
	plain, err := p.plugin.Decrypt(ctx, "", &service.DecryptRequest{
		Ciphertext:  sealed,
		KeyID:       string(name),
		Annotations: map[string][]byte{annotation: name},
	})
	if err != nil {
		return nil, err
	}
	return &v1beta1.DecryptResponse{Plain: plain}, nil
}

func serveV1(socket string, p plugin) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	v1beta1.RegisterKeyManagementServiceServer(server, pluginV1{plugin: p})
	return server.Serve(listener)
}

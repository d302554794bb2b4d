// Command kinds writes what a kube-apiserver makes of objects of the kinds that
// Coffer stores for others: defaults, what a client may not choose, errors, stored bytes
// and the rows of tables.
//
//	go run . -out DIR   writes DIR/*.txt
package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
)

func main() {
	klog.SetLogger(logr.Discard())
	persistentvolume.NowFunc = func() metav1.Time { return metav1.Unix(1_700_000_000, 0) }
	out := flag.String("out", "", "directory of the golden files")
	flag.Parse()
	writes, err := writes()
	if err != nil {
		fail(err)
	}
	columns, err := columns()
	if err != nil {
		fail(err)
	}
	resources, err := resources()
	if err != nil {
		fail(err)
	}
	autoscalers, err := autoscalers()
	if err != nil {
		fail(err)
	}
	for name, body := range map[string]string{"writes.txt": writes, "columns.txt": columns, "resources.txt": resources, "autoscaling.txt": autoscalers} {
		header := "# Written by peers/go/kinds with k8s.io/kubernetes v1.37.2.\n"
		if err := os.WriteFile(filepath.Join(*out, name), []byte(header+body), 0o644); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kinds:", err)
	os.Exit(1)
}

var (
	tables  = printers.NewTableGenerator().With(printersinternal.AddHandlers)
	decoder = legacyscheme.Codecs.UniversalDecoder()
	wire    = protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)
)

// writes has one line for each write: group, version, kind, subresource, the object before or nothing,
// what is sent, the object that is stored or nothing, the error or nothing, its table row, and its bytes.
func writes() (string, error) {
	var out strings.Builder
	for _, one := range cases {
		kind := one.kind
		strategies, ok := strategies[kind.Kind]
		if !ok {
			return "", fmt.Errorf("no strategy for %v", kind)
		}
		old := ""
		for _, write := range one.writes {
			stored, bytes, cells, err := run(kind, strategies, write, old)
			text := ""
			if err != nil {
				text = message(err)
			}
			before := old
			if write.op == create {
				before = ""
			}
			fields := []string{kind.Group, kind.Version, kind.Kind, write.op, before, compact(write.body), stored, text, cells, bytes}
			for _, field := range fields {
				if strings.ContainsAny(field, "\t\n") {
					return "", fmt.Errorf("%v: a tab or a line break in %q", kind, field)
				}
			}
			out.WriteString(strings.Join(fields, "\t") + "\n")
			if err == nil {
				old = stored
			}
		}
	}
	return out.String(), nil
}

func compact(text string) string {
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		fail(fmt.Errorf("%w: %s", err, text))
	}
	return out.String()
}

// message is the text of each error, one after the other, as JSON.
func message(err error) string {
	status, ok := err.(errors.APIStatus)
	texts := []string{err.Error()}
	if ok && status.Status().Reason == metav1.StatusReasonInvalid {
		texts = texts[:0]
		for _, cause := range status.Status().Details.Causes {
			texts = append(texts, cause.Field+": "+cause.Message)
		}
	}
	text, _ := json.Marshal(texts)
	return string(text)
}

func decode(kind schema.GroupVersionKind, text string) (runtime.Object, error) {
	object, _, err := decoder.Decode([]byte(text), &kind, nil)
	return object, err
}

func run(kind schema.GroupVersionKind, strategies []strategy, write write, old string) (stored, encoded, cells string, err error) {
	object, err := decode(kind, write.body)
	if err != nil {
		return "", "", "", fmt.Errorf("%v: %w: %s", kind, err, write.body)
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", "", "", err
	}
	ctx := genericrequest.WithNamespace(context.Background(), accessor.GetNamespace())
	ctx = genericrequest.WithUser(ctx, &user.DefaultInfo{Name: "u", UID: "1", Groups: []string{"g"}})
	ctx = genericrequest.WithRequestInfo(ctx, &genericrequest.RequestInfo{
		IsResourceRequest: true, APIGroup: kind.Group, APIVersion: kind.Version, Subresource: subresource(write.op),
		Namespace: accessor.GetNamespace(), Name: accessor.GetName(),
	})
	// What a store gives every object; the golden files do without.
	give := func(object metav1.Object, uid string, created metav1.Time) {
		object.SetUID(types.UID(uid))
		object.SetCreationTimestamp(created)
	}
	given := metav1.Unix(1_700_000_000, 0)
	give(accessor, "u", given)
	strategy := find(strategies, write.op)
	if write.op == create {
		err = rest.BeforeCreate(strategy.(rest.RESTCreateStrategy), ctx, object)
	} else {
		before, failed := decode(kind, old)
		if failed != nil {
			return "", "", "", failed
		}
		was, _ := meta.Accessor(before)
		give(was, "u", given)
		accessor.SetResourceVersion("1")
		was.SetResourceVersion("1")
		err = rest.BeforeUpdate(strategy, ctx, object, before)
		accessor.SetResourceVersion("")
	}
	if err != nil {
		return "", "", "", err
	}
	give(accessor, "", metav1.Time{})
	row := []byte{}
	if table, failed := tables.GenerateTable(object, printers.GenerateOptions{Wide: true}); failed == nil {
		if row, err = json.Marshal(table.Rows[0].Cells); err != nil {
			return "", "", "", err
		}
	}
	versioned, err := legacyscheme.Scheme.ConvertToVersion(object, kind.GroupVersion())
	if err != nil {
		return "", "", "", err
	}
	versioned.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(versioned)
	if err != nil {
		return "", "", "", err
	}
	var wired bytes.Buffer
	if err := wire.Encode(versioned, &wired); err != nil {
		return "", "", "", err
	}
	return string(text), hex.EncodeToString(wired.Bytes()), string(row), nil
}

func subresource(op string) string {
	if op == create || op == update {
		return ""
	}
	return op
}

// columns has one line for each kind: group, kind, and name, type, format and priority of each column.
func columns() (string, error) {
	var out strings.Builder
	seen := map[string]bool{}
	for _, one := range cases {
		if seen[one.kind.Kind] {
			continue
		}
		seen[one.kind.Kind] = true
		internal := schema.GroupVersionKind{Group: one.kind.Group, Version: runtime.APIVersionInternal, Kind: one.kind.Kind}
		object, err := legacyscheme.Scheme.New(internal)
		if err != nil {
			return "", err
		}
		table, err := tables.GenerateTable(object, printers.GenerateOptions{Wide: true})
		if err != nil {
			// Such a kind has the columns that every object has.
			continue
		}
		parts := []string{one.kind.Group, one.kind.Kind}
		for _, column := range table.ColumnDefinitions {
			parts = append(parts, fmt.Sprintf("%s|%s|%s|%d", column.Name, column.Type, column.Format, column.Priority))
		}
		out.WriteString(strings.Join(parts, "\t") + "\n")
	}
	return out.String(), nil
}

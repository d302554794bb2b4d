// Command schema writes the tables of every built-in kind that Coffer speaks as Rust statics.
//
// Field numbers, names, types and patch rules come from the Go types of
// k8s.io/api by reflection; the list, map and struct types that field
// management needs come from the markers in their sources.
//
//	go run . -out DIR          writes DIR/*.rs
//	go run . -out DIR -check   fails when DIR differs from what would be written
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Every group and version whose kinds are written.
var installers = []func(*runtime.Scheme) error{
	corev1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme,
	authenticationv1.AddToScheme, authorizationv1.AddToScheme, policyv1.AddToScheme,
	admissionregistrationv1.AddToScheme, storagev1.AddToScheme, nodev1.AddToScheme,
	appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
	certificatesv1.AddToScheme, discoveryv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme,
	storagemigrationv1.AddToScheme,
	resourcev1.AddToScheme, schedulingv1.AddToScheme, apiregistrationv1.AddToScheme,
	apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme, metav1.AddMetaToScheme,
}

func main() {
	out := flag.String("out", "", "directory of the generated Rust files")
	flag.Parse()
	if *out == "" {
		fail(fmt.Errorf("-out is required"))
	}
	files, err := generate()
	if err != nil {
		fail(err)
	}
	if err := write(*out, files); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "schema:", err)
	os.Exit(1)
}

func generate() (map[string][]byte, error) {
	scheme := runtime.NewScheme()
	for _, install := range installers {
		if err := install(scheme); err != nil {
			return nil, err
		}
	}
	known := scheme.AllKnownTypes()
	kinds := make([]schema.GroupVersionKind, 0, len(known))
	for kind := range known {
		// Internal versions and the event that only exists inside a server never leave a process.
		if kind.Version != runtime.APIVersionInternal && kind.Kind != "InternalEvent" {
			kinds = append(kinds, kind)
		}
	}
	sort.Slice(kinds, func(i, j int) bool {
		a, b := kinds[i], kinds[j]
		if a.Group != b.Group {
			return a.Group < b.Group
		}
		if a.Version != b.Version {
			return a.Version < b.Version
		}
		return a.Kind < b.Kind
	})
	tables := newTables()
	for _, kind := range kinds {
		if err := tables.add(known[kind]); err != nil {
			return nil, fmt.Errorf("%v: %w", kind, err)
		}
	}
	return render(tables, kinds, known), nil
}

func write(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// The module of a Go package: k8s.io/api/core/v1 becomes core_v1.
func module(pkg string) string {
	parts := strings.Split(pkg, "/")
	return parts[len(parts)-2] + "_" + parts[len(parts)-1]
}

func static(t reflect.Type) string {
	return strings.ToUpper(t.Name())
}

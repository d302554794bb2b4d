package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

// definitions writes custom resource definitions as they are served, as they are stored, and as the
// stored form is served again.
func definitions() (string, error) {
	converter := runtime.NewScheme()
	install.Install(converter)
	var out strings.Builder
	for n := range 8 {
		served := &apiextensionsv1.CustomResourceDefinition{}
		if n > 0 {
			filler := &filler{random: rand.New(rand.NewSource(int64(n) + 77)), every: n == 1}
			filler.fill(reflect.ValueOf(served).Elem(), 2)
			if n%2 == 0 && len(served.Spec.Versions) > 0 {
				// Versions that say the same are stored in one place.
				second := *served.Spec.Versions[0].DeepCopy()
				second.Name = "other"
				served.Spec.Versions = append(served.Spec.Versions[:1], second)
			}
		}
		served.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		stored := &apiextensionsv1beta1.CustomResourceDefinition{}
		again := &apiextensionsv1.CustomResourceDefinition{}
		for _, step := range [][2]runtime.Object{{served, stored}, {stored, again}} {
			internal := &apiextensions.CustomResourceDefinition{}
			// The converter may share what it reads.
			if err := converter.Convert(step[0].DeepCopyObject(), internal, nil); err != nil {
				return "", err
			}
			if err := converter.Convert(internal, step[1], nil); err != nil {
				return "", err
			}
		}
		stored.SetGroupVersionKind(apiextensionsv1beta1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		again.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		for i, object := range []runtime.Object{served, stored, again} {
			text, err := encode(jsonSerializer, object)
			if err != nil {
				return "", err
			}
			fmt.Fprint(&out, []string{"", "\t", "\t"}[i], strings.TrimSuffix(string(text), "\n"))
		}
		out.WriteByte('\n')
	}
	return out.String(), nil
}

package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type kinds struct {
	scheme    *runtime.Scheme
	converter managedfields.TypeConverter
	// The custom resource, once it is defined.
	definition      *apiextensionsv1.CustomResourceDefinition
	customConverter managedfields.TypeConverter
	customObjects   runtime.ObjectConvertor
}

type kind struct {
	manager *managedfields.FieldManager
	decode  func(json.RawMessage) (runtime.Object, error)
}

func newKinds() (*kinds, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return &kinds{scheme: scheme, converter: applyconfigurations.NewTypeConverter(scheme)}, nil
}

// define takes up the definition of the custom resource.
func (k *kinds) define(text json.RawMessage) error {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(text, definition); err != nil {
		return err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
	models := map[string]*spec.Schema{}
	for _, version := range definition.Spec.Versions {
		built, err := builder.BuildOpenAPIV3(definition, version.Name, builder.Options{})
		if err != nil {
			return err
		}
		for name, model := range built.Components.Schemas {
			models[name] = model
		}
	}
	converter, err := managedfields.NewTypeConverter(models, definition.Spec.PreserveUnknownFields)
	if err != nil {
		return err
	}
	factory, err := conversion.NewCRConverterFactory(nil, nil)
	if err != nil {
		return err
	}
	objects, _, err := factory.NewConverter(definition)
	if err != nil {
		return err
	}
	k.definition, k.customConverter, k.customObjects = definition, converter, objects
	return nil
}

func (k *kinds) find(apiVersion, name, subresource string) (*kind, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	gvk := gv.WithKind(name)
	if gv.Group == "" {
		return k.builtIn(gvk, subresource)
	}
	return k.custom(gvk, subresource)
}

func (k *kinds) builtIn(gvk schema.GroupVersionKind, subresource string) (*kind, error) {
	manager, err := managedfields.NewDefaultFieldManager(
		k.converter, k.scheme, k.scheme, k.scheme, gvk, gvk.GroupVersion(), subresource, resetsOf(gvk, subresource))
	if err != nil {
		return nil, err
	}
	decode := func(text json.RawMessage) (runtime.Object, error) {
		object, err := k.scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		if string(text) != "null" {
			if err := json.Unmarshal(text, object); err != nil {
				return nil, err
			}
		}
		object.GetObjectKind().SetGroupVersionKind(gvk)
		return object, nil
	}
	return &kind{manager: manager, decode: decode}, nil
}

func (k *kinds) custom(gvk schema.GroupVersionKind, subresource string) (*kind, error) {
	if k.definition == nil {
		return nil, fmt.Errorf("no definition for %v", gvk)
	}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		k.customConverter, k.customObjects, noDefaults{}, creater{}, gvk, gvk.GroupVersion(), subresource,
		resetsOf(gvk, subresource))
	if err != nil {
		return nil, err
	}
	decode := func(text json.RawMessage) (runtime.Object, error) {
		object, _ := creater{}.New(gvk)
		if string(text) != "null" {
			if err := object.(*unstructured.Unstructured).UnmarshalJSON(text); err != nil {
				return nil, err
			}
			object.GetObjectKind().SetGroupVersionKind(gvk)
		}
		return object, nil
	}
	return &kind{manager: manager, decode: decode}, nil
}

// What a write of the main resource or of status cannot change.
func resetsOf(gvk schema.GroupVersionKind, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	set := fieldpath.NewSet()
	switch {
	case gvk.Kind == "Pod" && subresource == "", gvk.Group != "" && subresource == "":
		set.Insert(fieldpath.MakePathOrDie("status"))
	case gvk.Kind == "Pod":
		set.Insert(fieldpath.MakePathOrDie("spec"))
		set.Insert(fieldpath.MakePathOrDie("metadata", "deletionTimestamp"))
		set.Insert(fieldpath.MakePathOrDie("metadata", "ownerReferences"))
	case gvk.Group != "":
		set.Insert(fieldpath.MakePathOrDie("metadata"))
		set.Insert(fieldpath.MakePathOrDie("spec"))
	default:
		return nil
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(gvk.GroupVersion().String()): fieldpath.NewExcludeSetFilter(set),
	}
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

type creater struct{}

func (creater) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

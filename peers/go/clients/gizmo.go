package main

import (
	"context"
	"fmt"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// The custom resource of these programs.
var (
	gizmoGroup    = schema.GroupVersion{Group: "clients.example.com", Version: "v1"}
	gizmoResource = gizmoGroup.WithResource("gizmos")
)

// Gizmo asks for a Secret of its name that holds a value.
type Gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GizmoSpec   `json:"spec,omitempty"`
	Status            GizmoStatus `json:"status,omitempty"`
}

// GizmoSpec is what is wanted.
type GizmoSpec struct {
	Value string `json:"value,omitempty"`
	Shelf string `json:"shelf,omitempty"`
}

// GizmoStatus is what was done.
type GizmoStatus struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	Value              string `json:"value,omitempty"`
}

// GizmoList is several.
type GizmoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gizmo `json:"items"`
}

func (g *Gizmo) copied() *Gizmo {
	return &Gizmo{TypeMeta: g.TypeMeta, ObjectMeta: *g.ObjectMeta.DeepCopy(), Spec: g.Spec, Status: g.Status}
}

// DeepCopyObject copies it.
func (g *Gizmo) DeepCopyObject() runtime.Object { return g.copied() }

// DeepCopyObject copies it.
func (l *GizmoList) DeepCopyObject() runtime.Object {
	list := &GizmoList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for index := range l.Items {
		list.Items = append(list.Items, *l.Items[index].copied())
	}
	return list
}

// gizmoDefinition defines it, with status as a subresource.
func gizmoDefinition() *apiextensions.CustomResourceDefinition {
	text := apiextensions.JSONSchemaProps{Type: "string"}
	object := func(properties map[string]apiextensions.JSONSchemaProps) apiextensions.JSONSchemaProps {
		return apiextensions.JSONSchemaProps{Type: "object", Properties: properties}
	}
	schema := object(map[string]apiextensions.JSONSchemaProps{
		"spec": object(map[string]apiextensions.JSONSchemaProps{"value": text, "shelf": text}),
		"status": object(map[string]apiextensions.JSONSchemaProps{
			"observedGeneration": {Type: "integer", Format: "int64"},
			"value":              text,
		}),
	})
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gizmos." + gizmoGroup.Group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: gizmoGroup.Group,
			Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "gizmos", Singular: "gizmo", Kind: "Gizmo", ListKind: "GizmoList"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema:       &apiextensions.CustomResourceValidation{OpenAPIV3Schema: ptr.To(schema)},
				Subresources: &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// defineGizmos creates the definition unless it is there, and waits until it is established.
func defineGizmos(ctx context.Context, config *rest.Config) error {
	client, err := apiextensionsclient.NewForConfig(connection(config, runtime.ContentTypeProtobuf))
	if err != nil {
		return err
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	_, err = definitions.Create(ctx, gizmoDefinition(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return eventually(ctx, "the definition", func() error {
		definition, err := definitions.Get(ctx, gizmoDefinition().Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensions.Established && condition.Status == apiextensions.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("not established: %v", definition.Status.Conditions)
	})
}

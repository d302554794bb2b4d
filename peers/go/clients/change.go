package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const (
	// writers change objects at the same time.
	writers = 8
	// names are changed in turns by each writer.
	names = 25
)

// written is one resource as a writer sees it. Each call makes one change, which can be made again.
type written struct {
	create, update, patch, apply func(ctx context.Context, name, value string) error
	remove                       func(ctx context.Context, name string) error
}

// life is what happens to one name: one change after the other, and then again.
var life = []string{"create", "update", "patch", "apply", "update", "patch", "remove"}

// change makes so many changes with typed and dynamic clients, over connections that break.
func change(ctx context.Context, with *setting) (int64, error) {
	var made atomic.Int64
	var group sync.WaitGroup
	failed := make(chan error, writers)
	for writer := range writers {
		group.Go(func() {
			kind, err := writtenBy(writer, with)
			if err != nil {
				failed <- err
				return
			}
			for step := 0; made.Add(1) <= int64(with.changes); step++ {
				name := fmt.Sprintf("w%d-%d", writer, step%names)
				turn := life[(step/names)%len(life)]
				if err := kind.make(ctx, turn, name, strconv.Itoa(step)); err != nil {
					failed <- fmt.Errorf("%s of %s: %w", turn, name, err)
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return int64(with.changes), nil
	}
}

func (w *written) make(ctx context.Context, turn, name, value string) error {
	switch turn {
	case "create":
		return persist(ctx, apierrors.IsAlreadyExists, func(ctx context.Context) error { return w.create(ctx, name, value) })
	case "update":
		return persist(ctx, never, func(ctx context.Context) error {
			return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return w.update(ctx, name, value) })
		})
	case "patch":
		return persist(ctx, never, func(ctx context.Context) error { return w.patch(ctx, name, value) })
	case "apply":
		return persist(ctx, never, func(ctx context.Context) error { return w.apply(ctx, name, value) })
	default:
		return persist(ctx, apierrors.IsNotFound, func(ctx context.Context) error { return w.remove(ctx, name) })
	}
}

// writtenBy spreads resources, clients and media types over the writers.
func writtenBy(writer int, with *setting) (*written, error) {
	contentType := []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}[writer/2%2]
	if writer%4 == 3 {
		client, err := dynamic.NewForConfig(connection(with.broken, ""))
		if err != nil {
			return nil, err
		}
		return gizmosBy(client.Resource(gizmoResource).Namespace(followed)), nil
	}
	client, err := kubernetes.NewForConfig(connection(with.broken, contentType))
	if err != nil {
		return nil, err
	}
	if writer%4 == 2 {
		return configMapsBy(client), nil
	}
	return secretsBy(client), nil
}

func secretsBy(client kubernetes.Interface) *written {
	secrets := client.CoreV1().Secrets(followed)
	return &written{
		create: func(ctx context.Context, name, value string) error {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"value": value}}
			_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
			return err
		},
		update: func(ctx context.Context, name, value string) error {
			secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			secret.Data["value"] = []byte(value)
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
			return err
		},
		patch: func(ctx context.Context, name, value string) error {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"value":%q}}}`, value)
			_, err := secrets.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return err
		},
		apply: func(ctx context.Context, name, value string) error {
			wanted := applycorev1.Secret(name, followed).WithStringData(map[string]string{"applied": value})
			_, err := secrets.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "applier", Force: true})
			return err
		},
		remove: func(ctx context.Context, name string) error {
			return secrets.Delete(ctx, name, metav1.DeleteOptions{})
		},
	}
}

func configMapsBy(client kubernetes.Interface) *written {
	maps := client.CoreV1().ConfigMaps(followed)
	return &written{
		create: func(ctx context.Context, name, value string) error {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value}}
			_, err := maps.Create(ctx, object, metav1.CreateOptions{})
			return err
		},
		update: func(ctx context.Context, name, value string) error {
			object, err := maps.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			object.Data["value"] = value
			_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
			return err
		},
		patch: func(ctx context.Context, name, value string) error {
			patch := fmt.Appendf(nil, `[{"op":"add","path":"/data/patched","value":%q}]`, value)
			_, err := maps.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
			return err
		},
		apply: func(ctx context.Context, name, value string) error {
			wanted := applycorev1.ConfigMap(name, followed).WithData(map[string]string{"applied": value})
			_, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "applier", Force: true})
			return err
		},
		remove: func(ctx context.Context, name string) error {
			return maps.Delete(ctx, name, metav1.DeleteOptions{})
		},
	}
}

func gizmosBy(gizmos dynamic.ResourceInterface) *written {
	object := func(name, field, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gizmoGroup.String(), "kind": "Gizmo",
			"metadata": map[string]any{"name": name, "namespace": followed},
			"spec":     map[string]any{field: value},
		}}
	}
	return &written{
		create: func(ctx context.Context, name, value string) error {
			_, err := gizmos.Create(ctx, object(name, "value", value), metav1.CreateOptions{})
			return err
		},
		update: func(ctx context.Context, name, value string) error {
			found, err := gizmos.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if err := unstructured.SetNestedField(found.Object, value, "spec", "value"); err != nil {
				return err
			}
			_, err = gizmos.Update(ctx, found, metav1.UpdateOptions{})
			return err
		},
		patch: func(ctx context.Context, name, value string) error {
			patch, err := json.Marshal(map[string]any{"status": map[string]any{"value": value}})
			if err != nil {
				return err
			}
			_, err = gizmos.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			return err
		},
		apply: func(ctx context.Context, name, value string) error {
			_, err := gizmos.Apply(ctx, name, object(name, "shelf", value), metav1.ApplyOptions{FieldManager: "applier", Force: true})
			return err
		},
		remove: func(ctx context.Context, name string) error {
			return gizmos.Delete(ctx, name, metav1.DeleteOptions{})
		},
	}
}

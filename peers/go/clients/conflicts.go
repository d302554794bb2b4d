package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// conflicts lets many write into one object, each what it read and one key more: no key is lost.
func conflicts(ctx context.Context, with *setting) (report, error) {
	reference, err := kubernetes.NewForConfig(connection(with.reference, runtime.ContentTypeProtobuf))
	if err != nil {
		return nil, err
	}
	shared := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	if _, err := reference.CoreV1().ConfigMaps("default").Create(ctx, shared, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	// RetryOnConflict gives up after so many steps; with this many writers the usual few do not suffice.
	backoff := wait.Backoff{Steps: 200, Duration: retry.DefaultRetry.Duration, Factor: 1, Jitter: 1}
	var refused atomic.Int64
	var group sync.WaitGroup
	failed := make(chan error, writers)
	each := max(1, with.changes/writers)
	for writer := range writers {
		group.Go(func() {
			client, err := kubernetes.NewForConfig(connection(with.broken, runtime.ContentTypeProtobuf))
			if err != nil {
				failed <- err
				return
			}
			maps := client.CoreV1().ConfigMaps("default")
			for index := range each {
				key := fmt.Sprintf("k%d-%d", writer, index)
				err := persist(ctx, never, func(ctx context.Context) error {
					return retry.RetryOnConflict(backoff, func() error {
						object, err := maps.Get(ctx, "shared", metav1.GetOptions{})
						if err != nil {
							return err
						}
						if object.Data == nil {
							object.Data = map[string]string{}
						}
						object.Data[key] = "there"
						_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
						if apierrors.IsConflict(err) {
							refused.Add(1)
						}
						return err
					})
				})
				if err != nil {
					failed <- fmt.Errorf("%s: %w", key, err)
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	object, err := reference.CoreV1().ConfigMaps("default").Get(ctx, "shared", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if len(object.Data) != each*writers {
		return nil, fmt.Errorf("%d keys of %d are there", len(object.Data), each*writers)
	}
	if refused.Load() == 0 {
		return nil, fmt.Errorf("nobody met a conflict")
	}
	return report{"keys": len(object.Data), "conflicts": refused.Load()}, nil
}

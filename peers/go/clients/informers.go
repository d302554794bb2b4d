package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// Where the objects are that the informers follow.
const followed = "followed"

var (
	secretResource    = corev1.SchemeGroupVersion.WithResource("secrets")
	configMapResource = corev1.SchemeGroupVersion.WithResource("configmaps")
	resources         = []schema.GroupVersionResource{secretResource, configMapResource, gizmoResource}
)

// followed by an informer of its own connection.
type informed struct {
	resource schema.GroupVersionResource
	*follower
	requests  *requests
	mediaType string
}

// informers follows changes with every kind of informer over connections that break, and compares what they were
// told with what a watch over a connection that holds was told.
func informers(ctx context.Context, with *setting) (report, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := defineGizmos(ctx, with.reference); err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(connection(with.reference, runtime.ContentTypeProtobuf))
	if err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: followed}}
	if _, err := typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if err := standardObjects(ctx, typed); err != nil {
		return nil, err
	}
	reference, err := dynamic.NewForConfig(connection(with.reference, runtime.ContentTypeJSON))
	if err != nil {
		return nil, err
	}
	started, err := startJournals(ctx, with, reference)
	if err != nil {
		return nil, err
	}
	all, err := startInformers(ctx, with)
	if err != nil {
		return nil, err
	}
	changed, err := change(ctx, with)
	if err != nil {
		return nil, err
	}
	done := report{"changes": changed}
	happened := 0
	for _, pair := range started {
		if err := pair.agree(ctx, reference); err != nil {
			return nil, fmt.Errorf("watch of %s: %w", pair.resource.Resource, err)
		}
		happened += len(pair.reference.events)
		done["events of "+pair.resource.Resource] = len(pair.broken.events)
	}
	if happened < with.changes {
		return nil, fmt.Errorf("%d events of %d changes", happened, with.changes)
	}
	streamed := 0
	for _, informer := range all {
		state, err := current(ctx, reference, informer.resource)
		if err != nil {
			return nil, err
		}
		if err := eventually(ctx, informer.name, func() error { return informer.isAt(state) }); err != nil {
			return nil, err
		}
		if err := informer.asked(); err != nil {
			return nil, fmt.Errorf("%s: %w", informer.name, err)
		}
		done[informer.name] = report{
			"events": informer.events, "streamed lists": informer.requests.streamedLists,
			"lists": informer.requests.lists, "watches": informer.requests.watches,
		}
		if 0 < informer.requests.streamedLists {
			streamed++
		}
	}
	// Some have their first connection cut; most do not.
	if streams() && 2*streamed < len(all) {
		return nil, fmt.Errorf("%d of %d informers were answered with a streamed list", streamed, len(all))
	}
	return done, nil
}

// standardObjects waits for what every namespace is given, so that it is there before the first list.
func standardObjects(ctx context.Context, client kubernetes.Interface) error {
	return eventually(ctx, "kube-root-ca.crt", func() error {
		_, err := client.CoreV1().ConfigMaps(followed).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
}

// journals are of one resource: over connections that break, and over one that holds.
type journals struct {
	resource          schema.GroupVersionResource
	before            map[string]string
	broken, reference *journal
}

func startJournals(ctx context.Context, with *setting, reference dynamic.Interface) ([]journals, error) {
	var all []journals
	for _, resource := range resources {
		list, err := reference.Resource(resource).Namespace(followed).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		pair := journals{resource: resource, before: map[string]string{}, broken: &journal{}, reference: &journal{}}
		for _, item := range list.Items {
			pair.before[item.GetName()] = item.GetResourceVersion()
		}
		broken, err := dynamic.NewForConfig(connection(with.broken, runtime.ContentTypeJSON))
		if err != nil {
			return nil, err
		}
		version := list.GetResourceVersion()
		if err := pair.broken.follow(ctx, version, watcher{broken.Resource(resource)}); err != nil {
			return nil, err
		}
		if err := pair.reference.follow(ctx, version, watcher{reference.Resource(resource)}); err != nil {
			return nil, err
		}
		all = append(all, pair)
	}
	return all, nil
}

type watcher struct {
	client dynamic.NamespaceableResourceInterface
}

// WatchWithContext watches.
func (w watcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.client.Namespace(followed).Watch(ctx, options)
}

// agree waits until both have all that happened, and compares them event by event.
func (j *journals) agree(ctx context.Context, client dynamic.Interface) error {
	expected, err := current(ctx, client, j.resource)
	if err != nil {
		return err
	}
	err = eventually(ctx, "the connection that holds", func() error {
		found, err := j.reference.state(j.before)
		if err != nil {
			return err
		}
		return same(expected, found)
	})
	if err != nil {
		return err
	}
	return eventually(ctx, "connections that break", func() error { return j.broken.misses(j.reference) })
}

// current is what there is.
func current(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource) (map[string]string, error) {
	list, err := client.Resource(resource).Namespace(followed).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	err = meta.EachListItem(list, func(object runtime.Object) error {
		accessor, err := meta.Accessor(object)
		if err == nil {
			versions[accessor.GetName()] = accessor.GetResourceVersion()
		}
		return err
	})
	return versions, err
}

// startInformers starts one of each kind and waits until each has its first list.
func startInformers(ctx context.Context, with *setting) ([]*informed, error) {
	var all []*informed
	synced := map[string]cache.InformerSynced{}
	start := func(kind, contentType string, resource schema.GroupVersionResource, make func(*informed) (cache.SharedIndexInformer, error)) error {
		one := &informed{
			resource: resource, follower: newFollower(kind + " informer of " + resource.Resource),
			requests: &requests{}, mediaType: contentType,
		}
		informer, err := make(one)
		if err != nil {
			return err
		}
		registration, err := informer.AddEventHandler(one.follower)
		if err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
		synced[one.name] = registration.HasSynced
		all = append(all, one)
		return nil
	}
	for _, resource := range resources {
		if resource != gizmoResource {
			for _, contentType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
				err := start("typed "+contentType, contentType, resource, func(one *informed) (cache.SharedIndexInformer, error) {
					client, err := kubernetes.NewForConfig(one.requests.count(connection(with.broken, contentType)))
					if err != nil {
						return nil, err
					}
					factory := clientinformers.NewSharedInformerFactoryWithOptions(client, 0, clientinformers.WithNamespace(followed))
					generic, err := factory.ForResource(resource)
					if err != nil {
						return nil, err
					}
					return generic.Informer(), nil
				})
				if err != nil {
					return nil, err
				}
			}
		}
		err := start("metadata", runtime.ContentTypeProtobuf, resource, func(one *informed) (cache.SharedIndexInformer, error) {
			// It chooses its media types itself.
			client, err := metadata.NewForConfig(one.requests.count(connection(with.broken, "")))
			if err != nil {
				return nil, err
			}
			return metadatainformer.NewFilteredMetadataInformer(client, resource, followed, 0, cache.Indexers{}, nil).Informer(), nil
		})
		if err != nil {
			return nil, err
		}
		err = start("dynamic", runtime.ContentTypeJSON, resource, func(one *informed) (cache.SharedIndexInformer, error) {
			client, err := dynamic.NewForConfig(one.requests.count(connection(with.broken, "")))
			if err != nil {
				return nil, err
			}
			return dynamicinformer.NewFilteredDynamicInformer(client, resource, followed, 0, cache.Indexers{}, nil).Informer(), nil
		})
		if err != nil {
			return nil, err
		}
	}
	for name, has := range synced {
		err := eventually(ctx, name, func() error {
			if !has() {
				return fmt.Errorf("not synced")
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// streams tells whether informers begin with a streamed list.
func streams() bool {
	return os.Getenv("KUBE_FEATURE_WatchListClient") != "false"
}

// asked tells when an informer did not use what it is meant to use.
func (i *informed) asked() error {
	i.requests.lock.Lock()
	defer i.requests.lock.Unlock()
	if streams() != (0 < i.requests.streamedLists+i.requests.cutLists) {
		return fmt.Errorf("%d streamed lists, %d cut off", i.requests.streamedLists, i.requests.cutLists)
	}
	if !streams() && i.requests.lists == 0 {
		return fmt.Errorf("no list")
	}
	for mediaType := range i.requests.mediaTypes {
		if mediaType != i.mediaType {
			return fmt.Errorf("answers in %v, not %s", i.requests.mediaTypes, i.mediaType)
		}
	}
	return nil
}

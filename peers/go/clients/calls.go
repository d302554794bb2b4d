package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
)

const called = "called"

// caller has each kind of client.
type caller struct {
	config   *rest.Config
	typed    *kubernetes.Clientset
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func newCaller(config *rest.Config) (*caller, error) {
	one := &caller{config: config}
	var errs [3]error
	one.typed, errs[0] = kubernetes.NewForConfig(config)
	one.dynamic, errs[1] = dynamic.NewForConfig(config)
	one.metadata, errs[2] = metadata.NewForConfig(config)
	return one, errors.Join(errs[:]...)
}

// calls makes typed, dynamic and metadata clients do what they can, in protobuf and in JSON.
func calls(ctx context.Context, with *setting) (report, error) {
	if err := defineGizmos(ctx, with.reference); err != nil {
		return nil, err
	}
	done := report{}
	for _, contentType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		one, err := newCaller(connection(with.reference, contentType))
		if err != nil {
			return nil, err
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: called + "-"}}
		if namespace, err = one.typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		steps := []struct {
			name string
			call func(context.Context, string) error
		}{
			{"typed", one.callTyped}, {"server-side apply", one.callApply}, {"dynamic", one.callDynamic},
			{"metadata", one.callMetadata}, {"pages", one.callPages}, {"watches", one.callWatches},
			{"discovery", one.callDiscovery}, {"reviews", one.callReviews}, {"errors", one.callErrors}, {"events", one.callEvents},
		}
		for _, step := range steps {
			if err := step.call(ctx, namespace.Name); err != nil {
				return nil, fmt.Errorf("%s in %s: %w", step.name, contentType, err)
			}
		}
		done[contentType] = len(steps)
	}
	return done, nil
}

// differs tells when something is not as expected.
func differs(what string, found, expected any) error {
	if reflect.DeepEqual(found, expected) {
		return nil
	}
	return fmt.Errorf("%s is %v, not %v", what, found, expected)
}

func (c *caller) callTyped(ctx context.Context, namespace string) error {
	secrets := c.typed.CoreV1().Secrets(namespace)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "typed", Labels: map[string]string{"l": "v"}},
		Data:       map[string][]byte{"bytes": {0, 255, 10}}, StringData: map[string]string{"text": "x"},
	}
	created, err := secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: "creator", FieldValidation: "Strict"})
	if err != nil {
		return err
	}
	expected := map[string][]byte{"bytes": {0, 255, 10}, "text": []byte("x")}
	if err := differs("what was created", created.Data, expected); err != nil {
		return err
	}
	if len(created.ManagedFields) != 1 || created.ManagedFields[0].Manager != "creator" || created.UID == "" || created.Type != corev1.SecretTypeOpaque {
		return fmt.Errorf("what was created has %v", created.ObjectMeta)
	}
	read, err := secrets.Get(ctx, "typed", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := differs("what was read", read, created); err != nil {
		return err
	}
	read.Annotations = map[string]string{"a": "b"}
	updated, err := secrets.Update(ctx, read, metav1.UpdateOptions{FieldManager: "updater"})
	if err != nil {
		return err
	}
	if _, err = secrets.Update(ctx, read, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("an update of what was old: %w", err)
	}
	for patchType, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/metadata/labels/json","value":"x"}]`,
		types.MergePatchType:          `{"metadata":{"labels":{"merge":"x"}}}`,
		types.StrategicMergePatchType: `{"metadata":{"labels":{"strategic":"x"}}}`,
	} {
		if updated, err = secrets.Patch(ctx, "typed", patchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", patchType, err)
		}
	}
	labels := map[string]string{"l": "v", "json": "x", "merge": "x", "strategic": "x"}
	if err := differs("labels", updated.Labels, labels); err != nil {
		return err
	}
	dry, err := secrets.Patch(ctx, "typed", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || dry.Labels != nil {
		return fmt.Errorf("dry run: %v %w", dry.Labels, err)
	}
	if err := secrets.Delete(ctx, "typed", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("another"))}}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a deletion of another: %w", err)
	}
	if err := secrets.Delete(ctx, "typed", *metav1.NewPreconditionDeleteOptions(string(created.UID))); err != nil {
		return err
	}
	for index := range 3 {
		meta := metav1.ObjectMeta{GenerateName: "many-", Labels: map[string]string{"index": fmt.Sprint(index)}}
		if _, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "index in (0, 2)"}); err != nil {
		return err
	}
	left, err := secrets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(left.Items) != 1 || left.Items[0].Labels["index"] != "1" {
		return fmt.Errorf("%d are left", len(left.Items))
	}
	status, err := c.typed.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	status.Status.Conditions = append(status.Status.Conditions, corev1.NamespaceCondition{Type: "Seen", Status: "True"})
	status, err = c.typed.CoreV1().Namespaces().UpdateStatus(ctx, status, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if len(status.Status.Conditions) != 1 {
		return fmt.Errorf("status: %v", status.Status)
	}
	return nil
}

func (c *caller) callApply(ctx context.Context, namespace string) error {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	wanted := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1", "b": "2"})
	applied, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	other := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "3"})
	_, err = maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two"})
	if !apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return fmt.Errorf("an apply of another's field: %w", err)
	}
	if applied, err = maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two", Force: true}); err != nil {
		return err
	}
	if err := differs("what is forced", applied.Data, map[string]string{"a": "3", "b": "2"}); err != nil {
		return err
	}
	// What an applier owns, and what it gives up.
	owned, err := applycorev1.ExtractConfigMap(applied, "one")
	if err != nil {
		return err
	}
	if err := differs("what one owns", owned.Data, map[string]string{"b": "2"}); err != nil {
		return err
	}
	applied, err = maps.Apply(ctx, applycorev1.ConfigMap("applied", namespace), metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	return differs("what is left", applied.Data, map[string]string{"a": "3"})
}

func (c *caller) callDynamic(ctx context.Context, namespace string) error {
	gizmos := c.dynamic.Resource(gizmoResource).Namespace(namespace)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gizmoGroup.String(), "kind": "Gizmo", "metadata": map[string]any{"name": "g", "finalizers": []any{"example.com/hold"}},
		"spec": map[string]any{"value": "1", "unknown": true}, "status": map[string]any{"value": "ignored"},
	}}
	created, err := gizmos.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := differs("spec", created.Object["spec"], map[string]any{"value": "1"}); err != nil {
		return err
	}
	if err := differs("status", created.Object["status"], nil); err != nil {
		return err
	}
	created.Object["status"] = map[string]any{"value": "done"}
	if created, err = gizmos.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if created, err = gizmos.Patch(ctx, "g", types.MergePatchType, []byte(`{"spec":{"shelf":"top"}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := differs("generation", created.GetGeneration(), int64(2)); err != nil {
		return err
	}
	if err := gizmos.Delete(ctx, "g", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		return err
	}
	if created, err = gizmos.Get(ctx, "g", metav1.GetOptions{}); err != nil {
		return err
	}
	if created.GetDeletionTimestamp() == nil {
		return errors.New("no deletionTimestamp")
	}
	if _, err = gizmos.Patch(ctx, "g", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	return eventually(ctx, "the gizmo's end", func() error {
		if _, err := gizmos.Get(ctx, "g", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

func (c *caller) callMetadata(ctx context.Context, namespace string) error {
	maps := c.metadata.Resource(configMapResource).Namespace(namespace)
	meta, err := maps.Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if meta.Name != "applied" || meta.ResourceVersion == "" {
		return fmt.Errorf("metadata: %v", meta)
	}
	if meta, err = maps.Patch(ctx, "applied", types.MergePatchType, []byte(`{"metadata":{"labels":{"by":"metadata"}}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := differs("labels", meta.Labels, map[string]string{"by": "metadata"}); err != nil {
		return err
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "by=metadata"})
	if err != nil {
		return err
	}
	if len(list.Items) != 1 || list.ResourceVersion == "" {
		return fmt.Errorf("%d in the list", len(list.Items))
	}
	return maps.Delete(ctx, "applied", metav1.DeleteOptions{})
}

func (c *caller) callPages(ctx context.Context, namespace string) error {
	const count = 23
	accounts := c.typed.CoreV1().ConfigMaps(namespace)
	for index := range count {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("page-%02d", index), Labels: map[string]string{"paged": "yes"}}
		if _, err := accounts.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	pages := 0
	lister := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		pages++
		options.LabelSelector = "paged=yes"
		return accounts.List(ctx, options)
	})
	lister.PageSize = 5
	var found []string
	err := lister.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		found = append(found, object.(*corev1.ConfigMap).Name)
		return nil
	})
	if err != nil {
		return err
	}
	if pages != 5 || len(found) != count || found[count-1] != "page-22" {
		return fmt.Errorf("%d pages of %v", pages, found)
	}
	return nil
}

func (c *caller) callWatches(ctx context.Context, namespace string) error {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	selector := fields.OneTermEqualSelector("metadata.name", "watched").String()
	watcher, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}
	if object, err = maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	object.Data = map[string]string{"a": "b"}
	if object, err = maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "watched", metav1.DeleteOptions{}); err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var seen []watch.EventType
	last, err := watchtools.UntilWithoutRetry(limited, watcher, func(event watch.Event) (bool, error) {
		seen = append(seen, event.Type)
		return event.Type == watch.Deleted, nil
	})
	if err != nil {
		return err
	}
	if err := differs("events", seen, []watch.EventType{watch.Added, watch.Modified, watch.Deleted}); err != nil {
		return err
	}
	if number(last.Object.(*corev1.ConfigMap).ResourceVersion) <= number(object.ResourceVersion) {
		return errors.New("the deletion has no version of its own")
	}
	return nil
}

func (c *caller) callDiscovery(ctx context.Context, _ string) error {
	client := c.typed.Discovery()
	groups, all, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	if len(groups) == 0 || len(all) == 0 {
		return errors.New("nothing is served")
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	for kind, resource := range map[schema.GroupKind]schema.GroupVersionResource{
		{Kind: "Secret"}:                         secretResource,
		{Group: gizmoGroup.Group, Kind: "Gizmo"}: gizmoResource,
		{Group: rbacv1.GroupName, Kind: "Role"}:  rbacv1.SchemeGroupVersion.WithResource("roles"),
	} {
		mapping, err := mapper.RESTMapping(kind)
		if err != nil {
			return err
		}
		if err := differs("resource", mapping.Resource, resource); err != nil {
			return err
		}
	}
	document, err := client.OpenAPISchema()
	if err != nil {
		return err
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	if document.Info == nil || paths["apis/"+gizmoGroup.String()] == nil {
		return fmt.Errorf("no document of %s", gizmoGroup)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	return differs("major version", version.Major, "1")
}

func (c *caller) callReviews(ctx context.Context, namespace string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := c.typed.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600))}}
	token, err := c.typed.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "robot", request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	name := "system:serviceaccount:" + namespace + ":robot"
	review, err := c.typed.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := differs("who the token is", review.Status.User.Username, name); err != nil {
		return err
	}
	// The robot itself, first without and then with a role.
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token.Status.Token
	robot, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	self, err := robot.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := differs("who the robot is", self.Status.UserInfo.Username, name); err != nil {
		return err
	}
	if _, err := robot.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("a list without a role: %w", err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}}}
	if _, err := c.typed.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "robot"}},
	}
	if _, err := c.typed.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	err = eventually(ctx, "the role", func() error {
		_, err := robot.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return err
	}
	access, err := robot.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "get", Resource: "secrets"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return differs("whether it may get", access.Status.Allowed, false)
}

func (c *caller) callErrors(ctx context.Context, namespace string) error {
	secrets := c.typed.CoreV1().Secrets(namespace)
	named := func(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	if _, err := secrets.Create(ctx, named("there"), metav1.CreateOptions{}); err != nil {
		return err
	}
	large := named("large")
	large.Data = map[string][]byte{"a": make([]byte, corev1.MaxSecretSize+1)}
	huge := named("huge")
	huge.Data = map[string][]byte{"a": make([]byte, 4<<20)}
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = "nonsense"
	stranger, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, expected := range []struct {
		what string
		is   func(error) bool
		call func() error
	}{
		{"not found", apierrors.IsNotFound, func() error { _, err := secrets.Get(ctx, "missing", metav1.GetOptions{}); return err }},
		{"already exists", apierrors.IsAlreadyExists, func() error { _, err := secrets.Create(ctx, named("there"), metav1.CreateOptions{}); return err }},
		{"invalid", apierrors.IsInvalid, func() error { _, err := secrets.Create(ctx, named("Not_A_Name"), metav1.CreateOptions{}); return err }},
		{"too large an object", apierrors.IsInvalid, func() error { _, err := secrets.Create(ctx, large, metav1.CreateOptions{}); return err }},
		{"too large a request", apierrors.IsRequestEntityTooLargeError, func() error { _, err := secrets.Create(ctx, huge, metav1.CreateOptions{}); return err }},
		{"unauthorized", apierrors.IsUnauthorized, func() error {
			_, err := stranger.CoreV1().Secrets(namespace).Get(ctx, "there", metav1.GetOptions{})
			return err
		}},
		{"method not supported", apierrors.IsMethodNotSupported, func() error {
			return c.typed.CoreV1().RESTClient().Post().AbsPath("/api/v1/secrets").Do(ctx).Error()
		}},
		{"bad selector", apierrors.IsBadRequest, func() error { _, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "data=x"}); return err }},
		{"bad token", apierrors.IsBadRequest, func() error { _, err := secrets.List(ctx, metav1.ListOptions{Continue: "nonsense"}); return err }},
		{"bad options", apierrors.IsInvalid, func() error {
			_, err := secrets.List(ctx, metav1.ListOptions{ResourceVersionMatch: "Exact"})
			return err
		}},
		{"future", apierrors.IsTimeout, func() error {
			// client-go asks ten times unless told otherwise.
			request := c.typed.CoreV1().RESTClient().Get().Namespace(namespace).Resource("secrets").MaxRetries(0)
			return request.Param("resourceVersion", "99999999999").Do(ctx).Error()
		}},
		{"unknown fields", apierrors.IsBadRequest, func() error {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "x"}, "bogus": "x"}}
			_, err := c.dynamic.Resource(secretResource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{FieldValidation: "Strict"})
			return err
		}},
	} {
		if err := expected.call(); !expected.is(err) {
			return fmt.Errorf("%s: %w", expected.what, err)
		}
	}
	return nil
}

func (c *caller) callEvents(ctx context.Context, namespace string) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&eventSink{c.typed, namespace})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "caller"})
	about, err := c.typed.CoreV1().Secrets(namespace).Get(ctx, "there", metav1.GetOptions{})
	if err != nil {
		return err
	}
	// The second of its kind is counted, by a patch.
	recorder.Event(about, corev1.EventTypeWarning, "Looked", "It was looked at.")
	recorder.Event(about, corev1.EventTypeWarning, "Looked", "It was looked at.")
	return eventually(ctx, "the event", func() error {
		list, err := c.typed.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Looked,involvedObject.name=there"})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Count != 2 || !strings.HasPrefix(list.Items[0].Name, "there.") {
			return fmt.Errorf("%d events", len(list.Items))
		}
		return nil
	})
}

// eventSink writes events where they belong.
type eventSink struct {
	typed     *kubernetes.Clientset
	namespace string
}

// Create creates.
func (s *eventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.typed.CoreV1().Events(s.namespace).Create(context.Background(), event, metav1.CreateOptions{})
}

// Update updates.
func (s *eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.typed.CoreV1().Events(s.namespace).Update(context.Background(), event, metav1.UpdateOptions{})
}

// Patch patches.
func (s *eventSink) Patch(event *corev1.Event, patch []byte) (*corev1.Event, error) {
	return s.typed.CoreV1().Events(s.namespace).Patch(context.Background(), event.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
}

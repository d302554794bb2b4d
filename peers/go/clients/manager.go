package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	managed     = "managed"
	finalizer   = "clients.example.com/shelf"
	madeLabel   = "clients.example.com/made"
	shelfIndex  = "spec.shelf"
	adviceLabel = "clients.example.com/gizmo"
)

// maker makes a Secret for each Gizmo: its value, and the advice of a ConfigMap that names it.
type maker struct {
	client.Client
	recorder events.EventRecorder
	// shelved are the Gizmos that hold the finalizer.
	shelved sync.Map
	passes  atomic.Int64
}

// Reconcile makes the Secret of one Gizmo.
func (m *maker) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m.passes.Add(1)
	var gizmo Gizmo
	if err := m.Get(ctx, request.NamespacedName, &gizmo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !gizmo.DeletionTimestamp.IsZero() {
		before := gizmo.copied()
		if controllerutil.RemoveFinalizer(&gizmo, finalizer) {
			m.shelved.Delete(gizmo.Name)
			return ctrl.Result{}, client.IgnoreNotFound(m.Patch(ctx, &gizmo, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&gizmo, finalizer) {
		m.shelved.Store(gizmo.Name, true)
		// The change comes back as an event.
		return ctrl.Result{}, m.Update(ctx, &gizmo)
	}
	m.shelved.Store(gizmo.Name, true)
	advice := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	err := m.Get(ctx, request.NamespacedName, &advice)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gizmo.Namespace, Name: gizmo.Name}}
	result, err := controllerutil.CreateOrUpdate(ctx, m.Client, &secret, func() error {
		secret.Labels = map[string]string{madeLabel: "true"}
		secret.Data = map[string][]byte{"value": []byte(gizmo.Spec.Value), "advice": []byte(advice.Annotations["advice"])}
		return controllerutil.SetControllerReference(&gizmo, &secret, m.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if result == controllerutil.OperationResultCreated {
		m.recorder.Eventf(&gizmo, &secret, corev1.EventTypeNormal, "Made", "Make", "The Secret %s is made.", secret.Name)
	}
	if gizmo.Status.ObservedGeneration == gizmo.Generation && gizmo.Status.Value == gizmo.Spec.Value {
		return ctrl.Result{}, nil
	}
	gizmo.Status = GizmoStatus{ObservedGeneration: gizmo.Generation, Value: gizmo.Spec.Value}
	return ctrl.Result{}, m.Status().Update(ctx, &gizmo)
}

// manage runs a manager over connections that break, while Gizmos come, change and go and their Secrets are
// tampered with. In the end all is as the Gizmos want it.
func manage(ctx context.Context, with *setting) (report, error) {
	environment := envtest.Environment{
		UseExistingCluster: ptr.To(true),
		Config:             connection(with.reference, ""),
		CRDInstallOptions:  envtest.CRDInstallOptions{CRDs: []*apiextensions.CustomResourceDefinition{gizmoDefinition()}},
	}
	config, err := environment.Start()
	if err != nil {
		return nil, fmt.Errorf("envtest: %w", err)
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(gizmoGroup, &Gizmo{}, &GizmoList{})
	metav1.AddToGroupVersion(scheme, gizmoGroup)
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if err := direct.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managed}}); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	made, ended, err := startManager(running, with, scheme)
	if err != nil {
		return nil, err
	}
	wanted, err := drive(ctx, with, direct, ended)
	if err != nil {
		return nil, err
	}
	if err := eventually(ctx, "the manager's work", func() error { return settled(ctx, direct, made, wanted) }); err != nil {
		return nil, err
	}
	if err := indexed(ctx, made, wanted); err != nil {
		return nil, err
	}
	if err := gone(ctx, direct); err != nil {
		return nil, err
	}
	stop()
	select {
	case err = <-ended:
	case <-time.After(patience):
		err = errors.New("the manager does not stop")
	}
	if err != nil {
		return nil, err
	}
	return report{"changes": with.changes, "gizmos": len(wanted), "passes": made.passes.Load()}, environment.Stop()
}

// startManager waits until the manager leads and its caches are filled.
func startManager(ctx context.Context, with *setting, scheme *runtime.Scheme) (*maker, chan error, error) {
	selector, err := labels.Parse(madeLabel + "=true")
	if err != nil {
		return nil, nil, err
	}
	one, err := ctrl.NewManager(connection(with.broken, ""), manager.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{managed: {}},
			ByObject:          map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: selector}},
		},
		LeaderElection: true, LeaderElectionID: "clients", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
		// Connections break: a leader that misses a renewal or two goes on.
		LeaseDuration: ptr.To(30 * time.Second), RenewDeadline: ptr.To(25 * time.Second), RetryPeriod: ptr.To(time.Second),
	})
	if err != nil {
		return nil, nil, err
	}
	made := &maker{Client: one.GetClient(), recorder: one.GetEventRecorder("maker")}
	err = one.GetFieldIndexer().IndexField(ctx, &Gizmo{}, shelfIndex, func(object client.Object) []string {
		return []string{object.(*Gizmo).Spec.Shelf}
	})
	if err != nil {
		return nil, nil, err
	}
	advised := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		name := object.GetLabels()[adviceLabel]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
	})
	err = ctrl.NewControllerManagedBy(one).
		For(&Gizmo{}).
		Owns(&corev1.Secret{}).
		WatchesMetadata(&corev1.ConfigMap{}, advised).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(made)
	if err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- one.Start(ctx) }()
	select {
	case <-one.Elected():
	case err := <-ended:
		return nil, nil, fmt.Errorf("the manager ended: %w", err)
	case <-time.After(patience):
		return nil, nil, errors.New("the manager does not lead")
	}
	return made, ended, nil
}

// want is what a Gizmo and its advice ask for.
type want struct{ value, shelf, advice string }

// drive makes the changes, and tells what is wanted in the end.
func drive(ctx context.Context, with *setting, direct client.Client, ended chan error) (map[string]want, error) {
	wanted := map[string]want{}
	const gizmos = 40
	for step := range with.changes {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the manager ended: %w", err)
		default:
		}
		name := fmt.Sprintf("g%d", step%gizmos)
		meta := metav1.ObjectMeta{Namespace: managed, Name: name}
		var err error
		state, there := wanted[name]
		switch turn := step / gizmos % 8; {
		case !there:
			state = want{value: fmt.Sprint(step), shelf: fmt.Sprint(step % 3)}
			err = direct.Create(ctx, &Gizmo{ObjectMeta: meta, Spec: GizmoSpec{Value: state.value, Shelf: state.shelf}})
			if apierrors.IsAlreadyExists(err) {
				// The one before is not away yet: the manager has its finalizer on it.
				err = eventually(ctx, name, func() error {
					return direct.Create(ctx, &Gizmo{ObjectMeta: meta, Spec: GizmoSpec{Value: state.value, Shelf: state.shelf}})
				})
			}
			// Advice outlives what it was given to.
			var advice corev1.ConfigMap
			if err == nil && direct.Get(ctx, types.NamespacedName{Namespace: managed, Name: name}, &advice) == nil {
				state.advice = advice.Annotations["advice"]
			}
		case turn == 2:
			// Somebody deletes what was made.
			err = client.IgnoreNotFound(direct.Delete(ctx, &corev1.Secret{ObjectMeta: meta}))
		case turn == 4:
			// Somebody writes into what was made.
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"d3Jvbmc="}}`))
			err = client.IgnoreNotFound(direct.Patch(ctx, &corev1.Secret{ObjectMeta: meta}, patch))
		case turn == 5:
			state.advice = fmt.Sprint(step)
			meta.Labels = map[string]string{adviceLabel: name}
			meta.Annotations = map[string]string{"advice": state.advice}
			err = direct.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta})
			if apierrors.IsAlreadyExists(err) {
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"advice":%q}}}`, state.advice))
				err = direct.Patch(ctx, &corev1.ConfigMap{ObjectMeta: meta}, patch)
			}
		case turn == 7:
			err = direct.Delete(ctx, &Gizmo{ObjectMeta: meta})
			delete(wanted, name)
			if err != nil {
				return nil, err
			}
			continue
		default:
			state.value = fmt.Sprint(step)
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"value":%q}}`, state.value))
			err = direct.Patch(ctx, &Gizmo{ObjectMeta: meta}, patch)
		}
		if err != nil {
			return nil, fmt.Errorf("change %d: %w", step, err)
		}
		wanted[name] = state
	}
	return wanted, nil
}

// settled tells what is not yet as it is wanted.
func settled(ctx context.Context, direct client.Client, made *maker, wanted map[string]want) error {
	var gizmos GizmoList
	if err := direct.List(ctx, &gizmos, client.InNamespace(managed)); err != nil {
		return err
	}
	if len(gizmos.Items) != len(wanted) {
		return fmt.Errorf("%d gizmos, not %d", len(gizmos.Items), len(wanted))
	}
	var secrets corev1.SecretList
	if err := direct.List(ctx, &secrets, client.InNamespace(managed), client.MatchingLabels{madeLabel: "true"}); err != nil {
		return err
	}
	if len(secrets.Items) != len(wanted) {
		return fmt.Errorf("%d secrets, not %d", len(secrets.Items), len(wanted))
	}
	owners := map[types.UID]bool{}
	for _, gizmo := range gizmos.Items {
		owners[gizmo.UID] = true
		if gizmo.Status.ObservedGeneration != gizmo.Generation || gizmo.Status.Value != wanted[gizmo.Name].value {
			return fmt.Errorf("%s: generation %d, status %v", gizmo.Name, gizmo.Generation, gizmo.Status)
		}
		if _, shelved := made.shelved.Load(gizmo.Name); !shelved {
			return fmt.Errorf("%s has no place", gizmo.Name)
		}
	}
	for _, secret := range secrets.Items {
		state := wanted[secret.Name]
		if string(secret.Data["value"]) != state.value || string(secret.Data["advice"]) != state.advice {
			return fmt.Errorf("secret %s is not as wanted", secret.Name)
		}
		if owner := metav1.GetControllerOf(&secret); owner == nil || !owners[owner.UID] {
			return fmt.Errorf("secret %s has the owner %v", secret.Name, owner)
		}
	}
	return nil
}

// indexed reads from the manager's cache, by an index of its own.
func indexed(ctx context.Context, made *maker, wanted map[string]want) error {
	expected := 0
	for _, state := range wanted {
		if state.shelf == "1" {
			expected++
		}
	}
	var found GizmoList
	if err := made.List(ctx, &found, client.InNamespace(managed), client.MatchingFields{shelfIndex: "1"}); err != nil {
		return err
	}
	if len(found.Items) != expected {
		return fmt.Errorf("%d of %d gizmos are on the shelf", len(found.Items), expected)
	}
	return nil
}

// gone deletes all Gizmos: finalizers are answered, and what they owned goes with them.
func gone(ctx context.Context, direct client.Client) error {
	if err := direct.DeleteAllOf(ctx, &Gizmo{}, client.InNamespace(managed)); err != nil {
		return err
	}
	return eventually(ctx, "the end of all gizmos", func() error {
		var gizmos GizmoList
		var secrets corev1.SecretList
		if err := direct.List(ctx, &gizmos, client.InNamespace(managed)); err != nil {
			return err
		}
		if err := direct.List(ctx, &secrets, client.InNamespace(managed), client.MatchingLabels{madeLabel: "true"}); err != nil {
			return err
		}
		if 0 < len(gizmos.Items)+len(secrets.Items) {
			return fmt.Errorf("%d gizmos and %d secrets are left", len(gizmos.Items), len(secrets.Items))
		}
		return nil
	})
}

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 200 * time.Millisecond
)

// throne is who leads, by the candidates' own word.
type throne struct {
	lock    sync.Mutex
	leader  string
	changes []string
	wrong   error
}

func (t *throne) taken(by string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.leader != "" {
		t.wrong = fmt.Errorf("%s leads while %s does", by, t.leader)
	}
	t.leader = by
	t.changes = append(t.changes, by)
}

func (t *throne) left(by string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.leader == by {
		t.leader = ""
	}
}

func (t *throne) isHeldBy(names ...string) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.wrong != nil {
		return t.wrong
	}
	for _, name := range names {
		if t.leader == name {
			return nil
		}
	}
	return fmt.Errorf("%q leads, not one of %v", t.leader, names)
}

// candidate runs for leadership again and again until its context ends, over connections that break.
func candidate(ctx context.Context, with *setting, throne *throne, name string, releases bool) (stopped chan struct{}, err error) {
	client, err := kubernetes.NewForConfig(connection(with.broken, runtime.ContentTypeProtobuf))
	if err != nil {
		return nil, err
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "throne"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: name},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: releases,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { throne.taken(name) },
			OnStoppedLeading: func() { throne.left(name) },
		},
	})
	if err != nil {
		return nil, err
	}
	stopped = make(chan struct{})
	go func() {
		defer close(stopped)
		for ctx.Err() == nil {
			elector.Run(ctx)
		}
	}()
	return stopped, nil
}

// leaders lets two candidates run for a lease: one leads at a time, a leader that steps down is followed at once, and
// one that is gone is followed when its lease has ended.
func leaders(ctx context.Context, with *setting) (report, error) {
	var throne throne
	type runner struct {
		stop    context.CancelFunc
		stopped chan struct{}
	}
	enter := func(name string, releases bool) (runner, error) {
		running, stop := context.WithCancel(ctx)
		stopped, err := candidate(running, with, &throne, name, releases)
		return runner{stop, stopped}, err
	}
	first, err := enter("first", true)
	if err != nil {
		return nil, err
	}
	if err := eventually(ctx, "the first", func() error { return throne.isHeldBy("first") }); err != nil {
		return nil, err
	}
	second, err := enter("second", false)
	if err != nil {
		return nil, err
	}
	// It stays with whoever has it, for longer than a lease: it is renewed.
	time.Sleep(leaseDuration + retryPeriod)
	if err := throne.isHeldBy("first"); err != nil {
		return nil, err
	}
	first.stop()
	<-first.stopped
	if err := eventually(ctx, "the second", func() error { return throne.isHeldBy("second") }); err != nil {
		return nil, err
	}
	second.stop()
	<-second.stopped
	gone := time.Now()
	third, err := enter("third", true)
	if err != nil {
		return nil, err
	}
	if err := eventually(ctx, "the third", func() error { return throne.isHeldBy("third") }); err != nil {
		return nil, err
	}
	waited := time.Since(gone)
	if waited < leaseDuration-renewDeadline {
		return nil, fmt.Errorf("a lease that was not released was taken after %s", waited)
	}
	client, err := kubernetes.NewForConfig(connection(with.reference, runtime.ContentTypeProtobuf))
	if err != nil {
		return nil, err
	}
	lease, err := client.CoordinationV1().Leases("default").Get(ctx, "throne", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity != "third" || spec.LeaseTransitions == nil || *spec.LeaseTransitions < 2 ||
		spec.AcquireTime == nil || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return nil, fmt.Errorf("the lease says %v", spec)
	}
	third.stop()
	<-third.stopped
	return report{"leaders": throne.changes, "transitions": *spec.LeaseTransitions}, throne.wrong
}

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// follower is what an informer's handlers were told.
type follower struct {
	name     string
	lock     sync.Mutex
	versions map[string]string
	events   int
	wrong    error
}

func newFollower(name string) *follower {
	return &follower{name: name, versions: map[string]string{}}
}

func (f *follower) OnAdd(object any, _ bool) {
	f.told(object, func(name, version string) error {
		if known, there := f.versions[name]; there {
			return fmt.Errorf("%s added at %s is there already, at %s", name, version, known)
		}
		f.versions[name] = version
		return nil
	})
}

func (f *follower) OnUpdate(old, object any) {
	before, err := meta.Accessor(old)
	f.told(object, func(name, version string) error {
		if err != nil {
			return err
		}
		known := f.versions[name]
		if known != before.GetResourceVersion() {
			return fmt.Errorf("%s changed from %s, and was at %q", name, before.GetResourceVersion(), known)
		}
		if number(version) < number(known) {
			return fmt.Errorf("%s went back from %s to %s", name, known, version)
		}
		f.versions[name] = version
		return nil
	})
}

func (f *follower) OnDelete(object any) {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		object = unknown.Obj
	}
	f.told(object, func(name, _ string) error {
		if _, there := f.versions[name]; !there {
			return fmt.Errorf("%s is deleted and was not there", name)
		}
		delete(f.versions, name)
		return nil
	})
}

func (f *follower) told(object any, take func(name, version string) error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.events++
	accessor, err := meta.Accessor(object)
	if err == nil {
		err = take(accessor.GetName(), accessor.GetResourceVersion())
	}
	if err != nil && f.wrong == nil {
		f.wrong = err
	}
}

// isAt tells how what it knows differs from the state.
func (f *follower) isAt(state map[string]string) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.wrong != nil {
		return f.wrong
	}
	return same(state, f.versions)
}

func same(expected, found map[string]string) error {
	for name, version := range expected {
		if found[name] != version {
			return fmt.Errorf("%s should be at %s and is at %q", name, version, found[name])
		}
	}
	for name, version := range found {
		if _, there := expected[name]; !there {
			return fmt.Errorf("%s should be gone and is at %s", name, version)
		}
	}
	return nil
}

// happening is one event of a watch.
type happening struct {
	kind          watch.EventType
	name, version string
}

// journal is every event of a watch that goes on where it broke off.
type journal struct {
	lock   sync.Mutex
	events []happening
	wrong  error
}

// follow begins after a version and ends with the context.
func (j *journal) follow(ctx context.Context, version string, source cache.WatcherWithContext) error {
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, source)
	if err != nil {
		return err
	}
	go func() {
		for event := range watcher.ResultChan() {
			accessor, err := meta.Accessor(event.Object)
			j.lock.Lock()
			switch {
			case event.Type == watch.Error:
				j.wrong = fmt.Errorf("the watch failed: %v", event.Object)
			case err != nil:
				j.wrong = err
			default:
				j.events = append(j.events, happening{event.Type, accessor.GetName(), accessor.GetResourceVersion()})
			}
			j.lock.Unlock()
		}
	}()
	return nil
}

// state is what is left after all events, from `before` on.
func (j *journal) state(before map[string]string) (map[string]string, error) {
	j.lock.Lock()
	defer j.lock.Unlock()
	versions := map[string]string{}
	for name, version := range before {
		versions[name] = version
	}
	last := uint64(0)
	for _, event := range j.events {
		if number(event.version) <= last {
			return nil, fmt.Errorf("%v comes after %d", event, last)
		}
		last = number(event.version)
		_, there := versions[event.name]
		if there == (event.kind == watch.Added) {
			return nil, fmt.Errorf("%v, and it was there: %v", event, there)
		}
		versions[event.name] = event.version
		if event.kind == watch.Deleted {
			delete(versions, event.name)
		}
	}
	return versions, j.wrong
}

// misses tells where it differs from another journal of the same.
func (j *journal) misses(reference *journal) error {
	j.lock.Lock()
	defer j.lock.Unlock()
	reference.lock.Lock()
	defer reference.lock.Unlock()
	if j.wrong != nil {
		return j.wrong
	}
	for index, event := range reference.events {
		if len(j.events) <= index {
			return fmt.Errorf("%d of %d events are there; %v comes next", index, len(reference.events), event)
		}
		if j.events[index] != event {
			return fmt.Errorf("event %d is %v and should be %v", index, j.events[index], event)
		}
	}
	if len(reference.events) < len(j.events) {
		return fmt.Errorf("%d events more than happened", len(j.events)-len(reference.events))
	}
	return nil
}

func number(version string) uint64 {
	// What is no number is before all others, and is found.
	parsed, _ := strconv.ParseUint(version, 10, 64)
	return parsed
}

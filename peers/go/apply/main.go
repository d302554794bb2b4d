// Command apply answers, one JSON line each, what upstream's field manager makes of one write.
//
// A request is an operation on a live object (null when there is none); the answer is the object that
// comes of it, or the error. Nothing is kept between requests but the definition of the custom resource.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

type request struct {
	// Definition sets the custom resource's definition; nothing else happens.
	Definition  json.RawMessage `json:"definition"`
	APIVersion  string          `json:"apiVersion"`
	Kind        string          `json:"kind"`
	Subresource string          `json:"subresource"`
	Manager     string          `json:"manager"`
	Apply       bool            `json:"apply"`
	Force       bool            `json:"force"`
	Time        metav1.Time     `json:"time"`
	Live        json.RawMessage `json:"live"`
	// Object is what is written: an object, or for an apply text in YAML.
	Object json.RawMessage `json:"object"`
}

type answer struct {
	Object any    `json:"object,omitempty"`
	Error  string `json:"error,omitempty"`
	// Code and Causes are those of an API error.
	Code   int32                `json:"code,omitempty"`
	Causes []metav1.StatusCause `json:"causes,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	kinds, err := newKinds()
	if err != nil {
		fail(err)
	}
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fail(fmt.Errorf("%w: %s", err, lines.Text()))
		}
		if err := encoder.Encode(kinds.answer(&asked)); err != nil {
			fail(err)
		}
		if err := out.Flush(); err != nil {
			fail(err)
		}
	}
	if err := lines.Err(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "apply:", err)
	os.Exit(1)
}

func (k *kinds) answer(asked *request) answer {
	if asked.Definition != nil {
		if err := k.define(asked.Definition); err != nil {
			fail(err)
		}
		return answer{}
	}
	object, err := k.write(asked)
	if err != nil {
		failed := answer{Error: err.Error()}
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			failed.Code = status.Status().Code
			if details := status.Status().Details; details != nil {
				failed.Causes = details.Causes
			}
		}
		// Upstream walks a map.
		sort.SliceStable(failed.Causes, func(i, j int) bool { return failed.Causes[i].Message < failed.Causes[j].Message })
		return failed
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		fail(err)
	}
	entries := accessor.GetManagedFields()
	settle(entries, asked.Time)
	accessor.SetManagedFields(entries)
	return answer{Object: object}
}

func (k *kinds) write(asked *request) (runtime.Object, error) {
	kind, err := k.find(asked.APIVersion, asked.Kind, asked.Subresource)
	if err != nil {
		fail(err)
	}
	live, err := kind.decode(asked.Live)
	if err != nil {
		fail(err)
	}
	if !asked.Apply {
		object, err := kind.decode(asked.Object)
		if err != nil {
			fail(err)
		}
		return kind.manager.UpdateNoErrors(live, object, asked.Manager), nil
	}
	var text string
	if err := json.Unmarshal(asked.Object, &text); err != nil {
		fail(err)
	}
	patch := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(text), &patch.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return kind.manager.Apply(live, patch, asked.Manager, asked.Force)
}

// settle puts the request's time where the field manager put the machine's.
func settle(entries []metav1.ManagedFieldsEntry, now metav1.Time) {
	for index := range entries {
		if at := entries[index].Time; at != nil && time.Since(at.Time) < time.Hour {
			entries[index].Time = &now
		}
	}
}

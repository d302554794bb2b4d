package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// step is one update: by whom, of what, and the entries that come out.
type step struct {
	Manager       string          `json:"manager"`
	Subresource   string          `json:"subresource,omitempty"`
	Object        json.RawMessage `json:"object"`
	ManagedFields json.RawMessage `json:"managedFields"`
}

// sequence is one object's life; the first step creates it.
type sequence struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Steps []step `json:"steps"`
}

// Step n happens this many seconds after the beginning of 2001.
var base = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

func by(manager, object string) step { return step{Manager: manager, Object: json.RawMessage(object)} }

func byStatus(manager, object string) step {
	return step{Manager: manager, Subresource: "status", Object: json.RawMessage(object)}
}

// What a write of the main resource or of status cannot change.
var resets = map[string]map[string]*fieldpath.Set{
	"Pod": {
		"": fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
		"status": fieldpath.NewSet(
			fieldpath.MakePathOrDie("spec"),
			fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
			fieldpath.MakePathOrDie("metadata", "ownerReferences"),
		),
	},
}

func fieldCases() (any, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	converter := applyconfigurations.NewTypeConverter(scheme)
	for index := range sequences {
		one := &sequences[index]
		gvk := corev1.SchemeGroupVersion.WithKind(one.Kind)
		live, err := scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		live.GetObjectKind().SetGroupVersionKind(gvk)
		for number := range one.Steps {
			step := &one.Steps[number]
			var reset map[fieldpath.APIVersion]fieldpath.Filter
			if set := resets[one.Kind][step.Subresource]; set != nil {
				reset = map[fieldpath.APIVersion]fieldpath.Filter{"v1": fieldpath.NewExcludeSetFilter(set)}
			}
			manager, err := managedfields.NewDefaultFieldManager(converter, scheme, scheme, scheme, gvk, corev1.SchemeGroupVersion, step.Subresource, reset)
			if err != nil {
				return nil, err
			}
			object, err := scheme.New(gvk)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(step.Object, object); err != nil {
				return nil, fmt.Errorf("%s, step %d: %w", one.Name, number, err)
			}
			object.GetObjectKind().SetGroupVersionKind(gvk)
			live, err = manager.Update(live, object, step.Manager)
			if err != nil {
				return nil, fmt.Errorf("%s, step %d: %w", one.Name, number, err)
			}
			accessor, err := meta.Accessor(live)
			if err != nil {
				return nil, err
			}
			accessor.SetUID("stored")
			entries := accessor.GetManagedFields()
			settle(entries, base.Add(time.Duration(number)*time.Second))
			accessor.SetManagedFields(entries)
			if step.ManagedFields, err = json.Marshal(entries); err != nil {
				return nil, err
			}
		}
	}
	return sequences, nil
}

// settle puts the step's time where the field manager put the machine's.
func settle(entries []metav1.ManagedFieldsEntry, now time.Time) {
	for index := range entries {
		if entries[index].Time != nil && entries[index].Time.Year() > 2001 {
			entries[index].Time = &metav1.Time{Time: now}
		}
	}
	sort.SliceStable(entries, func(i, j int) bool {
		if entries[i].Operation != entries[j].Operation {
			return entries[i].Operation < entries[j].Operation
		}
		return entries[i].Time != nil && entries[j].Time != nil && entries[i].Time.Before(entries[j].Time)
	})
}

const secret = `{"metadata":{"name":"s","namespace":"n"},"data":{"a":"MQ==","b":"Mg=="},"type":"Opaque"}`

const pod = `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","image":"i",
"ports":[{"containerPort":443,"protocol":"TCP"},{"containerPort":80,"protocol":"TCP"}],
"env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}],
"volumeMounts":[{"name":"v","mountPath":"/v"}],"args":["x","y"],"resources":{"limits":{"cpu":"1"}},"imagePullPolicy":"Always"}],
"volumes":[{"name":"v","secret":{"secretName":"s","defaultMode":420}}],"nodeSelector":{"x":"y"},
"tolerations":[{"key":"k","operator":"Exists"}],"restartPolicy":"Always","securityContext":{},"enableServiceLinks":true,
"terminationGracePeriodSeconds":30}}`

var sequences = []sequence{
	{"one writer creates", "Secret", []step{by("kubectl", secret)}},
	{"nothing changes", "Secret", []step{by("a", secret), by("b", secret)}},
	{"a value changes hands", "Secret", []step{
		by("a", secret),
		by("b", `{"metadata":{"name":"s","namespace":"n"},"data":{"a":"eA==","b":"Mg=="},"type":"Opaque"}`)}},
	{"a key is added", "Secret", []step{
		by("a", secret),
		by("b", `{"metadata":{"name":"s","namespace":"n"},"data":{"a":"MQ==","b":"Mg==","c":"Mw=="},"type":"Opaque"}`)}},
	{"a key is removed", "Secret", []step{
		by("a", secret),
		by("b", `{"metadata":{"name":"s","namespace":"n"},"data":{"a":"MQ=="},"type":"Opaque"}`)}},
	{"all data goes", "Secret", []step{
		by("a", secret),
		by("b", `{"metadata":{"name":"s","namespace":"n"},"type":"Opaque"}`)}},
	{"empty data", "Secret", []step{
		by("a", `{"metadata":{"name":"s","namespace":"n"},"data":{},"type":"Opaque"}`),
		by("b", secret),
		by("a", `{"metadata":{"name":"s","namespace":"n"},"data":{},"type":"Opaque"}`)}},
	{"an empty value", "Secret", []step{by("a", `{"metadata":{"name":"s","namespace":"n"},"data":{"a":""},"type":"Opaque"}`)}},
	{"labels and annotations", "Secret", []step{
		by("a", `{"metadata":{"name":"s","namespace":"n","labels":{"x":"1"},"annotations":{"y.z/w":"2"}},"type":"Opaque"}`),
		by("b", `{"metadata":{"name":"s","namespace":"n","labels":{"x":"2","v":"1"},"annotations":{"y.z/w":"2"}},"type":"Opaque"}`),
		by("a", `{"metadata":{"name":"s","namespace":"n","annotations":{"y.z/w":"2"}},"type":"Opaque"}`)}},
	{"finalizers are a set", "Secret", []step{
		by("a", `{"metadata":{"name":"s","namespace":"n","finalizers":["x.io/b","x.io/a"]},"type":"Opaque"}`),
		by("b", `{"metadata":{"name":"s","namespace":"n","finalizers":["x.io/a","x.io/c<d"]},"type":"Opaque"}`),
		by("c", `{"metadata":{"name":"s","namespace":"n"},"type":"Opaque"}`)}},
	{"owner references are keyed", "Secret", []step{
		by("a", `{"metadata":{"name":"s","namespace":"n","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1"}]},"type":"Opaque"}`),
		by("b", `{"metadata":{"name":"s","namespace":"n","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1","controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"u2"}]},"type":"Opaque"}`),
		by("a", `{"metadata":{"name":"s","namespace":"n","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"q","uid":"u2"}]},"type":"Opaque"}`)}},
	{"immutable is set", "Secret", []step{
		by("a", secret),
		by("b", `{"metadata":{"name":"s","namespace":"n"},"data":{"a":"MQ==","b":"Mg=="},"type":"Opaque","immutable":true}`)}},
	{"an owner of keys keeps them", "Secret", []step{
		by("externalsecrets.external-secrets.io/x", `{"metadata":{"name":"s","namespace":"n"},"data":{"k":"MQ=="},"type":"Opaque"}`),
		by("kubectl-edit", `{"metadata":{"name":"s","namespace":"n"},"data":{"k":"MQ==","other":"Mg=="},"type":"Opaque"}`),
		by("externalsecrets.external-secrets.io/x", `{"metadata":{"name":"s","namespace":"n"},"data":{"k":"Mw==","other":"Mg=="},"type":"Opaque"}`)}},
	{"an unknown writer", "Secret", []step{by("", secret)}},
	{"a client clears the entries", "Secret", []step{
		by("a", secret),
		by("b", `{"metadata":{"name":"s","namespace":"n","managedFields":[{}]},"data":{"a":"MQ=="},"type":"Opaque"}`),
		by("c", secret)}},
	{"an empty list clears too", "Secret", []step{
		by("a", secret),
		by("b", `{"metadata":{"name":"s","namespace":"n","managedFields":[]},"data":{"a":"MQ=="},"type":"Opaque"}`)}},
	{"invalid entries are ignored", "Secret", []step{
		by("a", secret),
		by("b", `{"metadata":{"name":"s","namespace":"n","managedFields":[{"manager":"x","operation":"Bad","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]},"data":{"a":"MQ=="},"type":"Opaque"}`)}},
	{"a client's own entries count", "Secret", []step{
		by("a", secret),
		by("b", `{"metadata":{"name":"s","namespace":"n","managedFields":[{"manager":"x","operation":"Update","apiVersion":"v1","time":"2000-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:type":{}}}]},"data":{"a":"MQ=="},"type":"Opaque"}`)}},
	{"an applier loses what others change", "Secret", []step{
		by("a", `{"metadata":{"name":"s","namespace":"n","managedFields":[{"manager":"x","operation":"Apply","apiVersion":"v1","time":"2000-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{},"f:b":{}}}}]},"data":{"a":"MQ=="},"type":"Opaque"}`),
		by("b", `{"metadata":{"name":"s","namespace":"n"},"data":{"a":"eA==","b":"Mg=="},"type":"Opaque"}`)}},
	{"many writers", "Secret", many(14)},
	{"a config map", "ConfigMap", []step{
		by("a", `{"metadata":{"name":"c","namespace":"n"},"data":{"a":"1"},"binaryData":{"b":"AA=="}}`),
		by("b", `{"metadata":{"name":"c","namespace":"n"},"data":{"a":"2"}}`),
		by("a", `{"metadata":{"name":"c","namespace":"n"},"data":{"a":"2"},"immutable":true}`)}},
	{"a service account", "ServiceAccount", []step{
		by("a", `{"metadata":{"name":"s","namespace":"n"}}`),
		by("b", `{"metadata":{"name":"s","namespace":"n"},"secrets":[{"name":"x"},{"name":"y"}],"imagePullSecrets":[{"name":"r"}],"automountServiceAccountToken":false}`),
		by("a", `{"metadata":{"name":"s","namespace":"n"},"secrets":[{"name":"y"}],"imagePullSecrets":[{"name":"r"},{"name":"q"}],"automountServiceAccountToken":false}`)}},
	{"a pod", "Pod", []step{by("kubectl", pod)}},
	{"a pod's status", "Pod", []step{
		by("kubectl", pod),
		byStatus("kubelet", `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2000-01-01T00:00:00Z"},{"type":"Initialized","status":"True"}]}}`),
		byStatus("kubelet", `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"conditions":[{"type":"Ready","status":"False"}]}}`)}},
	{"a pod is bound and its image changes", "Pod", []step{
		by("kubectl", `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}}`),
		by("scheduler", `{"metadata":{"name":"p","namespace":"n"},"spec":{"nodeName":"x","containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}}`),
		by("kubectl-edit", `{"metadata":{"name":"p","namespace":"n"},"spec":{"nodeName":"x","containers":[{"name":"c","image":"j"},{"name":"d","image":"i"}]}}`)}},
	{"atomic parts of a pod", "Pod", []step{
		by("a", `{"metadata":{"name":"p","namespace":"n"},"spec":{"nodeSelector":{"x":"1"},"containers":[{"name":"c","args":["a"]}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"a","operator":"In","values":["b"]}]}]}}}}}`),
		by("b", `{"metadata":{"name":"p","namespace":"n"},"spec":{"nodeSelector":{"x":"1","y":"2"},"containers":[{"name":"c","args":["a","b"]}]}}`)}},
	{"projected volumes", "Pod", []step{
		by("a", `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c"}],"volumes":[{"name":"v","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"path":"t","expirationSeconds":3607}},{"configMap":{"name":"r","items":[{"key":"k","path":"p"}]}}]}},{"name":"e","emptyDir":{}}]}}`),
		by("b", `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c"}],"volumes":[{"name":"v","projected":{"defaultMode":256,"sources":[{"serviceAccountToken":{"path":"t","expirationSeconds":3607}}]}},{"name":"e","emptyDir":{"medium":"Memory"}}]}}`)}},
	{"items with one key", "Pod", []step{
		by("a", `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}`),
		by("b", `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"}]}]}}`),
		by("c", `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"3"}]}]}}`),
		by("d", `{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"4"}]}]}}`)}},
	{"a namespace", "Namespace", []step{
		by("kubectl", `{"metadata":{"name":"n","labels":{"kubernetes.io/metadata.name":"n"}},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`)}},
	{"an event", "Event", []step{
		by("kubelet", `{"metadata":{"name":"e","namespace":"n"},"involvedObject":{"kind":"Pod","name":"p"},"reason":"r","message":"m","source":{"component":"kubelet","host":"h"},"firstTimestamp":"2000-01-01T00:00:00Z","lastTimestamp":"2000-01-01T00:00:00Z","count":1,"type":"Normal"}`),
		by("kubelet", `{"metadata":{"name":"e","namespace":"n"},"involvedObject":{"kind":"Pod","name":"p"},"reason":"r","message":"m","source":{"component":"kubelet","host":"h"},"firstTimestamp":"2000-01-01T00:00:00Z","lastTimestamp":"2000-01-02T00:00:00Z","count":2,"type":"Normal"}`)}},
	{"a node", "Node", []step{
		by("kubelet", `{"metadata":{"name":"x","labels":{"a":"b"}},"spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24"],"taints":[{"key":"k","effect":"NoSchedule"}]},"status":{"capacity":{"cpu":"1"},"conditions":[{"type":"Ready","status":"True"}],"addresses":[{"type":"Hostname","address":"x"}]}}`)}},
}

// many is a Secret that as many writers add a key to.
func many(count int) []step {
	steps := make([]step, count)
	data := map[string]string{}
	for index := range steps {
		data[fmt.Sprintf("k%02d", index)] = "MQ=="
		object, _ := json.Marshal(map[string]any{
			"metadata": map[string]string{"name": "s", "namespace": "n"}, "data": data, "type": "Opaque",
		})
		steps[index] = by(fmt.Sprintf("writer-%02d", index), string(object))
	}
	return steps
}

package main

import (
	"encoding/json"
	"errors"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patchCase is a document, a patch, and what comes out: a document or an error.
type patchCase struct {
	Kind     string          `json:"kind,omitempty"`
	Document json.RawMessage `json:"document"`
	Patch    json.RawMessage `json:"patch"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    string          `json:"error,omitempty"`
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func strategicCases() (any, error) {
	for index := range strategic {
		one := &strategic[index]
		var original, patch map[string]any
		if err := errors.Join(json.Unmarshal(one.Document, &original), json.Unmarshal(one.Patch, &patch)); err != nil {
			return nil, err
		}
		var data any = corev1.Secret{}
		if one.Kind == "Pod" {
			data = corev1.Pod{}
		}
		schema, err := strategicpatch.NewPatchMetaFromStruct(data)
		if err != nil {
			return nil, err
		}
		result, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(original, patch, schema)
		if err != nil {
			// The rest of the text may hold values; ours leaves them out.
			one.Error = strings.SplitN(err.Error(), ":", 2)[0]
			continue
		}
		if one.Result, err = json.Marshal(result); err != nil {
			return nil, err
		}
	}
	return strategic, nil
}

const owners = `{"metadata":{"ownerReferences":[{"uid":"a","name":"x"},{"uid":"b","name":"y"},{"uid":"c","name":"z"}],"finalizers":["x/a","x/b","x/c"]}}`
const containers = `{"spec":{"containers":[{"name":"a","image":"1","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"args":["x"]},{"name":"b","image":"2"}],"volumes":[{"name":"v","secret":{"secretName":"s"}}],"nodeSelector":{"a":"b"}}}`

var strategic = []patchCase{
	{Document: raw(`{"data":{"a":"MQ==","b":"Mg=="}}`), Patch: raw(`{"data":{"a":null,"c":"Mw=="}}`)},
	{Document: raw(`{"data":{"a":"MQ=="}}`), Patch: raw(`{"data":null}`)},
	{Document: raw(`{"data":{"a":"MQ=="}}`), Patch: raw(`{"data":{"$patch":"replace","c":"Mw=="}}`)},
	{Document: raw(`{"data":{"a":"MQ=="}}`), Patch: raw(`{"data":{"$patch":"delete"}}`)},
	{Document: raw(`{}`), Patch: raw(`{"data":{"$patch":"delete"}}`)},
	{Document: raw(`{"data":{"a":"MQ=="}}`), Patch: raw(`{"data":{"$patch":"x"}}`)},
	{Document: raw(`{"data":{"a":"MQ=="}}`), Patch: raw(`{"data":"x"}`)},
	{Document: raw(`{}`), Patch: raw(`{"metadata":{"labels":{"a":null,"b":"c"}}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"ownerReferences":[{"uid":"b","name":"n"},{"uid":"d"}]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"ownerReferences":[{"uid":"d"},{"uid":"a","name":null}]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"a"}]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"ownerReferences":[{"$patch":"replace"},{"uid":"d"}]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"ownerReferences":[{"$patch":"merge"}]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"ownerReferences":[{"name":"n"}]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"$setElementOrder/ownerReferences":[{"uid":"c"},{"uid":"a"}]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"$setElementOrder/ownerReferences":[{"uid":"d"},{"uid":"c"},{"uid":"a"}],"ownerReferences":[{"uid":"d","name":"n"},{"uid":"a","name":"m"}]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"$setElementOrder/ownerReferences":[{"uid":"a"}],"ownerReferences":[{"uid":"d"}]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"finalizers":["x/c","x/d"]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"finalizers":["x/d","x/a"]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/a","x/z"]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/a"],"finalizers":["x/d"],"$setElementOrder/finalizers":["x/d","x/c"]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"$deleteFromPrimitiveList":["x/a"]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"$setElementOrder":["x/a"]}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"finalizers":null,"ownerReferences":null}}`)},
	{Document: raw(owners), Patch: raw(`{"metadata":{"finalizers":[]}}`)},
	{Document: raw(`{}`), Patch: raw(owners)},
	{Kind: "Pod", Document: raw(containers), Patch: raw(`{"spec":{"containers":[{"name":"a","env":[{"name":"C","value":"3"},{"name":"A","value":"9"}],"args":["z"]}]}}`)},
	{Kind: "Pod", Document: raw(containers), Patch: raw(`{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"a","image":"9"}]}}`)},
	{Kind: "Pod", Document: raw(containers), Patch: raw(`{"spec":{"containers":[{"name":"a","$setElementOrder/env":[{"name":"B"},{"name":"A"}],"env":[{"$patch":"delete","name":"A"}]}]}}`)},
	{Kind: "Pod", Document: raw(containers), Patch: raw(`{"spec":{"volumes":[{"name":"v","emptyDir":{},"$retainKeys":["name","emptyDir"]}]}}`)},
	{Kind: "Pod", Document: raw(containers), Patch: raw(`{"spec":{"volumes":[{"name":"v","emptyDir":{},"$retainKeys":["name"]}]}}`)},
	{Kind: "Pod", Document: raw(containers), Patch: raw(`{"spec":{"volumes":[{"name":"v","secret":null,"emptyDir":{}}]}}`)},
	{Kind: "Pod", Document: raw(containers), Patch: raw(`{"spec":{"nodeSelector":{"c":"d"}}}`)},
	{Kind: "Pod", Document: raw(`{"x":{"a":1}}`), Patch: raw(`{"x":{"b":1}}`)},
	{Kind: "Pod", Document: raw(`{"status":{"conditions":[{"type":"A","status":"True"}]}}`), Patch: raw(`{"status":{"$setElementOrder/conditions":[{"type":"B"},{"type":"A"}],"conditions":[{"type":"B","status":"False"}]}}`)},
}

func jsonPatchCases() (any, error) {
	for index := range jsonPatches {
		one := &jsonPatches[index]
		patch, err := jsonpatch.DecodePatch(one.Patch)
		if err == nil {
			one.Result, err = patch.Apply(one.Document)
		}
		if err != nil {
			one.Error = "failed"
		}
	}
	return jsonPatches, nil
}

var jsonPatches = []patchCase{
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"add","path":"/b","value":2}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"add","path":"/b"}]`)},
	{Document: raw(`{"a":[1,2]}`), Patch: raw(`[{"op":"add","path":"/a/1","value":9}]`)},
	{Document: raw(`{"a":[1,2]}`), Patch: raw(`[{"op":"add","path":"/a/-","value":9}]`)},
	{Document: raw(`{"a":[1,2]}`), Patch: raw(`[{"op":"add","path":"/a/-1","value":9}]`)},
	{Document: raw(`{"a":[1,2]}`), Patch: raw(`[{"op":"add","path":"/a/-3","value":9}]`)},
	{Document: raw(`{"a":[1,2]}`), Patch: raw(`[{"op":"add","path":"/a/3","value":9}]`)},
	{Document: raw(`{"a":[1,2]}`), Patch: raw(`[{"op":"remove","path":"/a/-1"}]`)},
	{Document: raw(`{"a":[1,2]}`), Patch: raw(`[{"op":"remove","path":"/a/2"}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"remove","path":"/b"}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"replace","path":"/b","value":2}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"replace","path":"/b/c","value":2}]`)},
	{Document: raw(`{"a":[1]}`), Patch: raw(`[{"op":"replace","path":"/a/0","value":2}]`)},
	{Document: raw(`{"a":[1]}`), Patch: raw(`[{"op":"replace","path":"/a/-1","value":2}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"replace","path":"","value":{"b":2}}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"add","path":"","value":{"b":2}}]`)},
	{Document: raw(`{"a":{"b":1}}`), Patch: raw(`[{"op":"move","from":"/a/b","path":"/c"}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"move","from":"/x","path":"/c"}]`)},
	{Document: raw(`{"a":{"b":1}}`), Patch: raw(`[{"op":"copy","from":"/a","path":"/c"}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"copy","from":"/x","path":"/c"}]`)},
	{Document: raw(`{"a":{"b":[1,{"c":2}]}}`), Patch: raw(`[{"op":"test","path":"/a","value":{"b":[1,{"c":2}]}}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"test","path":"/a","value":1.0}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"test","path":"/x","value":null}]`)},
	{Document: raw(`{"a":null}`), Patch: raw(`[{"op":"test","path":"/a","value":null}]`)},
	{Document: raw(`{"a":null}`), Patch: raw(`[{"op":"test","path":"/a"}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"test","path":"","value":{"a":1}}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"test","path":"/a","value":"1"}]`)},
	{Document: raw(`{"a/b":1,"m~n":2}`), Patch: raw(`[{"op":"test","path":"/a~1b","value":1},{"op":"remove","path":"/m~0n"}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"jump","path":"/a"}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"add","path":"b","value":1}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[{"op":"add","path":"x/b","value":1}]`)},
	{Document: raw(`{"":1}`), Patch: raw(`[{"op":"replace","path":"/","value":2}]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[]`)},
	{Document: raw(`{"a":1}`), Patch: raw(`{}`)},
	{Document: raw(`{"a":1}`), Patch: raw(`[1]`)},
}

func mergeCases() (any, error) {
	for index := range merges {
		one := &merges[index]
		var err error
		if one.Result, err = jsonpatch.MergePatch(one.Document, one.Patch); err != nil {
			return nil, err
		}
	}
	return merges, nil
}

var merges = []patchCase{
	{Document: raw(`{"a":"b"}`), Patch: raw(`{"a":"c","d":1}`)},
	{Document: raw(`{"a":"b"}`), Patch: raw(`{"a":null}`)},
	{Document: raw(`{"a":{"b":1}}`), Patch: raw(`{"a":{"b":null,"c":2}}`)},
	{Document: raw(`{"a":[1]}`), Patch: raw(`{"a":[2,null,{"b":null,"c":1}]}`)},
	{Document: raw(`{}`), Patch: raw(`{"a":{"b":null,"c":{"d":null}}}`)},
	{Document: raw(`{}`), Patch: raw(`{"a":[{"b":null}]}`)},
	{Document: raw(`{"a":null}`), Patch: raw(`{"a":{"b":1}}`)},
	{Document: raw(`{"a":1}`), Patch: raw(`{"a":{"b":1}}`)},
	{Document: raw(`{"a":{"b":1}}`), Patch: raw(`{"a":1}`)},
	{Document: raw(`{"a":null,"b":1}`), Patch: raw(`{"b":2}`)},
}

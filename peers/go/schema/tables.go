package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type field struct {
	json      string
	number    int
	shape     string
	goType    string
	optional  bool
	omitEmpty bool
	required  bool
	values    []string
	patch     patch
}

type patch struct {
	merge, retainKeys, atomic, listed bool
	mergeKey, list, preset            string
	listKeys                          []string
}

type message struct {
	goType reflect.Type
	fields []field
	atomic bool
}

type tables struct {
	messages map[reflect.Type]*message
	markers  *markers
}

func newTables() *tables {
	return &tables{messages: map[reflect.Type]*message{}, markers: newMarkers()}
}

var (
	rawJSON     = []reflect.Type{reflect.TypeFor[apiextensionsv1.JSON](), reflect.TypeFor[apiextensionsv1beta1.JSON]()}
	fieldsV1    = reflect.TypeFor[metav1.FieldsV1]()
	typeMeta    = reflect.TypeFor[metav1.TypeMeta]()
	scalarTypes = map[reflect.Type]string{
		reflect.TypeFor[metav1.Time]():          "Time",
		reflect.TypeFor[metav1.MicroTime]():     "MicroTime",
		reflect.TypeFor[intstr.IntOrString]():   "IntOrString",
		reflect.TypeFor[resource.Quantity]():    "Quantity",
		reflect.TypeFor[runtime.RawExtension](): "RawExtension",
		fieldsV1:                                "FieldsV1",
		rawJSON[0]:                              "RawJson",
		rawJSON[1]:                              "RawJson",
	}
	// Structs whose JSON is one of two things; the second part names what the other thing is.
	eitherTypes = map[reflect.Type][2]string{
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():             {"Bool", "JSONSCHEMAPROPS"},
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():            {"List", "JSONSCHEMAPROPS"},
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]():      {"Strings", "JSONSCHEMAPROPS"},
		reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrBool]():        {"Bool", "JSONSCHEMAPROPS"},
		reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrArray]():       {"List", "JSONSCHEMAPROPS"},
		reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrStringArray](): {"Strings", "JSONSCHEMAPROPS"},
	}
)

// add describes a struct and everything that it holds.
func (t *tables) add(goType reflect.Type) error {
	if goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	if _, done := t.messages[goType]; done {
		return nil
	}
	m := &message{goType: goType}
	t.messages[goType] = m
	m.atomic = t.markers.ofType(goType)["structType"] == "atomic"
	return t.addFields(m, goType)
}

func (t *tables) addFields(m *message, goType reflect.Type) error {
	for i := range goType.NumField() {
		f := goType.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inline := f.Anonymous && name == ""
		if name == "-" {
			continue
		}
		if !inline && name == "" {
			// encoding/json falls back on Go's name (ListOptions of old have such fields).
			name = f.Name
		}
		number, repeated, err := protobufTag(f)
		if err != nil {
			return err
		}
		if inline && number == 0 {
			// TypeMeta: part of the JSON only.
			if err := t.addFields(m, f.Type); err != nil {
				return err
			}
			continue
		}
		if goType == typeMeta {
			// Its numbers belong to no message that travels.
			number = 0
		}
		described, err := t.describe(f, repeated)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", goType.Name(), f.Name, err)
		}
		described.json, described.number = name, number
		if inline {
			described.json = ""
		}
		omitEmpty := strings.Contains(options, "omitempty")
		if f.Type.Kind() == reflect.Struct {
			// Go's omitempty never leaves a struct out; omitzero does.
			omitEmpty = false
		}
		described.omitEmpty = omitEmpty || strings.Contains(options, "omitzero")
		described.required = t.required(goType, f, options)
		described.values = t.markers.values(f.Type)
		if f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map {
			described.values = t.markers.values(f.Type.Elem())
		}
		t.describePatch(&described, f, goType)
		m.fields = append(m.fields, described)
	}
	return nil
}

// required is what the published OpenAPI documents say: by the marker, else by the JSON tag.
func (t *tables) required(owner reflect.Type, f reflect.StructField, options string) bool {
	marks := t.markers.ofField(owner, f.Name)
	if _, marked := marks["required"]; marked {
		return true
	}
	if _, marked := marks["optional"]; marked {
		return false
	}
	return !strings.Contains(options, "omitempty")
}

func (t *tables) describe(f reflect.StructField, repeated bool) (field, error) {
	goType := f.Type
	described := field{}
	if goType.Kind() == reflect.Pointer {
		described.optional = true
		goType = goType.Elem()
	}
	described.goType = goType.String()
	element, shape := goType, "One"
	switch {
	case scalarTypes[goType] != "" || goType == reflect.TypeFor[[]byte]():
	case goType.Kind() == reflect.Slice && goType.Elem().Kind() == reflect.Uint8:
	case goType.Kind() == reflect.Slice && (goType.Name() == "" || repeated):
		// Some repeated fields are tagged as optional; only a named slice is a message of its own.
		element, shape = goType.Elem(), "List"
	case goType.Kind() == reflect.Map:
		if goType.Key().Kind() != reflect.String {
			return described, fmt.Errorf("map key %v", goType.Key())
		}
		element, shape = goType.Elem(), "Map"
	}
	rust, err := t.typeOf(element)
	described.shape = shape + "(" + rust + ")"
	return described, err
}

func (t *tables) typeOf(goType reflect.Type) (string, error) {
	if name, ok := scalarTypes[goType]; ok {
		return name, nil
	}
	if either, ok := eitherTypes[goType]; ok {
		props, _ := goType.FieldByName("Schema")
		propsType := props.Type
		if propsType.Kind() != reflect.Pointer {
			return "", fmt.Errorf("unexpected shape of %v", goType)
		}
		return "Either(Union::" + either[0] + ", &" + path(propsType.Elem()) + ")", t.add(propsType)
	}
	switch goType.Kind() {
	case reflect.String:
		return "String", nil
	case reflect.Bool:
		return "Bool", nil
	case reflect.Int32:
		return "Int32", nil
	case reflect.Int64, reflect.Int:
		return "Int64", nil
	case reflect.Float64:
		return "Double", nil
	case reflect.Interface:
		return "Any", nil
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			return "Bytes", nil
		}
		if goType.Elem().Kind() == reflect.String {
			return "StringList", nil
		}
	case reflect.Struct:
		return "Message(&" + path(goType) + ")", t.add(goType)
	}
	return "", fmt.Errorf("no Rust type for %v", goType)
}

func path(goType reflect.Type) string {
	return "super::" + module(goType.PkgPath()) + "::" + static(goType)
}

func protobufTag(f reflect.StructField) (number int, repeated bool, err error) {
	tag := f.Tag.Get("protobuf")
	if tag == "" || tag == "-" {
		return 0, false, nil
	}
	parts := strings.Split(tag, ",")
	number, err = strconv.Atoi(parts[1])
	return number, parts[2] == "rep", err
}

func (t *tables) describePatch(described *field, f reflect.StructField, owner reflect.Type) {
	for strategy := range strings.SplitSeq(f.Tag.Get("patchStrategy"), ",") {
		described.patch.merge = described.patch.merge || strategy == "merge"
		described.patch.retainKeys = described.patch.retainKeys || strategy == "retainKeys"
	}
	described.patch.mergeKey = f.Tag.Get("patchMergeKey")
	marks := t.markers.ofField(owner, f.Name)
	described.patch.list = marks["listType"]
	described.patch.listed = marks["listType"] != ""
	if keys := marks["listMapKey"]; keys != "" {
		described.patch.listKeys = strings.Split(keys, ",")
	}
	if preset := marks["default"]; json.Valid([]byte(preset)) {
		// Others refer to constants; none of those is the key of a list.
		described.patch.preset = preset
	}
	element := f.Type
	if element.Kind() == reflect.Pointer {
		element = element.Elem()
	}
	named := t.markers.ofType(element)
	described.patch.atomic = marks["mapType"] == "atomic" || marks["structType"] == "atomic" ||
		named["mapType"] == "atomic" || named["structType"] == "atomic"
}

package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme,
		authenticationv1.AddToScheme, authorizationv1.AddToScheme, policyv1.AddToScheme,
		admissionregistrationv1.AddToScheme, storagev1.AddToScheme, nodev1.AddToScheme,
		appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		certificatesv1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme,
		resourcev1.AddToScheme, schedulingv1.AddToScheme, apiregistrationv1.AddToScheme,
		apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := install(scheme); err != nil {
			fail(err)
		}
	}
	return scheme
}

var (
	jsonSerializer     = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{})
	prettySerializer   = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Pretty: true})
	strictSerializer   = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true})
	protobufSerializer = protobuf.NewSerializer(scheme, scheme)
)

// What is filled, and how often.
var filled = []struct {
	kind  schema.GroupVersionKind
	count int
}{
	{corev1.SchemeGroupVersion.WithKind("Secret"), 8},
	{corev1.SchemeGroupVersion.WithKind("SecretList"), 1},
	{corev1.SchemeGroupVersion.WithKind("ConfigMap"), 4},
	{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), 3},
	{corev1.SchemeGroupVersion.WithKind("Namespace"), 3},
	{corev1.SchemeGroupVersion.WithKind("Pod"), 6},
	{corev1.SchemeGroupVersion.WithKind("Node"), 4},
	{corev1.SchemeGroupVersion.WithKind("Event"), 3},
	{corev1.SchemeGroupVersion.WithKind("Service"), 3},
	{corev1.SchemeGroupVersion.WithKind("Endpoints"), 2},
	{corev1.SchemeGroupVersion.WithKind("Binding"), 1},
	{corev1.SchemeGroupVersion.WithKind("PersistentVolume"), 2},
	{corev1.SchemeGroupVersion.WithKind("ResourceQuota"), 1},
	{corev1.SchemeGroupVersion.WithKind("Status"), 3},
	{corev1.SchemeGroupVersion.WithKind("DeleteOptions"), 2},
	{corev1.SchemeGroupVersion.WithKind("APIResourceList"), 2},
	{coordinationv1.SchemeGroupVersion.WithKind("Lease"), 3},
	{eventsv1.SchemeGroupVersion.WithKind("Event"), 2},
	{rbacv1.SchemeGroupVersion.WithKind("Role"), 2},
	{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), 2},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), 3},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), 1},
	{authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), 2},
	{authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), 2},
	{authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), 2},
	{authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), 2},
	{policyv1.SchemeGroupVersion.WithKind("Eviction"), 1},
	{policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), 2},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), 2},
	{apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), 4},
	{apiextensionsv1beta1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), 2},
	{corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), 2},
	{corev1.SchemeGroupVersion.WithKind("LimitRange"), 1},
	{corev1.SchemeGroupVersion.WithKind("PodTemplate"), 1},
	{corev1.SchemeGroupVersion.WithKind("ReplicationController"), 1},
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), 1},
	{appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), 1},
	{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), 1},
	{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), 1},
	{appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), 1},
	{autoscalingv1.SchemeGroupVersion.WithKind("Scale"), 1},
	{autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), 1},
	{batchv1.SchemeGroupVersion.WithKind("Job"), 1},
	{batchv1.SchemeGroupVersion.WithKind("CronJob"), 1},
	{certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), 1},
	{discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), 1},
	{networkingv1.SchemeGroupVersion.WithKind("Ingress"), 1},
	{networkingv1.SchemeGroupVersion.WithKind("IngressClass"), 1},
	{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), 1},
	{networkingv1.SchemeGroupVersion.WithKind("IPAddress"), 1},
	{networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR"), 1},
	{nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), 1},
	{resourcev1.SchemeGroupVersion.WithKind("DeviceClass"), 1},
	{resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"), 1},
	{resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate"), 1},
	{resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"), 1},
	{schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), 1},
	{storagev1.SchemeGroupVersion.WithKind("StorageClass"), 1},
	{storagev1.SchemeGroupVersion.WithKind("CSIDriver"), 1},
	{storagev1.SchemeGroupVersion.WithKind("CSINode"), 1},
	{storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), 1},
	{storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"), 1},
	{storagev1.SchemeGroupVersion.WithKind("VolumeAttributesClass"), 1},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"), 1},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"), 1},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"), 1},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"), 1},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding"), 1},
	{apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), 1},
	{schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"}, 2},
	{schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadataList"}, 1},
}

// objects writes one line for each object: group, version, kind, envelope in hexadecimal, JSON.
// The first object of a kind is empty, the second has every field, the others have some.
func objects() (string, error) {
	var out strings.Builder
	for _, one := range filled {
		for n := range one.count + 1 {
			object, err := scheme.New(one.kind)
			if err != nil {
				return "", err
			}
			filler := &filler{random: rand.New(rand.NewSource(int64(n)*1000 + int64(len(one.kind.Kind)))), every: n == 1}
			if n > 0 {
				filler.fill(reflect.ValueOf(object).Elem(), 0)
			}
			object.GetObjectKind().SetGroupVersionKind(one.kind)
			encoded, text, err := both(object)
			if err != nil {
				return "", fmt.Errorf("%v: %w", one.kind, err)
			}
			fmt.Fprintf(&out, "%s\t%s\t%s\t%s\t%s\n", one.kind.Group, one.kind.Version, one.kind.Kind, hex.EncodeToString(encoded), text)
		}
	}
	return out.String(), nil
}

// both gives the envelope of an object and the JSON of what that envelope decodes to, and
// makes sure that the JSON leads back to the envelope.
func both(object runtime.Object) ([]byte, string, error) {
	encoded, err := encode(protobufSerializer, object)
	if err != nil {
		return nil, "", err
	}
	decoded, kind, err := protobufSerializer.Decode(encoded, nil, nil)
	if err != nil {
		return nil, "", err
	}
	decoded.GetObjectKind().SetGroupVersionKind(*kind)
	text, err := encode(jsonSerializer, decoded)
	if err != nil {
		return nil, "", err
	}
	again, _, err := jsonSerializer.Decode(text, nil, nil)
	if err != nil {
		return nil, "", err
	}
	back, err := encode(protobufSerializer, again)
	if err != nil {
		return nil, "", err
	}
	if !bytes.Equal(encoded, back) {
		return nil, "", fmt.Errorf("JSON and protobuf differ: %s\n%x\n%x", text, encoded, back)
	}
	return encoded, strings.TrimSuffix(string(text), "\n"), nil
}

func encode(serializer runtime.Serializer, object runtime.Object) ([]byte, error) {
	var out bytes.Buffer
	err := serializer.Encode(object, &out)
	return out.Bytes(), err
}

type filler struct {
	random *rand.Rand
	every  bool
	count  int
}

var texts = []string{
	"plain", "<a href=\"x\">&amp;</a>", "ümlaut \u2028 \u2029 \U0001f600", "line\nbreak\ttab\\ \x01\x7f", "true", "0123",
}

func (f *filler) skip() bool {
	return !f.every && f.random.Intn(3) == 0
}

func (f *filler) text() string {
	f.count++
	if f.count%5 == 0 {
		return texts[f.random.Intn(len(texts))]
	}
	return fmt.Sprintf("s%d", f.count)
}

// How deep lists of structs and schemas are nested.
const maxDepth = 9

func (f *filler) fill(v reflect.Value, depth int) {
	switch value := v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
		return
	case *metav1.Time:
		*value = metav1.Unix(1_600_000_000+int64(f.random.Intn(1e8)), 0)
		return
	case *metav1.MicroTime:
		*value = metav1.NewMicroTime(time.Unix(1_600_000_000+int64(f.random.Intn(1e8)), int64(f.random.Intn(1e6))*1000))
		return
	case *intstr.IntOrString:
		if *value = intstr.FromInt32(int32(f.random.Intn(70000) - 10)); f.random.Intn(2) == 0 {
			*value = intstr.FromString(f.text())
		}
		return
	case *resource.Quantity:
		*value = resource.MustParse([]string{"100m", "1Gi", "1500k", "0", "3", "2e3", "1.5"}[f.random.Intn(7)])
		return
	case *metav1.FieldsV1:
		value.Raw = []byte(`{"f:a":{".":{},"f:b":{}},"k:{\"port\":9}":{},"k:{\"port\":80}":{},"v:\"x\"":{}}`)
		return
	case *runtime.RawExtension:
		value.Raw = []byte(`{"apiVersion":"v1","kind":"X","list":[1,2.5,"\u003c"]}`)
		return
	case *apiextensionsv1.JSON:
		value.Raw = []byte([]string{`{"a":[1,null]}`, `"text"`, `5`, `true`}[f.random.Intn(4)])
		return
	case *apiextensionsv1beta1.JSON:
		value.Raw = []byte([]string{`{"a":[1,null]}`, `"text"`, `5`, `true`}[f.random.Intn(4)])
		return
	}
	f.fillKind(v, depth)
}

func (f *filler) fillKind(v reflect.Value, depth int) {
	if strings.HasPrefix(v.Type().Name(), "JSONSchemaPropsOr") {
		f.fillEither(v, depth)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.every || f.random.Intn(2) == 0)
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(int64(f.random.Intn(3000) - 1000))
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -2.5, 1e21, 1e-7, 123456.789}[f.random.Intn(6)])
	case reflect.Pointer:
		if f.skip() || depth > maxDepth {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		if f.skip() || depth > maxDepth {
			return
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			content := make([]byte, f.random.Intn(8))
			f.random.Read(content)
			v.SetBytes(content)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1+f.random.Intn(2), 2))
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if f.skip() || depth > maxDepth {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + f.random.Intn(3) {
			element := reflect.New(v.Type().Elem()).Elem()
			f.fill(element, depth+1)
			if element.Kind() == reflect.Slice && element.IsNil() {
				// JSON's null would come back as empty bytes.
				continue
			}
			v.SetMapIndex(reflect.ValueOf(f.text()).Convert(v.Type().Key()), element)
		}
		if v.Len() == 0 {
			v.SetZero()
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if tag := v.Type().Field(i).Tag; tag.Get("json") == "-" && tag.Get("protobuf") == "" {
				continue
			}
			if k := v.Field(i).Kind(); k != reflect.Struct && f.skip() {
				continue
			}
			f.fill(v.Field(i), depth+1)
			tag := v.Type().Field(i).Tag.Get("json")
			if v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0 && strings.Contains(tag, "omitempty") {
				// Empty bytes that JSON leaves out would not come back.
				v.Field(i).SetZero()
			}
		}
	}
}

// fillEither sets exactly one of the things that the struct can be.
func (f *filler) fillEither(v reflect.Value, depth int) {
	schemaField, other := v.FieldByName("Schema"), v.Field(0)
	if other.Type() == schemaField.Type() {
		other = v.Field(1)
	}
	if depth < maxDepth && f.random.Intn(2) == 0 {
		schemaField.Set(reflect.New(schemaField.Type().Elem()))
		f.fill(schemaField.Elem(), depth+2)
		if other.Kind() == reflect.Bool {
			other.SetBool(true)
		}
		return
	}
	switch other.Kind() {
	case reflect.Bool:
		other.SetBool(f.random.Intn(2) == 0)
	case reflect.Slice:
		other.Set(reflect.MakeSlice(other.Type(), 2, 2))
		for i := range 2 {
			if other.Index(i).Kind() == reflect.String {
				other.Index(i).SetString(f.text())
			}
		}
	}
}

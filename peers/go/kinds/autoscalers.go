package main

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// Versions and objects: what the first version has is converted into the second.
var autoscalerCases = [][3]string{
	{"v2", "v1", `{"metadata":{"name":"h","namespace":"n"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},"maxReplicas":3}}`},
	{"v2", "v1", `{"metadata":{"name":"h","annotations":{"a":"b"}},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},"minReplicas":2,"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}},{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},{"type":"Pods","pods":{"metric":{"name":"m","selector":{"matchLabels":{"x":"y"}}},"target":{"type":"AverageValue","averageValue":"5"}}},{"type":"Object","object":{"describedObject":{"kind":"Service","name":"s","apiVersion":"v1"},"metric":{"name":"q"},"target":{"type":"Value","value":"10"}}},{"type":"Object","object":{"describedObject":{"kind":"Service","name":"s"},"metric":{"name":"q"},"target":{"type":"AverageValue","averageValue":"2"}}},{"type":"External","external":{"metric":{"name":"e","selector":{"matchLabels":{"x":"y"}}},"target":{"type":"AverageValue","averageValue":"7"}}},{"type":"External","external":{"metric":{"name":"e"},"target":{"type":"Value","value":"7"}}},{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","target":{"type":"Utilization","averageUtilization":60}}}]}}`},
	{"v2", "v1", `{"metadata":{"name":"h"},"spec":{"scaleTargetRef":{"kind":"D","name":"d"},"maxReplicas":3,"behavior":{"scaleUp":{"stabilizationWindowSeconds":3,"selectPolicy":"Min","policies":[{"type":"Pods","value":4,"periodSeconds":15}]},"scaleDown":{"tolerance":"0.1"}}},"status":{"observedGeneration":4,"currentReplicas":1,"desiredReplicas":2,"lastScaleTime":"2024-01-01T00:00:00Z","currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":10,"averageValue":"100m"}}},{"type":"Pods","pods":{"metric":{"name":"m"},"current":{"averageValue":"5"}}},{"type":"Object","object":{"describedObject":{"kind":"Service","name":"s"},"metric":{"name":"q"},"current":{"value":"10"}}},{"type":"External","external":{"metric":{"name":"e"},"current":{"value":"1","averageValue":"7"}}},{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","current":{"averageUtilization":60,"averageValue":"1"}}}],"conditions":[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z","reason":"R","message":"m"},{"type":"X","status":"False"}]}}`},
	{"v1", "v2", `{"metadata":{"name":"h"},"spec":{"scaleTargetRef":{"kind":"D","name":"d"},"maxReplicas":3}}`},
	{"v1", "v2", `{"metadata":{"name":"h","annotations":{"a":"b"}},"spec":{"scaleTargetRef":{"kind":"D","name":"d"},"minReplicas":2,"maxReplicas":3,"targetCPUUtilizationPercentage":50},"status":{"currentReplicas":1,"desiredReplicas":2,"currentCPUUtilizationPercentage":9}}`},
	{"v1", "v2", `{"metadata":{"name":"h","annotations":{"autoscaling.alpha.kubernetes.io/metrics":"nonsense","autoscaling.alpha.kubernetes.io/behavior":"{}","autoscaling.alpha.kubernetes.io/conditions":"5"}},"spec":{"scaleTargetRef":{"kind":"D","name":"d"},"maxReplicas":3}}`},
}

// autoscalers has one line for each conversion between the versions of a HorizontalPodAutoscaler, there and back:
// version, object, and what becomes of it in the other version.
func autoscalers() (string, error) {
	var out strings.Builder
	var back [][3]string
	for _, one := range autoscalerCases {
		converted, err := convert(one)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s\t%s\t%s\n", one[0], one[2], converted)
		if one[1] == "v1" {
			back = append(back, [3]string{"v1", "v2", converted})
		}
	}
	for _, one := range back {
		converted, err := convert(one)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s\t%s\t%s\n", one[0], one[2], converted)
	}
	return out.String(), nil
}

func convert(one [3]string) (string, error) {
	kind := schema.GroupVersionKind{Group: "autoscaling", Version: one[0], Kind: "HorizontalPodAutoscaler"}
	object, err := decode(kind, one[2])
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	codec := legacyscheme.Codecs.LegacyCodec(schema.GroupVersion{Group: "autoscaling", Version: one[1]})
	if err := codec.Encode(object, &out); err != nil {
		return "", err
	}
	return strings.TrimSpace(out.String()), nil
}

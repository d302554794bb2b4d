package main

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	mutatingpolicy "k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	mutatingbinding "k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	validatingpolicy "k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	validatingbinding "k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
	"k8s.io/kubernetes/pkg/registry/storagemigration/storagemigration"
)

// Writes: of the object, or of a subresource by its name.
const (
	create = "create"
	update = "update"
)

type strategy struct {
	op    string
	rules rest.RESTUpdateStrategy
}

func plain(rules rest.RESTUpdateStrategy) []strategy {
	return []strategy{{"", rules}}
}

func with(rules rest.RESTUpdateStrategy, status rest.RESTUpdateStrategy) []strategy {
	return []strategy{{"status", status}, {"", rules}}
}

// find gives the rules of a subresource, else those of the object.
func find(strategies []strategy, op string) rest.RESTUpdateStrategy {
	for _, one := range strategies {
		if one.op == op || one.op == "" {
			return one.rules
		}
	}
	return nil
}

var (
	policies = validatingpolicy.NewStrategy(nil, nil)
	claims   = resourceclaim.NewStrategy(nil, nil)
)

// The rules of each kind.
var strategies = map[string][]strategy{
	"Pod":                              {{"status", pod.StatusStrategy}, {"ephemeralcontainers", pod.EphemeralContainersStrategy}, {"resize", pod.ResizeStrategy}, {"", pod.Strategy}},
	"Service":                          with(service.Strategy, service.StatusStrategy),
	"Endpoints":                        plain(endpoint.Strategy),
	"PersistentVolume":                 with(persistentvolume.Strategy, persistentvolume.StatusStrategy),
	"PersistentVolumeClaim":            with(persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy),
	"ResourceQuota":                    with(resourcequota.Strategy, resourcequota.StatusStrategy),
	"LimitRange":                       plain(limitrange.Strategy),
	"PodTemplate":                      plain(podtemplate.Strategy),
	"ReplicationController":            with(replicationcontroller.Strategy, replicationcontroller.StatusStrategy),
	"Deployment":                       with(deployment.Strategy, deployment.StatusStrategy),
	"ReplicaSet":                       with(replicaset.Strategy, replicaset.StatusStrategy),
	"StatefulSet":                      with(statefulset.Strategy, statefulset.StatusStrategy),
	"DaemonSet":                        with(daemonset.Strategy, daemonset.StatusStrategy),
	"ControllerRevision":               plain(controllerrevision.Strategy),
	"Job":                              with(job.Strategy, job.StatusStrategy),
	"CronJob":                          with(cronjob.Strategy, cronjob.StatusStrategy),
	"PodDisruptionBudget":              with(poddisruptionbudget.Strategy, poddisruptionbudget.StatusStrategy),
	"HorizontalPodAutoscaler":          with(horizontalpodautoscaler.Strategy, horizontalpodautoscaler.StatusStrategy),
	"Ingress":                          with(ingress.Strategy, ingress.StatusStrategy),
	"IngressClass":                     plain(ingressclass.Strategy),
	"NetworkPolicy":                    plain(networkpolicy.Strategy),
	"IPAddress":                        plain(ipaddress.Strategy),
	"ServiceCIDR":                      with(servicecidr.Strategy, servicecidr.StatusStrategy),
	"EndpointSlice":                    plain(endpointslice.Strategy),
	"StorageClass":                     plain(storageclass.Strategy),
	"CSIDriver":                        plain(csidriver.Strategy),
	"CSINode":                          with(csinode.Strategy, csinode.StatusStrategy),
	"VolumeAttachment":                 with(volumeattachment.Strategy, volumeattachment.StatusStrategy),
	"CSIStorageCapacity":               plain(csistoragecapacity.Strategy),
	"VolumeAttributesClass":            plain(volumeattributesclass.Strategy),
	"RuntimeClass":                     plain(runtimeclass.Strategy),
	"PriorityClass":                    plain(priorityclass.Strategy),
	"CertificateSigningRequest":        {{"status", certificates.StatusStrategy}, {"approval", certificates.ApprovalStrategy}, {"", certificates.Strategy}},
	"MutatingWebhookConfiguration":     plain(mutatingwebhookconfiguration.Strategy),
	"ValidatingWebhookConfiguration":   plain(validatingwebhookconfiguration.Strategy),
	"ValidatingAdmissionPolicy":        with(policies, validatingpolicy.NewStatusStrategy(policies)),
	"ValidatingAdmissionPolicyBinding": plain(validatingbinding.NewStrategy(nil, nil, nil)),
	"MutatingAdmissionPolicy":          plain(mutatingpolicy.NewStrategy(nil, nil)),
	"MutatingAdmissionPolicyBinding":   plain(mutatingbinding.NewStrategy(nil, nil, nil)),
	"DeviceClass":                      plain(deviceclass.Strategy),
	"ResourceClaim":                    with(claims, resourceclaim.NewStatusStrategy(claims)),
	"ResourceClaimTemplate":            plain(resourceclaimtemplate.NewStrategy(nil)),
	"ResourceSlice":                    plain(resourceslice.Strategy),
	"APIService":                       with(apiservice.NewStrategy(legacyscheme.Scheme).(rest.RESTUpdateStrategy), apiservice.NewStatusStrategy(legacyscheme.Scheme)),
	"DeviceTaintRule":                  with(devicetaintrule.Strategy, devicetaintrule.StatusStrategy),
	"FlowSchema":                       with(flowschema.Strategy, flowschema.StatusStrategy),
	"PriorityLevelConfiguration":       with(prioritylevelconfiguration.Strategy, prioritylevelconfiguration.StatusStrategy),
	"StorageVersionMigration":          with(storagemigration.Strategy, storagemigration.StatusStrategy),
}

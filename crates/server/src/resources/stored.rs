//! The kinds that are stored for others: no part of coffer acts on them.

use super::info::Behaviour;
use super::row::{Built, PLAIN, STATUS_VERBS, Sub, core, status};

/// A row; the names are the kind, the plural and the singular.
const fn stored(
    group: &'static str,
    version: &'static str,
    (kind, plural, singular): (&'static str, &'static str, &'static str),
    short_names: &'static [&'static str],
    go_type: &'static str,
) -> Built {
    Built {
        group,
        version,
        stored: Some((group, version, kind)),
        ..core(kind, plural, singular, short_names, go_type)
    }
}

/// Every such kind.
pub(super) const STORED: &[Built] = &[
    Built {
        subresources: &[status("PersistentVolumeClaim")],
        behaviour: Behaviour { returns_deleted: true, go_type: "core.PersistentVolumeClaim", ..PLAIN },
        ..stored(
            "",
            "v1",
            ("PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim"),
            &["pvc"],
            "core.PersistentVolumeClaim",
        )
    },
    Built {
        namespaced: false,
        subresources: &[status("PersistentVolume")],
        behaviour: Behaviour { returns_deleted: true, go_type: "core.PersistentVolume", ..PLAIN },
        ..stored(
            "",
            "v1",
            ("PersistentVolume", "persistentvolumes", "persistentvolume"),
            &["pv"],
            "core.PersistentVolume",
        )
    },
    Built {
        behaviour: Behaviour { returns_deleted: true, go_type: "core.PodTemplate", ..PLAIN },
        ..stored("", "v1", ("PodTemplate", "podtemplates", "podtemplate"), &[], "core.PodTemplate")
    },
    Built {
        categories: &["all"],
        subresources: &[status("ReplicationController")],
        ..stored(
            "",
            "v1",
            ("ReplicationController", "replicationcontrollers", "replicationcontroller"),
            &["rc"],
            "core.ReplicationController",
        )
    },
    Built {
        subresources: &[status("ResourceQuota")],
        behaviour: Behaviour { returns_deleted: true, go_type: "core.ResourceQuota", ..PLAIN },
        ..stored(
            "",
            "v1",
            ("ResourceQuota", "resourcequotas", "resourcequota"),
            &["quota"],
            "core.ResourceQuota",
        )
    },
    Built {
        behaviour: Behaviour { create_on_update: true, go_type: "core.LimitRange", ..PLAIN },
        ..stored("", "v1", ("LimitRange", "limitranges", "limitrange"), &["limits"], "core.LimitRange")
    },
    stored(
        "apps",
        "v1",
        ("ControllerRevision", "controllerrevisions", "controllerrevision"),
        &[],
        "apps.ControllerRevision",
    ),
    Built {
        categories: &["all"],
        subresources: &[status("DaemonSet")],
        ..stored("apps", "v1", ("DaemonSet", "daemonsets", "daemonset"), &["ds"], "apps.DaemonSet")
    },
    Built {
        categories: &["all"],
        subresources: &[status("Deployment")],
        ..stored("apps", "v1", ("Deployment", "deployments", "deployment"), &["deploy"], "apps.Deployment")
    },
    Built {
        categories: &["all"],
        subresources: &[status("ReplicaSet")],
        ..stored("apps", "v1", ("ReplicaSet", "replicasets", "replicaset"), &["rs"], "apps.ReplicaSet")
    },
    Built {
        categories: &["all"],
        subresources: &[status("StatefulSet")],
        ..stored("apps", "v1", ("StatefulSet", "statefulsets", "statefulset"), &["sts"], "apps.StatefulSet")
    },
    Built {
        categories: &["all"],
        subresources: &[status("HorizontalPodAutoscaler")],
        ..stored(
            "autoscaling",
            "v2",
            ("HorizontalPodAutoscaler", "horizontalpodautoscalers", "horizontalpodautoscaler"),
            &["hpa"],
            "autoscaling.HorizontalPodAutoscaler",
        )
    },
    Built {
        categories: &["all"],
        stored: Some(("autoscaling", "v2", "HorizontalPodAutoscaler")),
        subresources: &[status("HorizontalPodAutoscaler")],
        ..stored(
            "autoscaling",
            "v1",
            ("HorizontalPodAutoscaler", "horizontalpodautoscalers", "horizontalpodautoscaler"),
            &["hpa"],
            "autoscaling.HorizontalPodAutoscaler",
        )
    },
    Built {
        categories: &["all"],
        subresources: &[status("CronJob")],
        ..stored("batch", "v1", ("CronJob", "cronjobs", "cronjob"), &["cj"], "batch.CronJob")
    },
    Built {
        categories: &["all"],
        subresources: &[status("Job")],
        ..stored("batch", "v1", ("Job", "jobs", "job"), &[], "batch.Job")
    },
    Built {
        namespaced: false,
        subresources: &[
            Sub { name: "approval", body: None, kind: "CertificateSigningRequest", verbs: STATUS_VERBS },
            status("CertificateSigningRequest"),
        ],
        ..stored(
            "certificates.k8s.io",
            "v1",
            ("CertificateSigningRequest", "certificatesigningrequests", "certificatesigningrequest"),
            &["csr"],
            "certificates.CertificateSigningRequest",
        )
    },
    Built {
        namespaced: false,
        ..stored(
            "networking.k8s.io",
            "v1",
            ("IngressClass", "ingressclasses", "ingressclass"),
            &[],
            "networking.IngressClass",
        )
    },
    Built {
        subresources: &[status("Ingress")],
        ..stored(
            "networking.k8s.io",
            "v1",
            ("Ingress", "ingresses", "ingress"),
            &["ing"],
            "networking.Ingress",
        )
    },
    Built {
        namespaced: false,
        ..stored(
            "networking.k8s.io",
            "v1",
            ("IPAddress", "ipaddresses", "ipaddress"),
            &["ip"],
            "networking.IPAddress",
        )
    },
    stored(
        "networking.k8s.io",
        "v1",
        ("NetworkPolicy", "networkpolicies", "networkpolicy"),
        &["netpol"],
        "networking.NetworkPolicy",
    ),
    Built {
        namespaced: false,
        subresources: &[status("ServiceCIDR")],
        ..stored(
            "networking.k8s.io",
            "v1",
            ("ServiceCIDR", "servicecidrs", "servicecidr"),
            &[],
            "networking.ServiceCIDR",
        )
    },
    Built {
        subresources: &[status("PodDisruptionBudget")],
        behaviour: Behaviour { unconditional_update: false, go_type: "policy.PodDisruptionBudget", ..PLAIN },
        ..stored(
            "policy",
            "v1",
            ("PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget"),
            &["pdb"],
            "policy.PodDisruptionBudget",
        )
    },
    Built {
        namespaced: false,
        behaviour: Behaviour {
            unconditional_update: false,
            returns_deleted: true,
            go_type: "storage.CSIDriver",
            ..PLAIN
        },
        ..stored("storage.k8s.io", "v1", ("CSIDriver", "csidrivers", "csidriver"), &[], "storage.CSIDriver")
    },
    Built {
        namespaced: false,
        subresources: &[status("CSINode")],
        behaviour: Behaviour {
            unconditional_update: false,
            returns_deleted: true,
            go_type: "storage.CSINode",
            ..PLAIN
        },
        ..stored("storage.k8s.io", "v1", ("CSINode", "csinodes", "csinode"), &[], "storage.CSINode")
    },
    Built {
        behaviour: Behaviour { unconditional_update: false, go_type: "storage.CSIStorageCapacity", ..PLAIN },
        ..stored(
            "storage.k8s.io",
            "v1",
            ("CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity"),
            &[],
            "storage.CSIStorageCapacity",
        )
    },
    Built {
        namespaced: false,
        behaviour: Behaviour { returns_deleted: true, go_type: "storage.StorageClass", ..PLAIN },
        ..stored(
            "storage.k8s.io",
            "v1",
            ("StorageClass", "storageclasses", "storageclass"),
            &["sc"],
            "storage.StorageClass",
        )
    },
    Built {
        namespaced: false,
        subresources: &[status("VolumeAttachment")],
        behaviour: Behaviour {
            unconditional_update: false,
            returns_deleted: true,
            go_type: "storage.VolumeAttachment",
            ..PLAIN
        },
        ..stored(
            "storage.k8s.io",
            "v1",
            ("VolumeAttachment", "volumeattachments", "volumeattachment"),
            &[],
            "storage.VolumeAttachment",
        )
    },
    Built {
        namespaced: false,
        behaviour: Behaviour { returns_deleted: true, go_type: "storage.VolumeAttributesClass", ..PLAIN },
        ..stored(
            "storage.k8s.io",
            "v1",
            ("VolumeAttributesClass", "volumeattributesclasses", "volumeattributesclass"),
            &["vac"],
            "storage.VolumeAttributesClass",
        )
    },
    Built {
        namespaced: false,
        categories: &["api-extensions"],
        behaviour: Behaviour {
            unconditional_update: false,
            go_type: "admissionregistration.MutatingAdmissionPolicy",
            ..PLAIN
        },
        ..stored(
            "admissionregistration.k8s.io",
            "v1",
            ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", "mutatingadmissionpolicy"),
            &[],
            "admissionregistration.MutatingAdmissionPolicy",
        )
    },
    Built {
        namespaced: false,
        categories: &["api-extensions"],
        behaviour: Behaviour {
            unconditional_update: false,
            go_type: "admissionregistration.MutatingAdmissionPolicyBinding",
            ..PLAIN
        },
        ..stored(
            "admissionregistration.k8s.io",
            "v1",
            (
                "MutatingAdmissionPolicyBinding",
                "mutatingadmissionpolicybindings",
                "mutatingadmissionpolicybinding",
            ),
            &[],
            "admissionregistration.MutatingAdmissionPolicyBinding",
        )
    },
    Built {
        namespaced: false,
        categories: &["api-extensions"],
        behaviour: Behaviour {
            unconditional_update: false,
            go_type: "admissionregistration.MutatingWebhookConfiguration",
            ..PLAIN
        },
        ..stored(
            "admissionregistration.k8s.io",
            "v1",
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutatingwebhookconfiguration"),
            &[],
            "admissionregistration.MutatingWebhookConfiguration",
        )
    },
    Built {
        namespaced: false,
        categories: &["api-extensions"],
        subresources: &[status("ValidatingAdmissionPolicy")],
        behaviour: Behaviour {
            unconditional_update: false,
            go_type: "admissionregistration.ValidatingAdmissionPolicy",
            ..PLAIN
        },
        ..stored(
            "admissionregistration.k8s.io",
            "v1",
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicy"),
            &[],
            "admissionregistration.ValidatingAdmissionPolicy",
        )
    },
    Built {
        namespaced: false,
        categories: &["api-extensions"],
        behaviour: Behaviour {
            unconditional_update: false,
            go_type: "admissionregistration.ValidatingAdmissionPolicyBinding",
            ..PLAIN
        },
        ..stored(
            "admissionregistration.k8s.io",
            "v1",
            (
                "ValidatingAdmissionPolicyBinding",
                "validatingadmissionpolicybindings",
                "validatingadmissionpolicybinding",
            ),
            &[],
            "admissionregistration.ValidatingAdmissionPolicyBinding",
        )
    },
    Built {
        namespaced: false,
        categories: &["api-extensions"],
        behaviour: Behaviour {
            unconditional_update: false,
            go_type: "admissionregistration.ValidatingWebhookConfiguration",
            ..PLAIN
        },
        ..stored(
            "admissionregistration.k8s.io",
            "v1",
            (
                "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations",
                "validatingwebhookconfiguration",
            ),
            &[],
            "admissionregistration.ValidatingWebhookConfiguration",
        )
    },
    Built {
        namespaced: false,
        ..stored(
            "scheduling.k8s.io",
            "v1",
            ("PriorityClass", "priorityclasses", "priorityclass"),
            &["pc"],
            "scheduling.PriorityClass",
        )
    },
    Built {
        namespaced: false,
        behaviour: Behaviour {
            create_on_update: true,
            unconditional_update: false,
            go_type: "node.RuntimeClass",
            ..PLAIN
        },
        ..stored(
            "node.k8s.io",
            "v1",
            ("RuntimeClass", "runtimeclasses", "runtimeclass"),
            &[],
            "node.RuntimeClass",
        )
    },
    stored(
        "discovery.k8s.io",
        "v1",
        ("EndpointSlice", "endpointslices", "endpointslice"),
        &[],
        "discovery.EndpointSlice",
    ),
    Built {
        namespaced: false,
        behaviour: Behaviour { returns_deleted: true, go_type: "resource.DeviceClass", ..PLAIN },
        ..stored(
            "resource.k8s.io",
            "v1",
            ("DeviceClass", "deviceclasses", "deviceclass"),
            &[],
            "resource.DeviceClass",
        )
    },
    Built {
        namespaced: false,
        subresources: &[status("DeviceTaintRule")],
        behaviour: Behaviour { unconditional_update: false, go_type: "resource.DeviceTaintRule", ..PLAIN },
        // Upstream stores (and hashes) the version before.
        stored: Some(("resource.k8s.io", "v1beta2", "DeviceTaintRule")),
        ..stored(
            "resource.k8s.io",
            "v1",
            ("DeviceTaintRule", "devicetaintrules", "devicetaintrule"),
            &[],
            "resource.DeviceTaintRule",
        )
    },
    Built {
        subresources: &[status("ResourceClaim")],
        behaviour: Behaviour { returns_deleted: true, go_type: "resource.ResourceClaim", ..PLAIN },
        ..stored(
            "resource.k8s.io",
            "v1",
            ("ResourceClaim", "resourceclaims", "resourceclaim"),
            &[],
            "resource.ResourceClaim",
        )
    },
    Built {
        behaviour: Behaviour { returns_deleted: true, go_type: "resource.ResourceClaimTemplate", ..PLAIN },
        ..stored(
            "resource.k8s.io",
            "v1",
            ("ResourceClaimTemplate", "resourceclaimtemplates", "resourceclaimtemplate"),
            &[],
            "resource.ResourceClaimTemplate",
        )
    },
    Built {
        namespaced: false,
        behaviour: Behaviour { returns_deleted: true, go_type: "resource.ResourceSlice", ..PLAIN },
        ..stored(
            "resource.k8s.io",
            "v1",
            ("ResourceSlice", "resourceslices", "resourceslice"),
            &[],
            "resource.ResourceSlice",
        )
    },
    Built {
        namespaced: false,
        subresources: &[status("FlowSchema")],
        ..stored(
            "flowcontrol.apiserver.k8s.io",
            "v1",
            ("FlowSchema", "flowschemas", "flowschema"),
            &[],
            "flowcontrol.FlowSchema",
        )
    },
    Built {
        namespaced: false,
        subresources: &[status("PriorityLevelConfiguration")],
        ..stored(
            "flowcontrol.apiserver.k8s.io",
            "v1",
            ("PriorityLevelConfiguration", "prioritylevelconfigurations", "prioritylevelconfiguration"),
            &[],
            "flowcontrol.PriorityLevelConfiguration",
        )
    },
    Built {
        namespaced: false,
        subresources: &[status("StorageVersionMigration")],
        behaviour: Behaviour {
            unconditional_update: false,
            go_type: "storagemigration.StorageVersionMigration",
            ..PLAIN
        },
        // Upstream stores (and hashes) the version before.
        stored: Some(("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration")),
        ..stored(
            "storagemigration.k8s.io",
            "v1",
            ("StorageVersionMigration", "storageversionmigrations", "storageversionmigration"),
            &[],
            "storagemigration.StorageVersionMigration",
        )
    },
    Built {
        namespaced: false,
        categories: &["api-extensions"],
        subresources: &[status("APIService")],
        behaviour: Behaviour { unconditional_update: false, go_type: "apiregistration.APIService", ..PLAIN },
        ..stored(
            "apiregistration.k8s.io",
            "v1",
            ("APIService", "apiservices", "apiservice"),
            &[],
            "apiregistration.APIService",
        )
    },
];

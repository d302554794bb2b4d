//! What a pod asks for that will surprise its owner: told once, as events.

use k8s_openapi::api::core::v1::{Pod, Volume};

use crate::references::containers;

/// One warning: the event's reason and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodWarning {
    /// Reason of the event.
    pub reason: &'static str,
    /// What a person reads.
    pub message: String,
}

/// Modes that somebody wrote in decimal and meant in octal.
const DECIMAL_MISTAKES: [i32; 7] = [400, 440, 444, 600, 640, 644, 755];

/// All warnings of a pod.
pub fn pod_warnings(pod: &Pod) -> Vec<PodWarning> {
    let mut warnings = Vec::new();
    let volumes: &[Volume] = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let secret = |name: &str| volumes.iter().any(|volume| volume.name == name && volume.secret.is_some());
    for volume in volumes {
        let Some(source) = &volume.secret else { continue };
        let items = source.items.iter().flatten().filter_map(|item| item.mode);
        for mode in source.default_mode.into_iter().chain(items) {
            if DECIMAL_MISTAKES.contains(&mode) {
                warnings.push(PodWarning {
                    reason: "SuspiciousFileMode",
                    message: format!(
                        "volume {:?}: mode {mode} is decimal and means octal {mode:o}; write 0{mode} in YAML or {} in JSON if octal {mode} is meant",
                        volume.name,
                        i32::from_str_radix(&mode.to_string(), 8).unwrap_or(mode),
                    ),
                });
            }
        }
    }
    for container in containers(pod) {
        for mount in container.volume_mounts.iter().flatten().filter(|mount| secret(&mount.name)) {
            let sub_path = mount.sub_path.as_deref().or(mount.sub_path_expr.as_deref()).unwrap_or_default();
            if !sub_path.is_empty() {
                warnings.push(PodWarning {
                    reason: "SubPathNeverUpdates",
                    message: format!(
                        "container {:?} mounts {sub_path:?} of volume {:?} by subPath: that file will not follow changes of the Secret",
                        container.name, mount.name
                    ),
                });
            }
            if mount.read_only == Some(false) {
                warnings.push(PodWarning {
                    reason: "SecretVolumeIsReadOnly",
                    message: format!(
                        "container {:?} asks for a writable volume {:?}: Secret volumes are read-only",
                        container.name, mount.name
                    ),
                });
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(volume: serde_json::Value, mount: serde_json::Value, reasons: &[&str]) {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {"volumes": [volume], "containers": [{"name": "c", "volumeMounts": [mount]}]},
        }))
        .expect("a pod");
        let found: Vec<_> = pod_warnings(&pod).into_iter().map(|warning| warning.reason).collect();
        assert_eq!(found, reasons);
    }

    #[test]
    fn n3_n5_n21_a_surprising_pod_is_warned_about() {
        let plain = json!({"name": "v", "mountPath": "/v"});
        check(json!({"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}), plain.clone(), &[]);
        check(
            json!({"name": "v", "secret": {"secretName": "s", "defaultMode": 600}}),
            plain.clone(),
            &["SuspiciousFileMode"],
        );
        check(
            json!({"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p", "mode": 644}]}}),
            plain,
            &["SuspiciousFileMode"],
        );
        check(
            json!({"name": "v", "secret": {"secretName": "s"}}),
            json!({"name": "v", "mountPath": "/v", "subPath": "k"}),
            &["SubPathNeverUpdates"],
        );
        check(
            json!({"name": "v", "secret": {"secretName": "s"}}),
            json!({"name": "v", "mountPath": "/v", "readOnly": false}),
            &["SecretVolumeIsReadOnly"],
        );
        check(
            json!({"name": "v", "emptyDir": {}}),
            json!({"name": "v", "mountPath": "/v", "readOnly": false, "subPath": "k"}),
            &[],
        );
    }
}

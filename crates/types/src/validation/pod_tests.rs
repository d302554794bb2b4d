use super::*;
use crate::names;
use crate::validation::testing::{object, texts};

const RULES: MetaRules =
    MetaRules { namespaced: true, name: names::dns_subdomain, qualified_finalizers: true };

/// A pod with `spec`, defaulted.
fn pod(spec: &str) -> Value {
    let mut pod = object(&format!(
        r#"{{"metadata":{{"name":"p","namespace":"n","resourceVersion":"1"}},"spec":{spec}}}"#
    ));
    default(&mut pod);
    pod
}

/// A pod with one good container and `more`.
fn with(more: &str) -> Value {
    pod(&format!(r#"{{"containers":[{{"name":"c","image":"i"}}]{more}}}"#))
}

#[track_caller]
fn check(pod: &Value, expected: &[&str]) {
    assert_eq!(texts(&validate(pod, RULES)), expected);
}

#[test]
fn defaults_are_those_that_clients_expect() {
    let pod = pod(
        r#"{"serviceAccount":"sa","containers":[{"name":"c","image":"i","ports":[{"containerPort":80}],
            "resources":{"limits":{"cpu":"1"}},"livenessProbe":{},"env":[{"name":"A","valueFrom":{"fieldRef":{}}}]}],
            "volumes":[{"name":"a"},{"name":"b","secret":{}},{"name":"c","projected":{"sources":[
            {"serviceAccountToken":{}},{"downwardAPI":{"items":[{"fieldRef":{}}]}}]}}]}"#,
    );
    let expected = object(
        r#"{"serviceAccount":"sa","serviceAccountName":"sa","dnsPolicy":"ClusterFirst","restartPolicy":"Always",
            "schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30,
            "enableServiceLinks":true,
            "containers":[{"name":"c","image":"i","imagePullPolicy":"Always","terminationMessagePath":
            "/dev/termination-log","terminationMessagePolicy":"File","ports":[{"containerPort":80,"protocol":"TCP"}],
            "resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}},
            "livenessProbe":{"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
            "env":[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1"}}}]}],
            "volumes":[{"name":"a","emptyDir":{}},{"name":"b","secret":{"defaultMode":420}},{"name":"c","projected":
            {"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3600}},
            {"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1"}}]}}]}}]}"#,
    );
    assert!(pod.get("spec") == Some(&expected));
    let mut again = pod.clone();
    default(&mut again);
    assert!(again == pod, "defaulting twice changes nothing");
}

#[test]
fn a_grace_period_of_zero_is_kept() {
    for (given, expected) in [("0", 0), ("-5", 1), ("7", 7), ("null", 30)] {
        let pod = pod(&format!(r#"{{"terminationGracePeriodSeconds":{given}}}"#));
        let seconds = pod.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
        assert_eq!(seconds, Some(expected), "{given}");
    }
}

#[test]
fn new_pods_are_pending_and_have_a_class() {
    let check = |resources: &str, expected: &str| {
        let mut pod =
            pod(&format!(r#"{{"containers":[{{"name":"c","image":"i","resources":{resources}}}]}}"#));
        prepare_create(&mut pod);
        assert_eq!(pod.str_at(&["status", "phase"]), "Pending");
        assert_eq!(pod.str_at(&["status", "qosClass"]), expected);
    };
    check("{}", "BestEffort");
    check(r#"{"limits":{"cpu":"1","memory":"1Gi"}}"#, "Guaranteed");
    check(r#"{"limits":{"cpu":"1"}}"#, "Burstable");
    check(r#"{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m"}}"#, "Burstable");
}

#[test]
fn containers_are_complete() {
    check(&with(""), &[]);
    check(&pod("{}"), &["spec.containers: Required value"]);
    check(
        &pod(r#"{"containers":[{"imagePullPolicy":"X"},{"name":"a","image":"i"},{"name":"a","image":"i"}]}"#),
        &[
            "spec.containers[0].name: Required value",
            "spec.containers[0].image: Required value",
            "spec.containers[0].imagePullPolicy: Unsupported value: \"X\": supported values: \"Always\", \
             \"IfNotPresent\", \"Never\"",
            "spec.containers[2].name: Duplicate value: \"a\"",
        ],
    );
    check(
        &with(r#","restartPolicy":"X","dnsPolicy":"Y","hostname":"a.b","activeDeadlineSeconds":0"#),
        &[
            "spec.restartPolicy: Unsupported value: \"X\": supported values: \"Always\", \"OnFailure\", \"Never\"",
            "spec.dnsPolicy: Unsupported value: \"Y\": supported values: \"ClusterFirstWithHostNet\", \
             \"ClusterFirst\", \"Default\", \"None\"",
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            "spec.hostname: Invalid value: \"a.b\": must not contain dots",
        ],
    );
    check(
        &with(r#","ephemeralContainers":[{"name":"e","image":"i"}]"#),
        &["spec.ephemeralContainers: Forbidden: cannot be set on create"],
    );
    check(
        &pod(
            r#"{"containers":[{"name":"c","image":"i","ports":[{},{"containerPort":65536,"protocol":"X"}]}]}"#,
        ),
        &[
            "spec.containers[0].ports[0].containerPort: Required value",
            "spec.containers[0].ports[1].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
            "spec.containers[0].ports[1].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \
             \"UDP\"",
        ],
    );
}

#[test]
fn volumes_and_mounts() {
    check(
        &with(
            r#","volumes":[{"name":"a","secret":{}},{"name":"b","secret":{"secretName":"s"},"configMap":{"name":"c"}}]"#,
        ),
        &[
            "spec.volumes[0].secret.secretName: Required value",
            "spec.volumes[1].configMap: Forbidden: may not specify more than 1 volume type",
        ],
    );
    check(
        &with(
            r#","volumes":[{"name":"a","secret":{"secretName":"s","defaultMode":512,"items":[
               {"key":"k","path":"/a","mode":-1},{"key":"k","path":"../a"},{"path":"..a"}]}},{"name":"A"},{"name":"x"},
               {"name":"x"}]"#,
        ),
        &[
            "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both \
             inclusive",
            "spec.volumes[0].secret.items[0].path: Invalid value: \"/a\": must be a relative path",
            "spec.volumes[0].secret.items[0].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both \
             inclusive",
            "spec.volumes[0].secret.items[1].path: Invalid value: \"../a\": must not contain '..'",
            "spec.volumes[0].secret.items[2].key: Required value",
            "spec.volumes[0].secret.items[2].path: Invalid value: \"..a\": must not start with '..'",
            "spec.volumes[1].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case \
             alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  \
             or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            "spec.volumes[3].name: Duplicate value: \"x\"",
        ],
    );
    check(
        &pod(r#"{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"a","mountPath":"/x"},
                {"name":"b","mountPath":"/x","subPath":"../y"}]}],"volumes":[{"name":"a","emptyDir":{}}]}"#),
        &[
            "spec.containers[0].volumeMounts[1].name: Not found: \"b\"",
            "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/x\": must be unique",
            "spec.containers[0].volumeMounts.subPath: Invalid value: \"../y\": must not contain '..'",
        ],
    );
    let token = |seconds: i64| {
        with(&format!(
            r#","serviceAccountName":"s","volumes":[{{"name":"a","projected":{{"sources":[{{"serviceAccountToken":
               {{"path":"t","expirationSeconds":{seconds}}}}}]}}}}]"#
        ))
    };
    check(&token(600), &[]);
    check(
        &token(599),
        &[
            "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not \
           specify a duration less than 10 minutes",
        ],
    );
    check(&token(1 << 32), &[]);
    check(
        &token((1 << 32) + 1),
        &[
            "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may \
           not specify a duration larger than 2^32 seconds",
        ],
    );
    check(
        &with(r#","volumes":[{"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]"#),
        &["spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when \
           serviceAccountName is not set"],
    );
    check(
        &with(
            r#","volumes":[{"name":"a","projected":{"sources":[{"secret":{"name":"s","items":[{"key":"k","path":"p"}]}},
               {"configMap":{"name":"c","items":[{"key":"k","path":"p"}]},"secret":{}}]}}]"#,
        ),
        &[
            "spec.volumes[0].projected.sources[1].secret.name: Required value",
            "spec.volumes[0].projected: Invalid value: \"c\": conflicting duplicate paths",
            "spec.volumes[0].projected.sources[1]: Forbidden: may not specify more than 1 volume type per source",
        ],
    );
}

#[test]
fn environment() {
    let env = |env: &str| pod(&format!(r#"{{"containers":[{{"name":"c","image":"i",{env}}}]}}"#));
    check(&env(r#""env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]"#), &[]);
    let at = "spec.containers[0]";
    check(
        &env(r#""env":[{},{"name":"a=b"},{"name":"A","valueFrom":{}},{"name":"B","value":"v","valueFrom":
               {"secretKeyRef":{"name":"s"}}},{"name":"C","valueFrom":{"fieldRef":{},"secretKeyRef":{"name":"s",
               "key":"a/b"}}}]"#),
        &[
            &format!("{at}.env[0].name: Required value"),
            &format!(
                "{at}.env[1].name: Invalid value: \"a=b\": a valid environment variable name must consist only of \
                 printable ASCII characters other than '='"
            ),
            &format!(
                "{at}.env[2].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, \
                 `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            ),
            &format!("{at}.env[3].valueFrom.secretKeyRef.key: Required value"),
            &format!(
                "{at}.env[3].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"
            ),
            &format!(
                "{at}.env[4].valueFrom.secretKeyRef.key: Invalid value: \"a/b\": a valid config key must consist of \
                 alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used \
                 for validation is '[-._a-zA-Z0-9]+')"
            ),
            &format!(
                "{at}.env[4].valueFrom: Invalid value: \"\": may not have more than one field specified at a time"
            ),
        ],
    );
    check(
        &env(r#""envFrom":[{},{"secretRef":{}},{"secretRef":{"name":"s"},"configMapRef":{"name":"c"}}]"#),
        &[
            &format!("{at}.envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"),
            &format!("{at}.envFrom[1].secretRef.name: Required value"),
            &format!(
                "{at}.envFrom: Invalid value: \"\": may not have more than one field specified at a time"
            ),
        ],
    );
}

#[test]
fn updates_change_little() {
    let check = |old: &Value, new: &Value, expected: &[&str]| {
        assert_eq!(texts(&validate_update(new, old, RULES)), expected);
    };
    let old = with("");
    check(&old, &old, &[]);
    check(&old, &pod(r#"{"containers":[{"name":"c","image":"j"}]}"#), &[]);
    check(&old, &with(r#","tolerations":[{"key":"a"}],"activeDeadlineSeconds":5"#), &[]);
    check(
        &old,
        &pod(r#"{"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}"#),
        &["spec.containers: Forbidden: pod updates may not add or remove containers"],
    );
    let timed = with(r#","activeDeadlineSeconds":5"#);
    check(
        &timed,
        &with(r#","activeDeadlineSeconds":6"#),
        &["spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"],
    );
    check(
        &timed,
        &old,
        &[
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
        ],
    );
    check(
        &old,
        &with(r#","nodeName":"other""#),
        &[&format!("spec: Forbidden: pod updates may not change fields other than {UPDATABLE}\n")],
    );
    let status = {
        let mut new = old.clone();
        new.set(&["spec", "nodeName"], "other");
        texts(&validate_status_update(&new, &old, RULES))
    };
    assert_eq!(status, ["status.nodeName: Forbidden: may not be changed directly"]);
}

#[test]
fn updates_keep_the_status_and_count_changes() {
    let mut old = with("");
    old.set(&["metadata", "generation"], 1);
    old.set(&["status", "phase"], "Running");
    let mut new = pod(r#"{"containers":[{"name":"c","image":"j"}]}"#);
    prepare_update(&mut new, &old);
    assert_eq!(new.str_at(&["status", "phase"]), "Running");
    assert_eq!(new.at(&["metadata", "generation"]).and_then(Value::as_i64), Some(2));
}

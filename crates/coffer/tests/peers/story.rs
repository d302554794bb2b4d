//! What `coffer trace` tells when a link of the chain is broken.

use coffer_sim::peers::{Coffer, Kubectl, OpenBao, until};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::quiet;

/// A credential in OpenBao that an ExternalSecret takes once an hour.
fn synced(kubectl: &Kubectl, bao: &OpenBao) {
    bao.write("db", json!({"password": "one"}));
    let store = json!({"server": bao.url(), "path": "secret", "version": "v2",
        "auth": {"tokenSecretRef": {"name": "bao-token", "key": "token"}}});
    for item in [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bao-token"},
            "stringData": {"token": OpenBao::TOKEN}}),
        json!({"apiVersion": "external-secrets.io/v1", "kind": "SecretStore", "metadata": {"name": "bao"},
            "spec": {"provider": {"vault": store}}}),
        json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": "db"},
            "spec": {"refreshInterval": "1h", "secretStoreRef": {"name": "bao"}, "data": [
                {"secretKey": "password", "remoteRef": {"key": "db", "property": "password"}}]}}),
    ] {
        kubectl.apply(&item.to_string());
    }
}

fn entry(life: &Value) -> (&str, &str) {
    let entry = &life["source"]["entries"][0];
    (entry["version"].as_str().unwrap_or_default(), entry["current"].as_str().unwrap_or_default())
}

#[test]
fn a_rotation_that_is_not_refreshed_yet_is_told() {
    let mut bao = OpenBao::start();
    let coffer = Coffer::up(quiet, &[]);
    let kubectl = coffer.kubectl();
    synced(&kubectl, &bao);
    until("the sync", || (coffer.ask(&["trace", "secret/db"]).code == 0).then_some(()));
    let life = coffer.trace("db");
    assert_eq!((entry(&life), &life["source"]["notAsked"]), (("1", "1"), &json!("")), "{life}");

    bao.write("db", json!({"password": "two"}));
    let told = coffer.ask(&["trace", "secret/db"]);
    assert_eq!(told.code, 1, "{}{}", told.stdout, told.stderr);
    assert!(told.stdout.contains("version 1, the source has 2"), "{}", told.stdout);
    assert!(told.stdout.contains("was rotated, not refreshed yet"), "{}", told.stdout);
    let life = coffer.trace("db");
    assert_eq!(entry(&life), ("1", "2"), "{life}");
    // The advice helps.
    let broken = life["broken"][0].as_str().expect("a broken link").to_owned();
    assert!(broken.contains("kubectl annotate externalsecret -n default db force-sync="), "{broken}");
    kubectl.ok(&["annotate", "externalsecret", "db", "force-sync=1", "--overwrite"]);
    until("the refresh", || (coffer.ask(&["trace", "secret/db"]).code == 0).then_some(()));
    assert_eq!(entry(&coffer.trace("db")), ("2", "2"));

    // Who may not read the store's credentials asks nobody, and that alone is no failure.
    not_asked_without_the_right(&coffer, &kubectl);
    bao.kill();
    let told = coffer.ask(&["trace", "secret/db"]);
    assert_eq!(told.code, 0, "{}{}", told.stdout, told.stderr);
    assert!(
        told.stdout.contains("the source was not asked what it holds now: SecretStore/bao: "),
        "{}",
        told.stdout
    );
}

fn not_asked_without_the_right(coffer: &Coffer, kubectl: &Kubectl) {
    kubectl.ok(&["create", "serviceaccount", "viewer"]);
    kubectl.ok(&[
        "create",
        "role",
        "viewer",
        "--verb=get,list",
        "--resource=secrets,pods",
        "--resource-name=db",
    ]);
    kubectl.ok(&[
        "create",
        "role",
        "lister",
        "--verb=get,list",
        "--resource=pods,externalsecrets,secretstores",
    ]);
    for role in ["viewer", "lister"] {
        let account = "--serviceaccount=default:viewer";
        kubectl.ok(&["create", "rolebinding", role, &format!("--role={role}"), account]);
    }
    let token = kubectl.ok(&["create", "token", "viewer"]);
    let kubeconfig = std::fs::read_to_string(coffer.kubeconfig()).expect("a kubeconfig");
    // The administrator's certificate gives way to the token.
    let kubeconfig: String = kubeconfig
        .lines()
        .filter(|line| !line.contains("client-key-data"))
        .map(|line| match line.split_once("client-certificate-data:") {
            Some((indent, _)) => format!("{indent}token: {}\n", token.trim()),
            None => format!("{line}\n"),
        })
        .collect();
    let path = coffer.directory().join("viewer.kubeconfig");
    std::fs::write(&path, kubeconfig).expect("written");
    let ask = |format: &str| {
        let path = path.to_str().expect("text");
        let told = until("the rights to be known", || {
            let told = coffer_sim::peers::run(quiet().args([
                "--kubeconfig",
                path,
                "trace",
                "secret/db",
                "-o",
                format,
            ]));
            (told.code != 3).then_some(told)
        });
        assert_eq!(told.code, 0, "{}{}", told.stdout, told.stderr);
        told.stdout
    };
    let why = "cannot get resource \\\"secrets\\\"";
    let json = ask("json");
    let life: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(entry(&life), ("2", ""), "{life}");
    assert!(json.contains(why), "{json}");
    let table = ask("table");
    assert!(table.contains("the source was not asked what it holds now: SecretStore/bao: "), "{table}");
    assert!(table.contains("cannot get resource \"secrets\""), "{table}");
}

#[test]
fn a_stale_sub_path_and_a_silent_node_are_told() {
    let coffer = Coffer::up(quiet, &[]);
    let kubectl = coffer.kubectl();
    kubectl.ok(&["create", "secret", "generic", "db", "--from-literal=password=one"]);
    let root = coffer.directory().join("root").display().to_string();
    let mut command = quiet();
    command.args(["node", "--hostname-override", "other", "--root-dir", &root, "--kubeconfig"]);
    let directory = tempfile::tempdir().expect("a directory");
    let mut node =
        coffer_sim::peers::Process::start("node", command.arg(coffer.kubeconfig()), directory.path());
    let log = directory.path().join("node.log");
    node.wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("until Ctrl-C")));
    let whole = json!({"name": "v", "mountPath": "/v"});
    let part = json!({"name": "v", "mountPath": "/password", "subPath": "password"});
    for (name, on, mounts) in [("web", "coffer", vec![&whole, &part]), ("far", "other", vec![&whole])] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "nodeName": on, "automountServiceAccountToken": false,
            "volumes": [{"name": "v", "secret": {"secretName": "db"}}],
            "containers": [{"name": "app", "image": "registry.example/app", "volumeMounts": mounts}]}});
        kubectl.apply(&pod.to_string());
    }
    let state = |pod: &str, kind: &str| -> Value {
        let life = coffer.trace("db");
        let consumers = life["consumers"].as_array().cloned().unwrap_or_default();
        consumers
            .into_iter()
            .find(|consumer| consumer["pod"] == pod && consumer["kind"] == kind)
            .unwrap_or_default()
    };
    until("both nodes to report", || {
        (state("web", "subPath")["state"] == "current" && state("far", "file")["state"] == "current")
            .then_some(())
    });
    kubectl.ok(&["patch", "secret", "db", "-p", r#"{"stringData":{"password":"two"}}"#]);
    until("the files to be current and the subPath to be stale", || {
        (state("web", "file")["state"] == "current"
            && state("far", "file")["state"] == "current"
            && state("web", "subPath")["state"] == "stale")
            .then_some(())
    });
    let told = coffer.ask(&["trace", "secret/db"]);
    assert_eq!(told.code, 1);
    assert!(
        told.stdout.contains("pod web (subPath app v/password) holds an older value: restart it"),
        "{}",
        told.stdout
    );

    // Frozen, it reports no more; what the server then writes is written here without waiting for it.
    node.signal(Signal::STOP);
    let unknown = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown",
        "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}]}});
    kubectl.ok(&["patch", "node", "other", "--subresource=status", "-p", &unknown.to_string()]);
    let told = coffer.ask(&["trace", "secret/db"]);
    let silent = state("far", "file")["state"].clone();
    node.signal(Signal::CONT);
    let why = "node other no longer reports, its Ready is Unknown \
               (NodeStatusUnknown: Kubelet stopped posting node status.)";
    assert!(told.stdout.contains(&format!("pod far (file v): {why}")), "{}", told.stdout);
    assert_eq!((told.code, silent), (1, json!("silent")));
}

/// A pod that only pulls its image with a Secret: missing, there, rotated, gone again.
#[test]
fn pull_credentials_are_told() {
    let coffer = Coffer::up(quiet, &[]);
    let kubectl = coffer.kubectl();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {
        "automountServiceAccountToken": false, "imagePullSecrets": [{"name": "pull"}],
        "containers": [{"name": "app", "image": "registry.example/app"}]}});
    kubectl.apply(&pod.to_string());
    let told = || {
        let life = coffer.trace("pull");
        let consumers = life["consumers"].as_array().cloned().unwrap_or_default();
        let [one] = consumers.as_slice() else { return (Value::Null, Value::Null) };
        assert_eq!((&one["pod"], &one["node"]), (&json!("web"), &json!("coffer")), "{life}");
        assert_eq!(one["kind"], "pull credential", "{life}");
        (one["state"].clone(), one["resourceVersion"].clone())
    };
    let version = || kubectl.ok(&["get", "secret", "pull", "-o", "jsonpath={.metadata.resourceVersion}"]);
    let missing = || {
        until("the node to miss it", || (told().0 == "missing").then_some(()));
        let output = coffer.ask(&["trace", "secret/pull"]);
        assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
        let line = "pod web (pull credential) holds nothing: secret \"pull\" not found";
        assert!(output.stdout.contains(line), "{}", output.stdout);
        assert!(output.stdout.contains("secret default/pull does not exist"), "{}", output.stdout);
    };
    let current = || {
        let newest = (json!("current"), json!(version()));
        until("the node to hold the newest", || (told() == newest).then_some(()));
        let output = coffer.ask(&["trace", "secret/pull"]);
        assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    };
    missing();
    let create = |password: &str| {
        kubectl.ok(&[
            "create",
            "secret",
            "docker-registry",
            "pull",
            "--docker-server=registry.example",
            "--docker-username=me",
            &format!("--docker-password={password}"),
        ]);
    };
    create("one");
    current();
    // It is read at each pull: nothing has to be started again after a rotation.
    let before = version();
    kubectl.ok(&[
        "patch",
        "secret",
        "pull",
        "-p",
        r#"{"stringData":{".dockerconfigjson":"{\"auths\":{}}"}}"#,
    ]);
    assert_ne!(version(), before);
    current();
    kubectl.ok(&["delete", "secret", "pull"]);
    missing();
}

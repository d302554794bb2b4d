//! A marked value goes everywhere, things fail everywhere, logs are at their finest level: the mark
//! is in no log, error, event, metric, condition, trace or panic text.

mod faults;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_sim::peers::{Coffer, Kubectl, OpenBao, run, until};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::loud;
use coffer_sim::marks::Mark;

const MARK: &str = "cAn4ry+7Qz/x&Vw=9~Kp";
/// What a ConfigMap holds is no secret where ConfigMaps are shown, and is told nowhere else all the same.
const MAP_MARK: &str = "m4pC+9Tz/u&Kb=2~Ws";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A client of the API that sends any bytes and shows any answer.
struct Api {
    runtime: tokio::runtime::Runtime,
    admin: kube::Client,
    anonymous: kube::Client,
}

impl Api {
    fn new(kubeconfig: &Path) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let (admin, anonymous) = runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a config");
            let mut anonymous = config.clone();
            anonymous.auth_info = Default::default();
            let client = |config| kube::Client::try_from(config).expect("a client");
            (client(config), client(anonymous))
        });
        Self { runtime, admin, anonymous }
    }

    fn send(&self, client: &kube::Client, request: Request<Vec<u8>>) -> (u16, Vec<u8>) {
        self.try_send(client, request).expect("an answer")
    }

    /// The answer, or the error of a server that is going away.
    fn try_send(
        &self,
        client: &kube::Client,
        request: Request<Vec<u8>>,
    ) -> Result<(u16, Vec<u8>), kube::Error> {
        self.runtime.block_on(async {
            let response = client.send(request.map(Into::into)).await?;
            let status = response.status().as_u16();
            let bytes = response.into_body().collect_bytes().await?;
            Ok((status, bytes.to_vec()))
        })
    }

    fn call(&self, method: &str, path: &str, content: &str, body: impl Into<Vec<u8>>) -> (u16, Vec<u8>) {
        let request = Request::builder().method(method).uri(path).header("Content-Type", content);
        self.send(&self.admin, request.body(body.into()).expect("a request"))
    }

    fn get(&self, path: &str, accept: &str) -> (u16, Vec<u8>) {
        let request = Request::get(path).header("Accept", accept);
        self.send(&self.admin, request.body(Vec::new()).expect("a request"))
    }

    /// A request that must fail, and not tell the mark.
    fn refused(&self, mark: &Mark, method: &str, path: &str, content: &str, body: impl Into<Vec<u8>>) {
        let body = body.into();
        let (status, answer) = self.call(method, path, content, body.clone());
        let shown = String::from_utf8_lossy(&body).into_owned();
        assert!(status >= 400, "{method} {path} {content} {shown}: {status}");
        mark.assert_absent(&format!("the answer to {method} {path} {content}"), answer);
    }

    fn bearer(&self, token: &str) -> (u16, Vec<u8>) {
        let request = Request::get(SECRETS).header("Authorization", format!("Bearer {token}"));
        self.send(&self.anonymous, request.body(Vec::new()).expect("a request"))
    }
}

fn secret(name: &str, members: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{name}"}},{members}}}"#)
}

/// A length-delimited field of protobuf.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 128 {
        bytes.push(length as u8 | 128);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}

/// A Secret with one value, in the envelope of protobuf.
fn protobuf(name: &str, value: &str) -> Vec<u8> {
    let entry = [field(1, b"value"), field(2, value.as_bytes())].concat();
    let secret = [field(1, &field(1, name.as_bytes())), field(2, &entry)].concat();
    let kind = [field(1, b"v1"), field(2, b"Secret")].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, &secret)].concat()
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Field case S11: 100 malformed registry configurations, and every other way to write a Secret.
fn writes(api: &Api, mark: &Mark) {
    let encoded = STANDARD.encode(MARK);
    let good = |name: &str| secret(name, &format!(r#""data":{{"value":"{encoded}"}}"#));
    for (name, content, body) in [
        ("json", JSON, good("json").into_bytes()),
        (
            "yaml",
            YAML,
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: yaml}}\nstringData: {{value: '{MARK}'}}\n"
            )
            .into_bytes(),
        ),
        ("protobuf", PROTOBUF, protobuf("protobuf", MARK)),
    ] {
        let (status, answer) = api.call("POST", SECRETS, content, body.clone());
        assert_eq!(status, 201, "{name}: {}", String::from_utf8_lossy(&answer));
        // The same again is a conflict.
        api.refused(mark, "POST", SECRETS, content, body.clone());
        // Cut anywhere, it is malformed.
        for part in 2..6 {
            let cut = body.len() * part / 7;
            if content != YAML {
                api.refused(mark, "POST", SECRETS, content, &body[..cut]);
            } else {
                let _ = mark
                    .found_in(&api.call("POST", SECRETS, content, &body[..cut]).1)
                    .map(|found| panic!("{found}"));
            }
        }
    }
    for members in [
        format!(r#""data":{{"value":"{MARK}"}}"#),
        format!(r#""data":{{"value":["{MARK}"]}}"#),
        format!(r#""data":"{MARK}""#),
        format!(r#""data":["{encoded}"]"#),
        format!(r#""stringData":{{"value":{{"a":"{MARK}"}}}}"#),
        format!(r#""stringData":"{MARK}""#),
        format!(r#""immutable":"{MARK}""#),
        format!(r#""data":{{"a":"{encoded}"}},"type":["{MARK}"]"#),
        format!(r#""type":"kubernetes.io/tls","data":{{"tls.crt":"{encoded}"}}"#),
        format!(r#""type":"kubernetes.io/ssh-auth","data":{{"key":"{encoded}"}}"#),
        format!(r#""type":"kubernetes.io/basic-auth","data":{{"other":"{encoded}"}}"#),
        format!(r#""type":"kubernetes.io/service-account-token","data":{{"token":"{encoded}"}}"#),
        format!(r#""data":{{"bad key":"{encoded}"}}"#),
        format!(r#""data":{{"a":"{encoded}"}},"metadata":{{"name":"Bad Name","labels":{{"a":5}}}}"#),
        format!(r#""data":{{"big":"{}"}}"#, STANDARD.encode(MARK.repeat(60_000))),
    ] {
        api.refused(mark, "POST", SECRETS, JSON, secret("bad", &members));
        // JSON is YAML too.
        api.refused(mark, "POST", SECRETS, YAML, secret("bad", &members));
        api.refused(mark, "PUT", &format!("{SECRETS}/json"), JSON, secret("json", &members));
        api.refused(
            mark,
            "PATCH",
            &format!("{SECRETS}/json"),
            "application/merge-patch+json",
            format!("{{{members}"),
        );
    }
    for body in [
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\ndata:\n  value: \"{MARK}\n"),
        format!("apiVersion: v1\nkind: Secret\n\tdata: {MARK}\n"),
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\ndata:\n  value: !!binary {MARK}\n  *{MARK}\n"
        ),
        format!("- {MARK}\n- {MARK}\n"),
        MARK.to_owned(),
        format!("{{\"kind\":\"{MARK}"),
        format!("\"{MARK}\""),
    ] {
        for content in [YAML, JSON, PROTOBUF, "text/plain"] {
            api.refused(mark, "POST", SECRETS, content, body.clone());
        }
    }
    malformed_registry_configurations(api, mark);
    let strict = format!("{SECRETS}?fieldValidation=Strict");
    api.refused(
        mark,
        "POST",
        &strict,
        JSON,
        secret("s", &format!(r#""unknown":"{MARK}","data":{{"a":"{encoded}","a":"{encoded}"}}"#)),
    );
}

fn malformed_registry_configurations(api: &Api, mark: &Mark) {
    let good = format!(
        r#"{{"auths":{{"registry.example":{{"username":"u","password":"{MARK}","auth":"{MARK}"}}}}}}"#
    );
    let mut malformed: Vec<String> = (1..=60).map(|cut| good[..good.len() - cut].to_owned()).collect();
    malformed.extend((0..40).map(|at| {
        let (before, after) = good.split_at(at * good.len() / 41);
        format!("{before}\u{1}{after}")
    }));
    assert_eq!(malformed.len(), 100);
    for (at, config) in malformed.iter().enumerate() {
        let (kind, key) = [
            ("kubernetes.io/dockerconfigjson", ".dockerconfigjson"),
            ("kubernetes.io/dockercfg", ".dockercfg"),
        ][at % 2];
        let members = format!(r#""type":"{kind}","data":{{"{key}":"{}"}}"#, STANDARD.encode(config));
        let (status, answer) = api.call("POST", SECRETS, JSON, secret("registry", &members));
        assert_eq!(status, 422, "{}", String::from_utf8_lossy(&answer));
        mark.assert_absent("the answer to a malformed registry configuration", answer);
    }
}

fn changes(api: &Api, mark: &Mark) {
    let encoded = STANDARD.encode(MARK);
    let at = format!("{SECRETS}/json");
    let merge = "application/merge-patch+json";
    let strategic = "application/strategic-merge-patch+json";
    let pointer = "application/json-patch+json";
    for (content, body) in [
        (merge, format!(r#"{{"stringData":{{"more":"{MARK}"}}}}"#)),
        (strategic, format!(r#"{{"stringData":{{"more":"{MARK}2"}}}}"#)),
        (pointer, format!(r#"[{{"op":"add","path":"/data/third","value":"{encoded}"}}]"#)),
    ] {
        let (status, answer) = api.call("PATCH", &at, content, body);
        assert_eq!(status, 200, "{content}: {}", String::from_utf8_lossy(&answer));
    }
    for (content, body) in [
        (merge, format!(r#"{{"data":{{"more":"{MARK}"}}}}"#)),
        (merge, format!(r#"["{MARK}"]"#)),
        (strategic, format!(r#"{{"data":{{"$patch":"{MARK}"}}}}"#)),
        (pointer, format!(r#"[{{"op":"test","path":"/data/third","value":"{MARK}"}}]"#)),
        (pointer, format!(r#"[{{"op":"{MARK}","path":"/data/third"}}]"#)),
        (pointer, format!(r#"[{{"op":"add","path":"/data/x/y","value":"{encoded}"}}]"#)),
        (pointer, format!(r#"[{{"op":"replace","path":"/data","value":"{MARK}"}}]"#)),
        (pointer, format!(r#"{{"value":"{MARK}"}}"#)),
        ("text/plain", MARK.to_owned()),
    ] {
        api.refused(mark, "PATCH", &at, content, body);
    }
    // Applying is refused or done: either way it is not told.
    let apply = secret("json", &format!(r#""data":{{"value":"{MARK}"}}"#));
    let (_, answer) =
        api.call("PATCH", &format!("{at}?fieldManager=m"), "application/apply-patch+yaml", apply);
    mark.assert_absent("the answer to apply", answer);
    let fixed = secret("fixed", &format!(r#""immutable":true,"data":{{"value":"{encoded}"}}"#));
    assert_eq!(api.call("POST", SECRETS, JSON, fixed).0, 201);
    let changed = secret("fixed", &format!(r#""immutable":false,"stringData":{{"value":"{MARK}!"}}"#));
    api.refused(mark, "PUT", &format!("{SECRETS}/fixed"), JSON, changed);
    let outdated = good_with_version(&encoded);
    api.refused(mark, "PUT", &at, JSON, outdated);
    api.refused(
        mark,
        "DELETE",
        &at,
        JSON,
        format!(r#"{{"kind":"DeleteOptions","gracePeriodSeconds":"{MARK}"}}"#),
    );
    api.refused(mark, "DELETE", &at, JSON, format!(r#"{{"kind":"DeleteOptions","{MARK}"#));
}

fn good_with_version(encoded: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"json","resourceVersion":"1"}},"data":{{"value":"{encoded}"}}}}"#
    )
}

fn reads(api: &Api, mark: &Mark) {
    for accept in [JSON, YAML, PROTOBUF] {
        let (status, list) = api.get(SECRETS, accept);
        assert_eq!(status, 200);
        assert!(mark.found_in(&list).is_some(), "{accept}: the list of Secrets must hold the mark");
    }
    let (status, events) = api.get(&format!("{SECRETS}?watch=1&timeoutSeconds=1"), JSON);
    assert_eq!(status, 200);
    assert!(mark.found_in(&events).is_some(), "the watch of Secrets must hold the mark");
    for kind in ["Table", "PartialObjectMetadataList"] {
        let accept = format!("application/json;as={kind};g=meta.k8s.io;v=v1");
        let (status, answer) = api.get(SECRETS, &accept);
        assert_eq!(status, 200, "{kind}");
        mark.assert_absent(kind, answer);
    }
}

/// Field cases S17, S27, S33: tokens, right and wrong.
fn tokens(api: &Api, mark: &Mark) -> Mark {
    let payload = STANDARD.encode(format!(r#"{{"sub":"{MARK}"}}"#));
    for token in [
        MARK.to_owned(),
        format!("abcdef.{MARK}"),
        format!("eyJhbGciOiJSUzI1NiJ9.{}.{MARK}", payload.trim_end_matches('=')),
    ] {
        let (status, answer) = api.bearer(&token);
        assert_eq!(status, 401);
        mark.assert_absent("the answer to a wrong token", answer);
    }
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let review = format!(
        r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{{"token":"{MARK}"}}}}"#
    );
    let (_, answer) = api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", JSON, review);
    // The token of the request comes back in `spec`, as upstream; never in an error.
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    mark.assert_absent("the status of a review", answer["status"].to_string());
    api.refused(mark, "POST", path, JSON, format!(r#"{{"kind":"TokenRequest","spec":"{MARK}"}}"#));
    let (status, answer) = until("the account", || {
        let answer = api.call("POST", path, JSON, r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":600}}"#);
        (answer.0 != 404).then_some(answer)
    });
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&answer));
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    let token = answer["status"]["token"].as_str().expect("a token");
    let (status, answer) = api.bearer(token);
    assert_eq!(status, 403);
    let signature = token.rsplit('.').next().expect("a signature");
    let issued = Mark::new(signature);
    issued.assert_absent("the answer to a token without rights", answer);
    issued
}

/// A server that answers every request so that a careless client would tell the mark.
fn malicious() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0_u8; 8192];
            let length = stream.read(&mut request).unwrap_or_default();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let (status, body) = if request.contains("forbidden") {
                ("403 Forbidden", format!(r#"{{"errors":["permission denied: {MARK}"]}}"#))
            } else if request.contains("broken") {
                ("500 Internal Server Error", format!(r#"{{"errors":["{MARK}"]}}"#))
            } else if request.contains("elsewhere") {
                ("302 Found", MARK.to_owned())
            } else if request.contains("list") {
                ("200 OK", format!(r#"["{MARK}"]"#))
            } else {
                ("200 OK", format!(r#"{{"data":{{"data":{{"value":"{MARK}"#))
            };
            let escaped: String = MARK.bytes().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "%{byte:02X}");
                text
            });
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nLocation: http://127.0.0.1:1/{escaped}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

fn store(name: &str, server: &str, token: &str) -> Value {
    json!({"apiVersion": "external-secrets.io/v1", "kind": "SecretStore", "metadata": {"name": name},
        "spec": {"provider": {"vault": {"server": server, "path": "secret", "version": "v2",
            "auth": {"tokenSecretRef": {"name": token, "key": "token"}}}}}})
}

/// The same backend by upstream's own provider for it.
fn open_bao(name: &str, server: &str, token: &str) -> Value {
    let mut made = store(name, server, token);
    let vault = made["spec"]["provider"]["vault"].take();
    made["spec"]["provider"] = json!({ "openBao": vault });
    made
}

/// Another cluster: this one, or one that nobody can trust.
fn cluster(name: &str, kubeconfig: &Path, server: Option<&str>, token: &str) -> Value {
    let config = std::fs::read_to_string(kubeconfig).expect("a kubeconfig");
    let value = |key: &str| {
        let line = config.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key));
        line.expect(key).trim().trim_matches('"').to_owned()
    };
    let url = server.map_or_else(|| value("server:"), str::to_owned);
    json!({"apiVersion": "external-secrets.io/v1", "kind": "SecretStore", "metadata": {"name": name},
        "spec": {"provider": {"kubernetes": {
            "server": {"url": url, "caBundle": value("certificate-authority-data:")},
            "remoteNamespace": "default",
            "auth": {"token": {"bearerToken": {"name": token, "key": "token"}}}}}}})
}

fn external(name: &str, store: &str, members: &Value) -> Value {
    let mut spec = json!({"refreshInterval": "1s", "secretStoreRef": {"name": store}});
    for (name, member) in members.as_object().expect("members") {
        spec[name] = member.clone();
    }
    json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": name}, "spec": spec})
}

/// Syncs that succeed, and providers, answers, values and targets that fail.
fn operator(coffer: &Coffer, kubectl: &Kubectl, bao: &OpenBao) {
    kubectl.ok(&["create", "serviceaccount", "reader"]);
    kubectl.ok(&["create", "role", "reader", "--verb=get,list", "--resource=secrets"]);
    kubectl.ok(&["create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader"]);
    let reader = kubectl.ok(&["create", "token", "reader"]);
    let malicious = malicious();
    let down = format!("http://127.0.0.1:{}", coffer_sim::peers::free_port());
    bao.write("db", json!({"value": MARK, "nested": {"a": MARK}, "text": format!("{{{MARK}")}));
    let token = |name: &str, token: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"token": token}});
    let one = |key: &str, property: &str| json!({"data": [{"secretKey": "value", "remoteRef": {"key": key, "property": property}}]});
    let mut items = vec![
        token("right-token", OpenBao::TOKEN),
        token("wrong-token", MARK),
        token("unsendable-token", &format!("{MARK}\n{MARK}")),
        store("good", bao.url(), "right-token"),
        store("wrong", bao.url(), "wrong-token"),
        store("unsendable", bao.url(), "unsendable-token"),
        store("down", &down, "wrong-token"),
        store("malicious", &malicious, "wrong-token"),
        token("reader-token", reader.trim()),
        open_bao("bao-good", bao.url(), "right-token"),
        open_bao("bao-wrong", bao.url(), "wrong-token"),
        open_bao("bao-down", &down, "wrong-token"),
        open_bao("bao-malicious", &malicious, "wrong-token"),
        cluster("cluster-good", coffer.kubeconfig(), None, "reader-token"),
        cluster("cluster-wrong", coffer.kubeconfig(), None, "wrong-token"),
        cluster("cluster-down", coffer.kubeconfig(), Some(&down), "wrong-token"),
        cluster("cluster-malicious", coffer.kubeconfig(), Some(&malicious), "wrong-token"),
        external("bao-good", "bao-good", &one("db", "value")),
        external("bao-wrong", "bao-wrong", &one("db", "value")),
        external("bao-down", "bao-down", &one("db", "value")),
        external("bao-into-text", "bao-good", &one("db", "text.deeper")),
        external("cluster-good", "cluster-good", &one("json", "value")),
        external("cluster-wrong", "cluster-wrong", &one("json", "value")),
        external("cluster-down", "cluster-down", &one("json", "value")),
        external("cluster-no-key", "cluster-good", &one("json", "missing")),
        external("cluster-into-text", "cluster-good", &one("json", "value.deeper")),
        external("good", "good", &one("db", "value")),
        external("wrong", "wrong", &one("db", "value")),
        external("unsendable", "unsendable", &one("db", "value")),
        external("down", "down", &one("db", "value")),
        external("no-property", "good", &one("db", "missing")),
        external("into-text", "good", &one("db", "text.deeper")),
        external(
            "not-base64",
            "good",
            &json!({"data": [{"secretKey": "value", "remoteRef": {"key": "db", "property": "value", "decodingStrategy": "Base64"}}]}),
        ),
        external(
            "extract-text",
            "good",
            &json!({"dataFrom": [{"extract": {"key": "db", "property": "text"}}]}),
        ),
        external(
            "registry",
            "good",
            &json!({
            "data": [{"secretKey": ".dockerconfigjson", "remoteRef": {"key": "db", "property": "text"}}],
            "target": {"template": {"type": "kubernetes.io/dockerconfigjson"}}}),
        ),
        external(
            "template",
            "good",
            &json!({
            "data": [{"secretKey": "value", "remoteRef": {"key": "db", "property": "text"}}],
            "target": {"template": {"engineVersion": "v2", "data": {"a": "{{ .value | fromJson | nonsense }}"}}}}),
        ),
    ];
    for path in ["forbidden", "broken", "elsewhere", "list", "cut"] {
        for store in ["malicious", "bao-malicious", "cluster-malicious"] {
            items.push(external(&format!("{store}-{path}"), store, &one(path, "value")));
        }
    }
    // One that is refused does not keep the others from being there.
    for item in items {
        let output = kubectl.run_with_input(&["create", "-f", "-"], &item.to_string());
        assert!(output.code == 0 || item["metadata"]["name"] == "template", "{}", output.stderr);
    }
    until("every ExternalSecret to be ready or not", || {
        let list: Value =
            serde_json::from_str(&kubectl.ok(&["get", "externalsecrets", "-o", "json"])).ok()?;
        let told = |item: &Value| item["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty());
        list["items"].as_array()?.iter().all(told).then_some(())
    });
    let ready = |name: &str| {
        kubectl.ok(&["get", "externalsecret", name, "-o", "jsonpath={.status.conditions[0].status}"])
    };
    for name in ["good", "bao-good", "cluster-good"] {
        assert_eq!(ready(name), "True", "{name}");
        let value = kubectl.ok(&["get", "secret", name, "-o", "go-template={{.data.value | base64decode}}"]);
        assert_eq!(value, MARK, "{name}");
    }
    for name in ["wrong", "bao-wrong", "bao-down", "cluster-wrong", "cluster-down", "cluster-malicious-list"]
    {
        assert_eq!(ready(name), "False", "{name}");
    }
}

/// Pods whose volumes and environment cannot be made.
fn node(coffer: &Coffer, kubectl: &Kubectl, mark: &Mark) {
    let pod = |name: &str, volume: Value, environment: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "automountServiceAccountToken": false,
            "volumes": [{"name": "v", "secret": volume}],
            "containers": [{"name": "app", "image": "registry.example/app", "env": environment,
                "envFrom": [{"secretRef": {"name": "json"}}],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}})
    };
    let variable = |secret: &str, key: &str| json!([{"name": "V", "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}]);
    for (name, volume, environment) in [
        ("good", json!({"secretName": "json"}), variable("json", "value")),
        ("no-secret", json!({"secretName": "missing"}), variable("missing", "value")),
        (
            "no-key",
            json!({"secretName": "json", "items": [{"key": "missing", "path": "a"}]}),
            variable("json", "missing"),
        ),
        (
            "conflict",
            json!({"secretName": "json", "items": [{"key": "value", "path": "a"}, {"key": "third", "path": "a/b"}]}),
            variable("json", "value"),
        ),
    ] {
        let output =
            kubectl.run_with_input(&["create", "-f", "-"], &pod(name, volume, environment).to_string());
        mark.assert_absent(name, output.stderr);
    }
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "marked"},
        "data": {"value": MAP_MARK}});
    kubectl.apply(&map.to_string());
    let secret = |path: &str| json!({"secret": {"name": "json", "items": [{"key": "value", "path": path}]}});
    let config =
        |path: &str| json!({"configMap": {"name": "marked", "items": [{"key": "value", "path": path}]}});
    for (name, sources) in [
        ("projected", json!([secret("a"), config("b")])),
        // Two sources want one place, or a place below a file.
        ("overlap", json!([secret("a"), config("a")])),
        ("below", json!([secret("a"), config("a/b")])),
        ("no-map", json!([secret("a"), {"configMap": {"name": "missing"}}])),
    ] {
        let mut made = pod(name, json!({}), json!([]));
        made["spec"]["volumes"][0] = json!({"name": "v", "projected": {"sources": sources}});
        let variable =
            json!([{"name": "M", "valueFrom": {"configMapKeyRef": {"name": "marked", "key": "value"}}}]);
        made["spec"]["containers"][0]["env"] = variable;
        made["spec"]["containers"][0]["envFrom"] =
            json!([{"secretRef": {"name": "json"}}, {"configMapRef": {"name": "marked"}}]);
        let output = kubectl.run_with_input(&["create", "-f", "-"], &made.to_string());
        mark.assert_absent(name, output.stderr);
    }
    for name in ["good", "projected"] {
        until("the node to report", || {
            let pod = kubectl.ok(&["get", "pod", name, "-o", "json"]);
            pod.contains("node.coffer.dev/secrets").then_some(())
        });
    }
    let uid = kubectl.ok(&["get", "pod", "projected", "-o", "jsonpath={.metadata.uid}"]);
    let trace: Value = until("the projected files", || {
        let life = coffer.trace("json");
        let consumers = life["consumers"].as_array().cloned().unwrap_or_default();
        consumers.into_iter().find(|one| one["kind"] == "file" && one["path"].to_string().contains(&uid))
    });
    let volume = Path::new(trace["path"].as_str().expect("a path"));
    let read = |name: &str| std::fs::read_to_string(volume.join(name)).ok();
    until("the marked files", || {
        (read("a").as_deref() == Some(MARK) && read("b").as_deref() == Some(MAP_MARK)).then_some(())
    });
}

/// Configuration files with the mark where a key is, or near one.
fn files(mark: &Mark, directory: &Path) {
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
    let keys = |key: &str| {
        format!(
            "{head}resources:\n- resources: [secrets]\n  providers:\n  - aesgcm:\n      keys:\n      - name: key1\n        secret: {key}\n"
        )
    };
    let encoded = STANDARD.encode(MARK);
    let file = directory.join("marked");
    let name = file.to_str().expect("text");
    let configurations = [
        keys(&format!("'{MARK}'")),
        keys(&encoded),
        keys(&format!("[{encoded}]")),
        keys(&format!("\"{encoded}")),
        keys(&format!("{encoded}\n\tsecret: {encoded}")),
        keys(&format!("{encoded}\n        secret: {encoded}")),
        keys(&format!("{encoded}\n      identity: {{}}")),
        keys(&encoded).replace("kind:", "kin:"),
        keys(&encoded).replace("keys:", "kees:"),
        keys(&encoded).replace("  - aesgcm", "  - identity: {}\n    aesgcm"),
        encoded.clone(),
        format!("{{\"a\": \"{MARK}"),
    ];
    for config in configurations {
        std::fs::write(&file, &config).expect("written");
        let output = run(loud().args(["config", "check", name]));
        assert_eq!(output.code, 1, "{config}");
        mark.assert_absent("config check", output.stderr + &output.stdout);
    }
    for content in [
        format!("{{ {MARK}"),
        format!("users: [{{name: a, user: {{token: '{MARK}' x}}}}]"),
        format!("- {MARK}"),
    ] {
        std::fs::write(&file, content).expect("written");
        let output = run(loud().args(["trace", "secret/db", "--kubeconfig", name]));
        assert_eq!(output.code, 3);
        mark.assert_absent("trace with a malformed kubeconfig", output.stderr + &output.stdout);
    }
    let malicious = malicious();
    for token in [MARK.to_owned(), format!("{MARK}\n{MARK}")] {
        std::fs::write(&file, token).expect("written");
        let data = directory.join("demo");
        let output = run(loud()
            .args(["demo", "--once", "--vault-addr", &malicious, "--vault-token-file", name, "--data-dir"])
            .arg(&data));
        assert_ne!(output.code, 0);
        mark.assert_absent("a demo that fails", output.stderr + &output.stdout);
        let _ = std::fs::remove_dir_all(data);
    }
}

/// Field cases S11, S17, S27, S33.
#[test]
fn s11_s17_s27_s33_a_marked_value_is_told_nowhere() {
    let mark = Mark::new(MARK);
    let bao = OpenBao::start();
    let mut coffer = Coffer::up(loud, &[]);
    let kubectl = coffer.kubectl();
    let api = Api::new(coffer.kubeconfig());
    writes(&api, &mark);
    changes(&api, &mark);
    reads(&api, &mark);
    let issued = tokens(&api, &mark);
    operator(&coffer, &kubectl, &bao);
    node(&coffer, &kubectl, &mark);
    let map_mark = Mark::new(MAP_MARK);
    for name in ["good", "json", "missing", "wrong"] {
        for format in ["table", "json", "yaml", "name"] {
            let output = coffer.ask(&["trace", &format!("secret/{name}"), "-o", format]);
            mark.assert_absent("trace", output.stdout + &output.stderr);
        }
    }
    for path in [
        "/metrics",
        "/api/v1/events",
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/configmaps",
        "/apis/external-secrets.io/v1/externalsecrets",
        "/apis/external-secrets.io/v1/secretstores",
        "/apis/coordination.k8s.io/v1/leases",
    ] {
        let (status, answer) = api.get(path, JSON);
        assert_eq!(status, 200, "{path}");
        mark.assert_absent(path, &answer);
        issued.assert_absent(path, &answer);
        if path != "/api/v1/configmaps" {
            map_mark.assert_absent(path, &answer);
        }
    }
    let log = coffer.log();
    // The log is as fine as it gets, and libraries write into it too.
    assert!(log.contains("TRACE") && log.contains("DEBUG") && log.len() > 10_000, "{} bytes", log.len());
    coffer.end();
    mark.assert_absent("the log", coffer.log());
    issued.assert_absent("the log", coffer.log());
    map_mark.assert_absent("the log", coffer.log());
    Mark::new(MARK).assert_in_no_file(coffer.directory());
}

#[test]
fn s17_files_with_marks_are_told_nowhere() {
    let directory = tempfile::tempdir().expect("a directory");
    files(&Mark::new(MARK), directory.path());
}

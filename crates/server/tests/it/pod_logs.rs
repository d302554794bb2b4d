//! Logs of containers, as a kubelet on a socket of its own tells them.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use coffer_server::kubelet::Kubelets;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Client, server, server_with_kubelets};

/// Starts a kubelet that takes clients of its own authority only, and gives its port and a client of it.
async fn kubelet() -> (u16, Kubelets) {
    let key = KeyPair::generate().expect("a key");
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = parameters.self_signed(&key).expect("a certificate");
    let issuer = Issuer::new(parameters, key);
    let certificate = |names: &[&str]| {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let parameters = CertificateParams::new(names).expect("names");
        (parameters.signed_by(&key, &issuer).expect("a certificate"), key)
    };
    let (own, own_key) = certificate(&["127.0.0.1"]);
    let (client, client_key) = certificate(&["client"]);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(vec![own.der().clone()], PrivatePkcs8KeyDer::from(own_key.serialize_der()).into())
        .expect("a configuration");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service =
                    hyper::service::service_fn(|request: http::Request<hyper::body::Incoming>| async move {
                        let path = request.uri().path_and_query().map_or("", |path| path.as_str()).to_owned();
                        let code = if path.contains("/waiting") { 400 } else { 200 };
                        let response =
                            http::Response::builder().status(code).body(Full::new(Bytes::from(path)));
                        Ok::<_, Infallible>(response.expect("a response"))
                    });
                let io = TokioIo::new(stream);
                let _served = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
            });
        }
    });
    let kubelets = Kubelets::new(
        client.pem().as_bytes(),
        client_key.serialize_pem().as_bytes(),
        authority.pem().as_bytes(),
        vec!["Hostname".to_owned(), "InternalIP".to_owned()],
    );
    (port, kubelets.expect("a client"))
}

#[tokio::test]
async fn logs_come_from_the_kubelet_of_the_pods_node() {
    let (port, kubelets) = kubelet().await;
    let api = server_with_kubelets(kubelets).await;
    let client = Client::new(&api);
    let status = |port: u16| json!({"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}});
    for (name, port) in [("n", port), ("gone", 1)] {
        let made = client.post("/api/v1/nodes", &json!({"metadata": {"name": name}}).to_string()).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let url = format!("/api/v1/nodes/{name}/status");
        assert_eq!(client.patch(&url, "merge", &status(port).to_string()).await.code, 200);
    }
    const PODS: &str = "/api/v1/namespaces/default/pods";
    for (name, node) in [("p", "n"), ("unbound", ""), ("q", "gone")] {
        let containers = json!([{"name": "c", "image": "i"}, {"name": "waiting", "image": "i"}]);
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": containers}});
        let made = client.post(PODS, &pod.to_string()).await;
        assert_eq!(made.code, 201, "{}", made.text);
    }
    for (url, code, expected) in [
        ("p/log?container=c&tailLines=3", 200, "/containerLogs/default/p/c?tailLines=3"),
        ("p/log?container=waiting", 400, "/containerLogs/default/p/waiting"),
        ("p/log", 400, "a container name must be specified for pod p, choose one of: [c waiting]"),
        ("p/log?container=x", 400, "container x is not valid for pod p"),
        (
            "p/log?container=c&tailLines=-1",
            422,
            "tailLines: Invalid value: -1: must be greater than or equal to 0",
        ),
        ("unbound/log?container=c", 200, ""),
        ("none/log", 404, "pods \"none\" not found"),
        ("q/log?container=c", 500, "Get \"https://127.0.0.1:1/containerLogs/default/q/c\": "),
    ] {
        let answer = client.get(&format!("{PODS}/{url}")).await;
        assert_eq!(answer.code, code, "{url}: {}", answer.text);
        if code == 200 {
            assert_eq!(answer.text, expected, "{url}");
            assert_eq!(answer.header("content-type"), "text/plain");
        } else {
            let json = answer.json();
            let message = json["message"].as_str().unwrap_or_default();
            assert!(message.contains(expected), "{url}: {message}");
        }
    }
    let listed = |answer: &serde_json::Value| {
        answer["resources"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "pods/log"))
    };
    assert!(listed(&client.get("/api/v1").await.json()));
    // Without a certificate for kubelets there is nothing to ask.
    let api = server().await;
    let client = Client::new(&api);
    assert!(!listed(&client.get("/api/v1").await.json()));
    assert_eq!(client.get(&format!("{PODS}/p/log")).await.code, 404);
}

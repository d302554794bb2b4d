//! Rules in CEL that nest as deep as they may, and deeper: the server answers and goes on.

use coffer_sim::peers::Process;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use super::fixture::{Fixture, coffer};

fn definition(name: &str, rule: &str) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": rule}]}},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{name}s.deep.example.com")},
        "spec": {
            "group": "deep.example.com",
            "scope": "Namespaced",
            "names": {"plural": format!("{name}s"), "kind": name.to_uppercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

async fn post(client: &Client, definition: &Value) -> u16 {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(definition.to_string().into_bytes()).expect("a request");
    match client.request::<Value>(request).await {
        Ok(_) => 201,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{}: {error}", definition["metadata"]["name"]),
    }
}

#[test]
fn rules_that_nest_deep_do_not_end_the_server() {
    let fixture = Fixture::new();
    let arguments = ["up", "--data-dir", "data", "--listen", "127.0.0.1:0"];
    let mut up = Process::start("up", coffer(fixture.path()).args(arguments), fixture.path());
    let log = fixture.path().join("up.log");
    up.wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("is up")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(fixture.path().join("data/kubeconfig")).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("a configuration")).expect("a client");
        for (depth, accepted) in [(40, true), (240, true), (300, false), (100_000, false)] {
            for (name, open, middle, close) in [
                ("paren", "(", "true", ")"),
                ("not", "!(", "true", ")"),
                ("choice", "true ? (", "true", ") : false"),
                ("list", "[", "true", "]"),
                ("call", "[true].all(x, ", "true", ")"),
            ] {
                let rule = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
                let rule = if name == "list" { format!("{rule}.size() == 1") } else { rule };
                let code = post(&client, &definition(&format!("{name}{depth}"), &rule)).await;
                assert!(code == 422 || accepted && code == 201, "{name} {depth}: {code}");
                assert!(name != "paren" || depth > 40 || code == 201, "{name} {depth}: {code}");
            }
        }
    });
}

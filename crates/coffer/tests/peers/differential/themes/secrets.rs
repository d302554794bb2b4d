//! What only Secrets have: types, keys, base64 and immutability. The values are these texts and nothing else.

use serde_json::{Value, json};

use super::super::request::{JSON, MERGE, PATCH, STRATEGIC, Theme, YAML};

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("secretrules");
    let all = "/api/v1/namespaces/$NS/secrets";
    let create = format!("{all}?dryRun=All");
    let object = |content: Value| {
        let mut object = content;
        object["metadata"] = json!({ "name": "n" });
        object
    };
    for key in ["a", "", ".", "..", "..a", ".a", "a/b", "a b", "A_.-9", "ü"] {
        theme.post(&create, object(json!({ "data": { key: "" } })));
    }
    theme.post(&create, object(json!({ "data": { "x".repeat(254): "" } })));
    for value in [
        json!(""),
        json!("MQ=="),
        json!("MQ"),
        json!("MQ="),
        json!("MR=="),
        json!("M\nQ=="),
        json!("M Q=="),
        json!("-_-_"),
        json!("!"),
        json!(null),
        json!(1),
        json!(true),
        json!(["MQ=="]),
        json!({ "a": "b" }),
    ] {
        theme.post(&create, object(json!({ "data": { "k": value } })));
        theme.post(&create, object(json!({ "stringData": { "k": value } })));
    }
    for (kind, data) in [
        ("", json!({})),
        ("example.com/own", json!({ "a": "b" })),
        ("kubernetes.io/tls", json!({})),
        ("kubernetes.io/tls", json!({ "tls.crt": "x" })),
        ("kubernetes.io/tls", json!({ "tls.crt": "x", "tls.key": "y" })),
        ("kubernetes.io/tls", json!({ "tls.crt": "", "tls.key": "" })),
        ("kubernetes.io/dockercfg", json!({})),
        ("kubernetes.io/dockercfg", json!({ ".dockercfg": "{}" })),
        ("kubernetes.io/dockercfg", json!({ ".dockercfg": "[]" })),
        ("kubernetes.io/dockerconfigjson", json!({ ".dockerconfigjson": "{}" })),
        ("kubernetes.io/dockerconfigjson", json!({ ".dockerconfigjson": "null" })),
        ("kubernetes.io/dockerconfigjson", json!({ ".dockerconfigjson": "" })),
        ("kubernetes.io/dockerconfigjson", json!({ ".dockerconfigjson": "{} x" })),
        ("kubernetes.io/dockerconfigjson", json!({ ".dockerconfigjson": "x" })),
        ("kubernetes.io/basic-auth", json!({})),
        ("kubernetes.io/basic-auth", json!({ "username": "" })),
        ("kubernetes.io/ssh-auth", json!({})),
        ("kubernetes.io/ssh-auth", json!({ "ssh-privatekey": "" })),
        ("kubernetes.io/ssh-auth", json!({ "ssh-privatekey": "x" })),
        ("kubernetes.io/service-account-token", json!({})),
        ("bootstrap.kubernetes.io/token", json!({ "token-id": "?" })),
    ] {
        theme.post(&create, object(json!({ "type": kind, "stringData": data })));
    }
    theme.post(&create, json!({ "type": "kubernetes.io/service-account-token", "metadata": { "name": "n", "annotations": { "kubernetes.io/service-account.name": "none" } } }));
    theme.post(&create, object(json!({ "data": { "a": "MQ==" }, "stringData": { "a": "2", "b": "" } })));
    theme.post(&create, object(json!({ "stringData": [] })));
    theme.post(&create, object(json!({ "data": "x" })));
    theme.post(&create, object(json!({ "type": 1 })));
    theme.post(&create, object(json!({ "immutable": "x" })));
    theme.post(&create, object(json!({ "stringData": { "big": "x".repeat(1_048_577) } })));
    theme.post(&create, object(json!({ "stringData": { "big": "x".repeat(1_048_576) } }))).head_only();
    theme.post(&create, "metadata: {name: n}\nstringData: {a: yes}\n").sent_as(YAML);
    theme.post(&create, "metadata: {name: n}\nstringData: {a: 1}\n").sent_as(YAML);
    theme.post(&create, "metadata: {name: n}\ndata: {a: !!binary MQ==}\n").sent_as(YAML);
    theme.post(&create, "metadata: {name: n}\ndata: {a: MQ==\n").sent_as(YAML);
    changes(&mut theme, all);
    theme
}

fn changes(theme: &mut Theme, all: &str) {
    let one = format!("{all}/s");
    theme.post(all, json!({ "metadata": { "name": "s" }, "data": { "a": "MQ==", "b": "Mg==" } }));
    theme.patch(&one, MERGE, r#"{"stringData":{"a":"3","c":"4"}}"#);
    theme.patch(&one, MERGE, r#"{"stringData":{"a":null}}"#);
    theme.patch(&one, MERGE, r#"{"data":{"a":null}}"#);
    theme.patch(&one, MERGE, r#"{"data":{"b":"!"}}"#);
    theme.patch(&one, MERGE, r#"{"data":{"b":1}}"#);
    theme.patch(&one, MERGE, r#"{"data":{"bad key":"MQ=="}}"#);
    theme.patch(&one, MERGE, r#"{"data":null}"#);
    theme.patch(&one, PATCH, r#"[{"op":"add","path":"/data","value":{"x":"MQ=="}}]"#);
    theme.patch(&one, PATCH, r#"[{"op":"add","path":"/stringData/k","value":"v"}]"#);
    theme.patch(&one, PATCH, r#"[{"op":"add","path":"/stringData","value":{"k":"v"}}]"#);
    theme.patch(&one, PATCH, r#"[{"op":"replace","path":"/data/x","value":"!"}]"#);
    theme.patch(&one, STRATEGIC, r#"{"data":{"$patch":"replace","y":"MQ=="}}"#);
    theme.patch(&one, STRATEGIC, r#"{"data":{"$patch":"delete"}}"#);
    theme.patch(&one, STRATEGIC, r#"{"data":{"$patch":"odd"}}"#);
    theme.patch(&one, STRATEGIC, r#"{"data":[]}"#);
    theme.patch(&one, MERGE, r#"{"type":"other"}"#);
    theme.put(&one, json!({ "metadata": { "name": "s" }, "stringData": { "a": "1" } }));
    theme.put(&one, json!({ "metadata": { "name": "s" }, "stringData": { "a": "1" } }));
    theme.put(&one, json!({ "metadata": { "name": "s" }, "type": "other" }));
    theme.put(&one, json!({ "metadata": { "name": "s" }, "data": { "a": "!" } }));
    theme.patch(&one, MERGE, r#"{"immutable":true,"data":{"z":"MQ=="}}"#);
    theme.patch(&one, MERGE, r#"{"data":{"z":"Mg=="}}"#);
    theme.patch(&one, MERGE, r#"{"immutable":null}"#);
    theme.patch(&one, MERGE, r#"{"immutable":false,"data":{"z":"Mg=="}}"#);
    theme.patch(&one, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#);
    theme.put(&one, json!({ "metadata": { "name": "s" } }));
    theme.get(&format!("{all}?fieldSelector=type%3DOpaque"));
    theme.get(&format!("{all}?fieldSelector=type!%3DOpaque"));
    theme.get(&format!("{all}?fieldSelector=type%3DOpaque,metadata.name%3Ds"));
    theme.get(&format!("{all}?fieldSelector=data.a%3DMQ"));
    let typed = format!("{all}/typed");
    theme.post(all, json!({ "metadata": { "name": "typed" }, "type": "kubernetes.io/basic-auth", "stringData": { "username": "u" } }));
    theme.put(&typed, json!({ "metadata": { "name": "typed" }, "stringData": { "username": "v" } }));
    theme.patch(&typed, MERGE, r#"{"stringData":{"password":"p"}}"#);
    theme.patch(&typed, MERGE, r#"{"data":null}"#);
    theme.patch(&typed, JSON, "{}");
    theme.delete(&one);
    theme.delete(&typed);
}

//! What is written down about requests, and what those get who say nothing about themselves.

use std::sync::Arc;

use coffer_runtime::clock::SystemClock;
use coffer_server::api::Route;
use serde_json::Value;

use crate::support::{ADMIN_TOKEN, Client, Log, secured, secured_with};
use crate::wire_client::{Listening, listening};

#[tokio::test]
async fn s35_records_of_requests_name_who_vouched_for_the_user() {
    let listening = listening(secured().await).await;
    let admin = Client::in_groups(&listening.api, "root", &["system:masters"]);
    let url = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = admin.post(url, r#"{"spec":{}}"#).await.json()["status"]["token"].clone();
    let token = token.as_str().expect("a token");
    let log = Log::start();
    let robot = "system:serviceaccount:default:default";
    for (id, headers, user, authenticator, acting_as) in [
        ("none", String::new(), "system:anonymous", "anonymous", ""),
        ("file", format!("authorization: Bearer {ADMIN_TOKEN}\r\n"), "admin", "token-file", ""),
        ("robot", format!("authorization: Bearer {token}\r\n"), robot, "service-account-token", ""),
        (
            "other",
            format!("authorization: Bearer {ADMIN_TOKEN}\r\nimpersonate-user: ann\r\n"),
            "admin",
            "token-file",
            "ann",
        ),
        ("bad", "authorization: Bearer nonsense\r\n".to_owned(), "", "", ""),
    ] {
        let request = format!(
            "GET /api/v1/secrets HTTP/1.1\r\nhost: x\r\naudit-id: {id}\r\n{headers}connection: close\r\n\r\n"
        );
        listening.ask(&request).await;
        let record = log
            .lines()
            .into_iter()
            .map(|line| line["fields"].clone())
            .find(|fields| fields["message"] == "request" && fields["audit_id"] == id)
            .unwrap_or_else(|| panic!("no record of {id}"));
        assert_eq!(
            (&record["user"], &record["authenticator"], &record["acting_as"]),
            (&user.into(), &authenticator.into(), &acting_as.into()),
            "{id}"
        );
        let text = log.text();
        assert!(!text.contains(token) && !text.contains(ADMIN_TOKEN), "a token is in the log");
    }
}

/// Status code of a request without credentials.
async fn anonymous(listening: &Listening, method: &str, path: &str) -> u16 {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let answer = listening.ask(&request).await;
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s37_without_credentials_there_is_health_and_version_only() {
    let keys = Route::fixed("/openid/v1/jwks", "application/json", "public", b"{}".to_vec());
    let listening = listening(secured_with(Arc::new(SystemClock::new()), vec![keys]).await).await;
    let admin = Client::in_groups(&listening.api, "root", &["system:masters"]);
    let mut paths: Vec<String> = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for path in admin.get("/").await.json()["paths"].as_array().expect("paths") {
        paths.push(text(path));
    }
    let versions: Vec<String> = paths
        .iter()
        .filter(|path| {
            path.as_str() == "/api/v1" || path.matches('/').count() == 3 && path.starts_with("/apis/")
        })
        .cloned()
        .collect();
    for version in &versions {
        let resources = admin.get(version).await.json();
        for resource in resources["resources"].as_array().unwrap_or_else(|| panic!("{version}")) {
            let name = text(&resource["name"]);
            let scope = if resource["namespaced"] == true { "/namespaces/default" } else { "" };
            match name.split_once('/') {
                Some((plural, subresource)) => {
                    paths.push(format!("{version}{scope}/{plural}/x/{subresource}"))
                }
                None => paths.extend([format!("{version}/{name}"), format!("{version}{scope}/{name}/x")]),
            }
        }
    }
    for document in admin.get("/openapi/v3").await.json()["paths"].as_object().expect("paths").values() {
        paths.push(text(&document["serverRelativeURL"]));
    }
    paths.push("/".to_owned());
    assert!(60 < paths.len(), "{paths:?}");
    for path in ["/metrics", "/openapi/v2", "/openid/v1/jwks", "/api/v1/namespaces/default/secrets/x"] {
        assert!(paths.iter().any(|found| found == path), "{path} is walked");
    }
    for path in paths {
        // `system:public-info-viewer` of the bootstrap policy: the endpoints, not the checks below them.
        let open = ["/healthz", "/livez", "/readyz", "/version"].contains(&path.as_str());
        assert_eq!(anonymous(&listening, "GET", &path).await, if open { 200 } else { 403 }, "{path}");
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            assert_eq!(anonymous(&listening, method, &path).await, 403, "{method} {path}");
        }
    }
}

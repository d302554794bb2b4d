//! HTTP itself: methods, paths, queries, sizes.

use serde_json::json;

use super::super::request::{MERGE, Theme};

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("transport");
    let all = "/api/v1/namespaces/$NS/configmaps";
    theme.post(all, json!({ "metadata": { "name": "c" } }));
    for method in ["HEAD", "OPTIONS", "TRACE", "LINK", "get", "PROPFIND"] {
        for path in
            ["/api/v1/namespaces/$NS/configmaps/c", all, "/api", "/apis", "/version", "/healthz", "/nothing"]
        {
            theme.other(method, path);
        }
    }
    for path in [
        "/api",
        "/apis",
        "/api/v1",
        "/apis/coordination.k8s.io",
        "/apis/coordination.k8s.io/v1",
        "/version",
        "/healthz",
        "/livez",
        "/readyz",
        "/nothing",
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
    ] {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            theme.other(method, path);
        }
    }
    for path in ["/openapi/v3", "/openapi/v2", "/", "/metrics"] {
        theme.other("POST", path).head_only();
    }
    for path in [
        "/api/",
        "/apis/",
        "/api/v1/",
        "/version/",
        "/healthz/",
        "/healthz/ping",
        "/healthz/nothing",
        "/livez/ping",
        "/readyz/ping",
        "/healthz?verbose=x&exclude=none",
        "/livez?exclude=ping",
        "/nothing",
        "/nothing/",
        "/api/v1/nothing",
        "/api/v1/namespaces/$NS/nothing",
        "/api/v1/namespaces/$NS/nothing/x",
        "/api/v1/namespaces/$NS/configmaps/",
        "/api/v1/namespaces/$NS/configmaps/c/",
        "/api/v1/namespaces/$NS/configmaps//c",
        "/api/v1/namespaces/$NS//configmaps/c",
        "/api/v1//namespaces/$NS/configmaps/c",
        "//api/v1/namespaces/$NS/configmaps/c",
        "/api//v1/namespaces/$NS/configmaps/c",
        "/api/v1/namespaces//configmaps/c",
        "/api/v1/namespaces/%20/configmaps/c",
        "/api/v1/namespaces/$NS/configmaps/%63",
        "/api/v1/namespaces/$NS/configmaps/c%2Fd",
        "/api/v1/namespaces/$NS%2Fconfigmaps/c",
        "/api/v1/namespaces/$NS/configmaps/..%2Fsecrets",
        "/api/v1/namespaces/$NS/configmaps/../configmaps/c",
        "/api/v1/namespaces/$NS/configmaps/./c",
        "/api/v1/namespaces/$NS/configmaps/..",
        "/api/v1/namespaces/$NS/configmaps/.",
        "/api/v1/namespaces/../configmaps/c",
        "/api/v1/namespaces/$NS/configmaps/c%00",
        "/api/v1/namespaces/$NS/configmaps/c%0a",
        "/api/v1/namespaces/$NS/configmaps/c%25",
        "/api/v1/namespaces/$NS/configmaps/c%",
        "/api/v1/namespaces/$NS/configmaps/%zz",
        "/api/v1/namespaces/$NS/configmaps/c;x",
        "/api/v1/namespaces/$NS/configmaps/c+d",
        "/api/v1/namespaces/$NS/CONFIGMAPS/c",
        "/API/v1/namespaces/$NS/configmaps/c",
        "/api/V1/namespaces/$NS/configmaps/c",
        "/api/v1/namespaces/$NS/configmap/c",
        "/api/v1/namespaces/$NS/configmaps/c/x/y",
        "/api/v1/namespaces/$NS/configmaps/c/status/y",
        "/api/v1/configmaps/$NS/c",
        "/api/v1/secret",
        "/api/v2/namespaces",
        "/api/v2",
        "/apis/v1",
        "/apis/v1/namespaces",
        "/apis/nothing.example.com",
        "/apis/nothing.example.com/v1",
        "/apis/nothing.example.com/v1/things",
        "/apis/coordination.k8s.io/v9",
        "/apis/coordination.k8s.io/v9/leases",
        "/apis/coordination.k8s.io/v1/nothing",
        "/apis/coordination.k8s.io/v1/secrets",
        "/apis/core/v1/secrets",
        "/api/v1/namespaces/$NS/nodes",
        "/api/v1/nodes/none/status/x",
        "/api/v1/namespaces/$NS/namespaces",
        "/api/v1/watch",
        "/api/v1/watch/",
        "/api/v1/watch/nothing",
        "/api/v1/watch/namespaces/$NS/configmaps/none?timeoutSeconds=1",
        "/api/v1/proxy/namespaces/$NS/pods/x",
        "/api/v1/namespaces/$NS/pods/x/log",
        "/index.html",
        "/favicon.ico",
        "/swagger.json",
        "/ui",
    ] {
        theme.get(path);
    }
    for (method, path) in [
        ("POST", "/api/v1/namespaces/$NS/configmaps/c"),
        ("PUT", "/api/v1/namespaces/$NS/configmaps"),
        ("PATCH", "/api/v1/namespaces/$NS/configmaps"),
        ("DELETE", "/api/v1/namespaces/$NS/nothing"),
        ("POST", "/api/v1/nothing"),
        ("POST", "/apis/authentication.k8s.io/v1/nothing"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("PUT", "/apis/authentication.k8s.io/v1/tokenreviews/x"),
        ("DELETE", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
    ] {
        theme.other(method, path);
    }
    sizes(&mut theme, all);
    theme
}

fn sizes(theme: &mut Theme, all: &str) {
    let create = format!("{all}?dryRun=All");
    let sized = |size: usize| json!({ "metadata": { "name": "big" }, "data": { "a": "x".repeat(size) } });
    theme.post(&create, sized(1_000_000)).head_only();
    theme.post(&create, sized(1_048_577));
    theme.post(all, sized(1_048_570)).head_only();
    theme.get(&format!("{all}/big")).header("accept-encoding", "gzip").head_only();
    theme
        .get(&format!("{all}/big"))
        .header("accept-encoding", "gzip, deflate")
        .accept("application/yaml")
        .head_only();
    theme.get(&format!("{all}/big")).header("accept-encoding", "br").head_only();
    theme.get(&format!("{all}/c")).header("accept-encoding", "gzip");
    theme.post(&create, "x".repeat(3 * 1024 * 1024 + 1));
    theme.post(&create, " ".repeat(3 * 1024 * 1024));
    theme.patch(&format!("{all}/c"), MERGE, "x".repeat(3 * 1024 * 1024 + 1));
    theme.post(&create, "[".repeat(2000));
    theme
        .post(
            &create,
            format!("{{\"metadata\":{{\"name\":\"n\"}},\"odd\":{}{}}}", "[".repeat(400), "]".repeat(400)),
        )
        .head_only();
    theme.patch(&format!("{all}/c"), MERGE, sized(1_048_577));
    theme.delete(&format!("{all}/big"));
    let long = "x".repeat(5000);
    theme.get(&format!("{all}?labelSelector={long}")).head_only();
    theme.get(&format!("/{long}")).head_only();
    theme.get(&format!("{all}/{long}"));
}

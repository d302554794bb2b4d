//! What tells of the API itself. Coffer serves fewer kinds: lists are compared in what both name.

use super::super::request::{PROTOBUF, Theme, YAML};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("discovery");
    theme.get("/api");
    theme.get("/api").accept(YAML);
    theme.get("/api").accept(PROTOBUF);
    theme.get("/apis").common();
    for path in [
        "/api/v1",
        "/apis/coordination.k8s.io",
        "/apis/coordination.k8s.io/v1",
        "/apis/rbac.authorization.k8s.io",
        "/apis/rbac.authorization.k8s.io/v1",
        "/apis/apiextensions.k8s.io",
        "/apis/apiextensions.k8s.io/v1",
        "/apis/authentication.k8s.io",
        "/apis/authentication.k8s.io/v1",
        "/apis/authorization.k8s.io",
        "/apis/authorization.k8s.io/v1",
        "/apis/events.k8s.io",
        "/apis/events.k8s.io/v1",
    ] {
        theme.get(path).common();
        theme.get(path).accept("application/json;charset=utf-8").common();
        theme.get(path).accept("text/html");
        theme.get(path).accept("application/cbor");
        theme.get(&format!("{path}?pretty=1")).common();
        theme.get(path).accept(PROTOBUF).head_only();
        theme.get(path).accept(YAML).head_only();
    }
    for path in ["/api", "/apis"] {
        theme.get(path).accept(AGGREGATED).common();
        theme
            .get(path)
            .accept("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")
            .common();
        theme.get(path).accept("application/json;g=apidiscovery.k8s.io;v=v2;as=Odd").common();
        theme.get(path).accept(&format!("{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json")).common();
        theme.get(path).accept(&format!("{AGGREGATED};profile=nopeer")).common();
        theme
            .get(path)
            .accept("application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
            .head_only();
        theme
            .get(path)
            .accept("application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
            .head_only();
        theme.get(path).accept("text/html");
        theme.get(path).accept("application/cbor");
        theme.get(path).accept("*/*").common();
        theme.get(path).accept(AGGREGATED).header("if-none-match", "\"other\"").common();
        theme.get(path).accept(AGGREGATED).header("accept-encoding", "gzip").head_only();
        theme.get(&format!("{path}?pretty=1")).common();
    }
    theme.get("/openapi/v3").head_only();
    theme.get("/openapi/v3").accept("text/html").head_only();
    theme.get("/openapi/v3/nothing");
    theme.get("/openapi/v3/api/v9");
    theme.get("/openapi/v3/api/v1").head_only();
    theme.get("/openapi/v3/api/v1").keep("core").head_only();
    theme.get("/openapi/v3/api/v1").header("if-none-match", "<<core@etag>>").head_only();
    theme.get("/openapi/v3/api/v1?hash=00").head_only();
    theme.get("/openapi/v3/api/v1").accept("text/html").head_only();
    theme.get("/openapi/v3/api/v1").accept(YAML).head_only();
    theme
        .get("/openapi/v3/api/v1")
        .accept("application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
        .head_only();
    theme.get("/openapi/v3/apis/coordination.k8s.io/v1").accept("*/*").head_only();
    theme.get("/openapi/v2").head_only();
    theme.get("/openapi/v2").accept("text/html").head_only();
    theme.get("/openapi/v2").accept("application/com.github.proto-openapi.spec.v2@v1.0+protobuf").head_only();
    theme.get("/version").head_only();
    theme.get("/version").accept("text/html").head_only();
    theme.get("/.well-known/openid-configuration");
    theme.get("/.well-known/openid-configuration").accept("text/html");
    theme.get("/openid/v1/jwks").head_only();
    theme.get("/healthz");
    theme.get("/livez").accept("text/html");
    theme.get("/readyz").accept("application/json");
    theme.get("/").head_only();
    theme
}

//! Reading one object: versions, media types and the forms of answers.

use serde_json::json;

use super::super::request::{TABLE, Theme};

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("reads");
    let all = "/api/v1/namespaces/$NS/configmaps";
    let one = format!("{all}/c");
    theme.post(all, json!({ "metadata": { "name": "c", "labels": { "l": "<v>".replace(['<', '>'], "") } }, "data": { "a": "<&>é" } })).keep("c");
    for query in [
        "resourceVersion=",
        "resourceVersion=0",
        "resourceVersion=1",
        "resourceVersion=<<c/metadata/resourceVersion>>",
        "resourceVersion=x",
        "resourceVersion=-1",
        "resourceVersion=1.5",
        "resourceVersion=99999999999",
        "resourceVersion=99999999999999999999999",
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "pretty=1",
        "pretty=true",
        "pretty=false",
        "pretty=",
        "pretty=x",
        "bogus=1",
        "export=true",
        "exact=true",
        "timeout=5s",
        "timeout=x",
        "timeoutSeconds=5",
        "labelSelector=x%3Dy",
        "fieldSelector=metadata.name%3Dother",
        "watch=1&timeoutSeconds=1",
        "limit=1",
        "limit=x",
        "dryRun=All",
        "includeObject=x",
    ] {
        theme.get(&format!("{one}?{query}"));
    }
    for accept in [
        "",
        "*/*",
        "*",
        "application/*",
        "text/*",
        "application/json, text/html",
        "text/html, application/json",
        "text/html;q=1, application/yaml;q=0.9, application/json;q=0.8",
        "application/json;q=0.1, application/yaml",
        "application/json;q=0",
        "application/json;q=x",
        "application/json;q=2",
        "APPLICATION/JSON",
        "application/json;charset=utf-8",
        "application/json;pretty=1",
        "application/json;pretty=0",
        "application/yaml;pretty=1",
        "application/json;stream=watch",
        "application/json;as=Table",
        "application/json;as=Table;g=meta.k8s.io",
        "application/json;as=Table;v=v1",
        "application/json;as=Table;v=v1;g=other",
        "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
        "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
        "application/json;as=",
        "application/json;v=v1",
        "application/json;bogus=1",
        "application/json;sv=1",
        "application/xml;as=Table;v=v1;g=meta.k8s.io, application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=Odd;v=v1;g=meta.k8s.io, application/yaml",
        "application/vnd.kubernetes.protobuf;q=0.5, application/yaml;q=0.6",
        "application/json-seq",
        "application/merge-patch+json",
        "text/plain",
        "garbage",
        "application/json, garbage",
        ";",
        ",",
        "image/png, */*;q=0.8",
    ] {
        theme.get(&one).accept(accept);
        theme.get(&format!("{all}?labelSelector=l")).accept(accept);
    }
    for query in [
        "includeObject=None",
        "includeObject=Metadata",
        "includeObject=Object",
        "includeObject=",
        "includeObject=none",
        "includeObject=Object&pretty=1",
    ] {
        theme.get(&format!("{one}?{query}")).accept(TABLE);
        theme.get(&format!("{all}?labelSelector=l&{query}")).accept(TABLE);
    }
    for agent in
        ["curl/8.0", "Wget/1", "Mozilla/5.0 (X11)", "mozilla/5.0", "kubectl/v1.37", "Go-http-client/1.1"]
    {
        theme.get(&one).header("user-agent", agent);
    }
    theme.get(&one).header("user-agent", "curl/8.0").accept("application/yaml");
    theme.get(&format!("{one}?pretty=false")).header("user-agent", "curl/8.0");
    theme.get(&one).header("audit-id", "my-own-id");
    theme.get(&one).header("accept-encoding", "gzip");
    theme.get(&one).header("origin", "https://example.com");
    theme.get(&one).header("if-none-match", "\"x\"");
    theme.get(&one).header("range", "bytes=0-5");
    theme.get(&format!("{all}/missing")).accept(TABLE);
    theme.get(&format!("{all}/missing")).accept("application/vnd.kubernetes.protobuf");
    theme.get(&format!("{all}/missing")).accept("application/yaml");
    theme.get(&format!("{all}/missing")).accept("text/html");
    theme.get("/api/v1/namespaces/nowhere/configmaps/c");
    theme.get("/api/v1/namespaces/nowhere/configmaps");
    theme.get("/api/v1/configmaps/c");
    theme
}

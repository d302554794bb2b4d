//! Who asks, and what they may: authentication, impersonation, RBAC and the reviews.

use serde_json::json;

use super::super::request::{JSON, MERGE, PROTOBUF, Request, TABLE, Theme, YAML};

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("access");
    nobody(&mut theme);
    roles(&mut theme);
    impersonation(&mut theme);
    escalation(&mut theme);
    reviews(&mut theme);
    tokens(&mut theme);
    theme
}

fn nobody(theme: &mut Theme) {
    for path in [
        "/api/v1/namespaces/$NS/secrets/s",
        "/api/v1/namespaces/$NS/secrets",
        "/api/v1/secrets",
        "/api/v1/namespaces/$NS/secrets?watch=1",
        "/api/v1/namespaces/$NS/secrets?fieldSelector=metadata.name%3Ds",
        "/api/v1/nodes/n",
        "/api/v1/namespaces/$NS",
        "/api/v1/namespaces/$NS/pods/p/log",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/nothing.example.com/v1/namespaces/$NS/things/t",
        "/api",
        "/apis",
        "/api/v1",
        "/version",
        "/healthz",
        "/livez",
        "/readyz",
        "/metrics",
        "/openapi/v3",
        "/",
        "/nothing",
        "/<b>&",
        "/.well-known/openid-configuration",
        "/api/v1/namespaces/%3Cb%3E/secrets",
    ] {
        let path = path.replace('<', "%3C").replace('>', "%3E");
        if path == "/version" {
            theme.get(&path).by_nobody().head_only();
        } else {
            theme.get(&path).by_nobody();
        }
    }
    theme.post("/api/v1/namespaces/$NS/secrets", json!({ "metadata": { "name": "s" } })).by_nobody();
    theme.put("/api/v1/namespaces/$NS/secrets/s", json!({})).by_nobody();
    theme.patch("/api/v1/namespaces/$NS/secrets/s", MERGE, "{}").by_nobody();
    theme.delete("/api/v1/namespaces/$NS/secrets/s").by_nobody();
    theme.delete("/api/v1/namespaces/$NS/secrets").by_nobody();
    theme.get("/api/v1/secrets").by_nobody().accept(YAML);
    theme.get("/api/v1/secrets").by_nobody().accept(PROTOBUF);
    theme.get("/api/v1/secrets").by_nobody().accept(TABLE);
    theme.get("/api/v1/secrets").by_nobody().accept("text/html");
    for authorization in [
        "Bearer nonsense",
        "bearer nonsense",
        "Bearer ",
        "Bearer",
        "Bearer  two spaces",
        "Bearer a b",
        "Basic YTpi",
        "Digest x",
        "nonsense",
        "",
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.",
        "Bearer eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMuY2x1c3Rlci5sb2NhbCJ9.AAAA",
        "Bearer abcdef.0123456789abcdef",
    ] {
        theme.get("/api/v1/secrets").by_nobody().header("authorization", authorization);
    }
    theme.get("/version").by_nobody().header("authorization", "Bearer nonsense").head_only();
    theme.get("/healthz").by_nobody().header("authorization", "Bearer nonsense");
    theme.get("/api/v1/secrets").by_nobody().header("authorization", "Bearer nonsense").accept(YAML);
    theme.get("/api/v1/secrets").by_nobody().header("x-remote-user", "admin");
}

fn roles(theme: &mut Theme) {
    let root = "/apis/rbac.authorization.k8s.io/v1/namespaces/$NS";
    theme.post(&format!("{root}/roles"), json!({
        "metadata": { "name": "reader" },
        "rules": [
            { "verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["only"] },
            { "verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"] },
            { "verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"] },
            { "verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"] },
        ],
    }));
    theme.post(
        &format!("{root}/rolebindings"),
        json!({
            "metadata": { "name": "reader" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
            "subjects": [
                { "kind": "User", "name": "alice" },
                { "kind": "Group", "name": "crew" },
                { "kind": "ServiceAccount", "name": "robot" },
            ],
        }),
    );
    theme.post(&format!("{root}/rolebindings"), json!({
        "metadata": { "name": "lost" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "differ-missing" },
        "subjects": [{ "kind": "User", "name": "carol" }],
    }));
    theme.post("/api/v1/namespaces/$NS/configmaps", json!({ "metadata": { "name": "only" } }));
    // Until both servers have seen the bindings.
    theme
        .get("/api/v1/namespaces/$NS/configmaps/only")
        .header("impersonate-user", "alice")
        .until("/metadata/name", "only");
    theme
        .get("/api/v1/namespaces/$NS/configmaps/only")
        .header("impersonate-user", "x")
        .header("impersonate-group", "crew")
        .until("/metadata/name", "only");
}

fn as_user<'a>(request: &'a mut Request, user: &str) -> &'a mut Request {
    request.header("impersonate-user", user)
}

fn impersonation(theme: &mut Theme) {
    let maps = "/api/v1/namespaces/$NS/configmaps";
    for user in [
        "alice",
        "bob",
        "carol",
        "system:serviceaccount:differ-access:robot",
        "system:serviceaccount:other:robot",
        "system:node:n",
        "system:anonymous",
        "a<b>&",
    ] {
        as_user(theme.get(&format!("{maps}/only")), user);
        as_user(theme.get(&format!("{maps}/other")), user);
        as_user(theme.get(maps), user);
        as_user(theme.get(&format!("{maps}?fieldSelector=metadata.name%3Donly")), user);
        as_user(theme.post(&format!("{maps}?dryRun=All"), json!({ "metadata": { "name": "n" } })), user);
        as_user(theme.delete(&format!("{maps}/only?dryRun=All")), user);
        as_user(theme.get("/api/v1/namespaces/$NS/pods/p/log"), user).head_only();
        as_user(theme.get("/api"), user);
    }
    as_user(theme.get(&format!("{maps}/only")), "x").header("impersonate-group", "crew");
    as_user(theme.get(&format!("{maps}/only")), "x")
        .header("impersonate-group", "other")
        .header("impersonate-group", "crew");
    as_user(theme.get("/api/v1/nodes?labelSelector=none"), "x").header("impersonate-group", "system:masters");
    as_user(theme.get(&format!("{maps}/only")), "alice")
        .header("impersonate-uid", "5")
        .header("impersonate-extra-scopes", "a");
    as_user(theme.get(&format!("{maps}/only")), "");
    theme.get(&format!("{maps}/only")).header("impersonate-group", "crew");
    theme.get(&format!("{maps}/only")).header("impersonate-uid", "5");
    theme.get(&format!("{maps}/only")).header("impersonate-extra-scopes", "a");
    as_user(theme.get(&format!("{maps}/only")), "alice").by_nobody();
    as_user(theme.get(&format!("{maps}/only")), "system:serviceaccount:x").by_nobody();
    as_user(theme.get(&format!("{maps}/only")), "alice")
        .by_nobody()
        .header("impersonate-group", "g")
        .header("impersonate-uid", "1")
        .header("impersonate-extra-a", "b");
    let whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    as_user(theme.post(whoami, "{}"), "alice")
        .header("impersonate-group", "b")
        .header("impersonate-group", "a")
        .header("impersonate-uid", "5")
        .header("impersonate-extra-scopes", "x")
        .header("impersonate-extra-Scopes%2fmore", "y");
    as_user(theme.post(whoami, "{}"), "system:serviceaccount:ns:robot");
    as_user(theme.post(whoami, "{}"), "system:anonymous");
}

fn escalation(theme: &mut Theme) {
    let root = "/apis/rbac.authorization.k8s.io/v1/namespaces/$NS";
    for rule in [
        json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"] }),
        json!({ "verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"] }),
        json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["only", "more"] }),
        json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }),
    ] {
        as_user(
            theme.post(
                &format!("{root}/roles?dryRun=All"),
                json!({ "metadata": { "name": "n" }, "rules": [rule] }),
            ),
            "alice",
        );
    }
    for (kind, name) in [("Role", "reader"), ("Role", "none"), ("ClusterRole", "cluster-admin")] {
        as_user(theme.post(&format!("{root}/rolebindings?dryRun=All"), json!({
            "metadata": { "name": "n" }, "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
            "subjects": [{ "kind": "User", "name": "bob" }],
        })), "alice").head_only();
    }
}

fn reviews(theme: &mut Theme) {
    let root = "/apis/authorization.k8s.io/v1";
    let resource = |verb: &str, resource: &str, name: &str| json!({ "verb": verb, "resource": resource, "namespace": "differ-access", "name": name });
    for spec in [
        json!({}),
        json!({ "user": "alice" }),
        json!({ "user": "alice", "resourceAttributes": resource("get", "configmaps", "only") }),
        json!({ "user": "alice", "resourceAttributes": resource("get", "configmaps", "other") }),
        json!({ "user": "x", "groups": ["crew"], "resourceAttributes": resource("get", "configmaps", "only") }),
        json!({ "groups": ["system:masters"], "resourceAttributes": resource("get", "secrets", "") }),
        json!({ "user": "carol", "resourceAttributes": resource("get", "secrets", "") }),
        json!({ "user": "alice", "resourceAttributes": { "verb": "get", "resource": "pods", "subresource": "log", "namespace": "differ-access" } }),
        json!({ "user": "alice", "resourceAttributes": {} }),
        json!({ "user": "alice", "nonResourceAttributes": { "path": "/healthz", "verb": "get" } }),
        json!({ "user": "alice", "groups": ["system:authenticated"], "nonResourceAttributes": { "path": "/openapi/v3", "verb": "get" } }),
        json!({ "user": "alice", "nonResourceAttributes": {}, "resourceAttributes": {} }),
        json!({ "resourceAttributes": resource("get", "secrets", "") }),
        json!({ "user": "alice", "resourceAttributes": { "verb": "list", "resource": "configmaps", "namespace": "differ-access", "fieldSelector": { "requirements": [{ "key": "metadata.name", "operator": "In", "values": ["only"] }] } } }),
        json!({ "user": "alice", "resourceAttributes": { "verb": "list", "resource": "configmaps", "fieldSelector": { "rawSelector": "metadata.name=only", "requirements": [{ "key": "a", "operator": "In", "values": ["b"] }] } } }),
        json!({ "user": "alice", "resourceAttributes": { "verb": "list", "resource": "configmaps", "labelSelector": { "requirements": [{ "key": "a", "operator": "Odd" }] } } }),
        json!({ "user": "alice", "uid": "5", "extra": { "a": ["b"] }, "resourceAttributes": resource("create", "configmaps", "") }),
        json!({ "user": 5 }),
        json!("x"),
    ] {
        for kind in
            ["subjectaccessreviews", "namespaces/$NS/localsubjectaccessreviews", "selfsubjectaccessreviews"]
        {
            theme.post(&format!("{root}/{kind}"), json!({ "spec": spec }));
        }
    }
    theme.post(&format!("{root}/subjectaccessreviews"), json!({ "metadata": { "name": "n" }, "spec": { "user": "alice", "resourceAttributes": resource("get", "secrets", "") } }));
    theme.post(&format!("{root}/namespaces/$NS/localsubjectaccessreviews"), json!({ "metadata": { "namespace": "other" }, "spec": { "user": "alice", "resourceAttributes": resource("get", "secrets", "") } }));
    theme.post(&format!("{root}/namespaces/$NS/localsubjectaccessreviews"), json!({ "spec": { "user": "alice", "resourceAttributes": { "verb": "get", "resource": "secrets", "namespace": "other" } } }));
    theme.post(&format!("{root}/namespaces/nowhere/localsubjectaccessreviews"), json!({ "spec": { "user": "alice", "resourceAttributes": { "verb": "get", "resource": "secrets", "namespace": "nowhere" } } }));
    theme.post(&format!("{root}/localsubjectaccessreviews"), json!({ "spec": {} }));
    for body in ["", "{", "[]", "null"] {
        theme.post(&format!("{root}/selfsubjectaccessreviews"), body);
    }
    for query in ["dryRun=All", "dryRun=x", "fieldManager=m", "fieldValidation=Strict"] {
        theme.post(
            &format!("{root}/selfsubjectaccessreviews?{query}"),
            json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "secrets" } }, "odd": 1 }),
        );
    }
    for accept in [YAML, PROTOBUF, TABLE, "text/html"] {
        theme
            .post(
                &format!("{root}/selfsubjectaccessreviews"),
                json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "secrets" } } }),
            )
            .accept(accept);
    }
    let rules = format!("{root}/selfsubjectrulesreviews");
    for spec in [
        json!({}),
        json!({ "namespace": "" }),
        json!({ "namespace": "differ-access" }),
        json!({ "namespace": "nowhere" }),
    ] {
        as_user(theme.post(&rules, json!({ "spec": spec })), "alice");
    }
    as_user(theme.post(&rules, json!({ "spec": { "namespace": "differ-access" } })), "carol");
    as_user(theme.post(&rules, json!({ "spec": { "namespace": "differ-access" } })), "x")
        .header("impersonate-group", "system:authenticated");
    theme.post(&rules, json!({ "spec": { "namespace": "differ-access" } }));
    theme.get(&rules);
    theme.patch(&rules, JSON, "{}");
}

fn tokens(theme: &mut Theme) {
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    for body in [
        json!({}),
        json!({ "spec": {} }),
        json!({ "spec": { "token": "" } }),
        json!({ "spec": { "token": "x" } }),
        json!({ "spec": { "token": "x", "audiences": ["a"] } }),
        json!({ "spec": { "token": 5 } }),
        json!({ "metadata": { "name": "n" }, "spec": { "token": "x" } }),
        json!({ "metadata": { "namespace": "n" }, "spec": { "token": "x" } }),
        json!({ "spec": { "token": "a.b.c" } }),
    ] {
        theme.post(reviews, body);
    }
    theme.post("/apis/authentication.k8s.io/v1/tokenreviews?dryRun=x", json!({ "spec": { "token": "x" } }));
    let accounts = "/api/v1/namespaces/$NS/serviceaccounts";
    theme.post(accounts, json!({ "metadata": { "name": "robot" } }));
    theme.post(&format!("{accounts}/robot/token"), json!({ "spec": {} })).keep("token");
    theme
        .post(&format!("{accounts}/robot/token"), json!({ "spec": { "audiences": ["elsewhere"] } }))
        .keep("foreign");
    theme.post(reviews, json!({ "spec": { "token": "<<token/status/token>>" } }));
    theme.post(reviews, json!({ "spec": { "token": "<<token/status/token>>", "audiences": ["elsewhere"] } }));
    theme.post(reviews, json!({ "spec": { "token": "<<foreign/status/token>>" } }));
    theme.post(
        reviews,
        json!({ "spec": { "token": "<<foreign/status/token>>", "audiences": ["elsewhere", "more"] } }),
    );
    theme.post(reviews, json!({ "spec": { "token": "<<token/status/token>>x" } }));
    let bearer = |request: &mut Request, token: &str| {
        request.by_nobody().header("authorization", format!("Bearer <<{token}/status/token>>"));
    };
    bearer(theme.get("/api/v1/namespaces/$NS/configmaps/only"), "token");
    bearer(theme.get("/api/v1/namespaces/$NS/configmaps/other"), "token");
    bearer(theme.get("/api/v1/namespaces/$NS/configmaps/only"), "foreign");
    bearer(theme.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}"), "token");
    bearer(theme.get("/.well-known/openid-configuration"), "token");
    theme.delete(&format!("{accounts}/robot"));
}

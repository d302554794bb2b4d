//! Lists: paging, versions and selectors.

use serde_json::json;

use super::super::request::{PARTIALS, TABLE, Theme};

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("collections");
    let all = "/api/v1/namespaces/$NS/secrets";
    for (index, (tier, color)) in
        [("front", "red"), ("front", "blue"), ("back", "red"), ("back", "green"), ("3", "red")]
            .iter()
            .enumerate()
    {
        theme.post(
            all,
            json!({
                "metadata": { "name": format!("s{index}"), "labels": { "tier": tier, "color": color } },
                "type": if index % 2 == 0 { "Opaque" } else { "example.com/odd" },
            }),
        );
    }
    theme.post(all, json!({ "metadata": { "name": "bare" } })).keep("last");
    selectors(&mut theme, all);
    paging(&mut theme, all);
    versions(&mut theme, all);
    theme
}

fn selectors(theme: &mut Theme, all: &str) {
    for selector in [
        "tier",
        "!tier",
        "tier=front",
        "tier==front",
        "tier!=front",
        "tier%3Dfront",
        "tier+in+(front,back)",
        "tier+notin+(front)",
        "tier+in+()",
        "tier+in+(,)",
        "tier+in+(front",
        "tier+in+front",
        "tier%3E2",
        "tier%3C4",
        "tier%3Ex",
        "tier%3E=2",
        "tier=front,color=red",
        "tier=front,,color=red",
        ",tier=front",
        "tier=front,",
        "tier=",
        "tier!=",
        "=front",
        "!",
        "!!tier",
        "!tier=front",
        "tier=front=back",
        "tier+front",
        "tier=a+b",
        "-tier=x",
        "tier=-x",
        "a/b/c=d",
        "example.com/tier",
        "tier=front%0A",
        "%C3%A9",
        "in+in+(in)",
        "notin",
        "tier+in+(a,b),color+notin+(red,green),!none",
        "tier%00",
        "tier=front|color=red",
        "tier=%22front%22",
        "+tier+=+front+,+color+",
    ] {
        theme.get(&format!("{all}?labelSelector={selector}"));
    }
    let long = "x".repeat(64);
    theme.get(&format!("{all}?labelSelector={long}"));
    theme.get(&format!("{all}?labelSelector=a%3D{long}"));
    for selector in [
        "metadata.name%3Ds1",
        "metadata.name%3D%3Ds1",
        "metadata.name!%3Ds1",
        "metadata.name%3Dmissing",
        "metadata.name%3D",
        "metadata.name%3DUPPER",
        "metadata.name%3Da/b",
        "metadata.name",
        "metadata.name%3Ds1,metadata.name%3Ds2",
        "metadata.name%3Ds1,type%3DOpaque",
        "metadata.name%3Ds1,metadata.namespace%3Dother",
        "metadata.namespace%3D$NS",
        "metadata.namespace%3Dother",
        "type%3DOpaque",
        "type!%3DOpaque",
        "type%3Dexample.com/odd",
        "type%3D",
        "metadata.uid%3Dx",
        "spec.nodeName%3Dx",
        "metadata.labels.tier%3Dx",
        "%3Dx",
        "type%3DOpaque,",
        ",type%3DOpaque",
        "type%3Da%5C,b",
        "type%3Da%5Cb",
        "type%3Da%5C",
        "type%3Da%3Db",
        "type%3EOpaque",
        "+type%3DOpaque",
    ] {
        theme.get(&format!("{all}?fieldSelector={selector}"));
    }
    theme.get(&format!("{all}?fieldSelector=type%3DOpaque&labelSelector=tier%3Dback"));
    theme.get(&format!("{all}?labelSelector=tier&labelSelector=color"));
    let root = "/api/v1/namespaces/$NS";
    for (plural, selector) in [
        ("configmaps", "type%3DOpaque"),
        ("pods", "spec.nodeName%3Dnone"),
        ("pods", "spec.nodeName!%3Dnone"),
        ("pods", "status.phase%3DPending"),
        ("pods", "spec.restartPolicy%3DAlways,spec.schedulerName%3Ddefault-scheduler"),
        ("pods", "spec.hostNetwork%3Dfalse"),
        ("pods", "status.podIP%3D1"),
        ("pods", "status.podIPs%3D1"),
        ("pods", "spec.serviceAccountName%3Ddefault"),
        ("pods", "status.nominatedNodeName%3D"),
        ("pods", "spec.containers%3Dx"),
        ("events", "involvedObject.kind%3DPod"),
        ("events", "involvedObject.bogus%3DPod"),
        ("events", "reason%3Dx,type%3Dy,source%3Dz"),
        ("events", "reportingComponent%3Dx"),
        ("serviceaccounts", "secrets%3Dx"),
    ] {
        theme.get(&format!("{root}/{plural}?fieldSelector={selector}"));
    }
    theme.get("/api/v1/namespaces?fieldSelector=status.phase%3DTerminating,metadata.name%3D$NS");
    theme.get("/api/v1/namespaces?fieldSelector=name%3D$NS");
    theme.get("/api/v1/namespaces?fieldSelector=spec.finalizers%3Dx");
    theme.get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue,metadata.name%3Dnone");
    theme.get("/api/v1/nodes?fieldSelector=spec.podCIDR%3Dx");
    theme.get("/apis/coordination.k8s.io/v1/namespaces/$NS/leases?fieldSelector=spec.holderIdentity%3Dx");
    theme.get("/apis/rbac.authorization.k8s.io/v1/namespaces/$NS/roles?fieldSelector=rules%3Dx");
    theme.get("/apis/events.k8s.io/v1/namespaces/$NS/events?fieldSelector=regarding.kind%3Dx");
    theme.get("/apis/events.k8s.io/v1/namespaces/$NS/events?fieldSelector=involvedObject.kind%3Dx");
    theme.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=spec.group%3Dx");
}

fn paging(theme: &mut Theme, all: &str) {
    theme.get(&format!("{all}?limit=2")).keep("p1");
    theme.get(&format!("{all}?limit=2&continue=<<p1/metadata/continue>>")).keep("p2");
    theme.get(&format!("{all}?limit=2&continue=<<p2/metadata/continue>>"));
    theme.get(&format!("{all}?continue=<<p1/metadata/continue>>"));
    theme.get(&format!("{all}?limit=1&labelSelector=color%3Dred")).keep("s1");
    theme.get(&format!("{all}?limit=5&labelSelector=color%3Dred&continue=<<s1/metadata/continue>>"));
    theme.get(&format!("{all}?limit=1&fieldSelector=type%3DOpaque"));
    theme.get(&format!("{all}?limit=1&fieldSelector=metadata.name%3Ds1"));
    theme.get(&format!("{all}?limit=2")).accept(TABLE).keep("t1");
    theme.get(&format!("{all}?limit=2&continue=<<t1/metadata/continue>>")).accept(TABLE);
    theme.get(&format!("{all}?limit=2")).accept(PARTIALS);
    theme.get(&format!("{all}?limit=2")).accept("application/vnd.kubernetes.protobuf").head_only();
    theme.get("/api/v1/namespaces/$NS/configmaps?limit=1&continue=<<p1/metadata/continue>>");
    theme.get(&format!("{all}?limit=2&resourceVersion=0"));
    theme.get(&format!("{all}?limit=2&resourceVersion=<<last/metadata/resourceVersion>>"));
    theme.get(&format!("{all}?limit=2&resourceVersion=0&continue=<<p1/metadata/continue>>"));
    theme.get(&format!("{all}?limit=2&resourceVersion=5&continue=<<p1/metadata/continue>>"));
    theme.get(&format!("{all}?limit=2&resourceVersionMatch=Exact&continue=<<p1/metadata/continue>>"));
    theme.get(&format!(
        "{all}?limit=2&resourceVersion=5&resourceVersionMatch=NotOlderThan&continue=<<p1/metadata/continue>>"
    ));
    for limit in ["0", "-1", "x", "1.5", "", "99999999999999999999", "6", "7"] {
        theme.get(&format!("{all}?limit={limit}"));
    }
    for token in [
        "",
        "x",
        "%20",
        "e30",
        // {"v":"meta.k8s.io/v1"} and its kin.
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NX0",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiczJcdTAwMDAifQ",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi94In0",
        "eyJ2IjoidjkiLCJydiI6NSwic3RhcnQiOiJ4In0",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6IngifQ",
        "eyJ2Ijoib",
    ] {
        theme.get(&format!("{all}?limit=2&continue={token}"));
    }
}

fn versions(theme: &mut Theme, all: &str) {
    for version in ["", "0", "<<last/metadata/resourceVersion>>", "99999999999", "x", "-1", "1.5", "0x1"] {
        for matching in ["", "Exact", "NotOlderThan", "Odd", "exact"] {
            theme.get(&format!(
                "{all}?resourceVersion={version}&resourceVersionMatch={matching}&labelSelector=tier"
            ));
        }
    }
    theme.get(&format!("{all}?resourceVersion=1&resourceVersionMatch=NotOlderThan"));
    for query in [
        "sendInitialEvents=true",
        "sendInitialEvents=false",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0",
        "allowWatchBookmarks=true",
        "watch=0",
        "watch=false",
        "timeoutSeconds=1",
        "timeoutSeconds=x",
        "timeoutSeconds=-1",
        "timeoutSeconds=0",
        "timeout=1s",
        "timeout=-1ns",
        "timeout=x",
        "includeUninitialized=true",
        "shardSelector=x",
        "bogus",
        "=",
        "&&",
        "labelSelector",
    ] {
        theme.get(&format!("{all}?{query}"));
    }
}

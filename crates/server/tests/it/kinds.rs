//! The kinds that other components expect: listed as upstream lists them, and written as it writes them.

use serde_json::{Value, json};

use crate::support::{Client, secured, server};

/// What upstream lists: one line for each resource and subresource (`peers/go/kinds`).
const RESOURCES: &str = include_str!("../../../types/tests/golden/kinds/resources.txt");
const WRITES: &str = include_str!("../../../types/tests/golden/kinds/writes.txt");

#[tokio::test]
async fn every_resource_is_listed_as_upstream_lists_it() {
    let api = server().await;
    let client = Client::new(&api);
    let mut upstream = std::collections::BTreeMap::new();
    for line in RESOURCES.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        upstream.insert((fields[0], fields[1]), fields[2..].join("\t"));
    }
    let mut versions = vec!["v1".to_owned()];
    for group in client.get("/apis").await.json()["groups"].as_array().expect("groups") {
        for version in group["versions"].as_array().expect("versions") {
            versions.push(version["groupVersion"].as_str().expect("a version").to_owned());
        }
    }
    let mut listed = 0;
    for version in &versions {
        let root = if version == "v1" { "api" } else { "apis" };
        let list = client.get(&format!("/{root}/{version}")).await.json();
        for one in list["resources"].as_array().expect("resources") {
            let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            let texts = |field: &str| {
                let all = one[field].as_array().cloned().unwrap_or_default();
                all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
            };
            let scope = if one["namespaced"] == true { "Namespaced" } else { "Cluster" };
            let found = [
                text("kind"),
                format!("{}/{}", text("group"), text("version")),
                scope.to_owned(),
                text("singularName"),
                texts("shortNames"),
                texts("categories"),
                texts("verbs"),
                text("storageVersionHash"),
            ]
            .join("\t");
            let name = text("name");
            assert_eq!(Some(&found), upstream.get(&(version.as_str(), name.as_str())), "{version} {name}");
            listed += 1;
        }
    }
    assert!(80 < listed, "{listed} resources and subresources");
}

/// Path of a resource in its namespace.
fn path(version: &str, plural: &str, namespaced: bool) -> String {
    let root = if version == "v1" { "api" } else { "apis" };
    match namespaced {
        true => format!("/{root}/{version}/namespaces/n/{plural}"),
        false => format!("/{root}/{version}/{plural}"),
    }
}

/// Every object that upstream takes is taken, listed, and read back with what upstream set; every one that
/// it refuses is refused.
#[tokio::test]
async fn each_kind_is_created_and_read_back() {
    let api = server().await;
    let client = Client::new(&api);
    let made = client.post("/api/v1/namespaces", r#"{"metadata":{"name":"n"}}"#).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let mut tried = 0;
    for line in WRITES.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (group, version, kind, operation) = (fields[0], fields[1], fields[2], fields[3]);
        // Services get addresses, which upstream's golden file has none of; pods get what admission gives.
        if operation != "create" || matches!(kind, "Service" | "Pod") {
            continue;
        }
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let root = if group.is_empty() { "api" } else { "apis" };
        let list = client.get(&format!("/{root}/{api_version}")).await.json();
        let resources = list["resources"].as_array().expect("resources");
        let row = resources.iter().find(|one| one["kind"] == kind && one["storageVersionHash"].is_string());
        let row = row.unwrap_or_else(|| panic!("{kind} is not served"));
        let collection = path(&api_version, row["name"].as_str().expect("a name"), row["namespaced"] == true);
        let answer = client.post(&collection, fields[5]).await;
        tried += 1;
        if fields[6].is_empty() {
            assert_eq!(answer.code, 422, "{kind} {}: {}", fields[5], answer.text);
            continue;
        }
        assert_eq!(answer.code, 201, "{kind} {}: {}", fields[5], answer.text);
        let expected: Value = serde_json::from_str(fields[6]).expect("JSON");
        let name = expected["metadata"]["name"].as_str().expect("a name");
        let found = client.get(&format!("{collection}/{name}")).await.json();
        if let Some(spec) = expected.get("spec").filter(|_| !matches!(kind, "Job" | "StatefulSet")) {
            assert_eq!(&found["spec"], spec, "{kind}");
        }
        assert_eq!(found["metadata"]["generation"], expected["metadata"]["generation"], "{kind}");
        let table = client
            .send("GET", &collection, &[("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")], b"")
            .await
            .json();
        assert_eq!(table["rows"][0]["object"]["metadata"]["name"], name, "{kind}");
        let deleted = client.delete(&format!("{collection}/{name}"), "").await;
        assert!(matches!(deleted.code, 200 | 202), "{kind}: {}", deleted.text);
    }
    assert!(80 < tried, "{tried} objects");
}

#[tokio::test]
async fn a_status_is_written_by_its_subresource_alone() {
    let api = server().await;
    let client = Client::new(&api);
    let url = "/apis/apps/v1/namespaces/default/deployments";
    let body = json!({
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
        },
        "status": {"replicas": 7},
    });
    let made = client.post(url, &body.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.json()["status"], json!({}));
    let merge = "application/merge-patch+json";
    let one = format!("{url}/d");
    let patched = client
        .patch(
            &format!("{one}/status"),
            merge,
            r#"{"spec":{"replicas":9},"status":{"observedGeneration":1,"replicas":1}}"#,
        )
        .await;
    assert_eq!(patched.code, 200, "{}", patched.text);
    let object = patched.json();
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!((&object["status"]["replicas"], &object["metadata"]["generation"]), (&json!(1), &json!(1)));
    let patched =
        client.patch(&one, merge, r#"{"spec":{"replicas":3},"status":{"replicas":5}}"#).await.json();
    assert_eq!(patched["spec"]["replicas"], 3);
    assert_eq!((&patched["status"]["replicas"], &patched["metadata"]["generation"]), (&json!(1), &json!(2)));
    let refused = client.patch(&one, merge, r#"{"spec":{"selector":{"matchLabels":{"a":"c"}}}}"#).await;
    assert_eq!(refused.code, 422);
    assert!(refused.text.contains("field is immutable"), "{}", refused.text);
}

#[tokio::test]
async fn services_have_addresses_of_their_own() {
    let api = server().await;
    let client = Client::new(&api);
    let url = "/api/v1/namespaces/default/services";
    let service = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec}).to_string();
    let port = json!([{"port": 80}]);
    let mut seen = std::collections::BTreeSet::new();
    for index in 0..20 {
        let answer = client.post(url, &service(&format!("s{index}"), json!({"ports": port}))).await;
        assert_eq!(answer.code, 201, "{}", answer.text);
        let spec = answer.json()["spec"].clone();
        let address = spec["clusterIP"].as_str().expect("an address").to_owned();
        assert!(address.starts_with("10.0.0."), "{address}");
        assert_eq!(spec["clusterIPs"], json!([address]));
        assert_eq!((&spec["ipFamilies"], &spec["ipFamilyPolicy"]), (&json!(["IPv4"]), &json!("SingleStack")));
        let held = client.get(&format!("/apis/networking.k8s.io/v1/ipaddresses/{address}")).await;
        assert_eq!(held.code, 200, "{}", held.text);
        assert!(seen.insert(address), "each has its own");
    }
    let taken = seen.first().expect("one").clone();
    let answer = client.post(url, &service("t", json!({"clusterIP": taken, "ports": port}))).await;
    assert_eq!(answer.code, 422);
    assert!(answer.text.contains("provided IP is already allocated"), "{}", answer.text);
    let answer = client.post(url, &service("t", json!({"clusterIP": "10.9.0.5", "ports": port}))).await;
    assert_eq!(answer.code, 422);
    assert!(answer.text.contains("is not in the valid range"), "{}", answer.text);

    // An invalid Service holds no address, and neither does one that is gone.
    let addresses = "/apis/networking.k8s.io/v1/ipaddresses";
    let held = async || {
        let answer = client.get(addresses).await;
        assert_eq!(answer.code, 200, "{}", answer.text);
        answer.json()["items"].as_array().unwrap_or_else(|| panic!("{}", answer.text)).len()
    };
    assert_eq!(held().await, 20);
    let answer = client.post(url, &service("t", json!({"ports": [{"port": 0}]}))).await;
    assert_eq!((answer.code, held().await), (422, 20));
    let answer = client.post(&format!("{url}?dryRun=All"), &service("t", json!({"ports": port}))).await;
    assert_eq!((answer.code, held().await), (201, 20));
    assert_eq!(client.delete(&format!("{url}/s0"), "").await.code, 200);
    assert_eq!(held().await, 19);

    // What was given stays, also for a client that sends back less; it may not be exchanged.
    let before = client.get(&format!("{url}/s1")).await.json();
    let mut put = before.clone();
    put["spec"] = json!({"ports": [{"port": 81}], "type": "NodePort"});
    let answer = client.put(&format!("{url}/s1"), &put.to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let after = answer.json();
    assert_eq!(after["spec"]["clusterIP"], before["spec"]["clusterIP"]);
    let node_port = after["spec"]["ports"][0]["nodePort"].as_i64().expect("a port of the nodes");
    assert!((30_000..=32_767).contains(&node_port), "{node_port}");
    let free = (100..200).map(|last| format!("10.0.0.{last}")).find(|address| !seen.contains(address));
    let mut other = after.clone();
    other["spec"]["clusterIP"] = json!(free);
    other["spec"]["clusterIPs"] = json!([free]);
    let answer = client.put(&format!("{url}/s1"), &other.to_string()).await;
    assert_eq!(answer.code, 422, "{}", answer.text);
    assert!(answer.text.contains("may not change once set"), "{}", answer.text);
    assert_eq!(held().await, 19);

    let answer = client.post(url, &service("h", json!({"clusterIP": "None", "ports": port}))).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    assert_eq!(answer.json()["spec"]["clusterIPs"], json!(["None"]));
    let list = client.get(&format!("{url}?fieldSelector=spec.clusterIP!=None")).await.json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(19), "{list}");
}

#[tokio::test]
async fn certificates_are_asked_for_approved_and_issued_one_after_the_other() {
    let api = server().await;
    let client = Client::named(&api, "asker");
    let url = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let key = rcgen::KeyPair::generate().expect("a key");
    let request = |group: &str| {
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).expect("parameters");
        params.distinguished_name.push(rcgen::DnType::CommonName, "u");
        params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
        params.serialize_request(&key).expect("a request").pem().expect("PEM")
    };
    let body = |name: &str, group: &str| {
        use base64::Engine as _;
        let request = base64::engine::general_purpose::STANDARD.encode(request(group));
        json!({
            "metadata": {"name": name},
            "spec": {
                "request": request,
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["client auth"],
                "username": "somebody-else",
            },
            "status": {"conditions": [{"type": "Approved", "status": "True"}]},
        })
        .to_string()
    };
    let refused = client.post(url, &body("m", "system:masters")).await;
    // Admission is asked in the secured server only; here the request is just kept.
    assert!(matches!(refused.code, 201 | 403), "{}", refused.text);
    let made = client.post(url, &body("r", "g")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let made = made.json();
    assert_eq!(made["spec"]["username"], "asker");
    assert_eq!(made["status"], json!({}));
    let merge = "application/merge-patch+json";
    let one = format!("{url}/r");
    let condition =
        r#"{"status":{"conditions":[{"type":"Approved","status":"True","reason":"R","message":"m"}]}}"#;
    let wrong = client.patch(&format!("{one}/status"), merge, condition).await;
    assert_eq!(wrong.code, 422);
    assert!(wrong.text.contains("updates may not add a condition of type"), "{}", wrong.text);
    let approved = client.patch(&format!("{one}/approval"), merge, condition).await;
    assert_eq!(approved.code, 200, "{}", approved.text);
    let stamped = approved.json()["status"]["conditions"][0].clone();
    assert!(stamped["lastUpdateTime"].is_string() && stamped["lastTransitionTime"].is_string(), "{stamped}");
    let issued = client.patch(&format!("{one}/status"), merge, r#"{"status":{"certificate":"YQ=="}}"#).await;
    assert_eq!(issued.code, 200, "{}", issued.text);
    let again = client.patch(&format!("{one}/status"), merge, r#"{"status":{"certificate":"Yg=="}}"#).await;
    assert!(again.text.contains("updates may not modify existing certificate content"), "{}", again.text);
    let kept = client
        .patch(&one, merge, r#"{"metadata":{"labels":{"a":"b"}},"spec":{"username":"x"}}"#)
        .await
        .json();
    assert_eq!(
        (&kept["spec"]["username"], &kept["status"]["certificate"]),
        (&json!("asker"), &json!("YQ=="))
    );
    let denied = r#"{"status":{"conditions":[{"type":"Denied","status":"True"}]}}"#;
    let refused = client.patch(&format!("{one}/approval"), merge, denied).await;
    assert!(refused.text.contains("updates may not remove a condition of type"), "{}", refused.text);
}

/// With authentication, authorization, admission and the controllers.
#[tokio::test]
async fn a_secured_server_has_the_defaults_of_a_cluster() {
    let api = secured().await;
    let admin = Client::in_groups(&api, "admin", &["system:masters"]);
    for (name, value) in [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)]
    {
        let url = format!("/apis/scheduling.k8s.io/v1/priorityclasses/{name}");
        let class = crate::support::eventually(&admin, &url, |answer| answer.code == 200).await.json();
        assert_eq!(class["value"], value);
    }
    let url = "/api/v1/namespaces/default/services/kubernetes";
    let service = crate::support::eventually(&admin, url, |answer| answer.code == 200).await.json();
    assert_eq!(service["spec"]["clusterIP"], "10.0.0.1");
    let held = admin.get("/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1").await;
    assert_eq!(held.code, 200, "{}", held.text);
    let held = held.json();
    assert_eq!(held["spec"]["parentRef"]["name"], "kubernetes");
    crate::support::eventually(&admin, "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", |answer| {
        answer.code == 200
    })
    .await;
    crate::support::eventually(&admin, "/api/v1/namespaces/default/serviceaccounts/default", |answer| {
        answer.code == 200
    })
    .await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, more: Value| {
        let mut spec = json!({"containers": [{"name": "c", "image": "i:1"}]});
        spec.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        json!({"metadata": {"name": name}, "spec": spec}).to_string()
    };
    let made = admin.post(pods, &pod("a", json!({"priorityClassName": "system-node-critical"}))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let spec = made.json()["spec"].clone();
    assert_eq!(
        (&spec["priority"], &spec["preemptionPolicy"]),
        (&json!(2_000_001_000), &json!("PreemptLowerPriority"))
    );
    let keys: Vec<&str> = spec["tolerations"]
        .as_array()
        .expect("tolerations")
        .iter()
        .filter_map(|one| one["key"].as_str())
        .collect();
    assert_eq!(keys, ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]);
    let refused = admin.post(pods, &pod("b", json!({"priorityClassName": "nope"}))).await;
    assert_eq!(refused.code, 403);
    assert!(refused.text.contains("no PriorityClass with name nope was found"), "{}", refused.text);
    let refused = admin.post(pods, &pod("b", json!({"priority": 7}))).await;
    assert!(refused.text.contains("must not be provided in pod spec"), "{}", refused.text);
}

/// An Event that says no source is found by who reported it, in both groups.
#[tokio::test]
async fn an_event_is_selected_by_its_source_or_its_reporter() {
    let api = server().await;
    let client = Client::new(&api);
    let new = json!({
        "metadata": {"name": "plain", "namespace": "default"}, "reportingController": "reporter", "reportingInstance": "i",
        "regarding": {"namespace": "default"}, "action": "a", "reason": "r", "type": "Normal",
        "eventTime": "2024-01-01T00:00:00.000000Z"
    });
    let old = json!({
        "metadata": {"name": "named", "namespace": "default"}, "reportingComponent": "reporter",
        "involvedObject": {"namespace": "default"}, "source": {"component": "other"}
    });
    for (group, event) in [("/apis/events.k8s.io/v1", new), ("/api/v1", old)] {
        let made = client.post(&format!("{group}/namespaces/default/events"), &event.to_string()).await;
        assert_eq!(made.code, 201, "{}", made.text);
    }
    for (base, selector, expected) in [
        ("/api/v1", "source=reporter", "plain"),
        ("/api/v1", "source=other", "named"),
        ("/apis/events.k8s.io/v1", "reportingController=reporter", "named plain"),
    ] {
        let url = format!("{base}/namespaces/default/events?fieldSelector={selector}");
        let list = client.get(&url).await.json();
        let names: Vec<&str> = list["items"]
            .as_array()
            .expect("items")
            .iter()
            .filter_map(|item| item["metadata"]["name"].as_str())
            .collect();
        assert_eq!(names.join(" "), expected, "{url}");
    }
}

/// Both versions of an autoscaler are one object: what the older cannot say stands in its annotations.
#[tokio::test]
async fn an_autoscaler_is_served_in_two_versions() {
    let api = server().await;
    let client = Client::new(&api);
    let of =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let old = json!({"metadata": {"name": "h"}, "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}});
    let made = client.post(&of("v1"), &old.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.json()["apiVersion"], "autoscaling/v1");
    assert_eq!(made.json()["spec"]["targetCPUUtilizationPercentage"], 80);
    let new = client.get(&format!("{}/h", of("v2"))).await.json();
    assert_eq!(new["apiVersion"], "autoscaling/v2");
    assert_eq!(new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
    let pods = r#"{"spec":{"metrics":[{"type":"Pods","pods":{"metric":{"name":"m"},"target":{"type":"AverageValue","averageValue":"5"}}}]}}"#;
    assert_eq!(client.patch(&format!("{}/h", of("v2")), "merge", pods).await.code, 200);
    let patched =
        client.patch(&format!("{}/h", of("v1")), "strategic", r#"{"spec":{"maxReplicas":4}}"#).await;
    assert_eq!(patched.code, 200, "{}", patched.text);
    let annotation = &patched.json()["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"];
    assert_eq!(annotation, r#"[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"5"}}]"#);
    let new = client.get(&format!("{}/h", of("v2"))).await.json();
    assert_eq!(new["spec"]["maxReplicas"], 4);
    assert_eq!(new["spec"]["metrics"][0]["pods"]["metric"]["name"], "m");
    assert_eq!(new["metadata"]["annotations"], Value::Null);
    assert_eq!(new["metadata"]["generation"], 3);
    let list = client.get(&of("v1")).await.json();
    assert_eq!(
        (&list["apiVersion"], &list["items"][0]["spec"]["maxReplicas"]),
        (&json!("autoscaling/v1"), &json!(4))
    );
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let rows = |version: &str| {
        let url = of(version);
        let client = &client;
        async move { client.send("GET", &url, &[("accept", table)], b"").await.json()["rows"][0]["cells"].clone() }
    };
    let (old, new) = (rows("v1").await, rows("v2").await);
    assert_eq!(old.as_array().map(|cells| &cells[..6]), new.as_array().map(|cells| &cells[..6]));
    let wrong = json!({"metadata": {"name": "w"}, "spec": {"scaleTargetRef": {"kind": "D", "name": "d"}, "maxReplicas": 0}});
    assert_eq!(client.post(&of("v1"), &wrong.to_string()).await.code, 422);
}

//! ExternalSecret.

use serde_json::{Value as Json, json};

use super::schema::{With as _, condition, flag, key, list, name, object, one_of, root, text, texts, time};
use super::{Definition, READY_REASON, READY_STATUS, column};

const GENERATORS: &[&str] = &[
    "ACRAccessToken",
    "BeyondtrustWorkloadCredentialsDynamicSecret",
    "ClusterGenerator",
    "CloudsmithAccessToken",
    "ECRAuthorizationToken",
    "Fake",
    "GCRAccessToken",
    "GithubAccessToken",
    "GitlabDeployToken",
    "QuayAccessToken",
    "Password",
    "SSHKey",
    "STSSessionToken",
    "UUID",
    "VaultDynamicSecret",
    "Webhook",
    "Grafana",
    "MFA",
];
const SCHEDULE: &str =
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|@every [^\s]+.*|[^\s]+( [^\s]+){4})$";

pub(super) fn definition() -> Json {
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": root(spec(), status()),
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            column("StoreType", "string", ".spec.secretStoreRef.kind"),
            column("Store", "string", ".spec.secretStoreRef.name"),
            column("Refresh Interval", "string", ".spec.refreshInterval"),
            column("Status", "string", READY_REASON),
            column("Ready", "string", READY_STATUS),
            column("Last Sync", "date", ".status.refreshTime"),
        ],
        "selectableFields": [
            {"jsonPath": ".spec.secretStoreRef.name"},
            {"jsonPath": ".spec.secretStoreRef.kind"},
            {"jsonPath": ".spec.target.name"},
            {"jsonPath": ".spec.refreshInterval"},
        ],
    });
    Definition {
        plural: "externalsecrets",
        singular: "externalsecret",
        short: "es",
        kind: "ExternalSecret",
        namespaced: true,
        version,
    }
    .into_json()
}

fn spec() -> Json {
    object([
        ("secretStoreRef", store_ref()),
        ("refreshPolicy", one_of(&["CreatedOnce", "Periodic", "OnChange"])),
        ("refreshInterval", text().default("1h0m0s")),
        ("syncWindows", sync_windows()),
        ("target", target()),
        ("data", list(data())),
        ("dataFrom", list(data_from())),
    ])
}

fn status() -> Json {
    object([
        ("refreshTime", time().with("nullable", true)),
        ("syncedResourceVersion", text()),
        ("binding", object([("name", text().default(""))]).with("x-kubernetes-map-type", "atomic")),
        ("conditions", list(condition(one_of(&["Ready", "Deleted"])))),
    ])
}

fn store_ref() -> Json {
    object([("name", name()), ("kind", one_of(&["SecretStore", "ClusterSecretStore"]))])
}

fn source_ref() -> Json {
    let generator = object([
        ("apiVersion", text().default("generators.external-secrets.io/v1alpha1")),
        ("kind", one_of(GENERATORS)),
        ("name", name()),
    ]);
    object([("storeRef", store_ref()), ("generatorRef", generator.required(&["kind", "name"]))]).exactly_one()
}

fn conversion() -> Json {
    one_of(&["Default", "Unicode"])
}

fn decoding() -> Json {
    one_of(&["Auto", "Base64", "Base64URL", "None"])
}

fn null_bytes() -> Json {
    one_of(&["Ignore", "Fail"])
}

fn remote_ref() -> Json {
    object([
        ("key", text()),
        ("property", text()),
        ("version", text()),
        ("metadataPolicy", one_of(&["None", "Fetch"])),
        ("conversionStrategy", conversion()),
        ("decodingStrategy", decoding()),
        ("nullBytePolicy", null_bytes()),
    ])
    .required(&["key"])
}

fn data() -> Json {
    object([("secretKey", key()), ("remoteRef", remote_ref()), ("sourceRef", source_ref())])
        .required(&["remoteRef", "secretKey"])
}

fn data_from() -> Json {
    let find = object([
        ("path", text()),
        ("name", object([("regexp", text())])),
        ("tags", texts()),
        ("conversionStrategy", conversion()),
        ("decodingStrategy", decoding()),
        ("nullBytePolicy", null_bytes()),
    ]);
    object([
        ("extract", remote_ref()),
        ("find", find),
        ("rewrite", list(rewrite())),
        ("sourceRef", source_ref()),
    ])
}

fn rewrite() -> Json {
    let merge = object([
        ("into", text().default("")),
        ("priority", list(text())),
        ("priorityPolicy", one_of(&["IgnoreNotFound", "Strict"]).default("Strict")),
        ("conflictPolicy", one_of(&["Ignore", "Error"]).default("Error")),
        ("strategy", one_of(&["Extract", "JSON"]).default("Extract")),
    ]);
    let regexp = object([("source", text()), ("target", text())]).required(&["source", "target"]);
    let transform = object([("template", text())]).required(&["template"]);
    object([("merge", merge), ("regexp", regexp), ("transform", transform)]).exactly_one()
}

fn sync_windows() -> Json {
    let schedule = text().with("minLength", 1).with("pattern", SCHEDULE);
    let window = object([("schedule", schedule), ("duration", text())]).required(&["duration", "schedule"]);
    object([("kind", one_of(&["allow", "deny"])), ("windows", list(window).with("minItems", 1))])
        .required(&["kind", "windows"])
}

fn target() -> Json {
    let creation = one_of(&["Owner", "Orphan", "Merge", "None", "CreateOrMerge"]).default("Owner");
    let manifest =
        object([("apiVersion", text().with("minLength", 1)), ("kind", text().with("minLength", 1))]);
    object([
        ("name", name()),
        ("creationPolicy", creation),
        ("deletionPolicy", one_of(&["Delete", "Merge", "Retain"]).default("Retain")),
        ("immutable", flag()),
        ("manifest", manifest.required(&["apiVersion", "kind"])),
        ("template", template()),
    ])
    .default(json!({"creationPolicy": "Owner", "deletionPolicy": "Retain"}))
}

fn template() -> Json {
    let item =
        object([("key", key()), ("templateAs", one_of(&["Values", "KeysAndValues"]).default("Values"))]);
    let source = || {
        object([("name", name()), ("items", list(item.clone().required(&["key"])))])
            .required(&["items", "name"])
    };
    let from = object([
        ("configMap", source()),
        ("secret", source()),
        ("literal", text()),
        ("target", text().default("Data")),
        ("valuesDecodingStrategy", decoding()),
    ]);
    let metadata = object([("annotations", texts()), ("labels", texts()), ("finalizers", list(text()))]);
    object([
        ("type", text()),
        ("engineVersion", one_of(&["v2"]).default("v2")),
        ("mergePolicy", one_of(&["Replace", "Merge"]).default("Replace")),
        ("metadata", metadata),
        ("data", texts()),
        ("templateFrom", list(from)),
    ])
}

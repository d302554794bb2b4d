//! SecretStore and ClusterSecretStore: one schema for both.

use serde_json::{Value as Json, json};

use super::schema::{
    With as _, anything, bytes, ca_provider, condition, flag, label_selector, list, namespace, object,
    one_of, root, secret_key, service_account, text, texts,
};
use super::{Definition, READY_REASON, READY_STATUS, column};

/// Providers of the original that are not built in: their specifications are kept as they stand.
const OTHERS: &[&str] = &[
    "akeyless",
    "aws",
    "azurekv",
    "barbican",
    "beyondtrust",
    "beyondtrustworkloadcredentials",
    "bitwardensecretsmanager",
    "chef",
    "cloudrusm",
    "conjur",
    "crd",
    "delinea",
    "doppler",
    "dvls",
    "fortanix",
    "gcpsm",
    "github",
    "gitlab",
    "ibm",
    "infisical",
    "keepersecurity",
    "nebiusmysterybox",
    "ngrok",
    "onboardbase",
    "onepassword",
    "onepasswordSDK",
    "oracle",
    "ovh",
    "passbolt",
    "passworddepot",
    "previder",
    "pulumi",
    "scaleway",
    "secretserver",
    "senhasegura",
    "volcengine",
    "webhook",
    "yandexcertificatemanager",
    "yandexlockbox",
];

pub(super) fn definition(cluster: bool) -> Json {
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": root(spec(), status()),
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            column("AGE", "date", ".metadata.creationTimestamp"),
            column("Status", "string", READY_REASON),
            column("Capabilities", "string", ".status.capabilities"),
            column("Ready", "string", READY_STATUS),
        ],
    });
    let (plural, singular, short, kind) = if cluster {
        ("clustersecretstores", "clustersecretstore", "css", "ClusterSecretStore")
    } else {
        ("secretstores", "secretstore", "ss", "SecretStore")
    };
    Definition { plural, singular, short, kind, namespaced: !cluster, version }.into_json()
}

fn spec() -> Json {
    let condition = object([
        ("namespaceSelector", label_selector()),
        ("namespaces", list(namespace())),
        ("namespaceRegexes", list(text())),
    ]);
    let retry =
        object([("maxRetries", json!({"type": "integer", "format": "int32"})), ("retryInterval", text())]);
    let interval =
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]});
    object([
        ("controller", text()),
        ("provider", provider()),
        ("retrySettings", retry),
        ("refreshInterval", interval),
        ("conditions", list(condition)),
    ])
    .required(&["provider"])
}

fn status() -> Json {
    object([("capabilities", text()), ("conditions", list(condition(text())))])
}

fn provider() -> Json {
    let mut provider =
        object([("fake", fake()), ("kubernetes", kubernetes()), ("openBao", open_bao()), ("vault", vault())])
            .exactly_one();
    for other in OTHERS {
        provider["properties"][*other] = anything();
    }
    provider
}

fn fake() -> Json {
    let entry = object([("key", text()), ("value", text()), ("version", text())]).required(&["key", "value"]);
    object([("data", list(entry)), ("validationResult", json!({"type": "integer"}))]).required(&["data"])
}

fn kubernetes() -> Json {
    let cert = object([("clientCert", secret_key()), ("clientKey", secret_key())]);
    let token = object([("bearerToken", secret_key())]);
    let auth =
        object([("cert", cert), ("token", token), ("serviceAccount", service_account())]).exactly_one();
    let server = object([
        ("url", text().default("kubernetes.default")),
        ("caBundle", bytes()),
        ("caProvider", ca_provider()),
    ]);
    object([
        ("server", server),
        ("auth", auth),
        ("authRef", secret_key()),
        ("remoteNamespace", namespace().default("default")),
    ])
}

fn app_role(role_id: Json) -> Json {
    object([
        ("path", text().default("approle")),
        ("roleId", role_id),
        ("roleRef", secret_key()),
        ("secretRef", secret_key()),
    ])
    .required(&["path", "secretRef"])
}

fn password(path: &str) -> Json {
    object([("path", text().default(path)), ("username", text()), ("secretRef", secret_key())])
        .required(&["path", "username"])
}

fn rule(rule: &str, message: &str) -> Json {
    json!([{"rule": rule, "message": message}])
}

fn open_bao() -> Json {
    let role = app_role(text().with("minLength", 1)).with(
        "x-kubernetes-validations",
        rule(
            "[has(self.roleId),has(self.roleRef)].filter(x,x==true).size() == 1",
            "exactly one of the fields in [roleId roleRef] must be set",
        ),
    );
    let auth = object([
        ("namespace", text()),
        ("tokenSecretRef", secret_key()),
        ("appRole", role),
        ("userPass", password("userpass")),
    ])
    .with(
        "x-kubernetes-validations",
        rule(
            "[has(self.appRole),has(self.tokenSecretRef),has(self.userPass)].filter(x,x==true).size() == 1",
            "exactly one of the fields in [appRole tokenSecretRef userPass] must be set",
        ),
    );
    object([
        ("server", text()),
        ("path", text()),
        ("version", one_of(&["v1", "v2"]).default("v2")),
        ("namespace", text()),
        ("caBundle", bytes()),
        ("caProvider", ca_provider()),
        ("auth", auth),
    ])
    .required(&["server"])
    .with(
        "x-kubernetes-validations",
        rule(
            "[has(self.caBundle),has(self.caProvider)].filter(x,x==true).size() <= 1",
            "at most one of the fields in [caBundle caProvider] may be set",
        ),
    )
}

fn vault() -> Json {
    let kubernetes = object([
        ("mountPath", text().default("kubernetes")),
        ("role", text()),
        ("serviceAccountRef", service_account()),
        ("secretRef", secret_key()),
    ]);
    let account = object([
        ("serviceAccountRef", service_account()),
        ("audiences", list(text())),
        ("expirationSeconds", json!({"type": "integer", "format": "int64"})),
    ]);
    let jwt = object([
        ("path", text().default("jwt")),
        ("role", text()),
        ("secretRef", secret_key()),
        ("kubernetesServiceAccountToken", account.required(&["serviceAccountRef"])),
    ]);
    let cert = object([
        ("path", text().default("cert")),
        ("vaultRole", text()),
        ("clientCert", secret_key()),
        ("secretRef", secret_key()),
    ]);
    let auth = object([
        ("namespace", text()),
        ("tokenSecretRef", secret_key()),
        ("appRole", app_role(text())),
        ("kubernetes", kubernetes.required(&["mountPath", "role"])),
        ("ldap", password("ldap")),
        ("userPass", password("userpass")),
        ("jwt", jwt.required(&["path"])),
        ("cert", cert),
        ("iam", anything()),
        ("gcp", anything()),
    ]);
    let tls = object([("certSecretRef", secret_key()), ("keySecretRef", secret_key())]);
    object([
        ("server", text()),
        ("path", text()),
        ("version", one_of(&["v1", "v2"]).default("v2")),
        ("namespace", text()),
        ("caBundle", bytes()),
        ("caProvider", ca_provider()),
        ("tls", tls),
        ("readYourWrites", flag()),
        ("forwardInconsistent", flag()),
        ("headers", texts()),
        ("checkAndSet", object([("required", flag())])),
        ("auth", auth),
    ])
    .required(&["server"])
}

//! What the operator is given to follow.

use std::fmt::Write as _;

use coffer_sim::peers::Kubectl;

/// Where the ExternalSecrets and their Secrets are.
pub(super) const NAMESPACE: &str = "shop";
/// How many ExternalSecrets there are.
pub(super) const COUNT: usize = 500;

/// The namespaces, and who reads Secrets in the one that is a store.
pub(super) const NAMESPACES: &str = r#"
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: vault}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: reader, namespace: shop}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: vault}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}
- {apiGroups: [authorization.k8s.io], resources: [selfsubjectrulesreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: vault}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: shop}]
"#;

/// The stores: one that holds its values itself, and one that is the server of `kubectl`.
pub(super) fn sources(kubectl: &Kubectl) -> String {
    let config = |path: &str| {
        kubectl.ok(&["config", "view", "--minify", "--raw", "--flatten", "-o", &format!("jsonpath={path}")])
    };
    let server = config("{.clusters[0].cluster.server}");
    let authority = config("{.clusters[0].cluster.certificate-authority-data}");
    let mut text = format!(
        r#"
apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {{name: cluster, namespace: {NAMESPACE}}}
spec:
  provider:
    kubernetes:
      remoteNamespace: vault
      server: {{url: "{server}", caBundle: {authority}}}
      auth: {{serviceAccount: {{name: reader}}}}
---
apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {{name: fake, namespace: {NAMESPACE}}}
spec:
  provider:
    fake:
      data:
"#
    );
    for index in 0..20 {
        writeln!(text, "      - {{key: /plain/{index}, value: value-{index}}}").expect("a text");
        let document =
            format!(r#"{{"user":"u{index}","password":"p{index}","nested":{{"deep":[1,{index}]}}}}"#);
        writeln!(text, "      - {{key: /json/{index}, value: '{document}'}}").expect("a text");
    }
    for index in 0..10 {
        write!(
            text,
            "---\n{{apiVersion: v1, kind: Secret, metadata: {{name: source-{index}, namespace: vault, labels: \
             {{half: \"{}\"}}}}, stringData: {{user: su{index}, password: sp{index}}}}}\n",
            index % 2,
        )
        .expect("a text");
    }
    for index in (0..COUNT).filter(|index| index % KINDS.len() == MERGED) {
        write!(
            text,
            "---\n{{apiVersion: v1, kind: Secret, metadata: {{name: target-{index}, namespace: {NAMESPACE}, \
             labels: {{own: label}}}}, stringData: {{own: value}}}}\n",
        )
        .expect("a text");
    }
    text
}

/// The kinds of ExternalSecrets: the specification after its store, with `N` for a number and `WORD` for a word that
/// changes.
const KINDS: &[&str] = &[
    "fake; target: {name: target-N}, data: [{secretKey: value, remoteRef: {key: /plain/M}}]",
    "fake; target: {name: target-N, creationPolicy: Owner, deletionPolicy: Delete}, dataFrom: [{extract: {key: /json/M}}]",
    "fake; target: {name: target-N, creationPolicy: Orphan}, data: [{secretKey: deep, remoteRef: {key: /json/M, property: nested.deep.1}}]",
    "fake; target: {name: target-N, creationPolicy: Merge}, data: [{secretKey: value, remoteRef: {key: /plain/M}}]",
    "fake; target: {name: target-N, template: {type: Opaque, metadata: {labels: {word: WORD, WORD: label}, annotations: {note: WORD, WORD: note}}, data: {text: '{{ .user }}:{{ .password | b64enc }} WORD', WORD.txt: '{{ .user | upper }}'}}}, dataFrom: [{extract: {key: /json/M}}]",
    "fake; target: {name: target-N}, dataFrom: [{find: {name: {regexp: '^/plain/1'}}, rewrite: [{regexp: {source: '^/plain/(.*)$', target: 'WORD-$1'}}]}]",
    "fake; target: {name: target-N, template: {mergePolicy: Merge, data: {WORD: '{{ .user }}'}}}, dataFrom: [{extract: {key: /json/M, conversionStrategy: Unicode}}]",
    "cluster; target: {name: target-N}, data: [{secretKey: WORD, remoteRef: {key: source-S, property: user}}]",
    "cluster; target: {name: target-N, template: {metadata: {labels: {word: WORD}}}}, dataFrom: [{extract: {key: source-S}}]",
    "cluster; target: {name: target-N}, dataFrom: [{find: {tags: {half: '1'}}}]",
];

/// The one of [`KINDS`] whose Secret is there before.
const MERGED: usize = 3;

/// All ExternalSecrets, with a word in what the operator is to change.
pub(super) fn external_secrets(word: &str) -> String {
    let mut text = String::new();
    for index in 0..COUNT {
        let kind = KINDS[index % KINDS.len()];
        let (store, spec) = kind.split_once("; ").expect("a store and a specification");
        let spec = spec
            .replace("target-N", &format!("target-{index}"))
            .replace("/M", &format!("/{}", index % 20))
            .replace("-S", &format!("-{}", index % 10))
            .replace("WORD", word);
        write!(
            text,
            "---\napiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: es-{index}, namespace: \
             {NAMESPACE}, labels: {{app: shop}}, annotations: {{about: \"{}\"}}}}\nspec: {{refreshInterval: 1h, \
             secretStoreRef: {{name: {store}, kind: SecretStore}}, {spec}}}\n",
            index % 7,
        )
        .expect("a text");
    }
    text
}

//! Helm installs, upgrades, rolls back and removes a chart, and is told the same by coffer and by kube-apiserver.

use std::path::Path;
use std::process::Command;

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, Kubectl, program};
use serde_json::Value;

use crate::quiet;

const CHART: &str = "apiVersion: v2\nname: lamp\nversion: 0.1.0\n";
const VALUES: &str = "token: first\nwide: false\n";
const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lamps, kind: Lamp}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {on: {type: boolean}}}}}}
"#;
const TEMPLATE: &str = r#"
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}, labels: {revision: "r{{ .Release.Revision }}"}}
stringData: {token: {{ .Values.token }}}
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: {{ .Release.Name }}}
spec: {on: {{ .Values.wide }}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
{{- if .Values.wide }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {known: {{ (lookup "v1" "Secret" .Release.Namespace .Release.Name).type | quote }}}
{{- end }}
{{- if not (.Capabilities.APIVersions.Has "apps/v1/Deployment") }}
{{ fail "no Deployments" }}
{{- end }}
"#;

const COMMANDS: [&str; 13] = [
    "install one CHART --namespace helm --create-namespace --wait",
    "install one CHART --namespace helm",
    "status one --namespace helm",
    "upgrade one CHART --namespace helm --set token=second,wide=true --wait",
    "get values one --namespace helm",
    "get manifest one --namespace helm",
    "history one --namespace helm -o json",
    "rollback one 1 --namespace helm --wait",
    "list --namespace helm -o json",
    "upgrade --install two CHART --namespace helm --dry-run=server",
    "upgrade one CHART --namespace helm --set wide=perhaps",
    "uninstall one --namespace helm --wait",
    "uninstall one --namespace helm",
];

/// What is shown of each object.
const SHOWN: &str = "--output=jsonpath={range .items[*]}{.kind} {.metadata.name} {.type} {.data} {.spec} {.metadata.labels} {.metadata.annotations} {.metadata.managedFields[*].manager}{\"\\n\"}{end}";

/// Without times, which differ.
fn timeless(text: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some((name @ ("LAST DEPLOYED" | "  last deployed"), _)) => format!("{name}: TIME"),
        _ => line.to_owned(),
    };
    if let Ok(Value::Array(mut items)) = serde_json::from_str(text) {
        for item in &mut items {
            item["updated"] = "TIME".into();
        }
        return Value::Array(items).to_string();
    }
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What helm said, and what was there after each command.
fn run(kubeconfig: &Path, kubectl: &Kubectl, directory: &Path) -> Vec<String> {
    let chart = directory.join("lamp");
    for (file, text) in [
        ("Chart.yaml", CHART),
        ("values.yaml", VALUES),
        ("crds/lamps.yaml", DEFINITION),
        ("templates/all.yaml", TEMPLATE),
    ] {
        let path = chart.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let mut all = Vec::new();
    for command in COMMANDS {
        let arguments = command.split(' ').map(|word| if word == "CHART" { "lamp" } else { word });
        let output = Command::new(program("helm"))
            .args(arguments)
            .current_dir(directory)
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", directory)
            .output()
            .expect("helm starts");
        let said = [&output.stdout, &output.stderr].map(|text| timeless(&String::from_utf8_lossy(text)));
        let get = |arguments: &[&str]| {
            let output =
                kubectl.run(&[&["get", "--namespace=helm", "--ignore-not-found"], arguments].concat());
            format!("{}{}", output.stdout, output.stderr)
        };
        let named = ["secrets/one", "configmaps/one", "lamps/one", "serviceaccounts/one", SHOWN];
        let there = [get(&named), get(&["secrets", "--output=name"])].concat();
        all.push(format!("$ helm {command}\n{:?}\n{}\n{}\n{there}", output.status.code(), said[0], said[1]));
    }
    all
}

#[test]
fn helm_is_told_the_same_as_by_kube_apiserver() {
    let directories = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let etcd = Etcd::start();
    let stock = KubeApiserver::start(&etcd, &ApiserverOptions::default());
    let expected = run(stock.kubeconfig(), &Kubectl::new(stock.kubeconfig()), directories[0].path());
    let coffer = Coffer::up(quiet, &[]);
    let found = run(coffer.kubeconfig(), &Kubectl::new(coffer.kubeconfig()), directories[1].path());
    for ((found, expected), command) in found.iter().zip(&expected).zip(COMMANDS) {
        assert_eq!(found, expected, "{command}");
    }
    // Commands that all fail would be equal, too.
    let failed: Vec<&str> = COMMANDS
        .into_iter()
        .zip(&found)
        .filter(|(_, told)| !told.contains("\nSome(0)\n"))
        .map(|(command, _)| command)
        .collect();
    assert_eq!(failed, [COMMANDS[1], COMMANDS[10], COMMANDS[12]]);
}

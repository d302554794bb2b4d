//! `cargo xtask bench cel`: typical rules, compiled and evaluated by coffer and by the Go modules of
//! kube-apiserver, in turns.
//!
//! Rules of custom resources are compiled for their schema's type, with their static cost; expressions of
//! webhooks and policies in the environment that the server makes once. Both sides evaluate views of the
//! same objects, with budgets and interruption. Figures are CPU time of one thread: on the Go side of the
//! whole process, because its garbage is collected beside.

#![allow(clippy::print_stdout, reason = "a benchmark's output is what it prints")]

#[path = "../tests/it/cel.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod cel;
#[path = "../../crypto/tests/peers/original.rs"]
mod original;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use coffer_lang::cel::admission::{Declarations, environment};
use coffer_lang::cel::declared::DeclaredType;
use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::libraries::{self, costs};
use coffer_lang::cel::program::{Budget, Program};
use coffer_lang::cel::schemas::{self, SchemaSizes};
use coffer_lang::cel::value::Value;
use original::Original;
use serde_json::{Value as Json, json};

/// CPU time of one measurement at least.
const ENOUGH: Duration = Duration::from_millis(100);
/// Each side's turns; the fastest one counts.
const TURNS: usize = 5;
/// By how many times coffer is to be faster.
const COMPILE: f64 = 3.0;
const EVALUATE: f64 = 2.0;

/// Rules of a custom resource.
const RULES: [&str; 9] = [
    "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas",
    "(has(self.secretRef) && !has(self.oidcConfig)) || (!has(self.secretRef) && has(self.oidcConfig))",
    "has(self.storeRef) && (has(self.storeRef.name) || has(self.storeRef.labelSelector))",
    "!has(self.remoteKey) || !has(self.rewrite) || self.rewrite.size() == 0",
    "self.names.all(n, n.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && n.size() <= 63)",
    "self.ports.all(p, self.ports.exists_one(q, q.name == p.name && q.port == p.port))",
    "self.labels.all(k, k.startsWith('example.com/') && self.labels[k] != '')",
    "quantity(self.limit).isGreaterThan(quantity('1Gi')) && isURL(self.url) && url(self.url).getScheme() == 'https'",
    "self.mode == oldSelf.mode || self.mode in ['active', 'standby', 'off']",
];

/// Match conditions of webhooks, and validations of policies with parameters.
const CONDITIONS: [(&str, &str); 6] = [
    ("condition", "!request.userInfo.username.startsWith('system:serviceaccount:kube-system:')"),
    ("condition", "request.resource.group != 'rbac.authorization.k8s.io'"),
    ("condition", "!('system:nodes' in request.userInfo.groups)"),
    ("condition", "has(object.metadata.labels) && object.metadata.labels.exists(k, k == 'tier')"),
    ("policy", "object.spec.replicas <= params.maxReplicas"),
    (
        "policy",
        "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/') \
         && has(c.resources.limits) && !c.image.endsWith(':latest'))",
    ),
];

fn main() {
    // `cargo test --all-targets` builds and runs benchmarks too: only a named run measures.
    if !std::env::args().any(|argument| argument == "cel") {
        return;
    }
    let mut original = Original::start("cel");
    let base = Environment::new(libraries::kubernetes(), costs::KUBERNETES);
    let mut sums = Sums::default();
    println!("{:<64}{:>10}{:>10}{:>8}", "ns of CPU time", "Go", "coffer", "ratio");
    for text in RULES {
        rule(&mut original, &base, text, &mut sums);
    }
    for (name, text) in CONDITIONS {
        condition(&mut original, name, text, &mut sums);
    }
    sums.report();
}

fn rule(original: &mut Original, base: &Environment, text: &str, sums: &mut Sums) {
    let (declared, own) = (tree(&schema()), tree(&object()));
    let declared = schemas::declared_type(&declared, false, "selfType").expect("a type");
    let compile = || compile_rule(base, &declared, text);
    let program = compile();
    let view = || Some(Value::view(&own, &declared).expect("fits"));
    let request = json!({
        "expression": text, "environment": "rule", "schema": schema(),
        "activation": {"self": object(), "oldSelf": object()},
    });
    measure(original, request, compile, &program, &[view(), view()], sums);
}

/// As the server does for each rule of a node of a schema.
fn compile_rule(base: &Environment, declared: &Arc<DeclaredType>, text: &str) -> Program {
    let mut environment = base.clone();
    environment.declare("self", declared.clone());
    environment.declare("oldSelf", declared.clone());
    let expression = environment.check(text).unwrap_or_else(|issues| panic!("{text}: {issues}"));
    black_box(expression.estimate(&SchemaSizes(declared)));
    expression.program().expect("a program")
}

fn condition(original: &mut Original, name: &str, text: &str, sums: &mut Sums) {
    let params = name == "policy";
    let (environment, names) = environment(Declarations { params, authorizer: true, patches: false });
    let activation = activation(params);
    let trees: Vec<Option<coffer_types::Value>> =
        names.iter().map(|name| activation.get(*name).map(tree)).collect();
    let values: Vec<Option<Value<'_>>> = trees.iter().map(|tree| tree.as_ref().map(Value::plain)).collect();
    let compile = || {
        let expression = environment.check(text).unwrap_or_else(|issues| panic!("{text}: {issues}"));
        expression.program().expect("a program")
    };
    let program = compile();
    let request = json!({"expression": text, "environment": name, "activation": activation});
    measure(original, request, compile, &program, &values, sums);
}

/// Compiles and evaluates on both sides, in turns, and prints both.
fn measure<'v>(
    original: &mut Original,
    mut request: Json,
    compile: impl Fn() -> Program,
    program: &'v Program,
    values: &[Option<Value<'v>>],
    sums: &mut Sums,
) {
    let budget = Budget { interrupted: Some(&|| false), ..Budget::default() };
    let evaluate = || program.evaluate(values, budget).result.expect("a value");
    request["milliseconds"] = json!(ENOUGH.as_millis() as u64);
    let text = request["expression"].as_str().expect("text").to_owned();
    let shown: String = text.chars().take(54).collect();
    for what in ["compile", "evaluate"] {
        request["bench"] = json!(what);
        let (mut theirs, mut ours) = (f64::MAX, f64::MAX);
        for _ in 0..TURNS {
            let answer = original.ask(&request);
            let took = answer["nanoseconds"].as_f64().unwrap_or_else(|| panic!("{text}: {answer}"));
            theirs = theirs.min(took);
            // The work is the same: both come to the same value.
            assert_eq!(answer["result"].as_str(), Some(&*cel::canonical(&evaluate())), "{text}");
            ours = ours.min(match what {
                "compile" => cost(|| drop(black_box(compile()))),
                _ => cost(|| drop(black_box(evaluate()))),
            });
        }
        println!("{:<64}{theirs:>10.0}{ours:>10.0}{:>8.2}", format!("{what:<9} {shown}"), theirs / ours);
        sums.add(what, theirs / ours);
    }
}

/// The ratios of both kinds of work.
#[derive(Default)]
struct Sums {
    compile: Vec<f64>,
    evaluate: Vec<f64>,
}

impl Sums {
    fn add(&mut self, what: &str, ratio: f64) {
        match what {
            "compile" => self.compile.push(ratio),
            _ => self.evaluate.push(ratio),
        }
    }

    /// The geometric means, and the least, against the targets.
    fn report(&self) {
        for (what, ratios, target) in
            [("compiling", &self.compile, COMPILE), ("evaluating", &self.evaluate, EVALUATE)]
        {
            let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
            let least = ratios.iter().copied().fold(f64::MAX, f64::min);
            let verdict = if target <= least { "holds" } else { "MISSING" };
            println!("{what:<12} mean {mean:>6.2}   least {least:>6.2}   each >= {target}   {verdict}");
        }
    }
}

/// Runs something more and more often, until that takes long enough, and gives nanoseconds of one run.
fn cost(mut once: impl FnMut()) -> f64 {
    let mut count = 1_u32;
    loop {
        let before = thread_time();
        for _ in 0..count {
            once();
        }
        let took = thread_time() - before;
        if ENOUGH <= took {
            return took.as_nanos() as f64 / f64::from(count);
        }
        count *= 2;
    }
}

/// How long this thread has run.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel counts");
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

fn tree(json: &Json) -> coffer_types::Value {
    coffer_types::codec::json::decode_untyped(json.to_string().as_bytes()).expect("JSON").object
}

fn schema() -> Json {
    let text = |length: u64| json!({"type": "string", "maxLength": length});
    let texts = |length: u64, items: u64| json!({"type": "array", "maxItems": items, "items": text(length)});
    let reference = json!({"type": "object", "properties": {"name": text(63), "labelSelector": {
        "type": "object", "additionalProperties": text(63), "maxProperties": 8}}});
    json!({"type": "object", "properties": {
        "minReplicas": {"type": "integer"}, "replicas": {"type": "integer"}, "maxReplicas": {"type": "integer"},
        "secretRef": reference, "oidcConfig": reference, "storeRef": reference,
        "remoteKey": text(253), "rewrite": texts(63, 8), "names": texts(63, 16),
        "ports": {"type": "array", "maxItems": 16, "items": {"type": "object", "properties": {
            "name": text(15), "port": {"type": "integer"}}}},
        "labels": {"type": "object", "additionalProperties": text(63), "maxProperties": 16},
        "limit": text(20), "url": text(200), "mode": text(10),
    }})
}

fn object() -> Json {
    json!({
        "minReplicas": 1, "replicas": 3, "maxReplicas": 10,
        "secretRef": {"name": "credentials"}, "storeRef": {"name": "vault", "labelSelector": {"a": "b"}},
        "remoteKey": "team/database", "rewrite": [],
        "names": ["alpha", "beta-1", "gamma-2", "delta", "epsilon-long-name", "z", "eta0", "theta-9"],
        "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}, {"name": "admin", "port": 9000},
            {"name": "metrics", "port": 9090}],
        "labels": {"example.com/a": "1", "example.com/b": "2", "example.com/c": "3"},
        "limit": "2Gi", "url": "https://vault.example.com:8200/v1", "mode": "active",
    })
}

fn activation(params: bool) -> Json {
    let container = |name: &str| {
        json!({"name": name, "image": format!("registry.example.com/{name}:1.2.3"),
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}})
    };
    let mut activation = json!({
        "object": {
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop",
                "labels": {"app": "web", "team": "shop", "tier": "front"}},
            "spec": {"replicas": 3, "template": {"spec": {
                "containers": [container("web"), container("proxy"), container("log")]}}},
        },
        "request": {
            "uid": "1", "name": "web", "namespace": "shop", "operation": "CREATE",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "userInfo": {"username": "system:serviceaccount:shop:deployer", "uid": "2",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]},
        },
    });
    if params {
        activation["params"] = json!({"maxReplicas": 5});
    }
    activation
}

//! Expressions of webhooks and policies beside kube-apiserver's answers.

use coffer_lang::cel::admission::{Declarations, environment};
use coffer_lang::cel::libraries::authorizer::{Resource, authorizer_value, resource_check_value};
use coffer_lang::cel::program::Budget;
use coffer_lang::cel::value::Value;
use serde_json::Value as Json;

use crate::cel::{Case, Failures, Given, Table, canonical, user};

#[test]
fn admission() {
    let cases = Case::read(include_str!("../golden/cel/admission.jsonl"));
    assert!(150 <= cases.len(), "{} cases", cases.len());
    let mut failures = Failures::default();
    for case in &cases {
        failures.compare(case, &answer(case));
    }
    failures.report();
}

fn answer(case: &Case) -> Given {
    let policy = case.environment() != Some("condition");
    let patches = case.environment() == Some("mutation");
    let (environment, names) = environment(Declarations { params: policy, authorizer: true, patches });
    let refused =
        |text: String| Given { refused: Some(format!("compilation failed: {text}")), ..Given::default() };
    let expression = match environment.check(case.expression()) {
        Ok(expression) => expression,
        Err(issues) => return refused(issues.to_string()),
    };
    let declared = Some(expression.result_type().evaluated());
    let program = match expression.program() {
        Ok(program) => program,
        Err(error) => return refused(error.to_string()),
    };
    let activation = &case.request["activation"];
    let trees: Vec<Option<coffer_types::Value>> =
        names.iter().map(|name| activation.get(*name).map(tree)).collect();
    let table = &case.request["authorizer"];
    let values: Vec<Option<Value<'_>>> = names
        .iter()
        .zip(&trees)
        .map(|(name, tree)| match *name {
            "authorizer" => Some(authorizer_value(Table::new(table), user(table))),
            "authorizer.requestResource" => {
                let named = |name: &str| table["request"][name].as_str().unwrap_or_default().to_owned();
                let resource = Resource {
                    group: named("group"),
                    resource: named("resource"),
                    subresource: named("subresource"),
                    namespace: named("namespace"),
                    name: named("name"),
                    ..Resource::default()
                };
                Some(resource_check_value(Table::new(table), user(table), resource))
            }
            _ => tree.as_ref().map(Value::plain),
        })
        .collect();
    let evaluation = program.evaluate(&values, Budget::default());
    let mut given = Given { declared, actual: Some(evaluation.cost), ..Given::default() };
    match evaluation.result {
        Ok(value) => given.result = Some(canonical(&value)),
        Err(error) => given.error = Some(error.to_string()),
    }
    given
}

fn tree(json: &Json) -> coffer_types::Value {
    coffer_types::codec::json::decode_untyped(json.to_string().as_bytes()).expect("JSON").object
}

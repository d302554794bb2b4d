//! Our answers to rules of custom resources.

use std::sync::Arc;

use coffer_lang::cel::declared::DeclaredType;
use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::error::Error;
use coffer_lang::cel::estimate::Range;
use coffer_lang::cel::functions::{CallCosts, Library};
use coffer_lang::cel::program::{Budget, Variables};
use coffer_lang::cel::schemas::{self, SchemaSizes};
use coffer_lang::cel::types::Type;
use coffer_lang::cel::value::Value;
use serde_json::Value as Json;

use crate::cel::{Case, Given, canonical};

/// Our answer to a rule of a custom resource, and that of its message.
pub(crate) fn rule(case: &Case, libraries: Vec<Library>, costs: CallCosts) -> (Given, Option<Given>) {
    let request = &case.request;
    let schema = tree(&request["schema"]);
    let declared = schemas::declared_type(&schema, false, "selfType").expect("a type");
    let mut environment = Environment::new(libraries, costs);
    environment.declare("self", declared.clone());
    let optional = request.get("optionalOldSelf").is_some();
    if optional {
        environment.declare_type("oldSelf", Type::optional(declared.cel.clone()));
    } else {
        environment.declare("oldSelf", declared.clone());
    }
    let sizes = SchemaSizes(&declared);
    let objects: Vec<_> =
        ["self", "oldSelf"].map(|name| request["activation"].get(name).map(tree)).into_iter().collect();
    let evaluate = |text: &str, wanted: &Type, kind: &str, article: &str| {
        let expression = match environment.check(text) {
            Ok(expression) => expression,
            Err(issues) => {
                return Given {
                    refused: Some(format!("{kind}compilation failed: {issues}")),
                    ..Given::default()
                };
            }
        };
        if expression.result_type() != wanted {
            return Given {
                refused: Some(format!("{article} must evaluate to a {wanted}")),
                ..Given::default()
            };
        }
        let mut given = Given {
            declared: Some(expression.result_type().evaluated()),
            // The most is all that upstream tells of rules.
            estimate: Some(Range::new(0, expression.estimate(&sizes).max)),
            ..Given::default()
        };
        let program = match expression.program() {
            Ok(program) => program,
            Err(error) => {
                given = Given::default();
                given.refused = Some(format!("program instantiation failed: {error}"));
                return given;
            }
        };
        let variables = Objects { objects: &objects, declared: &declared, optional };
        let evaluation = program.evaluate_with(&variables, Budget::default());
        given.actual = Some(evaluation.cost);
        match evaluation.result {
            Ok(value) => given.result = Some(canonical(&value)),
            Err(error) => given.error = Some(error.to_string()),
        }
        given
    };
    let given = evaluate(case.expression(), &Type::Bool, "", "cel expression");
    let message = request.get("message").and_then(Json::as_str);
    let message =
        message.map(|message| evaluate(message, &Type::String, "messageExpression ", "messageExpression"));
    (given, message)
}

/// `self` and `oldSelf`, seen when they are used.
struct Objects<'o> {
    objects: &'o [Option<coffer_types::Value>],
    declared: &'o DeclaredType,
    optional: bool,
}

impl<'o> Variables<'o> for Objects<'o> {
    fn get(&self, slot: usize) -> Result<Option<Value<'o>>, Error> {
        let object = self.objects.get(slot).and_then(Option::as_ref);
        let value = object.map(|object| Value::view(object, self.declared)).transpose()?;
        Ok(if self.optional && slot == 1 { Some(Value::Optional(value.map(Arc::new))) } else { value })
    }
}

fn tree(json: &Json) -> coffer_types::Value {
    let text = format!("{{\"wrapped\":{json}}}");
    let wrapped = coffer_types::codec::json::decode_untyped(text.as_bytes()).expect("JSON").object;
    wrapped.get("wrapped").expect("wrapped").clone()
}

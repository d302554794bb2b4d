//! `matchConditions`: expressions that decide whether a webhook is asked.

use std::sync::Arc;

use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::libraries::authorizer;
use coffer_lang::cel::limits;
use coffer_lang::cel::program::{Budget, Program};
use coffer_lang::cel::types::Type;
use coffer_lang::cel::value::Value as CelValue;
use coffer_types::Value;
use coffer_types::names;
use coffer_types::patch::to_json_form;
use coffer_types::validation::field::{FieldError, FieldErrors, Path};

use crate::admission::asker::{Asker, resource_of, user_of};
use crate::admission::expressions;
use crate::authz::quote::aggregate;
use crate::ports::{Admission, Authorizer};

/// Most conditions of one webhook.
const MAX_CONDITIONS: usize = 64;
/// What is said when the conditions of a webhook cost more than they may together.
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What conditions say of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The webhook is asked.
    Asked,
    /// It is passed over: a condition says no.
    Excluded,
    /// Nobody knows; the failure policy decides. The number of conditions that failed, and why.
    Unknown(usize, String),
}

/// The conditions of one webhook, compiled.
pub(super) struct Conditions(Vec<Condition>);

struct Condition {
    expression: String,
    program: Result<Program, String>,
}

impl Conditions {
    /// Reads and compiles the `matchConditions` of a webhook.
    pub(super) fn of(hook: &Value) -> Self {
        let conditions = hook.get("matchConditions").and_then(Value::as_array).unwrap_or_default();
        let compiled = conditions.iter().map(|condition| {
            let expression = condition.str_at(&["expression"]).to_owned();
            let program = compile(&expression);
            Condition { expression, program }
        });
        Self(compiled.collect())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Evaluates them on the objects in the version of the webhook.
    pub(super) fn verdict(
        &self,
        request: &Admission<'_>,
        told: &Value,
        [object, old]: [Option<&Value>; 2],
        authorizer: &Arc<dyn Authorizer>,
    ) -> Verdict {
        let (object, old) = (object.map(to_json_form), old.map(to_json_form));
        let asker = Arc::new(Asker::new(authorizer, request.attributes));
        let user = user_of(request.attributes);
        let resource = resource_of(request);
        // An error may hold what was worked on, such as the text that is no number.
        let is_secret =
            (request.attributes.group.as_str(), request.attributes.resource.as_str()) == ("", "secrets");
        let mut left = limits::MATCH_CONDITIONS;
        let mut failures = Vec::new();
        for condition in &self.0 {
            let program = match &condition.program {
                Ok(program) => program,
                Err(why) => {
                    failures.push(format!("compilation error: {why}"));
                    continue;
                }
            };
            let variables = [
                Some(object.as_ref().map_or(CelValue::Null, CelValue::plain)),
                Some(old.as_ref().map_or(CelValue::Null, CelValue::plain)),
                Some(CelValue::plain(told)),
                Some(CelValue::Null),
                Some(authorizer::authorizer_value(asker.clone(), user.clone())),
                Some(authorizer::resource_check_value(asker.clone(), user.clone(), resource.clone())),
            ];
            let evaluation = program.evaluate(&variables, Budget::default());
            if left < evaluation.cost {
                return Verdict::Unknown(0, OUT_OF_BUDGET.to_owned());
            }
            left -= evaluation.cost;
            match evaluation.result {
                Ok(CelValue::Bool(false)) => return Verdict::Excluded,
                Ok(_) => {}
                Err(error) => failures.push(format!(
                    "expression '{}' resulted in error: {}",
                    condition.expression,
                    if is_secret { "<content redacted>" } else { error.message() }
                )),
            }
        }
        if failures.is_empty() {
            return Verdict::Asked;
        }
        Verdict::Unknown(failures.len(), aggregate(&failures))
    }
}

/// Compiles the condition of a webhook; the variables have the order in which [`Conditions::verdict`] gives them.
fn compile(expression: &str) -> Result<Program, String> {
    expressions::compile(expressions::environment(false, true), expression.trim(), &[Type::Bool])
}

/// What is wrong with the conditions of the webhooks of a configuration.
pub(crate) fn check_all(configuration: &Value) -> FieldErrors {
    let hooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
    let each = hooks.iter().enumerate().flat_map(|(index, hook)| {
        let conditions = hook.get("matchConditions").and_then(Value::as_array).unwrap_or_default();
        let path = Path::new("webhooks").index(index).child("matchConditions");
        check(conditions, &path, expressions::environment(false, true))
    });
    each.collect()
}

/// What is wrong with conditions that can use what `environment` has.
pub(in crate::admission) fn check(
    conditions: &[Value],
    path: &Path,
    environment: &Environment,
) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if MAX_CONDITIONS < conditions.len() {
        errors.push(FieldError::too_many(path, conditions.len(), MAX_CONDITIONS));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let expression = condition.str_at(&["expression"]).trim();
        let at = path.child("expression");
        if expression.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if let Err(why) = expressions::compile(environment, expression, &[Type::Bool]) {
            errors.push(FieldError::invalid(&at, expression, why));
        }
        let name = condition.str_at(&["name"]);
        let at = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        for fault in names::is_qualified_name(name) {
            errors.push(FieldError::invalid(&at, name, fault));
        }
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&at, name));
        }
        seen.push(name);
    }
    errors
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::ports::{Attributes, Decision, Operation};
    use crate::testing::{ContextParts, OneForm};

    /// Everybody may get secrets.
    struct Readers;

    #[async_trait]
    impl Authorizer for Readers {
        async fn authorize(&self, wanted: &Attributes) -> (Decision, Option<String>) {
            let reads = (wanted.verb.as_str(), wanted.resource.as_str()) == ("get", "secrets");
            (
                if reads { Decision::Allow("read".to_owned()) } else { Decision::NoOpinion(String::new()) },
                None,
            )
        }
    }

    fn verdict(expressions: &[&str]) -> Verdict {
        verdict_about("secrets", expressions)
    }

    fn verdict_about(resource: &str, expressions: &[&str]) -> Verdict {
        let conditions: Vec<Value> = expressions
            .iter()
            .map(|expression| Value::from([("name", "c"), ("expression", *expression)]))
            .collect();
        let conditions = Conditions::of(&Value::from([("matchConditions", Value::from(conditions))]));
        let attributes = Attributes {
            user: crate::ports::UserInfo {
                name: "ann".to_owned(),
                groups: vec!["g".to_owned()],
                ..crate::ports::UserInfo::default()
            },
            resource: resource.to_owned(),
            namespace: "ns".to_owned(),
            ..Attributes::default()
        };
        let (forms, parts) = (OneForm::default(), ContextParts::default());
        let request = Admission {
            attributes: &attributes,
            operation: Operation::Create,
            kind: "Secret",
            old: None,
            dry_run: true,
            context: &parts.context(&forms),
        };
        let told = Value::from([
            ("operation", Value::from("CREATE")),
            ("dryRun", true.into()),
            ("userInfo", Value::from([("username", "ann")])),
        ]);
        let object =
            Value::from([("metadata", Value::from([("name", "a")])), ("data", Value::from([("k", "dg==")]))]);
        let authorizer: Arc<dyn Authorizer> = Arc::new(Readers);
        conditions.verdict(&request, &told, [Some(&object), None], &authorizer)
    }

    /// After upstream's TestMatch of match conditions.
    #[test]
    fn a_no_excludes_whatever_else_fails() {
        let failed = "expression 'object.nothing == 1' resulted in error: no such key: nothing";
        for (expressions, expected) in [
            (&[][..], Verdict::Asked),
            (&["true", "true"], Verdict::Asked),
            (&["true", "false"], Verdict::Excluded),
            (&["object.nothing == 1", "false"], Verdict::Excluded),
            (&["object.nothing == 1"], Verdict::Unknown(1, failed.to_owned())),
            (&["true", "object.nothing == 1"], Verdict::Unknown(1, failed.to_owned())),
        ] {
            assert_eq!(verdict_about("configmaps", expressions), expected, "{expressions:?}");
        }
    }

    #[test]
    fn an_error_about_a_secret_holds_none_of_it() {
        for expression in
            ["int(object.data.k) == 1", "timestamp(object.data.k) == null || {}[object.data.k] == 1"]
        {
            let expected = format!("expression '{expression}' resulted in error: <content redacted>");
            assert_eq!(verdict(&[expression]), Verdict::Unknown(1, expected));
        }
    }

    #[test]
    fn conditions_see_the_request_and_whom_they_may_ask() {
        for (expression, expected) in [
            ("object.metadata.name == 'a' && object.data.k == 'dg=='", Verdict::Asked),
            ("oldObject == null", Verdict::Asked),
            ("namespaceObject == null", Verdict::Asked),
            ("request.operation == 'CREATE' && request.dryRun", Verdict::Asked),
            ("request.userInfo.username == 'bob'", Verdict::Excluded),
            ("has(request.subResource)", Verdict::Excluded),
            (
                "authorizer.group('').resource('secrets').namespace('ns').check('get').allowed()",
                Verdict::Asked,
            ),
            ("authorizer.requestResource.check('get').allowed()", Verdict::Asked),
            ("authorizer.requestResource.check('delete').allowed()", Verdict::Excluded),
            ("authorizer.path('/x').check('get').allowed()", Verdict::Excluded),
        ] {
            assert_eq!(verdict(&[expression]), expected, "{expression}");
        }
    }

    #[test]
    fn all_conditions_together_have_a_budget() {
        let dear = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5].all(e, a + b + c + d + e > 0)))))";
        assert_eq!(verdict(&[dear]), Verdict::Asked);
        assert_eq!(verdict(&[dear; 5]), Verdict::Unknown(0, OUT_OF_BUDGET.to_owned()));
    }

    #[test]
    fn expressions_are_checked_when_they_are_written() {
        let texts = |conditions: &[(&str, &str)]| -> Vec<String> {
            let conditions: Vec<Value> = conditions
                .iter()
                .map(|(name, expression)| Value::from([("name", *name), ("expression", *expression)]))
                .collect();
            check(&conditions, &Path::new("m"), expressions::environment(false, true))
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(texts(&[("a", "true"), ("example.com/b", " request.name == 'x' ")]), [""; 0]);
        assert_eq!(
            texts(&[("", ""), ("a", "1 + 1"), ("a", "true")]),
            [
                "m[0].expression: Required value",
                "m[0].name: Required value",
                "m[1].expression: Invalid value: \"1 + 1\": must evaluate to bool but got int",
                "m[2].name: Duplicate value: \"a\"",
            ]
        );
        let unknown = texts(&[("a", "request.nothing")]);
        assert!(
            unknown[0].contains("compilation failed: ERROR: <input>:1:8: undefined field 'nothing'"),
            "{unknown:?}"
        );
    }
}

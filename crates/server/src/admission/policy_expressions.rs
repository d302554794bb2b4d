//! What is wrong with the expressions of a policy, when it is written.

use coffer_lang::cel::declared::is_reserved;
use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::types::Type;
use coffer_types::Value;
use coffer_types::meta::Meta as _;
use coffer_types::names;
use coffer_types::validation::field::{FieldError, FieldErrors, Path};

use super::expressions::{compile, environment, variable_type, with_variables};
use super::webhooks::conditions;

/// Most audit annotations of one policy.
const MAX_AUDIT_ANNOTATIONS: usize = 20;
/// Longest expression of an audit annotation, in bytes.
const MAX_ANNOTATION_EXPRESSION: usize = 5 * 1024;
/// Reasons that a validation can give.
const REASONS: [&str; 4] = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
/// Checks a ValidatingAdmissionPolicy, in upstream's order.
pub(crate) fn check_validating(policy: &Value) -> FieldErrors {
    let spec = Path::new("spec");
    let has_params = policy.at(&["spec", "paramKind"]).is_some_and(|kind| !kind.is_null());
    let mut errors = FieldErrors::new();
    let plain = environment(has_params, true);
    errors.extend(conditions::check(list(policy, "matchConditions"), &spec.child("matchConditions"), plain));
    let known = variables(list(policy, "variables"), plain, &spec.child("variables"), &mut errors);
    let [asking, telling] = [true, false].map(|authorizer| {
        let environment = environment(has_params, authorizer);
        if known.is_empty() { environment.clone() } else { with_variables(environment, &known) }
    });
    let (validations, annotations) = (list(policy, "validations"), list(policy, "auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required(&spec.child("validations"), detail));
        errors.push(FieldError::required(&spec.child("auditAnnotations"), detail));
        return errors;
    }
    for (index, one) in validations.iter().enumerate() {
        validation(one, [&asking, &telling], &spec.child("validations").index(index), &mut errors);
    }
    let path = spec.child("auditAnnotations");
    if MAX_AUDIT_ANNOTATIONS < annotations.len() {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        errors.push(FieldError::invalid(&path, &Value::Array(annotations.to_vec()), detail));
    }
    for (index, annotation) in annotations.iter().enumerate() {
        let key = annotation.str_at(&["key"]);
        audit_annotation(annotation, policy.name(), &asking, &path.index(index), &mut errors);
        if annotations[..index].iter().any(|other| other.str_at(&["key"]) == key) {
            errors.push(FieldError::duplicate(&path.index(index).child("key"), key));
        }
    }
    errors
}

fn list<'p>(policy: &'p Value, field: &str) -> &'p [Value] {
    policy.at(&["spec", field]).and_then(Value::as_array).unwrap_or_default()
}

/// Each variable sees those before it; one that does not compile has any type for those after it.
fn variables(
    variables: &[Value],
    plain: &Environment,
    path: &Path,
    errors: &mut FieldErrors,
) -> Vec<(String, Type)> {
    let mut known: Vec<(String, Type)> = Vec::new();
    for (index, variable) in variables.iter().enumerate() {
        let (name, expression) = (variable.str_at(&["name"]), variable.str_at(&["expression"]));
        let path = path.index(index);
        if name.trim().is_empty() {
            errors.push(FieldError::required(&path.child("name"), "name is not specified"));
        } else if !is_identifier(name) {
            let detail = "must be a valid CEL identifier";
            errors.push(FieldError::invalid(&path.child("name"), name, detail));
        }
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&path.child("expression"), "expression is not specified"));
            continue;
        }
        let compiled = compile(&with_variables(plain, &known), expression, &[]);
        let cel = compiled.as_ref().map_or(Type::Dyn, |program| variable_type(program.result_type()));
        known.retain(|(other, _)| other != name);
        known.push((name.to_owned(), cel));
        if let Err(why) = compiled {
            errors.push(FieldError::invalid(&path.child("expression"), expression, why));
        }
    }
    known
}

fn is_identifier(name: &str) -> bool {
    let word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    !name.starts_with(|first: char| first.is_ascii_digit()) && name.bytes().all(word) && !is_reserved(name)
}

fn validation(
    validation: &Value,
    [asking, telling]: [&Environment; 2],
    path: &Path,
    errors: &mut FieldErrors,
) {
    let text = |field: &str| validation.str_at(&[field]);
    let (expression, at) = (text("expression"), path.child("expression"));
    if expression.trim().is_empty() {
        errors.push(FieldError::required(&at, "expression is not specified"));
    } else if let Err(why) = compile(asking, expression, &[Type::Bool]) {
        errors.push(FieldError::invalid(&at, expression, why));
    }
    let (told, at) = (text("messageExpression"), path.child("messageExpression"));
    if !told.is_empty() && told.trim().is_empty() {
        errors.push(FieldError::invalid(&at, told, "must be non-empty if specified"));
    } else if !told.is_empty()
        && let Err(why) = compile(telling, told, &[Type::String])
    {
        errors.push(FieldError::invalid(&at, told, why));
    }
    let (message, at) = (text("message"), path.child("message"));
    if !message.is_empty() && message.trim().is_empty() {
        errors.push(FieldError::invalid(&at, message, "must be non-empty if specified"));
    } else if message.trim().contains(['\n', '\r']) {
        errors.push(FieldError::invalid(&at, message, "must not contain line breaks"));
    }
    if let Some(reason) = validation.get("reason").and_then(Value::as_str)
        && !REASONS.contains(&reason)
    {
        errors.push(FieldError::not_supported(&path.child("reason"), reason, &REASONS));
    }
}

fn audit_annotation(
    annotation: &Value,
    policy: &str,
    asking: &Environment,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let (key, at) = (annotation.str_at(&["key"]), path.child("key"));
    if policy.is_empty() {
        errors.push(FieldError::invalid(&at, key, "requires metadata.name be non-empty"));
    } else {
        let qualified = format!("{policy}/{key}");
        for fault in names::is_qualified_name(&qualified) {
            errors.push(FieldError::invalid(&at, qualified.as_str(), fault));
        }
    }
    let (expression, at) = (annotation.str_at(&["valueExpression"]), path.child("valueExpression"));
    let trimmed = expression.trim();
    if trimmed.is_empty() {
        errors.push(FieldError::required(&at, "valueExpression is not specified"));
    } else if MAX_ANNOTATION_EXPRESSION < trimmed.len() {
        let detail = format!("must not exceed {MAX_ANNOTATION_EXPRESSION} bytes in length");
        errors.push(FieldError::required(&at, detail));
    } else if let Err(why) = compile(asking, trimmed, &[Type::String, Type::Null]) {
        errors.push(FieldError::invalid(&at, expression, why));
    }
}

#[cfg(test)]
mod tests {
    use coffer_types::codec::yaml;

    use super::*;

    fn check(spec: &str) -> Vec<String> {
        let policy = format!("{{metadata: {{name: config}}, spec: {spec}}}");
        let policy = yaml::decode_untyped(policy.as_bytes()).expect("YAML").object;
        check_validating(&policy).iter().map(ToString::to_string).collect()
    }

    /// Cases of upstream's TestValidateValidatingAdmissionPolicy.
    #[test]
    fn expressions_of_policies_are_checked_as_upstream() {
        let none = "Required value: validations or auditAnnotations must contain at least one item";
        let none = [format!("spec.validations: {none}"), format!("spec.auditAnnotations: {none}")];
        for (spec, expected) in [
            ("{}", &[&*none[0], &*none[1]][..]),
            ("{validations: [{expression: 'object.x < 100'}]}", &[]),
            (
                "{validations: [{expression: '  '}]}",
                &["spec.validations[0].expression: Required value: expression is not specified"],
            ),
            (
                "{validations: [{expression: 'true', reason: other}]}",
                &["spec.validations[0].reason: Unsupported value: \"other\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\", \"Unauthorized\""],
            ),
            (
                "{validations: [{expression: '1 + 1'}]}",
                &["spec.validations[0].expression: Invalid value: \"1 + 1\": must evaluate to bool but got int"],
            ),
            (
                "{validations: [{expression: 'request.userInfo.groups.map(g, [timestamp(g)])'}]}",
                &["spec.validations[0].expression: Invalid value: \"request.userInfo.groups.map(g, [timestamp(g)])\": must evaluate to bool but got list(list(google.protobuf.Timestamp))"],
            ),
            (
                "{variables: [{name: a, expression: '1'}, {name: a, expression: 'true'}], validations: [{expression: variables.a}]}",
                &[],
            ),
            (
                "{validations: [{expression: 'true', messageExpression: '0 == 0'}]}",
                &["spec.validations[0].messageExpression: Invalid value: \"0 == 0\": must evaluate to string but got bool"],
            ),
            (
                "{validations: [{expression: 'true', message: ' ', messageExpression: ' '}]}",
                &[
                    "spec.validations[0].messageExpression: Invalid value: \" \": must be non-empty if specified",
                    "spec.validations[0].message: Invalid value: \" \": must be non-empty if specified",
                ],
            ),
            (
                "{validations: [{expression: 'true', message: \"a\\nb\"}]}",
                &["spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks"],
            ),
            (
                "{auditAnnotations: [{key: a, valueExpression: 'true'}]}",
                &["spec.auditAnnotations[0].valueExpression: Invalid value: \"true\": must evaluate to one of [string null_type] but got bool"],
            ),
            (
                "{auditAnnotations: [{key: a, valueExpression: '''v'''}, {key: a, valueExpression: 'null'}]}",
                &["spec.auditAnnotations[1].key: Duplicate value: \"a\""],
            ),
            (
                "{matchConditions: [{expression: 'true'}], validations: [{expression: 'true'}]}",
                &["spec.matchConditions[0].name: Required value"],
            ),
            (
                "{variables: [{name: '    ', expression: 'true'}], validations: [{expression: 'true'}]}",
                &["spec.variables[0].name: Required value: name is not specified"],
            ),
            (
                "{variables: [{name: 4ever, expression: 'true'}], validations: [{expression: 'true'}]}",
                &["spec.variables[0].name: Invalid value: \"4ever\": must be a valid CEL identifier"],
            ),
            (
                "{variables: [{name: while, expression: 'true'}], validations: [{expression: 'true'}]}",
                &["spec.variables[0].name: Invalid value: \"while\": must be a valid CEL identifier"],
            ),
            (
                "{variables: [{name: a, expression: ''}], validations: [{expression: 'true'}]}",
                &["spec.variables[0].expression: Required value: expression is not specified"],
            ),
            (
                "{paramKind: {apiVersion: v1, kind: ConfigMap}, matchConditions: [{name: a, expression: 'params.x == 1'}],
                  validations: [{expression: 'params.x == 1 && authorizer.path(''/'').check(''get'').allowed()', messageExpression: 'params.y + ''!'''}]}",
                &[],
            ),
        ] {
            assert_eq!(check(spec), expected, "{spec}");
        }
        let long = "A".repeat(MAX_ANNOTATION_EXPRESSION + 1);
        let long = check(&format!("{{auditAnnotations: [{{key: a, valueExpression: '{long}'}}]}}"));
        let expected =
            "spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length";
        assert_eq!(long, [expected]);
    }

    /// Those of which upstream's test has the beginning of the text.
    #[test]
    fn what_does_not_compile_is_refused_with_its_place() {
        for (spec, begins) in [
            (
                "{validations: [{expression: 'object.x in [1, 2, '}]}",
                "spec.validations[0].expression: Invalid value: \"object.x in [1, 2, \": compilation failed: ERROR: <input>:1:20: Syntax error: missing ']' at '<EOF>",
            ),
            (
                "{validations: [{expression: 'true', messageExpression: 'object.x in [1, 2, '}]}",
                "spec.validations[0].messageExpression: Invalid value: \"object.x in [1, 2, \": compilation failed: ERROR: <input>:1:20: Syntax error: missing ']' at '<EOF>",
            ),
            (
                "{auditAnnotations: [{key: a, valueExpression: 'object.x in [1, 2, '}]}",
                "spec.auditAnnotations[0].valueExpression: Invalid value: \"object.x in [1, 2, \": compilation failed: ERROR: <input>:1:19: Syntax error: missing ']' at '<EOF>",
            ),
            (
                "{auditAnnotations: [{key: '@', valueExpression: 'null'}]}",
                "spec.auditAnnotations[0].key: Invalid value: \"config/@\": name part must consist of alphanumeric characters",
            ),
            (
                "{variables: [{name: foo, expression: '114 + ''514'''}], validations: [{expression: 'true'}]}",
                "spec.variables[0].expression: Invalid value: \"114 + '514'\": compilation failed: ERROR: <input>:1:5: found no matching overload for '_+_' applied to '(int, string)",
            ),
            (
                "{variables: [{name: foo, expression: 1 + 1}, {name: bar, expression: variables.foo + 1}],
                  validations: [{expression: variables.foo > 1}, {expression: variables.replicas == 2}]}",
                "spec.validations[1].expression: Invalid value: \"variables.replicas == 2\": compilation failed: ERROR: <input>:1:10: undefined field 'replicas'",
            ),
            (
                "{variables: [{name: correct, expression: object}, {name: bar, expression: variables.foo + 1}, {name: foo, expression: 1 + 1}],
                  validations: [{expression: variables.foo > 1}]}",
                "spec.variables[1].expression: Invalid value: \"variables.foo + 1\": compilation failed: ERROR: <input>:1:10: undefined field 'foo'",
            ),
            (
                "{validations: [{expression: 'variables.foo > 1'}]}",
                "spec.validations[0].expression: Invalid value: \"variables.foo > 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables'",
            ),
            (
                "{validations: [{expression: 'params.x == 1'}]}",
                "spec.validations[0].expression: Invalid value: \"params.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'",
            ),
            (
                "{validations: [{expression: 'true', messageExpression: 'authorizer.path(''/'').check(''get'').reason()'}]}",
                "spec.validations[0].messageExpression: Invalid value: \"authorizer.path('/').check('get').reason()\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer'",
            ),
        ] {
            let found = check(spec);
            assert!(found.len() == 1 && found[0].starts_with(begins), "{spec}: {found:?}");
        }
    }

    #[test]
    fn a_policy_is_checked_when_it_is_created_and_changed_but_not_for_its_status() {
        let text = "{metadata: {name: config, resourceVersion: '1'}, spec: {failurePolicy: Fail,
            matchConstraints: {resourceRules: [{}]}, validations: [{expression: '1'}]}}";
        let policy = yaml::decode_untyped(text.as_bytes()).expect("YAML").object;
        let strategy =
            crate::resources::strategy::of("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy");
        let texts = |errors: FieldErrors| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expected =
            ["spec.validations[0].expression: Invalid value: \"1\": must evaluate to bool but got int"];
        assert_eq!(texts(strategy.validate_create(&policy)), expected);
        assert_eq!(texts(strategy.validate_update("", &policy, &policy)), expected);
        assert_eq!(texts(strategy.validate_update("status", &policy, &policy)), [""; 0]);
    }
}

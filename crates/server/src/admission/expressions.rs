//! Expressions of webhooks and policies, compiled.

use std::sync::{Arc, LazyLock};

use coffer_lang::cel::admission::{self, Declarations};
use coffer_lang::cel::declared::{DeclaredType, Field, Fields, Shape};
use coffer_lang::cel::environment::Environment;
use coffer_lang::cel::program::Program;
use coffer_lang::cel::types::Type;

/// The name of the type of `variables`.
const VARIABLES: &str = "kubernetes.variables";

/// What webhooks and policies without parameters can use.
static PLAIN: LazyLock<[Environment; 2]> = LazyLock::new(|| environments(false));
/// What policies with parameters can use.
static WITH_PARAMS: LazyLock<[Environment; 2]> = LazyLock::new(|| environments(true));

fn environments(params: bool) -> [Environment; 2] {
    [false, true].map(|authorizer| {
        admission::environment(Declarations { params, authorizer, ..Declarations::default() }).0
    })
}

/// What an expression can use that has, or has not, parameters and whom to ask.
pub(super) fn environment(params: bool, authorizer: bool) -> &'static Environment {
    let environments: &'static [Environment; 2] = if params { &WITH_PARAMS } else { &PLAIN };
    &environments[usize::from(authorizer)]
}

/// `environment` with `variables`, of the types that their expressions have.
pub(super) fn with_variables(environment: &Environment, variables: &[(String, Type)]) -> Environment {
    let mut fields = Fields::default();
    for (name, cel) in variables {
        let declared = Arc::new(DeclaredType { cel: cel.clone(), ..DeclaredType::DYN });
        fields.insert(Field { name: name.as_str().into(), property: name.as_str().into(), declared });
    }
    let declared =
        DeclaredType { cel: Type::object(VARIABLES), shape: Shape::Object(fields), ..DeclaredType::DYN };
    let mut environment = environment.clone();
    environment.declare("variables", Arc::new(declared));
    environment
}

/// The type that a variable has for those that use it.
pub(super) fn variable_type(result: &Type) -> Type {
    match result {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => result.clone(),
        Type::List(element) => Type::list(variable_type(element)),
        Type::Map(entry) => Type::map(variable_type(&entry.0), variable_type(&entry.1)),
        _ => Type::Dyn,
    }
}

/// Compiles an expression, which has to have one of the types `accepted`, or any where that says none. The error
/// is upstream's text.
pub(super) fn compile(
    environment: &Environment,
    expression: &str,
    accepted: &[Type],
) -> Result<Program, String> {
    let checked = environment.check(expression);
    let checked = checked.map_err(|issues| format!("compilation failed: {issues}"))?;
    let found = checked.result_type();
    if !accepted.is_empty() && !accepted.contains(found) {
        let found = found.evaluated();
        let names: Vec<String> = accepted.iter().map(Type::evaluated).collect();
        return Err(match &*names {
            [only] => format!("must evaluate to {only} but got {found}"),
            several => format!("must evaluate to one of [{}] but got {found}", several.join(" ")),
        });
    }
    checked.program().map_err(|error| format!("program instantiation failed: {}", error.message()))
}

//! Questions to an authorizer from within expressions.
//!
//! What answers is an [`Authorizer`], which the server gives with the variable.

use std::any::Any;
use std::sync::Arc;

use coffer_types::names;

use super::made;
use crate::cel::error::Error;
use crate::cel::functions::{Context, Evaluate, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::{Opaque, Value};

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
const DECISION: &str = "kubernetes.authorization.Decision";

/// The names of this library's types.
pub const TYPES: [&str; 5] = [AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION];

/// Who decides.
pub trait Authorizer: Send + Sync {
    /// Whether `user` may do what is asked.
    fn authorize(&self, user: &User, asked: &Asked) -> Verdict;
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The unique id, or nothing.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known, by key.
    pub extra: Vec<(String, Vec<String>)>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A request for a path that is no resource's.
    Path {
        /// The path.
        path: String,
        /// The verb of HTTP, in lower case.
        verb: String,
    },
    /// A request for a resource, of any version of its group.
    Resource(Resource, String),
}

/// Part of the API, or one object in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource {
    /// The API group.
    pub group: String,
    /// The resource's plural name.
    pub resource: String,
    /// The subresource, or nothing.
    pub subresource: String,
    /// The namespace, or nothing.
    pub namespace: String,
    /// The object's name, or nothing.
    pub name: String,
    /// A field selector as it was given, or nothing.
    pub field_selector: String,
    /// A label selector as it was given, or nothing.
    pub label_selector: String,
}

/// What was decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong.
    pub error: Option<String>,
}

/// The type of the variable `authorizer`.
pub fn authorizer_type() -> Type {
    Type::object(AUTHORIZER)
}

/// The type of the variable `authorizer.requestResource`.
pub fn resource_check_type() -> Type {
    Type::object(RESOURCE_CHECK)
}

/// The value of `authorizer`: asks for `user`.
pub fn authorizer_value<'v>(authorizer: Arc<dyn Authorizer>, user: User) -> Value<'v> {
    Value::opaque(Asker { authorizer, user: Arc::new(user) })
}

/// The value of `authorizer.requestResource`: asks for `user` about `resource`.
pub fn resource_check_value<'v>(
    authorizer: Arc<dyn Authorizer>,
    user: User,
    resource: Resource,
) -> Value<'v> {
    Value::opaque(ResourceCheck { asker: Asker { authorizer, user: Arc::new(user) }, resource })
}

#[derive(Clone)]
struct Asker {
    authorizer: Arc<dyn Authorizer>,
    user: Arc<User>,
}

struct PathCheck {
    asker: Asker,
    path: String,
}

struct GroupCheck {
    asker: Asker,
    group: String,
}

struct ResourceCheck {
    asker: Asker,
    resource: Resource,
}

struct Decision(Verdict);

macro_rules! opaque {
    ($($value:ty => $name:expr),*) => {
        $(impl Opaque for $value {
            fn type_of(&self) -> Type {
                Type::object($name)
            }

            /// As upstream: they cannot be compared, though the checker thinks so.
            fn equals(&self, _: &dyn Opaque) -> Result<bool, Error> {
                Err(Error::no_such_overload())
            }

            fn as_any(&self) -> &dyn Any {
                self
            }
        })*
    };
}

opaque!(
    Asker => AUTHORIZER,
    PathCheck => PATH_CHECK,
    GroupCheck => GROUP_CHECK,
    ResourceCheck => RESOURCE_CHECK,
    Decision => DECISION
);

pub(super) fn library() -> Library {
    let asking = |name: &'static str, id: &'static str, from: &str, to: Type, evaluate: Evaluate| {
        Function::new(name, vec![Overload::member(id, [Type::object(from), Type::String], to, evaluate)])
    };
    let told = |name: &'static str, id: &'static str, result: Type, evaluate: Evaluate| {
        Function::new(name, vec![Overload::member(id, [Type::object(DECISION)], result, evaluate)])
    };
    let narrowing = |name: &'static str, id: &'static str, evaluate: Evaluate| {
        asking(name, id, RESOURCE_CHECK, Type::object(RESOURCE_CHECK), evaluate)
    };
    Library {
        name: "kubernetes.authz",
        functions: vec![
            asking("path", "authorizer_path", AUTHORIZER, Type::object(PATH_CHECK), path),
            asking("group", "authorizer_group", AUTHORIZER, Type::object(GROUP_CHECK), |_, arguments| {
                let asker = part::<Asker>(&arguments[0])?.clone();
                Ok(Value::opaque(GroupCheck { asker, group: arguments[1].as_text()?.to_string() }))
            }),
            Function::new(
                "serviceAccount",
                vec![Overload::member(
                    "authorizer_serviceaccount",
                    [Type::object(AUTHORIZER), Type::String, Type::String],
                    Type::object(AUTHORIZER),
                    service_account,
                )],
            ),
            asking("resource", "groupcheck_resource", GROUP_CHECK, Type::object(RESOURCE_CHECK), resource),
            narrowing("subresource", "resourcecheck_subresource", |_, arguments| {
                narrowed(arguments, |resource, text| resource.subresource = text)
            }),
            narrowing("namespace", "resourcecheck_namespace", |_, arguments| {
                narrowed(arguments, |resource, text| resource.namespace = text)
            }),
            narrowing("name", "resourcecheck_name", |_, arguments| {
                narrowed(arguments, |resource, text| resource.name = text)
            }),
            narrowing("fieldSelector", "authorizer_fieldselector", |_, arguments| {
                narrowed(arguments, |resource, text| resource.field_selector = text)
            }),
            narrowing("labelSelector", "authorizer_labelselector", |_, arguments| {
                narrowed(arguments, |resource, text| resource.label_selector = text)
            }),
            Function::new(
                "check",
                vec![
                    Overload::member(
                        "pathcheck_check",
                        [Type::object(PATH_CHECK), Type::String],
                        Type::object(DECISION),
                        check,
                    ),
                    Overload::member(
                        "resourcecheck_check",
                        [Type::object(RESOURCE_CHECK), Type::String],
                        Type::object(DECISION),
                        check,
                    ),
                ],
            ),
            told("errored", "decision_errored", Type::Bool, |_, arguments| {
                Ok(Value::Bool(part::<Decision>(&arguments[0])?.0.error.is_some()))
            }),
            told("error", "decision_error", Type::String, |context, arguments| {
                made(context, part::<Decision>(&arguments[0])?.0.error.clone().unwrap_or_default())
            }),
            told("allowed", "decision_allowed", Type::Bool, |_, arguments| {
                Ok(Value::Bool(part::<Decision>(&arguments[0])?.0.allowed))
            }),
            told("reason", "decision_reason", Type::String, |context, arguments| {
                made(context, part::<Decision>(&arguments[0])?.0.reason.clone())
            }),
        ],
        ..Library::default()
    }
}

fn part<'a, T: Opaque>(value: &'a Value<'_>) -> Result<&'a T, Error> {
    value.downcast::<T>().ok_or_else(Error::no_such_overload)
}

fn path<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let asker = part::<Asker>(&arguments[0])?.clone();
    let path = arguments[1].as_text()?;
    if path.trim().is_empty() {
        return Err(Error::new("path must not be empty"));
    }
    Ok(Value::opaque(PathCheck { asker, path: path.to_string() }))
}

fn service_account<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let asker = part::<Asker>(&arguments[0])?;
    let (namespace, name) = (arguments[1].as_text()?, arguments[2].as_text()?);
    if !names::dns_subdomain(name, false).is_empty() {
        return Err(Error::new("Invalid service account name"));
    }
    if !names::dns_label(namespace, false).is_empty() {
        return Err(Error::new("Invalid service account namespace"));
    }
    let user = User {
        name: format!("system:serviceaccount:{}:{}", &**namespace, &**name),
        groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{}", &**namespace)],
        ..User::default()
    };
    Ok(Value::opaque(Asker { authorizer: asker.authorizer.clone(), user: Arc::new(user) }))
}

fn resource<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let check = part::<GroupCheck>(&arguments[0])?;
    let resource = arguments[1].as_text()?;
    if resource.trim().is_empty() {
        return Err(Error::new("resource must not be empty"));
    }
    let resource =
        Resource { group: check.group.clone(), resource: resource.to_string(), ..Resource::default() };
    Ok(Value::opaque(ResourceCheck { asker: check.asker.clone(), resource }))
}

fn narrowed<'v>(arguments: &[Value<'v>], set: fn(&mut Resource, String)) -> Result<Value<'v>, Error> {
    let check = part::<ResourceCheck>(&arguments[0])?;
    let mut resource = check.resource.clone();
    set(&mut resource, arguments[1].as_text()?.to_string());
    Ok(Value::opaque(ResourceCheck { asker: check.asker.clone(), resource }))
}

fn check<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let verb = arguments[1].as_text()?.to_string();
    let (asker, asked) = if let Some(check) = arguments[0].downcast::<PathCheck>() {
        (&check.asker, Asked::Path { path: check.path.clone(), verb })
    } else {
        let check = part::<ResourceCheck>(&arguments[0])?;
        (&check.asker, Asked::Resource(check.resource.clone(), verb))
    };
    Ok(Value::opaque(Decision(asker.authorizer.authorize(&asker.user, &asked))))
}

//! What the expressions of webhooks and policies can use.

use std::sync::Arc;

use super::declared::{DeclaredType, Field, Fields, ListIdentity, NO_MAXIMUM, Scalar, Shape};
use super::environment::Environment;
use super::libraries::{self, authorizer, costs};
use super::types::Type;

/// What an environment has beside the objects and the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declarations {
    /// `params`: the object that a policy's binding names.
    pub params: bool,
    /// `authorizer` and `authorizer.requestResource`.
    pub authorizer: bool,
    /// `Object{…}`, `JSONPatch{…}` and `jsonpatch.escapeKey`, for what a mutation is to do.
    pub patches: bool,
}

/// An environment, with the names of its variables in the order of their values.
///
/// Objects are seen without their schemas, and so are the request and the
/// namespace at run time: their declared types are for what is checked before.
pub fn environment(declarations: Declarations) -> (Environment, Vec<&'static str>) {
    let mut libraries = libraries::kubernetes();
    if declarations.patches {
        libraries.push(libraries::mutation());
    }
    let mut environment = Environment::new(libraries, costs::KUBERNETES);
    environment.patches = declarations.patches;
    let mut names = vec!["object", "oldObject", "request", "namespaceObject"];
    environment.declare_type("object", Type::Dyn);
    environment.declare_type("oldObject", Type::Dyn);
    environment.declare("request", Arc::new(request_type()));
    environment.declare("namespaceObject", Arc::new(namespace_type()));
    if declarations.params {
        names.push("params");
        environment.declare_type("params", Type::Dyn);
    }
    if declarations.authorizer {
        names.extend(["authorizer", "authorizer.requestResource"]);
        environment.declare_type("authorizer", authorizer::authorizer_type());
        environment.declare_type("authorizer.requestResource", authorizer::resource_check_type());
    }
    (environment, names)
}

fn scalar(cel: Type, scalar: Scalar) -> DeclaredType {
    DeclaredType { cel, shape: Shape::Scalar(scalar), nullable: true, maximum: 0, minimum_serialized: 1 }
}

fn text() -> DeclaredType {
    scalar(Type::String, Scalar::String)
}

fn list(element: DeclaredType) -> DeclaredType {
    DeclaredType {
        cel: Type::list(element.cel.clone()),
        shape: Shape::List { element: Arc::new(element), identity: ListIdentity::Atomic },
        nullable: true,
        maximum: NO_MAXIMUM,
        minimum_serialized: 2,
    }
}

fn map(element: DeclaredType) -> DeclaredType {
    DeclaredType {
        cel: Type::map(Type::String, element.cel.clone()),
        shape: Shape::Map { element: Arc::new(element) },
        nullable: true,
        maximum: NO_MAXIMUM,
        minimum_serialized: 2,
    }
}

fn object<const N: usize>(name: &str, members: [(&str, DeclaredType); N]) -> DeclaredType {
    let mut fields = Fields::default();
    for (name, declared) in members {
        fields.insert(Field { name: name.into(), property: name.into(), declared: Arc::new(declared) });
    }
    DeclaredType {
        cel: Type::object(name),
        shape: Shape::Object(fields),
        nullable: true,
        maximum: 0,
        minimum_serialized: 2,
    }
}

/// The type of `request`.
fn request_type() -> DeclaredType {
    let kind = || {
        let members = [("group", text()), ("version", text()), ("kind", text())];
        object("kubernetes.GroupVersionKind", members)
    };
    let resource = || {
        let members = [("group", text()), ("version", text()), ("resource", text())];
        object("kubernetes.GroupVersionResource", members)
    };
    let user = object(
        "kubernetes.UserInfo",
        [("username", text()), ("uid", text()), ("groups", list(text())), ("extra", map(list(text())))],
    );
    object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind()),
            ("resource", resource()),
            ("subResource", text()),
            ("requestKind", kind()),
            ("requestResource", resource()),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", scalar(Type::Bool, Scalar::Bool)),
            ("options", DeclaredType::DYN),
        ],
    )
}

/// The type of `namespaceObject`.
fn namespace_type() -> DeclaredType {
    let time = || scalar(Type::Timestamp, Scalar::DateTime);
    let number = || scalar(Type::Int, Scalar::Int);
    let condition = object(
        "kubernetes.NamespaceCondition",
        [
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", time()),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", map(text())),
            ("annotations", map(text())),
            ("UID", text()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", number()),
            ("deletionTimestamp", time()),
            ("generation", number()),
            ("resourceVersion", text()),
            ("finalizers", list(text())),
        ],
    );
    object(
        "kubernetes.Namespace",
        [
            ("metadata", metadata),
            ("spec", object("kubernetes.NamespaceSpec", [("finalizers", list(text()))])),
            (
                "status",
                object("kubernetes.NamespaceStatus", [("conditions", list(condition)), ("phase", text())]),
            ),
        ],
    )
}

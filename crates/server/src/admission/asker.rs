//! The `authorizer` of expressions, over that of the server.

use std::sync::Arc;

use coffer_lang::cel::libraries::authorizer::{self, Asked, User, Verdict as Decided};
use futures::FutureExt as _;

use crate::ports::{Admission, Attributes, Authorizer, Decision};

/// Whom the expressions ask. Whoever decides here has what it needs in memory; where it would have to
/// wait, the answer is that it failed.
pub(super) struct Asker {
    authorizer: Arc<dyn Authorizer>,
    attributes: Attributes,
}

impl Asker {
    pub(super) fn new(authorizer: &Arc<dyn Authorizer>, attributes: &Attributes) -> Self {
        Self { authorizer: Arc::clone(authorizer), attributes: attributes.clone() }
    }
}

impl authorizer::Authorizer for Asker {
    fn authorize(&self, user: &User, asked: &Asked) -> Decided {
        let mut wanted = Attributes { user: self.attributes.user.clone(), ..Attributes::default() };
        if user.name != wanted.user.name {
            wanted.user = crate::ports::UserInfo {
                name: user.name.clone(),
                uid: user.uid.clone(),
                groups: user.groups.clone(),
                extra: user.extra.iter().cloned().collect(),
            };
        }
        match asked {
            Asked::Path { path, verb } => {
                wanted.path.clone_from(path);
                wanted.verb.clone_from(verb);
            }
            Asked::Resource(resource, verb) => {
                wanted.resource_request = true;
                "*".clone_into(&mut wanted.version);
                wanted.verb.clone_from(verb);
                wanted.group.clone_from(&resource.group);
                wanted.resource.clone_from(&resource.resource);
                wanted.subresource.clone_from(&resource.subresource);
                wanted.namespace.clone_from(&resource.namespace);
                wanted.name.clone_from(&resource.name);
            }
        }
        match self.authorizer.authorize(&wanted).now_or_never() {
            Some((Decision::Allow(reason), error)) => Decided { allowed: true, reason, error },
            Some((Decision::Deny(reason) | Decision::NoOpinion(reason), error)) => {
                Decided { allowed: false, reason, error }
            }
            None => Decided { error: Some("the decision takes too long".to_owned()), ..Decided::default() },
        }
    }
}

/// Who makes the request.
pub(super) fn user_of(attributes: &Attributes) -> User {
    let user = &attributes.user;
    User {
        name: user.name.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.iter().map(|(key, values)| (key.clone(), values.clone())).collect(),
    }
}

/// What the request is about.
pub(super) fn resource_of(request: &Admission<'_>) -> authorizer::Resource {
    authorizer::Resource {
        group: request.attributes.group.clone(),
        resource: request.attributes.resource.clone(),
        subresource: request.attributes.subresource.clone(),
        namespace: request.attributes.namespace.clone(),
        name: request.context.name.to_owned(),
        ..authorizer::Resource::default()
    }
}

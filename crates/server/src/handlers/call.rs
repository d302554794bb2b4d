//! One authorized request, and what is answered to it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coffer_store::registry::Stored;
use coffer_types::{Status, Value};
use http::{HeaderMap, Method};
use parking_lot::Mutex;

use super::options;
use crate::body::{self, Body};
use crate::ports::Attributes;
use crate::query::Query;
use crate::route::RequestInfo;
use crate::state::Server;

/// One authorized request as a handler sees it.
pub(crate) struct Call {
    pub(crate) server: Arc<Server>,
    pub(crate) method: Method,
    pub(crate) info: Arc<RequestInfo>,
    pub(crate) query: Arc<Query>,
    pub(crate) headers: Arc<HeaderMap>,
    pub(crate) attributes: Attributes,
    /// When it must have been answered, on the monotonic clock.
    pub(crate) deadline: Option<Duration>,
    /// Not yet read; behind a lock only so that handlers can share the call across threads.
    pub(crate) body: Mutex<Option<Body>>,
    pub(crate) warnings: Vec<String>,
}

impl Call {
    /// The whole body.
    pub(crate) async fn read_body(&mut self) -> Result<Bytes, Status> {
        let body = self.body.get_mut().take();
        match body {
            Some(body) => body::read(body).await,
            None => Ok(Bytes::new()),
        }
    }

    /// Who is recorded as the manager of fields.
    pub(crate) fn manager(&self, options: &options::WriteOptions) -> String {
        if options.field_manager.is_empty() {
            let agent = self.headers.get(http::header::USER_AGENT);
            manager_of_agent(agent.and_then(|value| value.to_str().ok()).unwrap_or_default())
        } else {
            options.field_manager.clone()
        }
    }
}

/// What is written as the answer to a write.
pub(crate) enum Output {
    /// As it is in the store now.
    Stored(Arc<Stored>),
    /// What would be in the store, or what never is.
    Value(Value),
}

/// Longest name of a field manager.
const MAX_MANAGER: usize = 128;

/// The user agent up to the first slash, printable characters only.
fn manager_of_agent(agent: &str) -> String {
    let mut manager = String::new();
    let name = agent.split('/').next().unwrap_or_default();
    for character in name.chars().filter(|character| !character.is_control()) {
        if manager.len() + character.len_utf8() > MAX_MANAGER {
            break;
        }
        manager.push(character);
    }
    manager
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_comes_from_the_user_agent() {
        for (agent, expected) in
            [("kubectl/v1.37.1 (linux/amd64)", "kubectl"), ("curl", "curl"), ("", ""), ("a\u{1}b/c", "ab")]
        {
            assert_eq!(manager_of_agent(agent), expected);
        }
        assert_eq!(manager_of_agent(&"x".repeat(300)).len(), MAX_MANAGER);
    }
}

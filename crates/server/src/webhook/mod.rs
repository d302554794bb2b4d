//! Webhooks that the server calls: where they are, whom to trust, and one POST.
//!
//! Redirects are not followed, an answer has a largest size and a latest time, and neither what is
//! sent nor what is answered is part of an error or of the log.

mod client;
mod pieces;
mod service;
mod target;
mod version;

pub(crate) use self::client::WebhookClient;
pub(crate) use self::pieces::Pieces;
pub(crate) use self::service::{Resolve, Services};
pub(crate) use self::target::{Target, check_bundle, check_service, check_url};
pub(crate) use self::version::ReviewVersion;

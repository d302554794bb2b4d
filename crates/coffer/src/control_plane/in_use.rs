//! `GET /coffer/v1/encryption`: the encryption configuration that is in use beside the one on disk,
//! without any key: check values are equal where keys are.
//!
//! It is no resource: the right to get the path is granted as for other paths, and
//! `system:masters` has it.

use std::sync::Arc;

use coffer_config::encryption::reload::content_hash;
use coffer_config::encryption::{Reload, ShownRule, parse};
use coffer_server::api::Route;
use coffer_server::encryption::{ConfigFile, Encryption};
use coffer_types::Status;
use futures::future::BoxFuture;
use serde::Serialize;

use super::encryption::Watched;

/// Where it is served.
pub(crate) const PATH: &str = "/coffer/v1/encryption";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    /// Whether the file is what is in use.
    same: bool,
    in_use: Configuration,
    file: Configuration,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    #[serde(skip_serializing_if = "String::is_empty")]
    hash: String,
    rules: Vec<Rule>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
}

#[derive(Serialize)]
struct Rule {
    resources: Vec<String>,
    providers: Vec<Provider>,
}

#[derive(Serialize)]
struct Provider {
    provider: &'static str,
    keys: Vec<Key>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Key {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    check_value: String,
}

/// The route of a server with a configuration.
pub(crate) fn route(encryption: Arc<Encryption>, watched: &Watched) -> Route {
    let (name, reload, file) = (watched.name(), watched.reload, watched.file.clone());
    let answer = move |_| {
        let (encryption, name, file) = (encryption.clone(), name.clone(), file.clone());
        let answer: BoxFuture<'static, _> =
            Box::pin(async move { answer(&encryption, &name, reload, &*file).await });
        answer
    };
    Route::new(PATH, "application/json", Box::new(answer))
}

async fn answer(
    encryption: &Encryption,
    name: &str,
    reload: Reload,
    file: &dyn ConfigFile,
) -> Result<Vec<u8>, Status> {
    let on_disk = match file.read().await {
        Ok(bytes) => {
            let hash = content_hash(bytes.expose());
            match parse(name, bytes.expose(), reload) {
                Ok(config) => Configuration { hash, rules: rules(&config.shown()), error: String::new() },
                Err(error) => Configuration { hash, error: error.to_string(), ..Configuration::default() },
            }
        }
        Err(error) => Configuration { error, ..Configuration::default() },
    };
    let current = encryption.current();
    let in_use = Configuration {
        hash: current.hash().to_owned(),
        rules: rules(current.rules()),
        error: String::new(),
    };
    let shown = Shown { same: in_use.hash == on_disk.hash, in_use, file: on_disk };
    let mut text = serde_json::to_vec_pretty(&shown).map_err(Status::internal)?;
    text.push(b'\n');
    Ok(text)
}

fn rules(shown: &[ShownRule]) -> Vec<Rule> {
    let rules = shown.iter().map(|rule| Rule {
        resources: rule.resources.clone(),
        providers: rule
            .providers
            .iter()
            .map(|provider| Provider {
                provider: provider.provider.name(),
                keys: provider
                    .keys
                    .iter()
                    .map(|key| Key { name: key.name.clone(), check_value: key.check_value.clone() })
                    .collect(),
            })
            .collect(),
    });
    rules.collect()
}

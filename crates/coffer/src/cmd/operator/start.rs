//! What an operator tells of its start: what stands in its way, and then what it serves.

use std::net::SocketAddr;
use std::time::Duration;

use coffer_operator::crd;
use coffer_runtime::anonymous::anonymous;
use coffer_types::time::Clock;
use kube::{Client, Config, Error};
use tokio_util::sync::CancellationToken;

use crate::client::{Server, root_cause, unreachable};
use crate::exit::Failure;
use crate::say;

/// How often what stands in the way is looked for until everything is there, and from then on.
const LOOK_AT_START: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_secs(60);
/// What has been told is told again after this time, if it is still so.
const AGAIN: Duration = Duration::from_secs(600);
/// How long the first answer of the API server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fails unless the API server answers and takes the credentials: what is named wrongly does not mend itself.
pub(super) async fn check(server: &Server, config: &Config, clock: &dyn Clock) -> Result<(), Failure> {
    let url = &server.url;
    let answer = tokio::select! {
        answer = server.client.apiserver_version() => answer,
        () = clock.sleep(PATIENCE) => {
            let text = format!("{url} does not answer within {} s", PATIENCE.as_secs());
            return Err(Failure::unreachable(text)
                .next("is the API server running? name another with --kubeconfig or --context"));
        }
    };
    match answer {
        Ok(_) => Ok(()),
        // Whoever may not see the version may still do the rest.
        Err(Error::Api(status)) if status.code == 403 => Ok(()),
        Err(Error::Api(status)) if status.code == 401 => {
            let next = format!(
                "{}; the kubeconfig's credentials are not valid there: name another with --kubeconfig or --context",
                named(config).await
            );
            Err(Failure::unreachable(format!("{url} refused: {}", status.message)).next(next))
        }
        Err(error) => Err(unreachable(url, &error)),
    }
}

/// What the server says of itself to anybody.
async fn named(config: &Config) -> String {
    let version = match Client::try_from(anonymous(config)) {
        Ok(client) => client.apiserver_version().await.ok(),
        Err(_) => None,
    };
    version.map_or_else(
        || "it tells strangers nothing".to_owned(),
        |version| format!("it is Kubernetes {}", version.git_version),
    )
}

/// What an operator serves, and where.
pub(super) struct Serves {
    pub(super) server: String,
    /// "" for all.
    pub(super) namespace: String,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) health: Option<SocketAddr>,
    pub(super) standby: bool,
}

impl Serves {
    fn text(&self) -> String {
        let kinds = if self.namespace.is_empty() {
            "ExternalSecret, SecretStore and ClusterSecretStore in all namespaces".to_owned()
        } else {
            format!("ExternalSecret and SecretStore in namespace {}", self.namespace)
        };
        let does = if self.standby { "stands by to serve" } else { "serves" };
        let at = |what: &str, address: Option<SocketAddr>, path: &str| {
            address.map_or_else(|| format!("no {what}"), |address| format!("{what} http://{address}/{path}"))
        };
        let (metrics, health) = (at("metrics", self.metrics, "metrics"), at("health", self.health, "readyz"));
        format!("coffer: the operator {does} {kinds} of {} until Ctrl-C; {metrics}, {health}", self.server)
    }
}

/// Tells what stands in the way until `synced`, then what is served, and goes on looking.
pub(super) async fn tell(client: Client, clock: &dyn Clock, serves: Serves, synced: CancellationToken) {
    let mut teller = Teller::default();
    let mut serving = false;
    loop {
        if synced.is_cancelled() && !serving {
            serving = true;
            say(&serves.text());
        }
        let trouble = trouble(&client, &serves.namespace).await;
        if let Some(text) = teller.next(trouble, clock.monotonic()) {
            say(&text);
        }
        tokio::select! {
            () = clock.sleep(if serving { LOOK } else { LOOK_AT_START }) => {}
            () = synced.cancelled(), if !serving => {}
        }
    }
}

/// What is in the way now, with what to do, or "".
async fn trouble(client: &Client, namespace: &str) -> String {
    let mut missing = Vec::new();
    for definition in crd::all() {
        let part =
            |pointer: &str| definition.pointer(pointer).and_then(|value| value.as_str()).unwrap_or_default();
        let (name, plural) = (part("/metadata/name"), part("/spec/names/plural"));
        let cluster = part("/spec/scope") == "Cluster";
        if cluster && !namespace.is_empty() {
            continue;
        }
        let within = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        let path = format!("/apis/{}/v1{within}/{plural}?limit=1", part("/spec/group"));
        match get(client, &path).await {
            Ok(()) => {}
            Err(Error::Api(status)) if status.code == 404 => missing.push(name.to_owned()),
            Err(error) => return refused(&error),
        }
    }
    if !missing.is_empty() {
        return format!(
            "coffer: the operator waits for definitions that are not installed: {}\n  install them with: coffer operator --install-crds, or kubectl apply -f deploy/crds",
            missing.join(", ")
        );
    }
    let within = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    match get(client, &format!("/api/v1{within}/secrets?limit=1")).await {
        Ok(()) => String::new(),
        Err(error) => refused(&error),
    }
}

/// Asks for one object, of which nothing is kept; of a Secret only its metadata comes.
async fn get(client: &Client, path: &str) -> Result<(), Error> {
    let request = http::Request::get(path)
        .header(http::header::ACCEPT, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
        .body(Vec::new())
        .map_err(Error::HttpError)?;
    client.request::<serde::de::IgnoredAny>(request).await.map(|_| ())
}

fn refused(error: &Error) -> String {
    match error {
        Error::Api(status) if matches!(status.code, 401 | 403) => format!(
            "coffer: the operator waits for the right to read: {}\n  bind its user to a role that may get, list, watch and write these kinds",
            status.message
        ),
        Error::Api(status) => {
            format!("coffer: the operator waits for the API server, which answers: {}", status.message)
        }
        other => format!("coffer: the operator waits for the API server: {}", root_cause(other)),
    }
}

/// Says a thing once, and again after a long time if it is still so.
#[derive(Debug, Default)]
struct Teller(Option<(String, Duration)>);

impl Teller {
    /// What is said at `now`, when `trouble` ("" for none) is in the way.
    fn next(&mut self, trouble: String, now: Duration) -> Option<String> {
        if trouble.is_empty() {
            self.0 = None;
            return None;
        }
        if let Some((last, at)) = &self.0
            && *last == trouble
            && now.saturating_sub(*at) < AGAIN
        {
            return None;
        }
        self.0 = Some((trouble.clone(), now));
        Some(trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_once_and_then_quietly() {
        let mut teller = Teller::default();
        let script = [
            (0, "a", true),
            (5, "a", false),
            (599, "a", false),
            (600, "a", true),
            (601, "b", true),
            (602, "", false),
            (603, "b", true),
        ];
        for (second, trouble, told) in script {
            let said = teller.next(trouble.to_owned(), Duration::from_secs(second));
            assert_eq!(said.as_deref(), told.then_some(trouble), "at {second}");
        }
    }

    #[test]
    fn one_line_says_what_is_served() {
        let address = |text: &str| Some(text.parse().unwrap());
        let mut serves = Serves {
            server: "https://127.0.0.1:6443".to_owned(),
            namespace: String::new(),
            metrics: address("0.0.0.0:8080"),
            health: address("0.0.0.0:8082"),
            standby: false,
        };
        assert_eq!(
            serves.text(),
            "coffer: the operator serves ExternalSecret, SecretStore and ClusterSecretStore in all namespaces of https://127.0.0.1:6443 until Ctrl-C; metrics http://0.0.0.0:8080/metrics, health http://0.0.0.0:8082/readyz"
        );
        serves =
            Serves { namespace: "team".to_owned(), metrics: None, health: None, standby: true, ..serves };
        assert_eq!(
            serves.text(),
            "coffer: the operator stands by to serve ExternalSecret and SecretStore in namespace team of https://127.0.0.1:6443 until Ctrl-C; no metrics, no health"
        );
    }
}

//! The way to each server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tonic::client::Grpc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::line::{CONNECTION_WINDOW, Line, STREAM_WINDOW};
use super::{ConnectError, EtcdConfig};

/// A server's address and the connections to it, which are made when they are needed and again when they
/// broke: one for calls with one answer, one for streams.
pub(super) struct Endpoint {
    pub(super) url: String,
    line: Line,
    channel: Channel,
    /// Its version has been asked for.
    pub(super) known: AtomicBool,
}

impl Endpoint {
    pub(super) fn new(url: &str, config: &EtcdConfig) -> Result<Self, ConnectError> {
        let secured = config.ca.is_some() || config.identity.is_some();
        let url = match (url.contains("://"), secured) {
            (true, _) => url.to_owned(),
            (false, false) => format!("http://{url}"),
            (false, true) => format!("https://{url}"),
        };
        let invalid = |reason: String| ConnectError::InvalidEndpoint { endpoint: url.clone(), reason };
        let scheme = url.split("://").next().unwrap_or_default();
        if scheme != "http" && scheme != "https" {
            return Err(invalid("the scheme is neither http nor https".into()));
        }
        let mut endpoint = Channel::from_shared(url.clone())
            .map_err(|error| invalid(error.to_string()))?
            .connect_timeout(config.dial_timeout)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(config.keepalive_time)
            .keep_alive_timeout(config.keepalive_timeout)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        let mut connector = None;
        if scheme == "https" {
            connector = Some(tls_connector(config).map_err(invalid)?);
            let mut tls = ClientTlsConfig::new().timeout(config.dial_timeout);
            tls = match &config.ca {
                Some(pem) => tls.ca_certificate(Certificate::from_pem(pem)),
                None => tls.with_native_roots(),
            };
            if let Some((certificate, key)) = &config.identity {
                tls = tls.identity(Identity::from_pem(certificate, key.expose()));
            }
            endpoint = endpoint.tls_config(tls).map_err(|error| invalid(tls_reason(&error)))?;
        }
        let line = Line::new(endpoint.uri().clone(), connector, config).map_err(invalid)?;
        Ok(Self { line, channel: endpoint.connect_lazy(), known: AtomicBool::new(false), url })
    }

    fn client(&self) -> Grpc<Channel> {
        // A page of a list, or a batch of a watch, may be far larger than a request.
        Grpc::new(self.channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX)
    }

    /// Calls a method with one request and one answer.
    pub(super) async fn unary<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message,
        A: Message + Default,
    {
        let answer = self.line.call(path, &request).await?;
        let answer = A::decode(answer).map_err(|error| Status::internal(error.to_string()))?;
        self.known.store(true, Ordering::Relaxed);
        Ok(answer)
    }

    /// Calls a method with a stream each way.
    pub(super) async fn streaming<Q, A>(
        &self,
        path: &'static str,
        requests: Request<impl futures::Stream<Item = Q> + Send + 'static>,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut client = self.client();
        client.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let codec = ProstCodec::<Q, A>::default();
        Ok(client.streaming(requests, PathAndQuery::from_static(path), codec).await?.into_inner())
    }
}

/// TLS by the same files as tonic's.
fn tls_connector(config: &EtcdConfig) -> Result<TlsConnector, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let mut roots = RootCertStore::empty();
    match &config.ca {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| text(&error))?;
                roots.add(certificate).map_err(|error| text(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| text(&error))?
        .with_root_certificates(roots);
    let mut tls = match &config.identity {
        None => builder.with_no_client_auth(),
        Some((certificates, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificates)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| text(&error))?;
            let key = PrivateKeyDer::from_pem_slice(key.expose()).map_err(|error| text(&error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| text(&error))?
        }
    };
    tls.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(tls)))
}

fn tls_reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Defaults as kube-apiserver has them.
pub(super) const KEEPALIVE_TIME: Duration = Duration::from_secs(30);
/// How long the answer to a keepalive may take.
pub(super) const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

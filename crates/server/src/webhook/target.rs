//! Where a webhook is and whom it is trusted by: the `clientConfig` of a definition or a configuration.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_types::Value;
use coffer_types::names::is_dns1123_subdomain;
use coffer_types::validation::field::{FieldError, FieldErrors, Path};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::quote;

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// `http` or `https`.
    pub(crate) scheme: String,
    /// Host and port as the address has them.
    pub(crate) authority: String,
    /// The path, from its slash on.
    pub(crate) path: String,
    /// The service behind the host, with its port.
    pub(crate) service: Option<(String, String, u16)>,
    /// PEM of the authorities that sign for it; the system's when there is none.
    pub(crate) bundle: Vec<u8>,
}

impl Target {
    /// Reads a `clientConfig`.
    pub(crate) fn of(config: &Value) -> Result<Self, String> {
        let bundle = config.get("caBundle").and_then(bytes_of).unwrap_or_default();
        let bundle = if bundle.iter().all(u8::is_ascii_whitespace) { Vec::new() } else { bundle };
        if let Some(service) = config.get("service").filter(|service| !service.is_null()) {
            let (namespace, name) = (service.str_at(&["namespace"]), service.str_at(&["name"]));
            let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
            let port = u16::try_from(port).map_err(|_| format!("invalid port {port}"))?;
            return Ok(Self {
                scheme: "https".to_owned(),
                authority: format!("{name}.{namespace}.svc:{port}"),
                path: path_of(service.str_at(&["path"])),
                service: Some((namespace.to_owned(), name.to_owned(), port)),
                bundle,
            });
        }
        let parts = Parts::of(config.str_at(&["url"]))?;
        if parts.scheme.is_empty() && parts.host.is_empty() {
            return Err("webhook configuration must have either service or URL".to_owned());
        }
        Ok(Self {
            scheme: parts.scheme.to_owned(),
            authority: parts.host.to_owned(),
            path: path_of(parts.path),
            service: None,
            bundle,
        })
    }

    /// The address as errors name it. The webhook is told how long it may take, in whole seconds.
    pub(crate) fn url(&self, limit: Duration) -> String {
        let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
        format!("{}://{}{}?timeout={seconds}s", self.scheme, self.authority, self.path)
    }
}

fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Bytes(bytes) => Some(bytes.expose().to_vec()),
        Value::String(text) => STANDARD.decode(text).ok(),
        _ => None,
    }
}

/// A path with one slash before and none behind.
fn path_of(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}

/// The parts of an address.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts<'a> {
    scheme: &'a str,
    user: &'a str,
    has_user: bool,
    host: &'a str,
    path: &'a str,
    query: &'a str,
    fragment: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Result<Self, String> {
        let fault = |why: &str| Err(format!("parse {}: {why}", quote(url)));
        if url.chars().any(|character| character.is_ascii_control()) {
            return fault("net/url: invalid control character in URL");
        }
        let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
        let (scheme, rest) = match rest.split_once(':') {
            Some(("", _)) => return fault("missing protocol scheme"),
            Some((scheme, after)) if is_scheme(scheme) => (scheme, after),
            Some((scheme, _)) if !scheme.contains('/') => {
                return fault("first path segment in URL cannot contain colon");
            }
            _ => ("", rest),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let Some(rest) = rest.strip_prefix("//") else {
            return Ok(Self { scheme, path: rest, query, fragment, ..Self::default() });
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let (user, host, has_user) = match authority.rsplit_once('@') {
            Some((user, host)) => (user, host, true),
            None => ("", authority, false),
        };
        if let Some(bad) = host
            .chars()
            .find(|character| matches!(character, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}'))
        {
            return fault(&format!("invalid character {} in host name", quote(&bad.to_string())));
        }
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
        if port.is_some_and(|port| !port.bytes().all(|byte| byte.is_ascii_digit())) {
            let port = port.unwrap_or_default();
            return fault(&format!("invalid port {} after host", quote(&format!(":{port}"))));
        }
        Ok(Self { scheme, user, has_user, host, path, query, fragment })
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// What is wrong with the `url` of a webhook.
pub(crate) fn check_url(path: &Path, url: &str) -> FieldErrors {
    const FORM: &str = "; desired format: https://host[/path]";
    let parts = match Parts::of(url) {
        Ok(parts) => parts,
        Err(why) => return vec![FieldError::required(path, format!("url must be a valid URL: {why}{FORM}"))],
    };
    let mut errors = FieldErrors::new();
    if parts.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, parts.scheme, detail));
    }
    if parts.host.is_empty() {
        errors.push(FieldError::invalid(path, parts.host, format!("host must be specified{FORM}")));
    }
    for (present, shown, detail) in [
        (parts.has_user, parts.user, "user information is not permitted in the URL"),
        (!parts.fragment.is_empty(), parts.fragment, "fragments are not permitted in the URL"),
        (!parts.query.is_empty(), parts.query, "query parameters are not permitted in the URL"),
    ] {
        if present {
            errors.push(FieldError::invalid(path, shown, detail));
        }
    }
    errors
}

/// What is wrong with the `service` of a webhook.
pub(crate) fn check_service(path: &Path, service: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for name in ["name", "namespace"] {
        if service.str_at(&[name]).is_empty() {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    let own = service.str_at(&["path"]);
    if own.is_empty() || own == "/" {
        return errors;
    }
    let at = path.child("path");
    if own == "//" {
        errors.push(FieldError::invalid(&at, own, "segment[0] may not be empty"));
        return errors;
    }
    if !own.starts_with('/') {
        errors.push(FieldError::invalid(&at, own, "must start with a '/'"));
    }
    let mut characters = own.chars();
    characters.next();
    let steps = characters.as_str();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (index, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            errors.push(FieldError::invalid(&at, own, format!("segment[{index}] may not be empty")));
            continue;
        }
        for fault in is_dns1123_subdomain(step) {
            errors.push(FieldError::invalid(&at, own, format!("segment[{index}]: {fault}")));
        }
    }
    errors
}

/// What is wrong with the `caBundle` of a webhook.
pub(crate) fn check_bundle(path: &Path, bundle: &Value) -> FieldErrors {
    let bytes = bytes_of(bundle).unwrap_or_default();
    if bytes.is_empty() {
        return FieldErrors::new();
    }
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes).collect();
    let fault = if certificates.is_empty() || certificates.iter().any(Result::is_err) {
        Some("unable to parse bytes as PEM block".to_owned())
    } else {
        let parsed = |one: &CertificateDer<'_>| x509_parser::parse_x509_certificate(one).is_ok();
        let whole = certificates.iter().flatten().any(parsed);
        (!whole).then(|| "failed to parse certificate: x509: malformed certificate".to_owned())
    };
    fault
        .map(|fault| {
            let shown = STANDARD.encode(&bytes);
            FieldError::invalid(path, &shown, format!("unable to load root certificates: {fault}"))
        })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(text: &str) -> Value {
        coffer_types::codec::yaml::decode_untyped(text.as_bytes()).expect("YAML").object
    }

    fn texts(errors: &FieldErrors) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_target_is_an_address_or_a_service() {
        for (config, expected) in [
            ("{url: 'https://127.0.0.1:9443/convert'}", Ok("https://127.0.0.1:9443/convert?timeout=30s")),
            ("{url: 'https://example.com'}", Ok("https://example.com/?timeout=30s")),
            (
                "{service: {namespace: ns, name: hook, path: /a/b/, port: 8443}}",
                Ok("https://hook.ns.svc:8443/a/b?timeout=30s"),
            ),
            ("{service: {namespace: ns, name: hook}}", Ok("https://hook.ns.svc:443/?timeout=30s")),
            ("{}", Err("webhook configuration must have either service or URL")),
        ] {
            let found = Target::of(&yaml(config)).map(|target| target.url(Duration::from_millis(29_500)));
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{config}");
        }
    }

    /// Cases of upstream's TestValidateWebhookURL.
    #[test]
    fn addresses_are_checked() {
        const FORM: &str = "; desired format: https://host[/path]";
        let path = Path::new("url");
        let check = |url: &str, expected: &[&str]| {
            let expected: Vec<_> = expected.iter().map(|text| text.replace("FORM", FORM)).collect();
            assert_eq!(texts(&check_url(&path, url)), expected, "{url}");
        };
        check("https://hook.example.com/path", &[]);
        check(
            "http://example.com",
            &["url: Invalid value: \"http\": 'https' is the only allowed URL schemeFORM"],
        );
        check("https:///fancy/webhook", &["url: Invalid value: \"\": host must be specifiedFORM"]);
        check(
            "https://example.com/fancy/webhook#section",
            &["url: Invalid value: \"section\": fragments are not permitted in the URL"],
        );
        check(
            "https://example.com?arg=value",
            &["url: Invalid value: \"arg=value\": query parameters are not permitted in the URL"],
        );
        check(
            "https://harry.potter@example.com/",
            &["url: Invalid value: \"harry.potter\": user information is not permitted in the URL"],
        );
        check(
            "",
            &[
                "url: Invalid value: \"\": 'https' is the only allowed URL schemeFORM",
                "url: Invalid value: \"\": host must be specifiedFORM",
            ],
        );
        check(
            "arg#backwards=thisis?html.index/port:host//:https",
            &[
                "url: Invalid value: \"\": 'https' is the only allowed URL schemeFORM",
                "url: Invalid value: \"\": host must be specifiedFORM",
                "url: Invalid value: \"backwards=thisis?html.index/port:host//:https\": fragments are not permitted in the URL",
            ],
        );
    }

    /// Cases of upstream's TestValidateWebhookService.
    #[test]
    fn services_are_checked() {
        let path = Path::new("s");
        let check = |service: &str, expected: &[&str]| {
            assert_eq!(texts(&check_service(&path, &yaml(service))), expected, "{service}");
        };
        check(
            "{name: svc, namespace: ns, port: 443, path: foo}",
            &["s.path: Invalid value: \"foo\": must start with a '/'"],
        );
        check(
            "{name: svc, namespace: ns, port: 443, path: //}",
            &["s.path: Invalid value: \"//\": segment[0] may not be empty"],
        );
        check(
            "{name: svc, namespace: ns, port: 443, path: /foo//bar/}",
            &["s.path: Invalid value: \"/foo//bar/\": segment[1] may not be empty"],
        );
        check("{name: svc, namespace: ns, port: 443, path: /foo/bar/}", &[]);
        check("{namespace: ns, port: 443}", &["s.name: Required value"]);
        check("{name: svc, port: 443}", &["s.namespace: Required value"]);
        check(
            "{name: svc, namespace: ns, port: 0}",
            &["s.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"],
        );
    }

    #[test]
    fn a_bundle_is_certificates() {
        let path = Path::new("caBundle");
        assert!(check_bundle(&path, &Value::from("")).is_empty());
        assert_eq!(
            texts(&check_bundle(&path, &Value::from("aGVsbG8="))),
            [
                "caBundle: Invalid value: \"aGVsbG8=\": unable to load root certificates: unable to parse bytes as PEM block"
            ]
        );
    }
}

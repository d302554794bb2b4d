//! Content negotiation: which media type and which shape an answer has, and how a body is read.

use coffer_types::Status;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

/// A media type that objects are read and written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Media {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl Media {
    /// Every media type, in the order of preference.
    pub(crate) const ALL: [Media; 3] = [Media::Json, Media::Yaml, Media::Protobuf];

    /// What `Content-Type` says.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// What `Content-Type` says of a watch.
    pub(crate) fn stream_name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml;stream=watch",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }
}

/// What is made of the object before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Shape {
    /// The object itself.
    #[default]
    Object,
    /// `meta.k8s.io` Table.
    Table(MetaVersion),
    /// `meta.k8s.io` PartialObjectMetadata.
    Partial(MetaVersion),
    /// `meta.k8s.io` PartialObjectMetadataList.
    PartialList(MetaVersion),
}

/// Version of `meta.k8s.io` that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1Beta1,
}

impl MetaVersion {
    /// `meta.k8s.io/v1` or `meta.k8s.io/v1beta1`.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The outcome of a negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Accepted {
    /// Media type.
    pub(crate) media: Media,
    /// Shape.
    pub(crate) shape: Shape,
    /// Whether an `Accept` parameter asks for indented JSON.
    pub(crate) pretty: bool,
}

/// What an endpoint can answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offers {
    /// Objects of a built-in kind, and their Table and metadata.
    BuiltIn,
    /// Objects of a custom resource: no protobuf, except for their metadata.
    Custom,
    /// Only what is written, in any media type: discovery, Status.
    Plain,
}

/// One clause of an `Accept` header.
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Chooses for an `Accept` header.
pub(crate) fn accept(headers: &HeaderMap, offers: Offers) -> Result<Accepted, Status> {
    let header = joined(headers);
    if header.is_empty() {
        return Ok(Accepted::default());
    }
    choose(&header, &Media::ALL, offers).ok_or_else(not_acceptable)
}

/// Chooses for an `Accept` header of a watch, which has no YAML.
pub(crate) fn accept_stream(headers: &HeaderMap, offers: Offers) -> Result<Accepted, Status> {
    let header = joined(headers);
    if header.is_empty() {
        return Ok(Accepted::default());
    }
    choose(&header, &[Media::Json, Media::Protobuf], offers).ok_or_else(|| {
        // Of custom resources upstream says what streams only to those who ask for YAML.
        if offers == Offers::Custom && choose(&header, &[Media::Yaml], offers).is_none() {
            return not_acceptable();
        }
        Status::new(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch",
        )
    })
}

fn choose(header: &str, offered: &[Media], offers: Offers) -> Option<Accepted> {
    for clause in clauses(header) {
        for media in offered.iter().copied() {
            let (kind, subtype) = media.name().split_once('/').unwrap_or_default();
            let fits = match (clause.kind, clause.subtype) {
                ("*", "*") => true,
                (wanted, "*") => wanted == kind,
                (wanted, wanted_subtype) => wanted == kind && wanted_subtype == subtype,
            };
            if fits && let Some(accepted) = clause.take(media, offers) {
                return Some(accepted);
            }
        }
    }
    None
}

/// Whether the router lets the header through at all: one clause must name a served media type or `*/*`.
/// What can be watched names the media types of watches too.
pub(crate) fn routable(headers: &HeaderMap, watchable: bool) -> Result<(), Status> {
    let header = joined(headers);
    let fits = |clause: &str| {
        let media = clause.split(';').next().unwrap_or_default().trim();
        media == "*/*" || Media::ALL.iter().any(|one| one.name() == media)
    };
    if header.is_empty() || header.split(',').any(fits) {
        return Ok(());
    }
    let streams = if watchable {
        ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    } else {
        ""
    };
    let mut status = Status::new(
        406,
        "NotAcceptable",
        format!(
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf{streams}"
        ),
    );
    status.details = Some(Box::default());
    Err(status)
}

fn not_acceptable() -> Status {
    Status::new(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    )
}

fn joined(headers: &HeaderMap) -> String {
    headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(",")
}

/// The clauses, best first: by quality, then concrete types before wildcards, then as written.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|left, right| {
        right
            .quality
            .total_cmp(&left.quality)
            .then_with(|| (left.kind == "*").cmp(&(right.kind == "*")))
            .then_with(|| (left.subtype == "*").cmp(&(right.subtype == "*")))
    });
    clauses
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut pieces = text.split(';').map(str::trim);
        let media = pieces.next().filter(|media| !media.is_empty())?;
        let (kind, subtype) = match media.split_once('/') {
            Some((kind, subtype)) => (kind.trim(), subtype.trim()),
            None if media == "*" => ("*", "*"),
            None => return None,
        };
        let mut clause = Self { kind, subtype, quality: 1.0, parameters: Vec::new() };
        for piece in pieces {
            let (key, value) =
                piece.split_once('=').map_or((piece, ""), |(key, value)| (key.trim(), value.trim()));
            if key == "q" {
                clause.quality = value.parse().unwrap_or(1.0);
            } else {
                clause.parameters.push((key, value));
            }
        }
        Some(clause)
    }

    fn parameter(&self, key: &str) -> &str {
        self.parameters.iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
    }

    /// What this clause asks for in `media`, or `None` when that is not offered.
    fn take(&self, media: Media, offers: Offers) -> Option<Accepted> {
        let names_version = ["g", "v"].iter().any(|key| self.parameters.iter().any(|(name, _)| name == key));
        let shape = match self.parameter("as") {
            // A version of nothing, which no answer is in.
            "" if names_version || !self.parameter("sv").is_empty() => return None,
            "" => Shape::Object,
            kind => {
                if offers == Offers::Plain || self.parameter("g") != "meta.k8s.io" {
                    return None;
                }
                let version = match self.parameter("v") {
                    "v1" => MetaVersion::V1,
                    "v1beta1" => MetaVersion::V1Beta1,
                    _ => return None,
                };
                match kind {
                    "Table" if media != Media::Protobuf => Shape::Table(version),
                    "PartialObjectMetadata" => Shape::Partial(version),
                    "PartialObjectMetadataList" => Shape::PartialList(version),
                    _ => return None,
                }
            }
        };
        if offers == Offers::Custom && media == Media::Protobuf && shape == Shape::Object {
            return None;
        }
        let stream = self.parameter("stream");
        if !stream.is_empty() && stream != "watch" {
            return None;
        }
        let pretty = self.parameter("pretty") == "1";
        Some(Accepted { media, shape, pretty })
    }
}

/// Chooses for the `Content-Type` of a body. Absent means JSON.
pub(crate) fn content_type(headers: &HeaderMap, offers: Offers) -> Result<Media, Status> {
    let text = headers.get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or("?"));
    let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let found = match media.as_str() {
        "" => Some(Media::Json),
        name => Media::ALL.into_iter().find(|media| media.name() == name),
    };
    match found {
        Some(Media::Protobuf) if offers == Offers::Custom => Err(unsupported()),
        Some(media) => Ok(media),
        None => Err(unsupported()),
    }
}

fn unsupported() -> Status {
    Status::new(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    )
}

/// Whether an answer is indented: `?pretty`, or a person's HTTP client without any wish.
pub(crate) fn pretty(query: &crate::query::Query, headers: &HeaderMap, accepted: &Accepted) -> bool {
    if accepted.media != Media::Json {
        return false;
    }
    if let Some(wish) = query.first("pretty") {
        return matches!(wish, "1" | "true");
    }
    let agent =
        headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.pretty || ["curl", "Wget", "Mozilla/5.0"].iter().any(|start| agent.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

    fn chosen(header: &str, offers: Offers) -> String {
        let mut headers = HeaderMap::new();
        if !header.is_empty() {
            headers.insert(ACCEPT, header.parse().expect("header"));
        }
        match accept(&headers, offers) {
            Ok(accepted) => format!("{:?} {:?}", accepted.media, accepted.shape),
            Err(status) => status.code.to_string(),
        }
    }

    #[test]
    fn accept_headers_choose_as_upstream() {
        for (header, expected) in [
            ("", "Json Object"),
            ("*/*", "Json Object"),
            ("application/json", "Json Object"),
            ("application/yaml", "Yaml Object"),
            (PROTOBUF, "Protobuf Object"),
            ("application/vnd.kubernetes.protobuf,application/json", "Protobuf Object"),
            ("application/json;q=0.5,application/yaml", "Yaml Object"),
            ("text/html", "406"),
            ("text/html, */*;q=0.1", "Json Object"),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Json Table(V1)"),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", "Json Table(V1Beta1)"),
            ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", "Json Object"),
            ("application/json;as=Table;v=v2;g=meta.k8s.io", "406"),
            ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", "406"),
            ("application/json;as=Foo;v=v1;g=meta.k8s.io", "406"),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
                "Protobuf PartialList(V1)",
            ),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "Json Partial(V1)"),
            ("application/json;stream=watch", "Json Object"),
            ("application/json;stream=foo", "406"),
            ("application/json;profile=nopeer", "Json Object"),
            ("application/cbor", "406"),
        ] {
            assert_eq!(chosen(header, Offers::BuiltIn), expected, "{header}");
        }
    }

    #[test]
    fn custom_resources_have_no_protobuf_but_their_metadata_has() {
        for (header, expected) in [
            (PROTOBUF, "406"),
            ("application/vnd.kubernetes.protobuf,application/json", "Json Object"),
            ("*/*", "Json Object"),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                "Protobuf Partial(V1)",
            ),
        ] {
            assert_eq!(chosen(header, Offers::Custom), expected, "{header}");
        }
    }

    #[test]
    fn bodies_are_read_by_their_content_type() {
        for (header, offers, expected) in [
            ("", Offers::BuiltIn, Ok(Media::Json)),
            ("application/json; charset=utf-8", Offers::BuiltIn, Ok(Media::Json)),
            ("application/yaml", Offers::BuiltIn, Ok(Media::Yaml)),
            (PROTOBUF, Offers::BuiltIn, Ok(Media::Protobuf)),
            (PROTOBUF, Offers::Custom, Err(415)),
            ("text/plain", Offers::BuiltIn, Err(415)),
            ("application/cbor", Offers::BuiltIn, Err(415)),
        ] {
            let mut headers = HeaderMap::new();
            if !header.is_empty() {
                headers.insert(CONTENT_TYPE, header.parse().expect("header"));
            }
            assert_eq!(content_type(&headers, offers).map_err(|status| status.code), expected, "{header}");
        }
    }
}

//! From the parser's events to nodes: anchors, merge keys, tags, limits.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use granit_parser::{Event, Options, Parser, ScalarStyle, StrInput, Tag};

use super::scalar::{Scalar, float_node, number_as_text, resolve};
use crate::codec::DecodeError;
use crate::codec::json::Node;
use crate::codec::limits::{MAX_ALIAS_COST, MAX_DEPTH};
use crate::codec::text;

type Result<T> = std::result::Result<T, DecodeError>;

/// The documents of a stream, each with its duplicate keys.
pub(super) struct Stream<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Finished<'a>>,
    /// What the anchors of this document hold, which are copies: anchors may lie within anchors.
    anchor_cost: usize,
    alias_cost: usize,
    failed: bool,
    /// What is parsed.
    text: &'a str,
}

/// What Go's library says of a text that ends within brackets: whether an item or its end is missing.
fn unclosed(text: &str) -> &'static str {
    let open = text.bytes().rfind(|byte| matches!(byte, b'[' | b'{'));
    match (text.trim_end().bytes().last(), open) {
        (Some(b'[' | b'{' | b','), _) => "did not find expected node content",
        (_, Some(b'{')) => "did not find expected ',' or '}'",
        _ => "did not find expected ',' or ']'",
    }
}

impl<'a> Stream<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self> {
        let text =
            std::str::from_utf8(bytes).map_err(|_| DecodeError::new("yaml: invalid leading UTF-8 octet"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.chars().any(|char| !is_allowed(char)) {
            return Err(DecodeError::new("yaml: control characters are not allowed"));
        }
        if text.starts_with('\t') {
            return Err(DecodeError::new("yaml: found character that cannot start any token"));
        }
        let mut options = Options::default();
        // Ours is the limit that is reported.
        options.flow_nesting_limit = MAX_DEPTH + 1;
        options.block_nesting_limit = MAX_DEPTH + 1;
        // As Go's library reads a block scalar that the input ends in.
        options.block_scalar_eof_without_line_feed = true;
        let parser = Parser::new_from_str_with_options(text, options);
        Ok(Self { parser, text, anchors: HashMap::new(), anchor_cost: 0, alias_cost: 0, failed: false })
    }

    fn document(&mut self) -> Result<Option<(Node<'a>, Vec<String>)>> {
        let mut builder = Builder { open: Vec::new(), root: None, duplicates: Vec::new() };
        while let Some(next) = self.parser.next() {
            let (event, span) = next.map_err(|error| {
                let what = match error.kind().to_string() {
                    kind if kind.starts_with("unclosed bracket") => unclosed(self.text).to_owned(),
                    kind => kind,
                };
                DecodeError::new(format!("yaml: line {}: {what}", error.marker().line()))
            })?;
            let line = span.start.line();
            match event {
                Event::DocumentStart(..) => {
                    self.anchors.clear();
                    self.anchor_cost = 0;
                    builder.root = Some(Finished::leaf(Node::Null));
                }
                Event::DocumentEnd => {
                    let root = builder.root.map_or(Node::Null, |root| root.node);
                    return Ok(Some((root, builder.duplicates)));
                }
                Event::StreamEnd => return Ok(None),
                Event::Scalar(value, style, anchor, tag) => {
                    let scalar = scalar(value, style, tag.as_deref())?;
                    let merges = scalar.merges;
                    let finished = Finished::leaf(scalar.node);
                    self.remember(anchor, &finished)?;
                    builder.place(finished, merges, line)?;
                }
                Event::SequenceStart(_, anchor, _) => {
                    builder.open(Collection::Sequence(Vec::new()), anchor, line)?
                }
                Event::MappingStart(_, anchor, _) => {
                    let mapping = Collection::Mapping { entries: BTreeMap::new(), key: None };
                    builder.open(mapping, anchor, line)?;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    if let Some((finished, anchor, line)) = builder.close() {
                        self.remember(anchor, &finished)?;
                        builder.place(finished, false, line)?;
                    }
                }
                Event::Alias(anchor) => {
                    let known = self.anchors.get(&anchor).cloned();
                    let known =
                        known.ok_or_else(|| DecodeError::new("yaml: anchor value contains itself"))?;
                    self.alias_cost = self.alias_cost.saturating_add(known.cost);
                    if self.alias_cost > MAX_ALIAS_COST {
                        return Err(DecodeError::new(EXCESSIVE));
                    }
                    builder.place(known, false, line)?;
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn remember(&mut self, anchor: usize, finished: &Finished<'a>) -> Result<()> {
        if anchor > 0 {
            self.anchor_cost = self.anchor_cost.saturating_add(finished.cost);
            if self.anchor_cost > MAX_ALIAS_COST {
                return Err(DecodeError::new(EXCESSIVE));
            }
            self.anchors.insert(anchor, finished.clone());
        }
        Ok(())
    }
}

impl<'a> Iterator for Stream<'a> {
    type Item = Result<(Node<'a>, Vec<String>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let document = self.document().transpose();
        self.failed = matches!(document, Some(Err(_)));
        document
    }
}

const EXCESSIVE: &str = "yaml: document contains excessive aliasing";

/// What Go's library lets through.
fn is_allowed(char: char) -> bool {
    matches!(
        char,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..
    )
}

/// A node with what it costs to copy and how deep it is.
#[derive(Clone)]
struct Finished<'a> {
    node: Node<'a>,
    cost: usize,
    height: usize,
}

/// What a node costs besides its text.
const NODE_COST: usize = 64;

impl<'a> Finished<'a> {
    fn leaf(node: Node<'a>) -> Self {
        let text = match &node {
            Node::Number(text) | Node::String(text) => text.len(),
            _ => 0,
        };
        Self { node, cost: NODE_COST + text, height: 0 }
    }
}

enum Collection<'a> {
    Sequence(Vec<Node<'a>>),
    Mapping { entries: BTreeMap<String, Node<'a>>, key: Option<Key> },
}

enum Key {
    Merge,
    Name {
        name: String,
        /// As Go prints it in an error.
        shown: String,
    },
}

struct Open<'a> {
    collection: Collection<'a>,
    anchor: usize,
    line: usize,
    cost: usize,
    height: usize,
}

struct Builder<'a> {
    open: Vec<Open<'a>>,
    root: Option<Finished<'a>>,
    duplicates: Vec<String>,
}

impl<'a> Builder<'a> {
    fn open(&mut self, collection: Collection<'a>, anchor: usize, line: usize) -> Result<()> {
        if self.open.len() >= MAX_DEPTH {
            return Err(DecodeError::new("yaml: exceeded max depth"));
        }
        self.open.push(Open { collection, anchor, line, cost: NODE_COST, height: 1 });
        Ok(())
    }

    fn close(&mut self) -> Option<(Finished<'a>, usize, usize)> {
        let open = self.open.pop()?;
        let node = match open.collection {
            Collection::Sequence(items) => Node::Array(items),
            Collection::Mapping { entries, .. } => {
                Node::Object(entries.into_iter().map(|(name, node)| (Cow::Owned(name), node)).collect())
            }
        };
        Some((Finished { node, cost: open.cost, height: open.height }, open.anchor, open.line))
    }

    /// Puts a finished node where it belongs; `merges` marks the plain scalar `<<`.
    fn place(&mut self, finished: Finished<'a>, merges: bool, line: usize) -> Result<()> {
        let depth = self.open.len() + finished.height;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(finished);
            return Ok(());
        };
        if depth > MAX_DEPTH {
            return Err(DecodeError::new("yaml: exceeded max depth"));
        }
        open.cost = open.cost.saturating_add(finished.cost);
        open.height = open.height.max(finished.height + 1);
        let (entries, key) = match &mut open.collection {
            Collection::Sequence(items) => {
                items.push(finished.node);
                return Ok(());
            }
            Collection::Mapping { entries, key } => (entries, key),
        };
        match key.take() {
            None if merges => *key = Some(Key::Merge),
            None => *key = Some(key_of(finished.node)?),
            Some(Key::Merge) => merge(entries, finished.node)?,
            Some(Key::Name { name, shown }) => {
                if entries.insert(name, finished.node).is_some() {
                    self.duplicates.push(format!("line {line}: key {shown} already set in map"));
                }
            }
        }
        Ok(())
    }
}

fn key_of(node: Node<'_>) -> Result<Key> {
    let (name, shown) = match node {
        Node::String(text) => {
            let shown = format!("{text:?}");
            (text.into_owned(), shown)
        }
        Node::Number(text) => {
            let name = number_as_text(&text);
            (name.clone(), name)
        }
        Node::Bool(flag) => (flag.to_string(), flag.to_string()),
        Node::Null => return Err(DecodeError::new("unsupported map key of type: %!s(<nil>), key: <nil>")),
        Node::Array(_) | Node::Object(_) => return Err(DecodeError::new("yaml: invalid map key")),
    };
    Ok(Key::Name { name, shown })
}

fn merge<'a>(entries: &mut BTreeMap<String, Node<'a>>, node: Node<'a>) -> Result<()> {
    let wanted = || DecodeError::new("yaml: map merge requires map or sequence of maps as the value");
    match node {
        Node::Object(members) => {
            entries.extend(members.into_iter().map(|(name, node)| (name.into_owned(), node)));
            Ok(())
        }
        // Earlier ones win.
        Node::Array(items) => items.into_iter().rev().try_for_each(|item| match item {
            item @ Node::Object(_) => merge(entries, item),
            _ => Err(wanted()),
        }),
        _ => Err(wanted()),
    }
}

struct Resolved<'a> {
    node: Node<'a>,
    merges: bool,
}

const CORE: &str = "tag:yaml.org,2002:";

fn scalar<'a>(value: Cow<'a, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Resolved<'a>> {
    let plain = style == ScalarStyle::Plain;
    let tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
    let short = tag.as_deref().map(|tag| tag.strip_prefix(CORE).unwrap_or(tag));
    let merges = (plain && tag.is_none() && value == "<<") || short == Some("merge");
    let node = match short {
        None if plain => of_scalar(value)?,
        None | Some("!" | "str" | "timestamp") => Node::String(value),
        Some("binary") => {
            let bytes = STANDARD.decode(value.as_bytes());
            let bytes =
                bytes.map_err(|_| DecodeError::new("yaml: !!binary value contains invalid base64 data"))?;
            Node::String(text::lossy(&bytes).into())
        }
        Some(kind @ ("bool" | "int" | "float" | "null")) => tagged(kind, value)?,
        Some(_) => Node::String(value),
    };
    Ok(Resolved { node, merges })
}

fn of_scalar(value: Cow<'_, str>) -> Result<Node<'_>> {
    Ok(match resolve(&value) {
        Scalar::Null => Node::Null,
        Scalar::Bool(flag) => Node::Bool(flag),
        Scalar::Int(int) => Node::Number(int.into()),
        Scalar::Float(float) => float_node(float).map_err(DecodeError)?,
        Scalar::Text => Node::String(value),
    })
}

fn tagged<'a>(kind: &str, value: Cow<'a, str>) -> Result<Node<'a>> {
    let found = match (kind, resolve(&value)) {
        ("bool", Scalar::Bool(flag)) => return Ok(Node::Bool(flag)),
        ("null", Scalar::Null) => return Ok(Node::Null),
        ("int" | "float", Scalar::Int(int)) => return Ok(Node::Number(int.into())),
        ("float", Scalar::Float(float)) => return float_node(float).map_err(DecodeError),
        (_, Scalar::Null) => "null",
        (_, Scalar::Bool(_)) => "bool",
        (_, Scalar::Int(_)) => "int",
        (_, Scalar::Float(_)) => "float",
        (_, Scalar::Text) => "str",
    };
    // Upstream quotes the value, which may be secret.
    Err(DecodeError::new(format!("yaml: cannot decode !!{found} as a !!{kind}")))
}

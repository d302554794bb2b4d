//! Lists: as whole documents, and in pieces where they are large.

use std::sync::Arc;

use coffer_store::registry::{List, Stored};
use coffer_types::codec::transcode::{self, ListHead, Part, Planned, Source};
use coffer_types::meta::Meta as _;
use coffer_types::{Status, Value, schema};

use super::{Wire, encode, encode_as, partial_tree, unreadable};
use crate::negotiate::{Media, MetaVersion};
use crate::resources::info::ResourceInfo;

impl Wire {
    /// A page as a whole document.
    pub(crate) fn list(&self, info: &ResourceInfo, page: &List, media: Media) -> Result<Vec<u8>, Status> {
        let custom = matches!(self, Self::Custom(_));
        if custom && media == Media::Protobuf {
            return Err(Status::internal("no protobuf for a custom resource"));
        }
        if let Some(sources) = self.sources(page, Part::Whole) {
            let api_version = info.api_version();
            return document(
                &head(page, &api_version, &info.list_kind, Part::Whole, custom),
                custom,
                sources,
                media,
            );
        }
        let mut items = Vec::with_capacity(page.items.len());
        for stored in &page.items {
            let mut object = self.read(stored)?;
            if !custom {
                object.remove(&["kind"]);
                object.remove(&["apiVersion"]);
            }
            items.push(object);
        }
        let mut list = Value::object();
        list.set_type(&info.api_version(), &info.list_kind);
        let mut meta = list_meta(page);
        if custom && page.continue_token.is_empty() {
            // Lists of custom resources always carry it.
            meta.set(&["continue"], "");
        }
        list.set(&["metadata"], meta);
        list.set(&["items"], items);
        let kind = match self {
            Self::BuiltIn(wire) => wire.list,
            Self::Custom(_) => None,
        };
        Ok(encode(kind, &list, media))
    }

    /// A page of metadata.
    pub(crate) fn partial_list(
        &self,
        page: &List,
        version: MetaVersion,
        media: Media,
    ) -> Result<Vec<u8>, Status> {
        let part = Part::Metadata(version.api_version());
        if let Some(sources) = self.sources(page, part) {
            let head = head(page, version.api_version(), PARTIAL_LIST, part, true);
            return document(&head, matches!(self, Self::Custom(_)), sources, media);
        }
        let mut items = Vec::with_capacity(page.items.len());
        for stored in &page.items {
            items.push(partial_tree(&self.read(stored)?, version));
        }
        let mut list = Value::object();
        list.set_type(version.api_version(), PARTIAL_LIST);
        list.set(&["metadata"], list_meta(page));
        list.set(&["items"], items);
        let kind = schema::lookup("meta.k8s.io", "v1", PARTIAL_LIST);
        Ok(encode_as(kind, version.api_version(), &list, media))
    }

    fn sources<'a>(&self, page: &'a List, part: Part) -> Option<Vec<Source<'a>>> {
        page.items.iter().map(|stored| self.source(stored, part)).collect()
    }
}

const PARTIAL_LIST: &str = "PartialObjectMetadataList";

fn head<'a>(
    page: &'a List,
    api_version: &'a str,
    kind: &'a str,
    part: Part,
    typed_items: bool,
) -> ListHead<'a> {
    ListHead {
        api_version,
        kind,
        revision: page.revision,
        continue_token: &page.continue_token,
        remaining: page.remaining,
        part,
        typed_items,
    }
}

fn document(
    head: &ListHead<'_>,
    custom: bool,
    sources: Vec<Source<'_>>,
    media: Media,
) -> Result<Vec<u8>, Status> {
    let size: usize = sources.iter().map(|source| source.bytes.len()).sum();
    let mut out = Vec::new();
    match media {
        Media::Json => {
            // Values grow by a third in base64, names of fields take the rest.
            out.reserve(size + size / 2 + 256);
            transcode::list_json(head, custom, sources, &mut out).map_err(|error| unreadable(&error))?;
        }
        Media::Protobuf => {
            transcode::list_protobuf(head, sources, &mut out).map_err(|error| unreadable(&error))?;
        }
        Media::Yaml => {
            let mut json = Vec::with_capacity(size * 2);
            transcode::list_json(head, custom, sources, &mut json).map_err(|error| unreadable(&error))?;
            coffer_types::codec::yaml::from_json(&json, &mut out).map_err(|error| unreadable(&error))?;
        }
    }
    Ok(out)
}

fn list_meta(page: &List) -> Value {
    let mut meta = Value::object();
    meta.set(&["resourceVersion"], page.revision.to_string());
    meta.set_str(&["continue"], &page.continue_token);
    if let Some(remaining) = page.remaining {
        meta.set(&["remainingItemCount"], remaining);
    }
    meta
}

/// Bytes of objects that are brought near together.
const NEAR: usize = 16 * 1024;
/// What memory brings at a time.
const LINE: usize = 64;

/// Looks at items from `first` on, and gives the first that was not looked at.
///
/// Nobody has looked at most objects of a large list for long. Whoever reads them one after the other
/// waits for memory at each; looked at together, they come together.
fn bring_near(items: &[Arc<Stored>], first: usize) -> usize {
    let (mut bytes, mut seen, mut next) = (0, 0, first);
    for stored in &items[first..] {
        seen ^= stored.bytes.iter().step_by(LINE).fold(0, |all, byte| all ^ byte);
        next += 1;
        bytes += stored.bytes.len();
        if NEAR <= bytes {
            break;
        }
    }
    std::hint::black_box(seen);
    next
}

/// A list that is written piece by piece, so that it never lies in memory as a whole.
///
/// It is certain from the beginning that every item can be written: a client that has got a part of
/// the answer cannot be told any more what is wrong with the rest.
pub(crate) struct Pieces {
    wire: Wire,
    page: List,
    api_version: String,
    kind: String,
    part: Part,
    media: Media,
    typed_items: bool,
    /// Of a protobuf list.
    plans: Vec<Planned>,
    stage: Stage,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Stage {
    /// What stands before the items.
    Begin,
    /// The item of this index, or what stands after the last.
    Item(usize),
    Done,
}

impl Pieces {
    /// A page of whole objects; `Err` gives it back where only a whole document can be made of it.
    pub(crate) fn of_objects(
        wire: &Wire,
        info: &ResourceInfo,
        page: List,
        media: Media,
    ) -> Result<Self, List> {
        let typed_items = matches!(wire, Wire::Custom(_));
        let (api_version, kind) = (info.api_version(), info.list_kind.clone());
        Self {
            wire: wire.clone(),
            page,
            api_version,
            kind,
            part: Part::Whole,
            media,
            typed_items,
            plans: Vec::new(),
            stage: Stage::Begin,
        }
        .checked()
    }

    /// A page of metadata; `Err` as for whole objects.
    pub(crate) fn of_metadata(
        wire: &Wire,
        page: List,
        version: MetaVersion,
        media: Media,
    ) -> Result<Self, List> {
        let (api_version, kind) = (version.api_version().to_owned(), PARTIAL_LIST.to_owned());
        let part = Part::Metadata(version.api_version());
        Self {
            wire: wire.clone(),
            page,
            api_version,
            kind,
            part,
            media,
            typed_items: true,
            plans: Vec::new(),
            stage: Stage::Begin,
        }
        .checked()
    }

    /// Makes sure that every item can be written.
    fn checked(mut self) -> Result<Self, List> {
        let plans = match self.media {
            Media::Json => self.page.items.iter().all(|stored| self.is_sound(stored)).then(Vec::new),
            Media::Protobuf if self.custom() && self.part == Part::Whole => None,
            Media::Protobuf => self.planned(),
            Media::Yaml => None,
        };
        match plans {
            Some(plans) => {
                self.plans = plans;
                Ok(self)
            }
            None => Err(self.page),
        }
    }

    /// Whether an object can be written as JSON. Each version of it is tried once.
    fn is_sound(&self, stored: &Stored) -> bool {
        let Some(source) = self.wire.source(stored, self.part) else { return false };
        stored.findings.sound(|| {
            source.to_json(Part::Whole, true, &mut Vec::with_capacity(2 * stored.bytes.len())).is_ok()
        })
    }

    fn planned(&self) -> Option<Vec<Planned>> {
        let plan = |stored: &Stored| {
            let source = self.wire.source(stored, self.part)?;
            let plan = || transcode::plan_protobuf(&source, self.part).ok();
            match self.part {
                Part::Whole => stored.findings.plan(plan),
                Part::Metadata(_) => plan(),
            }
        };
        self.page.items.iter().map(|stored| plan(stored)).collect()
    }

    fn custom(&self) -> bool {
        matches!(self.wire, Wire::Custom(_))
    }

    /// Appends to `out` until it has about `full` bytes; whether anything is left.
    ///
    /// # Errors
    /// None is known to be possible.
    pub(crate) fn write(&mut self, full: usize, out: &mut Vec<u8>) -> Result<bool, Status> {
        let custom = self.custom();
        let head = head(&self.page, &self.api_version, &self.kind, self.part, self.typed_items);
        let protobuf = self.media == Media::Protobuf;
        let mut next = match self.stage {
            Stage::Begin => {
                if protobuf {
                    let items = self.plans.iter().map(Planned::length).sum();
                    transcode::begin_protobuf(&head, items, out);
                } else {
                    transcode::begin_json(&head, custom, out);
                }
                0
            }
            Stage::Item(next) => next,
            Stage::Done => return Ok(false),
        };
        let mut near = next;
        let rest = self.page.items[next..].iter().zip(next..).map_while(|(stored, index)| {
            if near <= index {
                near = bring_near(&self.page.items, index);
            }
            self.wire.source(stored, self.part)
        });
        let written = if protobuf {
            let mut written = 0;
            for (planned, item) in self.plans[next..].iter().zip(rest) {
                if full <= out.len() {
                    break;
                }
                transcode::item_protobuf(planned, &item, self.part, out)
                    .map_err(|error| unreadable(&error))?;
                written += 1;
            }
            written
        } else {
            transcode::items_json(&head, next == 0, rest, full, out).map_err(|error| unreadable(&error))?
        };
        next += written;
        if next < self.page.items.len() {
            self.stage = Stage::Item(next);
            return Ok(true);
        }
        if protobuf {
            transcode::end_protobuf(out);
        } else {
            transcode::end_json(&head, custom, out);
        }
        self.stage = Stage::Done;
        Ok(false)
    }
}

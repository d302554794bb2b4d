//! Reads an etcd snapshot file, or the `member/snap/db` of a stopped member, without etcd.
//!
//! The file is a bbolt database, in a snapshot followed by the SHA-256 of everything before it.
//! Reading is one pass over the file in its own order with a few MiB of memory: the pages that
//! belong to the history are found first, through the small part of the tree that points to them.
//! Records therefore come in no particular order. Nothing is ever written.

mod pages;
mod record;
mod tree;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

pub use record::Record;

use crate::kv::Revision;
use pages::{Elements, HEAD, Meta, Page, PageId};
use tree::{History, Pages};

/// How much is read at once: a multiple of every page size.
const CHUNK: usize = 1 << 20;

/// Pages that are nearer to each other are read at once, with what lies between them.
const GAP: u64 = 64 << 10;

/// Length of the hash at the end of a snapshot.
const HASH: u64 = 32;

/// A snapshot is a multiple of this long, without its hash.
const SECTOR: u64 = 512;

/// The bucket of all records, and the one of etcd's own state.
const KEYS: &[u8] = b"key";
const META: &[u8] = b"meta";
const COMPACTED: &[u8] = b"finishedCompactRev";

/// Bytes that can be read anywhere: a file, or memory in tests.
pub trait ReadAt {
    /// How many there are.
    fn length(&self) -> io::Result<u64>;

    /// Reads exactly `out.len()` bytes.
    fn read_exactly(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exactly(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(out, offset)
    }
}

impl ReadAt for &[u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exactly(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let part = usize::try_from(offset).ok().and_then(|start| self.get(start..)?.get(..out.len()));
        out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Why a file cannot be read as a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file could not be read.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    /// Neither meta page is one.
    #[error("it is no etcd snapshot: it does not begin as a bbolt database does")]
    NotASnapshot,
    /// The file ends before its last page.
    #[error("it is cut: {expected} bytes of pages are expected, {found} are there")]
    Cut {
        /// What the head of the file says.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A page does not hold what it should.
    #[error("page {page} is damaged: {what}")]
    Damaged {
        /// Its number.
        page: PageId,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A bucket of etcd's is not there.
    #[error("it is no etcd snapshot: it has no bucket \"{0}\"")]
    NoBucket(&'static str),
    /// The hash at the end does not fit.
    #[error("its SHA-256 does not fit its content: the file was changed or is damaged")]
    WrongHash,
}

/// An open snapshot.
pub struct Snapshot<R> {
    source: R,
    length: u64,
    meta: Meta,
    history: History,
    compacted: Revision,
}

impl<R: ReadAt> Snapshot<R> {
    /// Reads the head of the file and finds the pages of all records.
    ///
    /// # Errors
    /// When the file cannot be read, is no snapshot, or a page of the tree is damaged.
    pub fn open(source: R) -> Result<Self, SnapshotError> {
        let length = source.length()?;
        let mut head = vec![0; usize::try_from(length).unwrap_or(HEAD).min(HEAD)];
        source.read_exactly(0, &mut head)?;
        let meta = Meta::choose(&head)?;
        let expected = meta.end.saturating_mul(meta.page_size as u64);
        if content(length) < expected {
            return Err(SnapshotError::Cut { expected, found: content(length) });
        }
        let mut pages = Pages::new(&source, meta);
        let mut roots = Roots::default();
        pages.elements(meta.root, &mut |element, _| {
            match element.key {
                KEYS if element.bucket => roots.keys = Some(element.value.to_vec()),
                META if element.bucket => roots.meta = Some(element.value.to_vec()),
                _ => {}
            }
            Ok(())
        })?;
        let compacted = match &roots.meta {
            Some(bucket) => compacted(&mut pages, bucket)?,
            None => return Err(SnapshotError::NoBucket("meta")),
        };
        let history = match &roots.keys {
            Some(bucket) => pages.history(bucket)?,
            None => return Err(SnapshotError::NoBucket("key")),
        };
        Ok(Self { source, length, meta, history, compacted })
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether the file is empty; an open snapshot never is.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The revision up to which the history was forgotten; 0 when it never was.
    pub fn compacted(&self) -> Revision {
        self.compacted
    }

    /// Whether a hash stands at the end, as in files that `etcdctl snapshot save` makes.
    pub fn has_hash(&self) -> bool {
        has_hash(self.length)
    }

    /// Hands every record to `visit`, in the file's order, in one pass; `progress` learns how many
    /// bytes have been read.
    ///
    /// # Errors
    /// When the file cannot be read or a record is damaged. Whether the file is as it was written
    /// is for [`Self::check_hash`] to tell.
    pub fn records(
        &self,
        visit: &mut dyn FnMut(Record<'_>),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), SnapshotError> {
        self.visit_inline(visit)?;
        let page_size = self.meta.page_size as u64;
        let mut long = Vec::new();
        self.read_through(|offset, chunk| {
            for (id, start) in (offset / page_size..).zip((0..chunk.len()).step_by(self.meta.page_size)) {
                if self.history.contains(id) {
                    self.visit_page(id, &chunk[start..], &mut long, visit)?;
                }
            }
            progress(offset + chunk.len() as u64);
            Ok(())
        })
    }

    /// Reads the file for nothing but the hash at its end; without one there is nothing to check.
    /// Beside the reading of the records, on another thread, this costs no time.
    ///
    /// # Errors
    /// When the file cannot be read, or was changed since it was written.
    pub fn check_hash(&self) -> Result<(), SnapshotError> {
        if !self.has_hash() {
            return Ok(());
        }
        let mut hasher = Sha256::new();
        self.read_through(|_, chunk| {
            hasher.update(chunk);
            Ok(())
        })?;
        let mut expected = [0; HASH as usize];
        self.source.read_exactly(content(self.length), &mut expected)?;
        if expected == *hasher.finalize() { Ok(()) } else { Err(SnapshotError::WrongHash) }
    }

    /// Reads all pages in the file's order, in large pieces.
    fn read_through<V>(&self, mut visit: V) -> Result<(), SnapshotError>
    where
        V: FnMut(u64, &[u8]) -> Result<(), SnapshotError>,
    {
        let content = content(self.length);
        let mut chunk = Vec::new();
        let mut offset = 0;
        while offset < content {
            let length = usize::try_from(content - offset).unwrap_or(CHUNK).min(CHUNK);
            chunk.resize(length, 0);
            self.source.read_exactly(offset, &mut chunk)?;
            visit(offset, &chunk)?;
            offset += length as u64;
        }
        Ok(())
    }

    /// Hands the records of these pages to `visit`, in the file's order; `progress` learns how far
    /// in the file they are. Pages that hold no records are left out.
    ///
    /// # Errors
    /// When the file cannot be read or a record is damaged.
    pub fn records_on(
        &self,
        pages: impl IntoIterator<Item = u64>,
        visit: &mut dyn FnMut(Record<'_>),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), SnapshotError> {
        self.visit_inline(visit)?;
        let page_size = self.meta.page_size as u64;
        let mut pages: Vec<PageId> = pages.into_iter().filter(|page| self.history.contains(*page)).collect();
        pages.sort_unstable();
        pages.dedup();
        let (mut chunk, mut long) = (Vec::new(), Vec::new());
        let mut rest = &*pages;
        while let [first, others @ ..] = rest {
            // What lies near is read at once.
            let mut last = *first;
            let near = |page: &&PageId| {
                let fits =
                    (**page - last) * page_size <= GAP && (**page - first + 1) * page_size <= CHUNK as u64;
                last = **page;
                fits
            };
            let (span, left) = rest.split_at(1 + others.iter().take_while(near).count());
            let end = span.last().unwrap_or(first) + 1;
            chunk.resize(usize::try_from((end - first) * page_size).unwrap_or(CHUNK), 0);
            self.source.read_exactly(first * page_size, &mut chunk)?;
            for page in span {
                let start = usize::try_from((page - first) * page_size).unwrap_or(chunk.len());
                self.visit_page(*page, &chunk[start..], &mut long, visit)?;
            }
            progress(end * page_size);
            rest = left;
        }
        Ok(())
    }

    /// Records of a bucket so small that it has no page.
    fn visit_inline(&self, visit: &mut dyn FnMut(Record<'_>)) -> Result<(), SnapshotError> {
        match &self.history {
            History::Inline(bytes) => visit_leaf(Page::new(bytes, 0), 0, visit),
            History::Pages(_) => Ok(()),
        }
    }

    /// The records of one page, with which `bytes` begin; `long` holds it when it goes on beyond them.
    fn visit_page(
        &self,
        id: PageId,
        bytes: &[u8],
        long: &mut Vec<u8>,
        visit: &mut dyn FnMut(Record<'_>),
    ) -> Result<(), SnapshotError> {
        let run = tree::run_length(&self.meta, id, bytes)?;
        let page = match bytes.get(..run) {
            Some(page) => page,
            None => {
                long.resize(run, 0);
                self.source.read_exactly(id * self.meta.page_size as u64, long)?;
                long
            }
        };
        visit_leaf(Page::new(page, id), id, visit)
    }
}

impl<R> std::fmt::Debug for Snapshot<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Snapshot").field("length", &self.length).finish_non_exhaustive()
    }
}

fn has_hash(length: u64) -> bool {
    length % SECTOR == HASH
}

/// How many bytes the pages take.
fn content(length: u64) -> u64 {
    if has_hash(length) { length - HASH } else { length }
}

/// The heads of the buckets that matter.
#[derive(Default)]
struct Roots {
    keys: Option<Vec<u8>>,
    meta: Option<Vec<u8>>,
}

fn visit_leaf(page: Page<'_>, id: PageId, visit: &mut dyn FnMut(Record<'_>)) -> Result<(), SnapshotError> {
    let Elements::Leaf(elements) = page.elements()? else {
        return Err(SnapshotError::Damaged { page: id, what: "the tree is not even" });
    };
    for element in elements {
        let element = element?;
        visit(Record::parse(element.key, element.value, id)?);
    }
    Ok(())
}

/// What the bucket `meta` says of the last compaction.
fn compacted<R: ReadAt>(pages: &mut Pages<'_, R>, bucket: &[u8]) -> Result<Revision, SnapshotError> {
    let mut compacted = 0;
    pages.bucket(bucket, &mut |element, page| {
        if element.key == COMPACTED {
            let damaged = SnapshotError::Damaged { page, what: "a revision is malformed" };
            compacted = record::revision(element.value).ok_or(damaged)?.0;
        }
        Ok(())
    })?;
    Ok(compacted)
}

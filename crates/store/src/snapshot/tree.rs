//! The way through the pages of a bucket.

use super::pages::{
    Elements, HEADER, LONGEST_RUN, LeafElement, Meta, Page, PageId, SMALLEST_PAGE, bucket_root,
};
use super::{ReadAt, SnapshotError};

/// Deepest tree that is followed: with two children a page it would hold more than any file.
const DEEPEST: usize = 64;

/// A set of pages, one bit each.
pub(super) struct Leaves(Vec<u64>);

impl Leaves {
    fn none(end: PageId) -> Self {
        Self(vec![0; usize::try_from(end / 64 + 1).unwrap_or(0)])
    }

    /// Whether the page is one of them.
    pub(super) fn contains(&self, page: PageId) -> bool {
        let word = usize::try_from(page / 64).ok().and_then(|index| self.0.get(index));
        word.is_some_and(|word| word & (1 << (page % 64)) != 0)
    }

    /// Adds a page; whether it was new.
    fn insert(&mut self, page: PageId) -> bool {
        let new = !self.contains(page);
        if let Some(word) = usize::try_from(page / 64).ok().and_then(|index| self.0.get_mut(index)) {
            *word |= 1 << (page % 64);
        }
        new
    }
}

/// Where the records of all of etcd's history are.
pub(super) enum History {
    /// In a page within the bucket's own head: there are few.
    Inline(Vec<u8>),
    /// In these leaf pages.
    Pages(Leaves),
}

impl History {
    /// Whether the page holds records.
    pub(super) fn contains(&self, page: PageId) -> bool {
        match self {
            Self::Inline(_) => false,
            Self::Pages(leaves) => leaves.contains(page),
        }
    }
}

/// What is done with each element of a bucket.
type Visit<'v> = &'v mut dyn FnMut(LeafElement<'_>, PageId) -> Result<(), SnapshotError>;

/// Reads single pages of a file.
pub(super) struct Pages<'r, R> {
    source: &'r R,
    meta: Meta,
    /// Every page that was reached: a tree reaches none twice.
    seen: Leaves,
}

impl<'r, R: ReadAt> Pages<'r, R> {
    pub(super) fn new(source: &'r R, meta: Meta) -> Self {
        Self { source, meta, seen: Leaves::none(meta.end) }
    }

    /// Reads a page with its overflow.
    fn read(&mut self, id: PageId) -> Result<Vec<u8>, SnapshotError> {
        self.reach(id)?;
        let offset = id * self.meta.page_size as u64;
        let mut bytes = vec![0; self.meta.page_size];
        self.source.read_exactly(offset, &mut bytes)?;
        let run = run_length(&self.meta, id, &bytes)?;
        if run > bytes.len() {
            bytes.resize(run, 0);
            self.source.read_exactly(offset, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn reach(&mut self, id: PageId) -> Result<(), SnapshotError> {
        if id >= self.meta.end {
            return Err(SnapshotError::Damaged { page: id, what: "the file has no such page" });
        }
        if !self.seen.insert(id) {
            return Err(SnapshotError::Damaged { page: id, what: "the tree reaches it twice" });
        }
        Ok(())
    }

    /// Hands all elements below a page to `visit`.
    pub(super) fn elements(&mut self, root: PageId, visit: Visit<'_>) -> Result<(), SnapshotError> {
        let mut waiting = vec![root];
        while let Some(id) = waiting.pop() {
            let bytes = self.read(id)?;
            match Page::new(&bytes, id).elements()? {
                Elements::Branch(children) => {
                    for child in children {
                        waiting.push(child?);
                    }
                }
                Elements::Leaf(elements) => {
                    for element in elements {
                        visit(element?, id)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Hands all elements of a bucket to `visit`; a small bucket lies within its own head.
    pub(super) fn bucket(&mut self, head: &[u8], visit: Visit<'_>) -> Result<(), SnapshotError> {
        let damaged = |what| SnapshotError::Damaged { page: 0, what };
        let (root, inline) = bucket_root(head).ok_or_else(|| damaged("a bucket's head is cut"))?;
        if root != 0 {
            return self.elements(root, visit);
        }
        match Page::new(inline, 0).elements()? {
            Elements::Leaf(elements) => {
                for element in elements {
                    visit(element?, 0)?;
                }
                Ok(())
            }
            Elements::Branch(_) => Err(damaged("a bucket within its head is no leaf")),
        }
    }

    /// The leaf pages of a bucket, without reading them: all lie equally deep, so one way down
    /// tells where they are.
    pub(super) fn history(&mut self, head: &[u8]) -> Result<History, SnapshotError> {
        let damaged = |what| SnapshotError::Damaged { page: 0, what };
        let (root, inline) = bucket_root(head).ok_or_else(|| damaged("a bucket's head is cut"))?;
        if root == 0 {
            return Ok(History::Inline(inline.to_vec()));
        }
        let mut leaves = Leaves::none(self.meta.end);
        let mut level = vec![root];
        for _ in 0..DEEPEST {
            let Some(first) = level.first().copied() else { break };
            if self.is_leaf(first)? {
                for leaf in level {
                    self.reach(leaf)?;
                    leaves.insert(leaf);
                }
                return Ok(History::Pages(leaves));
            }
            let mut below = Vec::new();
            for branch in level {
                let bytes = self.read(branch)?;
                let Elements::Branch(children) = Page::new(&bytes, branch).elements()? else {
                    return Err(SnapshotError::Damaged { page: branch, what: "the tree is not even" });
                };
                for child in children {
                    below.push(child?);
                }
            }
            level = below;
        }
        Err(damaged("the tree is too deep or ends nowhere"))
    }

    fn is_leaf(&self, id: PageId) -> Result<bool, SnapshotError> {
        if id >= self.meta.end {
            return Err(SnapshotError::Damaged { page: id, what: "the file has no such page" });
        }
        let mut header = [0; HEADER];
        self.source.read_exactly(id * self.meta.page_size as u64, &mut header)?;
        Ok(matches!(Page::new(&header, id).elements()?, Elements::Leaf(_)))
    }
}

/// Bytes of a page with its overflow, from its first bytes.
pub(super) fn run_length(meta: &Meta, id: PageId, header: &[u8]) -> Result<usize, SnapshotError> {
    let damaged = |what| SnapshotError::Damaged { page: id, what };
    if Page::own_number(header) != Some(id) {
        return Err(damaged("it has another number"));
    }
    let overflow = Page::overflow(header).ok_or_else(|| damaged("it is cut"))?;
    let run = (overflow + 1) * meta.page_size as u64;
    if run > LONGEST_RUN || id + overflow >= meta.end {
        return Err(damaged("it is longer than it can be"));
    }
    debug_assert!(meta.page_size >= SMALLEST_PAGE);
    usize::try_from(run).map_err(|_| damaged("it is longer than it can be"))
}

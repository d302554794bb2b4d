//! The pages of a bbolt file, as bytes: what etcd keeps its data in.
//!
//! Layouts of go.etcd.io/bbolt, version 2 of the format. All numbers are little-endian, as on
//! every machine that etcd supports. Every length and offset comes from the file and is checked.

use super::SnapshotError;

/// A page begins with its number (8), flags (2), element count (2) and overflow (4).
pub(super) const HEADER: usize = 16;

/// The length of a page unless the file says otherwise; it is 4 KiB almost everywhere.
pub(super) const SMALLEST_PAGE: usize = 512;

/// The longest page that bbolt can be told to use.
const LARGEST_PAGE: usize = 1 << 16;

/// Longest run of pages that one page with its overflow may take: far above etcd's largest value.
pub(super) const LONGEST_RUN: u64 = 64 << 20;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const ELEMENT: usize = 16;
const BUCKET_ELEMENT: u32 = 0x01;

/// The number of a page.
pub(super) type PageId = u64;

/// One of the two pages at the head of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meta {
    /// Bytes of a page.
    pub(super) page_size: usize,
    /// Where the tree of buckets begins.
    pub(super) root: PageId,
    /// The first page that does not exist.
    pub(super) end: PageId,
    /// The transaction that wrote this; the higher one counts.
    transaction: u64,
}

impl Meta {
    /// Reads a meta page; `None` when it is damaged or something else.
    fn parse(page: &[u8]) -> Option<Self> {
        let body = page.get(HEADER..HEADER + 64)?;
        let sum = fnv64(body.get(..56)?);
        if u32_at(body, 0)? != MAGIC || u32_at(body, 4)? != VERSION || u64_at(body, 56)? != sum {
            return None;
        }
        let page_size = usize::try_from(u32_at(body, 8)?).ok()?;
        let fits = page_size.is_power_of_two() && (SMALLEST_PAGE..=LARGEST_PAGE).contains(&page_size);
        fits.then_some(Self {
            page_size,
            root: u64_at(body, 16)?,
            end: u64_at(body, 40)?,
            transaction: u64_at(body, 48)?,
        })
    }

    /// The meta page that counts, from the first bytes of the file.
    pub(super) fn choose(head: &[u8]) -> Result<Self, SnapshotError> {
        let first = Self::parse(head);
        // Where the second one lies depends on a page size that only it may know.
        let mut sizes = std::iter::successors(Some(SMALLEST_PAGE), |size| Some(size * 2))
            .take_while(|size| *size <= LARGEST_PAGE);
        let second = sizes.find_map(|size| {
            let meta = Self::parse(head.get(size..)?)?;
            (meta.page_size == size).then_some(meta)
        });
        first.into_iter().chain(second).max_by_key(|meta| meta.transaction).ok_or(SnapshotError::NotASnapshot)
    }
}

/// How many bytes of the file hold both meta pages, whatever the page size.
pub(super) const HEAD: usize = 2 * LARGEST_PAGE;

/// A page with its overflow.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    bytes: &'a [u8],
    id: PageId,
}

/// What an element of a page of the tree points to.
pub(super) enum Elements<'a> {
    /// Pages further down.
    Branch(BranchElements<'a>),
    /// Keys and values.
    Leaf(LeafElements<'a>),
}

impl<'a> Page<'a> {
    /// `bytes` begin with the header; inline buckets have pages without a number.
    pub(super) fn new(bytes: &'a [u8], id: PageId) -> Self {
        Self { bytes, id }
    }

    /// How many further pages this one takes, from its header.
    pub(super) fn overflow(header: &[u8]) -> Option<u64> {
        u32_at(header, 12).map(u64::from)
    }

    /// The number that a page says it has.
    pub(super) fn own_number(header: &[u8]) -> Option<PageId> {
        u64_at(header, 0)
    }

    /// What the page holds; an error when it is no page of a tree.
    pub(super) fn elements(self) -> Result<Elements<'a>, SnapshotError> {
        let damaged = || SnapshotError::Damaged { page: self.id, what: "it is cut" };
        let flags = u16_at(self.bytes, 8).ok_or_else(damaged)?;
        let count = usize::from(u16_at(self.bytes, 10).ok_or_else(damaged)?);
        match flags {
            BRANCH => Ok(Elements::Branch(BranchElements { page: self, next: 0, count })),
            LEAF => Ok(Elements::Leaf(LeafElements { page: self, next: 0, count })),
            _ => Err(SnapshotError::Damaged { page: self.id, what: "it is no page of a tree" }),
        }
    }

    /// The bytes of an element's head.
    fn element(self, index: usize) -> Option<(usize, &'a [u8])> {
        let start = HEADER + index * ELEMENT;
        Some((start, self.bytes.get(start..start + ELEMENT)?))
    }

    fn slice(self, start: usize, length: usize) -> Option<&'a [u8]> {
        self.bytes.get(start..start.checked_add(length)?)
    }
}

/// The children of a branch page.
pub(super) struct BranchElements<'a> {
    page: Page<'a>,
    next: usize,
    count: usize,
}

impl Iterator for BranchElements<'_> {
    type Item = Result<PageId, SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = (self.next < self.count).then_some(self.next)?;
        self.next += 1;
        let child = self.page.element(index).and_then(|(_, head)| u64_at(head, 8));
        Some(child.ok_or(SnapshotError::Damaged { page: self.page.id, what: "a branch element is cut" }))
    }
}

/// The keys and values of a leaf page.
pub(super) struct LeafElements<'a> {
    page: Page<'a>,
    next: usize,
    count: usize,
}

/// One key of a leaf page.
pub(super) struct LeafElement<'a> {
    /// The key.
    pub(super) key: &'a [u8],
    /// The value; the head of a bucket if this is one.
    pub(super) value: &'a [u8],
    /// Whether this is a bucket of its own.
    pub(super) bucket: bool,
}

impl<'a> LeafElements<'a> {
    fn at(&self, index: usize) -> Option<LeafElement<'a>> {
        let (start, head) = self.page.element(index)?;
        let size = |offset| usize::try_from(u32_at(head, offset)?).ok();
        let (position, key_size, value_size) = (size(4)?, size(8)?, size(12)?);
        let key_start = start.checked_add(position)?;
        Some(LeafElement {
            bucket: u32_at(head, 0)? & BUCKET_ELEMENT != 0,
            key: self.page.slice(key_start, key_size)?,
            value: self.page.slice(key_start.checked_add(key_size)?, value_size)?,
        })
    }
}

impl<'a> Iterator for LeafElements<'a> {
    type Item = Result<LeafElement<'a>, SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = (self.next < self.count).then_some(self.next)?;
        self.next += 1;
        let element = self.at(index);
        Some(element.ok_or(SnapshotError::Damaged { page: self.page.id, what: "a leaf element is cut" }))
    }
}

/// Where a bucket's tree begins: a page, or a page within the value itself.
pub(super) fn bucket_root(value: &[u8]) -> Option<(PageId, &[u8])> {
    Some((u64_at(value, 0)?, value.get(HEADER..)?))
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(offset..offset + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

/// FNV-1a, 64 bits: the checksum of meta pages.
fn fnv64(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

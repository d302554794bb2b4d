//! What redb writes through, so that a failed commit can be taken back.
//!
//! redb copies on write: a commit puts new pages where nothing is, and becomes the state by a new
//! head at the start of the file. Without that head the old state is untouched. So when a write or
//! sync fails, putting the last good head back and syncing it undoes the commit for certain, even
//! though nobody can say which of the other bytes reached the disk.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

use super::disk::Disk;

/// redb's head fits into its first page.
const HEAD: usize = 4096;

/// A disk and the head that it held when it was last synced.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    head: Mutex<Head>,
}

struct Head {
    /// As of the last successful sync.
    synced: Vec<u8>,
    /// As of the last write.
    written: Vec<u8>,
}

impl std::fmt::Debug for Head {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Head")
    }
}

impl Journal {
    /// Remembers the present head.
    pub(crate) fn new(disk: Arc<dyn Disk>) -> io::Result<Self> {
        let mut synced = vec![0; HEAD.min(usize::try_from(disk.len()?).unwrap_or(HEAD))];
        disk.read(0, &mut synced)?;
        Ok(Self { disk, head: Mutex::new(Head { written: synced.clone(), synced }) })
    }

    /// The length of the disk.
    pub(crate) fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    /// Makes sure that what was written since the last successful sync is not the state.
    pub(crate) fn roll_back(&self) -> io::Result<()> {
        let mut head = self.head.lock();
        if head.written != head.synced {
            self.disk.write(0, &head.synced)?;
        }
        self.disk.sync()?;
        head.written = head.synced.clone();
        Ok(())
    }

    /// The state of the last successful sync, with changes kept in memory: for reading on while
    /// the disk refuses to be written.
    pub(crate) fn overlay(&self) -> io::Result<Overlay> {
        let overlay = Overlay {
            disk: Arc::clone(&self.disk),
            changes: Mutex::new(Changes {
                len: self.disk.len()?,
                disk_len: self.disk.len()?,
                pages: BTreeMap::new(),
            }),
        };
        overlay.changes.lock().write(&*self.disk, 0, &self.head.lock().synced)?;
        Ok(overlay)
    }
}

/// redb's way to the disk.
#[derive(Debug)]
pub(crate) struct Through(pub(crate) Arc<Journal>);

impl StorageBackend for Through {
    fn len(&self) -> io::Result<u64> {
        self.0.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.disk.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.disk.sync()?;
        let mut head = self.0.head.lock();
        head.synced = head.written.clone();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if let Ok(from) = usize::try_from(offset)
            && from < HEAD
        {
            // Noted before it is tried: a write that fails may have happened.
            let mut head = self.0.head.lock();
            let to = HEAD.min(from + data.len());
            if head.written.len() < to {
                head.written.resize(to, 0);
            }
            head.written[from..to].copy_from_slice(&data[..to - from]);
        }
        self.0.disk.write(offset, data)
    }
}

/// A disk that is read only underneath.
#[derive(Debug)]
pub(crate) struct Overlay {
    disk: Arc<dyn Disk>,
    changes: Mutex<Changes>,
}

struct Changes {
    len: u64,
    /// The disk is used up to here; beyond it is zero until it is written.
    disk_len: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} changed pages", self.pages.len())
    }
}

const PAGE: u64 = 4096;

impl Changes {
    /// A page as it is now.
    fn page(&self, disk: &dyn Disk, page: u64) -> io::Result<Vec<u8>> {
        if let Some(bytes) = self.pages.get(&page) {
            return Ok(bytes.clone());
        }
        let mut bytes = vec![0; HEAD];
        let there = self.disk_len.saturating_sub(page * PAGE).min(PAGE);
        // At most a page, so it fits.
        let there = usize::try_from(there).unwrap_or(HEAD);
        disk.read(page * PAGE, &mut bytes[..there])?;
        Ok(bytes)
    }

    /// Splits a run of bytes at page borders: the page, where in it, and how much.
    fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            if done == len {
                return None;
            }
            let at = offset + done as u64;
            let within = usize::try_from(at % PAGE).unwrap_or(0);
            let piece = (HEAD - within).min(len - done);
            let from = done;
            done += piece;
            Some((at / PAGE, within, from, piece))
        })
    }

    fn write(&mut self, disk: &dyn Disk, offset: u64, data: &[u8]) -> io::Result<()> {
        for (page, within, from, piece) in Self::pieces(offset, data.len()) {
            let mut bytes = self.page(disk, page)?;
            bytes[within..within + piece].copy_from_slice(&data[from..from + piece]);
            self.pages.insert(page, bytes);
        }
        self.len = self.len.max(offset + data.len() as u64);
        Ok(())
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = self.changes.lock();
        if changes.len < offset.saturating_add(out.len() as u64) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (page, within, from, piece) in Changes::pieces(offset, out.len()) {
            let bytes = changes.page(&*self.disk, page)?;
            out[from..from + piece].copy_from_slice(&bytes[within..within + piece]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changes = self.changes.lock();
        if len < changes.len {
            changes.disk_len = changes.disk_len.min(len);
            changes.pages.split_off(&len.div_ceil(PAGE));
            let within = usize::try_from(len % PAGE).unwrap_or(0);
            if within != 0
                && let Some(last) = changes.pages.get_mut(&(len / PAGE))
            {
                last[within..].fill(0);
            }
        }
        changes.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.changes.lock().write(&*self.disk, offset, data)
    }
}

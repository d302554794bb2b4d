//! A disk in memory that fails on command and forgets what was not synced.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;

use coffer_store::embedded::Disk;
use parking_lot::Mutex;

use crate::random::SeededRandom;

/// Space is given out in blocks of this size,
const BLOCK: u64 = 4096;
/// and a write may be torn between sectors of this size, not within one.
const SECTOR: usize = 512;

/// How a step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The step fails once. A failed sync loses what was to be synced, as Linux does: it is still
    /// read back, but no later sync brings it to the disk.
    Once(io::ErrorKind),
    /// This step and all later ones fail, until [`FaultyDisk::repair`].
    FromNowOn(io::ErrorKind),
}

/// A disk. Clones are the same disk.
#[derive(Clone, Default)]
pub struct FaultyDisk(Arc<Mutex<Media>>);

#[derive(Default)]
struct Media {
    /// What is read.
    seen: Vec<u8>,
    /// What a crash keeps for certain.
    durable: Vec<u8>,
    /// What a crash may keep.
    pending: Vec<Change>,
    /// Writes, changes of length and syncs so far.
    steps: u64,
    reads: u64,
    syncs: u64,
    fault: Option<(u64, Fault)>,
    read_fault: Option<u64>,
    /// Blocks that take space.
    blocks: BTreeSet<u64>,
    /// Where they lie, together with those of the disks beside this one.
    space: Arc<Mutex<Space>>,
    /// For what a failed sync loses.
    seed: u64,
}

#[derive(Default)]
struct Space {
    used: usize,
    capacity: Option<usize>,
}

enum Change {
    Len(usize),
    Write(usize, Vec<u8>),
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let media = self.0.lock();
        write!(formatter, "FaultyDisk({} bytes, {} steps)", media.seen.len(), media.steps)
    }
}

impl FaultyDisk {
    /// A disk that holds `bytes`, all of them synced.
    pub fn holding(bytes: Vec<u8>) -> Self {
        let blocks: BTreeSet<u64> = (0..(bytes.len() as u64).div_ceil(BLOCK)).collect();
        let space = Arc::new(Mutex::new(Space { used: blocks.len(), capacity: None }));
        let media = Media { seen: bytes.clone(), durable: bytes, blocks, space, ..Media::default() };
        Self(Arc::new(Mutex::new(media)))
    }

    /// Another disk, empty, that takes its space from the same place.
    pub fn beside(&self) -> Self {
        let space = Arc::clone(&self.0.lock().space);
        Self(Arc::new(Mutex::new(Media { space, ..Media::default() })))
    }

    /// How many writes, changes of length and syncs there were.
    pub fn steps(&self) -> u64 {
        self.0.lock().steps
    }

    /// How many syncs there were.
    pub fn syncs(&self) -> u64 {
        self.0.lock().syncs
    }

    /// Fails the step with this number; the first one is 0.
    pub fn fail_at(&self, step: u64, fault: Fault) {
        self.0.lock().fault = Some((step, fault));
    }

    /// Fails the next read.
    pub fn fail_next_read(&self) {
        let mut media = self.0.lock();
        media.read_fault = Some(media.reads);
    }

    /// Chooses what a failed sync loses.
    pub fn set_seed(&self, seed: u64) {
        self.0.lock().seed = seed;
    }

    /// Works again.
    pub fn repair(&self) {
        self.0.lock().fault = None;
    }

    /// How many blocks of 4 KiB take space, those of the disks beside this one included.
    pub fn blocks(&self) -> usize {
        self.0.lock().space.lock().used
    }

    /// Limits the space. Growing a file takes none; writing into it does.
    pub fn set_capacity(&self, blocks: Option<usize>) {
        self.0.lock().space.lock().capacity = blocks;
    }

    /// What a power cut leaves: all that was synced, and any part of the rest.
    pub fn crash(&self, random: &SeededRandom) -> Vec<u8> {
        let media = self.0.lock();
        let mut bytes = media.durable.clone();
        for change in &media.pending {
            apply_some(&mut bytes, change, random);
        }
        bytes
    }

    /// All that can be read, synced or not: what a killed process leaves.
    pub fn contents(&self) -> Vec<u8> {
        self.0.lock().seen.clone()
    }
}

/// Applies a change as a whole, not at all, or some of its sectors.
fn apply_some(bytes: &mut Vec<u8>, change: &Change, random: &SeededRandom) {
    match (random.below(3), change) {
        (0, _) => {}
        (1, change) => apply(bytes, change),
        (_, Change::Len(_)) => {}
        (_, Change::Write(offset, data)) => {
            let mut from = 0;
            while from < data.len() {
                let to = data.len().min(from + SECTOR - (offset + from) % SECTOR);
                if random.one_in(2) {
                    apply(bytes, &Change::Write(offset + from, data[from..to].to_vec()));
                }
                from = to;
            }
        }
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Len(len) => bytes.resize(*len, 0),
        Change::Write(offset, data) => {
            let end = offset + data.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset..end].copy_from_slice(data);
        }
    }
}

fn small(number: u64) -> io::Result<usize> {
    usize::try_from(number).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

impl Media {
    /// Counts a step, and fails it if it is its turn.
    fn step(&mut self) -> io::Result<()> {
        let step = self.steps;
        self.steps += 1;
        match self.fault {
            Some((at, Fault::Once(kind))) if at == step => Err(kind.into()),
            Some((at, Fault::FromNowOn(kind))) if at <= step => Err(kind.into()),
            _ => Ok(()),
        }
    }

    /// Takes the space of these blocks, all or none.
    fn take(&mut self, blocks: std::ops::Range<u64>) -> io::Result<()> {
        let new: Vec<u64> = blocks.filter(|block| !self.blocks.contains(block)).collect();
        let mut space = self.space.lock();
        if !new.is_empty() && space.capacity.is_some_and(|capacity| capacity < space.used + new.len()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        space.used += new.len();
        self.blocks.extend(new);
        Ok(())
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.seen, &change);
        self.pending.push(change);
    }
}

impl Disk for FaultyDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut media = self.0.lock();
        let read = media.reads;
        media.reads += 1;
        if media.read_fault.take_if(|at| *at == read).is_some() {
            return Err(io::Error::other("a read failed"));
        }
        let from = small(offset)?;
        let wanted = media.seen.get(from..from.saturating_add(out.len()));
        out.copy_from_slice(wanted.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut media = self.0.lock();
        media.step()?;
        let cut = media.blocks.split_off(&len.div_ceil(BLOCK));
        media.space.lock().used -= cut.len();
        let len = small(len)?;
        media.change(Change::Len(len));
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        {
            let mut media = self.0.lock();
            media.take(0..len.div_ceil(BLOCK))?;
        }
        self.set_len(len)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut media = self.0.lock();
        let failed = media.step();
        if failed.is_err() {
            // Part of it may have been written.
            let half = data[..data.len() / 2].to_vec();
            media.change(Change::Write(small(offset)?, half));
            return failed;
        }
        let end = offset + data.len() as u64;
        media.take(offset / BLOCK..end.div_ceil(BLOCK))?;
        media.change(Change::Write(small(offset)?, data.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut media = self.0.lock();
        let failed = media.step();
        media.syncs += 1;
        let pending = std::mem::take(&mut media.pending);
        let random = SeededRandom::new(media.seed.wrapping_add(media.steps));
        for change in &pending {
            match failed {
                Ok(()) => apply(&mut media.durable, change),
                Err(_) => apply_some(&mut media.durable, change, &random),
            }
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_synced_bytes_survive_for_certain() {
        let disk = FaultyDisk::default();
        disk.write(0, &[1; 2048]).expect("written");
        disk.sync().expect("synced");
        disk.write(0, &[2; 2048]).expect("written");
        let random = SeededRandom::new(1);
        let images: BTreeSet<_> = (0..100).map(|_| disk.crash(&random)).collect();
        assert!(images.contains(&vec![1; 2048]) && images.contains(&vec![2; 2048]));
        assert!(images.len() > 2, "torn writes too");
        for image in images {
            assert!(image.chunks(SECTOR).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        }
    }

    #[test]
    fn a_failed_sync_loses_what_later_syncs_do_not_bring_back() {
        let disk = FaultyDisk::default();
        disk.fail_at(1, Fault::Once(io::ErrorKind::Other));
        disk.write(0, &[1; 64 * 1024]).expect("written");
        disk.sync().expect_err("failed");
        disk.sync().expect("synced");
        assert_eq!(disk.contents(), vec![1; 64 * 1024], "it is still read");
        let images: BTreeSet<_> = (0..10)
            .map(|seed| {
                let disk = FaultyDisk::default();
                disk.set_seed(seed);
                disk.fail_at(1, Fault::Once(io::ErrorKind::Other));
                disk.write(0, &[1; 64 * 1024]).expect("written");
                disk.sync().expect_err("failed");
                disk.sync().expect("synced");
                disk.crash(&SeededRandom::new(seed))
            })
            .collect();
        assert!(1 < images.len(), "some of it is lost");
    }

    #[test]
    fn a_full_disk_takes_what_it_has_room_for() {
        let disk = FaultyDisk::default();
        disk.set_capacity(Some(2));
        disk.set_len(1 << 20).expect("no space is taken yet");
        disk.write(0, &[1; 4096]).expect("one");
        disk.write(9 * 4096, &[1; 4096]).expect("two");
        let full = disk.write(5 * 4096, &[1]).expect_err("full");
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        disk.write(10, &[2; 100]).expect("it has its space");
        // A disk beside it has no more, until something is given back.
        let other = disk.beside();
        assert!(other.allocate(4096).is_err());
        disk.set_len(4096).expect("cut");
        other.allocate(4096).expect("one");
        assert_eq!((other.len().expect("a length"), other.blocks(), disk.blocks()), (4096, 2, 2));
    }
}

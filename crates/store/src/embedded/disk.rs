//! The disk as a port: a file in production, one that fails and forgets in tests.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use parking_lot::RwLock;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// One growing run of bytes on stable storage.
///
/// What was written is on stable storage once a later [`Disk::sync`] has succeeded. A crash before
/// that keeps any part of it, in any order.
pub trait Disk: Debug + Send + Sync + 'static {
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether nothing was ever written.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads exactly the bytes asked for.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Cuts or grows; new bytes are zero.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Cuts or grows to `len`, and takes the space for all of it now. On failure it is as long as before.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Writes all of `data`.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Brings everything written so far to stable storage.
    fn sync(&self) -> io::Result<()>;
}

/// A file.
#[derive(Debug)]
pub struct FileDisk(File);

impl FileDisk {
    /// A file that was opened for reading and writing.
    pub fn new(file: File) -> Self {
        Self(file)
    }
}

impl FileDisk {
    /// Writes what no file system stores in less space than it takes.
    fn fill(&self, from: u64, to: u64) -> io::Result<()> {
        let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
        let mut block = [0_u8; 4096];
        let mut at = from;
        while at < to {
            for word in block.chunks_exact_mut(8) {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                word.copy_from_slice(&noise.to_ne_bytes());
            }
            let len = usize::try_from(to - at).unwrap_or(block.len()).min(block.len());
            self.0.write_all_at(&block[..len], at)?;
            at += len as u64;
        }
        // Only now it is certain that there was space.
        self.0.sync_data()
    }
}

impl Disk for FileDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let before = self.0.metadata()?.len();
        if len <= before {
            return self.0.set_len(len);
        }
        let taken = match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), before, len - before) {
            Err(Errno::OPNOTSUPP) => self.fill(before, len),
            done => done.map_err(io::Error::from),
        };
        if taken.is_err() {
            self.0.set_len(before)?;
        }
        taken
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Memory that is gone when it is dropped.
#[derive(Default)]
pub struct MemoryDisk(RwLock<Vec<u8>>);

impl Debug for MemoryDisk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The content may be plaintext (identity), so it is never printed.
        write!(formatter, "MemoryDisk({} bytes)", self.0.read().len())
    }
}

/// The index of a byte, if the machine can address it.
fn index(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))
}

impl Disk for MemoryDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.read().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let from = index(offset)?;
        let bytes = self.0.read();
        let wanted = from.checked_add(out.len()).and_then(|to| bytes.get(from..to));
        out.copy_from_slice(wanted.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.write().resize(index(len)?, 0);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let from = index(offset)?;
        let to = from.checked_add(data.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut bytes = self.0.write();
        if bytes.len() < to {
            bytes.resize(to, 0);
        }
        bytes[from..to].copy_from_slice(data);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

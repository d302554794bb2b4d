//! Opening: locks, checks the format, and rebuilds what is kept in memory.

use std::io;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, StorageError};
use tokio::sync::mpsc;

use super::backend::{Journal, Through};
use super::directory::Directory;
use super::disk::{Disk, FileDisk, MemoryDisk};
use super::error::OpenError;
use super::index::KeyIndex;
use super::lease::{self, Lease, Leases};
use super::reserve::Reserve;
use super::rows::{
    FORMAT, LEASES, META, META_COMMIT, META_COMPACTED, META_FORMAT, META_LEASE, META_REVISION, ROWS,
    decode_entry,
};
use super::watch::Hub;
use super::writer::{Start, Writer};
use super::{Embedded, EmbeddedOptions, QUEUE, Shared, State};
use crate::kv::{LeaseId, Revision};

/// The revision of an empty store, as with etcd.
const FIRST_REVISION: Revision = 1;

/// The compaction revision of a store that was never compacted, as with etcd.
const NEVER_COMPACTED: Revision = -1;

/// What the file holds, without the values.
struct Loaded {
    index: KeyIndex,
    compacted: Revision,
    leases: Vec<(LeaseId, Duration)>,
    start: Start,
}

impl Embedded {
    /// Opens the store in a directory, and makes both if need be. Needs a running tokio runtime.
    pub async fn open(directory: &Path, options: EmbeddedOptions) -> Result<Self, OpenError> {
        let path = directory.to_owned();
        let cache_bytes = options.cache_bytes;
        let opened = tokio::task::spawn_blocking(move || {
            let directory = Directory::open(&path)?;
            let data = directory.data_path();
            let file = directory.data_file(|file| {
                let journal = Journal::new(Arc::new(FileDisk::new(file)));
                let journal = Arc::new(journal.map_err(|source| OpenError::io(&data, source))?);
                open_database(Through(journal), cache_bytes, &data).map(drop)
            })?;
            let reserve: Arc<dyn Disk> = Arc::new(FileDisk::new(directory.reserve_file()?));
            let opened = load_disk(Arc::new(FileDisk::new(file)), cache_bytes, &data)?;
            Ok((opened, reserve, directory))
        });
        let (opened, reserve, directory) = finished(opened.await, directory)?;
        Ok(Self::start(opened, Some(reserve), Some(directory), options))
    }

    /// Opens the store on a disk of the caller's; it is empty, or holds a store. Needs a running tokio runtime.
    pub async fn open_disk(disk: Arc<dyn Disk>, options: EmbeddedOptions) -> Result<Self, OpenError> {
        Self::open_disks(disk, None, options).await
    }

    /// As [`Embedded::open_disk`], with a place beside it for the space that is kept for deletions.
    pub async fn open_disks(
        disk: Arc<dyn Disk>,
        reserve: Option<Arc<dyn Disk>>,
        options: EmbeddedOptions,
    ) -> Result<Self, OpenError> {
        let path = Path::new("the given disk");
        let cache_bytes = options.cache_bytes;
        let opened = tokio::task::spawn_blocking(move || load_disk(disk, cache_bytes, path));
        Ok(Self::start(finished(opened.await, path)?, reserve, None, options))
    }

    /// A new store in memory. Needs a running tokio runtime.
    pub async fn in_memory(options: EmbeddedOptions) -> Result<Self, OpenError> {
        Self::open_disk(Arc::new(MemoryDisk::default()), options).await
    }

    fn start(
        (journal, database, loaded): Opened,
        reserve: Option<Arc<dyn Disk>>,
        directory: Option<Directory>,
        options: EmbeddedOptions,
    ) -> Self {
        let full = Arc::new(AtomicBool::new(false));
        let reserve = Reserve::new(reserve, options.reserve_bytes, Arc::clone(&full));
        let (queue, requests) = mpsc::channel(QUEUE);
        let hub = Hub::default();
        hub.start_at(loaded.start.revision);
        let leases = Leases::default();
        let now = options.clock.monotonic();
        for (id, ttl) in loaded.leases {
            leases.insert(id, Lease { ttl, end: now + ttl });
        }
        let shared = Arc::new(Shared {
            database: RwLock::new(Some(database)),
            opened: AtomicU64::new(0),
            hub,
            state: RwLock::new(State {
                index: loaded.index,
                visible: loaded.start.revision,
                compacted: loaded.compacted,
            }),
            leases,
            journal,
            cache_bytes: options.cache_bytes,
            clock: options.clock,
            progress_interval: options.progress_interval,
            healer: queue.downgrade(),
            full,
            directory: Mutex::new(directory),
        });
        let writer = Writer::new(Arc::clone(&shared), reserve, loaded.start);
        let writer = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.run(requests))
            .inspect_err(
                |error| tracing::error!(%error, "no thread for the embedded store: it is read-only"),
            );
        let expiry = tokio::spawn(lease::expire(Arc::clone(&shared), queue.downgrade()));
        Self { shared, queue: Some(queue), writer: writer.ok(), expiry }
    }
}

fn finished<T>(
    result: Result<Result<T, OpenError>, tokio::task::JoinError>,
    path: &Path,
) -> Result<T, OpenError> {
    // A damaged file may make the database's code panic.
    result.unwrap_or_else(|_| Err(corrupt(path, "it could not be read through")))
}

fn corrupt(path: &Path, reason: impl Into<String>) -> OpenError {
    OpenError::Corrupt { path: path.to_owned(), reason: reason.into() }
}

type Opened = (Arc<Journal>, Database, Loaded);

fn load_disk(disk: Arc<dyn Disk>, cache_bytes: usize, path: &Path) -> Result<Opened, OpenError> {
    let journal = Arc::new(Journal::new(disk).map_err(|source| OpenError::io(path, source))?);
    let database = open_database(Through(Arc::clone(&journal)), cache_bytes, path)?;
    let loaded = load(&database, path)?;
    Ok((journal, database, loaded))
}

/// Opens the database over any backend, and makes its tables if it is empty.
fn open_database(
    backend: impl StorageBackend,
    cache_bytes: usize,
    path: &Path,
) -> Result<Database, OpenError> {
    let database = build(backend, cache_bytes).map_err(|error| refused(path, error.into()))?;
    prepare(&database).map_err(|error| refused(path, error))?;
    Ok(database)
}

/// What the database's error means for whoever opens it. Only what proves damage is called damage.
fn refused(path: &Path, error: redb::Error) -> OpenError {
    match error {
        redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
            corrupt(path, "it is not a database of this program")
        }
        // A file that ends too early was cut.
        redb::Error::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
            corrupt(path, source.to_string())
        }
        redb::Error::Io(source) => OpenError::io(path, source),
        error @ redb::Error::PreviousIo => OpenError::io(path, io::Error::other(error.to_string())),
        redb::Error::UpgradeRequired(found) => OpenError::NewerFormat {
            path: path.to_owned(),
            found: found.into(),
            known: FORMAT.unsigned_abs(),
        },
        error => corrupt(path, error.to_string()),
    }
}

/// Opens the database. Its code may panic on a damaged file, which is an error here.
pub(crate) fn build(backend: impl StorageBackend, cache_bytes: usize) -> Result<Database, DatabaseError> {
    let open = || {
        let mut builder = Builder::new();
        builder.set_cache_size(cache_bytes);
        builder.create_with_backend(backend)
    };
    std::panic::catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
        Err(DatabaseError::Storage(StorageError::Corrupted("it could not be read through".into())))
    })
}

/// Makes the tables and the format mark of a new database.
fn prepare(database: &Database) -> Result<(), redb::Error> {
    {
        let read = database.begin_read()?;
        match read.open_table(META) {
            Ok(_) => return Ok(()),
            Err(redb::TableError::TableDoesNotExist(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let write = database.begin_write()?;
    write.open_table(ROWS)?;
    write.open_table(LEASES)?;
    {
        let mut meta = write.open_table(META)?;
        meta.insert(META_FORMAT, FORMAT)?;
        meta.insert(META_COMMIT, 0)?;
        meta.insert(META_REVISION, FIRST_REVISION)?;
        meta.insert(META_COMPACTED, NEVER_COMPACTED)?;
        meta.insert(META_LEASE, 0)?;
    }
    write.commit()?;
    Ok(())
}

/// Reads the format mark first, and then everything but the values.
fn load(database: &Database, path: &Path) -> Result<Loaded, OpenError> {
    let format = number(database, META_FORMAT).map_err(|error| refused(path, error))?;
    if FORMAT < format {
        return Err(OpenError::NewerFormat {
            path: path.to_owned(),
            found: format.unsigned_abs(),
            known: FORMAT.unsigned_abs(),
        });
    }
    load_all(database).map_err(|error| refused(path, error))
}

/// One of the single numbers.
pub(crate) fn number(database: &Database, name: &str) -> Result<i64, redb::Error> {
    let meta = database.begin_read()?.open_table(META)?;
    let found = meta.get(name)?.map(|number| number.value());
    found.ok_or_else(|| redb::Error::Corrupted(format!("the number {name:?} is missing")))
}

fn load_all(database: &Database) -> Result<Loaded, redb::Error> {
    let (revision, compacted) = (number(database, META_REVISION)?, number(database, META_COMPACTED)?);
    let mut index = KeyIndex::default();
    let read = database.begin_read()?;
    for row in read.open_table(ROWS)?.iter()? {
        let (row, bytes) = row?;
        let row = row.value();
        if revision < row.0 {
            return Err(redb::Error::Corrupted(format!(
                "revision {} comes after the last one, {revision}",
                row.0
            )));
        }
        let (key, entry) = decode_entry(row, bytes.value())?;
        index.push(&key, entry);
    }
    let dead = index.compact(compacted);
    let mut leases = Vec::new();
    for lease in read.open_table(LEASES)?.iter()? {
        let (id, ttl) = lease?;
        leases.push((id.value(), Duration::from_secs(ttl.value())));
    }
    let (commits, last_lease) = (number(database, META_COMMIT)?, number(database, META_LEASE)?);
    Ok(Loaded { index, compacted, leases, start: Start { revision, commits, last_lease, dead } })
}

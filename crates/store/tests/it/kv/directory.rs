//! The embedded engine's data directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use coffer_runtime::clock::SystemClock;
use coffer_store::embedded::{Embedded, EmbeddedOptions, OpenError};
use coffer_store::kv::{Kv, KvError};
use futures::StreamExt;

use super::helpers::{ends_with, put, read, show, single, watch};

async fn open(directory: &Path) -> Result<Embedded, OpenError> {
    Embedded::open(directory, EmbeddedOptions::new(Arc::new(SystemClock::new()))).await
}

async fn error(directory: &Path) -> OpenError {
    open(directory).await.map(|_| ()).expect_err("it must not open")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

#[tokio::test]
async fn a_store_comes_back_and_is_private() {
    let base = tempfile::tempdir().expect("a directory");
    let directory = base.path().join("deep/data");
    let kv = open(&directory).await.expect("made");
    put(&kv, "/a", "1").await;
    drop(kv);
    let kv = open(&directory).await.expect("opens");
    assert_eq!(show(&read(&kv, single("/a")).await), ["/a=1@2.2.1"]);
    assert_eq!(put(&kv, "/a", "2").await, 3);
    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).expect("readable") {
        let path = entry.expect("an entry").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(kv);
    // Whoever opened them up has them closed again.
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).expect("set");
    fs::set_permissions(directory.join("store.db"), Permissions::from_mode(0o644)).expect("set");
    open(&directory).await.expect("opens");
    assert_eq!((mode(&directory), mode(&directory.join("store.db"))), (0o700, 0o600));
}

#[tokio::test]
async fn two_cannot_have_the_same_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let kv = open(directory.path()).await.expect("opens");
    let locked = error(directory.path()).await;
    let expected = format!(
        "the data directory {} is in use by process {}; stop that process or choose another directory",
        directory.path().display(),
        std::process::id()
    );
    assert_eq!(locked.to_string(), expected);
    put(&kv, "/a", "1").await;
    // A watch that somebody still holds ends, and does not keep the directory.
    let mut watch = watch(&kv, "/", 0).await;
    drop(kv);
    let kv = open(directory.path()).await.expect("it is free again");
    assert!(matches!(ends_with(&mut watch).await, KvError::Unavailable(_)));
    assert!(watch.next().await.is_none());
    assert_eq!(kv.range(single("/a")).await.expect("readable").count, 1);
}

#[tokio::test]
async fn what_is_not_a_store_is_refused_and_left_alone() {
    let garbage: Vec<u8> = (0..20_000_u32).map(|number| (number * 7 % 251) as u8).collect();
    for content in [&b"hello"[..], &garbage, &[0; 8192], b"redb", &[]] {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("store.db");
        fs::write(&file, content).expect("written");
        let refused = open(directory.path()).await.map(|_| ());
        if content.is_empty() {
            // Nothing is in it that could be lost.
            refused.expect("an empty file is an empty store");
            continue;
        }
        let refused = refused.expect_err("not a store");
        assert!(matches!(&refused, OpenError::Corrupt { path, .. } if *path == file), "{refused:?}");
        assert_eq!(fs::read(&file).expect("still there"), content, "{refused}");
    }
}

#[tokio::test]
async fn a_damaged_store_is_an_error_and_never_a_panic() {
    let directory = tempfile::tempdir().expect("a directory");
    let kv = open(directory.path()).await.expect("opens");
    for number in 0..40 {
        put(&kv, &format!("/{number}"), &"x".repeat(500)).await;
    }
    drop(kv);
    let file = directory.path().join("store.db");
    let good = fs::read(&file).expect("readable");
    let mut refused = 0;
    for cut in [100, 4096, good.len() / 2] {
        fs::write(&file, &good[..cut]).expect("written");
        let error = error(directory.path()).await;
        assert!(matches!(error, OpenError::Corrupt { .. } | OpenError::Io { .. }), "{error:?}");
    }
    for page in 0..good.len() / 4096 {
        let mut bad = good.clone();
        bad[page * 4096 + 8..page * 4096 + 64].fill(0xa5);
        fs::write(&file, &bad).expect("written");
        match open(directory.path()).await {
            // The page was not in use.
            Ok(kv) => drop(read(&kv, single("/1")).await),
            Err(OpenError::Corrupt { .. } | OpenError::Io { .. }) => refused += 1,
            Err(error) => panic!("page {page}: {error:?}"),
        }
    }
    assert!(0 < refused, "no damage was noticed");
}

#[tokio::test]
async fn a_newer_format_is_left_to_newer_programs() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(open(directory.path()).await.expect("opens"));
    let file = directory.path().join("store.db");
    {
        let database = redb::Database::open(&file).expect("a database");
        let write = database.begin_write().expect("begun");
        write
            .open_table(redb::TableDefinition::<&str, i64>::new("meta"))
            .expect("the table")
            .insert("format", 2)
            .expect("inserted");
        write.commit().expect("committed");
    }
    let newer = error(directory.path()).await;
    assert!(matches!(newer, OpenError::NewerFormat { found: 2, known: 1, .. }), "{newer:?}");
    let expected = format!(
        "{} has format 2, and this version reads up to 1; use the version that wrote it",
        file.display()
    );
    assert_eq!(newer.to_string(), expected);
}

#[tokio::test]
async fn a_directory_that_cannot_be_one_is_named() {
    let base = tempfile::tempdir().expect("a directory");
    let file = base.path().join("file");
    fs::write(&file, "x").expect("written");
    for path in [file.clone(), file.join("below")] {
        let refused = error(&path).await;
        assert!(
            matches!(&refused, OpenError::NotADirectory { path: named } if *named == path),
            "{refused:?}"
        );
    }
    // Root may write anywhere but here.
    let refused = error(Path::new("/proc/coffer-data")).await;
    assert!(refused.to_string().contains("/proc/coffer-data"), "{refused}");
}

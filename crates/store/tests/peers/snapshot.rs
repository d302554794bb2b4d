//! Snapshot files of a real etcd, held to what its watch tells of the same history.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use coffer_runtime::clock::SystemClock;
use coffer_sim::peers::Etcd;
use coffer_store::etcd::{EtcdConfig, EtcdKv};
use coffer_store::kv::{Kv, Op, Revision, SharedValue, Txn, WatchMessage, WatchRequest};
use coffer_store::snapshot::{Record, Snapshot, SnapshotError};
use futures::StreamExt;

/// Transactions; with several changes each, enough for a tree of three levels.
const TRANSACTIONS: usize = 1_500;

/// Revision and place of a change, and all that is known of it.
type History = BTreeMap<(Revision, String), String>;

async fn write_history(kv: &EtcdKv, transactions: usize) -> Revision {
    let put = |key: String, value: Vec<u8>| Op::Put {
        key: Bytes::from(key),
        value: SharedValue(Bytes::from(value)),
        lease: 0,
    };
    let mut last = 0;
    for number in 0..transactions {
        let key = |part: &str, of: usize| format!("/registry/{part}/ns/{}", number % of);
        let mut steps = vec![
            put(key("secrets", 700), vec![b's'; number % 900]),
            put(key("configmaps", 90), format!("{number}").into_bytes()),
        ];
        match number % 7 {
            0 => steps.push(Op::Delete { key: Bytes::from(key("pods", 11)) }),
            _ => steps.push(put(key("pods", 11), vec![b'p'; 300])),
        }
        // Values over several pages, and one as long as etcd takes.
        if number % 100 == 50 {
            steps.push(put(key("large", 3), vec![b'l'; 40_000]));
        }
        if number == 777 {
            steps.push(put(key("large", 3), vec![b'x'; 1 << 20]));
        }
        let txn = Txn { success: steps, ..Txn::default() };
        last = kv.txn(txn).await.expect("written").revision;
    }
    last
}

/// What etcd tells of every change up to `last`.
async fn told(kv: &EtcdKv, last: Revision) -> History {
    let request = WatchRequest {
        start: Bytes::from_static(b"/"),
        end: Bytes::from_static(b"0"),
        from: 1,
        ..WatchRequest::default()
    };
    let mut watch = kv.watch(request).await.expect("a watch");
    let mut told = History::new();
    while told.last_key_value().is_none_or(|((revision, _), _)| *revision < last) {
        match watch.next().await.expect("more").expect("an answer") {
            WatchMessage::Events(events) => {
                for event in events {
                    let (key, kv) = (String::from_utf8_lossy(&event.kv.key).into_owned(), &event.kv);
                    let line = line(event.deleted, kv.create_revision, kv.version, kv.lease, &kv.value);
                    told.insert((kv.mod_revision, key), line);
                }
            }
            WatchMessage::Created(_) | WatchMessage::Progress(_) => {}
        }
    }
    told
}

fn line(deleted: bool, created: Revision, version: i64, lease: i64, value: &[u8]) -> String {
    let first = value.first().copied().map_or(' ', char::from);
    format!("{deleted} {created} {version} {lease} {first}*{}", value.len())
}

/// All records, read twice: one after the other, and again by their pages.
fn read(file: &Path) -> Result<(History, Revision), SnapshotError> {
    let snapshot = Snapshot::open(File::open(file)?)?;
    let mut found = History::new();
    let mut visit = |record: Record<'_>| {
        let key = String::from_utf8_lossy(record.key).into_owned();
        let told = line(record.deleted, record.create_revision, record.version, record.lease, record.value);
        assert_eq!(found.insert((record.revision, key), told), None, "a record came twice");
    };
    snapshot.records(&mut visit, &mut |_| {})?;
    snapshot.check_hash()?;

    // Every third page that holds records.
    let mut pages = BTreeMap::<u64, usize>::new();
    snapshot.records(&mut |record| *pages.entry(record.page).or_default() += 1, &mut |_| {})?;
    let some: BTreeMap<u64, usize> = pages.into_iter().step_by(3).collect();
    let mut again = BTreeMap::<u64, usize>::new();
    // In any order, named twice, with a page that is none.
    let named = some.keys().rev().chain(some.keys()).copied().chain([0, u64::MAX]);
    snapshot.records_on(named, &mut |record| *again.entry(record.page).or_default() += 1, &mut |_| {})?;
    assert_eq!(again, some);
    Ok((found, snapshot.compacted()))
}

async fn client(etcd: &Etcd) -> EtcdKv {
    let config = EtcdConfig::new(vec![etcd.url().to_owned()], Arc::new(SystemClock::new()));
    EtcdKv::connect(config).await.expect("connected")
}

#[tokio::test]
async fn a_snapshot_holds_what_etcd_tells() {
    let mut etcd = Etcd::start();
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let save = |etcd: &Etcd, name: &str| {
        let path = file(name);
        etcd.ctl(&["snapshot", "save", path.to_str().expect("text")]);
        path
    };

    let empty = save(&etcd, "empty.db");
    assert_eq!(read(&empty).expect("records"), (History::new(), 0));

    let kv = client(&etcd).await;
    let last = write_history(&kv, TRANSACTIONS).await;
    let expected = told(&kv, last).await;
    let whole = save(&etcd, "whole.db");
    let (found, compacted) = read(&whole).expect("records");
    assert!(found.len() > 4_000);
    assert_eq!(found, expected);
    assert_eq!(compacted, 0);

    // Compaction frees pages within the file; what they held is not to be read any more.
    kv.compact(last - 100).await.expect("compacted");
    let after = loop {
        let after = save(&etcd, "compacted.db");
        let (found, compacted) = read(&after).expect("records");
        // etcd takes its time to do it.
        if compacted == last - 100 {
            break found;
        }
    };
    assert!(after.len() < expected.len());
    let newer = |history: &History| {
        let kept = history.iter().filter(|((revision, _), _)| *revision > last - 100);
        kept.map(|(key, line)| (key.clone(), line.clone())).collect::<History>()
    };
    assert_eq!(newer(&after), newer(&expected));

    // The data file of a member that is not running.
    drop(kv);
    etcd.kill();
    let data = etcd.directory().join("data/member/snap/db");
    assert_eq!(read(&data).expect("records").0, after);
}

/// Damage in any page of a large file is an error, never a panic, and the hash finds all of it.
#[tokio::test]
async fn a_damaged_snapshot_is_an_error() {
    let etcd = Etcd::start();
    let directory = tempfile::tempdir().expect("a directory");
    let kv = client(&etcd).await;
    write_history(&kv, 130).await;
    let path = directory.path().join("whole.db");
    etcd.ctl(&["snapshot", "save", path.to_str().expect("text")]);
    let mut file = std::fs::read(&path).expect("a file");
    let read = |bytes: &[u8]| Snapshot::open(bytes)?.records(&mut |_| {}, &mut |_| {});
    let hash = |bytes: &[u8]| Snapshot::open(bytes)?.check_hash();
    read(&file).and(hash(&file)).expect("it is good");
    let mut noticed = 0;
    for page in 0..file.len() / 4096 {
        // The head of a page, of its first element, and somewhere in it.
        for offset in [8, 10, 12, 17, 20, 24, 28, 32, 2_000] {
            let position = page * 4096 + offset;
            file[position] ^= 0x41;
            noticed += usize::from(read(&file).is_err());
            if page % 23 == 0 {
                let error = hash(&file).expect_err("the hash tells");
                assert!(!error.to_string().contains("ssss"), "{error}");
            }
            file[position] ^= 0x41;
        }
    }
    assert!(noticed > 100, "{noticed}");
}

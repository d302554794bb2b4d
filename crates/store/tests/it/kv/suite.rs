//! What every engine promises, one function a promise. Each runs on a fresh, empty store.
//!
//! Whoever includes this calls [`promises!`] with the way to make an engine.

use std::time::Duration;

use bytes::Bytes;
use coffer_store::kv::{
    Compare, KvError, Op, OpResponse, RangeRequest, SharedValue, Txn, WatchMessage, WatchRequest,
};
use futures::future::join_all;

use super::helpers::*;

/// Makes a test of each promise.
macro_rules! promises {
    ($make:path) => {
        $crate::kv::suite::promises!($make:
            revisions_begin_at_one_and_count_changes,
            what_changes_nothing_keeps_the_revision,
            steps_of_one_transaction_share_a_revision,
            keys_remember_creation_change_and_version,
            conditions_hold_or_the_other_branch_runs,
            ranges_are_ordered_limited_and_counted,
            odd_ranges_are_empty_or_open,
            old_revisions_stay_readable,
            reads_in_a_transaction_see_earlier_steps,
            deletions_count_what_was_there,
            malformed_requests_are_refused_with_etcds_texts,
            large_requests_are_refused_and_large_answers_are_not,
            compaction_keeps_the_newest_of_each_key,
            compaction_of_the_impossible_is_refused,
            a_watch_reports_changes_with_what_was_before,
            a_watch_of_the_past_catches_up_and_goes_on,
            a_watch_of_the_future_waits,
            a_watch_of_compacted_history_ends,
            a_watch_sees_only_its_keys,
            a_watch_never_tears_a_revision,
            progress_is_reported_on_request,
            a_watch_that_is_not_read_slows_nobody_and_loses_nothing,
            leases_end_their_keys_when_revoked,
            leases_end_their_keys_when_their_time_is_over,
            unknown_leases_are_refused,
            concurrent_writers_lose_no_update,
            the_store_has_a_size,
        );
    };
    ($make:path: $($promise:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $promise() {
            let engine = $make().await;
            crate::kv::suite::$promise(&engine).await;
        }
    )*};
}
pub(crate) use promises;

pub(crate) async fn revisions_begin_at_one_and_count_changes(kv: &Fixture) {
    assert_eq!(read(kv.as_kv(), single("/a")).await.revision, 1);
    assert_eq!(put(kv.as_kv(), "/a", "1").await, 2);
    assert_eq!(put(kv.as_kv(), "/a", "1").await, 3, "the same value again is a change");
    assert_eq!(delete(kv.as_kv(), "/a").await, (4, 1));
    assert_eq!(read(kv.as_kv(), single("/a")).await.revision, 4);
}

pub(crate) async fn what_changes_nothing_keeps_the_revision(kv: &Fixture) {
    put(kv.as_kv(), "/a", "1").await;
    assert_eq!(delete(kv.as_kv(), "/missing").await, (2, 0));
    let lost = put_if(kv.as_kv(), "/a", "2", 77).await;
    assert_eq!((lost.revision, lost.succeeded), (2, false));
    let nothing = kv.txn(Txn::default()).await.expect("an empty transaction");
    assert_eq!((nothing.revision, nothing.succeeded, nothing.responses.len()), (2, true, 0));
    let steps = vec![Op::Range(single("/a")), delete_op("/missing")];
    assert_eq!(run(kv.as_kv(), steps).await.expect("done").revision, 2);
    assert_eq!(put(kv.as_kv(), "/b", "1").await, 3);
}

pub(crate) async fn steps_of_one_transaction_share_a_revision(kv: &Fixture) {
    put(kv.as_kv(), "/c", "old").await;
    let steps = vec![put_op("/b", "1"), put_op("/a", "2"), delete_op("/c")];
    let done = run(kv.as_kv(), steps).await.expect("done");
    assert_eq!(done.revision, 3);
    assert!(matches!(done.responses[..], [OpResponse::Put, OpResponse::Put, OpResponse::Deleted(1)]));
    assert_eq!(show(&read(kv.as_kv(), prefix("/")).await), ["/a=2@3.3.1", "/b=1@3.3.1"]);
}

pub(crate) async fn keys_remember_creation_change_and_version(kv: &Fixture) {
    put(kv.as_kv(), "/a", "1").await;
    put(kv.as_kv(), "/a", "2").await;
    put(kv.as_kv(), "/a", "3").await;
    assert_eq!(show(&read(kv.as_kv(), single("/a")).await), ["/a=3@2.4.3"]);
    delete(kv.as_kv(), "/a").await;
    put(kv.as_kv(), "/a", "4").await;
    assert_eq!(show(&read(kv.as_kv(), single("/a")).await), ["/a=4@6.6.1"], "created anew");
}

pub(crate) async fn conditions_hold_or_the_other_branch_runs(kv: &Fixture) {
    put(kv.as_kv(), "/a", "1").await;
    put(kv.as_kv(), "/a", "2").await;
    let (key, missing) = (bytes("/a"), bytes("/missing"));
    let cases = [
        (vec![], true),
        (vec![Compare::ModRevision(key.clone(), 3)], true),
        (vec![Compare::ModRevision(key.clone(), 2)], false),
        (vec![Compare::ModRevision(key.clone(), 0)], false),
        (vec![Compare::Version(key.clone(), 2)], true),
        (vec![Compare::Version(key.clone(), 1)], false),
        (vec![Compare::ModRevision(missing.clone(), 0)], true),
        (vec![Compare::Version(missing.clone(), 0)], true),
        (vec![Compare::Version(missing.clone(), 1)], false),
        (vec![Compare::ModRevision(key.clone(), 3), Compare::Version(missing.clone(), 0)], true),
        (vec![Compare::ModRevision(key.clone(), 3), Compare::Version(missing, 1)], false),
    ];
    for (compare, expected) in cases {
        let txn = Txn {
            compare: compare.clone(),
            success: vec![Op::Range(single("/a"))],
            failure: vec![Op::Range(single("/a")), Op::Range(single("/a"))],
        };
        let done = kv.txn(txn).await.expect("done");
        assert_eq!(done.succeeded, expected, "{compare:?}");
        assert_eq!(done.responses.len(), if expected { 1 } else { 2 });
    }
    let lost = put_if(kv.as_kv(), "/a", "3", 2).await;
    let [OpResponse::Range(current)] = &lost.responses[..] else { panic!("{lost:?}") };
    assert_eq!(show(current), ["/a=2@2.3.2"], "the loser is given the present state");
    let won = put_if(kv.as_kv(), "/a", "3", 3).await;
    assert_eq!((won.succeeded, won.revision), (true, 4));
}

pub(crate) async fn ranges_are_ordered_limited_and_counted(kv: &Fixture) {
    for key in ["/p/c", "/p/a", "/q", "/p/b", "/p", "/p/d"] {
        put(kv.as_kv(), key, key).await;
    }
    let all = read(kv.as_kv(), prefix("/p/")).await;
    let keys = |response: &coffer_store::kv::RangeResponse| {
        response.items.iter().map(|kv| String::from_utf8_lossy(&kv.key).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&all), ["/p/a", "/p/b", "/p/c", "/p/d"]);
    assert_eq!((all.count, all.more, all.revision), (4, false, 7));
    for (limit, expected, more) in [(1, 1, true), (3, 3, true), (4, 4, false), (5, 4, false), (0, 4, false)] {
        let page = read(kv.as_kv(), RangeRequest { limit, ..prefix("/p/") }).await;
        assert_eq!((page.items.len(), page.count, page.more), (expected, 4, more), "limit {limit}");
    }
    let counted = read(kv.as_kv(), RangeRequest { count_only: true, ..prefix("/p/") }).await;
    assert_eq!((counted.items.len(), counted.count, counted.more), (0, 4, false));
    let counted = read(kv.as_kv(), RangeRequest { count_only: true, limit: 2, ..prefix("/p/") }).await;
    assert_eq!((counted.items.len(), counted.count, counted.more), (0, 4, false));
    let counted = read(kv.as_kv(), RangeRequest { count_only: true, ..single("/q") }).await;
    assert_eq!((counted.items.len(), counted.count), (0, 1));
    let bare = read(kv.as_kv(), RangeRequest { keys_only: true, ..prefix("/p/") }).await;
    assert_eq!(show(&bare)[..2], ["/p/a=@3.3.1", "/p/b=@5.5.1"]);
    let serializable = read(kv.as_kv(), RangeRequest { serializable: true, ..single("/q") }).await;
    assert_eq!(show(&serializable), ["/q=/q@4.4.1"]);
}

pub(crate) async fn odd_ranges_are_empty_or_open(kv: &Fixture) {
    for key in ["a", "b", "c"] {
        put(kv.as_kv(), key, "").await;
    }
    let zero = Bytes::from_static(&[0]);
    let cases: [(Bytes, Bytes, i64); 8] = [
        (bytes("b"), Bytes::new(), 1),
        (bytes("x"), Bytes::new(), 0),
        (bytes("b"), zero.clone(), 2),
        (zero.clone(), zero, 3),
        (bytes("a"), bytes("c"), 2),
        (bytes("a"), bytes("a"), 0),
        (bytes("c"), bytes("a"), 0),
        (bytes("a"), bytes("a\0"), 1),
    ];
    for (start, end, expected) in cases {
        let request = RangeRequest { start: start.clone(), end: end.clone(), ..Default::default() };
        let found = read(kv.as_kv(), request).await;
        assert_eq!((found.count, found.items.len() as i64), (expected, expected), "{start:?} {end:?}");
    }
}

pub(crate) async fn old_revisions_stay_readable(kv: &Fixture) {
    put(kv.as_kv(), "/a", "1").await; // 2
    put(kv.as_kv(), "/b", "1").await; // 3
    put(kv.as_kv(), "/a", "2").await; // 4
    delete(kv.as_kv(), "/a").await; // 5
    put(kv.as_kv(), "/a", "3").await; // 6
    let expected: [(i64, &[&str]); 7] = [
        (1, &[]),
        (2, &["/a=1@2.2.1"]),
        (3, &["/a=1@2.2.1", "/b=1@3.3.1"]),
        (4, &["/a=2@2.4.2", "/b=1@3.3.1"]),
        (5, &["/b=1@3.3.1"]),
        (6, &["/a=3@6.6.1", "/b=1@3.3.1"]),
        (0, &["/a=3@6.6.1", "/b=1@3.3.1"]),
    ];
    for (revision, expected) in expected {
        let found = read(kv.as_kv(), RangeRequest { revision, ..prefix("/") }).await;
        assert_eq!(show(&found), expected, "at {revision}");
        assert_eq!(found.revision, 6, "the store's own revision, whatever was asked for");
    }
    let future = kv.range(RangeRequest { revision: 7, ..prefix("/") }).await;
    assert_eq!(future.expect_err("not yet"), KvError::FutureRevision);
    let steps = vec![put_op("/c", "1"), Op::Range(RangeRequest { revision: 7, ..prefix("/") })];
    assert_eq!(run(kv.as_kv(), steps).await.expect_err("not yet"), KvError::FutureRevision);
    assert_eq!(read(kv.as_kv(), single("/c")).await.count, 0, "no step was taken");
}

pub(crate) async fn reads_in_a_transaction_see_earlier_steps(kv: &Fixture) {
    put(kv.as_kv(), "/a", "1").await;
    let steps = vec![
        Op::Range(single("/a")),
        put_op("/a", "2"),
        Op::Range(single("/a")),
        Op::Range(RangeRequest { revision: 2, ..single("/a") }),
        Op::DeleteRange { start: bytes("/b"), end: bytes("/c") },
    ];
    let done = run(kv.as_kv(), steps).await.expect("done");
    let shown: Vec<_> = done
        .responses
        .iter()
        .map(|response| match response {
            OpResponse::Range(range) => show(range).join(" "),
            OpResponse::Put => "put".into(),
            OpResponse::Deleted(count) => format!("deleted {count}"),
        })
        .collect();
    assert_eq!(shown, ["/a=1@2.2.1", "put", "/a=2@2.3.2", "/a=1@2.2.1", "deleted 0"]);
}

pub(crate) async fn deletions_count_what_was_there(kv: &Fixture) {
    for key in ["/a", "/b", "/c", "/d"] {
        put(kv.as_kv(), key, "").await;
    }
    let mut watch = watch(kv.as_kv(), "/", 0).await;
    let delete = |start: &str, end: &str| Op::DeleteRange { start: bytes(start), end: bytes(end) };
    let steps = vec![delete("/b", "/d"), delete("/a", "/c"), delete_op("/missing")];
    let done = run(kv.as_kv(), steps).await.expect("done");
    assert!(matches!(
        done.responses[..],
        [OpResponse::Deleted(2), OpResponse::Deleted(1), OpResponse::Deleted(0)]
    ));
    assert_eq!(done.revision, 6);
    let seen = batch(&mut watch).await;
    let seen: Vec<_> = seen.iter().map(show_event).collect();
    let expected =
        ["DEL /b=@0.6.0 was /b=@3.3.1", "DEL /c=@0.6.0 was /c=@4.4.1", "DEL /a=@0.6.0 was /a=@2.2.1"];
    assert_eq!(seen, expected);
    assert_eq!(show(&read(kv.as_kv(), prefix("/")).await), ["/d=@5.5.1"]);
}

pub(crate) async fn malformed_requests_are_refused_with_etcds_texts(kv: &Fixture) {
    let no_key = "etcdserver: key is not provided";
    let twice = "etcdserver: duplicate key given in txn request";
    let range = |start: &str, end: &str| Op::DeleteRange { start: bytes(start), end: bytes(end) };
    let cases: Vec<(Vec<Op>, &str)> = vec![
        (vec![put_op("", "x")], no_key),
        (vec![delete_op("")], no_key),
        (vec![Op::Range(RangeRequest::default())], no_key),
        (vec![put_op("/a", "1"), put_op("/a", "2")], twice),
        (vec![put_op("/a", "1"), delete_op("/a")], twice),
        (vec![delete_op("/a"), put_op("/a", "1")], twice),
        (vec![range("/a", "/b"), put_op("/a", "1")], twice),
        (
            (0..129).map(|number| put_op(&format!("/{number}"), "")).collect(),
            "etcdserver: too many operations in txn request",
        ),
    ];
    for (steps, text) in cases {
        for in_failure in [false, true] {
            let (success, failure) =
                if in_failure { (Vec::new(), steps.clone()) } else { (steps.clone(), Vec::new()) };
            let refused = kv.txn(Txn { compare: Vec::new(), success, failure }).await;
            let refused = refused.map(|_| ()).expect_err(text);
            assert_eq!(refused, KvError::Other(text.into()), "{steps:?}");
        }
    }
    assert_eq!(
        kv.range(RangeRequest::default()).await.map(|_| ()).expect_err("no key"),
        KvError::Other(no_key.into())
    );
    // These are fine: a key past the deleted range, a range that ends before it begins, and, since
    // etcd overlooks it, one without an end.
    for steps in [
        vec![range("/", "\0"), put_op("/a", "1")],
        vec![range("/a", "/b"), put_op("/b", "1")],
        vec![range("/z", "/a"), put_op("/b", "1")],
        vec![delete_op("/a"), delete_op("/a")],
        (0..128).map(|number| put_op(&format!("/{number}"), "")).collect(),
    ] {
        run(kv.as_kv(), steps).await.expect("well formed");
    }
    let open = vec![range("/", "\0"), put_op("/a", "new")];
    let revision = run(kv.as_kv(), open).await.expect("well formed").revision;
    let expected = format!("/a=new@{revision}.{revision}.1");
    assert_eq!(show(&read(kv.as_kv(), prefix("/")).await), [expected], "deleted, then created anew");
    let open = vec![put_op("/a", "newer"), range("/", "\0")];
    run(kv.as_kv(), open).await.expect("well formed");
    assert_eq!(read(kv.as_kv(), prefix("/")).await.count, 0);
}

pub(crate) async fn large_requests_are_refused_and_large_answers_are_not(kv: &Fixture) {
    const LIMIT: usize = 1536 * 1024;
    let value = |len: usize| SharedValue(Bytes::from(vec![b'x'; len]));
    let big = |len| vec![Op::Put { key: bytes("/big"), value: value(len), lease: 0 }];
    for len in [LIMIT, LIMIT + 1, LIMIT + 700_000, 3 * LIMIT] {
        let refused = run(kv.as_kv(), big(len)).await.map(|_| ()).expect_err("too large");
        assert_eq!(refused, KvError::TooLarge, "{len} bytes");
    }
    assert_eq!(read(kv.as_kv(), single("/big")).await.revision, 1);
    for number in 0..8 {
        let key = bytes(format!("/big/{number}"));
        let steps = vec![Op::Put { key, value: value(LIMIT - 512), lease: 0 }];
        run(kv.as_kv(), steps).await.expect("just fits");
    }
    let mut watch = watch(kv.as_kv(), "/big/", 2).await;
    let all = read(kv.as_kv(), prefix("/big/")).await;
    assert_eq!(all.items.iter().map(|kv| kv.value.len()).sum::<usize>(), 8 * (LIMIT - 512));
    let mut seen = 0;
    while seen < 8 {
        seen += batch(&mut watch).await.len();
    }
}

pub(crate) async fn compaction_keeps_the_newest_of_each_key(kv: &Fixture) {
    put(kv.as_kv(), "/a", "1").await; // 2
    put(kv.as_kv(), "/a", "2").await; // 3
    put(kv.as_kv(), "/gone", "1").await; // 4
    delete(kv.as_kv(), "/gone").await; // 5
    put(kv.as_kv(), "/a", "3").await; // 6
    put(kv.as_kv(), "/b", "1").await; // 7
    put(kv.as_kv(), "/a", "4").await; // 8
    kv.compact(6).await.expect("compacted");
    for revision in [1, 2, 5] {
        let error =
            kv.range(RangeRequest { revision, ..prefix("/") }).await.map(|_| ()).expect_err("compacted");
        assert!(matches!(error, KvError::Compacted(_)), "{error}");
        let steps = vec![put_op("/c", "1"), Op::Range(RangeRequest { revision, ..prefix("/") })];
        let error = run(kv.as_kv(), steps).await.map(|_| ()).expect_err("compacted");
        assert!(matches!(error, KvError::Compacted(_)), "{error}");
    }
    let expected: [(i64, &[&str]); 3] =
        [(6, &["/a=3@2.6.3"]), (7, &["/a=3@2.6.3", "/b=1@7.7.1"]), (8, &["/a=4@2.8.4", "/b=1@7.7.1"])];
    for (revision, expected) in expected {
        let found = read(kv.as_kv(), RangeRequest { revision, ..prefix("/") }).await;
        assert_eq!(show(&found), expected, "at {revision}");
    }
    put(kv.as_kv(), "/gone", "2").await;
    kv.compact(9).await.expect("compacted to the present");
    let expected = ["/a=4@2.8.4", "/b=1@7.7.1", "/gone=2@9.9.1"];
    assert_eq!(show(&read(kv.as_kv(), prefix("/")).await), expected);
}

pub(crate) async fn compaction_of_the_impossible_is_refused(kv: &Fixture) {
    put(kv.as_kv(), "/a", "1").await;
    put(kv.as_kv(), "/a", "2").await;
    assert_eq!(kv.compact(4).await.expect_err("not yet"), KvError::FutureRevision);
    kv.compact(2).await.expect("compacted");
    for revision in [2, 1, 0] {
        let error = kv.compact(revision).await.expect_err("again");
        assert!(matches!(error, KvError::Compacted(_)), "{revision}: {error}");
    }
    kv.compact(3).await.expect("compacted further");
    assert_eq!(put(kv.as_kv(), "/a", "3").await, 4, "compaction is no change");
}

pub(crate) async fn a_watch_reports_changes_with_what_was_before(kv: &Fixture) {
    put(kv.as_kv(), "/a", "0").await;
    let request = WatchRequest { start: bytes("/"), end: bytes("0"), previous: true, ..Default::default() };
    let mut watch = kv.watch(request.clone()).await.expect("a watch");
    assert!(matches!(next(&mut watch).await, Ok(WatchMessage::Created(2))));
    let mut without = watch_with(kv.as_kv(), WatchRequest { previous: false, ..request }).await;
    put(kv.as_kv(), "/a", "1").await;
    put(kv.as_kv(), "/b", "1").await;
    delete(kv.as_kv(), "/a").await;
    put(kv.as_kv(), "/a", "2").await;
    let expected =
        ["PUT /a=1@2.3.2 was /a=0@2.2.1", "PUT /b=1@4.4.1", "DEL /a=@0.5.0 was /a=1@2.3.2", "PUT /a=2@6.6.1"];
    assert_eq!(events(&mut watch, 4).await, expected);
    let expected = ["PUT /a=1@2.3.2", "PUT /b=1@4.4.1", "DEL /a=@0.5.0", "PUT /a=2@6.6.1"];
    assert_eq!(events(&mut without, 4).await, expected);
}

pub(crate) async fn a_watch_of_the_past_catches_up_and_goes_on(kv: &Fixture) {
    put(kv.as_kv(), "/a", "1").await;
    put(kv.as_kv(), "/a", "2").await;
    put(kv.as_kv(), "/other", "").await;
    delete(kv.as_kv(), "/a").await;
    let expected =
        ["PUT /a=1@2.2.1", "PUT /a=2@2.3.2 was /a=1@2.2.1", "DEL /a=@0.5.0 was /a=2@2.3.2", "PUT /a=3@6.6.1"];
    for (from, skipped) in [(1, 0), (2, 0), (3, 1), (4, 2), (5, 2), (6, 3)] {
        if 1 < from {
            let mut watch = watch(kv.as_kv(), "/a", from).await;
            assert_eq!(events(&mut watch, 4 - skipped).await, expected[skipped..], "from {from}");
            continue;
        }
        // The first one also sees what happens afterwards.
        let mut watch = watch(kv.as_kv(), "/a", from).await;
        assert_eq!(events(&mut watch, 3).await, expected[..3], "from {from}");
        put(kv.as_kv(), "/a", "3").await;
        assert_eq!(events(&mut watch, 1).await, expected[3..]);
    }
}

pub(crate) async fn a_watch_of_the_future_waits(kv: &Fixture) {
    let mut watch = watch(kv.as_kv(), "/", 4).await;
    for number in 0..4 {
        put(kv.as_kv(), &format!("/{number}"), "").await;
    }
    assert_eq!(events(&mut watch, 2).await, ["PUT /2=@4.4.1", "PUT /3=@5.5.1"]);
}

pub(crate) async fn a_watch_of_compacted_history_ends(kv: &Fixture) {
    for number in 0..5 {
        put(kv.as_kv(), "/a", &number.to_string()).await;
    }
    put(kv.as_kv(), "/b", "").await; // 7
    delete(kv.as_kv(), "/b").await; // 8
    kv.compact(5).await.expect("compacted");
    let mut late = watch(kv.as_kv(), "/", 3).await;
    assert_eq!(ends_with(&mut late).await, KvError::Compacted(5));
    let mut just = watch(kv.as_kv(), "/", 6).await;
    let expected = ["PUT /a=4@2.6.5 was /a=3@2.5.4", "PUT /b=@7.7.1", "DEL /b=@0.8.0 was /b=@7.7.1"];
    assert_eq!(events(&mut just, 3).await, expected);
    // A watch that has caught up does not mind what happens behind it.
    kv.compact(8).await.expect("compacted");
    put(kv.as_kv(), "/c", "").await;
    assert_eq!(events(&mut just, 1).await, ["PUT /c=@9.9.1"]);
}

pub(crate) async fn a_watch_sees_only_its_keys(kv: &Fixture) {
    let request =
        |start: &str, end: &[u8]| WatchRequest { start: bytes(start), end: bytes(end), ..Default::default() };
    let mut single = watch_with(kv.as_kv(), request("/b", b"")).await;
    let mut range = watch_with(kv.as_kv(), request("/b", b"/d")).await;
    let mut open = watch_with(kv.as_kv(), request("/c", &[0])).await;
    for key in ["/a", "/b", "/bb", "/c", "/d", "/b"] {
        put(kv.as_kv(), key, "").await;
    }
    assert_eq!(events(&mut single, 2).await, ["PUT /b=@3.3.1", "PUT /b=@3.7.2"]);
    let expected = ["PUT /b=@3.3.1", "PUT /bb=@4.4.1", "PUT /c=@5.5.1", "PUT /b=@3.7.2"];
    assert_eq!(events(&mut range, 4).await, expected);
    assert_eq!(events(&mut open, 2).await, ["PUT /c=@5.5.1", "PUT /d=@6.6.1"]);
}

pub(crate) async fn a_watch_never_tears_a_revision(kv: &Fixture) {
    const STEPS: i64 = 40;
    let mut live = watch(kv.as_kv(), "/", 0).await;
    for round in 0..60 {
        let steps = (0..STEPS).map(|step| put_op(&format!("/{round}/{step}"), "x")).collect();
        run(kv.as_kv(), steps).await.expect("done");
    }
    let mut past = watch(kv.as_kv(), "/", 2).await;
    for watch in [&mut live, &mut past] {
        let mut next = 2;
        while next < 62 {
            let mut revisions = batch(watch).await.into_iter().map(|event| event.kv.mod_revision).peekable();
            while let Some(revision) = revisions.next() {
                assert_eq!(revision, next);
                for _ in 1..STEPS {
                    assert_eq!(revisions.next(), Some(revision), "the revision is complete");
                }
                next += 1;
            }
        }
    }
}

// TestOptionalTestProgressNotify
pub(crate) async fn progress_is_reported_on_request(kv: &Fixture) {
    assert!(kv.supports_progress());
    let mut first = watch(kv.as_kv(), "/watched", 0).await;
    let mut second = watch(kv.as_kv(), "/other", 0).await;
    let silent = WatchRequest { start: bytes("/silent"), progress: false, ..Default::default() };
    let mut silent = watch_with(kv.as_kv(), silent).await;
    let reached = put(kv.as_kv(), "/elsewhere", "1").await;
    for (watch, start) in [(&mut first, "/watched"), (&mut second, "/other")] {
        // etcd drops a request while a watch is not in step yet, so it is repeated, as upstream does.
        let progress = loop {
            kv.request_progress(&bytes(start)).await.expect("asked");
            let wait = tokio::time::timeout(Duration::from_millis(100), next(watch));
            if let Ok(message) = wait.await {
                break message;
            }
        };
        let Ok(WatchMessage::Progress(revision)) = progress else { panic!("{progress:?}") };
        assert!(reached <= revision, "{reached} <= {revision}");
    }
    // Only the watch that is asked reports.
    let reached = put(kv.as_kv(), "/elsewhere", "2").await;
    loop {
        kv.request_progress(&bytes("/watched")).await.expect("asked");
        match next(&mut first).await {
            Ok(WatchMessage::Progress(revision)) if reached <= revision => break,
            Ok(WatchMessage::Progress(_)) => {}
            message => panic!("{message:?}"),
        }
    }
    while let Some(message) = futures::FutureExt::now_or_never(next(&mut second)) {
        let Ok(WatchMessage::Progress(revision)) = message else { panic!("{message:?}") };
        assert!(revision < reached, "it was not asked, and reports {revision}");
    }
    kv.request_progress(&bytes("/silent")).await.expect("asked");
    put(kv.as_kv(), "/silent", "1").await;
    let message = next(&mut silent).await;
    assert!(matches!(message, Ok(WatchMessage::Events(_))), "it did not ask for progress: {message:?}");
    // Progress never overtakes events.
    let reached = put(kv.as_kv(), "/watched", "1").await;
    kv.request_progress(&bytes("/watched")).await.expect("asked");
    loop {
        match next(&mut first).await.expect("no error") {
            WatchMessage::Events(events) => {
                assert_eq!(events[0].kv.mod_revision, reached);
                break;
            }
            WatchMessage::Progress(revision) => assert!(revision < reached, "{revision} < {reached}"),
            WatchMessage::Created(_) => panic!("created again"),
        }
    }
}

pub(crate) async fn a_watch_that_is_not_read_slows_nobody_and_loses_nothing(kv: &Fixture) {
    const WRITES: usize = 4000;
    let mut lazy = watch(kv.as_kv(), "/", 0).await;
    let mut eager = watch(kv.as_kv(), "/", 0).await;
    let value = "x".repeat(2000);
    let write = async {
        for chunk in 0..WRITES / 100 {
            let writes = (0..100).map(|number| {
                let (key, value) = (format!("/{}", chunk * 100 + number), &value);
                async move { put(kv.as_kv(), &key, value).await }
            });
            join_all(writes).await;
        }
    };
    let read_all = async |watch: &mut coffer_store::kv::WatchStream| {
        let mut revision = 1;
        while revision < 1 + WRITES as i64 {
            for event in batch(watch).await {
                assert_eq!(event.kv.mod_revision, revision + 1, "in order and complete");
                revision += 1;
            }
        }
    };
    futures::future::join(write, read_all(&mut eager)).await;
    // Everything was written, and seen by the other, before this one was read at all.
    read_all(&mut lazy).await;
    put(kv.as_kv(), "/last", "").await;
    assert_eq!(batch(&mut lazy).await.len(), 1, "and it is live again");
}

pub(crate) async fn leases_end_their_keys_when_revoked(kv: &Fixture) {
    let lease = kv.lease_grant(Duration::from_secs(600)).await.expect("granted");
    let other = kv.lease_grant(Duration::from_secs(600)).await.expect("granted");
    assert!(0 < lease && lease != other);
    let steps = ["/b", "/a", "/detached", "/moved"].map(|key| put_with_lease(key, "1", lease));
    run(kv.as_kv(), steps.into()).await.expect("attached"); // 2
    put(kv.as_kv(), "/detached", "2").await; // 3
    run(kv.as_kv(), vec![put_with_lease("/moved", "2", other)]).await.expect("moved"); // 4
    assert_eq!(read(kv.as_kv(), single("/a")).await.items[0].lease, lease);
    assert_eq!(read(kv.as_kv(), single("/detached")).await.items[0].lease, 0);
    assert_eq!(kv.lease_keep_alive(lease).await.expect("alive"), Duration::from_secs(600));
    let mut watch = watch(kv.as_kv(), "/", 0).await;
    kv.lease_revoke(lease).await.expect("revoked");
    let seen = batch(&mut watch).await;
    let seen: Vec<_> = seen.iter().map(show_event).collect();
    assert_eq!(seen, ["DEL /a=@0.5.0 was /a=1@2.2.1", "DEL /b=@0.5.0 was /b=1@2.2.1"]);
    assert_eq!(show(&read(kv.as_kv(), prefix("/")).await), ["/detached=2@2.3.2", "/moved=2@2.4.2"]);
    let empty = kv.lease_grant(Duration::from_secs(600)).await.expect("granted");
    kv.lease_revoke(empty).await.expect("revoked");
    assert_eq!(
        read(kv.as_kv(), single("/a")).await.revision,
        5,
        "a lease without keys ends without a change"
    );
}

pub(crate) async fn leases_end_their_keys_when_their_time_is_over(kv: &Fixture) {
    let short = kv.lease_grant(Duration::from_secs(2)).await.expect("granted");
    let long = kv.lease_grant(Duration::from_secs(600)).await.expect("granted");
    let steps = vec![put_with_lease("/short", "1", short), put_with_lease("/long", "1", long)];
    run(kv.as_kv(), steps).await.expect("attached");
    let mut watch = watch(kv.as_kv(), "/", 0).await;
    kv.pass(Duration::from_millis(1500)).await;
    kv.lease_keep_alive(short).await.expect("alive");
    kv.pass(Duration::from_millis(1000)).await;
    assert_eq!(read(kv.as_kv(), single("/short")).await.count, 1, "kept alive");
    kv.pass(Duration::from_secs(2)).await;
    assert_eq!(events(&mut watch, 1).await, ["DEL /short=@0.3.0 was /short=1@2.2.1"]);
    assert_eq!(kv.lease_keep_alive(short).await.expect_err("over"), KvError::LeaseNotFound);
    assert_eq!(show(&read(kv.as_kv(), prefix("/")).await), ["/long=1@2.2.1"]);
}

pub(crate) async fn unknown_leases_are_refused(kv: &Fixture) {
    let steps = vec![put_op("/before", "1"), put_with_lease("/a", "1", 4711)];
    assert_eq!(run(kv.as_kv(), steps).await.map(|_| ()).expect_err("no lease"), KvError::LeaseNotFound);
    assert_eq!(read(kv.as_kv(), prefix("/")).await.count, 0, "no step was taken");
    assert_eq!(read(kv.as_kv(), prefix("/")).await.revision, 1);
    assert_eq!(kv.lease_revoke(4711).await.expect_err("no lease"), KvError::LeaseNotFound);
    assert_eq!(kv.lease_keep_alive(4711).await.expect_err("no lease"), KvError::LeaseNotFound);
}

pub(crate) async fn concurrent_writers_lose_no_update(kv: &Fixture) {
    const WRITERS: usize = 16;
    const EACH: i64 = 25;
    put(kv.as_kv(), "/counter", "0").await;
    let writers = (0..WRITERS).map(|_| async {
        for _ in 0..EACH {
            loop {
                let found = read(kv.as_kv(), single("/counter")).await;
                let text = std::str::from_utf8(&found.items[0].value).expect("a number");
                let number: i64 = text.parse().expect("a number");
                let next = (number + 1).to_string();
                let done = put_if(kv.as_kv(), "/counter", &next, found.items[0].mod_revision).await;
                if done.succeeded {
                    // What was acknowledged can be read at once.
                    let seen = read(kv.as_kv(), single("/counter")).await;
                    assert!(done.revision <= seen.items[0].mod_revision);
                    break;
                }
            }
        }
    });
    join_all(writers).await;
    let total = WRITERS as i64 * EACH;
    let expected = format!("/counter={total}@2.{}.{}", total + 2, total + 1);
    assert_eq!(show(&read(kv.as_kv(), single("/counter")).await), [expected]);
}

pub(crate) async fn the_store_has_a_size(kv: &Fixture) {
    put(kv.as_kv(), "/a", "1").await;
    let size = kv.size().await.expect("a size");
    assert!(4096 < size && size < 1 << 30, "{size}");
}

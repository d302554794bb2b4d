//! What the client does about servers and connections that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use coffer_store::etcd::{ConnectError, EtcdKv};
use coffer_store::kv::{Kv, KvError, Txn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::etcd::{Etcd, config, free_port};
use crate::kv::helpers::{ends_with, put, put_op, read, show, single, watch};

/// A proxy whose connections can be silenced without being closed, as a cut cable would.
struct Proxy {
    port: u16,
    silent: Arc<AtomicBool>,
    /// Connections that were closed with an answer on the way.
    lost_answers: Arc<AtomicUsize>,
    drop_answers: Arc<AtomicBool>,
}

impl Proxy {
    async fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let proxy = Self {
            port: listener.local_addr().expect("bound").port(),
            silent: Arc::default(),
            lost_answers: Arc::default(),
            drop_answers: Arc::default(),
        };
        let (silent, lost, dropping) =
            (proxy.silent.clone(), proxy.lost_answers.clone(), proxy.drop_answers.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (silent, lost, dropping) = (silent.clone(), lost.clone(), dropping.clone());
                tokio::spawn(async move {
                    let server = TcpStream::connect(("127.0.0.1", target)).await.expect("the server");
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    let never = Arc::new(AtomicBool::new(false));
                    let forward = pump(from_client, to_server, silent.clone(), never, lost.clone());
                    let back = pump(from_server, to_client, silent, dropping, lost);
                    tokio::select! { () = forward => {} () = back => {} }
                });
            }
        });
        proxy
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    silent: Arc<AtomicBool>,
    close: Arc<AtomicBool>,
    closed: Arc<AtomicUsize>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if close.load(Ordering::SeqCst) {
            closed.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if !silent.load(Ordering::SeqCst) && to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn k37_a_watch_over_a_dead_connection_ends() {
    let server = Etcd::start().await;
    let proxy = Proxy::start(server.port).await;
    let mut config = config(vec![proxy.url()]);
    // 40 seconds in production; the mechanism is the same.
    (config.keepalive_time, config.keepalive_timeout) = (Duration::from_secs(1), Duration::from_secs(1));
    let kv = EtcdKv::connect(config).await.expect("connects");
    let mut watch = watch(&kv, "/", 0).await;
    proxy.silent.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    let error = ends_with(&mut watch).await;
    assert!(matches!(&error, KvError::Unavailable(text) if text.contains(&proxy.url())), "{error:?}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_silent_server_meets_the_deadline() {
    let server = Etcd::start().await;
    let proxy = Proxy::start(server.port).await;
    let mut config = config(vec![proxy.url()]);
    config.request_timeout = Duration::from_millis(500);
    let kv = EtcdKv::connect(config).await.expect("connects");
    proxy.silent.store(true, Ordering::SeqCst);
    assert_eq!(kv.range(single("/a")).await.map(|_| ()).expect_err("silence"), KvError::Timeout);
    let txn = Txn { success: vec![put_op("/a", "1")], ..Default::default() };
    assert_eq!(kv.txn(txn).await.map(|_| ()).expect_err("silence"), KvError::Timeout);
}

#[tokio::test]
async fn calls_move_on_to_an_endpoint_that_answers() {
    let server = Etcd::start().await;
    let dead = format!("http://127.0.0.1:{}", free_port());
    let kv = EtcdKv::connect(config(vec![dead, server.url()])).await.expect("one answers");
    assert_eq!(put(&kv, "/a", "1").await, 2);
    assert_eq!(show(&read(&kv, single("/a")).await), ["/a=1@2.2.1"]);
}

#[tokio::test]
async fn a_write_that_was_certainly_not_sent_moves_on() {
    let (mut first, second) = (Etcd::start().await, Etcd::start().await);
    // Two servers of their own, to see which one was written to.
    let kv = EtcdKv::connect(config(vec![first.url(), second.url()])).await.expect("connects");
    put(&kv, "/a", "first").await;
    first.stop();
    // The client learns of the closed connection in its own time; until then a write is lost with it.
    let done = loop {
        let txn = Txn { success: vec![put_op("/a", "second")], ..Default::default() };
        match kv.txn(txn).await {
            Ok(done) => break done,
            Err(error) => assert!(matches!(error, KvError::Unavailable(_)), "{error}"),
        }
    };
    assert_eq!(done.revision, 2, "the second server's first write");
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_not_sent_again() {
    let server = Etcd::start().await;
    let (first, second) = (Proxy::start(server.port).await, Proxy::start(server.port).await);
    let kv = EtcdKv::connect(config(vec![first.url(), second.url()])).await.expect("connects");
    put(&kv, "/a", "1").await;
    first.drop_answers.store(true, Ordering::SeqCst);
    let txn = Txn { success: vec![put_op("/a", "2")], ..Default::default() };
    let error = kv.txn(txn).await.map(|_| ()).expect_err("no answer");
    assert!(matches!(&error, KvError::Unavailable(text) if text.contains(&first.url())), "{error:?}");
    assert_eq!(first.lost_answers.load(Ordering::SeqCst), 1);
    // Reads move on. The write happened once, or (what was lost may have been a frame about the
    // connection, before the write arrived) not at all; never twice.
    let found = show(&read(&kv, single("/a")).await);
    assert!(found == ["/a=2@2.3.2"] || found == ["/a=1@2.2.1"], "{found:?}");
}

#[tokio::test]
async fn a_restarted_server_is_found_again() {
    let mut server = Etcd::start().await;
    let kv = server.client().await;
    put(&kv, "/a", "1").await;
    let mut watch = watch(&kv, "/", 0).await;
    server.stop();
    assert!(matches!(ends_with(&mut watch).await, KvError::Unavailable(_)));
    let error = kv.range(single("/a")).await.map(|_| ()).expect_err("down");
    let KvError::Unavailable(text) = &error else { panic!("{error:?}") };
    assert!(text.contains(&server.url()) && text.to_lowercase().contains("connection refused"), "{text}");
    server.restart().await;
    assert_eq!(show(&read(&kv, single("/a")).await), ["/a=1@2.2.1"]);
}

#[tokio::test]
async fn endpoints_that_make_no_sense_are_named() {
    let dead = format!("http://127.0.0.1:{}", free_port());
    let cases: Vec<(Vec<String>, &str)> = vec![
        (vec![], "--etcd-servers must be specified"),
        (
            vec!["ftp://one:2379".into()],
            "invalid etcd endpoint ftp://one:2379: the scheme is neither http nor https",
        ),
        (vec!["http://".into()], "invalid etcd endpoint http://: "),
        (vec!["http://a b:1".into()], "invalid etcd endpoint http://a b:1: "),
        (vec![dead.clone()], &dead),
    ];
    for (endpoints, expected) in cases {
        let error = EtcdKv::connect(config(endpoints.clone())).await.map(|_| ()).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error} should say {expected:?}");
        assert_eq!(matches!(error, ConnectError::Unreachable(_)), endpoints == [dead.clone()]);
    }
}

//! A proxy that cuts connections.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Connections = Arc<Mutex<BTreeMap<usize, [TcpStream; 2]>>>;

/// Passes connections on to a server, and cuts one after the other, wherever it is. It goes on while it lives.
pub(super) struct Cutter {
    address: SocketAddr,
    cuts: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Cutter {
    /// In front of a loopback port, with so much peace between two cuts. With none there are no cuts.
    pub(super) fn start(port: u16, peace: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let cutter = Self {
            address: listener.local_addr().expect("bound"),
            cuts: Arc::default(),
            over: Arc::default(),
        };
        let connections = Connections::default();
        let (open, over) = (connections.clone(), cutter.over.clone());
        std::thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                // A server that is gone is a cut connection too.
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let twice = [&client, &server].map(|stream| stream.try_clone().expect("a second handle"));
                open.lock().expect("not poisoned").insert(number, twice);
                let again = |stream: &TcpStream| stream.try_clone().expect("a second handle");
                pass(again(&client), again(&server), number, open.clone());
                pass(server, client, number, open.clone());
            }
        });
        let (cuts, over) = (cutter.cuts.clone(), cutter.over.clone());
        if peace.is_zero() {
            return cutter;
        }
        std::thread::spawn(move || {
            let mut turn: usize = 1;
            while !over.load(Ordering::SeqCst) {
                std::thread::sleep(peace);
                let mut connections = connections.lock().expect("not poisoned");
                // In no order that the connections know of, but the same each time.
                turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let count = connections.len().max(1);
                let Some(number) = connections.keys().nth((turn >> 33) % count).copied() else { continue };
                for stream in connections.remove(&number).into_iter().flatten() {
                    // It may have ended by itself.
                    let _ = stream.shutdown(Shutdown::Both);
                }
                cuts.fetch_add(1, Ordering::SeqCst);
            }
        });
        cutter
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it has cut.
    pub(super) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // The listener is waiting for one more.
        let _ = TcpStream::connect(self.address);
    }
}

/// Copies one direction, in a thread of its own, until either side ends.
fn pass(mut from: TcpStream, mut to: TcpStream, number: usize, connections: Connections) {
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
        connections.lock().expect("not poisoned").remove(&number);
    });
}

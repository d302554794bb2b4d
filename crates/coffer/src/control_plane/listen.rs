//! Takes the address that a server listens on.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::exit::Failure;

/// Binds a listening socket; `flag` names what to change when that fails.
pub(crate) async fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::problem(format!("address {address} is in use"))
            .next(format!("stop what listens there, or choose another address with {flag}")),
        std::io::ErrorKind::PermissionDenied => {
            Failure::problem(format!("this user may not listen on {address}"))
                .next(format!("choose a port above 1023 with {flag}"))
        }
        _ => Failure::problem(format!("cannot listen on {address}: {error}"))
            .next(format!("choose an address of this machine with {flag}")),
    })
}

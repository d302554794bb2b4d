//! CEL beside kube-apiserver's own (`peers/go/cel`).

#[path = "../it/cel.rs"]
mod cel;
mod differential;
mod generate;
#[path = "../../../crypto/tests/peers/original.rs"]
mod original;

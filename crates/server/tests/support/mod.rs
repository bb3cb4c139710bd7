//! What the socket tests share: a server of ours, and clients of it.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub
)]

pub mod pair;

pub use everbloom_dev::{Client, Redis};
use everbloom_server::{Running, Server, Settings};

/// Our server on a port of its own.
pub fn server(settings: Settings) -> Running {
    let settings = Settings {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        ..settings
    };
    Server::start(settings).unwrap()
}

/// Clients of our server.
pub trait OfRunning {
    fn of(running: &Running) -> Self;
}

impl OfRunning for Client {
    fn of(running: &Running) -> Client {
        Client::connect(running.addr().unwrap())
    }
}

//! What the examples with a server share: the server, and what all examples share.

#![allow(dead_code, reason = "each example uses a part of it")]

pub(crate) mod crawl;
#[path = "../../../filters/examples/support/mod.rs"]
mod shared;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use everbloom_server::{Running, Server, Settings};
use redis::{Client, Connection, RedisResult};
#[allow(unused_imports, reason = "each example uses a part of it")]
pub(crate) use shared::{Outcome, Problem, argument, figure, mixed, rate, text_argument};

/// A server in this process, on a port of 127.0.0.1 that is free. `--port` names one that runs
/// already, and is used instead.
pub(crate) struct Embedded {
    settings: Settings,
    running: Mutex<Option<Running>>,
}

impl Embedded {
    /// Starts one that keeps its data in memory.
    pub(crate) fn start() -> Outcome<Embedded> {
        Embedded::with(Settings::default())
    }

    /// Starts one that writes each change to its log in a folder before it replies.
    pub(crate) fn on(folder: &Path) -> Outcome<Embedded> {
        let mut settings = Settings::default();
        settings.data.dir = Some(folder.into());
        settings.data.appendonly = true;
        settings.data.appendfsync = everbloom_store::settings::Fsync::Always;
        Embedded::with(settings)
    }

    fn with(settings: Settings) -> Outcome<Embedded> {
        let bind = vec!["127.0.0.1".into()];
        let settings = Settings {
            bind,
            port: 0,
            ..settings
        };
        let embedded = Embedded {
            settings,
            running: Mutex::new(None),
        };
        embedded.start_again()?;
        Ok(embedded)
    }

    /// Whether it is in this process.
    pub(crate) fn is_own(&self) -> bool {
        text_argument("port").is_none()
    }

    /// Starts it again on what it left in its folder.
    pub(crate) fn start_again(&self) -> Outcome {
        if !self.is_own() {
            return Ok(());
        }
        let running = Server::start(self.settings.clone())?;
        running.wait_until_loaded();
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(())
    }

    /// Ends it, and waits for its end.
    pub(crate) fn stop(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Connects to it; an error while it is stopped.
    pub(crate) fn connect(&self) -> RedisResult<Connection> {
        let port = match text_argument("port") {
            Some(port) => port,
            None => {
                let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                let address = running.as_ref().and_then(Running::addr);
                address.map_or(0, |address| address.port()).to_string()
            }
        };
        Client::open(format!("redis://127.0.0.1:{port}/"))?.get_connection()
    }
}

/// How many bytes the server uses for all its keys and buffers.
pub(crate) fn used_memory(connection: &mut Connection) -> Outcome<u64> {
    let info: String = redis::cmd("INFO").arg("memory").query(connection)?;
    let field = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    Ok(field.ok_or("no used_memory in INFO")?.trim().parse()?)
}

//! A window onto a running server, over HTTP: a page, `/metrics`, `/health` and `/ready`.
//!
//! It looks and changes nothing. All of it runs on a thread of its own, and only if `metrics-port`
//! is set.
//!
//! - `http`: requests and responses
//! - `page`: the page for people, and the figures that its script requests
//! - `metrics`: the figures in the format of OpenMetrics
//! - `filters`: the figures of the filters, found by walks over the keys
//! - `figures`: the figures of one filter
//! - `table`: the filters one by one
//! - `forecast`: the state of a filter as it grows
//! - `history`: the last minutes of the server

#![forbid(unsafe_code)]
// The modules are private; `pub` in them is what a file offers to the others.
#![allow(unreachable_pub)]

mod filters;
mod forecast;
mod history;
mod http;
mod metrics;
mod page;
mod table;

use std::sync::Arc;

use tokio::task::JoinSet;
use tracing::{info, warn};

use everbloom_server::window::{Listener, listen_on_all};
use everbloom_server::{Running, Server, Settings, StartError};
use everbloom_store::persistence::Persistence;
use metrics::Watch;

/// Starts a server, with its window if the settings have a port for one.
pub fn start(settings: Settings) -> Result<Running, StartError> {
    start_beside(settings, Server::start)
}

/// Starts a server on an open data directory, with its window if the settings have a port for one.
pub fn start_on(settings: Settings, persistence: Persistence) -> Result<Running, StartError> {
    start_beside(settings, |settings| {
        Server::start_on(settings, Some(persistence))
    })
}

fn start_beside(
    settings: Settings,
    start: impl FnOnce(Settings) -> Result<Running, StartError>,
) -> Result<Running, StartError> {
    // First: a start that fails because a port is taken leaves no data directory.
    let sockets = match settings.metrics_port {
        0 => Vec::new(),
        port => listen_on_all(&settings.metrics_bind, port, false, settings.tcp_backlog)
            .map_err(StartError::Entrance)?,
    };
    let mut running = start(settings)?;
    if !sockets.is_empty() {
        running.run_beside("metrics", |server| watch(server, sockets))?;
    }
    Ok(running)
}

/// Serves these sockets until the server stops.
async fn watch(server: Arc<Server>, sockets: Vec<Listener>) {
    let watch = Arc::new(Watch::new(Arc::clone(&server)));
    let mut listeners = JoinSet::new();
    for Listener { socket, entrance } in sockets {
        info!("metrics at http://{entrance}/metrics, and a page at http://{entrance}/");
        let watch = Arc::clone(&watch);
        listeners.spawn(async {
            if let Err(error) = http::answer(socket.into(), watch).await {
                warn!("cannot answer for the metrics: {error}");
            }
        });
    }
    tokio::select! {
        () = server.stopping() => {}
        () = filters::walk(&server.store, |found| watch.set_filters(found)) => {}
        () = sample(&watch) => {}
    }
}

/// Samples the server's figures periodically. It never returns.
async fn sample(watch: &Watch) {
    loop {
        tokio::time::sleep(history::STEP).await;
        watch.history.lock().sample(&watch.server);
    }
}

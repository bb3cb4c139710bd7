//! Monitoring over HTTP: a page, `/metrics`, `/health` and `/ready`.
//!
//! All of it runs on a separate thread, and only if `metrics-port` is set.
//!
//! - [`http`]: requests and responses
//! - [`page`]: the page for people, and the figures that its script requests
//! - [`metrics`]: the figures in the format of OpenMetrics
//! - [`filters`]: the figures of the filters, found by walks over the keys
//! - [`figures`]: the figures of one filter
//! - [`table`]: the filters one by one
//! - [`forecast`]: the state of a filter as it grows
//! - [`history`]: the last minutes of the server

pub mod figures;
pub mod filters;
pub mod forecast;
pub mod history;
pub mod http;
pub mod metrics;
pub mod page;
pub mod table;

use std::sync::Arc;

use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::net::listen::Listener;
use crate::server::Server;
use metrics::Watch;

/// Serves these sockets until the server stops.
pub async fn watch(server: Arc<Server>, sockets: Vec<Listener>) {
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

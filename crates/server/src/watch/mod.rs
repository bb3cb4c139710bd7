//! What watches the server from outside: a page, `/metrics`, `/health` and `/ready` over HTTP.
//!
//! All of it runs on a thread of its own, and nothing of it runs unless `metrics-port` is set.
//!
//! - [`http`]: requests and responses
//! - [`page`]: the page for people, and the figures that its script asks for
//! - [`metrics`]: the figures in the format of OpenMetrics
//! - [`filters`]: what is known of the filters, found by walks over the keys
//! - [`figures`]: what is known of one filter
//! - [`table`]: the filters one by one
//! - [`forecast`]: what a filter comes to as it grows
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

use crate::net::listen::Bound;
use crate::server::Server;
use metrics::Watch;

/// Answers on these sockets until the server stops.
pub async fn watch(server: Arc<Server>, sockets: Vec<Bound>) {
    let watch = Arc::new(Watch::new(Arc::clone(&server)));
    let mut listeners = JoinSet::new();
    for (socket, address) in sockets {
        info!("metrics at http://{address}/metrics, and a page at http://{address}/");
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

/// Notes how the server does, now and then. It never ends.
async fn sample(watch: &Watch) {
    loop {
        tokio::time::sleep(history::STEP).await;
        watch.history.lock().sample(&watch.server);
    }
}

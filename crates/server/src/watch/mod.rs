//! What watches the server from outside: `/metrics`, `/health` and `/ready` over HTTP.
//!
//! All of it runs on a thread of its own, and nothing of it runs unless `metrics-port` is set.
//!
//! - [`http`]: requests and responses
//! - [`metrics`]: the figures in the format of OpenMetrics
//! - [`filters`]: what is known of the filters, found by walks over the keys

pub mod filters;
pub mod http;
pub mod metrics;

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
        info!("metrics at http://{address}/metrics");
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
    }
}

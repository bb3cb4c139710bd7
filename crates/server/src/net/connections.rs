//! The connections of one worker.

use std::rc::Rc;

use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::connection;
use super::worker::{Accepted, Worker};

/// Serves the connections from `accepted`, until the channel and all connections are closed.
pub(crate) async fn serve(worker: Worker, accepted: mpsc::UnboundedReceiver<Accepted>) {
    // Starts the thread for long work, while there is memory for it.
    tokio::task::spawn_blocking(|| {});
    let worker = Rc::new(worker);
    let journal = &worker.server.store.journal;
    tokio::select! {
        () = serve_all(&worker, accepted) => {}
        // This thread is woken once for all waiting connections; they wake each other here.
        () = journal.after_each_write(|| worker.logged.notify_waiters()) => {}
    }
}

async fn serve_all(worker: &Rc<Worker>, mut accepted: mpsc::UnboundedReceiver<Accepted>) {
    let local = LocalSet::new();
    local
        .run_until(async {
            while let Some((stream, client)) = accepted.recv().await {
                let worker = Rc::clone(worker);
                tokio::task::spawn_local(connection::serve(stream, worker, client));
            }
        })
        .await;
    local.await;
}

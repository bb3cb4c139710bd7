//! The HTTP of the port of the metrics: three pages to read, and bounds on who reads them.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::metrics::Watch;
use crate::dispatch::admission;
use crate::server::Server;

/// Connections at a time; further ones wait.
pub const CONNECTIONS: usize = 16;
/// A connection is closed after so long, whatever it does.
pub const LONGEST: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const HEAD: usize = 16 << 10;

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Answers those who connect.
pub async fn answer(listener: std::net::TcpListener, watch: Arc<Watch>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = listener.accept().await;
        // Nobody closes the semaphore.
        let place = Arc::clone(&places).acquire_owned().await;
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let watch = Arc::clone(&watch);
                connections.spawn(async move {
                    let _ = timeout(LONGEST, converse(stream, &watch)).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Mostly too many open files: wait until some are closed.
                warn!("cannot accept a connection to the metrics: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// One request and its response. That a client sends no HTTP, or goes, is its own affair.
async fn converse(stream: TcpStream, watch: &Arc<Watch>) -> Result<(), hyper::Error> {
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(async |request| Ok::<_, Infallible>(respond(&request, watch))),
        )
        .await
}

fn respond<B>(request: &Request<B>, watch: &Arc<Watch>) -> Response<Full<Bytes>> {
    let page: fn(&Arc<Watch>) -> Page = match request.uri().path() {
        "/metrics" => metrics,
        "/health" => |_| Page::plain(StatusCode::OK, "ok"),
        "/ready" => |watch| ready(&watch.server),
        _ => {
            return Page::plain(StatusCode::NOT_FOUND, "try /metrics, /health or /ready").into();
        }
    };
    // Of a response to HEAD, hyper sends the head alone.
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let refusal = Page::plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
        let mut response = Response::from(refusal);
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    page(watch).into()
}

/// What a response says.
struct Page {
    status: StatusCode,
    kind: HeaderValue,
    text: String,
}

impl Page {
    fn plain(status: StatusCode, line: impl std::fmt::Display) -> Page {
        Page {
            status,
            kind: PLAIN,
            text: format!("{line}\n"),
        }
    }
}

impl From<Page> for Response<Full<Bytes>> {
    fn from(page: Page) -> Self {
        let mut response = Response::new(Full::from(page.text));
        *response.status_mut() = page.status;
        response.headers_mut().insert(CONTENT_TYPE, page.kind);
        response
    }
}

fn metrics(watch: &Arc<Watch>) -> Page {
    Page {
        status: StatusCode::OK,
        kind: OPEN_METRICS,
        text: watch.text(),
    }
}

/// Whether clients can read and write: yes, or why not.
fn ready(server: &Server) -> Page {
    let unready = |why| Page::plain(StatusCode::SERVICE_UNAVAILABLE, why);
    if server.store.health.is_loading() {
        return unready("LOADING the data of an earlier run is being loaded".into());
    }
    admission::misconf(server, &server.config.snapshot())
        .map_or_else(|| Page::plain(StatusCode::OK, "ready"), unready)
}

//! The HTTP server of the metrics port: its pages, and limits on its clients.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::metrics::{self, Watch};
use crate::page::{self, Query};
use everbloom_server::Server;
use everbloom_server::window::{MAX_METRICS_CONNECTIONS, misconf, random_hex};

/// A connection is closed after this time, whatever it does.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum bytes of a request's head.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// A connection is closed if its request's head is not complete within this time.
const HEAD_TIMEOUT: Duration = Duration::from_secs(1);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the clients.
pub async fn answer(listener: std::net::TcpListener, watch: Arc<Watch>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    // A new connection never waits: otherwise clients that send half a request could take all the
    // room, and a probe of the server's health would come too late. A request is answered as soon as
    // it is read, so the oldest connection is the one to close. Some of these may have ended.
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let watch = Arc::clone(&watch);
                open.retain(|connection| !connection.is_finished());
                if open.len() >= MAX_METRICS_CONNECTIONS
                    && let Some(oldest) = open.pop_front()
                {
                    oldest.abort();
                }
                let task = tokio::spawn(async move {
                    let _ = timeout(CONNECTION_TIMEOUT, converse(stream, &watch)).await;
                });
                open.push_back(task.abort_handle());
            }
            Err(error) => {
                // The usual cause is too many open files: wait until some are closed.
                warn!("cannot accept a connection to the metrics: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// One request and its response. Client errors are ignored.
async fn converse(stream: TcpStream, watch: &Arc<Watch>) -> Result<(), hyper::Error> {
    let local = stream.local_addr();
    let is_local = local.is_ok_and(|it| it.ip().to_canonical().is_loopback());
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(async |request: Request<_>| {
                let page = refuse(&request, is_local).unwrap_or_else(|| respond(&request, watch));
                Ok::<_, Infallible>(page)
            }),
        )
        .await
}

const FOREIGN: &str = "Refused: use an IP address or `localhost`";
const NOT_FOR_PAGES: &str = "Refused: only the page of this server may read this";

/// Refuses requests that another web page makes its visitor's browser send. They could read the
/// names of keys, and cause work under locks. Prometheus may request another machine by any name.
fn refuse<B>(request: &Request<B>, is_local: bool) -> Option<Page> {
    let path = request.uri().path();
    let is_guarded = match path {
        "/health" | "/ready" => false,
        "/metrics" => is_local,
        _ => true,
    };
    if is_guarded && is_foreign(request.headers()) {
        return Some(plain(StatusCode::MISDIRECTED_REQUEST, FOREIGN));
    }
    let site = request.headers().get("sec-fetch-site");
    let is_ours = site.is_none_or(|site| site == "same-origin" || site == "none");
    (path.ends_with(".json") && !is_ours).then(|| plain(StatusCode::FORBIDDEN, NOT_FOR_PAGES))
}

/// Whether a request uses a host name that somebody else may control. A web page can point its own
/// name at this machine, and then read the responses. Names without a dot are assigned by those who
/// run the network.
fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else {
        // Browsers send one.
        return false;
    };
    let host = host.to_str().ok().and_then(|it| it.parse().ok());
    !host.is_some_and(|host: Authority| {
        let name = host.host();
        // `host` ends at a bracket, whatever follows it; and browsers send no user name here.
        let port = host.as_str().strip_prefix(name);
        let is_plain = port.is_some_and(|port| port.is_empty() || port.starts_with(':'));
        let address = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_ours = match address {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => !name.contains('.') || name.parse::<Ipv4Addr>().is_ok(),
        };
        is_plain && is_ours
    })
}

fn respond<B>(request: &Request<B>, watch: &Arc<Watch>) -> Page {
    let page: fn(&Arc<Watch>, &Query) -> Page = match request.uri().path() {
        "/" => |_, _| html(),
        "/metrics" if accepts_open_metrics(request.headers()) => {
            |watch, _| page_of(StatusCode::OK, OPEN_METRICS, watch.text())
        }
        "/metrics" => |watch, _| {
            let text = metrics::prometheus_text(&watch.text());
            page_of(StatusCode::OK, PROMETHEUS, text)
        },
        "/health" => |_, _| plain(StatusCode::OK, "ok"),
        "/ready" => |watch, _| ready(&watch.server),
        "/now.json" => |watch, _| json(page::now(watch, not_ready(&watch.server))),
        "/filters.json" => |watch, query| json(page::filters(watch, query)),
        "/filter.json" => |watch, query| json(page::filter(watch, query)),
        _ => {
            let there = "try /, /metrics, /health or /ready";
            return plain(StatusCode::NOT_FOUND, there);
        }
    };
    // For HEAD, hyper sends only the head of the response.
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
        let allowed = HeaderValue::from_static("GET, HEAD");
        refusal.headers_mut().insert(header::ALLOW, allowed);
        return refusal;
    }
    page(watch, &Query::new(request.uri().query().unwrap_or("")))
}

type Page = Response<Full<Bytes>>;

fn page_of(status: StatusCode, kind: &'static str, text: String) -> Page {
    let mut page = Response::new(Full::from(text));
    *page.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        let value = HeaderValue::from_static(value);
        page.headers_mut().insert(name, value);
    }
    page
}

fn plain(status: StatusCode, line: impl std::fmt::Display) -> Page {
    page_of(status, "text/plain; charset=utf-8", format!("{line}\n"))
}

fn json(value: serde_json::Value) -> Page {
    page_of(StatusCode::OK, "application/json", value.to_string())
}

/// The page for people. Only the style and the script with its nonce are active.
fn html() -> Page {
    let nonce = random_hex(32);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let Ok(policy) = HeaderValue::try_from(policy) else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "no policy");
    };
    let text = page::HTML.replace("NONCE", &nonce);
    let mut page = page_of(StatusCode::OK, "text/html; charset=utf-8", text);
    let headers = page.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    page
}

/// Whether a client accepts OpenMetrics. Others get the older format.
fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    accepted.any(|it| it.to_str().is_ok_and(|it| it.contains("openmetrics-text")))
}

/// Whether clients can read and write: yes, or why not.
fn ready(server: &Server) -> Page {
    not_ready(server).map_or_else(
        || plain(StatusCode::OK, "ready"),
        |why| plain(StatusCode::SERVICE_UNAVAILABLE, why),
    )
}

/// Why clients cannot read or write.
fn not_ready(server: &Server) -> Option<String> {
    if server.store.health.is_loading() {
        return Some("LOADING the data of an earlier run is being loaded".into());
    }
    if let Some(refusal) = misconf(server, &server.config.snapshot()) {
        return Some(refusal.into_owned());
    }
    let stall = server.store.disk_stall()?.as_secs_f64();
    Some(format!(
        "the disk stalls: a write or an fsync of the AOF has not returned for {stall:.1} s, and \
         writes wait"
    ))
}

//! The server over HTTP: `/metrics` for Prometheus, `/healthz` for supervisors, and a page for people at `/`.
//!
//! Off unless `http_address` is given. All numbers are those of SHOW GLOBAL STATUS. It changes nothing, shows no statement's text and
//! no data, and asks for no password: so a port alone, or a name of this machine, is reachable from this machine only, and an answer for a browser
//! goes only to pages that this address itself has served (a foreign page can't read it under another host's name).
//!
//! - `metrics`: the text for Prometheus. - `history`: a few minutes of samples. - `page.html`: the page. - `state`: what the page shows
//!   besides the plots. - `activity`: its transactions, statements and digests.
//!
//! Tasks of the sessions' runtime; a request waits for no lock that a statement holds for long.

mod activity;
mod history;
mod metrics;
mod state;

use crate::server::Server;
use crate::starting::Starting;
use history::History;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Connections at once.
const CONNECTIONS: usize = 64;
/// How long a client may take to send a request's head.
const HEAD: Duration = Duration::from_secs(10);
/// The idle time after which a connection is closed.
const CONNECTION: Duration = Duration::from_secs(300);

const PAGE: &str = include_str!("page.html");

/// An address that listens.
#[derive(Debug)]
pub(crate) struct Http {
    listener: TcpListener,
    address: SocketAddr,
}

impl Http {
    /// Listens on `address`: a port alone, or `host:port`.
    ///
    /// # Errors
    /// It is no address, or somebody else's.
    pub(crate) async fn bind(address: &str) -> io::Result<Http> {
        let full = match address.trim_start_matches(':') {
            port if port.parse::<u16>().is_ok() => format!("127.0.0.1:{port}"),
            _ => address.to_owned(),
        };
        let listener = TcpListener::bind(&full).await?;
        let address = listener.local_addr()?;
        Ok(Http { listener, address })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is dropped.
    pub(crate) async fn run(self, seat: watch::Receiver<Option<Arc<Server>>>, starting: Arc<Starting>) {
        let history = Arc::new(History::default());
        let sampling = async {
            let mut seat = seat.clone();
            let server = seat.wait_for(Option::is_some).await.ok().and_then(|server| server.clone());
            if let Some(server) = server {
                history.clone().sample(server).await;
            }
        };
        let serving = async {
            let mut places = Places::default();
            loop {
                match self.listener.accept().await {
                    Ok((stream, _)) => {
                        let (seat, starting, history) = (seat.clone(), starting.clone(), history.clone());
                        let local = self.address.ip().is_loopback();
                        places.take(tokio::spawn(async move {
                            let answer = service_fn(|request| {
                                let server = seat.borrow().clone();
                                let from = match &server {
                                    Some(server) => From::Server(server, &history),
                                    None => From::Start(&starting),
                                };
                                let response = answer(&from, local, &request);
                                async { Ok::<_, Infallible>(response) }
                            });
                            let connection = hyper::server::conn::http1::Builder::new()
                                .timer(TokioTimer::new())
                                .header_read_timeout(HEAD)
                                .max_buf_size(16 << 10)
                                .serve_connection(TokioIo::new(stream), answer);
                            // A client that breaks off is nobody's trouble.
                            let _ = tokio::time::timeout(CONNECTION, connection).await;
                        }));
                    }
                    // Out of file handles, mostly.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        };
        tokio::join!(sampling, serving);
    }
}

/// The connections that are open. Who comes when all places are taken gets the oldest one's: a client that sends its request
/// has its answer long before as many others have come, and who sends nothing keeps nobody out.
#[derive(Default)]
struct Places(VecDeque<JoinHandle<()>>);

impl Places {
    fn take(&mut self, connection: JoinHandle<()>) {
        if self.0.len() >= CONNECTIONS {
            self.0.retain(|open| !open.is_finished());
        }
        if self.0.len() >= CONNECTIONS
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(connection);
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// The sources of a reply.
enum From<'a> {
    /// There is no server yet.
    Start(&'a Starting),
    Server(&'a Arc<Server>, &'a History),
}

fn answer(from: &From<'_>, local: bool, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if local && !request.headers().get(HOST).is_none_or(is_local) {
        return text(
            StatusCode::FORBIDDEN,
            "text/plain; charset=utf-8",
            "This address is for this machine only.\n",
        );
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", "Only GET and HEAD.\n");
    }
    match request.uri().path() {
        "/" => text(StatusCode::OK, "text/html; charset=utf-8", PAGE),
        "/metrics" => text(
            StatusCode::OK,
            metrics::CONTENT_TYPE,
            match from {
                From::Server(server, _) => metrics::text(server),
                From::Start(starting) => metrics::of_start(starting),
            },
        ),
        "/healthz" => verdict(from.trouble()),
        "/healthz/writer" => verdict(from.trouble().or_else(|| from.takes_no_writes())),
        "/api/state" => {
            let since = request.uri().query().and_then(|query| query.strip_prefix("since="));
            let since = since.and_then(|since| since.parse().ok()).unwrap_or(0);
            let body = match from {
                From::Server(server, history) => state::json(server, history, since),
                From::Start(starting) => state::of_start(starting),
            };
            text(StatusCode::OK, "application/json", body)
        }
        _ => text(
            StatusCode::NOT_FOUND,
            "text/plain; charset=utf-8",
            "There is /, /metrics, /healthz and /healthz/writer.\n",
        ),
    }
}

impl From<'_> {
    /// Why nobody should be sent here, if so.
    fn trouble(&self) -> Option<String> {
        match self {
            From::Server(server, _) => state::trouble(server),
            From::Start(_) => Some("starting".to_owned()),
        }
    }

    /// Why no client that writes should be sent here, if so.
    fn takes_no_writes(&self) -> Option<String> {
        match self {
            From::Server(server, _) if server.globals.named("read_only").as_bool() => {
                Some("read only".to_owned())
            }
            _ => None,
        }
    }
}

/// The answer to a program that asks whether it may send clients here.
fn verdict(trouble: Option<String>) -> Response<Full<Bytes>> {
    match trouble {
        None => text(StatusCode::OK, "text/plain; charset=utf-8", "ok\n"),
        Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", format!("{why}\n")),
    }
}

/// Whether the name that a client used can only mean this machine.
fn is_local(host: &HeaderValue) -> bool {
    let Ok(host) = host.to_str() else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn text(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert(
        "content-security-policy",
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'",
        ),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        let local = |host: &'static str| is_local(&HeaderValue::from_static(host));
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.8.8.8", "[::1]:9", "[::1]"] {
            assert!(local(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:80", "10.0.0.1", "127.0.0.1.evil.example", ""] {
            assert!(!local(host), "{host}");
        }
    }
}

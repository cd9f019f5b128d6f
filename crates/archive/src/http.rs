//! The HTTP client under the object store: hyper, which the server has already, and TLS with the provider that it has.
//!
//! The store's own choice would be another client with another cryptographic library. HTTP/1.1 with kept connections; the
//! authorities are the system's, or those of the file that `SSL_CERT_FILE` names. Requests are tried again by the store, and
//! given up by who waits for one, not here.

use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use rustls::crypto::ring;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// The maximum duration of connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// The time for which an unused connection is kept.
const IDLE: Duration = Duration::from_secs(30);

/// Makes clients.
#[derive(Debug)]
pub(crate) struct Hyper;

#[derive(Debug)]
struct Service(Client<HttpsConnector<Tcp>, HttpRequestBody>);

impl HttpConnector for Hyper {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_nodelay(true);
        let trusted = HttpsConnectorBuilder::new().with_provider_and_native_roots(ring::default_provider());
        let https = trusted
            .map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(https);
        Ok(HttpClient::new(Service(client)))
    }
}

impl HttpService for Service {
    fn call<'me, 'call>(
        &'me self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'call>>
    where
        'me: 'call,
        Self: 'call,
    {
        Box::pin(async move {
            let answer = self.0.request(request).await.map_err(|error| {
                let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
                HttpError::new(kind, error)
            })?;
            let (head, body) = answer.into_parts();
            let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
            Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
        })
    }
}

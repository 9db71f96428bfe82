//! Who calls the service. It does not retry: that is done in one place, and this is not it.

use std::net::SocketAddr;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::BoxError;
use crate::client::{IDEMPOTENCY_KEY, IDLE_TIMEOUT, REQUEST_ID};
use crate::ledger::Kind;
use crate::upstream::ORDERS;

#[derive(Clone)]
pub struct Caller {
    http: Http<HttpConnector, Full<Bytes>>,
    service: SocketAddr,
}

impl Caller {
    pub fn new(service: SocketAddr) -> Self {
        let mut http = Http::builder(TokioExecutor::new());
        http.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_TIMEOUT).retry_canceled_requests(false);
        Self { http: http.build_http(), service }
    }

    /// Makes the request with this number, and reads the whole answer.
    pub async fn send(self, id: usize, kind: Kind) -> Result<StatusCode, BoxError> {
        let order = id % ORDERS;
        let (method, path) = match kind {
            Kind::Read => (Method::GET, format!("/orders/{order}")),
            Kind::Set => (Method::PUT, format!("/orders/{order}")),
            Kind::AddWithKey | Kind::Add => (Method::POST, format!("/orders/{order}/items")),
        };
        let uri = format!("http://{}{path}", self.service);
        let mut request = Request::builder().method(method).uri(uri).header(REQUEST_ID, id);
        if kind == Kind::AddWithKey {
            request = request.header(IDEMPOTENCY_KEY, format!("order-{order}-request-{id}"));
        }
        let body = if kind == Kind::Read { Full::default() } else { Full::from("1") };
        let response = self.http.request(request.body(body)?).await?;
        let status = response.status();
        response.into_body().collect().await?;
        Ok(status)
    }

    /// The service's counters.
    pub async fn metrics(&self) -> Result<String, BoxError> {
        let request = Request::builder().uri(format!("http://{}/metrics", self.service)).body(Full::default())?;
        let body = self.http.request(request).await?.into_body().collect().await?.to_bytes();
        Ok(String::from_utf8(body.to_vec())?)
    }
}

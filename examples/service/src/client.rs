//! The one place from which the warehouse is called: its policy, its guards, and what its failures mean.

mod error;
mod resolver;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{HeaderName, RETRY_AFTER};
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use relent::breaker::{CallError, CircuitBreaker};
use relent::budget::RetryBudget;
use relent::{Policy, retry, transient};
use tokio_util::sync::CancellationToken;
use tracing::instrument;

pub use error::UpstreamError;
use resolver::Resolver;

use crate::faults::Faults;
use crate::metrics::METRICS;

/// Somebody waits for the answer, so no attempt begins after two seconds.
pub const POLICY: Policy =
    Policy::exponential(Duration::from_millis(25)).max_attempts(4).max_elapsed(Duration::from_secs(2));

/// Several times what a slow answer takes.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(250);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);
/// What a crowd has left behind is closed after twice this.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// A probe is a whole run, so this is longer than one lasts.
pub const COOLDOWN: Duration = Duration::from_millis(2500);

/// At most a fifth more calls than without retries, and a few for quiet times.
pub const RETRIES_PER_RUN: f64 = 0.2;
pub const RETRIES_PER_SECOND: u32 = 5;
pub const WINDOW: Duration = Duration::from_secs(5);

pub static BUDGET: RetryBudget = RetryBudget::new(RETRIES_PER_RUN).min_per_second(RETRIES_PER_SECOND).window(WINDOW);
pub static BREAKER: CircuitBreaker = CircuitBreaker::new()
    .named("warehouse")
    .cooldown(Policy::fixed(COOLDOWN))
    .on_transition(|transition| METRICS.changed(transition));

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What is asked of the warehouse. Every attempt of a run sends the same, the key included.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    pub path: String,
    pub request_id: String,
    /// Under one key the warehouse does a thing once, however often it is asked to.
    pub key: Option<String>,
    pub body: Bytes,
}

impl Call {
    fn may_be_repeated(&self) -> bool {
        self.method.is_idempotent() || self.key.is_some()
    }

    fn request(&self) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let uri = Uri::builder().scheme("http").authority("warehouse.internal").path_and_query(&self.path).build()?;
        let mut request = Request::builder().method(&self.method).uri(uri).header(REQUEST_ID, &self.request_id);
        if let Some(key) = &self.key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        request.body(Full::new(self.body.clone()))
    }
}

/// A client of the warehouse, to be shared.
#[derive(Clone, Debug)]
pub struct Client {
    http: Http<HttpConnector<Resolver>, Full<Bytes>>,
    stopping: CancellationToken,
}

impl Client {
    /// A client of the warehouse at `address`. Once `stopping` is cancelled its runs finish their attempt, and begin no
    /// other.
    #[must_use]
    pub fn new(address: SocketAddr, faults: Arc<Faults>, stopping: CancellationToken) -> Self {
        let mut connector = HttpConnector::new_with_resolver(Resolver { address, faults });
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let http = Http::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            // Retries are made here, and nowhere else.
            .retry_canceled_requests(false)
            .build(connector);
        Self { http, stopping }
    }

    /// Calls the warehouse until it answers, or until a retry is pointless, unsafe, or too much for the warehouse.
    ///
    /// # Errors
    ///
    /// What the last attempt failed with, or the refusal of the breaker.
    #[instrument(skip_all, fields(request = call.request_id))]
    pub async fn call(&self, call: &Call) -> Result<Bytes, CallError<UpstreamError>> {
        let _guard = METRICS.calling();
        let run = retry(|_| self.attempt(call), &POLICY)
            .attempt_timeout(ATTEMPT_TIMEOUT, UpstreamError::Timeout)
            .when(UpstreamError::is_transient)
            .idempotent(call.may_be_repeated())
            .retry_after(UpstreamError::retry_after)
            .cancel_on(self.stopping.cancelled())
            .budget(&BUDGET)
            .on_event(|event| METRICS.observe(event));
        let result = BREAKER.call_with(run, UpstreamError::is_transient).await;
        if let Err(CallError::Open(_)) = result {
            METRICS.refused("the breaker");
        }
        result
    }

    /// One exchange, to the last byte of the body: an answer that breaks off is a failed attempt.
    async fn attempt(&self, call: &Call) -> Result<Bytes, UpstreamError> {
        METRICS.attempted();
        let response = self.http.request(call.request()?).await?;
        let status = response.status();
        if !status.is_success() {
            let hint = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            let retry_after = hint.and_then(|value| transient::parse_retry_after(value, transient::unix_now()));
            return Err(UpstreamError::Status { status, retry_after });
        }
        Ok(response.into_body().collect().await?.to_bytes())
    }
}

//! The service: `/orders`, answered with the help of the warehouse, and `/metrics`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use relent::breaker::CallError;
use relent::error::CircuitOpen;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::{Call, Client, IDEMPOTENCY_KEY, REQUEST_ID, UpstreamError};
use crate::metrics::METRICS;

/// So many calls may be under way, several times what there are when all is well. The rest are refused: who waits for a
/// warehouse that hangs takes up memory and connections.
pub const PLACES: usize = 32;
pub static FREE_PLACES: Semaphore = Semaphore::const_new(PLACES);

/// A breaker that is forced open would ask for ever.
const LONGEST_HINT: Duration = Duration::from_secs(60);

/// A running service.
pub struct Front {
    address: SocketAddr,
    stopping: CancellationToken,
    server: JoinHandle<io::Result<()>>,
}

impl Front {
    /// Starts one on a free port. It stops when `stopping` is cancelled, once all requests are answered.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn start(client: Client, stopping: CancellationToken) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let orders = Router::new()
            .route("/orders/{order}", get(read).put(set))
            .route("/orders/{order}/items", post(add))
            .layer(from_fn(counted))
            .with_state(client);
        let app = orders.route("/metrics", get(metrics));
        let server = axum::serve(listener, app).with_graceful_shutdown(stopping.clone().cancelled_owned());
        Ok(Self { address, stopping, server: tokio::spawn(server.into_future()) })
    }

    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers what is under way, and no more.
    ///
    /// # Errors
    ///
    /// If the server has failed or panicked.
    pub async fn stop(self) -> io::Result<()> {
        self.stopping.cancel();
        self.server.await?
    }
}

type Answer = Result<Bytes, Failure>;

async fn read(State(client): State<Client>, Path(order): Path<u32>, headers: HeaderMap) -> Answer {
    forward(&client, Method::GET, format!("/orders/{order}"), &headers, Bytes::new()).await
}

async fn set(State(client): State<Client>, Path(order): Path<u32>, headers: HeaderMap, body: Bytes) -> Answer {
    forward(&client, Method::PUT, format!("/orders/{order}"), &headers, body).await
}

async fn add(State(client): State<Client>, Path(order): Path<u32>, headers: HeaderMap, body: Bytes) -> Answer {
    forward(&client, Method::POST, format!("/orders/{order}/items"), &headers, body).await
}

async fn forward(client: &Client, method: Method, path: String, headers: &HeaderMap, body: Bytes) -> Answer {
    let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let request_id = header(REQUEST_ID).unwrap_or_default();
    // Only the caller knows whether two requests are one: a key made here would be another one each time.
    let key = header(IDEMPOTENCY_KEY);
    let Ok(_place) = FREE_PLACES.try_acquire() else {
        METRICS.refused("the service");
        return Err(Failure::Full);
    };
    Ok(client.call(&Call { method, path, request_id, key, body }).await?)
}

async fn counted(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    METRICS.answered(response.status());
    response
}

async fn metrics() -> Result<String, StatusCode> {
    METRICS.page().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

/// What a caller is told when the warehouse did not answer.
enum Failure {
    /// It was not called, for too many calls are under way.
    Full,
    /// It was not called, for the breaker is open.
    Refused(CircuitOpen),
    Failed(UpstreamError),
}

impl From<CallError<UpstreamError>> for Failure {
    fn from(error: CallError<UpstreamError>) -> Self {
        match error {
            CallError::Open(open) => Self::Refused(open),
            CallError::Inner(error) => Self::Failed(error),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Full => (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], "busy").into_response(),
            Self::Refused(open) => {
                // Rounded up: who comes back a little too early is refused again.
                let seconds = open.retry_after().min(LONGEST_HINT).as_millis().div_ceil(1000);
                (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, seconds.to_string())], open.to_string())
                    .into_response()
            }
            Self::Failed(error) => (status(&error), error.to_string()).into_response(),
        }
    }
}

fn status(error: &UpstreamError) -> StatusCode {
    match error {
        UpstreamError::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
        // What is wrong with the request is the caller's to mend, what is wrong with the warehouse is not.
        UpstreamError::Status { status, .. } if status.is_client_error() && !error.is_transient() => *status,
        _ => StatusCode::BAD_GATEWAY,
    }
}

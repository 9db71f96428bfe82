//! The warehouse: a real server on loopback, which keeps orders and does to its callers what [`Faults`] say.

mod orders;

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, RETRY_AFTER};
use hyper::http::Error as HttpError;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::faults::{Fault, Faults, STALL, Weather};
use crate::ledger::Ledger;
pub use orders::ORDERS;
use orders::Orders;

/// A slow body has five pieces, and comes in time.
const PAUSE: Duration = Duration::from_millis(15);
const PIECES: usize = 5;

/// A running warehouse.
pub struct Upstream {
    address: SocketAddr,
    stopping: CancellationToken,
    server: JoinHandle<()>,
}

impl Upstream {
    /// Starts one on a free port.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub async fn start(faults: Arc<Faults>, ledger: Arc<Ledger>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let stopping = CancellationToken::new();
        let warehouse = Arc::new(Warehouse { faults, orders: Orders::new(ledger) });
        let server = tokio::spawn(serve(warehouse, listener, stopping.clone()));
        Ok(Self { address, stopping, server })
    }

    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections.
    ///
    /// # Errors
    ///
    /// If the server has panicked.
    pub async fn stop(self) -> Result<(), tokio::task::JoinError> {
        self.stopping.cancel();
        self.server.await
    }
}

async fn serve(warehouse: Arc<Warehouse>, listener: TcpListener, stopping: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stopping.cancelled() => break,
            Some(_) = connections.join_next() => {}
            Ok((stream, _)) = listener.accept() => {
                connections.spawn(Arc::clone(&warehouse).converse(stream));
            }
        }
    }
    connections.shutdown().await;
}

/// Why a request gets no answer.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("to be reset")]
    Reset,
    #[error("half a request")]
    HalfRequest(#[from] hyper::Error),
    #[error("no response can be built")]
    Response(#[from] HttpError),
}

struct Warehouse {
    faults: Arc<Faults>,
    orders: Orders,
}

impl Warehouse {
    /// Answers the requests of one connection.
    async fn converse(self: Arc<Self>, stream: TcpStream) {
        let answer = |request| -> BoxFuture<'static, _> { Arc::clone(&self).answer(request).boxed() };
        let mut server = http1::Builder::new();
        let mut connection = server.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service_fn(answer));
        if (&mut connection).await.is_err_and(|error| error.is_user()) {
            // With this a close is a reset: RST instead of FIN. Should it fail, the caller meets another fault.
            let _ = connection.into_parts().io.into_inner().set_zero_linger();
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Unanswered> {
        if self.faults.is(Weather::Hanging) {
            pending::<Infallible>().await;
        }
        let fault = self.faults.for_request();
        match fault {
            Some(Fault::ResetBefore) => return Err(Unanswered::Reset),
            Some(Fault::Unavailable) => return Ok(empty(StatusCode::SERVICE_UNAVAILABLE)),
            Some(Fault::TooManySeconds) => return Ok(too_many("1".to_owned())?),
            Some(Fault::TooManyDate) => {
                let date = SystemTime::now() + Duration::from_secs(1);
                return Ok(too_many(httpdate::fmt_http_date(date))?);
            }
            _ => {}
        }
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let body = match self.orders.execute(&head, &body) {
            Ok(body) => Bytes::from(body),
            Err(status) => return Ok(empty(status)),
        };
        let response = Response::builder().header(CONTENT_LENGTH, body.len());
        Ok(match fault {
            Some(Fault::ResetAfter) => return Err(Unanswered::Reset),
            Some(Fault::SlowBody) => response.body(in_pieces(body, PAUSE))?,
            Some(Fault::StalledBody) => response.body(in_pieces(body, STALL))?,
            Some(Fault::PartialBody) => response.body(half(body))?,
            _ => response.body(Body::from(body))?,
        })
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

fn too_many(retry_after: String) -> Result<Response<Body>, HttpError> {
    let response = Response::builder().status(StatusCode::TOO_MANY_REQUESTS);
    response.header(RETRY_AFTER, retry_after).body(Body::empty())
}

/// The whole body, with a pause after each piece.
fn in_pieces(body: Bytes, pause: Duration) -> Body {
    let size = body.len().div_ceil(PIECES).max(1);
    let starts = stream::iter((0..body.len()).step_by(size));
    Body::from_stream(starts.then(move |start| {
        let piece = body.slice(start..body.len().min(start + size));
        async move {
            if start > 0 {
                sleep(pause).await;
            }
            Ok::<_, Infallible>(piece)
        }
    }))
}

/// A body that ends too early.
fn half(body: Bytes) -> Body {
    let half = body.slice(..body.len() / 2);
    Body::from_stream(stream::iter([Ok(half), Err(io::Error::other("broken off"))]))
}

//! A flaky HTTP service on loopback, really retried.
//!
//! `cargo run --example flaky_http`: the server answers 503, then 429 with `Retry-After: 1`, then breaks off in the
//! middle of a response, then 200. The client retries through all of it.
//!
//! `cargo run --example flaky_http -- --forbidden`: the server answers 403, which is marked as not retryable, so the
//! run stops at its first attempt and the program exits with status 1.
//!
//! The server keeps its own record of the arrivals. The program fails (status 2) unless that agrees with what the client
//! reports.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use relent::retry::{Event, Report, StopReason};
use relent::transient;
use relent::{NonRetryableError, Policy, retry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const POLICY: Policy = Policy::exponential(Duration::from_millis(200)).max_attempts(5);

const FLAKY: &[&str] = &[
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\nhello, world\n",
];
const FORBIDDEN: &[&str] = &["HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"];

/// Serves the responses in turn, the last one for ever, and records when each request arrived.
async fn serve(listener: TcpListener, responses: &'static [&'static str], arrivals: Arc<Mutex<Vec<Instant>>>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let number = {
            let mut arrivals = arrivals.lock().unwrap();
            arrivals.push(Instant::now());
            arrivals.len()
        };
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).await;
        let response = responses[number.min(responses.len()) - 1];
        let _ = stream.write_all(response.as_bytes()).await;
    }
}

#[derive(Debug)]
enum HttpError {
    Io(io::Error),
    Status { code: u16, retry_after: Option<Duration> },
    Permanent(NonRetryableError),
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "connection failed: {error}"),
            Self::Status { code, retry_after: None } => write!(f, "status {code}"),
            Self::Status { code, retry_after: Some(wait) } => write!(f, "status {code}, retry after {wait:?}"),
            Self::Permanent(error) => error.fmt(f),
        }
    }
}

impl Error for HttpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Status { .. } => None,
            Self::Permanent(error) => Some(error),
        }
    }
}

impl<E: Into<io::Error>> From<E> for HttpError {
    fn from(error: E) -> Self {
        Self::Io(error.into())
    }
}

/// One GET request over a connection of its own.
async fn get(server: SocketAddr) -> Result<String, HttpError> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: flaky\r\nConnection: close\r\n\r\n").await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;

    let (head, body) = response.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let header = |name: &str| {
        head.lines().filter_map(|line| line.split_once(':')).find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v)
    };
    let code: u16 = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    match code {
        200 if header("content-length").and_then(|v| v.trim().parse().ok()) != Some(body.len()) => {
            Err(HttpError::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "the response broke off")))
        }
        200 => Ok(body.to_owned()),
        401 | 403 => Err(HttpError::Permanent(NonRetryableError::new(format!("status {code}")))),
        _ => {
            let retry_after = header("retry-after");
            let retry_after = retry_after.and_then(|v| transient::parse_retry_after(v, transient::unix_now()));
            Err(HttpError::Status { code, retry_after })
        }
    }
}

fn is_transient(error: &HttpError) -> bool {
    match error {
        HttpError::Io(error) => transient::io_error(error),
        HttpError::Status { code, .. } => transient::http_status(*code),
        HttpError::Permanent(_) => false,
    }
}

fn asked_to_wait(error: &HttpError) -> Option<Duration> {
    match error {
        HttpError::Status { retry_after, .. } => *retry_after,
        _ => None,
    }
}

/// Whether the server's record of the arrivals agrees with the client's report and the waits that it announced.
fn agree(arrivals: &[Instant], report: &Report<String, HttpError>, waits: &[Duration]) -> Result<(), String> {
    if arrivals.len() != report.attempts as usize || waits.len() + 1 != arrivals.len() {
        return Err(format!(
            "the server saw {} requests, the client reports {} attempts and {} waits",
            arrivals.len(),
            report.attempts,
            waits.len()
        ));
    }
    let gaps = arrivals.windows(2).map(|pair| pair[1] - pair[0]);
    for (gap, wait) in gaps.zip(waits) {
        // A gap also holds the request itself. It is measured between two accepts, so give it a moment either way.
        let slack = Duration::from_millis(20);
        if gap + slack < *wait || gap > *wait + Duration::from_secs(2) {
            return Err(format!("the server saw a gap of {gap:?} where the client waited {wait:?}"));
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    let forbidden = std::env::args().any(|arg| arg == "--forbidden");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port on loopback");
    let server = listener.local_addr().expect("the port just bound");
    let arrivals = Arc::default();
    tokio::spawn(serve(listener, if forbidden { FORBIDDEN } else { FLAKY }, Arc::clone(&arrivals)));
    println!("a flaky service listens on {server}; policy: {POLICY}\n");

    let mut waits = Vec::new();
    let report = retry(|_| get(server), POLICY)
        .when(is_transient)
        .retry_after(asked_to_wait)
        .on_event(|event| match event {
            Event::Scheduled { attempt, delay, error } => {
                println!("attempt {attempt}: {error}; next in {delay:?}");
                waits.push(*delay);
            }
            Event::Succeeded { attempts } => println!("attempt {attempts}: 200"),
            Event::Exhausted { attempts, error } => println!("attempt {attempts}: {error}; no attempt is left"),
            Event::Declined { attempt, error, reason } => println!("attempt {attempt}: {error}; stopped: {reason}"),
            _ => {}
        })
        .report()
        .await;

    println!("\n{report:?}");
    if let Ok(body) = &report.result {
        println!("body: {body:?}");
    }
    let arrivals = arrivals.lock().unwrap();
    if let Err(difference) = agree(&arrivals, &report, &waits) {
        eprintln!("{difference}");
        return ExitCode::from(2);
    }
    println!("requests that the server saw: {}", arrivals.len());
    match (&report.result, report.stop) {
        (Ok(_), None) if !forbidden && report.attempts == 4 && waits[1] >= Duration::from_secs(1) => ExitCode::SUCCESS,
        (Err(_), Some(StopReason::NotRetryable)) if forbidden && report.attempts == 1 => ExitCode::from(1),
        _ => {
            eprintln!("that is not what this service should have led to");
            ExitCode::from(2)
        }
    }
}

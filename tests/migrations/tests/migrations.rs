//! What the guide's chapter on migrating says: the code before and the code after make the same calls.

use std::cell::RefCell;
use std::future::Ready;
use std::io::{self, ErrorKind};
use std::task::{Context, Poll};
use std::time::Duration;

use relent_migrations::{
    Response, backoff_after, backoff_before, backon_after, backon_before,
    tokio_retry_after, tokio_retry_before, tower_after, tower_before,
};
use tokio::time::Instant;
use tower::Service;

/// A server that answers by a script, and notes when it was called.
struct Server {
    started: Instant,
    failures: RefCell<Vec<ErrorKind>>,
    calls: RefCell<Vec<Duration>>,
}

impl Server {
    fn new(mut failures: Vec<ErrorKind>) -> Self {
        failures.reverse();
        Self {
            started: Instant::now(),
            failures: RefCell::new(failures),
            calls: RefCell::default(),
        }
    }

    async fn get(&self) -> io::Result<String> {
        self.calls.borrow_mut().push(self.started.elapsed());
        self.failures
            .borrow_mut()
            .pop()
            .map_or(Ok("text".to_owned()), |kind| Err(kind.into()))
    }

    /// The waits before the calls, to the millisecond: that is how fine tokio's timer is.
    fn waits(&self) -> Vec<u128> {
        let calls = self.calls.borrow();
        calls.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect()
    }
}

/// Calls a server that fails so through `fetch`; gives the waits, and how it ended.
macro_rules! observed {
    ($fetch:path, $failures:expr) => {{
        let server = Server::new($failures.to_vec());
        let result = $fetch(|| server.get()).await;
        (server.waits(), result.map_err(|e| e.kind()))
    }};
}

/// No wait may exceed what the growth gives, and tokio's timer rounds up.
fn within(waits: &[u128], bounds: &[(u128, u128)]) -> bool {
    waits.len() == bounds.len()
        && waits
            .iter()
            .zip(bounds)
            .all(|(wait, (from, to))| (*from..=to + 1).contains(wait))
}

const RESET: ErrorKind = ErrorKind::ConnectionReset;
const NOT_FOUND: ErrorKind = ErrorKind::NotFound;

/// backon counts in `f32` seconds, where 200 ms are a few nanoseconds more, and tokio's timer rounds up: so one millisecond
/// more than here is the same.
#[tokio::test(start_paused = true)]
async fn backon_makes_the_same_calls_at_the_same_times() {
    for failures in
        [vec![], vec![RESET; 2], vec![RESET; 9], vec![NOT_FOUND], vec![RESET, NOT_FOUND]]
    {
        let (before, ended) = observed!(backon_before::fetch, failures);
        let (after, ended_after) = observed!(backon_after::fetch, failures);
        assert_eq!(ended, ended_after, "{failures:?}");
        let same: Vec<_> = after.iter().map(|wait| (*wait, *wait)).collect();
        assert!(within(&before, &same), "{before:?} and {after:?}");
    }
    let all = observed!(backon_after::fetch, [RESET; 9]);
    assert_eq!(all, (vec![100, 200, 400], Err(RESET)));
}

#[tokio::test(start_paused = true)]
async fn tokio_retry_makes_as_many_calls_within_the_same_bounds() {
    let bounds = [(0, 100), (0, 200), (0, 400)];
    for failures in
        [vec![], vec![RESET; 2], vec![RESET; 9], vec![NOT_FOUND], vec![RESET, NOT_FOUND]]
    {
        let (before, ended) = observed!(tokio_retry_before::fetch, failures);
        let (after, ended_after) = observed!(tokio_retry_after::fetch, failures);
        assert_eq!((before.len(), ended), (after.len(), ended_after), "{failures:?}");
        assert!(within(&before, &bounds[..before.len()]), "{before:?}");
        assert!(within(&after, &bounds[..after.len()]), "{after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn backoff_makes_as_many_calls_within_the_same_bounds_up_to_the_cap() {
    let bounds = [(50, 150), (100, 300), (200, 600), (400, 1200), (800, 2000)];
    for failures in [vec![], vec![RESET; 4], vec![NOT_FOUND], vec![RESET, NOT_FOUND]] {
        let (before, ended) = observed!(backoff_before::fetch, failures);
        let (after, ended_after) = observed!(backoff_after::fetch, failures);
        assert_eq!((before.len(), ended), (after.len(), ended_after), "{failures:?}");
        assert!(within(&before, &bounds[..before.len()]), "{before:?}");
        assert!(within(&after, &bounds[..after.len()]), "{after:?}");
    }
    let (waits, ended) = observed!(backoff_after::fetch, [RESET; 5]);
    assert_eq!(ended, Ok("text".to_owned()));
    assert!(within(&waits, &bounds), "{waits:?}");
}

/// `backoff` reads the system's clock, which a paused tokio does not move; the run goes by its waits.
#[tokio::test(start_paused = true)]
async fn a_limit_of_time_holds_on_paused_time_after_migrating_from_backoff() {
    let failures = [RESET; 200];
    let (before, ended) = observed!(backoff_before::fetch, failures);
    assert_eq!((before.len(), ended), (200, Ok("text".to_owned())));
    let (after, ended) = observed!(backoff_after::fetch, failures);
    assert_eq!(ended, Err(RESET));
    assert!(after.iter().sum::<u128>() <= 30_000 + after.len() as u128);
}

/// A service whose first answers are these statuses; it answers 200 from then on.
#[derive(Clone)]
struct Answers<'a>(&'a RefCell<Vec<u16>>, &'a RefCell<Vec<Instant>>);

impl Service<String> for Answers<'_> {
    type Response = Response;
    type Error = io::Error;
    type Future = Ready<io::Result<Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: String) -> Self::Future {
        self.1.borrow_mut().push(Instant::now());
        std::future::ready(match self.0.borrow_mut().pop().unwrap_or(200) {
            0 => Err(RESET.into()),
            status => Ok(Response { status }),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn tower_makes_the_same_calls_at_the_same_times_and_returns_the_same_answer() {
    macro_rules! answered {
        ($fetch:path, $statuses:expr) => {{
            let (statuses, calls) = (RefCell::new($statuses.clone()), RefCell::default());
            let answer =
                $fetch(Answers(&statuses, &calls), "path").await.map_err(|e| e.to_string());
            let calls = calls.into_inner();
            (
                calls.iter().map(|call| (*call - calls[0]).as_millis()).collect::<Vec<_>>(),
                answer,
            )
        }};
    }
    for statuses in [vec![], vec![503; 2], vec![503; 9], vec![500], vec![0], vec![0, 503]] {
        let after = answered!(tower_after::fetch, statuses);
        assert_eq!(answered!(tower_before::fetch, statuses), after, "{statuses:?}");
        if statuses.len() == 9 {
            assert_eq!(after, (vec![0, 100, 300, 700], Ok(Response { status: 503 })));
        }
    }
}

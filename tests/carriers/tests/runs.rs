//! A run ends at the first attempt for every error type that carries a marker, and goes on for the same type without.

use std::{error::Error, io, sync::Arc, time::Duration};

use relent::{
    NonRetryableError, Policy,
    clock::VirtualClock,
    error::{AsError, RetryAfterError},
    retry,
    retry::StopReason,
};

const POLICY: Policy = Policy::fixed(Duration::from_millis(10));

#[derive(Debug, thiserror::Error)]
enum Typed {
    #[error("named source")]
    Source(#[from] NonRetryableError),
    #[error(transparent)]
    Transparent(anyhow::Error),
    #[error("busy")]
    Busy,
}

/// How many attempts a run makes that fails with this error each time, and why it stops.
fn run<E: AsError<K>, K>(error: impl Fn() -> E) -> (u32, Option<StopReason>) {
    let clock = VirtualClock::new();
    let report = clock.block_on(retry(async |_| Err::<(), E>(error()), POLICY).clock(&clock).report());
    (report.attempts, report.stop)
}

fn marker() -> NonRetryableError {
    NonRetryableError::new("no such user")
}

/// Asserts that the first error stops a run at once, and that the second is retried.
macro_rules! stops {
    ($($marked:expr, $plain:expr;)*) => {$(
        assert_eq!(run(|| $marked), (1, Some(StopReason::NotRetryable)), stringify!($marked));
        assert_eq!(run(|| $plain), (3, Some(StopReason::Exhausted)), stringify!($plain));
    )*};
}

#[test]
fn a_marker_stops_a_run_in_every_carrier() {
    type Boxed = Box<dyn Error>;
    type BoxedSend = Box<dyn Error + Send>;
    type BoxedSync = Box<dyn Error + Sync>;
    type BoxedBoth = Box<dyn Error + Send + Sync>;
    type Shared = Arc<dyn Error + Send + Sync>;

    assert_eq!(run(marker), (1, Some(StopReason::NotRetryable)));
    stops! {
        Typed::from(marker()), Typed::Busy;
        Typed::Transparent(anyhow::Error::new(marker()).context("loading")), Typed::Transparent(anyhow::anyhow!("busy"));
        Box::new(marker()) as Boxed, Boxed::from("busy");
        Box::new(marker()) as BoxedSend, Box::new(Typed::Busy) as BoxedSend;
        Box::new(marker()) as BoxedSync, Box::new(Typed::Busy) as BoxedSync;
        BoxedBoth::from(marker()), BoxedBoth::from("busy");
        Shared::from(BoxedBoth::from(marker())), Shared::from(BoxedBoth::from("busy"));
        io::Error::other(marker()), io::Error::other("busy");
        anyhow::Error::new(marker()).context("loading"), anyhow::anyhow!("busy").context("loading");
        eyre::Report::new(marker()).wrap_err("loading"), eyre::eyre!("busy").wrap_err("loading");
    }
}

#[test]
fn a_hint_is_waited_for_through_a_context() {
    let clock = VirtualClock::new();
    let asked = Duration::from_secs(7);
    let op = async |_| Err::<(), _>(anyhow::Error::new(RetryAfterError::new("429", asked)).context("calling"));
    let report = clock.block_on(retry(op, POLICY.max_attempts(2)).clock(&clock).report());
    assert_eq!(report.elapsed, asked);
}

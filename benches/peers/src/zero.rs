//! Three retries without a wait between them, on the real clock: what a delay of zero takes.

use std::cell::Cell;
use std::time::{Duration, Instant};

use backon::{ConstantBuilder, Retryable};
use relent::clock::{Clock, SystemClock, clock_fn};
use relent::{Policy, retry};

use crate::measure::median;
use crate::operation::{Busy, Operation, fails_thrice};

const IMMEDIATE: Policy = Policy::immediate().max_attempts(4);

fn counting<E>() -> impl FnMut() -> Operation<E> {
    let mut attempt = 0;
    move || {
        attempt += 1;
        fails_thrice(attempt, 7)
    }
}

/// How many timers a run of relent starts for three delays of zero.
#[must_use]
pub fn timers() -> u32 {
    let timers = Cell::new(0);
    let clock = clock_fn(
        || SystemClock.now(),
        |wait| {
            timers.set(timers.get() + 1);
            SystemClock.sleep(wait)
        },
    );
    let run = retry(|attempt| fails_thrice::<Busy>(attempt.number(), 7), IMMEDIATE).clock(clock);
    assert!(crate::operation::poll(run).is_ok());
    timers.get()
}

/// Microseconds of wall time for each retry.
#[must_use]
pub fn walls() -> Vec<(&'static str, f64)> {
    let runtime = crate::runtime();
    macro_rules! wall {
        ($future:expr) => {
            median((0..101).map(|_| {
                let start = Instant::now();
                assert!(runtime.block_on(async { $future.await }).is_ok());
                start.elapsed().as_secs_f64() * 1e6 / 3.0
            }))
        };
    }
    let zeros = || std::iter::repeat_n(Duration::ZERO, 3);
    vec![
        ("relent", wall!(retry(|attempt| fails_thrice::<Busy>(attempt.number(), 7), IMMEDIATE))),
        ("by hand: loop, tokio sleep", wall!(by_hand())),
        (
            "backon",
            wall!(counting::<Busy>().retry(ConstantBuilder::new().with_delay(Duration::ZERO).with_max_times(3))),
        ),
        ("tokio-retry", wall!(tokio_retry::Retry::start(zeros(), counting::<Busy>()))),
        ("tokio-retry2", wall!(tokio_retry2::Retry::spawn(zeros(), counting::<tokio_retry2::RetryError<Busy>>()))),
        ("backoff", wall!(backoff::future::retry(backoff::backoff::Zero {}, counting::<backoff::Error<Busy>>()))),
        ("tryhard", wall!(tryhard::retry_fn(counting::<Busy>()).retries(3))),
    ]
}

async fn by_hand() -> Result<u64, Busy> {
    let mut attempt = 1;
    loop {
        match fails_thrice::<Busy>(attempt, 7).await {
            Err(_) if attempt < 4 => tokio::time::sleep(Duration::ZERO).await,
            result => return result,
        }
        attempt += 1;
    }
}

//! Server hints, seen through the driver.

mod common;

use std::time::Duration;

use common::{MS, SEC, Script};
use relent::clock::VirtualClock;
use relent::error::RetryAfterError;
use relent::retry::StopReason;
use relent::rng::SeededRng;
use relent::transient::parse_retry_after;
use relent::{Jitter, Policy, retry};

/// A response as a client would report it: its status, and its `Retry-After` if there was one.
#[derive(Clone, Debug, PartialEq)]
struct Status(u16, Option<&'static str>);

const NOW: Duration = Duration::from_secs(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT

/// When the attempts begin, for a client that gets this `Retry-After` once and is then served.
fn second_attempt(value: &'static str) -> Duration {
    let script = Script::new([Err(Status(429, Some(value))), Ok(())]);
    let run = retry(|_| script.call(), Policy::fixed(3 * SEC)).unmarked().clock(&script.clock);
    let run = run.retry_after(|status| status.1.and_then(|value| parse_retry_after(value, NOW)));
    script.clock.block_on(run.max_retry_after(Duration::MAX)).unwrap();
    script.calls()[1]
}

/// Field cases 70, 71 and 73: what is no valid value leaves the computed wait as it is, never zero.
#[test]
fn an_invalid_value_means_the_computed_wait() {
    for invalid in ["-1", "+5", "1.5", "", " ", "1e3", "1000abc", "120, 60", "Sun, 06 Foo 1994 08:50:37 GMT", "soon"] {
        assert_eq!(second_attempt(invalid), 3 * SEC, "{invalid:?}");
    }
    assert_eq!(second_attempt(" 120 "), 120 * SEC);
    assert_eq!(second_attempt("Sun, 06 Nov 1994 08:50:37 GMT"), 60 * SEC);
}

/// Field case 74: an hour is refused by its name, or cut to the ceiling where the caller says so.
#[test]
fn an_hour_is_refused_or_clamped() {
    let hour = 3600 * SEC;
    let script = Script::new([Err("429"), Ok(())]);
    let run = || retry(|_| script.call(), Policy::fixed(SEC).max_elapsed(120 * SEC)).retry_after(|_| Some(hour));
    let refused = script.clock.block_on(run().max_retry_after(60 * SEC).clock(&script.clock).report());
    assert_eq!((refused.attempts, refused.elapsed), (1, Duration::ZERO));
    assert_eq!(refused.stop, Some(StopReason::RetryAfterTooLong(hour)));

    let script = Script::new([Err("429"), Ok(())]);
    let run = retry(|_| script.call(), Policy::fixed(SEC).max_elapsed(120 * SEC)).retry_after(|_| Some(hour));
    let clamped = script.clock.block_on(run.clamp_retry_after(60 * SEC).clock(&script.clock).report());
    assert_eq!((clamped.attempts, clamped.elapsed, clamped.stop), (2, 60 * SEC, None));
}

/// Field case 76: a hint that cannot be met before the deadline ends the run at once. Cutting the wait would call
/// earlier than the server asked.
#[test]
fn a_hint_past_the_deadline_ends_the_run() {
    let script = Script::new([Err::<(), _>("busy"), Err("429")]);
    let run = retry(|_| script.call(), Policy::fixed(9 * SEC).max_elapsed(10 * SEC)).clock(&script.clock);
    let report = script.clock.block_on(run.retry_after(|e| (*e == "429").then_some(5 * SEC)).report());
    assert_eq!((report.attempts, report.elapsed, report.stop), (2, 9 * SEC, Some(StopReason::Deadline)));
}

/// Field case 77: a hint is a lower bound, so zero leaves the computed waits standing.
#[test]
fn a_hint_of_zero_shortens_nothing() {
    let script = Script::new([Err::<(), _>("429")]);
    let run = retry(|_| script.call(), Policy::fixed(SEC).max_attempts(10)).clock(&script.clock);
    let report = script.clock.block_on(run.retry_after(|_| Some(Duration::ZERO)).report());
    assert_eq!((report.attempts, report.elapsed), (10, 9 * SEC));
}

/// The hint raises the lower bound of the draw and keeps its spread: never early, never all at once.
#[test]
fn a_hint_keeps_the_spread() {
    let policy = Policy::exponential(SEC).jitter(Jitter::Equal).max_attempts(2);
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let script = Script::new([Err::<(), _>("429")]);
        let run = retry(|_| script.call(), policy).clock(&script.clock).rng(SeededRng::new(seed));
        let elapsed = script.clock.block_on(run.retry_after(|_| Some(10 * SEC)).report()).elapsed;
        assert!((10 * SEC..=10 * SEC + 500 * MS).contains(&elapsed), "{elapsed:?}");
        seen.insert(elapsed);
    }
    assert!(seen.len() > 100, "{}", seen.len());
}

/// A hint below the computed wait never shortens it.
#[test]
fn a_short_hint_never_shortens_the_wait() {
    for seed in 0..200 {
        let wait = |hint: Option<Duration>| {
            let script = Script::new([Err::<(), _>("429")]);
            let run = retry(|_| script.call(), Policy::exponential(SEC).max_attempts(2)).clock(&script.clock);
            script.clock.block_on(run.rng(SeededRng::new(seed)).retry_after(|_| hint).report()).elapsed
        };
        assert!(wait(Some(200 * MS)) >= wait(None));
        assert!(wait(Some(900 * MS)) >= 900 * MS);
    }
}

/// A hint is heard in the error's chain without any closure; of several, the longest counts.
#[test]
fn a_hint_is_heard_in_the_chain() {
    let clock = VirtualClock::new();
    let run =
        || retry(async |_| Err::<(), _>(RetryAfterError::new("busy", 2 * SEC)), Policy::fixed(MS).max_attempts(2));
    assert_eq!(clock.block_on(run().clock(&clock).report()).elapsed, 2 * SEC);
    let both = run().retry_after(|_| Some(3 * SEC)).clock(&clock);
    assert_eq!(clock.block_on(both.report()).elapsed, 3 * SEC);
    let shorter = run().retry_after(|_| Some(SEC)).clock(&clock);
    assert_eq!(clock.block_on(shorter.report()).elapsed, 2 * SEC);
    let ignored = run().respect_retry_after(false).clock(&clock);
    assert_eq!(clock.block_on(ignored.report()).elapsed, MS);
}

/// A hint of `Duration::MAX` always stops, whatever the ceiling; the last ceiling set counts.
#[test]
fn a_hint_without_end_stops() {
    let clock = VirtualClock::new();
    let run = || retry(async |_| Err::<(), _>("429"), Policy::fixed(MS)).retry_after(|_| Some(Duration::MAX));
    let too_long = Some(StopReason::RetryAfterTooLong(Duration::MAX));
    assert_eq!(clock.block_on(run().max_retry_after(Duration::MAX).clock(&clock).report()).stop, too_long);
    assert_eq!(clock.block_on(run().clamp_retry_after(SEC).clock(&clock).report()).stop, too_long);
    let last = run().respect_retry_after(false).max_retry_after(SEC).clock(&clock);
    assert_eq!(clock.block_on(last.report()).stop, too_long);
}

/// The reason tells what the server asked for, not what it was clamped to.
#[test]
fn a_clamp_without_end_stops_with_the_hint_itself() {
    let clock = VirtualClock::new();
    let asked = Duration::MAX.saturating_sub(SEC);
    let run = retry(async |_| Err::<(), _>("429"), Policy::fixed(SEC)).retry_after(|_| Some(asked));
    let report = clock.block_on(run.clamp_retry_after(Policy::MAX_DELAY).clock(&clock).report());
    assert_eq!(report.stop, Some(StopReason::RetryAfterTooLong(asked)));
}

//! What a consumer of a queue decides, and how long the broker holds the message.
#![allow(clippy::doc_markdown, reason = "BullMQ is a name")]

mod common;

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use common::{MS, SEC, Script};
use proptest::prelude::*;
use relent::error::{CircuitOpen, NotExecuted, RetryAfterError, Signs};
use relent::policy::{Growth, PolicyConfig, StatefulJitter};
use relent::queue::{
    DeadLetterReason::{Exhausted, Permanent},
    Disposition::{self, DeadLetter, Retry},
    Verdict, bullmq_backoff_strategy, disposition, next_attempt_at, sqs_visibility_timeout, sqs_visibility_timeout_for,
};
use relent::rng::{FixedRng, Rng, SeededRng};
use relent::{Jitter, NonRetryableError, Policy, fleet, is_final_attempt, is_final_attempt_from_attempts_made, retry};

const HALF: FixedRng = FixedRng::new(0.5);

/// The largest draw there is.
const ALMOST_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// 500 ms and 1 s, then the end.
const POLICY: Policy = Policy::exponential(Duration::from_millis(500)).jitter(Jitter::None);

fn after(policy: Policy, finished: u32, verdict: Verdict) -> Disposition {
    disposition(policy, finished, verdict, &mut HALF.clone()).unwrap()
}

/// A source that counts its draws.
struct Counting(u32);

impl Rng for Counting {
    fn next_f64(&mut self) -> f64 {
        self.0 += 1;
        0.5
    }
}

// Counters.

/// Field case 119: what BullMQ was seen to say with 3 attempts, through the helper that its column asks for.
#[test]
fn every_counter_of_bullmq_ends_the_job_after_its_third_attempt() {
    let (processor_v5, processor_v3_v4, callback, failed_event) = ([0, 1, 2], [1, 2, 3], [1, 2], [1, 2, 3]);
    let last = [false, false, true];
    assert_eq!(processor_v5.map(|made| is_final_attempt_from_attempts_made(made, 3)), last);
    assert_eq!(processor_v3_v4.map(|attempt| is_final_attempt(attempt, 3)), last);
    assert_eq!(failed_event.map(|attempt| is_final_attempt(attempt, 3)), last);

    let decided = [Retry(500 * MS), Retry(SEC), DeadLetter(Exhausted)];
    assert_eq!(processor_v5.map(|made| after(POLICY, made + 1, Verdict::Transient)), decided);
    assert_eq!(failed_event.map(|finished| after(POLICY, finished, Verdict::Transient)), decided);
    let strategy = bullmq_backoff_strategy(POLICY).unwrap();
    assert_eq!(callback.map(|k| strategy.delay(k, &mut HALF.clone())), [500 * MS, SEC]);

    // The other helper ends the job one attempt early, or not at all.
    assert_eq!(processor_v5.map(|made| is_final_attempt(made, 3)), [false, false, false]);
    assert_eq!(processor_v3_v4.map(|attempt| is_final_attempt_from_attempts_made(attempt, 3)), [false, true, true]);
}

/// Field case 121: a killed worker reports nothing, and the delivery after it is counted all the same.
#[test]
fn a_crash_counts_as_an_attempt() {
    let policy = POLICY.max_attempts(10);
    // The worker is told how often the broker has delivered the message before.
    let work = |before: u32, is_killed: bool| match after(policy, before, Verdict::Transient) {
        dead @ DeadLetter(_) => (false, Some(dead)),
        Retry(_) if is_killed => (true, None),
        Retry(_) => (true, Some(after(policy, before + 1, Verdict::Transient))),
    };
    for killed in [vec![3, 5], vec![1, 2], vec![9, 10], (1..=10).collect()] {
        let (mut delays, mut has_run) = (Vec::new(), Vec::new());
        for delivery in 1.. {
            let (ran, disposition) = work(delivery - 1, killed.contains(&delivery));
            has_run.extend(ran.then_some(delivery));
            match disposition {
                Some(DeadLetter(reason)) => {
                    assert_eq!(reason, Exhausted);
                    break;
                }
                Some(Retry(delay)) => delays.push(delay),
                None => {} // redelivered as soon as its lease is over
            }
        }
        assert_eq!(has_run, (1..=10).collect::<Vec<_>>(), "killed on {killed:?}");
        let reported = (1..10).filter(|delivery| !killed.contains(delivery));
        assert_eq!(delays, reported.map(|delivery| policy.nominal_after(delivery)).collect::<Vec<_>>());
    }
}

/// Field case 122: a policy that says nothing of attempts makes three, and what makes one says so.
#[test]
fn a_backoff_without_a_number_of_attempts_is_tried_again() {
    for policy in [Policy::fixed(100 * MS), Policy::linear(100 * MS), Policy::exponential(100 * MS), Policy::DEFAULT] {
        let decided = [1, 2, 3].map(|finished| after(policy, finished, Verdict::Transient));
        assert!(matches!(decided, [Retry(_), Retry(_), DeadLetter(Exhausted)]), "{policy}: {decided:?}");
    }
    assert_eq!(after(Policy::fixed(100 * MS).max_attempts(1), 1, Verdict::Transient), DeadLetter(Exhausted));
}

/// Field case 124: what is postponed has not failed, so only a ceiling on starts can end it.
#[test]
fn a_message_that_is_forever_postponed_is_ended_by_its_starts() {
    const MOST_STARTS: u32 = 20;
    let (mut starts, mut now) = (Vec::new(), Duration::ZERO);
    // Nothing has finished, so the policy's three attempts are never used up.
    while let Retry(delay) = after(POLICY, 0, Verdict::RetryAfter(SEC)) {
        starts.push(now);
        if is_final_attempt(u32::try_from(starts.len()).unwrap(), MOST_STARTS) {
            break;
        }
        now += delay;
    }
    assert_eq!(starts, (0..20).map(Duration::from_secs).collect::<Vec<_>>());
}

/// Field case 128: three retries of 5 s are four runs.
#[test]
fn a_delay_does_not_take_the_retries_away() {
    let policy = Policy::fixed(5 * SEC).max_attempts(4);
    let mut runs = vec![Duration::ZERO];
    while let Retry(delay) = after(policy, u32::try_from(runs.len()).unwrap(), Verdict::Transient) {
        runs.push(runs[runs.len() - 1] + delay);
    }
    assert_eq!(runs, [0, 5, 10, 15].map(Duration::from_secs));
}

// The disposition.

#[test]
fn a_disposition_for_every_verdict_and_count() {
    let (transient, permanent) = (Verdict::Transient, Verdict::Permanent);
    let bounded = POLICY.max_attempts(3);
    for (policy, finished, verdict, expected) in [
        (bounded, 0, transient, Retry(Duration::ZERO)),
        (bounded, 1, transient, Retry(500 * MS)),
        (bounded, 2, transient, Retry(SEC)),
        (bounded, 3, transient, DeadLetter(Exhausted)),
        (bounded, 4, transient, DeadLetter(Exhausted)),
        (bounded, u32::MAX, transient, DeadLetter(Exhausted)),
        (bounded, 0, permanent, DeadLetter(Permanent)),
        (bounded, 1, permanent, DeadLetter(Permanent)),
        (bounded, 3, permanent, DeadLetter(Permanent)),
        (bounded, 1, Verdict::RetryAfter(Duration::ZERO), Retry(500 * MS)),
        (bounded, 1, Verdict::RetryAfter(499 * MS), Retry(500 * MS)),
        (bounded, 1, Verdict::RetryAfter(86_400 * SEC), Retry(86_400 * SEC)),
        (bounded, 1, Verdict::RetryAfter(Duration::MAX), DeadLetter(Permanent)),
        (bounded, 3, Verdict::RetryAfter(SEC), DeadLetter(Exhausted)),
        (POLICY.max_attempts(1), 1, transient, DeadLetter(Exhausted)),
        (POLICY.unbounded(), 7, transient, Retry(30 * SEC)),
        (POLICY.unbounded(), u32::MAX, transient, Retry(30 * SEC)),
        (POLICY.unbounded(), u32::MAX, permanent, DeadLetter(Permanent)),
    ] {
        assert_eq!(after(policy, finished, verdict), expected, "{policy}, {finished} finished, {verdict:?}");
    }
    assert_eq!(Exhausted.to_string(), "attempts used up");
    assert_eq!(Permanent.to_string(), "permanent failure");
}

/// Those who were told to wait for the same time do not come back in the same instant.
#[test]
fn a_hint_keeps_the_spread_of_the_policy() {
    let policy = Policy::fixed(10 * SEC).jitter(Jitter::Equal);
    let delay = |draw| disposition(policy, 1, Verdict::RetryAfter(60 * SEC), &mut FixedRng::new(draw));
    assert_eq!(delay(0.0), Ok(Retry(60 * SEC)));
    assert_eq!(delay(0.5), Ok(Retry(62_500 * MS)));
    assert_eq!(delay(ALMOST_ONE), Ok(Retry(65 * SEC)));
}

#[test]
fn a_verdict_is_read_from_the_markers_wherever_they_stand() {
    #[derive(Debug)]
    struct Handler(Box<dyn Error + Send + Sync>);
    impl fmt::Display for Handler {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("handler failed")
        }
    }
    impl Error for Handler {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&*self.0)
        }
    }

    let malformed = || NonRetryableError::new("malformed");
    assert_eq!(Verdict::of(&malformed()), Verdict::Permanent);
    assert_eq!(Verdict::of(&Handler(Box::new(malformed()))), Verdict::Permanent);
    assert_eq!(Verdict::of(&io::Error::other(Handler(Box::new(malformed())))), Verdict::Permanent);
    assert_eq!(Verdict::of(&Box::<dyn Error + Send + Sync>::from(malformed())), Verdict::Permanent);
    assert_eq!(Verdict::of(&Box::<dyn Error>::from(malformed())), Verdict::Permanent);
    assert_eq!(Verdict::of(&RetryAfterError::new(malformed(), SEC)), Verdict::Permanent);

    let busy = RetryAfterError::new("busy", 90 * SEC);
    assert_eq!(Verdict::of(&Handler(Box::new(busy))), Verdict::RetryAfter(90 * SEC));
    assert_eq!(Verdict::of(&CircuitOpen::new("payments", 3 * SEC)), Verdict::RetryAfter(3 * SEC));

    for transient in [io::Error::other("reset"), io::Error::other(NotExecuted::new("no connection"))] {
        assert_eq!(Verdict::of(&transient), Verdict::Transient);
        let error: &(dyn Error + 'static) = &transient;
        assert_eq!(Verdict::from(Signs::of(error)), Verdict::Transient);
    }
    assert_eq!(Verdict::of(&"reset"), Verdict::Transient);
    assert_eq!(Verdict::of(&()), Verdict::Transient);
}

#[test]
fn a_count_without_a_memory_refuses_decorrelated_jitter() {
    const STATEFUL: Policy = POLICY.jitter(Jitter::Decorrelated);
    let refusal = bullmq_backoff_strategy(STATEFUL).unwrap_err();
    assert_eq!(refusal.to_string(), "decorrelated jitter has no delay without the one before it");
    let refuses = |refused: Option<StatefulJitter>| assert_eq!(refused, Some(refusal));
    for count in [0, 1, 2, 3, u32::MAX] {
        refuses(next_attempt_at(SEC, STATEFUL, count, &mut HALF.clone()).err());
        refuses(sqs_visibility_timeout(STATEFUL, count, SEC, &mut HALF.clone()).err());
        refuses(sqs_visibility_timeout(STATEFUL, count, Duration::MAX, &mut HALF.clone()).err());
        for verdict in [Verdict::Transient, Verdict::Permanent, Verdict::RetryAfter(SEC)] {
            refuses(disposition(STATEFUL, count, verdict, &mut HALF.clone()).err());
        }
    }
}

#[test]
fn one_draw_for_each_call_and_none_without_jitter() {
    for (jitter, each) in [(Jitter::None, 0), (Jitter::Full, 1), (Jitter::Equal, 1), (Jitter::Downward(0.1), 1)] {
        let (policy, mut rng) = (POLICY.jitter(jitter), Counting(0));
        let _ = disposition(policy, 1, Verdict::RetryAfter(SEC), &mut rng).unwrap();
        next_attempt_at(SEC, policy, 1, &mut rng).unwrap();
        sqs_visibility_timeout(policy, 1, SEC, &mut rng).unwrap();
        let _ = bullmq_backoff_strategy(policy).unwrap().delay(1, &mut rng);
        assert_eq!(rng.0, 4 * each, "{jitter:?}");
    }
}

/// One policy means the same in a queue as in a run: the same waits, the same number of attempts.
#[test]
fn a_queue_waits_what_a_run_would_wait() {
    let jitters = [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Proportional(0.3), Jitter::Downward(0.7)];
    for (seed, jitter) in (1..).zip(jitters) {
        for hint in [None, Some(Duration::ZERO), Some(700 * MS), Some(100 * SEC)] {
            let policy = Policy::exponential(500 * MS).max_delay(10 * SEC).jitter(jitter).max_attempts(9);
            let (verdict, script) =
                (hint.map_or(Verdict::Transient, Verdict::RetryAfter), Script::new([Err::<(), _>("E")]));
            let run = retry(|_| script.call(), policy).retry_after(|_| hint).rng(SeededRng::new(seed));
            script.clock.block_on(run.clock(&script.clock)).unwrap_err();

            let (mut rng, mut due) = (SeededRng::new(seed), vec![Duration::ZERO]);
            while let Retry(delay) = disposition(policy, u32::try_from(due.len()).unwrap(), verdict, &mut rng).unwrap()
            {
                due.push(due[due.len() - 1] + delay);
            }
            assert_eq!(due, script.calls(), "{policy}, {hint:?}");
            assert_eq!(due.len(), 9);
        }
    }
}

// Schedulers that keep points in time.

#[test]
fn an_outbox_row_cools_down_by_a_minute_more_each_time() {
    let now = Duration::from_secs(1_700_000_000);
    let due = |policy, finished| next_attempt_at(now, policy, finished, &mut HALF.clone()).unwrap();
    let cooldown = Policy::linear(60 * SEC);
    assert_eq!([0, 1, 2, 3].map(|n| due(cooldown, n)), [0, 60, 120, 180].map(|seconds| now + seconds * SEC));
    assert_eq!(due(cooldown.max_attempts(1), 5), now + 300 * SEC); // whether it is tried again is not asked here
}

#[test]
fn a_point_in_time_saturates() {
    let forever = Policy::exponential(SEC).uncapped();
    assert_eq!(next_attempt_at(Duration::MAX, forever, 1, &mut HALF.clone()), Ok(Duration::MAX));
    let at_most = next_attempt_at(SEC, forever.jitter(Jitter::None), u32::MAX, &mut HALF.clone());
    assert_eq!(at_most, Ok(Policy::MAX_DELAY + SEC));
}

// BullMQ.

/// `round(2^(a-1)·d)`, of which the fraction `j` is drawn: BullMQ's exponential strategy.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "never negative, and below 2^64")]
fn bullmq(d: f64, a: i32, j: f64, r: f64) -> Duration {
    let most = (2_f64.powi(a - 1) * d).round();
    Duration::from_millis((r * most * j + most * (1.0 - j)).floor() as u64)
}

fn strategy(d: Duration, j: f64, a: u32, draw: f64) -> Duration {
    let policy = Policy::exponential(d).uncapped().jitter(Jitter::Downward(j));
    bullmq_backoff_strategy(policy).unwrap().delay(a, &mut FixedRng::new(draw))
}

#[test]
fn bullmq_without_jitter_is_the_same() {
    let delays = [1, 2, 3, 4, 5, 6, 7, 8].map(|a| strategy(SEC, 0.0, a, 0.5));
    assert_eq!(delays, [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000].map(Duration::from_millis));
    assert_eq!(strategy(3 * SEC, 0.0, 7, 0.5), 192 * SEC);
}

/// A draw runs the other way, and what is rounded down there is rounded half up here.
#[test]
fn bullmq_with_jitter_is_the_same_within_a_millisecond() {
    for (d, a, j, r, expected) in [
        (3000, 7, 0.5, 0.0, 96_000),
        (3000, 7, 0.5, 0.5, 144_000),
        (3000, 7, 0.5, ALMOST_ONE, 191_999),
        (1000, 2, 0.2, 0.0, 1600),
        (1000, 2, 0.2, 0.25, 1700),
        (1000, 2, 0.2, 0.5, 1800),
        (1000, 2, 0.2, 0.75, 1900),
        (1000, 2, 0.2, 0.999, 1999),
    ] {
        let delay = strategy(Duration::from_millis(d), j, a, 1.0 - r);
        assert!(delay.abs_diff(Duration::from_millis(expected)) <= MS, "{d}, {a}, {j}, {r}: {delay:?}");
    }
}

/// The consumer whose counter was incremented before the delay was computed: preserved, its first wait is twice the
/// declared base; put right, it is the base.
#[test]
fn the_first_delay_is_the_base() {
    let fleet::SiteSchedule::Fixed(preserved) = fleet::get("approval-consumer").unwrap().schedule else {
        unreachable!()
    };
    let declared = Policy::exponential(250 * MS).max_delay(60 * SEC).jitter(Jitter::None).max_attempts(5);
    let delays = |policy| [1, 2, 3].map(|k| bullmq_backoff_strategy(policy).unwrap().delay(k, &mut HALF.clone()));
    assert_eq!(delays(preserved), [500 * MS, SEC, 2 * SEC]);
    assert_eq!(delays(declared), [250 * MS, 500 * MS, SEC]);
}

// SQS.

/// Field case 125, and the limits on either side of it.
#[test]
fn sqs_counts_from_now_and_ends_twelve_hours_after_the_receive() {
    let (seconds, ns) = (Duration::from_secs, Duration::from_nanos(1));
    for (delay, since_receive, expected) in [
        (seconds(43_200), seconds(60), Some(43_139)),
        (seconds(41_000), seconds(3600), Some(39_599)),
        (seconds(50_000), seconds(0), Some(43_199)),
        (400 * MS, seconds(0), Some(1)),
        (seconds(0), seconds(0), Some(0)),
        (ns, seconds(0), Some(1)),
        (seconds(2), seconds(0), Some(2)),
        (seconds(2) + ns, seconds(0), Some(3)),
        (seconds(43_199), ns, Some(43_198)),
        (seconds(10), seconds(43_188), Some(10)),
        (seconds(10), seconds(43_189), Some(10)),
        (seconds(10), seconds(43_190), Some(9)),
        (seconds(10), seconds(43_198), Some(1)),
        (seconds(10), seconds(43_198) + ns, None),
        (seconds(0), seconds(43_199), None),
        (seconds(10), seconds(43_200), None),
        (seconds(10), Duration::MAX, None),
        (Duration::MAX, seconds(0), Some(43_199)),
    ] {
        assert_eq!(sqs_visibility_timeout_for(delay, since_receive), expected, "{delay:?} after {since_receive:?}");
    }
}

#[test]
fn sqs_counts_the_receive_in_hand() {
    let timeout = |receives| sqs_visibility_timeout(POLICY, receives, SEC, &mut HALF.clone()).unwrap();
    assert_eq!([1, 2, 3, 4].map(timeout), [Some(1), Some(1), Some(2), Some(4)]);
    assert_eq!(timeout(0), Some(0));
    assert_eq!(timeout(u32::MAX), Some(30));
    let day = Policy::fixed(86_400 * SEC);
    assert_eq!(sqs_visibility_timeout(day, 1, 60 * SEC, &mut HALF.clone()), Ok(Some(43_139)));
    assert_eq!(sqs_visibility_timeout(day, 1, 43_199 * SEC, &mut HALF.clone()), Ok(None));
}

/// Field case 127: a lease is extended by the same time from each call on, so a crash after an hour hides the message
/// for one extension more and not for another hour.
#[test]
fn sqs_extensions_do_not_grow_with_the_time_that_has_passed() {
    let lease = Policy::fixed(60 * SEC);
    let extend = |since_receive| {
        let timeout = sqs_visibility_timeout(lease, 1, since_receive, &mut HALF.clone()).unwrap();
        assert_eq!(timeout, sqs_visibility_timeout_for(60 * SEC, since_receive), "the same call");
        timeout
    };
    let until_the_crash = (0..=3600).step_by(30).map(|seconds| extend(Duration::from_secs(seconds)));
    assert_eq!(until_the_crash.collect::<HashSet<_>>(), HashSet::from([Some(60)]), "seconds from now, a constant");
    // Until the twelve hours end, which cut the last of them.
    let last = [43_138, 43_139, 43_140, 43_170, 43_198, 43_199].map(|seconds| extend(Duration::from_secs(seconds)));
    assert_eq!(last, [Some(60), Some(60), Some(59), Some(29), Some(1), None]);
}

// Properties.

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        (0.0..=1.0).prop_map(Jitter::Proportional),
        (0.0..=1.0).prop_map(Jitter::Downward),
    ]
}

prop_compose! {
    fn policy()(
        growth in prop_oneof![Just(Growth::Fixed), Just(Growth::Linear), (1.0..10.0).prop_map(Growth::Exponential)],
        base in 0..10_000_u64,
        max_delay in proptest::option::of((0..100_000_u64).prop_map(Duration::from_millis)),
        jitter in jitter(),
        max_attempts in prop_oneof![0..10_u32, any::<u32>()],
        allow_jitter_above_cap: bool,
    ) -> Policy {
        let (base, jitter) = (Duration::from_millis(base), Some(jitter));
        PolicyConfig { growth, base, max_delay, jitter, max_attempts, max_elapsed: None, allow_jitter_above_cap }
            .try_into()
            .unwrap()
    }
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![0..12_u32, any::<u32>()]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..50_000_000_u64).prop_map(Duration::from_millis),
        any::<(u64, u32)>()
            .prop_map(|(secs, nanos)| Duration::from_secs(secs).saturating_add(Duration::from_nanos(nanos.into()))),
        Just(Duration::MAX),
    ]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![Just(Verdict::Transient), Just(Verdict::Permanent), duration().prop_map(Verdict::RetryAfter)]
}

/// A message is not to blame for a breaker that is held open, and a wait without end is none.
#[test]
fn a_message_outlives_a_forced_breaker_and_no_endless_wait() {
    let held = CircuitOpen::new("db", Duration::MAX);
    assert_eq!(after(POLICY, 1, Verdict::of(&held)), Retry(500 * MS));
    assert_eq!(after(POLICY, 1, Verdict::of(&NonRetryableError::new(held))), DeadLetter(Permanent));
    assert_eq!(after(POLICY, 1, Verdict::of(&RetryAfterError::new("gone", Duration::MAX))), DeadLetter(Permanent));

    let hint = relent::transient::parse_retry_after("99999999999999999999", Duration::ZERO).unwrap();
    assert_eq!(after(POLICY, 1, Verdict::RetryAfter(hint)), DeadLetter(Permanent));
    let endless = POLICY.uncapped().max_attempts(100);
    assert_eq!(after(endless, 70, Verdict::Transient), DeadLetter(Exhausted));
    let Retry(long) = after(endless, 50, Verdict::Transient) else { panic!("it ends") };
    assert!(std::time::UNIX_EPOCH.checked_add(long).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// For any policy, count, verdict and source, broken ones included.
    #[test]
    fn a_disposition_keeps_its_promises(
        policy in policy(), finished in count(), verdict in verdict(), draw in proptest::num::f64::ANY,
    ) {
        let used_up = policy.attempts() != 0 && finished >= policy.attempts();
        let (shortest, longest) = policy.bounds_after(finished);
        let (floor, latest) = match verdict {
            Verdict::RetryAfter(hint) => (hint, longest.max(hint.saturating_add(longest.abs_diff(shortest)))),
            _ => (Duration::ZERO, longest),
        };
        match disposition(policy, finished, verdict, &mut FixedRng::new(draw)).unwrap() {
            DeadLetter(Permanent) if verdict == Verdict::Permanent => {}
            DeadLetter(Permanent) => prop_assert!(latest >= Policy::MAX_DELAY && longest < latest),
            DeadLetter(reason) => {
                prop_assert_eq!(reason, Exhausted);
                prop_assert!(verdict != Verdict::Permanent && (used_up || longest >= Policy::MAX_DELAY));
                prop_assert!(floor < Policy::MAX_DELAY || longest >= Policy::MAX_DELAY);
            }
            Retry(delay) => {
                prop_assert!(!used_up && verdict != Verdict::Permanent && delay < Policy::MAX_DELAY);
                prop_assert!(floor.max(shortest) <= delay && delay <= latest);
            }
        }
    }

    /// A disposition, a point in time and a strategy say the same.
    #[test]
    fn the_helpers_agree(policy in policy(), finished in count(), draw in proptest::num::f64::ANY, now in duration()) {
        let mut rng = FixedRng::new(draw);
        let delay = policy.delay_after(finished, draw).unwrap();
        let decided = disposition(policy.unbounded(), finished, Verdict::Transient, &mut rng);
        let expected = if delay < Policy::MAX_DELAY { Retry(delay) } else { DeadLetter(Exhausted) };
        prop_assert_eq!(decided, Ok(expected));
        prop_assert_eq!(next_attempt_at(now, policy, finished, &mut rng), Ok(now.saturating_add(delay)));
        prop_assert_eq!(bullmq_backoff_strategy(policy).unwrap().delay(finished, &mut rng), delay);
        let timeout = sqs_visibility_timeout(policy, finished, now, &mut rng);
        prop_assert_eq!(timeout, Ok(sqs_visibility_timeout_for(delay, now)));
    }

    /// What SQS is given is whole seconds, never too short unless the 12 hours cut it, and never refused.
    #[test]
    fn a_visibility_timeout_is_one_that_sqs_accepts(delay in duration(), since_receive in duration()) {
        let limit = Duration::from_secs(43_200);
        match sqs_visibility_timeout_for(delay, since_receive).map(|timeout| Duration::from_secs(timeout.into())) {
            Some(timeout) => {
                let end = since_receive + timeout;
                prop_assert!(end + SEC <= limit, "ends after {end:?}");
                prop_assert!(timeout >= delay || end + 2 * SEC > limit, "{timeout:?} is too short");
                prop_assert!(timeout < delay.saturating_add(SEC), "{timeout:?} is too long");
            }
            None => prop_assert!(since_receive.saturating_add(2 * SEC) > limit),
        }
    }

    #[test]
    fn bullmq_is_met_within_a_millisecond(d in 1..100_000_u32, a in 1..31_i32, j in 0.0..=1.0_f64, r in 0.0..1.0_f64) {
        let theirs = bullmq(d.into(), a, j, r);
        let ours = strategy(Duration::from_millis(d.into()), j, a.unsigned_abs(), 1.0 - r);
        prop_assert!(ours.abs_diff(theirs) <= MS, "{ours:?}, not {theirs:?}");
    }
}

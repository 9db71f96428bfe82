//! The drivers, held against each other and against a plain loop that knows nothing of the crate's arithmetic or
//! decision: the same calls at the same times, the same draws taken, and the same end.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use relent::blocking::{self, StopFlag};
use relent::clock::{Clock, InstantClock, VirtualClock};
use relent::error::{NotExecuted, RetryAfterError};
use relent::levels::{Level, Levels};
use relent::retry::{Report, StopReason};
use relent::rng::rng_fn;
use relent::schedule::{Schedule, schedule_fn};
use relent::{Attempt, Jitter, NonRetryableError, Policy, retry};

/// Everything that a run depends on.
#[derive(Clone, Debug)]
struct Case {
    schedule: Plan,
    max_attempts: Option<u32>,
    max_elapsed: Option<Duration>,
    hint_limit: HintLimit,
    idempotent: bool,
    /// The attempts, each with how long it takes; after the last, attempts succeed.
    attempts: Vec<(Duration, Result<(), Fault>)>,
    /// The attempt during which the stop comes, if any.
    stop_during: Option<u32>,
    /// Used in turn, and again from the start.
    draws: Vec<f64>,
}

/// A schedule as its parts.
#[derive(Clone, Debug)]
enum Plan {
    Policy(Parts),
    List(Vec<Duration>),
    /// What a closure answers, by the failure; `None` after the last.
    Closure(Vec<Option<Duration>>),
    Levels(Vec<LevelParts>),
}

#[derive(Clone, Debug)]
struct Parts {
    growth: Growth,
    base: u32,
    cap: Option<u32>,
    jitter: Jitter,
    above_cap: bool,
    max_attempts: u32,
    max_elapsed: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum Growth {
    Fixed,
    Linear,
    Exponential(f64),
}

#[derive(Clone, Debug)]
struct LevelParts {
    count: u32,
    delay: Option<u32>,
    factor: f64,
    increment: i32,
    jitter: f64,
    cap: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
enum HintLimit {
    Default,
    Refuse(Duration),
    Clamp(Duration),
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Marker {
    None,
    NotRetryable,
    NotExecuted,
    RetryAfter(Duration),
}

/// What an attempt fails with.
#[derive(Clone, Copy, Debug)]
struct Fault {
    is_wanted: bool,
    hint: Option<Duration>,
    marker: Marker,
}

/// The same as an error, its marker in its chain.
#[derive(Debug)]
struct Failed {
    fault: Fault,
    marker: Option<Box<dyn Error + Send + Sync>>,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let marker: Option<Box<dyn Error + Send + Sync>> = match fault.marker {
            Marker::None => None,
            Marker::NotRetryable => Some(NonRetryableError::new("no such user").into()),
            Marker::NotExecuted => Some(NotExecuted::new("no connection").into()),
            Marker::RetryAfter(wait) => Some(RetryAfterError::new("busy", wait).into()),
        };
        Self { fault, marker }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.marker.as_deref().map(|marker| marker as _)
    }
}

/// One call of the operation: when, its number, the attempts allowed, the wait before it, the time left.
type Call = (Duration, u32, u32, Duration, Option<Duration>);

/// What a run did.
#[derive(Debug, PartialEq)]
struct Trace {
    calls: Vec<Call>,
    draws: usize,
    succeeded: bool,
    stop: Option<StopReason>,
    elapsed: Duration,
}

// The reference.

/// A schedule worked out step by step, in milliseconds.
#[derive(Default)]
struct Steps {
    failures: u32,
    previous: f64,
    level: usize,
    level_failures: u32,
}

fn to_whole_ms(ms: f64) -> Duration {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
    Duration::from_millis((ms.max(0.0) + 0.5).floor() as u64)
}

impl Steps {
    /// The next wait, and the shortest that it could have been.
    fn next(&mut self, plan: &Plan, draw: impl FnMut() -> f64) -> Option<(Duration, Duration)> {
        self.failures += 1;
        self.level_failures += 1;
        match plan {
            Plan::Policy(parts) => Some(self.policy(parts, draw)),
            Plan::List(waits) => waits.get(self.failures as usize - 1).map(|wait| (*wait, *wait)),
            Plan::Closure(waits) => waits.get(self.failures as usize - 1).copied().flatten().map(|wait| (wait, wait)),
            Plan::Levels(levels) => self.levels(levels, draw),
        }
    }

    fn policy(&mut self, parts: &Parts, mut draw: impl FnMut() -> f64) -> (Duration, Duration) {
        let base = f64::from(parts.base);
        let cap = parts.cap.map_or(f64::INFINITY, f64::from);
        let mut grown = base;
        for step in 1..self.failures {
            match parts.growth {
                Growth::Fixed => {}
                Growth::Linear => grown = base * f64::from(step + 1),
                Growth::Exponential(multiplier) => grown *= multiplier,
            }
        }
        let nominal = grown.min(cap);
        let (low, width) = match parts.jitter {
            Jitter::None => (nominal, 0.0),
            Jitter::Full => (0.0, nominal),
            Jitter::Equal => (nominal / 2.0, nominal / 2.0),
            Jitter::Proportional(p) => (nominal * (1.0 - p), nominal * p * 2.0),
            Jitter::Downward(f) => (nominal, -nominal * f),
            Jitter::Decorrelated => {
                let previous = if self.failures == 1 { base } else { self.previous };
                (base.min(cap), 3.0 * previous.min(cap) - base.min(cap))
            }
            other => unreachable!("{other:?}"),
        };
        let clamped = |delay: f64| if parts.above_cap { delay } else { delay.min(cap) };
        let delay = clamped(if parts.jitter == Jitter::None { nominal } else { low + draw() * width });
        self.previous = delay;
        (to_whole_ms(delay), to_whole_ms(clamped(low).min(clamped(low + width))))
    }

    fn levels(&mut self, levels: &[LevelParts], mut draw: impl FnMut() -> f64) -> Option<(Duration, Duration)> {
        if self.level_failures > levels[self.level].count {
            self.level += 1;
            self.level_failures = 1;
        }
        let level = levels.get(self.level)?;
        let delay = match level.delay {
            Some(delay) if self.level_failures == 1 => f64::from(delay),
            _ => self.previous * level.factor + f64::from(level.increment),
        };
        let delay = delay.max(0.0).min(level.cap.map_or(f64::INFINITY, f64::from));
        self.previous = delay;
        let taken = if level.jitter > 0.0 { draw() * level.jitter } else { 0.0 };
        Some((to_whole_ms(delay - delay * taken), to_whole_ms(delay - delay * level.jitter)))
    }
}

/// How many attempts the plan allows by itself, 0 for any number, and whether that is the length of a list.
fn attempts_of(plan: &Plan) -> (u32, Option<u32>) {
    match plan {
        Plan::Policy(parts) => (parts.max_attempts, None),
        Plan::List(waits) => (0, Some(u32::try_from(waits.len()).unwrap() + 1)),
        Plan::Closure(_) => (0, None),
        Plan::Levels(levels) => (0, Some(levels.iter().map(|level| level.count).sum::<u32>() + 1)),
    }
}

fn reference(case: &Case) -> Trace {
    let (own, listed) = attempts_of(&case.schedule);
    let limit = case.max_attempts.unwrap_or(own);
    let max_attempts = match listed {
        Some(listed) if limit == 0 || listed < limit => listed,
        _ => limit,
    };
    let own_elapsed = if let Plan::Policy(parts) = &case.schedule { parts.max_elapsed } else { None };
    let deadline = case.max_elapsed.or(own_elapsed);

    let (mut now, mut previous_wait) = (Duration::ZERO, Duration::ZERO);
    let (mut steps, mut calls, mut draws) = (Steps::default(), Vec::new(), 0);
    let mut attempts = case.attempts.iter();
    let stop = loop {
        let number = u32::try_from(calls.len()).unwrap() + 1;
        let left = deadline.map(|deadline| deadline.saturating_sub(now));
        calls.push((now, number, max_attempts, previous_wait, left));
        let Some((takes, result)) = attempts.next() else { break None };
        now += *takes;
        let Err(fault) = result else { break None };

        if fault.marker == Marker::NotRetryable {
            break Some(StopReason::NotRetryable);
        }
        if !fault.is_wanted {
            break Some(StopReason::Declined);
        }
        if !case.idempotent && fault.marker != Marker::NotExecuted {
            break Some(StopReason::NotIdempotent);
        }
        if number == max_attempts {
            break Some(StopReason::Exhausted);
        }
        let draw = || {
            draws += 1;
            case.draws[(draws - 1) % case.draws.len()]
        };
        let (mut wait, shortest) = match steps.next(&case.schedule, draw) {
            None | Some((Duration::MAX, _)) => break Some(StopReason::ScheduleEnded),
            Some(next) => next,
        };
        let marked = if let Marker::RetryAfter(hint) = fault.marker { Some(hint) } else { None };
        let (ceiling, refuses) = match case.hint_limit {
            HintLimit::Default => (Duration::from_secs(300), true),
            HintLimit::Refuse(ceiling) => (ceiling, true),
            HintLimit::Clamp(ceiling) => (ceiling, false),
            HintLimit::Ignore => (Duration::ZERO, false),
        };
        if let (Some(hint), false) = (fault.hint.max(marked), matches!(case.hint_limit, HintLimit::Ignore)) {
            if hint == Duration::MAX || (refuses && hint > ceiling) {
                break Some(StopReason::RetryAfterTooLong(hint));
            }
            wait = wait.max(hint.min(ceiling) + wait.checked_sub(shortest).unwrap());
        }
        if deadline.is_some_and(|deadline| now + wait > deadline) {
            break Some(StopReason::Deadline);
        }
        if case.stop_during.is_some_and(|attempt| attempt <= number) {
            break Some(StopReason::Cancelled);
        }
        now += wait;
        previous_wait = wait;
    };
    Trace { calls, draws, succeeded: stop.is_none(), stop, elapsed: now }
}

// The drivers.

fn schedule(plan: &Plan) -> Box<dyn Schedule> {
    let ms = |ms: u32| Duration::from_millis(ms.into());
    match plan.clone() {
        Plan::Policy(parts) => {
            let policy = match parts.growth {
                Growth::Fixed => Policy::fixed(ms(parts.base)),
                Growth::Linear => Policy::linear(ms(parts.base)),
                Growth::Exponential(multiplier) => Policy::exponential(ms(parts.base)).multiplier(multiplier),
            };
            let policy = parts.cap.map_or(policy.uncapped(), |cap| policy.max_delay(ms(cap)));
            let policy = policy.jitter(parts.jitter).allow_jitter_above_cap(parts.above_cap);
            let policy = policy.max_attempts(parts.max_attempts);
            Box::new(parts.max_elapsed.map_or(policy, |limit| policy.max_elapsed(limit)))
        }
        Plan::List(waits) => Box::new(waits),
        Plan::Closure(waits) => {
            Box::new(schedule_fn(move |failures| waits.get(failures as usize - 1).copied().flatten()))
        }
        Plan::Levels(levels) => {
            let level = |parts: &LevelParts| {
                let level = Level::new(parts.count).factor(parts.factor).increment_ms(parts.increment.into());
                let level = level.jitter(parts.jitter);
                let level = parts.delay.map_or(level, |delay| level.delay(ms(delay)));
                parts.cap.map_or(level, |cap| level.max_delay(ms(cap)))
            };
            Box::new(Levels::try_from(levels.iter().map(level).collect::<Vec<_>>()).unwrap())
        }
    }
}

/// What an operation of the case sees and does, whoever calls it.
struct Stage<'a> {
    case: &'a Case,
    calls: RefCell<Vec<Call>>,
    draws: Cell<usize>,
    flag: StopFlag,
}

impl<'a> Stage<'a> {
    fn new(case: &'a Case) -> Self {
        Self { case, calls: RefCell::default(), draws: Cell::new(0), flag: StopFlag::new() }
    }

    /// An attempt begins: how long it takes, and how it will end.
    fn enter(&self, now: Duration, attempt: Attempt) -> (Duration, Result<(), Fault>) {
        let call = (now, attempt.number(), attempt.max_attempts(), attempt.previous_delay(), attempt.remaining());
        self.calls.borrow_mut().push(call);
        let index = attempt.number() as usize - 1;
        self.case.attempts.get(index).copied().unwrap_or((Duration::ZERO, Ok(())))
    }

    /// It is about to end.
    fn leave(&self, attempt: Attempt, result: Result<(), Fault>) -> Result<(), Failed> {
        if self.case.stop_during == Some(attempt.number()) {
            self.flag.stop();
        }
        result.map_err(Failed::from)
    }

    fn draw(&self) -> f64 {
        let draws = self.draws.get();
        self.draws.set(draws + 1);
        self.case.draws[draws % self.case.draws.len()]
    }

    fn trace(self, report: &Report<(), Failed>) -> Trace {
        let calls = self.calls.take();
        assert_eq!(report.attempts as usize, calls.len());
        Trace {
            calls,
            draws: self.draws.get(),
            succeeded: report.result.is_ok(),
            stop: report.stop,
            elapsed: report.elapsed,
        }
    }
}

/// Gives a run all that the case asks for, and finishes it: the same words for either driver, on runs of many types.
macro_rules! built {
    ($run:ident, $stage:ident => $finish:expr) => {{
        let (stage, case) = (&$stage, $stage.case);
        let $run = $run.when(|e: &Failed| e.fault.is_wanted).retry_after(|e: &Failed| e.fault.hint);
        let $run = match case.hint_limit {
            HintLimit::Default => $run.respect_retry_after(true),
            HintLimit::Refuse(ceiling) => $run.max_retry_after(ceiling),
            HintLimit::Clamp(ceiling) => $run.clamp_retry_after(ceiling),
            HintLimit::Ignore => $run.respect_retry_after(false),
        };
        let $run = $run.idempotent(case.idempotent).rng(rng_fn(|| stage.draw())).cancel_on(&stage.flag);
        match (case.max_attempts, case.max_elapsed) {
            (None, None) => {
                let $run = $run.report();
                $finish
            }
            (Some(attempts), None) => {
                let $run = $run.max_attempts(attempts).report();
                $finish
            }
            (None, Some(limit)) => {
                let $run = $run.max_elapsed(limit).report();
                $finish
            }
            (Some(attempts), Some(limit)) => {
                let $run = $run.max_attempts(attempts).max_elapsed(limit).report();
                $finish
            }
        }
    }};
}

fn by_the_async_driver(case: &Case) -> Trace {
    let (stage, clock) = (Stage::new(case), VirtualClock::new());
    let op = async |attempt| {
        let (takes, result) = stage.enter(clock.now(), attempt);
        clock.sleep(takes).await;
        stage.leave(attempt, result)
    };
    let run = retry(op, schedule(&case.schedule)).clock(&clock);
    let report = built!(run, stage => clock.block_on(run));
    stage.trace(&report)
}

fn by_the_blocking_driver(case: &Case) -> Trace {
    let (stage, clock) = (Stage::new(case), InstantClock::new());
    let op = |attempt| {
        let (takes, result) = stage.enter(clock.now(), attempt);
        clock.advance(takes);
        stage.leave(attempt, result)
    };
    let run = blocking::retry(op, schedule(&case.schedule)).clock(&clock);
    let report = built!(run, stage => run.call());
    stage.trace(&report)
}

// The cases. Fractions of powers of two and short runs keep the arithmetic exact, so that no formula rounds differently
// from another that means the same.

fn fraction() -> impl Strategy<Value = f64> {
    (0..=16_u32).prop_map(|sixteenths| f64::from(sixteenths) / 16.0)
}

/// Waits and limits that meet now and then.
fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        6 => (0..40_u64).prop_map(|tenths| Duration::from_millis(tenths * 100)),
        3 => (0..400_000_u64).prop_map(Duration::from_millis),
        1 => (0..5_000_u64).prop_map(Duration::from_micros),
        1 => Just(Duration::MAX),
    ]
}

fn short() -> impl Strategy<Value = Duration> {
    duration().prop_map(|duration| if duration == Duration::MAX { Duration::ZERO } else { duration })
}

fn base() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0), 6 => 1..2_000_u32]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        fraction().prop_map(Jitter::Proportional),
        fraction().prop_map(Jitter::Downward),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let growth = prop_oneof![
        Just(Growth::Fixed),
        Just(Growth::Linear),
        prop_oneof![Just(1.0), Just(1.5), Just(2.0), Just(3.0)].prop_map(Growth::Exponential),
    ];
    let parts = (growth, base(), option::of(base()), jitter(), any::<bool>(), 0..8_u32, option::weighted(0.3, short()))
        .prop_map(|(growth, base, cap, jitter, above_cap, max_attempts, max_elapsed)| {
            Plan::Policy(Parts { growth, base, cap, jitter, above_cap, max_attempts, max_elapsed })
        });
    let level = (1..4_u32, option::of(base()), 0..5_u32, -500..500_i32, fraction(), option::of(base())).prop_map(
        |(count, delay, halves, increment, jitter, cap)| {
            let factor = f64::from(halves) / 2.0;
            LevelParts { count, delay, factor, increment, jitter, cap }
        },
    );
    let levels = (base(), vec(level, 1..4)).prop_map(|(delay, mut levels)| {
        levels[0].delay.get_or_insert(delay);
        Plan::Levels(levels)
    });
    prop_oneof![
        4 => parts,
        1 => vec(duration(), 0..6).prop_map(Plan::List),
        1 => vec(option::weighted(0.9, duration()), 0..6).prop_map(Plan::Closure),
        2 => levels,
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    let marker = prop_oneof![
        20 => Just(Marker::None),
        1 => Just(Marker::NotRetryable),
        4 => Just(Marker::NotExecuted),
        3 => duration().prop_map(Marker::RetryAfter),
    ];
    (prop::bool::weighted(0.95), option::weighted(0.15, duration()), marker)
        .prop_map(|(is_wanted, hint, marker)| Fault { is_wanted, hint, marker })
}

fn case() -> impl Strategy<Value = Case> {
    let result = prop_oneof![1 => Just(Ok(())), 12 => fault().prop_map(Err)];
    let hint_limit = prop_oneof![
        3 => Just(HintLimit::Default),
        1 => duration().prop_map(HintLimit::Refuse),
        1 => duration().prop_map(HintLimit::Clamp),
        1 => Just(HintLimit::Ignore),
    ];
    let limits = (option::weighted(0.3, 0..8_u32), option::weighted(0.4, duration()));
    let draw = (0..256_u32).prop_map(|step| f64::from(step) / 256.0);
    (
        plan(),
        limits,
        hint_limit,
        prop::bool::weighted(0.9),
        vec((short(), result), 0..9),
        option::weighted(0.2, 1..6_u32),
        vec(draw, 1..9),
    )
        .prop_map(
            |(schedule, (max_attempts, max_elapsed), hint_limit, idempotent, attempts, stop_during, draws)| Case {
                schedule,
                max_attempts,
                max_elapsed,
                hint_limit,
                idempotent,
                attempts,
                stop_during,
                draws,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn all_drivers_do_as_the_reference(case in case()) {
        let expected = reference(&case);
        prop_assert_eq!(&by_the_async_driver(&case), &expected);
        prop_assert_eq!(&by_the_blocking_driver(&case), &expected);
    }
}

//! The drivers, held against each other and against a plain loop that knows nothing of the crate's arithmetic or
//! decision: the same calls at the same times, the same draws taken, and the same end.

#[path = "differential/case.rs"]
mod case;
#[path = "differential/reference.rs"]
mod reference;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use case::{Case, Failed, Fault, Growth, HintLimit, LevelParts, Marker, Plan, case};
use proptest::prelude::*;
use reference::{Call, Limited, Trace, reference};
use relent::backoff::Backoff;
use relent::blocking::{self, StopFlag};
use relent::clock::{Clock, InstantClock, VirtualClock};
use relent::levels::{Level, Levels};
use relent::retry::{Report, StopReason, retry_with};
use relent::rng::rng_fn;
use relent::schedule::{Schedule, schedule_fn};
use relent::{Attempt, Policy, retry};

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
        self.outcome(attempt.number())
    }

    fn outcome(&self, number: u32) -> (Duration, Result<(), Fault>) {
        self.case.attempts.get(number as usize - 1).copied().unwrap_or((Duration::ZERO, Ok(())))
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

/// Gives a run or a backoff the limits of the case, and finishes it: the same words on values of many types.
macro_rules! limited {
    ($run:ident, $case:expr => $finish:expr) => {
        match ($case.max_attempts, $case.max_elapsed) {
            (None, None) => $finish,
            (Some(attempts), None) => {
                let $run = $run.max_attempts(attempts);
                $finish
            }
            (None, Some(limit)) => {
                let $run = $run.max_elapsed(limit);
                $finish
            }
            (Some(attempts), Some(limit)) => {
                let $run = $run.max_attempts(attempts).max_elapsed(limit);
                $finish
            }
        }
    };
}

macro_rules! hinted {
    ($run:expr, $case:expr) => {
        match $case.hint_limit {
            HintLimit::Default => $run.respect_retry_after(true),
            HintLimit::Refuse(ceiling) => $run.max_retry_after(ceiling),
            HintLimit::Clamp(ceiling) => $run.clamp_retry_after(ceiling),
            HintLimit::Ignore => $run.respect_retry_after(false),
        }
    };
}

/// Gives a run all that the case asks for.
macro_rules! built {
    ($run:ident, $stage:ident => $finish:expr) => {{
        let stage = &$stage;
        let $run = $run.when(|e: &Failed| e.fault.is_wanted).retry_after(|e: &Failed| e.fault.hint);
        let $run = hinted!($run, stage.case).idempotent(stage.case.idempotent);
        let $run = $run.rng(rng_fn(|| stage.draw())).cancel_on(&stage.flag);
        limited!($run, stage.case => $finish)
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
    let report = built!(run, stage => clock.block_on(run.report()));
    stage.trace(&report)
}

/// The state that each attempt takes along is the number of attempts before it.
fn by_the_driver_with_state(case: &Case) -> Trace {
    let (stage, clock) = (Stage::new(case), VirtualClock::new());
    let mut made = 0;
    let op = async |made: &mut u32, attempt: Attempt| {
        *made += 1;
        assert_eq!(*made, attempt.number());
        let (takes, result) = stage.enter(clock.now(), attempt);
        clock.sleep(takes).await;
        stage.leave(attempt, result)
    };
    let run = retry_with(&mut made, op, schedule(&case.schedule)).clock(&clock);
    let report = built!(run, stage => clock.block_on(run.report()));
    assert_eq!(made, report.attempts);
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
    let report = built!(run, stage => run.report().call());
    stage.trace(&report)
}

/// The loop form is told of hints by the error itself, judges with a `match`, and has no other stop than its end.
fn by_the_loop_form(case: &Case) -> Trace {
    let (stage, clock, stop) = (Stage::new(case), VirtualClock::new(), Cell::new(None));
    let mut times = Vec::new();
    let backoff = Backoff::new(schedule(&case.schedule)).rng(rng_fn(|| stage.draw())).clock(&clock);
    let backoff = hinted!(backoff, case).on_give_up(|exhausted| stop.set(Some(exhausted.reason())));
    let result = limited!(backoff, case => {
        let mut backoff = backoff;
        clock.block_on(async {
            loop {
                times.push(clock.now());
                let (takes, result) = stage.outcome(u32::try_from(times.len()).unwrap());
                clock.sleep(takes).await;
                match result {
                    Ok(()) => break Ok(()),
                    Err(fault) if !fault.is_wanted && fault.marker != Marker::NotRetryable => {
                        stop.set(Some(StopReason::Declined));
                        break Err(());
                    }
                    Err(fault) if backoff.retry_or(fault.hinted()).await.is_err() => break Err(()),
                    Err(_) => {}
                }
            }
        })
    });
    let calls = times.into_iter().map(called_at).collect();
    Trace { calls, draws: stage.draws.get(), succeeded: result.is_ok(), stop: stop.get(), elapsed: clock.now() }
}

/// A call of which only the time is known.
fn called_at(now: Duration) -> Call {
    (now, 0, 0, Duration::ZERO, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn all_drivers_do_as_the_reference(case in case()) {
        let expected = reference(&case, Limited::FromTheStart);
        prop_assert_eq!(&by_the_async_driver(&case), &expected);
        prop_assert_eq!(&by_the_driver_with_state(&case), &expected);
        prop_assert_eq!(&by_the_blocking_driver(&case), &expected);

        let case = Case { idempotent: true, stop_during: None, ..case };
        let mut expected = reference(&case, Limited::FromTheFirstFailure);
        expected.calls = expected.calls.into_iter().map(|(now, ..)| called_at(now)).collect();
        prop_assert_eq!(&by_the_loop_form(&case), &expected);
    }
}

//! The plain loop: no policy, no decision, nothing of the crate but the names of its jitters and reasons.

use std::time::Duration;

use relent::Jitter;
use relent::retry::StopReason;

use crate::case::{Case, Growth, HintLimit, LevelParts, Marker, Parts, Plan};

/// One call of the operation: when, its number, the attempts allowed, the wait before it, the time left.
pub type Call = (Duration, u32, u32, Duration, Option<Duration>);

/// What a run did.
#[derive(Debug, PartialEq)]
pub struct Trace {
    pub calls: Vec<Call>,
    pub draws: usize,
    pub succeeded: bool,
    pub stop: Option<StopReason>,
    pub elapsed: Duration,
}

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

/// When the limit on elapsed time begins to run.
#[derive(Clone, Copy, PartialEq)]
pub enum Limited {
    FromTheStart,
    FromTheFirstFailure,
}

pub fn reference(case: &Case, limited: Limited) -> Trace {
    let (own, listed) = attempts_of(&case.schedule);
    let limit = case.max_attempts.unwrap_or(own);
    let max_attempts = match listed {
        Some(listed) if limit == 0 || listed < limit => listed,
        _ => limit,
    };
    let own_elapsed = if let Plan::Policy(parts) = &case.schedule { parts.max_elapsed } else { None };
    let max_elapsed = case.max_elapsed.or(own_elapsed);
    let mut deadline = if limited == Limited::FromTheStart { max_elapsed } else { None };

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
        if number == 1 && limited == Limited::FromTheFirstFailure {
            deadline = max_elapsed.map(|limit| now.saturating_add(limit));
        }

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

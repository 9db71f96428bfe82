//! The part of the builder that says what is retried, within which limits, and who is told.

use core::future::Future;
use core::time::Duration;

use super::operation::{AttemptTimeout, InFlight, Timed};
use super::{Event, Reported, Retry, Retrying};
use crate::attempt::Attempt;
#[cfg(target_has_atomic = "64")]
use crate::budget::Budget;
use crate::decision::HintLimit;
use crate::env::Environment;
#[cfg(target_has_atomic = "64")]
use crate::hooks::Budgeted;
use crate::hooks::{And, Idempotent, OnEvent, OnRetry, RetryAfter, When};
use crate::run::Run;
use crate::schedule::{MaxAttempts, MaxElapsed};

impl<F: InFlight<X::Clock>, S, H, X: Environment> Retry<F, S, H, X> {
    fn hook<T>(self, hook: T) -> Retry<F, S, And<H, T>, X> {
        let Run { schedule, hooks, clock, rng, .. } = self.run;
        Retry::new(self.op, Run::new(schedule, And(hooks, hook), clock, rng), self.signal)
    }

    fn scheduled_by<Z>(self, schedule: impl FnOnce(S) -> Z) -> Retry<F, Z, H, X> {
        let run = self.run;
        Retry::new(self.op, Run::new(schedule(run.schedule), run.hooks, run.clock, run.rng), self.signal)
    }

    /// Retries only failures for which `predicate` says true; several predicates must all agree.
    ///
    /// It is not asked about an error that a marker has settled, nor about an attempt that timed out. A run that it
    /// ends stops with [`StopReason::Declined`](super::StopReason::Declined).
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let run = retry(async |_| Err::<(), _>("bad request"), Policy::fixed(MS)).clock(&clock);
    /// let report = clock.block_on(run.when(|e| *e == "busy").report());
    /// assert_eq!((report.attempts, report.stop), (1, Some(StopReason::Declined)));
    /// ```
    pub fn when<P>(self, predicate: P) -> Retry<F, S, And<H, When<P>>, X>
    where
        P: FnMut(&F::Error) -> bool,
    {
        self.hook(When(predicate))
    }

    /// Reads from the error how long the server asks to wait (its `Retry-After`).
    ///
    /// The hint raises the lower bound of the computed wait and keeps its spread: of a computed wait `c` whose shortest
    /// draw is `lo`, it makes `max(c, hint + (c - lo))`. So no attempt comes earlier than the server asked, and the
    /// clients do not all come back in the same instant. A [`RetryAfterError`](crate::error) in the error's chain is
    /// heard without this, of several in a chain the outermost; of that and what the closures say the longest counts. A
    /// hint of [`Duration::MAX`] stops the run, and so does one above the ceiling, which is five minutes unless set.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// # use relent::rng::FixedRng;
    /// let clock = VirtualClock::new();
    /// let policy = Policy::exponential(100 * MS).max_attempts(2); // equal jitter: 50 to 100 ms
    /// let run = retry(async |_| Err::<(), _>(Duration::from_secs(2)), policy).unmarked();
    /// let run = run.retry_after(|asked| Some(*asked)).clock(&clock).rng(FixedRng::new(0.5));
    /// assert_eq!(clock.block_on(run.report()).elapsed, 2025 * MS);
    /// ```
    pub fn retry_after<P>(self, hint: P) -> Retry<F, S, And<H, RetryAfter<P>>, X>
    where
        P: FnMut(&F::Error) -> Option<Duration>,
    {
        self.hook(RetryAfter(hint))
    }

    /// Sets the longest hint that is waited for; a longer one stops the run. Five minutes unless set.
    ///
    /// The run then ends with [`StopReason::RetryAfterTooLong`](super::StopReason::RetryAfterTooLong), which carries
    /// the hint. A hint equal to `ceiling` is waited for; a longer one stops the run even if the schedule's own wait is
    /// longer still. Of this, [`clamp_retry_after`](Self::clamp_retry_after) and
    /// [`respect_retry_after`](Self::respect_retry_after) the last one set counts.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// const HOUR: Duration = Duration::from_secs(3600);
    ///
    /// let clock = VirtualClock::new();
    /// let run = retry(async |_| Err::<(), _>("busy"), Policy::fixed(MS)).clock(&clock);
    /// let run = run.retry_after(|_| Some(HOUR)).max_retry_after(Duration::from_secs(60));
    /// let report = clock.block_on(run.report());
    /// assert_eq!(report.stop, Some(StopReason::RetryAfterTooLong(HOUR)));
    /// ```
    pub fn max_retry_after(self, ceiling: Duration) -> Retry<F, S, And<H, HintLimit>, X> {
        self.hook(HintLimit::Refuse(ceiling))
    }

    /// Sets the longest hint that is waited for; a longer one counts as `ceiling`, and the run goes on.
    ///
    /// The attempt then comes earlier than the server asked. A hint of [`Duration::MAX`] still stops the run.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let policy = Policy::fixed(MS).max_attempts(2);
    /// let run = retry(async |_| Err::<(), _>("busy"), policy).clock(&clock);
    /// let (asked, ceiling) = (Duration::from_secs(3600), Duration::from_secs(60));
    /// let run = run.retry_after(|_| Some(asked)).clamp_retry_after(ceiling);
    /// assert_eq!(clock.block_on(run.report()).elapsed, Duration::from_secs(60));
    /// ```
    pub fn clamp_retry_after(self, ceiling: Duration) -> Retry<F, S, And<H, HintLimit>, X> {
        self.hook(HintLimit::Clamp(ceiling))
    }

    /// With `false`, ignores every hint; with `true`, hears them up to the ceiling of five minutes.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let policy = Policy::fixed(MS).max_attempts(2);
    /// let run = retry(async |_| Err::<(), _>("busy"), policy).clock(&clock);
    /// let run = run.retry_after(|_| Some(Duration::from_secs(60))).respect_retry_after(false);
    /// assert_eq!(clock.block_on(run.report()).elapsed, MS);
    /// ```
    pub fn respect_retry_after(self, respect: bool) -> Retry<F, S, And<H, HintLimit>, X> {
        self.hook(if respect { HintLimit::DEFAULT } else { HintLimit::Ignore })
    }

    /// With `false`, retries only failures whose chain says that the operation was not executed.
    ///
    /// Those are [`NotExecuted`](crate::error) and [`CircuitOpen`](crate::error::CircuitOpen); any other
    /// failure may have had its effect, and ends the run with
    /// [`StopReason::NotIdempotent`](super::StopReason::NotIdempotent). An attempt that timed out may have been
    /// executed too.
    ///
    /// The mark counts wherever it stands in the chain, so it must speak for the whole operation. One that makes
    /// several calls must not pass on the mark of the second as the cause of its own error: the first has had its
    /// effect. Turn such a cause into text, or leave it out of `source()`.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let run = retry(async |_| Err::<(), _>("connection reset"), Policy::fixed(MS)).clock(&clock);
    /// let report = clock.block_on(run.idempotent(false).report());
    /// assert_eq!(report.stop, Some(StopReason::NotIdempotent));
    ///
    /// // The trap: charged again, because the receipt was not sent.
    /// # use relent::error::NotExecuted;
    /// let mut charges = 0;
    /// let mut order = || {
    ///     charges += 1;
    ///     let receipt = Err::<(), _>(NotExecuted::new("no connection"));
    ///     receipt.map_err(std::io::Error::other)
    /// };
    /// let run = retry(|_| std::future::ready(order()), Policy::fixed(MS)).clock(&clock);
    /// let report = clock.block_on(run.idempotent(false).report());
    /// assert_eq!(report.stop, Some(StopReason::Exhausted));
    /// assert_eq!(charges, 3);
    /// ```
    pub fn idempotent(self, idempotent: bool) -> Retry<F, S, And<H, Idempotent>, X> {
        self.hook(Idempotent(idempotent))
    }

    /// Asks `budget`, a shared [`RetryBudget`](crate::budget::RetryBudget), before each retry.
    ///
    /// The run counts once, when it starts, whatever becomes of it. The budget is asked last of all: a retry that would
    /// not happen for another reason costs nothing, and a granted one stays spent. Without a grant the run stops with
    /// [`StopReason::Budget`](super::StopReason::Budget). Of several budgets each must grant; an earlier one stays
    /// spent if a later one refuses.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// use relent::budget::RetryBudget;
    ///
    /// let clock = VirtualClock::new();
    /// // one retry for each run
    /// let budget = RetryBudget::new(1.0).min_per_second(0).with_clock(clock.clone());
    /// let run = retry(async |_| Err::<(), _>("busy"), Policy::fixed(MS)).clock(&clock);
    /// let report = clock.block_on(run.budget(&budget).report());
    /// assert_eq!((report.attempts, report.stop), (2, Some(StopReason::Budget)));
    /// ```
    #[cfg(target_has_atomic = "64")]
    pub fn budget<B: Budget>(self, budget: B) -> Retry<F, S, And<H, Budgeted<B>>, X> {
        self.hook(Budgeted(budget))
    }

    /// Calls `observer` before each wait, once it is certain that the retry will happen.
    ///
    /// [`Retrying::delay`] is the wait itself: jitter drawn, hint included. The wait begins when `observer` returns, so
    /// the time that it takes comes on top, and a deadline may pass meanwhile. A panic in it unwinds through the run.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let mut waits = Vec::new();
    /// let run = retry(async |_| Err::<(), _>("busy"), Policy::linear(MS)).clock(&clock);
    /// let run = run.on_retry(|r| waits.push((r.attempt, r.delay)));
    /// assert_eq!(clock.block_on(run), Err("busy"));
    /// assert_eq!(waits, [(1, MS), (2, 2 * MS)]);
    /// ```
    pub fn on_retry<P>(self, observer: P) -> Retry<F, S, And<H, OnRetry<P>>, X>
    where
        P: FnMut(&Retrying<'_, F::Error>),
    {
        self.hook(OnRetry(observer))
    }

    /// Calls `observer` on every [`Event`]: each retry, and the end of the run.
    ///
    /// A run that is dropped emits nothing more. The way to keep earlier errors, or to count:
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// # use relent::retry::Event;
    /// let clock = VirtualClock::new();
    /// let mut earlier = Vec::new();
    /// let errors = ["429", "reset"];
    /// let op = async |a: relent::Attempt| Err::<(), _>(errors[a.number() as usize - 1]);
    /// let run = retry(op, Policy::fixed(MS)).max_attempts(2).clock(&clock).on_event(|event| {
    ///     if let Event::Scheduled { error, .. } = event {
    ///         earlier.push(**error);
    ///     }
    /// });
    /// assert_eq!(clock.block_on(run), Err("reset"));
    /// assert_eq!(earlier, ["429"]);
    /// ```
    pub fn on_event<P>(self, observer: P) -> Retry<F, S, And<H, OnEvent<P>>, X>
    where
        P: FnMut(&Event<'_, F::Error>),
    {
        self.hook(OnEvent(observer))
    }

    /// Sets how many attempts this run may make, the first included, over the schedule's own limit; 0 means unbounded.
    ///
    /// A list of waits still ends after its last one.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let run = retry(async |_| Err::<(), _>("busy"), Policy::fixed(MS)).clock(&clock);
    /// assert_eq!(clock.block_on(run.max_attempts(1).report()).attempts, 1);
    /// ```
    pub fn max_attempts(self, max_attempts: u32) -> Retry<F, MaxAttempts<S>, H, X> {
        self.scheduled_by(|schedule| MaxAttempts::new(schedule, max_attempts))
    }

    /// Sets how long after its first poll this run may begin an attempt, over the schedule's own limit.
    ///
    /// A wait that would end later is not begun: the run stops with
    /// [`StopReason::Deadline`](super::StopReason::Deadline) at once. A wait that ends exactly at the deadline is
    /// followed by its attempt. A running attempt is not interrupted; see [`attempt_timeout`](Self::attempt_timeout).
    /// [`Attempt::remaining`] tells an attempt what is left.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let run = retry(async |_| Err::<(), _>("busy"), Policy::fixed(2 * MS).unbounded());
    /// let report = clock.block_on(run.max_elapsed(5 * MS).clock(&clock).report());
    /// assert_eq!((report.attempts, report.elapsed), (3, 4 * MS));
    /// assert_eq!(report.stop, Some(StopReason::Deadline));
    /// ```
    pub fn max_elapsed(self, max_elapsed: Duration) -> Retry<F, MaxElapsed<S>, H, X> {
        self.scheduled_by(|schedule| MaxElapsed::new(schedule, max_elapsed))
    }

    /// Resolves to a [`Report`](super::Report): the result, how many attempts it took, how long, and why it stopped.
    ///
    /// Comes last, after everything else is set.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let run = retry(async |_| Err::<(), _>("busy"), Policy::fixed(MS)).clock(&clock);
    /// let report = clock.block_on(run.report());
    /// assert_eq!(report.result, Err("busy"));
    /// assert_eq!((report.attempts, report.elapsed), (3, 2 * MS));
    /// assert_eq!(report.stop, Some(StopReason::Exhausted));
    /// ```
    pub fn report(self) -> Reported<F, S, H, X> {
        Reported::new(self)
    }
}

impl<F, Fut, T, E, S, H, X> Retry<F, S, H, X>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    X: Environment,
{
    /// Drops an attempt that takes longer than `limit`, and fails it with what `to_error` makes of the
    /// [`AttemptTimeout`].
    ///
    /// The limit is cut to what remains until the deadline, and an attempt that this cuts short is the last. Waits are
    /// not charged to it, and no two attempts are ever alive. The failure counts and may be retried like any other,
    /// whatever [`when`](Self::when) and a [`NonRetryableError`](crate::error) in it would say: to retry no
    /// timeout, put the time limit into the operation. Where the error converts, write `|timeout| timeout.into()`.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let run = retry(|_| std::future::pending::<Result<(), String>>(), Policy::fixed(MS));
    /// let run = run.attempt_timeout(50 * MS, |timeout| timeout.to_string()).clock(&clock);
    /// assert_eq!(clock.block_on(run), Err("the attempt took longer than 50ms".to_owned()));
    /// assert_eq!(relent::clock::Clock::now(&clock), 152 * MS); // three attempts and two waits
    /// ```
    pub fn attempt_timeout<P>(self, limit: Duration, to_error: P) -> Retry<Timed<F, P>, S, H, X>
    where
        P: FnMut(AttemptTimeout) -> E,
    {
        self.map_op(|op| Timed { op, limit, to_error })
    }
}

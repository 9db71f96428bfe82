use std::cell::{Cell, RefCell};
use std::error::Error;
use std::future::{Future, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use arbitrary::{Result, Unstructured};
use relent::backoff::Backoff;
use relent::clock::clock_fn;
use relent::error::{NotExecuted, RetryAfterError};
use relent::levels::{Level, Levels};
use relent::policy::{Growth, PolicyConfig};
use relent::retry::{Report, StopReason};
use relent::rng::rng_fn;
use relent::schedule::{Schedule, schedule_fn};
use relent::{Jitter, NonRetryableError, Policy, retry};

/// Any schedule, any verdicts, any hints, a clock that says anything: the drivers end, keep their promises to each other
/// and to the schedule, and wait for nothing that they did not announce.
pub fn driver(data: &[u8]) {
    let Ok(scenario) = Scenario::new(&mut Unstructured::new(data)) else { return };
    let trace = scenario.by_the_run();
    scenario.check(&trace);
    if scenario.max_elapsed.is_none() && scenario.schedule.max_elapsed().is_none() && scenario.idempotent {
        assert_eq!(scenario.by_the_loop_form(), trace.delays, "{:?}", scenario.failures);
    }
}

#[derive(Debug)]
struct Fault;

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("fault")
    }
}

impl Error for Fault {}

type Log = RefCell<Vec<Duration>>;
type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Marker {
    None,
    NotRetryable,
    NotExecuted,
    RetryAfter(Duration),
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    marker: Marker,
    is_wanted: bool,
}

impl Failure {
    fn error(self) -> BoxError {
        match self.marker {
            Marker::None => Box::new(Fault),
            Marker::NotRetryable => Box::new(NonRetryableError::new(Fault)),
            Marker::NotExecuted => Box::new(NotExecuted::new(Fault)),
            Marker::RetryAfter(hint) => Box::new(RetryAfterError::new(Fault, hint)),
        }
    }

    fn hint(self) -> Option<Duration> {
        if let Marker::RetryAfter(hint) = self.marker { Some(hint) } else { None }
    }
}

#[derive(Clone, Copy)]
enum HintLimit {
    Refuse(Duration),
    Clamp(Duration),
    Ignore,
}

struct Scenario {
    schedule: Box<dyn Schedule>,
    /// The schedule again, if it is a policy: it can be asked for its delays without a driver.
    policy: Option<Policy>,
    max_attempts: Option<u32>,
    max_elapsed: Option<Duration>,
    hint_limit: HintLimit,
    idempotent: bool,
    /// The attempts that fail; the one after them succeeds.
    failures: Vec<Failure>,
    /// What the clock says, one reading after the other, from the start again at the end.
    readings: Vec<Duration>,
    draws: Vec<f64>,
}

/// What a run did.
struct Trace {
    report: Report<(), BoxError>,
    /// Those told to the observer.
    delays: Vec<Duration>,
    /// Those asked of the clock.
    sleeps: Vec<Duration>,
    /// Those told to each attempt.
    previous: Vec<Duration>,
    draws: usize,
}

impl Scenario {
    fn new(data: &mut Unstructured<'_>) -> Result<Self> {
        let policy = if data.arbitrary()? { any_policy(data)? } else { None };
        let schedule: Box<dyn Schedule> = match policy {
            Some(policy) => Box::new(policy),
            None => any_schedule(data)?,
        };
        Ok(Self {
            schedule,
            policy,
            max_attempts: if data.arbitrary()? { Some(data.int_in_range(0..=40)?) } else { None },
            max_elapsed: if data.arbitrary()? { Some(any_duration(data)?) } else { None },
            hint_limit: match data.int_in_range(0..=3)? {
                0 => HintLimit::Refuse(any_duration(data)?),
                1 => HintLimit::Clamp(any_duration(data)?),
                2 => HintLimit::Ignore,
                _ => HintLimit::Refuse(Duration::from_secs(300)),
            },
            idempotent: data.arbitrary()?,
            readings: any_list(data, any_duration)?,
            draws: any_list(data, |data| if data.arbitrary()? { data.arbitrary() } else { unit(data) })?,
            failures: any_list(data, |data| {
                let marker = match data.int_in_range(0..=7)? {
                    0 => Marker::NotRetryable,
                    1 | 2 => Marker::NotExecuted,
                    3 | 4 => Marker::RetryAfter(any_duration(data)?),
                    _ => Marker::None,
                };
                Ok(Failure { marker, is_wanted: !data.ratio(1, 8)? })
            })?,
        })
    }

    fn outcome(&self, attempt: usize) -> std::result::Result<(), BoxError> {
        self.failures.get(attempt).map_or(Ok(()), |failure| Err(failure.error()))
    }

    fn by_the_run(&self) -> Trace {
        let (delays, sleeps, previous) = (Log::default(), Log::default(), Log::default());
        let (draws, reads) = (Cell::new(0), Cell::new(0));
        let op = |attempt: relent::Attempt| {
            let mut previous = previous.borrow_mut();
            assert_eq!(attempt.number() as usize, previous.len() + 1);
            previous.push(attempt.previous_delay());
            ready(self.outcome(previous.len() - 1))
        };
        let clock = clock_fn(
            || next(&self.readings, &reads).unwrap_or_default(),
            |length| {
                sleeps.borrow_mut().push(length);
                ready(())
            },
        );
        let run = retry(op, &self.schedule)
            .when(|_| self.failures[previous.borrow().len() - 1].is_wanted)
            .on_retry(|retrying| delays.borrow_mut().push(retrying.delay))
            .rng(rng_fn(|| next(&self.draws, &draws).unwrap_or(0.5)))
            .clock(clock);
        let run = match self.hint_limit {
            HintLimit::Refuse(ceiling) => run.max_retry_after(ceiling),
            HintLimit::Clamp(ceiling) => run.clamp_retry_after(ceiling),
            HintLimit::Ignore => run.respect_retry_after(false),
        };
        let run = run.idempotent(self.idempotent);
        let report = match (self.max_attempts, self.max_elapsed) {
            (None, None) => block_on(run.report()),
            (Some(attempts), None) => block_on(run.max_attempts(attempts).report()),
            (None, Some(limit)) => block_on(run.max_elapsed(limit).report()),
            (Some(attempts), Some(limit)) => block_on(run.max_attempts(attempts).max_elapsed(limit).report()),
        };
        let (delays, sleeps, previous) = (delays.into_inner(), sleeps.into_inner(), previous.into_inner());
        Trace { report, delays, sleeps, previous, draws: draws.get() }
    }

    /// The delays of the same failures by the loop form.
    fn by_the_loop_form(&self) -> Vec<Duration> {
        let (draws, reads) = (Cell::new(0), Cell::new(0));
        let clock = clock_fn(|| next(&self.readings, &reads).unwrap_or_default(), |_| ready(()));
        let rng = rng_fn(|| next(&self.draws, &draws).unwrap_or(0.5));
        let backoff = Backoff::new(&self.schedule).clock(clock).rng(rng);
        let backoff = match self.hint_limit {
            HintLimit::Refuse(ceiling) => backoff.max_retry_after(ceiling),
            HintLimit::Clamp(ceiling) => backoff.clamp_retry_after(ceiling),
            HintLimit::Ignore => backoff.respect_retry_after(false),
        };
        match self.max_attempts {
            None => self.delays_of(backoff),
            Some(attempts) => self.delays_of(backoff.max_attempts(attempts)),
        }
    }

    fn delays_of<S: Schedule, C: relent::clock::Clock, R: relent::rng::Rng>(
        &self,
        mut backoff: Backoff<S, C, R>,
    ) -> Vec<Duration> {
        let mut delays = Vec::new();
        for failure in &self.failures {
            let is_declined = !failure.is_wanted && failure.marker != Marker::NotRetryable;
            if is_declined || block_on(backoff.retry_or(failure.error())).is_err() {
                break;
            }
            delays.push(backoff.delay());
        }
        delays
    }

    fn check(&self, trace: &Trace) {
        let Trace { report, delays, sleeps, previous, draws } = trace;
        let attempts = report.attempts as usize;
        assert_eq!(attempts, previous.len());
        assert_eq!(attempts, delays.len() + 1, "each announced retry is an attempt");
        assert_eq!(report.stop.is_none(), report.result.is_ok());
        assert_eq!(report.result.is_ok(), attempts == self.failures.len() + 1);
        assert_eq!(previous.first(), Some(&Duration::ZERO));
        assert_eq!(&previous[1..], delays);
        assert!(sleeps.iter().eq(delays.iter().filter(|delay| !delay.is_zero())), "each wait is slept as announced");
        assert!(*draws <= attempts, "one draw for each failure");

        let limit = self.max_attempts.unwrap_or(self.schedule.max_attempts());
        assert!(limit == 0 || report.attempts <= limit);
        assert!(self.schedule.waits().is_none_or(|waits| delays.len() <= waits as usize));

        self.check_stop(report);
        for (delay, failure) in delays.iter().zip(&self.failures) {
            self.check_hint(*delay, *failure);
        }
        if let Some(policy) = self.policy {
            self.check_delays(policy, delays);
        }
    }

    fn check_stop(&self, report: &Report<(), BoxError>) {
        let Some(stop) = report.stop else { return };
        let last = self.failures[report.attempts as usize - 1];
        let limit = self.max_attempts.unwrap_or(self.schedule.max_attempts());
        match stop {
            StopReason::NotRetryable => assert_eq!(last.marker, Marker::NotRetryable),
            StopReason::Declined => assert!(!last.is_wanted),
            StopReason::NotIdempotent => assert!(!self.idempotent && last.marker != Marker::NotExecuted),
            StopReason::Exhausted => {
                let listed = self.schedule.waits().is_some_and(|waits| report.attempts == waits.saturating_add(1));
                assert!(listed || report.attempts == limit);
            }
            StopReason::ScheduleEnded => {}
            StopReason::RetryAfterTooLong(hint) => assert_eq!(last.hint(), Some(hint)),
            StopReason::Deadline => assert!(self.max_elapsed.or(self.schedule.max_elapsed()).is_some()),
            other => panic!("nothing asked for {other:?}"),
        }
    }

    /// No attempt comes before the server wants it.
    fn check_hint(&self, delay: Duration, failure: Failure) {
        let Some(hint) = failure.hint() else { return };
        match self.hint_limit {
            HintLimit::Refuse(ceiling) => assert!(hint <= ceiling && hint <= delay),
            HintLimit::Clamp(ceiling) => assert!(hint < Duration::MAX && hint.min(ceiling) <= delay),
            HintLimit::Ignore => {}
        }
    }

    /// Without a hint, the waits are the policy's own.
    fn check_delays(&self, policy: Policy, delays: &[Duration]) {
        let draws = Cell::new(0);
        let own = policy.delays(rng_fn(|| next(&self.draws, &draws).unwrap_or(0.5)));
        for (number, (delay, own)) in (1..).zip(delays.iter().zip(own)) {
            let hint = self.failures[number as usize - 1].hint();
            assert!(*delay >= own);
            if hint.is_none() || matches!(self.hint_limit, HintLimit::Ignore) {
                assert_eq!(*delay, own);
            }
            let (shortest, longest) = policy.bounds_after(number);
            assert!((shortest..=longest).contains(&own), "{policy}: {own:?} after {number}");
        }
    }
}

/// The next of a list that begins again at its end.
fn next<T: Copy>(list: &[T], taken: &Cell<usize>) -> Option<T> {
    let index = taken.replace(taken.get() + 1);
    list.get(index % list.len().max(1)).copied()
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..1000 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
    panic!("a run over a clock that never waits does not end");
}

fn any_list<T>(
    data: &mut Unstructured<'_>,
    mut item: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let length = data.int_in_range(0..=48)?;
    (0..length).map(|_| item(data)).collect()
}

fn any_duration(data: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(match data.int_in_range(0..=7)? {
        0 => Duration::ZERO,
        1 => Duration::MAX,
        2 => Duration::from_nanos(data.arbitrary::<u32>()?.into()),
        3 => Duration::from_secs(data.arbitrary()?),
        4 => Duration::MAX - Duration::from_nanos(data.arbitrary::<u32>()?.into()),
        5 => Duration::from_millis(data.arbitrary::<u32>()?.into()),
        _ => Duration::from_millis(data.arbitrary::<u16>()?.into()),
    })
}

fn unit(data: &mut Unstructured<'_>) -> Result<f64> {
    Ok(f64::from(data.arbitrary::<u16>()?) / 65_536.0)
}

fn any_policy(data: &mut Unstructured<'_>) -> Result<Option<Policy>> {
    let config = PolicyConfig {
        growth: match data.int_in_range(0..=3)? {
            0 => Growth::Fixed,
            1 => Growth::Linear,
            2 => Growth::Exponential(data.arbitrary()?),
            _ => Growth::Exponential(1.0 + 4.0 * unit(data)?),
        },
        base: any_duration(data)?,
        max_delay: if data.arbitrary()? { Some(any_duration(data)?) } else { None },
        jitter: Some(match data.int_in_range(0..=5)? {
            0 => Jitter::None,
            1 => Jitter::Full,
            2 => Jitter::Equal,
            3 => Jitter::Decorrelated,
            4 => Jitter::Proportional(unit(data)?),
            _ => Jitter::Downward(unit(data)?),
        }),
        max_attempts: data.int_in_range(0..=60)?,
        max_elapsed: if data.arbitrary()? { Some(any_duration(data)?) } else { None },
        allow_jitter_above_cap: data.arbitrary()?,
    };
    Ok(Policy::try_from(config).ok())
}

fn any_schedule(data: &mut Unstructured<'_>) -> Result<Box<dyn Schedule>> {
    Ok(match data.int_in_range(0..=2)? {
        0 => Box::new(any_list(data, any_duration)?),
        1 => {
            let waits = any_list(data, any_duration)?;
            Box::new(schedule_fn(move |failures| waits.get(failures as usize - 1).copied()))
        }
        _ => {
            let levels = any_list(data, |data| {
                let level = if data.ratio(1, 8)? { Level::unbounded() } else { Level::new(data.int_in_range(0..=6)?) };
                let level = level.factor(unit(data)? * 4.0).increment_ms(data.arbitrary::<i32>()?.into());
                let level = if data.arbitrary()? { level.delay(any_duration(data)?) } else { level };
                let level = if data.arbitrary()? { level.max_delay(any_duration(data)?) } else { level };
                Ok(level.jitter(unit(data)?))
            })?;
            Box::new(Levels::try_from(levels).unwrap_or(Levels::DEFAULT))
        }
    })
}

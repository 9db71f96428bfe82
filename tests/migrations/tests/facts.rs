//! The facts of the guide's comparison: each number and each behaviour, seen.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use backoff::backoff::Backoff as _;
use backon::{BackoffBuilder, ConstantBuilder, ExponentialBuilder, Retryable};
use relent::breaker::{CallError, CircuitBreaker, State};
use relent::budget::RetryBudget;
use relent::clock::{InstantClock, VirtualClock};
use relent::retry::StopReason;
use relent::rng::SeededRng;
use relent::{Jitter, Policy, retry};
use tokio::time::Instant;
use tower::retry::backoff::{Backoff as _, ExponentialBackoffMaker, MakeBackoff};
use tower::retry::budget::{Budget, TpsBudget};
use tower::util::rng::HasherRng;

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);
const DRAWS: usize = 1000;

/// The longest of a thousand delays at the cap.
fn longest(delays: impl Iterator<Item = Duration>) -> Duration {
    delays.skip(20).take(DRAWS).max().unwrap()
}

async fn fails() -> io::Result<()> {
    Err(ErrorKind::ConnectionReset.into())
}

/// Fact 1.
#[test]
fn jitter_and_the_cap() {
    let cap = 60 * SEC;
    let backon = ExponentialBuilder::new()
        .with_max_delay(cap)
        .with_jitter()
        .without_max_times()
        .build();
    let longest_backon = longest(backon);
    assert!(
        longest_backon > cap.mul_f64(1.9) && longest_backon < 2 * cap,
        "{longest_backon:?}"
    );

    let mut backoff = backoff::ExponentialBackoffBuilder::new()
        .with_max_interval(cap)
        .with_randomization_factor(0.5)
        .with_max_elapsed_time(None)
        .build();
    let longest_backoff = longest(std::iter::from_fn(|| backoff.next_backoff()));
    assert!(
        longest_backoff > cap.mul_f64(1.4) && longest_backoff < cap.mul_f64(1.5),
        "{longest_backoff:?}"
    );

    let retry2 = tokio_retry2::strategy::ExponentialFactorBackoff::from_millis(1000, 2.0)
        .max_delay(cap);
    let longest_retry2 = longest(retry2.map(tokio_retry2::strategy::jitter));
    assert!(
        longest_retry2 > cap.mul_f64(1.4) && longest_retry2 < cap.mul_f64(1.5),
        "{longest_retry2:?}"
    );

    let tokio_retry = tokio_retry::strategy::ExponentialBackoff::from_millis(2)
        .factor(500)
        .max_delay(cap);
    assert!(longest(tokio_retry.map(tokio_retry::strategy::jitter)) < cap);

    for jitter in [
        Jitter::Full,
        Jitter::Equal,
        Jitter::Downward(0.5),
        Jitter::Proportional(0.5),
        Jitter::Decorrelated,
    ] {
        let policy = Policy::exponential(SEC).max_delay(cap).jitter(jitter).unbounded();
        assert!(longest(policy.delays(SeededRng::new(1))) <= cap, "{jitter:?}");
    }
}

/// Fact 2.
#[tokio::test(start_paused = true)]
async fn spread_at_the_cap() {
    let mut tower = ExponentialBackoffMaker::new(100 * MS, SEC, 0.99, HasherRng::new())
        .unwrap()
        .make_backoff();
    for _ in 0..4 {
        drop(tower.next_backoff());
    }
    for _ in 0..DRAWS {
        let before = Instant::now();
        assert_eq!(tower.next_backoff().deadline() - before, SEC);
    }

    let all = exponential_backoff::Backoff::new(100, 100 * MS, SEC);
    let at_cap: Vec<_> = all.into_iter().skip(10).take(80).collect();
    assert!(at_cap.iter().all(|delay| *delay == Some(SEC)), "{at_cap:?}");

    let policy = Policy::exponential(100 * MS).max_delay(SEC).unbounded();
    let mut delays: Vec<_> =
        policy.delays(SeededRng::new(1)).skip(10).take(DRAWS).collect();
    delays.sort_unstable();
    delays.dedup();
    assert!(
        delays.len() > 400 && delays[0] < 510 * MS && delays[delays.len() - 1] > 990 * MS
    );
}

/// Fact 3.
#[tokio::test(start_paused = true)]
async fn sessions_of_one_maker() {
    let mut maker =
        ExponentialBackoffMaker::new(100 * MS, 60 * SEC, 0.99, HasherRng::new()).unwrap();
    let now = Instant::now();
    let mut session = || {
        let mut backoff = maker.make_backoff();
        [(); 4].map(|()| backoff.next_backoff().deadline() - now)
    };
    assert_eq!(session(), session());

    let session = || {
        Policy::exponential(100 * MS)
            .delays(relent::rng::DefaultRng)
            .take(4)
            .collect::<Vec<_>>()
    };
    assert_ne!([session(), session(), session()], [session(), session(), session()]);
}

/// Fact 4.
#[test]
fn the_base_of_exponential_growth() {
    let growth = tokio_retry::strategy::ExponentialBackoff::from_millis(100);
    assert!(growth.take(3).eq([100 * MS, 10 * SEC, 1000 * SEC]));
    let policy = Policy::exponential(100 * MS).jitter(Jitter::None);
    assert_eq!(relent::backoff_sequence(policy, 3), [100 * MS, 200 * MS, 400 * MS]);
}

/// Fact 5.
#[test]
fn odd_factors() {
    let backon = |factor| {
        let builder = ExponentialBuilder::new()
            .with_min_delay(100 * MS)
            .with_max_delay(SEC)
            .with_factor(factor);
        builder.build().take(3).collect::<Vec<_>>()
    };
    assert_eq!(backon(f32::NAN), [100 * MS, SEC, SEC]);
    assert_eq!(backon(0.0), [100 * MS, Duration::ZERO, Duration::ZERO]);

    let mut backoff = backoff::ExponentialBackoffBuilder::new()
        .with_multiplier(f64::NAN)
        .with_randomization_factor(0.0)
        .build();
    let _ = backoff.next_backoff();
    assert_eq!(backoff.next_backoff(), Some(Duration::ZERO));

    for factor in [f64::NAN, 0.0, -2.0, f64::INFINITY] {
        assert!(catch_unwind(|| Policy::exponential(100 * MS).multiplier(factor)).is_err());
    }
}

/// Fact 6.
#[tokio::test(start_paused = true)]
async fn a_delay_without_end() {
    let panics = |poll: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(poll)).is_err();
    fn poll(run: Pin<&mut impl Future>) {
        let _ = run.poll(&mut Context::from_waker(Waker::noop()));
    }
    let mut run = Box::pin(tokio_retry::Retry::start([Duration::MAX], fails));
    assert!(panics(&mut || poll(run.as_mut())));
    let fails_too = || async {
        Err::<(), tokio_retry2::RetryError<()>>(tokio_retry2::RetryError::transient(()))
    };
    let mut run = Box::pin(tokio_retry2::Retry::spawn([Duration::MAX], fails_too));
    assert!(panics(&mut || poll(run.as_mut())));

    let report =
        retry(|_| fails(), [Duration::MAX]).sleep(tokio::time::sleep).report().await;
    assert_eq!((report.attempts, report.stop), (1, Some(StopReason::ScheduleEnded)));
}

/// Fact 7.
#[tokio::test(start_paused = true)]
async fn a_limit_on_the_whole_run() {
    let slow = || async {
        tokio::time::sleep(30 * SEC).await;
        fails().await
    };
    let start = Instant::now();
    let waits =
        ExponentialBuilder::new().with_total_delay(Some(5 * SEC)).without_max_times();
    assert!(slow.retry(waits).await.is_err());
    assert_eq!(start.elapsed(), 93 * SEC); // three calls of 30 s, after waits of 1 and 2 s

    let start = Instant::now();
    let clock = relent::clock::clock_fn(move || start.elapsed(), tokio::time::sleep);
    let policy =
        Policy::exponential(SEC).jitter(Jitter::None).unbounded().max_elapsed(5 * SEC);
    let report = retry(|_| slow(), policy).clock(clock).report().await;
    assert_eq!(
        (report.attempts, report.elapsed, report.stop),
        (1, 30 * SEC, Some(StopReason::Deadline))
    );
}

/// Fact 8.
#[tokio::test(start_paused = true)]
async fn what_the_server_asks_for() {
    let start = Instant::now();
    let asks =
        || async { tokio_retry2::RetryError::<()>::to_retry_after::<()>((), 10 * SEC) };
    assert!(tokio_retry2::Retry::spawn([MS], asks).await.is_err());
    assert!(start.elapsed() < SEC);

    assert_eq!(backoff::default::MAX_ELAPSED_TIME_MILLIS, 15 * 60 * 1000);
    // beyond the limit of time
    let start = Instant::now();
    let calls = Cell::new(0);
    let asks = || async {
        calls.set(calls.get() + 1);
        if calls.get() == 4 {
            Err(backoff::Error::permanent(()))
        } else {
            Err(backoff::Error::retry_after((), 3600 * SEC))
        }
    };
    let policy = backoff::ExponentialBackoffBuilder::new()
        .with_max_elapsed_time(Some(Duration::ZERO))
        .build();
    assert_eq!(backoff::future::retry(policy, asks).await, Err::<(), _>(()));
    assert_eq!(start.elapsed(), 3 * 3600 * SEC);

    let run = |asked| {
        retry(|_| fails(), [MS])
            .retry_after(move |_| Some(asked))
            .sleep(tokio::time::sleep)
            .report()
    };
    let report = run(10 * SEC).await;
    assert_eq!((report.attempts, report.elapsed >= 10 * SEC), (2, true));
    assert_eq!(run(3600 * SEC).await.stop, Some(StopReason::RetryAfterTooLong(3600 * SEC)));
}

/// Fact 9.
#[tokio::test(start_paused = true)]
async fn when_the_closure_is_called() {
    let start = Instant::now();
    let calls = RefCell::new(Vec::new());
    let policy = backoff::backoff::Constant::new(SEC);
    let op = || {
        calls.borrow_mut().push(start.elapsed());
        let last = calls.borrow().len() == 3;
        async move { if last { Ok(()) } else { Err(backoff::Error::transient(())) } }
    };
    assert_eq!(backoff::future::retry(policy, op).await, Ok(()));
    assert_eq!(calls.take(), [Duration::ZERO, Duration::ZERO, SEC]);

    let start = Instant::now();
    let op = |_| {
        calls.borrow_mut().push(start.elapsed());
        fails()
    };
    assert!(retry(op, Policy::fixed(SEC)).sleep(tokio::time::sleep).await.is_err());
    assert_eq!(calls.take(), [Duration::ZERO, SEC, 2 * SEC]);
}

/// Fact 10: this compiles. For a run of relent, the compiler's message is kept in `tests/ui` of the crate.
#[tokio::test]
#[deny(unused_must_use)]
async fn a_run_that_nobody_awaits() {
    let calls = Cell::new(0);
    let op = || {
        calls.set(calls.get() + 1);
        fails()
    };
    op.retry(ConstantBuilder::default());
    assert_eq!(calls.get(), 0);
    tokio_retry::Retry::start([MS], op);
    ExponentialBuilder::new().with_jitter();
}

/// Fact 11.
#[test]
fn probes_of_a_half_open_breaker() {
    use failsafe::CircuitBreaker as _;

    let admitted = |call: &mut dyn FnMut() -> bool| (0..100).filter(|_| call()).count();

    let wait = failsafe::backoff::constant(MS);
    let failsafe = failsafe::Config::new()
        .failure_policy(failsafe::failure_policy::consecutive_failures(1, wait))
        .build();
    let _ = failsafe.call(|| Err::<(), _>(()));
    std::thread::sleep(5 * MS);
    assert_eq!(admitted(&mut || failsafe.is_call_permitted()), 100);

    // the calls are nested, so that none ends before all have begun
    fn nested(recloser: &recloser::Recloser, deep: u32) -> u32 {
        if deep == 0 {
            return 0;
        }
        let mut begun = 0;
        let _ = recloser.call(|| {
            begun = 1 + nested(recloser, deep - 1);
            Ok::<_, ()>(())
        });
        begun
    }
    let recloser =
        recloser::Recloser::custom().closed_len(1).half_open_len(5).open_wait(MS).build();
    for _ in 0..2 {
        let _ = recloser.call(|| Err::<(), _>(()));
    }
    std::thread::sleep(5 * MS);
    assert_eq!(nested(&recloser, 100), 100);

    let clock = VirtualClock::new();
    let breaker = CircuitBreaker::new()
        .failure_threshold(1)
        .cooldown(Policy::fixed(MS))
        .with_clock(&clock);
    let _ = breaker.acquire().unwrap().failure();
    clock.advance(MS);
    let mut permits = Vec::new();
    assert_eq!(
        admitted(&mut || breaker.acquire().map(|permit| permits.push(permit)).is_ok()),
        1
    );
}

/// Fact 12.
#[tokio::test(start_paused = true)]
async fn the_ratio_of_a_budget() {
    let granted = |ratio: f32| {
        let budget = TpsBudget::new(10 * SEC, 0, ratio);
        (0..100).for_each(|_| budget.deposit());
        (0..1000).filter(|_| budget.withdraw()).count()
    };
    assert_eq!([0.2, 0.3, 0.4, 0.6, 0.9].map(granted), [20, 33, 50, 100, 100]);

    let granted = |ratio: f64| {
        let budget =
            RetryBudget::new(ratio).min_per_second(0).with_clock(VirtualClock::new());
        (0..100).for_each(|_| budget.record_run());
        (0..1000).filter(|_| budget.try_retry()).count()
    };
    assert_eq!([0.2, 0.3, 0.4, 0.6, 0.9].map(granted), [20, 30, 40, 60, 90]);
}

/// Fact 13.
#[tokio::test(start_paused = true)]
async fn limits_of_attempts() {
    let count = Cell::new(0);
    let op = || {
        count.set(count.get() + 1);
        fails()
    };
    assert!(op.retry(ConstantBuilder::new().with_max_times(3)).await.is_err());
    assert_eq!(count.take(), 4);
    assert!(tokio_retry::Retry::start([MS; 3], op).await.is_err());
    assert_eq!(count.take(), 4);
    assert!(
        retry(|_| op(), Policy::fixed(MS).max_attempts(3))
            .sleep(tokio::time::sleep)
            .await
            .is_err()
    );
    assert_eq!(count.take(), 3);
}

/// Fact 14.
#[test]
fn fibonacci_growth() {
    let backon = backon::FibonacciBuilder::new().with_min_delay(SEC).with_max_times(6);
    let delays: Vec<_> = backon.build().collect();
    assert_eq!(delays, [1, 1, 2, 3, 5, 8].map(|seconds| seconds * SEC));

    let list = delays.clone();
    let closure = relent::schedule::schedule_fn(|failures| {
        let (wait, _) =
            (0..failures).fold((0_u32, 1), |(wait, next), _| (next, wait + next));
        (failures <= 6).then(|| wait * SEC)
    });
    let schedules: [&dyn relent::schedule::Schedule; 2] = [&list, &closure];
    for schedule in schedules {
        let clock = InstantClock::new();
        let run = retry(|_| fails(), schedule).clock(&clock);
        assert!(VirtualClock::new().block_on(run).is_err());
        assert_eq!(clock.waits(), delays);
    }
}

/// Fact 15: `op.retry(…)` compiles.
#[tokio::test]
async fn a_method_on_the_closure() {
    let op = async || Ok::<_, io::Error>(42);
    assert_eq!(op.retry(ConstantBuilder::default()).await.unwrap(), 42);
    assert_eq!(retry(|_| op(), Policy::DEFAULT).await.unwrap(), 42);
}

/// Fact 16.
#[tokio::test(start_paused = true)]
async fn what_is_a_schedule() {
    let start = Instant::now();
    let odd = (1..).step_by(2).map(|seconds| seconds * SEC).take(3);
    assert!(tokio_retry::Retry::start(odd, fails).await.is_err());
    assert_eq!(start.elapsed(), (1 + 3 + 5) * SEC);

    let start = Instant::now();
    let odd = relent::schedule::schedule_fn(|failures| {
        (failures <= 3).then(|| (2 * failures - 1) * SEC)
    });
    for runs in 1..=2 {
        // immutable: the second run begins where the first began
        assert!(retry(|_| fails(), &odd).sleep(tokio::time::sleep).await.is_err());
        assert_eq!(start.elapsed(), runs * (1 + 3 + 5) * SEC);
    }
}

/// Fact 17.
#[tokio::test]
async fn a_changed_request() {
    #[derive(Clone)]
    struct Numbered;

    impl tower::retry::Policy<u32, (), ()> for Numbered {
        type Future = std::future::Ready<()>;

        fn retry(
            &mut self,
            request: &mut u32,
            result: &mut Result<(), ()>,
        ) -> Option<Self::Future> {
            *request += 1;
            result.is_err().then(|| std::future::ready(()))
        }

        fn clone_request(&mut self, request: &u32) -> Option<u32> {
            Some(*request)
        }
    }

    let requests = RefCell::new(Vec::new());
    let answer = |request| {
        requests.borrow_mut().push(request);
        std::future::ready(if request < 3 { Err(()) } else { Ok(()) })
    };
    let layer = tower::retry::RetryLayer::new(Numbered);
    let service = tower::Layer::layer(&layer, tower::service_fn(answer));
    assert_eq!(tower::ServiceExt::oneshot(service, 1).await, Ok(()));
    assert_eq!(requests.take(), [1, 2, 3]);

    let run = retry(|attempt| answer(attempt.number()), Policy::immediate());
    assert_eq!(run.await, Ok(()));
    assert_eq!(requests.take(), [1, 2, 3]);
}

/// Fact 18.
#[test]
fn a_service_that_fails_two_of_three_calls() {
    use failsafe::CircuitBreaker as _;

    let mut calls = (0..30).map(|call| if call % 3 == 0 { Ok(()) } else { Err(()) });

    let rate = failsafe::failure_policy::success_rate_over_time_window(
        0.7,
        3,
        SEC,
        failsafe::backoff::constant(60 * SEC),
    );
    let failsafe = failsafe::Config::new().failure_policy(rate).build();
    for call in calls.clone() {
        std::thread::sleep(40 * MS); // it judges whole windows, of a second at least
        let _ = failsafe.call(|| call);
    }
    assert!(!failsafe.is_call_permitted());

    let recloser = recloser::Recloser::custom().error_rate(0.5).closed_len(10).build();
    calls.clone().for_each(|call| drop(recloser.call(|| call)));
    let refused = recloser.call(|| Ok::<_, ()>(()));
    assert!(matches!(refused, Err(recloser::Error::Rejected)));

    let breaker = CircuitBreaker::new();
    assert!(calls.all(|call| breaker.call_blocking_with(|| call, |()| true)
        == call.map_err(CallError::Inner)));
    assert_eq!(breaker.state(), State::Closed);
}

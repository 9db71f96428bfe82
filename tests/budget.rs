//! The retry budget: what it allows, for how long, and what it refuses to be built from.

use std::cell::RefCell;
use std::future::ready;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use relent::budget::{Budget, BudgetConfig, BudgetError, RetryBudget};
use relent::clock::{Clock, VirtualClock, clock_fn};
use relent::retry::StopReason;
use relent::rng::{Rng, SeededRng};
use relent::{Attempt, Policy, retry};

const SLICES: u64 = 20;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A budget that runs alone pay for.
fn by_ratio(ratio: f64) -> RetryBudget {
    RetryBudget::new(ratio).min_per_second(0)
}

fn record_runs(budget: &impl Budget, runs: u32) {
    for _ in 0..runs {
        budget.record_run();
    }
}

/// Takes retries until one is refused.
fn drain(budget: &impl Budget) -> u32 {
    let mut granted = 0;
    while budget.try_retry() {
        granted += 1;
    }
    granted
}

/// Field case 103, for a budget and what stands for one.
#[test]
fn plain_runs_refill_a_drained_budget_through_every_handle() {
    fn refills(budget: impl Budget) {
        record_runs(&budget, 10);
        assert_eq!(drain(&budget), 1);
        record_runs(&budget, 1000);
        assert_eq!(drain(&budget), 100);
    }
    refills(by_ratio(0.1));
    let budget = by_ratio(0.1);
    refills(&budget);
    record_runs(&budget, 1000);
    assert_eq!(drain(&budget), 100, "the reference was the budget itself");
    refills(Arc::new(by_ratio(0.1)));
    refills(&Arc::new(by_ratio(0.1)) as &dyn Budget);
}

/// Field case 104. The interval of the second table row is no divisor of a slice.
#[test]
fn a_trickle_of_retried_runs_never_drains_a_ratio_of_one() {
    for (interval, runs) in [(ms(100), 1000), (ms(97), 1031), (ms(1), 50_000)] {
        let clock = VirtualClock::new();
        let budget = by_ratio(1.0).with_clock(clock.clone());
        for run in 0..runs {
            budget.record_run();
            assert!(budget.try_retry(), "run {run} at every {interval:?}");
            clock.advance(interval);
        }
    }
}

/// Field case 106.
#[test]
fn the_ratio_is_exact_and_rounded_down() {
    for (ratio, allowed) in [(0.6, 6), (0.7, 7), (0.9, 9), (0.4, 4), (0.3, 3), (0.1, 1), (0.09, 0), (1.0, 10), (0.0, 0)]
    {
        let budget = by_ratio(ratio);
        record_runs(&budget, 10);
        assert_eq!(budget.balance(), allowed, "{ratio}");
        assert_eq!(drain(&budget), allowed, "{ratio}");
    }
}

/// A thirtieth, say, is held as 0.033333: a million runs tell it from 0.033334.
#[test]
fn the_ratio_is_held_to_the_nearest_millionth() {
    for (ratio, allowed) in [(1.0 / 30.0, 33_333), (2.0 / 3.0, 666_667), (0.000_000_4, 0), (0.000_000_6, 1)] {
        let budget = by_ratio(ratio);
        record_runs(&budget, 1_000_000);
        assert_eq!(budget.balance(), allowed, "{ratio}");
    }
}

/// Field case 107.
#[test]
fn the_reserve_lets_few_runs_retry() {
    let budget = RetryBudget::new(0.2).min_per_second(3).window(Duration::from_secs(1));
    record_runs(&budget, 3);
    assert_eq!(drain(&budget), 3);
}

/// The reserve is whole retries, whatever is left of a run's share.
#[test]
fn the_reserve_and_the_share_of_runs_are_rounded_down_each() {
    let budget = RetryBudget::new(0.5).min_per_second(1).window(ms(1500));
    assert_eq!(budget.balance(), 1);
    budget.record_run();
    assert_eq!(budget.balance(), 1);
    budget.record_run();
    assert_eq!(budget.balance(), 2);
}

/// Field case 109.
#[test]
fn runs_that_fail_together_do_not_shrink_what_they_share() {
    for (ratio, allowed) in [(1.0, 6), (0.5, 3)] {
        let budget = by_ratio(ratio);
        record_runs(&budget, 6);
        let granted = (0..6).filter(|_| budget.try_retry()).count();
        assert_eq!(granted, allowed, "{ratio}");
    }
}

/// Field case 110.
#[test]
fn a_spent_reserve_comes_back_a_window_later_and_not_at_a_boundary() {
    let clock = VirtualClock::new();
    let budget = RetryBudget::new(0.0).with_clock(clock.clone());
    let ask_at = |at: Duration| {
        clock.advance(at.saturating_sub(clock.now()));
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| (0..50).filter(|_| budget.try_retry()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        })
    };
    assert_eq!(ask_at(ms(9_990)), 100);
    for at in [10_010, 15_000, 19_980, 19_999] {
        assert_eq!(ask_at(ms(at)), 0, "{at} ms");
    }
    assert_eq!(ask_at(ms(20_000)), 100, "the slice that ends at 10 s is a window old");
}

/// Field case 112: there is no `Clone`, so each service has its own or both name the same.
#[test]
fn a_failing_service_spends_only_the_budget_that_it_shares() {
    let serve = |a: &RetryBudget, b: &RetryBudget| {
        let mut granted_to_b = 0;
        for _ in 0..100 {
            b.record_run();
            a.record_run();
            let _ = a.try_retry() && a.try_retry();
            granted_to_b += u32::from(b.try_retry());
        }
        granted_to_b
    };
    assert_eq!(serve(&by_ratio(1.0), &by_ratio(1.0)), 100);
    let shared = by_ratio(0.5);
    assert_eq!(serve(&shared, &shared), 0);
}

#[test]
fn ten_thousand_runs_pay_for_their_share() {
    for (ratio, allowed) in [(0.1, 1000), (0.2, 2000), (0.25, 2500), (0.5, 5000), (0.75, 7500)] {
        let budget = by_ratio(ratio);
        let mut granted = 0;
        for _ in 0..10_000 {
            budget.record_run();
            granted += u32::from(budget.try_retry());
        }
        assert_eq!(granted, allowed, "{ratio}");
    }
}

/// Whoever asks all the time gets the reserve in bursts, but never more of them in any window.
#[test]
fn a_reserve_without_traffic_is_at_most_a_hundred_in_any_ten_seconds() {
    for step in [ms(10), ms(333), ms(500), ms(9_990)] {
        let clock = VirtualClock::new();
        let budget = RetryBudget::default().with_clock(clock.clone());
        let mut grants = Vec::new();
        while clock.now() < Duration::from_secs(60) {
            // An uneven pace: a few at a time, so that the window is entered and left in its midst.
            grants.extend((0..7).filter(|_| budget.try_retry()).map(|_| clock.now()));
            clock.advance(step);
        }
        for (last, &end) in grants.iter().enumerate() {
            let within = grants[..=last].iter().filter(|&&grant| grant + Duration::from_secs(10) > end).count();
            assert!(within <= 100, "{within} in the 10 s before {end:?}");
        }
    }
}

#[test]
fn what_is_counted_leaves_after_a_window_and_at_most_one_slice() {
    // Slices of 500 ms: what falls on 700 ms leaves when the window has passed the end of its slice, at 1 s + 10 s.
    for (at, still) in [(700, true), (10_700, true), (10_999, true), (11_000, false), (11_700, false), (500_000, false)]
    {
        let clock = VirtualClock::new();
        let budget = RetryBudget::new(1.0).min_per_second(1).with_clock(clock.clone());
        clock.advance(ms(700));
        record_runs(&budget, 5);
        assert_eq!(drain(&budget), 15);
        record_runs(&budget, 3);
        clock.advance(ms(at - 700));
        assert_eq!(budget.balance(), if still { 3 } else { 10 }, "at {at} ms");
    }
}

#[test]
fn a_clock_that_steps_back_refills_nothing_twice() {
    let time = AtomicU64::new(100_000);
    let clock = clock_fn(|| ms(time.load(Ordering::Relaxed)), |_| ready(()));
    let budget = RetryBudget::new(1.0).min_per_second(1).with_clock(clock);
    record_runs(&budget, 2);
    assert_eq!(drain(&budget), 12);
    for back in [99_999, 95_000, 50_000, 0, 100_000, 3, 109_999] {
        time.store(back, Ordering::Relaxed);
        assert_eq!(budget.balance(), 0, "at {back} ms");
        assert!(!budget.try_retry(), "at {back} ms");
    }
    // Counted while the clock was behind: it is dated when the clock stood highest.
    time.store(0, Ordering::Relaxed);
    budget.record_run();
    time.store(119_999, Ordering::Relaxed);
    assert_eq!(drain(&budget), 11);
}

#[test]
fn the_ends_of_time_and_of_all_ranges_are_harmless() {
    for window in [Duration::from_nanos(1), Duration::from_secs(10), Duration::MAX] {
        let time = AtomicU64::new(0);
        let times = [Duration::ZERO, Duration::from_secs(u64::MAX / 4), Duration::MAX, Duration::ZERO];
        let clock = clock_fn(|| times[usize::try_from(time.load(Ordering::Relaxed)).unwrap()], |_| ready(()));
        let budget = RetryBudget::new(1.0).min_per_second(u32::MAX).window(window).with_clock(clock);
        for step in 0..4 {
            time.store(step, Ordering::Relaxed);
            budget.record_run();
            assert!(budget.try_retry());
            assert!(budget.balance() > 0);
        }
    }
    let budget = RetryBudget::new(1.0).min_per_second(u32::MAX).window(Duration::MAX);
    assert_eq!(budget.balance(), u32::MAX);
}

#[test]
fn setters_come_in_any_order() {
    let window = Duration::from_secs(3);
    let budgets = [
        RetryBudget::new(0.5).min_per_second(7).window(window),
        RetryBudget::new(0.5).window(window).min_per_second(7),
        RetryBudget::try_from(BudgetConfig { ratio: 0.5, min_per_second: 7, window }).unwrap(),
    ];
    for budget in budgets {
        assert_eq!(budget.balance(), 21);
        assert_eq!(format!("{budget:?}"), "RetryBudget { ratio: 0.5, min_per_second: 7, window: 3s, .. }");
    }
    let defaults = format!("{:?}", RetryBudget::default());
    assert_eq!(defaults, "RetryBudget { ratio: 0.2, min_per_second: 10, window: 10s, .. }");
    assert_eq!(format!("{:?}", RetryBudget::try_from(BudgetConfig::default()).unwrap()), defaults);
    assert_eq!(format!("{:?}", RetryBudget::new(0.2)), defaults);
}

#[test]
fn a_new_window_forgets_what_was_counted() {
    let budget = RetryBudget::new(1.0).min_per_second(1);
    assert_eq!(drain(&budget), 10);
    let budget = budget.window(Duration::from_secs(20));
    assert_eq!(drain(&budget), 20);
}

#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn bad_values_are_refused_with_field_rule_and_value() {
    const RULE: &str = "ratio must lie in 0..=1 (10 % is 0.1)";
    let bad = [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (-0.1, "-0.1"),
        (-f64::MIN_POSITIVE, "-2.2250738585072014e-308"),
        (1.000_001, "1.000001"),
        (20.0, "20.0"),
    ];
    for (ratio, shown) in bad {
        let error = RetryBudget::try_from(BudgetConfig { ratio, ..BudgetConfig::default() }).unwrap_err();
        assert!(matches!(error, BudgetError::Ratio(value) if value.to_bits() == ratio.to_bits()));
        assert_eq!(error.to_string(), format!("{RULE}, not {shown}"));
        let panic = catch_unwind(|| RetryBudget::new(ratio)).unwrap_err();
        assert_eq!(*panic.downcast::<String>().unwrap(), RULE);
    }
    for ratio in [0.0, -0.0, f64::MIN_POSITIVE, 1.0] {
        assert!(RetryBudget::try_from(BudgetConfig { ratio, ..BudgetConfig::default() }).is_ok(), "{ratio}");
    }

    let window = Duration::ZERO;
    let error = RetryBudget::try_from(BudgetConfig { window, ..BudgetConfig::default() }).unwrap_err();
    assert_eq!(error, BudgetError::Window(window));
    assert_eq!(error.to_string(), "window must be longer than zero, not 0ns");
    let panic = catch_unwind(|| RetryBudget::default().window(Duration::ZERO)).unwrap_err();
    assert_eq!(*panic.downcast::<String>().unwrap(), "window must be longer than zero");
}

#[test]
fn a_budget_is_shared_by_threads_and_holds_any_clock() {
    const fn shared<T: Send + Sync>() {}
    static BUDGET: RetryBudget = RetryBudget::new(0.5).min_per_second(1).window(Duration::from_secs(2));
    shared::<RetryBudget>();
    shared::<RetryBudget<VirtualClock>>();
    assert_eq!(thread::spawn(|| BUDGET.balance()).join().unwrap(), 2);
}

/// An exact log of what was counted, and what it allows.
struct Log {
    ratio_millionths: u64,
    reserve: u64,
    window: u64,
    slice: u64,
    /// Instants, and how many there were until then.
    runs: Vec<(u64, u64)>,
    retries: Vec<(u64, u64)>,
}

fn note(log: &mut Vec<(u64, u64)>, now: u64, more: u64) {
    let total = log.last().map_or(0, |(_, total)| *total) + more;
    log.push((now, total));
}

/// How many there were from the first instant on that is `counted`.
fn count(log: &[(u64, u64)], counted: impl Fn(u64) -> bool) -> u64 {
    let total = |entries: &[(u64, u64)]| entries.last().map_or(0, |(_, total)| *total);
    total(log) - total(&log[..log.partition_point(|(at, _)| !counted(*at))])
}

impl Log {
    fn new(ratio_millionths: u32, min_per_second: u32, window: Duration) -> Self {
        let window = u64::try_from(window.as_nanos()).unwrap();
        Self {
            ratio_millionths: ratio_millionths.into(),
            reserve: u64::try_from(u128::from(min_per_second) * u128::from(window) / 1_000_000_000).unwrap(),
            window,
            slice: window.div_ceil(SLICES),
            runs: Vec::new(),
            retries: Vec::new(),
        }
    }

    fn allowance(&self, runs: u64) -> u64 {
        runs * self.ratio_millionths / 1_000_000 + self.reserve
    }

    /// The balance by the rule: the present slice and twenty before it count, nothing else.
    fn balance(&self, now: u64) -> u64 {
        let counted = |at| at / self.slice + SLICES >= now / self.slice;
        self.allowance(count(&self.runs, counted)).saturating_sub(count(&self.retries, counted))
    }

    /// Counts a retry, and holds the promise against it: no more retries in the window that ends now than its runs, and
    /// those of one more slice, pay for.
    fn retry(&mut self, now: u64) {
        note(&mut self.retries, now, 1);
        let retries = count(&self.retries, |at| now - at < self.window);
        let allowed = self.allowance(count(&self.runs, |at| now - at < self.slice * (SLICES + 1)));
        assert!(retries <= allowed, "{retries} retries where {allowed} are allowed, at {now} ns");
    }
}

/// 1000 clients run against a service that answers none of them for ten minutes. Every grant and every refusal is that of
/// the exact log, and at each grant the log holds no more retries than the window's runs, with one slice more, pay for.
#[test]
fn in_an_outage_retries_stay_a_tenth_of_runs_at_the_instant_of_every_grant() {
    const POLICY: Policy = Policy::exponential(ms(100)); // three attempts
    let clock = VirtualClock::new();
    let budget = by_ratio(0.1).with_clock(&clock);
    let log = RefCell::new(Log::new(100_000, 0, Duration::from_secs(10)));
    let now = || u64::try_from(clock.now().as_nanos()).unwrap();

    let client = async |seed| {
        let mut rng = SeededRng::new(seed);
        let (mut runs, mut grants, mut refusals) = (0, 0, 0);
        loop {
            clock.sleep(Duration::from_secs_f64(10.0 * rng.next_f64())).await;
            if clock.now() > Duration::from_secs(600) {
                return [runs, grants, refusals];
            }
            let attempt = async |attempt: Attempt| {
                if attempt.is_first() {
                    note(&mut log.borrow_mut().runs, now(), 1);
                }
                clock.sleep(ms(20)).await;
                Err::<(), _>("down")
            };
            let run = retry(attempt, POLICY).budget(&budget).clock(&clock).rng(&mut rng).on_retry(|_| {
                assert_ne!(log.borrow().balance(now()), 0, "granted at {:?}", clock.now());
                log.borrow_mut().retry(now());
                grants += 1;
            });
            let report = run.report().await;
            runs += 1;
            if report.stop == Some(StopReason::Budget) {
                assert_eq!(log.borrow().balance(now()), 0, "refused at {:?}", clock.now());
                refusals += 1;
            }
        }
    };
    let clients = clock.block_on_all((0..1000).map(client));
    let [runs, grants, refusals] = [0, 1, 2].map(|column| clients.iter().map(|client| client[column]).sum::<u64>());
    assert!(runs > 100_000 && refusals > 90_000, "{runs} runs, {refusals} refused");
    // Hardly a grant is missing: the budget is used up nearly all the time.
    assert!((runs * 99 / 1000..=runs / 10).contains(&grants), "{grants} for {runs}");
}

#[derive(Clone, Debug)]
enum Step {
    Advance(u64),
    Run(u8),
    Retry(u8),
}

/// Times in slices and in nanoseconds beside them, from the same instant to far beyond the window.
fn steps(slice: u64) -> impl Strategy<Value = Vec<Step>> {
    let far = prop_oneof![0..3_u64, 15..30_u64, 40..50_u64, Just(1_000_003)];
    let advance = (far, 0..slice.min(1 << 40)).prop_map(move |(slices, nanos)| Step::Advance(slices * slice + nanos));
    let step = prop_oneof![
        2 => advance,
        1 => (0..3_u64).prop_map(move |slices| Step::Advance(slices * slice)),
        3 => (1..12_u8).prop_map(Step::Run),
        3 => (1..12_u8).prop_map(Step::Retry),
    ];
    prop::collection::vec(step, 1..60)
}

fn cases() -> impl Strategy<Value = (u32, u32, Duration, Vec<Step>)> {
    let window = prop_oneof![Just(1_u64), 1..100_u64, Just(7_777_777), Just(1_000_000_000), Just(10_000_000_000)];
    let ratio = prop_oneof![Just(0_u32), Just(100_000), Just(333_333), Just(1_000_000), 0..=1_000_000_u32];
    (ratio, 0..3_u32, window).prop_flat_map(|(ratio, per_second, window)| {
        let steps = steps(window.div_ceil(SLICES));
        (Just(ratio), Just(per_second), Just(Duration::from_nanos(window)), steps)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn every_answer_is_that_of_an_exact_log((ratio, per_second, window, steps) in cases()) {
        let clock = VirtualClock::new();
        let budget = RetryBudget::new(f64::from(ratio) / 1e6)
            .min_per_second(per_second)
            .window(window)
            .with_clock(clock.clone());
        let mut log = Log::new(ratio, per_second, window);
        let mut now = 0;
        for step in steps {
            match step {
                Step::Advance(nanos) => {
                    clock.advance(Duration::from_nanos(nanos));
                    now += nanos;
                }
                Step::Run(runs) => {
                    record_runs(&budget, runs.into());
                    note(&mut log.runs, now, runs.into());
                }
                Step::Retry(retries) => for _ in 0..retries {
                    let allowed = log.balance(now) > 0;
                    prop_assert_eq!(budget.try_retry(), allowed, "at {} ns", now);
                    if allowed {
                        log.retry(now);
                    }
                },
            }
            prop_assert_eq!(u64::from(budget.balance()), log.balance(now), "at {} ns", now);
        }
    }
}

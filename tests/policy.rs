//! The arithmetic of `Policy`: growth, cap, jitter, rounding, totals and tables.

use core::time::Duration;

use relent::policy::{Growth, PolicyConfig, StatefulJitter, backoff_sequence_with};
use relent::rng::{Rng, SeededRng};
use relent::schedule::{Progress, Schedule};
use relent::{Jitter, Policy, backoff_sequence};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const KINDS: [Jitter; 6] =
    [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Decorrelated, Jitter::Proportional(0.5), Jitter::Downward(0.5)];

const LARGEST_DRAW: f64 = 1.0 - f64::EPSILON / 2.0;

/// Always the same draw, and a count of how many were taken.
struct Draws {
    draw: f64,
    taken: u32,
}

fn always(draw: f64) -> Draws {
    Draws { draw, taken: 0 }
}

impl Rng for Draws {
    fn next_f64(&mut self) -> f64 {
        self.taken += 1;
        self.draw
    }
}

#[test]
fn a_policy_is_a_copy_of_48_bytes() {
    const _: () = assert!(size_of::<Policy>() == 48);
    const POLICY: Policy = Policy::fixed(secs(1)).max_delay(ms(10)).jitter(Jitter::Downward(1.0)).unbounded();
    let copy = POLICY;
    assert_eq!(copy, POLICY);
    assert_eq!(format!("{copy:?}"), "Policy(fixed 1s cap 10ms downward(1) unbounded)");
}

#[test]
fn constructors_have_the_documented_defaults() {
    let policy = Policy::exponential(ms(250));
    assert_eq!(policy.base(), ms(250));
    assert_eq!(policy.growth(), Growth::Exponential(2.0));
    assert_eq!(policy.cap(), Some(secs(30)));
    assert_eq!(policy.jitter_kind(), Jitter::Equal);
    assert_eq!(policy.attempts(), 3);
    assert_eq!(policy.elapsed_limit(), None);
    assert!(!policy.jitter_above_cap());

    assert_eq!(Policy::exponential(secs(31)).cap(), Some(secs(31)));
    for (policy, growth) in [
        (Policy::linear(secs(1)), Growth::Linear),
        (Policy::fixed(secs(1)), Growth::Fixed),
        (Policy::immediate(), Growth::Fixed),
    ] {
        assert_eq!((policy.growth(), policy.cap(), policy.jitter_kind()), (growth, None, Jitter::None));
        assert_eq!((policy.attempts(), policy.elapsed_limit()), (3, None));
    }
    assert_eq!(Policy::default(), Policy::exponential(ms(100)));
    assert_eq!(Policy::immediate(), Policy::fixed(Duration::ZERO));
}

#[test]
fn each_growth_follows_its_formula() {
    assert_eq!(backoff_sequence(Policy::fixed(ms(200)), 3), [ms(200); 3]);
    assert_eq!(backoff_sequence(Policy::linear(secs(60)), 3), [secs(60), secs(120), secs(180)]);
    let tripling = Policy::exponential(ms(10)).multiplier(3.0).jitter(Jitter::None);
    assert_eq!(backoff_sequence(tripling, 4), [ms(10), ms(30), ms(90), ms(270)]);
    let borrowed: &Policy = &tripling;
    assert_eq!(backoff_sequence(borrowed, 0), []);
}

#[test]
fn no_failure_waits_nothing() {
    for jitter in KINDS {
        let policy = Policy::DEFAULT.jitter(jitter);
        assert_eq!(policy.nominal_after(0), Duration::ZERO);
        assert_eq!(policy.bounds_after(0), (Duration::ZERO, Duration::ZERO));
        let mut progress = Progress::new();
        progress.set_previous_ms(500.0);
        assert_eq!(policy.next(&mut progress, &mut always(0.9)), Some(Duration::ZERO));
    }
    assert_eq!(Policy::DEFAULT.delay_after(0, 0.9), Ok(Duration::ZERO));
}

/// Field case 01.
#[test]
fn a_hundred_doublings_rise_to_the_cap_and_stay() {
    let policy = Policy::exponential(secs(2)).max_delay(secs(120)).jitter(Jitter::None);
    let waits = backoff_sequence(policy, 100);
    assert!(waits.is_sorted());
    assert_eq!(waits[5], secs(64));
    assert!(waits[6..].iter().all(|&wait| wait == secs(120)));
}

/// Field cases 02, 07 and 08. In case 02 the cap is reached after 10 failures: 10 s · 2^8 is 2560 s after 9.
#[test]
fn overflow_means_the_cap() {
    let table: [(u64, u64, &[u32]); 3] = [
        (10, 3600, &[10, 31, 32, 63, 64, 65, 66, 200]),
        (2, 300, &[9, 31, 32, 63, 64, 65, 1023, 1024, 1025, 2000]),
        (1, 60, &[1023, 1024, 1075, 100_000, u32::MAX]),
    ];
    for (base, cap, failures) in table {
        let policy = Policy::exponential(secs(base)).max_delay(secs(cap)).unbounded();
        for &n in failures {
            assert_eq!(policy.nominal_after(n), secs(cap), "base {base} s, {n} failures");
            assert_eq!(policy.multiplier(1.99).nominal_after(n), secs(cap), "base {base} s, {n} failures");
            assert_eq!(policy.jitter(Jitter::Decorrelated).nominal_after(n), secs(cap));
        }
    }
    assert_eq!(Policy::exponential(secs(10)).max_delay(secs(3600)).nominal_after(9), secs(2560));
}

/// Field case 04.
#[test]
fn a_base_above_the_cap_waits_the_cap() {
    let policy = Policy::exponential(secs(1)).max_delay(ms(10)).jitter(Jitter::None).max_attempts(101);
    assert_eq!(backoff_sequence(policy, 100), [ms(10); 100]);
    assert_eq!(policy.worst_case_total(), Some(secs(1)));
    let decorrelated = policy.jitter(Jitter::Decorrelated);
    assert_eq!(backoff_sequence(decorrelated, 3), [ms(10); 3]);
    assert_eq!(decorrelated.bounds_after(1), (ms(10), ms(10)));
}

/// Field case 05, first half, and 25: base 0 with jitter.
#[test]
fn a_base_of_zero_is_always_zero() {
    for jitter in KINDS {
        for policy in [Policy::exponential(Duration::ZERO), Policy::linear(Duration::ZERO), Policy::immediate()] {
            let policy = policy.uncapped().jitter(jitter);
            assert_eq!(backoff_sequence(policy, 33), [Duration::ZERO; 33]);
            for n in [1, 2, 33, 1024, u32::MAX] {
                assert_eq!(policy.bounds_after(n), (Duration::ZERO, Duration::ZERO));
            }
        }
    }
    assert_eq!(Policy::exponential(Duration::ZERO).uncapped().multiplier(1e300).nominal_after(9), Duration::ZERO);
}

/// Field case 05, second half.
#[test]
fn the_longest_base_is_the_longest_delay() {
    for policy in [Policy::exponential(Duration::MAX), Policy::linear(Duration::MAX), Policy::fixed(Duration::MAX)] {
        assert_eq!(policy.base(), Policy::MAX_DELAY);
        assert_eq!(policy.cap(), None);
        for jitter in KINDS {
            let policy = policy.jitter(jitter).allow_jitter_above_cap(true);
            assert_eq!(policy.nominal_after(1), Policy::MAX_DELAY);
            assert_eq!(policy.nominal_after(u32::MAX), Policy::MAX_DELAY);
            let longest = policy.delays(always(LARGEST_DRAW)).take(100);
            assert!(longest.into_iter().all(|delay| delay > Duration::ZERO && delay <= Policy::MAX_DELAY));
        }
    }
}

/// Field case 10.
#[test]
fn a_delay_too_long_to_count_saturates() {
    let policy = Policy::exponential(secs(1)).multiplier(1000.0).uncapped().jitter(Jitter::None);
    assert_eq!(policy.nominal_after(6), secs(1_000_000_000_000_000));
    assert_eq!(policy.nominal_after(8), Policy::MAX_DELAY);
    assert_eq!(policy.max_delay(secs(5)).nominal_after(8), secs(5));
}

/// Field case 11.
#[test]
fn doubling_starts_at_the_base() {
    let policy = Policy::exponential(ms(100)).uncapped().jitter(Jitter::None);
    assert_eq!(backoff_sequence(policy, 6), [100, 200, 400, 800, 1600, 3200].map(ms));
    assert_eq!(policy.nominal_after(1000), Policy::MAX_DELAY);
}

/// Field case 13.
#[test]
fn the_first_wait_is_the_base_itself() {
    let policy = Policy::exponential(secs(1)).multiplier(1.5).jitter(Jitter::None);
    assert_eq!(backoff_sequence(policy, 3), [ms(1000), ms(1500), ms(2250)]);
}

/// Field case 16.
#[test]
fn no_cap_leaves_the_delay_alone() {
    let policy = Policy::exponential(ms(800)).multiplier(1.0).jitter(Jitter::None);
    for policy in [policy.uncapped(), policy.max_delay(Duration::MAX), policy.max_delay(Policy::MAX_DELAY)] {
        assert_eq!(policy.cap(), None);
        assert_eq!(policy.nominal_after(1), ms(800));
        assert_eq!(policy.nominal_after(u32::MAX), ms(800));
    }
}

/// Field case 19.
#[test]
fn a_sequence_longer_than_the_attempts_stays_at_the_cap() {
    let policy = Policy::exponential(secs(1)).max_delay(secs(10)).jitter(Jitter::None).max_attempts(6);
    let expected = [1, 2, 4, 8, 10, 10, 10, 10, 10, 10, 10, 10].map(secs);
    assert_eq!(backoff_sequence(policy, 12), expected);
}

/// Field case 22.
#[test]
fn two_sided_jitter_stays_below_the_cap() {
    let policy = Policy::exponential(ms(800)).multiplier(1.5).max_delay(ms(1200)).jitter(Jitter::Proportional(0.5));
    assert_eq!(backoff_sequence_with(policy, 5, &mut always(LARGEST_DRAW)), [ms(1200); 5]);
    assert_eq!(policy.bounds_after(1), (ms(400), ms(1200)));
    assert_eq!(policy.bounds_after(5), (ms(600), ms(1200)));
    assert_eq!(policy.allow_jitter_above_cap(true).bounds_after(5), (ms(600), ms(1800)));
}

/// Field case 23.
#[test]
fn one_sided_jitter_keeps_its_spread_at_the_cap() {
    let policy = Policy::exponential(secs(1)).max_delay(secs(30)).unbounded();
    let mut rng = SeededRng::new(23);
    for (jitter, low) in [(Jitter::Equal, 15_000), (Jitter::Full, 0), (Jitter::Downward(0.5), 15_000)] {
        let policy = policy.jitter(jitter);
        let mut delays: Vec<_> = (0..1000).map(|_| policy.delay_after(20, rng.next_f64()).unwrap()).collect();
        assert_eq!(policy.bounds_after(20), (ms(low), secs(30)));
        delays.sort();
        delays.dedup();
        assert!(delays.len() > 900, "{jitter:?}: only {} different delays", delays.len());
    }
}

/// Field case 25.
#[test]
fn jitter_of_zero_is_none() {
    let draws = [-0.0, 0.0, 0.5, LARGEST_DRAW, 1.0, -0.5, -1.0, f64::MIN, f64::MAX, f64::NEG_INFINITY, f64::NAN];
    let zeros = [0.0, -0.0];
    for jitter in zeros.map(Jitter::Proportional).into_iter().chain(zeros.map(Jitter::Downward)) {
        let policy = Policy::exponential(secs(1)).jitter(jitter);
        for draw in draws {
            assert_eq!(policy.delay_after(2, draw), Ok(secs(2)));
        }
        assert_eq!(policy.bounds_after(2), (secs(2), secs(2)));
    }
    // A negative draw is no draw below the range of any other kind.
    for jitter in KINDS {
        let policy = Policy::exponential(secs(1)).jitter(jitter);
        for negative in [-0.0, -0.5, -1.0, f64::MIN, f64::NEG_INFINITY] {
            let delays = |draw| policy.delays(always(draw)).take(3).collect::<Vec<_>>();
            assert_eq!(delays(negative), delays(0.0), "{jitter:?} {negative}");
        }
    }
}

/// Field case 26. The shortest draw of `downward(1.0)` is above zero, and its wait is zero only below half a millisecond,
/// where it is rounded down.
#[test]
fn jitter_as_large_as_the_delay_reaches_zero() {
    let mut rng = SeededRng::new(26);
    let policy = Policy::fixed(ms(200));
    let (both, down) = (policy.jitter(Jitter::Proportional(1.0)), policy.jitter(Jitter::Downward(1.0)));
    assert_eq!(both.bounds_after(1), (ms(0), ms(400)));
    assert_eq!(down.bounds_after(1), (ms(0), ms(200)));
    for _ in 0..10_000 {
        let draw = rng.next_f64();
        assert!(both.delay_after(1, draw).unwrap() <= ms(400));
        let wait = down.delay_after(1, draw).unwrap();
        assert!(wait <= ms(200));
        assert_eq!(wait.is_zero(), 200.0 * (1.0 - draw) < 0.5, "{draw}");
    }
    let longer = Policy::fixed(Policy::MAX_DELAY).jitter(Jitter::Downward(1.0));
    assert!(longer.delay_after(1, LARGEST_DRAW).unwrap() > Duration::ZERO);
    assert_eq!(down.delay_after(1, 0.0), Ok(ms(200)));
}

#[test]
fn each_jitter_follows_its_formula() {
    let policy = Policy::fixed(ms(1000));
    let table = [
        (Jitter::None, [1000, 1000, 1000]),
        (Jitter::Full, [0, 250, 1000]),
        (Jitter::Equal, [500, 625, 1000]),
        (Jitter::Proportional(0.2), [800, 900, 1200]),
        (Jitter::Downward(0.2), [1000, 950, 800]),
    ];
    for (jitter, expected) in table {
        for (draw, expected) in [0.0, 0.25, LARGEST_DRAW].into_iter().zip(expected) {
            assert_eq!(policy.jitter(jitter).delay_after(1, draw), Ok(ms(expected)), "{jitter:?} at {draw}");
        }
    }
}

#[test]
fn decorrelated_jitter_follows_the_previous_delay_unrounded() {
    let policy = Policy::exponential(ms(5)).max_delay(ms(2000)).jitter(Jitter::Decorrelated);
    let mut rng = SeededRng::new(1);
    let mut same = SeededRng::new(1);
    let mut previous = 5.0_f64;
    for delay in policy.delays(&mut rng).take(1000) {
        previous = (5.0 + same.next_f64() * (3.0 * previous - 5.0)).min(2000.0);
        assert!((delay.as_secs_f64() * 1000.0 - previous).abs() <= 0.5 + 1e-9);
    }
    assert_eq!(policy.bounds_after(3), (ms(5), ms(135)));
    assert_eq!(policy.nominal_after(3), ms(45));
    assert_eq!(policy.bounds_after(7), (ms(5), ms(2000)));
    assert_eq!(policy.delay_after(1, 0.5), Err(StatefulJitter));
    // The multiplier has no part in it.
    assert_eq!(policy.multiplier(7.0).bounds_after(3), policy.bounds_after(3));
    // Above the cap, the previous delay counts up to the cap.
    let above = policy.allow_jitter_above_cap(true);
    assert_eq!(above.bounds_after(50), (ms(5), ms(6000)));
    assert_eq!(above.delays(always(LARGEST_DRAW)).nth(49), Some(ms(6000)));
}

#[test]
fn at_most_one_draw_is_taken_for_a_delay() {
    for jitter in KINDS {
        for policy in [Policy::DEFAULT, Policy::immediate()] {
            let mut rng = always(0.5);
            let taken = policy.jitter(jitter).delays(&mut rng).take(10).count();
            assert_eq!(taken, 10);
            assert_eq!(rng.taken, if jitter == Jitter::None { 0 } else { 10 }, "{jitter:?}");
        }
    }
}

#[test]
fn draws_out_of_range_are_clamped() {
    for jitter in KINDS {
        let policy = Policy::exponential(secs(1)).jitter(jitter);
        let with = |draw| policy.delays(always(draw)).nth(2).unwrap();
        for low in [-0.0, -1.0, f64::NEG_INFINITY, f64::MIN] {
            assert_eq!(with(low), with(0.0));
        }
        for high in [1.0, 2.0, f64::INFINITY, f64::MAX] {
            assert_eq!(with(high), with(LARGEST_DRAW));
        }
        assert_eq!(with(f64::NAN), with(0.5));
    }
}

#[test]
fn delays_are_rounded_half_up_to_whole_milliseconds() {
    let nominal = |nanos| Policy::fixed(Duration::from_nanos(nanos)).nominal_after(1);
    for (nanos, rounded) in [(1_000_000, 1), (1_499_999, 1), (1_500_000, 2), (2_500_000, 3), (3_499_999, 3)] {
        assert_eq!(nominal(nanos), ms(rounded), "{nanos} ns");
    }
    // Up to the precision of an f64, where adding one half goes wrong.
    let full = Policy::fixed(ms(1)).jitter(Jitter::Full);
    assert_eq!(full.delay_after(1, 0.499_999_999_999_999_94), Ok(ms(0)));
    assert_eq!(full.delay_after(1, 0.5), Ok(ms(1)));
    for odd in [(1 << 52) + 1, (1 << 53) - 1] {
        assert_eq!(Policy::fixed(ms(odd)).nominal_after(1), ms(odd));
    }
    // Both sides of the shorter way for delays below 2^32 ms.
    for long in [u64::from(u32::MAX) - 1, u64::from(u32::MAX), u64::from(u32::MAX) + 1] {
        assert_eq!(Policy::fixed(ms(long)).nominal_after(1), ms(long));
    }
    assert_eq!(Policy::fixed(ms(u64::from(u32::MAX)) + Duration::from_micros(500)).nominal_after(1), ms(1 << 32));
}

#[test]
fn the_cap_is_taken_down_to_whole_milliseconds() {
    let capped = |cap| Policy::fixed(secs(u64::MAX)).max_delay(cap);
    assert_eq!(capped(Duration::from_micros(1999)).cap(), Some(ms(1)));
    assert_eq!(capped(Duration::from_micros(1999)).nominal_after(1), ms(1));
    assert_eq!(capped(Duration::from_micros(999)).nominal_after(1), ms(0));
    assert_eq!(capped(Duration::ZERO).nominal_after(1), ms(0));
    for cap in [(1 << 53) + 1, u64::MAX - 1] {
        let policy = capped(ms(cap));
        assert!(policy.nominal_after(1) <= ms(cap));
        assert_eq!(policy.cap(), Some(policy.nominal_after(1)));
    }
    let fractional = Policy::exponential(Duration::from_micros(45_000_500));
    assert_eq!(fractional.cap(), Some(ms(45_000)));
    assert_eq!(fractional.nominal_after(1), ms(45_000));
}

#[test]
fn a_schedule_reports_limits_and_lower_bounds() {
    let policy = Policy::exponential(ms(100)).max_attempts(7).max_elapsed(secs(9));
    assert_eq!(Schedule::max_attempts(&policy), 7);
    assert_eq!(Schedule::max_elapsed(&policy), Some(secs(9)));
    assert_eq!(policy.waits(), None);
    let mut progress = Progress::new();
    progress.count_failure();
    progress.count_failure();
    for (jitter, low) in [
        (Jitter::None, 200),
        (Jitter::Full, 0),
        (Jitter::Equal, 100),
        (Jitter::Decorrelated, 100),
        (Jitter::Proportional(0.25), 150),
        (Jitter::Downward(0.25), 150),
    ] {
        let policy = policy.jitter(jitter);
        let wait = policy.next(&mut progress, &mut always(0.5)).unwrap();
        assert_eq!(policy.lower_bound(&progress, wait), ms(low), "{jitter:?}");
    }
}

#[test]
fn the_computed_delay_is_fed_back_unrounded() {
    let policy = Policy::fixed(ms(3)).jitter(Jitter::Equal);
    let mut progress = Progress::new();
    progress.count_failure();
    assert_eq!(policy.next(&mut progress, &mut always(0.5)), Some(ms(2)));
    assert!((progress.previous_ms() - 2.25).abs() < 1e-12);
    // A previous delay that no run can have is taken into range.
    let policy = policy.jitter(Jitter::Decorrelated);
    for previous in [f64::NAN, f64::INFINITY, -1e300, 1e300] {
        progress.set_previous_ms(previous);
        let delay = policy.next(&mut progress, &mut always(0.5)).unwrap();
        assert_eq!(delay, ms(6), "previous {previous}");
    }
}

#[test]
fn the_limit_of_elapsed_time_ends_at_584_years() {
    let policy = Policy::DEFAULT;
    let longest = Duration::from_nanos(u64::MAX - 1);
    assert_eq!(policy.max_elapsed(longest).elapsed_limit(), Some(longest));
    assert_eq!(policy.max_elapsed(Duration::from_nanos(u64::MAX)).elapsed_limit(), None);
    assert_eq!(policy.max_elapsed(Duration::MAX), policy);
    let years = |duration: Duration| duration.as_secs() / 31_556_952;
    assert_eq!(years(longest), 584);
    assert_eq!(years(Policy::MAX_DELAY), 584_554_049);
}

/// Of 1000 clients at the cap, how many fall into the fullest slot of 10 ms, averaged over 50 outages.
fn fullest_slot(policy: Policy) -> f64 {
    let mut rng = SeededRng::new(2);
    let mut sum = 0_u32;
    for _ in 0..50 {
        let mut slots = [0_u32; 301];
        for _ in 0..1000 {
            let delay = policy.delays(&mut rng).nth(13).unwrap();
            slots[usize::try_from(delay.as_millis() / 10).unwrap()] += 1;
        }
        sum += slots.into_iter().max().unwrap();
    }
    f64::from(sum) / 50.0
}

#[test]
fn the_spread_at_the_cap_is_as_documented() {
    let policy = Policy::exponential(ms(5)).max_delay(secs(2));
    let fullest = |jitter| fullest_slot(policy.jitter(jitter));
    let within = |range: core::ops::Range<f64>, value: f64| assert!(range.contains(&value), "{value} not in {range:?}");
    within(1000.0..1001.0, fullest(Jitter::None));
    within(11.0..13.0, fullest(Jitter::Full));
    within(17.0..20.0, fullest(Jitter::Equal));
    within(130.0..170.0, fullest(Jitter::Decorrelated));
    within(480.0..520.0, fullest(Jitter::Proportional(0.5)));
    let above = policy.jitter(Jitter::Proportional(0.5)).allow_jitter_above_cap(true);
    within(11.0..13.0, fullest_slot(above));
}

#[test]
fn the_worst_case_is_the_sum_of_the_longest_waits() {
    let sum = |policy: Policy| {
        (1..policy.attempts()).fold(Duration::ZERO, |sum, n| sum.saturating_add(policy.bounds_after(n).1))
    };
    let growing = [
        Policy::DEFAULT,
        Policy::DEFAULT.multiplier(1.5).uncapped(),
        Policy::linear(Duration::from_micros(1500)),
        Policy::linear(ms(7)).max_delay(secs(3)).jitter(Jitter::Proportional(0.3)),
        Policy::exponential(ms(1)).jitter(Jitter::Decorrelated),
        Policy::exponential(ms(1)).multiplier(1.000_001).uncapped(),
        Policy::immediate(),
    ];
    for policy in growing {
        for attempts in [1, 2, 3, 10, 100, 4097] {
            let policy = policy.max_attempts(attempts);
            assert_eq!(policy.worst_case_total(), Some(sum(policy)), "{policy}");
        }
        // Beyond that never too short, and about one per cent too long at most.
        let policy = policy.max_attempts(200_000);
        let (exact, total) = (sum(policy), policy.worst_case_total().unwrap());
        assert!(total >= exact && total <= exact.saturating_add(exact / 90), "{policy}: {total:?} for {exact:?}");
    }
    assert_eq!(Policy::DEFAULT.max_attempts(1).worst_case_total(), Some(Duration::ZERO));
    let all = Policy::fixed(ms(1)).max_attempts(u32::MAX);
    assert_eq!(all.worst_case_total(), Some(ms(u64::from(u32::MAX) - 1)));
    assert_eq!(all.max_elapsed(secs(1)).worst_case_total(), Some(secs(1)));
    assert_eq!(Policy::fixed(Duration::MAX).max_attempts(u32::MAX).worst_case_total(), Some(Duration::MAX));
    let linear = Policy::linear(ms(2)).max_attempts(u32::MAX).worst_case_total().unwrap();
    let n = u64::from(u32::MAX) - 1;
    assert!(linear >= ms(n * (n + 1)) && linear < ms(n * (n + 1)).mul_f64(1.001));
}

#[test]
fn the_table_tells_when_a_policy_gives_up() {
    let policy = Policy::exponential(ms(100)).max_delay(secs(1)).max_attempts(8);
    let rows: Vec<_> = policy.table().into_iter().collect();
    assert_eq!(rows.len(), 8);
    assert_eq!((rows[0].attempt, rows[0].longest, rows[0].latest), (1, ms(0), ms(0)));
    assert_eq!((rows[2].shortest, rows[2].longest), (ms(100), ms(200)));
    assert_eq!((rows[2].earliest, rows[2].latest), (ms(150), ms(300)));
    assert_eq!(rows[7].latest, policy.worst_case_total().unwrap());
    assert_eq!(
        policy.table().to_string(),
        "\
attempt       wait before it         begins after
      1                    -                    -
      2          50ms..100ms          50ms..100ms
      3         100ms..200ms         150ms..300ms
      4         200ms..400ms         350ms..700ms
      5         400ms..800ms          750ms..1.5s
      6            500ms..1s          1.25s..2.5s
    ...            500ms..1s            and so on
gives up when attempt 8 fails, after waiting at most 4.5s"
    );
}

#[test]
fn the_table_ends_at_the_limit_of_elapsed_time() {
    let policy = Policy::exponential(ms(100)).unbounded().max_elapsed(ms(500));
    assert_eq!(
        policy.table().to_string(),
        "\
attempt       wait before it         begins after
      1                    -                    -
      2          50ms..100ms          50ms..100ms
      3         100ms..200ms         150ms..300ms
      4         200ms..400ms         350ms..500ms
gives up when a wait would end later than 500ms after the start"
    );
    let both = policy.max_attempts(2).table().to_string();
    assert!(both.ends_with("\ngives up when attempt 2 fails, or a wait would end later than 500ms after the start"));
}

#[test]
fn a_table_that_keeps_growing_stops_after_20_rows() {
    let table = Policy::linear(secs(1)).unbounded().table();
    let text = table.to_string();
    assert_eq!(text.lines().count(), 1 + 20 + 1 + 1);
    assert!(text.ends_with("\n    ...              growing            and so on\nnever gives up"), "{text}");
    assert_eq!(table.rows().nth(99_999).map(|row| (row.attempt, row.longest)), Some((100_000, secs(99_999))));
    assert_eq!(Policy::immediate().table().rows().last().map(|row| (row.attempt, row.latest)), Some((3, ms(0))));
}

#[test]
fn a_config_of_a_policy_makes_an_equal_policy() {
    assert_eq!(Policy::try_from(PolicyConfig::default()), Ok(Policy::DEFAULT));
    for jitter in KINDS {
        for policy in [Policy::DEFAULT, Policy::linear(ms(3)).max_delay(secs(1)), Policy::exponential(Duration::MAX)] {
            let policy = policy.jitter(jitter).unbounded().max_elapsed(secs(5)).allow_jitter_above_cap(true);
            assert_eq!(Policy::try_from(PolicyConfig::from(policy)), Ok(policy));
        }
    }
    // What a config leaves out is the default of its growth, not of the default policy.
    let config = PolicyConfig { growth: Growth::Fixed, base: secs(60), ..PolicyConfig::default() };
    assert_eq!(Policy::try_from(config), Ok(Policy::fixed(secs(60))));
}

#[test]
fn a_bad_config_names_field_value_and_rule() {
    let good = PolicyConfig::default();
    let table = [
        (
            PolicyConfig { base: Duration::from_micros(100), ..good },
            ("base", "0.1ms"),
            "base must be 0 or at least 1 ms (less would round to no wait at all), not 0.1ms",
        ),
        (
            PolicyConfig { growth: Growth::Exponential(f64::NAN), ..good },
            ("multiplier", "NaN"),
            "multiplier must be finite and at least 1, not NaN",
        ),
        (
            PolicyConfig { growth: Growth::Exponential(0.99), ..good },
            ("multiplier", "0.99"),
            "multiplier must be finite and at least 1, not 0.99",
        ),
        (
            PolicyConfig { jitter: Some(Jitter::Proportional(25.0)), ..good },
            ("jitter", "25"),
            "jitter fraction must lie in 0..=1 (25 % is 0.25), not 25",
        ),
        (
            PolicyConfig { jitter: Some(Jitter::Downward(-0.1)), ..good },
            ("jitter", "-0.1"),
            "jitter fraction must lie in 0..=1 (25 % is 0.25), not -0.1",
        ),
    ];
    for (config, (field, value), message) in table {
        let error = Policy::try_from(config).unwrap_err();
        assert_eq!((error.field(), error.value(), error.position()), (field, value, None));
        assert!(message.starts_with(error.rule()));
        assert_eq!(error.to_string(), message);
    }
}

#[test]
#[should_panic(expected = "multiplier must be finite and at least 1")]
fn a_setter_panics_with_the_rule() {
    let _ = Policy::DEFAULT.multiplier(f64::NAN);
}

#[test]
#[should_panic(expected = "jitter fraction must lie in 0..=1")]
fn a_negative_fraction_panics() {
    let _ = Policy::DEFAULT.jitter(Jitter::Downward(-0.25));
}

#[test]
#[should_panic(expected = "base must be 0 or at least 1 ms")]
fn a_base_below_one_millisecond_panics() {
    let _ = Policy::fixed(Duration::from_nanos(999_999));
}

/// With a base of 2^63 ms the last bit of a draw shows in the delay.
#[test]
fn a_draw_outside_the_unit_interval_is_the_nearest_inside() {
    let policy = Policy::fixed(ms(1 << 63)).jitter(Jitter::Full);
    let after = |draw| policy.delay_after(1, draw).unwrap();
    for draw in [1.0, 1.5, f64::INFINITY] {
        assert_eq!(after(draw), after(LARGEST_DRAW));
    }
    assert_eq!(after(LARGEST_DRAW), ms((1 << 63) - (1 << 10)));
    assert_eq!(after(-0.5), after(0.0));
    assert_eq!(after(f64::NAN), ms(1 << 62));
}

/// What is longer than 2^64 ms counts as that, whatever its low bits.
#[test]
fn a_delay_beyond_the_range_is_the_longest() {
    for secs in [u64::MAX / 1000 + 1, 1 << 60, u64::MAX] {
        assert_eq!(Policy::fixed(Duration::from_secs(secs)).nominal_after(1), Policy::MAX_DELAY);
        assert_eq!(Policy::DEFAULT.max_delay(Duration::from_secs(secs)).cap(), None);
    }
    assert_ne!(Policy::fixed(ms(u64::MAX - 4096)).nominal_after(1), Policy::MAX_DELAY);

    let longest = Duration::from_nanos(u64::MAX);
    for limit in [longest, longest + ms(1), secs(1 << 60), Duration::MAX] {
        let policy = Policy::DEFAULT.max_elapsed(limit);
        assert_eq!(policy, Policy::DEFAULT.max_elapsed(Duration::MAX), "{limit:?}");
    }
    assert_ne!(Policy::DEFAULT.max_elapsed(Duration::from_nanos(u64::MAX - 1)), Policy::DEFAULT.max_elapsed(longest));
}

#[test]
fn delays_never_end() {
    let mut delays = Policy::DEFAULT.delays(SeededRng::new(1));
    for _ in 0..3 {
        assert_eq!(delays.size_hint(), (usize::MAX, None));
        assert!(delays.next().is_some());
    }
}

#[test]
fn an_attempt_may_begin_at_the_deadline_itself() {
    let limited = |limit| Policy::fixed(secs(1)).unbounded().max_elapsed(limit).table().rows().count();
    assert_eq!([ms(1999), secs(2), ms(2001)].map(limited), [2, 3, 3]);
}

#[test]
fn a_table_shows_the_first_wait_even_if_it_is_none() {
    assert_eq!(
        Policy::immediate().unbounded().table().to_string(),
        "\
attempt       wait before it         begins after
      1                    -                    -
      2                    -                    -
    ...                    -            and so on
never gives up"
    );
}

#[test]
fn a_refusal_says_what_the_jitter_lacks() {
    assert_eq!(StatefulJitter.to_string(), "decorrelated jitter has no delay without the one before it");
}

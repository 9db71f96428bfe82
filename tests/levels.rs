//! Levels: the sequences they make, what they refuse, and a naive reference that they are held against.
#![cfg(feature = "std")]

use core::future::ready;
use core::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use relent::clock::{Clock, VirtualClock};
use relent::levels::{Level, Levels, LevelsError};
use relent::retry::StopReason;
use relent::rng::{FixedRng, rng_fn};
use relent::schedule::{Progress, Schedule};
use relent::{Attempt, retry};

/// The waits after failures `1..=n` in milliseconds, up to the end of the schedule.
fn waits_drawn(levels: &Levels, n: usize, draw: f64) -> Vec<u128> {
    let mut progress = Progress::new();
    let step = |_| {
        progress.count_failure();
        levels.next(&mut progress, &mut FixedRng::new(draw)).map(|wait| wait.as_millis())
    };
    (0..n).map_while(step).collect()
}

fn waits<const N: usize>(list: [Level; N], n: usize) -> Vec<u128> {
    waits_drawn(&Levels::try_from(list).unwrap(), n, 0.5)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn refusal<const N: usize>(list: [Level; N]) -> String {
    Levels::try_from(list).unwrap_err().to_string()
}

const AT_ONCE: Level = Level::new(1).delay(Duration::ZERO);

#[test]
fn the_default_is_one_immediate_and_eight_golden() {
    let expected = [0, 987, 1597, 2584, 4181, 6765, 10_946, 17_711, 28_657];
    assert_eq!(waits_drawn(&Levels::default(), 100, 0.5), expected);
    assert_eq!(Levels::DEFAULT.waits(), Some(9));
    assert_eq!(Levels::default(), Levels::DEFAULT);
}

#[test]
fn a_level_with_a_delay_starts_at_it() {
    let list = [AT_ONCE, Level::new(5).delay(ms(100)).increment_ms(250), Level::unbounded().delay(ms(30_000))];
    assert_eq!(waits(list, 9), [0, 100, 350, 600, 850, 1100, 30_000, 30_000, 30_000]);
}

#[test]
fn a_level_without_a_delay_grows_the_current_one_at_once() {
    let list =
        [Level::new(3).delay(ms(1000)).factor(2.0), Level::unbounded().factor(1.5).max_delay(Duration::from_secs(120))];
    let expected =
        [1000, 2000, 4000, 6000, 9000, 13_500, 20_250, 30_375, 45_563, 68_344, 102_516, 120_000, 120_000, 120_000];
    assert_eq!(waits(list, 14), expected);
}

#[test]
fn a_bare_level_repeats_the_current_delay() {
    assert_eq!(waits([Level::new(2).delay(ms(10)).factor(3.0), Level::new(3)], 9), [10, 30, 30, 30, 30]);
}

#[test]
fn a_level_can_start_again_below_the_current_delay() {
    let list = [Level::new(2).delay(ms(500)).factor(2.0), Level::new(2).delay(ms(5)).factor(2.0), Level::new(1)];
    assert_eq!(waits(list, 9), [500, 1000, 5, 10, 10]);
}

#[test]
fn the_factor_comes_before_the_increment() {
    assert_eq!(waits([Level::new(4).delay(ms(100)).factor(2.0).increment_ms(-30)], 9), [100, 170, 310, 590]);
}

#[test]
fn a_negative_increment_ends_at_zero() {
    let down = Level::unbounded().delay(ms(250)).increment_ms(-100);
    assert_eq!(waits([down], 6), [250, 150, 50, 0, 0, 0]);
    assert_eq!(
        waits([Level::new(1).delay(ms(9)), Level::new(2).increment_ms(i64::MIN), Level::new(1)], 9),
        [9, 0, 0, 0]
    );
}

#[test]
fn a_factor_below_one_shrinks_and_zero_leaves_the_increment() {
    assert_eq!(waits([Level::new(4).delay(ms(1000)).factor(0.5)], 9), [1000, 500, 250, 125]);
    assert_eq!(waits([Level::new(3).delay(ms(1000)).factor(0.0).increment_ms(7)], 9), [1000, 7, 7]);
}

#[test]
fn entry_delays_are_capped_whether_given_or_carried() {
    let given = Level::new(2).delay(ms(9000)).max_delay(ms(400));
    assert_eq!(waits([given], 9), [400, 400]);
    let carried = [Level::new(1).delay(ms(9000)), Level::new(1).max_delay(ms(400)), Level::new(1)];
    assert_eq!(waits(carried, 9), [9000, 400, 400]);
    assert_eq!(waits([Level::new(1).delay(ms(9000)).max_delay(Duration::ZERO)], 9), [0]);
}

#[test]
fn a_cap_is_taken_down_to_whole_milliseconds() {
    let list = [Level::new(2).delay(ms(2)).max_delay(Duration::from_micros(1999))];
    assert_eq!(waits(list, 9), [1, 1]);
}

#[test]
fn what_is_waited_is_rounded_half_up_and_what_grows_is_not() {
    assert_eq!(waits([Level::new(5).delay(ms(1)).factor(1.5)], 9), [1, 2, 2, 3, 5]);
    assert_eq!(waits([Level::new(2).delay(Duration::from_micros(1499))], 9), [1, 1]);
    assert_eq!(waits([Level::new(1).delay(Duration::from_micros(1500))], 9), [2]);
}

#[test]
fn waits_saturate_at_the_most_milliseconds_of_a_u64() {
    let longest = u128::from(u64::MAX);
    assert_eq!(waits([Level::new(1).delay(Duration::MAX)], 9), [longest]);
    assert_eq!(waits([Level::new(3).delay(ms(1)).factor(f64::MAX)], 9), [1, longest, longest]);
    assert_eq!(waits([Level::new(5).delay(ms(1)).increment_ms(i64::MAX)], 9)[2..], [longest; 3]);
    let cap = u64::MAX - 1;
    let capped = waits([Level::new(1).delay(Duration::MAX).max_delay(ms(cap))], 9);
    assert_eq!(capped, [u128::from(u64::MAX - 2047)], "the nearest number below that an f64 can hold");
    let back = [Level::new(2).delay(ms(1)).factor(f64::MAX), Level::new(1).factor(0.0).increment_ms(5)];
    assert_eq!(waits(back, 9), [1, longest, 5]);
}

#[test]
fn jitter_is_downward_and_never_fed_back() {
    let list = [Level::new(2).delay(ms(1000)).factor(2.0).jitter(0.25), Level::new(2).factor(2.0).jitter(1.0)];
    let levels = Levels::try_from(list).unwrap();
    assert_eq!(waits_drawn(&levels, 9, 0.0), [1000, 2000, 4000, 8000]);
    assert_eq!(waits_drawn(&levels, 9, 0.5), [875, 1750, 2000, 4000]);
    assert_eq!(waits_drawn(&levels, 9, 1.0 - f64::EPSILON), [750, 1500, 0, 0]);
}

#[test]
fn a_draw_out_of_range_is_taken_into_it() {
    let levels = Levels::try_from([Level::new(1).delay(ms(1000)).jitter(0.25)]).unwrap();
    for (draw, wait) in [(f64::NAN, 875), (-1.0, 1000), (f64::NEG_INFINITY, 1000), (2.0, 750), (f64::INFINITY, 750)] {
        assert_eq!(waits_drawn(&levels, 1, draw), [wait], "draw {draw}");
    }
}

#[test]
fn each_failure_takes_one_draw_and_none_without_jitter() {
    let levels = Levels::try_from([AT_ONCE, Level::new(3).delay(ms(10)).jitter(0.5)]).unwrap();
    let mut progress = Progress::new();
    let mut draws = 0;
    let taken = [(); 5].map(|()| {
        progress.count_failure();
        let mut rng = rng_fn(|| {
            draws += 1;
            0.5
        });
        levels.next(&mut progress, &mut rng);
        draws
    });
    assert_eq!(taken, [0, 1, 2, 3, 3]);
}

#[test]
fn the_lower_bound_is_that_of_the_present_level() {
    let list = [Level::new(1).delay(ms(100)), Level::new(1).delay(ms(333)).jitter(0.5), Level::new(1).jitter(1.0)];
    let levels = Levels::try_from(list).unwrap();
    let mut progress = Progress::new();
    let bounds = [(); 3].map(|()| {
        progress.count_failure();
        let wait = levels.next(&mut progress, &mut FixedRng::new(0.0)).unwrap();
        (wait, levels.lower_bound(&progress, wait))
    });
    assert_eq!(bounds, [(ms(100), ms(100)), (ms(333), ms(167)), (ms(333), ms(0))]);
}

#[test]
fn progress_tells_level_and_failures_on_it() {
    let levels = Levels::try_from([AT_ONCE, Level::new(2).delay(ms(10))]).unwrap();
    let mut progress = Progress::new();
    let seen = [(); 5].map(|()| {
        progress.count_failure();
        let ended = levels.next(&mut progress, &mut FixedRng::new(0.5)).is_none();
        (progress.failures(), progress.level(), progress.level_failures(), ended)
    });
    assert_eq!(seen, [(1, 0, 1, false), (2, 1, 1, false), (3, 1, 2, false), (4, 1, 3, true), (5, 1, 4, true)]);
}

#[test]
fn the_number_of_waits_is_known_and_saturates() {
    let number = |list: Vec<Level>| Levels::try_from(list).unwrap().waits();
    assert_eq!(number(vec![AT_ONCE, Level::new(8)]), Some(9));
    assert_eq!(number(vec![AT_ONCE, Level::new(u32::MAX), Level::new(3)]), Some(u32::MAX));
    assert_eq!(number(vec![AT_ONCE, Level::new(u32::MAX), Level::unbounded()]), None);
}

#[test]
fn one_list_serves_several_runs() {
    let levels = Levels::DEFAULT;
    assert_eq!(waits_drawn(&levels, 4, 0.5), waits_drawn(&levels, 4, 0.5));
}

#[test]
fn every_storage_makes_the_same_levels() {
    static LIST: [Level; 2] = [AT_ONCE, Level::unbounded().delay(Duration::from_secs(1))];
    static LEVELS: Levels = Levels::new(&LIST);
    assert_eq!(Levels::try_from(LIST), Ok(LEVELS.clone()));
    assert_eq!(Levels::try_from(LIST.to_vec()), Ok(LEVELS.clone()));
    assert_eq!(Levels::try_from(&LIST[..]), Ok(LEVELS.clone()));
}

#[test]
fn a_run_waits_as_the_levels_say_and_their_end_is_exhaustion() {
    let clock = VirtualClock::new();
    let mut calls = Vec::new();
    let op = |attempt: Attempt| {
        calls.push((clock.now(), attempt.is_final()));
        ready(Err::<(), _>("E"))
    };
    let schedule: &dyn Schedule = &Levels::try_from([AT_ONCE, Level::new(2).delay(ms(100)).factor(3.0)]).unwrap();
    let report = clock.block_on(retry(op, schedule).clock(&clock).rng(FixedRng::new(0.5)).report());
    assert_eq!(report.stop, Some(StopReason::Exhausted));
    assert_eq!(calls, [(ms(0), false), (ms(0), false), (ms(100), false), (ms(400), true)]);
}

/// Field case 17: an endless schedule is not written out in advance.
#[test]
fn an_endless_level_needs_no_room() {
    for last in [Level::unbounded(), Level::new(u32::MAX)] {
        assert_eq!(waits([last.delay(ms(1)).factor(2.0)], 3), [1, 2, 4]);
    }
}

/// Field case 19: a last level without end stays at its cap.
#[test]
fn a_long_outage_stays_at_the_cap() {
    let growing = Level::new(5).delay(ms(1000)).factor(2.0).max_delay(ms(10_000));
    let expected = [1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000];
    assert_eq!(waits([growing, Level::unbounded()], 12), expected);
    assert_eq!(waits([growing], 12), expected[..5]);
}

/// Field case 118: a child that dies at once is restarted ever more slowly, then given up.
#[test]
fn a_child_that_dies_at_once_is_slowed_down_and_given_up() {
    let waits = waits([Level::new(99).delay(ms(1000)).factor(2.0).max_delay(ms(30_000))], 1000);
    assert_eq!(waits[..6], [1000, 2000, 4000, 8000, 16_000, 30_000]);
    assert!(waits[6..].iter().all(|&wait| wait == 30_000));
    assert_eq!(waits.len(), 99, "one hundred deaths, the last of them final");
}

#[test]
fn an_error_names_level_field_value_and_rule() {
    let next = |level| refusal([AT_ONCE, level]);
    assert_eq!(refusal([]), "there must be at least one level");
    assert_eq!(
        refusal([Level::new(3)]),
        "levels[0]: the first level must have a delay, as there is none to carry over"
    );
    assert_eq!(next(Level::new(0)), "levels[1]: count must be at least 1, not 0");
    assert_eq!(
        refusal([AT_ONCE, Level::unbounded(), Level::new(1)]),
        "levels[1]: count must be bounded on every level but the last, not unbounded"
    );
    assert_eq!(next(Level::new(1).factor(-0.5)), "levels[1]: factor must be finite and at least 0, not -0.5");
    assert_eq!(next(Level::new(1).factor(f64::NAN)), "levels[1]: factor must be finite and at least 0, not NaN");
    assert_eq!(next(Level::new(1).factor(f64::INFINITY)), "levels[1]: factor must be finite and at least 0, not inf");
    assert_eq!(next(Level::new(1).jitter(25.0)), "levels[1]: jitter must be a fraction between 0 and 1, not 25");
    assert_eq!(next(Level::new(1).jitter(-0.1)), "levels[1]: jitter must be a fraction between 0 and 1, not -0.1");
    assert_eq!(next(Level::new(1).jitter(f64::NAN)), "levels[1]: jitter must be a fraction between 0 and 1, not NaN");
    let short = Duration::from_micros(999);
    assert_eq!(next(Level::new(1).delay(short)), "levels[1]: delay must be zero or at least 1 ms, not 999µs");
    assert_eq!(next(Level::new(1).max_delay(short)), "levels[1]: max_delay must be zero or at least 1 ms, not 999µs");
}

#[test]
fn an_error_can_be_matched() {
    let error = Levels::try_from(vec![AT_ONCE, Level::new(2), Level::new(1).jitter(1.5)]).unwrap_err();
    assert_eq!(error, LevelsError::Jitter { level: 2, jitter: 1.5 });
}

#[test]
fn the_edges_of_every_range_are_accepted() {
    let edge = AT_ONCE.factor(0.0).jitter(1.0).max_delay(Duration::ZERO);
    let list = [edge, Level::new(1).delay(ms(1)).max_delay(ms(1)).factor(f64::MAX).increment_ms(i64::MAX)];
    assert_eq!(waits(list, 9), [0, 1]);
}

/// A level as the reference knows it.
#[derive(Clone, Copy, Debug)]
struct Spec {
    count: Option<u32>,
    delay: Option<Duration>,
    factor: f64,
    increment_ms: i64,
    jitter: f64,
    max_delay: Option<Duration>,
}

impl Spec {
    fn level(&self) -> Level {
        let mut level = self.count.map_or(Level::unbounded(), Level::new);
        if let Some(delay) = self.delay {
            level = level.delay(delay);
        }
        if let Some(max_delay) = self.max_delay {
            level = level.max_delay(max_delay);
        }
        level.factor(self.factor).increment_ms(self.increment_ms).jitter(self.jitter)
    }
}

fn levels_of(specs: &[Spec]) -> Result<Levels, LevelsError> {
    specs.iter().map(Spec::level).collect::<Vec<_>>().try_into()
}

/// Every wait of the list, written out, with the spec that it belongs to.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn reference(specs: &[Spec], draws: &[f64]) -> Vec<(Spec, Duration)> {
    let mut waits = Vec::new();
    let mut current = 0.0;
    for spec in specs {
        let whole_cap = spec.max_delay.unwrap_or(Duration::MAX).as_millis().min(u128::from(u64::MAX));
        let mut cap = whole_cap as f64;
        if cap as u64 > whole_cap as u64 {
            cap = f64::from_bits(cap.to_bits() - 1);
        }
        for k in 0..spec.count.unwrap_or(u32::MAX) {
            let Some(draw) = draws.get(waits.len()) else { return waits };
            current = current * spec.factor + spec.increment_ms as f64;
            if let (0, Some(delay)) = (k, spec.delay) {
                let whole = delay.as_millis();
                current = whole as f64 + (delay.as_nanos() - whole * 1_000_000) as f64 / 1e6;
            }
            if current < 0.0 {
                current = 0.0;
            }
            if current > cap {
                current = cap;
            }
            let wait = (current * (1.0 - spec.jitter * draw)).round();
            waits.push((*spec, Duration::from_millis(wait as u64)));
        }
    }
    waits
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (1_000_000..120_000_000_000_u64).prop_map(Duration::from_nanos),
        (1..u64::MAX, 0..1_000_000_000_u32).prop_map(|(s, ns)| Duration::new(s, ns)),
        Just(Duration::MAX),
    ]
}

fn spec() -> impl Strategy<Value = Spec> {
    let factor = prop_oneof![0.0..4.0, Just(1.0), 0.0..=f64::MAX];
    let increment_ms = prop_oneof![Just(0), -5000..5000_i64, any::<i64>()];
    let jitter = prop_oneof![Just(0.0), 0.0..=1.0, Just(1.0)];
    let option = || proptest::option::of(duration());
    (1..6_u32, option(), factor, increment_ms, jitter, option()).prop_map(
        |(count, delay, factor, increment_ms, jitter, max_delay)| Spec {
            count: Some(count),
            delay,
            factor,
            increment_ms,
            jitter,
            max_delay,
        },
    )
}

/// Lists that are accepted: the first level has a delay, and the last may be unbounded.
fn specs() -> impl Strategy<Value = Vec<Spec>> {
    (vec(spec(), 1..5), duration(), any::<bool>()).prop_map(|(mut specs, delay, unbounded)| {
        specs[0].delay.get_or_insert(delay);
        if unbounded {
            specs.last_mut().unwrap().count = None;
        }
        specs
    })
}

/// Lists of anything at all.
fn any_specs() -> impl Strategy<Value = Vec<Spec>> {
    let any_f64 = proptest::num::f64::ANY;
    let spec =
        (any::<Option<u32>>(), any::<Option<Duration>>(), any_f64, any::<i64>(), any_f64, any::<Option<Duration>>());
    let spec = spec.prop_map(|(count, delay, factor, increment_ms, jitter, max_delay)| Spec {
        count,
        delay,
        factor,
        increment_ms,
        jitter,
        max_delay,
    });
    vec(spec, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn levels_agree_with_a_naive_reference(specs in specs(), draws in vec(0.0..1.0, 30)) {
        let levels = levels_of(&specs).unwrap();
        let mut progress = Progress::new();
        let expected = reference(&specs, &draws);
        for (i, (spec, expected)) in expected.iter().enumerate() {
            progress.count_failure();
            let wait = levels.next(&mut progress, &mut FixedRng::new(draws[i]));
            prop_assert_eq!(wait, Some(*expected), "failure {}", i + 1);
            prop_assert!(spec.max_delay.is_none_or(|cap| *expected <= cap));
            prop_assert!(levels.lower_bound(&progress, *expected) <= *expected);
        }
        if expected.len() < draws.len() {
            prop_assert_eq!(levels.waits(), u32::try_from(expected.len()).ok());
            for _ in 0..3 {
                progress.count_failure();
                prop_assert_eq!(levels.next(&mut progress, &mut FixedRng::new(0.5)), None);
            }
        }
    }

    #[test]
    fn no_list_no_draw_and_no_progress_panics(
        specs in prop_oneof![specs(), any_specs()],
        draw in proptest::num::f64::ANY,
        previous in proptest::num::f64::ANY,
        failures in any::<u32>(),
    ) {
        if let Ok(levels) = levels_of(&specs) {
            let mut progress = Progress::new();
            for level in [0, 1, 2, 3, u32::MAX] {
                progress.set_previous_ms(previous);
                progress.enter_level(level, failures);
                levels.lower_bound(&progress, Duration::ZERO);
                progress.count_failure();
                levels.next(&mut progress, &mut FixedRng::new(draw));
            }
        }
    }
}

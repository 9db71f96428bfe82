//! What holds for every `Policy`, whatever its fields, its draws and the number of failures.

use core::time::Duration;

use proptest::prelude::*;
use relent::policy::{Growth, PolicyConfig};
use relent::rng::Rng;
use relent::schedule::{Progress, Schedule};
use relent::{Jitter, Policy};

/// Plays draws back.
struct Played(f64);

impl Rng for Played {
    fn next_f64(&mut self) -> f64 {
        self.0
    }
}

fn draw() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1.0,
        1 => Just(0.0),
        1 => Just(1.0),
        1 => any::<f64>(),
        1 => Just(f64::NAN),
    ]
}

fn fraction() -> impl Strategy<Value = f64> {
    prop_oneof![3 => 0.0..=1.0, 1 => Just(0.0), 1 => Just(1.0), 1 => Just(f64::MIN_POSITIVE)]
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

/// From nanoseconds to the longest there is, at every order of magnitude.
fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        3 => (0_u64..10_000).prop_map(Duration::from_millis),
        3 => (0_u32..64, any::<u64>()).prop_map(|(shift, nanos)| Duration::from_nanos(nanos >> shift)),
        1 => (0_u32..64, any::<u64>()).prop_map(|(shift, ms)| Duration::from_millis(ms >> shift)),
        1 => Just(Duration::ZERO),
        1 => Just(Duration::MAX),
    ]
}

fn base() -> impl Strategy<Value = Duration> {
    duration().prop_map(|base| if base.as_millis() == 0 { Duration::ZERO } else { base })
}

fn multiplier() -> impl Strategy<Value = f64> {
    prop_oneof![3 => 1.0..4.0, 2 => Just(2.0), 1 => Just(1.0), 1 => 1.0..1.000_000_001, 1 => 1.0..f64::MAX]
}

fn failures() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0_u32..100, 2 => (0_u32..32, any::<u32>()).prop_map(|(shift, n)| n >> shift), 1 => Just(u32::MAX)]
}

prop_compose! {
    fn policy()(
        base in base(),
        growth in 0..3,
        multiplier in multiplier(),
        cap in proptest::option::of(duration()),
        jitter in proptest::option::of(jitter()),
        attempts in prop_oneof![3 => 0_u32..50, 1 => any::<u32>()],
        elapsed in proptest::option::of(duration()),
        above in proptest::bool::weighted(0.3),
    ) -> Policy {
        let mut policy = match growth {
            0 => Policy::fixed(base),
            1 => Policy::linear(base),
            _ => Policy::exponential(base).multiplier(multiplier),
        };
        if let Some(cap) = cap {
            policy = policy.max_delay(cap);
        }
        if let Some(jitter) = jitter {
            policy = policy.jitter(jitter);
        }
        if let Some(elapsed) = elapsed {
            policy = policy.max_elapsed(elapsed);
        }
        policy.max_attempts(attempts).allow_jitter_above_cap(above)
    }
}

/// Words of the text form, and what looks like them.
fn word() -> impl Strategy<Value = String> {
    let known = ["exponential", "linear", "fixed", "immediate", "cap", "uncapped", "full", "within", "unbounded", "1s"];
    prop_oneof![
        3 => proptest::sample::select(known.to_vec()).prop_map(String::from),
        2 => "[0-9]{0,40}[.]?[0-9]{0,25}(ms|s|m|h| attempts)?",
        1 => "(x|proportional[(]|downward[(])[0-9.]{0,25}[)]?",
        1 => "\\PC{0,3}",
    ]
}

/// A run that stands at `failures` with this computed delay before.
fn progress(failures: u32, previous_ms: f64) -> Progress {
    let mut progress = Progress::new();
    // `Progress` counts one by one. A unit test of `Policy` goes on from here to `u32::MAX`.
    for _ in 0..failures.min(100) {
        progress.count_failure();
    }
    progress.set_previous_ms(previous_ms);
    progress
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

    #[test]
    fn no_delay_is_above_the_cap(
        policy in policy(),
        n in failures(),
        draw in draw(),
        previous in any::<f64>(),
    ) {
        let policy = policy.allow_jitter_above_cap(false);
        let cap = policy.cap().unwrap_or(Policy::MAX_DELAY);
        prop_assert!(policy.nominal_after(n) <= cap);
        prop_assert!(policy.bounds_after(n).1 <= cap);
        if let Ok(delay) = policy.delay_after(n, draw) {
            prop_assert!(delay <= cap);
        }
        prop_assert!(policy.next(&mut progress(n, previous), &mut Played(draw)).unwrap() <= cap);
    }

    #[test]
    fn the_flag_lets_jitter_alone_exceed_the_cap(policy in policy(), n in failures(), draw in draw()) {
        let policy = policy.allow_jitter_above_cap(true);
        let nominal = policy.nominal_after(n);
        prop_assert!(nominal <= policy.cap().unwrap_or(Policy::MAX_DELAY));
        let most = match policy.jitter_kind() {
            Jitter::Proportional(_) => nominal.saturating_mul(2),
            Jitter::Decorrelated => nominal.saturating_mul(3),
            _ => nominal,
        };
        // The nominal delay is rounded here, and an `f64` beyond 2^53 ms is not exact.
        let most = most.saturating_add(Duration::from_millis(2)).saturating_add(most / (1 << 31));
        prop_assert!(policy.bounds_after(n).1 <= most);
        prop_assert!(policy.next(&mut progress(n, 0.0), &mut Played(draw)).unwrap() <= most);
    }

    #[test]
    fn nominal_delays_never_decrease(policy in policy(), n in failures(), further in failures()) {
        let nominal = policy.nominal_after(n);
        prop_assert!(policy.nominal_after(n.saturating_add(1)) >= nominal);
        prop_assert!(policy.nominal_after(n.saturating_add(further)) >= nominal);
    }

    #[test]
    fn bounds_hold_every_draw(policy in policy(), n in failures(), draw in draw()) {
        let (shortest, longest) = policy.bounds_after(n);
        prop_assert!(shortest <= longest);
        if let Ok(delay) = policy.delay_after(n, draw) {
            prop_assert!(shortest <= delay && delay <= longest, "{delay:?} not in {shortest:?}..{longest:?}");
        }
    }

    #[test]
    fn bounds_hold_every_wait_of_a_run(policy in policy(), draws in proptest::collection::vec(draw(), 1..60)) {
        let mut progress = Progress::new();
        for draw in draws {
            progress.count_failure();
            let wait = policy.next(&mut progress, &mut Played(draw)).unwrap();
            let (shortest, longest) = policy.bounds_after(progress.failures());
            prop_assert!(shortest <= wait && wait <= longest, "{wait:?} not in {shortest:?}..{longest:?}");
            prop_assert_eq!(policy.lower_bound(&progress, wait), shortest);
        }
    }

    #[test]
    fn a_schedule_draws_what_delay_after_says(policy in policy(), n in 0_u32..100, draw in draw()) {
        if let Ok(delay) = policy.delay_after(n, draw) {
            prop_assert_eq!(policy.next(&mut progress(n, 0.0), &mut Played(draw)), Some(delay));
        }
    }

    #[test]
    fn the_text_form_reads_back_to_an_equal_policy(policy in policy()) {
        let text = policy.to_string();
        prop_assert_eq!(text.parse::<Policy>(), Ok(policy), "{}", text);
    }

    #[test]
    fn a_config_reads_back_to_an_equal_policy(policy in policy()) {
        prop_assert_eq!(Policy::try_from(PolicyConfig::from(policy)), Ok(policy));
    }

    #[test]
    fn a_base_is_kept_to_the_nanosecond(nanos in 1_000_000_u64..(52 * 86_400_000_000_000)) {
        let base = Duration::from_nanos(nanos);
        prop_assert_eq!(Policy::fixed(base).base(), base);
    }

    #[test]
    fn the_order_of_setters_never_matters(
        base in base(),
        multiplier in multiplier(),
        cap in duration(),
        jitter in jitter(),
        attempts in any::<u32>(),
        elapsed in duration(),
        order in Just([0, 1, 2, 3, 4, 5]).prop_shuffle(),
        used in any::<[bool; 6]>(),
    ) {
        let set = |policy: Policy, setter: usize| match setter {
            _ if !used[setter] => policy,
            0 => policy.multiplier(multiplier),
            1 => policy.max_delay(cap),
            2 => policy.jitter(jitter),
            3 => policy.max_attempts(attempts),
            4 => policy.max_elapsed(elapsed),
            _ => policy.allow_jitter_above_cap(true),
        };
        let in_order = (0..6).fold(Policy::exponential(base), set);
        prop_assert_eq!(order.into_iter().fold(Policy::exponential(base), set), in_order);
        if !used[1] {
            prop_assert_eq!(in_order.cap(), Policy::exponential(base).cap());
        }
    }

    #[test]
    fn the_table_adds_up(policy in policy()) {
        let rows: Vec<_> = policy.table().rows().take(200).collect();
        for pair in rows.windows(2) {
            prop_assert_eq!((pair[1].shortest, pair[1].longest), policy.bounds_after(pair[0].attempt));
            prop_assert_eq!(pair[1].earliest, pair[0].earliest.saturating_add(pair[1].shortest));
            prop_assert!(pair[1].latest >= pair[0].latest && pair[1].earliest <= pair[1].latest);
        }
        let total = policy.worst_case_total();
        prop_assert!(rows.last().unwrap().latest <= total.unwrap_or(Duration::MAX));
        let last = policy.table().to_string();
        prop_assert!(last.lines().count() <= 23);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,20}", words in proptest::collection::vec(word(), 0..9)) {
        let words = words.join(" ");
        for text in [text, words] {
            if let Err(error) = text.parse::<Policy>() {
                let message = error.to_string();
                prop_assert!(error.value().chars().count() <= 64);
                prop_assert!(message.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", message);
                prop_assert!(error.position() > Some(0));
            }
        }
    }

    #[test]
    fn no_config_panics(
        growth in prop_oneof![Just(Growth::Fixed), Just(Growth::Linear), any::<f64>().prop_map(Growth::Exponential)],
        base in duration(),
        max_delay in proptest::option::of(duration()),
        fraction in any::<f64>(),
        max_attempts in any::<u32>(),
        max_elapsed in proptest::option::of(duration()),
        allow_jitter_above_cap in any::<bool>(),
    ) {
        for jitter in [None, Some(Jitter::Proportional(fraction)), Some(Jitter::Downward(fraction))] {
            let config =
                PolicyConfig { growth, base, max_delay, jitter, max_attempts, max_elapsed, allow_jitter_above_cap };
            match Policy::try_from(config) {
                Ok(policy) => {
                    prop_assert!(policy.bounds_after(max_attempts).0 <= Policy::MAX_DELAY);
                    prop_assert!(base.is_zero() || base.as_millis() > 0);
                    prop_assert!(jitter.is_none() || (0.0..=1.0).contains(&fraction));
                }
                Err(error) => prop_assert!(!error.value().is_empty() && error.position().is_none()),
            }
        }
    }
}

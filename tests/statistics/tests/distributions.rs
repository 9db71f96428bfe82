//! The draws of each jitter, taken through the driver, follow the distribution that is declared for it.
//!
//! With no variable set, the seeds are 1, 2 and 3. `RELENT_SEEDS=n` takes 1 to n. A test of level `ALPHA` is shared out
//! over all the samples it looks at, so that more seeds do not make a false alarm more likely.

use std::time::Duration;

use relent::levels::{Level, Levels};
use relent::rng::{DefaultRng, Rng, SeededRng};
use relent::{Jitter, Policy};
use relent_statistics::waits;
use statrs::distribution::Uniform;
use statrs::stats_tests::NaNPolicy;
use statrs::stats_tests::chisquare::chisquare;
use statrs::stats_tests::ks_test::{KSOneSampleAlternativeMethod, ks_onesample};

const ALPHA: f64 = 0.01;

/// So long that a wait in whole milliseconds is as good as a real number.
const BASE: Duration = Duration::from_secs(1_000_000);

/// The stateless kinds, each with its lowest and highest delay in units of the nominal one.
const KINDS: [(Jitter, f64, f64); 7] = [
    (Jitter::Full, 0.0, 1.0),
    (Jitter::Equal, 0.5, 1.0),
    (Jitter::Proportional(0.1), 0.9, 1.1),
    (Jitter::Proportional(1.0), 0.0, 2.0),
    (Jitter::Downward(0.1), 0.9, 1.0),
    (Jitter::Downward(0.5), 0.5, 1.0),
    (Jitter::Downward(1.0), 0.0, 1.0),
];

fn seeds() -> u64 {
    std::env::var("RELENT_SEEDS").map_or(3, |seeds| seeds.parse().expect("RELENT_SEEDS is a number"))
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The waits of 1000 runs of 5, each as its place between the lowest and the highest delay of its turn.
fn places(policy: Policy, low: f64, high: f64, mut rng: impl Rng) -> Vec<f64> {
    let policy = policy.uncapped().max_attempts(6);
    let mut places = Vec::new();
    for _ in 0..1000 {
        let waits = waits(policy, &mut rng);
        assert_eq!(waits.len(), 5);
        places.extend(waits.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0]).map(|(wait, growth)| {
            let nominal = ms(BASE) * growth;
            (ms(*wait) / nominal - low) / (high - low)
        }));
    }
    places
}

/// Places that are uniform over 0 to 1: in their bounds and near both, in their mean, as a whole, in slots, and each
/// independent of the one before it.
fn is_uniform(what: &str, places: &[f64], alpha: f64) {
    let n = places.len() as f64;
    let rounding = 1e-9;
    let (shortest, longest) = places.iter().fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(*p), high.max(*p)));
    assert!(shortest >= -rounding && longest <= 1.0 + rounding, "{what}: from {shortest} to {longest}");
    assert!(shortest < 0.01 && longest > 0.99, "{what}: from {shortest} to {longest}");

    // The mean of n places has a standard deviation of sqrt(1 / 12n); five of them are exceeded once in two million.
    let mean = places.iter().sum::<f64>() / n;
    assert!((mean - 0.5).abs() < 5.0 / (12.0 * n).sqrt(), "{what}: mean {mean}");

    let p = kolmogorov_smirnov(places);
    assert!(p > alpha, "{what}: Kolmogorov-Smirnov p = {p}");
    let p = chi_square(places, 50);
    assert!(p > alpha, "{what}: chi-square p = {p}");

    // For independent places, sqrt(n) times the correlation of neighbours is normal.
    let neighbours = places.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5)).sum::<f64>();
    let correlation = neighbours * 12.0 / n;
    assert!(correlation.abs() < 5.0 / n.sqrt(), "{what}: correlation {correlation}");
}

fn kolmogorov_smirnov(places: &[f64]) -> f64 {
    let uniform = Uniform::new(0.0, 1.0).unwrap();
    let method = KSOneSampleAlternativeMethod::TwoSidedAsymptotic;
    ks_onesample(places.to_vec(), &uniform, method, NaNPolicy::Error).unwrap().1
}

fn chi_square(places: &[f64], slots: usize) -> f64 {
    let mut counts = vec![0; slots];
    for place in places {
        counts[((place * slots as f64) as usize).min(slots - 1)] += 1;
    }
    chisquare(&counts, None, None).unwrap().1
}

#[test]
fn the_draws_of_each_kind_are_uniform_between_its_bounds() {
    let alpha = ALPHA / (2 * KINDS.len() as u64 * seeds()) as f64;
    for seed in 1..=seeds() {
        for (jitter, low, high) in KINDS {
            let places = places(Policy::exponential(BASE).jitter(jitter), low, high, SeededRng::new(seed));
            is_uniform(&format!("{jitter:?}, seed {seed}"), &places, alpha);
        }
    }
}

#[test]
fn a_decorrelated_wait_is_uniform_from_the_base_to_three_times_the_one_before() {
    let policy = Policy::exponential(BASE).jitter(Jitter::Decorrelated).uncapped().max_attempts(6);
    for seed in 1..=seeds() {
        let mut rng = SeededRng::new(seed);
        let mut places = Vec::new();
        for _ in 0..1000 {
            let mut previous = ms(BASE);
            for wait in waits(policy, &mut rng) {
                places.push((ms(wait) - ms(BASE)) / (3.0 * previous - ms(BASE)));
                previous = ms(wait);
            }
        }
        is_uniform(&format!("decorrelated, seed {seed}"), &places, ALPHA / (2 * seeds()) as f64);
    }
}

#[test]
fn the_jitter_of_a_level_is_uniform_below_its_delay() {
    let levels = Levels::try_from(vec![Level::new(5000).delay(BASE).jitter(0.25)]).unwrap();
    for seed in 1..=seeds() {
        let waits = waits(&levels, SeededRng::new(seed));
        let places: Vec<_> = waits.iter().map(|wait| (ms(*wait) / ms(BASE) - 0.75) / 0.25).collect();
        assert_eq!(places.len(), 5000);
        is_uniform(&format!("level, seed {seed}"), &places, ALPHA / (2 * seeds()) as f64);
    }
}

/// No seed can be given here, so the level is one at which a false alarm is not to be expected in a lifetime.
#[test]
fn the_default_source_is_uniform() {
    let places = places(Policy::exponential(BASE).jitter(Jitter::Full), 0.0, 1.0, DefaultRng);
    is_uniform("default source", &places, 1e-9);
}

/// The tests above can tell what is not uniform: here, draws that are a little too low.
#[test]
fn a_skewed_source_is_found_out() {
    let mut source = SeededRng::new(1);
    let skewed = relent::rng::rng_fn(|| source.next_f64().powf(1.1));
    let places = places(Policy::exponential(BASE).jitter(Jitter::Full), 0.0, 1.0, skewed);
    assert!(kolmogorov_smirnov(&places) < 1e-6);
    assert!(chi_square(&places, 50) < 1e-6);
}

/// The fifth waits of 1000 clients at a cap of 2 s, by slots of 10 ms.
fn slots_at_the_cap(jitter: Jitter, seed: u64) -> Vec<usize> {
    let policy = Policy::exponential(Duration::from_secs(1)).max_delay(Duration::from_secs(2));
    let policy = policy.jitter(jitter).max_attempts(6);
    let mut slots = vec![0; 201];
    for client in 0..1000 {
        let wait = waits(policy, SeededRng::new(seed * 1000 + client))[4];
        slots[wait.as_millis() as usize / 10] += 1;
    }
    // A wait of exactly 2 s is the far edge of the last slot.
    let edge = slots.pop().unwrap();
    slots[199] += edge;
    slots
}

#[test]
fn nothing_piles_up_at_the_cap_but_with_two_sided_jitter() {
    let one_sided =
        [(Jitter::Full, 0), (Jitter::Equal, 100), (Jitter::Downward(0.5), 100), (Jitter::Downward(0.25), 150)];
    let alpha = ALPHA / (one_sided.len() as u64 * seeds()) as f64;
    for seed in 1..=seeds() {
        for (jitter, first) in one_sided {
            let slots = slots_at_the_cap(jitter, seed);
            assert_eq!(slots[first..].iter().sum::<usize>(), 1000, "{jitter:?}, seed {seed}");
            let p = chisquare(&slots[first..], None, None).unwrap().1;
            assert!(p > alpha, "{jitter:?}, seed {seed}: chi-square p = {p}");
        }
        let at_the_cap = slots_at_the_cap(Jitter::Proportional(0.5), seed)[199];
        assert!((420..=580).contains(&at_the_cap), "seed {seed}: {at_the_cap} of 1000 at the cap");
    }
}

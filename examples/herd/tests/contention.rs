//! The contention model is that of the study: it gives the calls and the times that its own program gave.

use relent_herd::contention::{REFERENCES, STRATEGIES, mean};

/// At 100 clients the mean of 400 runs lies within `calls` and 4 % of the reference.
#[track_caller]
fn assert_close(strategy: usize, calls: f64) {
    let (name, policy) = &STRATEGIES[strategy];
    let reference = REFERENCES.iter().find(|reference| reference.clients == 100).expect("it is in the table");
    let seen = mean(policy, reference.clients, 400);
    let deviation = seen.deviation(&reference.outcomes[strategy]);
    assert!(deviation.0.abs() <= calls && deviation.1.abs() <= 0.04, "{name}: {seen:?} deviates by {deviation:?}");
}

#[test]
fn without_backoff() {
    assert_close(0, 0.007);
}

#[test]
fn exponential_without_jitter() {
    assert_close(1, 0.007);
}

#[test]
fn equal_jitter() {
    assert_close(2, 0.007);
}

#[test]
fn full_jitter() {
    assert_close(3, 0.007);
}

#[test]
fn decorrelated_jitter() {
    assert_close(4, 0.012);
}

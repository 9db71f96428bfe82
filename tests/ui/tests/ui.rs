//! Each misuse in `misuse/` is refused, with the text beside it.
//!
//! After a change that is meant, `TRYBUILD=overwrite cargo test --package relent-ui` writes the texts anew: read them as
//! the one who made the mistake.

#[test]
#[cfg_attr(not(pinned), ignore = "the texts are those of Rust 1.95")]
fn the_compiler_says_what_helps() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}

/// What each text must say, whatever else the compiler adds.
#[test]
fn the_texts_name_the_way_out() {
    let texts = [
        ("error_without_error", "call `.unmarked()` on the run"),
        ("generic_error", "call `.unmarked()` on the run"),
        ("error_without_error_in_a_loop", "call `.unmarked()`"),
        ("future_instead_of_closure", "expected a `FnMut(Attempt)` closure, found `impl Future"),
        ("closure_without_a_future", "is not a future"),
        ("operation_without_a_result", "expected `Result<_, _>`, found integer"),
        // How the errors are read is inferred from what the run is used for: one that is not used has not even that.
        ("run_not_awaited", "cannot infer type of the type parameter `KnownOnceAwaited`"),
        ("unmarked_run_not_awaited", "a retry makes no attempt until it is awaited, or called if it is blocking"),
        ("unmarked_report_not_awaited", "a retry makes no attempt until it is awaited, or called if it is blocking"),
        ("blocking_run_not_called", "a retry makes no attempt until it is awaited, or called if it is blocking"),
        ("wait_not_awaited", "a wait does nothing until it is awaited"),
        ("policy_unused", "a policy does nothing until it is given to a run or asked for its delays"),
        ("permit_dropped", "a permit that is dropped reports a neutral outcome"),
        ("fraction_in_percent", "jitter fraction must lie in 0..=1 (25 % is 0.25)"),
        ("fraction_not_a_number", "jitter fraction must lie in 0..=1 (25 % is 0.25)"),
        ("multiplier_below_one", "multiplier must be finite and at least 1"),
        ("multiplier_infinite", "multiplier must be finite and at least 1"),
        ("multiplier_of_linear", "multiplier belongs to exponential growth alone"),
        ("base_below_a_millisecond", "base must be 0 or at least 1 ms"),
        ("levels_empty", "there must be at least one level"),
        ("levels_unbounded_first", "count must be bounded on every level but the last"),
        ("budget_ratio_not_a_number", "ratio must"),
        ("budget_window_too_short", "window must"),
        ("breaker_threshold_zero", "failure_threshold must"),
        ("breaker_probes_zero", "probes must"),
        ("attempt_timeout_on_blocking", "method cannot be called due to unsatisfied trait bounds"),
        ("attempt_timeout_with_state", "method cannot be called due to unsatisfied trait bounds"),
        ("schedule_of_numbers", "`Schedule` is not implemented for `[{integer}; 3]`"),
        ("not_a_clock", "a run or a `Backoff` is given one with `.clock(my_clock)`"),
        ("not_a_clock_of_a_breaker", "a budget or a breaker with `.with_clock(my_clock)`"),
        ("not_an_rng", "give the run one: `.rng(SeededRng::new(seed))`"),
        ("error_not_send_held_for_a_signal", "cannot be sent between threads safely"),
    ];
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/misuse");
    for (name, way_out) in texts {
        let text = std::fs::read_to_string(format!("{directory}/{name}.stderr")).unwrap();
        assert!(text.contains(way_out), "{name}: {text}");
    }
    let cases = std::fs::read_dir(directory).unwrap().filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|extension| extension == "rs"))
    });
    assert_eq!(cases.count(), texts.len());
}

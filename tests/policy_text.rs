//! The text form of `Policy`: what it prints, what it reads, and how it refuses.

use core::time::Duration;

use relent::{Jitter, Policy};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn the_shortest_form_is_printed_and_read_back() {
    let exponential = Policy::exponential(ms(100));
    let table = [
        (exponential, "exponential 100ms"),
        (exponential.multiplier(3.0), "exponential 100ms x3"),
        (exponential.multiplier(1.5), "exponential 100ms x1.5"),
        (exponential.max_delay(ms(60_000)), "exponential 100ms cap 1m"),
        (exponential.max_delay(ms(0)), "exponential 100ms cap 0ms"),
        (exponential.uncapped(), "exponential 100ms uncapped"),
        (exponential.jitter(Jitter::None), "exponential 100ms unjittered"),
        (exponential.jitter(Jitter::Decorrelated), "exponential 100ms decorrelated"),
        (exponential.jitter(Jitter::Proportional(0.125)), "exponential 100ms proportional(0.125)"),
        (exponential.jitter(Jitter::Proportional(-0.0)), "exponential 100ms proportional(0)"),
        (exponential.max_attempts(1), "exponential 100ms 1 attempts"),
        (exponential.unbounded(), "exponential 100ms unbounded"),
        (exponential.max_elapsed(ms(90_000)), "exponential 100ms within 90s"),
        (exponential.allow_jitter_above_cap(true), "exponential 100ms jitter-above-cap"),
        (Policy::exponential(Duration::from_secs(45)).max_delay(ms(30_000)), "exponential 45s cap 30s"),
        (Policy::exponential(Duration::from_secs(45)), "exponential 45s"),
        (Policy::exponential(Duration::MAX), "exponential 18446744073709551.615s"),
        (Policy::linear(Duration::from_secs(7200)).jitter(Jitter::Full), "linear 2h full"),
        (Policy::fixed(Duration::from_micros(1500)).jitter(Jitter::Equal), "fixed 1.5ms equal"),
        (Policy::fixed(Duration::from_nanos(1_000_000_001)), "fixed 1.000000001s"),
        (Policy::fixed(ms(61_500)).jitter(Jitter::Downward(1.0)), "fixed 61.5s downward(1)"),
        (Policy::immediate(), "immediate"),
        (Policy::immediate().max_attempts(2), "immediate 2 attempts"),
        (Policy::linear(Duration::ZERO), "linear 0ms"),
    ];
    for (policy, text) in table {
        assert_eq!(policy.to_string(), text);
        assert_eq!(text.parse(), Ok(policy), "{text}");
    }
}

#[test]
fn clauses_come_in_any_order_and_blanks_are_free() {
    let policy = Policy::exponential(ms(100))
        .multiplier(2.5)
        .max_delay(ms(5000))
        .jitter(Jitter::Downward(0.25))
        .max_attempts(5)
        .max_elapsed(ms(120_000))
        .allow_jitter_above_cap(true);
    for text in [
        "exponential 100ms x2.5 cap 5s downward(0.25) 5 attempts within 2m jitter-above-cap",
        "exponential 0.1s x2.5 jitter-above-cap within 120s 5 attempts downward(0.25) cap 5000ms",
        "\texponential  100.000ms x02.50\n within 2.0m 05 attempts cap 5s jitter-above-cap downward(0.250) ",
    ] {
        assert_eq!(text.parse(), Ok(policy), "{text}");
    }
    assert_eq!("  linear\t1.50s \n unbounded ".parse(), Ok(Policy::linear(ms(1500)).unbounded()));
    assert_eq!("exponential 100ms x2 cap 30s equal 3 attempts".parse(), Ok(Policy::DEFAULT));
    assert_eq!("fixed 0.5h".parse(), Ok(Policy::fixed(Duration::from_secs(1800))));
    assert_eq!("immediate uncapped unjittered 3 attempts".parse(), Ok(Policy::immediate()));
}

#[test]
fn a_bad_text_names_the_word_its_position_and_the_rule() {
    const SHAPE: &str = "expected exponential, linear, fixed or immediate";
    const DURATION: &str = "expected a duration in ms, s, m or h, such as 100ms or 1.5s, to the nanosecond";
    const NUMBER: &str = "expected a plain decimal number, such as 2 or 0.25";
    const CLAUSE: &str = "expected cap, uncapped, unjittered, full, equal, decorrelated, proportional(p), downward(f), \
                          a number of attempts, unbounded, within or jitter-above-cap";
    const TWICE: &str = "each clause may stand once";
    const ATTEMPTS: &str =
        "expected a number from 1 to 4294967295 and the word attempts; for any number, write unbounded";
    const STRAY: &str = "a duration may only follow exponential, linear, fixed, cap or within; immediate takes none";
    const BASE: &str = "base must be 0 or at least 1 ms (less would round to no wait at all)";
    const MULTIPLIER: &str = "multiplier must be finite and at least 1";
    const FRACTION: &str = "jitter fraction must lie in 0..=1 (25 % is 0.25)";
    let huge = format!("exponential 1s x1{}", "0".repeat(400));
    let table = [
        ("", 1, "", SHAPE),
        (" \n ", 1, "", SHAPE),
        ("Exponential 1s", 1, "Exponential", SHAPE),
        ("100ms", 1, "100ms", SHAPE),
        ("exponential", 2, "", DURATION),
        ("exponential 100", 2, "100", DURATION),
        ("exponential 100us", 2, "100us", DURATION),
        ("exponential -1s", 2, "-1s", DURATION),
        ("exponential +1s", 2, "+1s", DURATION),
        ("exponential 1e3ms", 2, "1e3ms", DURATION),
        ("exponential .5s", 2, ".5s", DURATION),
        ("exponential 1.s", 2, "1.s", DURATION),
        ("exponential 1.2.3s", 2, "1.2.3s", DURATION),
        ("exponential ms", 2, "ms", DURATION),
        ("exponential 1.0000001ms", 2, "1.0000001ms", DURATION),
        ("exponential 18446744073709551616s", 2, "18446744073709551616s", DURATION),
        ("exponential 0.1ms", 2, "0.1ms", BASE),
        ("exponential 1s x0.5", 3, "x0.5", MULTIPLIER),
        ("exponential 1s xinf", 3, "xinf", NUMBER),
        ("exponential 1s xnan", 3, "xnan", NUMBER),
        ("exponential 1s x", 3, "x", NUMBER),
        ("linear 1s x2", 3, "x2", "multiplier belongs to exponential growth alone"),
        ("immediate x2", 2, "x2", CLAUSE),
        ("immediate 5ms", 2, "5ms", STRAY),
        ("immediate 0ms", 2, "0ms", STRAY),
        ("linear 1s 1.5h", 3, "1.5h", STRAY),
        ("fixed 1s cap 2s 3m attempts", 5, "3m", STRAY),
        ("immediate 5us", 2, "5us", ATTEMPTS),
        ("exponential 1s cap 2s x2", 5, "x2", CLAUSE),
        ("exponential 1s cap", 4, "", DURATION),
        ("exponential 1s cap x", 4, "x", DURATION),
        ("exponential 1s within forever", 4, "forever", DURATION),
        ("exponential 1s 0 attempts", 3, "0", ATTEMPTS),
        ("exponential 1s 4294967296 attempts", 3, "4294967296", ATTEMPTS),
        ("exponential 1s 2.5 attempts", 3, "2.5", ATTEMPTS),
        ("exponential 1s 5", 4, "", ATTEMPTS),
        ("exponential 1s 5 tries", 4, "tries", ATTEMPTS),
        ("exponential 1s +5 attempts", 3, "+5", CLAUSE),
        ("exponential 1s jitter", 3, "jitter", CLAUSE),
        ("exponential 1s proportional", 3, "proportional", CLAUSE),
        ("exponential 1s proportional(0.5", 3, "proportional(0.5", CLAUSE),
        ("exponential 1s proportional()", 3, "proportional()", NUMBER),
        ("exponential 1s proportional(25)", 3, "proportional(25)", FRACTION),
        ("exponential 1s downward(-0.5)", 3, "downward(-0.5)", NUMBER),
        ("exponential 1s downward(1.5)", 3, "downward(1.5)", FRACTION),
        ("exponential 1s full equal", 4, "equal", TWICE),
        ("exponential 1s cap 2s uncapped", 5, "uncapped", TWICE),
        ("exponential 1s unbounded 5 attempts", 4, "5", TWICE),
        ("exponential 1s within 1s within 1s", 5, "within", TWICE),
        ("linear 1s jitter-above-cap jitter-above-cap", 4, "jitter-above-cap", TWICE),
    ];
    for (text, position, value, rule) in table {
        let error = text.parse::<Policy>().expect_err(text);
        assert_eq!((error.position(), error.value(), error.rule()), (Some(position), value, rule), "{text}");
        let message = if value.is_empty() {
            format!("word {position} is missing: {rule}")
        } else {
            format!("word {position} \"{value}\": {rule}")
        };
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(huge.parse::<Policy>().unwrap_err().rule(), MULTIPLIER);
}

#[test]
fn an_error_shows_64_escaped_characters_on_one_line() {
    let error = "exponential 1s \u{1b}[31m\u{202e}é\"".parse::<Policy>().unwrap_err();
    assert_eq!(error.value(), r#"\u{1b}[31m\u{202e}\u{e9}\""#);
    let error = "a".repeat(64).parse::<Policy>().unwrap_err();
    assert_eq!(error.to_string().split('"').nth(1), Some("a".repeat(64).as_str()));
    let error = "a".repeat(1_000_000).parse::<Policy>().unwrap_err();
    assert_eq!(error.value(), "a".repeat(64));
    assert_eq!(error.to_string().split('"').nth(1), Some(format!("{}...", "a".repeat(64)).as_str()));
    // An escape is shown whole or not at all.
    let error = format!("{}\u{202e}", "a".repeat(60)).parse::<Policy>().unwrap_err();
    assert_eq!(error.value(), "a".repeat(60));
    assert!(format!("{error:?}").contains("aaa..."));
    let error: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
    assert!(!error.to_string().contains('\n'));
}

use std::time::Duration;

use relent::policy::PolicyConfig;
use relent::{Jitter, Policy};

/// A text is a policy that survives every other form, or an error of one printable line.
pub fn policy_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Policy>() {
        Ok(policy) => {
            survives(policy);
            computes(policy);
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{message:?}");
            assert!(message.len() < 400, "{message:?}");
            assert!(error.value().len() <= 64);
            let words = text.split_whitespace().count();
            assert!(error.position().is_some_and(|position| (1..=words + 1).contains(&position)), "{message:?}");
        }
    }
}

fn survives(policy: Policy) {
    let printed = policy.to_string();
    assert_eq!(printed.parse(), Ok(policy), "{printed:?}");
    assert_eq!(Policy::try_from(PolicyConfig::from(policy)), Ok(policy), "{printed:?}");
}

fn computes(policy: Policy) {
    assert_eq!(policy.nominal_after(0), Duration::ZERO);
    for failures in [1, 2, 3, 10, 1000, u32::MAX] {
        let (shortest, longest) = policy.bounds_after(failures);
        assert!(shortest <= longest, "{policy}: {shortest:?} {longest:?}");
        if let (Some(cap), false) = (policy.cap(), policy.jitter_above_cap()) {
            assert!(longest <= cap, "{policy}: {longest:?}");
        }
        for draw in [0.0, 0.5, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
            match policy.delay_after(failures, draw) {
                Ok(delay) => assert!((shortest..=longest).contains(&delay), "{policy}: {delay:?}"),
                Err(_) => assert_eq!(policy.jitter_kind(), Jitter::Decorrelated),
            }
        }
    }
    assert_eq!(policy.worst_case_total().is_none(), policy.attempts() == 0 && policy.elapsed_limit().is_none());
    for row in policy.table().rows().take(20) {
        assert!(row.shortest <= row.longest && row.earliest <= row.latest, "{policy}: {row:?}");
    }
}

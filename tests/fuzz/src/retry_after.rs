use std::time::{Duration, SystemTime};

use arbitrary::Unstructured;
use relent::transient::parse_retry_after;

/// A header is a wait or nothing, the same for every amount of blanks around it, and agrees with another reader of dates.
pub fn retry_after(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let Ok(seconds) = data.arbitrary::<u64>() else { return };
    let now = Duration::new(seconds >> 8, 250_000_000);
    let Ok(value) = std::str::from_utf8(data.take_rest()) else { return };

    let wait = parse_retry_after(value, now);
    assert_eq!(parse_retry_after(&format!("\t {value} \t"), now), wait, "{value:?}");
    if value.bytes().any(|byte| !matches!(byte, b'\t' | b' '..=b'~')) {
        assert_eq!(wait, None, "{value:?}");
    }
    let trimmed = value.trim_matches([' ', '\t']);
    if !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
        assert_eq!(wait, Some(Duration::from_secs(trimmed.parse().unwrap_or(u64::MAX))), "{value:?}");
        return;
    }

    // A date with a year of four digits is the same whenever it is read.
    let is_absolute = !trimmed.contains('-');
    if is_absolute {
        let at = parse_retry_after(value, Duration::ZERO);
        assert_eq!(wait, at.map(|at| at.saturating_sub(now)), "{value:?}");
        // The other reader trims more than blanks.
        let is_trimmed = trimmed.trim() == trimmed;
        if let (true, Ok(time)) = (is_trimmed, httpdate::parse_http_date(trimmed)) {
            let read = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            assert_eq!(at, Some(read), "{value:?}");
        }
    }
}

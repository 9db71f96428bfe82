//! The `Retry-After` header: a number of seconds, or a date in one of HTTP's three forms.

use core::time::Duration;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LONG_WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const SECONDS_PER_DAY: i64 = 86_400;

/// The wait that a `Retry-After` value asks for, or `None` if it is not a valid one.
///
/// `now` is the wall-clock time since 1970-01-01 00:00:00 UTC, as `unix_now` reads it; only dates need it. It is a
/// plain `Duration`, so that this works without `std` and a test can name any time. It is not
/// [`Clock::now`](crate::clock::Clock::now), whose origin is arbitrary.
///
/// The value is a number of seconds (digits only), or a date in one of the three forms of [RFC 9110, section
/// 5.6.7](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7); spaces and tabs around it are ignored. Anything else
/// is `None`, so that a malformed header leaves the run to its computed waits instead of turning into a wait of zero:
///
/// - A number too large for a `u64` becomes `u64::MAX` seconds: a long wait, which a ceiling may still clamp, not the
///   `Duration::MAX` that means never. A sign, a fraction or a second value is invalid.
/// - A date that has passed gives zero. The wait until a later one is exact: the fraction of a second in `now` is taken
///   off.
/// - Names and `GMT` are case-sensitive, and the day must exist in its month. The weekday has to be a name of one, but
///   it may be the wrong one: the date says all there is to know.
/// - A leap second, `:60`, is the first second of the next minute.
/// - A two-digit year is the latest one that puts the date no more than 50 years after `now`.
///
/// ```
/// use core::time::Duration;
/// use relent::transient::parse_retry_after;
///
/// // 1994-11-06 08:48:37.25 UTC
/// let now = Duration::from_millis(784_111_717_250);
/// assert_eq!(parse_retry_after(" 120 ", now), Some(Duration::from_secs(120)));
/// let dates = [
///     "Sun, 06 Nov 1994 08:49:37 GMT",
///     "Sunday, 06-Nov-94 08:49:37 GMT",
///     "Sun Nov  6 08:49:37 1994",
/// ];
/// for date in dates {
///     assert_eq!(parse_retry_after(date, now), Some(Duration::from_millis(59_750)));
/// }
/// assert_eq!(parse_retry_after("Sun, 06 Nov 1994 08:48:37 GMT", now), Some(Duration::ZERO));
/// assert_eq!(parse_retry_after("99999999999999999999", now), Some(Duration::from_secs(u64::MAX)));
/// for invalid in ["", "-1", "1.5", "1e3", "120, 60", "Sun, 31 Feb 1994 08:49:37 GMT"] {
///     assert_eq!(parse_retry_after(invalid, now), None);
/// }
/// ```
#[must_use]
pub fn parse_retry_after(value: &str, now: Duration) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    delay_seconds(value).or_else(|| Some(http_date(value, now)?.saturating_sub(now)))
}

/// The wall-clock time since 1970-01-01 00:00:00 UTC, for [`parse_retry_after`]; zero if the clock is set before that.
///
/// Absent without the feature `std`, and on `wasm32-unknown-unknown`, where the standard library has no clock to read.
///
/// ```
/// use core::time::Duration;
/// use relent::transient::unix_now;
///
/// let new_year_2020 = Duration::from_secs(1_577_836_800);
/// assert!(unix_now() > new_year_2020);
/// ```
#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
#[must_use]
pub fn unix_now() -> Duration {
    use std::time::SystemTime;

    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn delay_seconds(value: &str) -> Option<Duration> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // All digits, so the only way to fail is to be too large.
    is_number.then(|| Duration::from_secs(value.parse().unwrap_or(u64::MAX)))
}

/// The date as a time since 1970, which also stands for all earlier dates.
fn http_date(value: &str, now: Duration) -> Option<Duration> {
    let seconds = imf_fixdate(value).or_else(|| rfc850_date(value, now)).or_else(|| asctime_date(value))?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(value: &str) -> Option<i64> {
    let mut scan = Scanner(value);
    scan.name(&WEEKDAYS)?;
    scan.literal(", ")?;
    let day = scan.digits(2)?;
    scan.literal(" ")?;
    let month = scan.name(&MONTHS)?;
    scan.literal(" ")?;
    let year = scan.digits(4)?;
    scan.literal(" ")?;
    let second = scan.second_of_day()?;
    scan.literal(" GMT")?;
    scan.end()?;
    unix_seconds(year, month, day, second)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850_date(value: &str, now: Duration) -> Option<i64> {
    let mut scan = Scanner(value);
    scan.name(&LONG_WEEKDAYS)?;
    scan.literal(", ")?;
    let day = scan.digits(2)?;
    scan.literal("-")?;
    let month = scan.name(&MONTHS)?;
    scan.literal("-")?;
    let year_of_century = scan.digits(2)?;
    scan.literal(" ")?;
    let second = scan.second_of_day()?;
    scan.literal(" GMT")?;
    scan.end()?;

    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let within_50_years = |year| unix_days(year - 50, month, day) * SECONDS_PER_DAY + second <= now;
    let year = (19..100).rev().map(|century| century * 100 + year_of_century).find(|year| within_50_years(*year))?;
    unix_seconds(year, month, day, second)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime_date(value: &str) -> Option<i64> {
    let mut scan = Scanner(value);
    scan.name(&WEEKDAYS)?;
    scan.literal(" ")?;
    let month = scan.name(&MONTHS)?;
    scan.literal(" ")?;
    let day = if scan.literal(" ").is_some() { scan.digits(1)? } else { scan.digits(2)? };
    scan.literal(" ")?;
    let second = scan.second_of_day()?;
    scan.literal(" ")?;
    let year = scan.digits(4)?;
    scan.end()?;
    unix_seconds(year, month, day, second)
}

/// What is left to read; a step that fails has read nothing.
struct Scanner<'a>(&'a str);

impl Scanner<'_> {
    fn literal(&mut self, literal: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(literal)?;
        Some(())
    }

    /// The place of the name in the list, from 1.
    fn name(&mut self, names: &[&str]) -> Option<i64> {
        (1..).zip(names).find_map(|(place, name)| self.literal(name).map(|()| place))
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = rest;
        digits.parse().ok()
    }

    fn second_of_day(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.literal(":")?;
        let minute = self.digits(2)?;
        self.literal(":")?;
        let second = self.digits(2)?;
        (hour < 24 && minute < 60 && second <= 60).then_some((hour * 60 + minute) * 60 + second)
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

fn unix_seconds(year: i64, month: i64, day: i64, second_of_day: i64) -> Option<i64> {
    let exists = (1..=days_in_month(year, month)).contains(&day);
    exists.then(|| unix_days(year, month, day) * SECONDS_PER_DAY + second_of_day)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; a day past the end of its month runs into the next.
fn unix_days(year: i64, month: i64, day: i64) -> i64 {
    /// From 0001-01-01 to 1970-01-01.
    const DAYS_TO_1970: i64 = 719_162;

    let years = year - 1;
    let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    let months: i64 = (1..month).map(|month| days_in_month(year, month)).sum();
    years * 365 + leap_days + months + day - 1 - DAYS_TO_1970
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

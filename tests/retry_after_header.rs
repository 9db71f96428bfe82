//! What the value of a `Retry-After` header asks for.
#![allow(clippy::unchecked_time_subtraction, reason = "an underflow is a failed test")]

use core::iter::successors;
use core::time::Duration;
use std::sync::LazyLock;

use proptest::prelude::*;
use relent::transient::parse_retry_after;

const MINUTE: Duration = Duration::from_secs(60);
/// 1994-11-06 08:49:37 UTC, the example of RFC 9110.
const EXAMPLE: Duration = Duration::from_secs(784_111_777);

fn parse(value: &str) -> Option<Duration> {
    parse_retry_after(value, EXAMPLE)
}

/// Field cases 70 and 73.
#[test]
fn a_number_of_seconds_is_digits_only() {
    let accepted = [
        ("120", 120),
        ("0", 0),
        ("000", 0),
        ("007", 7),
        ("3600", 3600),
        (" 120 ", 120),
        ("\t \t120\t", 120),
        ("9999999999", 9_999_999_999),
        ("1742760000", 484_100 * 3600),
        ("18446744073709551615", u64::MAX),
        ("18446744073709551616", u64::MAX),
        ("99999999999999999999999999999999999999999999999999", u64::MAX),
        ("000000000000000000000000000000000000000000000000120", 120),
    ];
    for (value, seconds) in accepted {
        assert_eq!(parse(value), Some(Duration::from_secs(seconds)), "{value:?}");
    }

    let rejected = [
        "",
        " ",
        "-1",
        "+5",
        "1.5",
        "1e3",
        "1000abc",
        "120, 60",
        "120 60",
        "0x10",
        "1_000",
        "120s",
        "120;",
        "\"120\"",
        "१२०",
        "１２０",
        "\n120",
        "120\r\n",
        "\u{a0}120",
        "NaN",
        "inf",
        "-0",
    ];
    for value in rejected {
        assert_eq!(parse(value), None, "{value:?}");
    }
}

/// Field case 71.
#[test]
fn a_date_is_the_wait_until_then() {
    let forms = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"];
    for date in forms {
        assert_eq!(parse_retry_after(date, EXAMPLE - MINUTE), Some(MINUTE), "{date}");
        assert_eq!(parse_retry_after(&format!(" \t{date}\t "), EXAMPLE - MINUTE), Some(MINUTE), "{date}");
        assert_eq!(parse_retry_after(date, EXAMPLE), Some(Duration::ZERO), "{date}");
        assert_eq!(parse_retry_after(date, EXAMPLE + MINUTE), Some(Duration::ZERO), "{date}");
        assert_eq!(parse_retry_after(date, Duration::MAX), Some(Duration::ZERO), "{date}");
        let nanosecond = Duration::from_nanos(1);
        assert_eq!(parse_retry_after(date, EXAMPLE - nanosecond), Some(nanosecond), "{date}");
        assert_eq!(parse_retry_after(date, EXAMPLE + nanosecond), Some(Duration::ZERO), "{date}");

        let broken = date.replace("Nov", "Nvo");
        assert_eq!(parse_retry_after(&broken, EXAMPLE - MINUTE), None, "{broken}");
    }
}

#[test]
fn a_date_that_is_almost_right_is_invalid() {
    let rejected = [
        // the weekday is no name of one, or is of another form
        "Son, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday Nov  6 08:49:37 1994",
        "06 Nov 1994 08:49:37 GMT",
        // names and zone are case-sensitive
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 NOV 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "SUNDAY, 06-Nov-94 08:49:37 GMT",
        // GMT only, and never in the third form
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun Nov  6 08:49:37 GMT 1994",
        // digits and blanks are counted
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun,  06 Nov 1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov 19994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:49:37.5 GMT",
        "Sun, 06 Nov 1994 08:49:37  GMT",
        "Sun, 06 Nov 1994 08:49:+7 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov +994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06 Nov 94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov   6 08:49:37 1994",
        "Sun Nov  16 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
        // nothing before, between or behind
        "Sun, 06 Nov 1994 08:49:37 GMT;",
        "Sun, 06 Nov 1994 08:49:37 GMT, 120",
        "\"Sun, 06 Nov 1994 08:49:37 GMT\"",
        "Sun, 06 Nov 1994 08:49:37 GMT\n",
        "Sun, 06 Nov 1994\t08:49:37 GMT",
        // other formats
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:３７ GMT",
    ];
    for value in rejected {
        assert_eq!(parse_retry_after(value, Duration::ZERO), None, "{value:?}");
    }
}

#[test]
fn the_time_of_day_ends_at_23_59_60() {
    let at = |time: &str| parse_retry_after(&format!("Sun, 06 Nov 1994 {time} GMT"), EXAMPLE);
    let midnight = parse("Mon, 07 Nov 1994 00:00:00 GMT");

    assert_eq!(midnight, Some(Duration::from_secs(15 * 3600 + 10 * 60 + 23)));
    assert_eq!(at("23:59:59").map(|wait| wait + Duration::from_secs(1)), midnight);
    assert_eq!(at("23:59:60"), midnight, "a leap second");
    for invalid in ["24:00:00", "23:60:00", "23:59:61", "99:99:99"] {
        assert_eq!(at(invalid), None, "{invalid}");
    }
}

#[test]
fn a_weekday_that_does_not_match_the_date_is_ignored() {
    for weekday in ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] {
        let date = format!("{weekday}, 06 Nov 1994 08:50:37 GMT");
        assert_eq!(parse(&date), Some(MINUTE), "{date}");
    }
}

/// RFC 9110, section 5.6.7: a date that appears to be more than 50 years ahead is in the past.
#[test]
fn a_two_digit_year_is_at_most_50_years_ahead() {
    let day = Duration::from_secs(86_400);
    // at 1994-11-06 08:49:37 UTC
    let cases = [
        ("Monday, 07-Nov-94 08:49:37 GMT", Some(day)),
        ("Saturday, 05-Nov-94 08:49:37 GMT", Some(Duration::ZERO)),
        ("Saturday, 06-Nov-99 08:49:37 GMT", Some(day * (5 * 365 + 1))),
        ("Monday, 06-Nov-00 08:49:37 GMT", Some(day * (6 * 365 + 2))),
        ("Sunday, 06-Nov-44 08:49:37 GMT", Some(day * (50 * 365 + 13))),
        ("Sunday, 06-Nov-44 08:49:38 GMT", Some(Duration::ZERO)),
        ("Tuesday, 06-Nov-45 08:49:37 GMT", Some(Duration::ZERO)),
        ("Tuesday, 29-Feb-00 00:00:00 GMT", Some(Duration::from_secs(951_782_400) - EXAMPLE)),
        ("Wednesday, 29-Feb-01 00:00:00 GMT", None),
    ];
    for (date, expected) in cases {
        assert_eq!(parse(date), expected, "{date}");
    }

    // In 2099 the year 00 is the next one, not a hundred years ago.
    let new_year_2099 = Duration::from_secs(4_070_908_800);
    assert_eq!(parse_retry_after("Friday, 01-Jan-00 00:00:00 GMT", new_year_2099), Some(day * 365));
    // 2100 is no leap year.
    assert_eq!(parse_retry_after("Monday, 29-Feb-00 00:00:00 GMT", new_year_2099), None);
    // The clock of a machine that was never set.
    assert_eq!(parse_retry_after("Thursday, 01-Jan-70 00:01:00 GMT", Duration::ZERO), Some(MINUTE));
    assert_eq!(parse_retry_after("Sunday, 06-Nov-94 08:49:37 GMT", Duration::ZERO), Some(EXAMPLE));
    assert_eq!(parse_retry_after("Sunday, 06-Nov-94 08:49:37 GMT", Duration::MAX), Some(Duration::ZERO));
}

const SHORT: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LONG: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn month_length(year: u64, month: usize) -> u64 {
    let leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month]
}

/// A calendar that only knows how to go on to the next day.
#[derive(Clone, Copy)]
struct Calendar {
    year: u64,
    month: usize,
    day: u64,
    weekday: usize,
}

impl Calendar {
    /// 1970-01-01, a Thursday.
    const EPOCH: Self = Self { year: 1970, month: 0, day: 1, weekday: 3 };

    fn next(self) -> Self {
        let weekday = (self.weekday + 1) % 7;
        if self.day < month_length(self.year, self.month) {
            Self { day: self.day + 1, weekday, ..self }
        } else if self.month < 11 {
            Self { month: self.month + 1, day: 1, weekday, ..self }
        } else {
            Self { year: self.year + 1, month: 0, day: 1, weekday }
        }
    }

    /// The IMF-fixdate, the RFC 850 and the asctime form.
    fn forms(self, second_of_day: u64) -> [String; 3] {
        let Self { year, month, day, weekday } = self;
        let (weekday, long, month, short_year) = (SHORT[weekday], LONG[weekday], MONTHS[month], year % 100);
        let (h, m, s) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        [
            format!("{weekday}, {day:02} {month} {year:04} {h:02}:{m:02}:{s:02} GMT"),
            format!("{long}, {day:02}-{month}-{short_year:02} {h:02}:{m:02}:{s:02} GMT"),
            format!("{weekday} {month} {day:2} {h:02}:{m:02}:{s:02} {year:04}"),
        ]
    }
}

/// The days of 400 years, which is the period of the Gregorian calendar.
static DAYS: LazyLock<Vec<Calendar>> =
    LazyLock::new(|| successors(Some(Calendar::EPOCH), |date| Some(date.next())).take(146_097).collect());

#[test]
fn every_day_of_400_years_is_read_in_every_form() {
    for (day, date) in (0..).zip(&*DAYS) {
        let midnight = Duration::from_secs(day * 86_400);
        let second_of_day = day * 7919 % 86_400;
        let since_midnight = Duration::from_secs(second_of_day);
        let [imf, rfc850, asctime] = date.forms(second_of_day);

        assert_eq!(parse_retry_after(&imf, Duration::ZERO), Some(midnight + since_midnight), "{imf}");
        assert_eq!(parse_retry_after(&asctime, Duration::ZERO), Some(midnight + since_midnight), "{asctime}");
        assert_eq!(parse_retry_after(&rfc850, midnight), Some(since_midnight), "{rfc850} in {}", date.year);
    }
    let last = DAYS[146_096];
    assert_eq!((last.year, last.month, last.day, last.weekday), (2369, 11, 31, 2));
}

#[test]
fn only_days_that_exist_are_accepted() {
    for year in 1600..2000 {
        for (month, name) in MONTHS.iter().enumerate() {
            for day in 0..100 {
                let exists = (1..=month_length(year, month)).contains(&day);
                let date = format!("Sun, {day:02} {name} {year:04} 00:00:00 GMT");
                assert_eq!(parse(&date).is_some(), exists, "{date}");
            }
        }
    }
}

#[test]
fn years_have_four_digits_from_0000_to_9999() {
    assert_eq!(parse_retry_after("Sat, 01 Jan 0000 00:00:00 GMT", Duration::ZERO), Some(Duration::ZERO));
    assert_eq!(parse_retry_after("Wed, 31 Dec 1969 23:59:59 GMT", Duration::ZERO), Some(Duration::ZERO));
    let last = Duration::from_secs(253_402_300_799);
    assert_eq!(parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", Duration::ZERO), Some(last));
}

#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
#[test]
fn the_clock_of_the_system_counts_from_1970() {
    let before = std::time::UNIX_EPOCH.elapsed().unwrap();
    let now = relent::transient::unix_now();
    assert!(before <= now && now <= std::time::UNIX_EPOCH.elapsed().unwrap());
}

/// The grammar of RFC 9110, sections 10.2.3 and 5.6.7, by words instead of by characters.
fn is_in_the_grammar(value: &str) -> bool {
    fn number(text: &str, length: usize) -> Option<u64> {
        let digits = text.len() == length && text.chars().all(|c| c.is_ascii_digit());
        digits.then(|| text.parse().unwrap())
    }
    fn date(year: Option<u64>, month: &str, day: Option<u64>) -> Option<bool> {
        let month = MONTHS.iter().position(|name| *name == month)?;
        Some((1..=month_length(year?, month)).contains(&day?))
    }
    fn time(text: &str) -> Option<bool> {
        let [h, m, s] = text.split(':').map(|part| number(part, 2)).collect::<Vec<_>>()[..] else { return None };
        Some(h? <= 23 && m? <= 59 && s? <= 60)
    }
    fn http_date(value: &str) -> Option<bool> {
        match value.split(' ').collect::<Vec<_>>()[..] {
            [weekday, day, month, year, clock, "GMT"] => Some(
                SHORT.contains(&weekday.strip_suffix(',')?)
                    && date(number(year, 4), month, number(day, 2))?
                    && time(clock)?,
            ),
            [weekday, day, clock, "GMT"] => {
                let [day, month, year] = day.split('-').collect::<Vec<_>>()[..] else { return None };
                // The years meant in 1994 are 1944 to 2044: leap if divisible by four, 2000 included.
                let year = number(year, 2).map(|year| 2000 + year);
                Some(LONG.contains(&weekday.strip_suffix(',')?) && date(year, month, number(day, 2))? && time(clock)?)
            }
            [weekday, month, "", day, clock, year] => {
                Some(SHORT.contains(&weekday) && date(number(year, 4), month, number(day, 1))? && time(clock)?)
            }
            [weekday, month, day, clock, year] => {
                Some(SHORT.contains(&weekday) && date(number(year, 4), month, number(day, 2))? && time(clock)?)
            }
            _ => None,
        }
    }
    let value = value.trim_matches(|c| c == ' ' || c == '\t');
    let seconds = !value.is_empty() && value.chars().all(|c| c.is_ascii_digit());
    seconds || http_date(value) == Some(true)
}

/// A date of any form, now and then with a day or a time just out of range.
fn nearly_a_date() -> impl Strategy<Value = String> {
    let parts = (0..7_usize, 0..40_u64, 0..12_usize, 0..10_000_u64, 0..26_u64, 0..62_u64, 0..63_u64, 0..3_usize);
    parts.prop_map(|(weekday, day, month, year, h, m, s, form)| {
        Calendar { year, month, day, weekday }.forms(0)[form].replace("00:00:00", &format!("{h:02}:{m:02}:{s:02}"))
    })
}

/// One character of a date replaced, removed or doubled.
fn damaged_date() -> impl Strategy<Value = String> {
    let characters =
        prop_oneof![Just(None), "[0-9 :,A-Za-z\t-]".prop_map(Some), any::<char>().prop_map(|c| Some(c.into()))];
    (nearly_a_date(), any::<prop::sample::Index>(), characters, any::<bool>()).prop_map(|(date, at, put, insert)| {
        let at = at.index(date.len());
        let rest = if insert { at } else { at + 1 };
        format!("{}{}{}", &date[..at], put.unwrap_or_default(), &date[rest..])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn what_is_accepted_is_exactly_the_grammar(
        value in prop_oneof![
            any::<String>(),
            "[ \t]{0,2}[0-9+.-]{0,24}[ \t]{0,2}",
            "[0-9A-Za-z:, -]{0,32}",
            nearly_a_date(),
            damaged_date(),
        ],
    ) {
        prop_assert_eq!(parse(&value).is_some(), is_in_the_grammar(&value), "{:?}", value);
    }

    #[test]
    fn no_value_and_no_time_panics(
        value in prop_oneof![any::<String>(), nearly_a_date(), damaged_date()],
        seconds in any::<u64>(),
        nanoseconds in 0..1_000_000_000_u32,
    ) {
        let _ = parse_retry_after(&value, Duration::new(seconds, nanoseconds));
    }

    #[test]
    fn a_formatted_date_is_read_back(
        day in 0..146_097_usize,
        second_of_day in 0..86_400_u64,
        ahead in 0..18_261 * 86_400_u64,
        nanoseconds in 0..1_000_000_000_u32,
    ) {
        let date = DAYS[day];
        let then = Duration::from_secs(day as u64 * 86_400 + second_of_day);
        // Less than the shortest 50 years, those without the leap day of 2100, or the two-digit year would be another.
        let now = then.saturating_sub(Duration::new(ahead, nanoseconds));
        for form in date.forms(second_of_day) {
            prop_assert_eq!(parse_retry_after(&form, now), Some(then - now), "{} at {:?}", form, now);
        }
    }
}

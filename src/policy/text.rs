//! The text form: words separated by blanks, the shape first, then clauses in any order, each at most once.

use core::fmt;
use core::str::{FromStr, SplitWhitespace};
use core::time::Duration;

use super::build::accepted;
use super::config::Rule;
use super::growth::Shape;
use super::{Jitter, Policy, PolicyError};

/// The units of a duration: the name, its nanoseconds, and how many decimals it takes to write them all.
const MILLISECOND: (&str, u128, usize) = ("ms", 1_000_000, 6);
const SECOND: (&str, u128, usize) = ("s", 1_000_000_000, 9);
const MINUTE: (&str, u128, usize) = ("m", 60 * SECOND.1, 0);
const HOUR: (&str, u128, usize) = ("h", 60 * MINUTE.1, 0);

const SHAPE: Rule = Rule { field: "shape", text: "expected exponential, linear, fixed or immediate" };
const CLAUSE: Rule = Rule {
    field: "clause",
    text: "expected cap, uncapped, unjittered, full, equal, decorrelated, proportional(p), downward(f), \
           a number of attempts, unbounded, within or jitter-above-cap",
};
const TWICE: Rule = Rule { field: "clause", text: "each clause may stand once" };
const DURATION: Rule =
    Rule { field: "duration", text: "expected a duration in ms, s, m or h, such as 100ms or 1.5s, to the nanosecond" };
const NUMBER: Rule = Rule { field: "number", text: "expected a plain decimal number, such as 2 or 0.25" };
const STRAY: Rule = Rule {
    field: "clause",
    text: "a duration may only follow exponential, linear, fixed, cap or within; immediate takes none",
};
const ATTEMPTS: Rule = Rule {
    field: "max_attempts",
    text: "expected a number from 1 to 4294967295 and the word attempts; for any number, write unbounded",
};

/// The shortest text that reads back to an equal policy: what the shape implies is left out.
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// assert_eq!(Policy::DEFAULT.to_string(), "exponential 100ms");
/// let policy = Policy::DEFAULT.multiplier(1.5).max_delay(Duration::from_secs(5));
/// let policy = policy.jitter(Jitter::Full).max_attempts(8);
/// assert_eq!(policy.to_string(), "exponential 100ms x1.5 cap 5s full 8 attempts");
/// ```
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.base();
        let plain = accepted(Self::new(self.shape, base)); // as it was accepted when this policy was made
        match self.shape {
            Shape::Fixed if base.is_zero() => f.write_str("immediate")?,
            Shape::Fixed => write!(f, "fixed {}", Compact(base))?,
            Shape::Linear => write!(f, "linear {}", Compact(base))?,
            Shape::Exponential => write!(f, "exponential {}", Compact(base))?,
        }
        if self.growth() != plain.growth() {
            write!(f, " x{}", self.multiplier)?;
        }
        match self.cap() {
            cap if cap == plain.cap() => {}
            None => f.write_str(" uncapped")?,
            Some(cap) => write!(f, " cap {}", Compact(cap))?,
        }
        match self.jitter_kind() {
            jitter if jitter == plain.jitter_kind() => {}
            Jitter::None => f.write_str(" unjittered")?,
            Jitter::Full => f.write_str(" full")?,
            Jitter::Equal => f.write_str(" equal")?,
            Jitter::Decorrelated => f.write_str(" decorrelated")?,
            Jitter::Proportional(fraction) => write!(f, " proportional({fraction})")?,
            Jitter::Downward(fraction) => write!(f, " downward({fraction})")?,
        }
        match self.attempts() {
            attempts if attempts == plain.attempts() => {}
            0 => f.write_str(" unbounded")?,
            attempts => write!(f, " {attempts} attempts")?,
        }
        if let Some(limit) = self.elapsed_limit() {
            write!(f, " within {}", Compact(limit))?;
        }
        if self.jitter_above_cap() { f.write_str(" jitter-above-cap") } else { Ok(()) }
    }
}

/// ```text
/// policy = shape { clause }
/// shape  = "exponential" dur [ "x" number ] | "linear" dur | "fixed" dur | "immediate"
/// clause = "cap" dur | "uncapped" | jitter | integer "attempts" | "unbounded"
///        | "within" dur | "jitter-above-cap"
/// jitter = "unjittered" | "full" | "equal" | "decorrelated"
///        | "proportional(" number ")" | "downward(" number ")"
/// dur    = number ( "ms" | "s" | "m" | "h" )
/// ```
///
/// Words are separated by blanks, clauses come in any order, each at most once. A number is digits, with a decimal
/// point and digits after it if need be.
///
/// # Errors
///
/// A [`PolicyError`] that names the word, its position and the rule.
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// let policy: Policy = "exponential 100ms x2 cap 30s equal 5 attempts".parse()?;
/// assert_eq!(policy, Policy::exponential(Duration::from_millis(100)).max_attempts(5));
///
/// let error = "linear 1s cap 5".parse::<Policy>().unwrap_err();
/// assert_eq!((error.position(), error.value()), (Some(4), "5"));
/// # Ok::<(), relent::policy::PolicyError>(())
/// ```
impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let mut words = Words { rest: text.split_whitespace(), word: "", position: 0 };
        let mut policy = shape(&mut words)?;
        let mut seen = [false; 5];
        while words.advance() {
            let first = words.clone();
            let (kind, changed) = clause(policy, &mut words)?;
            if core::mem::replace(&mut seen[kind], true) {
                return Err(first.refused(TWICE));
            }
            policy = changed;
        }
        Ok(policy)
    }
}

fn shape(words: &mut Words<'_>) -> Result<Policy, PolicyError> {
    words.advance();
    let shape = match words.word {
        "immediate" => return Ok(Policy::immediate()),
        "exponential" => Shape::Exponential,
        "linear" => Shape::Linear,
        "fixed" => Shape::Fixed,
        _ => return Err(words.refused(SHAPE)),
    };
    let base = words.duration()?;
    let policy = Policy::new(shape, base).map_err(|rule| words.refused(rule))?;
    let mut ahead = words.clone();
    ahead.advance();
    match ahead.word.strip_prefix('x') {
        Some(number) => {
            *words = ahead;
            policy.with_multiplier(words.number(number)?).map_err(|rule| words.refused(rule))
        }
        None => Ok(policy),
    }
}

/// The policy with one more clause, and which of the five kinds of clause it was.
fn clause(policy: Policy, words: &mut Words<'_>) -> Result<(usize, Policy), PolicyError> {
    Ok(match words.word {
        "cap" => (0, policy.max_delay(words.duration()?)),
        "uncapped" => (0, policy.uncapped()),
        "unbounded" => (1, policy.unbounded()),
        "within" => (2, policy.max_elapsed(words.duration()?)),
        "jitter-above-cap" => (3, policy.allow_jitter_above_cap(true)),
        word if duration(word).is_some() => return Err(words.refused(STRAY)),
        word if word.starts_with(|first: char| first.is_ascii_digit()) => (1, policy.max_attempts(words.attempts()?)),
        _ => {
            let jitter = words.jitter()?;
            (4, policy.with_jitter(jitter).map_err(|rule| words.refused(rule))?)
        }
    })
}

/// The words of a text, at one of them; past the last the word is empty.
#[derive(Clone)]
struct Words<'a> {
    rest: SplitWhitespace<'a>,
    word: &'a str,
    position: usize,
}

impl Words<'_> {
    fn advance(&mut self) -> bool {
        self.word = self.rest.next().unwrap_or_default();
        self.position += 1;
        !self.word.is_empty()
    }

    fn refused(&self, rule: Rule) -> PolicyError {
        rule.broken_by_word(self.word, self.position)
    }

    fn duration(&mut self) -> Result<Duration, PolicyError> {
        self.advance();
        duration(self.word).ok_or_else(|| self.refused(DURATION))
    }

    fn number(&self, number: &str) -> Result<f64, PolicyError> {
        decimal(number).and_then(|_| number.parse().ok()).ok_or_else(|| self.refused(NUMBER))
    }

    fn attempts(&mut self) -> Result<u32, PolicyError> {
        let attempts = self.word.parse().ok().filter(|&attempts| attempts > 0).ok_or_else(|| self.refused(ATTEMPTS))?;
        self.advance();
        if self.word == "attempts" { Ok(attempts) } else { Err(self.refused(ATTEMPTS)) }
    }

    fn jitter(&self) -> Result<Jitter, PolicyError> {
        let fraction = |kind| self.word.strip_prefix(kind)?.strip_suffix(')');
        Ok(match self.word {
            "unjittered" => Jitter::None,
            "full" => Jitter::Full,
            "equal" => Jitter::Equal,
            "decorrelated" => Jitter::Decorrelated,
            _ => match (fraction("proportional("), fraction("downward(")) {
                (Some(number), _) => Jitter::Proportional(self.number(number)?),
                (_, Some(number)) => Jitter::Downward(self.number(number)?),
                _ => return Err(self.refused(CLAUSE)),
            },
        })
    }
}

/// A duration in the text form: whole hours or minutes, else seconds, or milliseconds below one; exact.
pub(super) struct Compact(pub(super) Duration);

impl fmt::Display for Compact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (name, unit, mut decimals) = match nanos {
            0 => MILLISECOND,
            _ if nanos % HOUR.1 == 0 => HOUR,
            _ if nanos % MINUTE.1 == 0 => MINUTE,
            _ if nanos >= SECOND.1 => SECOND,
            _ => MILLISECOND,
        };
        write!(f, "{}", nanos / unit)?;
        let mut fraction = nanos % unit;
        if fraction > 0 {
            while fraction % 10 == 0 {
                fraction /= 10;
                decimals -= 1;
            }
            write!(f, ".{fraction:0decimals$}")?;
        }
        f.write_str(name)
    }
}

/// Read in integers, so that every decimal is exact. `None` if it is finer than a nanosecond or too long to hold.
fn duration(word: &str) -> Option<Duration> {
    let units = [MILLISECOND, SECOND, MINUTE, HOUR];
    let (number, unit) = units.iter().find_map(|&(name, nanos, _)| Some((word.strip_suffix(name)?, nanos)))?;
    let (whole, fraction) = decimal(number)?;
    let fraction = fraction.trim_end_matches('0');
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let parts = match fraction {
        "" => 0,
        digits => digits.parse::<u128>().ok()?.checked_mul(unit)?,
    };
    let nanos = whole.parse::<u128>().ok()?.checked_mul(unit)?.checked_add(parts / scale)?;
    if parts % scale != 0 {
        return None;
    }
    let seconds = u64::try_from(nanos / SECOND.1).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanos % SECOND.1).ok()?))
}

/// The digits before and after the decimal point of a plain decimal: no sign, no exponent.
fn decimal(number: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(fraction)).then_some((whole, fraction))
}

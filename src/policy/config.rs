use core::error::Error;
use core::fmt::{self, Write};
use core::time::Duration;

use super::growth::Shape;
use super::text::Compact;
use super::{Growth, Jitter, Policy};

/// A policy as plain fields, for values that come from outside the program.
///
/// The default is [`Policy::DEFAULT`]. Checked as a whole by `Policy::try_from`, with the rules of the setters.
///
/// ```
/// use relent::policy::{Growth, Policy, PolicyConfig};
/// use std::time::Duration;
///
/// let base = Duration::from_secs(1);
/// let config = PolicyConfig { base, max_attempts: 5, ..PolicyConfig::default() };
/// assert_eq!(Policy::try_from(config), Ok(Policy::exponential(base).max_attempts(5)));
///
/// // As the constructor says, and so after all fields that are `None`:
/// let config = PolicyConfig { growth: Growth::Linear, base, ..PolicyConfig::default() };
/// assert_eq!((config.max_delay, config.jitter, config.max_elapsed), (None, None, None));
/// assert!(!config.allow_jitter_above_cap);
/// assert_eq!(Policy::try_from(config), Ok(Policy::linear(base)));
///
/// let config = PolicyConfig { growth: Growth::Exponential(0.5), ..config };
/// let error = Policy::try_from(config).unwrap_err();
/// assert_eq!(error.to_string(), "multiplier must be finite and at least 1, not 0.5");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyConfig {
    /// How delays grow, with the multiplier.
    pub growth: Growth,
    /// The first delay: zero, or at least 1 ms.
    pub base: Duration,
    /// The cap. `None` is the default of the growth: the longer of 30 s and the base if exponential, else no cap. To have
    /// no cap in any case, give `Some(Duration::MAX)`.
    pub max_delay: Option<Duration>,
    /// The jitter. `None` is the default of the growth: equal if exponential, else no jitter.
    pub jitter: Option<Jitter>,
    /// All attempts, the first included; 0 for any number.
    pub max_attempts: u32,
    /// How long after its start a run may still begin an attempt; `None` for no limit.
    pub max_elapsed: Option<Duration>,
    /// Whether jitter may carry a delay above the cap.
    pub allow_jitter_above_cap: bool,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            growth: Growth::Exponential(2.0),
            base: Duration::from_millis(100),
            max_delay: None,
            jitter: None,
            max_attempts: 3,
            max_elapsed: None,
            allow_jitter_above_cap: false,
        }
    }
}

impl From<Policy> for PolicyConfig {
    /// All fields of a policy, none left to a default; converts back to an equal policy.
    fn from(policy: Policy) -> Self {
        Self {
            growth: policy.growth(),
            base: policy.base(),
            max_delay: Some(policy.cap().unwrap_or(Duration::MAX)),
            jitter: Some(policy.jitter_kind()),
            max_attempts: policy.attempts(),
            max_elapsed: policy.elapsed_limit(),
            allow_jitter_above_cap: policy.jitter_above_cap(),
        }
    }
}

impl TryFrom<PolicyConfig> for Policy {
    type Error = PolicyError;

    /// # Errors
    ///
    /// The first field that breaks a rule: base, then multiplier, then jitter.
    fn try_from(config: PolicyConfig) -> Result<Self, PolicyError> {
        let shape = match config.growth {
            Growth::Fixed => Shape::Fixed,
            Growth::Linear => Shape::Linear,
            Growth::Exponential(_) => Shape::Exponential,
        };
        let mut policy = Self::new(shape, config.base).map_err(|rule| rule.broken_by(&Compact(config.base)))?;
        if let Growth::Exponential(multiplier) = config.growth {
            policy = policy.with_multiplier(multiplier).map_err(|rule| rule.broken_by(&multiplier))?;
        }
        if let Some(jitter) = config.jitter {
            policy = policy.with_jitter(jitter).map_err(|rule| rule.broken_by(&jitter.split().1))?;
        }
        if let Some(cap) = config.max_delay {
            policy = policy.max_delay(cap);
        }
        if let Some(limit) = config.max_elapsed {
            policy = policy.max_elapsed(limit);
        }
        Ok(policy.max_attempts(config.max_attempts).allow_jitter_above_cap(config.allow_jitter_above_cap))
    }
}

/// What a value must keep to. The text begins with the field, since a const panic prints it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) field: &'static str,
    pub(super) text: &'static str,
}

impl Rule {
    pub(super) const BASE: Self =
        Self { field: "base", text: "base must be 0 or at least 1 ms (less would round to no wait at all)" };
    pub(super) const MULTIPLIER: Self = Self { field: "multiplier", text: "multiplier must be finite and at least 1" };
    pub(super) const NOT_EXPONENTIAL: Self =
        Self { field: "multiplier", text: "multiplier belongs to exponential growth alone" };
    pub(super) const JITTER: Self = Self { field: "jitter", text: "jitter fraction must lie in 0..=1 (25 % is 0.25)" };

    fn broken_by(self, value: &dyn fmt::Display) -> PolicyError {
        PolicyError { rule: self, value: Excerpt::of(value), word: None }
    }

    pub(super) fn broken_by_word(self, word: &str, position: usize) -> PolicyError {
        PolicyError { rule: self, value: Excerpt::of(&word), word: Some(position) }
    }
}

/// Why a configuration or a text is no policy: the field, its value and the rule it breaks.
///
/// Its message is one line of printable ASCII, whatever the input was.
///
/// ```
/// use relent::Policy;
///
/// let error = "exponential 100ms proportional(25)".parse::<Policy>().unwrap_err();
/// assert_eq!(error.field(), "jitter");
/// assert_eq!(error.value(), "proportional(25)");
/// assert_eq!(error.position(), Some(3));
/// assert_eq!(error.rule(), "jitter fraction must lie in 0..=1 (25 % is 0.25)");
/// assert_eq!(
///     error.to_string(),
///     r#"word 3 "proportional(25)": jitter fraction must lie in 0..=1 (25 % is 0.25)"#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    rule: Rule,
    value: Excerpt,
    word: Option<usize>,
}

impl PolicyError {
    /// The field that was refused.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.rule.field
    }

    /// The value or the word that was refused, escaped; the first 64 characters of it. Empty where a text ended too soon.
    #[must_use]
    pub fn value(&self) -> &str {
        self.value.as_str()
    }

    /// The rule it breaks.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        self.rule.text
    }

    /// Which word of the text was refused, counted from 1; `None` for a configuration.
    #[must_use]
    pub const fn position(&self) -> Option<usize> {
        self.word
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule: Rule { text, .. }, value, word } = self;
        match word {
            None => write!(f, "{text}, not {value}"),
            Some(position) if value.as_str().is_empty() => write!(f, "word {position} is missing: {text}"),
            Some(position) => write!(f, "word {position} \"{value}\": {text}"),
        }
    }
}

impl Error for PolicyError {}

/// The first 64 characters of something printed, escaped to printable ASCII, so that no allocation is needed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    bytes: [u8; 64],
    len: u8,
    cut: bool,
}

impl Excerpt {
    pub(super) fn of(value: &dyn fmt::Display) -> Self {
        let mut excerpt = Self { bytes: [0; 64], len: 0, cut: false };
        // The one error is the excerpt's own, when it is full.
        let _ = write!(excerpt, "{value}");
        excerpt
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            let escaped = char.escape_default();
            let start = usize::from(self.len);
            let Some(room) = self.bytes.get_mut(start..start + escaped.len()) else {
                self.cut = true;
                return Err(fmt::Error);
            };
            for (byte, escaped) in room.iter_mut().zip(escaped) {
                *byte = escaped as u8;
                self.len += 1;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())?;
        if self.cut { f.write_str("...") } else { Ok(()) }
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

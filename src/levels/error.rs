//! Why a list of levels is refused.

use core::error::Error;
use core::fmt;
use core::time::Duration;

/// Why a list of [`Level`](super::Level)s was refused. Levels are numbered from 0, as in the list and in
/// [`Progress::level`](crate::schedule::Progress::level).
///
/// ```
/// use core::time::Duration;
/// use relent::levels::{Level, Levels, LevelsError};
///
/// let second = Level::new(1).delay(Duration::from_secs(1));
/// let short = Duration::from_micros(10);
/// let error = |levels: &[Level]| Levels::try_from(levels.to_vec()).unwrap_err();
///
/// assert_eq!(error(&[]), LevelsError::Empty);
/// assert_eq!(error(&[Level::new(1)]), LevelsError::MissingDelay);
/// assert_eq!(
///     error(&[Level::unbounded().delay(Duration::ZERO), second]),
///     LevelsError::Unbounded { level: 0 },
/// );
/// assert_eq!(error(&[second, Level::new(0)]), LevelsError::Count { level: 1 });
/// assert_eq!(error(&[second.delay(short)]), LevelsError::Delay { level: 0, delay: short });
/// assert_eq!(error(&[second.factor(-1.0)]), LevelsError::Factor { level: 0, factor: -1.0 });
/// assert_eq!(error(&[second.jitter(1.5)]), LevelsError::Jitter { level: 0, jitter: 1.5 });
/// assert_eq!(
///     error(&[second.max_delay(short)]),
///     LevelsError::MaxDelay { level: 0, max_delay: short },
/// );
///
/// let text = error(&[second, Level::new(0)]).to_string();
/// assert_eq!(text, "levels[1]: count must be at least 1, not 0");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum LevelsError {
    /// The list has no level.
    Empty,
    /// The first level has no delay, and there is none to carry over.
    MissingDelay,
    /// A level that is not the last is unbounded.
    Unbounded {
        /// Its index in the list.
        level: usize,
    },
    /// A count is 0.
    Count {
        /// The level's index in the list.
        level: usize,
    },
    /// A delay is above zero and below 1 ms, which could be rounded down to no wait at all.
    Delay {
        /// The level's index in the list.
        level: usize,
        /// The delay given.
        delay: Duration,
    },
    /// A factor is negative, infinite or not a number.
    Factor {
        /// The level's index in the list.
        level: usize,
        /// The factor given.
        factor: f64,
    },
    /// A jitter is not a fraction between 0 and 1.
    Jitter {
        /// The level's index in the list.
        level: usize,
        /// The jitter given.
        jitter: f64,
    },
    /// A longest delay is above zero and below 1 ms, which leaves no wait at all in whole milliseconds.
    MaxDelay {
        /// The level's index in the list.
        level: usize,
        /// The longest delay given.
        max_delay: Duration,
    },
}

impl LevelsError {
    pub(super) const fn rule(&self) -> &'static str {
        match self {
            Self::Empty => "there must be at least one level",
            Self::MissingDelay => "the first level must have a delay, as there is none to carry over",
            Self::Unbounded { .. } => "count must be bounded on every level but the last",
            Self::Count { .. } => "count must be at least 1",
            Self::Delay { .. } => "delay must be zero or at least 1 ms",
            Self::Factor { .. } => "factor must be finite and at least 0",
            Self::Jitter { .. } => "jitter must be a fraction between 0 and 1",
            Self::MaxDelay { .. } => "max_delay must be zero or at least 1 ms",
        }
    }
}

impl fmt::Display for LevelsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule();
        match self {
            Self::Empty => f.write_str(rule),
            Self::MissingDelay => write!(f, "levels[0]: {rule}"),
            Self::Unbounded { level } => write!(f, "levels[{level}]: {rule}, not unbounded"),
            Self::Count { level } => write!(f, "levels[{level}]: {rule}, not 0"),
            Self::Delay { level, delay: value } | Self::MaxDelay { level, max_delay: value } => {
                write!(f, "levels[{level}]: {rule}, not {value:?}")
            }
            Self::Factor { level, factor: value } | Self::Jitter { level, jitter: value } => {
                write!(f, "levels[{level}]: {rule}, not {value}")
            }
        }
    }
}

impl Error for LevelsError {}

//! A budget's values from outside the program, and why they may be refused.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::{DEFAULT_MIN_PER_SECOND, DEFAULT_RATIO, DEFAULT_WINDOW, MILLION, RetryBudget};

pub(super) const RATIO_RULE: &str = "ratio must lie in 0..=1 (10 % is 0.1)";
pub(super) const WINDOW_RULE: &str = "window must be longer than zero";

/// The values of a [`RetryBudget`] as plain fields, for those that come from outside the program.
///
/// ```
/// use std::time::Duration;
/// use relent::budget::{BudgetConfig, BudgetError, RetryBudget};
///
/// let default = BudgetConfig::default();
/// assert_eq!((default.ratio, default.min_per_second), (0.2, 10));
/// assert_eq!(default.window, Duration::from_secs(10));
///
/// let budget = RetryBudget::try_from(BudgetConfig { ratio: 0.1, ..default })?;
/// assert_eq!(budget.balance(), 100);
/// assert!(RetryBudget::try_from(BudgetConfig { ratio: 20.0, ..default }).is_err());
/// # Ok::<(), BudgetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetConfig {
    /// Retries for each run, from 0 to 1; 0.2 by default.
    pub ratio: f64,
    /// Retries a second whatever the number of runs; 10 by default.
    pub min_per_second: u32,
    /// The time over which both are counted, longer than zero; 10 s by default.
    pub window: Duration,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self { ratio: DEFAULT_RATIO, min_per_second: DEFAULT_MIN_PER_SECOND, window: DEFAULT_WINDOW }
    }
}

impl TryFrom<BudgetConfig> for RetryBudget {
    type Error = BudgetError;

    /// # Errors
    ///
    /// [`BudgetError`] for the first value that is out of its range.
    fn try_from(config: BudgetConfig) -> Result<Self, BudgetError> {
        let BudgetConfig { ratio, min_per_second, window } = config;
        if millionths(ratio).is_none() {
            return Err(BudgetError::Ratio(ratio));
        }
        if window.is_zero() {
            return Err(BudgetError::Window(window));
        }
        Ok(Self::new(ratio).min_per_second(min_per_second).window(window))
    }
}

/// Why a [`BudgetConfig`] is no budget: the field, with the value that it had.
///
/// ```
/// use std::time::Duration;
/// use relent::budget::{BudgetConfig, BudgetError, RetryBudget};
///
/// let default = BudgetConfig::default();
/// let error = RetryBudget::try_from(BudgetConfig { ratio: 20.0, ..default }).unwrap_err();
/// assert_eq!(error, BudgetError::Ratio(20.0));
/// assert_eq!(error.to_string(), "ratio must lie in 0..=1 (10 % is 0.1), not 20.0");
///
/// let zero = Duration::ZERO;
/// let error = RetryBudget::try_from(BudgetConfig { window: zero, ..default }).unwrap_err();
/// assert_eq!(error, BudgetError::Window(zero));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BudgetError {
    /// The ratio is NaN, negative or above 1.
    Ratio(f64),
    /// The window is zero.
    Window(Duration),
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ratio(ratio) => write!(f, "{RATIO_RULE}, not {ratio:?}"),
            Self::Window(window) => write!(f, "{WINDOW_RULE}, not {window:?}"),
        }
    }
}

impl Error for BudgetError {}

/// A ratio in millionths, to the nearest; `None` for one that breaks its rule.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the ratio is from 0 to 1")]
pub(super) const fn millionths(ratio: f64) -> Option<u32> {
    if ratio >= 0.0 && ratio <= 1.0 { Some((ratio * MILLION as f64 + 0.5) as u32) } else { None }
}

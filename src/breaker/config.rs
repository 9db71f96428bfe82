//! A breaker's values from outside the program, and why they may be refused.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::CircuitBreaker;
use crate::policy::{Jitter, Policy};

pub(super) const FAILURES_RULE: &str = "failure_threshold must be at least 1";
pub(super) const SUCCESSES_RULE: &str = "success_threshold must be at least 1";
pub(super) const PROBES_RULE: &str = "probes must be at least 1";
pub(super) const COOLDOWN_RULE: &str = "cooldown must not have decorrelated jitter";

/// The values of a [`CircuitBreaker`] as plain fields, for those that come from outside the program.
///
/// ```
/// use std::time::Duration;
/// use relent::Policy;
/// use relent::breaker::{BreakerConfig, CircuitBreaker};
///
/// let default = BreakerConfig::default();
/// assert_eq!((default.failure_threshold, default.success_threshold, default.probes), (5, 1, 1));
/// assert_eq!(default.cooldown, Policy::fixed(Duration::from_secs(30)));
///
/// let cooldown = "exponential 10s cap 5m".parse()?;
/// let breaker = CircuitBreaker::try_from(BreakerConfig { cooldown, ..default })?;
/// assert!(breaker.named("payments").acquire().is_ok());
/// assert!(CircuitBreaker::try_from(BreakerConfig { probes: 0, ..default }).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerConfig {
    /// Failures in a row that open the breaker, at least 1; 5 by default.
    pub failure_threshold: u16,
    /// Probes that must succeed to close it, at least 1; 1 by default.
    pub success_threshold: u8,
    /// Calls that it lets through at the same time while half-open, at least 1; 1 by default.
    pub probes: u8,
    /// How long it stays open, with any jitter but the decorrelated; fixed at 30 s by default.
    pub cooldown: Policy,
}

impl BreakerConfig {
    pub(super) const DEFAULT: Self = Self {
        failure_threshold: 5,
        success_threshold: 1,
        probes: 1,
        cooldown: Policy::fixed(Duration::from_secs(30)),
    };
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<BreakerConfig> for CircuitBreaker {
    type Error = BreakerError;

    /// # Errors
    ///
    /// [`BreakerError`] for the first value that breaks its rule.
    fn try_from(config: BreakerConfig) -> Result<Self, BreakerError> {
        let BreakerConfig { failure_threshold, success_threshold, probes, cooldown } = config;
        if failure_threshold == 0 {
            return Err(BreakerError::FailureThreshold);
        }
        if success_threshold == 0 {
            return Err(BreakerError::SuccessThreshold);
        }
        if probes == 0 {
            return Err(BreakerError::Probes);
        }
        if !is_stateless(&cooldown) {
            return Err(BreakerError::Cooldown(cooldown));
        }
        let breaker = Self::new().failure_threshold(failure_threshold).success_threshold(success_threshold);
        Ok(breaker.probes(probes).cooldown(cooldown))
    }
}

/// Why a [`BreakerConfig`] is no breaker: the field that breaks its rule.
///
/// ```
/// use relent::breaker::{BreakerConfig, BreakerError, CircuitBreaker};
///
/// let default = BreakerConfig::default();
/// let cooldown = "exponential 10s decorrelated".parse()?;
/// for (config, error) in [
///     (BreakerConfig { failure_threshold: 0, ..default }, BreakerError::FailureThreshold),
///     (BreakerConfig { success_threshold: 0, ..default }, BreakerError::SuccessThreshold),
///     (BreakerConfig { probes: 0, ..default }, BreakerError::Probes),
///     (BreakerConfig { cooldown, ..default }, BreakerError::Cooldown(cooldown)),
/// ] {
///     assert_eq!(CircuitBreaker::try_from(config).unwrap_err(), error);
/// }
/// assert_eq!(BreakerError::Probes.to_string(), "probes must be at least 1, not 0");
/// # Ok::<(), relent::policy::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BreakerError {
    /// The failure threshold is 0.
    FailureThreshold,
    /// The success threshold is 0.
    SuccessThreshold,
    /// The number of probes is 0.
    Probes,
    /// The cooldown has decorrelated jitter, which needs the delay before.
    Cooldown(Policy),
}

impl fmt::Display for BreakerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FailureThreshold => write!(f, "{FAILURES_RULE}, not 0"),
            Self::SuccessThreshold => write!(f, "{SUCCESSES_RULE}, not 0"),
            Self::Probes => write!(f, "{PROBES_RULE}, not 0"),
            Self::Cooldown(policy) => write!(f, "{COOLDOWN_RULE}, as \"{policy}\" has"),
        }
    }
}

impl Error for BreakerError {}

/// Whether each wait depends on the number of failures alone.
pub(super) const fn is_stateless(policy: &Policy) -> bool {
    !matches!(policy.jitter_kind(), Jitter::Decorrelated)
}

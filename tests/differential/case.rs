//! What a run depends on, as plain data, and how to draw it at random.
//!
//! Fractions of powers of two and short runs keep the arithmetic exact, so that no formula rounds differently from
//! another that means the same.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use relent::error::{NotExecuted, RetryAfterError};
use relent::{Jitter, NonRetryableError};

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Case {
    pub schedule: Plan,
    pub max_attempts: Option<u32>,
    pub max_elapsed: Option<Duration>,
    pub hint_limit: HintLimit,
    pub idempotent: bool,
    /// The attempts, each with how long it takes; after the last, attempts succeed.
    pub attempts: Vec<(Duration, Result<(), Fault>)>,
    /// The attempt during which the stop comes, if any.
    pub stop_during: Option<u32>,
    /// Used in turn, and again from the start.
    pub draws: Vec<f64>,
}

/// A schedule as its parts.
#[derive(Clone, Debug)]
pub enum Plan {
    Policy(Parts),
    List(Vec<Duration>),
    /// What a closure answers, by the failure; `None` after the last.
    Closure(Vec<Option<Duration>>),
    Levels(Vec<LevelParts>),
}

#[derive(Clone, Debug)]
pub struct Parts {
    pub growth: Growth,
    pub base: u32,
    pub cap: Option<u32>,
    pub jitter: Jitter,
    pub above_cap: bool,
    pub max_attempts: u32,
    pub max_elapsed: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub enum Growth {
    Fixed,
    Linear,
    Exponential(f64),
}

#[derive(Clone, Debug)]
pub struct LevelParts {
    pub count: u32,
    pub delay: Option<u32>,
    pub factor: f64,
    pub increment: i32,
    pub jitter: f64,
    pub cap: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub enum HintLimit {
    Default,
    Refuse(Duration),
    Clamp(Duration),
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Marker {
    None,
    NotRetryable,
    NotExecuted,
    RetryAfter(Duration),
}

/// What an attempt fails with.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub is_wanted: bool,
    pub hint: Option<Duration>,
    pub marker: Marker,
}

/// The same as an error, its marker in its chain.
#[derive(Debug)]
pub struct Failed {
    pub fault: Fault,
    pub marker: Option<Box<dyn Error + Send + Sync>>,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let marker: Option<Box<dyn Error + Send + Sync>> = match fault.marker {
            Marker::None => None,
            Marker::NotRetryable => Some(NonRetryableError::new("no such user").into()),
            Marker::NotExecuted => Some(NotExecuted::new("no connection").into()),
            Marker::RetryAfter(wait) => Some(RetryAfterError::new("busy", wait).into()),
        };
        Self { fault, marker }
    }
}

impl Fault {
    /// As an error that carries all its hints itself.
    pub fn hinted(self) -> Box<dyn Error + Send + Sync> {
        let marked = if let Marker::RetryAfter(hint) = self.marker { Some(hint) } else { None };
        match self.hint.max(marked) {
            Some(hint) => RetryAfterError::new(Failed::from(self), hint).into(),
            None => Failed::from(self).into(),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.marker.as_deref().map(|marker| marker as _)
    }
}

fn fraction() -> impl Strategy<Value = f64> {
    (0..=16_u32).prop_map(|sixteenths| f64::from(sixteenths) / 16.0)
}

/// Waits and limits that meet now and then.
fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        6 => (0..40_u64).prop_map(|tenths| Duration::from_millis(tenths * 100)),
        3 => (0..400_000_u64).prop_map(Duration::from_millis),
        1 => (0..5_000_u64).prop_map(Duration::from_micros),
        1 => Just(Duration::MAX),
    ]
}

fn short() -> impl Strategy<Value = Duration> {
    duration().prop_map(|duration| if duration == Duration::MAX { Duration::ZERO } else { duration })
}

fn base() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0), 6 => 1..2_000_u32]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        fraction().prop_map(Jitter::Proportional),
        fraction().prop_map(Jitter::Downward),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let growth = prop_oneof![
        Just(Growth::Fixed),
        Just(Growth::Linear),
        prop_oneof![Just(1.0), Just(1.5), Just(2.0), Just(3.0)].prop_map(Growth::Exponential),
    ];
    let parts = (growth, base(), option::of(base()), jitter(), any::<bool>(), 0..8_u32, option::weighted(0.3, short()))
        .prop_map(|(growth, base, cap, jitter, above_cap, max_attempts, max_elapsed)| {
            Plan::Policy(Parts { growth, base, cap, jitter, above_cap, max_attempts, max_elapsed })
        });
    let level = (1..4_u32, option::of(base()), 0..5_u32, -500..500_i32, fraction(), option::of(base())).prop_map(
        |(count, delay, halves, increment, jitter, cap)| {
            let factor = f64::from(halves) / 2.0;
            LevelParts { count, delay, factor, increment, jitter, cap }
        },
    );
    let levels = (base(), vec(level, 1..4)).prop_map(|(delay, mut levels)| {
        levels[0].delay.get_or_insert(delay);
        Plan::Levels(levels)
    });
    prop_oneof![
        4 => parts,
        1 => vec(duration(), 0..6).prop_map(Plan::List),
        1 => vec(option::weighted(0.9, duration()), 0..6).prop_map(Plan::Closure),
        2 => levels,
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    let marker = prop_oneof![
        20 => Just(Marker::None),
        1 => Just(Marker::NotRetryable),
        4 => Just(Marker::NotExecuted),
        3 => duration().prop_map(Marker::RetryAfter),
    ];
    (prop::bool::weighted(0.95), option::weighted(0.15, duration()), marker)
        .prop_map(|(is_wanted, hint, marker)| Fault { is_wanted, hint, marker })
}

pub fn case() -> impl Strategy<Value = Case> {
    let result = prop_oneof![1 => Just(Ok(())), 12 => fault().prop_map(Err)];
    let hint_limit = prop_oneof![
        3 => Just(HintLimit::Default),
        1 => duration().prop_map(HintLimit::Refuse),
        1 => duration().prop_map(HintLimit::Clamp),
        1 => Just(HintLimit::Ignore),
    ];
    let limits = (option::weighted(0.3, 0..8_u32), option::weighted(0.4, duration()));
    let draw = (0..256_u32).prop_map(|step| f64::from(step) / 256.0);
    (
        plan(),
        limits,
        hint_limit,
        prop::bool::weighted(0.9),
        vec((short(), result), 0..9),
        option::weighted(0.2, 1..6_u32),
        vec(draw, 1..9),
    )
        .prop_map(
            |(schedule, (max_attempts, max_elapsed), hint_limit, idempotent, attempts, stop_during, draws)| Case {
                schedule,
                max_attempts,
                max_elapsed,
                hint_limit,
                idempotent,
                attempts,
                stop_during,
                draws,
            },
        )
}

//! Waits in stages: a few quick ones, then slower ones, then a long one for ever.
//!
//! One growing sequence suits a call that a user waits for. What is restarted or reconnected by a supervisor often wants
//! more: at once the first time, growing for the next few, a steady wait from then on. Each such stage is a [`Level`], and
//! [`Levels`] is their ordered list.

mod error;

#[cfg(feature = "alloc")]
use alloc::{borrow::Cow, vec::Vec};
use core::time::Duration;

pub use error::LevelsError;

use crate::{
    ms,
    rng::Rng,
    schedule::{Progress, Schedule},
};

/// One stage of [`Levels`]: how many failures it lasts, and how its waits grow.
///
/// A plain value; [`Levels`] checks it. A level that says nothing but its count repeats the current delay.
///
/// ```
/// use core::time::Duration;
/// use relent::backoff::Backoff;
/// use relent::levels::{Level, Levels};
/// use relent::rng::FixedRng;
///
/// let ms = Duration::from_millis;
/// static LEVELS: Levels = Levels::new(&[
///     Level::new(3).delay(Duration::from_millis(100)).factor(3.0).increment_ms(-50),
///     Level::unbounded().factor(2.0).max_delay(Duration::from_secs(2)).jitter(0.5),
/// ]);
///
/// // a quarter off where there is jitter
/// let mut backoff = Backoff::new(&LEVELS).rng(FixedRng::new(0.5));
/// let waits = [(); 5].map(|()| {
///     backoff.failed();
///     backoff.delay()
/// });
/// assert_eq!(waits, [ms(100), ms(250), ms(700), ms(1050), ms(1500)]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a level does nothing until it is part of `Levels`"]
pub struct Level {
    count: Option<u32>,
    delay: Option<Duration>,
    factor: f64,
    increment_ms: i64,
    jitter: f64,
    max_delay: Option<Duration>,
}

impl Level {
    /// A level that lasts `count` failures, which is `count` waits; at least 1.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{levels::{Level, Levels}, schedule::Schedule};
    /// let levels = Levels::try_from([Level::new(2).delay(Duration::from_secs(1))])?;
    /// assert_eq!(levels.waits(), Some(2));
    /// # Ok::<(), relent::levels::LevelsError>(())
    /// ```
    pub const fn new(count: u32) -> Self {
        Self { count: Some(count), ..Self::unbounded() }
    }

    /// A level that never ends; only the last one may be that.
    pub const fn unbounded() -> Self {
        Self { count: None, delay: None, factor: 1.0, increment_ms: 0, jitter: 0.0, max_delay: None }
    }

    /// The wait after the first failure on this level; it grows from the second on. Zero, or at least 1 ms.
    ///
    /// Without it the level goes on from the current delay, the last one of the level before, and grows it from its first
    /// failure on.
    ///
    /// ```
    /// # use relent::{backoff::Backoff, levels::{Level, Levels}, rng::FixedRng};
    /// # fn waits<const N: usize>(level: Level) -> [u128; N] {
    /// #     let mut backoff = Backoff::new(Levels::try_from([level]).unwrap()).rng(FixedRng::new(0.5));
    /// #     [(); N].map(|()| { backoff.failed(); backoff.delay().as_millis() })
    /// # }
    /// # const SEC: core::time::Duration = core::time::Duration::from_secs(1);
    /// assert_eq!(waits(Level::unbounded().delay(SEC).factor(2.0)), [1000, 2000, 4000]);
    /// ```
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// What each further failure multiplies the delay by, before the increment: finite, at least 0. The default is 1.
    ///
    /// ```
    /// # use relent::{backoff::Backoff, levels::{Level, Levels}, rng::FixedRng};
    /// # fn waits<const N: usize>(level: Level) -> [u128; N] {
    /// #     let mut backoff = Backoff::new(Levels::try_from([level]).unwrap()).rng(FixedRng::new(0.5));
    /// #     [(); N].map(|()| { backoff.failed(); backoff.delay().as_millis() })
    /// # }
    /// # const SEC: core::time::Duration = core::time::Duration::from_secs(1);
    /// assert_eq!(waits(Level::unbounded().delay(SEC).factor(1.5)), [1000, 1500, 2250]);
    /// ```
    pub const fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// How many milliseconds each further failure adds to the delay; a negative increment shortens it, down to zero. The
    /// default is 0.
    ///
    /// ```
    /// # use relent::{backoff::Backoff, levels::{Level, Levels}, rng::FixedRng};
    /// # fn waits<const N: usize>(level: Level) -> [u128; N] {
    /// #     let mut backoff = Backoff::new(Levels::try_from([level]).unwrap()).rng(FixedRng::new(0.5));
    /// #     [(); N].map(|()| { backoff.failed(); backoff.delay().as_millis() })
    /// # }
    /// # const SEC: core::time::Duration = core::time::Duration::from_secs(1);
    /// assert_eq!(waits(Level::unbounded().delay(SEC).increment_ms(-400)), [1000, 600, 200, 0]);
    /// ```
    pub const fn increment_ms(mut self, increment_ms: i64) -> Self {
        self.increment_ms = increment_ms;
        self
    }

    /// The fraction of the delay, from 0 to 1, that a draw can take off the wait. The default is 0.
    ///
    /// The next delay grows from the whole one, whatever was taken off.
    ///
    /// ```
    /// # use relent::{backoff::Backoff, levels::{Level, Levels}, rng::FixedRng};
    /// # fn waits<const N: usize>(level: Level) -> [u128; N] {
    /// #     let mut backoff = Backoff::new(Levels::try_from([level]).unwrap()).rng(FixedRng::new(0.5));
    /// #     [(); N].map(|()| { backoff.failed(); backoff.delay().as_millis() })
    /// # }
    /// # const SEC: core::time::Duration = core::time::Duration::from_secs(1);
    /// let level = Level::unbounded().delay(SEC).factor(2.0).jitter(0.2);
    /// assert_eq!(waits(level), [900, 1800, 3600]); // with every draw at one half
    /// ```
    pub const fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = jitter;
        self
    }

    /// The longest wait of this level, taken down to whole milliseconds. Zero, or at least 1 ms.
    ///
    /// The delay that the level begins with, given or carried over, is held to it as well. The default is
    /// `u64::MAX` ms.
    ///
    /// ```
    /// # use relent::{backoff::Backoff, levels::{Level, Levels}, rng::FixedRng};
    /// # fn waits<const N: usize>(level: Level) -> [u128; N] {
    /// #     let mut backoff = Backoff::new(Levels::try_from([level]).unwrap()).rng(FixedRng::new(0.5));
    /// #     [(); N].map(|()| { backoff.failed(); backoff.delay().as_millis() })
    /// # }
    /// # const SEC: core::time::Duration = core::time::Duration::from_secs(1);
    /// let level = Level::unbounded().delay(4 * SEC).max_delay(3 * SEC);
    /// assert_eq!(waits(level), [3000, 3000]);
    /// ```
    pub const fn max_delay(mut self, max_delay: Duration) -> Self {
        self.max_delay = Some(max_delay);
        self
    }

    /// The delay after the failure that was just counted, the `failures`th on this level, following `previous`: in
    /// unrounded milliseconds, finite and not negative.
    #[allow(clippy::cast_precision_loss, reason = "inexact only beyond 285 000 years")]
    fn nominal(&self, failures: u32, previous: f64) -> f64 {
        let delay = match self.delay {
            Some(delay) if failures <= 1 => ms::exact(delay),
            _ => previous * self.factor + self.increment_ms as f64,
        };
        delay.max(0.0).min(ms::whole(self.max_delay.unwrap_or(Duration::MAX)))
    }

    /// The wait of a `nominal` delay, with a draw from 0 (all of it) to 1 (the shortest).
    fn wait(&self, nominal: f64, draw: f64) -> Duration {
        ms::rounded(nominal * (1.0 - self.jitter * draw))
    }

    /// What is wrong with this level, the one at index `level`, on its own.
    const fn check(&self, level: usize) -> Result<(), LevelsError> {
        if matches!(self.count, Some(0)) {
            return Err(LevelsError::Count { level });
        }
        match self.delay {
            Some(delay) if below_resolution(delay) => return Err(LevelsError::Delay { level, delay }),
            _ => {}
        }
        match self.max_delay {
            Some(max_delay) if below_resolution(max_delay) => return Err(LevelsError::MaxDelay { level, max_delay }),
            _ => {}
        }
        if !(self.factor >= 0.0 && self.factor.is_finite()) {
            return Err(LevelsError::Factor { level, factor: self.factor });
        }
        if !(self.jitter >= 0.0 && self.jitter <= 1.0) {
            return Err(LevelsError::Jitter { level, jitter: self.jitter });
        }
        Ok(())
    }
}

/// An ordered list of [`Level`]s, as a schedule.
///
/// A level with a delay starts at it and grows it from its second failure on; a level without one carries the current
/// delay over and grows it from its first failure on. To grow is `delay · factor + increment`, held between zero and the
/// level's `max_delay`. Jitter is then taken off the wait, never off the delay that grows on, and the wait is rounded
/// half up to whole milliseconds; what grows on is not rounded.
///
/// The list ends with the failure after its last level, so `n` failures in all allow `n + 1` attempts. With an unbounded
/// last level it never ends.
///
/// A list written in the source needs no allocation, and a bad one in a `const` or `static` does not compile:
///
/// ```
/// # use relent::{rng::FixedRng, schedule::{Progress, Schedule}};
/// # fn waits<const N: usize>(levels: &Levels) -> [u128; N] {
/// #     let mut progress = Progress::new();
/// #     [(); N].map(|()| {
/// #         progress.count_failure();
/// #         levels.next(&mut progress, &mut FixedRng::new(0.5)).unwrap().as_millis()
/// #     })
/// # }
/// use core::time::Duration;
/// use relent::levels::{Level, Levels};
///
/// // The first at once, the next five each 250 ms slower, then every 30 s for ever.
/// static RESTART: Levels = Levels::new(&[
///     Level::new(1).delay(Duration::ZERO),
///     Level::new(5).delay(Duration::from_millis(100)).increment_ms(250),
///     Level::unbounded().delay(Duration::from_secs(30)),
/// ]);
/// assert_eq!(waits(&RESTART), [0, 100, 350, 600, 850, 1100, 30_000, 30_000]);
///
/// // Doubling at first; then the second level carries 4000 ms over and adds half each time,
/// // up to two minutes.
/// static RECONNECT: Levels = Levels::new(&[
///     Level::new(3).delay(Duration::from_secs(1)).factor(2.0),
///     Level::unbounded().factor(1.5).max_delay(Duration::from_secs(120)),
/// ]);
/// assert_eq!(waits(&RECONNECT), [
///     1000, 2000, 4000, 6000, 9000, 13_500, 20_250, 30_375, 45_563, 68_344, 102_516,
///     120_000, 120_000,
/// ]);
/// ```
///
/// A list that is known at run time only, from a configuration say, is checked by `Levels::try_from`, which takes a
/// `Vec<Level>`, an array, or a `&'static [Level]`:
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use core::time::Duration;
/// use relent::levels::{Level, Levels};
///
/// let level = Level::new(3).delay(Duration::from_secs(1)).jitter(25.0);
/// let error = Levels::try_from([level]).unwrap_err();
/// assert_eq!(error.to_string(), "levels[0]: jitter must be a fraction between 0 and 1, not 25");
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "levels do nothing until a run uses them"]
pub struct Levels {
    levels: Storage,
    waits: Option<u32>,
}

#[cfg(feature = "alloc")]
type Storage = Cow<'static, [Level]>;
#[cfg(not(feature = "alloc"))]
type Storage = &'static [Level];

#[cfg(feature = "alloc")]
const fn borrowed(levels: &'static [Level]) -> Storage {
    Cow::Borrowed(levels)
}
#[cfg(not(feature = "alloc"))]
const fn borrowed(levels: &'static [Level]) -> Storage {
    levels
}

impl Levels {
    /// Ten attempts: the second at once, the others after waits that grow by the golden ratio from 987 ms, without jitter:
    /// 987, 1597, 2584, 4181, 6765, 10946, 17711 and 28657 ms.
    ///
    /// ```
    /// use relent::{levels::Levels, schedule::Schedule};
    ///
    /// assert_eq!(Levels::DEFAULT.waits(), Some(9));
    /// ```
    pub const DEFAULT: Self = Self::new(&[
        Level::new(1).delay(Duration::ZERO),
        Level::new(8).delay(Duration::from_millis(987)).factor(1.618_033_988_749_895),
    ]);

    /// The levels of a list written in the source: in a `static` or a `const`.
    ///
    /// # Panics
    ///
    /// If the list is one that `Levels::try_from` refuses. In a `static` or a `const` it then does not compile.
    ///
    /// ```compile_fail
    /// use relent::levels::{Level, Levels};
    ///
    /// static UNBOUNDED_FIRST: Levels = Levels::new(&[Level::unbounded(), Level::new(3)]);
    /// ```
    #[track_caller]
    pub const fn new(levels: &'static [Level]) -> Self {
        match check(levels) {
            Ok(waits) => Self { levels: borrowed(levels), waits },
            Err(error) => panic!("{}", error.rule()),
        }
    }

    fn level(&self, index: u32) -> Option<&Level> {
        self.levels.get(usize::try_from(index).ok()?)
    }
}

/// [`Levels::DEFAULT`].
impl Default for Levels {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<&'static [Level]> for Levels {
    type Error = LevelsError;

    fn try_from(levels: &'static [Level]) -> Result<Self, LevelsError> {
        Ok(Self { waits: check(levels)?, levels: borrowed(levels) })
    }
}

#[cfg(feature = "alloc")]
impl TryFrom<Vec<Level>> for Levels {
    type Error = LevelsError;

    fn try_from(levels: Vec<Level>) -> Result<Self, LevelsError> {
        Ok(Self { waits: check(&levels)?, levels: levels.into() })
    }
}

#[cfg(feature = "alloc")]
impl<const N: usize> TryFrom<[Level; N]> for Levels {
    type Error = LevelsError;

    fn try_from(levels: [Level; N]) -> Result<Self, LevelsError> {
        Self::try_from(Vec::from(levels))
    }
}

impl Schedule for Levels {
    fn next(&self, progress: &mut Progress, rng: &mut dyn Rng) -> Option<Duration> {
        let mut level = self.level(progress.level())?;
        if level.count.is_some_and(|count| progress.level_failures() > count) {
            let next = progress.level().saturating_add(1);
            level = self.level(next)?;
            progress.enter_level(next, 1);
        }
        let nominal = level.nominal(progress.level_failures(), progress.previous_ms());
        progress.set_previous_ms(nominal);
        let draw = if level.jitter > 0.0 { ms::in_unit(rng.next_f64()) } else { 0.0 };
        Some(level.wait(nominal, draw))
    }

    fn waits(&self) -> Option<u32> {
        self.waits
    }

    fn lower_bound(&self, progress: &Progress, wait: Duration) -> Duration {
        self.level(progress.level()).map_or(wait, |level| level.wait(progress.previous_ms(), 1.0))
    }
}

/// How many waits the levels make, `None` for unbounded, or the first thing that is wrong with them.
const fn check(levels: &[Level]) -> Result<Option<u32>, LevelsError> {
    let [first, ..] = levels else {
        return Err(LevelsError::Empty);
    };
    if first.delay.is_none() {
        return Err(LevelsError::MissingDelay);
    }
    let (mut index, mut waits) = (0, 0_u32);
    while index < levels.len() {
        let level = &levels[index];
        if let Err(error) = level.check(index) {
            return Err(error);
        }
        match level.count {
            Some(count) => waits = waits.saturating_add(count),
            None if index + 1 == levels.len() => return Ok(None),
            None => return Err(LevelsError::Unbounded { level: index }),
        }
        index += 1;
    }
    Ok(Some(waits))
}

/// Whether a duration is above zero, yet too short to be told from it in whole milliseconds.
const fn below_resolution(duration: Duration) -> bool {
    !duration.is_zero() && duration.as_millis() == 0
}

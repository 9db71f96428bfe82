/// How the delays of those that failed together are spread, so that they do not come back together.
///
/// With the capped delay `d` and one draw `r` in `[0, 1)`:
///
/// | kind | delay | range |
/// |---|---|---|
/// | `None` | `d` | `d` |
/// | `Full` | `r·d` | `0..d` |
/// | `Equal` | `d/2 + r·d/2` | `d/2..d` |
/// | `Decorrelated` | `base + r·(3·previous − base)` | `base..3·previous` |
/// | `Proportional(p)` | `d·(1 + p·(2r − 1))` | `d·(1 − p)..d·(1 + p)` |
/// | `Downward(f)` | `d·(1 − f·r)` | `d·(1 − f)..d` |
///
/// Each result is then clamped to the cap, unless the policy says
/// [`allow_jitter_above_cap`](super::Policy::allow_jitter_above_cap).
///
/// **Which one?** Most retries wait for one dependency that is starting up. `Equal` keeps a growing floor under the
/// wait and still breaks the lockstep; that is why it is the default of exponential growth. `Full` spreads widest and
/// costs a contended server the fewest calls, but it has no floor: a draw near zero burns one of few attempts at once.
/// `Downward` is `Equal` with a spread of your choice, and never waits longer than `d`. `Proportional` keeps the mean at
/// `d`. `Decorrelated` depends on the draw before, so a run of short draws keeps it short, and a delay cannot be told
/// from the number of failures alone. `None` is for a single client, or for tests.
///
/// **At the cap**, two-sided jitter loses half its spread: with `Proportional`, half of all draws are clamped to exactly
/// the cap. `Full`, `Equal` and `Downward` keep theirs. Of 1000 clients at a cap of 2 s, about 500 fall into one slot of
/// 10 ms with `Proportional(0.5)`, fewer than 20 on average with `Equal`, and fewer than 13 with `Full`.
///
/// Jitter is no secret: the source of draws need not be cryptographic, it only has to differ between processes.
/// `None` takes no draw; every other kind takes one for each delay, whatever the delay is.
///
/// Fractions lie in `0..=1`: 25 % is 0.25.
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// let ms = Duration::from_millis;
/// let between = |jitter| Policy::fixed(ms(100)).jitter(jitter).bounds_after(1);
///
/// assert_eq!(between(Jitter::None), (ms(100), ms(100)));
/// assert_eq!(between(Jitter::Full), (ms(0), ms(100)));
/// assert_eq!(between(Jitter::Equal), (ms(50), ms(100)));
/// assert_eq!(between(Jitter::Decorrelated), (ms(100), ms(300)));
/// assert_eq!(between(Jitter::Proportional(0.25)), (ms(75), ms(125)));
/// assert_eq!(between(Jitter::Downward(0.25)), (ms(75), ms(100)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// No spread: those that failed together return together.
    None,
    /// Anywhere from zero to the delay.
    Full,
    /// Half the delay, and up to as much again.
    Equal,
    /// From the base to three times the delay before, whatever the growth; the first delay draws up to three bases.
    Decorrelated,
    /// This fraction to either side.
    Proportional(f64),
    /// Up to this fraction less; the "jitter factor" of several systems.
    Downward(f64),
}

/// [`Jitter`] without its fraction, which a policy keeps apart to stay small.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Spread {
    None,
    Full,
    Equal,
    Decorrelated,
    Proportional,
    Downward,
}

impl Jitter {
    pub(super) const fn split(self) -> (Spread, f64) {
        match self {
            Self::None => (Spread::None, 0.0),
            Self::Full => (Spread::Full, 0.0),
            Self::Equal => (Spread::Equal, 0.0),
            Self::Decorrelated => (Spread::Decorrelated, 0.0),
            Self::Proportional(fraction) => (Spread::Proportional, fraction),
            Self::Downward(fraction) => (Spread::Downward, fraction),
        }
    }

    pub(super) const fn joined(spread: Spread, fraction: f64) -> Self {
        match spread {
            Spread::None => Self::None,
            Spread::Full => Self::Full,
            Spread::Equal => Self::Equal,
            Spread::Decorrelated => Self::Decorrelated,
            Spread::Proportional => Self::Proportional(fraction),
            Spread::Downward => Self::Downward(fraction),
        }
    }
}

//! What surrounds a run: its clock, its random source, its stop signal, and how it reads its errors.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use crate::clock::Clock;

/// The surroundings of a run as one type: clock `C`, random source `R`, reading of errors `M`, stop signal `G`.
#[derive(Debug)]
pub struct Env<C, R, M, G>(PhantomData<fn() -> (C, R, M, G)>);

/// Names the parts of an [`Env`].
pub trait Environment {
    /// Reads time and waits.
    type Clock: Sleeps;
    /// Draws for jitter.
    type Rng;
    /// Reads markers and hints from errors.
    type Marking;
    /// Says when to stop.
    type Signal: Signal;
}

impl<C: Sleeps, R, M, G: Signal> Environment for Env<C, R, M, G> {
    type Clock = C;
    type Rng = R;
    type Marking = M;
    type Signal = G;
}

/// Has a future for waiting. Apart from [`Time`] so that a run can be built before its clock is given.
pub trait Sleeps {
    /// The future of one wait.
    type Sleep: Future<Output = ()>;
}

/// What a run does with time.
#[diagnostic::on_unimplemented(
    message = "this run has no clock",
    label = "there is no default clock on this target",
    note = "give the run one: `.clock(my_clock)`, or, to count its waits alone, `.sleep(|duration| my_timer(duration))`"
)]
pub trait Time: Sleeps {
    /// The time at which the run begins; one that has no use for the time never asks.
    fn start(&mut self) -> Duration {
        self.now()
    }
    /// The time since a fixed origin.
    fn now(&self) -> Duration;
    /// A future that is ready once `duration` has passed.
    fn timer(&mut self, duration: Duration) -> Self::Sleep;
    /// A timer ended, and it was this long.
    fn slept(&mut self, duration: Duration) {
        let _ = duration;
    }
}

/// Time as a [`Clock`] tells it.
#[derive(Clone, Copy, Debug)]
pub struct On<C>(pub(crate) C);

impl<C: Clock> Sleeps for On<C> {
    type Sleep = C::Sleep;
}

impl<C: Clock> Time for On<C> {
    #[inline]
    fn now(&self) -> Duration {
        self.0.now()
    }

    #[inline]
    fn timer(&mut self, duration: Duration) -> C::Sleep {
        self.0.sleep(duration)
    }
}

/// The clock that `.sleep(f)` reads beside the waits it completes.
pub trait Reads {
    /// The time since a fixed origin.
    fn read(&self) -> Duration;
}

impl<C: Clock> Reads for On<C> {
    fn read(&self) -> Duration {
        self.0.now()
    }
}

/// Waiting by a closure; the time is the later of what the clock says and the sum of the completed timers.
#[derive(Clone, Copy)]
pub struct SleepBy<F, B> {
    pub(crate) sleep: F,
    pub(crate) base: B,
    /// What the base read when the run began; a run without limits never asks.
    pub(crate) origin: Option<Duration>,
    pub(crate) waited: Duration,
}

impl<F, B> SleepBy<F, B> {
    pub(crate) const fn new(sleep: F, base: B) -> Self {
        Self { sleep, base, origin: None, waited: Duration::ZERO }
    }
}

impl<F, B: fmt::Debug> fmt::Debug for SleepBy<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SleepBy").field("base", &self.base).field("waited", &self.waited).finish_non_exhaustive()
    }
}

impl<F: FnMut(Duration) -> Fut, B, Fut: Future<Output = ()>> Sleeps for SleepBy<F, B> {
    type Sleep = Fut;
}

impl<F: FnMut(Duration) -> Fut, B: Reads, Fut: Future<Output = ()>> Time for SleepBy<F, B> {
    fn start(&mut self) -> Duration {
        if self.origin.is_some() {
            return self.now();
        }
        self.origin = Some(self.base.read());
        Duration::ZERO
    }

    fn now(&self) -> Duration {
        let elapsed = self.origin.map_or(Duration::ZERO, |origin| self.base.read().saturating_sub(origin));
        elapsed.max(self.waited)
    }

    fn timer(&mut self, duration: Duration) -> Fut {
        (self.sleep)(duration)
    }

    fn slept(&mut self, duration: Duration) {
        // A run that has no use for the time needs no sum either.
        if self.origin.is_some() {
            self.waited = self.waited.saturating_add(duration);
        }
    }
}

/// A stop signal, and what a run must keep because of it.
pub trait Signal {
    /// The error of the last attempt during a wait, if a signal could end that wait.
    type Held<E>;

    /// Whether the signal has come; it is not polled again once it has.
    fn has_come(self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool;

    /// Keeps the error, or drops it before the wait begins.
    fn hold<E>(error: E) -> Self::Held<E>;

    /// Gives the error back, once.
    fn release<E>(held: &mut Self::Held<E>) -> Option<E>;
}

/// No stop signal.
#[derive(Clone, Copy, Debug)]
pub struct NoSignal;

impl Signal for NoSignal {
    type Held<E> = ();

    #[inline]
    fn has_come(self: Pin<&mut Self>, _: &mut Context<'_>) -> bool {
        false
    }

    #[inline]
    fn hold<E>(_: E) {}

    #[inline]
    fn release<E>((): &mut ()) -> Option<E> {
        None
    }
}

/// A future as the signal; `None` once it has completed.
impl<G: Future> Signal for Option<G> {
    type Held<E> = Option<E>;

    fn has_come(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        match self.as_mut().as_pin_mut().map(|signal| signal.poll(cx)) {
            None => true,
            Some(Poll::Ready(_)) => {
                self.set(None);
                true
            }
            Some(Poll::Pending) => false,
        }
    }

    fn hold<E>(error: E) -> Option<E> {
        Some(error)
    }

    fn release<E>(held: &mut Option<E>) -> Option<E> {
        held.take()
    }
}

/// What a run has that was given no clock and no random source.
#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
mod default {
    use super::On;
    use crate::clock::{DEFAULT_CLOCK, DefaultClock};
    use crate::rng::DefaultRng;

    pub type Time = On<DefaultClock>;
    pub type Rng = DefaultRng;

    pub(crate) const TIME: Time = On(DEFAULT_CLOCK);
    pub(crate) const RNG: Rng = DefaultRng;
}

/// What a run has that was given no clock and no random source: nothing, since this target has none to trust. Here std's
/// clock and process id trap, and its hasher keys are the same in every run, or there is no std at all.
#[cfg(not(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown")))))]
mod default {
    use core::future::Pending;
    use core::time::Duration;

    use super::{Reads, Sleeps};
    use crate::clock::NoClock;

    pub type Time = NoClock;

    /// No random source yet.
    #[derive(Clone, Copy, Debug)]
    pub struct Rng;

    impl Sleeps for NoClock {
        type Sleep = Pending<()>;
    }

    impl Reads for NoClock {
        fn read(&self) -> Duration {
            Duration::ZERO
        }
    }

    pub(crate) const TIME: Time = NoClock;
    pub(crate) const RNG: Rng = Rng;
}

pub(crate) use default::{RNG as DEFAULT_RNG, TIME as DEFAULT_TIME};
pub use default::{Rng as DefaultRng, Time as DefaultTime};

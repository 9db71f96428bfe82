//! Calls through a breaker.

use core::future::IntoFuture;

use super::{CircuitBreaker, Permit};
use crate::clock::Clock;
use crate::error::call::CallError;
use crate::error::{AsError, Auto, Marking};

impl<C> CircuitBreaker<C> {
    /// Makes one call: awaits `operation` if the breaker admits it, and reports how it ended.
    ///
    /// An error counts as a failure, with two exceptions that say nothing about the service: one that is
    /// [marked](crate::error) as not retryable, because the request is wrong, and the refusal of another breaker,
    /// wherever it stands in the chain. These are neutral, and so is a call that is dropped before it ends, or panics.
    /// Futures do nothing until they are awaited, so a refused `operation` never begins; a whole run,
    /// `retry(op, policy)`, is an operation like any other.
    ///
    /// # Errors
    ///
    /// [`CallError::Open`] if the breaker refused the call, [`CallError::Inner`] if the operation failed.
    ///
    /// ```
    /// use relent::NonRetryableError;
    /// use relent::breaker::{CallError, CircuitBreaker, State};
    /// use relent::clock::VirtualClock;
    ///
    /// let clock = VirtualClock::new();
    /// let breaker = CircuitBreaker::new().failure_threshold(1).with_clock(&clock);
    /// clock.block_on(async {
    ///     let wrong = async { Err::<(), _>(NonRetryableError::new("no such user")) };
    ///     assert!(matches!(breaker.call(wrong).await, Err(CallError::Inner(_))));
    ///     assert_eq!(breaker.state(), State::Closed);
    ///
    ///     let down = async { Err::<(), _>("down") };
    ///     assert_eq!(breaker.call(down).await, Err(CallError::Inner("down")));
    ///     assert_eq!(breaker.state(), State::Open);
    ///     assert!(matches!(breaker.call(async { Ok::<_, &str>(7) }).await, Err(CallError::Open(_))));
    /// });
    /// ```
    pub async fn call<T, E, K>(&self, operation: impl IntoFuture<Output = Result<T, E>>) -> Result<T, CallError<E>>
    where
        E: AsError<K>,
        C: Clock,
    {
        self.call_with(operation, is_failure::<E, K>).await
    }

    /// [`call`](Self::call) with a predicate that says which errors count as failures; the others are neutral.
    ///
    /// It takes any error type, and looks for no marker; [`Signs`](crate::error::Signs) tells a predicate what
    /// [`call`](Self::call) goes by.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    ///
    /// ```
    /// # use relent::breaker::{CallError, CircuitBreaker, State};
    /// # use relent::clock::VirtualClock;
    /// # let clock = VirtualClock::new();
    /// let breaker = CircuitBreaker::new().failure_threshold(1).with_clock(&clock);
    /// # clock.block_on(async {
    /// let answer = async |code: u16| Err::<(), _>(code);
    /// let status = |code| breaker.call_with(answer(code), |code| *code >= 500);
    ///
    /// assert_eq!(status(404).await, Err(CallError::Inner(404)));
    /// assert_eq!(breaker.state(), State::Closed);
    /// assert_eq!(status(503).await, Err(CallError::Inner(503)));
    /// assert_eq!(breaker.state(), State::Open);
    /// # });
    /// ```
    pub async fn call_with<T, E>(
        &self,
        operation: impl IntoFuture<Output = Result<T, E>>,
        counts: impl FnOnce(&E) -> bool,
    ) -> Result<T, CallError<E>>
    where
        C: Clock,
    {
        let permit = self.acquire()?;
        permit.settle(operation.await, counts)
    }

    /// [`call`](Self::call) for a thread: the operation is a closure, called if the breaker admits it.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    ///
    /// ```
    /// use relent::breaker::{CallError, CircuitBreaker};
    ///
    /// let breaker = CircuitBreaker::new().failure_threshold(1);
    /// assert_eq!(breaker.call_blocking(|| Ok::<_, &str>(7)), Ok(7));
    /// assert_eq!(breaker.call_blocking(|| Err::<u32, _>("down")), Err(CallError::Inner("down")));
    /// assert!(matches!(breaker.call_blocking(|| Ok::<_, &str>(7)), Err(CallError::Open(_))));
    /// ```
    pub fn call_blocking<T, E, K>(&self, operation: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>>
    where
        E: AsError<K>,
        C: Clock,
    {
        self.call_blocking_with(operation, is_failure::<E, K>)
    }

    /// [`call_with`](Self::call_with) for a thread: the operation is a closure, called if the breaker admits it.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    ///
    /// ```
    /// use relent::breaker::{CallError, CircuitBreaker, State};
    ///
    /// let breaker = CircuitBreaker::new().failure_threshold(1);
    /// let status = |code: u16| breaker.call_blocking_with(|| Err::<(), _>(code), |code| *code >= 500);
    /// assert_eq!(status(404), Err(CallError::Inner(404)));
    /// assert_eq!(breaker.state(), State::Closed);
    /// assert_eq!(status(503), Err(CallError::Inner(503)));
    /// assert_eq!(breaker.state(), State::Open);
    /// ```
    pub fn call_blocking_with<T, E>(
        &self,
        operation: impl FnOnce() -> Result<T, E>,
        counts: impl FnOnce(&E) -> bool,
    ) -> Result<T, CallError<E>>
    where
        C: Clock,
    {
        let permit = self.acquire()?;
        permit.settle(operation(), counts)
    }
}

fn is_failure<E: AsError<K>, K>(error: &E) -> bool {
    let signs = Auto::<K>::signs(error);
    !signs.not_retryable() && !signs.refused()
}

impl<C: Clock> Permit<'_, C> {
    fn settle<T, E>(self, result: Result<T, E>, counts: impl FnOnce(&E) -> bool) -> Result<T, CallError<E>> {
        match &result {
            Ok(_) => _ = self.success(),
            Err(error) if counts(error) => _ = self.failure(),
            Err(_) => self.neutral(),
        }
        result.map_err(CallError::Inner)
    }
}

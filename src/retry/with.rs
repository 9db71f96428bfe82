//! Attempts that share `&mut` state: each takes it along and brings it back.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::Retry;
use super::operation::{Attempts, InFlight, Operation, Outcome};
use crate::attempt::Attempt;
use crate::env::{DEFAULT_RNG, DEFAULT_TIME, DefaultRng, DefaultTime, Env, NoSignal, Sleeps, Time};
use crate::error::Auto;
use crate::hooks::NoHooks;
use crate::run::Run;
use crate::schedule::Schedule;

/// An operation that has `&'a mut C` during one attempt.
///
/// Implemented for whatever takes `&mut C` and an [`Attempt`] and returns a future of a `Result`. A trait of its own,
/// because the future of an `AsyncFnMut` has no name by which a caller could see that it is `Send`.
///
/// ```
/// use core::time::Duration;
/// use relent::retry::{OperationWith, retry_with};
/// use relent::{Attempt, Policy, clock::InstantClock};
///
/// /// One place that says how a connection, here a count of its queries, is used.
/// async fn query<F>(connection: &mut u32, op: F) -> Result<u32, &'static str>
/// where
///     F: for<'a> OperationWith<'a, u32, Value = u32, Error = &'static str>,
/// {
///     let policy = Policy::fixed(Duration::from_secs(1));
///     retry_with(connection, op, policy).clock(InstantClock::new()).await
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let mut connection = 0;
/// let op = async |connection: &mut u32, attempt: Attempt| {
///     *connection += 1;
///     if attempt.is_first() { Err("reset") } else { Ok(42) }
/// };
/// assert_eq!(query(&mut connection, op).await, Ok(42));
/// assert_eq!(connection, 2);
/// # });
/// ```
pub trait OperationWith<'a, C: ?Sized + 'a>: FnMut(&'a mut C, Attempt) -> Self::Future {
    /// The value of a successful attempt.
    type Value;
    /// The error of a failed attempt.
    type Error;
    /// An attempt in flight.
    type Future: Future<Output = Result<Self::Value, Self::Error>>;
}

impl<'a, C, F, Fut, T, E> OperationWith<'a, C> for F
where
    C: ?Sized + 'a,
    F: FnMut(&'a mut C, Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    type Value = T;
    type Error = E;
    type Future = Fut;
}

/// Calls `op` with `context` until it succeeds, waiting between the attempts as `schedule` says.
///
/// As [`retry`](super::retry), for an operation that needs `&mut` state in each attempt, such as a connection, which no
/// closure can lend out of itself. `op` is an `async` closure in which the type of the state is written, or an `async fn`
/// with the same arguments. What it captures besides, it may borrow by `&`. The run is `Send` when the state, the
/// operation and its future are.
///
/// An attempt has the state until it ends, so it cannot be taken from it: there is no `.attempt_timeout` here. Put a
/// time limit into the operation. The run is larger than one without state by at most 72 bytes and, once more, what `op`
/// captures. For several places that wait, or `?` between them, write the loop yourself: see
/// [`backoff`](crate::backoff).
///
/// ```
/// use core::time::Duration;
/// use relent::{Policy, clock::InstantClock, retry::retry_with};
///
/// struct Connection { resets: u32 }
///
/// impl Connection {
///     async fn query(&mut self, row: &str) -> Result<usize, &'static str> {
///         self.resets += 1;
///         if self.resets < 3 { Err("reset") } else { Ok(row.len()) }
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let mut connection = Connection { resets: 0 };
/// let row = String::from("id 7");
/// let query = async |connection: &mut Connection, _| connection.query(&row).await;
/// let policy = Policy::fixed(Duration::from_secs(1));
/// let run = retry_with(&mut connection, query, policy).when(|e| *e == "reset");
/// assert_eq!(run.clock(InstantClock::new()).await, Ok(4));
/// assert_eq!(connection.resets, 3);
/// # });
/// ```
///
/// ```compile_fail,E0599
/// # use core::time::Duration;
/// # use relent::{Policy, retry::retry_with};
/// retry_with(&mut 0, async |_: &mut i32, _| Err::<(), _>("E"), Policy::DEFAULT)
///     .attempt_timeout(Duration::from_secs(1), |_| "timed out");
/// ```
pub fn retry_with<'c, C, F, T, E, S, KnownOnceAwaited>(
    context: &'c mut C,
    op: F,
    schedule: S,
) -> Retry<
    With<impl Future<Output = ((&'c mut C, F), Result<T, E>)>>,
    S,
    NoHooks,
    Env<DefaultTime, DefaultRng, Auto<KnownOnceAwaited>, NoSignal>,
>
where
    C: ?Sized,
    F: for<'a> OperationWith<'a, C, Value = T, Error = E>,
    S: Schedule,
{
    let begin = |(context, mut op): (&'c mut C, F), attempt| async move {
        let result = op(context, attempt).await;
        ((context, op), result)
    };
    let op = With { loan: Some((context, op)), begin };
    Retry::new(op, Run::new(schedule, NoHooks, DEFAULT_TIME, DEFAULT_RNG), NoSignal)
}

/// An attempt in flight that has something on loan, and gives it back with its result.
///
/// A run names all of these by this one type, so that no two mentions of the loan's lifetime have to agree: once the
/// run is kept in another future, the compiler no longer knows that they do.
pub trait Borrower: Future<Output = (Self::Loan, Result<Self::Value, Self::Error>)> {
    /// What it has on loan.
    type Loan;
    /// The value of a successful attempt.
    type Value;
    /// The error of a failed attempt.
    type Error;
}

impl<A: Future<Output = (L, Result<T, E>)>, L, T, E> Borrower for A {
    type Loan = L;
    type Value = T;
    type Error = E;
}

/// The operation of a run of [`retry_with`]: it lends its state to each attempt, a future `A`.
pub struct With<A: Borrower> {
    /// `None` while an attempt is in flight.
    loan: Option<A::Loan>,
    begin: fn(A::Loan, Attempt) -> A,
}

impl<A: Borrower> fmt::Debug for With<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("With").field("lent", &self.loan.is_none()).finish_non_exhaustive()
    }
}

impl<A: Borrower> Operation for With<A> {
    type Output = A::Value;
    type Error = A::Error;
}

impl<A: Borrower, C: Sleeps> InFlight<C> for With<A> {
    type Running = A;
}

impl<A: Borrower, C: Sleeps> Attempts<C> for With<A> {
    #[inline]
    fn begin(&mut self, attempt: Attempt, _: &mut C) -> A
    where
        C: Time,
    {
        let loan = self.loan.take();
        // An attempt begins after the last one has ended, and one that panicked ends the run.
        (self.begin)(loan.unwrap_or_else(|| unreachable!("the last attempt has not ended")), attempt)
    }

    #[inline]
    fn poll(&mut self, running: Pin<&mut A>, cx: &mut Context<'_>) -> Poll<Outcome<A::Value, A::Error>> {
        running.poll(cx).map(|(loan, result)| {
            self.loan = Some(loan);
            Outcome::Done(result)
        })
    }
}

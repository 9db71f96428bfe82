//! The operation that all drivers retry, and the executor that polls them.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A small typed error without a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("busy")
    }
}

impl std::error::Error for Busy {}

/// A future of 64 bytes, ready at its first poll.
pub struct Operation<E> {
    fields: [u64; 8],
    error: PhantomData<fn() -> E>,
}

/// The operation of an attempt, which fails up to the third one.
pub fn fails_thrice<E>(attempt: u32, x: u64) -> Operation<E> {
    Operation { fields: [u64::from(attempt <= 3), x, x, x, x, x, x, x], error: PhantomData }
}

/// The operation that always succeeds.
pub fn succeeds<E>(x: u64) -> Operation<E> {
    Operation { fields: [0, x, x, x, x, x, x, x], error: PhantomData }
}

impl<E: From<Busy>> Future for Operation<E> {
    type Output = Result<u64, E>;

    // Out of line and opaque, so that no driver gains by seeing through it.
    #[inline(never)]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let fields = black_box(&self.fields);
        Poll::Ready(if fields[0] == 0 { Ok(fields[7]) } else { Err(Busy.into()) })
    }
}

/// The sleep that is ready at once.
pub fn no_sleep(duration: Duration) -> Ready<()> {
    black_box(duration);
    ready(())
}

/// Polls once, with a waker that does nothing: all that is measured is ready at its first poll.
pub fn poll<F: Future>(future: F) -> F::Output {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a contender was not ready at its first poll"),
    }
}

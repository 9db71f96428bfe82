//! How large a run is: what the operation's future and the clock's sleep share, and a fixed part.

use std::future::Future;
use std::hint::black_box;
use std::mem::{size_of, size_of_val};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use relent::clock::{Clock, InstantClock, SystemClock, VirtualClock, clock_fn};
use relent::retry::retry_with;
use relent::{Policy, retry};

const BY_VALUE: usize = 112;
const BY_REFERENCE: usize = 72;
/// For an operation that captures nothing.
const WITH_STATE: usize = 72;

static POLICY: Policy = Policy::DEFAULT;

/// A future of a given size.
#[derive(Clone, Copy)]
struct Sized<const N: usize>([u8; N]);

impl<const N: usize> Future for Sized<N> {
    type Output = Result<(), &'static str>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Err("E"))
    }
}

/// A sleep of that size.
struct SizedSleep<const N: usize>([u8; N]);

impl<const N: usize> Future for SizedSleep<N> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// As `size_of_val`, of what is a future: this lets the compiler find how the run reads its errors.
fn size_of_run(run: &impl Future) -> usize {
    size_of_val(run)
}

/// The size of runs above the larger of the operation's future and the sleep, with the policy by value and by reference.
fn overheads<const N: usize, C: Clock + Copy>(clock: C) -> [usize; 2] {
    let shared = size_of::<Sized<N>>().max(size_of::<C::Sleep>());
    let op = |_| Sized([0; N]);
    let by_value = size_of_run(&retry(op, POLICY).clock(clock));
    let by_reference = size_of_run(&retry(op, &POLICY).clock(clock));
    [by_value - shared - size_of::<C>(), by_reference - shared - size_of::<C>()]
}

#[test]
fn a_run_is_no_larger_than_it_says() {
    let instant = InstantClock::new();
    let virtual_clock = VirtualClock::new();
    let large = clock_fn(|| Duration::ZERO, |_| SizedSleep([0; 300]));
    for (what, [by_value, by_reference]) in [
        ("no future, SystemClock", overheads::<0, _>(SystemClock)),
        ("3 bytes, SystemClock", overheads::<3, _>(SystemClock)),
        ("64 bytes, SystemClock", overheads::<64, _>(SystemClock)),
        ("256 bytes, SystemClock", overheads::<256, _>(SystemClock)),
        ("no future, VirtualClock", overheads::<0, _>(&virtual_clock)),
        ("64 bytes, InstantClock", overheads::<64, _>(&instant)),
        ("64 bytes, large sleep", overheads::<64, _>(large)),
        ("256 bytes, large sleep", overheads::<256, _>(large)),
        ("512 bytes, large sleep", overheads::<512, _>(large)),
    ] {
        assert!(by_value <= BY_VALUE, "{what}, by value: {by_value}");
        assert!(by_reference <= BY_REFERENCE, "{what}, by reference: {by_reference}");
    }
}

/// What a run is given lies in it: the captures of its operation and hooks, a stop signal, and then the error of a wait.
#[test]
fn what_is_given_to_a_run_is_all_that_it_holds_besides() {
    let plain = size_of_run(&retry(|_| Sized([0; 64]), &POLICY));
    let captured = [0_u8; 128];
    let op = move |_| {
        black_box(&captured);
        Sized([0; 64])
    };
    assert_eq!(size_of_run(&retry(op, &POLICY)), plain + 128);
    let hook = move |_: &_| _ = black_box(&captured);
    assert_eq!(size_of_run(&retry(|_| Sized([0; 64]), &POLICY).on_retry(move |r| hook(&r.attempt))), plain + 128);
    let signalled = size_of_run(&retry(|_| Sized([0; 64]), &POLICY).cancel_on(std::future::pending::<()>()));
    assert!(signalled <= plain + 16, "{signalled}, {plain}");
}

/// The default clock and random source take no room.
#[test]
fn defaults_take_no_room() {
    let op = |_| Sized([0; 64]);
    assert_eq!(size_of_run(&retry(op, &POLICY)), size_of_run(&retry(op, &POLICY).clock(SystemClock)));
}

/// An attempt on `&mut` state carries the state, what its operation captures, and what it is told about itself.
#[test]
fn mutable_state_costs_what_it_says() {
    fn difference<const N: usize, const CAPTURED: usize>() -> usize {
        let mut state = 0_u8;
        let captured = [0_u8; CAPTURED];
        let without = size_of_run(&retry(
            move |_| {
                black_box(&captured);
                Sized([0; N])
            },
            &POLICY,
        ));
        let op = move |_: &mut u8, _| {
            black_box(&captured);
            Sized([0; N])
        };
        size_of_run(&retry_with(&mut state, op, &POLICY)) - without
    }
    for difference in [difference::<0, 0>(), difference::<64, 0>(), difference::<256, 0>()] {
        assert!(difference <= WITH_STATE, "{difference}");
    }
    for difference in [difference::<0, 128>(), difference::<64, 128>(), difference::<256, 128>()] {
        assert!(difference <= WITH_STATE + 128, "{difference}");
    }
}

//! A closed breaker that lets a call through, and a budget that counts one run and grants one retry.

use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use failsafe::CircuitBreaker as _;
use relent::breaker::CircuitBreaker;
use relent::budget::RetryBudget;
use relent::clock::Clock;
use tower::retry::budget::{Budget, TpsBudget};

use crate::{Contender, Group, Side, repeat};

/// A counter that no other shares its cache line with.
#[repr(align(128))]
struct Alone<T>(T);

static ADDED: Alone<AtomicU64> = Alone(AtomicU64::new(0));
static ADDED_TOO: Alone<AtomicU64> = Alone(AtomicU64::new(0));
static LOCKED: Alone<Mutex<u64>> = Alone(Mutex::new(0));

static BREAKER: Alone<CircuitBreaker> = Alone(CircuitBreaker::new());
static FAILSAFE: LazyLock<Alone<failsafe::StateMachine<DefaultPolicy, ()>>> =
    LazyLock::new(|| Alone(failsafe::Config::new().build()));
static FAILSAFE_CONSECUTIVE: LazyLock<Alone<failsafe::StateMachine<Consecutive, ()>>> = LazyLock::new(|| {
    let policy =
        failsafe::failure_policy::consecutive_failures(5, failsafe::backoff::constant(Duration::from_secs(30)));
    Alone(failsafe::Config::new().failure_policy(policy).build())
});
static RECLOSER: LazyLock<Alone<recloser::Recloser>> = LazyLock::new(|| Alone(recloser::Recloser::custom().build()));

type Consecutive = failsafe::failure_policy::ConsecutiveFailures<failsafe::backoff::Constant>;
type DefaultPolicy = failsafe::failure_policy::OrElse<
    failsafe::failure_policy::SuccessRateOverTimeWindow<failsafe::backoff::EqualJittered>,
    failsafe::failure_policy::ConsecutiveFailures<failsafe::backoff::EqualJittered>,
>;

/// A clock that costs one load.
#[derive(Clone, Copy)]
struct Injected;

static NOW: Alone<AtomicU64> = Alone(AtomicU64::new(5_000_000));

impl Clock for Injected {
    type Sleep = std::future::Ready<()>;

    #[inline]
    fn now(&self) -> Duration {
        Duration::from_nanos(NOW.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> Self::Sleep {
        std::future::ready(())
    }
}

static BUDGET: Alone<RetryBudget<Injected>> = Alone(RetryBudget::new(1.0).min_per_second(1000).with_clock(Injected));
static SYSTEM_BUDGET: Alone<RetryBudget> = Alone(RetryBudget::new(1.0).min_per_second(1000));
static TOWER: LazyLock<Alone<TpsBudget>> = LazyLock::new(|| Alone(TpsBudget::new(Duration::from_secs(10), 1000, 1.0)));

/// The operation under a breaker: nothing.
fn nothing(x: u64) -> Result<u64, ()> {
    Ok(black_box(x))
}

macro_rules! shared {
    ($name:literal, $side:ident, |$x:ident| $call:expr) => {
        Contender {
            name: $name,
            side: Side::$side,
            size: None,
            make: || {
                repeat(|$x| {
                    let _ = black_box($call);
                })
            },
        }
    };
}

pub fn groups() -> Vec<Group> {
    let breakers = vec![
        shared!("by hand: one atomic add", Floor, |x| (ADDED.0.fetch_add(1, Ordering::Relaxed), nothing(x))),
        shared!("by hand: one mutex", Floor, |x| {
            *LOCKED.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            nothing(x)
        }),
        shared!("by hand: no breaker", Floor, |x| nothing(x)),
        shared!("relent: `call_blocking`", Relent, |x| BREAKER.0.call_blocking(|| nothing(x))),
        shared!("relent: `acquire`, `success`", Relent, |x| {
            black_box(x);
            BREAKER.0.acquire().is_ok_and(|permit| permit.success().is_none())
        }),
        shared!("failsafe: default policy", Peer, |x| FAILSAFE.0.call(|| nothing(x))),
        shared!("failsafe: consecutive failures", Peer, |x| FAILSAFE_CONSECUTIVE.0.call(|| nothing(x))),
        shared!("recloser", Peer, |x| RECLOSER.0.call(|| nothing(x))),
    ];
    let budgets = vec![
        shared!("by hand: two atomic adds", Floor, |x| (
            ADDED.0.fetch_add(x, Ordering::Relaxed),
            ADDED_TOO.0.fetch_add(x, Ordering::Relaxed)
        )),
        shared!("by hand: one mutex, twice", Floor, |x| {
            *LOCKED.0.lock().unwrap_or_else(PoisonError::into_inner) += x;
            *LOCKED.0.lock().unwrap_or_else(PoisonError::into_inner) += x;
        }),
        shared!("relent: clock injected", Relent, |_x| {
            BUDGET.0.record_run();
            BUDGET.0.try_retry()
        }),
        shared!("relent: `SystemClock`", Relent, |_x| {
            SYSTEM_BUDGET.0.record_run();
            SYSTEM_BUDGET.0.try_retry()
        }),
        shared!("tower: `TpsBudget`", Peer, |_x| {
            TOWER.0.deposit();
            TOWER.0.withdraw()
        }),
    ];
    vec![
        Group {
            name: "breaker",
            title: "Circuit breaker, closed: the call is let through and succeeds",
            per_call: 1,
            contenders: breakers,
        },
        Group {
            name: "budget",
            title: "Retry budget: one run counted, one retry granted",
            per_call: 1,
            contenders: budgets,
        },
    ]
}

//! The next delay, with and without jitter: eight of a new schedule, and one more at the cap. The compiler knows no
//! settings.

use std::hint::black_box;
use std::time::Duration;

use backoff::backoff::Backoff as _;
use backon::BackoffBuilder as _;
use relent::rng::SeededRng;
use relent::{Jitter, Policy};
use tower::retry::backoff::{Backoff as _, MakeBackoff as _};
use tower::util::rng::HasherRng;
use tryhard::backoff_strategies::BackoffStrategy as _;

use crate::first::{BASE, CAP};
use crate::{Calls, Contender, Group, Side, repeat};

static PLAIN: Policy = Policy::exponential(BASE).jitter(Jitter::None);
static EQUAL: Policy = Policy::exponential(BASE);

/// What one would write without a crate: whole milliseconds, shifted.
struct ByHand {
    base: Duration,
    cap: Duration,
    failures: u32,
}

impl ByHand {
    fn next(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.base.saturating_mul(2_u32.saturating_pow(self.failures - 1)).min(self.cap)
    }
}

fn by_hand() -> ByHand {
    ByHand { base: black_box(BASE), cap: black_box(CAP), failures: 0 }
}

/// As [`ByHand`], with a draw from an xorshift generator.
struct ByHandJittered {
    delays: ByHand,
    state: u64,
}

impl ByHandJittered {
    fn next(&mut self) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let half = self.delays.next() / 2;
        #[allow(clippy::cast_possible_truncation, reason = "the delay is at most the cap")]
        let nanos = half.as_nanos() as u64;
        half + Duration::from_nanos(((u128::from(nanos) * u128::from(self.state)) >> 64) as u64)
    }
}

fn backon(jitter: bool) -> backon::ExponentialBackoff {
    let builder = backon::ExponentialBuilder::new()
        .with_min_delay(black_box(BASE))
        .with_max_delay(black_box(CAP))
        .without_max_times();
    if jitter { builder.with_jitter().build() } else { builder.build() }
}

fn tokio_retry() -> impl Iterator<Item = Duration> {
    tokio_retry::strategy::ExponentialBackoff::from_millis(black_box(2)).factor(black_box(50)).max_delay(black_box(CAP))
}

fn tokio_retry2() -> impl Iterator<Item = Duration> {
    tokio_retry2::strategy::ExponentialFactorBackoff::from_millis(black_box(100), black_box(2.0))
        .max_delay(black_box(CAP))
}

/// Its elapsed limit reads the clock at each delay, as its driver does.
fn backoff(jitter: bool) -> impl FnMut() -> Duration {
    let mut delays = crate::first::backoff_policy();
    delays.randomization_factor = if jitter { 0.5 } else { 0.0 };
    delays.max_elapsed_time = None;
    move || delays.next_backoff().unwrap_or_default()
}

/// Its driver applies the cap.
fn tryhard() -> impl FnMut() -> Duration {
    let mut delays = tryhard::backoff_strategies::ExponentialBackoff::new(black_box(BASE));
    let cap = black_box(CAP);
    move || delays.delay(1, &()).min(cap)
}

fn exponential(jitter: f32) -> impl Iterator<Item = Duration> {
    let mut backoff = exponential_backoff::Backoff::new(u32::MAX, black_box(BASE), black_box(CAP));
    backoff.set_jitter(jitter);
    backoff.iter().map(Option::unwrap_or_default)
}

/// It yields tokio's sleep, whose making is part of it.
fn tower(jitter: f64) -> impl FnMut() {
    let mut maker = tower::retry::backoff::ExponentialBackoffMaker::new(
        black_box(BASE),
        black_box(CAP),
        jitter,
        HasherRng::default(),
    )
    .expect("valid settings");
    let mut delays = maker.make_backoff();
    move || drop(black_box(delays.next_backoff()))
}

/// Two contenders from one expression that makes a source of delays.
macro_rules! both {
    ($name:literal, $side:ident, $source:expr) => {{
        fn on_the_way_up() -> Calls {
            repeat(|_| {
                let mut next = $source;
                for _ in 0..8 {
                    black_box(next());
                }
            })
        }
        fn at_the_cap() -> Calls {
            let mut next = $source;
            for _ in 0..64 {
                black_box(next());
            }
            repeat(move |_| {
                black_box(next());
            })
        }
        [on_the_way_up, at_the_cap].map(|make| Contender { name: $name, side: Side::$side, size: None, make })
    }};
}

/// An iterator as a source of delays.
macro_rules! iter {
    ($iterator:expr) => {{
        let mut delays = $iterator;
        move || delays.next().unwrap_or_default()
    }};
}

pub fn groups() -> Vec<Group> {
    let plain = [
        both!("by hand: power of two", Floor, {
            let mut delays = by_hand();
            move || delays.next()
        }),
        both!("relent", Relent, iter!(black_box(&PLAIN).delays(SeededRng::new(7)))),
        both!("backon", Peer, iter!(backon(false))),
        both!("tokio-retry", Peer, iter!(tokio_retry())),
        both!("tokio-retry2", Peer, iter!(tokio_retry2())),
        both!("backoff", Peer, backoff(false)),
        both!("tryhard", Peer, tryhard()),
        both!("exponential-backoff", Peer, iter!(exponential(0.0))),
        both!("tower", Peer, tower(0.0)),
    ];
    let jittered = [
        both!("by hand: power of two, xorshift", Floor, {
            let mut delays = ByHandJittered { delays: by_hand(), state: black_box(7) };
            move || delays.next()
        }),
        both!("relent: equal, `SeededRng`", Relent, iter!(black_box(&EQUAL).delays(SeededRng::new(black_box(7))))),
        both!("relent: equal, default generator", Relent, iter!(black_box(&EQUAL).delays(relent::rng::DefaultRng))),
        both!("backon", Peer, iter!(backon(true))),
        both!("tokio-retry: full", Peer, iter!(tokio_retry().map(tokio_retry::strategy::jitter))),
        both!("tokio-retry2", Peer, iter!(tokio_retry2().map(tokio_retry2::strategy::jitter))),
        both!("backoff", Peer, backoff(true)),
        both!("exponential-backoff", Peer, iter!(exponential(0.3))),
        both!("tower", Peer, tower(0.5)),
    ];
    let [plain_up, plain_cap] = apart(plain);
    let [jittered_up, jittered_cap] = apart(jittered);
    vec![
        group("delays", "Next delay, no jitter, eight from the start", 8, plain_up),
        group("delays-cap", "Next delay, no jitter, at the cap", 1, plain_cap),
        group("jitter", "Next delay, jitter, eight from the start", 8, jittered_up),
        group("jitter-cap", "Next delay, jitter, at the cap", 1, jittered_cap),
    ]
}

fn apart<const N: usize>(pairs: [[Contender; 2]; N]) -> [Vec<Contender>; 2] {
    let (up, cap) = pairs.into_iter().map(|[up, cap]| (up, cap)).unzip();
    [up, cap]
}

fn group(name: &'static str, title: &'static str, per_call: u64, contenders: Vec<Contender>) -> Group {
    Group { name, title, per_call, contenders }
}

//! How numbers are taken.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::{Contender, Group};

/// Rounds of a timed measurement; the median is what counts.
const ROUNDS: usize = 101;
/// Calls of one contender in one round.
const BATCH: u64 = 2_000;
/// Rounds of a measurement with threads, and how long they run freely in one.
const THREAD_ROUNDS: usize = 31;
const THREAD_TIME: Duration = Duration::from_millis(20);

/// The system's allocator, counting.
pub struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to `System` as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Heap allocations for each call, once warm.
#[must_use]
pub fn allocations(contender: &Contender) -> f64 {
    let mut calls = (contender.make)();
    calls(10);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    calls(1000);
    (ALLOCATIONS.load(Ordering::Relaxed) - before) as f64 / 1000.0
}

/// Instructions for each thing counted: this program under callgrind, with `n` and with `2n` calls; the difference has
/// no start-up in it. `None` without valgrind.
#[must_use]
pub fn instructions(group: &Group, contender: &Contender) -> Option<f64> {
    const N: u64 = 2_000;
    let [once, twice] = [N, 2 * N].map(|n| collected(group.name, contender.name, n));
    Some((twice? - once?) as f64 / (N * group.per_call) as f64)
}

fn collected(group: &str, contender: &str, n: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(["count", group, contender, &n.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8(output.stderr).ok()?;
    report.lines().find_map(|line| line.split("Collected : ").nth(1))?.trim().parse().ok()
}

/// What runs under callgrind.
pub fn count(group: &Group, contender: &str, n: u64) {
    let contender = group.contenders.iter().find(|c| c.name == contender).expect("a contender of this name");
    (contender.make)()(n);
}

/// Nanoseconds for each thing counted, and the ratio to the first contender's batch in the same round.
#[must_use]
pub fn times(group: &Group) -> Vec<(f64, f64)> {
    let mut runs: Vec<_> = group.contenders.iter().map(|contender| (contender.make)()).collect();
    let mut rounds = vec![Vec::with_capacity(ROUNDS); runs.len()];
    for calls in &mut runs {
        calls(BATCH);
    }
    for round in 0..ROUNDS {
        for at in 0..runs.len() {
            let contender = (at + round) % runs.len();
            let start = Instant::now();
            runs[contender](BATCH);
            rounds[contender].push(start.elapsed().as_nanos() as f64 / (BATCH * group.per_call) as f64);
        }
    }
    let floor = rounds[0].clone();
    let ratios = |times: &[f64]| median(times.iter().zip(&floor).map(|(time, floor)| time / floor));
    rounds.iter().map(|times| (median(times.iter().copied()), ratios(times))).collect()
}

/// Calls in a microsecond of one thread and of two together, and the ratio of the two.
#[must_use]
pub fn threads(group: &Group) -> Vec<[f64; 3]> {
    let mut rounds = vec![Vec::new(); group.contenders.len()];
    for round in 0..THREAD_ROUNDS {
        for at in 0..group.contenders.len() {
            let contender = (at + round) % group.contenders.len();
            rounds[contender].push([1, 2].map(|n| throughput(&group.contenders[contender], n)));
        }
    }
    let of = |rounds: &[[f64; 2]]| {
        let column = |pick: fn(&[f64; 2]) -> f64| median(rounds.iter().map(pick));
        [column(|r| r[0]), column(|r| r[1]), column(|r| r[1] / r[0])]
    };
    rounds.iter().map(|rounds| of(rounds)).collect()
}

fn throughput(contender: &Contender, threads: usize) -> f64 {
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(threads + 1));
    let run = || {
        let mut calls = (contender.make)();
        let mut made = 0;
        barrier.wait();
        while !stop.load(Ordering::Relaxed) {
            calls(64);
            made += 64;
        }
        made
    };
    thread::scope(|scope| {
        let runs: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        barrier.wait();
        let start = Instant::now();
        thread::sleep(THREAD_TIME);
        stop.store(true, Ordering::Relaxed);
        let elapsed = start.elapsed();
        let made: u64 = runs.into_iter().map(|run| run.join().expect("a contender does not panic")).sum();
        made as f64 / elapsed.as_secs_f64() / 1e6
    })
}

/// User and system time so far, of this process or of the children that it has waited for.
///
/// # Panics
///
/// If the system does not tell.
#[must_use]
pub fn cpu_ms(whose: UsageWho) -> f64 {
    let usage = getrusage(whose).expect("the usage of a process");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e3
}

/// The middle one.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

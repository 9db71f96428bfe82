//! 100 000 tasks asleep at once in their backoff, each after one failure: what waiting costs.
//!
//! Every contender runs in a process of its own, on tokio with two workers.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use backon::{ConstantBuilder, Retryable};
use nix::sys::resource::UsageWho;
use relent::retry;
use tokio::sync::Notify;

use crate::measure::{cpu_ms, median};
use crate::operation::Busy;

const TASKS: usize = 100_000;
const ROUNDS: usize = 5;

pub const CONTENDERS: [&str; 6] = [
    "by hand: fail, tokio sleep, succeed",
    "relent: `SystemClock`",
    "relent: tokio sleep",
    "backon",
    "tokio-retry",
    "tryhard",
];

/// One task: when it failed, and how late its second attempt came.
struct Task {
    board: Arc<Board>,
    index: usize,
    wait: Duration,
}

struct Board {
    start: Instant,
    failed: Vec<AtomicU64>,
    late: Vec<AtomicU64>,
    left: AtomicUsize,
    done: Notify,
}

impl Task {
    fn attempt(&self) -> Result<(), Busy> {
        let now = self.board.start.elapsed().as_nanos() as u64;
        let failed = self.board.failed[self.index].load(Ordering::Relaxed);
        if failed == 0 {
            self.board.failed[self.index].store(now, Ordering::Relaxed);
            return Err(Busy);
        }
        let due = failed + self.wait.as_nanos() as u64;
        assert!(now >= due, "woken early");
        self.board.late[self.index].store(now - due, Ordering::Relaxed);
        if self.board.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.board.done.notify_one();
        }
        Ok(())
    }
}

macro_rules! tasks {
    ($board:expr, |$task:ident| $future:expr) => {
        for index in 0..TASKS {
            // 50 to 500 ms, spread evenly, in an order that is not that of the tasks.
            let place = (index * 7919 % TASKS) as u64;
            let wait = Duration::from_nanos(50_000_000 + 450_000_000 * place / TASKS as u64);
            let $task = Task { board: $board.clone(), index, wait };
            tokio::spawn(async move {
                $future.await.expect("the second attempt succeeds");
            });
        }
    };
}

/// What runs in a process of its own: prints CPU in ms, bytes of RSS a task, and lateness in ms (p50, p99, max).
pub fn run(contender: &str) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    let zeros = || (0..TASKS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let board = Arc::new(Board {
        start: Instant::now() - Duration::from_nanos(1),
        failed: zeros(),
        late: zeros(),
        left: AtomicUsize::new(TASKS),
        done: Notify::new(),
    });
    // Touched, so that the board is resident before the tasks are.
    for cell in board.failed.iter().chain(&board.late) {
        cell.store(0, Ordering::Relaxed);
    }
    let (cpu, resident) = (cpu_ms(UsageWho::RUSAGE_SELF), memory("VmRSS"));
    runtime.block_on(async {
        let spawned = board.clone();
        let contender = contender.to_owned();
        tokio::spawn(async move { spawn(&contender, &spawned) }).await.expect("tasks are spawned");
        board.done.notified().await;
    });
    let mut late: Vec<f64> = board.late.iter().map(|late| late.load(Ordering::Relaxed) as f64 / 1e6).collect();
    late.sort_by(f64::total_cmp);
    let at = |share: f64| late[(share * (TASKS - 1) as f64) as usize];
    let bytes = (memory("VmHWM") - resident) / TASKS as f64;
    println!("{} {} {} {} {}", cpu_ms(UsageWho::RUSAGE_SELF) - cpu, bytes, at(0.5), at(0.99), at(1.0));
}

fn spawn(contender: &str, board: &Arc<Board>) {
    match CONTENDERS.iter().position(|name| *name == contender).expect("a contender of this name") {
        0 => tasks!(board, |task| by_hand(task)),
        1 => tasks!(board, |task| retry(|_| std::future::ready(task.attempt()), [task.wait])),
        2 => tasks!(board, |task| retry(|_| std::future::ready(task.attempt()), [task.wait]).sleep(tokio::time::sleep)),
        3 => tasks!(board, |task| {
            (async || task.attempt()).retry(ConstantBuilder::new().with_delay(task.wait).with_max_times(1))
        }),
        4 => tasks!(board, |task| tokio_retry::Retry::start([task.wait], async || task.attempt())),
        _ => tasks!(board, |task| tryhard::retry_fn(async || task.attempt()).retries(1).fixed_backoff(task.wait)),
    }
}

async fn by_hand(task: Task) -> Result<(), Busy> {
    match task.attempt() {
        Ok(()) => Ok(()),
        Err(_) => {
            tokio::time::sleep(task.wait).await;
            task.attempt()
        }
    }
}

/// A line of `/proc/self/status`, in bytes.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let kib = status.lines().find(|l| l.starts_with(line)).and_then(|l| l.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<f64>().ok()).expect("a number of KiB") * 1024.0
}

/// The medians of interleaved runs, and the CPU against the first contender's.
#[must_use]
pub fn all() -> Vec<[f64; 6]> {
    let mut runs = vec![Vec::new(); CONTENDERS.len()];
    for round in 0..ROUNDS {
        for at in 0..CONTENDERS.len() {
            let contender = (at + round) % CONTENDERS.len();
            runs[contender].push(child(CONTENDERS[contender]));
        }
    }
    let floors: Vec<f64> = runs[0].iter().map(|run| run[0]).collect();
    let of = |runs: &[[f64; 5]]| {
        let [cpu, rss, p50, p99, max] = std::array::from_fn(|column| median(runs.iter().map(|run| run[column])));
        [cpu, median(runs.iter().zip(&floors).map(|(run, floor)| run[0] / floor)), rss, p50, p99, max]
    };
    runs.iter().map(|runs| of(runs)).collect()
}

fn child(contender: &str) -> [f64; 5] {
    let exe = std::env::current_exe().expect("this program");
    let output = Command::new(exe).args(["sleep", contender]).output().expect("a run of this program");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    numbers.try_into().expect("five numbers")
}

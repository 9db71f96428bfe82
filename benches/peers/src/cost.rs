//! What depending on a crate costs: a program that polls one failing retry once, built from nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{fs, io};

use nix::sys::resource::UsageWho;

use crate::measure::{cpu_ms, median};

const ROUNDS: usize = 3;

/// A program: its dependencies, and the body of `run`, which yields the future that is polled.
pub struct Program {
    pub name: &'static str,
    dependencies: &'static str,
    body: &'static str,
}

pub struct Cost {
    /// Itself included.
    pub packages: usize,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub bytes: u64,
}

const POLL: &str = "\nfn poll(f: impl Future) {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    std::hint::black_box(std::pin::pin!(f).poll(&mut cx).is_ready());
}
#[derive(Debug)]
struct Busy;
impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(\"busy\") }
}
impl std::error::Error for Busy {}
async fn op() -> Result<u32, Busy> { std::hint::black_box(Err(Busy)) }
#[allow(dead_code)]
const MS: std::time::Duration = std::time::Duration::from_millis(100);\n";

/// The shortest timer without a runtime: one thread, a heap behind a mutex, a condition variable.
const HEAP: &str = "use std::{cmp::Reverse, collections::BinaryHeap, sync::*, task::*, time::*};
struct Entry(Instant, Waker);
impl PartialEq for Entry { fn eq(&self, o: &Self) -> bool { self.0 == o.0 } }
impl Eq for Entry {}
impl PartialOrd for Entry { fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> { Some(self.cmp(o)) } }
impl Ord for Entry { fn cmp(&self, o: &Self) -> std::cmp::Ordering { self.0.cmp(&o.0) } }
static HEAP: Mutex<BinaryHeap<Reverse<Entry>>> = Mutex::new(BinaryHeap::new());
static CHANGED: Condvar = Condvar::new();
static START: Once = Once::new();
fn timer() {
    let mut heap = HEAP.lock().unwrap();
    loop {
        let now = Instant::now();
        heap = match heap.peek().map(|first| first.0.0) {
            None => CHANGED.wait(heap).unwrap(),
            Some(at) if at > now => CHANGED.wait_timeout(heap, at - now).unwrap().0,
            Some(_) => { heap.pop().unwrap().0.1.wake(); heap }
        };
    }
}
async fn sleep(wait: Duration) {
    let (at, mut added) = (Instant::now() + wait, false);
    std::future::poll_fn(|cx| {
        if Instant::now() >= at { return Poll::Ready(()) }
        if !added {
            added = true;
            START.call_once(|| drop(std::thread::Builder::new().spawn(timer)));
            HEAP.lock().unwrap().push(Reverse(Entry(at, cx.waker().clone())));
            CHANGED.notify_one();
        }
        Poll::Pending
    }).await
}
async fn run() -> Result<u32, Busy> {
    let mut wait = MS;
    for _ in 0..3 { if let Ok(value) = op().await { return Ok(value) } sleep(wait).await; wait *= 2; }
    op().await
}\n";

pub const PROGRAMS: [Program; 13] = [
    Program { name: "empty main", dependencies: "", body: "" },
    Program { name: "by hand: std thread and heap", dependencies: "", body: HEAP },
    Program {
        name: "relent: injected sleep",
        dependencies: "relent",
        body: "fn run() -> impl Future { relent::retry(|_| op(), relent::Policy::exponential(MS)).sleep(|_| std::future::ready(())) }",
    },
    Program {
        name: "relent: `SystemClock`",
        dependencies: "relent",
        body: "fn run() -> impl Future { relent::retry(|_| op(), relent::Policy::exponential(MS)) }",
    },
    Program {
        name: "backon",
        dependencies: "backon = \"=1.6.0\"",
        body: "fn run() -> impl Future { backon::Retryable::retry(op, backon::ExponentialBuilder::new().with_jitter()).sleep(|_| std::future::ready(())) }",
    },
    Program {
        name: "tokio-retry",
        dependencies: "tokio-retry = \"=0.3.2\"",
        body: "fn run() -> impl Future { tokio_retry::Retry::start(tokio_retry::strategy::ExponentialBackoff::from_millis(2).map(tokio_retry::strategy::jitter).take(3), op) }",
    },
    Program {
        name: "tokio-retry2",
        dependencies: "tokio-retry2 = { version = \"=0.9.1\", features = [\"jitter\"] }",
        body: "async fn other() -> Result<u32, tokio_retry2::RetryError<Busy>> { Ok(op().await?) }
fn run() -> impl Future { tokio_retry2::Retry::spawn(tokio_retry2::strategy::ExponentialBackoff::from_millis(2).map(tokio_retry2::strategy::jitter).take(3), other) }",
    },
    Program {
        name: "backoff",
        dependencies: "backoff = { version = \"=0.4.0\", features = [\"tokio\"] }",
        body: "fn run() -> impl Future { backoff::future::retry(backoff::ExponentialBackoff::default(), || async { Ok(op().await?) }) }",
    },
    Program {
        name: "tryhard",
        dependencies: "tryhard = \"=0.5.2\"",
        body: "fn run() -> impl Future { tryhard::retry_fn(op).retries(3).exponential_backoff(MS) }",
    },
    Program {
        name: "tower",
        dependencies: "tower = { version = \"=0.5.3\", features = [\"retry\", \"util\"] }",
        body: "use tower::retry::{Policy, backoff::*};
#[derive(Clone)]
struct P(u32, ExponentialBackoff);
impl Policy<(), u32, Busy> for P {
    type Future = <ExponentialBackoff as Backoff>::Future;
    fn retry(&mut self, _: &mut (), r: &mut Result<u32, Busy>) -> Option<Self::Future> {
        if r.is_ok() || self.0 == 0 { return None }
        self.0 -= 1;
        Some(self.1.next_backoff())
    }
    fn clone_request(&mut self, _: &()) -> Option<()> { Some(()) }
}
fn run() -> impl Future {
    let policy = P(3, ExponentialBackoffMaker::default().make_backoff());
    tower::Service::call(&mut tower::retry::Retry::new(policy, tower::service_fn(|()| op())), ())
}",
    },
    Program {
        name: "exponential-backoff",
        dependencies: "exponential-backoff = \"=2.1.1\"",
        body: "async fn run() -> Option<u32> {
    for wait in &exponential_backoff::Backoff::new(4, MS, None) { if let Ok(v) = op().await { return Some(v) } std::hint::black_box(wait); }
    None
}",
    },
    Program {
        name: "failsafe",
        dependencies: "failsafe = \"=1.3.0\"",
        body: "async fn run() -> bool { failsafe::CircuitBreaker::call(&failsafe::Config::new().build(), || std::hint::black_box(Err::<u32, _>(Busy))).is_ok() }",
    },
    Program {
        name: "recloser",
        dependencies: "recloser = \"=1.4.0\"",
        body: "async fn run() -> bool { recloser::Recloser::custom().build().call(|| std::hint::black_box(Err::<u32, _>(Busy))).is_ok() }",
    },
];

/// Builds every program from nothing, in interleaved rounds.
///
/// # Errors
///
/// If a program cannot be written or built.
pub fn all(target: &Path) -> io::Result<Vec<Cost>> {
    let mut times = vec![Vec::new(); PROGRAMS.len()];
    let mut costs = Vec::new();
    for round in 0..ROUNDS {
        for (program, times) in PROGRAMS.iter().zip(&mut times) {
            let folder = prepare(target, program)?;
            let built = folder.join("target");
            fs::remove_dir_all(&built).or_else(|error| if built.exists() { Err(error) } else { Ok(()) })?;
            if round == 0 {
                cargo(&folder, "fetch")?;
            }
            let (start, cpu) = (Instant::now(), cpu_ms(UsageWho::RUSAGE_CHILDREN));
            cargo(&folder, "build")?;
            times.push((start.elapsed().as_secs_f64(), (cpu_ms(UsageWho::RUSAGE_CHILDREN) - cpu) / 1e3));
            if round == 0 {
                let tree = cargo(&folder, "tree")?;
                let packages =
                    tree.lines().filter(|line| !line.trim().is_empty()).collect::<std::collections::BTreeSet<_>>();
                let bytes = fs::metadata(built.join("release/hello"))?.len();
                costs.push(Cost { packages: packages.len() - 1, seconds: 0.0, cpu_seconds: 0.0, bytes });
            }
        }
    }
    for (cost, times) in costs.iter_mut().zip(times) {
        cost.seconds = median(times.iter().map(|time| time.0));
        cost.cpu_seconds = median(times.iter().map(|time| time.1));
    }
    Ok(costs)
}

fn prepare(target: &Path, program: &Program) -> io::Result<PathBuf> {
    let name: String = program.name.chars().filter(char::is_ascii_alphanumeric).collect();
    let folder = target.join("cost").join(name);
    fs::create_dir_all(folder.join("src"))?;
    let relent = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let dependencies = match program.dependencies {
        "relent" => format!("relent = {{ path = {relent:?} }}"),
        others => others.to_owned(),
    };
    let manifest = format!(
        "[package]\nname = \"hello\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[profile.release]\n\
         codegen-units = 1\nstrip = true\n\n[dependencies]\n{dependencies}\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let main = match program.body {
        "" => "fn main() {}\n".to_owned(),
        body => format!("{body}{POLL}fn main() {{ poll(run()); }}\n"),
    };
    fs::write(folder.join("src/main.rs"), main)?;
    Ok(folder)
}

fn cargo(folder: &Path, what: &str) -> io::Result<String> {
    let arguments: &[&str] = match what {
        "build" => &["build", "--release", "--quiet", "--offline"],
        "tree" => &["tree", "--edges", "normal", "--prefix", "none", "--no-dedupe", "--format", "{p}"],
        _ => &["fetch", "--quiet"],
    };
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("RUSTFLAGS")
        .output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

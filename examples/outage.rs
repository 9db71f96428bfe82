//! What retries do to a service that goes down and comes back, and what jitter, a budget and a breaker do about it.
//!
//! The service is a real server on loopback: four workers of 10 ms a request and a queue of 32 places, so it can answer
//! 400 requests a second and refuses what does not fit. 200 clients stay connected to it and ask about once a second
//! each, which is half of what it can do. After a second it crashes: all connections break at the same moment, and for
//! two seconds whoever connects is turned away. Then it is back, with nothing but its capacity between it and the
//! clients.
//!
//! `cargo run --release --example outage` plays this four times, in about half a minute. It prints the load on the
//! server, every character a tenth of a second, and how long the service took to recover. The price of the guards is in
//! the last column: a run that may not retry fails, at once. The program leaves with an error if the budget or the breaker
//! did not do what this crate says of them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use relent::breaker::CircuitBreaker;
use relent::budget::RetryBudget;
use relent::rng::{Rng, SeededRng};
use relent::{Attempt, Jitter, Policy, retry, transient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const CLIENTS: u64 = 200;
const WORKERS: usize = 4;
const QUEUE: usize = 32;
const SERVICE_TIME: Duration = Duration::from_millis(10);

/// What passes between two calls of a client, in seconds.
const PAUSE: Range<f64> = 0.75..1.25;

/// The phases of a run, in tenths of a second.
const HEALTHY: Range<usize> = 0..10;
const OUTAGE: Range<usize> = 10..30;
const AFTER: Range<usize> = 30..60;

const fn tenths(number: usize) -> Duration {
    Duration::from_millis(100 * number as u64)
}

/// Patient: a run goes on for six seconds.
const POLICY: Policy =
    Policy::exponential(Duration::from_millis(50)).max_delay(Duration::from_millis(400)).max_attempts(18);

/// How all clients call the service.
struct Guards {
    name: &'static str,
    policy: Policy,
    budget: RetryBudget,
    breaker: CircuitBreaker,
}

impl Guards {
    /// No limit but the policy's.
    fn none(name: &'static str, jitter: Jitter) -> Self {
        let breaker = CircuitBreaker::new();
        breaker.force_closed();
        let budget = RetryBudget::new(1.0).min_per_second(u32::MAX);
        Self { name, policy: POLICY.jitter(jitter), budget, breaker }
    }

    fn budget(name: &'static str) -> Self {
        Self { budget: RetryBudget::new(0.1).min_per_second(0), ..Self::none(name, Jitter::Equal) }
    }

    fn budget_and_breaker(name: &'static str) -> Self {
        let cooldown = Policy::fixed(Duration::from_millis(200)).jitter(Jitter::Equal);
        Self { breaker: CircuitBreaker::new().cooldown(cooldown), ..Self::budget(name) }
    }
}

/// What the server saw in a tenth of a second.
#[derive(Clone, Copy, Default)]
struct Load {
    requests: u32,
    answered: u32,
    /// Turned away while the service was up, because the queue was full.
    refused: u32,
}

struct Service {
    is_up: watch::Sender<bool>,
    /// In the queue or with a worker.
    places: Semaphore,
    workers: Semaphore,
    started: Instant,
    load: Mutex<Vec<Load>>,
}

impl Service {
    fn new() -> Self {
        Self {
            is_up: watch::Sender::new(true),
            places: Semaphore::new(QUEUE + WORKERS),
            workers: Semaphore::new(WORKERS),
            started: Instant::now(),
            load: Mutex::new(vec![Load::default(); AFTER.end]),
        }
    }

    fn count(&self, count: impl FnOnce(&mut Load)) {
        let tenth = self.started.elapsed().as_millis() / tenths(1).as_millis();
        let tenth = usize::try_from(tenth).unwrap_or(usize::MAX);
        self.load.lock().unwrap().get_mut(tenth).map(count);
    }

    /// Accepts for ever; a crash breaks all connections, and those that come while it lasts.
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            self.count(|load| load.requests += 1);
            let service = Arc::clone(&self);
            tokio::spawn(async move {
                let mut is_up = service.is_up.subscribe();
                tokio::select! {
                    biased;
                    _ = is_up.wait_for(|is_up| !is_up) => {}
                    _ = service.answer(stream) => {}
                }
            });
        }
    }

    /// Answers, and stays connected until the client leaves.
    async fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        {
            let Ok(_place) = self.places.try_acquire() else {
                self.count(|load| load.refused += 1);
                return Ok(());
            };
            let _worker = self.workers.acquire().await.map_err(io::Error::other)?;
            sleep(SERVICE_TIME).await;
        }
        stream.write_all(b"ok").await?;
        self.count(|load| load.answered += 1);
        stream.read_u8().await.map(drop)
    }
}

/// One request; the connection stays.
async fn request(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.read_exact(&mut [0; 2]).await?;
    Ok(stream)
}

/// How the runs of all clients ended, and how many got as far as a request.
#[derive(Default)]
struct Runs {
    begun: AtomicU32,
    succeeded: AtomicU32,
    failed: AtomicU32,
}

fn one_more(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Calls, pauses, calls again; at once if its connection breaks meanwhile.
async fn client(seed: u64, address: SocketAddr, guards: Arc<Guards>, runs: Arc<Runs>) {
    let mut rng = SeededRng::new(seed);
    sleep(Duration::from_secs_f64(rng.next_f64())).await;
    loop {
        let attempt = |attempt: Attempt| {
            if attempt.is_first() {
                one_more(&runs.begun);
            }
            request(address)
        };
        let run = retry(attempt, guards.policy).when(transient::io_error).budget(&guards.budget);
        let result = guards.breaker.call(run).await;
        one_more(if result.is_ok() { &runs.succeeded } else { &runs.failed });

        let pause = Duration::from_secs_f64(PAUSE.start + (PAUSE.end - PAUSE.start) * rng.next_f64());
        match result {
            Ok(mut stream) => _ = timeout(pause, stream.read_u8()).await,
            Err(_) => sleep(pause).await,
        }
    }
}

fn total(loads: &[Load], of: fn(&Load) -> u32) -> u32 {
    loads.iter().map(of).sum()
}

/// What was seen of one run of the story.
struct Seen {
    name: &'static str,
    load: Vec<Load>,
    runs: Arc<Runs>,
}

impl Seen {
    fn in_outage(&self) -> u32 {
        total(&self.load[OUTAGE], |load| load.requests)
    }

    fn peak(&self) -> u32 {
        self.load.iter().map(|load| load.requests).max().unwrap_or(0)
    }

    /// From the end of the outage until the service, for half a second, answers at least three quarters of what it used
    /// to, and turns away at most a tenth of what it gets.
    fn recovery(&self) -> Option<Duration> {
        let in_good_times = total(&self.load[HEALTHY], |load| load.answered);
        let is_well = |half_second: &[Load]| {
            let turned_away = total(half_second, |load| load.refused);
            2 * total(half_second, |load| load.answered) >= in_good_times * 3 / 4
                && turned_away <= total(half_second, |load| load.requests) / 10
        };
        self.load[AFTER].windows(5).position(is_well).map(tenths)
    }

    /// The load as a line of bars, each eighth of the height 20 requests.
    fn bars(&self) -> String {
        let bar =
            |load: &Load| ['.', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][load.requests.div_ceil(20).min(8) as usize];
        self.load.iter().map(bar).collect()
    }
}

async fn play(guards: Guards) -> io::Result<Seen> {
    let name = guards.name;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = Arc::new(Service::new());
    let server = tokio::spawn(Arc::clone(&service).serve(listener));
    let (guards, runs) = (Arc::new(guards), Arc::new(Runs::default()));
    let mut clients = JoinSet::new();
    for seed in 0..CLIENTS {
        clients.spawn(client(seed, address, Arc::clone(&guards), Arc::clone(&runs)));
    }

    sleep(tenths(HEALTHY.len())).await;
    service.is_up.send_replace(false);
    sleep(tenths(OUTAGE.len())).await;
    service.is_up.send_replace(true);
    sleep(tenths(AFTER.len())).await;

    clients.shutdown().await;
    server.abort();
    let load = service.load.lock().unwrap().clone();
    let seen = Seen { name, load, runs };
    println!("{name:<24}{}", seen.bars());
    Ok(seen)
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recovery =
            self.recovery().map_or_else(|| format!("over {:?}", tenths(AFTER.len())), |time| format!("{time:?}"));
        let [succeeded, failed] = [&self.runs.succeeded, &self.runs.failed].map(|runs| runs.load(Ordering::Relaxed));
        let (name, in_outage, peak) = (self.name, self.in_outage(), self.peak());
        let refused = total(&self.load, |load| load.refused);
        write!(f, "{name:<24}{in_outage:>10}{peak:>8}{refused:>9}{recovery:>12}{succeeded:>11}{failed:>8}")
    }
}

/// What must hold on any machine.
fn check(seen: &[Seen; 4]) -> Result<(), String> {
    let [_, jitter, budget, breaker] = seen;
    if budget.in_outage() >= jitter.in_outage() {
        return Err("with a budget the service got no fewer requests in the outage".into());
    }
    if breaker.in_outage() >= budget.in_outage() {
        return Err("with a breaker the service got no fewer requests in the outage".into());
    }
    for Seen { name, load, runs } in [budget, breaker] {
        let requests = total(load, |load| load.requests);
        let begun = runs.begun.load(Ordering::Relaxed);
        if requests > begun + begun / 10 {
            return Err(format!("{name}: {requests} requests for {begun} runs is more than the budget allows"));
        }
    }
    match seen.iter().skip(2).find(|seen| seen.recovery().is_none()) {
        Some(Seen { name, .. }) => Err(format!("{name}: the service did not recover")),
        None => Ok(()),
    }
}

#[tokio::main]
async fn main() -> io::Result<ExitCode> {
    println!("requests in a tenth of a second: ▁ up to 20, as in good times, █ more than 140\n");
    let phase = |name: &str, phase: Range<usize>| format!("|{name:<width$}", width = phase.len() - 1);
    println!("{:<24}{}{}{}", "", phase("well", HEALTHY), phase("down", OUTAGE), phase("back", AFTER));
    let seen = [
        play(Guards::none("no jitter", Jitter::None)).await?,
        play(Guards::none("jitter", Jitter::Equal)).await?,
        play(Guards::budget("jitter, budget")).await?,
        play(Guards::budget_and_breaker("jitter, budget, breaker")).await?,
    ];

    println!("\n{:<24}{:>10}{:>8}{:>9}{:>12}{:>11}{:>8}", "", "requests", "most in", "turned", "", "runs that", "");
    println!(
        "{:<24}{:>10}{:>8}{:>9}{:>12}{:>11}{:>8}",
        "", "while down", "100 ms", "away", "recovery", "succeeded", "failed"
    );
    for seen in &seen {
        println!("{seen}");
    }
    if let Err(difference) = check(&seen) {
        eprintln!("{difference}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

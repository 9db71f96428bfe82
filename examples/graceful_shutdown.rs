//! Ctrl-C, or SIGTERM, ends the waits of all workers at once, and lets a running attempt finish.
//!
//! Three workers share one `StopFlag`. Two of them, a task and a thread, retry every minute against a server that is
//! down; the third has an attempt in flight that a slow server has not answered yet. When all three are that far, the
//! program sends itself the signal. The process leaves with an error if any of them does not end as it should.
//!
//! ```text
//! cargo run --example graceful_shutdown              # by itself
//! cargo run --example graceful_shutdown -- --wait    # until you press Ctrl-C
//! ```

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::{self, SocketAddr};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use relent::blocking::{self, StopFlag};
use relent::retry::{Report, Retrying, StopReason};
use relent::{Policy, retry, transient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const EVERY_MINUTE: Policy = Policy::fixed(Duration::from_secs(60)).unbounded();

/// The answer of the server at `address`, all of it.
async fn ask(address: SocketAddr) -> io::Result<String> {
    let mut answer = String::new();
    TcpStream::connect(address).await?.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn ask_blocking(address: SocketAddr) -> io::Result<String> {
    io::read_to_string(net::TcpStream::connect(address)?)
}

fn is_transient(error: &io::Error) -> bool {
    transient::io_error(error)
}

/// An address at which nobody listens.
async fn down() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0").await?.local_addr()
}

/// Accepts one call, and answers it only a while after the stop.
async fn answer_late(listener: TcpListener, flag: StopFlag, ready: mpsc::Sender<&'static str>) -> io::Result<()> {
    let (mut call, _) = listener.accept().await?;
    let _ = ready.send("the task in the attempt").await;
    flag.stopped().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    call.write_all(b"finished").await
}

/// Raises the flag at the first Ctrl-C or SIGTERM. Listens from this call on.
fn stop_on_signal(flag: StopFlag) -> io::Result<()> {
    #[cfg(unix)]
    let (mut interrupt, mut terminate) = {
        use tokio::signal::unix::{SignalKind, signal};
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    tokio::spawn(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = interrupt.recv() => println!("Ctrl-C: stopping"),
            _ = terminate.recv() => println!("SIGTERM: stopping"),
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_ok() {
            println!("Ctrl-C: stopping");
        }
        flag.stop();
    });
    Ok(())
}

fn show(worker: &str, report: &Report<String, io::Error>) {
    println!("{worker}: {:?} after {} attempt(s), stop: {:?}", report.result, report.attempts, report.stop);
}

/// A worker whose server was down ends with the last error, because of the stop.
fn was_stopped(report: &Report<String, io::Error>) -> bool {
    report.stop == Some(StopReason::Cancelled)
        && report.result.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let flag = StopFlag::new();
    stop_on_signal(flag.clone())?;
    let (ready, mut are_ready) = mpsc::channel(3);

    let waiting = tokio::spawn({
        let (flag, ready, address) = (flag.clone(), ready.clone(), down().await?);
        async move {
            let run = retry(|_| ask(address), EVERY_MINUTE).when(is_transient).cancel_on(&flag);
            let say_ready = |_: &Retrying<'_, _>| ready.try_send("the task in its wait").unwrap_or_default();
            run.on_retry(say_ready).report().await
        }
    });

    let blocked = thread::spawn({
        let (flag, ready, address) = (flag.clone(), ready.clone(), down().await?);
        move || {
            let run = blocking::retry(|_| ask_blocking(address), EVERY_MINUTE).when(is_transient).cancel_on(&flag);
            let say_ready = |_: &Retrying<'_, _>| ready.try_send("the thread in its wait").unwrap_or_default();
            run.on_retry(say_ready).report().call()
        }
    });

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(answer_late(listener, flag.clone(), ready));
    let running = tokio::spawn({
        let flag = flag.clone();
        async move { retry(|_| ask(address), EVERY_MINUTE).when(is_transient).cancel_on(&flag).report().await }
    });

    for _ in 0..3 {
        println!("{}", are_ready.recv().await.ok_or("a worker ended before the stop")?);
    }
    if std::env::args().any(|argument| argument == "--wait") {
        println!("press Ctrl-C");
    } else if cfg!(unix) {
        let pid = std::process::id().to_string();
        if !Command::new("kill").args(["-TERM", &pid]).status()?.success() {
            return Err("the signal could not be sent".into());
        }
    } else {
        flag.stop();
    }
    flag.stopped().await;

    let stopped_at = Instant::now();
    let (waiting, running) = (waiting.await?, running.await?);
    let blocked = blocked.join().map_err(|_| "the thread panicked")?;
    server.await??;
    show("the task in its wait", &waiting);
    show("the thread in its wait", &blocked);
    show("the task in the attempt", &running);
    println!("all ended {} ms after the signal", stopped_at.elapsed().as_millis());

    if !was_stopped(&waiting) || !was_stopped(&blocked) {
        return Err("a wait was not ended by the stop".into());
    }
    if running.result.is_err() || running.attempts != 1 {
        return Err("the running attempt did not finish".into());
    }
    if stopped_at.elapsed() > Duration::from_secs(30) {
        return Err("a worker waited on after the stop".into());
    }
    Ok(())
}

//! Starts a real child process and restarts it when it crashes, until it is not worth it any more.
//!
//! The child is this program again. Its first two lives end at once, the third one lasts, and every later one ends at
//! once. A life that lasts is health, so the crash that ends it is the first of a new series; the fourth is the last.
//!
//! `cargo run --example supervise_child`

use std::env;
use std::error::Error;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use relent::backoff::Backoff;
use relent::{Jitter, Policy};
use tokio::process::Command;

const RESTARTS: Policy = Policy::exponential(Duration::from_millis(100)).jitter(Jitter::None).max_attempts(4);
const HEALTHY_AFTER: Duration = Duration::from_secs(1);
const LIFE_THAT_LASTS: u32 = 3;
const CRASH: u8 = 7;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    match env::args().nth(1) {
        Some(life) => Ok(child(life.parse()?).await),
        None => supervisor().await,
    }
}

async fn child(life: u32) -> ExitCode {
    if life == LIFE_THAT_LASTS {
        tokio::time::sleep(HEALTHY_AFTER * 3 / 2).await;
    }
    ExitCode::from(CRASH)
}

async fn supervisor() -> Result<ExitCode, Box<dyn Error>> {
    let program = env::current_exe()?;
    let started = Instant::now();
    let say = |what: String| println!("{:5} ms  {what}", started.elapsed().as_millis());

    let mut delays = Vec::new();
    let mut lives = 0;
    let mut backoff = Backoff::new(RESTARTS)
        .healthy_after(HEALTHY_AFTER)
        .on_delay_change(|delay| {
            delays.push(delay.as_millis());
            say(format!("the delay is {delay:?} now"));
        })
        .on_give_up(|exhausted| say(exhausted.to_string()));

    let ended = backoff.run(|attempt| {
        lives += 1;
        say(format!("life {lives} begins, attempt {} of {}", attempt.number(), attempt.max_attempts()));
        let child = Command::new(&program).arg(lives.to_string()).kill_on_drop(true).status();
        async {
            let status = child.await.map_err(|e| e.to_string())?;
            say(format!("the child ended: {status}"));
            if status.success() { Ok(()) } else { Err(crash(status)) }
        }
    });
    let ended = ended.await;
    drop(backoff);

    println!("supervised {lives} lives, the last one ended with: {ended:?}");
    let as_expected = ended == Err(format!("exit code {CRASH}"))
        && lives == 6 // two that end at once, the one that lasts, and three after it
        && delays == [100, 200, 0, 100, 200, 400];
    Ok(if as_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn crash(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

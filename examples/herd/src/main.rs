//! Plays both simulations, prints what they show, and draws it.
//!
//! `cargo run --release --package relent-herd` takes about a minute. The pictures go to `examples/herd/charts`, and from
//! there into the crate's documentation.

use std::error::Error;
use std::fs;
use std::path::Path;

use relent_herd::{charts, contention, overload, spread};

fn main() -> Result<(), Box<dyn Error>> {
    show_speed();
    show_overload();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    charts::write(&here.join("charts"))?;
    fs::write(here.join("../../src/_guide/pictures.md"), charts::definitions(&here.join("charts"))?)?;
    show_contention();
    Ok(())
}

/// Ten retries for each client, so that only the number of clients differs.
fn show_speed() {
    println!("What it takes to simulate a retry:\n");
    for clients in [10_000, 100_000, 200_000] {
        let time = spread::time_of_storm(clients, 10);
        println!(
            "{clients:>8} clients, {:>8} retries: {time:>9.1?}, {:?} for each",
            clients * 10,
            time / (clients * 10)
        );
    }
}

fn show_overload() {
    let (clients, capacity, outage) = (overload::CLIENTS, overload::CAPACITY, overload::OUTAGE);
    println!(
        "\n{clients} clients call a service that can answer {capacity} requests a second, and was down for {:?}:\n",
        outage.end - outage.start
    );
    println!("{:<26}{:>10}{:>10}{:>9}{:>10}{:>11}{:>8}", "", "requests", "wasted", "peak", "", "runs that", "");
    println!(
        "{:<26}{:>10}{:>10}{:>9}{:>10}{:>11}{:>8}",
        "", "while down", "after", "per s", "recovery", "succeeded", "failed"
    );
    for strategy in &overload::STRATEGIES {
        let seen = overload::play(strategy);
        let (down, wasted, peak) = (seen.requests_in_outage(), seen.wasted_after(), seen.peak_after());
        let recovery = seen.recovery().map_or_else(|| "none".into(), |time| format!("{} s", time.as_secs_f64()));
        let (name, succeeded, failed) = (strategy.name, seen.succeeded, seen.failed);
        println!("{name:<26}{down:>10}{wasted:>10}{peak:>9}{recovery:>10}{succeeded:>11}{failed:>8}");
    }
}

fn show_contention() {
    println!("\nClients that write one row: means, and how they differ from the reference\n");
    println!("{:>8}  {:<14}{:>9}{:>9}{:>12}{:>9}", "clients", "", "calls", "", "ms", "");
    for reference in &contention::REFERENCES {
        let clients = reference.clients;
        for ((name, policy), expected) in contention::STRATEGIES.iter().zip(&reference.outcomes) {
            let mean = contention::mean(policy, clients, contention::runs(clients));
            let (calls, ms) = mean.deviation(expected);
            let (calls, ms) = (100.0 * calls, 100.0 * ms);
            println!("{clients:>8}  {name:<14}{:>9.1}{calls:>+8.2}%{:>12.1}{ms:>+8.2}%", mean.calls, mean.ms);
        }
    }
}

//! An outbox table in PostgreSQL, with workers that publish its rows.
//!
//! - `postgres-outbox worker NAME DATABASE SINK` publishes rows of the outbox at `DATABASE` to `SINK`, both `HOST:PORT`.
//! - `postgres-outbox drill SCRIPT DIR` sends 2000 messages through four such workers while things break: see `run.sh`.

mod drill;
mod outbox;
mod worker;

use std::path::Path;
use std::process::ExitCode;

use drill_kit::{BoxError, Server};

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postgres-outbox: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &[String]) -> Result<(), BoxError> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["worker", name, database, sink] => worker::work(name, database.parse()?, sink.parse()?).await,
        ["drill", script, dir] => drill::run(&Server::started(Path::new(script), Path::new(dir))?).await,
        _ => Err("usage: postgres-outbox worker NAME DATABASE SINK | drill SCRIPT DIR".into()),
    }
}

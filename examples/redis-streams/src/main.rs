//! A consumer group on a Redis stream, with workers that publish its entries.
//!
//! - `redis-streams worker NAME SERVER SINK` publishes the entries of the stream at `SERVER` to `SINK`, both `HOST:PORT`.
//! - `redis-streams drill SCRIPT DIR` sends 2000 messages through four such workers while things break: see `run.sh`.

mod drill;
mod monitor;
mod queue;
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
            eprintln!("redis-streams: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &[String]) -> Result<(), BoxError> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["worker", name, server, sink] => worker::work(name, server.parse()?, sink.parse()?).await,
        ["drill", script, dir] => drill::run(&Server::started(Path::new(script), Path::new(dir))?).await,
        _ => Err("usage: redis-streams worker NAME SERVER SINK | drill SCRIPT DIR".into()),
    }
}

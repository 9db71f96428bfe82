//! `relent-service [--seconds N] [--seed N]`: the soak, for 120 s unless told otherwise.
//!
//! `RUST_LOG` says what is logged: `warn` the breaker, `info` runs that fail too, `debug` every retry.

use std::process::ExitCode;

use relent_service::{BoxError, log, soak};
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    soak::allocate_from_one_heap();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("relent-service: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run() -> Result<(), BoxError> {
    let (mut seconds, mut seed) = (120, 1);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--seconds" => seconds = value.parse()?,
            "--seed" => seed = value.parse()?,
            _ => return Err("usage: relent-service [--seconds N] [--seed N]".into()),
        }
    }
    log::show(log_level()?)?;
    soak::run(seconds, seed).await
}

fn log_level() -> Result<LevelFilter, BoxError> {
    match std::env::var("RUST_LOG") {
        Ok(level) => Ok(level.parse()?),
        Err(_) => Ok(LevelFilter::WARN),
    }
}

//! What Redis says that it was told: its MONITOR.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use drill_kit::BoxError;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::queue::LEASE;

/// A delay that Redis was told to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    pub at: SystemTime,
    pub entry: String,
    pub deliveries: u32,
    pub spent: u32,
    pub delay: Duration,
}

/// Collects holds, over restarts of the server, until it is dropped with the runtime.
pub fn watch(server: SocketAddr) -> Arc<Mutex<Vec<Hold>>> {
    let holds = Arc::<Mutex<Vec<Hold>>>::default();
    let sink = Arc::clone(&holds);
    tokio::spawn(async move {
        loop {
            let _lost = listen(server, &sink).await;
            sleep(Duration::from_millis(10)).await;
        }
    });
    holds
}

async fn listen(server: SocketAddr, holds: &Mutex<Vec<Hold>>) -> Result<(), BoxError> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(b"MONITOR\r\n").await?;
    let mut lines = BufReader::new(stream).lines();
    let mut deliveries = 0;
    while let Some(line) = lines.next_line().await? {
        match words(&line)[..] {
            // A script's own commands follow the line that calls it.
            ["EVALSHA", _, "2", _, _, _, _, _, number, ..] => deliveries = number.parse()?,
            ["XCLAIM", _, _, _, _, entry, "IDLE", idle, "RETRYCOUNT", spent, ..] => {
                let idle = Duration::from_millis(idle.parse()?);
                let hold = Hold {
                    at: time(&line)?,
                    entry: entry.to_owned(),
                    deliveries,
                    spent: spent.parse()?,
                    delay: LEASE.checked_sub(idle).ok_or("an idle time above the lease")?,
                };
                holds.lock().unwrap_or_else(PoisonError::into_inner).push(hold);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The words of a line like `+1700000000.123456 [0 lua] "XCLAIM" "orders"`.
fn words(line: &str) -> Vec<&str> {
    line.split_once("] \"").map_or(Vec::new(), |(_, words)| words.trim_end_matches('"').split("\" \"").collect())
}

fn time(line: &str) -> Result<SystemTime, BoxError> {
    let (seconds, micros) =
        line.trim_start_matches('+').split(' ').next().and_then(|t| t.split_once('.')).ok_or("no time")?;
    Ok(UNIX_EPOCH + Duration::from_secs(seconds.parse()?) + Duration::from_micros(micros.parse()?))
}

//! A stream with one consumer group, and a second stream for the dead letters.
//!
//! An entry that was delivered and not acknowledged is pending, and Redis counts its deliveries and the time since the
//! last one, its idle time. [`LEASE`] is the idle time after which an entry is delivered again, whatever became of its
//! worker. An entry that failed is to come back sooner: its idle time is set to `LEASE - delay`, so that Redis, and no
//! sleeping worker, holds the delay.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, RetryMethod, Script,
};
use tokio::sync::Mutex;

pub const STREAM: &str = "orders";
pub const DEAD: &str = "orders:dead";
pub const GROUP: &str = "publishers";

/// After how much idle time an entry is delivered again. It outlives an attempt and the time until a lost server is back.
pub const LEASE: Duration = Duration::from_secs(12);

/// One delivery of an entry to this consumer.
#[derive(Debug)]
pub struct Delivery {
    pub id: String,
    pub payload: String,
    /// How many deliveries have started, this one included.
    pub deliveries: u32,
}

/// What became of an attempt.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Published,
    /// Deliver it again after `delay`. `spent` is how many of its attempts are used up.
    Retry {
        delay: Duration,
        spent: u32,
    },
    Dead {
        error: String,
    },
}

type Entry = (String, HashMap<String, String>);

/// One consumer's view of the stream, with a connection that is made when it is needed.
#[derive(Debug)]
pub struct Queue {
    client: Client,
    consumer: String,
    settle: Script,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Queue {
    pub fn at(server: SocketAddr, consumer: &str) -> RedisResult<Self> {
        Ok(Self {
            client: Client::open(format!("redis://{server}/"))?,
            consumer: consumer.to_owned(),
            settle: Script::new(include_str!("settle.lua")),
            connection: Mutex::default(),
        })
    }

    /// Makes the stream and its group.
    pub async fn create(&self) -> RedisResult<()> {
        let mut create = redis::cmd("XGROUP");
        create.arg(&["CREATE", STREAM, GROUP, "0", "MKSTREAM"]);
        match self.run(&create).await {
            Err(error) if error.code() == Some("BUSYGROUP") => Ok(()),
            other => other,
        }
    }

    /// The next delivery: an entry that is due again, or else a new one, or else nothing.
    pub async fn next(&self) -> RedisResult<Option<Delivery>> {
        match self.due_again().await? {
            None => self.new_entry().await,
            due => Ok(due),
        }
    }

    async fn due_again(&self) -> RedisResult<Option<Delivery>> {
        let mut cursor = "0-0".to_owned();
        loop {
            let mut claim = redis::cmd("XAUTOCLAIM");
            claim.arg(&[STREAM, GROUP, &self.consumer]).arg(millis(LEASE)).arg(cursor).arg(&["COUNT", "1"]);
            let (next, entries, _deleted): (String, Vec<Entry>, Vec<String>) = self.run(&claim).await?;
            if let Some(entry) = entries.into_iter().next() {
                let mut pending = redis::cmd("XPENDING");
                pending.arg(&[STREAM, GROUP, &entry.0, &entry.0, "1"]);
                let pending: Vec<(String, String, u64, u32)> = self.run(&pending).await?;
                return Ok(pending.first().map(|&(.., deliveries)| delivery(entry, deliveries)));
            }
            if next == "0-0" {
                return Ok(None);
            }
            cursor = next;
        }
    }

    async fn new_entry(&self) -> RedisResult<Option<Delivery>> {
        let mut read = redis::cmd("XREADGROUP");
        read.arg(&["GROUP", GROUP, &self.consumer, "COUNT", "1", "STREAMS", STREAM, ">"]);
        let streams: Option<Vec<(String, Vec<Entry>)>> = self.run(&read).await?;
        let entry = streams.into_iter().flatten().flat_map(|(_, entries)| entries).next();
        Ok(entry.map(|entry| delivery(entry, 1)))
    }

    /// Tells Redis what became of a delivery. It can be told again, if the answer was lost.
    pub async fn settle(&self, delivery: &Delivery, outcome: &Outcome) -> RedisResult<()> {
        let mut settle = self.settle.prepare_invoke();
        settle.key(STREAM).key(DEAD).arg(GROUP).arg(&self.consumer).arg(&delivery.id).arg(delivery.deliveries);
        match outcome {
            Outcome::Published => settle.arg("published"),
            Outcome::Retry { delay, spent } => settle.arg("retry").arg(millis(LEASE.saturating_sub(*delay))).arg(spent),
            Outcome::Dead { error } => settle.arg("dead").arg(&delivery.payload).arg(error),
        };
        let mut connection = self.connect().await?;
        let settled = settle.invoke_async(&mut connection).await;
        self.keep_unless_lost(settled).await
    }

    /// Runs one command.
    pub async fn run<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let mut connection = self.connect().await?;
        let answer = command.query_async(&mut connection).await;
        self.keep_unless_lost(answer).await
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref() {
            return Ok(connection.clone());
        }
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(5)));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        Ok(slot.insert(connection).clone())
    }

    async fn keep_unless_lost<T>(&self, answer: RedisResult<T>) -> RedisResult<T> {
        if answer.as_ref().is_err_and(is_lost) {
            *self.connection.lock().await = None;
        }
        answer
    }
}

/// Whether the server was lost, or is not ready yet.
pub fn is_lost(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Io || !matches!(error.retry_method(), RetryMethod::NoRetry)
}

fn delivery((id, mut fields): Entry, deliveries: u32) -> Delivery {
    Delivery { id, payload: fields.remove("payload").unwrap_or_default(), deliveries }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

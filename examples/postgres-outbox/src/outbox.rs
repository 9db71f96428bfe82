//! The outbox table: claim a row, and settle what became of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use relent::transient;
use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, Error, NoTls};

/// A row that this worker has claimed.
#[derive(Debug)]
pub struct Claim {
    pub id: i64,
    pub payload: String,
    /// How many attempts have started, this one included.
    pub attempts: u32,
}

/// What became of an attempt.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Published,
    Retry { delay: Duration, error: String },
    Dead { error: String },
}

/// A connection to the table, made when it is needed.
#[derive(Debug)]
pub struct Outbox {
    config: Config,
    client: Mutex<Option<Arc<Client>>>,
}

impl Outbox {
    pub fn at(database: SocketAddr) -> Self {
        let mut config = Config::new();
        config.host(database.ip().to_string()).port(database.port()).user("postgres");
        Self { config, client: Mutex::new(None) }
    }

    /// Claims one row that is due, unless there is none.
    ///
    /// The claim is committed before the attempt begins, so that no transaction is open while it runs, and so that an
    /// attempt whose worker dies is counted. Until `lease` is over, nobody else sees the row.
    pub async fn claim(&self, lease: Duration) -> Result<Option<Claim>, Error> {
        let row = self
            .client()
            .await?
            .query_opt(
                "UPDATE outbox
                 SET attempts = attempts + 1, next_attempt_at = now() + make_interval(secs => $1)
                 WHERE id = (SELECT id FROM outbox WHERE state = 'pending' AND next_attempt_at <= now()
                             ORDER BY next_attempt_at LIMIT 1 FOR UPDATE SKIP LOCKED)
                 RETURNING id, payload, attempts",
                &[&lease.as_secs_f64()],
            )
            .await?;
        Ok(row.map(|row| Claim {
            id: row.get(0),
            payload: row.get(1),
            attempts: row.get::<_, i32>(2).try_into().expect("a count of attempts"),
        }))
    }

    /// Writes down what became of a claim, unless the row has been claimed again since.
    ///
    /// The same outcome may be written twice, so this can be retried when the answer was lost.
    pub async fn settle(&self, claim: &Claim, outcome: &Outcome) -> Result<(), Error> {
        let (state, delay, error) = match outcome {
            Outcome::Published => ("published", Duration::ZERO, None),
            Outcome::Retry { delay, error } => ("pending", *delay, Some(error)),
            Outcome::Dead { error } => ("dead", Duration::ZERO, Some(error)),
        };
        self.client()
            .await?
            .execute(
                "UPDATE outbox
                 SET state = $3, next_attempt_at = now() + make_interval(secs => $4), last_error = $5
                 WHERE id = $1 AND attempts = $2 AND state = 'pending'",
                &[&claim.id, &i32::try_from(claim.attempts).unwrap_or(i32::MAX), &state, &delay.as_secs_f64(), &error],
            )
            .await?;
        Ok(())
    }

    /// The connection, or a new one if it is gone.
    pub async fn client(&self) -> Result<Arc<Client>, Error> {
        let mut slot = self.client.lock().await;
        if let Some(client) = slot.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        let (client, connection) = self.config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(Arc::clone(slot.insert(Arc::new(client))))
    }
}

/// Whether the database was lost, or is not ready yet: class 57P says so, and class 08 is the connection's own.
pub fn is_lost(error: &Error) -> bool {
    let code = error.code().map_or("", |code| code.code());
    error.is_closed() || transient::io_error(error) || code.starts_with("57P") || code.starts_with("08")
}

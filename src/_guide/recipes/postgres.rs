use std::time::Duration;

use relent::{Policy, retry, transient};
use sqlx::{Error, PgPool};

const POLICY: Policy = Policy::exponential(Duration::from_millis(20)).max_attempts(5);

/// Moves money, once for each `id`, however often it is asked to.
pub async fn transfer(pool: &PgPool, id: &str, cents: i64) -> Result<(), Error> {
    let attempt = async |_| {
        let mut tx = pool.begin().await?;
        // a COMMIT whose answer is lost may have happened, so a repetition must find out
        let new =
            sqlx::query("INSERT INTO transfers (id) VALUES ($1) ON CONFLICT DO NOTHING")
                .bind(id);
        if new.execute(&mut *tx).await?.rows_affected() == 1 {
            sqlx::query("UPDATE accounts SET cents = cents - $1")
                .bind(cents)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await
    };
    retry(attempt, POLICY).when(may_pass).await
}

/// Whether to run the whole transaction again.
pub fn may_pass(error: &Error) -> bool {
    match error {
        // serialization_failure, deadlock_detected
        Error::Database(e) => matches!(e.code().as_deref(), Some("40001" | "40P01")),
        Error::PoolTimedOut => true,
        _ => transient::io_error(error),
    }
}

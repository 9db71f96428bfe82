use std::time::Duration;

use relent::{Policy, retry, transient};
use sqlx::{Error, PgPool};

const POLICY: Policy = Policy::exponential(Duration::from_millis(20)).max_attempts(5);

const RECORD: &str = "INSERT INTO payments (id) VALUES ($1) ON CONFLICT DO NOTHING";
const WITHDRAW: &str = "UPDATE accounts SET cents = cents - $1 WHERE owner = $2";

/// Takes the sum from the account, once for each `id`, however often it is called.
pub async fn pay(pool: &PgPool, id: &str, owner: &str, cents: i64) -> Result<(), Error> {
    let attempt = async |_| {
        let mut tx = pool.begin().await?;
        // a COMMIT whose answer was lost may have happened, so a repetition must find out
        let recorded = sqlx::query(RECORD).bind(id).execute(&mut *tx).await?;
        if recorded.rows_affected() == 1 {
            sqlx::query(WITHDRAW).bind(cents).bind(owner).execute(&mut *tx).await?;
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

//! 2000 messages, a sink that fails, two killed workers and a database that is gone for two seconds; then the counts.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use drill_kit::{BoxError, Checks, Held, MESSAGES, Record, Server, Sink, Workers, is_poison};
use relent::retry;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::outbox::{Outbox, is_lost};
use crate::worker::{COOLDOWN, RECONNECT};

/// Its worker is killed after the sink has published it, and before the worker knows.
const KILLED_ONCE_PUBLISHED: (u64, usize) = (500, 1);
/// A hopeless message whose worker is killed in its last attempt, before anything else could cost it an attempt.
const KILLED_AT_LAST: (u64, usize) = (3, COOLDOWN.attempts() as usize);

pub async fn run(server: &Server) -> Result<(), BoxError> {
    let database = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let outbox = Outbox::at(database);
    let client = outbox.client().await?;
    client.batch_execute(include_str!("outbox.sql")).await?;
    client.batch_execute(include_str!("history.sql")).await?;
    fill(&outbox, 1, MESSAGES / 2).await?;

    let (sink, mut held) = Sink::start(drill_kit::answer, vec![KILLED_ONCE_PUBLISHED, KILLED_AT_LAST]).await?;
    let args = vec![database.to_string(), sink.addr().to_string()];
    let mut workers = Workers::start(&["ann", "bob", "cat", "dan"], args)?;

    println!("{MESSAGES} messages, four workers, {COOLDOWN}");
    timeout(Duration::from_secs(90), break_things(&outbox, server, &sink, &mut workers, &mut held))
        .await
        .map_err(|_| "the outbox is not empty after 90 s")??;
    drop(workers);

    let mut checks = Checks::default();
    count(&read_rows(&outbox).await?, &sink.record(), &mut checks);
    check_waits(&read_history(&outbox).await?, &mut checks);
    checks.finish()
}

/// Breaks things while the workers work, and waits until no row is pending.
async fn break_things(
    outbox: &Outbox,
    server: &Server,
    sink: &Sink,
    workers: &mut Workers,
    held: &mut mpsc::Receiver<Held>,
) -> Result<(), BoxError> {
    for _ in [KILLED_ONCE_PUBLISHED, KILLED_AT_LAST] {
        let Held { worker, message, number } = held.recv().await.ok_or("the sink is gone")?;
        workers.kill(&worker).await?;
        println!("killed worker {worker} in attempt {number} of message {message}, and started it again");
    }
    // A row that is tried again stands behind those that were due before it. So the last attempt of one comes late, and
    // the second half of the messages leaves something to do.
    fill(outbox, MESSAGES / 2 + 1, MESSAGES).await?;
    while sink.record().messages() < MESSAGES * 3 / 4 {
        sleep(Duration::from_millis(20)).await;
    }
    server.restart_after(Duration::from_secs(2)).await?;
    println!("killed the database, and started it again after 2 s");
    while pending(outbox).await? > 0 {
        workers.check()?;
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn fill(outbox: &Outbox, first: u64, last: u64) -> Result<(), BoxError> {
    let insert = "INSERT INTO outbox (payload) SELECT generate_series($1::bigint, $2::bigint)::text";
    outbox.client().await?.execute(insert, &[&i64::try_from(first)?, &i64::try_from(last)?]).await?;
    Ok(())
}

async fn pending(outbox: &Outbox) -> Result<i64, BoxError> {
    let query = "SELECT count(*) FROM outbox WHERE state = 'pending'";
    let row = retry(async |_| outbox.client().await?.query_one(query, &[]).await, RECONNECT).when(is_lost).await?;
    Ok(row.get(0))
}

/// Where a message ended up.
struct Row {
    id: u64,
    state: String,
    attempts: u32,
    error: Option<String>,
    /// Attempts that were started and never settled: their worker died, or the database did.
    unsettled: i64,
}

async fn read_rows(outbox: &Outbox) -> Result<Vec<Row>, BoxError> {
    let query = "SELECT id, state, attempts, last_error, attempts - coalesce(settled, 0)
                 FROM outbox LEFT JOIN (SELECT id, count(DISTINCT attempts) AS settled FROM outbox_history
                                        WHERE NOT claimed GROUP BY id) AS history USING (id)
                 ORDER BY id";
    let rows = outbox.client().await?.query(query, &[]).await?;
    let read = |row: &tokio_postgres::Row| -> Result<Row, BoxError> {
        Ok(Row {
            id: row.get::<_, i64>(0).try_into()?,
            state: row.get(1),
            attempts: row.get::<_, i32>(2).try_into()?,
            error: row.get(3),
            unsettled: row.get(4),
        })
    };
    rows.iter().map(read).collect()
}

/// Holds where each message ended up against the record of the sink.
fn count(rows: &[Row], record: &Record, checks: &mut Checks) {
    let (mut published, mut permanent, mut exhausted, mut all_tries, mut all_acks) = (0, 0, 0, 0, 0);
    for Row { id, state, attempts, error, unsettled } in rows {
        let (tries, acks) = (record.tries(*id).len(), record.published(*id));
        let error = error.as_deref().unwrap_or_default();
        match state.as_str() {
            "published" => published += 1,
            "dead" if error.starts_with("permanent failure: ") => permanent += 1,
            "dead" if error.starts_with("attempts used up: ") => exhausted += 1,
            _ => checks.that(false, || format!("message {id} is {state} with error {error:?}")),
        }
        all_tries += tries;
        all_acks += acks;
        let fate = format!("message {id}: {state}, {attempts} claims, {tries} tries, {acks} published");
        let lost = usize::try_from(*unsettled).unwrap_or(usize::MAX);
        checks.that(tries <= COOLDOWN.attempts() as usize, || format!("too many tries: {fate}"));
        checks.that(tries <= *attempts as usize, || format!("tries that nobody claimed: {fate}"));
        checks.that(*attempts <= COOLDOWN.attempts() + u32::from(lost > 0), || format!("too many claims: {fate}"));
        if state == "published" {
            checks.that((1..=1 + lost).contains(&acks), || format!("published, but: {fate}"));
        } else {
            checks.that(acks == 0, || format!("dead, but published: {fate}"));
            let all_used = *attempts >= COOLDOWN.attempts();
            checks.that(is_poison(*id) || all_used, || format!("attempts are left: {fate}"));
        }
        checks.that(is_poison(*id) == error.starts_with("permanent"), || format!("not the fate of poison: {fate}"));
        if lost > 0 {
            println!("an attempt did not report: {fate}");
        }
    }
    println!("{published} published, {permanent} dead for good, {exhausted} dead after their last attempt");
    println!(
        "the sink saw {all_tries} tries and published {all_acks}, {} of them twice",
        all_acks.saturating_sub(published)
    );

    checks.that(rows.len() as u64 == MESSAGES, || format!("{} rows are left", rows.len()));
    checks.that(published + permanent + exhausted == rows.len(), || "not every row has its fate".into());
    let transient = record.transient_percentage();
    checks.that(transient >= 17, || format!("only {transient} % of the tries failed"));
    for (message, number) in [KILLED_ONCE_PUBLISHED, KILLED_AT_LAST] {
        let killed = rows.iter().any(|row| row.id == message && row.unsettled > 0);
        checks.that(killed, || format!("no worker died in attempt {number} of message {message}"));
    }
    let acks = record.published(KILLED_ONCE_PUBLISHED.0);
    checks.that(acks == 2, || format!("what a dying worker had published was published {acks} times"));
    let tries = record.tries(KILLED_AT_LAST.0).len();
    checks.that(tries == KILLED_AT_LAST.1, || format!("a message whose last worker died was tried {tries} times"));
}

/// A wait that the table held, in microseconds, and how much later than its end the next attempt began.
struct Wait {
    failures: u32,
    held: i64,
    late: Option<i64>,
}

async fn read_history(outbox: &Outbox) -> Result<Vec<Wait>, BoxError> {
    let query = "SELECT attempts, held, late FROM (
                     SELECT attempts, claimed, state,
                            (extract(epoch FROM next_attempt_at - at) * 1000000)::bigint AS held,
                            (extract(epoch FROM lead(at) OVER (PARTITION BY id ORDER BY step) - next_attempt_at)
                                * 1000000)::bigint AS late
                     FROM outbox_history) AS steps
                 WHERE NOT claimed AND state = 'pending'";
    let rows = outbox.client().await?.query(query, &[]).await?;
    let read = |row: &tokio_postgres::Row| -> Result<Wait, BoxError> {
        Ok(Wait { failures: row.get::<_, i32>(0).try_into()?, held: row.get(1), late: row.get(2) })
    };
    rows.iter().map(read).collect()
}

/// Holds the waits of the table against the policy: they are exact, for the table has one clock.
fn check_waits(waits: &[Wait], checks: &mut Checks) {
    let mut seen = BTreeMap::<u32, usize>::new();
    for Wait { failures, held, late } in waits {
        *seen.entry(*failures).or_default() += 1;
        let nominal = COOLDOWN.nominal_after(*failures);
        checks.that(u128::try_from(*held) == Ok(nominal.as_micros()), || {
            format!("the table held a row {held} µs after {failures} failures, not {nominal:?}")
        });
        checks.that(late.is_some_and(|late| late >= 0), || format!("an attempt began too early: {late:?} µs"));
    }
    for (failures, times) in &seen {
        println!("after failure {failures} the table held {:?}, {times} times", COOLDOWN.nominal_after(*failures));
    }
    checks.that(seen.keys().copied().eq(1..COOLDOWN.attempts()), || format!("waits after {:?} failures", seen.keys()));
    checks.that(COOLDOWN.nominal_after(1) == COOLDOWN.base(), || "the first wait is not the base".into());
}

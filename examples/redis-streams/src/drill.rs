//! 2000 messages, a sink that fails and is gone for a while, two killed workers and a Redis that is gone for two seconds;
//! then the counts.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use drill_kit::{BoxError, Checks, Held, MESSAGES, Record, Server, Sink, Workers, is_poison};
use redis::Value;
use relent::retry;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::monitor::{Hold, watch};
use crate::queue::{DEAD, GROUP, Queue, STREAM, is_lost};
use crate::worker::{POLICY, RECONNECT};

const MAX_ATTEMPTS: usize = POLICY.attempts() as usize;

/// Its worker is killed after the sink has published it, and before the worker knows.
const KILLED_ONCE_PUBLISHED: (u64, usize) = (500, 1);
/// A hopeless message whose worker is killed in its last attempt, before anything else could cost it an attempt.
const KILLED_AT_LAST: (u64, usize) = (3, MAX_ATTEMPTS);

pub async fn run(server: &Server) -> Result<(), BoxError> {
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let queue = Queue::at(addr, "drill")?;
    queue.create().await?;
    let mut payloads = HashMap::new();
    for message in 1..=MESSAGES {
        let mut add = redis::cmd("XADD");
        let entry: String = queue.run(add.arg(&[STREAM, "*", "payload"]).arg(message)).await?;
        payloads.insert(entry, message);
    }
    let holds = watch(addr);

    let (sink, mut held) = Sink::start(drill_kit::answer, vec![KILLED_ONCE_PUBLISHED, KILLED_AT_LAST]).await?;
    let mut workers = Workers::start(&["ann", "bob", "cat", "dan"], vec![addr.to_string(), sink.addr().to_string()])?;

    println!("{MESSAGES} messages, four workers, {POLICY}");
    timeout(Duration::from_secs(90), break_things(&queue, server, &sink, &mut workers, &mut held))
        .await
        .map_err(|_| "the stream is not empty after 90 s")??;
    drop(workers);

    let mut checks = Checks::default();
    let holds = std::mem::take(&mut *holds.lock().expect("the monitor does not panic"));
    count(&read_dead(&queue).await?, &sink.record(), &holds, &mut checks);
    check_waits(&holds, &payloads, &sink.record(), &mut checks);
    let kept: u64 = queue.run(redis::cmd("XLEN").arg(STREAM)).await?;
    checks.that(kept == MESSAGES, || format!("{kept} entries are left in the stream"));
    checks.finish()
}

/// Breaks things while the workers work, and waits until every entry was delivered and none is pending.
async fn break_things(
    queue: &Queue,
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
    if sink.record().messages() == MESSAGES {
        return Err("there is nothing left to do for Redis".into());
    }
    server.restart_after(Duration::from_secs(2)).await?;
    println!("killed Redis, and started it again after 2 s");
    sleep(Duration::from_millis(500)).await;
    sink.refuse_for(OUTAGE).await;
    println!("the sink refuses connections for {OUTAGE:?}");
    while !is_done(queue).await? {
        workers.check()?;
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Longer than all the waits of one message: if this spent attempts, every message in the queue would die of it.
const OUTAGE: Duration = Duration::from_secs(3);

async fn is_done(queue: &Queue) -> Result<bool, BoxError> {
    let mut info = redis::cmd("XINFO");
    info.arg(&["GROUPS", STREAM]);
    let groups: Vec<HashMap<String, Value>> = retry(|_| queue.run(&info), RECONNECT).when(is_lost).await?;
    let group = groups.first().ok_or(format!("the group {GROUP} is gone"))?;
    Ok(["pending", "lag"].iter().all(|&count| group.get(count) == Some(&Value::Int(0))))
}

/// A dead letter: how often it was delivered, and its error.
struct Dead {
    deliveries: usize,
    error: String,
}

async fn read_dead(queue: &Queue) -> Result<BTreeMap<u64, Dead>, BoxError> {
    let mut range = redis::cmd("XRANGE");
    range.arg(&[DEAD, "-", "+"]);
    let entries: Vec<(String, HashMap<String, String>)> = queue.run(&range).await?;
    let mut dead = BTreeMap::new();
    for (_, fields) in &entries {
        let field = |name| fields.get(name).ok_or(format!("a dead letter without {name}"));
        let letter = Dead { deliveries: field("deliveries")?.parse()?, error: field("error")?.clone() };
        if dead.insert(field("payload")?.parse()?, letter).is_some() {
            return Err(format!("two dead letters of one message: {fields:?}").into());
        }
    }
    Ok(dead)
}

/// Holds where each message ended up against the record of the sink.
fn count(dead: &BTreeMap<u64, Dead>, record: &Record, holds: &[Hold], checks: &mut Checks) {
    let (mut published, mut permanent, mut exhausted, mut all_tries, mut all_acks) = (0, 0, 0, 0, 0);
    for message in 1..=MESSAGES {
        let (tries, acks) = (record.tries(message).len(), record.published(message));
        all_tries += tries;
        all_acks += acks;
        let fate = format!("message {message}: {tries} tries, {acks} published");
        checks.that(tries <= MAX_ATTEMPTS, || format!("too many tries: {fate}"));
        let killed_once_published = usize::from(message == KILLED_ONCE_PUBLISHED.0);
        let Some(Dead { deliveries, error }) = dead.get(&message) else {
            published += 1;
            checks.that(acks == 1 + killed_once_published, || format!("not in the dead letters, but: {fate}"));
            checks.that(!is_poison(message), || format!("poison was published: {fate}"));
            continue;
        };
        checks.that(acks == 0, || format!("published and dead: {fate}"));
        if is_poison(message) {
            permanent += 1;
            let at_once = tries == 1 && error.starts_with("permanent failure: ");
            checks.that(at_once, || format!("poison was not dead at once: {fate}, {deliveries} deliveries, {error}"));
        } else {
            exhausted += 1;
            // A delivery whose answer was lost with the server that died, or whose connection died with the sink,
            // spends an attempt that no one saw. Neither happens often, and to one message hardly twice. And it takes
            // one more delivery to find out that the last worker died.
            let used_up = tries + 2 >= MAX_ATTEMPTS && error.starts_with("attempts used up: ");
            let delivered = (MAX_ATTEMPTS..=MAX_ATTEMPTS + 1).contains(deliveries);
            checks.that(used_up && delivered, || format!("dead too early: {fate}, {deliveries} deliveries, {error}"));
            println!("dead after its attempts: {fate}, {deliveries} deliveries, {error}");
        }
    }
    println!("{published} published, {permanent} dead for good, {exhausted} dead after their last attempt");
    println!(
        "the sink saw {all_tries} tries and published {all_acks}, {} of them twice",
        all_acks.saturating_sub(published)
    );

    checks.that(usize::try_from(MESSAGES) == Ok(published + permanent + exhausted), || "a message has no fate".into());
    checks.that(all_acks == published + 1, || format!("{all_acks} acknowledged, {published} published, one kill"));
    let transient = record.transient_percentage();
    checks.that(transient >= 17, || format!("only {transient} % of the tries failed"));
    let unspent = holds.iter().filter(|hold| hold.spent < hold.deliveries).count();
    println!("{unspent} deliveries found no sink to connect to, and spent no attempt");
    checks.that(unspent > MAX_ATTEMPTS, || "the outage of the sink was not noticed".into());
    let tries = record.tries(KILLED_AT_LAST.0).len();
    checks.that(tries == MAX_ATTEMPTS, || format!("a message whose last worker died was tried {tries} times"));
}

/// Holds the delays that Redis was told, and the times at which the sink then saw the message, against the policy.
fn check_waits(holds: &[Hold], payloads: &HashMap<String, u64>, record: &Record, checks: &mut Checks) {
    let mut seen = BTreeMap::<u32, (usize, Duration, Duration)>::new();
    for hold in holds {
        let (shortest, longest) = POLICY.bounds_after(hold.deliveries);
        let within = (shortest..=longest).contains(&hold.delay);
        checks.that(within, || format!("not within {shortest:?} and {longest:?}: {hold:?}"));
        let (times, least, most) = seen.entry(hold.deliveries).or_insert((0, Duration::MAX, Duration::ZERO));
        (*times, *least, *most) = (*times + 1, hold.delay.min(*least), hold.delay.max(*most));

        let tries = record.tries(payloads[&hold.entry]);
        if let Some(next) = tries.iter().map(|t| t.at).find(|at| *at > hold.at) {
            let waited = next.duration_since(hold.at).unwrap_or_default();
            // Redis counts in whole milliseconds, from a time that it takes once for all that it does in one round.
            checks.that(waited + Duration::from_millis(5) >= hold.delay, || format!("after only {waited:?}: {hold:?}"));
        }
    }
    for (failures, (times, least, most)) in &seen {
        let (shortest, longest) = POLICY.bounds_after(*failures);
        println!(
            "after failure {failures} Redis held {least:?} to {most:?}, {times} times; the policy allows {shortest:?} to {longest:?}"
        );
    }
    let all = (1..POLICY.attempts()).all(|failures| seen.contains_key(&failures));
    checks.that(all, || format!("waits only after {:?} failures", seen.keys()));
    checks.that(POLICY.nominal_after(1) == POLICY.base(), || "the first wait is not the base".into());
    // Half of the first waits are in the upper half: a counter that is one doubling late or early would show.
    let first = seen.get(&1).map_or((Duration::ZERO, Duration::ZERO), |&(_, least, most)| (least, most));
    let middle = POLICY.base() * 3 / 4;
    checks.that(first.0 < middle && middle < first.1, || format!("the first waits are not spread: {first:?}"));
}

//! A run compiles, and is `Send`, in every position in which code of today keeps a future.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use relent::clock::InstantClock;
use relent::retry::retry_with;
use relent::{Attempt, Policy, retry};
use tokio::task::{LocalSet, yield_now};

const POLICY: Policy = Policy::fixed(Duration::from_millis(1));

#[derive(Debug, PartialEq)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

/// A client that is shared, and fails in its first two attempts.
#[derive(Debug, Default)]
struct Client {
    clock: InstantClock,
}

impl Client {
    async fn get(&self, attempt: Attempt, name: &str) -> Result<usize, Refused> {
        yield_now().await;
        if attempt.number() < 3 { Err(Refused) } else { Ok(name.len()) }
    }
}

/// A connection that needs `&mut`, and fails in its first two calls.
#[derive(Debug, Default)]
struct Connection {
    calls: u32,
    clock: InstantClock,
}

impl Connection {
    async fn get(&mut self, name: &str) -> Result<usize, Refused> {
        self.calls += 1;
        yield_now().await;
        if self.calls < 3 { Err(Refused) } else { Ok(name.len()) }
    }

    async fn ping(&mut self, attempt: Attempt) -> Result<usize, Refused> {
        assert_eq!(attempt.number(), self.calls + 1);
        self.get("ping").await
    }
}

fn is_send<T: Send>(value: T) -> T {
    value
}

type Boxed<'a> = Pin<Box<dyn Future<Output = Result<usize, Refused>> + Send + 'a>>;

trait Repository {
    fn find(&self, name: &str) -> impl Future<Output = Result<usize, Refused>> + Send;
    fn find_mut(&mut self, name: &str) -> impl Future<Output = Result<usize, Refused>> + Send;
}

struct Users {
    client: Client,
    connection: Connection,
}

impl Repository for Users {
    async fn find(&self, name: &str) -> Result<usize, Refused> {
        retry(|attempt| self.client.get(attempt, name), POLICY).when(|e| *e == Refused).clock(&self.client.clock).await
    }

    async fn find_mut(&mut self, name: &str) -> Result<usize, Refused> {
        let clock = self.connection.clock.clone();
        let get = async |connection: &mut Connection, _| connection.get(name).await;
        retry_with(&mut self.connection, get, POLICY).when(|e| *e == Refused).clock(clock).await
    }
}

impl Users {
    fn new() -> Self {
        Self { client: Client::default(), connection: Connection::default() }
    }

    fn borrowing_mut(&mut self, name: &str) -> impl Future<Output = Result<usize, Refused>> + Send {
        let client = &self.client;
        let get = async move |connection: &mut Connection, attempt| {
            client.get(attempt, name).await?;
            connection.get(name).await
        };
        retry_with(&mut self.connection, get, POLICY.max_attempts(6)).clock(&client.clock)
    }

    fn borrowing(&self, name: &str) -> impl Future<Output = Result<usize, Refused>> + Send {
        retry(move |attempt| self.client.get(attempt, name), POLICY).clock(&self.client.clock)
    }
}

mod with_shared_state {
    use super::*;

    #[tokio::test]
    async fn in_place() {
        let (client, name) = (Client::default(), String::from("ada"));
        let plain = is_send(retry(|attempt| client.get(attempt, &name), POLICY).clock(&client.clock));
        assert_eq!(plain.await, Ok(3));
        let closure = is_send(retry(async |attempt| client.get(attempt, &name).await, POLICY).clock(&client.clock));
        assert_eq!(closure.await, Ok(3));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn spawned() {
        let client = Arc::new(Client::default());
        let clock = client.clock.clone();
        let run = retry(
            move |attempt| {
                let client = Arc::clone(&client);
                async move { client.get(attempt, "ada").await }
            },
            POLICY,
        );
        assert_eq!(tokio::spawn(run.clock(clock)).await.unwrap(), Ok(3));
    }

    #[tokio::test]
    async fn boxed() {
        fn find<'a>(client: &'a Client, name: &'a str) -> Boxed<'a> {
            Box::pin(retry(async move |attempt| client.get(attempt, name).await, POLICY).clock(&client.clock))
        }
        assert_eq!(find(&Client::default(), "ada").await, Ok(3));
    }

    /// Field case 68: an `async fn` retries a method that borrows `&self` and `&str`, without a clone or an `Arc`.
    #[tokio::test(flavor = "multi_thread")]
    async fn in_a_trait_method() {
        let users = Users::new();
        assert_eq!(tokio::spawn(async move { users.find("ada").await }).await.unwrap(), Ok(3));
    }

    #[tokio::test]
    async fn borrowed() {
        assert_eq!(Users::new().borrowing("ada").await, Ok(3));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn in_an_async_fn_that_is_spawned() {
        async fn find(name: String) -> Result<usize, Refused> {
            let client = Client::default();
            retry(async |attempt| client.get(attempt, &name).await, POLICY).clock(&client.clock).await
        }
        assert_eq!(tokio::spawn(find("ada".to_owned())).await.unwrap(), Ok(3));
    }

    #[tokio::test]
    async fn on_one_thread() {
        let calls = Rc::new(Cell::new(0));
        let counted = Rc::clone(&calls);
        let op = move |_| {
            counted.set(counted.get() + 1);
            std::future::ready(if counted.get() < 3 { Err(Refused) } else { Ok(()) })
        };
        let run = retry(op, POLICY);
        let run = run.clock(InstantClock::new());
        LocalSet::new().run_until(async { tokio::task::spawn_local(run).await.unwrap() }).await.unwrap();
        assert_eq!(calls.get(), 3);
    }

    /// No error is kept during a wait, so one that is not `Send` does no harm.
    #[tokio::test(flavor = "multi_thread")]
    async fn with_an_error_that_is_not_send() {
        let op = |attempt: Attempt| std::future::ready(if attempt.is_first() { Err(1) } else { Ok(2) });
        // The error is made in the poll that yields it, so the operation's own future does not hold it either.
        let op = move |attempt| Unsent(op(attempt));
        let run = is_send(retry(op, POLICY).unmarked().clock(InstantClock::new()));
        assert_eq!(tokio::spawn(async { run.await.ok() }).await.unwrap(), Some(2));
    }
}

mod with_mutable_state {
    use super::*;

    #[tokio::test]
    async fn in_place() {
        let (mut connection, name) = (Connection::default(), String::from("ada"));
        let get = async |connection: &mut Connection, _| connection.get(&name).await;
        let run = is_send(retry_with(&mut connection, get, POLICY).clock(InstantClock::new()));
        assert_eq!(run.await, Ok(3));
        assert_eq!(connection.calls, 3);
        let mut connection = Connection::default();
        let run = is_send(retry_with(&mut connection, Connection::ping, POLICY).clock(InstantClock::new()));
        assert_eq!(run.await, Ok(4));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn spawned() {
        let run = async move {
            let (mut connection, name) = (Connection::default(), String::from("ada"));
            let get = async |connection: &mut Connection, _| connection.get(&name).await;
            retry_with(&mut connection, get, POLICY).clock(InstantClock::new()).await
        };
        assert_eq!(tokio::spawn(run).await.unwrap(), Ok(3));
    }

    #[tokio::test]
    async fn boxed() {
        fn find<'a>(connection: &'a mut Connection, name: &'a str) -> Boxed<'a> {
            let get = async move |connection: &mut Connection, _| connection.get(name).await;
            Box::pin(retry_with(connection, get, POLICY).clock(InstantClock::new()))
        }
        assert_eq!(find(&mut Connection::default(), "ada").await, Ok(3));
    }

    /// Field case 68, for `&mut self`.
    #[tokio::test(flavor = "multi_thread")]
    async fn in_a_trait_method() {
        let mut users = Users::new();
        assert_eq!(tokio::spawn(async move { users.find_mut("ada").await }).await.unwrap(), Ok(3));
    }

    #[tokio::test]
    async fn borrowed() {
        let mut users = Users::new();
        assert_eq!(users.borrowing_mut("ada").await, Ok(3));
        assert_eq!(users.connection.calls, 3);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn in_an_async_fn_that_is_spawned() {
        async fn find(connection: &mut Connection, name: &str) -> Result<usize, Refused> {
            let get = async |connection: &mut Connection, _| connection.get(name).await;
            retry_with(connection, get, POLICY).clock(InstantClock::new()).await
        }
        async fn find_owned(name: String) -> Result<usize, Refused> {
            find(&mut Connection::default(), &name).await
        }
        assert_eq!(tokio::spawn(find_owned("ada".to_owned())).await.unwrap(), Ok(3));
    }

    #[tokio::test]
    async fn on_one_thread() {
        let calls = Rc::new(Cell::new(0));
        let run = {
            let calls = Rc::clone(&calls);
            async move {
                let count = async |calls: &mut Rc<Cell<u32>>, _| {
                    calls.set(calls.get() + 1);
                    if calls.get() < 3 { Err(Refused) } else { Ok(()) }
                };
                retry_with(&mut Rc::clone(&calls), count, POLICY).clock(InstantClock::new()).await
            }
        };
        LocalSet::new().run_until(async { tokio::task::spawn_local(run).await.unwrap() }).await.unwrap();
        assert_eq!(calls.get(), 3);
    }

    /// As without state.
    #[tokio::test(flavor = "multi_thread")]
    async fn with_an_error_that_is_not_send() {
        let run = async {
            let mut results = vec![Ok(2), Err(1)];
            let op = async |results: &mut Vec<_>, _| Unsent(std::future::ready(results.pop().unwrap())).await;
            retry_with(&mut results, op, POLICY).unmarked().clock(InstantClock::new()).await.ok()
        };
        assert_eq!(tokio::spawn(run).await.unwrap(), Some(2));
    }
}

/// Makes an error that is not `Send` of one that is, in the poll that yields it.
struct Unsent<F>(F);

impl<F, T, E> Future for Unsent<F>
where
    F: Future<Output = Result<T, E>> + Unpin,
{
    type Output = Result<T, Rc<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_err(Rc::new)
    }
}

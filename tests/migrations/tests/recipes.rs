//! What the guide's recipes do, on a real socket where they need one.

use std::io;
use std::time::{Duration, Instant};

use relent::NonRetryableError;
use relent_migrations::{http, postgres};
use reqwest::Client;
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::postgres::PgPoolOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers one connection with each of these texts, then stops; gives how many it answered.
async fn serve(listener: &TcpListener, answers: &[&str]) -> io::Result<()> {
    for answer in answers {
        let (mut socket, _) = listener.accept().await?;
        let mut request = [0; 1024];
        let _ = socket.read(&mut request).await?;
        socket.write_all(answer.as_bytes()).await?;
    }
    std::future::pending().await
}

async fn fetched(answers: &[&str]) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let client = Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
    tokio::select! {
        text = http::get(&client, &url) => text.map_err(|e| e.to_string()),
        end = serve(&listener, answers) => panic!("{end:?}"),
    }
}

#[tokio::test]
async fn the_http_recipe_retries_the_status_and_the_body_and_not_what_is_permanent() {
    let busy = "HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let broken = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nte";
    let whole = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ntext";
    let missing =
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert_eq!(fetched(&[busy, broken, whole]).await, Ok("text".to_owned()));
    assert!(fetched(&[busy, missing]).await.unwrap_err().contains("404"));
    let never =
        "HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert!(fetched(&[never]).await.unwrap_err().contains("501"));
    let around = "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert!(fetched(&[around; 11]).await.unwrap_err().contains("redirect"));
    let error = http::get(&Client::new(), "no address").await.unwrap_err();
    assert!(error.is::<NonRetryableError>(), "{error}");

    let long = "HTTP/1.1 503 Busy\r\nretry-after: 86400\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert!(
        fetched(&[long]).await.unwrap_err().contains("503"),
        "a hint over the ceiling ends the run"
    );
}

#[tokio::test]
async fn an_order_is_sent_again_only_if_no_server_has_seen_it() {
    let busy = ["HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let client = Client::builder().no_proxy().build().unwrap();
    let order =
        async |order| http::post(&client, &url, order).await.unwrap_err().to_string();
    let error = tokio::select! {
        error = order("tea") => error,
        end = serve(&listener, &busy) => panic!("{end:?}"),
    };
    assert!(error.contains("503"), "{error}");

    drop(listener);
    let start = Instant::now();
    order("tea").await;
    assert!(
        start.elapsed() >= Duration::from_millis(75),
        "two waits, of 25 to 50 and 50 to 100 ms"
    );
}

#[test]
fn the_futures_of_the_recipes_can_be_spawned() {
    fn spawn(_: impl Future + Send) {}
    spawn(http::get(&Client::new(), "http://localhost"));
    let _ = |pool| spawn(postgres::pay(&pool, "id", "owner", 1));
}

/// What a database says of an error.
#[derive(Debug)]
struct Code(&'static str);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Code {}

impl DatabaseError for Code {
    fn message(&self) -> &str {
        self.0
    }
    fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
        Some(self.0.into())
    }
    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }
    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }
    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

#[test]
fn the_postgres_recipe_runs_conflicts_and_lost_connections_again() {
    let database = |code| sqlx::Error::Database(Box::new(Code(code)));
    assert!(
        postgres::may_pass(&database("40001")) && postgres::may_pass(&database("40P01"))
    );
    assert!(!postgres::may_pass(&database("23505")), "unique_violation");
    assert!(postgres::may_pass(&sqlx::Error::Io(io::ErrorKind::ConnectionReset.into())));
    assert!(postgres::may_pass(&sqlx::Error::PoolTimedOut));
    assert!(!postgres::may_pass(&sqlx::Error::RowNotFound));
}

/// A pool tries a refused connection again by itself, until its own time limit.
#[tokio::test]
async fn a_pool_turns_a_refused_connection_into_a_timeout() {
    let options = PgPoolOptions::new();
    assert_eq!(options.get_acquire_timeout(), Duration::from_secs(30));

    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("postgres://user:password@{unused}/none");
    let pool =
        options.acquire_timeout(Duration::from_millis(30)).connect_lazy(&url).unwrap();
    assert!(matches!(pool.acquire().await, Err(sqlx::Error::PoolTimedOut)));
}

//! Reads a text over a TCP connection that keeps breaking, and loses no line of it.
//!
//! A real server on a free loopback port sends the lines of this file, and drops every connection after a few of them.
//! Then it goes away, and the client gives up.
//!
//! `cargo run --example reconnect`

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use relent::Policy;
use relent::backoff::Backoff;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const TEXT: &str = include_str!("reconnect.rs");
const LINES_PER_CONNECTION: usize = 9;
const RECONNECT: Policy = Policy::exponential(Duration::from_millis(20)).max_attempts(4);

/// Sends the lines that come after the one the client asks for, until the connection is worn out.
async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let mut stream = BufReader::new(stream);
        let mut request = String::new();
        stream.read_line(&mut request).await?;
        let have = request.trim().parse().map_err(io::Error::other)?;
        for line in TEXT.lines().skip(have).take(LINES_PER_CONNECTION) {
            stream.write_all(format!("{line}\n").as_bytes()).await?;
        }
        stream.flush().await?;
    }
}

/// A client that connects when it has to.
struct Client {
    server: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
    connections: usize,
    lines: Vec<String>,
}

impl Client {
    async fn read_line(&mut self) -> io::Result<()> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let mut stream = TcpStream::connect(self.server).await?;
                stream.write_all(format!("{}\n", self.lines.len()).as_bytes()).await?;
                self.connections += 1;
                none.insert(BufReader::new(stream))
            }
        };
        let mut line = String::new();
        connection.read_line(&mut line).await?;
        if let Some(line) = line.strip_suffix('\n') {
            self.lines.push(line.to_owned());
            return Ok(());
        }
        self.connection = None;
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut client = Client { server: listener.local_addr()?, connection: None, connections: 0, lines: Vec::new() };
    let server = tokio::spawn(serve(listener));

    let started = Instant::now();
    let say = |what: String| println!("{:5} ms  {what}", started.elapsed().as_millis());
    let mut backoff = Backoff::new(RECONNECT);
    let total = TEXT.lines().count();

    while client.lines.len() < total {
        match client.read_line().await {
            Ok(()) => backoff.succeeded(),
            Err(e) => {
                say(format!("after {} of {total} lines: {e}", client.lines.len()));
                backoff.retry_or(e).await?;
            }
        }
    }
    say(format!("the text is complete, over {} connections", client.connections));
    let is_complete = client.lines.iter().map(String::as_str).eq(TEXT.lines());
    let are_counted = client.connections == total.div_ceil(LINES_PER_CONNECTION);

    server.abort();
    server.await.ok();
    client.connection = None;
    let last = loop {
        match client.read_line().await {
            Ok(()) => break None,
            Err(e) => {
                say(format!("the server is gone: {e}"));
                if let Err(e) = backoff.retry_or(e).await {
                    break Some(e.kind());
                }
            }
        }
    };
    let has_given_up = last == Some(io::ErrorKind::ConnectionRefused) && backoff.failure_count() == 4;
    say(format!("gave up after {} failures", backoff.failure_count()));

    Ok(if is_complete && are_counted && has_given_up { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

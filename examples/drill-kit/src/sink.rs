//! A TCP server to publish to, which fails as told and keeps its own record.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use relent::NonRetryableError;
use relent::error::NotExecuted;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::BoxError;

/// What the sink says to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is published.
    Ok,
    /// Not now.
    Busy,
    /// Never.
    Malformed,
    /// Nothing: the connection ends.
    HangUp,
}

/// One try to publish a message, as the sink saw it.
#[derive(Clone, Copy, Debug)]
pub struct Try {
    /// When it arrived.
    pub at: SystemTime,
    /// What the sink said to it.
    pub answer: Answer,
}

/// The tries of all messages that arrived.
#[derive(Debug, Default)]
pub struct Record(BTreeMap<u64, Vec<Try>>);

impl Record {
    /// How many different messages arrived.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.0.len() as u64
    }

    /// The tries of one message, in order.
    #[must_use]
    pub fn tries(&self, message: u64) -> &[Try] {
        self.0.get(&message).map_or(&[], Vec::as_slice)
    }

    /// How often one message was published.
    #[must_use]
    pub fn published(&self, message: u64) -> usize {
        self.tries(message).iter().filter(|t| t.answer == Answer::Ok).count()
    }

    /// How many of a hundred tries had an answer that one more try may change.
    #[must_use]
    pub fn transient_percentage(&self) -> usize {
        let tries = self.0.values().map(Vec::len).sum::<usize>();
        let transient = self.0.values().flatten().filter(|t| matches!(t.answer, Answer::Busy | Answer::HangUp));
        transient.count() * 100 / tries.max(1)
    }

    fn add(&mut self, message: u64, answer: fn(u64, usize) -> Answer) -> (usize, Answer) {
        let tries = self.0.entry(message).or_default();
        let answer = answer(message, tries.len() + 1);
        tries.push(Try { at: SystemTime::now(), answer });
        (tries.len(), answer)
    }
}

/// A try that the sink has recorded and answers never: its worker is in the middle of an attempt.
#[derive(Debug)]
pub struct Held {
    /// The worker that waits for the answer.
    pub worker: String,
    /// The message.
    pub message: u64,
    /// Which try of this message it is, from 1.
    pub number: usize,
}

/// A running sink.
#[derive(Debug)]
pub struct Sink {
    addr: SocketAddr,
    record: Arc<Mutex<Record>>,
    outages: mpsc::Sender<Duration>,
}

impl Sink {
    /// Listens on a free port of the loopback interface and answers as `answer(message, number of the try)` says.
    ///
    /// The tries listed as `unanswered` are recorded as if they were answered, but are not: they are reported on the channel.
    ///
    /// # Errors
    ///
    /// If it cannot listen.
    pub async fn start(
        answer: fn(u64, usize) -> Answer,
        unanswered: Vec<(u64, usize)>,
    ) -> io::Result<(Self, mpsc::Receiver<Held>)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (outages, outage) = mpsc::channel(1);
        let (report, held) = mpsc::channel(unanswered.len().max(1));
        let sink = Self { addr: listener.local_addr()?, record: Arc::default(), outages };
        let desk = Arc::new(Desk { answer, unanswered, report, record: Arc::clone(&sink.record) });
        tokio::spawn(serve(listener, outage, desk));
        Ok((sink, held))
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Refuses connections for a time.
    pub async fn refuse_for(&self, time: Duration) {
        let _ = self.outages.send(time).await;
    }

    /// What has arrived so far.
    pub fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.record)
    }
}

/// How long an answer takes, so that there is time to break things.
const WORK: Duration = Duration::from_millis(10);

/// What the connections of one sink share.
struct Desk {
    answer: fn(u64, usize) -> Answer,
    unanswered: Vec<(u64, usize)>,
    report: mpsc::Sender<Held>,
    record: Arc<Mutex<Record>>,
}

async fn serve(mut listener: TcpListener, mut outage: mpsc::Receiver<Duration>, desk: Arc<Desk>) -> io::Result<()> {
    let addr = listener.local_addr()?;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                tokio::spawn(talk(accepted?.0, Arc::clone(&desk)));
            }
            Some(time) = outage.recv() => {
                drop(listener);
                tokio::time::sleep(time).await;
                listener = TcpListener::bind(addr).await?;
            }
        }
    }
}

async fn talk(mut stream: TcpStream, desk: Arc<Desk>) -> Result<(), BoxError> {
    let mut line = String::new();
    BufReader::new(&mut stream).read_line(&mut line).await?;
    let (worker, message) = line.trim().split_once(' ').ok_or("not a request")?;
    let message: u64 = message.parse()?;

    let (number, answer) = lock(&desk.record).add(message, desk.answer);
    if desk.unanswered.contains(&(message, number)) {
        desk.report.send(Held { worker: worker.to_owned(), message, number }).await?;
        stream.read_to_end(&mut Vec::new()).await?;
        return Ok(());
    }
    tokio::time::sleep(WORK).await;
    stream
        .write_all(match answer {
            Answer::Ok => b"ok\n".as_slice(),
            Answer::Busy => b"busy\n",
            Answer::Malformed => b"malformed\n",
            Answer::HangUp => b"",
        })
        .await?;
    Ok(())
}

/// Publishes one message at a [`Sink`].
///
/// # Errors
///
/// [`NotExecuted`] if the message did not leave, [`NonRetryableError`] if the sink will never take it. Any other failure
/// may pass, and after some of them nobody knows whether the message was published.
pub async fn publish(sink: SocketAddr, worker: &str, message: &str) -> Result<(), BoxError> {
    let mut stream = TcpStream::connect(sink).await.map_err(NotExecuted::new)?;
    stream.write_all(format!("{worker} {message}\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    match answer.trim_end() {
        "ok" => Ok(()),
        "malformed" => Err(NonRetryableError::new("malformed").into()),
        "" => Err("the sink hung up".into()),
        other => Err(format!("the sink is {other}").into()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

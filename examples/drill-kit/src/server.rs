//! A server that its script in `examples/servers` has started, and that can be stopped and started again.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

/// A server on loopback, with its data in a directory.
#[derive(Debug)]
pub struct Server {
    script: PathBuf,
    dir: PathBuf,
    /// The port it listens on.
    pub port: u16,
}

impl Server {
    /// The server that `script start dir` has started.
    ///
    /// # Errors
    ///
    /// If its port is not to be read.
    pub fn started(script: &Path, dir: &Path) -> io::Result<Self> {
        let port = std::fs::read_to_string(dir.join("port"))?.trim().parse().map_err(io::Error::other)?;
        Ok(Self { script: script.to_owned(), dir: dir.to_owned(), port })
    }

    /// Ends the server at once, waits, and starts it again.
    ///
    /// # Errors
    ///
    /// If its script fails.
    pub async fn restart_after(&self, down: Duration) -> io::Result<()> {
        self.run("stop").await?;
        tokio::time::sleep(down).await;
        self.run("start").await
    }

    async fn run(&self, verb: &str) -> io::Result<()> {
        let status = Command::new(&self.script).arg(verb).arg(&self.dir).status().await?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("server {verb}: {status}"))) }
    }
}

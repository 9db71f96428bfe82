//! Workers that are processes of their own, so that they can be killed.

use std::collections::BTreeMap;
use std::io;

use tokio::process::{Child, Command};

/// Running workers, by name. They are killed when this is dropped.
#[derive(Debug)]
pub struct Workers {
    args: Vec<String>,
    running: BTreeMap<String, Child>,
}

impl Workers {
    /// Starts one worker for each name: this program again, as `worker NAME` and then `args`.
    ///
    /// # Errors
    ///
    /// If the program cannot be started.
    pub fn start(names: &[&str], args: Vec<String>) -> io::Result<Self> {
        let mut workers = Self { args, running: BTreeMap::new() };
        for name in names {
            workers.spawn(name)?;
        }
        Ok(workers)
    }

    /// Kills one worker with SIGKILL, so that it cannot clean up, and starts it again.
    ///
    /// # Errors
    ///
    /// If there is no such worker, or it cannot be killed or started.
    pub async fn kill(&mut self, name: &str) -> io::Result<()> {
        self.running.get_mut(name).ok_or(io::ErrorKind::NotFound)?.kill().await?;
        self.spawn(name)
    }

    /// Ends if a worker ended by itself.
    ///
    /// # Errors
    ///
    /// If there is one.
    pub fn check(&mut self) -> io::Result<()> {
        for (name, child) in &mut self.running {
            if let Some(status) = child.try_wait()? {
                return Err(io::Error::other(format!("worker {name} ended: {status}")));
            }
        }
        Ok(())
    }

    fn spawn(&mut self, name: &str) -> io::Result<()> {
        let child = Command::new(std::env::current_exe()?)
            .args(["worker", name])
            .args(&self.args)
            .kill_on_drop(true)
            .spawn()?;
        self.running.insert(name.to_owned(), child);
        Ok(())
    }
}

//! Waits for the readers of named pipes that a run writes to. Opening such a pipe blocks until it has a
//! reader, and signals have to be handled meanwhile.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use minder::Signal;
use minder::guard::ProcessGuard;
use minder::poll::{Events, Interest, Poller, Token};
use minder_os::files::{is_fifo, open_fifo_now};

use crate::config::RunConfig;

/// The interval between two checks whether a pipe has a reader.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A signal ended the run before its first job.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted(pub Signal);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted before the first job")
    }
}

impl Error for Interrupted {}

/// Waits until each named pipe has a reader. Returns the open pipes: while they are open, their readers see
/// no end.
///
/// # Errors
/// [`Interrupted`], or a pipe cannot be opened.
pub(crate) fn wait_for_readers(config: &RunConfig, guard: &mut ProcessGuard) -> Result<Vec<File>> {
    let table = config.files.table().and_then(|(_, path, _)| path);
    let paths = [config.record.joblog.as_deref(), table.map(AsRef::as_ref)];
    let is_pipe = |path: &&Path| std::fs::metadata(path).is_ok_and(|metadata| is_fifo(&metadata));
    paths.into_iter().flatten().filter(is_pipe).map(|path| wait_for_reader(path, guard)).collect()
}

fn wait_for_reader(path: &Path, guard: &mut ProcessGuard) -> Result<File> {
    let cannot = || format!("cannot write `{}`", path.display());
    let poller = Poller::new()?;
    poller.add(&guard.signals(), Token(0), Interest::READABLE)?;
    let mut events = Events::new();
    loop {
        if let Some(pipe) = open_fifo_now(path).with_context(cannot)? {
            return Ok(pipe);
        }
        poller.wait(&mut events, Some(CHECK_INTERVAL))?;
        while let Some(signal) = guard.next_signal() {
            match signal {
                Signal::TSTP => guard.suspend_self(),
                Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                    return Err(Interrupted(signal).into());
                }
                _ => (),
            }
        }
    }
}

//! The coordinator's thread that reads the arguments, and writes them where agents find them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder_cluster::spool::SpoolWriter;
use minder_os::sync::Mutex;
use minder_record::event::OsBytes;

use crate::input::{ArgumentReader, JobArgs};
use crate::text::format_error;

/// Agents see new jobs after this time or this number of jobs, whichever comes first.
const PUBLISH_TIME: Duration = Duration::from_millis(100);
const PUBLISH_JOBS: u64 = 4096;

/// The spool of a run, and the thread that fills it.
#[derive(Clone, Debug)]
pub(crate) struct Spooler(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// `None` once the input has ended: its files are closed then.
    spool: Option<SpoolWriter>,
    published: Instant,
    /// Why the input could not be read to its end.
    error: Option<String>,
}

impl Spooler {
    /// Starts the thread. It is never joined: a read may block for ever.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(arguments: ArgumentReader, spool: SpoolWriter) -> Result<Self> {
        let spooler = Self::new(spool);
        let own = spooler.clone();
        let thread = std::thread::Builder::new().name("minder-spool".to_owned()).stack_size(256 << 10);
        let work = move || {
            if let Err(error) = own.copy(arguments) {
                own.0.lock().error = Some(format_error(&error));
            }
        };
        thread.spawn(work).context("cannot start a thread for the input")?;
        Ok(spooler)
    }

    /// Fills a spool before any agent starts.
    ///
    /// # Errors
    /// The input cannot be read to its end, or the spool cannot be written.
    pub(crate) fn fill(arguments: ArgumentReader, spool: SpoolWriter) -> Result<()> {
        Self::new(spool).copy(arguments)
    }

    fn new(spool: SpoolWriter) -> Self {
        let state = State { spool: Some(spool), published: Instant::now(), error: None };
        Self(Arc::new(Mutex::new(state)))
    }

    fn copy(&self, mut arguments: ArgumentReader) -> Result<()> {
        // The lock is not held while the input is read.
        while let Some(item) = arguments.next_arguments()? {
            let state = &mut *self.0.lock();
            let Some(spool) = &mut state.spool else { break };
            match item {
                JobArgs::Columns(columns) => {
                    let columns = columns.iter().map(|column| OsBytes::from(column.as_os_str()));
                    spool.push(&columns.collect::<Vec<_>>())?;
                }
                JobArgs::Unfit(why) => _ = spool.push_unfit(why.encode().as_bytes())?,
            }
            if spool.unpublished() >= PUBLISH_JOBS {
                spool.publish(false)?;
                state.published = Instant::now();
            }
        }
        let state = &mut *self.0.lock();
        state.spool.take().map_or(Ok(()), |mut spool| Ok(spool.publish(true)?))
    }

    /// Lets agents see what was read, unless that was done a moment ago.
    ///
    /// # Errors
    /// The input cannot be read to its end, or the spool cannot be written.
    pub(crate) fn publish(&self) -> Result<()> {
        let state = &mut *self.0.lock();
        if let Some(error) = state.error.take() {
            bail!(error);
        }
        if state.published.elapsed() >= PUBLISH_TIME
            && let Some(spool) = &mut state.spool
            && spool.unpublished() > 0
        {
            spool.publish(false)?;
            state.published = Instant::now();
        }
        Ok(())
    }
}

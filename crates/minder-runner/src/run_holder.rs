//! This process as the holder of a run: the coordinator that shows the output of its agents.
//!
//! A thread writes beats. If this process is not the holder any more, or cannot show that it works, another
//! coordinator may show the output. Then this process ends at once. Its agents continue.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::Signal;
use minder_cluster::beat::{INTERVAL, Watch};
use minder_cluster::holder::{self, Holder, LastHolder, Who};
use minder_os::sync::{Condvar, Mutex};

use crate::exit_status;
use crate::notice::Notice;
use crate::observer::Observer;
use crate::reader_wait::Interrupted;
use crate::text::os_error_text;

/// The time between two looks at another holder.
const PAUSE: Duration = Duration::from_millis(200);
/// The time that the last message may take.
const LAST_TIMEOUT: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct RunHolder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    run: PathBuf,
    lost_after: Duration,
    /// `None` once this process has ended its work.
    holder: Mutex<Option<Holder>>,
    /// Notified when it has.
    ended: Condvar,
    /// The time of the last beat. Not behind the other lock, which is held while a beat is written.
    beaten: Mutex<Instant>,
}

impl RunHolder {
    /// Becomes the holder of a run, whose lock this process has. Waits until a holder on another machine has
    /// ended, or counts as lost.
    ///
    /// # Errors
    /// The other holder works, a file cannot be written, or a signal has ended the run ([`Interrupted`]).
    pub(crate) fn become_holder(
        run: &Path,
        lost_after: Duration,
        observer: &dyn Observer,
        interrupted: &mut dyn FnMut() -> Option<Signal>,
    ) -> Result<Self> {
        let own = Who::this_process(env!("CARGO_PKG_VERSION"));
        let mut other: Option<(u64, Option<u64>, Watch)> = None;
        loop {
            let last = holder::last(run, &own).with_context(|| cannot(run))?;
            let is_free = match &last {
                LastHolder::None | LastHolder::Over(_) | LastHolder::Here(..) => true,
                LastHolder::Elsewhere(number, who) => {
                    let now = Instant::now();
                    let beat = holder::beat_of(run, *number).with_context(|| cannot(run))?;
                    if other.as_ref().is_none_or(|(known, ..)| known != number) {
                        let line = format!("waiting to see whether {} still works", name(run, who.as_ref()));
                        observer.notice(&Notice::Condition { line });
                        other = Some((*number, beat.map(|beat| beat.count), Watch::new(now)));
                    }
                    let Some((_, first, watch)) = &mut other else { continue };
                    watch.observe(beat, now);
                    if beat.map(|beat| beat.count) != *first {
                        bail!(in_use(run, who.as_ref()));
                    }
                    watch.is_lost(now, lost_after)
                }
            };
            if is_free && let Some(holder) = Holder::make(run, &last, &own).with_context(|| cannot(run))? {
                return Ok(Self(Arc::new(Shared {
                    run: run.to_owned(),
                    lost_after,
                    holder: Mutex::new(Some(holder)),
                    ended: Condvar::new(),
                    beaten: Mutex::new(Instant::now()),
                })));
            }
            if let Some(signal) = interrupted() {
                return Err(Interrupted(signal).into());
            }
            minder_os::time::pause(PAUSE, None);
        }
    }

    /// Starts the thread that writes beats. It is never joined: a write may block for long.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start_beats(&self, observer: &Arc<dyn Observer>) -> Result<()> {
        let shared = Arc::clone(&self.0);
        let observer = Arc::clone(observer);
        let thread = thread::Builder::new().name("minder-holder".to_owned()).stack_size(256 << 10);
        thread.spawn(move || shared.beat(&observer)).map(drop).context("cannot start a thread")
    }

    /// Ends this process if another one may be the holder by now, for example since this one was stopped.
    /// Called before output is shown.
    pub(crate) fn check(&self, observer: &Arc<dyn Observer>) {
        if self.0.beaten.lock().elapsed() >= self.0.lost_after / 2 {
            self.0.lose("it could not show that it works", observer);
        }
    }
}

impl Drop for RunHolder {
    /// The next coordinator need not wait.
    fn drop(&mut self) {
        let holder = self.0.holder.lock().take();
        self.0.ended.notify_all();
        // The directory may have been removed. Then there is nothing to hold.
        let _ = holder.map(Holder::end);
    }
}

impl Shared {
    fn beat(&self, observer: &Arc<dyn Observer>) {
        let interval = (self.lost_after / 12).min(INTERVAL);
        let silence_max = self.lost_after / 2;
        loop {
            let holder = self.holder.lock();
            let mut holder = self.ended.wait_timeout_while(holder, interval, |holder| holder.is_some());
            let Some(holder) = holder.as_mut() else { return };
            if self.beaten.lock().elapsed() >= silence_max {
                self.lose("it could not show that it works", observer);
            }
            let why = match holder.is_last() {
                Ok(false) => self.lose("another minder has taken it over", observer),
                Ok(true) => holder.beat.beat(0, 0).err(),
                Err(error) => Some(error),
            };
            match why {
                None => *self.beaten.lock() = Instant::now(),
                Some(error) if self.beaten.lock().elapsed() + interval >= silence_max => {
                    let why = os_error_text(&error);
                    self.lose(&format!("it could not show that it works: {why}"), observer);
                }
                Some(_) => (),
            }
        }
    }

    /// Says why this process ends, and ends it. Nothing more is shown or recorded.
    fn lose(&self, why: &str, observer: &Arc<dyn Observer>) -> ! {
        let run = id(&self.run);
        let line = format!("this minder does not work on run {run} any more: {why} (minder attach {run})");
        let (done, is_done) = mpsc::channel();
        let observer = Arc::clone(observer);
        let report = move || {
            observer.notice(&Notice::Condition { line });
            let _ = done.send(());
        };
        // A reader of the messages may take nothing.
        if thread::Builder::new().spawn(report).is_ok() {
            let _ = is_done.recv_timeout(LAST_TIMEOUT);
        }
        std::process::exit(i32::from(exit_status::OTHER))
    }
}

/// Returns the message for a run that another coordinator works on, if it has said so.
pub(crate) fn used_by_other(run: &Path) -> Option<String> {
    match holder::newest(run).ok()?? {
        (number, false) => Some(in_use(run, Some(&holder::who(run, number).ok()??))),
        (_, true) => None,
    }
}

fn in_use(run: &Path, who: Option<&Who>) -> String {
    let run = id(run);
    match who {
        Some(Who { node, pid, .. }) => {
            format!("run {run} is in use by another minder on {node} (pid {pid})")
        }
        None => format!("run {run} is in use by another minder"),
    }
}

fn name(run: &Path, who: Option<&Who>) -> String {
    let run = id(run);
    match who {
        Some(Who { node, pid, .. }) => format!("the minder of run {run} on {node} (pid {pid})"),
        None => format!("another minder of run {run}"),
    }
}

fn cannot(run: &Path) -> String {
    format!("cannot hold run {}", id(run))
}

fn id(run: &Path) -> String {
    run.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

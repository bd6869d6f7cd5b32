//! The set of this Emacs, its guardian, and what Lisp has not taken yet.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use minder::frame::FrameFormat;
use minder::guard::{Guardian, GuardianOptions};
use minder::{
    BackgroundSet, BackgroundSetOptions, ChildId, ChildSetOptions, Command, ErrorKind, Group, Size,
    SpawnOptions, Stdio, Termination,
};

use crate::env::{Failure, Result};
use crate::notifier::Notifier;
use crate::output::{Item, Outbox};
use crate::system::{self, Channel};

/// The most bytes of output of one child that wait for Emacs.
const CHILD_BYTES: usize = 2 << 20;
/// The most bytes of output of all children that wait for Emacs.
const ALL_BYTES: usize = 16 << 20;
/// The most bytes that wait to be written to one child.
const INPUT_BYTES: usize = 1 << 20;

/// Everything behind the functions of the module.
#[derive(Debug)]
pub(crate) struct Host {
    set: BackgroundSet,
    guardian: Option<Guardian>,
    notifier: Notifier,
    outbox: Mutex<Outbox>,
}

/// The options with which a child is started.
#[derive(Debug)]
pub(crate) struct Start {
    /// The program and its arguments.
    pub(crate) command: Vec<Vec<u8>>,
    pub(crate) directory: Vec<u8>,
    /// `NAME=VALUE`; the first one of a name counts, and a name alone is not in the environment.
    pub(crate) environment: Vec<Vec<u8>>,
    pub(crate) terminal: Option<Size>,
    pub(crate) separate_stderr: bool,
    pub(crate) framing: Option<FrameFormat>,
}

/// The numbers that [`Host::statistics`] returns.
#[derive(Debug)]
pub(crate) struct Statistics {
    pub(crate) children: usize,
    pub(crate) queued_bytes: usize,
    pub(crate) guardian: Option<u32>,
    pub(crate) error: Option<String>,
}

static HOST: Mutex<Option<Arc<Host>>> = Mutex::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ignores that a child is done, which Lisp may not have heard yet.
fn unless_gone(result: minder::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != ErrorKind::Unknown => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns the host, if it was started.
pub(crate) fn current() -> Result<Arc<Host>> {
    let host = locked(&HOST).clone();
    host.ok_or_else(|| Failure::text("the set of children was not started"))
}

/// Returns whether a host was started and not stopped.
pub(crate) fn is_started() -> bool {
    locked(&HOST).is_some()
}

/// Starts the host. Emacs reads the other end of `channel`.
pub(crate) fn start(channel: Channel, guardian: Option<OsString>) -> Result<()> {
    let (host, _) = system::made_high(|| Host::start(channel, guardian));
    *locked(&HOST) = Some(Arc::new(host?));
    Ok(())
}

/// Kills all children, and stops the host.
pub(crate) fn stop() -> Result<()> {
    let host = locked(&HOST).take();
    let Some(host) = host else { return Ok(()) };
    let stopped = host.set.clone().stop(Duration::ZERO);
    host.notifier.request_next(0);
    Ok(stopped?)
}

impl Host {
    fn start(channel: Channel, guardian: Option<OsString>) -> Result<Self> {
        let guardian = match guardian {
            Some(program) => {
                let config = GuardianOptions::new().program(program).restart(true);
                Some(Guardian::start(&config)?)
            }
            None => None,
        };
        let mut children = ChildSetOptions::new().max_child_bytes(CHILD_BYTES).max_buffered_bytes(ALL_BYTES);
        if let Some(guardian) = &guardian {
            children = children.guardian(guardian);
        }
        let config = BackgroundSetOptions::new().set(children).max_input_bytes(INPUT_BYTES);
        let set = BackgroundSet::new(config)?;
        let notifier = Notifier::start(&set, channel).map_err(|error| {
            Failure::text(format!("cannot start the thread that notifies Emacs of events: {error}"))
        })?;
        Ok(Self { set, guardian, notifier, outbox: Mutex::default() })
    }

    /// Starts a child, and returns its number and its pid.
    pub(crate) fn spawn(&self, start: Start) -> Result<(u64, u32)> {
        let framing = start.framing;
        let has_terminal = start.terminal.is_some();
        let command = start.into_command()?;
        let (spawned, limit) = system::made_high(|| self.set.spawn(&command, SpawnOptions::new()));
        let id = spawned?;
        let pid = self.set.pid(id)?;
        system::restore_limit(pid, limit);
        if has_terminal {
            system::prepare_terminal(pid);
        }
        if let Some(format) = framing {
            // Output is taken by this thread of Emacs alone, so none was taken yet.
            locked(&self.outbox).decode(id.as_u64(), format);
        }
        Ok((id.as_u64(), pid))
    }

    /// Queues bytes for the input of a child. Returns how many, or `None` if it has no input any more.
    pub(crate) fn write(&self, child: u64, bytes: &[u8]) -> Option<usize> {
        self.set.write(ChildId::from_u64(child), bytes).ok()
    }

    pub(crate) fn close_stdin(&self, child: u64) -> Result<()> {
        unless_gone(self.set.close_stdin(ChildId::from_u64(child)))
    }

    /// Kills a child with everything that it started, after this time for it to exit.
    pub(crate) fn kill(&self, child: u64, grace: Duration) -> Result<()> {
        let how = if grace.is_zero() { Termination::IMMEDIATE } else { Termination::graceful(grace) };
        unless_gone(self.set.kill(ChildId::from_u64(child), how))
    }

    /// Sends a signal to the process group of a child. Returns whether it is there.
    pub(crate) fn signal(&self, child: u64, signal: i32) -> Result<bool> {
        let Ok(pid) = self.set.pid(ChildId::from_u64(child)) else { return Ok(false) };
        system::send_to_group(pid, signal)
            .map_err(|error| Failure::text(format!("cannot send signal {signal} to process {pid}: {error}")))
    }

    pub(crate) fn suspend(&self, child: u64) -> Result<()> {
        unless_gone(self.set.suspend(ChildId::from_u64(child)))
    }

    pub(crate) fn resume(&self, child: u64) -> Result<()> {
        unless_gone(self.set.resume(ChildId::from_u64(child)))
    }

    /// Keeps the events of a child in the set, or lets them come.
    pub(crate) fn pause(&self, child: u64, is_paused: bool) -> Result<()> {
        let id = ChildId::from_u64(child);
        if is_paused {
            return unless_gone(self.set.pause_events(id));
        }
        unless_gone(self.set.resume_events(id))?;
        // Lisp may have kept events from before the pause, of which the set does not notify.
        self.notifier.request_now();
        Ok(())
    }

    pub(crate) fn resize(&self, child: u64, size: Size) -> Result<()> {
        unless_gone(self.set.resize_terminal(ChildId::from_u64(child), size))
    }

    /// Returns the next item. Takes at most this many bytes from the set if none is left.
    pub(crate) fn next(&self, max_bytes: usize) -> Option<Item> {
        let mut outbox = locked(&self.outbox);
        outbox.fill(&self.set, max_bytes);
        outbox.pop()
    }

    /// Returns the next item of those that were taken from the set.
    pub(crate) fn next_taken(&self) -> Option<Item> {
        locked(&self.outbox).pop()
    }

    /// Keeps an item that could not be handed over for the next call.
    pub(crate) fn put_back(&self, item: Item) {
        locked(&self.outbox).unpop(item);
    }

    /// Requests a notification of the events that are not taken yet. Lisp has just taken this many
    /// bytes.
    pub(crate) fn request_notification(&self, taken_bytes: usize) {
        if locked(&self.outbox).is_empty() {
            self.notifier.request_next(taken_bytes);
        } else {
            self.notifier.request_now();
        }
    }

    /// Makes another pipe process get the notifications.
    pub(crate) fn attach(&self, channel: Channel) {
        self.notifier.attach(channel);
    }

    pub(crate) fn statistics(&self) -> Statistics {
        Statistics {
            children: self.set.len(),
            queued_bytes: self.set.buffered_bytes(),
            guardian: self.guardian.as_ref().and_then(Guardian::pid),
            error: self.set.take_error().map(|error| error.to_string()),
        }
    }
}

impl Start {
    fn into_command(self) -> Result<Command> {
        let mut words = self.command.into_iter().map(system::os_string);
        let Some(program) = words.next() else {
            return Err(Failure::text("cannot start a child: the command is empty"));
        };
        let mut command = Command::new(program);
        command.args(words).current_dir(system::os_string(self.directory)).env_clear();
        // The first one of a name counts, so it is set last.
        for mut entry in self.environment.into_iter().rev() {
            match entry.iter().position(|byte| *byte == b'=') {
                Some(at) => {
                    let value = entry.split_off(at + 1);
                    entry.pop();
                    command.env(system::os_string(entry), system::os_string(value));
                }
                None => {
                    command.env_remove(system::os_string(entry));
                }
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if self.separate_stderr {
            command.stderr(Stdio::piped());
        } else {
            command.stderr_to_stdout();
        }
        command.group(self.terminal.map_or(Group::Session, Group::Terminal));
        Ok(command)
    }
}

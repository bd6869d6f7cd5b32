//! What a caller does with one child, or all, while they run: write to it, signal it, suspend it, kill it,
//! start it again, and choose what happens with its output.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::child_set::ChildSet;
use super::event_loop::child_gone;
use super::restart;
use super::slab::Endpoint;
use super::timers::INTERVAL_MIN;
use crate::child_pipes::resize_failed;
use crate::event::{ChildId, Stream};
use crate::group::Size;
use crate::sys::signal::Signal;
use crate::termination::Termination;
use crate::{Error, ErrorKind, Operation, Result};

impl ChildSet {
    /// Writes as many bytes to the child's standard input as there is room for, and returns how many.
    /// If that is not all, [`Event::Writable`](crate::Event::Writable) reports that there is room
    /// again. Never blocks.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, Stdio};
    ///
    /// let mut command = Command::new("wc");
    /// command.arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped());
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&command, SpawnOptions::new())?;
    /// let bytes = vec![b'x'; 200_000]; // more than a pipe takes at once
    /// let mut written = set.write(child, &bytes)?;
    /// while written < bytes.len() {
    ///     if let Some(Event::Writable { .. }) = set.next_event(None)?.into_event() {
    ///         written += set.write(child, &bytes[written..])?;
    ///     }
    /// }
    /// set.close_stdin(child)?;
    /// let mut count = Vec::new();
    /// set.wait_all(None, |event| {
    ///     if let Event::Output { chunk, .. } = event {
    ///         count.extend_from_slice(&chunk);
    ///     }
    /// })?;
    /// assert_eq!(count.trim_ascii(), b"200000");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done or has no such pipe.
    /// - Any other kind: the child closed its input. [`io_error`](Error::io_error) is then
    ///   `BrokenPipe`, and `SIGPIPE` is not raised.
    pub fn write(&mut self, id: ChildId, bytes: &[u8]) -> Result<usize> {
        let mut member = self.event_loop.find(id)?;
        if !member.child.input.is_writable() {
            return Err(child_gone());
        }
        let pid = member.child.process.pid();
        let key = Endpoint::Stdin.key(id);
        let written = member.child.input.write(&mut member.shared.io.reactor, key, pid, bytes)?;
        if member.poll_input_later(INTERVAL_MIN) {
            // The bytes are written, so an error is left to the next call that updates the handle.
            let _ = self.update_poll_handle();
        }
        Ok(written)
    }

    /// Closes the child's standard input. Without effect if it has none. A
    /// [terminal](crate::Group::Terminal) gets its end-of-file character, usually Ctrl-D: a program that
    /// reads lines takes it for the end, once. One that drops the input of its terminal does not get it.
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    pub fn close_stdin(&mut self, id: ChildId) -> Result<()> {
        let mut member = self.event_loop.find(id)?;
        let reader = member.child.output.stream(Stream::Stdout).reader();
        let is_terminal = reader.is_some_and(|reader| reader.is_terminal());
        let reactor = &mut member.shared.io.reactor;
        if !is_terminal {
            return member.child.input.close(reactor);
        }
        member.child.input.end_terminal(reactor, Endpoint::Stdin.key(id))?;
        if member.poll_input_later(INTERVAL_MIN) { self.update_poll_handle() } else { Ok(()) }
    }

    /// Kills a child and what it started, at once or after asking: see [`Termination`].
    ///
    /// The child's [`Event::Done`](crate::Event::Done) comes when its whole tree has exited. Without
    /// effect on a tree that has exited. A [suspended](Self::suspend) child is resumed, so that it can
    /// handle the signal. A child with a [`RestartPolicy`](crate::RestartPolicy) is not started again.
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `PermissionDenied`: the child runs as another user.
    pub fn kill(&mut self, id: ChildId, how: Termination) -> Result<()> {
        let killed = self.event_loop.find(id)?.kill(how, None);
        self.update_poll_handle()?;
        killed
    }

    /// Kills all children: see [`kill`](Self::kill). Tries every child, and returns the first error.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, SpawnOptions, Termination};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// for _ in 0..3 {
    ///     set.spawn(Command::new("sleep").arg("60"), SpawnOptions::new())?;
    /// }
    /// set.kill_all(Termination::graceful(Duration::from_secs(5)))?;
    /// assert!(set.wait_all(None, drop)?);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn kill_all(&mut self, how: Termination) -> Result<()> {
        let killed = self.event_loop.kill_all(how);
        self.update_poll_handle()?;
        killed
    }

    /// Sends one signal to the process group of a child, as [`Child::signal`](crate::Child::signal) does: for
    /// servers that read their settings again at `SIGHUP`. It does not count as a [`kill`](Self::kill): the
    /// child's restart policy stays in force, and [`Outcome::killed`](crate::Outcome::killed) stays `false`
    /// even if the child dies of it.
    ///
    /// - A child that has exited and is not done: what is left of its group gets the signal.
    /// - A child that waits to be [started again](crate::SpawnOptions::restart): without effect. Its next run
    ///   reads its settings anyway.
    /// - A [suspended](Self::suspend) child that has stopped handles the signal when it is resumed, and
    ///   `SIGKILL` at once. [`resume`](Self::resume) continues it; the set does not notice a `SIGCONT`.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, OutputMode, Signal, SpawnOptions, Stdio};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "trap 'echo reloaded; exit' HUP; echo ready; while :; do sleep 1; done"]);
    /// command.stdout(Stdio::piped());
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let server = set.spawn(&command, SpawnOptions::new().output_mode(OutputMode::Stream))?;
    /// let mut output = Vec::new();
    /// while let Some(event) = set.next_event(None)?.into_event() {
    ///     if let Event::Output { chunk, .. } = event {
    ///         output.extend_from_slice(&chunk);
    ///         if output == b"ready\n" {
    ///             set.signal(server, Signal::HUP)?;
    ///         }
    ///     }
    /// }
    /// assert_eq!(output, b"ready\nreloaded\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `PermissionDenied`: the child runs as another user.
    /// - `InvalidInput`: the number is not a signal of this operating system.
    /// - `Unsupported`: on Windows.
    pub fn signal(&mut self, id: ChildId, signal: Signal) -> Result<()> {
        let child = self.event_loop.find(id)?.child;
        child.process.check();
        if !child.tree.can_signal(&child.process) {
            return Ok(());
        }
        child.tree.signal_group(&child.process, signal.as_raw()).map_err(|error| {
            let subject = child.process.pid().to_string();
            Error::new("signal", error).during(Operation::Kill).with_subject(subject)
        })
    }

    /// Suspends a child with everything that it started, until [`resume`](Self::resume).
    ///
    /// The processes that a [`Termination`] would kill receive `SIGSTOP`. No
    /// [`Event::Stopped`](crate::Event::Stopped) reports that. While the child is suspended, its
    /// deadline does not run and its outputs do not count as silent
    /// ([`ChildSetOptions::leak_timeout`](crate::ChildSetOptions::leak_timeout)). Output that it wrote
    /// before is still handed over. A child whose run has ended, or is being killed, is not
    /// [started again](crate::SpawnOptions::restart) before it is resumed. Otherwise without
    /// effect on a child that is suspended, that is being killed, or that is done except for its last events.
    ///
    /// Dropping a set leaves suspended children suspended: resume them first.
    ///
    /// - Windows: always `Unsupported`.
    /// - Unix other than Linux: only the child's process group is stopped. With
    ///   [`Group::Inherit`](crate::Group::Inherit) that is the child alone.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, SpawnOptions, Termination};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(Command::new("sleep").arg("60"), SpawnOptions::new())?;
    /// set.suspend(child)?;
    /// assert!(!set.wait_all(Some(Duration::from_millis(10)), drop)?);
    /// assert!(set.suspended_time(child)? >= Duration::from_millis(10));
    /// set.resume(child)?;
    /// // All children, as when the user presses Ctrl-Z:
    /// set.suspend_all()?;
    /// set.resume_all()?;
    /// set.kill(child, Termination::IMMEDIATE)?;
    /// assert!(set.wait_all(None, drop)?);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `PermissionDenied`: the child runs as another user.
    /// - `Unsupported`: the operating system cannot suspend processes.
    pub fn suspend(&mut self, id: ChildId) -> Result<()> {
        self.event_loop.find(id)?.child.suspend()
    }

    /// Resumes a child that was [suspended](Self::suspend) (`SIGCONT`), with as much time until its
    /// deadline as it had. Without effect on any other child.
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `PermissionDenied`: the child runs as another user.
    pub fn resume(&mut self, id: ChildId) -> Result<()> {
        self.event_loop.find(id)?.resume()?;
        self.update_poll_handle()
    }

    /// Suspends all children: see [`suspend`](Self::suspend). Tries every child, and returns the
    /// first error.
    ///
    /// # Errors
    /// As [`suspend`](Self::suspend).
    pub fn suspend_all(&mut self) -> Result<()> {
        self.event_loop.for_each(|member| member.child.suspend())
    }

    /// Resumes all children: see [`resume`](Self::resume). Tries every child, and returns the first
    /// error.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn resume_all(&mut self) -> Result<()> {
        let resumed = self.event_loop.for_each(|mut member| member.resume());
        self.update_poll_handle()?;
        resumed
    }

    /// Changes or removes the deadline of a child: see
    /// [`SpawnOptions::deadline`](crate::SpawnOptions::deadline).
    ///
    /// A deadline that has passed kills the child in the next call of [`next_event`](Self::next_event).
    /// A kill that a deadline caused before is not taken back. For a suspended child, the time from now
    /// to the deadline is what it has left when it is resumed.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, Termination};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let in_an_hour = Instant::now() + Duration::from_secs(3600);
    /// let options = SpawnOptions::new().deadline(in_an_hour, Termination::IMMEDIATE);
    /// let child = set.spawn(Command::new("sleep").arg("60"), options)?;
    /// set.set_deadline(child, Some((Instant::now(), Termination::IMMEDIATE)))?;
    /// set.wait_all(None, |event| {
    ///     if let Event::Done { outcome, .. } = event {
    ///         assert!(outcome.timed_out);
    ///     }
    /// })?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    pub fn set_deadline(&mut self, id: ChildId, deadline: Option<(Instant, Termination)>) -> Result<()> {
        let mut member = self.event_loop.find(id)?;
        member.child.options.deadline = deadline;
        member.child.suspension.restart(Instant::now());
        member.arm_deadline();
        self.event_loop.prune_timers();
        self.update_poll_handle()
    }

    /// Returns how long a child has been [suspended](Self::suspend) so far.
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    pub fn suspended_time(&self, id: ChildId) -> Result<Duration> {
        let child = self.event_loop.children.get(id).ok_or_else(child_gone)?;
        Ok(child.suspension.total())
    }

    /// Kills a child with everything that it started, and starts it again as soon as all of them have
    /// exited. The number of restarts in a row begins again. A child that waits for its next start is
    /// started now.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, Restart, SpawnOptions, Termination};
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let options = SpawnOptions::new().restart(Restart::Always);
    /// let server = set.spawn(Command::new("sleep").arg("60"), options)?;
    /// let first_pid = set.pid(server)?;
    /// set.restart(server, Termination::IMMEDIATE)?; // its configuration has changed
    /// while let Some(event) = set.next_event(None)?.into_event() {
    ///     if let Event::Restarted { child, pid, .. } = event {
    ///         assert!(child == server && pid != first_pid);
    ///         set.kill(server, Termination::IMMEDIATE)?; // for good
    ///     }
    /// }
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`kill`](Self::kill), and:
    ///
    /// - `InvalidInput`: the child was started without a [`RestartPolicy`](crate::RestartPolicy), or
    ///   with [`Restart::Never`](crate::Restart::Never).
    pub fn restart(&mut self, id: ChildId, how: Termination) -> Result<()> {
        let restarted = restart::restart(&mut self.event_loop.find(id)?, how);
        self.update_poll_handle()?;
        restarted
    }

    /// Hands a child's output over as it arrives from now on, after the output that is kept.
    ///
    /// The child blocks while there is no room in memory. Without effect on a child that is done
    /// except for its last events.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, OutputMode, OverflowPolicy};
    /// use minder::{SpawnOptions, Stdio};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo text; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    /// let options = SpawnOptions::new().output_mode(OutputMode::AtExit).overflow(OverflowPolicy::Spill);
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&command, options)?;
    /// set.start_streaming(child)?; // its turn to be shown has come
    /// while let Some(event) = set.next_event(None)?.into_event() {
    ///     if let Event::Output { chunk, .. } = event {
    ///         assert_eq!(*chunk, *b"text\n", "it arrives while the child waits for its input");
    ///         set.close_stdin(child)?;
    ///     }
    /// }
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    pub fn start_streaming(&mut self, id: ChildId) -> Result<()> {
        let mut member = self.event_loop.find(id)?;
        if member.child.is_draining() || member.child.output.is_streaming() {
            return Ok(());
        }
        member.start_streaming()?;
        // An error of a spill file, of this child or another, is not lost: the next call of `next_event`
        // tries again and reports it.
        let _ = self.event_loop.retry_paused();
        self.update_poll_handle()
    }

    /// Forwards the bytes of an output to `file` as they arrive, after the output that is kept was
    /// handed over. [`Event::Forwarded`](crate::Event::Forwarded) counts them.
    ///
    /// On Linux the bytes move from pipe to pipe by splice(2), without a copy through our memory; both
    /// pipes are enlarged to 1 MiB. If the kernel or the file refuses, now or later, the output
    /// arrives as [`Event::Output`](crate::Event::Output) again, so the caller must be ready to write it.
    ///
    /// If the file accepts no bytes, the set waits for it, at most 100 ms in each call of
    /// [`next_event`](Self::next_event).
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, Stdio, Stream};
    /// use std::io::Write;
    /// use std::sync::Arc;
    ///
    /// let mut command = Command::new("echo");
    /// command.arg("text").stdout(Stdio::piped());
    /// let (reader, writer) = std::io::pipe()?; // in place of our standard output
    /// let writer = Arc::new(std::fs::File::from(std::os::fd::OwnedFd::from(writer)));
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&command, SpawnOptions::new())?;
    /// set.forward(child, Stream::Stdout, &writer)?;
    /// let mut forwarded = 0;
    /// while let Some(event) = set.next_event(None)?.into_event() {
    ///     match event {
    ///         Event::Forwarded { count, .. } => forwarded += count,
    ///         // The kernel refused: the bytes come here.
    ///         Event::Output { chunk, .. } => (&*writer).write_all(&chunk)?,
    ///         _ => (),
    ///     }
    /// }
    /// assert!(forwarded == 5 || forwarded == 0);
    /// drop((set, writer));
    /// assert_eq!(std::io::read_to_string(reader)?, "text\n");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `InvalidInput`: the child's output is not handed over as it arrives.
    pub fn forward(&mut self, id: ChildId, stream: Stream, file: &Arc<File>) -> Result<()> {
        let child = self.event_loop.find(id)?.child;
        if !child.output.is_streaming() {
            let reason = "its output is kept until its end: `start_streaming` comes first";
            let error = Error::of_kind(ErrorKind::InvalidInput, "forward the output of a child", reason);
            return Err(error.during(Operation::Forward));
        }
        let state = child.output.stream(stream);
        if let Some(reader) = state.reader()
            && reader.can_forward(file)
        {
            reader.enlarge(Some(file));
            state.forward = Some(Arc::clone(file));
        }
        Ok(())
    }

    /// Sets the size of the child's terminal: see [`Group::Terminal`](crate::Group::Terminal). Its
    /// foreground processes get `SIGWINCH`. A child that is started again gets the size that its command
    /// names.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Group, Size, SpawnOptions, Termination};
    ///
    /// let mut command = Command::new("cat");
    /// command.group(Group::Terminal(Size::default()));
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&command, SpawnOptions::new())?;
    /// set.resize_terminal(child, Size::new(50, 132))?;
    /// set.kill(child, Termination::IMMEDIATE)?;
    /// assert!(set.wait_all(None, drop)?);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done, or its terminal was closed.
    /// - `InvalidInput`: the child has no terminal.
    /// - `Unsupported`: on Windows.
    pub fn resize_terminal(&mut self, id: ChildId, size: Size) -> Result<()> {
        let child = self.event_loop.find(id)?.child;
        let result = match (child.output.stream(Stream::Stdout).reader(), child.input.writer()) {
            (Some(reader), _) => reader.resize_terminal(size),
            (None, Some(writer)) => writer.resize_terminal(size),
            (None, None) => return Err(child_gone()),
        };
        result.map_err(resize_failed)
    }
}

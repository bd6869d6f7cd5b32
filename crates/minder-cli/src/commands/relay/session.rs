//! `Session`: one command, its streams, and the loop of the main thread.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use minder::guard::ProcessGuard;
use minder::poll::{Events, Interest, Poller, Source, Token};
use minder::{Child, ChildStdout, ErrorKind, ExitStatus};
use minder_os::stdio::{StdStream, grow_pipe, std_file, unread_bytes};

use super::buffer::{OutputBuffer, Phase};
use super::streams::{ChildInput, READ_MAX, pass_input, read_output, start, write_output};
use crate::flags::RelayFlags;

/// The time for which the output may be silent after the end of the child. Then a process in the
/// background keeps it open, and is not waited for.
const SILENCE_MAX: Duration = Duration::from_millis(100);
/// The first and the longest pause between two looks at what the reader has not read.
const LINGER_PAUSES: (Duration, Duration) = (Duration::from_micros(500), Duration::from_millis(10));

const SIGNALS: Token = Token(0);
const EXIT: Token = Token(1);
const OUTPUT: Token = Token(2);

/// The place where the output of the child is read.
#[derive(Debug)]
pub(super) enum Output {
    /// By this thread. `is_watched`: the poller reports when there is some.
    Here { stdout: ChildStdout, is_watched: bool },
    /// By another thread.
    Elsewhere,
    /// It has ended, or is not read any longer.
    Closed,
}

/// One command and its streams.
pub(super) struct Session {
    pub(super) guard: ProcessGuard,
    pub(super) child: Child,
    poller: Poller,
    pub(super) output: Output,
    input: Arc<ChildInput>,
    buffer: Arc<OutputBuffer>,
    /// Our standard output.
    stdout: File,
    linger: Duration,
    pub(super) has_terminal: bool,
    /// `true` if the child is in our process group, so that keys of our terminal reach it.
    pub(super) shares_group: bool,
    /// The time and the status of the child's end.
    pub(super) end: Option<(Instant, ExitStatus)>,
    /// `true` if a signal asked to exit after the child had ended.
    pub(super) is_hurried: bool,
    piece: Vec<u8>,
}

impl Session {
    pub(super) fn new(
        guard: ProcessGuard,
        mut child: Child,
        flags: &RelayFlags,
        shares_group: bool,
        buffer: OutputBuffer,
    ) -> Result<Self> {
        let buffer = Arc::new(buffer);
        let poller = Poller::new()?;
        poller.add(&guard.signals(), SIGNALS, Interest::READABLE)?;
        poller.add(Source::process(child.id()), EXIT, Interest::READABLE)?;
        let stdout = std_file(StdStream::Output).context("cannot write to standard output")?;
        grow_pipe(&stdout);
        let to = stdout.try_clone()?;
        let from = Arc::clone(&buffer);
        let waker = poller.waker();
        start("output", move || write_output(&from, &to, &waker))?;
        let input = Arc::new(ChildInput::new(child.stdin.take(), flags.pty));
        if input.is_open() {
            let from = std_file(StdStream::Input)?;
            let to = Arc::clone(&input);
            start("input", move || pass_input(from, &to))?;
        }
        let output = child.stdout.take();
        let mut session = Self {
            guard,
            child,
            poller,
            output: output.map_or(Output::Closed, |stdout| Output::Here { stdout, is_watched: false }),
            input,
            buffer,
            stdout,
            linger: flags.linger,
            has_terminal: flags.pty,
            shares_group,
            end: None,
            is_hurried: false,
            piece: vec![0; READ_MAX],
        };
        session.watch_output(true)?;
        Ok(session)
    }

    /// Relays to the end, and returns how the child ended.
    pub(super) fn run(mut self) -> Result<ExitStatus> {
        let mut events = Events::new();
        let status = loop {
            let room = self.buffer.room();
            self.watch_output(room.is_some())?;
            self.poller.wait_deadline(&mut events, self.silence_deadline())?;
            // Before the exit is seen: a key that ended the child came to us as well, and after the end
            // it would be a request not to wait for the reader.
            self.handle_signals();
            for event in &events {
                match event.token {
                    OUTPUT => self.read_output(room.unwrap_or_default())?,
                    EXIT => self.reap()?,
                    _ => (),
                }
            }
            if self.buffer.phase() == Phase::Closed {
                self.hang_up()?;
            }
            if let Some((_, status)) = self.end
                && self.has_output_ended()
            {
                break status;
            }
        };
        self.close_output()?;
        self.buffer.advance(Phase::Ended);
        self.wait_for_reader(&mut events)?;
        Ok(status)
    }

    /// Lets the poller report output, or not.
    fn watch_output(&mut self, yes: bool) -> Result<()> {
        let Output::Here { stdout, is_watched } = &mut self.output else { return Ok(()) };
        if *is_watched == yes {
            return Ok(());
        }
        if !yes {
            self.poller.delete(&*stdout)?;
            *is_watched = false;
            return Ok(());
        }
        match self.poller.add(&*stdout, OUTPUT, Interest::READABLE) {
            Ok(()) => *is_watched = true,
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                if let Output::Here { stdout, .. } = std::mem::replace(&mut self.output, Output::Elsewhere) {
                    let buffer = Arc::clone(&self.buffer);
                    let waker = self.poller.waker();
                    start("child output", move || read_output(stdout, &buffer, &waker))?;
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Reads once. There is something to read, or the end.
    fn read_output(&mut self, room: usize) -> Result<()> {
        let Output::Here { stdout, .. } = &mut self.output else { return Ok(()) };
        match stdout.read(&mut self.piece[..room.min(READ_MAX)]) {
            Ok(count @ 1..) => self.buffer.push(&self.piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            // A terminal that no process has open any more is an error.
            Ok(0) | Err(_) => self.close_output()?,
        }
        Ok(())
    }

    /// Stops reading, and closes our end of the output.
    fn close_output(&mut self) -> Result<()> {
        self.watch_output(false)?;
        if let Output::Here { .. } = self.output {
            self.output = Output::Closed;
        }
        Ok(())
    }

    fn reap(&mut self) -> Result<()> {
        if self.end.is_some() {
            return Ok(());
        }
        self.poller.delete(Source::process(self.child.id()))?;
        match self.child.try_wait()? {
            Some(exit) => self.end = Some((Instant::now(), exit.status)),
            None => self.poller.add(Source::process(self.child.id()), EXIT, Interest::READABLE)?,
        }
        Ok(())
    }

    /// Returns when a silent output is not waited for any longer.
    fn silence_deadline(&self) -> Option<Instant> {
        let (ended_at, _) = self.end?;
        let is_read = !matches!(self.output, Output::Closed | Output::Here { is_watched: false, .. });
        is_read.then(|| self.buffer.newest_at().max(ended_at) + SILENCE_MAX)
    }

    fn has_output_ended(&self) -> bool {
        let is_closed = matches!(self.output, Output::Closed) || self.buffer.phase() != Phase::Open;
        is_closed || self.is_hurried || self.silence_deadline().is_some_and(|at| Instant::now() >= at)
    }

    /// Lets the child see that the reader is gone: its next write fails, or its terminal hangs up.
    fn hang_up(&mut self) -> Result<()> {
        if matches!(self.output, Output::Closed) {
            return Ok(());
        }
        let is_closed = !self.has_terminal || self.input.try_close();
        if !is_closed {
            // A write to the terminal waits and keeps it open, so the child is notified.
            self.signal("HUP");
        }
        self.close_output()
    }

    /// Waits until all output was written and read.
    fn wait_for_reader(&mut self, events: &mut Events) -> Result<()> {
        while self.buffer.phase() == Phase::Ended && !self.is_hurried {
            self.poller.wait_deadline(events, None)?;
            self.handle_signals();
        }
        let deadline = Instant::now().checked_add(self.linger);
        let (mut pause, pause_max) = LINGER_PAUSES;
        while unread_bytes(&self.stdout).is_some_and(|count| count > 0)
            && !self.is_hurried
            && deadline.is_none_or(|deadline| Instant::now() < deadline)
        {
            self.poller.wait(events, Some(pause))?;
            self.handle_signals();
            pause = (pause * 2).min(pause_max);
        }
        Ok(())
    }
}

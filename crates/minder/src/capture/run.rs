//! The run of one or several connected children to their end, by a set.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use super::captured::{Captured, CapturedStage, KILL_TIMEOUT, input_failed, not_gone, set_streams};
use super::direct;
use super::input_feed::{InputFeed, InputStep};
use super::options::CaptureOptions;
use super::output_buffer::{OutputBuffer, OutputLimit};
use super::read_order::ReadOrder;
use crate::backend::Backend;
use crate::command::{Command, Stdio};
use crate::deadline::deadline_after;
use crate::event::{ChildId, Event, NextEvent, Stream};
use crate::exit_status::{ExitInfo, Outcome};
use crate::set::{ChildSet, ChildSetOptions, SpawnOptions};
use crate::{ErrorKind, Result, Termination};

/// Runs commands to their end: the input goes to the first, the output comes from the last. The
/// caller has connected them, and set those streams that are not to be captured.
///
/// # Errors
/// As [`Command::output_with`]. No child is left behind then, except one that no signal ends in time.
pub(super) fn capture(mut commands: Vec<Command>, options: CaptureOptions) -> Result<Captured> {
    let limit = OutputLimit::new(&options);
    let CaptureOptions { timeout, kill, leak_timeout, merge_stderr, input, .. } = options;
    set_streams(&mut commands, merge_stderr);
    if let [command] = &commands[..]
        && timeout.is_none()
        && leak_timeout.is_none()
        && input.is_none()
        && direct::applies_to(command)
    {
        return direct::capture(command, limit);
    }
    // The time-out of a set begins again with each byte: see `Run::limit_leaks`.
    let mut config =
        ChildSetOptions::new().max_children(commands.len()).leak_timeout(None).backend(backend());
    config.starts_one = commands.len() == 1;
    let set = ChildSet::new(config)?;
    let mut feed = None;
    if let Some(input) = input {
        commands[0].stdin(Stdio::piped());
        feed = Some(InputFeed::start(input, set.waker())?);
    }
    let deadline = deadline_after(timeout);
    let give_up_at =
        deadline.and_then(|deadline| deadline.checked_add(kill.total_pause().saturating_add(KILL_TIMEOUT)));
    let mut run = Run {
        set,
        stages: Vec::with_capacity(commands.len()),
        input: feed,
        outputs: Vec::from_iter((0..=commands.len()).map(|_| OutputBuffer::default())),
        limit,
        order: ReadOrder::default(),
        leak_timeout,
        deadline,
        give_up_at,
    };
    let mut spawn = SpawnOptions::new();
    if let Some(deadline) = deadline {
        spawn = spawn.deadline(deadline, kill);
    }
    let result = run.spawn_all(commands, spawn).and_then(|()| run.until_done());
    if let Err(error) = result {
        run.kill();
        return Err(error);
    }
    run.finish()
}

/// Returns the wait backend for few children; `None` is the default. To open epoll(7), to register four
/// descriptors for each and to close it costs more than a few calls of poll(2) with all of them.
fn backend() -> Option<Backend> {
    let default = Backend::available().next();
    (default == Some(Backend::Epoll)).then_some(Backend::Poll)
}

/// Children that are run to their end.
struct Run {
    set: ChildSet,
    stages: Vec<Stage>,
    input: Option<InputFeed>,
    /// The standard errors of the stages, and then the standard output of the last.
    outputs: Vec<OutputBuffer>,
    limit: OutputLimit,
    /// The order of the two outputs of the only child.
    order: ReadOrder,
    leak_timeout: Option<Duration>,
    deadline: Option<Instant>,
    /// The time at which the outputs are closed that other processes keep open: those that escaped
    /// the kill or, after the exit of all children, any.
    give_up_at: Option<Instant>,
}

/// One of the children.
struct Stage {
    id: ChildId,
    program: Box<OsStr>,
    ended: Option<Ended>,
    is_done: bool,
}

/// The end of a child.
struct Ended {
    exit: ExitInfo,
    timed_out: bool,
    leaked: bool,
}

impl Run {
    /// Starts the children. A command is dropped as soon as it is started, and with it our copies of the
    /// pipes that connect it to its neighbours.
    fn spawn_all(&mut self, commands: Vec<Command>, options: SpawnOptions) -> Result<()> {
        for command in commands {
            let id = self.set.spawn(&command, options)?;
            let program = command.program.into_boxed_os_str();
            self.stages.push(Stage { id, program, ended: None, is_done: false });
        }
        if let (None, Some(first)) = (&self.input, self.stages.first()) {
            // It may be a pipe, into which nothing will be written.
            self.set.close_stdin(first.id)?;
        }
        Ok(())
    }

    fn until_done(&mut self) -> Result<()> {
        self.feed()?;
        let mut is_late = false;
        while self.stages.iter().any(|stage| !stage.is_done) {
            // A process that always writes must not delay this, so that one more wait is the last.
            if is_late && !self.set.has_pending_events() {
                return self.give_up();
            }
            is_late = self.give_up_at.is_some_and(|give_up_at| Instant::now() >= give_up_at);
            match self.set.next_event_deadline(self.give_up_at)? {
                NextEvent::Event(event) => self.handle(event)?,
                NextEvent::TimedOut | NextEvent::Empty => return self.give_up(),
            }
        }
        Ok(())
    }

    /// Limits the wait for the outputs when all children have exited.
    fn limit_leaks(&mut self) {
        if self.stages.iter().any(|stage| stage.ended.is_none()) {
            return;
        }
        // At the deadline, what holds the outputs is killed.
        let close_at = deadline_after(self.leak_timeout);
        if close_at.is_some_and(|close_at| self.deadline.is_none_or(|deadline| close_at < deadline)) {
            self.give_up_at = close_at;
        }
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        if let Event::Writable { .. } | Event::Woken = event {
            return self.feed();
        }
        let stages = self.stages.iter_mut().enumerate();
        let Some((place, stage)) = { stages }.find(|(_, stage)| event.child() == Some(stage.id)) else {
            return Ok(());
        };
        match event {
            Event::Output { stream, chunk, .. } => {
                let place = if stream == Stream::Stdout { self.outputs.len() - 1 } else { place };
                self.outputs[place].memory().extend_from_slice(&chunk);
                let limited = self.limit.apply(&mut self.outputs, place, chunk.len());
                limited.map_err(|error| error.with_subject(&stage.program))?;
                if let [stderr, stdout] = &self.outputs[..] {
                    self.limit.record(&mut self.order, stream, chunk.len(), [stdout, stderr]);
                }
            }
            Event::Exited { exit, .. } => {
                let timed_out = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
                // It is leaked if nothing follows.
                stage.ended = Some(Ended { exit, timed_out, leaked: true });
                self.limit_leaks();
            }
            Event::Done { outcome, .. } => {
                let Outcome { exit, timed_out, leaked, .. } = outcome;
                stage.ended = Some(Ended { exit, timed_out, leaked });
                stage.is_done = true;
            }
            _ => (),
        }
        Ok(())
    }

    /// Accepts that outputs stay open, if all children have exited.
    fn give_up(&mut self) -> Result<()> {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        for stage in self.stages.iter_mut().filter(|stage| !stage.is_done) {
            if let Some(ended) = &mut stage.ended {
                ended.timed_out |= is_late;
            }
        }
        let Some(stage) = self.stages.iter().find(|stage| stage.ended.is_none()) else { return Ok(()) };
        Err(not_gone().with_subject(&stage.program))
    }

    /// Writes as much of the input as there is room for.
    fn feed(&mut self) -> Result<()> {
        let (Some(input), Some(first)) = (&mut self.input, self.stages.first()) else { return Ok(()) };
        loop {
            match input.next() {
                InputStep::Pending => return Ok(()),
                InputStep::Ended => {
                    return match self.set.close_stdin(first.id) {
                        Err(error) if error.kind() != ErrorKind::Unknown => Err(error),
                        _ => Ok(()),
                    };
                }
                InputStep::Bytes(bytes) => match self.set.write(first.id, bytes) {
                    Ok(0) => return Ok(()),
                    Ok(count) => input.written += count,
                    // The child closed its input or exited: it does not want the rest.
                    Err(error)
                        if error.kind() == ErrorKind::Unknown
                            || error.io_error().kind() == std::io::ErrorKind::BrokenPipe =>
                    {
                        input.stop();
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Kills the children and waits for their end, for a bounded time.
    fn kill(&mut self) {
        let deadline = Instant::now() + KILL_TIMEOUT;
        let _ = self.set.kill_all(Termination::IMMEDIATE);
        while !self.set.is_empty() && Instant::now() < deadline {
            let _ = self.set.next_event_deadline(Some(deadline));
        }
    }

    fn finish(mut self) -> Result<Captured> {
        if let (Some(error), Some(first)) = (self.input.and_then(|input| input.error), self.stages.first()) {
            return Err(input_failed(error).with_subject(&first.program));
        }
        let (stdout, stdout_dropped) = self.outputs.pop().unwrap_or_default().into_kept();
        let stage = |(stage, stderr): (Stage, OutputBuffer)| {
            let Ended { exit, timed_out, leaked } = stage.ended?;
            let (stderr, stderr_dropped) = stderr.into_kept();
            Some(CapturedStage { exit, stderr, stderr_dropped, timed_out, leaked })
        };
        let stages = self.stages.into_iter().zip(self.outputs).filter_map(stage).collect();
        Ok(Captured { stages, stdout, stdout_dropped, order: self.order })
    }
}

//! Runs a script on a `ChildSet`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use minder::{
    Backend, Backlog, ChildSet, ChildSetOptions, Chunk, Command, ErrorKind, Event, NextEvent, OutputMode,
    OverflowPolicy, SpawnOptions, Stream, Termination,
};
use rustix::process::Signal;

use super::model::{ModelChild, Promises};
use super::plan::{Ending, How, Limits, Plan, Script, Step, input_bytes};
use super::processes::Tag;
use crate::support::{limits, patience, readable};

/// The time for which the end of a script waits before it continues children that a signal stopped.
const IDLE: Duration = Duration::from_millis(10);

/// Returns the configuration of a script.
pub(super) fn config(backend: Backend, drawn: &Limits) -> ChildSetOptions {
    let ms = Duration::from_millis;
    let config = limits(backend)
        .max_children(drawn.children)
        .max_buffered_bytes(drawn.bytes)
        .max_child_bytes(drawn.child_bytes)
        .read_buffer_bytes(drawn.read_bytes)
        .read_delay(ms(drawn.read_delay_ms))
        .leak_timeout(drawn.leak_ms.map(ms))
        .stop_poll_interval(drawn.stop_poll_ms.map(ms));
    let config = match drawn.backlog {
        Some(bytes) => config.backlog(Backlog::new(bytes)),
        None => config,
    };
    match drawn.room {
        Some(room) => config.fault_capacity(room),
        None => config,
    }
}

/// A set, its children, and the chunks that the caller keeps.
struct Runner<'a> {
    script: &'a Script,
    set: ChildSet,
    by_descriptor: bool,
    /// `None` for a child that was not started, because the set had too many.
    children: Vec<Option<ModelChild<'a>>>,
    held: VecDeque<Chunk>,
    kept: usize,
    promises: Promises,
    /// `true` once every child is brought to its end.
    finishing: bool,
}

pub(super) fn run(script: &Script, backend: Backend, by_descriptor: bool) {
    let set = ChildSet::new(config(backend, &script.limits)).expect("create set");
    let promises = Promises {
        exit_is_late: false,
        whole_chunks: true,
        closes_silent: script.limits.leak_ms.is_some(),
        is_in_step: true,
    };
    let mut runner = Runner {
        script,
        set,
        by_descriptor,
        children: Vec::new(),
        held: VecDeque::new(),
        kept: script.kept,
        promises,
        finishing: false,
    };
    for step in &script.steps {
        runner.step(step);
        runner.check();
    }
    match &script.ending {
        Ending::Drop => return,
        Ending::Kill(how) => runner.kill_all(how),
        Ending::Finish => (),
    }
    runner.finish();
}

impl<'a> Runner<'a> {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Spawn(number) => self.spawn(*number),
            Step::SpawnMissing => self.spawn_missing(),
            Step::SpawnContradiction => self.spawn_contradiction(),
            Step::Write(number, bytes) => self.write(*number, *bytes),
            Step::KillAll(how) => self.kill_all(how),
            Step::SuspendAll => {
                self.set.suspend_all().expect("suspend all children");
                self.children.iter_mut().flatten().for_each(ModelChild::note_suspended);
            }
            Step::ResumeAll => self.set.resume_all().expect("resume all children"),
            Step::Take(events, ms) => self.take(*events, Duration::from_millis(*ms)),
            Step::Release => self.held.clear(),
            Step::Wake => self.set.waker().wake().expect("wake set"),
            Step::TryWait | Step::Wait(_) => unreachable!("steps of a lone child"),
            Step::CloseStdin(number)
            | Step::Kill(number, _)
            | Step::Restart(number, _)
            | Step::Suspend(number)
            | Step::Resume(number)
            | Step::Stop(number)
            | Step::Continue(number)
            | Step::Deadline(number, _)
            | Step::Stream(number)
            | Step::Forward(number, _) => {
                if let Some(child) = self.children.get_mut(*number).and_then(Option::as_mut)
                    && child.done.is_none()
                {
                    change(&mut self.set, child, step);
                }
            }
        }
    }

    fn live(&self) -> usize {
        self.children.iter().flatten().filter(|child| child.done.is_none()).count()
    }

    fn spawn(&mut self, number: usize) {
        let plan: &'a Plan = &self.script.children[number];
        let tag = Tag::of_child(self.script.seed, number);
        let (command, files) = plan.command(tag.word());
        let now = Instant::now();
        let is_full = self.live() >= self.script.limits.children;
        let id = match self.set.spawn(&command, ModelChild::options(plan, now)) {
            Ok(id) => id,
            Err(error) => {
                assert!(is_full && error.kind() == ErrorKind::Limit, "spawn: {error}");
                self.children.push(None);
                return;
            }
        };
        assert!(!is_full, "more children than the limit");
        let pid = self.set.pid(id).expect("get pid");
        let mut child = ModelChild::new(plan, id, pid, tag, files);
        if let Some((ms, how)) = &plan.deadline {
            child.note_deadline(now + Duration::from_millis(*ms), how);
        }
        self.children.push(Some(child));
    }

    fn spawn_missing(&mut self) {
        let error = self.set.spawn(&Command::new("/no/such/program"), SpawnOptions::new());
        let error = error.expect_err("spawn missing program").kind();
        let is_full = self.live() >= self.script.limits.children;
        assert_eq!(error, if is_full { ErrorKind::Limit } else { ErrorKind::NotFound });
    }

    fn spawn_contradiction(&mut self) {
        let options = SpawnOptions::new().overflow(OverflowPolicy::Block).output_mode(OutputMode::AtExit);
        let error = self.set.spawn(&Command::new("true"), options).expect_err("spawn with such options");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }

    fn write(&mut self, number: usize, bytes: usize) {
        let Some(child) = self.children.get_mut(number).and_then(Option::as_mut) else { return };
        let all = input_bytes(child.accepted + bytes);
        match self.set.write(child.id, &all[child.accepted..]) {
            Ok(count) => {
                // A pipe that was closed may have been that of the run before.
                let has_pipe = child.stdin_open || child.plan.restarts.is_some();
                assert!(child.done.is_none() && has_pipe, "written without a pipe");
                assert!(count <= bytes, "{count} of {bytes} bytes were written");
                child.accepted += count;
            }
            Err(error) if error.kind() == ErrorKind::Unknown => {
                assert!(child.done.is_some() || !child.stdin_open || child.between.is_some(), "{error}");
            }
            Err(error) => {
                assert_eq!(error.io_error().kind(), std::io::ErrorKind::BrokenPipe, "{error}");
                assert!(!child.plan.reads_all() || child.may_be_killed(), "it reads its input: {error}");
                child.stdin_open = false;
            }
        }
    }

    fn kill_all(&mut self, how: &How) {
        let now = Instant::now();
        self.children.iter_mut().flatten().filter(|child| child.done.is_none()).for_each(|child| {
            child.note_kill(now, how);
        });
        self.set.kill_all(how.termination()).expect("kill all children");
    }

    /// Takes events, each within this time.
    fn take(&mut self, events: usize, time: Duration) {
        for _ in 0..events {
            if !self.take_one(time) {
                return;
            }
        }
    }

    /// Takes one event. Returns whether there was one.
    fn take_one(&mut self, time: Duration) -> bool {
        let begun = Instant::now();
        let mut time_left = time;
        if self.by_descriptor {
            let handle = self.set.poll_handle().expect("get descriptor");
            if !readable(std::os::fd::AsFd::as_fd(&handle), time) {
                return false;
            }
            time_left = Duration::ZERO;
        }
        match self.set.next_event(Some(time_left)).expect("wait for event") {
            NextEvent::Event(event) => {
                self.record(event);
                return true;
            }
            NextEvent::TimedOut => assert!(self.live() > 0, "TimedOut without children"),
            NextEvent::Empty => assert_eq!(self.live(), 0, "Empty with children"),
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() >= time_left, "no event after {:?} of {time_left:?}", begun.elapsed());
        false
    }

    fn record(&mut self, event: Event) {
        let Some(id) = event.child() else { return };
        let is_restarted = matches!(event, Event::Restarted { .. });
        let child = self.children.iter_mut().flatten().find(|child| child.id == id);
        let child = child.unwrap_or_else(|| panic!("{event:?} of an unknown child"));
        if let Some(chunk) = child.record(event, self.promises) {
            self.held.push_back(chunk);
        }
        if is_restarted && self.finishing {
            self.set.close_stdin(id).expect("close stdin");
        }
        while self.held.len() > self.kept {
            self.held.pop_front();
        }
    }

    /// Checks what must be true after each step.
    fn check(&mut self) {
        assert_eq!(self.set.len(), self.live());
        assert_eq!(self.set.is_empty(), self.live() == 0);
        let held: usize = self.held.iter().map(|chunk| chunk.len()).sum();
        assert!(self.set.buffered_bytes() >= held, "{} bytes, {held} held", self.set.buffered_bytes());
        for child in self.children.iter().flatten() {
            match (child.done, child.between) {
                (None, None) => assert_eq!(self.set.pid(child.id).expect("get pid"), child.pid),
                // It may run, and its `Restarted` is not taken.
                (None, Some(_)) => {
                    let is_waiting = |error: minder::Error| error.kind() == ErrorKind::Unknown;
                    assert!(self.set.pid(child.id).map_or_else(is_waiting, |pid| pid > 0));
                }
                (Some(_), _) => check_unknown(&mut self.set, child),
            }
        }
    }

    /// Brings every child to its end.
    fn finish(&mut self) {
        self.finishing = true;
        self.set.resume_all().expect("resume all children");
        for child in self.children.iter_mut().flatten().filter(|child| child.done.is_none()) {
            self.set.close_stdin(child.id).expect("close stdin");
            child.stdin_open = false;
            if child.needs_kill(self.script.limits.leak_ms) {
                child.note_kill(Instant::now(), &self.script.last_kill);
                self.set.kill(child.id, self.script.last_kill.termination()).expect("kill child");
            }
        }
        let until = patience();
        let mut last_event = Instant::now();
        while self.live() > 0 {
            let late: Vec<_> = self.children.iter().flatten().filter(|child| child.done.is_none()).collect();
            assert!(Instant::now() < until, "not done: {late:?}");
            // The descriptor may become readable for a timer, without an event.
            if self.take_one(IDLE) {
                last_event = Instant::now();
            } else if last_event.elapsed() >= IDLE {
                self.kept = 0;
                self.held.clear();
                self.children.iter().flatten().for_each(ModelChild::continue_stopped);
            }
        }
        self.check();
        loop {
            match self.set.next_event(None).expect("wait for event") {
                NextEvent::Event(Event::Woken) => assert!(Instant::now() < until, "woken for ever"),
                NextEvent::Empty => break,
                other => panic!("{other:?} after the last Done"),
            }
        }
        self.take_one(Duration::from_millis(1));
        self.held.clear();
        assert_eq!(self.set.buffered_bytes(), 0, "bytes without an owner");
    }
}

/// Does something to a child that is not done.
fn change(set: &mut ChildSet, child: &mut ModelChild<'_>, step: &Step) {
    match step {
        Step::CloseStdin(_) => {
            set.close_stdin(child.id).expect("close stdin");
            child.stdin_open = false;
        }
        Step::Kill(_, how) => {
            child.note_kill(Instant::now(), how);
            set.kill(child.id, how.termination()).expect("kill child");
        }
        Step::Restart(_, how) => {
            let at = Instant::now();
            let is_waiting = set.pid(child.id).is_err();
            match set.restart(child.id, how.termination()) {
                Ok(()) => child.note_restart(at, how, is_waiting),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
                    assert!(child.plan.restarts.is_none() || child.may_be_killed(), "{error}");
                }
            }
        }
        Step::Suspend(_) => {
            child.note_suspended();
            set.suspend(child.id).expect("suspend child");
        }
        Step::Resume(_) => set.resume(child.id).expect("resume child"),
        Step::Stop(_) => {
            child.note_stopped();
            child.signal(Signal::STOP);
        }
        Step::Continue(_) => child.signal(Signal::CONT),
        Step::Deadline(_, None) => set.set_deadline(child.id, None).expect("remove deadline"),
        Step::Deadline(_, Some((ms, how))) => {
            let at = Instant::now() + Duration::from_millis(*ms);
            child.note_deadline(at, how);
            set.set_deadline(child.id, Some((at, how.termination()))).expect("set deadline");
        }
        Step::Stream(_) => {
            set.start_streaming(child.id).expect("start streaming");
            child.note_streaming();
        }
        Step::Forward(_, stream) => forward(set, child, *stream),
        _ => unreachable!("a step that is not of one child"),
    }
}

fn forward(set: &mut ChildSet, child: &mut ModelChild<'_>, stream: Stream) {
    if child.is_forwarded(stream) {
        return;
    }
    let file = tempfile::tempfile().expect("create temporary file");
    let copy = file.try_clone().expect("duplicate handle");
    match set.forward(child.id, stream, &Arc::new(file)) {
        Ok(()) => child.note_forward(stream, copy),
        Err(error) => {
            // Streaming does not start in a child that is done except for its last events.
            assert!(
                error.kind() == ErrorKind::InvalidInput && child.plan.mode == OutputMode::AtExit,
                "{error}"
            );
        }
    }
}

/// Checks that an id names nothing any more.
fn check_unknown(set: &mut ChildSet, child: &ModelChild<'_>) {
    let id = child.id;
    let file = Arc::new(std::fs::File::open("/dev/null").expect("open null device"));
    let errors = [
        set.pid(id).map(drop),
        set.write(id, b"x").map(drop),
        set.close_stdin(id),
        set.kill(id, Termination::IMMEDIATE),
        set.restart(id, Termination::IMMEDIATE),
        set.suspend(id),
        set.resume(id),
        set.set_deadline(id, None),
        set.suspended_time(id).map(drop),
        set.start_streaming(id),
        set.forward(id, Stream::Stdout, &file),
    ];
    for (number, result) in errors.into_iter().enumerate() {
        let kind = result.expect_err("use the id of a child that is done").kind();
        assert_eq!(kind, ErrorKind::Unknown, "call {number}");
    }
}

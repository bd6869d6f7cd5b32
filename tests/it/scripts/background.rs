//! Runs a script on a `BackgroundSet`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use minder::{
    Backend, BackgroundSet, BackgroundSetOptions, Chunk, Command, ErrorKind, OutputMode, OverflowPolicy,
    SpawnOptions, Termination,
};

use super::model::{ModelChild, Promises};
use super::plan::{Ending, How, Plan, Script, Step, input_bytes};
use super::processes::Tag;
use crate::support::{patience, readable};

/// The time for which the end of a script waits before it continues children that a signal stopped.
const IDLE: Duration = Duration::from_millis(10);

struct Runner<'a> {
    script: &'a Script,
    set: BackgroundSet,
    taken_bytes: usize,
    children: Vec<Option<ModelChild<'a>>>,
    held: VecDeque<Chunk>,
    kept: usize,
    promises: Promises,
}

pub(super) fn run(script: &Script, backend: Backend, eager_exit: bool, taken_bytes: usize) {
    let config = BackgroundSetOptions::new()
        .set(super::set::config(backend, &script.limits))
        .eager_exit(eager_exit)
        .max_input_bytes(script.limits.child_bytes);
    let set = BackgroundSet::new(config).expect("create set");
    let promises = Promises {
        exit_is_late: !eager_exit,
        whole_chunks: false,
        closes_silent: script.limits.leak_ms.is_some(),
        is_in_step: false,
    };
    let mut runner = Runner {
        script,
        set,
        taken_bytes,
        children: Vec::new(),
        held: VecDeque::new(),
        kept: script.kept,
        promises,
    };
    for step in &script.steps {
        runner.step(step);
        runner.check();
    }
    match &script.ending {
        Ending::Drop => (),
        Ending::Kill(how) => runner.stop(how),
        Ending::Finish => runner.finish(),
    }
}

impl<'a> Runner<'a> {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Spawn(number) => self.spawn(*number),
            Step::SpawnMissing => {
                let error = self.set.spawn(&Command::new("/no/such/program"), SpawnOptions::new());
                let error = error.expect_err("spawn missing program").kind();
                let is_full = self.live() >= self.script.limits.children;
                assert_eq!(error, if is_full { ErrorKind::Limit } else { ErrorKind::NotFound });
            }
            Step::SpawnContradiction => {
                let options =
                    SpawnOptions::new().overflow(OverflowPolicy::Block).output_mode(OutputMode::AtExit);
                let error = self.set.spawn(&Command::new("true"), options);
                let error = error.expect_err("spawn with such options").kind();
                let is_full = self.live() >= self.script.limits.children;
                assert!(error == ErrorKind::InvalidInput || (is_full && error == ErrorKind::Limit));
            }
            Step::Write(number, bytes) => self.write(*number, *bytes),
            Step::Take(times, ms) => {
                for _ in 0..*times {
                    self.take(Duration::from_millis(*ms));
                }
            }
            Step::Release => self.held.clear(),
            Step::CloseStdin(number) => self.with(*number, |set, child| {
                set.close_stdin(child.id).expect("close stdin");
                child.stdin_open = false;
            }),
            Step::Kill(number, how) => self.with(*number, |set, child| kill(set, child, how)),
            // The child may be reaped before its `Done` is taken, and its pid used again.
            Step::Stop(_) | Step::Continue(_) => (),
            other => unreachable!("a step that a background set does not have: {other:?}"),
        }
    }

    fn with(&mut self, number: usize, act: impl FnOnce(&BackgroundSet, &mut ModelChild<'a>)) {
        if let Some(child) = self.children.get_mut(number).and_then(Option::as_mut)
            && child.done.is_none()
        {
            act(&self.set, child);
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

    fn write(&mut self, number: usize, bytes: usize) {
        let Some(child) = self.children.get_mut(number).and_then(Option::as_mut) else { return };
        let all = input_bytes(child.accepted + bytes);
        match self.set.write(child.id, &all[child.accepted..]) {
            Ok(count) => {
                assert!(child.done.is_none() && child.stdin_open, "written without a pipe");
                assert!(count <= bytes, "{count} of {bytes} bytes were taken");
                child.accepted += count;
            }
            Err(error) if error.kind() == ErrorKind::Unknown => {
                // The child may be done before its `Done` is taken.
                let ends = child.may_be_killed() || !child.plan.reads_all();
                assert!(child.done.is_some() || !child.stdin_open || ends, "{error}");
            }
            Err(error) => {
                assert_eq!(error.io_error().kind(), std::io::ErrorKind::BrokenPipe, "{error}");
                assert!(!child.plan.reads_all() || child.may_be_killed(), "it reads its input: {error}");
                child.stdin_open = false;
            }
        }
    }

    /// Waits for the descriptor and takes events. Returns whether there was one.
    fn take(&mut self, time: Duration) -> bool {
        let is_ready = readable(self.set.poll_handle(), time);
        let mut events = Vec::new();
        let count = self.set.drain_events(&mut events, self.taken_bytes);
        assert_eq!(count, events.len());
        // An event may have come in between.
        assert!(!is_ready || count > 0, "readable without an event");
        for event in events {
            let id = event.child().unwrap_or_else(|| panic!("{event:?} has no child"));
            let child = self.children.iter_mut().flatten().find(|child| child.id == id);
            let child = child.unwrap_or_else(|| panic!("{event:?} of an unknown child"));
            if let Some(chunk) = child.record(event, self.promises) {
                self.held.push_back(chunk);
            }
            while self.held.len() > self.kept {
                self.held.pop_front();
            }
        }
        count > 0
    }

    fn check(&self) {
        assert_eq!(self.set.len(), self.live());
        for child in self.children.iter().flatten() {
            if child.done.is_none() {
                // The next run may have begun.
                let pid = self.set.pid(child.id).expect("get pid");
                assert!(pid == child.pid || child.plan.restarts.is_some(), "{pid} is not {}", child.pid);
                continue;
            }
            let errors = [
                self.set.pid(child.id).map(drop),
                self.set.write(child.id, b"x").map(drop),
                self.set.close_stdin(child.id),
                self.set.kill(child.id, Termination::IMMEDIATE),
            ];
            for (number, result) in errors.into_iter().enumerate() {
                let kind = result.expect_err("use the id of a child that is done").kind();
                assert_eq!(kind, ErrorKind::Unknown, "call {number}");
            }
        }
        if let Some(error) = self.set.take_error() {
            panic!("an error of no call: {error}");
        }
    }

    /// Ends the set with its children.
    fn stop(&mut self, how: &How) {
        // Chunks that are kept may leave no room for the last bytes.
        self.held.clear();
        self.set.clone().stop(how.grace()).expect("stop set");
        for child in self.children.iter().flatten().filter(|child| child.done.is_none()) {
            assert!(!crate::support::lives(child.pid), "child {} lives after the stop", child.pid);
        }
        let error = self.set.spawn(&Command::new("true"), SpawnOptions::new());
        assert_eq!(error.expect_err("spawn after the stop").kind(), ErrorKind::Other);
    }

    /// Brings every child to its end.
    fn finish(&mut self) {
        for child in self.children.iter_mut().flatten().filter(|child| child.done.is_none()) {
            self.set.close_stdin(child.id).expect("close stdin");
            child.stdin_open = false;
            // Nothing else continues it.
            if child.needs_kill(self.script.limits.leak_ms) || child.plan.stops() > 0 {
                kill(&self.set, child, &self.script.last_kill);
            }
        }
        let until = patience();
        while self.live() > 0 {
            assert!(Instant::now() < until, "{} children are not done: {:?}", self.live(), self.set);
            if !self.take(IDLE) {
                self.kept = 0;
                self.held.clear();
            }
        }
        self.check();
        assert!(!self.take(Duration::ZERO) && self.set.buffered_bytes() == 0, "events after the end");
    }
}

fn kill(set: &BackgroundSet, child: &mut ModelChild<'_>, how: &How) {
    let at = Instant::now();
    match set.kill(child.id, how.termination()) {
        Ok(()) => child.note_kill(at, how),
        // It is done, and its `Done` was not taken.
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unknown, "{error}"),
    }
}

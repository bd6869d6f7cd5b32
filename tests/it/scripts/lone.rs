//! Runs a script on one `Child`, and on one call of `Command::output_with`.

use std::io::{Cursor, Read, Write};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use minder::{CaptureOptions, Child, ErrorKind, ExitInfo, ExitStatus, Stdio, Termination};
use rustix::process::{Pid, Signal, kill_process};

use super::model::check_prefix;
use super::plan::{Act, End, Ending, Files, How, Input, Plan, Script, Step, input_bytes, signaled};
use super::processes::Tag;
use crate::support::patience;

/// The number of bytes that fit into a pipe that is not read, so that a write does not block.
const PIPE_BYTES: usize = 60_000;

/// One child, and the threads that read its pipes.
struct Runner<'a> {
    plan: &'a Plan,
    child: Child,
    readers: [Option<Reader>; 2],
    files: Files,
    accepted: usize,
    kills: Vec<How>,
    exit: Option<ExitInfo>,
}

pub(super) fn run(script: &Script) {
    let plan = &script.children[0];
    let tag = Tag::of_child(script.seed, 0);
    let (command, files) = plan.command(tag.word());
    let mut child = command.spawn().expect("spawn test child");
    assert_eq!(child.stdin.is_some(), plan.input == Input::Piped);
    let piped = plan.piped();
    let readers =
        [piped[0].then(|| reader(child.stdout.take())), piped[1].then(|| reader(child.stderr.take()))];
    let mut runner = Runner { plan, child, readers, files, accepted: 0, kills: Vec::new(), exit: None };
    for step in &script.steps {
        runner.step(step);
    }
    if script.ending == Ending::Drop && runner.exit.is_none() {
        let Runner { child, readers, .. } = runner;
        drop(child);
        // The pipes end with what holds them.
        tag.kill_all();
        readers.into_iter().flatten().for_each(|reader| drop(reader.join().expect("join reader")));
        return;
    }
    runner.finish(&tag);
}

/// Returns what was read, and the pipe. A terminal that were closed at once could hang the child up.
type Reader = JoinHandle<(Vec<u8>, Box<dyn Send>)>;

/// Reads a pipe to its end on a separate thread.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Reader {
    let mut pipe = pipe.expect("take pipe");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A terminal ends by an error.
        let _ = pipe.read_to_end(&mut bytes);
        (bytes, Box::new(pipe) as Box<dyn Send>)
    })
}

impl Runner<'_> {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Spawn(_) => (),
            Step::Write(_, bytes) => self.write((*bytes).min(PIPE_BYTES - self.accepted)),
            Step::CloseStdin(_) => drop(self.child.stdin.take()),
            Step::Kill(_, how) => self.kill(how),
            Step::Stop(_) => self.signal(Signal::STOP),
            Step::Continue(_) => self.signal(Signal::CONT),
            Step::TryWait => {
                let exit = self.child.try_wait().expect("poll child");
                self.note_exit(exit);
            }
            Step::Wait(ms) => self.wait(Duration::from_millis(*ms)),
            other => unreachable!("a step that a child does not have: {other:?}"),
        }
    }

    fn write(&mut self, bytes: usize) {
        let Some(stdin) = &mut self.child.stdin else { return };
        let all = input_bytes(self.accepted + bytes);
        match stdin.write_all(&all[self.accepted..]) {
            Ok(()) => self.accepted += bytes,
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{error}");
                assert!(!self.plan.reads_all() || !self.kills.is_empty(), "it reads its input: {error}");
                // How much of it was written is not known.
                self.accepted += bytes;
                self.child.stdin = None;
            }
        }
    }

    fn kill(&mut self, how: &How) {
        self.child.kill(how.termination()).expect("kill child");
        if self.exit.is_none() {
            self.kills.push(how.clone());
        }
    }

    fn signal(&self, signal: Signal) {
        if self.exit.is_none() {
            let pid = Pid::from_raw(self.child.id().cast_signed()).expect("valid pid");
            kill_process(pid, signal).expect("signal child");
        }
    }

    /// Waits once. A timeout never comes early.
    fn wait(&mut self, time: Duration) {
        let begun = Instant::now();
        let exit = self.child.wait_timeout(time).expect("wait for child");
        assert!(exit.is_some() || begun.elapsed() >= time, "early: {:?} of {time:?}", begun.elapsed());
        self.note_exit(exit);
    }

    fn note_exit(&mut self, exit: Option<ExitInfo>) {
        assert!(self.exit.is_none() || self.exit == exit, "{:?} became {exit:?}", self.exit);
        let Some(exit) = exit else { return };
        let signals = self.kills.iter().map(|how| how.signals().first().copied().unwrap_or(libc::SIGKILL));
        let mut possible = self.plan.natural_exit().into_iter().chain(signals.map(signaled));
        assert!(possible.any(|status| status == exit.status), "{exit:?}, kills: {:?}", self.kills);
        assert!(exit.usage.is_some(), "{exit:?}");
        self.exit = Some(exit);
    }

    fn finish(mut self, tag: &Tag) {
        self.child.stdin = None;
        if self.plan.natural_exit().is_none() {
            self.kill(&How::Now);
        }
        let until = patience();
        while self.exit.is_none() {
            assert!(Instant::now() < until, "the child does not exit");
            self.signal(Signal::CONT);
            self.wait(Duration::from_millis(5));
        }
        let exit = self.child.wait().expect("wait for child again");
        self.note_exit(Some(exit));
        self.child.kill(Termination::IMMEDIATE).expect("kill child that was reaped");
        // What the child left behind may hold the pipes.
        tag.kill_all();
        let expected = self.plan.expected(self.accepted).bytes;
        let is_whole = self.plan.natural_exit() == Some(exit.status)
            && exit.status.code().is_some()
            && !self.plan.is_terminal();
        for (stream, reader) in self.readers.into_iter().enumerate() {
            let arrived = match (reader, &self.files[stream]) {
                (Some(reader), _) => reader.join().expect("join reader").0,
                (None, Some(file)) => super::model::file_bytes(file),
                (None, None) => continue,
            };
            check_prefix(&arrived, &expected[stream], is_whole, &format!("stream {stream}, {exit:?}"));
        }
    }
}

/// Runs a script by one call.
pub(super) fn capture(script: &Script, timeout_ms: Option<u64>, bytes_max: usize, by_reader: bool) {
    let plan = &script.children[0];
    let tag = Tag::of_child(script.seed, 0);
    let (mut command, files) = plan.command(tag.word());
    let merge = plan.error.is_none();
    if merge {
        // The option does the same.
        command.stderr(Stdio::null());
    }
    let has_end = !plan.holds_pipe(true) || (timeout_ms.is_some_and(|ms| ms < 1000) && can_kill_all(plan));
    let leak_timeout = script.limits.leak_ms.map(Duration::from_millis);
    let leak_timeout = if has_end { leak_timeout } else { Some(Duration::from_millis(20)) };
    let mut options = CaptureOptions::new()
        .max_bytes(bytes_max)
        .leak_timeout(leak_timeout)
        .merge_stderr(merge)
        .kill(script.last_kill.termination());
    if let Some(ms) = timeout_ms {
        options = options.timeout(Duration::from_millis(ms));
    }
    let input = match plan.input {
        Input::Piped => input_bytes(script.limits.bytes.min(300_000)),
        Input::Null | Input::File(_) => Vec::new(),
    };
    if plan.input == Input::Piped {
        let bytes = input.clone();
        options = if by_reader { options.input_reader(Cursor::new(bytes)) } else { options.input(bytes) };
    }
    let begun = Instant::now();
    let result = command.output_with(options);
    let expected = plan.expected(input.len()).bytes;
    let captured: usize = (0..2).filter(|it| plan.piped()[*it]).map(|it| expected[it].len()).sum();
    let output = match result {
        Ok(output) => output,
        Err(error) => {
            assert!(error.kind() == ErrorKind::Limit && captured > bytes_max, "{captured} bytes: {error}");
            return;
        }
    };
    let what = format!("{:?}, timed_out {}, leaked {}", output.status, output.timed_out, output.leaked);
    let timeout = timeout_ms.map(Duration::from_millis);
    assert!(!output.timed_out || timeout.is_some_and(|timeout| begun.elapsed() >= timeout), "early: {what}");
    let is_natural = plan.natural_exit() == Some(output.status);
    let mut possible = script.last_kill.signals().into_iter().chain([libc::SIGKILL]).map(signaled);
    let is_killed = output.timed_out && possible.any(|status| status == output.status);
    assert!(is_natural || is_killed, "{what}");
    if timeout.is_none() && !plan.is_terminal() && !plan.holds_pipe(false) {
        assert_eq!(output.leaked, plan.holds_pipe(true), "{what}");
    }
    let is_whole = is_natural && matches!(output.status, ExitStatus::Exited(_)) && !plan.is_terminal();
    assert!(!is_whole || captured <= bytes_max, "more than may be captured: {what}");
    for (stream, arrived) in [output.stdout, output.stderr].into_iter().enumerate() {
        let arrived = match &files[stream] {
            Some(file) => super::model::file_bytes(file),
            None if plan.piped()[stream] => arrived,
            None => continue,
        };
        check_prefix(&arrived, &expected[stream], is_whole, &format!("stream {stream}: {what}"));
    }
}

/// Returns whether a kill finds everything that the child started.
pub(super) fn can_kill_all(plan: &Plan) -> bool {
    plan.group != minder::Group::Inherit
        && plan.end != End::Raise(libc::SIGKILL)
        && !plan.acts.contains(&Act::Stop)
}

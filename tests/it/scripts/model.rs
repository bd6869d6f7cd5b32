//! The conditions that a child must meet: after each event, and when it is done.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use minder::{
    ChildId, Chunk, Event, ExitStatus, Group, Outcome, OutputMode, OverflowPolicy, RestartPolicy,
    SpawnOptions, Stream,
};
use minder_os::sync::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use super::plan::{Act, Files, How, LONG, Plan, signaled};
use super::processes::Tag;

/// A child that was started, what was done to it, and what was reported of it.
pub(super) struct ModelChild<'a> {
    pub(super) plan: &'a Plan,
    pub(super) id: ChildId,
    pub(super) pid: u32,
    pub(super) tag: Tag,
    files: Files,
    /// The number of bytes of input that were taken.
    pub(super) accepted: usize,
    pub(super) stdin_open: bool,
    /// The kills that were requested, and those that a deadline requests.
    kills: Vec<(Instant, How)>,
    deadlines: Vec<(Instant, How)>,
    was_suspended: bool,
    was_stopped: bool,
    streaming: bool,
    /// The file that each stream was forwarded to, and how many of its bytes were counted.
    forwards: [Option<(File, u64)>; 2],
    got: [Vec<u8>; 2],
    /// The sizes of the chunks of each stream.
    sizes: [Vec<usize>; 2],
    eofs: [usize; 2],
    stops: usize,
    exit: Option<ExitStatus>,
    /// The outcome of the last run, while the next is not reported.
    pub(super) between: Option<Outcome>,
    /// The kills of the present run that a restart requested.
    run_kills: Vec<(Instant, How)>,
    /// `true` if a restart of the present run was requested.
    requested: bool,
    restarts: u64,
    /// The restarts since the last stable run.
    in_row: u32,
    /// The sizes of the files of its outputs before the present run.
    file_starts: [usize; 2],
    pub(super) done: Option<Outcome>,
}

/// The number of times that each case was checked, for the reader of a long run.
static CHECKED: Mutex<BTreeMap<&str, usize>> = Mutex::new(BTreeMap::new());

pub(super) fn tally(case: &'static str, is_so: bool) {
    let mut checked = CHECKED.lock();
    *checked.entry(case).or_default() += usize::from(is_so);
}

pub(super) fn checked() -> BTreeMap<&'static str, usize> {
    CHECKED.lock().clone()
}

/// The promises of the host that not all hosts make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promises {
    /// `Exited` comes right before `Done`.
    pub(super) exit_is_late: bool,
    /// A chunk has no gap, even if older bytes were dropped.
    pub(super) whole_chunks: bool,
    /// Outputs that stay silent after the exit are closed.
    pub(super) closes_silent: bool,
    /// A call finds the child in the state that the events have reported.
    pub(super) is_in_step: bool,
}

impl std::fmt::Debug for ModelChild<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelChild")
            .field("tag", &self.tag)
            .field("pid", &self.pid)
            .field("arrived", &self.got.each_ref().map(Vec::len))
            .field("eofs", &self.eofs)
            .field("exit", &self.exit)
            .field("kills", &self.kills)
            .finish_non_exhaustive()
    }
}

impl<'a> ModelChild<'a> {
    pub(super) fn new(plan: &'a Plan, id: ChildId, pid: u32, tag: Tag, files: Files) -> Self {
        Self {
            plan,
            id,
            pid,
            tag,
            files,
            accepted: 0,
            stdin_open: plan.input == super::plan::Input::Piped,
            kills: Vec::new(),
            deadlines: Vec::new(),
            was_suspended: false,
            was_stopped: false,
            streaming: plan.mode == OutputMode::Stream,
            forwards: [None, None],
            got: Default::default(),
            sizes: Default::default(),
            eofs: [0; 2],
            stops: 0,
            exit: None,
            between: None,
            run_kills: Vec::new(),
            requested: false,
            restarts: 0,
            in_row: 0,
            file_starts: [0; 2],
            done: None,
        }
    }

    /// Returns the options of a start at `now`.
    pub(super) fn options(plan: &Plan, now: Instant) -> SpawnOptions {
        let options = SpawnOptions::new()
            .overflow(plan.overflow)
            .output_mode(plan.mode)
            .spill_as_file(plan.spill_as_file)
            .rank(plan.rank)
            .restart(plan.restarts.map_or_else(RestartPolicy::default, |restarts| restarts.policy()));
        match &plan.deadline {
            Some((ms, how)) => options.deadline(now + Duration::from_millis(*ms), how.termination()),
            None => options,
        }
    }

    pub(super) fn note_kill(&mut self, at: Instant, how: &How) {
        self.kills.push((at, how.clone()));
    }

    pub(super) fn note_deadline(&mut self, at: Instant, how: &How) {
        self.deadlines.push((at, how.clone()));
    }

    pub(super) fn note_suspended(&mut self) {
        self.was_suspended = true;
    }

    pub(super) fn note_stopped(&mut self) {
        self.was_stopped = true;
    }

    pub(super) fn note_streaming(&mut self) {
        self.streaming = true;
    }

    pub(super) fn note_forward(&mut self, stream: Stream, file: File) {
        self.forwards[stream as usize] = Some((file, 0));
    }

    pub(super) fn is_forwarded(&self, stream: Stream) -> bool {
        self.forwards[stream as usize].is_some()
    }

    /// Notes that a restart was requested, of a child that runs or that waits for its next run.
    pub(super) fn note_restart(&mut self, at: Instant, how: &How, is_waiting: bool) {
        if is_waiting {
            self.in_row = 0;
        } else {
            self.requested = true;
            self.run_kills.push((at, how.clone()));
        }
    }

    pub(super) fn may_be_killed(&self) -> bool {
        !self.kills.is_empty() || !self.deadlines.is_empty() || !self.run_kills.is_empty()
    }

    /// Returns the kills that may have reached the present run.
    fn requested_kills(&self) -> impl Iterator<Item = &(Instant, How)> {
        self.kills.iter().chain(&self.run_kills)
    }

    /// Returns whether nothing but a kill ends the restarts.
    fn restarts_for_ever(&self) -> bool {
        self.plan.restarts.is_some_and(|restarts| {
            let is_due = self.plan.natural_exit().is_some_and(|status| restarts.is_due(status));
            is_due && restarts.next_in_row(u32::MAX - 1).is_some()
        })
    }

    /// Returns whether the script has to kill the child, because it does not end otherwise.
    pub(super) fn needs_kill(&self, leak_timeout: Option<u64>) -> bool {
        self.restarts_for_ever()
            || self.plan.natural_exit().is_none()
            || (self.plan.holds_pipe(true) && leak_timeout.is_none())
    }

    /// Continues a child that a signal stopped, as a shell does.
    pub(super) fn continue_stopped(&self) {
        if self.done.is_none() && (self.was_stopped || self.plan.stops() > 0) {
            self.signal(Signal::CONT);
        }
    }

    /// Sends a signal from outside of the library. The child is not reaped before `Done`.
    pub(super) fn signal(&self, signal: Signal) {
        if self.done.is_none() && self.between.is_none() {
            let pid = Pid::from_raw(self.pid.cast_signed()).expect("valid pid");
            kill_process(pid, signal).expect("signal child");
        }
    }

    /// Checks and records an event. A chunk is returned for the caller to keep.
    pub(super) fn record(&mut self, event: Event, promises: Promises) -> Option<Chunk> {
        assert!(self.done.is_none(), "{event:?} after Done");
        let is_next = matches!(event, Event::Restarted { .. } | Event::Done { .. });
        assert!(self.between.is_none() || is_next, "{event:?} between two runs");
        let follows_exit = promises.exit_is_late && self.exit.is_some();
        assert!(
            !follows_exit || matches!(event, Event::Done { .. } | Event::Restarting { .. }),
            "{event:?} between Exited and Done"
        );
        match event {
            Event::Output { stream, chunk, .. } => {
                self.check_stream(stream, "Output", promises);
                assert!(!chunk.is_empty(), "an empty chunk");
                self.got[stream as usize].extend_from_slice(&chunk);
                self.sizes[stream as usize].push(chunk.len());
                return Some(chunk);
            }
            Event::Spilled { stream, file, .. } => {
                self.check_stream(stream, "Spilled", promises);
                tally("spill files", true);
                assert!(
                    self.plan.spill_as_file && self.plan.overflow == OverflowPolicy::Spill,
                    "a spill file"
                );
                self.append_file(stream, &file.file, file.start, file.len);
            }
            Event::Forwarded { stream, count, .. } => {
                self.check_stream(stream, "Forwarded", promises);
                tally("forwarded", true);
                let (file, from) = self.forwards[stream as usize].take().expect("a stream that is forwarded");
                self.append_file(stream, &file, from, count);
                self.forwards[stream as usize] = Some((file, from + count));
            }
            Event::Writable { .. } => {
                assert_eq!(self.plan.input, super::plan::Input::Piped, "Writable without a pipe");
            }
            Event::Eof { stream, .. } => {
                self.check_stream(stream, "Eof", promises);
                self.eofs[stream as usize] += 1;
            }
            Event::Stopped { signal, .. } => {
                assert!(signal == libc::SIGSTOP && self.exit.is_none(), "stopped by {signal}");
                self.stops += 1;
                assert!(self.stops <= self.plan.stops() || self.was_stopped, "stopped too often");
            }
            Event::Exited { exit, .. } => {
                assert!(self.exit.is_none(), "exited twice");
                self.exit = Some(exit.status);
                self.check_exit(exit.status);
            }
            Event::Restarting { outcome, delay, restarts, .. } => {
                self.check_done(outcome, promises);
                assert!(self.kills.is_empty() || !promises.is_in_step, "a restart of a killed child");
                self.check_restarting(outcome, delay, restarts);
                self.end_run(outcome);
            }
            Event::Restarted { pid, .. } => {
                let last = self.between.take();
                assert!(last.is_some() && pid > 0, "started again while it runs");
                tally("restarts", true);
                self.pid = pid;
            }
            Event::Done { outcome, .. } => self.record_done(outcome, promises),
            other => panic!("an event that is not of a child: {other:?}"),
        }
        None
    }

    fn record_done(&mut self, outcome: Outcome, promises: Promises) {
        self.done = Some(outcome);
        let is_ended = !self.kills.is_empty() || self.is_late();
        if let Some(last) = self.between {
            tally("ended between two runs", true);
            assert!(last == outcome && is_ended, "{last:?} became {outcome:?}");
        } else {
            self.check_done(outcome, promises);
            assert!(is_ended || !self.must_restart(outcome), "no restart after {outcome:?}");
        }
    }

    /// Returns whether a deadline has come.
    fn is_late(&self) -> bool {
        self.deadlines.iter().any(|(at, _)| *at <= Instant::now())
    }

    /// Returns whether a restart follows the present run if nothing has ended the child.
    fn must_restart(&self, outcome: Outcome) -> bool {
        self.plan.restarts.is_some_and(|restarts| {
            let is_due = restarts.is_due(outcome.exit.status) && restarts.next_in_row(self.in_row).is_some();
            self.requested || is_due
        })
    }

    fn check_restarting(&mut self, outcome: Outcome, delay: Duration, count: u64) {
        let what = format!("restart {count} in {delay:?} after {outcome:?}");
        let restarts = self.plan.restarts.expect("a restart without a policy");
        assert!(!outcome.timed_out && self.must_restart(outcome), "{what}");
        let expected = if std::mem::take(&mut self.requested) {
            tally("requested restarts", true);
            self.in_row = 0;
            Duration::ZERO
        } else {
            self.in_row = restarts.next_in_row(self.in_row).expect("one more restart");
            restarts.delay(self.in_row)
        };
        self.restarts += 1;
        assert_eq!((delay, count), (expected, self.restarts), "{what}");
    }

    /// Begins to record the next run.
    fn end_run(&mut self, outcome: Outcome) {
        self.between = Some(outcome);
        self.accepted = 0;
        self.stdin_open = self.plan.input == super::plan::Input::Piped;
        self.run_kills.clear();
        (self.got, self.sizes, self.eofs, self.stops, self.exit) = Default::default();
        self.file_starts =
            self.files.each_ref().map(|file| file.as_ref().map_or(0, |file| file_bytes(file).len()));
    }

    fn append_file(&mut self, stream: Stream, file: &File, start: u64, len: u64) {
        assert!(len > 0, "an empty part of a file");
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, start).expect("read file");
        self.got[stream as usize].extend_from_slice(&bytes);
        self.sizes[stream as usize].push(bytes.len());
    }

    fn check_stream(&self, stream: Stream, what: &str, promises: Promises) {
        assert!(self.plan.piped()[stream as usize], "{what} of {stream:?}, which is not piped");
        assert_eq!(self.eofs[stream as usize], 0, "{what} of {stream:?} after its Eof");
        let held = !self.streaming && !promises.exit_is_late;
        assert!(!held || self.exit.is_some(), "{what} before the exit of a child with AtExit");
    }

    /// Checks how the child exited, as far as that is known before `Done`.
    fn check_exit(&self, status: ExitStatus) {
        let natural = self.plan.natural_exit();
        if natural == Some(status) {
            return;
        }
        let now = Instant::now();
        let due = |(at, _): &&(Instant, How)| *at <= now;
        let all: Vec<_> = self.requested_kills().chain(self.deadlines.iter().filter(due)).collect();
        let possible: Vec<_> = all.iter().flat_map(|(_, how)| how.signals()).map(signaled).collect();
        let escalated = all.iter().any(|(at, how)| now >= *at + how.grace());
        let is_killed = status == signaled(libc::SIGKILL) && escalated;
        assert!(possible.contains(&status) || is_killed, "{status}; natural: {natural:?}, kills: {all:?}");
    }

    fn check_done(&self, outcome: Outcome, promises: Promises) {
        let what = format!("{outcome:?}, kills {:?}, deadlines {:?}", self.kills, self.deadlines);
        assert_eq!(self.exit, Some(outcome.exit.status), "Exited and Done differ: {what}");
        assert!(outcome.exit.usage.is_some(), "{what}");
        assert_eq!(self.eofs, self.plan.piped().map(usize::from), "Eof of each piped stream: {what}");
        let natural = self.plan.natural_exit() == Some(outcome.exit.status);
        assert!(outcome.killed || natural, "{what}");
        assert!(!outcome.killed || self.may_be_killed(), "{what}");
        // Where silent outputs stay open, a deadline counts until they have ended.
        assert!(!outcome.timed_out || outcome.killed || !promises.closes_silent, "{what}");
        let now = Instant::now();
        let deadline = self.deadlines.iter().map(|(at, _)| *at).min();
        assert!(!outcome.timed_out || deadline.is_some_and(|at| at <= now), "early: {what}");
        assert!(!outcome.killed || outcome.timed_out || self.requested_kills().count() > 0, "{what}");
        assert!(self.was_suspended || outcome.suspended.is_zero(), "{what}");
        assert!(outcome.dropped == 0 || self.plan.overflow == OverflowPolicy::DropOldest, "{what}");
        self.check_leftovers(outcome, promises, &what);
        let is_whole = !outcome.killed || (natural && outcome.exit.status.code().is_some());
        tally("children", true);
        tally("whole outputs", is_whole);
        tally("killed", outcome.killed);
        tally("timed out", outcome.timed_out);
        tally("leaked", outcome.leaked);
        tally("left running", outcome.left_running);
        tally("suspended", !outcome.suspended.is_zero());
        tally("dropped bytes", outcome.dropped > 0);
        self.check_bytes(is_whole, outcome.dropped, promises, &what);
    }

    /// Checks what was said about processes that outlive the child, and which of them live.
    fn check_leftovers(&self, outcome: Outcome, promises: Promises, what: &str) {
        let plan = self.plan;
        let in_group = |act: &Act| !matches!(act, Act::Stray(_));
        // A group that loses its last parent while a member is stopped gets SIGHUP from the kernel.
        let was_stopped = self.was_suspended || self.was_stopped || plan.stops() > 0;
        if self.may_be_killed() || was_stopped {
            assert!(!outcome.leaked || plan.holds_pipe(true) || plan.holds_pipe(false), "leaked: {what}");
        } else if !plan.holds_pipe(false) && !plan.is_terminal() {
            let is_held = plan.holds_pipe(true) && !plan.kills_leftovers();
            assert_eq!(outcome.leaked, promises.closes_silent && is_held, "leaked: {what}");
        }
        if !matches!(plan.group, Group::New | Group::Session) {
            return;
        }
        if !self.may_be_killed() && !was_stopped && !plan.starts(false, in_group) {
            let leaves = plan.starts(true, in_group) && !plan.kills_leftovers();
            assert_eq!(outcome.left_running, leaves, "left_running: {what}");
        }
        // The processes of another run have the same tag.
        if self.restarts > 0 || (plan.restarts.is_some() && !promises.is_in_step) {
            return;
        }
        if self.requested_kills().count() > 0 && plan.starts(true, in_group) {
            let alive = self.tag.alive(|line| !line.contains("setsid"));
            assert!(alive.is_empty() && !outcome.left_running, "{alive:?} survived the kill: {what}");
        }
        // A stray is found while its parent lives.
        let at_once = self.requested_kills().chain(&self.deadlines).all(|(_, how)| *how == How::Now);
        let was_alive = plan.natural_exit() != Some(outcome.exit.status);
        if at_once && was_alive && plan.starts(true, |act| matches!(act, Act::Stray(LONG))) {
            let alive = self.tag.alive(|line| line.contains("setsid"));
            assert!(alive.is_empty(), "the strays {alive:?} survived the kill: {what}");
        }
    }

    fn check_bytes(&self, is_whole: bool, dropped: u64, promises: Promises, what: &str) {
        let expected = self.plan.expected(self.accepted).bytes;
        // A terminal discards what was not read when the leader of its session exits.
        let is_whole = is_whole && !self.plan.is_terminal();
        let piped = self.plan.piped();
        for stream in [0, 1] {
            let arrived = match &self.files[stream] {
                Some(file) => file_bytes(file).split_off(self.file_starts[stream]),
                None if piped[stream] => self.got[stream].clone(),
                None => continue,
            };
            let whole = &expected[stream];
            if self.plan.overflow != OverflowPolicy::DropOldest || !piped[stream] {
                check_prefix(&arrived, whole, is_whole, &format!("stream {stream}: {what}"));
            } else if promises.whole_chunks {
                self.check_chunks(stream, whole, what);
            } else {
                check_subsequence(&arrived, whole, &format!("stream {stream}: {what}"));
            }
        }
        if is_whole && self.plan.overflow == OverflowPolicy::DropOldest {
            let written: usize = (0..2).filter(|stream| piped[*stream]).map(|it| expected[it].len()).sum();
            let arrived: usize = self.got.iter().map(Vec::len).sum();
            assert_eq!(arrived as u64 + dropped, written as u64, "{arrived} bytes arrived: {what}");
        }
    }

    /// Checks that each chunk is a part of the output, behind the one before.
    fn check_chunks(&self, stream: usize, whole: &[u8], what: &str) {
        let mut from = 0;
        let mut at = 0;
        for &size in &self.sizes[stream] {
            let chunk = &self.got[stream][at..at + size];
            let found = whole[from..].windows(size).position(|window| window == chunk);
            let Some(found) = found else { panic!("stream {stream}: bytes {at}.. are nowhere: {what}") };
            from += found + size;
            at += size;
        }
    }
}

/// Returns the bytes of a file, without moving the position that it shares with a child.
pub(super) fn file_bytes(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().expect("read metadata").len() as usize];
    file.read_exact_at(&mut bytes, 0).expect("read file");
    bytes
}

/// Checks that what arrived is the beginning of what was written, or all of it.
pub(super) fn check_prefix(arrived: &[u8], written: &[u8], is_whole: bool, what: &str) {
    let same = arrived.iter().zip(written).take_while(|(arrived, written)| arrived == written).count();
    let is_right = same == arrived.len() && (!is_whole || same == written.len());
    let [arrived, written] = [arrived.len(), written.len()];
    assert!(is_right, "{arrived} of {written} bytes, the first {same} are right, whole: {is_whole}, {what}");
}

fn check_subsequence(arrived: &[u8], written: &[u8], what: &str) {
    let mut rest = written.iter();
    let found = arrived.iter().all(|byte| rest.any(|other| other == byte));
    assert!(found, "{} bytes are not among the {} written: {what}", arrived.len(), written.len());
}

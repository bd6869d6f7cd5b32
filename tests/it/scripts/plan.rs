//! A random script: children, what each of them does, and what is done to it.

use std::fmt;
use std::fs::File;
use std::time::Duration;

use minder::{
    Backend, Command, ExitStatus, Group, OutputMode, OverflowPolicy, Restart, RestartPolicy, Signal, Stdio,
    Termination,
};

use crate::support::{TEST_CHILD, catch_ignored_signals, file_of};

/// The life of a process that only a kill ends, in milliseconds.
pub(super) const LONG: u64 = 600_000;

/// A script, drawn from its seed.
pub(super) struct Script {
    pub(super) seed: u64,
    pub(super) host: Host,
    pub(super) limits: Limits,
    pub(super) children: Vec<Plan>,
    pub(super) steps: Vec<Step>,
    /// The number of chunks of output that the caller keeps.
    pub(super) kept: usize,
    /// The way in which children that do not end by themselves are killed at the end.
    pub(super) last_kill: How,
    pub(super) ending: Ending,
}

/// The type or function of the library that runs the children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// A set whose `next_event` waits, or a loop that waits for its descriptor.
    Set {
        backend: Backend,
        by_descriptor: bool,
    },
    Background {
        backend: Backend,
        eager_exit: bool,
        taken_bytes: usize,
    },
    /// One `Child`.
    Lone,
    /// One call of `Command::output_with`.
    Capture {
        timeout_ms: Option<u64>,
        bytes_max: usize,
        by_reader: bool,
    },
    /// One call of `Pipeline::output_with`. The program of the stage `missing` does not exist.
    Pipeline {
        timeout_ms: Option<u64>,
        bytes_max: usize,
        by_reader: bool,
        missing: Option<usize>,
    },
}

/// The limits of a set.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) children: usize,
    pub(super) bytes: usize,
    pub(super) child_bytes: usize,
    pub(super) read_bytes: usize,
    pub(super) read_delay_ms: u64,
    pub(super) leak_ms: Option<u64>,
    pub(super) stop_poll_ms: Option<u64>,
    pub(super) backlog: Option<u64>,
    /// The room of the backend.
    pub(super) room: Option<usize>,
}

/// The end of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Every child ends.
    Finish,
    /// All children are killed: by `kill_all`, or by `stop` of a background set.
    Kill(How),
    /// The set or the child is dropped as it is.
    Drop,
}

/// A child.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) acts: Vec<Act>,
    pub(super) end: End,
    pub(super) input: Input,
    pub(super) output: Output,
    /// `None` for the standard error that is merged into the standard output.
    pub(super) error: Option<Output>,
    pub(super) group: Group,
    pub(super) overflow: OverflowPolicy,
    pub(super) mode: OutputMode,
    pub(super) spill_as_file: bool,
    pub(super) rank: u64,
    pub(super) deadline: Option<(u64, How)>,
    pub(super) restarts: Option<Restarts>,
}

/// A [`RestartPolicy`] without jitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restarts {
    pub(super) when: Restart,
    pub(super) delay_ms: u64,
    pub(super) max_delay_ms: u64,
    pub(super) max: Option<u32>,
    /// `true` if every run counts as stable; otherwise none does.
    pub(super) is_stable: bool,
    /// The time that the processes that a run leaves may take to end; `None` if they are not
    /// killed.
    pub(super) leftovers_ms: Option<u64>,
}

impl Restarts {
    pub(super) fn policy(&self) -> RestartPolicy {
        let ms = Duration::from_millis;
        RestartPolicy::new(self.when)
            .backoff(ms(self.delay_ms))
            .max_backoff(ms(self.max_delay_ms))
            .jitter(0.0)
            .stable_after(if self.is_stable { Duration::ZERO } else { Duration::from_secs(3600) })
            .max_restarts(self.max)
            .kill_leftovers(self.leftovers_ms.map(ms))
    }

    /// Returns whether a run that ends so is followed by another one, as far as the limit allows it.
    pub(super) fn is_due(&self, status: ExitStatus) -> bool {
        match self.when {
            Restart::OnFailure => !status.success(),
            when => when == Restart::Always,
        }
    }

    /// Returns the number in its row of the restart that follows `in_row` others, or `None` after the last.
    pub(super) fn next_in_row(&self, in_row: u32) -> Option<u32> {
        let in_row = if self.is_stable { 0 } else { in_row };
        self.max.is_none_or(|max| in_row < max).then_some(in_row + 1)
    }

    /// Returns the delay before this restart in a row.
    pub(super) fn delay(&self, in_row: u32) -> Duration {
        Duration::from_millis((self.delay_ms << (in_row - 1).min(20)).min(self.max_delay_ms))
    }
}

/// One act of a child: see `tests/bin/steps.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Out { bytes: usize, block: usize },
    Err { bytes: usize, block: usize },
    Both { bytes: usize, block: usize },
    Drain,
    Echo,
    CloseIn,
    CloseOut,
    CloseErr,
    IgnoreTerm,
    Pause(u64),
    Stop,
    Hold(u64),
    Leave(u64),
    Stray(u64),
}

/// The last act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exit(u8),
    Raise(i32),
    Sleep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Null,
    Piped,
    /// A file of this size.
    File(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Null,
    Piped,
    File,
}

/// A [`Termination`]. Pauses are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    Now,
    Graceful(u64),
    Signals(Vec<(i32, u64)>),
}

/// A call on a child, or on all; the numbers of children count from zero.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Spawn(usize),
    SpawnMissing,
    SpawnContradiction,
    Write(usize, usize),
    CloseStdin(usize),
    Kill(usize, How),
    KillAll(How),
    Restart(usize, How),
    Suspend(usize),
    Resume(usize),
    SuspendAll,
    ResumeAll,
    /// `SIGSTOP` or `SIGCONT` from outside of the library.
    Stop(usize),
    Continue(usize),
    Deadline(usize, Option<(u64, How)>),
    Stream(usize),
    Forward(usize, minder::Stream),
    /// This number of events, each within this time.
    Take(usize, u64),
    /// All chunks that were kept are dropped.
    Release,
    Wake,
    TryWait,
    Wait(u64),
}

impl How {
    pub(super) fn termination(&self) -> Termination {
        match self {
            Self::Now => Termination::IMMEDIATE,
            Self::Graceful(ms) => Termination::graceful(Duration::from_millis(*ms)),
            Self::Signals(signals) => {
                let steps: Vec<_> = signals
                    .iter()
                    .map(|(signal, ms)| (Signal::from_raw(*signal), Duration::from_millis(*ms)))
                    .collect();
                Termination::signals(&steps).expect("describe signals")
            }
        }
    }

    /// Returns the signals before `SIGKILL`.
    pub(super) fn signals(&self) -> Vec<i32> {
        match self {
            Self::Now => Vec::new(),
            Self::Graceful(_) => vec![libc::SIGTERM],
            Self::Signals(signals) => signals.iter().map(|(signal, _)| *signal).collect(),
        }
    }

    /// Returns the least time until `SIGKILL`.
    pub(super) fn grace(&self) -> Duration {
        let ms = match self {
            Self::Now => 0,
            Self::Graceful(ms) => *ms,
            Self::Signals(signals) => signals.iter().map(|(_, ms)| *ms).sum(),
        };
        Duration::from_millis(ms)
    }
}

/// The content of a plan's outputs if the child does all of it.
#[derive(Debug, Default)]
pub(super) struct Expected {
    /// The bytes that arrive at the destination of each output. Merged outputs arrive at the first.
    pub(super) bytes: [Vec<u8>; 2],
}

/// The files of a child whose outputs are not pipes.
pub(super) type Files = [Option<File>; 2];

impl Plan {
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.group, Group::Terminal(_))
    }

    /// Returns whether both outputs have one destination.
    pub(super) fn is_merged(&self) -> bool {
        self.is_terminal() || self.error.is_none()
    }

    /// Returns which outputs are streams of the host.
    pub(super) fn piped(&self) -> [bool; 2] {
        if self.is_terminal() {
            return [true, false];
        }
        [self.output == Output::Piped, self.error == Some(Output::Piped)]
    }

    /// Returns the command, and the files that its outputs go to.
    pub(super) fn command(&self, tag: &str) -> (Command, Files) {
        self.stage(tag, false, false)
    }

    /// Returns the command of a stage of a pipeline, which connects the input, the output or both.
    pub(super) fn stage(&self, tag: &str, has_input: bool, has_output: bool) -> (Command, Files) {
        catch_ignored_signals();
        let mut command = Command::new(TEST_CHILD);
        command.args(["steps", tag]).args(self.words()).group(self.group);
        match self.input {
            _ if has_input => &mut command,
            Input::Null => command.stdin(Stdio::null()),
            Input::Piped => command.stdin(Stdio::piped()),
            Input::File(bytes) => command.stdin(file_of(&input_bytes(bytes))),
        };
        let mut files = [None, None];
        let mut stdio = |output, stream: usize| match output {
            Output::Null => Stdio::null(),
            Output::Piped => Stdio::piped(),
            Output::File => {
                let file = tempfile::tempfile().expect("create temporary file");
                files[stream] = Some(file.try_clone().expect("duplicate handle"));
                Stdio::from(file)
            }
        };
        if !has_output {
            command.stdout(stdio(self.output, 0));
        }
        match self.error {
            Some(output) => command.stderr(stdio(output, 1)),
            None => command.stderr_to_stdout(),
        };
        (command, files)
    }

    fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.acts.iter().map(Act::to_string).collect();
        words.push(match self.end {
            End::Exit(code) => format!("exit:{code}"),
            End::Raise(signal) => format!("raise:{signal}"),
            End::Sleep => format!("pause:{LONG}"),
        });
        words
    }

    /// Returns how the child ends if nothing is done to it; `None` if it does not.
    pub(super) fn natural_exit(&self) -> Option<ExitStatus> {
        match self.end {
            End::Exit(code) => Some(ExitStatus::Exited(code.into())),
            End::Raise(libc::SIGTERM) if self.acts.contains(&Act::IgnoreTerm) => None,
            End::Raise(signal) => Some(signaled(signal)),
            End::Sleep => None,
        }
    }

    /// Returns whether the child reads its input to the end, so that a write to it cannot fail.
    pub(super) fn reads_all(&self) -> bool {
        let reads = self.acts.iter().position(|act| matches!(act, Act::Drain | Act::Echo));
        let closes = self.acts.iter().position(|act| *act == Act::CloseIn);
        reads.is_some_and(|reads| closes.is_none_or(|closes| reads < closes))
    }

    /// Returns whether a process for which `chosen` holds is started and lives long, or shortly.
    pub(super) fn starts(&self, long: bool, chosen: impl Fn(&Act) -> bool) -> bool {
        self.acts.iter().any(|act| match act {
            Act::Hold(ms) | Act::Leave(ms) | Act::Stray(ms) => (*ms >= LONG) == long && chosen(act),
            _ => false,
        })
    }

    /// Returns whether the child starts processes.
    pub(super) fn has_family(&self) -> bool {
        self.starts(true, |_| true) || self.starts(false, |_| true)
    }

    /// Returns whether a process that outlives the child keeps one of its pipes open: for long, or
    /// shortly.
    pub(super) fn holds_pipe(&self, long: bool) -> bool {
        let mut open = [self.output == Output::Piped, self.error.unwrap_or(self.output) == Output::Piped];
        if self.is_terminal() {
            open = [true, true];
        }
        self.acts.iter().any(|act| {
            match act {
                Act::CloseOut => open[0] = false,
                Act::CloseErr => open[1] = false,
                _ => (),
            }
            matches!(act, Act::Hold(ms) if (*ms >= LONG) == long) && open.contains(&true)
        })
    }

    /// Returns whether what a run leaves in its group is killed when the child has exited.
    pub(super) fn kills_leftovers(&self) -> bool {
        self.group != Group::Inherit && self.restarts.is_some_and(|restarts| restarts.leftovers_ms.is_some())
    }

    pub(super) fn stops(&self) -> usize {
        self.acts.iter().filter(|act| **act == Act::Stop).count()
    }

    /// Returns what the outputs contain at the end. `accepted` bytes were written to the input.
    pub(super) fn expected(&self, accepted: usize) -> Expected {
        self.expected_of(match self.input {
            Input::Null => Vec::new(),
            Input::Piped => input_bytes(accepted),
            Input::File(bytes) => input_bytes(bytes),
        })
    }

    /// Returns what the outputs contain at the end if this is the whole input.
    pub(super) fn expected_of(&self, mut input: Vec<u8>) -> Expected {
        let mut expected = Expected::default();
        let mut at = [0; 2];
        let mut open = [true; 2];
        let merged = self.is_merged();
        let mut put = |stream: usize, open: [bool; 2], bytes: &[u8]| {
            if open[stream] {
                expected.bytes[if merged { 0 } else { stream }].extend_from_slice(bytes);
            }
        };
        for act in &self.acts {
            let (streams, bytes, block): (&[usize], _, _) = match *act {
                Act::Out { bytes, block } => (&[0], bytes, block),
                Act::Err { bytes, block } => (&[1], bytes, block),
                Act::Both { bytes, block } => (&[0, 1], bytes, block),
                Act::Drain | Act::CloseIn => {
                    input.clear();
                    continue;
                }
                Act::Echo => {
                    put(0, open, &input);
                    input.clear();
                    continue;
                }
                Act::CloseOut => {
                    open[0] = false;
                    continue;
                }
                Act::CloseErr => {
                    open[1] = false;
                    continue;
                }
                _ => continue,
            };
            let mut written = 0;
            while written < bytes {
                let count = block.max(1).min(bytes - written);
                for &stream in streams {
                    let piece: Vec<u8> =
                        (at[stream]..at[stream] + count).map(|at| byte(stream, at)).collect();
                    put(stream, open, &piece);
                    at[stream] += count;
                }
                written += count;
            }
        }
        expected
    }
}

pub(super) fn signaled(signal: i32) -> ExitStatus {
    use std::os::unix::process::ExitStatusExt;
    ExitStatus::from(std::process::ExitStatus::from_raw(signal))
}

/// Returns byte number `at` of a stream, as `tests/bin/steps.rs` writes it.
fn byte(stream: usize, at: usize) -> u8 {
    let mut bits = ((at as u64) << 2 | stream as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^= bits >> 29;
    bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    b'a' + ((bits >> 40) % 25) as u8
}

/// Returns the first bytes of what is written to an input.
pub(super) fn input_bytes(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| byte(2, at)).collect()
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Out { bytes, block } => write!(f, "out:{bytes}:{block}"),
            Self::Err { bytes, block } => write!(f, "err:{bytes}:{block}"),
            Self::Both { bytes, block } => write!(f, "both:{bytes}:{block}"),
            Self::Drain => f.write_str("drain"),
            Self::Echo => f.write_str("echo"),
            Self::CloseIn => f.write_str("close-in"),
            Self::CloseOut => f.write_str("close-out"),
            Self::CloseErr => f.write_str("close-err"),
            Self::IgnoreTerm => f.write_str("ignore-term"),
            Self::Pause(ms) => write!(f, "pause:{ms}"),
            Self::Stop => f.write_str("stop"),
            Self::Hold(ms) => write!(f, "hold:{ms}"),
            Self::Leave(ms) => write!(f, "leave:{ms}"),
            Self::Stray(ms) => write!(f, "stray:{ms}"),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "MINDER_SEED={}: {:?}, {:?}", self.seed, self.host, self.limits)?;
        for (number, plan) in self.children.iter().enumerate() {
            let Plan {
                input,
                output,
                error,
                group,
                overflow,
                mode,
                spill_as_file,
                rank,
                deadline,
                restarts,
                ..
            } = plan;
            writeln!(f, "child {number}: steps TAG {}", plan.words().join(" "))?;
            writeln!(
                f,
                "  stdin {input:?}, stdout {output:?}, stderr {error:?}, {group:?}, {overflow:?}, {mode:?}"
            )?;
            writeln!(f, "  spill_as_file {spill_as_file}, rank {rank}, deadline {deadline:?}, {restarts:?}")?;
        }
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "step {number}: {step:?}")?;
        }
        writeln!(f, "keeps {} chunks; ends by {:?}, {:?}", self.kept, self.ending, self.last_kill)
    }
}

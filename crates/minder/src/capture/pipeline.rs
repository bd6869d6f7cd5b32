//! Commands of which each reads what the one before it writes.

use std::time::Duration;

use super::captured::{Captured, CapturedStage};
use super::options::CaptureOptions;
use super::run::capture;
use crate::command::Command;
use crate::exit_status::{ExitStatus, ResourceUsage};
use crate::group::Group;
use crate::spawn::spawn;
use crate::{Child, Error, ErrorKind, Operation, Result, Termination};

/// Commands of which each reads what the one before it writes, as `a | b | c` in a shell.
///
/// All of them run at the same time, connected by pipes. Each is a child with its own status and its own
/// process group. A command whose reader exits early is usually killed by `SIGPIPE`, which its status
/// reports.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{CaptureOptions, Command, Pipeline};
///
/// let mut head = Command::new("head");
/// head.args(["-n", "1"]);
/// let pipeline = Pipeline::new(Command::new("sort")).pipe(Command::new("uniq")).pipe(head);
/// let output = pipeline.output_with(CaptureOptions::new().input("b\na\na\n"))?;
/// assert_eq!(output.stdout, b"a\n");
/// assert!(output.success() && output.stages.len() == 3);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Pipeline {
    commands: Vec<Command>,
}

/// The end of a pipeline, with what it wrote.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, Pipeline, PipelineOutput};
///
/// let pipeline = Pipeline::new(Command::new("false")).pipe(Command::new("true"));
/// let output: PipelineOutput = pipeline.output()?;
/// assert!(!output.success(), "one of them failed");
/// assert_eq!(output.stages.len(), 2);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PipelineOutput {
    /// The end of each command, in the order of the commands.
    pub stages: Vec<StageOutput>,
    /// The bytes of the last command's standard output.
    pub stdout: Vec<u8>,
    /// The number of bytes of it that are missing: see [`CaptureOptions::truncate`].
    pub stdout_dropped: u64,
}

/// The end of one command of a pipeline.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, Pipeline};
///
/// let mut grep = Command::new("sh");
/// grep.args(["-c", "echo message >&2; exit 2"]);
/// let output = Pipeline::new(grep).pipe(Command::new("cat")).output()?;
/// let failed = output.stages.iter().find(|stage| !stage.status.success()).expect("the first failed");
/// assert_eq!(failed.stderr, b"message\n");
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageOutput {
    /// The exit status of the command.
    pub status: ExitStatus,
    /// The bytes of its standard error.
    pub stderr: Vec<u8>,
    /// The number of bytes of it that are missing: see [`CaptureOptions::truncate`].
    pub stderr_dropped: u64,
    /// The resources that it used. `None` if other code reaped it.
    pub usage: Option<ResourceUsage>,
    /// `true` if it was still running at the end of [`CaptureOptions::timeout`], or another process
    /// kept an output open until then.
    pub timed_out: bool,
    /// `true` if an output was closed while a process that it left behind kept it open: see
    /// [`CaptureOptions::leak_timeout`].
    pub leaked: bool,
}

impl PipelineOutput {
    /// Returns whether all commands succeeded, as the option `pipefail` of shells means it.
    pub fn success(&self) -> bool {
        self.stages.iter().all(|stage| stage.status.success())
    }
}

impl Pipeline {
    /// Returns a pipeline of one command.
    pub fn new(first: Command) -> Self {
        Self { commands: vec![first] }
    }

    /// Adds a command that reads what the last one writes to its standard output; to both outputs, if
    /// that has [`Command::stderr_to_stdout`].
    pub fn pipe(mut self, next: Command) -> Self {
        self.commands.push(next);
        self
    }

    /// Starts all commands and returns their children, in the order of the commands. The streams that
    /// the pipeline does not connect are as the commands set them, and else those of this process.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Pipeline, Stdio};
    ///
    /// let mut count = Command::new("wc");
    /// count.arg("-l").stdout(Stdio::piped());
    /// let mut children = Pipeline::new(Command::new("echo")).pipe(count).spawn()?;
    /// let mut text = String::new();
    /// std::io::Read::read_to_string(children[1].stdout.as_mut().expect("it is piped"), &mut text)?;
    /// assert_eq!(text.trim(), "1");
    /// for child in &mut children {
    ///     assert!(child.wait()?.status.success());
    /// }
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - As [`Command::spawn`], for any of the commands. Those that had started are killed.
    /// - `InvalidInput`: a command sets a stream that the pipeline connects, or has
    ///   [`Group::Terminal`](crate::Group::Terminal).
    /// - `Exhausted`: no descriptor is free for the pipes.
    pub fn spawn(&self) -> Result<Vec<Child>> {
        let mut children: Vec<Child> = Vec::with_capacity(self.commands.len());
        for command in self.connected()? {
            match spawn(&command) {
                Ok(child) => children.push(child),
                Err(error) => {
                    for mut child in children {
                        // The error of the start is the one that counts.
                        let _ = child.kill_and_wait(Termination::IMMEDIATE);
                    }
                    return Err(error);
                }
            }
        }
        Ok(children)
    }

    /// Starts all commands, waits until all have exited, and returns how each exited.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, ExitStatus, Pipeline};
    /// let statuses = Pipeline::new(Command::new("false")).pipe(Command::new("true")).status()?;
    /// assert_eq!(statuses, [ExitStatus::Exited(1), ExitStatus::Exited(0)]);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait`].
    pub fn status(&self) -> Result<Vec<ExitStatus>> {
        let mut children = self.spawn()?;
        // All inputs of ours are closed before the first wait: a later child may wait for its end.
        children.iter_mut().for_each(|child| drop(child.stdin.take()));
        // All are waited for before the first error is returned, so that none is left a zombie.
        let exits: Vec<_> = children.iter_mut().map(Child::wait).collect();
        exits.into_iter().map(|exit| Ok(exit?.status)).collect()
    }

    /// Starts all commands, waits until all have exited, and returns what they wrote. The first reads
    /// the null device, and what they write is captured, unless they set these streams.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Pipeline};
    ///
    /// let mut echo = Command::new("echo");
    /// echo.arg("text");
    /// let mut upper = Command::new("tr");
    /// upper.args(["a-z", "A-Z"]);
    /// let output = Pipeline::new(echo).pipe(upper).output()?;
    /// assert!(output.success() && output.stdout == b"TEXT\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Command::output_with`].
    pub fn output(&self) -> Result<PipelineOutput> {
        self.output_with(CaptureOptions::new())
    }

    /// Does the same as [`output`](Self::output), with a time limit: see [`CaptureOptions::timeout`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Pipeline};
    /// use std::time::Duration;
    ///
    /// let mut sleep = Command::new("sleep");
    /// sleep.arg("60");
    /// let pipeline = Pipeline::new(sleep).pipe(Command::new("cat"));
    /// let output = pipeline.output_timeout(Duration::from_millis(20))?;
    /// assert!(output.stages[0].timed_out && !output.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`output`](Self::output).
    pub fn output_timeout(&self, timeout: Duration) -> Result<PipelineOutput> {
        self.output_with(CaptureOptions::new().timeout(timeout))
    }

    /// Does the same as [`output`](Self::output), with these options. The input is that of the first
    /// command, the time limit is that of each, the limit of captured bytes is that of all together, and
    /// [`CaptureOptions::merge_stderr`] concerns the last.
    ///
    /// # Errors
    /// As [`output`](Self::output). A call that fails leaves no child behind, except one that no signal
    /// ends within 5 s.
    pub fn output_with(&self, options: CaptureOptions) -> Result<PipelineOutput> {
        let Captured { stages, stdout, stdout_dropped, .. } = capture(self.connected()?, options)?;
        let stage = |CapturedStage { exit, stderr, stderr_dropped, timed_out, leaked }| StageOutput {
            status: exit.status,
            stderr,
            stderr_dropped,
            usage: exit.usage,
            timed_out,
            leaked,
        };
        Ok(PipelineOutput { stages: stages.into_iter().map(stage).collect(), stdout, stdout_dropped })
    }

    /// Returns the commands with pipes between them.
    fn connected(&self) -> Result<Vec<Command>> {
        let mut commands = self.commands.clone();
        for place in 1..commands.len() {
            let [writer, reader] = &mut commands[place - 1..=place] else { break };
            if let Some(command) =
                [&*writer, &*reader].into_iter().find(|command| matches!(command.group, Group::Terminal(_)))
            {
                let reason = "its streams are a terminal, which no pipe can replace";
                let error = Error::of_kind(ErrorKind::InvalidInput, "connect", reason);
                return Err(error.during(Operation::Spawn).with_subject(&command.program));
            }
            if writer.stdout.is_some() || reader.stdin.is_some() {
                let reason = "its standard output or the input of its reader is set to something else";
                let error = Error::of_kind(ErrorKind::InvalidInput, "connect", reason);
                return Err(error.during(Operation::Spawn).with_subject(&writer.program));
            }
            let (read_end, write_end) =
                std::io::pipe().map_err(|error| Error::new("make a pipe", error).during(Operation::Spawn))?;
            writer.stdout(write_end);
            reader.stdin(read_end);
        }
        Ok(commands)
    }
}

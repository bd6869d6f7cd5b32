//! The measurements that the admission policy uses: those of the host, or values of a test.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use minder::{Child, Descriptors, Stdio, Termination};
use minder_os::host_stats;
use minder_os::host_stats::{Memory, SwapCounters};

use crate::text::format_error;
use crate::text::time;
use minder_template::Invocation;

use crate::spawn_command::spawn_command;

/// The longest time that a command of `--limit` may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The time between two checks of whether the run has finished, while such a command runs.
const SLICE: Duration = Duration::from_millis(50);

/// Measurements of the current moment.
pub(crate) trait Metrics: fmt::Debug + Send {
    /// Returns how many processes run or could run.
    fn load(&mut self) -> io::Result<f64>;
    /// Returns how much memory there is and how much is free.
    fn memory(&mut self) -> io::Result<Memory>;
    /// Returns how many pages were swapped so far.
    fn swaps(&mut self) -> io::Result<SwapCounters>;
    /// Returns how long each disk has been busy so far.
    fn disks(&mut self) -> io::Result<HashMap<String, Duration>>;
    /// Returns `true` if jobs can be suspended.
    fn suspends(&self) -> bool;
    /// Runs a command of `--limit`. Returns its decision, and a message to report once.
    fn ask(&mut self, command: &str) -> (LimitDecision, Option<String>);
}

/// The decision of a `--limit` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitDecision {
    /// Exit status 0.
    Start,
    /// Exit status 1, and everything else.
    Wait,
    /// Exit status 2.
    Kill,
    /// There is no such program.
    Missing,
}

/// The exit statuses of a shell that cannot run a command: POSIX, and `cmd.exe`.
const NOT_RUN: [i32; 3] = [126, 127, 9009];

/// Measures this host.
#[derive(Debug)]
pub(crate) struct HostMetrics {
    shell: Option<OsString>,
    descriptors: Descriptors,
    stop: Arc<AtomicBool>,
}

impl HostMetrics {
    /// Creates the metrics of this host. `shell` runs the command of `--limit`, instead of the default
    /// shell. Once `stop` is set, no command is waited for.
    pub(crate) fn new(shell: Option<OsString>, descriptors: Descriptors, stop: Arc<AtomicBool>) -> Self {
        Self { shell, descriptors, stop }
    }

    /// Returns the exit status of a command, or why there is none.
    fn run(&self, line: &str) -> Result<i32, String> {
        let call =
            Invocation::of_line(self.shell.as_deref(), line.as_ref()).map_err(|error| error.to_string())?;
        let mut command = spawn_command(call);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.descriptors(&self.descriptors);
        // Only jobs have a number. In a job of another run, the number is that of the other run. The empty
        // one tells `minder status` that this is not a job without a number.
        for name in ["MINDER_JOB", "MINDER_SLOT", "PARALLEL_SEQ"] {
            command.env(name, "");
        }
        let mut child = command.spawn().map_err(|error| format_error(&error.into()))?;
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            let slice = deadline.min(Instant::now() + SLICE);
            match child.wait_deadline(slice) {
                Ok(Some(exit)) => return exit.status.code().ok_or_else(|| exit.status.to_string()),
                Ok(None) if self.stop.load(Ordering::SeqCst) => {
                    kill_child(&mut child);
                    return Ok(1);
                }
                Ok(None) if Instant::now() < deadline => {}
                Ok(None) => {
                    kill_child(&mut child);
                    return Err(format!("no answer within {}", time(ANSWER_MAX)));
                }
                Err(error) => return Err(format_error(&error.into())),
            }
        }
    }
}

/// Kills a command that gave no answer, and waits a moment for its end.
fn kill_child(child: &mut Child) {
    // A command that changed its user id cannot be killed, and is not waited for.
    if child.kill(Termination::IMMEDIATE).is_ok() {
        let _ = child.wait_timeout(Duration::from_secs(1));
    }
}

impl Metrics for HostMetrics {
    fn load(&mut self) -> io::Result<f64> {
        host_stats::load()
    }

    fn memory(&mut self) -> io::Result<Memory> {
        host_stats::usable_memory()
    }

    fn swaps(&mut self) -> io::Result<SwapCounters> {
        host_stats::swap_counters()
    }

    fn disks(&mut self) -> io::Result<HashMap<String, Duration>> {
        Ok(host_stats::disks()?.into_iter().map(|disk| (disk.name, disk.busy)).collect())
    }

    fn suspends(&self) -> bool {
        minder::os::supports_suspend()
    }

    fn ask(&mut self, command: &str) -> (LimitDecision, Option<String>) {
        let problem = match self.run(command) {
            Ok(0) => return (LimitDecision::Start, None),
            Ok(1) => return (LimitDecision::Wait, None),
            Ok(2) => return (LimitDecision::Kill, None),
            Ok(code) if NOT_RUN.contains(&code) => {
                let line = format!(
                    "--limit: cannot run `{command}` (exit {code}): expected a command, \
                     io N, load N or mem SIZE"
                );
                return (LimitDecision::Missing, Some(line));
            }
            Ok(code) => format!("exit {code}"),
            Err(why) => why,
        };
        (LimitDecision::Wait, Some(format!("--limit: `{command}`: {problem}; taken for 1: no job starts")))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn machine() -> HostMetrics {
        HostMetrics::new(None, Descriptors::default(), Arc::default())
    }

    #[test]
    fn limit_command_decides_by_status() {
        let mut machine = machine();
        assert_eq!(machine.ask("exit 0"), (LimitDecision::Start, None));
        assert_eq!(machine.ask("echo no; exit 1"), (LimitDecision::Wait, None));
        assert_eq!(machine.ask("exit 2"), (LimitDecision::Kill, None));
        for line in ["3", "exit 126"] {
            let (answer, said) = machine.ask(line);
            assert!(answer == LimitDecision::Missing && said.is_some_and(|said| said.contains(line)));
        }
        let (answer, said) = machine.ask("exit 3");
        assert_eq!(answer, LimitDecision::Wait);
        assert!(said.is_some_and(|line| line.contains("`exit 3`: exit 3")));
        let (answer, said) =
            HostMetrics::new(Some("/no/shell".into()), Descriptors::default(), Arc::default()).ask("exit 0");
        assert!(answer == LimitDecision::Wait && said.is_some());
    }

    #[test]
    fn finished_run_waits_for_no_limit_command() {
        let started_at = Instant::now();
        let stop = Arc::new(AtomicBool::new(true));
        assert_eq!(
            HostMetrics::new(None, Descriptors::default(), stop).ask("sleep 9").0,
            LimitDecision::Wait
        );
        assert!(started_at.elapsed() < ANSWER_MAX);
    }
}

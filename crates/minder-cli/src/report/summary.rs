//! The last lines of a run: what was done, what it cost, what failed.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use minder::exec::Counts;
use minder::{Outcome, Status};

use super::{count, time};

/// How many failed jobs are named. The rest is counted.
const NAMED_MAX: usize = 10;

/// What one loop adds up.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) cpu: Duration,
    /// The sum of the jobs' own times: what they would have taken one by one.
    pub(crate) wall: Duration,
    failed: Vec<String>,
    leaked: Vec<String>,
    pub(crate) left_running: u64,
}

impl Tally {
    /// Takes the end of a job. `name` is asked for only when the job is to be named.
    pub(crate) fn add(&mut self, outcome: &Outcome, wall: Duration, name: impl Fn() -> String) {
        if let Some(usage) = outcome.exit.usage {
            self.cpu += usage.user + usage.system;
        }
        self.wall += wall;
        self.left_running += u64::from(outcome.left_running);
        if !outcome.exit.status.success() && self.failed.len() < NAMED_MAX {
            self.failed.push(format!("{}  ({}, {})", name(), status(outcome.exit.status), time(wall)));
        }
        if outcome.leaked && self.leaked.len() < NAMED_MAX {
            self.leaked.push(name());
        }
    }

    /// Takes a job that was never started.
    pub(crate) fn add_refused(&mut self, name: &str, why: &str) {
        if self.failed.len() < NAMED_MAX {
            self.failed.push(format!("{name}  ({why})"));
        }
    }

    /// Adds what another loop added up.
    pub(crate) fn merge(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.wall += other.wall;
        self.left_running += other.left_running;
        self.failed.extend(other.failed);
        self.leaked.extend(other.leaked);
        self.failed.truncate(NAMED_MAX);
        self.leaked.truncate(NAMED_MAX);
    }
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) counts: Counts,
    pub(crate) tally: Tally,
    pub(crate) elapsed: Duration,
    /// Processes that jobs left behind, by number and name.
    pub(crate) adopted: Vec<(u32, String)>,
    /// Whether it was cut off, and failures are not of the jobs' own making.
    pub(crate) cut: bool,
    /// The id of its record.
    pub(crate) run: Option<String>,
    /// What stands behind `--resume` when it is taken up again.
    pub(crate) resume: Option<String>,
}

impl Summary {
    /// Whether somebody wants to read it: a person at a terminal, or anybody when not all went well.
    pub(crate) fn is_wanted(&self) -> bool {
        stderr().is_terminal()
            || self.counts.failed > 0
            || !self.tally.leaked.is_empty()
            || self.left_running() > 0
    }

    /// Its lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Counts { succeeded, failed, .. } = self.counts;
        let mut first = format!(
            "{} · {failed} failed · {} elapsed · {} CPU",
            count(succeeded + failed, "job"),
            time(self.elapsed),
            time(self.tally.cpu)
        );
        let gain = self.tally.wall.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-6);
        if succeeded + failed > 1 && gain >= 1.05 {
            first += &format!(" · {gain:.1} times as fast as one by one");
        }
        let mut lines = vec![first];
        lines.extend(self.tally.failed.iter().map(|job| format!("  failed: {job}")));
        let named = self.tally.failed.len() as u64;
        if failed > named && named > 0 {
            lines.push(format!("  and {} more", failed - named));
        }
        let leaked =
            |job| format!("  left its output open: {job}  (closed after 100 ms; `--leak wait` reads on)");
        lines.extend(self.tally.leaked.iter().map(leaked));
        lines.extend(self.left_lines());
        if let Some(run) = self.run.as_ref().filter(|_| failed > 0 && !self.cut) {
            lines.push(format!("  more of them: minder log {run} --failed"));
        }
        lines
    }

    /// How the run is taken up again, if that is possible.
    pub(crate) fn resume_line(&self) -> Option<String> {
        self.resume.as_ref().map(|words| format!("  go on with it: minder run --resume {words}"))
    }

    fn left_running(&self) -> u64 {
        self.tally.left_running.max(self.adopted.len() as u64)
    }

    /// What jobs left running. It lives on after a run that ended by itself.
    fn left_lines(&self) -> Option<String> {
        let adopted: Vec<String> = self
            .adopted
            .iter()
            .take(NAMED_MAX)
            .map(|(pid, name)| format!("{} ({pid})", name.escape_debug()))
            .collect();
        match (self.left_running(), adopted.as_slice()) {
            (0, _) => None,
            (jobs, []) => Some(format!("  left running by {}: they live on", count(jobs, "job"))),
            (_, names) => Some(format!("  left running: {}; they live on", names.join(", "))),
        }
    }
}

/// How a job ended, in few words.
fn status(status: Status) -> String {
    match status {
        Status::Signaled { signal, .. } => match signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
        status => status.to_string(),
    }
}

/// The names that are the same number on every Unix.
pub(crate) fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_name_what_failed() {
        let mut tally =
            Tally { wall: Duration::from_secs(36), cpu: Duration::from_millis(31_400), ..Tally::default() };
        tally.add_refused("./test.sh bsd", "not found");
        let mut counts = Counts::default();
        (counts.succeeded, counts.failed) = (2, 1);
        let summary = Summary {
            counts,
            tally,
            elapsed: Duration::from_millis(18_200),
            adopted: Vec::new(),
            run: None,
            resume: None,
            cut: false,
        };
        assert_eq!(
            summary.lines(),
            [
                "3 jobs · 1 failed · 18.2 s elapsed · 31.4 s CPU · 2.0 times as fast as one by one",
                "  failed: ./test.sh bsd  (not found)"
            ]
        );
    }
}

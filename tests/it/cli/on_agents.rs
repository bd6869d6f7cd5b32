//! Runs on agents of this machine, with a state directory that is theirs alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use minder_record::agents::{AgentKey, keys};
use minder_record::run_state::{ComparedArgs, RunState};

use super::*;

/// A run on agents of this machine, with its own state directory.
pub(super) struct OnAgents {
    pub(super) dir: tempfile::TempDir,
}

impl OnAgents {
    pub(super) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("create directory") }
    }

    /// Returns minder with these flags, in the directory of the run.
    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = minder(line);
        command.env("MINDER_STATE_DIR", self.dir.path().join("state")).current_dir(self.dir.path());
        command
    }

    pub(super) fn start(&self, flags: &str, script: &str, jobs: &[&str]) -> Run {
        let mut command = self.command(&format!("run --on local:3 -j2 --lost-after 4 {flags}"));
        Run::start(command.arg(script).arg(":::").args(jobs))
    }

    /// Returns the directory of the only run.
    pub(super) fn run_dir(&self) -> PathBuf {
        let mut runs = fs::read_dir(self.dir.path().join("state/runs")).expect("read runs");
        runs.next().expect("find run").expect("read entry").path()
    }

    pub(super) fn wait_for(&self, name: &str) {
        self.wait_for_file(&self.dir.path().join(name));
    }

    pub(super) fn wait_for_file(&self, path: &Path) {
        let until = Instant::now() + PATIENCE;
        while !path.exists() {
            assert!(Instant::now() < until, "`{}` is not there", path.display());
            std::thread::park_timeout(Duration::from_millis(10)); // There is no event for a file.
        }
    }

    /// Waits until this number of jobs have a result.
    pub(super) fn wait_for_results(&self, jobs: u64) {
        let until = Instant::now() + PATIENCE;
        while RunState::of_run(&self.run_dir(), ComparedArgs::None).expect("read state").0.done.len() < jobs {
            assert!(Instant::now() < until, "the other jobs have not ended");
            std::thread::park_timeout(Duration::from_millis(10)); // There is no event for a line of a file.
        }
    }

    /// Starts a run whose agents continue alone. Returns its id.
    pub(super) fn detach(&self, flags: &str, script: &str, jobs: &[&str]) -> String {
        let ended = self.start(&format!("--detach {flags}"), script, jobs).wait().exit_code(0);
        assert_eq!(ended.err, "");
        ended.text().trim_end().to_owned()
    }

    /// Returns the processes of agents whose journals have no end.
    pub(super) fn working(&self) -> Vec<Pid> {
        let run = self.run_dir();
        let has_end = |key: &AgentKey| {
            let journal = fs::read_to_string(key.dir(&run).join("journal.jsonl")).unwrap_or_default();
            journal.is_empty() || journal.contains("\"event\":\"over\"")
        };
        let keys = keys(&run).unwrap_or_default();
        keys.into_iter().filter(|key| !has_end(key)).map(|key| pid_of(&run, key)).collect()
    }

    /// Kills the agents that work.
    pub(super) fn kill_agents(&self) {
        for agent in self.working() {
            kill_process(agent, Signal::KILL).expect("kill agent");
        }
    }

    /// Waits until no agent works.
    pub(super) fn wait_for_agents(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.working().is_empty() {
            assert!(Instant::now() < until, "agents still work");
            std::thread::park_timeout(Duration::from_millis(10)); // They have other parents.
        }
    }

    /// Returns the process of the agent that has taken the first range.
    pub(super) fn first_agent(&self) -> Pid {
        let run = self.run_dir();
        let is_first = |key: &AgentKey| {
            let journal = key.dir(&run).join("journal.jsonl");
            fs::read_to_string(journal).unwrap_or_default().contains("\"claim\":1,")
        };
        let until = Instant::now() + PATIENCE;
        loop {
            // Another agent may have begun before it has recorded its claim.
            if let Some(agent) = keys(&run).expect("read agents").into_iter().find(is_first) {
                return pid_of(&run, agent);
            }
            assert!(Instant::now() < until, "the first range is not claimed");
            std::thread::park_timeout(Duration::from_millis(10)); // There is no event for a line of a file.
        }
    }

    /// Waits until a file has this number of lines.
    pub(super) fn wait_for_lines(&self, name: &str, lines: usize) {
        let until = Instant::now() + PATIENCE;
        while fs::read_to_string(self.dir.path().join(name)).unwrap_or_default().lines().count() < lines {
            assert!(Instant::now() < until, "`{name}` has fewer lines");
            std::thread::park_timeout(Duration::from_millis(10)); // There is no event for a line of a file.
        }
    }

    /// Returns the lines of a file that jobs have written.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        let mut lines: Vec<String> = fs::read_to_string(self.dir.path().join(name))
            .expect("read")
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    }
}

impl Drop for OnAgents {
    /// Ends agents that a failed test has left.
    fn drop(&mut self) {
        if self.dir.path().join("state/runs").is_dir() {
            for agent in self.working() {
                let _ = kill_process(agent, Signal::KILL);
            }
        }
    }
}

/// Returns the process of an agent of a run.
pub(super) fn pid_of(run: &Path, agent: AgentKey) -> Pid {
    let journal = fs::read_to_string(agent.dir(run).join("journal.jsonl")).expect("read journal");
    let pid = journal.split("\"pid\":").nth(1).and_then(|rest| rest.split(',').next()).expect("find pid");
    Pid::from_raw(pid.parse().expect("parse pid")).expect("a pid")
}

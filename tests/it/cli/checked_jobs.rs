//! Runs of 10,000 short jobs that print a checksum each, and what must hold of such a run after a fault.

use std::collections::BTreeMap;

use super::*;
use crate::support::{nap, tell};

/// The number of jobs.
const JOBS: u64 = 10_000;
/// The file of a directory in which each job notes its start.
pub(super) const STARTED: &str = "started";
/// The file for which the last job may wait.
const COORDINATED: &str = "coordinated";
/// The time in which all processes of a run have ended after it.
const LEFT_MAX: Duration = Duration::from_secs(30);
/// The time after which a run is given up.
const RUN_MAX: Duration = Duration::from_secs(180);
/// The most files of an agent in the directory of the run.
const AGENT_FILES_MAX: usize = 6;

/// Returns the script of the jobs: each notes in a file that it starts, does this, and prints its checksum.
pub(super) fn script(dir: &Path, does: &str) -> String {
    format!("echo {{}} >>'{}'; {does} echo {{}} $(({{}} * 7919 % 99991))", dir.join(STARTED).display())
}

/// Returns the arguments of the jobs.
pub(super) fn arguments() -> Vec<String> {
    (1..=JOBS).map(|job| job.to_string()).collect()
}

/// How a run of the jobs has ended.
pub(super) struct CheckedRun<'a> {
    /// The directory of the test, which each process of the run has in its environment.
    pub(super) dir: &'a Path,
    /// The directory of the record.
    pub(super) run: &'a Path,
    /// The output of all coordinators.
    pub(super) shown: &'a str,
    /// How many outputs may be there twice, and how many jobs may have been started again.
    pub(super) shown_max: u64,
    pub(super) again_max: u64,
}

impl CheckedRun<'_> {
    /// Fails unless each job has one result, and its output was shown right. `log` is the output of
    /// `minder log RUN --json`. Then no process of the run is left soon, and agents have few files.
    pub(super) fn check(&self, log: &str) {
        let shown = shown_again(self.shown);
        let again = started_again(self.dir);
        tell(&format!("{again} jobs were started again, and {shown} outputs shown again"));
        assert!(again <= self.again_max, "{again} jobs were started again");
        assert!(shown <= self.shown_max, "{shown} outputs were shown again");
        expect_one_result_each(log);
        expect_no_process(&self.dir.display().to_string());
        for key in minder_record::agents::keys(self.run).expect("read agents") {
            let files = std::fs::read_dir(key.dir(self.run)).expect("read directory").count();
            assert!(files <= AGENT_FILES_MAX, "{files} files of an agent");
        }
    }
}

/// Waits for the end of a run. On a loaded machine, 10,000 jobs take longer than other tests wait.
pub(super) fn end(mut run: Run) -> RunOutput {
    let begun = Instant::now();
    while run.record().done.is_none() && begun.elapsed() < RUN_MAX {
        run.read_for(Duration::from_millis(100));
    }
    run.wait()
}

/// Returns what the last job does until [`kill_coordinators`] lets it end.
pub(super) fn waits_for_coordinators(dir: &Path) -> String {
    let file = dir.join(COORDINATED);
    format!("[ {{}} != {JOBS} ] || until test -e '{}'; do sleep 0.05; done;", file.display())
}

/// Kills the coordinator of a run, and the next one, while each shows output. Then two begin at once. Returns
/// what all of them have shown.
pub(super) fn kill_coordinators(mut first: Run, dir: &Path, minder: &dyn Fn(&str) -> Command) -> String {
    let some = |record: &ChildLog| record.outs[0].len() > 20_000;
    first.wait_until("output", some);
    first.kill();
    let mut shown = first.wait().text();
    let mut second = Run::start(&minder("attach"));
    second.wait_until("output", some);
    let refused = Run::start(&minder("attach")).wait().exit_code(255);
    assert!(refused.err.contains("is in use by another minder"), "{}", refused.err);
    second.kill();
    shown += &second.wait().text();
    std::fs::write(dir.join(COORDINATED), "").expect("create file");
    let both: Vec<Run> = (0..2).map(|_| Run::start(&minder("resume"))).collect();
    let ended: Vec<RunOutput> = both.into_iter().map(end).collect();
    // The second one may begin when the first one has ended: then there is nothing to do.
    assert!(ended.iter().any(|it| it.status == ExitStatus::Exited(0)), "{ended:?}");
    shown.extend(ended.iter().map(RunOutput::text));
    shown
}

/// Fails unless the output of each job was shown right, at least once. Returns how many were shown again.
fn shown_again(shown: &str) -> u64 {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for line in shown.lines() {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [job, checksum] = numbers[..] else { panic!("not the line of a job: {line:?}") };
        assert_eq!(checksum, job * 7919 % 99991, "job {job}");
        *counts.entry(job).or_default() += 1;
    }
    expect_all(counts.keys());
    counts.values().sum::<u64>() - JOBS
}

/// Fails unless `minder log RUN --json` has one result for each job, and each is a success.
fn expect_one_result_each(log: &str) {
    let result = |line: &str| {
        let result: serde_json::Value = serde_json::from_str(line).expect("parse a line of the log");
        assert_eq!(result["exit"], 0, "{line}");
        result["job"].as_u64().expect("a number")
    };
    let mut jobs: Vec<u64> = log.lines().map(result).collect();
    jobs.sort_unstable();
    expect_all(jobs.iter());
}

/// Fails unless these are the numbers of all jobs, in their order.
fn expect_all<'a>(jobs: impl Iterator<Item = &'a u64>) {
    let jobs: Vec<u64> = jobs.copied().collect();
    let missing: Vec<u64> = (1..=JOBS).filter(|job| jobs.binary_search(job).is_err()).collect();
    assert!(jobs.len() as u64 == JOBS && missing.is_empty(), "{} jobs, without {missing:?}", jobs.len());
}

/// Waits until this number of jobs have started.
pub(super) fn wait_for_starts(dir: &Path, jobs: usize) {
    let until = Instant::now() + RUN_MAX;
    while file(&dir.join(STARTED)).lines().count() < jobs {
        assert!(Instant::now() < until, "no more jobs have started");
        nap(Duration::from_millis(20)); // There is no event for a line of a file.
    }
}

/// Returns how often jobs were started again.
fn started_again(dir: &Path) -> u64 {
    let text = file(&dir.join(STARTED));
    let mut jobs: Vec<&str> = text.lines().collect();
    let starts = jobs.len();
    jobs.sort_unstable();
    jobs.dedup();
    assert_eq!(jobs.len() as u64, JOBS, "jobs that have never started");
    (starts - jobs.len()) as u64
}

/// Fails unless soon no process has this in its environment, which each process of a run has.
fn expect_no_process(mark: &str) {
    let begun = Instant::now();
    loop {
        let left = with_mark(mark);
        if left.is_empty() {
            tell(&format!("no process is left after {:?}", begun.elapsed()));
            return;
        }
        assert!(begun.elapsed() < LEFT_MAX, "left: {left:?}");
        nap(Duration::from_millis(50)); // There is no event for the end of a process of others.
    }
}

fn with_mark(mark: &str) -> Vec<(u32, String)> {
    let processes = std::fs::read_dir("/proc").expect("list processes").flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_mark = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|part| part == mark.as_bytes()) && !has_exited(*pid)
    };
    let words = |pid| file(Path::new(&format!("/proc/{pid}/cmdline"))).replace('\0', " ");
    processes.filter(|pid| *pid != std::process::id()).filter(has_mark).map(|pid| (pid, words(pid))).collect()
}

/// Returns the parent of a process.
fn parent(pid: u32) -> u32 {
    let stat = file(Path::new(&format!("/proc/{pid}/stat")));
    let rest = stat.rsplit_once(')').expect("find name").1;
    rest.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("find parent")
}

/// Returns the processes of an agent: the one that was started, its guardian, the one that runs jobs, which
/// is given, and its jobs.
pub(super) fn family(worker: u32) -> Vec<u32> {
    tree(parent(parent(worker)))
}

/// Sends a signal to processes. Some of them may have ended.
pub(super) fn signal_all(processes: &[u32], signal: Signal) {
    for pid in processes {
        let _ = kill_process(Pid::from_raw(pid.cast_signed()).expect("valid pid"), signal);
    }
}

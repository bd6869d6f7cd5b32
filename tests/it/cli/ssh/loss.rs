//! Hosts that are lost: each job still has one result, and its output is shown once.

use minder_record::merge::Rounds;

use super::super::checked_jobs::signal_all;
use super::sshd::{Hosts, first_of, kill, wait_until};
use super::*;

/// The first job waits until the test allows it to end, or until it is killed.
const SCRIPT: &str = "echo {} >>started; case {} in 1) : >up; test -e again || sleep 100;; esac; echo {}";
const JOBS: [&str; 12] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"];

/// Starts a run, does something while its first job runs, and checks that no result is missing.
fn lose(flags: &str, hosts: &Hosts, break_it: impl FnOnce(&Hosts)) {
    let run = hosts.run(&format!("-k --quiet {flags}"), SCRIPT, &JOBS);
    hosts.wait_for("up");
    hosts.wait_for_results(9);
    break_it(hosts);
    hosts.allow("again");
    let ended = run.wait().exit_code(0);
    assert_eq!(ended.text(), JOBS.map(|job| format!("{job}\n")).concat());
    expect_one_result_each(hosts);
}

fn expect_one_result_each(hosts: &Hosts) {
    assert!(hosts.state().is_complete());
    let mut rounds = Rounds::read(&hosts.run_dir()).expect("read rounds");
    let mut results = Vec::new();
    for attempt in 1..=2 {
        let Some(mut round) = rounds.take(attempt) else { continue };
        round.visit(|event| {
            if event.counts && !event.is_tried {
                assert!(event.ended.succeeded(), "{:?}", event.ended);
                results.push(event.ended.job);
            }
        });
    }
    results.sort_unstable();
    assert_eq!(results, (1..=12).collect::<Vec<u64>>());
    let firsts = hosts.lines("started").iter().filter(|line| *line == "1").count();
    assert_eq!(firsts, 2, "the job that was killed runs again, once");
}

/// Returns the agent on the host that runs the first job: the process that was started, and the one that
/// runs the jobs.
fn agent(hosts: &Hosts) -> (u32, u32) {
    let all = hosts.remote();
    let agents: Vec<(u32, String)> =
        // Before them comes the shell that waits for them.
        all.iter().filter(|(_, words)| words.contains("agent --serve minder-")).cloned().collect();
    let sleeping = all.iter().find(|(_, words)| words.starts_with("sleep 100")).expect("find job").0;
    let front = first_of(&agents).into_iter().find(|pid| tree(*pid).contains(&sleeping)).expect("find agent");
    (front, runner(front).expect("find the process that runs jobs"))
}

/// Returns the link of the host that runs the first job, as [`agent`] does, and its ssh.
fn link(hosts: &Hosts) -> (u32, u32, u32) {
    let (_, worker) = agent(hosts);
    let mark = file(Path::new(&format!("/proc/{worker}/cmdline")));
    let mark = mark.split('\0').nth(3).expect("find mark").to_owned();
    let ssh = hosts.local("ssh -F").into_iter().find(|(_, words)| words.contains(&mark)).expect("find ssh").0;
    let front = first_of(&hosts.local(" --host ")).into_iter().find(|pid| tree(*pid).contains(&ssh));
    let front = front.expect("find link");
    (front, runner(front).expect("find the process of the link"), ssh)
}

#[test]
#[ignore = "waits until jobs are dead for certain: 16 s"]
fn killed_agent_costs_no_result() {
    let Some(hosts) = Hosts::start() else { return };
    lose("", &hosts, |hosts| kill(agent(hosts).0));
    hosts.expect_nothing_left();
}

#[test]
fn killed_agent_leaves_no_files() {
    for part in [0, 1] {
        let Some(hosts) = Hosts::start() else { return };
        let run = Run::start(hosts.on("ssh:1/alpha", "--quiet").args([": >up; sleep 100", ":::", "1"]));
        hosts.wait_for("up");
        let (front, worker) = agent(&hosts);
        kill([front, worker][part]);
        // The host is connected again when the job is dead for certain, which is later.
        wait_until("the end of files", Duration::from_secs(8), || hosts.files().is_empty());
        run.kill();
        run.wait();
        Run::start(&hosts.command("cancel last")).wait();
        hosts.expect_nothing_left();
    }
}

#[test]
#[ignore = "waits until jobs are dead for certain: 16 s"]
fn killed_worker_of_an_agent_costs_no_result() {
    let Some(hosts) = Hosts::start() else { return };
    lose("", &hosts, |hosts| kill(agent(hosts).1));
    hosts.expect_nothing_left();
}

#[test]
fn killed_ssh_costs_no_result() {
    let Some(hosts) = Hosts::start() else { return };
    lose("", &hosts, |hosts| kill(link(hosts).2));
    hosts.expect_nothing_left();
}

#[test]
#[ignore = "waits until jobs are dead for certain: 16 s"]
fn killed_connection_of_sshd_costs_no_result() {
    let Some(hosts) = Hosts::start() else { return };
    lose("", &hosts, |hosts| {
        let (front, _) = agent(hosts);
        // For another user than root, sshd has a second process, which has the connection.
        let all: Vec<u32> = hosts.connections().into_iter().flat_map(tree).collect();
        let connection = all.into_iter().find(|pid| children(*pid).contains(&front));
        kill(connection.expect("find connection"));
    });
    hosts.expect_nothing_left();
}

#[test]
#[ignore = "waits until jobs are dead for certain: 16 s"]
fn connections_that_are_killed_again_and_again_cost_no_output() {
    let Some(hosts) = Hosts::start() else { return };
    let jobs: Vec<String> = (1..=150).map(|job| job.to_string()).collect();
    let script = "printf '%020000d\\n' {}; sleep 0.05; echo {} >&2";
    let mut run = Run::start(hosts.on("ssh:3/alpha,3/beta", "-k --quiet").arg(script).arg(":::").args(&jobs));
    let mut killed = 0;
    for _ in 0..6 {
        run.read_for(Duration::from_millis(400));
        let ssh = hosts.local("ssh -F").into_iter().find(|(_, words)| words.starts_with("ssh "));
        // A link that connects again has none for a moment.
        if let Some((ssh, _)) = ssh {
            // It may have ended since then.
            signal_all(&[ssh], Signal::KILL);
            killed += 1;
        }
    }
    assert!(killed >= 2, "the run has ended before");
    let ended = run.wait().exit_code(0);
    let expected: String = jobs.iter().map(|job| format!("{job:0>20000}\n")).collect();
    assert!(ended.text() == expected, "the output differs: {} bytes", ended.out.len());
    // Between them are the messages about the hosts.
    let lines = ended.err.lines().filter(|line| !line.starts_with("minder: "));
    let errors: String = lines.map(|line| format!("{line}\n")).collect();
    assert_eq!(errors, jobs.iter().map(|job| format!("{job}\n")).collect::<String>());
    assert!(hosts.state().is_complete());
    hosts.expect_nothing_left();
}

#[test]
#[ignore = "waits until a link is lost: a minute"]
fn killed_link_costs_no_result() {
    for part in [0, 1] {
        let Some(hosts) = Hosts::start() else { return };
        lose("--lost-after 30", &hosts, |hosts| {
            let (front, worker, _) = link(hosts);
            kill([front, worker][part]);
        });
        hosts.expect_nothing_left();
    }
}

#[test]
fn hosts_of_a_killed_coordinator_can_be_ended() {
    let Some(hosts) = Hosts::start() else { return };
    let run = hosts.run("-k", SCRIPT, &JOBS);
    hosts.wait_for("up");
    hosts.wait_for_results(9);
    run.kill();
    let first = run.wait().text();
    // The hosts continue their jobs.
    Run::start(&hosts.command("cancel last")).wait().exit_code(0);
    hosts.expect_nothing_left();
    hosts.allow("again");
    let second = Run::start(&hosts.command("resume")).wait().exit_code(0);
    // With -k, all wait for the first one.
    assert_eq!((first.as_str(), second.text()), ("", JOBS.map(|job| format!("{job}\n")).concat()));
    expect_one_result_each(&hosts);
    hosts.expect_nothing_left();
}

/// A job that fails the test if another copy of it runs: `flock` is of util-linux.
const LOCKING: &str = "echo {} >>started; case {} in 1) \
                       flock -n lock sh -c ': >up; test -e again || exec sleep 100' || : >twice;; \
                       esac; echo {}";

#[test]
#[ignore = "waits until a stopped agent is lost: 25 s"]
fn jobs_of_a_stopped_agent_are_dead_before_they_run_elsewhere() {
    let Some(hosts) = Hosts::start() else { return };
    let run = hosts.run("-k --quiet", LOCKING, &JOBS);
    hosts.wait_for("up");
    hosts.wait_for_results(9);
    let (front, worker) = agent(&hosts);
    let begun = Instant::now();
    for pid in [worker, front] {
        kill_process(Pid::from_raw(pid.cast_signed()).expect("valid pid"), Signal::STOP).expect("stop");
    }
    let job_has_ended = || !hosts.remote().iter().any(|(_, words)| words.starts_with("sleep 100"));
    wait_until("the death of the job", Duration::from_secs(20), job_has_ended);
    crate::support::tell(&format!("the job is dead after {:?}", begun.elapsed()));
    hosts.allow("again");
    let ended = run.wait().exit_code(0);
    crate::support::tell(&format!("the run has ended after {:?}", begun.elapsed()));
    assert_eq!(ended.text(), JOBS.map(|job| format!("{job}\n")).concat());
    assert!(!hosts.home("twice").exists(), "two copies of a job ran at the same time");
    assert!(begun.elapsed() > Duration::from_secs(10), "it was not stopped");
    expect_one_result_each(&hosts);
    hosts.expect_nothing_left();
}

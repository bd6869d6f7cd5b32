//! Runs of 10,000 jobs on hosts that are reached by ssh, while something of them is lost.

use super::super::checked_jobs::{
    CheckedRun, arguments, end, kill_coordinators, script, signal_all, wait_for_starts,
    waits_for_coordinators,
};
use super::networks::{Network, hosts_with_clock, ip};
use super::sshd::{Hosts, first_of, wait_until};
use super::*;
use crate::support::nap;

/// What is lost has at most these jobs without a result: those that run, and those that a host has in
/// advance, which are those of a quarter of a second.
const LOST_MAX: u64 = 250;

/// Starts a run of 10,000 jobs.
fn start(hosts: &Hosts, on: &str, does: &str) -> Run {
    let mut command = hosts.on(on, "--quiet");
    Run::start(command.arg(script(hosts.dir(), does)).arg(":::").args(arguments()))
}

/// Checks a run that has ended: see [`CheckedRun::check`].
fn check(hosts: &Hosts, shown: &str, shown_max: u64, again_max: u64) {
    let run = hosts.run_dir();
    let id = run.file_name().expect("a name").to_str().expect("decode name");
    let log = Run::start(&hosts.command(&format!("log {id} --json"))).wait().exit_code(0);
    CheckedRun { dir: hosts.dir(), run: &run, shown, shown_max, again_max }.check(&log.text());
}

#[test]
#[ignore = "10,000 jobs, and waits until jobs are dead for certain: cargo xtask cluster"]
fn ten_thousand_jobs_survive_a_killed_agent_a_stopped_one_and_a_clock_an_hour_off() {
    let Some(hosts) = hosts_with_clock("+1h") else { return };
    let run = start(&hosts, "ssh:2/alpha,2/beta,2/:", "");
    wait_for_starts(hosts.dir(), 1000);
    let mut agents = hosts.remote();
    agents.retain(|(_, words)| words.contains("agent --serve"));
    let agents = first_of(&agents);
    signal_all(&agents[..1], Signal::KILL);
    wait_for_starts(hosts.dir(), 2000);
    let stopped = tree(agents[1]);
    signal_all(&stopped, Signal::STOP);
    let begun = Instant::now();
    let ended = end(run).exit_code(0);
    nap(Duration::from_secs(25).saturating_sub(begun.elapsed()));
    signal_all(&stopped, Signal::CONT);
    check(&hosts, &ended.text(), 0, 2 * LOST_MAX);
}

#[test]
#[ignore = "10,000 jobs: cargo xtask cluster"]
fn ten_thousand_jobs_survive_killed_connections_and_coordinators() {
    let Some(hosts) = Hosts::start() else { return };
    let run = start(&hosts, "ssh:2/alpha,2/beta,2/gamma", &waits_for_coordinators(hosts.dir()));
    wait_for_starts(hosts.dir(), 1000);
    let ssh = hosts.local("ssh -F").into_iter().find(|(_, words)| words.starts_with("ssh "));
    signal_all(&[ssh.expect("find ssh").0], Signal::KILL);
    let shown = kill_coordinators(run, hosts.dir(), &|line| hosts.command(line));
    // A coordinator shows output before it records that: see `commit.rs`. It counts the slots of all hosts.
    check(&hosts, &shown, 2 * 3 * 2, LOST_MAX);
}

/// Starts a run on a host in another network and on this machine, which has this number of slots. Does
/// something with the network, and checks the run.
fn in_a_network(slots: u32, change: impl FnOnce(&str, &Hosts)) {
    let Some(network) = Network::create() else { return };
    let Some(hosts) = network.hosts() else { return };
    let run = start(&hosts, &format!("ssh:4/alpha,{slots}/:"), "sleep 0.02;");
    wait_for_starts(hosts.dir(), 500);
    change(&network.name, &hosts);
    let ended = end(run).exit_code(0);
    check(&hosts, &ended.text(), 0, LOST_MAX);
}

/// Cuts a network, or connects it again.
fn set_link(name: &str, state: &str) {
    assert!(ip(&format!("-n {name} link set eth0 {state}")), "the network cannot be changed");
}

/// Returns how many results there are of the host.
fn ended_on_host(hosts: &Hosts) -> usize {
    let run = hosts.run_dir();
    let keys = minder_record::agents::keys(&run).expect("read agents");
    let journals = keys.into_iter().map(|key| file(&key.dir(&run).join("journal.jsonl")));
    let of_host = journals.filter(|journal| journal.lines().next().is_some_and(|it| it.contains("alpha")));
    of_host.map(|journal| journal.matches("\"event\":\"ended\"").count()).sum()
}

#[test]
#[ignore = "10,000 jobs, and a network that is cut for 5 s and for 25 s: cargo xtask cluster"]
fn ten_thousand_jobs_survive_a_network_that_is_cut_for_less_and_for_longer_than_the_limit() {
    in_a_network(4, |name, hosts| {
        let agents = minder_record::agents::keys(&hosts.run_dir()).expect("read agents");
        for (seconds, is_lost) in [(5, false), (25, true)] {
            set_link(name, "down");
            nap(Duration::from_secs(seconds));
            let before = ended_on_host(hosts);
            set_link(name, "up");
            wait_until("results of the host", PATIENCE, || ended_on_host(hosts) > before + 200);
            let now = minder_record::agents::keys(&hosts.run_dir()).expect("read agents");
            assert_eq!(now.len() > agents.len(), is_lost, "the host is another agent if it was lost");
        }
    });
}

#[test]
#[ignore = "10,000 jobs, and a host that is gone: cargo xtask cluster"]
fn ten_thousand_jobs_survive_a_host_that_is_gone_for_good() {
    in_a_network(12, |name, _| set_link(name, "down"));
}

//! Hosts whose network or clock is broken: each needs a name space, or another clock. Tests that wait for
//! time limits are ignored.

use std::sync::atomic::{AtomicU32, Ordering};

use super::sshd::{Hosts, Setup, wait_until};
use super::*;
use crate::support::{output, skip, tell};

/// A network name space that is connected to this one.
pub(super) struct Network {
    pub(super) name: String,
    pub(super) address: String,
}

impl Network {
    /// Creates it, or returns `None` if that is not allowed.
    pub(super) fn create() -> Option<Self> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        // Several tests of a process may run at the same time.
        let id = (std::process::id() * 4 + CREATED.fetch_add(1, Ordering::Relaxed)) % 60_000;
        let name = format!("minder{id}");
        let network = Self { address: format!("10.{}.{}", 200 + id / 6000, id % 250), name: name.clone() };
        let Network { address, .. } = &network;
        let is_made = is_root()
            && ip(&format!("netns add {name}"))
            && ip(&format!("link add {name} type veth peer name eth0 netns {name}"))
            && ip(&format!("addr add {address}.1/24 dev {name}"))
            && ip(&format!("link set {name} up"))
            && ip(&format!("-n {name} addr add {address}.2/24 dev eth0"))
            && ip(&format!("-n {name} link set eth0 up"))
            && ip(&format!("-n {name} link set lo up"));
        if !is_made {
            skip(format_args!("needs network name spaces (run it as root, apt-get install iproute2)"));
        }
        is_made.then_some(network)
    }

    /// Starts hosts of which `alpha` is in this network.
    pub(super) fn hosts(&self) -> Option<Hosts> {
        let Self { name, address } = self;
        let server = format!("ListenAddress {address}.2");
        let client = format!("Host alpha\n  HostName {address}.2");
        let enter = ["ip", "netns", "exec", name.as_str()];
        Hosts::with(Setup { server: &server, client: &client, enter: &enter, ..Setup::default() })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        ip(&format!("link del {}", self.name));
        ip(&format!("netns del {}", self.name));
    }
}

/// Runs `ip` with these words. Returns whether it succeeds.
pub(super) fn ip(line: &str) -> bool {
    succeeds("ip", line)
}

fn succeeds(program: &str, line: &str) -> bool {
    let mut command = std::process::Command::new(program);
    command.args(line.split(' ')).stdin(std::process::Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

#[test]
#[ignore = "waits until a host is lost: 25 s"]
fn host_whose_network_is_cut_is_lost_after_20_s() {
    let Some(network) = Network::create() else { return };
    let Some(hosts) = network.hosts() else { return };
    let name = &network.name;
    let jobs: Vec<String> = (1..=8).map(|job| job.to_string()).collect();
    // Those of this machine wait for the job of the host.
    let script = format!(
        "echo {{}} >>'{0}/started'; if [ \"$PWD\" = '{0}/home' ]; then : >up; sleep 100; fi; \
         until test -e '{0}/home/again'; do sleep 0.05; done; echo {{}}",
        hosts.dir().display()
    );
    let run = Run::start(hosts.on("ssh:1/alpha,1/:", "-k --quiet").arg(script).arg(":::").args(&jobs));
    hosts.wait_for("up");
    let begun = Instant::now();
    assert!(ip(&format!("-n {name} link set eth0 down")), "the link cannot be cut");
    let is_dead = || !hosts.remote().iter().any(|(_, words)| words.starts_with("sleep 100"));
    wait_until("the end of the job", Duration::from_secs(30), is_dead);
    let dead = begun.elapsed();
    hosts.allow("again");
    let ended = run.wait().exit_code(0);
    tell(&format!(
        "network cut: the job is dead after {dead:?}, the run has ended after {:?}",
        begun.elapsed()
    ));
    assert_eq!(ended.text(), jobs.iter().map(|job| format!("{job}\n")).collect::<String>());
    assert!(dead < Duration::from_secs(20), "{dead:?}");
    hosts.expect_nothing_left();
}

#[test]
#[ignore = "sends for longer than a host may be silent: a minute"]
fn slow_network_with_long_queues_is_not_a_lost_host() {
    let Some(network) = Network::create() else { return };
    let name = &network.name;
    // A queue of 4 MB is one of 16 s, and a host is lost after 12 s without an answer.
    let slow = "root tbf rate 2mbit burst 16kb limit 4mb";
    if !succeeds("tc", &format!("qdisc add dev {name} {slow}"))
        || !ip(&format!("netns exec {name} tc qdisc add dev eth0 {slow}"))
    {
        return skip(format_args!("needs tc (apt-get install iproute2)"));
    }
    let Some(hosts) = network.hosts() else { return };
    let bytes = vec![b'x'; 6 << 20];
    std::fs::write(hosts.dir().join("here/file"), &bytes).expect("write file");
    let mut run = hosts.on("ssh:alpha", "--transfer --quiet");
    let ended = Run::start(run.arg("cat {}; echo >>started").arg(":::").arg("file")).wait().exit_code(0);
    assert!(ended.out == bytes, "{} bytes", ended.out.len());
    assert_eq!((ended.err.as_str(), hosts.lines("started").len()), ("", 1));
    hosts.expect_nothing_left();
}

/// Starts hosts whose clocks are shifted.
pub(super) fn hosts_with_clock(shift: &str) -> Option<Hosts> {
    // The library of faketime, with both clocks. Each process on the host has it.
    let library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
    if !Path::new(library).exists() {
        skip(format_args!("needs faketime (apt-get install faketime)"));
        return None;
    }
    let env = format!("LD_PRELOAD={library} FAKETIME={shift}");
    Hosts::with(Setup { env: &env, ..Setup::default() })
}

#[test]
fn clocks_of_hosts_are_not_compared() {
    for shift in ["-1h", "+1h"] {
        let Some(hosts) = hosts_with_clock(shift) else { return };
        let script = "echo {}; sleep 0.1; date +%s >>dates";
        let ended = hosts.run("-k --quiet", script, &["1", "2", "3", "4"]).wait().exit_code(0);
        assert_eq!(ended.text(), "1\n2\n3\n4\n", "{shift}");
        let now = output(std::process::Command::new("date").arg("+%s"));
        let now: i64 = text(&now.stdout).trim().parse().expect("parse time");
        let there: i64 = hosts.lines("dates")[0].parse().expect("parse time");
        assert!((now - there).abs() > 3000, "the clock is not changed");
        assert!(hosts.state().is_complete());
        let log = Run::start(&hosts.command("log --failed")).wait();
        assert_eq!(log.text(), "", "{}", log.err);
    }
}

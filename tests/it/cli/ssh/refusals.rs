//! Hosts that cannot be reached, and flags that name no hosts.

use std::fs;

use rustix::net::{AddressFamily, SocketType};

use super::sshd::{Hosts, Setup};
use super::*;

/// Runs three jobs on these hosts.
fn run(setup: Setup<'_>, places: &str) -> Option<RunOutput> {
    let hosts = Hosts::with(setup)?;
    let ended = Run::start(hosts.on(places, "--quiet -k").args(["echo {}", ":::", "1", "2", "3"])).wait();
    hosts.expect_nothing_left();
    Some(ended)
}

/// Fails unless the run has ended with a message that has these parts.
fn expect_line(ended: RunOutput, parts: &[&str]) {
    let ended = ended.exit_code(255);
    for part in parts {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
}

#[test]
fn host_that_is_refused_for_good_is_not_tried_again() {
    let strict = Setup { client: "StrictHostKeyChecking yes", ..Setup::default() };
    let Some(ended) = run(strict, "ssh:alpha") else { return };
    expect_line(ended, &["3 jobs left", "alpha: Host key verification failed", "connect once by hand"]);
    let denied = Setup { server: "AuthenticationMethods password", ..Setup::default() };
    let Some(ended) = run(denied, "ssh:alpha") else { return };
    expect_line(ended, &["alpha: ", "Permission denied (password)", "ssh-copy-id"]);
    let Some(ended) = run(Setup::default(), "ssh:no-such-host.invalid") else { return };
    expect_line(ended, &["no-such-host.invalid: ", "Could not resolve hostname"]);
    let unknown = Setup { client: "NoSuchOption yes", ..Setup::default() };
    let Some(ended) = run(unknown, "ssh:alpha") else { return };
    expect_line(ended, &["alpha: ", "Bad configuration option"]);
}

/// Returns a port at which connections are refused, as long as the socket exists.
fn closed_port() -> (OwnedFd, u16) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("create socket");
    let any = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
    rustix::net::bind(&socket, &any).expect("bind socket");
    let address = rustix::net::getsockname(&socket).expect("read address");
    let address = std::net::SocketAddrV4::try_from(address).expect("an address of IPv4");
    (socket, address.port())
}

#[test]
fn other_hosts_do_the_work_of_one_that_is_not_reached() {
    let (_socket, port) = closed_port();
    let client = format!("Host alpha\n  Port {port}\nHost delta\n  StrictHostKeyChecking yes\nHost *");
    let setup = Setup { client: &client, ..Setup::default() };
    let Some(ended) = run(setup, "ssh:1/alpha,1/beta,1/delta") else { return };
    assert_eq!(ended.exit_code(0).text(), "1\n2\n3\n");
}

#[test]
fn refused_connection_is_tried_five_times() {
    let (_socket, port) = closed_port();
    let client = format!("Port {port}");
    let begun = Instant::now();
    let Some(ended) = run(Setup { client: &client, ..Setup::default() }, "ssh:alpha") else { return };
    assert!(begun.elapsed() >= Duration::from_secs(7), "{:?}", begun.elapsed());
    expect_line(ended, &["alpha: ", "Connection refused; trying again", "no host works on the run"]);
}

#[test]
fn host_that_cannot_run_jobs_is_named() {
    let cases = [
        ("TMPDIR=/proc/none", ["alpha: cannot create a directory in `/proc/none`", "no such file"]),
        ("HOME=/proc/none", ["alpha: cannot change to `/proc/none`", "no such file"]),
    ];
    for (env, parts) in cases {
        let Some(ended) = run(Setup { env, ..Setup::default() }, "ssh:alpha") else { return };
        expect_line(ended, &parts);
    }
}

#[test]
fn program_that_is_missing_on_a_host_is_named() {
    let Some(hosts) = Hosts::start() else { return };
    let ended = Run::start(hosts.on("ssh:alpha", "").args(["no-such-program", ":::", "1", "2"])).wait();
    expect_line(ended, &["alpha: cannot run `no-such-program`: not found in PATH", "2 jobs left"]);
    hosts.expect_nothing_left();
}

#[test]
fn more_connections_than_sshd_accepts_at_once_are_tried_again() {
    let Some(hosts) = Hosts::with(Setup { server: "MaxStartups 2:100:2", ..Setup::default() }) else {
        return;
    };
    let places = format!("ssh:{}", ["1/alpha"; 8].join(","));
    let mut command = hosts.on(&places, "--quiet -k");
    let jobs: Vec<String> = (1..=16).map(|job| job.to_string()).collect();
    let ended = Run::start(command.arg("echo {}; sleep 0.2").arg(":::").args(&jobs)).wait().exit_code(0);
    assert_eq!(ended.text(), jobs.iter().map(|job| format!("{job}\n")).collect::<String>());
    hosts.expect_nothing_left();
}

#[test]
fn shared_connection_of_the_client_is_used() {
    let client = "ControlMaster auto\nControlPath @DIR/control\nControlPersist 2";
    let Some(hosts) = Hosts::with(Setup { client, ..Setup::default() }) else { return };
    for _ in 0..2 {
        let ended = hosts.run("--quiet -k", "echo {}", &["1", "2", "3"]).wait().exit_code(0);
        assert_eq!(ended.text(), "1\n2\n3\n");
    }
    hosts.expect_nothing_left();
}

#[test]
fn invalid_places_are_refused() {
    let dir = tempfile::tempdir().expect("create directory");
    let refused = |flags: &[&str], parts: &[&str]| {
        let mut command = minder("run");
        command.env("MINDER_STATE_DIR", dir.path().join("state")).current_dir(dir.path());
        Run::start(command.args(flags).args(["echo", ":::", "1"])).wait().exit_code(255).error_line(parts);
        assert!(!dir.path().join("state/runs").exists(), "{flags:?}: a run has begun");
    };
    for place in [
        "",
        "ssh",
        "alpha",
        "ssh:",
        "ssh:,",
        "ssh:a,,b",
        "ssh:-oProxyCommand=x",
        "ssh:2/-oProxyCommand=x",
        "ssh:0/a",
        "ssh:x/a",
        "ssh:-1/a",
        "ssh:1/2/a",
        "ssh:a b",
        "ssh:a\nb",
        "ssh:a\u{1b}",
        "local:0",
        "local:",
        "local:65",
        "local:x",
        "slurm",
    ] {
        refused(&["--on", place], &["--on: invalid place"]);
    }
    refused(&["--on", "ssh:a", "--ssh", ""], &["--ssh: no command"]);
    refused(&["--on", "ssh:a", "--ssh", "  "], &["--ssh: no command"]);
    let hosts = |content: &[u8], parts: &[&str]| {
        fs::write(dir.path().join("hosts"), content).expect("write");
        refused(&["--hosts", "hosts"], parts);
    };
    hosts(b"", &["--hosts: `hosts` names no host"]);
    hosts(b"# one\r\n\r\n  \n", &["--hosts: `hosts` names no host"]);
    hosts(b"a\n-oProxyCommand=x\n", &["--hosts: cannot use `hosts`: line 2: ", "-oProxyCommand=x"]);
    hosts(b"a\xff\n", &["--hosts: cannot use `hosts`"]);
    let many: String = (0..2000).map(|number| format!("host{number}\n")).collect();
    hosts(many.as_bytes(), &["2000 hosts are more than 1000"]);
    hosts(&vec![b'\n'; 2 << 20], &["--hosts: cannot use `hosts`", "larger than 1 MiB"]);
    refused(&["--hosts", "."], &["--hosts: cannot use `.`", "directory"]);
    refused(&["--hosts", "none"], &["--hosts: cannot use `none`"]);
    if !is_root() {
        fs::set_permissions(dir.path().join("hosts"), std::os::unix::fs::PermissionsExt::from_mode(0o000))
            .expect("set permissions");
        refused(&["--hosts", "hosts"], &["--hosts: cannot use `hosts`", "ermission denied"]);
    }
}

#[test]
fn file_of_hosts_is_used() {
    let Some(hosts) = Hosts::start() else { return };
    fs::write(hosts.dir().join("here/hosts"), "# two hosts\r\n\r\n 1/alpha \r\n\tbeta\r\n").expect("write");
    let mut command = hosts.command("run --hosts hosts --quiet -k -j1");
    command.arg("--ssh").arg(hosts.ssh()).args(["echo {}; sleep 0.3", ":::", "1", "2", "3", "4", "5", "6"]);
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "1\n2\n3\n4\n5\n6\n");
    let log = file(&hosts.dir().join("sshd.log"));
    assert_eq!(log.matches("Accepted publickey").count(), 2, "{log}");
    // Both flags, which are added.
    let mut command = hosts.command("run --hosts hosts --on ssh:gamma --quiet -k -j1");
    command.arg("--ssh").arg(hosts.ssh()).args(["echo {}; sleep 0.3", ":::", "1", "2", "3"]);
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "1\n2\n3\n");
}

#[test]
fn program_in_place_of_ssh_that_is_missing_is_named() {
    let dir = tempfile::tempdir().expect("create directory");
    let mut command = minder("run --on ssh:alpha --ssh no-such-ssh echo ::: 1");
    command.env("MINDER_STATE_DIR", dir.path());
    let ended = Run::start(&command).wait().exit_code(255);
    assert!(ended.err.contains("exec: no-such-ssh: "), "{}", ended.err);
}

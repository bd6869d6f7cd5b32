//! Jobs on hosts: where and how they run, and their arguments, outputs and ends.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;

use super::sshd::{Hosts, TWO_HOSTS};
use super::*;

fn numbers(count: u32) -> Vec<String> {
    (1..=count).map(|number| number.to_string()).collect()
}

#[test]
fn results_are_those_of_a_run_on_this_machine() {
    let Some(hosts) = Hosts::start() else { return };
    let jobs = numbers(120);
    let script = "echo o{}; echo e{} >&2; case {} in *7) exit 255;; *9) kill -9 $$;; esac";
    let there =
        Run::start(hosts.on(TWO_HOSTS, "-k --tag --quiet --joblog log").arg(script).arg(":::").args(&jobs));
    let there = there.wait();
    let mut here = hosts.command("run -j2 -k --tag --quiet --joblog log2");
    let here = Run::start(here.arg(script).arg(":::").args(&jobs)).wait();
    assert_eq!((there.status, there.text(), &there.err), (here.status, here.text(), &here.err));
    // A job that ends as ssh does when it fails is a failed job, and does not end its host.
    assert_eq!(there.status, ExitStatus::Exited(24));
    assert_eq!(columns(&hosts, "log"), columns(&hosts, "log2"));
    let log = Run::start(&hosts.command("log --failed")).wait();
    assert!(log.text().contains("255"), "{}", log.text());
    hosts.expect_nothing_left();
}

/// Returns the number, the exit status, the signal and the command of each job in a joblog, sorted.
fn columns(hosts: &Hosts, name: &str) -> Vec<String> {
    let text = file(&hosts.dir().join("here").join(name));
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            let all: Vec<&str> = line.split('\t').collect();
            [all[0], all[6], all[7], all[8]].join(" ")
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn jobs_run_in_the_home_directory() {
    let Some(hosts) = Hosts::start() else { return };
    let ended =
        Run::start(hosts.on("ssh:alpha", "-j1 --quiet -k").args(["pwd; echo $0 >{}; cat", ":::", "a"]));
    let ended = ended.wait().exit_code(0);
    assert_eq!(ended.text(), format!("{}\n", hosts.home("").display().to_string().trim_end_matches('/')));
    assert!(hosts.home("a").exists());
}

#[test]
fn each_argument_arrives_as_it_is() {
    let Some(hosts) = Hosts::start() else { return };
    let mut jobs: Vec<OsString> =
        (1..=255).filter(|byte| *byte != b'\n').map(|byte| OsString::from_vec(vec![byte])).collect();
    let all: Vec<u8> = (1..=255).filter(|byte| *byte != b'\n').collect();
    jobs.push(OsString::from_vec(all));
    jobs.extend(["", " ", "  a  b ", "-n", "$(exit 3)", "é\u{202e}"].map(OsString::from));
    jobs.push(OsString::from("x".repeat(100_000)));
    for script in ["printf '<%s>' {}", "printf '<%s>' {} | wc -c"] {
        let flags = "--quiet -k";
        let there =
            Run::start(hosts.on("ssh:4/alpha,4/beta", flags).arg(script).arg(":::").args(&jobs)).wait();
        let here = Run::start(hosts.command("run --quiet -k").arg(script).arg(":::").args(&jobs)).wait();
        let there = there.exit_code(0);
        assert!(there.out == here.out, "{:?} instead of {:?}", text(&there.out), text(&here.out));
    }
    // Several columns, of which some are empty.
    let mut command = hosts.on(TWO_HOSTS, "--quiet -k --colsep ,");
    let ended = Run::start(command.arg("echo {2}-{1}").arg(":::").args(["a,b", ",c", "d,"])).wait();
    assert_eq!(ended.exit_code(0).text(), "b-a\nc-\n-d\n");
}

#[test]
fn large_and_binary_output_arrives_complete() {
    let Some(hosts) = Hosts::start() else { return };
    let jobs = numbers(50);
    let script = "head -c 1000000 /dev/urandom >{}; cat {}; printf '\\0\\377\\n' >&2; head -c 48576 {}";
    let ended = Run::start(hosts.on(TWO_HOSTS, "--quiet -k").arg(script).arg(":::").args(&jobs)).wait();
    let ended = ended.exit_code(0);
    let mut expected = Vec::new();
    for job in &jobs {
        let bytes = fs::read(hosts.home(job)).expect("read output");
        expected.extend_from_slice(&bytes);
        expected.extend_from_slice(&bytes[..48_576]);
    }
    assert_eq!(ended.out.len(), expected.len());
    assert!(ended.out == expected, "the output differs");
    assert_eq!(ended.errors, b"\0\xff\n".repeat(50));
    hosts.expect_nothing_left();
}

#[test]
fn many_slots_of_three_hosts_lose_no_job() {
    let Some(hosts) = Hosts::start() else { return };
    let jobs = numbers(1000);
    let mut command = hosts.on("ssh:40/alpha,40/beta,40/gamma", "--quiet");
    let ended =
        Run::start(command.arg("echo {}; echo {} >>started").arg(":::").args(&jobs)).wait().exit_code(0);
    let mut expected = jobs;
    expected.sort();
    assert_eq!(ended.sorted(), expected);
    assert_eq!(hosts.lines("started"), expected);
    assert!(hosts.state().is_complete());
    hosts.expect_nothing_left();
}

#[test]
fn more_slots_than_jobs_run_each_once() {
    let Some(hosts) = Hosts::start() else { return };
    let mut command = hosts.on("ssh:4/alpha,4/beta,4/gamma,4/delta", "--quiet");
    let jobs = numbers(12);
    let ended =
        Run::start(command.arg("echo {} >>started; sleep 0.1; echo {}").arg(":::").args(&jobs)).wait();
    let ended = ended.exit_code(0);
    let mut expected = jobs;
    expected.sort();
    assert_eq!((ended.sorted(), hosts.lines("started")), (expected.clone(), expected));
}

#[test]
fn halt_ends_the_jobs_of_all_hosts() {
    let Some(hosts) = Hosts::start() else { return };
    let begun = Instant::now();
    let ended = hosts.run("--halt now,fail=1", "[ {} != 3 ] || exit 9; sleep 100", &["1", "2", "3"]).wait();
    assert_eq!(ended.status, ExitStatus::Exited(9), "{ended:?}");
    assert!(begun.elapsed() < SOON);
    hosts.expect_nothing_left();
}

#[test]
fn second_interrupt_kills_the_jobs() {
    let Some(hosts) = Hosts::start() else { return };
    let mut run =
        hosts.run("", "trap ': >asked' TERM; trap '' INT; : >up; while :; do sleep 0.1; done; true", &["1"]);
    hosts.wait_for("up");
    let begun = Instant::now();
    run.signal(Signal::INT);
    let cancel = hosts.run_dir().join("rounds/1/cancel");
    run.wait_until_true("the end of the round", || cancel.exists());
    // One that follows at once counts as the same key.
    run.read_for(Duration::from_millis(500));
    run.signal(Signal::INT);
    run.wait();
    assert!(hosts.home("asked").exists(), "the job was not asked to end");
    assert!(begun.elapsed() < Duration::from_secs(8), "the jobs had their ten seconds");
    hosts.expect_nothing_left();
}

#[test]
fn timeouts_and_retries_are_those_of_the_host() {
    let Some(hosts) = Hosts::start() else { return };
    let script = "echo {} >>tries; case {} in 1) sleep 100;; 2) test $(grep -c 2 tries) -ge 3;; esac";
    hosts.run("--timeout 0.5 --retries 3 --quiet", script, &["1", "2", "3"]).wait().exit_code(1);
    assert_eq!(hosts.lines("tries"), ["1", "1", "1", "2", "2", "2", "3"]);
    let log = Run::start(&hosts.command("log --failed")).wait();
    assert!(log.text().contains("timed out"), "{}", log.text());
    hosts.expect_nothing_left();
}

#[test]
fn interrupted_run_is_resumed_on_the_same_hosts() {
    let Some(hosts) = Hosts::start() else { return };
    let script = "echo {} >>started; case {} in 7) : >up; test -e again || sleep 100;; esac; echo {}";
    let jobs = ["1", "2", "3", "4", "5", "6", "7"];
    let run = hosts.run("", script, &jobs);
    hosts.wait_for("up");
    hosts.wait_for_results(6);
    run.signal(Signal::INT);
    let first = run.wait();
    assert!(first.err.contains("minder resume"), "{}", first.err);
    hosts.expect_nothing_left();
    hosts.allow("again");
    let second = Run::start(&hosts.command("resume")).wait().exit_code(0);
    let both = format!("{}{}", first.text(), second.text());
    let mut all: Vec<&str> = both.lines().collect();
    all.sort_unstable();
    assert_eq!(all, jobs);
    assert_eq!(hosts.lines("started"), ["1", "2", "3", "4", "5", "6", "7", "7"]);
    let third = Run::start(&hosts.command("resume")).wait().exit_code(0);
    assert!(third.err.contains("nothing to resume"), "{}", third.err);
}

#[test]
fn failed_jobs_are_retried_on_the_same_hosts() {
    let Some(hosts) = Hosts::start() else { return };
    hosts.run("--quiet", "test {} != 2 || test -e again", &["1", "2", "3"]).wait().exit_code(1);
    hosts.allow("again");
    let retried = Run::start(&hosts.command("retry")).wait().exit_code(0);
    assert!(retried.err.contains("(1 of 3 failed)"), "{}", retried.err);
    assert!(hosts.state().is_complete());
}

#[test]
fn this_machine_works_beside_a_host() {
    let Some(hosts) = Hosts::start() else { return };
    let script = "true {}; pwd; sleep 0.3";
    let ended =
        Run::start(hosts.on("ssh:1/:,1/alpha", "--quiet").arg(script).arg(":::").args(numbers(8))).wait();
    let ended = ended.exit_code(0);
    let here = hosts.dir().join("here").display().to_string();
    let of_here = ended.text().lines().filter(|line| *line == here).count();
    assert_eq!(ended.text().lines().count(), 8);
    assert!((1..8).contains(&of_here), "{}", ended.text());
}

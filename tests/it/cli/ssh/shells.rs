//! Login shells: those that write or wait before they run a command, and those that are not of POSIX.

use std::fs;

use super::sshd::{Hosts, Setup};
use super::*;
use crate::support::{output, skip};

/// Runs two jobs on a host, whose sshd runs each command by this one.
fn run_forced(command: &str) -> Option<RunOutput> {
    let hosts = Hosts::with(Setup { server: &format!("ForceCommand {command}"), ..Setup::default() })?;
    let run = Run::start(hosts.on("ssh:2/alpha", "--quiet -k").args([
        "printf '%s\\n' {}",
        ":::",
        "1 'a\\b'$x",
        "2",
    ]));
    let ended = run.wait();
    hosts.expect_nothing_left();
    Some(ended)
}

#[test]
fn shells_that_write_before_a_command_are_understood() {
    const END: &str = r#"exec /bin/sh -c "$SSH_ORIGINAL_COMMAND""#;
    let lines = "printf 'one\\ntwo\\nminder-0 hello\\nno end of a line'; printf 'error\\n\\n' >&2";
    let errors = "head -c 1000000 /dev/zero | tr '\\0' x >&2";
    for before in [lines, "head -c 60000 /dev/urandom", errors, "sleep 2"] {
        let Some(ended) = run_forced(&format!("{before}; {END}")) else { return };
        assert_eq!(ended.exit_code(0).text(), "1 'a\\b'$x\n2\n", "{before}");
    }
    let Some(ended) = run_forced(&format!("yes welcome | head -c 1000000; {END}")) else { return };
    let ended = ended.exit_code(255);
    let expected = "alpha: its shell writes too much before a command starts: `welcome`";
    assert!(ended.err.contains(expected), "{}", ended.err);
}

#[test]
fn file_of_the_shell_is_read() {
    let Some(hosts) = Hosts::start() else { return };
    for name in [".bashrc", ".zshenv", ".profile", ".cshrc"] {
        fs::write(hosts.home(name), "echo Welcome; export GREETING=$HOME\n").expect("write");
    }
    let run = Run::start(hosts.on("ssh:2/alpha", "--quiet -k").args(["echo {}", ":::", "1", "2"]));
    assert_eq!(run.wait().exit_code(0).text(), "1\n2\n");
}

#[test]
fn shells_of_other_languages_start_the_agent() {
    for (shell, package) in
        [("tcsh", "tcsh"), ("fish", "fish"), ("zsh", "zsh"), ("mksh", "mksh"), ("dash", "dash")]
    {
        if output(std::process::Command::new("sh").args(["-c", "command -v \"$0\"", shell])).stdout.is_empty()
        {
            skip(format_args!("needs {shell} (apt-get install {package})"));
            continue;
        }
        let Some(ended) = run_forced(&format!(r#"exec {shell} -c "$SSH_ORIGINAL_COMMAND""#)) else { return };
        assert_eq!(ended.exit_code(0).text(), "1 'a\\b'$x\n2\n", "{shell}");
    }
}

#[test]
#[ignore = "five tries: 8 s"]
fn login_without_a_shell_is_named() {
    let Some(ended) = run_forced("echo This account is not available.; exit 1") else { return };
    let ended = ended.exit_code(255);
    assert!(ended.err.contains("This account is not available."), "{}", ended.err);
}

#[test]
#[ignore = "waits as long as a host has to answer: 20 s, five times"]
fn host_that_does_not_answer_is_named() {
    let server = "ForceCommand echo Wait; sleep 60";
    let Some(hosts) = Hosts::with(Setup { server, ..Setup::default() }) else { return };
    let mut run = Run::start(hosts.on("ssh:2/alpha", "--quiet").args(["echo {}", ":::", "1"]));
    run.read_for(Duration::from_secs(90));
    let ended = run.wait().exit_code(255);
    crate::support::tell(&format!("given up after {:?}: {}", ended.wall, ended.err));
    assert!(ended.err.contains("alpha: no answer within 20 s but `Wait`"));
}

#[test]
#[ignore = "waits for a slow shell: 15 s"]
fn host_that_answers_late_is_waited_for() {
    let Some(ended) = run_forced(r#"sleep 15; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND""#) else { return };
    assert_eq!(ended.exit_code(0).text(), "1 'a\\b'$x\n2\n");
}

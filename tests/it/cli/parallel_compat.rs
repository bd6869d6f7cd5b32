//! GNU parallel's command line, and that of its `sem`.

#[cfg(unix)]
use std::fs::File;
use std::path::Path;

use minder::Command;
#[cfg(unix)]
use minder::Stdio;
#[cfg(unix)]
use rustix::process::Signal;

use super::{MINDER, Run, RunOutput, SOON, from};
#[cfg(unix)]
use super::{file, input, path, temp_dir};
#[cfg(target_os = "linux")]
use crate::support::{CHILD, end, lives};

/// `minder` as GNU parallel or its `sem`, with no options but these.
fn face(name: &str, words: &[&str]) -> Command {
    let mut command = from(MINDER, name);
    at_home(&mut command, Path::new("/nonexistent"));
    command.args(words);
    command
}

/// Options come from this directory.
pub(super) fn at_home<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command.env_remove("PARALLEL").env("PARALLEL_HOME", home).env("PARALLEL_SHELL", "/bin/sh")
}

fn parallel(words: &[&str]) -> RunOutput {
    Run::start(&face("parallel", words)).wait()
}

fn sem(words: &[&str]) -> RunOutput {
    Run::start(&face("sem", words)).wait()
}

/// Returns the name of a semaphore that no other test uses.
#[cfg(unix)]
fn name(test: &str) -> String {
    format!("{test} {}", std::process::id())
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn arguments_form_one_shell_line() {
    let out = parallel(&["-k", "echo", "{}", "|", "tr", "a-z", "A-Z", ":::", "it's", "$(id)"]);
    assert_eq!(out.exit_code(0).text(), "IT'S\n$(ID)\n");
    assert_eq!(parallel(&["exit", ":::", "0", "3", "4"]).exit_code(2).text(), "");
    assert_eq!(parallel(&["-q", "echo", "a  ;b", ":::", "c"]).exit_code(0).text(), "a  ;b c\n");
}

#[cfg(unix)] // Links, and a POSIX shell's line.
#[test]
fn link_named_parallel_or_sem_selects_the_mode() {
    let dir = temp_dir();
    let link = dir.path().join("parallel");
    std::os::unix::fs::symlink(MINDER, &link).expect("create symbolic link");
    let mut command = from(path(&link), "-kj2 --keep echo {1}-{2} ::: a b ::: 1 2");
    at_home(&mut command, dir.path());
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "a-1\na-2\nb-1\nb-2\n");

    let link = dir.path().join("sem");
    std::os::unix::fs::symlink(MINDER, &link).expect("create symbolic link");
    let mut command = from(path(&link), "--fg --id");
    at_home(&mut command, dir.path()).arg(name("link")).arg("exit 5");
    Run::start(&command).wait().exit_code(5);
}

#[cfg(target_os = "linux")] // The parent's program is known there.
#[test]
fn jobs_run_in_the_shell_that_called_parallel() {
    let bash = "f() { echo \"f $1\"; }; export -f f; \"$MINDER\" parallel -k f ::: 1 2; true";
    for login in [Some("/bin/sh"), Some("/usr/bin/fish"), None] {
        let mut command = from("/bin/bash", "");
        at_home(command.args(["-c", bash]), Path::new("/nonexistent"));
        command.env_remove("PARALLEL_SHELL").env_remove("SHELL").env("MINDER", MINDER);
        if let Some(login) = login {
            command.env("SHELL", login);
        }
        assert_eq!(Run::start(&command).wait().exit_code(0).text(), "f 1\nf 2\n", "{login:?}");
    }
}

#[cfg(target_os = "linux")] // The parent, this program, is known not to be a shell there.
#[test]
fn refused_shell_of_the_user_is_named_with_its_replacement() {
    let mut command = face("parallel", &["echo", ":::", "1"]);
    command.env_remove("PARALLEL_SHELL").env("SHELL", "/usr/bin/fish");
    let out = Run::start(&command).wait().exit_code(0);
    assert_eq!(out.text(), "1\n");
    out.error_line(&["/bin/sh", "/usr/bin/fish", "PARALLEL_SHELL"]);
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn options_come_from_profiles_and_the_environment() {
    let home = temp_dir();
    std::fs::write(home.path().join("config"), "# tags\n--tag\n-k\n").expect("write file");
    std::fs::write(home.path().join("mine"), "-k --tagstring 'a b' echo").expect("write file");
    let said = |variable: &str, words: &[&str]| {
        let mut command = from(MINDER, "parallel");
        at_home(&mut command, home.path()).args(words);
        if !variable.is_empty() {
            command.env("PARALLEL", variable);
        }
        Run::start(&command).wait().exit_code(0).text()
    };
    assert_eq!(said("", &["echo", ":::", "1"]), "1\t1\n");
    assert_eq!(said(r"--tagstring x\ y", &["echo", ":::", "1"]), "x y\t1\n");
    assert_eq!(said("--tagstring p", &["--tagstring", "c", "echo", ":::", "1"]), "c\t1\n");
    assert_eq!(said("--tagstring p", &["--plain", "echo", ":::", "1"]), "1\n");
    assert_eq!(said("", &["-J", "mine", "x", ":::", "1"]), "a b\tx 1\n");
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn tag_is_the_value_when_its_placeholder_is_renamed() {
    assert_eq!(parallel(&["-I,,", "--tag", "echo", ",,x", ":::", "a"]).exit_code(0).text(), "a\tax\n");
    assert_eq!(parallel(&["-i_", "--tag", "echo", "_x", ":::", "a"]).exit_code(0).text(), "a\tax\n");
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn reading_all_of_the_input_is_silent_without_a_terminal() {
    let out = parallel(&["--shuf", "echo", ":::", "a"]).exit_code(0);
    assert_eq!((out.text().as_str(), out.err.as_str()), ("a\n", ""));
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn oldpwd_of_jobs_is_the_directory_of_the_caller() {
    let dir = temp_dir();
    let caller = dir.path().canonicalize().expect("canonicalize path");
    let mut command = face("parallel", &["--wd", "/", "echo $OLDPWD; pwd", ":::", ""]);
    command.env("OLDPWD", "/nonexistent").current_dir(&caller);
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), format!("{}\n/\n", path(&caller)));
}

#[test]
fn unsupported_options_are_named() {
    let login = ["-S", "ssh -p 22 host", "echo", ":::", "1"];
    parallel(&login).exit_code(255).error_line(&["`--sshlogin ssh -p 22 host`", "--ssh"]);
    parallel(&["echo", "{= s/a/b/ =}", ":::", "1"]).exit_code(255).error_line(&["Perl"]);
    parallel(&["--bogus", "echo"]).exit_code(255).error_line(&["`--bogus`"]);
    parallel(&["-u", "--lb", "echo", ":::", "1"])
        .exit_code(255)
        .error_line(&["`--ungroup`", "`--line-buffer`"]);
    sem(&["echo", ":::", "1"]).exit_code(255).error_line(&["`:::`"]);
}

#[test]
fn version_and_machine_options_print_values() {
    let version = parallel(&["--version"]).exit_code(0).text();
    assert!(version.starts_with("minder ") && version.contains("20221122"), "{version}");
    assert_eq!(parallel(&["--minversion", "20100101"]).exit_code(0).text(), "20221122\n");
    assert_eq!(parallel(&["--minversion", "20990101"]).exit_code(255).text(), "20221122\n");
    assert!(parallel(&["--help"]).exit_code(0).text().contains("--joblog"));
    for flag in ["--number-of-cores", "--number-of-sockets", "--number-of-threads", "--number-of-cpus"] {
        let number: u32 = parallel(&[flag]).exit_code(0).text().trim().parse().expect(flag);
        assert!((1..100_000).contains(&number), "{flag}: {number}");
    }
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn show_limits_precedes_the_jobs() {
    let limits = parallel(&["--show-limits", "echo", ":::", "on"]).exit_code(0).text();
    assert!(limits.starts_with("Maximal size of command: ") && limits.ends_with("\non\n"), "{limits}");
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn shell_quote_quotes_arguments() {
    let said = |words: &[&str]| parallel(words).exit_code(0).text();
    assert_eq!(said(&["--shell-quote", ":::", "a b", "c", "it's", ""]), "'a b'\nc\n'it'\"'\"'s'\n''\n");
    assert_eq!(said(&["--shellquote", "--shell-quote", ":::", "a b"]), "\"'\"'a b'\"'\"\n");
    assert_eq!(said(&["--shell-quote", "echo", "{}", "x", ":::", "a b"]), "'echo '\"'\"'a b'\"'\"' x'\n");
    let mut command = face("parallel", &["--shell-quote"]);
    command.stdin(input(b"a b\nc"));
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "'a b'\nc\n");
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn input_lines_are_commands_without_a_template() {
    assert_eq!(parallel(&["-k", ":::", "echo a; echo b", "echo c"]).exit_code(0).text(), "a\nb\nc\n");
    assert_eq!(parallel(&["{}", ":::", "exit 3"]).exit_code(1).text(), "");
    let mut command = face("parallel", &["-k"]);
    command.stdin(input(b"echo a\necho $PARALLEL_SEQ"));
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "a\n2\n");
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn resume_keeps_the_parallel_mode() {
    let state = temp_dir();
    let run = |command: &mut Command| Run::start(command.env("MINDER_STATE_DIR", state.path())).wait();
    // What only a shell knows, in one plain word.
    // Without a terminal it prints nothing on stderr, as GNU parallel.
    run(&mut face("parallel", &["exit", ":::", "3"])).exit_code(1).stderr("");
    run(&mut from(MINDER, "run --resume-failed last")).exit_code(1).stderr_contains("resuming");
    run(&mut from(MINDER, "log last --failed")).exit_code(0);
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn sem_exits_with_the_status_of_its_command() {
    let name = name("status");
    sem(&["--fg", "--id", &name, "exit 3"]).exit_code(3);
    sem(&["--fg", "--id", &name, "kill -TERM $$"]).exit_code(143);
    sem(&["--fg", "--id", &name, "nosuchtool"]).exit_code(127);
    sem(&["--fg", "--id", &name, "--st", "x", "true"]).exit_code(255).error_line(&["--semaphore-timeout"]);
    let out = sem(&["--fg", "--id", &name, "echo", "$PARALLEL_SEQ;", "echo", "b"]).exit_code(0).text();
    assert_eq!(out, "1\nb\n");
    assert_eq!(
        parallel(&["--semaphore", "--fg", "--id", &name, "echo", "{}", "a"]).exit_code(0).text(),
        "a\n"
    );
}

#[cfg(target_os = "linux")] // What /proc shows of processes.
#[test]
fn sem_keeps_the_slot_until_the_command_has_exited() {
    let dir = temp_dir();
    for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
        let name = name(&format!("held {}", signal.as_raw()));
        let mark = dir.path().join(signal.as_raw().to_string());
        let line = format!("exec {CHILD} touch {} 600000", path(&mark));
        let mut holder = Run::start(&face("sem", &["--fg", "--id", &name, &line]));
        holder.wait_until_true("the command", || mark.exists());
        let command = super::children(holder.pid())[0];
        holder.signal(signal);
        let pid = holder.pid();
        holder.wait_until_true("the end of sem", || !lives(pid));
        sem(&["--fg", "--id", &name, "--st", "-0.2", "true"]).exit_code(1);
        end(command);
        sem(&["--fg", "--id", &name, "--st", "-50", "true"]).exit_code(0);
    }
    // A daemon that the command leaves does not hold it.
    let name = name("daemon");
    let line = format!("{CHILD} sleep-ms 600000 >/dev/null 2>&1 & echo $!");
    let daemon = sem(&["--fg", "--id", &name, &line]).exit_code(0).text();
    sem(&["--fg", "--id", &name, "--st", "-0.2", "true"]).exit_code(0);
    end(daemon.trim().parse().expect("parse pid"));
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn sem_leaves_background_commands_running() {
    let dir = temp_dir();
    let name = name("background");
    let log = dir.path().join("log");
    let behind = |line: &str| {
        let mut command = face("sem", &["--id", &name, "-j2", line]);
        command.stdout(File::options().append(true).create(true).open(&log).expect("open log"));
        // What runs on in the background holds it.
        Run::start(command.stderr(Stdio::null())).wait().exit_code(0);
    };
    let gate = dir.path().join("gate");
    let wait = format!("echo a; while ! [ -e {} ]; do sleep 0.05; done; echo c", path(&gate));
    behind(&wait);
    behind("echo b");
    File::create(&gate).expect("create file");
    sem(&["--id", &name, "--wait"]).exit_code(0);
    let mut lines: Vec<String> = file(&log).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["a", "b", "c"]);
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn sem_runs_one_command_at_a_time() {
    let dir = temp_dir();
    let name = name("turns");
    let taken = dir.path().join("taken");
    let one = format!("mkdir {0} && sleep 0.1 && rmdir {0}", path(&taken));
    let all: Vec<Run> = (0..4).map(|_| Run::start(&face("sem", &["--fg", "--id", &name, &one]))).collect();
    for one in all {
        one.wait().exit_code(0);
    }
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn sem_timeout_gives_up_or_runs_anyway() {
    let name = name("patience");
    let mut holder = Run::start(&face("sem", &["--fg", "--id", &name, "echo here; sleep 3"]));
    holder.wait_until("the turn", |record| !record.outs[0].is_empty());
    let late = sem(&["--fg", "--id", &name, "--st", "-0.1", "echo never"]).exit_code(1);
    assert_eq!(late.text(), "");
    let late = sem(&["--id", &name, "--st", "-0.1", "echo never"]).exit_code(1);
    assert_eq!(late.text(), "");
    let anyway = sem(&["--fg", "--id", &name, "--st", "0.1", "echo anyway"]).exit_code(0);
    assert_eq!(anyway.text(), "anyway\n");
    assert!(holder.record().done.is_none(), "the turn was still held");
    holder.wait().exit_code(0);
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn sem_slot_is_freed_when_its_holder_dies() {
    let name = name("killed");
    let line = "echo here; exec sleep 2 >/dev/null 2>&1";
    let mut holder = Run::start(&face("sem", &["--fg", "--id", &name, line]));
    holder.wait_until("the turn", |record| !record.outs[0].is_empty());
    holder.signal(Signal::KILL);
    let next = sem(&["--fg", "--id", &name, "echo mine"]).exit_code(0);
    assert_eq!(next.text(), "mine\n");
    assert!(next.wall < SOON);
    holder.wait().killed_by(Signal::KILL);
}

/// Values given with `--pipe` come from a silent named pipe. Neither the running jobs nor the end
/// of the run wait for it.
#[cfg(unix)] // A named pipe.
#[test]
fn missing_pipe_values_block_neither_jobs_nor_exit() {
    use rustix::fs::{CWD, Mode, OFlags, mkfifoat, openat};
    let dir = temp_dir();
    let values = dir.path().join("values");
    mkfifoat(CWD, &values, Mode::RWXU).expect("create FIFO");
    let writer = openat(CWD, &values, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).expect("open FIFO");
    rustix::io::write(&writer, b"one\n").expect("write to pipe");
    let words = ["--pipe", "-N1", "-j2", "--lb", "cat; echo {}", "::::", path(&values)];
    let mut live = Run::start(face("parallel", &words).stdin(Stdio::piped()));
    live.write(b"1\n2\n3\n");
    live.wait_until("the first job", |record| record.outs[0] == b"1\none\n");
    rustix::io::write(&writer, b"two\n").expect("write to pipe");
    live.wait_until("the second job", |record| record.outs[0] == b"1\none\n2\ntwo\n");
    live.signal(Signal::TERM);
    let ended = live.wait().killed_by(Signal::TERM);
    assert!(ended.wall < SOON, "{:?}", ended.wall);
    drop(writer);
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn sem_shows_a_line_that_can_be_pasted() {
    let name = name("shown line");
    let line = "printf a\nprintf b";
    let ended = sem(&["--fg", "-v", "--id", &name, line]).exit_code(0);
    assert_eq!(ended.text(), "printf a\nprintf b\nab");
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn halt_and_timeout_report_jobs_as_gnu_parallel_does() {
    let out = parallel(&["-j1", "--halt", "soon,fail=1", "echo {}; exit {}", ":::", "0", "1", "2"]);
    let out = out.exit_code(1).stderr("minder: This job failed:\necho 1; exit 1\n");
    assert_eq!(out.text(), "0\n1\n");
    let out = parallel(&["-j1", "--halt", "now,success=1", "exit {}", ":::", "1", "0", "2"]);
    out.exit_code(0).stderr("minder: This job succeeded:\nexit 0\n");
    let out = parallel(&["-j1", "--timeout", "2", "sleep {}; echo {}", ":::", "60", "0"]);
    let killed = "minder: Warning: This job was killed because it timed out:\n\
                  minder: Warning: sleep 60; echo 60\n";
    assert_eq!(out.exit_code(1).stderr(killed).text(), "0\n");
    // Without these flags, and in `minder run`, nothing is reported.
    parallel(&["exit {}", ":::", "1"]).exit_code(1).stderr("");
    let run = Run::start(&from(MINDER, "run --quiet --halt=1 sh -c false ::: 1")).wait();
    run.exit_code(1).stderr("");
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn halt_reports_how_many_jobs_it_waits_for() {
    let dir = temp_dir();
    // The first job fails once the second one runs.
    let scripts = [("first", "read line < fifo; exit 1"), ("second", "echo > fifo; sleep 1; exit 1")];
    for (name, script) in scripts {
        std::fs::write(dir.path().join(name), script).expect("write script");
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), rustix::fs::Mode::RWXU)
        .expect("create FIFO");
    let mut command =
        face("parallel", &["-j2", "--halt", "soon,fail=1", "sh {}", ":::", "first", "second", "first"]);
    let out = Run::start(command.current_dir(dir.path())).wait();
    let expected = "minder: This job failed:\nsh first\n\
                    minder: Starting no more jobs. Waiting for 1 jobs to finish.\n\
                    minder: This job failed:\nsh second\n";
    out.exit_code(1).stderr(expected);
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn warnings_name_options_that_have_no_effect_or_too_small_a_value() {
    let out = parallel(&["--cleanup", "echo", ":::", "a"]);
    out.exit_code(0).stderr_contains("--cleanup is ignored");
    let mut command = face("parallel", &["-k", "--pipe", "--block", "3", "-N1", "wc -c"]);
    let out = Run::start(command.stdin(input(b"123456789\n"))).wait();
    out.exit_code(0).stderr_contains("longer than the block of 3 bytes");
    let out = parallel(&["--env", "_", "echo", ":::", "a"]);
    out.exit_code(255).stderr_contains("requires `parallel --record-env`");
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn words_of_missing_columns_are_omitted_and_no_value_becomes_code() {
    let out = parallel(&["-k", "--colsep", ",", "printf '<%s>' {2} {1} a{2}; echo", ":::", "x", "y,z"]);
    assert_eq!(out.exit_code(0).text(), "<x><a>\n<z><y><az>\n");
    assert_eq!(parallel(&["case {2} in '') echo none;; esac", ":::", "x"]).exit_code(0).text(), "none\n");
    // Without the second column, the value would be the program text of awk.
    let out = parallel(&["awk -v x={2} -F {2} '{print}' {1}", ":::", "BEGIN{print 1}"]);
    assert!(!out.text().contains('1'), "{}", out.text());
    let out = parallel(&["-k", "--colsep", ",", "env -u {2} sh -c 'echo \"$1\"' sh {1}", ":::", "$(id)"]);
    assert!(!out.text().contains("uid"), "{}", out.text());
}

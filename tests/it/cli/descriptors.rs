//! Descriptors that the user's shell leaves open for its children: jobs get them under the same
//! numbers.
#![cfg(target_os = "linux")]

use minder::{Command, Stdio};
use tempfile::TempDir;

use super::{MINDER, Run, RunOutput, STATE, file, temp_dir};

/// Runs this text with bash in its own directory, where `parallel`, `sem` and `minder` are ours.
fn bash(text: &str) -> (RunOutput, TempDir) {
    let dir = temp_dir();
    let programs = dir.path().join("programs");
    std::fs::create_dir(&programs).expect("create directory");
    for name in ["parallel", "sem", "minder"] {
        std::os::unix::fs::symlink(MINDER, programs.join(name)).expect("create symbolic link");
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&paths)));
    let mut command = Command::new("bash");
    command.arg("-c").arg(text).current_dir(dir.path());
    command.env("PATH", paths.expect("join PATH")).env("MINDER_STATE_DIR", STATE).env("SHELL", "/bin/bash");
    command.env_remove("MINDER_BACKEND").env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    (Run::start(&command).wait(), dir)
}

/// Runs a text as [`bash`] does, checks that it succeeds, and returns its stdout.
#[track_caller]
fn said(text: &str) -> String {
    let (ended, _dir) = bash(text);
    assert_eq!(ended.err, "", "{text}");
    ended.exit_code(0).text()
}

#[test]
fn jobs_read_process_substitutions() {
    assert_eq!(said("minder run -k cat ::: <(echo a) <(echo b)"), "a\nb\n");
    // The job's own shell must not take the number that its value has.
    let (ended, _dir) = bash("parallel 'diff {} <(echo b)' ::: <(echo a)");
    assert_eq!(ended.exit_code(1).text(), "1c1\n< a\n---\n> b\n");
}

#[test]
fn jobs_write_to_inherited_descriptors_in_every_mode() {
    for flags in ["", "--pty", "-u", "--lb", "-k", "--results res", "--spool", "--no-guard", "--no-record"] {
        let text = format!("minder run {flags} 'echo {{}} >&3' ::: a b 3>file; sort file");
        assert_eq!(said(&text), "a\nb\n", "{flags}");
    }
    assert_eq!(said("parallel 'echo {} >&3' ::: a b 3>file; sort file"), "a\nb\n");
    assert_eq!(said("minder run 'minder run cat ::: /dev/fd/63; : {}' ::: a 63< <(echo x)"), "x\n");
}

#[test]
fn piped_jobs_inherit_descriptors() {
    for (flags, command) in [("", "cat >&3"), ("--cat", "cat {} >&3"), ("--fifo", "cat {} >&3")] {
        let text = format!("seq 3 | minder run -j1 --pipe {flags} -N1 '{command}' 3>file; cat file");
        assert_eq!(said(&text), "1\n2\n3\n", "{flags}");
    }
    // And no other: what pours the input into the pipe keeps its own to itself.
    let (ended, _dir) = bash("seq 1 | minder run --pipe --fifo --close-fds 'cat {}; echo x >&3'");
    assert!(ended.err.contains("3: Bad file descriptor"), "{}", ended.err);
}

#[test]
fn inherited_lock_belongs_to_the_job() {
    assert_eq!(said("exec 9>lock; flock 9; minder run 'flock -n 9 && echo {}' ::: a"), "a\n");
}

#[test]
fn many_and_high_descriptors_are_inherited() {
    let text = "for i in {10..69} 500; do eval \"exec $i>f$i\"; done; ulimit -Sn 100
        minder run --shell bash 'for i in {10..69} 500; do echo {} >&$i || exit 9; done; ulimit -Sn' ::: a
        cat f* | sort | uniq -c | tr -s ' '";
    assert_eq!(said(text), "100\n 61 a\n");
}

#[test]
fn jobs_inherit_no_other_descriptor() {
    let text = "exec 7>f 40>g; minder run --shell bash --no-record -j2 'for i in {3..300}; do [ -e \
        /proc/self/fd/$i ] && echo $i; \
                done; : {}' ::: a b | sort -n | uniq -c | tr -s ' '";
    assert_eq!(said(text), " 2 7\n 2 40\n");
}

#[test]
fn close_fds_keeps_descriptors_from_jobs() {
    let (ended, dir) = bash("minder run --close-fds 'echo {} >&3' ::: a 3>file");
    assert!(ended.err.contains("3: Bad file descriptor"), "{}", ended.err);
    assert_eq!(file(&dir.path().join("file")), "");
}

#[test]
fn sem_command_inherits_descriptors() {
    assert_eq!(said("sem --fg --id fds 'echo x >&3' 3>file; cat file"), "x\n");
    assert_eq!(said("sem --id fds2 'echo y >&3' 3>file; sem --wait --id fds2; cat file"), "y\n");
}

/// As with xargs and parallel: what the parent ignores, jobs ignore. Rust's runtime hides it.
#[test]
fn jobs_inherit_an_ignored_sigpipe() {
    // The bit of signal 13.
    let job = "awk \"/^SigIgn/ { print substr(\\$2, 13, 1) % 2 }\" /proc/self/status";
    for line in ["echo 1 | minder xargs sh -c '@'", "minder run '@; : {}' ::: 1", "parallel '@; : {}' ::: 1"]
    {
        let line = line.replace('@', job);
        assert_eq!(said(&line), "0\n", "{line}");
        assert_eq!(said(&format!("trap '' PIPE; {line}")), "1\n", "{line}");
    }
    assert_eq!(said("trap '' PIPE; minder run 'seq 100000; : {}' ::: 1 2 | head -1"), "1\n");
}

/// No guardian holds one: the reader sees the end when the run has ended, and `$(…)` ends.
#[test]
fn readers_see_eof_when_the_run_exits() {
    let text = "minder run 'echo {} >&3' ::: a 3> >(cat; echo end >&2); wait $!";
    let (ended, _dir) = bash(text);
    let ended = ended.exit_code(0);
    assert_eq!((ended.text().as_str(), ended.err.as_str()), ("a\n", "end\n"));
    assert_eq!(said("echo $(minder run 'echo {} >&3' ::: a b 3>&1 >/dev/null | sort)"), "a b\n");
}

/// While jobs run, only they and the process that runs them have it.
#[test]
fn guardians_close_inherited_descriptors() {
    let text = "mkfifo wait go; minder run 'echo {} >wait; read x <go' ::: a 3>file & read x <wait
        for p in /proc/[0-9]*; do [ $p/fd/3 -ef file ] && read -r name <$p/comm && echo $name; done
        echo >go; wait";
    let names = said(text);
    assert_eq!(names.lines().filter(|name| name.contains("guardian")).count(), 0, "{names}");
    // The outer guardian is called as the runner is: one of the two has it.
    assert_eq!(names.lines().filter(|name| name.starts_with("minder")).count(), 1, "{names}");
}

#[test]
fn run_reports_an_exhausted_descriptor_limit() {
    let (ended, _dir) = bash("ulimit -n 8; minder run 'echo {} >&3' ::: a 3>file");
    ended.exit_code(255).stderr_contains("too many open files");
}

/// At each limit the jobs run, or the run ends with a line about the limit before one has failed. A shell
/// may have left a descriptor open that is above the limit.
#[test]
fn descriptor_limit_never_fails_a_job() {
    let refuse_clone3 = concat!(env!("CARGO_BIN_EXE_seccomp_run"), " clone3 minder");
    for (left_open, program) in
        [("", "minder"), ("exec 63</dev/null", "minder"), ("exec 63</dev/null", refuse_clone3)]
    {
        let text = format!(
            "{left_open}
            for limit in {{16..40}}; do
                (ulimit -n $limit; exec {program} run -j4 'echo {{}}' ::: 1 2 >out$limit 2>err$limit) &
                pids[limit]=$!
            done
            for limit in {{16..40}}; do wait ${{pids[limit]}}; echo $limit $? $(sort out$limit) \
                $(grep -c 'too many open files' err$limit) $(wc -l <err$limit); done"
        );
        let lines = said(&text);
        assert_eq!(lines.lines().count(), 25, "{lines}");
        for line in lines.lines() {
            let (limit, rest) = line.split_once(' ').expect("split line");
            assert!(["0 1 2 0 0", "255 1 1"].contains(&rest), "{left_open}: {program}: {limit}: {rest}");
        }
        assert!(lines.contains("\n40 0 "), "{lines}");
    }
}

#[test]
fn verbose_prints_a_command_once_when_its_start_is_deferred() {
    let lines = said(
        "for limit in {16..40}; do
            (ulimit -n $limit; minder run -j4 -t 'echo {}' ::: 1 2 3 4 >/dev/null 2>err) || :
            grep '^echo' err | sort | uniq -d
        done; echo end",
    );
    assert_eq!(lines, "end\n");
}

#[test]
fn program_that_stays_open_for_writing_fails_its_job() {
    let (ended, _dir) = bash("cp \"$(type -P true)\" busy; exec 5>>busy; minder run ./busy ::: 1");
    ended.exit_code(1).stderr_contains("cannot run `./busy 1`: text file busy");
}

//! One child at a time: streams that the caller connects, waits that overlap, and processes that
//! keep pipes open.

use std::io::{Read, Write};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use minder::{CaptureOptions, Child, Command, Stdio, Termination};

use crate::support::{
    TEST_CHILD, file, killed, patience, patterned, quiet_child, race_continues, race_time, read_all,
    stdout_of, test_child,
};

/// Starts a child and waits until it has exited, without reaping it.
#[cfg(unix)]
fn exited_child(words: &str) -> Child {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let child = quiet_child(words).spawn().expect("spawn test child");
    let pid = Pid::from_raw(child.id().cast_signed()).expect("valid pid");
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("wait for child");
    child
}

/// Starts a child and waits until it has exited. Windows has nothing to reap.
#[cfg(windows)]
fn exited_child(words: &str) -> Child {
    let mut child = quiet_child(words).spawn().expect("spawn test child");
    child.wait_deadline(patience()).expect("wait for child").expect("wait for exit");
    child
}

#[test]
fn program_without_arguments_gets_none() {
    let output = Command::new(TEST_CHILD).arg("echo-args").output().expect("run test child");
    assert_eq!((output.stdout, output.status.code()), (Vec::new(), Some(0)));
}

#[test]
fn arguments_of_every_string_type_are_accepted() {
    let mut command = test_child("echo-args");
    let path = std::path::Path::new("path");
    command.arg("str").arg(String::from("string")).arg(std::ffi::OsString::from("os")).arg(path);
    command.args(vec!["list"]).args([path.to_owned()]);
    assert_eq!(stdout_of(&command), "\"str\"\n\"string\"\n\"os\"\n\"path\"\n\"list\"\n\"path\"\n");
}

#[test]
fn two_children_run_at_once() {
    let start = |bytes: usize| test_child(&format!("spew {bytes}")).spawn().expect("spawn test child");
    let mut first = start(10);
    let mut second = start(20);
    // In the other order than they were started.
    assert_eq!(read_all(second.stdout.take()).len(), 20);
    assert_eq!(read_all(first.stdout.take()).len(), 10);
    for mut child in [first, second] {
        assert!(child.wait().expect("wait for child").status.success());
    }
}

#[test]
fn streams_that_are_null_have_no_bytes() {
    let mut command = test_child("both 100000");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let output = command.output().expect("run test child");
    assert!(output.status.success());
    assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
}

/// The input and the output are files that the caller opened by their paths.
#[test]
fn file_is_copied_to_another_file() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let from = dir.path().join("from");
    let to = dir.path().join("to");
    std::fs::write(&from, patterned(100_000)).expect("write file");
    let mut command = test_child("cat");
    command.stdin(std::fs::File::open(&from).expect("open file"));
    command.stdout(std::fs::File::create(&to).expect("create file"));
    assert!(command.output().expect("run test child").stdout.is_empty());
    assert_eq!(std::fs::read(&to).expect("read file"), patterned(100_000));
}

/// The caller keeps one end of the pipe, and the child has the other.
#[test]
fn pipe_of_the_caller_ends_with_the_child_and_its_command() {
    let (mut reader, writer) = std::io::pipe().expect("create pipe");
    let mut command = test_child("both 7");
    command.stdout(Stdio::null()).stderr(file(writer));
    let mut child = command.spawn().expect("spawn test child");
    // The command could be started again, so it holds the writing end.
    drop(command);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("read to end");
    assert_eq!(bytes, patterned(7));
    assert!(child.wait().expect("wait for child").status.success());
}

#[test]
fn pipe_of_the_caller_is_an_input() {
    let (reader, mut writer) = std::io::pipe().expect("create pipe");
    let mut command = test_child("cat");
    command.stdin(file(reader));
    writer.write_all(b"from a pipe").expect("write to pipe");
    drop(writer);
    assert_eq!(command.output().expect("run test child").stdout, b"from a pipe");
}

/// Names of variables differ by case, except on Windows.
#[test]
fn names_of_variables_follow_the_system() {
    let variables = |command: &Command| {
        let text = stdout_of(command);
        text.lines().filter(|line| line.to_lowercase().contains("minder_case")).count()
    };
    let mut command = test_child("echo-env");
    command.env("MinDer_Case", "1");
    assert_eq!(variables(&command), 1);
    assert_eq!(variables(command.env("minder_case", "2")), if cfg!(windows) { 1 } else { 2 });
    assert_eq!(variables(command.env_remove("MINDER_CASE")), if cfg!(windows) { 0 } else { 2 });
    assert_eq!(variables(command.env_remove("minder_case")), if cfg!(windows) { 0 } else { 1 });
}

/// It waits for us to read, so it has not exited.
#[test]
fn child_blocked_on_its_output_is_not_done() {
    const BYTES: usize = 1_000_000;
    let mut command = test_child("cat");
    let mut child = command.stdin(Stdio::piped()).spawn().expect("spawn test child");
    let mut stdin = child.stdin.take().expect("take stdin");
    let writer = std::thread::spawn(move || stdin.write_all(&patterned(BYTES)));
    assert_eq!(child.try_wait().expect("poll child"), None);
    assert_eq!(child.wait_timeout(Duration::from_millis(20)).expect("wait for child"), None);
    assert!(read_all(child.stdout.take()).into_bytes() == patterned(BYTES));
    writer.join().expect("join writer").expect("write to stdin");
    let exit = child.wait_deadline(patience()).expect("wait for child").expect("wait for exit");
    assert!(exit.status.success());
    assert_eq!(child.try_wait().expect("poll child again"), Some(exit));
}

/// The wait is for the process. Its pipes may stay open for as long as others hold them.
/// golang/go#23019, python/cpython#81605: the wait for a child ends only when its descendants end.
#[test]
fn wait_returns_while_a_grandchild_holds_the_pipes() {
    let mut child = test_child("hold-stdout 600000 7").spawn().expect("spawn test child");
    let exit = child.wait_deadline(patience()).expect("wait for child").expect("wait for exit");
    assert!(exit.status.success());
    assert_eq!(child.wait().expect("wait again"), exit);
    let mut bytes = [0; 7];
    let mut stdout = child.stdout.take().expect("take stdout");
    stdout.read_exact(&mut bytes).expect("read bytes");
    assert_eq!(bytes, *patterned(7));
    #[cfg(unix)]
    {
        assert!(!crate::support::readable(as_fd(&stdout), Duration::from_millis(20)), "an end");
        crate::support::kill_group_of(child.id());
        assert_eq!(stdout.read(&mut bytes).expect("read end"), 0);
    }
}

#[cfg(unix)]
fn as_fd(stdout: &minder::ChildStdout) -> std::os::fd::BorrowedFd<'_> {
    std::os::fd::AsFd::as_fd(stdout)
}

/// The grandchild holds both outputs, and nothing reads the input, which is larger than a pipe.
#[test]
fn timeout_ends_a_tree_that_holds_every_pipe() {
    let begun = Instant::now();
    for leak_timeout in [None, Some(Duration::from_millis(50))] {
        let options = CaptureOptions::new()
            .input(patterned(1_000_000))
            .leak_timeout(leak_timeout)
            .timeout(Duration::from_millis(100));
        let mut command = Command::new(TEST_CHILD);
        command.args(["tree", "2"]);
        let output = command.output_with(options).expect("run test child");
        assert!(output.timed_out && killed(output.status, 9), "{:?}", output.status);
        assert!(!output.leaked);
    }
    assert!(begun.elapsed() >= Duration::from_millis(200) && begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn wait_without_time_returns_the_exit_of_a_child_that_exited() {
    let past = || Instant::now() - Duration::from_secs(1);
    for number in 0..3 {
        let mut child = exited_child("exit 7");
        for _ in 0..2 {
            let exit = match number {
                0 => child.try_wait(),
                1 => child.wait_timeout(Duration::ZERO),
                _ => child.wait_deadline(past()),
            };
            assert_eq!(exit.expect("wait for child").expect("wait for exit").status.code(), Some(7));
        }
        let child = exited_child("exit 7").into_shared().expect("share child");
        for _ in 0..2 {
            let exit = match number {
                0 => child.try_wait(),
                1 => child.wait_timeout(Duration::ZERO),
                _ => child.wait_deadline(past()),
            };
            assert_eq!(exit.expect("wait for child").expect("wait for exit").status.code(), Some(7));
        }
    }
}

/// A kill is noticed without a wait, some time later.
#[test]
fn killed_child_is_found_by_try_wait() {
    let mut child = quiet_child("sleep-ms 600000").spawn().expect("spawn test child");
    child.kill(Termination::IMMEDIATE).expect("kill child");
    let until = patience();
    let exit = loop {
        assert!(Instant::now() < until, "the child does not exit");
        if let Some(exit) = child.try_wait().expect("poll child") {
            break exit;
        }
        std::thread::yield_now();
    };
    assert!(killed(exit.status, 9));
}

/// One thread waits without a limit. The times of the others still end.
#[test]
fn timed_waits_end_while_another_thread_waits() {
    let child = quiet_child("sleep-ms 600000").spawn().expect("spawn test child");
    let child = child.into_shared().expect("share child");
    let started = Barrier::new(2);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            started.wait();
            child.wait().expect("wait for child")
        });
        started.wait();
        for ms in [0, 1, 20] {
            let begun = Instant::now();
            let time = Duration::from_millis(ms);
            assert_eq!(child.wait_timeout(time).expect("wait for child"), None);
            assert!(begun.elapsed() >= time, "early");
            let deadline = Instant::now() + time;
            assert_eq!(child.wait_deadline(deadline).expect("wait for child"), None);
            assert!(Instant::now() >= deadline, "early");
            assert_eq!(child.try_wait().expect("poll child"), None);
        }
        child.kill(Termination::IMMEDIATE).expect("kill child");
        let exit = child.wait_deadline(patience()).expect("wait for child");
        assert_eq!(Some(waiter.join().expect("join waiter")), exit);
    });
}

/// A thread that waits must not hide from another that the child has exited.
#[test]
fn try_wait_finds_an_exit_while_another_thread_waits() {
    let end = Instant::now() + race_time();
    let mut rounds = 0;
    while race_continues(end, rounds > 0) {
        let child = exited_child("exit 5").into_shared().expect("share child");
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                start.wait();
                child.wait().expect("wait for child")
            });
            start.wait();
            let exit = child.try_wait().expect("poll child");
            assert_eq!(exit, Some(waiter.join().expect("join waiter")), "round {rounds}");
        });
        rounds += 1;
    }
}

#[test]
fn child_is_shared_before_and_after_its_exit() {
    let child = exited_child("exit 3").into_shared().expect("share child that exited");
    let exit = child.wait().expect("wait for child");
    assert_eq!((exit.status.code(), child.try_wait().expect("poll child")), (Some(3), Some(exit)));
    let mut child = quiet_child("exit 4").spawn().expect("spawn test child");
    let pid = child.id();
    let exit = child.wait().expect("wait for child");
    let child = child.into_shared().expect("share child that was reaped");
    assert_eq!((child.id(), child.wait().expect("wait again")), (pid, exit));
    child.kill(Termination::IMMEDIATE).expect("kill child that was reaped");
    // One that runs is found to exit when its input ends.
    let mut command = test_child("cat");
    let child = command.stdin(Stdio::piped()).spawn().expect("spawn test child");
    let child = child.into_shared().expect("share child");
    let stdin = child.take_stdin();
    assert_eq!(child.try_wait().expect("poll child"), None);
    drop(stdin);
    let exit = child.wait_deadline(patience()).expect("wait for child").expect("wait for exit");
    assert!(exit.status.success());
}

#[test]
fn pipes_of_a_shared_child_are_taken_once() {
    let mut command = test_child("exit 0");
    let child = command.stdin(Stdio::piped()).spawn().expect("spawn test child");
    let child = child.into_shared().expect("share child");
    assert!(child.take_stdin().is_some() && child.take_stdout().is_some() && child.take_stderr().is_some());
    let other = child.clone();
    assert!(other.take_stdin().is_none() && other.take_stdout().is_none() && other.take_stderr().is_none());
    assert!(child.wait().expect("wait for child").status.success());
    let child = quiet_child("exit 0").spawn().expect("spawn test child").into_shared().expect("share child");
    assert!(child.take_stdin().is_none() && child.take_stdout().is_none() && child.take_stderr().is_none());
    child.wait().expect("wait for child");
}

/// A zombie is in the process table.
/// tokio-rs/tokio#2685: a child that is dropped before its exit stays a zombie.
#[cfg(target_os = "linux")]
#[test]
fn dropped_children_are_reaped_by_later_starts_and_waits() {
    use minder::{ChildSet, ChildSetOptions, SpawnOptions};
    let is_there = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    let mut living = quiet_child("sleep-ms 600000").spawn().expect("spawn test child");
    for round in 0..3 {
        let mut pids = Vec::new();
        for _ in 0..20 {
            let mut child = quiet_child("sleep-ms 600000").spawn().expect("spawn test child");
            child.kill(Termination::IMMEDIATE).expect("kill test child");
            pids.push(child.id());
        }
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        for _ in 0..20 {
            let id =
                set.spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::new()).expect("spawn test child");
            pids.push(set.pid(id).expect("look up pid"));
        }
        set.kill_all(Termination::IMMEDIATE).expect("kill all");
        drop(set);
        let mut other = ChildSet::new(ChildSetOptions::new()).expect("create set");
        let until = patience();
        while pids.iter().any(is_there) {
            assert!(Instant::now() < until, "zombies: {:?}", pids.iter().filter(|it| is_there(it)).count());
            match round {
                0 => drop(quiet_child("exit 0").status().expect("run test child")),
                1 => drop(living.wait_timeout(Duration::from_millis(1)).expect("wait for child")),
                _ => drop(other.next_event(Some(Duration::from_millis(1))).expect("wait for event")),
            }
        }
    }
    living.kill_and_wait(Termination::IMMEDIATE).expect("kill test child");
}

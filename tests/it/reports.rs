//! Defects of programs that start others, as their users have reported them. Most of it is tested
//! next to what it is about; a comment there names the report.

use std::io::{Read, Write};

use minder::{ChildSet, ChildSetOptions, Command, Pipeline, SpawnOptions, Stdio, Termination};

use crate::support::{EventLog, TEST_CHILD, alone, each_backend, limits, patterned, quiet_child, test_child};

const TEN_MIB: usize = 10 << 20;

/// nodejs/node#19218: output that a child writes just before it exits is cut off.
#[test]
fn ten_mebibytes_before_an_exit_arrive_complete() {
    let line = format!("spew {TEN_MIB} {TEN_MIB}");
    let expected = patterned(TEN_MIB);
    let captured = test_child(&line).output().expect("run test child");
    assert!(captured.stdout == expected, "output: {} bytes", captured.stdout.len());
    let mut child = test_child(&line).spawn().expect("spawn test child");
    let mut read = Vec::new();
    let mut stdout = child.stdout.take().expect("take stdout");
    stdout.read_to_end(&mut read).expect("read to end");
    assert!(read == expected && child.wait().is_ok(), "child: {} bytes", read.len());
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let id = set.spawn(&test_child(&line), SpawnOptions::new()).expect("spawn test child");
        let mut log = EventLog::default();
        log.wait_all(&mut set);
        assert!(log.child(id).outs[0] == expected, "set: {} bytes", log.child(id).outs[0].len());
    });
}

/// pi-interactive-shell#58, microsoft/node-pty#178: the last bytes of a program that soon leaves its terminal
/// are lost, or an error takes the place of the end.
#[cfg(unix)]
#[test]
fn output_of_short_programs_in_terminals_is_complete_three_hundred_times() {
    use minder::{Group, Size};
    let mut command = Command::new(TEST_CHILD);
    command.args(["lines", "3", "0"]).group(Group::Terminal(Size::new(24, 80)));
    let expected = "line 0\r\nline 1\r\nline 2\r\n";
    for round in 0..300 {
        let mut child = command.spawn().expect("spawn test child");
        // Its end may come before or after the first read.
        if round % 2 == 0 {
            child.wait().expect("wait for child");
        }
        let mut text = String::new();
        child.stdout.take().expect("take stdout").read_to_string(&mut text).expect("read to end");
        assert_eq!(text, expected, "round {round}");
        child.wait().expect("wait for child");
    }
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let mut log = EventLog::default();
    for _ in 0..15 {
        let spawn = |_| set.spawn(&command, SpawnOptions::new()).expect("spawn test child");
        let ids: Vec<_> = (0..20).map(spawn).collect();
        log.wait_all(&mut set);
        assert!(ids.iter().all(|id| log.text(*id) == expected));
    }
}

/// A kill after the exit succeeds. A write to a child that has exited is an error without a signal.
#[test]
fn exited_child_can_be_killed_and_refuses_input() {
    // A child that another test is starting would hold the end that reads.
    alone("reports::exited_child_can_be_killed_and_refuses_input", || {
        let mut child = quiet_child("exit 3").stdin(Stdio::piped()).spawn().expect("spawn test child");
        let mut stdin = child.stdin.take().expect("take stdin");
        let exit = child.wait().expect("wait for child");
        child.kill(Termination::IMMEDIATE).expect("kill child after its exit");
        assert_eq!(child.kill_and_wait(Termination::IMMEDIATE).expect("kill again"), exit);
        let error = stdin.write_all(b"text").expect_err("write to an exited child");
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    });
}

/// rust-lang/rust#37868: where a relative program is searched for depends on the way in which it is started.
/// Here it is always the directory of the child.
#[cfg(unix)]
#[test]
fn relative_program_is_one_of_the_directory_of_the_child() {
    let dir = tempfile::tempdir().expect("create directory");
    std::fs::create_dir(dir.path().join("bin")).expect("create directory");
    std::os::unix::fs::symlink(TEST_CHILD, dir.path().join("bin/program")).expect("link program");
    for name in ["bin/program", "./bin/program"] {
        let mut command = Command::new(name);
        command.arg("exit").current_dir(dir.path());
        assert!(command.status().expect("run program").success());
        assert!(command.output().expect("capture program").status.success());
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        set.spawn(&command, SpawnOptions::new()).expect("spawn program");
        assert!(set.wait_all(None, drop).expect("wait for all"));
        let pipeline = Pipeline::new(command.clone()).pipe(command).output().expect("run pipeline");
        assert!(pipeline.success());
    }
}

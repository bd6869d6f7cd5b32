//! Pipelines: commands of which each reads what the one before it writes.

use std::time::{Duration, Instant};

use minder::{
    CaptureOptions, Command, ErrorKind, ExitStatus, Operation, Output, Pipeline, PipelineOutput, Stdio,
    Termination, Truncate,
};

use crate::support::{TEST_CHILD, killed, patience, patterned};

fn command(words: &str) -> Command {
    let mut command = Command::new(TEST_CHILD);
    command.args(words.split(' '));
    command
}

fn statuses(output: &PipelineOutput) -> Vec<ExitStatus> {
    output.stages.iter().map(|stage| stage.status).collect()
}

#[test]
fn bytes_pass_through_every_command() {
    let bytes = patterned(3_000_000);
    let pipeline = Pipeline::new(command("cat")).pipe(command("cat")).pipe(command("cat"));
    let output = pipeline.output_with(CaptureOptions::new().input(bytes.clone())).expect("run pipeline");
    assert_eq!(output.stdout, bytes);
    assert_eq!(statuses(&output), [ExitStatus::Exited(0); 3]);
    assert!(output.success() && output.stages.iter().all(|stage| stage.usage.is_some() && !stage.leaked));
    // A pipeline can be run again, and of one command it is that command.
    let again = pipeline.output().expect("run pipeline without input");
    assert!(again.success() && again.stdout.is_empty());
    let Output { stdout, .. } = command("spew 70000").output().expect("run command");
    assert_eq!(Pipeline::new(command("spew 70000")).output().expect("run pipeline").stdout, stdout);
}

#[test]
fn every_status_and_every_stderr_is_reported() {
    let pipeline = Pipeline::new(command("relay 10 200000 3"))
        .pipe(command("relay 0 7 0"))
        .pipe(command("relay 5 300000 4"));
    let output = pipeline.output().expect("run pipeline");
    assert_eq!(statuses(&output), [3, 0, 4].map(ExitStatus::Exited));
    assert!(!output.success());
    let stderr: Vec<_> = output.stages.iter().map(|stage| stage.stderr.len()).collect();
    assert_eq!(stderr, [200_000, 7, 300_000]);
    // The last one writes its own bytes and then what came in.
    assert_eq!(output.stdout.len(), 5 + 10);

    let mut quiet = command("count");
    quiet.stdout(Stdio::null());
    let mut first = command("relay 10 0 3");
    first.stdin(Stdio::null());
    let statuses = Pipeline::new(first).pipe(quiet).status().expect("run pipeline");
    assert_eq!(statuses, [3, 0].map(ExitStatus::Exited));
}

#[test]
fn writer_ends_when_its_reader_does() {
    let endless = Pipeline::new(command("lines 1000000000 0")).pipe(command("exit 0"));
    let start = Instant::now();
    let output = endless.output().expect("run pipeline");
    assert!(!output.stages[0].status.success(), "{output:?}");
    #[cfg(unix)]
    assert!(start.elapsed() < Duration::from_secs(60));
    #[cfg(windows)]
    let _ = start;
    assert!(output.stages[1].status.success() && !output.success());
}

#[test]
fn timeout_ends_all_commands() {
    let pipeline = Pipeline::new(command("sleep-ms 600000")).pipe(command("sleep-ms 600000"));
    let short = Duration::from_millis(30);
    let start = Instant::now();
    let output = pipeline.output_timeout(short).expect("run pipeline");
    assert!(start.elapsed() >= short && Instant::now() < patience());
    for stage in &output.stages {
        assert!(stage.timed_out && killed(stage.status, 9), "{stage:?}");
    }
}

#[test]
fn captured_bytes_of_all_commands_are_bounded_together() {
    let pipeline = Pipeline::new(command("relay 0 600 0")).pipe(command("relay 600 0 0"));
    assert!(pipeline.output_with(CaptureOptions::new().max_bytes(1200)).is_ok());
    let error = pipeline.output_with(CaptureOptions::new().max_bytes(1199)).expect_err("too many bytes");
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Limit, Operation::Read));
}

#[test]
fn longest_output_of_all_commands_is_truncated() {
    let pipeline = Pipeline::new(command("relay 0 9000 0")).pipe(command("relay 300 5 0"));
    let options = CaptureOptions::new().max_bytes(1005).truncate(Truncate::KeepTail);
    let output = pipeline.output_with(options).expect("run pipeline");
    assert_eq!((output.stdout.len(), output.stdout_dropped), (300, 0));
    let stderr = output.stages.iter().map(|stage| (stage.stderr.len(), stage.stderr_dropped));
    assert!(stderr.eq([(700, 8300), (5, 0)]), "{output:?}");
}

#[test]
fn merged_stderr_is_that_of_the_last_command() {
    let pipeline = Pipeline::new(command("relay 1 2 0")).pipe(command("relay 10 20 0"));
    let output = pipeline.output_with(CaptureOptions::new().merge_stderr(true)).expect("run pipeline");
    assert_eq!((output.stdout.len(), output.stages[0].stderr.len()), (31, 2));
    // A command that sends both outputs to the next.
    let mut both = command("relay 1 2 0");
    both.stderr_to_stdout();
    let output = Pipeline::new(both).pipe(command("cat")).output().expect("run pipeline");
    assert_eq!(output.stdout.len(), 3);
}

#[test]
fn failed_start_leaves_no_child() {
    let pipeline = Pipeline::new(command("sleep-ms 600000")).pipe(Command::new("no-such-program-anywhere"));
    for error in [
        pipeline.output().expect_err("capture"),
        pipeline.status().expect_err("wait"),
        pipeline.spawn().expect_err("spawn"),
    ] {
        assert_eq!((error.kind(), error.operation()), (ErrorKind::NotFound, Operation::Spawn));
        assert_eq!(error.subject(), Some("no-such-program-anywhere"));
    }
}

#[test]
fn streams_that_the_pipeline_connects_cannot_be_set() {
    let mut writer = command("cat");
    writer.stdout(Stdio::null());
    let error = Pipeline::new(writer).pipe(command("cat")).output().expect_err("two outputs");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let mut reader = command("cat");
    reader.stdin(Stdio::null());
    let error = Pipeline::new(command("cat")).pipe(reader).status().expect_err("two inputs");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    // The outer streams can.
    let file = tempfile::tempfile().expect("create file");
    let mut last = command("cat");
    last.stdout(file.try_clone().expect("clone file"));
    let output = Pipeline::new(command("spew 1000")).pipe(last).output().expect("run pipeline");
    assert!(output.stdout.is_empty() && file.metadata().expect("read metadata").len() == 1000);
}

#[test]
fn children_of_a_pipeline_have_its_outer_streams() {
    let mut first = command("cat");
    first.stdin(Stdio::piped());
    let mut last = command("count");
    last.stdout(Stdio::piped());
    let mut children = Pipeline::new(first).pipe(command("cat")).pipe(last).spawn().expect("spawn pipeline");
    assert_eq!(children.len(), 3);
    assert!(children[0].stdout.is_none() && children[1].stdin.is_none() && children[2].stdin.is_none());
    let stdin = children[0].stdin.take().expect("stdin is piped");
    std::io::Write::write_all(&mut { stdin }, &[7; 100_000]).expect("write to pipeline");
    assert_eq!(crate::support::read_all(children[2].stdout.take()).trim(), "100000");
    for mut child in children {
        assert!(child.wait().expect("wait for child").status.success());
    }
    let mut endless = Pipeline::new(command("sleep-ms 600000")).spawn().expect("spawn pipeline");
    endless[0].kill_and_wait(Termination::IMMEDIATE).expect("kill child");
}

/// Every child can be polled, waited for and killed while the others run.
#[test]
fn children_of_a_pipeline_are_waited_for_and_killed_one_by_one() {
    let sleeper = || command("sleep-ms 600000");
    let pipeline = Pipeline::new(sleeper()).pipe(sleeper()).pipe(sleeper());
    let mut children = pipeline.spawn().expect("spawn pipeline");
    let pids: std::collections::HashSet<u32> = children.iter().map(minder::Child::id).collect();
    assert_eq!(pids.len(), 3);
    for child in &mut children {
        assert_eq!(child.try_wait().expect("poll child"), None);
        assert_eq!(child.wait_timeout(Duration::from_millis(5)).expect("wait for child"), None);
    }
    let mut kill = |number: usize| {
        children[number].kill(Termination::IMMEDIATE).expect("kill child");
        let exit = children[number].wait_deadline(patience()).expect("wait for child");
        assert!(killed(exit.expect("wait for exit").status, 9));
        children.iter_mut().map(|child| child.try_wait().expect("poll child").is_some()).collect::<Vec<_>>()
    };
    // The others sleep on, although their pipes have no other end.
    assert_eq!(kill(1), [false, true, false]);
    assert_eq!(kill(0), [true, true, false]);
    assert_eq!(kill(2), [true, true, true]);
}

#[cfg(target_os = "linux")]
#[test]
fn first_command_that_cannot_start_starts_no_other() {
    use crate::support::{alone, own_children};
    alone("pipeline::first_command_that_cannot_start_starts_no_other", || {
        let missing = Command::new("no-such-program-anywhere");
        let pipeline = Pipeline::new(missing).pipe(command("sleep-ms 600000"));
        let error = pipeline.spawn().expect_err("spawn pipeline");
        assert_eq!((error.kind(), own_children().len()), (ErrorKind::NotFound, 0));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn pipelines_leave_no_descriptor_and_no_zombie() {
    use crate::support::{alone, open_descriptors, own_children};
    alone("pipeline::pipelines_leave_no_descriptor_and_no_zombie", || {
        let before = open_descriptors();
        let good = Pipeline::new(command("cat")).pipe(command("cat"));
        let bad = Pipeline::new(command("cat")).pipe(Command::new("no-such-program-anywhere"));
        for _ in 0..20 {
            assert!(good.output().expect("run pipeline").success());
            bad.output().expect_err("capture");
            bad.status().expect_err("wait");
        }
        assert_eq!(open_descriptors(), before);
        assert!(own_children().is_empty());
    });
}

#[cfg(unix)]
#[test]
fn command_with_a_terminal_cannot_be_connected() {
    let mut terminal = command("spew 10");
    terminal.group(minder::Group::Terminal(minder::Size::default()));
    for pipeline in [
        Pipeline::new(terminal.clone()).pipe(command("cat")),
        Pipeline::new(command("spew 10")).pipe(terminal.clone()),
    ] {
        let error = pipeline.output().expect_err("connect a terminal");
        assert_eq!((error.kind(), error.subject()), (ErrorKind::InvalidInput, Some(TEST_CHILD)));
    }
    let alone = Pipeline::new(terminal).output().expect("run a command on a terminal");
    assert_eq!(alone.stdout.len(), 10);
}

//! `Command::status` and `Command::output` compared with the standard library's.

use std::io::Read;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use minder::{CaptureOptions, Command, ErrorKind, ExitStatus, Operation, Stdio, Stream, Truncate};

use crate::support::{TEST_CHILD, patience, patterned};

/// The command that [`test_child`] makes, without its streams.
fn bare(line: &str) -> Command {
    let mut command = Command::new(TEST_CHILD);
    command.args(line.split_whitespace());
    command
}

#[test]
fn status_is_that_of_std() {
    for code in [0, 1, 255] {
        let line = format!("exit {code}");
        let status = bare(&line).status().expect("run test child");
        let theirs =
            std::process::Command::new(TEST_CHILD).args(line.split(' ')).status().expect("run by std");
        assert_eq!((status, status.code()), (ExitStatus::from(theirs), Some(code)));
        assert_eq!(status.success(), theirs.success());
    }
}

#[test]
fn output_has_both_streams_and_the_status() {
    for bytes in [0, 1, 70_000, 3_000_000] {
        let output = bare(&format!("both {bytes}")).output().expect("run test child");
        assert!(output.status.success() && !output.timed_out && !output.leaked);
        assert!(output.stdout == patterned(bytes) && output.stderr == patterned(bytes), "{bytes}");
        assert!(output.usage.is_some());
    }
}

#[test]
fn output_reads_no_input_and_keeps_streams_that_are_set() {
    let output = bare("cat").output().expect("run test child");
    assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
    let output = bare("both 10").stdout(Stdio::null()).output().expect("run test child");
    assert_eq!((output.stdout, output.stderr), (Vec::new(), patterned(10)));
    let file = crate::support::file_of(b"from a file");
    let output = bare("cat").stdin(file).output().expect("run test child");
    assert_eq!(output.stdout, b"from a file");
}

/// Far more than both pipes hold, in both directions at once.
#[test]
fn input_is_written_while_output_is_read() {
    let bytes = patterned(5_000_000);
    let options = CaptureOptions::new().input(bytes.clone());
    let output = bare("cat").output_with(options).expect("run test child");
    assert!(output.stdout == bytes);
    let reader = std::io::Cursor::new(bytes.clone());
    let output = bare("cat").output_with(CaptureOptions::new().input_reader(reader)).expect("run test child");
    assert!(output.stdout == bytes);
    for empty in [CaptureOptions::new().input(""), CaptureOptions::new().input_reader(std::io::empty())] {
        assert_eq!(bare("cat").output_with(empty).expect("run test child").stdout, b"");
    }
}

/// Other libraries return EPIPE for an input that the child does not read.
#[test]
fn input_that_the_child_does_not_read_is_no_error() {
    for options in [
        CaptureOptions::new().input(patterned(1_000_000)),
        CaptureOptions::new().input_reader(std::io::repeat(b'x')),
    ] {
        let output = bare("exit 3").output_with(options).expect("run test child");
        assert_eq!(output.status.code(), Some(3));
    }
}

/// A reader that blocks until it is released does not hold the call.
#[test]
fn silent_reader_does_not_outlive_the_child() {
    struct Silent(mpsc::Receiver<()>);
    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            Ok(0)
        }
    }
    let (release, held) = mpsc::channel();
    let options = CaptureOptions::new().input_reader(Silent(held));
    let output = bare("exit 4").output_with(options).expect("run test child");
    assert_eq!(output.status.code(), Some(4));
    drop(release);
}

#[test]
fn failing_reader_is_an_error() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no more of this"))
        }
    }
    let error = bare("cat").output_with(CaptureOptions::new().input_reader(Failing)).expect_err("read input");
    assert_eq!((error.operation(), error.subject()), (Operation::Read, Some(TEST_CHILD)));
    assert!(error.to_string().ends_with("no more of this"), "{error}");
}

#[test]
fn child_is_killed_after_the_timeout() {
    let begun = Instant::now();
    let output = bare("sleep-ms 600000").output_timeout(Duration::from_millis(50)).expect("run test child");
    assert!(output.timed_out && !output.status.success());
    assert!(begun.elapsed() >= Duration::from_millis(50) && Instant::now() < patience());
    let output = bare("exit 0").output_timeout(Duration::MAX).expect("run test child");
    assert!(!output.timed_out);
}

/// It left the group, the session and the parents of the child, so that no kill finds it.
#[cfg(target_os = "linux")]
#[test]
fn writing_daemon_delays_the_timeout_for_a_bounded_time() {
    let mut command = Command::new("sh");
    command.args(["-c", "(setsid sh -c 'echo $$; while echo x; do sleep 0.02; done' &)"]);
    let begun = Instant::now();
    let output = command.output_timeout(Duration::from_millis(100)).expect("run shell");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(output.status.success() && output.leaked && output.timed_out, "{:?}", output.status);
    // Its next write fails, since the outputs are closed.
    let text = String::from_utf8(output.stdout).expect("decode UTF-8");
    let daemon: u32 = text.lines().next().expect("find pid").parse().expect("parse pid");
    let until = patience();
    while crate::support::lives(daemon) {
        assert!(Instant::now() < until, "the daemon still runs");
        std::thread::yield_now();
    }
}

#[cfg(unix)] // Windows has no request to exit.
#[test]
fn timeout_may_ask_first() {
    let options = CaptureOptions::new()
        .timeout(Duration::from_millis(20))
        .kill(minder::Termination::graceful(Duration::from_secs(600)));
    let output = bare("sleep-ms 600000").output_with(options).expect("run test child");
    assert_eq!((output.timed_out, output.status.signal()), (true, Some(15)));
    assert!(!output.status.core_dumped());
}

/// execa#130: what `maxBuffer` does beyond its limit.
#[test]
fn output_beyond_the_limit_is_an_error_and_kills_the_child() {
    let at = |bytes: usize| bare("both 5000").output_with(CaptureOptions::new().max_bytes(bytes));
    assert_eq!(at(10_000).expect("run test child").stdout.len(), 5000);
    let error = at(9_999).expect_err("capture too much");
    assert_eq!((error.kind(), error.subject()), (ErrorKind::Limit, Some(TEST_CHILD)));
    // It would write for minutes.
    let begun = Instant::now();
    let endless = bare("spew 1000000000000 65536").output_with(CaptureOptions::new().max_bytes(1 << 20));
    assert_eq!(endless.expect_err("capture endless output").kind(), ErrorKind::Limit);
    assert!(begun.elapsed() < Duration::from_secs(30), "the child was not killed");
}

#[test]
fn truncated_output_keeps_its_head_or_its_tail() {
    const BYTES: usize = 3_000_000;
    let complete = bare(&format!("spew {BYTES}")).output().expect("run test child");
    assert_eq!((complete.stdout.len(), complete.stdout_dropped, complete.stderr_dropped), (BYTES, 0, 0));
    // Without a set, and with one.
    for timeout in [None, Some(Duration::from_secs(600))] {
        for (truncate, kept) in [
            (Truncate::KeepHead, &complete.stdout[..1000]),
            (Truncate::KeepTail, &complete.stdout[BYTES - 1000..]),
        ] {
            let mut options = CaptureOptions::new().max_bytes(1007).truncate(truncate);
            if let Some(timeout) = timeout {
                options = options.timeout(timeout);
            }
            let command = bare(&format!("relay {BYTES} 7 3"));
            let output = command.output_with(options).expect("run test child");
            assert_eq!(output.status.code(), Some(3), "it runs to its end");
            assert!(output.stdout == kept && output.stderr.len() == 7, "{truncate:?}: {output:?}");
            assert_eq!((output.stdout_dropped, output.stderr_dropped), (BYTES as u64 - 1000, 0));
        }
    }
}

#[test]
fn pieces_are_in_the_order_of_reading() {
    let command = bare("script 2000 3 200 0");
    for timeout in [None, Some(Duration::from_secs(600))] {
        let options = |truncate: Option<Truncate>| {
            let mut options = CaptureOptions::new().record_order(true).max_bytes(1003);
            if let Some(truncate) = truncate {
                options = options.truncate(truncate);
            } else {
                options = options.max_bytes(2003);
            }
            if let Some(timeout) = timeout { options.timeout(timeout) } else { options }
        };
        for truncate in [None, Some(Truncate::KeepHead), Some(Truncate::KeepTail)] {
            let output = command.output_with(options(truncate)).expect("run test child");
            let expected = [(Stream::Stdout, &output.stdout[..]), (Stream::Stderr, &output.stderr[..])];
            assert!(output.pieces().eq(expected), "{truncate:?}: {output:?}");
            let kept = if truncate.is_some() { 1000 } else { 2000 };
            assert_eq!((output.stdout.len(), output.stderr.len()), (kept, 3));
        }
    }
    let output = command.output().expect("run test child");
    assert_eq!(output.pieces().count(), 0, "nothing is recorded unless it is wanted");
}

#[cfg(unix)] // Windows has no shell that every machine has.
#[test]
fn merged_outputs_come_in_the_order_of_their_writes() {
    let script = "for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done";
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let output = command.output_with(CaptureOptions::new().merge_stderr(true)).expect("run shell");
    let expected: String = (1..=5).map(|i| format!("out{i}\nerr{i}\n")).collect();
    assert_eq!((output.stdout, output.stderr), (expected.into_bytes(), Vec::new()));
    // What a command sets itself is merged, too.
    let file = crate::support::file_of(b"");
    let mut copy = file.try_clone().expect("copy file");
    command.stdout(file).stderr_to_stdout();
    assert!(command.status().expect("run shell").success());
    let mut text = String::new();
    std::io::Seek::rewind(&mut copy).expect("rewind file");
    copy.read_to_string(&mut text).expect("read file");
    assert!(text.starts_with("out1\nerr1\nout2\n"), "{text}");
}

#[test]
fn program_that_does_not_exist_is_an_error() {
    let error = Command::new("no-such-program-anywhere").output().expect_err("run missing program");
    assert_eq!((error.kind(), error.operation()), (ErrorKind::NotFound, Operation::Spawn));
    let error = Command::new("no-such-program-anywhere").status().expect_err("run missing program");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn piped_input_without_bytes_is_empty() {
    for timeout in [None, Some(Duration::from_secs(60))] {
        let mut command = bare("count");
        command.stdin(Stdio::piped());
        let options = CaptureOptions::new();
        let options = match timeout {
            Some(timeout) => options.timeout(timeout),
            None => options,
        };
        let output = command.output_with(options).expect("run child");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    }
}

/// golang/go#23019, python/cpython#81605: what holds the outputs holds the call, also after its time-out.
#[cfg(unix)]
#[test]
fn outputs_that_a_descendant_holds_are_closed_after_the_leak_timeout() {
    // A process that is left behind holds the output: silently, and writing without a pause.
    for line in ["hold-stdout 600000", "leave-lines 600000 1"] {
        for timeout in [None, Some(Duration::from_secs(60))] {
            let mut options = CaptureOptions::new().leak_timeout(Some(Duration::from_millis(100)));
            if let Some(timeout) = timeout {
                options = options.timeout(timeout);
            }
            let start = Instant::now();
            let output = bare(line).output_with(options).expect("run child");
            assert!(output.leaked && output.status.success() && !output.timed_out, "{:?}", output.status);
            let elapsed = start.elapsed();
            assert!(
                elapsed >= Duration::from_millis(100) && elapsed < Duration::from_secs(30),
                "{elapsed:?}"
            );
        }
    }
    // It ends in time.
    let options = CaptureOptions::new().leak_timeout(Some(Duration::from_secs(600)));
    let output = bare("leave-lines 3 10").output_with(options).expect("run child");
    assert_eq!(output.stdout, b"line 0\nline 1\nline 2\n");
    assert!(!output.leaked);
}

/// The last line comes much later than the exit, and after a silence.
#[cfg(unix)]
#[test]
fn output_waits_for_the_end_of_the_outputs_as_std_does() {
    let script = "(sleep 0.4; echo end; echo errors >&2) & echo one; exit 3";
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let theirs = std::process::Command::new("sh").args(["-c", script]).output().expect("run by std");
    for options in [CaptureOptions::new(), CaptureOptions::new().timeout(Duration::from_secs(60))] {
        let output = command.output_with(options).expect("run shell");
        assert_eq!((&output.stdout, &output.stderr), (&theirs.stdout, &theirs.stderr));
        assert!(output.status.code() == Some(3) && !output.leaked && !output.timed_out, "{output:?}");
    }
    assert_eq!(theirs.stdout, b"one\nend\n");
    let pipeline = minder::Pipeline::new(command).pipe(Command::new("cat")).output().expect("run pipeline");
    assert_eq!(pipeline.stdout, theirs.stdout);
}

/// A process that keeps an output open belongs to the child until the time limit.
/// python/cpython#81605: the time-out ends the child, and the call waits for its descendants.
#[cfg(unix)]
#[test]
fn timeout_kills_what_keeps_an_output_open() {
    let output = bare("hold-stdout 600000").output_timeout(Duration::from_millis(100)).expect("run child");
    assert!(output.timed_out && !output.leaked && output.status.success(), "{output:?}");
}

#[cfg(unix)]
#[test]
fn leak_timeout_of_a_pipeline_begins_with_the_last_exit() {
    let options = CaptureOptions::new().leak_timeout(Some(Duration::from_millis(20)));
    let mut last = bare("sleep-ms 300");
    last.stdout(Stdio::null());
    let pipeline = minder::Pipeline::new(bare("hold-stdout 600000")).pipe(last);
    let begun = Instant::now();
    let output = pipeline.output_with(options).expect("run pipeline");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert!(output.success() && output.stages[0].leaked && !output.stages[1].leaked, "{output:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn calls_leave_no_descriptor_and_no_zombie() {
    use crate::support::{alone, open_descriptors, own_children};
    alone("capture::calls_leave_no_descriptor_and_no_zombie", || {
        let before = open_descriptors();
        for _ in 0..50 {
            bare("both 100000").output().expect("run child");
            let limit = CaptureOptions::new().max_bytes(99_999);
            let error = bare("spew 100000").output_with(limit).expect_err("too many bytes");
            assert_eq!(error.kind(), ErrorKind::Limit);
        }
        assert_eq!(open_descriptors(), before);
        assert!(own_children().is_empty());
    });
}

#[test]
fn panic_of_the_reader_is_an_error_of_the_call() {
    struct Panics;
    impl Read for Panics {
        fn read(&mut self, _buffer: &mut [u8]) -> std::io::Result<usize> {
            panic!("as the test wants it");
        }
    }
    let options = CaptureOptions::new().input_reader(Panics).timeout(Duration::from_secs(60));
    let error = bare("count").output_with(options).expect_err("the input failed");
    assert_eq!(error.operation(), Operation::Read);
    assert!(error.to_string().contains("the reader panicked"), "{error}");
}

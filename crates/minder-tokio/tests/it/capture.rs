//! `output` and `status`.

use std::io;
use std::time::{Duration, Instant};

use minder::{CaptureOptions, Command, ErrorKind, Operation, Termination};
use minder_tokio::{output, status};

use crate::sh;

#[tokio::test]
async fn outputs_equal_those_of_std() {
    let long = "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2";
    for script in ["true", "echo text", "echo message >&2; exit 3", "kill -9 $$", long, "cat; pwd"] {
        let ours = output(&sh(script), CaptureOptions::new()).await.expect("run a script");
        let std = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::null())
            .output()
            .expect("run a script");
        assert_eq!((&ours.stdout, &ours.stderr), (&std.stdout, &std.stderr), "{script}");
        assert_eq!(ours.status, std.status.into(), "{script}");
        assert!(ours.usage.is_some() && !ours.timed_out && !ours.leaked, "{script}");
    }
    assert_eq!(status(&sh("exit 3")).await.expect("run a script").code(), Some(3));
}

#[tokio::test]
async fn input_is_written_while_outputs_are_read() {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let written = output(&sh("cat"), CaptureOptions::new().input(bytes.clone())).await.expect("run cat");
    assert!(written.stdout == bytes, "from memory");
    let reader = CaptureOptions::new().input_reader(io::Cursor::new(bytes.clone()));
    let written = output(&sh("cat"), reader).await.expect("run cat");
    assert!(written.stdout == bytes, "from a reader");
    // A child may leave its input unread.
    let unread = output(&sh("exit 4"), CaptureOptions::new().input(bytes)).await.expect("run a script");
    assert_eq!(unread.status.code(), Some(4));
}

#[tokio::test]
async fn reader_that_fails_or_panics_fails_the_call() {
    struct Failing;
    impl io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("no disk"))
        }
    }
    struct Panicking;
    impl io::Read for Panicking {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("a reader of a test panics")
        }
    }
    let failed = output(&sh("cat"), CaptureOptions::new().input_reader(Failing)).await.unwrap_err();
    assert_eq!(failed.to_string(), "failed to read the input of `sh`: no disk");
    let failed = output(&sh("cat"), CaptureOptions::new().input_reader(Panicking)).await.unwrap_err();
    assert_eq!((failed.operation(), failed.reason()), (Operation::Read, "the reader panicked".to_string()));
}

#[tokio::test]
async fn time_limit_kills_a_child_that_ignores_sigterm() {
    let start = Instant::now();
    let grace = Termination::graceful(Duration::from_millis(100));
    let options = CaptureOptions::new().timeout(Duration::from_millis(100)).kill(grace);
    let ended = output(&sh("trap '' TERM; echo text; while :; do sleep 0.05; done"), options).await;
    let ended = ended.expect("run a script");
    assert!(ended.timed_out && ended.status.signal() == Some(9) && ended.stdout == b"text\n", "{ended:?}");
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn time_limit_kills_a_grandchild_that_holds_the_output() {
    let options = CaptureOptions::new().timeout(Duration::from_millis(100));
    let ended = output(&sh("sleep 60 & echo text"), options).await.expect("run a script");
    assert!(ended.timed_out && ended.status.success() && !ended.leaked, "{ended:?}");
    assert_eq!(ended.stdout, b"text\n");
}

#[tokio::test]
async fn leak_timeout_closes_an_output_that_a_grandchild_holds() {
    let start = Instant::now();
    let options = CaptureOptions::new().leak_timeout(Some(Duration::from_millis(50)));
    let ended = output(&sh("sleep 2 & echo text"), options).await.expect("run a script");
    assert!(ended.leaked && ended.status.success() && ended.stdout == b"text\n", "{ended:?}");
    assert!((Duration::from_millis(50)..Duration::from_secs(2)).contains(&start.elapsed()));
}

#[tokio::test]
async fn grandchild_that_holds_the_output_is_waited_for_without_limits() {
    let ended = output(&sh("{ sleep 0.2; echo late; } & echo early"), CaptureOptions::new()).await;
    assert_eq!(ended.expect("run a script").stdout, b"early\nlate\n");
}

#[tokio::test]
async fn more_bytes_than_the_limit_are_an_error() {
    let endless = output(&Command::new("yes"), CaptureOptions::new().max_bytes(1000)).await.unwrap_err();
    assert_eq!((endless.kind(), endless.subject()), (ErrorKind::Limit, Some("yes")));
    let exact = CaptureOptions::new().max_bytes(5);
    assert_eq!(output(&sh("echo text"), exact).await.expect("5 bytes are allowed").stdout, b"text\n");
}

#[tokio::test]
async fn merged_outputs_are_in_the_order_of_their_writes() {
    let merged = CaptureOptions::new().merge_stderr(true);
    let ended = output(&sh("echo one; echo two >&2; echo three"), merged).await.expect("run a script");
    assert!(ended.stdout == b"one\ntwo\nthree\n" && ended.stderr.is_empty());
}

#[tokio::test]
async fn child_that_closes_its_outputs_early_is_waited_for() {
    let ended = output(&sh("exec >&- 2>&-; sleep 0.2; exit 5"), CaptureOptions::new()).await;
    assert_eq!(ended.expect("run a script").status.code(), Some(5));
}

#[tokio::test]
async fn terminal_is_captured_to_its_end() {
    let mut command = sh("cat; echo text");
    command.group(minder::Group::Terminal(minder::Size::default()));
    let ended = output(&command, CaptureOptions::new()).await.expect("run a script");
    assert_eq!(ended.stdout, b"text\r\n");
    let mut command = sh("stty -echo; cat");
    command.group(minder::Group::Terminal(minder::Size::default()));
    let ended = output(&command, CaptureOptions::new().input("half a line")).await.expect("run a script");
    assert!(ended.stdout.ends_with(b"half a line"), "{ended:?}");
}

#[tokio::test]
async fn terminal_that_closes_before_all_is_read_is_no_error() {
    let mut command = sh("stty -echo; head -n1 >/dev/null");
    command.group(minder::Group::Terminal(minder::Size::default()));
    let ended = output(&command, CaptureOptions::new().input("line\n".repeat(100_000))).await;
    assert!(ended.expect("run a script").status.success());
}

#[tokio::test]
async fn program_that_does_not_exist_is_named() {
    let missing = Command::new("no-such-program");
    let errors = [
        output(&missing, CaptureOptions::new()).await.unwrap_err(),
        status(&missing).await.unwrap_err(),
        minder_tokio::spawn(&missing).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.to_string(), "failed to start `no-such-program`: not found in PATH");
    }
}

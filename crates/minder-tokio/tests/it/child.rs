//! `spawn` and `Child`.

use std::time::{Duration, Instant};

use minder::{CaptureOptions, Signal, Stdio, Termination};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::sh;

#[tokio::test]
async fn megabytes_go_through_cat() {
    let mut command = sh("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = minder_tokio::spawn(&command).expect("start cat");
    let mut input = child.stdin.take().expect("it is piped");
    let mut output = child.stdout.take().expect("it is piped");
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 253) as u8).collect();
    let expected = bytes.clone();
    let writer = tokio::spawn(async move {
        input.write_all(&bytes).await?;
        input.shutdown().await?;
        input.write_all(b"more").await
    });
    let mut echoed = Vec::new();
    output.read_to_end(&mut echoed).await.expect("read the echo");
    assert!(echoed == expected, "{} bytes", echoed.len());
    let after_the_end = writer.await.expect("the task ends").unwrap_err();
    assert_eq!(after_the_end.kind(), std::io::ErrorKind::BrokenPipe);
    assert!(child.wait().await.expect("wait for cat").status.success());
    let again = child.wait().await.expect("wait again");
    assert!(child.try_wait().expect("look at it") == Some(again) && child.id() > 0);
}

#[tokio::test]
async fn wait_closes_the_input() {
    let mut command = sh("cat >/dev/null");
    command.stdin(Stdio::piped());
    let mut child = minder_tokio::spawn(&command).expect("start cat");
    assert!(child.wait().await.expect("wait for cat").status.success());
}

#[tokio::test]
async fn child_that_has_closed_its_input_is_a_broken_pipe() {
    let mut command = sh("exec <&-; echo ready; sleep 60");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = minder_tokio::spawn(&command).expect("start a script");
    let mut ready = [0; 6];
    child.stdout.as_mut().expect("it is piped").read_exact(&mut ready).await.expect("it writes");
    let written = child.stdin.as_mut().expect("it is piped").write_all(&[0; 100_000]).await;
    assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn kill_asks_and_then_kills_the_tree() {
    let mut child = minder_tokio::spawn(&sh("sleep 60; true")).expect("start a script");
    let exit = child.kill(Termination::graceful(Duration::from_secs(30))).await.expect("kill it");
    assert_eq!(exit.status.signal(), Some(15));
    let again = child.kill(Termination::IMMEDIATE).await.expect("it has exited");
    assert_eq!(again, exit);

    let mut command = sh("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    command.stdout(Stdio::piped());
    let mut child = minder_tokio::spawn(&command).expect("start a script");
    let mut ready = [0; 6];
    child.stdout.as_mut().expect("it is piped").read_exact(&mut ready).await.expect("it writes");
    let start = Instant::now();
    let exit = child.kill(Termination::graceful(Duration::from_millis(100))).await.expect("kill it");
    assert!(exit.status.signal() == Some(9) && start.elapsed() >= Duration::from_millis(100), "{exit:?}");
}

#[tokio::test]
async fn signal_reaches_the_group() {
    let mut child = minder_tokio::spawn(&sh("sleep 60; true")).expect("start a script");
    child.signal(Signal::TERM).expect("signal it");
    assert_eq!(child.wait().await.expect("wait for it").status.signal(), Some(15));
    child.signal(Signal::TERM).expect("a signal after the exit does nothing");
}

#[tokio::test]
async fn outputs_that_were_not_taken_are_captured() {
    let mut command = sh("echo text; echo message >&2; exit 6");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = minder_tokio::spawn(&command).expect("start a script");
    let mut stderr = child.stderr.take().expect("it is piped");
    let output = child.wait_with_output(CaptureOptions::new()).await.expect("wait for it");
    assert!(output.status.code() == Some(6) && output.stdout == b"text\n" && output.stderr.is_empty());
    let mut message = String::new();
    stderr.read_to_string(&mut message).await.expect("read the message");
    assert_eq!(message, "message\n");
}

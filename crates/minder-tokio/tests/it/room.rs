//! Many children, and fewer descriptors than they need.

use std::time::{Duration, Instant};

use minder::{CaptureOptions, ErrorKind};

use crate::{alone, sh};

/// Runs this number of outputs, all at once.
async fn run_outputs(count: usize) {
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            tokio::spawn(async move {
                minder_tokio::output(&sh(&format!("echo {number}")), CaptureOptions::new()).await
            })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let output = task.await.expect("the task ends").expect("run a script");
        assert!(output.status.success() && output.stdout == format!("{number}\n").as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousand_tasks_run_outputs_at_once() {
    run_outputs(1000).await;
}

#[test]
fn outputs_share_64_descriptors() {
    alone::run("room::five_hundred_outputs", 64);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a limit of descriptors"]
async fn five_hundred_outputs() {
    run_outputs(500).await;
}

#[test]
fn outputs_share_24_descriptors() {
    alone::run("room::hundred_outputs_and_statuses", 24);
}

#[tokio::test]
#[ignore = "needs a limit of descriptors"]
async fn hundred_outputs_and_statuses() {
    let statuses: Vec<_> =
        (0..100).map(|_| tokio::spawn(async { minder_tokio::status(&sh("exit 7")).await })).collect();
    run_outputs(100).await;
    for status in statuses {
        assert_eq!(status.await.expect("the task ends").expect("run a script").code(), Some(7));
    }
}

#[test]
fn no_descriptor_is_an_error_in_bounded_time() {
    alone::run("room::without_a_descriptor", 24);
}

#[tokio::test]
#[ignore = "takes all descriptors"]
async fn without_a_descriptor() {
    let mut files: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    let start = Instant::now();
    let error = minder_tokio::output(&sh("true"), CaptureOptions::new()).await.unwrap_err();
    assert_eq!((error.kind(), error.subject()), (ErrorKind::Exhausted, Some("sh")));
    let pause = Duration::from_millis(100);
    assert!((pause..pause * 50).contains(&start.elapsed()), "{:?}", start.elapsed());
    // Other code makes room during the pause.
    let output = tokio::spawn(async { minder_tokio::output(&sh("true"), CaptureOptions::new()).await });
    tokio::task::yield_now().await;
    files.clear();
    assert!(output.await.expect("the task ends").expect("there is room").status.success());
}

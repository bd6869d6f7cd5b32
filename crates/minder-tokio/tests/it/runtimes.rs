//! Runtimes: of both kinds, one after the other, and at the same time.

use minder::CaptureOptions;
use tokio::runtime::{Builder, Runtime};

use crate::sh;

/// Returns a runtime with one thread or several.
pub(crate) fn runtime(multi: bool) -> Runtime {
    let mut builder = if multi { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    builder.enable_all().build().expect("make a runtime")
}

async fn run_some() {
    let tasks: Vec<_> = (0..20)
        .map(|_| tokio::spawn(async { minder_tokio::output(&sh("echo text"), CaptureOptions::new()).await }))
        .collect();
    for task in tasks {
        assert_eq!(task.await.expect("the task ends").expect("run a script").stdout, b"text\n");
    }
}

#[test]
fn runtimes_follow_each_other() {
    for multi in [false, true, false, true] {
        runtime(multi).block_on(run_some());
    }
}

#[test]
fn runtimes_work_at_the_same_time() {
    std::thread::scope(|scope| {
        for multi in [false, true, false, true] {
            scope.spawn(move || runtime(multi).block_on(run_some()));
        }
    });
}

#[test]
fn child_moves_to_another_task_of_its_runtime() {
    let runtime = runtime(true);
    let mut child =
        runtime.block_on(async { minder_tokio::spawn(&sh("sleep 0.05; exit 8")) }).expect("start");
    let exit = runtime.block_on(async move { tokio::spawn(async move { child.wait().await }).await });
    assert_eq!(exit.expect("the task ends").expect("wait for it").status.code(), Some(8));
}

#[test]
fn child_moves_to_another_runtime() {
    let mut child = runtime(false).block_on(async {
        let mut child = minder_tokio::spawn(&sh("sleep 0.5; exit 8")).expect("start");
        let wait = tokio::time::timeout(std::time::Duration::from_millis(1), child.wait());
        assert!(wait.await.is_err(), "it runs");
        child
    });
    // The runtime that watched the child has ended. The wait uses next to no processor time.
    let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let before = used();
    let exit = runtime(false).block_on(async { child.wait().await });
    assert_eq!(exit.expect("wait for it").status.code(), Some(8));
    let nanoseconds = |time: rustix::time::Timespec| time.tv_sec * 1_000_000_000 + time.tv_nsec;
    let spent = nanoseconds(used()) - nanoseconds(before);
    assert!(spent < 200_000_000, "{spent} ns");
}

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

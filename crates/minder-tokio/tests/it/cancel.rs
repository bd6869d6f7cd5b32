//! Futures and children that are dropped.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use minder::{CaptureOptions, Stdio};
use tokio::time::{sleep, timeout};

use crate::{alone, sh};

/// A script whose shell and grandchild write their pids to files and run for long.
struct Tree {
    dir: PathBuf,
    script: String,
}

impl Tree {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("minder-tokio-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("make a directory");
        let script = format!(
            "trap '' TERM; cd {path}; sleep 60 & echo $! >b; echo $$ >a.new; mv a.new a; wait",
            path = dir.display()
        );
        Self { dir, script }
    }

    /// Waits until both run, and returns their pids.
    async fn pids(&self) -> [u32; 2] {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.dir.join("a").exists() {
            assert!(Instant::now() < deadline, "the tree starts in time");
            sleep(Duration::from_millis(2)).await;
        }
        let pid = |name| fs::read_to_string(self.dir.join(name)).expect("read a pid");
        ["a", "b"].map(|name| pid(name).trim().parse().expect("a pid is a number"))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Returns the state of a process, such as `Z` for a zombie. `None` if there is none.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Waits until the shell is reaped, and its grandchild runs no more: that one is reaped by others.
async fn wait_gone([shell, grandchild]: [u32; 2]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while state(shell).is_some() || state(grandchild).is_some_and(|state| state != 'Z') {
        assert!(Instant::now() < deadline, "{:?} {:?}", state(shell), state(grandchild));
        sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn dropped_output_kills_the_tree() {
    let tree = Tree::new("output");
    let command = sh(&tree.script);
    let task = tokio::spawn(async move { minder_tokio::output(&command, CaptureOptions::new()).await });
    let pids = tree.pids().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    wait_gone(pids).await;
}

#[tokio::test]
async fn dropped_status_and_child_kill_the_tree() {
    let tree = Tree::new("status");
    let command = sh(&tree.script);
    let task = tokio::spawn(async move { minder_tokio::status(&command).await });
    let pids = tree.pids().await;
    task.abort();
    wait_gone(pids).await;

    let tree = Tree::new("child");
    let mut child = minder_tokio::spawn(&sh(&tree.script)).expect("start a tree");
    let pids = tree.pids().await;
    // A wait that is dropped kills nothing.
    assert!(timeout(Duration::from_millis(20), child.wait()).await.is_err());
    assert!(state(pids[0]).is_some() && child.id() == pids[0]);
    drop(child);
    wait_gone(pids).await;

    let tree = Tree::new("with-output");
    let mut command = sh(&tree.script);
    command.stdout(Stdio::piped());
    let child = minder_tokio::spawn(&command).expect("start a tree");
    let task = tokio::spawn(child.wait_with_output(CaptureOptions::new()));
    let pids = tree.pids().await;
    task.abort();
    wait_gone(pids).await;
}

#[tokio::test]
async fn child_that_is_not_killed_on_drop_continues() {
    let tree = Tree::new("kept");
    let mut child = minder_tokio::spawn(&sh(&tree.script)).expect("start a tree");
    let pids = tree.pids().await;
    child.kill_on_drop(false);
    drop(child);
    sleep(Duration::from_millis(50)).await;
    assert!(pids.iter().all(|pid| state(*pid).is_some()));
    assert!(minder_tokio::status(&sh(&format!("kill -9 -{}", pids[0]))).await.expect("kill it").success());
}

#[test]
fn end_of_the_runtime_kills_and_reaps() {
    let tree = Tree::new("runtime");
    for multi in [false, true] {
        let runtime = crate::runtimes::runtime(multi);
        let command = sh(&tree.script);
        runtime.spawn(async move { minder_tokio::output(&command, CaptureOptions::new()).await });
        let pids = runtime.block_on(tree.pids());
        let child = runtime.block_on(async { minder_tokio::spawn(&sh("sleep 60")) }).expect("start a child");
        drop(runtime);
        assert!(state(pids[0]).is_none(), "the drop of the runtime has reaped it");
        let pid = child.id();
        drop(child); // outside of a runtime
        assert!(state(pid).is_none(), "the drop has reaped it");
        let _ = fs::remove_file(tree.dir.join("a"));
    }
}

#[test]
fn nothing_is_left_of_dropped_futures() {
    alone::run("cancel::leave_nothing", 1024);
}

#[tokio::test]
#[ignore = "counts the descriptors and children of its process"]
async fn leave_nothing() {
    minder_tokio::status(&sh("true")).await.expect("run a script");
    let before = open_descriptors();
    for _ in 0..3 {
        let outputs: Vec<_> = (0..100)
            .map(|_| {
                tokio::spawn(async {
                    minder_tokio::output(&sh("sleep 60 & wait"), CaptureOptions::new()).await
                })
            })
            .collect();
        sleep(Duration::from_millis(100)).await;
        for output in &outputs {
            output.abort();
        }
        for output in outputs {
            assert!(output.await.is_err_and(|error| error.is_cancelled()));
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while !children().is_empty() || open_descriptors() != before {
            assert!(Instant::now() < deadline, "{:?} {}", children(), open_descriptors());
            sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Returns the children of this process, zombies included.
fn children() -> Vec<u32> {
    let mut found = Vec::new();
    for task in fs::read_dir("/proc/self/task").expect("list the threads").flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

/// Returns how many descriptors this process has open, that of the directory included.
fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("list the descriptors").count()
}

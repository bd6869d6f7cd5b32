//! Job objects: the processes that are in them, and those that are killed with them.

use minder::{Child, ChildSet, ChildSetOptions, Group, SpawnOptions, Stdio, Termination};

use crate::support::{EventLog, end, lives, nap, patience, quiet_child, read_all, stdout_of, test_child};

/// Reads that many numbers, one a line.
fn numbers(child: &mut Child, many: usize) -> Vec<u32> {
    use std::io::BufRead;
    let lines = std::io::BufReader::new(child.stdout.take().expect("take stdout")).lines();
    let numbers = lines.take(many).map(|line| line.expect("read line").trim().parse().expect("parse number"));
    numbers.collect()
}

/// Waits until none of them lives.
fn gone(processes: &[u32]) {
    let until = patience();
    while let Some(pid) = processes.iter().find(|pid| lives(**pid)) {
        assert!(std::time::Instant::now() < until, "{pid} of {processes:?} lives");
        nap(std::time::Duration::from_millis(5));
    }
}

#[test]
fn trees_of_a_host_in_a_job_are_killed() {
    assert_eq!(stdout_of(&test_child("confined echo-args a")), "\"a\"\n");
    // Ours, that of the child, and that of the library in the child.
    let mut child = test_child("confined tree 3").spawn().expect("spawn test child");
    let tree = numbers(&mut child, 3);
    assert!(tree.iter().all(|pid| lives(*pid)));
    child.kill(Termination::IMMEDIATE).expect("kill child");
    child.wait().expect("wait for child");
    gone(&tree);
}

#[test]
fn child_cannot_break_away() {
    assert_eq!(stdout_of(&test_child("break-away")), "Some(5)\n");
}

#[test]
fn tree_is_killed_in_any_group() {
    for group in [Group::New, Group::Session, Group::Inherit] {
        let mut command = test_child("tree 3");
        let mut child = command.group(group).spawn().expect("spawn test child");
        let tree = numbers(&mut child, 3);
        child.kill(Termination::IMMEDIATE).expect("kill child");
        assert_eq!(child.wait().expect("wait for child").status.code(), Some(1), "{group:?}");
        gone(&tree);
    }
}

#[test]
fn killed_host_takes_its_children_along() {
    let mut host = test_child("herd 2 tree 2").spawn().expect("spawn host");
    let trees = numbers(&mut host, 4);
    assert!(trees.iter().all(|pid| lives(*pid)));
    // The host alone: the job that it is in stays open.
    end(host.id());
    host.wait().expect("wait for child");
    gone(&trees);
}

#[test]
fn survivor_of_a_child_lives_while_the_host_does() {
    for group in [Group::New, Group::Inherit] {
        let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
        let mut command = test_child("leave-group 600000");
        let id = set.spawn(command.group(group), SpawnOptions::default()).expect("spawn test child");
        let mut event_log = EventLog::default();
        event_log.wait_all(&mut set);
        let left: u32 = event_log.text(id).trim().parse().expect("parse number");
        assert_eq!(event_log.outcome(id).left_running, group == Group::New);
        drop(set);
        stdout_of(&test_child("cwd"));
        assert!(lives(left), "{group:?}: it was killed");
        end(left);
    }
    // A dropped child, too.
    let mut child = quiet_child("sleep-ms 600000").spawn().expect("spawn test child");
    let id = child.id();
    drop(child.stdin.take());
    drop(child);
    stdout_of(&test_child("cwd"));
    assert!(lives(id), "it was killed");
    end(id);
}

/// End of file comes when the child ends, however many others start in that moment.
#[test]
fn children_of_many_threads_share_no_pipes() {
    let sleepers: Vec<_> = std::thread::scope(|scope| {
        let threads = [0, 1].map(|number| {
            scope.spawn(move || {
                let mut sleepers = Vec::new();
                for _ in 0..10 {
                    let mut sleeper = test_child("sleep-ms 600000");
                    sleepers.push(sleeper.stdin(Stdio::piped()).spawn().expect("spawn test child"));
                    let mut child = test_child("spew 10").spawn().expect("spawn test child");
                    let text = read_all(child.stdout.take());
                    assert_eq!(text.len(), 10, "thread {number}");
                    child.wait().expect("wait for child");
                }
                sleepers
            })
        });
        threads.into_iter().flat_map(|thread| thread.join().expect("join thread")).collect()
    });
    for mut sleeper in sleepers {
        sleeper.kill(Termination::IMMEDIATE).expect("kill child");
        sleeper.wait().expect("wait for child");
    }
}

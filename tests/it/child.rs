//! `Child`: every way to exit, and to be killed.

use std::io::Write;
use std::time::{Duration, Instant};

use minder::{ExitStatus, Stdio, Termination};

#[cfg(any(target_os = "linux", windows))]
use crate::support::lives;
#[cfg(target_os = "linux")]
use crate::support::{alone, own_children};
use crate::support::{killed, patience, patterned, quiet_child, read_all, test_child};

#[test]
fn wait_returns_the_same_status_again() {
    for code in [0, 1, 127, 255] {
        let mut child = quiet_child(&format!("exit {code}")).spawn().expect("spawn test child");
        let exit = child.wait().expect("wait for child");
        assert_eq!((exit.status, exit.status.success()), (ExitStatus::Exited(code), code == 0));
        assert!(exit.usage.is_some());
        assert_eq!(child.wait().expect("wait for child again"), exit);
        assert_eq!(child.try_wait().expect("poll child again"), Some(exit));
    }
    let mut child = quiet_child(if cfg!(windows) { "kill-self 1" } else { "kill-self 9" })
        .spawn()
        .expect("spawn test child");
    assert!(killed(child.wait().expect("wait for child").status, 9));
}

#[test]
fn wait_timeout_never_returns_early() {
    let mut child = quiet_child("sleep-ms 600000").spawn().expect("spawn test child");
    assert_eq!(child.try_wait().expect("poll child"), None);
    for micros in (0..150).map(|number| 200 + number * 19) {
        let time = Duration::from_micros(micros);
        let begun = Instant::now();
        assert_eq!(child.wait_timeout(time).expect("wait for child"), None);
        assert!(begun.elapsed() >= time, "early of {time:?}");
    }
    assert_eq!(child.wait_timeout(Duration::ZERO).expect("wait for child"), None);
    assert_eq!(child.wait_deadline(Instant::now() - Duration::from_secs(1)).expect("wait for child"), None);
    child.kill(Termination::IMMEDIATE).expect("kill child");
    // Longer than any clock can count.
    let exit = child.wait_timeout(Duration::MAX).expect("wait for child").expect("wait for exit");
    assert!(killed(exit.status, 9));
}

#[test]
fn wait_deadline_returns_when_the_child_exits() {
    let mut child = quiet_child("sleep-ms 20").spawn().expect("spawn test child");
    let far = patience();
    let exit = child.wait_deadline(far).expect("wait for child").expect("wait for exit");
    assert!(exit.status.success() && Instant::now() < far);
}

#[test]
fn wait_closes_piped_stdin() {
    let mut command = test_child("count");
    let mut child = command.stdin(Stdio::piped()).spawn().expect("spawn test child");
    assert!(child.wait().expect("wait for child").status.success());
    assert_eq!(read_all(child.stdout.take()), "0\n");
}

#[test]
fn child_pipes_are_blocking() {
    let mut command = test_child("cat");
    let mut child = command.stdin(Stdio::piped()).spawn().expect("spawn test child");
    let mut input = child.stdin.take().expect("take stdin");
    assert!(child.stdin.take().is_none());
    let bytes = patterned(1 << 20);
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let text = read_all(child.stdout.take());
    writer.join().expect("join writer").expect("write to stdin");
    assert!(text.as_bytes() == patterned(1 << 20), "{} bytes came back", text.len());
    assert_eq!(read_all(child.stderr.take()), "");
    assert!(child.wait().expect("wait for child").status.success());
}

// Windows has no request to exit: the first kill ends the child.
#[cfg(unix)]
#[test]
fn graceful_kill_signals_once_without_escalating() {
    let mut child = test_child("ignore-term 600000").spawn().expect("spawn test child");
    let mut line = [0; 6];
    let mut output = child.stdout.take().expect("take stdout");
    std::io::Read::read_exact(&mut output, &mut line).expect("read bytes");
    child.kill(Termination::graceful(Duration::from_millis(1))).expect("kill child");
    assert_eq!(
        child.wait_timeout(Duration::from_millis(100)).expect("wait for child"),
        None,
        "the child ignores SIGTERM, and no SIGKILL follows"
    );
    child.kill(Termination::IMMEDIATE).expect("kill child");
    assert!(killed(child.wait().expect("wait for child").status, 9));
    child.kill(Termination::IMMEDIATE).expect("kill child that was reaped");
    let mut child = quiet_child("sleep-ms 600000").spawn().expect("spawn test child");
    child.kill(Termination::graceful(Duration::ZERO)).expect("kill child");
    assert!(killed(child.wait().expect("wait for child").status, 15));
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn immediate_kill_ends_the_tree() {
    let mut child = test_child("stubborn-tree").spawn().expect("spawn test child");
    let mut reader = std::io::BufReader::new(child.stdout.take().expect("take stdout"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut reader, &mut line).expect("read line");
    let pids: Vec<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!((pids.len(), pids[0]), (3, child.id()));
    child.kill(Termination::IMMEDIATE).expect("kill tree");
    child.wait().expect("wait for child");
    let until = patience();
    while pids.iter().any(|pid| lives(*pid)) {
        std::thread::yield_now();
        assert!(Instant::now() < until, "one of {pids:?} is alive");
    }
}

/// A process that leaves the group at the moment of the signal would not be found after its parent's end.
#[cfg(target_os = "linux")]
#[test]
fn graceful_kill_reaches_a_process_that_leaves_the_group() {
    for round in 0..200 {
        let script = "exec 3<&0; { read line <&3; exec setsid sleep 600; } & echo $!; wait";
        let mut command = minder::Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.group(minder::Group::New).spawn().expect("spawn shell");
        let mut reader = std::io::BufReader::new(child.stdout.take().expect("take stdout"));
        let mut line = String::new();
        std::io::BufRead::read_line(&mut reader, &mut line).expect("read line");
        let pid: u32 = line.trim().parse().expect("parse pid");
        child.stdin.as_mut().expect("stdin").write_all(b"go\n").expect("write line");
        // At another moment of the start of `setsid` in each round.
        let moment = Instant::now() + Duration::from_micros(round * 10);
        while Instant::now() < moment {}
        child.kill(Termination::graceful(Duration::from_secs(600))).expect("kill tree");
        child.wait().expect("wait for shell");
        let until = patience();
        while lives(pid) {
            std::thread::yield_now();
            assert!(Instant::now() < until, "round {round}: {pid} is alive");
        }
    }
}

/// Another part of the process reaps the child. The wait returns with the status that was kept, or
/// with an unknown status. On Windows every handle of the process reads the status.
/// boostorg/process#187: the wait for a child fails, or hangs, if other code has reaped it.
#[cfg(target_os = "linux")]
#[test]
fn wait_returns_when_the_status_was_reaped_elsewhere() {
    alone("child::wait_returns_when_the_status_was_reaped_elsewhere", || {
        use rustix::process::{Pid, WaitOptions, waitpid};
        let known = |status| matches!(status, ExitStatus::Exited(7) | ExitStatus::Unknown);
        // Stolen before we look.
        let mut child = quiet_child("exit 7").spawn().expect("spawn test child");
        let pid = Pid::from_raw(child.id().cast_signed());
        waitpid(pid, WaitOptions::empty()).expect("wait for child").expect("wait for exit");
        assert!(known(child.wait().expect("wait for child").status));
        child.kill(Termination::IMMEDIATE).expect("kill child that was reaped");
        // Stolen while we wait.
        for _ in 0..20 {
            let mut child = quiet_child("script 0 0 5 7").spawn().expect("spawn test child");
            let pid = Pid::from_raw(child.id().cast_signed());
            let thief = std::thread::spawn(move || waitpid(pid, WaitOptions::empty()).is_ok());
            assert!(known(child.wait().expect("wait for child").status));
            thief.join().expect("join thief");
        }
        // Stolen from a set.
        crate::support::each_backend(|backend| {
            let mut set = minder::ChildSet::new(crate::support::limits(backend)).expect("create set");
            let id = set
                .spawn(&test_child("script 500 0 5 7"), minder::SpawnOptions::default())
                .expect("spawn test child");
            let pid = Pid::from_raw(set.pid(id).expect("get pid").cast_signed());
            waitpid(pid, WaitOptions::empty()).expect("wait for child").expect("wait for exit");
            let mut event_log = crate::support::EventLog::default();
            event_log.wait_all(&mut set);
            assert!(known(event_log.outcome(id).exit.status) && event_log.child(id).outs[0].len() == 500);
        });
    });
}

/// A host that ignores SIGCHLD has no zombies: the kernel takes the status away at once. Windows
/// has no signals.
#[cfg(target_os = "linux")]
#[test]
fn wait_returns_when_the_host_ignores_sigchld() {
    alone("child::wait_returns_when_the_host_ignores_sigchld", || {
        crate::spawn::ignore(libc::SIGCHLD);
        let known = |status| matches!(status, ExitStatus::Exited(7) | ExitStatus::Unknown);
        let mut child = quiet_child("exit 7").spawn().expect("spawn test child");
        assert!(known(child.wait().expect("wait for child").status));
        let error = minder::Command::new("/no/such/program").spawn().expect_err("spawn missing program");
        assert_eq!(error.kind(), minder::ErrorKind::NotFound);
        let mut set = minder::ChildSet::new(minder::ChildSetOptions::default()).expect("create set");
        let id = set
            .spawn(&test_child("script 10 10 1 7"), minder::SpawnOptions::default())
            .expect("spawn test child");
        let mut event_log = crate::support::EventLog::default();
        event_log.wait_all(&mut set);
        assert!(known(event_log.outcome(id).exit.status));
        assert_eq!(event_log.child(id).outs, [patterned(10), patterned(10)]);
    });
}

// Windows has no zombies.
#[cfg(target_os = "linux")]
#[test]
fn dropped_child_is_reaped() {
    alone("child::dropped_child_is_reaped", || {
        let child = quiet_child("exit 0").spawn().expect("spawn test child");
        let id = child.id();
        while lives(id) {
            std::thread::yield_now();
        }
        assert_eq!(own_children(), [id]);
        drop(child);
        assert_eq!(own_children(), [0; 0]);
    });
}

/// Signals for the host interrupt system calls; no wait may end by that. Windows has none.
#[cfg(target_os = "linux")]
#[test]
fn wait_survives_signals_to_the_host() {
    alone("child::wait_survives_signals_to_the_host", || {
        crate::spawn::count(libc::SIGUSR1);
        let own = rustix::process::getpid();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                    rustix::process::kill_process(own, rustix::process::Signal::USR1)
                        .expect("signal own process");
                    std::thread::park_timeout(Duration::from_micros(300));
                }
            });
            let mut child = quiet_child("sleep-ms 600000").spawn().expect("spawn test child");
            let begun = Instant::now();
            assert_eq!(child.wait_timeout(Duration::from_millis(100)).expect("wait for child"), None);
            assert!(begun.elapsed() >= Duration::from_millis(100));
            crate::support::each_backend(|backend| {
                let mut set = minder::ChildSet::new(crate::support::limits(backend)).expect("create set");
                for _ in 0..20 {
                    set.spawn(&test_child("both 100000"), minder::SpawnOptions::default())
                        .expect("spawn test child");
                }
                let mut event_log = crate::support::EventLog::default();
                event_log.wait_all(&mut set);
                assert!(event_log.records.values().all(|record| record.outs[1] == patterned(100_000)));
                let deadline = Instant::now() + Duration::from_millis(20);
                assert!(
                    set.next_event_deadline(Some(deadline)).expect("wait for event").into_event().is_none()
                        && Instant::now() >= deadline
                );
            });
            stop.store(true, std::sync::atomic::Ordering::SeqCst);
            child.kill(Termination::IMMEDIATE).expect("kill child");
            child.wait().expect("wait for child");
        });
    });
}

#[test]
fn kill_and_wait_sends_every_signal_and_waits_for_the_tree() {
    // A child that ignores SIGTERM, and has a descendant that does, too.
    let mut command = test_child("stubborn-tree");
    let mut child = command.stdout(Stdio::piped()).spawn().expect("spawn test child");
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().expect("stdout is piped"));
    std::io::BufRead::read_line(&mut out, &mut line).expect("read pids");
    let start = Instant::now();
    let grace = Duration::from_millis(50);
    let exit = child.kill_and_wait(Termination::graceful(grace)).expect("kill test child");
    assert!(killed(exit.status, 9), "{exit:?}");
    assert!(cfg!(windows) || start.elapsed() >= grace);
    assert_eq!(child.wait().expect("wait again"), exit);
    assert_eq!(child.kill_and_wait(Termination::IMMEDIATE).expect("kill again"), exit);
    // The tree holds the pipe.
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).expect("read to the end");
}

#[test]
fn kill_and_wait_returns_as_soon_as_the_child_obeys() {
    let mut child = quiet_child("sleep-ms 600000").spawn().expect("spawn test child");
    let hour = Duration::from_secs(3600);
    let exit = child.kill_and_wait(Termination::graceful(hour)).expect("kill test child");
    assert!(killed(exit.status, 15), "{exit:?}");
}

/// oconnor663/duct.rs#80: a kill waits for the thread that waits for the child.
#[test]
fn shared_child_is_waited_for_and_killed_by_many_threads() {
    for kill_and_wait in [false, true] {
        let mut command = test_child("cat");
        let child = command.stdin(Stdio::piped()).spawn().expect("spawn test child");
        let child = child.into_shared().expect("share child");
        assert_eq!(child.try_wait().expect("poll child"), None);
        let short = Duration::from_millis(20);
        let start = Instant::now();
        assert_eq!(child.wait_timeout(short).expect("wait for child"), None);
        assert!(start.elapsed() >= short);
        // The input stays open: `wait` closes what was not taken.
        let stdin = child.take_stdin();
        assert!(stdin.is_some() && child.take_stdin().is_none());
        let waiters: Vec<_> = (0..8)
            .map(|number| {
                let child = child.clone();
                std::thread::spawn(move || match number % 2 {
                    0 => child.wait().expect("wait for child"),
                    _ => child.wait_deadline(patience()).expect("wait for child").expect("exit"),
                })
            })
            .collect();
        if kill_and_wait {
            child.kill_and_wait(Termination::IMMEDIATE).expect("kill child");
        } else {
            child.kill(Termination::IMMEDIATE).expect("kill child");
        }
        let exit = child.wait().expect("wait for child");
        assert!(killed(exit.status, 9));
        for waiter in waiters {
            assert_eq!(waiter.join().expect("join thread"), exit);
        }
        assert_eq!(child.try_wait().expect("poll child"), Some(exit));
        child.kill(Termination::IMMEDIATE).expect("a kill after the end has no effect");
    }
}

#[test]
fn shared_child_closes_the_input_before_it_waits() {
    let mut command = test_child("count");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("spawn test child");
    let child = child.into_shared().expect("share child");
    assert!(child.wait().expect("wait for child").status.success());
    assert_eq!(read_all(child.take_stdout()).trim(), "0");
    assert!(child.take_stderr().is_some() && child.take_stderr().is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn shared_kill_spares_no_process_that_outlives_a_waited_for_child() {
    // A thread waits, and must not reap the child while the rest of its group is being killed.
    for _ in 0..20 {
        let mut command = test_child("stubborn-tree");
        let child = command.stdout(Stdio::piped()).spawn().expect("spawn test child");
        let child = child.into_shared().expect("share child");
        let mut out = std::io::BufReader::new(child.take_stdout().expect("stdout is piped"));
        std::io::BufRead::read_line(&mut out, &mut String::new()).expect("read pids");
        let waiter = child.clone();
        let thread = std::thread::spawn(move || waiter.wait());
        child.kill_and_wait(Termination::graceful(Duration::from_millis(1))).expect("kill child");
        thread.join().expect("join thread").expect("wait for child");
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut out, &mut rest).expect("the pipe of the tree ends");
    }
}

#[test]
fn children_and_background_sets_are_sources_of_a_poller() {
    let poller = minder::poll::Poller::new().expect("open poller");
    let mut events = minder::poll::Events::new();
    let mut child = quiet_child("exit 0").spawn().expect("spawn test child");
    poller.add(&child, minder::poll::Token(7), minder::poll::Interest::READABLE).expect("watch child");
    assert_eq!(poller.wait_deadline(&mut events, Some(patience())).expect("wait"), 1);
    poller.delete(&child).expect("unwatch child");
    child.wait().expect("wait for child");

    let set = minder::BackgroundSet::new(minder::ChildSetOptions::new()).expect("start background set");
    poller.add(&set, minder::poll::Token(8), minder::poll::Interest::READABLE).expect("watch set");
    set.spawn(&quiet_child("exit 0"), minder::SpawnOptions::new()).expect("spawn test child");
    assert_eq!(poller.wait_deadline(&mut events, Some(patience())).expect("wait"), 1);
    poller.delete(&set).expect("unwatch set");
    set.stop(Duration::ZERO).expect("stop");
}

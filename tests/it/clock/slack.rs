//! Timer slack on Linux: children inherit that of the user, or get the one that was set for them.

use std::time::{Duration, Instant};

use minder::clock::{Clock, Interval, Precision, SleepMethod, Sleeper, measure_clock, measure_sleep};
use minder::poll::{Events, Poller, Token};
use minder::{Backend, ChildSet, ChildSetOptions, Command, Event, Group, SpawnOptions, Stdio};

use super::micros;
use crate::support::test_child;

/// Returns the slack of this thread, which its children inherit.
fn own() -> u64 {
    rustix::thread::current_timer_slack().expect("read timer slack")
}

/// Returns the output of a child that prints its slack after execve, and that of its child after fork
/// and execve.
fn printed(command: &Command) -> String {
    let output = command.clone().stdin(Stdio::null()).output().expect("run test child");
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).expect("read digits")
}

fn twice(slack: u64) -> String {
    format!("{slack}\n{slack}\n")
}

/// Uses everything of the library that waits for a time, on the thread that starts children.
fn use_every_timer() {
    for precision in [Precision::Cheap, Precision::Precise, Precision::Thrifty] {
        let mut sleeper = Sleeper::new(precision);
        for _ in 0..10 {
            sleeper.sleep(micros(200));
        }
        let mut interval = Interval::new(micros(200)).sleeper(sleeper);
        interval.tick();
    }
    for method in SleepMethod::available() {
        // A sandbox may refuse some.
        let _ = measure_sleep(method, micros(50), 3, &std::sync::atomic::AtomicBool::new(false));
    }
    measure_clock(Clock::Monotonic, micros(200)).expect("measure clock");
    for backend in Backend::available() {
        let Ok(poller) = Poller::with_backend(backend) else { continue };
        poller.add_timer(Token(1), Instant::now() + micros(200), Duration::ZERO).expect("add timer");
        poller.wait(&mut Events::new(), None).expect("wait for timer");
        poller.wait(&mut Events::new(), Some(micros(200))).expect("wait until time-out");
    }
}

/// Starts a child by a set, and returns what it prints.
fn printed_in_set() -> String {
    let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
    let mut command = test_child("timer-slack");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    set.spawn(&command, SpawnOptions::new()).expect("start child");
    let mut text = String::new();
    set.wait_all(None, |event| {
        if let Event::Output { chunk, .. } = event {
            text += &String::from_utf8_lossy(&chunk);
        }
    })
    .expect("wait for child");
    text
}

#[test]
fn child_inherits_the_slack_of_the_user_whatever_waited_before() {
    // Also a slack that the user has changed: each thread has its own.
    for slack in [None, std::num::NonZeroU64::new(7_000_000)] {
        let thread = std::thread::spawn(move || {
            if slack.is_some() {
                rustix::thread::set_current_timer_slack(slack).expect("set timer slack");
            }
            let before = own();
            use_every_timer();
            assert_eq!(own(), before, "the slack of the thread has changed");
            for group in [Group::New, Group::Session, Group::Inherit] {
                let mut command = test_child("timer-slack");
                command.group(group);
                assert_eq!(printed(&command), twice(before), "{group:?}");
            }
            assert_eq!(printed_in_set(), twice(before), "by a set");
            assert_eq!(own(), before, "a start has changed the slack of the thread");
        });
        thread.join().expect("join thread");
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn child_gets_its_slack_and_the_thread_keeps_its_own() {
    let before = own();
    for (slack, expected) in [
        (Duration::ZERO, 1),
        (Duration::from_nanos(1), 1),
        (micros(50), 50_000),
        (Duration::from_millis(50), 50_000_000),
    ] {
        let mut command = test_child("timer-slack");
        command.timer_slack(slack);
        assert_eq!(printed(&command), twice(expected), "{slack:?}");
        assert_eq!(own(), before, "the slack of the thread has changed");
    }
    assert_eq!(printed(&test_child("timer-slack")), twice(before), "a later child got it, too");
}

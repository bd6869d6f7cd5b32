//! Starts while another thread changes the environment of this process.

#![expect(unsafe_code, reason = "the environment of processes that a test has for itself")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use minder::{
    BackgroundSet, ChildSet, ChildSetOptions, Command, Event, Restart, RestartPolicy, SpawnOptions, Stdio,
};

use crate::support::{alone, is_long, patience, quiet_child};

/// The number of starts that one test tries.
fn starts() -> u32 {
    if is_long() { 2000 } else { 800 }
}

/// Fewer: each looks for what the run before has left, among all processes of the machine.
const RESTARTS: u32 = 100;

/// Calls `test` in a separate process, in which another thread sets and removes variables all the time.
fn with_changes(name: &str, test: impl FnOnce()) {
    alone(name, || {
        let is_over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in (0..64).cycle() {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    // SAFETY: all code of this process reads the environment through `std`.
                    unsafe { std::env::set_var(format!("SOME_{number}"), "value") };
                    // SAFETY: as above.
                    unsafe { std::env::remove_var(format!("SOME_{}", number * 7 % 64)) };
                    // The lock of std is not fair: without this, a busy machine starts few children.
                    std::thread::yield_now();
                }
            });
            let _end = crate::support::on_drop(|| is_over.store(true, Ordering::Relaxed));
            test();
        });
    });
}

/// A child that starts fast: without a search in `PATH`.
fn true_command() -> Command {
    let mut command = Command::new("/bin/true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn start_succeeds_while_another_thread_changes_variables() {
    with_changes("spawn::environment::start_succeeds_while_another_thread_changes_variables", || {
        for _ in 0..starts() / 2 {
            assert!(true_command().status().expect("start child").success());
        }
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        for _ in 0..starts() / 2 {
            set.spawn(&true_command(), SpawnOptions::new()).expect("start child");
            assert!(set.wait_all(Some(Duration::from_secs(60)), |_| ()).expect("wait"));
        }
    });
}

#[test]
fn restart_succeeds_while_another_thread_changes_variables() {
    with_changes("spawn::environment::restart_succeeds_while_another_thread_changes_variables", || {
        let set = BackgroundSet::new(ChildSetOptions::new()).expect("start background set");
        let policy = RestartPolicy::new(Restart::Always).backoff(Duration::ZERO).max_restarts(Some(RESTARTS));
        set.spawn(&true_command(), SpawnOptions::new().restart(policy)).expect("start child");
        let mut until = patience();
        let mut restarted = 0;
        let mut events = Vec::new();
        while !set.is_empty() {
            assert!(std::time::Instant::now() < until, "{restarted} restarts");
            crate::support::readable(set.poll_handle(), Duration::from_millis(100));
            set.drain_events(&mut events, usize::MAX);
            for event in events.drain(..) {
                match event {
                    Event::RestartFailed { error, .. } => panic!("restart {restarted} failed: {error}"),
                    Event::Restarted { .. } => {
                        restarted += 1;
                        until = patience();
                    }
                    _ => (),
                }
            }
        }
        assert!(restarted > RESTARTS / 2, "only {restarted} restarts");
        set.stop(Duration::ZERO).expect("stop");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn guarded_start_succeeds_while_another_thread_changes_variables() {
    use minder::ErrorKind;
    use minder::guard::{Guardian, GuardianOptions};
    with_changes("spawn::environment::guarded_start_succeeds_while_another_thread_changes_variables", || {
        let config = GuardianOptions::new().program(env!("CARGO_BIN_EXE_guardian-dup"));
        let guardian = Guardian::start(&config).expect("start guardian");
        let until = patience();
        let mut started = 0;
        while started < starts() / 4 {
            match guardian.spawn(&true_command()) {
                Ok(mut child) => {
                    assert!(child.wait().expect("wait for child").status.success());
                    started += 1;
                }
                // On a busy machine the guardian is slower than the starts, and its queue is full.
                Err(error) if error.kind() == ErrorKind::Exhausted => {
                    assert!(std::time::Instant::now() < until, "{error}");
                    crate::support::nap(Duration::from_millis(1));
                }
                Err(error) => panic!("start {started}: {error}"),
            }
        }
    });
}

/// A start uses the variables of its moment, and a child without changes has all of them.
#[test]
fn start_inherits_variables_that_were_set_after_the_set_was_created() {
    alone("spawn::environment::start_inherits_variables_that_were_set_after_the_set_was_created", || {
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        for value in ["first", "second"] {
            // SAFETY: this process has no other thread that reads the environment.
            unsafe { std::env::set_var("LATE", value) };
            let mut command = quiet_child("echo-env");
            command.stdout(Stdio::piped());
            set.spawn(&command, SpawnOptions::new()).expect("start child");
            let mut output = Vec::new();
            let on_event = |event| {
                if let Event::Output { chunk, .. } = event {
                    output.extend_from_slice(&chunk);
                }
            };
            set.wait_all(Some(Duration::from_secs(60)), on_event).expect("wait");
            let text = String::from_utf8_lossy(&output).into_owned();
            assert!(text.contains(&format!("\"LATE\"=\"{value}\"")) && text.contains("\"PATH\"="), "{text}");
        }
    });
}

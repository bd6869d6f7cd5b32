//! Children that are suspended, and deadlines that change.

use std::time::{Duration, Instant};

use minder::{ChildSet, ErrorKind, ExitStatus, SpawnOptions, Termination};

use crate::support::{EventLog, each_backend, limits, patience, quiet_child};

const LONG: &str = "sleep-ms 600000";

fn killed_by(signal: i32) -> impl Fn(ExitStatus) -> bool {
    move |status| matches!(status, ExitStatus::Signaled { signal: by, .. } if by == signal)
}

/// Waits until nothing or everything of these processes is suspended.
#[cfg(target_os = "linux")]
pub(super) fn await_state(numbers: &[u32], stopped: bool) {
    let until = patience();
    let is = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(") T ") == stopped
    };
    while !numbers.iter().all(is) {
        assert!(Instant::now() < until, "{numbers:?} do not become stopped: {stopped}");
        std::thread::yield_now();
    }
}

#[cfg(target_os = "linux")]
fn children_of(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn suspend_stops_and_resume_continues_the_whole_tree() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let options = SpawnOptions::default();
        let (id, numbers) = super::kill::start(&mut set, &mut event_log, "stubborn-tree", options);
        for _ in 0..3 {
            set.suspend(id).expect("suspend child");
            set.suspend(id).expect("suspend child again");
            await_state(&numbers, true);
            set.resume(id).expect("resume child");
            set.resume(id).expect("resume child again");
            await_state(&numbers, false);
        }
        set.kill_all(Termination::IMMEDIATE).expect("kill all children");
        event_log.wait_all(&mut set);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn leader_outside_its_group_is_suspended_and_killed() {
    each_backend(|backend| {
        for how in [Termination::IMMEDIATE, Termination::graceful(Duration::from_secs(600))] {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let mut event_log = EventLog::default();
            let options = SpawnOptions::default();
            let (id, numbers) = super::kill::start(&mut set, &mut event_log, "join-parent 600000", options);
            assert_eq!(numbers, [set.pid(id).expect("get pid")]);
            set.suspend(id).expect("suspend child");
            await_state(&numbers, true);
            set.resume(id).expect("resume child");
            await_state(&numbers, false);
            set.kill(id, how).expect("kill child");
            event_log.wait_all(&mut set);
            assert!(event_log.outcome(id).killed && !event_log.outcome(id).timed_out);
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn outcome_reports_kill_timeout_and_suspended_time() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let soon = |ms| {
            SpawnOptions::default()
                .deadline(Instant::now() + Duration::from_millis(ms), Termination::IMMEDIATE)
        };
        let struck = set.spawn(&quiet_child(LONG), soon(50)).expect("spawn test child");
        let stood = set.spawn(&quiet_child("lines 40 10"), soon(2000)).expect("spawn test child");
        set.suspend(stood).expect("suspend child");
        assert!(!event_log.read_until(&mut set, Instant::now() + Duration::from_millis(2500), |_| false));
        assert!(set.suspended_time(stood).expect("get suspended time") >= Duration::from_millis(2500));
        set.resume(stood).expect("resume child");
        event_log.wait_all(&mut set);
        let outcome = event_log.outcome(struck);
        assert!(outcome.killed && outcome.timed_out && outcome.suspended.is_zero(), "{outcome:?}");
        let outcome = event_log.outcome(stood);
        assert!(!outcome.killed && !outcome.timed_out && outcome.exit.status.success(), "{outcome:?}");
        assert!(outcome.suspended >= Duration::from_millis(2500), "{outcome:?}");
    });
}

#[test]
fn suspend_all_stops_and_resume_all_continues_every_child() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let ids: Vec<_> = (0..10)
            .map(|_| {
                set.spawn(&quiet_child("sleep-ms 20"), SpawnOptions::default()).expect("spawn test child")
            })
            .collect();
        set.suspend_all().expect("suspend children");
        let pause = Instant::now() + Duration::from_millis(100);
        let running = ids.iter().filter(|id| event_log.child(**id).done.is_none()).count();
        assert!(
            !event_log.read_until(&mut set, pause, |event_log| event_log.records.len() == running),
            "suspended children exited"
        );
        set.resume_all().expect("resume children");
        event_log.wait_all(&mut set);
        assert!(ids.iter().all(|id| event_log.outcome(*id).exit.status.success()));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn only_own_stops_are_reported() {
    each_backend(|backend| {
        let limits = limits(backend).stop_poll_interval(Some(Duration::from_millis(5)));
        let mut set = ChildSet::new(limits).expect("create set");
        let mut event_log = EventLog::default();
        let ours = set.spawn(&quiet_child(LONG), SpawnOptions::default()).expect("spawn test child");
        set.suspend(ours).expect("suspend child");
        let its = set.spawn(&quiet_child("stop-self"), SpawnOptions::default()).expect("spawn test child");
        assert!(
            event_log.read_until(&mut set, patience(), |event_log| !event_log.child(its).stops.is_empty())
        );
        set.resume(ours).expect("resume child");
        let later = Instant::now() + Duration::from_millis(50);
        assert!(!event_log.read_until(&mut set, later, |event_log| !event_log.child(ours).stops.is_empty()));
        set.kill_all(Termination::IMMEDIATE).expect("kill all children");
        event_log.wait_all(&mut set);
    });
}

#[test]
fn deadline_pauses_while_suspended() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let begun = Instant::now();
        let time = Duration::from_millis(200);
        let options = SpawnOptions::default().deadline(begun + time, Termination::IMMEDIATE);
        let id = set.spawn(&quiet_child(LONG), options).expect("spawn test child");
        set.suspend(id).expect("suspend child");
        let used = begun.elapsed();
        assert!(
            !event_log.read_until(&mut set, begun + 2 * time, |event_log| event_log.child(id).exit.is_some())
        );
        set.resume(id).expect("resume child");
        let resumed = Instant::now();
        event_log.wait_all(&mut set);
        assert!(resumed.elapsed() + used >= time, "{:?} of {time:?} were left", resumed.elapsed());
        assert!(killed_by(9)(event_log.outcome(id).exit.status));
    });
}

#[test]
fn suspended_child_can_be_killed() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let spawn = |set: &mut ChildSet| {
            set.spawn(&quiet_child(LONG), SpawnOptions::default()).expect("spawn test child")
        };
        let asked = spawn(&mut set);
        let killed = spawn(&mut set);
        set.suspend_all().expect("suspend children");
        set.kill(asked, Termination::graceful(Duration::from_secs(600))).expect("kill child");
        set.kill(killed, Termination::IMMEDIATE).expect("kill child");
        set.suspend(asked).expect("suspend child that is being killed");
        event_log.wait_all(&mut set);
        assert!(killed_by(15)(event_log.outcome(asked).exit.status));
        assert!(killed_by(9)(event_log.outcome(killed).exit.status));
        assert_eq!(set.suspend(asked).expect_err("suspend finished child").kind(), ErrorKind::Unknown);
        assert_eq!(set.resume(asked).expect_err("resume finished child").kind(), ErrorKind::Unknown);
    });
}

/// The child has ended, and its suspended survivor holds the outputs: that does not count as
/// silence.
#[test]
fn suspended_output_is_not_leaked() {
    each_backend(|backend| {
        let mut limits = limits(backend);
        // On a busy machine a writer comes late.
        limits = limits.leak_timeout(Some(Duration::from_millis(500)));
        let mut set = ChildSet::new(limits).expect("create set");
        let mut event_log = EventLog::default();
        let command = crate::support::test_child("leave-lines 120 5");
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        let lines = |event_log: &EventLog| event_log.text(id).lines().count();
        let begun = |event_log: &EventLog| lines(event_log) > 1 && event_log.child(id).exit.is_some();
        assert!(event_log.read_until(&mut set, patience(), begun));
        set.suspend(id).expect("suspend child");
        let pause = Instant::now() + Duration::from_millis(1000);
        assert!(!event_log.read_until(&mut set, pause, |event_log| event_log.child(id).done.is_some()));
        set.resume(id).expect("resume child");
        event_log.wait_all(&mut set);
        assert!(lines(&event_log) == 120 && !event_log.outcome(id).leaked, "{:?}", event_log.outcome(id));
    });
}

/// Another process kills the suspended child: nothing would wake its stray.
/// (The rest of its group gets `SIGHUP` and `SIGCONT` from the kernel, as a group without a parent
/// in its session.)
#[cfg(target_os = "linux")]
#[test]
fn stray_of_a_killed_suspended_child_continues() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let id = set
            .spawn(&quiet_child("session-stray 600000"), SpawnOptions::default())
            .expect("spawn test child");
        let leader = set.pid(id).expect("get pid");
        let pid = |pid: u32| rustix::process::Pid::from_raw(pid.cast_signed());
        // rustix takes no session 0, which begins outside of our PID namespace.
        let left = |stray: &u32| {
            let one = nix::unistd::Pid::from_raw(stray.cast_signed());
            nix::unistd::getsid(Some(one)) == Ok(one)
        };
        let stray = loop {
            if let Some(stray) = children_of(leader).first().copied().filter(left) {
                break stray;
            }
            std::thread::yield_now();
        };
        set.suspend(id).expect("suspend child");
        await_state(&[stray], true);
        let kill = |one| {
            let one = pid(one).expect("find pid");
            rustix::process::kill_process(one, rustix::process::Signal::KILL).expect("signal process");
        };
        kill(leader);
        event_log.wait_all(&mut set);
        await_state(&[stray], false);
        assert!(crate::support::lives(stray));
        kill(stray);
    });
}

/// The kernel reaps the children of a host that ignores SIGCHLD. What such a child left in its group,
/// and outside of it, can be suspended, resumed and killed nevertheless.
#[cfg(target_os = "linux")]
#[test]
fn tree_of_a_child_that_the_kernel_reaped_is_suspended_and_killed() {
    crate::support::alone(
        "set::suspend::tree_of_a_child_that_the_kernel_reaped_is_suspended_and_killed",
        || {
            if !names_groups_of_reaped_leaders() {
                return crate::support::skip(format_args!("a pidfd signals a group since Linux 6.9"));
            }
            crate::spawn::ignore(libc::SIGCHLD);
            each_backend(|backend| {
                for how in [Termination::IMMEDIATE, Termination::graceful(Duration::from_millis(20))] {
                    let mut set = ChildSet::new(limits(backend).leak_timeout(None)).expect("create set");
                    let mut event_log = EventLog::default();
                    let command = crate::support::test_child("leave-lines 1000000 5");
                    let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
                    let left = |event_log: &EventLog| {
                        event_log.child(id).exit.is_some() && event_log.text(id).lines().count() > 1
                    };
                    assert!(event_log.read_until(&mut set, patience(), left));
                    set.suspend(id).expect("suspend what is left");
                    // What was written before.
                    event_log.read_until(&mut set, Instant::now() + Duration::from_millis(50), |_| false);
                    let before = event_log.text(id).len();
                    let pause = Instant::now() + Duration::from_millis(50);
                    assert!(
                        !event_log.read_until(&mut set, pause, |event_log| event_log.text(id).len() > before)
                    );
                    set.resume(id).expect("resume what is left");
                    assert!(
                        event_log.read_until(&mut set, patience(), |event_log| {
                            event_log.text(id).len() > before
                        })
                    );
                    set.kill(id, how).expect("kill what is left");
                    assert!(
                        event_log
                            .read_until(&mut set, patience(), |event_log| event_log.child(id).done.is_some()),
                        "what is left holds the output"
                    );
                }
            });
        },
    );
}

/// Another process kills the suspended child, and the kernel reaps it: its number may belong to another
/// process. `resume` continues its stray.
#[cfg(target_os = "linux")]
#[test]
fn stray_of_a_suspended_child_that_the_kernel_reaped_is_resumed() {
    crate::support::alone(
        "set::suspend::stray_of_a_suspended_child_that_the_kernel_reaped_is_resumed",
        || {
            crate::spawn::ignore(libc::SIGCHLD);
            each_backend(|backend| {
                for group in [minder::Group::New, minder::Group::Session, minder::Group::Inherit] {
                    let mut set = ChildSet::new(limits(backend).leak_timeout(None)).expect("create set");
                    let mut event_log = EventLog::default();
                    let mut command = crate::support::test_child("session-stray 600000");
                    let id =
                        set.spawn(command.group(group), SpawnOptions::default()).expect("spawn test child");
                    let has_line = |event_log: &EventLog| event_log.text(id).ends_with('\n');
                    assert!(event_log.read_until(&mut set, patience(), has_line));
                    let numbers: Vec<u32> = event_log
                        .text(id)
                        .split_whitespace()
                        .map(|pid| pid.parse().expect("a pid"))
                        .collect();
                    set.suspend(id).expect("suspend child");
                    await_state(&numbers, true);
                    let pid =
                        |number: u32| rustix::process::Pid::from_raw(number.cast_signed()).expect("a pid");
                    let kill = rustix::process::Signal::KILL;
                    rustix::process::kill_process(pid(numbers[0]), kill).expect("kill child");
                    let has_exited = |event_log: &EventLog| event_log.child(id).exit.is_some();
                    assert!(event_log.read_until(&mut set, patience(), has_exited));
                    await_state(&numbers[1..], true);
                    set.resume(id).expect("resume child");
                    await_state(&numbers[1..], false);
                    rustix::process::kill_process(pid(numbers[1]), kill).expect("kill stray");
                    event_log.wait_all(&mut set);
                }
            });
        },
    );
}

/// Returns whether the kernel signals the group of a leader that was reaped (Linux 6.9).
#[cfg(target_os = "linux")]
fn names_groups_of_reaped_leaders() -> bool {
    if rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).is_err() {
        return false;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(9))
}

#[test]
fn deadline_is_added_moved_and_removed() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let now = Instant::now();
        let ms = Duration::from_millis;
        let first = Some((now + ms(50), Termination::IMMEDIATE));
        let mut spawn = |at: Option<(Instant, Termination)>| {
            let options =
                at.map_or_else(SpawnOptions::default, |(at, how)| SpawnOptions::default().deadline(at, how));
            set.spawn(&quiet_child(LONG), options).expect("spawn test child")
        };
        let later = spawn(first);
        let sooner = spawn(Some((patience(), Termination::IMMEDIATE)));
        let never = spawn(first);
        let new = spawn(None);
        set.set_deadline(later, Some((now + ms(300), Termination::IMMEDIATE))).expect("set deadline");
        set.set_deadline(sooner, Some((now + ms(100), Termination::IMMEDIATE))).expect("set deadline");
        set.set_deadline(never, None).expect("set deadline");
        set.set_deadline(new, Some((now + ms(100), Termination::graceful(ms(0))))).expect("set deadline");
        let ended = |event_log: &EventLog, id| event_log.child(id).exit.is_some();
        // The last look may come late.
        let any = event_log.read_until(&mut set, now + ms(100), |event_log| !event_log.records.is_empty());
        assert!(!any || now.elapsed() >= ms(100), "early");
        let both = |event_log: &EventLog| ended(event_log, sooner) && ended(event_log, new);
        assert!(event_log.read_until(&mut set, patience(), both));
        assert!(!ended(&event_log, later) || now.elapsed() >= ms(300), "early");
        assert!(event_log.read_until(&mut set, patience(), |event_log| ended(event_log, later)));
        assert!(now.elapsed() >= ms(300) && !ended(&event_log, never));
        set.set_deadline(never, Some((now, Termination::IMMEDIATE))).expect("set deadline");
        event_log.wait_all(&mut set);
        assert_eq!(
            set.set_deadline(never, None).expect_err("set deadline of finished child").kind(),
            ErrorKind::Unknown
        );
    });
}

/// The time that is left at the call is left when the child continues.
#[test]
fn deadline_set_while_suspended_starts_at_the_call() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut event_log = EventLog::default();
        let id = set.spawn(&quiet_child(LONG), SpawnOptions::default()).expect("spawn test child");
        set.suspend(id).expect("suspend child");
        let time = Duration::from_millis(100);
        let pause = |set: &mut ChildSet, event_log: &mut EventLog| {
            let until = Instant::now() + 2 * time;
            assert!(
                !event_log.read_until(set, until, |event_log| event_log.child(id).exit.is_some()),
                "it ended"
            );
        };
        pause(&mut set, &mut event_log);
        let set_at = Instant::now();
        let at = Instant::now() + time;
        set.set_deadline(id, Some((at, Termination::IMMEDIATE))).expect("set deadline");
        let used = set_at.elapsed();
        pause(&mut set, &mut event_log);
        set.resume(id).expect("resume child");
        let resumed = Instant::now();
        event_log.wait_all(&mut set);
        assert!(resumed.elapsed() + used >= time);
        assert!(resumed.elapsed() < Duration::from_secs(10));
    });
}

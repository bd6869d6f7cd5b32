//! `ChildSet`: many children, the order of events, streams. The modules test bounds, kills, the
//! poll handle, restarts, and random sequences of calls.

mod output;
mod streaming;
// Its child is a shell.
#[cfg(unix)]
mod stream_end;
mod read_turns;
mod kill;
// Windows has no way to suspend a process.
#[cfg(unix)]
mod suspend;
// Windows has no signals.
#[cfg(unix)]
mod signal;
mod foreign_loop;
mod model;
mod restart;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use minder::{
    Backend, ChildId, ChildSet, ChildSetOptions, Command, ErrorKind, ExitStatus, SpawnOptions, Stdio, Stream,
    Termination,
};
#[cfg(target_os = "linux")]
use minder::{Event, ResourceUsage, ThreadTimes};

use crate::support::{
    EventLog, TEST_CHILD, alone, backends, each_backend, is_long, killed, limits, patience, patterned,
    quiet_child, test_child,
};
#[cfg(any(target_os = "linux", windows))]
use crate::support::{open_descriptors, own_children};

/// Children that all live at once: they wait for the end of an input that they share.
fn crowd(backend: Backend, count: usize) {
    let mut set = ChildSet::new(limits(backend)).expect("create set");
    assert_eq!(set.backend(), backend);
    let (gate, opener) = std::io::pipe().expect("create pipe");
    let gate = Stdio::shared(Arc::new(crate::support::file(gate)));
    let mut ids = Vec::new();
    for number in 0..count {
        let mut command = Command::new(TEST_CHILD);
        command.args(["gate".to_owned(), (number % 97).to_string()]);
        command.stdin(gate.clone()).stdout(Stdio::piped()).stderr(Stdio::null());
        match set.spawn(&command, SpawnOptions::default()) {
            Ok(id) => ids.push(id),
            Err(error) if error.kind() == ErrorKind::Exhausted => {
                crate::support::skip(format_args!("{count} children on {backend}: after {number} {error}"));
                break;
            }
            Err(error) => panic!("child {number} of {count}: {error}"),
        }
    }
    assert_eq!(set.len(), ids.len());
    drop(opener);
    let mut event_log = EventLog::default();
    event_log.wait_all(&mut set);
    for (number, id) in ids.iter().enumerate() {
        let record = event_log.child(*id);
        let bytes = number % 97;
        assert_eq!(record.outs[0], patterned(bytes), "child {number} of {count}");
        assert_eq!((record.eofs, record.exit), ([1, 0], Some(ExitStatus::Exited((bytes % 7) as i32))));
        let outcome = event_log.outcome(*id);
        assert!(
            !outcome.leaked && !outcome.left_running && outcome.dropped == 0,
            "child {number}: {outcome:?}"
        );
    }
    assert_eq!((set.len(), set.buffered_bytes()), (0, 0));
}

#[cfg(unix)]
#[test]
fn set_reports_children_without_an_exit_watch() {
    const BYTES: usize = 200_000;
    each_backend(|backend| {
        for room in [0, 1, 4, 9] {
            let mut set = ChildSet::new(limits(backend).fault_capacity(room)).expect("create set");
            let mut ids = Vec::new();
            for _ in 0..4 {
                let id = set.spawn(&test_child(&format!("both {BYTES}")), SpawnOptions::default());
                ids.push(id.unwrap_or_else(|error| panic!("{backend}, room for {room}: {error}")));
            }
            let mut event_log = EventLog::default();
            event_log.wait_all(&mut set);
            for id in ids {
                let record = event_log.child(id);
                let place = format!("{backend}, room for {room}, {id:?}");
                assert_eq!(record.exit, Some(ExitStatus::Exited(0)), "{place}");
                assert!(record.outs.iter().all(|out| *out == patterned(BYTES)), "{place}");
                assert_eq!(record.eofs, [1, 1], "{place}");
            }
        }
    });
}

#[test]
#[cfg_attr(windows, ignore = "`windows` does it with three pipes each")]
fn set_reports_29_to_64_children() {
    each_backend(|backend| {
        for count in [29, 32, 64] {
            crowd(backend, count);
        }
    });
}

#[test]
#[cfg_attr(windows, ignore = "`windows` does it with three pipes each")]
fn set_reports_1021_children() {
    backends_in_time().for_each(|backend| crowd(backend, 1021));
}

#[test]
#[cfg_attr(windows, ignore = "`windows` has the numbers that matter there")]
fn set_reports_1025_children() {
    each_backend(|backend| crowd(backend, 1025));
}

/// smol-rs/async-process#55: exits are missed if many children exit at once.
#[test]
#[cfg_attr(windows, ignore = "`windows` has the numbers that matter there")]
fn set_reports_4096_children() {
    backends_in_time().for_each(|backend| crowd(backend, 4096));
}

/// Returns the backend that is chosen here, and all with `MINDER_LONG=1`: each start takes a millisecond.
fn backends_in_time() -> impl Iterator<Item = Backend> {
    backends().into_iter().take(if is_long() { usize::MAX } else { 1 })
}

#[test]
fn both_streams_are_delivered_byte_for_byte() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let sizes = [0, 1, 4095, 4096, 65_535, 65_536, 65_537, 300_000];
        let ids = sizes.map(|size| {
            let command = test_child(&format!("both {size} {}", if size < 5000 { 7 } else { 4097 }));
            set.spawn(&command, SpawnOptions::default()).expect("spawn test child")
        });
        let mut event_log = EventLog::default();
        event_log.wait_all(&mut set);
        for (id, size) in ids.into_iter().zip(sizes) {
            let record = event_log.child(id);
            assert!(record.outs[0] == patterned(size), "{size}: {} bytes of stdout", record.outs[0].len());
            assert!(record.outs[1] == patterned(size), "{size}: {} bytes of stderr", record.outs[1].len());
            assert_eq!((record.eofs, record.exit), ([1, 1], Some(ExitStatus::Exited(0))));
        }
    });
}

#[test]
fn exits_are_reported_with_their_status() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let code = set.spawn(&quiet_child("exit 200"), SpawnOptions::default()).expect("spawn test child");
        let number = if cfg!(windows) { 1 } else { 10 };
        let signal = quiet_child(&format!("kill-self {number}"));
        let signal = set.spawn(&signal, SpawnOptions::default()).expect("spawn test child");
        let mut event_log = EventLog::default();
        event_log.wait_all(&mut set);
        assert_eq!(event_log.outcome(code).exit.status, ExitStatus::Exited(200));
        assert!(killed(event_log.outcome(signal).exit.status, 10));
        assert!(event_log.outcome(code).exit.usage.is_some());
    });
}

/// Children that compute, more than there are processors.
#[cfg(target_os = "linux")]
#[test]
fn thread_times_are_read_from_the_zombie_on_request() {
    each_backend(|backend| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for is_requested in [false, true] {
            let mut set = ChildSet::new(limits(backend).thread_times(is_requested)).expect("create set");
            let ids: Vec<ChildId> = (0..4 * processors)
                .map(|_| {
                    let mut shell = Command::new("/bin/sh");
                    shell.args(["-c", "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done"]);
                    set.spawn(&shell, SpawnOptions::default()).expect("spawn shell")
                })
                .collect();
            let mut event_log = EventLog::default();
            event_log.wait_all(&mut set);
            let usages = ids.iter().map(|id| event_log.outcome(*id).exit.usage.expect("read usage"));
            let usages: Vec<ResourceUsage> = usages.collect();
            if !is_requested {
                assert!(usages.iter().all(|usage| usage.main_thread.is_none()));
                continue;
            }
            let times = usages.iter().map(|usage| usage.main_thread.expect("read the times"));
            let times: Vec<ThreadTimes> = times.collect();
            assert!(times.iter().all(|times| !times.running.is_zero()), "{times:?}");
            assert!(times.iter().any(|times| !times.ready.is_zero()), "{times:?}");
        }
    });
}

#[test]
fn ten_megabytes_pass_through_cat() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut command = test_child("cat");
        command.stdin(Stdio::piped());
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        let bytes = patterned(10 << 20);
        let mut written = 0;
        let mut event_log = EventLog::default();
        let mut blocked = 0;
        let until = patience();
        while written < bytes.len() {
            match set.write(id, &bytes[written..]).expect("write to stdin") {
                0 => {
                    // What was reported as full is reported when there is room again, even without a write
                    // meanwhile.
                    let before = event_log.child(id).writables;
                    assert!(
                        event_log
                            .read_until(&mut set, until, |event_log| event_log.child(id).writables > before)
                    );
                    blocked += 1;
                }
                count => written += count,
            }
        }
        set.close_stdin(id).expect("close stdin");
        event_log.wait_all(&mut set);
        assert!(
            event_log.child(id).outs[0] == bytes,
            "{} bytes came back",
            event_log.child(id).outs[0].len()
        );
        assert!(event_log.child(id).writables >= blocked);
    });
}

#[test]
fn write_after_the_reader_closed_is_an_error_without_sigpipe() {
    // SIGPIPE keeps its default action here: a test binary ignores it, which would hide the signal.
    alone("set::write_after_the_reader_closed_is_an_error_without_sigpipe", || {
        #[cfg(unix)]
        crate::spawn::restore_sigpipe();
        each_backend(|backend| {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let mut command = test_child("close-stdin 600000");
            command.stdin(Stdio::piped());
            let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
            let mut event_log = EventLog::default();
            assert!(event_log.read_until(&mut set, patience(), |event_log| event_log.text(id) == "closed\n"));
            let error = set.write(id, b"x").expect_err("write to closed stdin");
            assert_eq!(error.io_error().kind(), std::io::ErrorKind::BrokenPipe, "{error}");
            let error = set.write(id, b"x").expect_err("write again after the error");
            assert_eq!(error.kind(), ErrorKind::Unknown);
            set.close_stdin(id).expect("close stdin again");
            set.kill(id, Termination::IMMEDIATE).expect("kill child");
            event_log.wait_all(&mut set);
        });
    });
}

#[test]
fn full_pipe_becomes_writable_when_its_reader_closes() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut command = quiet_child("close-stdin 600000 200");
        command.stdin(Stdio::piped());
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        while set.write(id, &[b'x'; 65_536]).expect("write to stdin") > 0 {}
        let mut event_log = EventLog::default();
        assert!(event_log.read_until(&mut set, patience(), |event_log| event_log.child(id).writables == 1));
        assert!(set.write(id, b"x").is_err());
        set.kill(id, Termination::IMMEDIATE).expect("kill child");
        event_log.wait_all(&mut set);
    });
}

#[test]
fn token_names_one_child_forever() {
    let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        let id = set.spawn(&quiet_child("exit 0"), SpawnOptions::default()).expect("spawn test child");
        assert!(seen.insert(id), "{id:?} again");
        assert_eq!(id.index(), 0, "a small number is used again");
        EventLog::default().wait_all(&mut set);
        assert_eq!(set.pid(id).expect_err("get pid of finished child").kind(), ErrorKind::Unknown);
        assert_eq!(
            set.kill(id, Termination::IMMEDIATE).expect_err("kill finished child").kind(),
            ErrorKind::Unknown
        );
        assert_eq!(set.write(id, b"").expect_err("write to finished child").kind(), ErrorKind::Unknown);
        assert_eq!(
            set.close_stdin(id).expect_err("close stdin of finished child").kind(),
            ErrorKind::Unknown
        );
    }
    assert_eq!(
        set.pid(ChildId::from_u64(u64::MAX)).expect_err("get pid of unknown child").kind(),
        ErrorKind::Unknown
    );
}

#[test]
fn id_of_another_set_is_refused() {
    let new = || ChildSet::new(ChildSetOptions::default()).expect("create set");
    let mut one = new();
    let mut other = new();
    let spawn = |set: &mut ChildSet| {
        set.spawn(&quiet_child("sleep 600000"), SpawnOptions::default()).expect("spawn test child")
    };
    let first = spawn(&mut one);
    let second = spawn(&mut other);
    assert_eq!((first.index(), second.index()), (0, 0));
    let refused = one.kill(second, Termination::IMMEDIATE).expect_err("kill child of another set");
    assert_eq!(refused.kind(), ErrorKind::Unknown);
    for (set, id) in [(&mut one, first), (&mut other, second)] {
        set.kill(id, Termination::IMMEDIATE).expect("kill child");
        EventLog::default().wait_all(set);
    }
}

#[test]
fn spawn_rejects_more_than_max_children() {
    each_backend(|backend| {
        let limits = limits(backend).max_children(2);
        let mut set = ChildSet::new(limits).expect("create set");
        let first =
            set.spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::default()).expect("spawn test child");
        set.spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::default()).expect("spawn test child");
        let error = set
            .spawn(&quiet_child("exit 0"), SpawnOptions::default())
            .expect_err("spawn more children than allowed");
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        set.kill(first, Termination::IMMEDIATE).expect("kill child");
        let mut event_log = EventLog::default();
        assert!(
            event_log.read_until(&mut set, patience(), |event_log| event_log.child(first).done.is_some())
        );
        set.spawn(&quiet_child("exit 0"), SpawnOptions::default()).expect("spawn test child");
        set.kill_all(Termination::IMMEDIATE).expect("kill all children");
        event_log.wait_all(&mut set);
    });
}

#[test]
fn set_moves_to_another_thread_with_its_children() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let ids: Vec<_> = (0..8)
            .map(|_| {
                set.spawn(&test_child("script 3000 3000 5 3"), SpawnOptions::default())
                    .expect("spawn test child")
            })
            .collect();
        let thread = std::thread::spawn(move || {
            let id = set.spawn(&test_child("spew 10"), SpawnOptions::default()).expect("spawn test child");
            let mut event_log = EventLog::default();
            event_log.wait_all(&mut set);
            (event_log, id, set)
        });
        let (event_log, id, mut set) = thread.join().expect("join thread");
        assert_eq!(event_log.child(id).outs[0], patterned(10));
        assert!(ids.iter().all(|id| event_log.outcome(*id).exit.status == ExitStatus::Exited(3)));
        set.spawn(&test_child("exit 0"), SpawnOptions::default()).expect("spawn test child");
        EventLog::default().wait_all(&mut set);
    });
}

#[test]
fn next_never_returns_early_and_returns_at_once_without_children() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        assert!(set.next_event(None).expect("wait for event").into_event().is_none(), "the set has no child");
        set.spawn(&quiet_child("sleep-ms 600000"), SpawnOptions::default()).expect("spawn test child");
        for micros in (0..200).map(|number| 100 + number * 13) {
            let deadline = Instant::now() + Duration::from_micros(micros);
            assert!(set.next_event_deadline(Some(deadline)).expect("wait for event").into_event().is_none());
            assert!(Instant::now() >= deadline, "early, of {micros} us");
        }
        set.kill_all(Termination::IMMEDIATE).expect("kill all children");
        EventLog::default().wait_all(&mut set);
    });
}

// Windows does not stop processes.
#[cfg(unix)]
#[test]
fn stopped_children_are_reported() {
    each_backend(|backend| {
        let limits = limits(backend).stop_poll_interval(Some(Duration::from_millis(5)));
        let mut set = ChildSet::new(limits).expect("create set");
        let id = set.spawn(&test_child("stop-self"), SpawnOptions::default()).expect("spawn test child");
        let mut event_log = EventLog::default();
        assert!(
            event_log.read_until(&mut set, patience(), |event_log| !event_log.child(id).stops.is_empty())
        );
        assert_eq!(event_log.child(id).stops, [19]);
        let pid =
            rustix::process::Pid::from_raw(set.pid(id).expect("get pid").cast_signed()).expect("valid pid");
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("signal process");
        event_log.wait_all(&mut set);
        assert!(event_log.outcome(id).exit.status.success());
        assert_eq!(event_log.child(id).stops.len(), 1);
    });
}

// A pseudo-console is not supported.
/// microsoft/node-pty#178: EIO takes the place of the end.
#[cfg(unix)]
#[test]
fn terminal_is_one_merged_stream_that_ends() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut command = Command::new(TEST_CHILD);
        command.arg("terminal").group(minder::Group::Terminal(minder::Size::new(17, 91)));
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        let mut event_log = EventLog::default();
        event_log.wait_all(&mut set);
        let expected = "[true, true, true] 17x91 own=true controlling=true\r\nand this is stderr\r\n";
        assert_eq!(event_log.text(id), expected);
        assert_eq!(event_log.child(id).eofs, [1, 0]);
        assert!(!event_log.outcome(id).leaked);
    });
}

// The same.
#[cfg(unix)]
#[test]
fn terminal_accepts_input() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut command = Command::new(TEST_CHILD);
        command.arg("cat").group(minder::Group::Terminal(minder::Size::default()));
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        assert_eq!(set.write(id, b"hello\n\x04").expect("write to terminal"), 7);
        let mut event_log = EventLog::default();
        event_log.wait_all(&mut set);
        // Once as the echo, once from the child.
        assert_eq!(event_log.text(id), "hello\r\nhello\r\n");
    });
}

// The same.
#[cfg(unix)]
#[test]
fn closed_input_of_a_terminal_ends() {
    use minder::{CaptureOptions, Group, Size};
    let mut command = Command::new(TEST_CHILD);
    command.arg("cat").group(Group::Terminal(Size::default()));
    // The last line has no end; the last input has more lines than a terminal takes at once.
    let inputs = [String::new(), "one\n".into(), "one\ntwo".into(), "a line of input\n".repeat(20_000)];
    for input in &inputs {
        each_backend(|backend| {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
            let mut event_log = EventLog::default();
            let mut written = 0;
            let until = patience();
            while written < input.len() {
                written += set.write(id, &input.as_bytes()[written..]).expect("write to terminal");
                if written < input.len() {
                    event_log.record(crate::support::next_event(&mut set, until));
                }
            }
            set.close_stdin(id).expect("close input");
            assert_eq!(set.write(id, b"x").expect_err("write after the end").kind(), ErrorKind::Unknown);
            set.close_stdin(id).expect("close input again");
            event_log.wait_all(&mut set);
            assert_eq!(event_log.outcome(id).exit.status, ExitStatus::Exited(0));
            let text = event_log.text(id);
            // Once as the echo, once from the child.
            assert!(!input.starts_with("one") || text.matches("one").count() == 2, "{text}");
            assert!(!input.ends_with("two") || text.matches("two").count() == 2, "{text}");
        });
        let options = CaptureOptions::new().input(input.as_str()).timeout(Duration::from_secs(60));
        let output = command.output_with(options).expect("run test child");
        assert!(output.status.success() && !output.timed_out, "{:?}", output.status);
    }
    // There is no room for the end at first.
    let mut slow = Command::new("sh");
    slow.args(["-c", "sleep 0.2; cat > /dev/null; exit 3"]).group(Group::Terminal(Size::default()));
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let id = set.spawn(&slow, SpawnOptions::default()).expect("spawn shell");
        let bytes = inputs[3].as_bytes();
        // The kernel moves what was written on, so that there may be room again.
        let mut written = 0;
        loop {
            match set.write(id, &bytes[written..]).expect("write to terminal") {
                0 => break,
                taken => written += taken,
            }
        }
        assert!(written < bytes.len(), "the terminal takes all of it");
        set.close_stdin(id).expect("close input");
        let mut event_log = EventLog::default();
        event_log.wait_all(&mut set);
        assert_eq!(event_log.outcome(id).exit.status, ExitStatus::Exited(3));
    });
    // Without an input, the terminal is the standard input, too.
    command = Command::new("sh");
    command.args(["-c", "cat; test -t 0 && tty"]).group(Group::Terminal(Size::default()));
    let output = command.output_timeout(Duration::from_secs(60)).expect("run shell");
    assert!(output.status.success() && !output.timed_out, "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("/dev/"), "{output:?}");
}

// The same.
#[cfg(unix)]
#[test]
fn terminal_is_resized_while_the_child_runs() {
    use minder::{Group, Size};
    let mut terminal = Command::new(TEST_CHILD);
    terminal.arg("terminal-sizes").group(Group::Terminal(Size::new(17, 91)));
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let id = set.spawn(&terminal, SpawnOptions::default()).expect("spawn test child");
        let mut log = EventLog::default();
        let mut read_until = |set: &mut ChildSet, text: &str| {
            assert!(log.read_until(set, patience(), |log| log.text(id).contains(text)), "{}", log.text(id));
        };
        read_until(&mut set, "ready");
        set.resize_terminal(id, Size::new(18, 92)).expect("resize terminal");
        set.write(id, b"\n").expect("write to terminal");
        read_until(&mut set, "18x92 1\r\n");
        set.close_stdin(id).expect("close one descriptor of the terminal");
        set.resize_terminal(id, Size::new(19, 93)).expect("resize terminal by the other");
        set.kill(id, Termination::IMMEDIATE).expect("kill test child");
        let plain = set.spawn(&test_child("cat"), SpawnOptions::default()).expect("spawn test child");
        let error = set.resize_terminal(plain, Size::default()).expect_err("resize a pipe");
        assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, minder::Operation::Resize));
        set.kill_all(Termination::IMMEDIATE).expect("kill test child");
        log.wait_all(&mut set);
        let error = set.resize_terminal(id, Size::default()).expect_err("resize the terminal of no child");
        assert_eq!(error.kind(), ErrorKind::Unknown);
    });

    let mut child = terminal.spawn().expect("spawn test child");
    let mut out = std::io::BufReader::new(child.stdout.take().expect("take stdout"));
    let mut next_line = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).expect("read line");
        line.trim().to_owned()
    };
    assert_eq!(next_line(), "ready");
    child.resize_terminal(Size::new(1, 2)).expect("resize terminal");
    writeln!(child.stdin.as_mut().expect("stdin is a terminal")).expect("write to terminal");
    assert_eq!((next_line().as_str(), next_line().as_str()), ("", "1x2 1"));
    drop(child.stdin.take());
    let error = child.resize_terminal(Size::default()).expect_err("resize without a stream");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    child.kill_and_wait(Termination::IMMEDIATE).expect("kill test child");
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn two_thousand_children_leak_nothing() {
    alone("set::two_thousand_children_leak_nothing", || {
        each_backend(|backend| {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let mut before = 0;
            // Under Wine, a start takes many times as long.
            let rounds = if cfg!(windows) { 4 } else { 21 };
            for round in 0..rounds {
                let count = if round == 0 { 10 } else { 50 };
                for number in 0..count {
                    let mut command = test_child(if number % 3 == 0 { "exit 0" } else { "spew 100" });
                    if number % 5 == 0 {
                        command.stdin(Stdio::piped());
                    }
                    set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
                }
                EventLog::default().wait_all(&mut set);
                assert_eq!(own_children(), [0; 0], "a zombie after Done");
                // The first round opens what is kept from one start to the next.
                if round == 0 {
                    before = open_descriptors();
                }
            }
            assert_eq!(open_descriptors(), before, "descriptors on {backend}");
        });
    });
}

// Windows has no zombies.
#[cfg(target_os = "linux")]
#[test]
fn child_is_a_zombie_until_its_exit_is_reported() {
    alone("set::child_is_a_zombie_until_its_exit_is_reported", || {
        each_backend(|backend| {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let id = set.spawn(&quiet_child("exit 4"), SpawnOptions::default()).expect("spawn test child");
            let pid = set.pid(id).expect("get pid");
            loop {
                match crate::support::next_event(&mut set, patience()) {
                    Event::Exited { .. } => assert_eq!(own_children(), [pid], "its number is still its own"),
                    Event::Done { .. } => break,
                    _ => (),
                }
            }
            assert_eq!(own_children(), [0; 0]);
        });
    });
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn dropped_set_closes_its_descriptors() {
    alone("set::dropped_set_closes_its_descriptors", || {
        let before = open_descriptors();
        each_backend(|backend| {
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            for _ in 0..20 {
                let mut command = test_child("cat");
                set.spawn(command.stdin(Stdio::piped()), SpawnOptions::default()).expect("spawn test child");
            }
            drop(set);
            assert_eq!(open_descriptors(), before, "descriptors on {backend}");
        });
    });
}

// A limit of descriptors.
#[cfg(target_os = "linux")]
#[test]
fn spawn_without_a_free_descriptor_fails_cleanly() {
    alone("set::spawn_without_a_free_descriptor_fails_cleanly", || {
        each_backend(|backend| {
            use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
            let hard = getrlimit(Resource::Nofile).maximum;
            let mut set = ChildSet::new(limits(backend)).expect("create set");
            let waiting =
                set.spawn(&test_child("sleep-ms 600000"), SpawnOptions::default()).expect("spawn test child");
            let open = open_descriptors();
            // Each of these leaves room for a different part of a start: pipes, the process, nothing.
            let mut refused = 0;
            for free in 0..9 {
                let soft = Some((open + free) as u64);
                setrlimit(Resource::Nofile, Rlimit { current: soft, maximum: hard })
                    .expect("set resource limit");
                let result = set.spawn(&test_child("exit 0"), SpawnOptions::default());
                setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })
                    .expect("set resource limit");
                match result {
                    Ok(id) => {
                        let mut event_log = EventLog::default();
                        assert!(event_log.read_until(&mut set, patience(), |event_log| {
                            event_log.child(id).done.is_some()
                        }));
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Exhausted, "with {free} free: {error}");
                        refused += 1;
                    }
                }
                assert_eq!(set.len(), 1);
                assert_eq!(own_children().len(), 1, "a process was left, with {free} free");
            }
            assert!(refused >= 3, "{refused} starts were refused");
            let kept = open_descriptors();
            assert!(kept <= open + 1, "{open} descriptors became {kept}");
            // The same command works once a child has ended.
            setrlimit(Resource::Nofile, Rlimit { current: Some(kept as u64), maximum: hard })
                .expect("set resource limit");
            let error = set
                .spawn(&test_child("exit 0"), SpawnOptions::default())
                .expect_err("spawn without free descriptor");
            assert_eq!(error.kind(), ErrorKind::Exhausted);
            setrlimit(Resource::Nofile, Rlimit { current: Some(kept as u64 + 2), maximum: hard })
                .expect("set resource limit");
            set.spawn(&test_child("exit 0"), SpawnOptions::default())
                .expect_err("spawn with two free descriptors");
            set.kill(waiting, Termination::IMMEDIATE).expect("kill child");
            let mut event_log = EventLog::default();
            event_log.wait_all(&mut set);
            set.spawn(&test_child("exit 0"), SpawnOptions::default()).expect("spawn with freed descriptors");
            event_log.wait_all(&mut set);
        });
    });
}

#[test]
fn contradicting_options_are_rejected() {
    let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let options = SpawnOptions::default().output_mode(minder::OutputMode::AtExit);
    let error = set.spawn(&test_child("exit 0"), options).expect_err("spawn with output held until exit");
    assert_eq!((error.kind(), set.len()), (ErrorKind::InvalidInput, 0));
    let limits = ChildSetOptions::default().backend(Some(crate::support::foreign_backend()));
    assert_eq!(
        ChildSet::new(limits).expect_err("create set with a backend of another system").kind(),
        ErrorKind::Unsupported
    );
}

#[test]
fn failed_spawn_leaves_the_set_unchanged() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let error = set
            .spawn(&Command::new("/no/such/program"), SpawnOptions::default())
            .expect_err("spawn missing program");
        assert_eq!((error.kind(), set.len()), (ErrorKind::NotFound, 0));
        assert!(set.next_event(None).expect("wait for event").into_event().is_none());
        set.spawn(&test_child("exit 0"), SpawnOptions::default()).expect("spawn test child");
        EventLog::default().wait_all(&mut set);
    });
}

#[test]
fn output_is_labeled_with_its_stream() {
    each_backend(|backend| {
        let mut set = ChildSet::new(limits(backend)).expect("create set");
        let mut command = test_child("script 5 9 0 0");
        command.stdout(Stdio::null());
        let id = set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
        let mut event_log = EventLog::default();
        event_log.wait_all(&mut set);
        assert_eq!(event_log.child(id).outs[Stream::Stderr as usize], patterned(9));
        assert_eq!(event_log.child(id).eofs, [0, 1], "only piped streams have an end");
    });
}

#[test]
fn output_may_go_to_an_open_file() {
    let mut set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let mut file = tempfile::tempfile().expect("create temporary file");
    file.write_all(b"before ").expect("write bytes");
    let mut command = test_child("spew 20");
    command.stdout(file.try_clone().expect("duplicate handle"));
    set.spawn(&command, SpawnOptions::default()).expect("spawn test child");
    EventLog::default().wait_all(&mut set);
    let mut text = String::new();
    std::io::Seek::rewind(&mut file).expect("rewind file");
    std::io::Read::read_to_string(&mut file, &mut text).expect("read file");
    assert_eq!(text, format!("before {}", String::from_utf8_lossy(&patterned(20))));
}

/// A time that no clock can represent is never reached.
#[test]
fn intervals_without_a_bound_are_accepted() {
    let config = ChildSetOptions::new()
        .leak_timeout(Some(Duration::MAX))
        .stop_poll_interval(Some(Duration::MAX))
        .read_delay(Duration::MAX);
    let mut set = ChildSet::new(config).expect("create set");
    set.spawn(&test_child("spew 10"), SpawnOptions::new()).expect("spawn test child");
    assert!(set.wait_all(Some(Duration::from_secs(60)), drop).expect("wait for child"));
}

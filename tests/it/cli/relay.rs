//! `minder relay`: bytes, pieces, signals and the end of one command in front of a slow reader.

mod terminal;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use minder::{Command, ExitStatus, Group, Size, Stdio};
use rustix::process::{Pid, Signal, kill_process};

use super::{MINDER, Run, SOON, children, file, from, minder, minder_as, path, pipe, temp_dir};
use crate::support::{TEST_CHILD, lives, nap, patience, patterned, readable};

/// A pause in which something would happen that must not.
const A_WHILE: Duration = Duration::from_millis(400);
const MIB: usize = 1 << 20;

/// Starts `minder relay` with these arguments, and returns the reading end of its output.
fn relay(line: &str) -> (Run, File) {
    start(minder(&format!("relay {line}")))
}

fn start(mut command: Command) -> (Run, File) {
    let (reader, writer) = pipe();
    command.stdout(writer);
    (Run::start(&command), reader)
}

/// Returns a command that runs a line of sh(1) in a relay with these flags.
fn sh(flags: &str, line: &str) -> Command {
    let mut command = minder(&format!("relay {flags} -- sh -c"));
    command.arg(line);
    command
}

/// Reads once, up to 1 MiB. Fails if nothing comes.
fn read(reader: &mut File) -> Vec<u8> {
    assert!(readable(std::os::fd::AsFd::as_fd(reader), SOON), "no output came");
    let mut piece = vec![0; MIB];
    let count = reader.read(&mut piece).expect("read output");
    piece.truncate(count);
    piece
}

/// Reads to the end, with a pause before each read. Returns the bytes and the number of reads.
fn read_all(reader: &mut File, pause: Duration) -> (Vec<u8>, usize) {
    let mut all = Vec::new();
    let mut reads = 0;
    loop {
        nap(pause);
        let piece = read(reader);
        if piece.is_empty() {
            return (all, reads);
        }
        all.extend(piece);
        reads += 1;
    }
}

/// Reads until the output contains this text.
fn read_until(reader: &mut File, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        let piece = read(reader);
        assert!(!piece.is_empty(), "the output ended after {all:?}");
        all += &String::from_utf8_lossy(&piece);
    }
    all
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).expect("valid pid"), signal).expect("signal process");
}

/// Returns the state of a process as ps(1) shows it.
fn state(pid: u32) -> char {
    let stat = file(Path::new(&format!("/proc/{pid}/stat")));
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('-')
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let until = patience();
    while !holds() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        nap(Duration::from_millis(2));
    }
}

/// Returns the pid of the command of a relay: its child that is not the guardian.
fn child_of(relay: u32) -> u32 {
    let find = || {
        let is_guardian = |pid: &u32| file(Path::new(&format!("/proc/{pid}/comm"))).starts_with("minder");
        children(relay).into_iter().find(|pid| !is_guardian(pid))
    };
    wait_for("the command", || find().is_some());
    find().expect("find command")
}

/// Waits until the command of a relay has written something and ended. The guardian is left.
fn wait_for_command(relay: u32, reader: &File) {
    wait_for("output", || rustix::io::ioctl_fionread(reader).expect("ask for bytes") > 0);
    wait_for("the end of the command", || children(relay).len() == 1);
}

#[test]
fn bytes_are_exact_in_front_of_a_slow_reader() {
    let bytes = 8 * MIB;
    let expected = patterned(bytes);
    for flags in ["", "--pty", "--buffer 64k"] {
        let (run, mut reader) = relay(&format!("{flags} CHILD spew {bytes} 4096"));
        let (out, _) = read_all(&mut reader, Duration::from_millis(3));
        assert!(out == expected, "{flags}: {} bytes differ", out.len());
        run.wait().exit_code(0).stderr("");
    }
}

#[test]
fn reader_gets_few_pieces() {
    // The load of the machine decides how many pieces there are: fewer without a relay, too, and more with
    // one whose command gets no processor for some milliseconds. So the same command is read without a
    // relay at the same time. The tests of the buffer say when it gathers.
    let count = |command: Command| {
        let (run, mut reader) = start(command);
        let (out, reads) = read_all(&mut reader, Duration::ZERO);
        assert_eq!(out.len(), 8 * MIB);
        run.wait().exit_code(0);
        reads
    };
    let spew = format!("spew {} 256", 8 * MIB);
    for flags in ["", "--pty"] {
        let until = patience();
        loop {
            let direct = count(from(TEST_CHILD, &spew));
            let reads = count(minder(&format!("relay {flags} CHILD {spew}")));
            if reads * 10 <= direct {
                break;
            }
            assert!(Instant::now() < until, "{flags}: {reads} reads, and {direct} without a relay");
        }
    }
}

#[test]
fn short_output_comes_at_once() {
    for flags in ["", "--pty"] {
        let mut command = sh(flags, "stty -echo 2>/dev/null; while read -r x; do printf '%s ' $x; done");
        command.stdin(Stdio::piped());
        let (mut run, mut reader) = start(command);
        let mut fastest = SOON;
        let until = patience();
        // A busy machine delays some lines. None would come before the relay gathers, which is 4 ms.
        for round in 0.. {
            let begun = Instant::now();
            run.write(format!("line{round}\n").as_bytes());
            read_until(&mut reader, &format!("line{round} "));
            fastest = fastest.min(begun.elapsed());
            if round >= 20 && fastest < Duration::from_millis(4) {
                break;
            }
            assert!(begun < until, "{flags}: {fastest:?}");
        }
        run.close();
        run.wait().exit_code(0);
    }
}

#[test]
fn status_is_that_of_the_command() {
    for flags in ["", "--pty"] {
        for code in [0, 1, 77, 255] {
            let (run, mut reader) = relay(&format!("{flags} CHILD exit {code}"));
            assert_eq!(read_all(&mut reader, Duration::ZERO).0, b"");
            run.wait().exit_code(code).stderr("");
        }
        for signal in [Signal::TERM, Signal::KILL, Signal::SEGV, Signal::PIPE, Signal::INT, Signal::ALARM] {
            let (run, _reader) = start(sh(flags, &format!("kill -{} $$", signal.as_raw())));
            let status = run.wait().killed_by(signal).status;
            assert!(!status.core_dumped(), "{signal:?}");
        }
    }
}

#[test]
fn command_that_cannot_start_is_one_line() {
    let dir = temp_dir();
    let data = dir.path().join("data");
    std::fs::write(&data, "text").expect("write file");
    for flags in ["", "--pty"] {
        let run = Run::start(&minder(&format!("relay {flags} no-such-program")));
        run.wait().exit_code(127).error_line(&["cannot start `no-such-program`: not found in PATH"]);
        let run = Run::start(&minder(&format!("relay {flags} {}", path(&data))));
        run.wait().exit_code(126).error_line(&["cannot start `", "permission denied"]);
    }
    Run::start(&minder("relay"))
        .wait()
        .exit_code(255)
        .error_line(&["no command given", "minder relay --help"]);
    let run = Run::start(&minder("relay --rows 3 true"));
    run.wait().exit_code(255).error_line(&["--pty"]);
    Run::start(&minder("relay --buffer 1 true")).wait().exit_code(255).error_line(&["64k"]);
}

#[test]
fn flags_after_the_command_belong_to_it() {
    for line in ["relay CHILD echo-args --pty -x", "relay -- CHILD echo-args --pty -x"] {
        assert_eq!(Run::start(&minder(line)).wait().exit_code(0).text(), "\"--pty\"\n\"-x\"\n");
    }
    Run::start(&minder("relay --pyt true")).wait().exit_code(255).error_line(&["`--pyt`"]);
}

#[test]
fn input_ends_in_both_modes() {
    for flags in ["", "--pty"] {
        let mut command = sh(flags, "stty -echo 2>/dev/null; echo ready; exec cat");
        command.stdin(Stdio::piped());
        let (mut run, mut reader) = start(command);
        read_until(&mut reader, "ready");
        run.write(b"text\n");
        read_until(&mut reader, "text");
        run.close();
        assert_eq!(read_all(&mut reader, Duration::ZERO).0, b"", "{flags}");
        run.wait().exit_code(0).stderr("");
    }
}

#[test]
fn end_of_input_is_one_character_of_the_terminal() {
    // The terminal has another character for it, and a second one would be seen.
    let line =
        "stty -icanon -echo min 1 eof ^X; echo ready; od -An -tx1 -N1; timeout 1 cat | od -An -tx1; echo end";
    let mut command = sh("--pty", line);
    command.stdin(Stdio::piped());
    let (mut run, mut reader) = start(command);
    read_until(&mut reader, "ready");
    run.close();
    let out = read_until(&mut reader, "end");
    assert_eq!(out.split_whitespace().collect::<Vec<_>>(), ["18", "end"], "{out:?}");
    run.wait().exit_code(0);
}

#[test]
fn writer_sees_a_closed_input() {
    for flags in ["", "--pty"] {
        let mut command = minder(&format!("relay {flags} CHILD sleep-ms 0"));
        let (reader, writer) = pipe();
        command.stdin(Stdio::from(reader));
        let run = Run::start(&command);
        drop(command);
        run.wait().exit_code(0);
        // The relay has ended. No copy of its input is left.
        assert!(rustix::io::write(&writer, b"x").is_err());
    }
}

#[test]
fn signals_reach_the_command() {
    let names = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("TERM", Signal::TERM),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("WINCH", Signal::WINCH),
    ];
    for flags in ["", "--pty"] {
        for (name, number) in names {
            let line =
                format!("trap 'echo got {name}; exit 5' {name}; echo ready; while :; do sleep 0.02; done");
            let (run, mut reader) = start(sh(flags, &line));
            read_until(&mut reader, "ready");
            run.signal(number);
            read_until(&mut reader, &format!("got {name}"));
            run.wait().exit_code(5);
        }
        let (run, mut reader) = start(sh(flags, "echo ready; exec sleep 600"));
        read_until(&mut reader, "ready");
        run.signal(Signal::INT);
        run.wait().killed_by(Signal::INT);
    }
}

#[test]
fn key_reaches_the_foreground_job_of_a_terminal() {
    // With job control each job has its own group. The shell itself gets no signal.
    let line = "set -m; trap 'echo shell' QUIT; echo ready; sleep 600; echo job $?; exit 3";
    let (run, mut reader) = start(sh("--pty", line));
    read_until(&mut reader, "ready");
    let shell = child_of(run.pid());
    wait_for("the job", || !children(shell).is_empty());
    let job = children(shell)[0];
    wait_for("its group", || state(job) == 'S' && file(Path::new(&format!("/proc/{job}/comm"))) == "sleep\n");
    run.signal(Signal::QUIT);
    let out = read_until(&mut reader, "job 131");
    assert!(!out.contains("shell"), "{out:?}");
    run.wait().exit_code(3);
}

#[test]
fn ignored_signals_stay_ignored() {
    let mut command = minder_as("ignore=1", "relay grep SigIgn /proc/self/status");
    let expected = format!("SigIgn:\t{:016x}\n", super::inherited_ignored_signals() | 1);
    assert_eq!(Run::start(command.stdin(Stdio::null())).wait().exit_code(0).text(), expected);
}

#[test]
fn kill_of_the_relay_leaves_no_process() {
    for flags in ["", "--pty"] {
        let (mut run, mut reader) = relay(&format!("{flags} CHILD tree 3"));
        let mut tree = Vec::new();
        while tree.len() < 3 {
            tree.extend(super::pids(&String::from_utf8_lossy(&read(&mut reader))));
        }
        tree.extend(children(run.pid()));
        assert!(tree.iter().all(|pid| lives(*pid)), "{tree:?}");
        run.kill();
        run.wait_until_true("the end of all", || !tree.iter().any(|pid| lives(*pid)));
        run.wait().killed();
    }
}

#[test]
fn stop_suspends_both_and_continue_resumes_both() {
    for flags in ["", "--pty"] {
        let (run, mut reader) = relay(&format!("{flags} CHILD lines 1000000 5"));
        read_until(&mut reader, "line 3");
        let relay = run.pid();
        let child = child_of(relay);
        for _ in 0..3 {
            run.signal(Signal::TSTP);
            wait_for("the stop", || state(relay) == 'T' && state(child) == 'T');
            nap(Duration::from_millis(20));
            while rustix::io::ioctl_fionread(&reader).expect("ask for bytes") > 0 {
                read(&mut reader);
            }
            assert!(
                !readable(std::os::fd::AsFd::as_fd(&reader), A_WHILE / 4),
                "it writes although it is stopped"
            );
            run.signal(Signal::CONT);
            read_until(&mut reader, "line");
            wait_for("the continuation", || state(relay) != 'T' && state(child) != 'T');
        }
        run.signal(Signal::TERM);
        run.wait().killed_by(Signal::TERM);
    }
}

#[test]
fn stop_works_in_a_group_without_a_shell() {
    // The relay leads a session, as a process of Emacs does: there the kernel ignores SIGTSTP.
    let mut command = minder("relay CHILD lines 1000000 5");
    command.group(Group::Session);
    let (run, mut reader) = start(command);
    read_until(&mut reader, "line 3");
    let relay = run.pid();
    let child = child_of(relay);
    run.signal(Signal::TSTP);
    wait_for("the stop", || state(relay) == 'T' && state(child) == 'T');
    run.signal(Signal::CONT);
    wait_for("the continuation", || state(relay) != 'T' && state(child) != 'T');
    run.signal(Signal::TERM);
    run.wait().killed_by(Signal::TERM);
}

#[test]
fn terminal_has_the_size_and_controls_the_command() {
    let (run, mut reader) =
        start(sh("--pty --rows 12 --columns 34", "stty size; ps -o pid=,sid=,tpgid= -p $$"));
    let out = String::from_utf8(read_all(&mut reader, Duration::ZERO).0).expect("UTF-8");
    run.wait().exit_code(0);
    let words: Vec<&str> = out.split_whitespace().collect();
    assert!(words[..2] == ["12", "34"] && words[2] == words[3] && words[2] == words[4], "{out:?}");
    let (run, mut reader) = relay("--pty stty size");
    assert_eq!(read_all(&mut reader, Duration::ZERO).0, b"24 80\r\n");
    run.wait().exit_code(0);
}

#[test]
fn terminal_follows_the_size_of_our_own() {
    // The relay itself is on a terminal, whose size changes.
    let mut outer = Command::new(MINDER);
    outer
        .args(["relay", "--pty", "sh", "-c"])
        .arg("trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done");
    outer.group(Group::Terminal(Size::new(31, 41)));
    let mut child = outer.spawn().expect("start relay");
    let output = child.stdout.take().expect("take output");
    let mut reader = File::from(std::os::fd::AsFd::as_fd(&output).try_clone_to_owned().expect("duplicate"));
    read_until(&mut reader, "31 41");
    output.resize_terminal(Size::new(32, 42)).expect("resize terminal");
    read_until(&mut reader, "32 42");
    child.kill_and_wait(minder::Termination::IMMEDIATE).expect("kill relay");
}

#[test]
fn closed_output_is_seen_by_the_command() {
    let (run, mut reader) = relay("yes");
    assert_eq!(read(&mut reader).get(..2), Some(&b"y\n"[..]));
    drop(reader);
    run.wait().killed_by(Signal::PIPE).stderr("");
    let (run, mut reader) = relay("--pty yes");
    assert!(!read(&mut reader).is_empty());
    drop(reader);
    run.wait().killed_by(Signal::HUP).stderr("");
}

#[test]
fn process_in_the_background_is_not_waited_for() {
    for flags in ["", "--pty"] {
        let mut command = minder(&format!("relay {flags} CHILD hold-stdout 600000 5000"));
        // The process keeps the errors open, too.
        command.stderr(Stdio::null());
        let (run, mut reader) = start(command);
        let begun = Instant::now();
        let (out, _) = read_all(&mut reader, Duration::ZERO);
        assert_eq!(out.len(), 5000);
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        run.wait().exit_code(0);
    }
}

#[test]
fn relay_exits_when_everything_was_read() {
    for (flags, bytes) in [("", 300_000), ("--pty", 300_000), ("", 12 * MIB)] {
        let (mut run, mut reader) = relay(&format!("{flags} --buffer 16M CHILD spew {bytes}"));
        wait_for_command(run.pid(), &reader);
        run.read_for(A_WHILE);
        let mut left = bytes;
        while left > 1 {
            assert!(run.record().done.is_none(), "{left} bytes were not read");
            let mut piece = vec![0; (left - 1).min(MIB)];
            left -= reader.read(&mut piece).expect("read output");
            run.read_for(Duration::from_millis(1));
        }
        run.read_for(Duration::from_millis(50));
        assert!(run.record().done.is_none(), "one byte was not read");
        assert_eq!(read(&mut reader).len(), 1);
        run.wait().exit_code(0);
    }
}

#[test]
fn relay_does_not_linger_for_ever() {
    let (run, mut reader) = relay("--linger 0.2 CHILD spew 5000");
    let ended = run.wait().exit_code(0);
    assert!(ended.wall >= Duration::from_millis(200), "{:?}", ended.wall);
    assert_eq!(read_all(&mut reader, Duration::ZERO).0.len(), 5000);
    // A request to exit and a reader that is gone end the wait, too.
    for signalled in [true, false] {
        let (mut run, reader) = relay("--linger 600 CHILD spew 5000");
        wait_for_command(run.pid(), &reader);
        run.read_for(A_WHILE);
        assert!(run.record().done.is_none());
        if signalled {
            run.signal(Signal::TERM);
        } else {
            drop(reader);
        }
        assert!(run.wait().exit_code(0).wall < SOON);
    }
}

#[test]
fn memory_is_bounded() {
    let buffer = 4 * MIB;
    let (mut run, mut reader) = relay(&format!("--buffer {buffer} yes"));
    let rss = |pid: u32| {
        let status = file(Path::new(&format!("/proc/{pid}/status")));
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("parse number") << 10
    };
    let relay = run.pid();
    let child = child_of(relay);
    run.wait_until_true("a full buffer", || rss(relay) > buffer);
    run.read_for(A_WHILE);
    assert!(rss(relay) < buffer + 20 * MIB, "{} bytes", rss(relay));
    // The command waits. It continues when the reader reads.
    assert_eq!(state(child), 'S');
    for _ in 0..40 {
        read(&mut reader);
    }
    assert!(rss(relay) < buffer + 20 * MIB, "{} bytes", rss(relay));
    drop(reader);
    run.wait().killed_by(Signal::PIPE);
}

#[test]
fn errors_are_those_of_the_relay() {
    let ended = Run::start(&sh("", "echo out; echo err >&2")).wait().exit_code(0).stderr("err\n");
    assert_eq!(ended.text(), "out\n");
    let ended = Run::start(&sh("--pty", "echo out; echo err >&2")).wait().exit_code(0).stderr("");
    assert_eq!(ended.text(), "out\r\nerr\r\n");
}

#[test]
fn errors_in_the_output_stay_in_order() {
    let line = "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done";
    let mut command = sh("", line);
    command.stderr_to_stdout();
    let (run, mut reader) = start(command);
    let (out, _) = read_all(&mut reader, Duration::ZERO);
    run.wait().exit_code(0);
    let expected: String = (1..10).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn inherited_descriptors_reach_the_command() {
    let dir = temp_dir();
    let out = dir.path().join("out");
    let mut command = Command::new("sh");
    command.arg("-c").arg("exec \"$0\" relay sh -c 'echo text >&7' 7>\"$1\"").arg(MINDER).arg(path(&out));
    assert_eq!(command.status().expect("run shell"), ExitStatus::Exited(0));
    assert_eq!(file(&out), "text\n");
}

#[test]
fn missing_guardian_is_reported() {
    // Without its file, minder cannot start itself.
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("minder-{}", std::process::id()));
    std::fs::hard_link(MINDER, &copy).expect("link program");
    let mut command = Command::new("sh");
    command.arg("-c").arg("exec 9<\"$0\"; rm \"$0\"; exec /proc/self/fd/9 relay sh -c 'exit 6'");
    command.arg(path(&copy)).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = Run::start(&command).wait().exit_code(6);
    ended.error_line(&["a kill -9 of minder would leave the command running: no guardian: "]);
}

#[test]
fn relay_is_one_process_and_its_guardian() {
    let (run, _reader) = relay("CHILD sleep-ms 600000");
    let child = child_of(run.pid());
    assert_eq!(children(run.pid()).len(), 2, "the guardian and the command");
    signal(child, Signal::TERM);
    run.wait().killed_by(Signal::TERM);
}

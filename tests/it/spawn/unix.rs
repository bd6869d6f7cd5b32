//! Features of Unix: descriptors, signals, groups, terminals, modes of files, niceness.

#![expect(unsafe_code, reason = "signals and descriptors of processes that a test has for itself")]

#[cfg(target_os = "linux")]
use std::os::fd::IntoRawFd;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use minder::{Command, ErrorKind, ExitStatus, Group, Size, Stdio, Termination};

use super::set_path;
use crate::support::{TEST_CHILD, alone, read_all, stdout_of, test_child};
#[cfg(target_os = "linux")]
use crate::support::{catch_if_ignored, open_descriptors, own_children};

/// Gives SIGPIPE its default action, which Rust's runtime took away.
pub(crate) fn restore_sigpipe() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Ignores a signal.
pub(crate) fn ignore(signal: i32) {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Installs a handler that only counts, without SA_RESTART.
pub(crate) fn count(signal: i32) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handler(_signal: i32) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: all zero is a value of a sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as extern "C" fn(i32) as usize;
    // SAFETY: the handler does what is allowed in one; `action` is initialised.
    unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
}

/// Opens a descriptor with at least this number that execve does not close.
fn inheritable(least: i32) -> i32 {
    let null = std::fs::File::open("/dev/null").expect("open /dev/null");
    // SAFETY: numbers only.
    let copy = unsafe { libc::fcntl(null.as_raw_fd(), libc::F_DUPFD, least) };
    assert!(copy >= least);
    copy
}

fn close(fd: i32) {
    // SAFETY: the test, alone in its process, owns the descriptor.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
}

/// Opens descriptors until this number is in use.
fn open_up_to(number: i32) {
    loop {
        let fd = std::fs::File::open("/dev/null").expect("open /dev/null").into_raw_fd();
        if fd >= number {
            return;
        }
    }
}

/// Returns the descriptors that test_child's `fds` lists.
fn descriptors(text: &str) -> Vec<i32> {
    text.lines().filter_map(|line| line.split_once(' ')?.0.parse().ok()).collect()
}

/// A child inherits an ignored signal, and gets the default action of one that is caught.
/// libuv/libuv#1376, dlang/phobos#7766: children inherit what a runtime has set for signals.
#[cfg(target_os = "linux")] // /proc
#[test]
fn ignored_signals_are_not_inherited_after_they_are_caught() {
    /// Returns the mask of ignored signals of a process.
    fn ignored(pid: u32) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("read file");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("find SigIgn");
        u64::from_str_radix(mask.trim(), 16).expect("parse mask")
    }
    alone("spawn::unix::ignored_signals_are_not_inherited_after_they_are_caught", || {
        let signals = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
        let mask = signals.iter().fold(0, |mask, signal| mask | 1 << (signal - 1));
        let mut command = test_child("sleep-ms 600000");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        for (caught, expected) in [(false, mask), (true, 0)] {
            for signal in signals {
                ignore(signal);
                if caught {
                    catch_if_ignored(signal);
                }
            }
            let mut child = command.spawn().expect("spawn test child");
            assert_eq!(ignored(child.id()) & mask, expected, "caught: {caught}");
            child.kill(Termination::IMMEDIATE).expect("kill child");
            child.wait().expect("wait for child");
        }
    });
}

/// The number of a closed standard output may be that of a descriptor of the library: the write end of
/// the child's own input, for which the child would wait for ever.
#[test]
fn shared_output_that_is_closed_is_refused() {
    alone("spawn::unix::shared_output_that_is_closed_is_refused", || {
        let saved = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3).expect("copy standard output");
        let mut command = Command::new(TEST_CHILD);
        command.arg("cat").stdin(Stdio::piped()).stdout(Stdio::inherit()).stderr_to_stdout();
        close(1);
        let mut set = minder::ChildSet::new(minder::ChildSetOptions::default()).expect("create set");
        let started = set.spawn(&command, minder::SpawnOptions::default());
        let alone = command.spawn();
        drop(set);
        // SAFETY: numbers only.
        unsafe { libc::dup2(saved.as_raw_fd(), 1) };
        for error in [started.expect_err("start in a set"), alone.expect_err("start a lone child")] {
            assert_eq!(error.io_error().raw_os_error(), Some(libc::EBADF), "{error}");
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn child_inherits_only_three_descriptors() {
    alone("spawn::unix::child_inherits_only_three_descriptors", || {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        // A login on Debian has a soft limit of 1024, and numbers above that are used below.
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("set resource limit");
        inheritable(3);
        inheritable(60);
        assert_eq!(descriptors(&stdout_of(&test_child("fds"))), [0, 1, 2]);
        // From here on the table is shared and cut instead of copied.
        open_up_to(200);
        inheritable(100);
        inheritable(300);
        inheritable(5000);
        for _ in 0..3 {
            assert_eq!(descriptors(&stdout_of(&test_child("fds"))), [0, 1, 2]);
        }
        let mut set = minder::ChildSet::new(minder::ChildSetOptions::default()).expect("create set");
        for _ in 0..5 {
            let id =
                set.spawn(&test_child("fds"), minder::SpawnOptions::default()).expect("spawn test child");
            let mut event_log = crate::support::EventLog::default();
            event_log.wait_all(&mut set);
            assert_eq!(descriptors(&event_log.text(id)), [0, 1, 2]);
            assert!(!event_log.outcome(id).leaked, "a copy of its output stayed here");
        }
        // Our own descriptors are as they were.
        assert!(open_descriptors() > 200);
        let mut terminal = Command::new(TEST_CHILD);
        terminal.arg("fds").group(Group::Terminal(Size::default()));
        let mut child = terminal.spawn().expect("spawn test child");
        let mut text = String::new();
        // A terminal whose last user is gone is an error to a plain read.
        let _ = std::io::Read::read_to_string(&mut child.stdout.take().expect("take stdout"), &mut text);
        assert_eq!(descriptors(&text), [0, 1, 2], "{text}");
        child.wait().expect("wait for child");
    });
}

/// Under their numbers, among others that it does not get, and with any way to start it: also by
/// the older `clone` (`seccomp.rs`).
#[cfg(target_os = "linux")]
#[test]
fn child_inherits_the_descriptors_of_its_command() {
    alone("spawn::unix::child_inherits_the_descriptors_of_its_command", || {
        // Descriptors inherited from the test runner do not count.
        minder::Descriptors::inherited().close_on_exec();
        let numbers = [3, 5, 40, 63, 70].map(inheritable);
        let found = minder::Descriptors::inherited();
        assert_eq!(found.numbers().collect::<Vec<_>>(), numbers);
        let with = |more: &[i32]| {
            let mut all = [&[0, 1, 2], numbers.as_slice(), more].concat();
            all.sort_unstable();
            all
        };
        let file = std::fs::File::open("/dev/null").expect("open /dev/null");
        let own = file.as_raw_fd();
        let with_own = found.clone().with(file);
        let mut command = test_child("fds");
        command.descriptors(&found);
        inheritable(50);
        for many in [false, true] {
            if many {
                open_up_to(200);
                inheritable(200);
            }
            assert_eq!(descriptors(&stdout_of(&command)), with(&[]));
            assert_eq!(descriptors(&stdout_of(&test_child("fds"))), [0, 1, 2]);
            assert_eq!(descriptors(&stdout_of(test_child("fds").descriptors(&with_own))), with(&[own]));
        }
        let mut set = minder::ChildSet::new(minder::ChildSetOptions::default()).expect("create set");
        let id = set.spawn(&command, minder::SpawnOptions::default()).expect("spawn test child");
        let mut event_log = crate::support::EventLog::default();
        event_log.wait_all(&mut set);
        assert_eq!(descriptors(&event_log.text(id)), with(&[]));
        // One that is closed since is missing, and what took its number is not passed.
        close(numbers[4]);
        let other = std::fs::File::open("/dev/null").expect("open /dev/null");
        assert_eq!(other.as_raw_fd(), numbers[4]);
        let mut rest = with(&[]);
        rest.retain(|number| *number != numbers[4]);
        assert_eq!(descriptors(&stdout_of(&command)), rest);
        found.close_on_exec();
        assert_eq!(minder::Descriptors::inherited().numbers().filter(|number| *number < 50).count(), 0);
    });
}

/// Pipes then have the numbers that the child's streams must get.
/// bpo-10806 (Python): children get the wrong descriptors if 0, 1 or 2 are closed.
#[cfg(target_os = "linux")]
#[test]
fn host_without_standard_streams_spawns_children() {
    alone("spawn::unix::host_without_standard_streams_spawns_children", || {
        // Later output of this process goes through copies.
        let kept = [0, 1, 2].map(inheritable_copy);
        let result = std::panic::catch_unwind(|| {
            for many in [false, true] {
                if many {
                    open_up_to(300);
                }
                for closed in [&[0][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]] {
                    closed.iter().for_each(|fd| close(*fd));
                    let streams = swapped();
                    for (fd, copy) in [0, 1, 2].into_iter().zip(kept) {
                        // SAFETY: two open descriptors.
                        unsafe { libc::dup2(copy, fd) };
                    }
                    assert_eq!(streams, ["in", "out", "err"].map(str::to_owned), "{closed:?}, {many}");
                }
            }
        });
        for (fd, copy) in [0, 1, 2].into_iter().zip(kept) {
            // SAFETY: two open descriptors.
            unsafe { libc::dup2(copy, fd) };
        }
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

#[cfg(target_os = "linux")]
fn inheritable_copy(fd: i32) -> i32 {
    // SAFETY: numbers only.
    unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 20) }
}

/// Starts a child and returns the bytes that pass through each of its three streams.
#[cfg(target_os = "linux")]
fn swapped() -> [String; 3] {
    let mut command = test_child("cat");
    let mut child = command.stdin(Stdio::piped()).spawn().expect("spawn test child");
    let mut input = child.stdin.take().expect("take stdin");
    std::io::Write::write_all(&mut input, b"in").expect("write bytes");
    drop(input);
    let text = read_all(child.stdout.take());
    let quiet = read_all(child.stderr.take());
    assert!(child.wait().expect("wait for child").status.success() && quiet.is_empty());
    let mut child = test_child("script 3 0 0 0").spawn().expect("spawn test child");
    let out = if read_all(child.stdout.take()) == "abc" { "out" } else { "?" };
    child.wait().expect("wait for child");
    let mut child = test_child("script 0 3 0 0").spawn().expect("spawn test child");
    let err = if read_all(child.stderr.take()) == "abc" { "err" } else { "?" };
    child.wait().expect("wait for child");
    [text, out.to_owned(), err.to_owned()]
}

/// libuv/libuv#1376, dlang/phobos#7766: children inherit blocked signals and what a runtime ignores.
#[cfg(target_os = "linux")]
#[test]
fn child_starts_with_no_blocked_signal_and_default_sigpipe() {
    alone("spawn::unix::child_starts_with_no_blocked_signal_and_default_sigpipe", || {
        ignore(libc::SIGPIPE);
        // SAFETY: all zero is a value of it.
        let mut set = unsafe { std::mem::zeroed() };
        // SAFETY: a set of ours.
        unsafe { libc::sigfillset(&mut set) };
        // SAFETY: an initialised set that outlives the call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut()) };
        let text = stdout_of(&test_child("sigmask"));
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).expect("find line of /proc status");
            u64::from_str_radix(line.split_whitespace().nth(1).expect("find signal mask"), 16)
                .expect("parse number")
        };
        assert_eq!(field("SigBlk:"), 0, "{text}");
        // Ignored signals stay ignored, except SIGPIPE. (The child's runtime ignores that again, before it
        // looks.)
        let own = std::fs::read_to_string("/proc/thread-self/status").expect("read own status");
        let ignored =
            own.lines().find(|line| line.starts_with("SigIgn:")).expect("find line of /proc status");
        assert!(text.contains(ignored), "{text} instead of {ignored}");
        // So whether the child had it is seen by a program that has no such runtime.
        let mut command = Command::new("yes");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("spawn yes(1)");
        drop(child.stdout.take());
        let exit = child.wait().expect("wait for child");
        assert!(matches!(exit.status, ExitStatus::Signaled { signal: libc::SIGPIPE, .. }), "{exit:?}");
        // Our own mask is as it was.
        let own = std::fs::read_to_string("/proc/thread-self/status").expect("read own status");
        assert!(!own.contains("SigBlk:\t0000000000000000"), "{own}");
    });
}

#[test]
fn groups_and_sessions_match_the_request() {
    let ids = |group| {
        let text = stdout_of(test_child("ids").group(group));
        let numbers: Vec<u32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        <[u32; 3]>::try_from(numbers).expect("read three pids")
    };
    let own_group = nix::unistd::getpgid(None).expect("get process group").as_raw().cast_unsigned();
    let own_session = nix::unistd::getsid(None).expect("get session").as_raw().cast_unsigned();
    let [_, group, session] = ids(Group::Inherit);
    assert_eq!((group, session), (own_group, own_session));
    let [pid, group, session] = ids(Group::New);
    assert_eq!((group, session), (pid, own_session));
    let [pid, group, session] = ids(Group::Session);
    assert_eq!((group, session), (pid, pid));
}

#[test]
fn terminal_belongs_to_the_child() {
    let mut command = Command::new(TEST_CHILD);
    command.arg("terminal").group(Group::Terminal(Size::new(3, 40)));
    let mut child = command.spawn().expect("spawn test child");
    let output = child.stdout.take().expect("take stdout");
    let text = std::io::read_to_string(&output).expect("read to the end");
    assert_eq!(text, "[true, true, true] 3x40 own=true controlling=true\r\nand this is stderr\r\n");
    assert!(child.stderr.take().is_none(), "all output is one stream");
    assert!(child.wait().expect("wait for child").status.success());
}

/// The kernel reports EIO when no process has the terminal open any more.
/// microsoft/node-pty#178: EIO takes the place of the end.
#[test]
fn output_of_a_terminal_ends_as_that_of_a_pipe() {
    use std::io::{IoSliceMut, Read};
    let mut command = Command::new(TEST_CHILD);
    command.args(["lines", "3", "0"]).group(Group::Terminal(Size::default()));
    for round in 0..4 {
        let mut child = command.spawn().expect("spawn test child");
        let mut output = child.stdout.take().expect("take stdout");
        let mut bytes = b"> ".to_vec();
        let mut buffer = [0; 7];
        loop {
            let read = match round {
                0 => output.read_to_end(&mut bytes),
                1 => output.read(&mut buffer),
                2 => output.read_vectored(&mut [IoSliceMut::new(&mut buffer)]),
                _ => (&output).read(&mut buffer),
            };
            let count = read.expect("read from terminal");
            if round == 0 {
                assert_eq!(count, bytes.len().saturating_sub(2));
                break;
            }
            bytes.extend_from_slice(&buffer[..count]);
            if count == 0 {
                break;
            }
        }
        assert_eq!(bytes, b"> line 0\r\nline 1\r\nline 2\r\n");
        assert_eq!(output.read(&mut buffer).expect("read at the end"), 0);
        child.wait().expect("wait for child");
    }
}

/// Creates a program, and several files and a directory that cannot be run, in this directory.
fn odd_programs(directory: &Path) {
    let make = |name: &str, text: &str, mode: u32| {
        let path = directory.join(name);
        std::fs::write(&path, text).expect("write file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set permissions");
    };
    make("not-executable", "#!/bin/sh\n", 0o644);
    make("foreign", "\x7fELF\x02\x01\x01\0 of another system\n", 0o755);
    make("bad-interpreter", "#!/no/such/interpreter\n", 0o755);
    std::fs::create_dir(directory.join("directory")).expect("create directory");
    std::fs::copy(TEST_CHILD, directory.join("only-here")).expect("copy file");
}

#[test]
fn unrunnable_program_is_reported_with_the_reason() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    odd_programs(dir.path());
    let fails = |name: &str| Command::new(dir.path().join(name)).spawn().expect_err(name);
    for (name, kind, reason) in [
        (
            "missing",
            ErrorKind::NotFound,
            "no such file, or the interpreter named in its first line does not exist",
        ),
        (
            "bad-interpreter",
            ErrorKind::NotFound,
            "no such file, or the interpreter named in its first line does not exist",
        ),
        ("directory", ErrorKind::PermissionDenied, "is a directory"),
        ("not-executable", ErrorKind::PermissionDenied, "permission denied"),
        ("foreign", ErrorKind::Other, "neither a program for this system nor a script"),
    ] {
        let error = fails(name);
        assert_eq!((error.kind(), error.reason().as_str()), (kind, reason), "{name}: {error}");
        assert!(error.to_string().starts_with("failed to start `/"), "{error}");
    }
    for name in ["", "no-such-program-in-path", "only-here"] {
        let error = Command::new(name).spawn().expect_err(name);
        assert_eq!(
            (error.kind(), error.reason().as_str()),
            (ErrorKind::NotFound, "not found in PATH"),
            "{name}"
        );
    }
}

/// As with execvp(3), and in every shell.
#[test]
fn script_without_first_line_is_run_by_sh() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let script = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("write file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set permissions");
        path
    };
    script("script", "echo \"$0 $# $1 $2\"; exit 3\n");
    std::fs::create_dir(dir.path().join("-d")).expect("create directory");
    script("-d/script", "echo \"$0 $1\"\n");
    let empty = script("empty", "");
    let output = |program: &str| {
        let mut command = Command::new(program);
        command.args(["a  b", "$HOME"]).current_dir(dir.path()).env("NAME", "value");
        let output = command.output().expect("run script");
        (output.status, String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // A relative path is one in the directory of the child.
    assert_eq!(output("./script"), (ExitStatus::Exited(3), "./script 2 a  b $HOME\n".to_owned()));
    let path = dir.path().join("script");
    let path = path.to_str().expect("path is UTF-8");
    assert_eq!(output(path), (ExitStatus::Exited(3), format!("{path} 2 a  b $HOME\n")));
    // Not an option of sh.
    assert_eq!(output("-d/script"), (ExitStatus::Exited(0), "./-d/script a  b\n".to_owned()));
    assert!(Command::new(empty).status().expect("run empty script").success());
}

#[test]
fn path_is_searched_and_the_current_directory_is_not() {
    alone("spawn::unix::path_is_searched_and_the_current_directory_is_not", || {
        let dir = tempfile::tempdir().expect("create temporary directory");
        odd_programs(dir.path());
        std::env::set_current_dir(dir.path()).expect("change directory");
        let error = Command::new("only-here").spawn().expect_err("start program of the current directory");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        set_path(format!("/no/such/directory:{}:/bin:/usr/bin", dir.path().display()));
        assert!(
            Command::new("only-here")
                .arg("exit")
                .spawn()
                .expect("spawn program")
                .wait()
                .expect("wait for child")
                .status
                .success()
        );
        // The search skips directories and files that are not executable. It reports such a file if no
        // later directory has the program.
        let skipped = [("directory", ErrorKind::NotFound), ("not-executable", ErrorKind::PermissionDenied)];
        for (name, kind) in skipped {
            assert_eq!(Command::new(name).spawn().expect_err(name).kind(), kind, "{name}");
        }
        let second = tempfile::tempdir().expect("create temporary directory");
        std::fs::copy(TEST_CHILD, second.path().join("not-executable")).expect("copy file");
        set_path(format!("{}:{}", dir.path().display(), second.path().display()));
        let mut child = Command::new("not-executable").arg("exit").spawn().expect("spawn second program");
        assert!(child.wait().is_ok());
        // An empty part of PATH names the current directory.
        set_path("/bin:");
        assert!(Command::new("only-here").arg("exit").spawn().expect("spawn program").wait().is_ok());
    });
}

#[cfg(target_os = "linux")]
#[test]
fn overlong_arguments_are_rejected_with_their_limit() {
    let mut command = test_child("count");
    command.arg("x".repeat(131_071));
    assert!(command.spawn().expect("spawn with longest argument").wait().is_ok());
    let mut command = test_child("count");
    command.arg("x".repeat(131_072));
    let error = command.spawn().expect_err("spawn with overlong argument");
    assert_eq!(error.kind(), ErrorKind::TooLong);
    assert!(error.to_string().contains("one argument is longer than the 131,071 bytes"), "{error}");
    let mut command = test_child("count");
    command.args(std::iter::repeat_n("x".repeat(100_000), 100));
    let error = command.spawn().expect_err("spawn with too many arguments");
    assert_eq!(error.kind(), ErrorKind::TooLong);
    assert!(error.to_string().contains("together"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn failed_spawn_leaves_no_process_and_no_descriptor() {
    alone("spawn::unix::failed_spawn_leaves_no_process_and_no_descriptor", || {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let dir = tempfile::tempdir().expect("create temporary directory");
        odd_programs(dir.path());
        test_child("exit 0").spawn().expect("spawn test child").wait().expect("wait for child");
        let before = open_descriptors();
        let hard = getrlimit(Resource::Nofile).maximum;
        for many in [false, true] {
            if many {
                open_up_to(200);
            }
            let before = if many { open_descriptors() } else { before };
            for name in ["missing", "bad-interpreter", "directory", "not-executable", "no-first-line"] {
                let mut command = test_child("exit 0");
                command.stdin(Stdio::piped());
                let mut odd = Command::new(dir.path().join(name));
                odd.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                odd.spawn().expect_err(name);
                command.current_dir("/no/such/directory").spawn().expect_err("enter missing directory");
            }
            let mut refused = 0;
            for free in 0..16 {
                let soft = Some((before + free) as u64);
                setrlimit(Resource::Nofile, Rlimit { current: soft, maximum: hard })
                    .expect("set resource limit");
                let mut command = test_child("exit 0");
                let result = command.stdin(Stdio::piped()).spawn();
                setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })
                    .expect("set resource limit");
                match result {
                    Ok(mut child) => assert!(child.wait().expect("wait for child").status.success()),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Exhausted, "with {free} free: {error}");
                        refused += 1;
                    }
                }
            }
            assert!((4..16).contains(&refused), "{refused} starts were refused");
            assert_eq!(own_children(), [0; 0], "a process was left");
            assert_eq!(open_descriptors(), before, "a descriptor was left");
        }
    });
}

/// A host raises its limit; with few descriptors open, and with more than its children may have.
#[cfg(target_os = "linux")]
#[test]
fn soft_descriptor_limit_is_restored_in_children() {
    for open in [0, 400] {
        assert_eq!(
            stdout_of(&test_child(&format!("raise-limit 300 {open}"))),
            "300 again, 3 descriptors\n",
            "{open} are open"
        );
    }
}

/// A lone child opens the null device itself, even if the stream is closed in this process.
#[cfg(target_os = "linux")]
#[test]
fn null_streams_are_the_null_device() {
    alone("spawn::unix::null_streams_are_the_null_device", || {
        let run = |stdin: Stdio, script: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
            let status = command.spawn().expect("spawn").wait().expect("wait").status;
            assert!(status.success(), "{script}: {status:?}");
        };
        let is_null =
            "for fd in 0 1 2; do test /dev/fd/$fd -ef /dev/null || exit 1; done; ! read line && echo x";
        run(Stdio::null(), is_null);
        close(0);
        run(Stdio::null(), is_null);
        run(Stdio::inherit(), "test ! -e /dev/fd/0 && test /dev/fd/1 -ef /dev/null");
    });
}

/// The same with a shared table of descriptors.
#[cfg(target_os = "linux")]
#[test]
fn children_of_many_threads_share_no_descriptors() {
    alone("spawn::unix::children_of_many_threads_share_no_descriptors", || {
        open_up_to(300);
        inheritable(250);
        let before = open_descriptors();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for _ in 0..50 {
                        assert_eq!(descriptors(&stdout_of(&test_child("fds"))), [0, 1, 2]);
                        Command::new("/no/such/program").spawn().expect_err("spawn missing program");
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("join thread");
        }
        assert_eq!(open_descriptors(), before);
    });
}

/// Returns the niceness of a process from `/proc/PID/stat`.
#[cfg(target_os = "linux")]
fn niceness(stat: &str) -> i32 {
    let (_, fields) = stat.rsplit_once(')').expect("find end of process name");
    fields.split_ascii_whitespace().nth(16).and_then(|field| field.parse().ok()).expect("find niceness")
}

#[cfg(target_os = "linux")]
#[test]
fn niceness_is_added_to_ours() {
    let own = niceness(&std::fs::read_to_string("/proc/thread-self/stat").expect("read own stat"));
    for (nice, expected) in [(0, own), (3, (own + 3).min(19)), (i32::MAX, 19), (-1, (own - 1).max(-20))] {
        let mut command = test_child("sleep-ms 600000");
        command.nice(nice);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                assert!(nice < 0, "{nice}: {error}");
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
                assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}");
                continue;
            }
        };
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("read stat of child");
        child.kill(Termination::IMMEDIATE).expect("kill child");
        child.wait().expect("wait for child");
        assert_eq!(niceness(&stat), expected, "{nice}");
    }
    let after = niceness(&std::fs::read_to_string("/proc/thread-self/stat").expect("read own stat"));
    assert_eq!(after, own, "it was ours that changed");
}

#[cfg(not(target_os = "linux"))]
#[test]
fn niceness_is_rejected_rather_than_ignored() {
    let error = test_child("exit 0").nice(3).spawn().expect_err("spawn with niceness");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(
        test_child("exit 0")
            .nice(0)
            .spawn()
            .expect("spawn test child")
            .wait()
            .expect("wait for child")
            .status
            .code(),
        Some(0)
    );
}

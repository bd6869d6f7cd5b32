//! The output of jobs: whole, job by job, byte for byte, and also when no reader takes it.

use std::fs;
use std::io::Read;
use std::time::Duration;

use minder::Stdio;

#[cfg(target_os = "linux")]
use super::is_root;
use super::{
    Run, SOON, input, jobs_in, minder, path, pipe, run_to_end, run_with_input, temp_dir, with_script,
};
use crate::support::patterned;

const MIB: usize = 1 << 20;

/// The variable that names the directory for temporary files.
const TEMPORARY: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

/// A directory that is not there, and how its name ends when it is reported.
const NOWHERE: &str = "/no/such/dir";
const NOWHERE_TOLD: &str = if cfg!(windows) { r":\no\such\dir\`" } else { "`/no/such/dir`" };

/// Returns the command, with this directory for temporary files.
fn temporary<'a>(command: &'a mut minder::Command, dir: &str) -> &'a mut minder::Command {
    command.env(TEMPORARY, dir)
}

#[test]
fn large_outputs_are_grouped_and_complete() {
    let dir = temp_dir();
    let jobs: String = (0..8).map(|id| format!("{id},{},{},0\n", 5 * MIB + id, MIB / 2 + id)).collect();
    let mut command = minder("run -j8 CHILD job");
    temporary(&mut command, path(dir.path())).stdin(input(jobs.as_bytes()));
    let ended = Run::start(&command).wait().exit_code(0);
    for stream in [&ended.out, &ended.errors] {
        let mut ids = jobs_in(stream);
        ids.sort_unstable();
        assert_eq!(ids, (0..8).collect::<Vec<_>>());
    }
    assert_eq!(fs::read_dir(dir.path()).expect("list directory").count(), 0, "spill files are left");
}

// Modes, and files without a name.
#[cfg(target_os = "linux")]
#[test]
fn spill_files_are_private_and_removed() {
    use std::os::unix::fs::MetadataExt;

    let dir = temp_dir();
    let wait = dir.path().join("wait");
    let own = dir.path().join("tmp");
    fs::create_dir(&own).expect("create directory");
    let mut command = minder("run -j2 --no-record");
    command.arg(format!("{0} spew 6000000; {0} await {{}} done", crate::support::CHILD));
    let mut live = Run::start(command.args([":::", path(&wait), path(&wait)]).env("TMPDIR", &own));
    let outer = live.pid();
    // Nothing is reported as yet: the output waits in private files.
    let spilled = || {
        let Some(runner) = super::runner(outer) else { return 0 };
        let files = fs::read_dir(format!("/proc/{runner}/fd")).into_iter().flatten().flatten();
        let ours =
            |link: &fs::DirEntry| fs::read_link(link.path()).is_ok_and(|target| target.starts_with(&own));
        let files = files.filter(ours).filter_map(|link| fs::metadata(link.path()).ok());
        // Without a name, or for its owner alone.
        let private = |file: &fs::Metadata| file.nlink() == 0 || file.mode() & 0o077 == 0;
        files.map(|file| if private(&file) { file.size() } else { panic!("a file for all: {file:?}") }).sum()
    };
    live.wait_until_true("a spill file", || spilled() > 4_000_000);
    for item in fs::read_dir(&own).expect("list directory").flatten() {
        assert_eq!(item.metadata().map_or(0, |it| it.mode() & 0o077), 0, "{item:?} is for all");
    }
    assert!(live.record().outs[0].is_empty());
    fs::write(&wait, "").expect("write file");
    let ended = live.wait().exit_code(0);
    assert_eq!(ended.out.len(), 2 * 6_000_005);
    assert!(ended.out[..6_000_000] == patterned(6_000_000) && ended.out.ends_with(b"done\n"));
    assert_eq!(fs::read_dir(&own).expect("list directory").count(), 0, "spill files are left");
}

#[test]
fn output_bytes_are_unchanged() {
    let ended = run_with_input("run -j1 CHILD job", b"0,300,0,0\n1,0,700,0\n2,1,1,0").exit_code(0);
    let stream = |parts: &[(usize, usize)]| -> Vec<u8> {
        parts
            .iter()
            .flat_map(|(id, len)| {
                [format!("[{id} {len}]\n").into_bytes(), super::job_bytes(*id, *len)].concat()
            })
            .collect()
    };
    assert!(ended.out == stream(&[(0, 300), (1, 0), (2, 1)]), "{:?}", ended.text());
    assert!(ended.errors == stream(&[(0, 0), (1, 700), (2, 1)]), "{:?}", ended.err);
}

#[test]
fn stdout_precedes_stderr_on_a_shared_pipe() {
    let (mut reader, writer) = pipe();
    // The job writes byte by byte. On a slow machine minder shows its output in several parts.
    let verb = if cfg!(windows) { "script 9 9 0 ::: 0" } else { "both 9 ::: 1" };
    let mut command = minder(&format!("run -j1 CHILD {verb}"));
    let both = Stdio::from(writer);
    let live = Run::start(command.stdout(both.clone()).stderr(both.clone()));
    drop((command, both));
    let mut all = String::new();
    reader.read_to_string(&mut all).expect("read output");
    live.wait().exit_code(0);
    let once = String::from_utf8(patterned(9)).expect("decode UTF-8");
    assert_eq!(all, once.repeat(2), "through one pipe a job's stdout comes first, then its stderr");
}

// Windows has no device that is always full.
#[cfg(unix)]
#[test]
fn full_device_is_one_line_of_error() {
    for line in ["run -j2 CHILD spew 10 ::: 1 2", "run -j2 CHILD spew 100000 ::: 1 2 3 4", "doctor"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("open /dev/full");
        let ended = Run::start(minder(line).stdout(full)).wait().exit_code(255);
        ended.error_line(&["standard output: no space left on device"]);
    }
}

#[test]
fn closed_reader_ends_the_run() {
    let (mut reader, writer) = pipe();
    let mut command = minder("run -j2 CHILD spew 70000");
    // All of these jobs would take minutes. That many bytes at once: few of them take long under Wine.
    let line: &[u8] = if cfg!(windows) { b"4000\n" } else { b"1\n" };
    let mut live = Run::start(command.stdin(input(&line.repeat(200_000))).stdout(writer));
    drop(command);
    let mut first = [0; 10];
    reader.read_exact(&mut first).expect("read bytes");
    drop(reader);
    live.wait_until("end", |record| record.done.is_some());
    live.wait().exit_code(141).stderr("");
}

#[test]
fn jobs_are_terminated_when_the_reader_is_gone() {
    let (mut reader, writer) = pipe();
    let mut command = minder("run -j3 --grace 60");
    let line = "case {} in a) echo a; exit;; b) exec CHILD sleep-ms 600000;; esac; echo c";
    with_script(&mut command, line).args([":::", "b", "a"]).args(["c"; 500]);
    let live = Run::start(command.stdout(writer));
    drop(command);
    let mut first = [0; 1];
    reader.read_exact(&mut first).expect("read bytes");
    drop(reader);
    let ended = live.wait().exit_code(141).stderr("");
    assert!(ended.wall < SOON, "{:?}", ended.wall);
}

// Anonymous pipes of Windows always block.
#[cfg(unix)]
#[test]
fn nonblocking_stdout_is_waited_for() {
    let (mut reader, writer) = pipe();
    rustix::io::ioctl_fionbio(&writer, true).expect("set nonblocking mode");
    let jobs: String = (0..20).map(|id| format!("{id},100000,0,0\n")).collect();
    let mut command = minder("run -j4 CHILD job");
    let mut live = Run::start(command.stdin(input(jobs.as_bytes())).stdout(writer));
    drop(command);
    // Long enough that the pipe is full.
    live.read_for(Duration::from_millis(300));
    let mut all = Vec::new();
    reader.read_to_end(&mut all).expect("read to end");
    assert_eq!(jobs_in(&live.wait().exit_code(0).errors).len(), 20);
    assert_eq!(jobs_in(&all).len(), 20);
}

// As above.
#[cfg(unix)]
#[test]
fn nonblocking_streams_are_waited_for_by_all_that_writes() {
    let jobs: String = (0..800).map(|id| format!("{id:0150}\n")).collect();
    let written = |line: &str, to_stdout: bool, is_read: bool| {
        let (mut reader, writer) = pipe();
        rustix::io::ioctl_fionbio(&writer, true).expect("set nonblocking mode");
        let mut command = minder(line);
        command.stdin(input(jobs.as_bytes())).env("LC_ALL", "C.UTF-8");
        if to_stdout {
            command.stdout(writer)
        } else {
            command.stderr(writer)
        };
        let mut live = Run::start(&command);
        drop(command);
        live.read_for(Duration::from_millis(300));
        let mut all = Vec::new();
        if is_read {
            reader.read_to_end(&mut all).expect("read to end");
        }
        drop(reader);
        (super::text(&all), live.wait())
    };
    for (line, to_stdout) in
        [("run --dry-run CHILD exit", true), ("run -j8 --no-record --status-level all CHILD exit", false)]
    {
        let (all, ended) = written(line, to_stdout, true);
        assert!(all.lines().count() >= 800 && all.ends_with('\n'), "{line}: {}", all.len());
        let wall = written(line, to_stdout, false).1.wall;
        assert!(wall < SOON && ended.wall < SOON, "{line}: {wall:?}");
    }
}

#[test]
fn missing_temporary_directory_is_one_line_of_error() {
    let mut command = minder("run -j2 --no-record CHILD job");
    temporary(&mut command, NOWHERE).stdin(input(b"0,6000000,0,0\n1,6000000,0,0\n2,10,0,0\n"));
    let ended =
        Run::start(&command).wait().exit_code(255).stderr_contains(NOWHERE_TOLD).stderr_contains(TEMPORARY);
    jobs_in(&ended.out);
    // Small outputs need none.
    let mut command = minder("run -j2 --no-record CHILD job");
    temporary(&mut command, NOWHERE).stdin(input(b"0,100000,0,0\n1,0,100000,0\n"));
    assert_eq!(jobs_in(&Run::start(&command).wait().exit_code(0).out).len(), 2);
}

#[test]
fn partial_output_of_jobs_killed_by_an_error_is_not_shown() {
    let dir = temp_dir();
    let mark = dir.path().join("mark");
    let mut command = minder("run -j2 --no-record");
    let piece = format!("CHILD spew 1000; exec CHILD touch {} 600000", path(&mark));
    let large = format!("CHILD await {} x; exec CHILD spew 9000000", path(&mark));
    let line = format!("case {{}} in piece) {piece};; *) {large};; esac");
    with_script(&mut command, &line).args([":::", "piece", "large"]);
    let ended = Run::start(temporary(&mut command, NOWHERE)).wait().exit_code(255);
    assert_eq!(ended.out.len(), 0, "a piece is shown as if it were whole");
    ended.error_line(&[NOWHERE_TOLD, TEMPORARY]);
}

// A file system that is mounted for it.
#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_one_line_of_error_and_tears_no_output() {
    let dir = temp_dir();
    let mounted = is_root()
        && std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "minder-test", path(dir.path())])
            .output()
            .is_ok_and(|output| output.status.success());
    if !mounted {
        crate::support::skip(format_args!("a full disk needs the right to mount one"));
        return;
    }
    let mut command = minder("run -j3 --no-record CHILD job");
    command.env("TMPDIR", dir.path()).stdin(input(b"9,20,0,0\n0,9000000,0,0\n1,9000000,0,0\n2,10,0,0\n"));
    let ended = Run::start(&command).wait();
    let unmounted = std::process::Command::new("umount").arg(dir.path()).output();
    assert!(unmounted.is_ok_and(|output| output.status.success()), "the small disk is still in use");
    let ended = ended
        .exit_code(255)
        .stderr_contains(path(dir.path()))
        .stderr_contains("no space left on device (--tmpdir or TMPDIR");
    assert_eq!(ended.err.matches("minder: ").count(), 1, "{}", ended.err);
    jobs_in(&ended.out);
}

// Unix starts programs without a standard stream; a full device is there only.
#[cfg(unix)]
#[test]
fn closed_stdout_is_an_error_only_if_bytes_are_lost() {
    let closed =
        |stream: u32, line: &str| Run::start(&super::minder_as(&format!("close={stream}"), line)).wait();
    assert_eq!(
        closed(2, "run -j2 CHILD both 5 ::: 1 2").exit_code(0).out.len(),
        10,
        "who closes stderr wants it so"
    );
    for flags in ["", "-k", "--lb", "--spool", "--buffer 64k"] {
        let ended = closed(1, &format!("run -j2 {flags} CHILD both 5000 ::: 1 2")).exit_code(255);
        assert!(
            ended.err.contains("minder: cannot write to standard output: it is closed\n"),
            "{flags}: {ended:?}"
        );
    }
    closed(1, "run -j2 CHILD exit ::: 0 0").exit_code(0).stderr("");
    closed(1, "run -u CHILD exit ::: 0")
        .exit_code(255)
        .error_line(&["cannot hand standard output to the jobs"]);
    for line in ["--version", "--help", "run --help", "log", "doctor", "help"] {
        closed(1, line).exit_code(255).error_line(&["cannot write to standard output: it is closed"]);
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("open /dev/full");
    // Bytes that found no place are an error, on either stream.
    Run::start(minder("run -j1 CHILD both 5 ::: 1 2").stderr(full)).wait().exit_code(255);
}

#[test]
fn closed_stderr_reader_is_not_an_error() {
    let (reader, writer) = pipe();
    drop(reader);
    let ended = Run::start(minder("run -j1 CHILD script 5 5 0 ::: 1 2").stderr(writer)).wait().exit_code(2);
    assert_eq!(ended.out.len(), 10, "the run continues without stderr");
}

#[test]
fn quick_job_is_shown_before_a_slow_one() {
    // A quick job's output does not wait for a slow one.
    let dir = temp_dir();
    let wait = dir.path().join("wait");
    let mut command = minder("run -j2");
    let line = format!("case {{}} in slow) CHILD await {} slow;; *) echo {{}};; esac", path(&wait));
    with_script(&mut command, &line);
    let mut live = Run::start(command.args([":::", "slow", "quick"]));
    live.wait_until("output of the quick job", |record| record.outs[0] == b"quick\n");
    fs::write(&wait, "").expect("write file");
    assert_eq!(live.wait().exit_code(0).text(), "quick\nslow\n");
}

#[test]
fn leaked_output_is_closed_and_reported() {
    let closed = run_to_end("run -j1 CHILD hold-stdout 3000 7 ::: 1").exit_code(0);
    assert!(closed.wall >= Duration::from_millis(100) && closed.wall < SOON, "{:?}", closed.wall);
    assert_eq!(closed.out, patterned(7));
    let closed = closed
        .stderr_contains("left its output open: ")
        .stderr_contains("hold-stdout 3000 7 1")
        .stderr_contains("`--leak wait`");
    assert_eq!(closed.err.matches("left its output open").count(), 1);
    let quiet = run_to_end("run -j1 --quiet CHILD hold-stdout 3000 7 ::: 1").exit_code(0);
    assert!(
        quiet.err.starts_with("minder: left its output open: ") && quiet.err.lines().count() == 1,
        "{}",
        quiet.err
    );
    let waited = run_to_end("run -j1 --quiet --leak wait CHILD hold-stdout 700 ::: 9").exit_code(0);
    assert_eq!((waited.text().len(), waited.err.as_str()), (9, ""));
    assert!(waited.wall >= Duration::from_millis(700), "{:?}", waited.wall);
}

// A script of a POSIX shell.
#[cfg(unix)]
#[test]
fn unfinished_line_does_not_block_others_until_a_retry() {
    let dir = temp_dir();
    let script = "case $1 in
        long) head -c 2000000 /dev/zero | tr '\\0' x; exit 1;;
        many) sleep 0.3; yes | head -c 4000000;;
        *) sleep 0.6;;
        esac";
    let script_path = dir.path().join("script");
    std::fs::write(&script_path, script).expect("write file");
    let line = "run --no-record --lb -j3 --buffer 1M --retries 2 --retry-delay 60 --halt soon,success=1";
    let ended = run_to_end(&format!("{line} sh {} {{}} ::: long many last", path(&script_path))).exit_code(0);
    let out = ended.text();
    assert!(out.contains("x\ny\n"), "the line was ended");
    assert_eq!(out.len(), 2_000_001 + 4_000_000);
}

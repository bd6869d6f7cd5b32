//! Output that waits: how much of it in memory, where the rest is, who may read it, and that it
//! goes.

use std::fs;
#[cfg(any(target_os = "linux", windows))]
use std::path::Path;

#[cfg(any(target_os = "linux", windows))]
use super::path;
use super::{Run, feed, files, input, is_known, minder, run_to_end, shell, temp_dir, texts, untangle};
#[cfg(target_os = "linux")]
use super::{Text, is_root};

const MIB: usize = 1 << 20;

#[cfg(target_os = "linux")]
fn mode(about: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(about) & 0o777
}

/// Files have none.
#[cfg(windows)]
fn mode(_about: &fs::Metadata) -> u32 {
    0
}

/// Returns all files below a directory, with their modes and sizes.
#[cfg(any(target_os = "linux", windows))]
fn listed(dir: &Path) -> Vec<(String, u32, u64)> {
    let mut found = Vec::new();
    for item in fs::read_dir(dir).into_iter().flatten().flatten() {
        // What Windows keeps in the directory itself is late with the size of an open file.
        match fs::symlink_metadata(item.path()).or_else(|_| item.metadata()) {
            Ok(about) if about.is_dir() => {
                found.push((path(&item.path()).to_owned(), mode(&about), 0));
                found.extend(listed(&item.path()));
            }
            Ok(about) => found.push((path(&item.path()).to_owned(), mode(&about), about.len())),
            Err(_) => (),
        }
    }
    found
}

/// On Windows all files have names.
#[cfg(windows)]
fn held(_runner: u32, _dir: &Path) -> Vec<(String, u32, u64)> {
    Vec::new()
}

/// Returns the files below a directory that the runner has open, including those without a name.
#[cfg(target_os = "linux")]
fn held(outer: u32, dir: &Path) -> Vec<(String, u32, u64)> {
    let runner = super::super::runner(outer).expect("find runner");
    let links = fs::read_dir(format!("/proc/{runner}/fd")).into_iter().flatten().flatten();
    let named = |link: fs::DirEntry| {
        let target = fs::read_link(link.path()).ok().filter(|target| target.starts_with(dir))?;
        let about = fs::metadata(link.path()).ok()?;
        Some((path(&target).to_owned(), mode(&about), about.len()))
    };
    links.filter_map(named).collect()
}

#[cfg(target_os = "linux")] // As `/proc` shows it: Wine's figures of memory are not those of Windows.
#[test]
fn memory_use_is_bounded() {
    let dir = temp_dir();
    let mark = |job: usize| dir.path().join(job.to_string());
    let target = dir.path().join("out");
    let file = fs::File::create(&target).expect("create file");
    let mut command = minder("run -j64 CHILD fill 4194304 :::");
    for job in 0..64 {
        command.arg(mark(job));
    }
    let mut live = Run::start(command.stdout(file).env("MINDER_STATE_DIR", dir.path().join("state")));
    let outer = live.pid();
    live.wait_until_true("all of the jobs' output", || (0..64).all(|job| mark(job).exists()));
    let runner = super::super::runner(outer).expect("find runner");
    let status = super::file(Path::new(&format!("/proc/{runner}/status")));
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("find VmHWM");
    let peak: usize = peak.trim().trim_end_matches(" kB").parse().expect("parse number");
    assert!(peak < 40 << 10, "{peak} KiB resident");
    (0..64).for_each(|job| fs::write(mark(job).with_extension("go"), "").expect("write file"));
    live.wait().exit_code(0);
    let bytes = fs::read(&target).expect("read output");
    assert_eq!(bytes.len(), 64 * 4 * MIB);
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn output_files_are_private_and_removed() {
    let all = ["-j2", "--spool -k -j2", "--lb -j3 --buffer 64k", "-k -j3", "--spool -j3", "-j3 --buffer 64k"];
    // Under Wine, a start takes many times as long.
    for flags in &all[..if cfg!(windows) { 3 } else { all.len() }] {
        for tmpdir in [false, true] {
            let dir = temp_dir();
            let state = dir.path().join("state");
            let own = dir.path().join("own");
            let [written, wait] = ["written", "wait"].map(|name| dir.path().join(name));
            fs::create_dir(&own).expect("create directory");
            let more = if tmpdir { format!(" --tmpdir {}", path(&own)) } else { String::new() };
            let line = format!(
                "case {{}} in first) CHILD await {0} x; CHILD await {1} x;; second) CHILD spew 900000; \
                    CHILD touch {0} 0; CHILD await {1} y;; *) CHILD spew 90000;; esac",
                path(&written),
                path(&wait)
            );
            let mut command = shell(&format!("{flags}{more}"), &line, &["first", "second", "third"]);
            let mut live = Run::start(command.env("MINDER_STATE_DIR", &state));
            live.wait_until_true("output that waits", || written.exists());
            let found = [listed(&state), listed(&own), held(live.pid(), dir.path())].concat();
            for (name, mode, _) in &found {
                assert_eq!(mode & 0o077, 0, "{flags}: {name} is for all");
            }
            let place = if tmpdir { &own } else { &state };
            if !flags.contains("--lb") {
                let here = found.iter().any(|(name, _, len)| *len > 400_000 && name.starts_with(path(place)));
                assert!(here, "{flags}{more}: {found:?}");
            }
            fs::write(&wait, "").expect("write file");
            let ended = live.wait().exit_code(0);
            assert_eq!(ended.out.len(), 900_000 + 90_000 + 6, "{flags}");
            let left: Vec<_> = [listed(&state), listed(&own)].concat();
            assert!(
                !left.iter().any(|(name, _, _)| name.contains("spill")
                    || name.contains("job")
                    || name.starts_with(path(&own))),
                "{flags}: left: {left:?}"
            );
            assert!(left.iter().all(|(_, _, len)| *len < 90_000), "{flags}: output is left: {left:?}");
        }
    }
}

#[test]
fn no_record_leaves_no_output_files() {
    let dir = temp_dir();
    let state = dir.path().join("state");
    let own = dir.path().join("own");
    fs::create_dir(&own).expect("create directory");
    let jobs = texts(8, 2000, MIB);
    let all = ["-j3", "-k -j3", "--spool -j3", "--lb -j3", "-u -j1", "--pty -j2", "-j3 --buffer 64k"];
    let temporary = if cfg!(windows) { "TMP" } else { "TMPDIR" };
    for flags in all.into_iter().filter(|flags| is_known(flags)) {
        let mut command = minder(&format!("run {flags} --no-record CHILD text"));
        command.env("MINDER_STATE_DIR", &state).env(temporary, &own).stdin(input(&feed(&jobs)));
        Run::start(&command).wait().exit_code(0);
        assert!(!state.exists(), "{flags}: a record");
        assert_eq!(files(&own), 0, "{flags}");
    }
}

#[test]
fn spool_handles_empty_single_and_daemon_outputs() {
    // Nothing at all, one stream only, and a daemon that is still running.
    let ended = run_to_end("run --spool -j3 CHILD exit ::: 0 0 0 0").exit_code(0).stderr("");
    assert_eq!(ended.out.len(), 0);
    let line = "case {} in out) CHILD spew 3000000;; err) CHILD spew 3000000 >&2;; esac";
    for view in ["--spool -j3", "--spool -k -j3", "--spool -j1", "--spool --no-record -j3"] {
        let ended = Run::start(&shell(view, line, &["out", "none", "err"])).wait().exit_code(0);
        assert_eq!((ended.out.len(), ended.errors.len()), (3_000_000, 3_000_000), "{view}");
        let daemon = "CHILD leave-lines 20 30; echo {}";
        let ended = Run::start(&shell(view, daemon, &["a", "b"])).wait().exit_code(0);
        let own = ended.text().lines().filter(|line| ["a", "b"].contains(line)).count();
        assert_eq!(own, 2, "{view}: {:?}", ended.text());
        assert!(
            ended.text().lines().all(|line| ["a", "b"].contains(&line) || line.starts_with("line ")),
            "{view}"
        );
    }
}

#[cfg(target_os = "linux")] // As `/dev` and `/proc` have it.
#[test]
fn spooled_job_may_truncate_or_read_its_output() {
    let ended = Run::start(&shell("--spool -j1", "echo long before; : > /dev/stdout; echo {}", &["x"]))
        .wait()
        .exit_code(0);
    assert!(ended.text().ends_with("x\n"), "{:?}", ended.text());
    assert!(super::run_to_end("run --spool -j2 CHILD fds ::: 1").exit_code(0).text().lines().count() >= 3);
}

#[cfg(unix)] // A shell decides which job sleeps.
#[test]
fn small_output_without_record_waits_in_memory() {
    let dir = temp_dir();
    let mut command = shell("--no-record -k -j2", "test {} -gt 1 || sleep 0.3; echo {}", &["1", "2", "3"]);
    command.env(minder_os::system_paths::TEMP_DIR_VARIABLE, dir.path().join("nowhere"));
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "1\n2\n3\n");
    // More than the memory for waiting output, which is 8 KiB here, waits in a file.
    let line = "test {} -gt 1 || sleep 0.3; printf %5000d {}";
    let mut command = shell("--no-record -k -j2 --buffer 64k", line, &["1", "2", "3", "4"]);
    let wanted: String = (1..=4).map(|number| format!("{number:0>5000}").replace('0', " ")).collect();
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), wanted);
    command.env(minder_os::system_paths::TEMP_DIR_VARIABLE, dir.path().join("nowhere"));
    Run::start(&command).wait().exit_code(255).stderr_contains("cannot save output in `");
}

/// A directory with little room, if we may make one.
#[cfg(target_os = "linux")]
struct Small(tempfile::TempDir);

#[cfg(target_os = "linux")]
impl Small {
    fn new() -> Option<Self> {
        let dir = temp_dir();
        let mount = ["-t", "tmpfs", "-o", "size=1m", "minder-test", path(dir.path())];
        let mounted = is_root()
            && std::process::Command::new("mount")
                .args(mount)
                .output()
                .is_ok_and(|output| output.status.success());
        if !mounted {
            crate::support::skip(format_args!("a full disk needs the right to mount one"));
        }
        mounted.then(|| Self(dir))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg(self.0.path()).output();
        let unmounted = unmounted.is_ok_and(|output| output.status.success());
        assert!(unmounted || std::thread::panicking(), "the small disk is still in use");
    }
}

#[cfg(target_os = "linux")] // A file system that is mounted for it.
#[test]
fn full_disk_is_one_line_of_error_and_tears_no_output() {
    let Some(small) = Small::new() else { return };
    let jobs: Vec<Text> = (0..6)
        .map(|id| Text { id, lens: [[20, 1_900_000][id % 2], 40_000], longest: 300, code: 0 })
        .collect();
    for flags in [
        "-j3 --buffer 64k",
        "-k -j3 --buffer 64k",
        "--tag -j3 --buffer 64k",
        "--no-record -j4 --buffer 64k",
        "-k -j4 --no-record --buffer 64k",
    ] {
        let place = path(small.0.path());
        let mut command = minder(&format!("run {flags} --tmpdir {place}"));
        // The first waits until the others have written; else it might free the disk in time.
        command
            .arg(format!("{0} text {{}}; exec {0} sleep-ms 600000", crate::support::CHILD))
            .stdin(input(&feed(&jobs)));
        let ended = Run::start(&command).wait().exit_code(255);
        let said: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("minder: ")).collect();
        assert_eq!(said.len(), 1, "{flags}: {:?}", ended.err);
        assert!(
            said[0].contains("no space left on device") && said[0].contains("--tmpdir"),
            "{flags}: {said:?}"
        );
        if !flags.contains("-k") {
            assert_eq!(ended.out.len(), 0, "{flags}: output of killed jobs is shown");
        }
        // Output of finished jobs that was not shown is kept for a resume.
        if flags.contains("--no-record") {
            assert_eq!(files(small.0.path()), 0, "{flags}");
        }
        for left in fs::read_dir(small.0.path()).expect("list directory").flatten() {
            fs::remove_dir_all(left.path()).expect("remove directory");
        }
    }
}

#[cfg(target_os = "linux")] // The same.
#[test]
fn jobs_finished_before_the_disk_was_full_are_complete() {
    let Some(small) = Small::new() else { return };
    let jobs: Vec<Text> =
        (0..40).map(|id| Text { id: id * 2, lens: [200_000, 0], longest: 300, code: 0 }).collect();
    let dir = temp_dir();
    let wait = dir.path().join("never");
    let place = path(small.0.path());
    // All wait behind the first until nothing more fits.
    let mut command = minder(&format!("run -k -j3 --buffer 64k --tmpdir {place}"));
    let child = crate::support::CHILD;
    command.arg(format!("case {{}} in 0,*) exec {child} await {} x;; esac; {child} text {{}}", path(&wait)));
    let ended = Run::start(command.stdin(input(&feed(&jobs))))
        .wait()
        .exit_code(255)
        .stderr_contains("no space left on device");
    let said = ended.err.lines().filter(|line| line.starts_with("minder: ")).count();
    assert_eq!(said, 1, "{}", ended.err);
    let mut left = ended.out.as_slice();
    // What is shown is whole, job by job.
    for job in jobs.iter().skip(1) {
        let text = job.lines(0).concat();
        if left.starts_with(&text) {
            left = &left[text.len()..];
        }
    }
    assert_eq!(left.len(), 0, "something is torn");
}

#[test]
fn missing_tmpdir_is_one_line_of_error() {
    for flags in ["-j2 --buffer 64k", "--spool -j2", "-k -j2 --buffer 64k", "--spool -j1 --no-record"] {
        let named = if cfg!(windows) { r":\no\such\dir`" } else { "`/no/such/dir`" };
        let line = format!("run {flags} --tmpdir /no/such/dir CHILD spew 900000 ::: 1 2 3");
        let ended = run_to_end(&line).exit_code(255).stderr_contains(named);
        assert_eq!(ended.err.lines().count(), 1, "{flags}: {}", ended.err);
    }
}

#[test]
fn output_is_the_same_under_any_buffer_limit() {
    let jobs = texts(8, 9000, 2 * MIB);
    for buffer in ["64k", "100000", "1M", "1G"] {
        let mut command = minder(&format!("run -k -j8 --buffer {buffer} CHILD text"));
        let ended = Run::start(command.stdin(input(&feed(&jobs)))).wait().exit_code(0);
        untangle(&ended.out, 0, &jobs, false);
        untangle(&ended.errors, 1, &jobs, false);
    }
}

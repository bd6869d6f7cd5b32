//! `--results DIR`: GNU parallel's layout, for any arguments.

use std::fs;
use std::path::Path;

use super::{Run, feed, files, input, minder, path, temp_dir, texts};

/// `run --results` of these arguments, which each job writes to its outputs.
fn echoed(results: &Path, flags: &str, args: &[&[u8]]) -> super::RunOutput {
    let mut command = minder(&format!("run {flags} --results {} CHILD raw {{}} :::", path(results)));
    command.args(args.iter().map(|arg| minder_os::encoding::os_string_from_encoded(arg.to_vec())));
    Run::start(&command).wait()
}

#[test]
fn each_job_has_a_directory() {
    let jobs = texts(9, 3000, 300_000);
    for flags in [
        "-j1",
        "-j4",
        "-k -j4",
        "--lb -j4",
        "--spool -j4",
        "--tag -j4",
        "-j4 --buffer 64k",
        "-j3 --no-record",
    ] {
        let dir = temp_dir();
        let results = dir.path().join("deep/er");
        let mut command = minder(&format!("run {flags} --results {} CHILD text", path(&results)));
        let ended = Run::start(command.stdin(input(&feed(&jobs)))).wait().exit_code(0);
        super::untangle(&ended.out, 0, &jobs, flags.contains("--tag"));
        for job in &jobs {
            let own = results.join("1").join(job.word());
            for (stream, name) in ["stdout", "stderr"].iter().enumerate() {
                let bytes = fs::read(own.join(name)).expect("read result");
                assert!(bytes == job.lines(stream).concat(), "{flags}: {name} of {job:?}");
            }
            assert_eq!(
                fs::read(own.join("seq")).expect("read sequence number"),
                (job.id + 1).to_string().as_bytes()
            );
        }
        assert_eq!(files(&results), 3 * jobs.len());
    }
}

#[test]
fn unusual_names_stay_inside_the_results() {
    let long = [b'n'; 300];
    let umlauts = "ä".repeat(150);
    let args: &[&[u8]] = &[
        b"/",
        b"..",
        b".",
        b"",
        b"../../up",
        b"a/b",
        b"a\\_b",
        b"a\tb",
        b"a\\tb",
        b" ",
        b"new\nline",
        // On Windows, what is not text cannot be an argument.
        if cfg!(unix) { b"\xff\xfe" } else { b"\xef\xbf\xbd" },
        b"-rf",
        b"\\",
        b"~",
        &long,
        umlauts.as_bytes(),
    ];
    let dir = temp_dir();
    let results = dir.path().join("a/results");
    let ended = echoed(&results, "-j3 -k", args).exit_code(0);
    assert_eq!(ended.out, args.concat());
    assert_eq!(
        fs::read_dir(results.join("1")).expect("list directory").count(),
        args.len(),
        "two arguments share a directory"
    );
    assert_eq!(files(dir.path()), 3 * args.len(), "something is elsewhere");
    let mut found: Vec<Vec<u8>> = Vec::new();
    for item in fs::read_dir(results.join("1")).expect("list directory").flatten() {
        found.push(fs::read(item.path().join("stdout")).expect("read result"));
    }
    found.sort();
    let mut sorted: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
    sorted.sort();
    assert_eq!(found, sorted);
}

#[test]
fn previous_results_are_replaced() {
    let dir = temp_dir();
    let victim = dir.path().join("victim");
    let results = dir.path().join("results");
    fs::write(&victim, "precious").expect("write file");
    let own = results.join("1/x");
    fs::create_dir_all(&own).expect("create directory");
    // No link is followed, where everybody may make one.
    #[cfg(unix)]
    for name in ["stdout", "stderr", "seq"] {
        std::os::unix::fs::symlink(&victim, own.join(name)).expect("create symbolic link");
    }
    echoed(&results, "-j2", &[b"x", b"y"]).exit_code(0);
    assert_eq!(fs::read(&victim).expect("read file"), b"precious");
    assert_eq!(fs::read(own.join("stdout")).expect("read result"), b"x");
    assert!(fs::symlink_metadata(own.join("stdout")).is_ok_and(|it| it.is_file()));
    // A second run replaces files of the first, also longer ones.
    fs::write(own.join("stdout"), "much longer than before").expect("write file");
    echoed(&results, "-j2", &[b"x"]).exit_code(0);
    assert_eq!(fs::read(own.join("stdout")).expect("read result"), b"x");
    // Hard links keep their bytes.
    fs::remove_file(own.join("stdout")).expect("remove file");
    fs::hard_link(&victim, own.join("stdout")).expect("create hard link");
    echoed(&results, "-j2", &[b"x"]).exit_code(0);
    assert_eq!(fs::read(&victim).expect("read file"), b"precious");
}

#[test]
fn repeated_argument_shares_a_directory() {
    // Under Wine, a start takes many times as long.
    const JOBS: usize = if cfg!(windows) { 50 } else { 200 };
    let dir = temp_dir();
    for flags in ["-j16", "-k -j16", "--spool -j8"] {
        let ended = echoed(dir.path(), flags, &[&b"same"[..]; JOBS]).exit_code(0);
        assert_eq!(ended.out, b"same".repeat(JOBS));
        assert_eq!(fs::read(dir.path().join("1/same/stdout")).expect("read result"), b"same");
    }
}

#[test]
fn unwritable_results_are_one_line_of_error() {
    let dir = temp_dir();
    let file = dir.path().join("file");
    fs::write(&file, "").expect("write file");
    echoed(&file, "-j2", &[b"1", b"2", b"3"])
        .exit_code(255)
        .error_line(&["cannot write results in `", path(&file)]);
    if cfg!(target_os = "linux") {
        echoed(Path::new("/proc/none"), "-j2", &[b"1", b"2"])
            .exit_code(255)
            .error_line(&["cannot write results in `/proc/none`"]);
    }
    // In the way of one job's file.
    fs::create_dir_all(dir.path().join("1/b/stdout/x")).expect("create directory");
    echoed(dir.path(), "-j1", &[b"a", b"b", b"c"]).exit_code(255).error_line(&["cannot write results in `"]);
}

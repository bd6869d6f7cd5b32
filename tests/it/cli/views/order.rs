//! `--keep-order`: the order of the input, for any results of the jobs.

#[cfg(unix)]
use super::run_with_input;
use super::{Run, Text, feed, is_known, minder, shell, temp_dir, untangle};

// Scripts of a POSIX shell.
#[cfg(unix)]
#[test]
fn failed_silent_and_missing_jobs_keep_their_order() {
    // 1 to 6: fine, failed, silent, not there, killed, fine.
    use super::path;
    use crate::support::CHILD;

    let dir = temp_dir();
    let script = |name: &str, text: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("write file");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("set permissions");
        path(&file).to_owned()
    };
    let args = [
        script("a", &format!("{CHILD} sleep-ms 60; echo a")),
        script("b", "echo b; echo b >&2; exit 3"),
        script("c", "exit 0"),
        path(&dir.path().join("none")).to_owned(),
        script("e", "echo e; kill -9 $$"),
        path(dir.path()).to_owned(),
        script("f", "echo f"),
    ];
    for degree in ["-j1", "-j2", "-j3", "-j16"] {
        let mut command = minder(&format!("run -k {degree} {{}} :::"));
        let ended = Run::start(command.args(&args)).wait().exit_code(4);
        assert_eq!(ended.text(), "a\nb\ne\nf\n", "{degree}");
        assert_eq!(ended.err.matches("cannot run `").count(), 2, "{}", ended.err);
        // The others first, and the slow one last.
        let mut command = minder(&format!("run -k {degree} {{}} :::"));
        let ended = Run::start(command.args(args.iter().rev())).wait().exit_code(4);
        assert_eq!(ended.text(), "f\ne\nb\na\n", "{degree}");
    }
}

// The limit is Linux's.
#[cfg(unix)]
#[test]
fn overlong_lines_keep_their_order() {
    let mut bytes = b"a\n".to_vec();
    bytes.extend(vec![b'x'; 200_000]);
    bytes.extend(b"\nb\n");
    for view in ["-k", "--lb", "", "--spool -k", "-u"] {
        let ended =
            run_with_input(&format!("run {view} -j2 echo"), &bytes).exit_code(1).stderr_contains("200000");
        assert_eq!(ended.sorted(), ["a", "b"]);
    }
}

#[test]
fn slow_first_job_holds_back_the_others() {
    let dir = temp_dir();
    let wait = dir.path().join("wait");
    // Under Wine, a start takes many times as long.
    let many = if cfg!(windows) { 60 } else { 300 };
    let jobs: Vec<Text> = (0..many)
        .map(|id| Text { id, lens: [id * 37 % 9000, id % 5 * 100], longest: 500, code: 0 })
        .collect();
    for flags in ["-k -j4", "-k -j4 --no-record", "-k -j4 --spool", "-k -j4 --buffer 64k"] {
        let line = format!(
            "case {{}} in 0,*) CHILD await {} late >/dev/null;; esac; CHILD text {{}}",
            super::path(&wait)
        );
        let mut command = minder(&format!("run {flags}"));
        super::super::with_script(&mut command, &line).stdin(super::input(&feed(&jobs)));
        let mut live = Run::start(&command);
        live.read_for(std::time::Duration::from_millis(200));
        assert!(live.record().outs.iter().all(Vec::is_empty), "shown before the first");
        std::fs::write(&wait, "").expect("write file");
        let ended = live.wait().exit_code(0);
        let order = untangle(&ended.out, 0, &jobs, false);
        assert!(order.is_sorted(), "{order:?}");
        untangle(&ended.errors, 1, &jobs, false);
        std::fs::remove_file(&wait).expect("remove file");
    }
}

#[test]
fn failures_are_counted_in_every_mode() {
    let views =
        ["", "-k", "--lb", "-u", "--tag", "--spool", "--pty", "-k --spool", "--lb --pty", "--no-record"];
    for view in views.into_iter().filter(|view| is_known(view)) {
        for degree in ["-j1", "-j3"] {
            let line = "CHILD spew {}0; exit {}";
            let ended = Run::start(&shell(&format!("{view} {degree}"), line, &["0", "1", "2", "0", "7"]))
                .wait()
                .exit_code(3);
            // A tag is two bytes, before each of the three that write something. Two are followed by a tag.
            let bytes = if view == "--tag" { 100 + 3 * 2 + 2 } else { 100 };
            assert_eq!(ended.out.len(), bytes, "{view}");
            assert!(ended.err.contains("exit") || ended.err.contains("failed"), "{view}: {:?}", ended.err);
        }
    }
}

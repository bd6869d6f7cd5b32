//! Jobs that are seen while they write.

use super::{Run, is_known, minder, path, shell, temp_dir};
use crate::support::ChildLog;

fn out(bytes: &'static str) -> impl Fn(&ChildLog) -> bool {
    move |record| record.outs[0] == bytes.as_bytes()
}

/// Returns a line that writes, waits for a file named as the argument, and writes again.
fn patient(dir: &std::path::Path) -> String {
    format!(
        "printf 'begin {{}}'; printf 'err {{}}' >&2; CHILD await {}/{{}} ' end {{}}'; test -e {0}/{{}}",
        path(dir)
    )
}

fn let_go(dir: &std::path::Path, name: &str) {
    std::fs::write(dir.join(name), "").expect("write file");
}

#[test]
fn only_job_is_streamed() {
    let all = ["", "-j4", "-k", "-k -j4", "--no-record", "--pty", "--tag", "-u", "--results"];
    for flags in all.into_iter().filter(|flags| is_known(flags)) {
        let dir = temp_dir();
        let flags = flags.replace("--results", &format!("--results {}/results", path(dir.path())));
        let mut live = Run::start(&shell(&flags, &patient(dir.path()), &["x"]));
        let tag = if flags == "--tag" { "x\t" } else { "" };
        let begin = format!("{tag}begin x");
        live.wait_until("first bytes", |record| {
            let text = super::super::text(&record.outs[0]);
            text == begin || text == format!("{begin}err x")
        });
        let_go(dir.path(), "x");
        let ended = live.wait().exit_code(0);
        assert!(
            ended.text().ends_with(" end x\n") || ended.text().ends_with(" end x\r\n"),
            "{flags}: {ended:?}"
        );
    }
}

#[test]
fn single_slot_jobs_are_streamed() {
    let dir = temp_dir();
    for flags in ["-j1", "-j1 -k", "-j1 --buffer 64k"] {
        let mut live = Run::start(&shell(flags, &patient(dir.path()), &["a", "b", "c"]));
        live.wait_until("first bytes", out("begin a"));
        live.wait_until("its errors", |record| record.outs[1] == b"err a");
        let_go(dir.path(), "a");
        live.wait_until("the second", out("begin a end a\nbegin b"));
        let_go(dir.path(), "b");
        live.wait_until("the third", out("begin a end a\nbegin b end b\nbegin c"));
        let_go(dir.path(), "c");
        live.wait().exit_code(0);
        ["a", "b", "c"]
            .into_iter()
            .for_each(|name| std::fs::remove_file(dir.path().join(name)).expect("remove file"));
    }
}

#[test]
fn last_running_job_is_streamed() {
    // The last that runs is seen as it writes, whichever worker has it, and its earlier output comes
    // first.
    for args in [["slow", "quick", "fast"], ["quick", "slow", "fast"], ["quick", "fast", "slow"]] {
        for (flags, before) in
            [("-j3", 0), ("-j3", 2_000_000), ("-j3 --buffer 64k --no-record", 500_000), ("-j2", 100)]
        {
            let dir = temp_dir();
            let line = format!(
                "case {{}} in slow) CHILD spew {before}; echo; echo slow; CHILD await {} x; \
                    CHILD await {} end;; *) echo {{}}; CHILD touch {0} 0;; esac",
                path(&dir.path().join("one")),
                path(&dir.path().join("two")),
            );
            let mut live = Run::start(&shell(flags, &line, &args));
            let len = before + 1 + "slow\nx\nquick\nfast\n".len();
            live.wait_until("what the straggler wrote", |record| record.outs[0].len() == len);
            assert!(live.record().outs[0].ends_with(b"x\n"), "{flags} {args:?}");
            let_go(dir.path(), "two");
            let text = live.wait().exit_code(0).text();
            assert!(text.ends_with("\nslow\nx\nend\n") && text.contains("quick\n"), "{flags} {args:?}");
        }
    }
}

#[test]
fn first_job_in_order_is_streamed() {
    let dir = temp_dir();
    let mut live = Run::start(&shell("-k -j3", &patient(dir.path()), &["a", "b", "c", "d"]));
    live.wait_until("first bytes", out("begin a"));
    // Others end first, and wait.
    let_go(dir.path(), "b");
    let_go(dir.path(), "d");
    live.read_for(std::time::Duration::from_millis(100));
    assert_eq!(live.record().outs[0], b"begin a");
    let_go(dir.path(), "a");
    // The third gets the stage in the middle of its life.
    live.wait_until("the third", out("begin a end a\nbegin b end b\nbegin c"));
    live.wait_until("its errors", |record| record.outs[1] == b"err aerr berr c");
    let_go(dir.path(), "c");
    assert_eq!(
        live.wait().exit_code(0).text(),
        "begin a end a\nbegin b end b\nbegin c end c\nbegin d end d\n"
    );
}

#[test]
fn spilled_job_is_streamed_when_it_becomes_first() {
    let dir = temp_dir();
    for flags in ["-k -j2", "-k -j2 --no-record", "-k -j2 --tag --buffer 64k", "-k -j3 --buffer 64k"] {
        let line = format!(
            "case {{}} in a) CHILD await {0}/ready x; CHILD await {0}/a a;; b) CHILD spew 3000000; \
                CHILD spew 900000 >&2; CHILD touch {0}/ready 0; CHILD await {0}/b b;; *) echo {{}};; esac",
            path(dir.path())
        );
        let mut live = Run::start(&shell(flags, &line, &["a", "b", "c"]));
        live.wait_until("the first", |record| record.outs[0].ends_with(b"x\n"));
        let_go(dir.path(), "a");
        live.wait_until("what was kept of the second", |record| {
            record.outs[0].len() >= 3_000_004 && record.outs[1].len() >= 900_000
        });
        let_go(dir.path(), "b");
        let ended = live.wait().exit_code(0);
        let lens = if flags.contains("--tag") { (3_000_016, 900_002) } else { (3_000_008, 900_000) };
        assert_eq!((ended.out.len(), ended.errors.len()), lens, "{flags}");
        assert!(ended.text().ends_with("c\n"));
        ["a", "b", "ready"]
            .into_iter()
            .for_each(|name| std::fs::remove_file(dir.path().join(name)).expect("remove file"));
    }
}

#[test]
fn line_buffered_jobs_stream_whole_lines() {
    let dir = temp_dir();
    let line = format!(
        "echo whole {{}}; printf 'half {{}}'; CHILD await {}/{{}} ' of {{}}'; CHILD await {0}/end over",
        path(dir.path())
    );
    let mut live = Run::start(&shell("--lb -j3", &line, &["a", "b", "c"]));
    live.wait_until("whole lines", |record| record.outs[0].len() == 3 * "whole a\n".len());
    let_go(dir.path(), "b");
    live.wait_until("the line of b", |record| record.outs[0].ends_with(b"half b of b\n"));
    assert!(!super::super::text(&live.record().outs[0]).contains("half a"));
    for name in ["a", "c", "end"] {
        let_go(dir.path(), name);
    }
    let ended = live.wait().exit_code(0);
    assert_eq!(ended.text().lines().filter(|line| line.starts_with("half")).count(), 3);
}

#[test]
fn pending_input_does_not_mix_streams() {
    // While lines may still come, the only running job may be followed by others at any moment: nothing
    // is mixed.
    let mut command = minder("run -j4");
    let mut live = Run::start(
        super::super::with_script(&mut command, "CHILD spew {}; echo").stdin(minder::Stdio::piped()),
    );
    live.write(b"300000\n");
    live.wait_until("the first job's output", |record| record.outs[0].len() == 300_001);
    live.write(b"200000\n3\n");
    live.wait_until("the next", |record| record.outs[0].len() == 500_006);
    live.close();
    live.wait().exit_code(0);
}

//! Lines that are longer than the memory for them: whole, and never a reason to wait forever.

use super::{Run, Text, compare, file, path, shell, temp_dir, untangle};

const MIB: usize = 1 << 20;

fn long(many: usize, longest: usize, out: usize, err: usize) -> Vec<Text> {
    // Under Wine, all of it takes many times as long.
    let [out, err] = if cfg!(windows) { [out, err].map(|len| len.min(200_000)) } else { [out, err] };
    (0..many).map(|id| Text { id, lens: [out, err], longest, code: 0 }).collect()
}

#[test]
fn line_of_megabytes_is_complete() {
    for flags in ["--lb -j1", "--lb -j3", "--lb --tag -j3"] {
        compare(flags, &long(4, 6 * MIB, 5 * MIB, 2 * MIB));
    }
}

#[test]
fn many_long_lines_in_little_memory_are_complete() {
    for flags in
        ["--lb -j16 --buffer 64k", "--lb --tag -j16 --buffer 64k", "--lb -j16 --no-record --buffer 64k"]
    {
        compare(flags, &long(16, 600_000, 700_000, 300_000));
    }
}

#[test]
fn lines_through_one_pipe_are_complete() {
    use std::io::Read;
    // Both streams into one pipe: a job's own stderr does not tear its stdout, nor another's.
    let jobs = long(6, 100, 60_000, 0);
    let (mut reader, writer) = super::pipe();
    let mut command = super::minder("run --lb -j3 CHILD text");
    let both = minder::Stdio::from(writer);
    let live = Run::start(
        command.stdin(super::input(&super::feed(&jobs))).stdout(both.clone()).stderr(both.clone()),
    );
    drop((command, both));
    let mut all = Vec::new();
    reader.read_to_end(&mut all).expect("read to end");
    live.wait().exit_code(0);
    untangle(&all, 0, &jobs, false);
}

#[test]
fn output_waiting_behind_a_long_line_is_complete() {
    // One has the screen with a line without an end; the others write more than fits, and end, long
    // before it does.
    let dir = temp_dir();
    let [begun, wait] = ["begun", "wait"].map(|name| dir.path().join(name));
    let line = format!(
        "case {{}} in long) CHILD spew 3000000; CHILD touch {0} 0; CHILD await {1} end;; \
         *) CHILD await {0} x; CHILD spew 200000; echo; echo {{}}; CHILD touch {2}/{{}} 0;; esac",
        path(&begun),
        path(&wait),
        path(dir.path())
    );
    for flags in ["--lb -j4", "--lb -j4 --buffer 64k"] {
        let mut live = Run::start(&shell(flags, &line, &["long", "a", "b", "c"]));
        live.wait_until("the long line", |record| record.outs[0].len() >= 3_000_000);
        // More than the time after which a silent output is taken for a leak.
        live.read_for(std::time::Duration::from_millis(400));
        assert_eq!(live.record().outs[0].len(), 3_000_000, "another wrote into a long line");
        std::fs::write(&wait, "").expect("write file");
        let ended = live.wait().exit_code(0).stderr("");
        let text = ended.text();
        assert_eq!(ended.out.len(), 3_000_004 + 3 * 200_005, "{flags}");
        assert!(text[3_000_000..].starts_with("end\n"));
        assert_eq!(text.lines().filter(|line| ["a", "b", "c"].contains(line)).count(), 3);
        std::fs::remove_file(&wait).expect("remove file");
        std::fs::remove_file(&begun).expect("remove file");
    }
    assert_eq!(file(&begun), "");
}

#[test]
fn finished_jobs_are_shown_after_a_long_line_ends() {
    let dir = temp_dir();
    let [begun, line_end, wait] = ["begun", "line_end", "wait"].map(|name| dir.path().join(name));
    let line = format!(
        "case {{}} in long) CHILD spew 3000000; CHILD touch {0} 0; CHILD await {1} end; \
         exec CHILD await {2} over;; *) CHILD await {0} x >&2; CHILD raw {{}};; esac",
        path(&begun),
        path(&line_end),
        path(&wait)
    );
    // In this loop and in the other.
    for args in [["long", "short", "brief"], ["short", "long", "brief"]] {
        let mut live = Run::start(&shell("--lb -j3", &line, &args));
        live.wait_until("the long line", |record| record.outs[0].len() >= 3_000_000);
        live.read_for(std::time::Duration::from_millis(300));
        std::fs::write(&line_end, "").expect("write file");
        let has = |part: &'static str| {
            move |record: &crate::support::ChildLog| super::super::text(&record.outs[0]).contains(part)
        };
        live.wait_until("output of a short job", has("short"));
        live.wait_until("output of a brief job", has("brief"));
        assert!(!super::super::text(&live.record().outs[0]).contains("over"));
        std::fs::write(&wait, "").expect("write file");
        live.wait().exit_code(0);
        [&begun, &line_end, &wait]
            .into_iter()
            .for_each(|path| std::fs::remove_file(path).expect("remove file"));
    }
}

#[test]
fn jobs_held_by_an_unfinished_line_continue() {
    // The line never ends, its job does; the others are held by then, in this loop and in the other.
    let dir = temp_dir();
    let [begun, wait, rest] = ["begun", "wait", "rest"].map(|name| dir.path().join(name));
    let line = format!(
        "case {{}} in long) CHILD spew 3000000; CHILD touch {0} 0; CHILD await {1} x >&2;; \
         *) CHILD await {0} x >&2; CHILD lines LINES 0; CHILD await {2} x >&2;; esac",
        path(&begun),
        path(&wait),
        path(&rest)
    );
    // Under Wine, a write takes many times as long.
    let lines = if cfg!(windows) { 8000 } else { 50_000 };
    let len = 3_000_000 + (0..lines).map(|number| format!("line {number}\n").len()).sum::<usize>() * 3;
    let line = line.replace("LINES", &lines.to_string());
    for args in [["long", "x", "y", "z"], ["x", "long", "y", "z"], ["x", "y", "long", "z"]] {
        let mut live = Run::start(&shell("--lb -j4 --buffer 64k", &line, &args));
        live.wait_until("the long line", |record| record.outs[0].len() >= 3_000_000);
        live.read_for(std::time::Duration::from_millis(200));
        std::fs::write(&wait, "").expect("write file");
        live.wait_until("the lines of the others", |record| record.outs[0].len() == len);
        std::fs::write(&rest, "").expect("write file");
        live.wait().exit_code(0);
        for path in [&begun, &wait, &rest] {
            std::fs::remove_file(path).expect("remove file");
        }
    }
}

#[test]
fn unfinished_long_line_is_ended_with_its_job() {
    let line = "case {} in long) CHILD spew 3000000;; *) echo {};; esac";
    let ended = Run::start(&shell("--lb -j2", line, &["long", "a", "b", "c", "d"])).wait().exit_code(0);
    assert_eq!(ended.out.len(), 3_000_008);
}

#[test]
fn long_lines_on_both_streams_are_complete() {
    let line = "CHILD both 2000000 50000; echo; echo >&2; echo {}";
    let ended =
        Run::start(&shell("--lb -j3 --buffer 64k", line, &["1", "2", "3", "4", "5"])).wait().exit_code(0);
    let mut ids: Vec<_> = ended.text().lines().filter(|line| line.len() == 1).map(str::to_owned).collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "3", "4", "5"]);
    for bytes in [&ended.out, &ended.errors] {
        let long = crate::support::patterned(2_000_000);
        assert_eq!(bytes.split(|byte| *byte == b'\n').filter(|line| *line == long).count(), 5);
    }
}

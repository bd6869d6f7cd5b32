//! Runs whose input is cut into blocks: a resumed run skips the bytes that finished jobs read, and
//! no others.

use std::fs::{self, File};
use std::path::PathBuf;

use crate::cli::record::Place;
use crate::cli::{Run, RunOutput, input, with_script};
use minder::{Command, Stdio};

/// The source of a run's input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum InputKind {
    /// It comes through a pipe, and is given again to a resumed run.
    Pipe,
    /// A file is standard input.
    Redirected,
    /// A file is named by `-a`.
    Named,
}

use InputKind::{Named, Pipe, Redirected};

/// Runs with the same input, with their own records.
struct Blocks {
    place: Place,
    bytes: Vec<u8>,
    kind: InputKind,
}

impl Blocks {
    fn new(bytes: impl Into<Vec<u8>>, kind: InputKind) -> Self {
        let blocks = Self { place: Place::new(), bytes: bytes.into(), kind };
        fs::write(blocks.file(), &blocks.bytes).expect("write file");
        blocks
    }

    fn file(&self) -> PathBuf {
        self.place.at("here/in")
    }

    /// Runs a new run with these flags and this command to its end.
    fn run(&self, flags: &str, command: &str) -> RunOutput {
        let name = if self.kind == Named { "-a in" } else { "" };
        let mut minder = self.place.command(&format!("run {flags} {name}"));
        if self.kind == Redirected {
            minder.stdin(File::open(self.file()).expect("open file"));
        }
        self.wait(with_script(&mut minder, command))
    }

    /// Resumes the newest run, or the run of a joblog.
    fn resume(&self, flags: &str) -> RunOutput {
        self.wait(&mut self.place.command(&format!("run {flags}")))
    }

    fn wait(&self, minder: &mut Command) -> RunOutput {
        if self.kind != Pipe {
            return Run::start(minder).wait();
        }
        let mut live = Run::start(minder.stdin(Stdio::piped()));
        live.write(&self.bytes);
        live.close();
        live.wait()
    }
}

fn seq(last: usize) -> String {
    (1..=last).map(|number| format!("{number}\n")).collect()
}

/// Lines with few values in the first column, of various lengths.
fn table() -> String {
    (1..=60).map(|row| format!("{}\t{}\n", row / 7, "x".repeat(row * row % 23))).collect()
}

/// Stops a run after some jobs, resumes it, and compares the output of both attempts with that of
/// an uninterrupted run.
fn check_split(flags: &str, kind: InputKind) {
    let command = if flags.contains("--cat") || flags.contains("--fifo") { "cat {}" } else { "cat" };
    let blocks = Blocks::new(table(), kind);
    // A negative `--block` depends on the number of slots of the first attempt.
    let whole = blocks.run(&format!("--no-record -k -j1 {flags}"), command).exit_code(0).text();
    for jobs in [1, 3] {
        let first = blocks.run(&format!("-k -j1 --halt soon,done={jobs} {flags}"), command).text();
        assert!(first.len() < whole.len(), "{flags}, {kind:?}: the first attempt left no job");
        let rest = blocks.resume("-j2 --halt never --resume last").exit_code(0).text();
        assert_eq!(first + &rest, whole, "{flags}, {kind:?}, stopped after {jobs}");
    }
}

const CUTS: [&str; 14] = [
    "--block 50",
    "--block 50 --header :",
    "--block 50 --skip-first-line",
    "--block 50 --recend x\\n",
    "--block 50 --recstart \\t",
    "--block 50 --regexp --recend [xy]\\n",
    "--group-by 1 --block 50",
    "--block 40 -r --recend \\t",
    "--block 50 --remove-rec-sep",
    "-N 7",
    "-N 7 --remove-rec-sep",
    "-L 7",
    "-N 7 --cat",
    "-N 7 --fifo",
];

#[test]
fn resumed_pipe_skips_exactly_the_finished_blocks_of_a_pipe() {
    CUTS.iter().for_each(|flags| check_split(&format!("--pipe {flags}"), Pipe));
}

#[test]
fn resumed_pipe_skips_exactly_the_finished_blocks_of_redirected_stdin() {
    CUTS.iter().for_each(|flags| check_split(&format!("--pipe {flags}"), Redirected));
}

#[test]
fn resumed_pipe_skips_exactly_the_finished_blocks_of_a_named_file() {
    CUTS.iter().for_each(|flags| check_split(&format!("--pipe {flags}"), Named));
}

#[test]
fn resumed_pipe_part_skips_exactly_the_finished_blocks() {
    for flags in CUTS.iter().filter(|flags| flags.contains("--block") && !flags.contains("--remove")) {
        check_split(&format!("--pipe-part {flags}"), Named);
    }
    check_split("--pipe-part --block -5", Named);
    check_split("--pipe-part --block -5 --header : -a in", Named);
}

#[test]
fn killed_pipe_resumes_after_the_recorded_blocks_of_a_large_file() {
    let blocks = Blocks::new(seq(500_000), Redirected);
    // The second job kills the runner when the first one is recorded.
    let wait = "until grep -q ended ../state/runs/*/attempt-1.jsonl; do :; done";
    let command = format!("cat >part{{#}}; test {{#}} = 1 -o -e go || {{ {wait}; kill -9 $PPID; }}");
    blocks.run("-j1 --pipe", &command).killed();
    fs::write(blocks.place.at("here/go"), "").expect("write file");
    blocks.resume("--resume last").exit_code(0);
    let part = |number| fs::read(blocks.place.at(&format!("here/part{number}"))).ok();
    let parts: Vec<Vec<u8>> = (1..).map_while(part).collect();
    assert!(parts.len() > 3, "{} blocks", parts.len());
    assert!(parts.concat() == blocks.bytes, "the blocks are not the input");
}

#[test]
fn named_files_are_read_one_after_the_other_with_pipe() {
    let blocks = Blocks::new(seq(10), Named);
    fs::write(blocks.place.at("here/more"), seq(5)).expect("write file");
    let flags = "-k -j1 --pipe -N 4 --header 1 -a more";
    let ended = blocks.run(flags, "paste -sd,").exit_code(0);
    assert_eq!(ended.text(), "1,2,3,4,5\n1,2,3,4,5\n1,6,7,8,9\n1,10\n");
    blocks.run(&format!("{flags} --halt soon,done=2"), "paste -sd,");
    let rest = blocks.resume("--halt never --resume last").exit_code(0);
    assert_eq!(rest.text(), "1,6,7,8,9\n1,10\n");
}

#[test]
fn standard_input_is_read_with_named_files() {
    let blocks = Blocks::new(seq(3), Pipe);
    fs::write(blocks.place.at("here/more"), "a\nb\n").expect("write file");
    assert_eq!(blocks.run("-k --pipe -a more -a -", "cat").exit_code(0).text(), "a\nb\n1\n2\n3\n");
}

#[test]
fn resume_rejects_block_timeout() {
    let blocks = Blocks::new(seq(20), Pipe);
    blocks.run("-j1 --halt soon,done=1 --pipe -N 5 --block-timeout 9", "cat");
    let refused = blocks.resume("--halt never --resume last").exit_code(255);
    assert_eq!(refused.error_line(&["--block-timeout", "cannot resume"]).text(), "");
}

#[test]
fn resume_of_shards_requires_the_same_number_of_slots() {
    for flags in ["--shard 1", "--bin 1", "--shard 1 --fifo"] {
        let blocks = Blocks::new(seq(20), Pipe);
        let file = if flags.contains("--fifo") { "{}" } else { "" };
        let command = format!("cat {file}; test {{#}} = 1 -o -e fixed");
        let first = blocks.run(&format!("--pipe -j2 --joblog log {flags}"), &command).exit_code(1).text();
        fs::write(blocks.place.at("here/fixed"), "").expect("write file");
        for again in ["--resume-failed -j3 last", "--resume -j1 last", "--retry-failed -j3 last"] {
            let refused = blocks.resume(again).exit_code(255).stderr_contains("resume the run with -j2");
            assert_eq!(refused.text(), "", "{flags}: {again}");
        }
        let by_joblog = format!("--pipe -j3 --joblog log --resume-failed {flags}");
        blocks.run(&by_joblog, &command).exit_code(255).error_line(&["-j2"]);
        let second = blocks.resume("--resume-failed last").exit_code(0).text();
        assert!(second.lines().all(|line| first.lines().any(|known| known == line)), "{flags}: {second}");
        let mut lines: Vec<u32> = first.lines().map(|line| line.parse().expect("parse number")).collect();
        lines.sort_unstable();
        assert_eq!(lines, (1..=20).collect::<Vec<_>>(), "{flags}");
    }
}

#[test]
fn resume_of_shards_by_a_joblog_alone_is_rejected() {
    let blocks = Blocks::new(seq(20), Pipe);
    blocks.run("--no-record --pipe -j2 --joblog log --shard 1", "cat").exit_code(0);
    let again = blocks.run("--no-record --pipe -j2 --joblog log --resume --shard 1", "cat");
    again.exit_code(255).error_line(&["--shard", "no record"]);
}

#[test]
fn resume_rejects_flags_that_cut_the_input_otherwise() {
    let blocks = Blocks::new(seq(20), Named);
    blocks.run("-j1 --halt soon,done=2 --pipe-part --block 10", "cat");
    let flags = ["--block 20", "--block -2", "--header :", "--recend 1", "--pipe --group-by 1", "--shard 1"];
    for flag in flags {
        let refused = blocks.resume(&format!("--halt never --resume {flag} last")).exit_code(255);
        assert_eq!(refused.error_line(&["another `--"]).text(), "", "{flag}");
    }
    let rest = blocks.resume("--halt never --block 10 --resume last").exit_code(0);
    assert_eq!(rest.text(), seq(20).split_at(24).1);
}

#[test]
fn resume_by_joblog_compares_recorded_blocks() {
    let blocks = Blocks::new(seq(20), Pipe);
    blocks.run("-j1 --halt soon,done=1 --joblog log --pipe -N 5", "cat");
    let refused = blocks.run("--joblog log --resume --pipe -N 7", "cat").exit_code(255);
    assert_eq!(refused.error_line(&["block 1 of the input has changed"]).text(), "");
    let rest = blocks.run("-k --joblog log --resume --pipe -N 5", "cat").exit_code(0);
    assert_eq!(rest.text(), seq(20).split_at(10).1);
}

#[test]
fn block_that_reaches_into_a_finished_one_does_not_run() {
    let blocks = Blocks::new(seq(20), Pipe);
    blocks.run("-j1 --joblog log --pipe -N 5", "cat").exit_code(0);
    let log = blocks.place.at("here/log");
    let rows = fs::read_to_string(&log).expect("read joblog");
    let without_first: String = rows.split_inclusive('\n').filter(|row| !row.starts_with("1\t")).collect();
    fs::write(&log, without_first).expect("write joblog");
    let refused = blocks.run("--joblog log --resume --pipe -N 7", "cat").exit_code(255);
    let refused = refused.error_line(&["it ends at offset 14, and block 2 started at 10"]);
    assert_eq!(refused.text(), "");
    let rest = blocks.run("--joblog log --resume --pipe -N 5", "cat").exit_code(0);
    assert_eq!(rest.text(), seq(5));
}

#[test]
fn negative_block_keeps_its_size_with_another_number_of_slots() {
    let blocks = Blocks::new(seq(1000), Named);
    let mut all = blocks.run("-j2 --halt soon,done=1 --pipe-part --block -2", "cat").out;
    all.extend(blocks.resume("-j5 --halt never --resume last").exit_code(0).out);
    let mut lines: Vec<u32> =
        String::from_utf8_lossy(&all).lines().map(|line| line.parse().expect("parse number")).collect();
    lines.sort_unstable();
    assert_eq!(lines, (1..=1000).collect::<Vec<_>>());
}

#[test]
fn files_of_blocks_are_not_compared() {
    for delivery in ["--cat", "--fifo"] {
        let blocks = Blocks::new(seq(20), Pipe);
        let flags = format!("-k -j1 --joblog log --pipe -N 5 {delivery}");
        for by_id in [true, false] {
            blocks.run(&format!("{flags} --halt soon,done=1"), "cat {}");
            let rest = if by_id {
                blocks.resume("--halt never --resume last")
            } else {
                blocks.run(&format!("{flags} --resume"), "cat {}")
            };
            assert_eq!(rest.exit_code(0).text(), seq(20).split_at(10).1, "{delivery}, by its id: {by_id}");
        }
    }
}

#[test]
fn redirected_file_is_recorded_before_its_first_line_is_read() {
    for flag in ["--header :", "--skip-first-line"] {
        let blocks = Blocks::new(seq(6), Redirected);
        let first = blocks.run(&format!("-j1 --halt soon,done=2 {flag}"), "echo {}").text();
        let rest = blocks.resume("--halt never --resume last").exit_code(0).text();
        assert_eq!([first, rest].concat(), "2\n3\n4\n5\n6\n", "{flag}");
    }
}

/// Old versions recorded no slots and no blocks, and cut a named file into ranges with `--pipe`,
/// too.
#[test]
fn runs_of_old_versions_are_cut_as_before() {
    let blocks = Blocks::new(seq(20), Named);
    let first = blocks.run("-j1 --halt soon,done=1 --pipe-part --block 10", "cat").text();
    let manifest = blocks.place.run().join("manifest.json");
    let text = fs::read_to_string(&manifest).expect("read manifest");
    assert!(text.contains("\"slots\"") && text.contains("--pipe-part"), "{text}");
    let old = text.replace("\"slots\"", "\"unknown\"").replace("--pipe-part", "--pipe");
    fs::write(&manifest, old).expect("write manifest");
    let rest = blocks.resume("--halt never --resume last").exit_code(0).text();
    assert_eq!([first, rest].concat(), seq(20));
}

#[test]
fn changed_contents_of_a_block_are_rejected() {
    for (flags, number) in [("-N 5", 2), ("-N 5 --header 1", 1)] {
        let blocks = Blocks::new(seq(20), Pipe);
        blocks.run(&format!("-j1 --halt soon,done=2 --joblog log --pipe {flags}"), "cat");
        // The offsets and lengths stay as they are.
        let changed = if number == 1 { seq(20).replacen('1', "9", 1) } else { seq(20).replace('7', "8") };
        for line in [
            "run --halt never --resume last".to_owned(),
            format!("run --joblog log --resume --pipe {flags} cat"),
        ] {
            let mut command = blocks.place.command(&line);
            let refused = Run::start(command.stdin(input(changed.as_bytes()))).wait().exit_code(255);
            let said = format!("block {number} of the input has changed: the contents of its ");
            assert_eq!(refused.stderr_contains(&said).text(), "", "{line}");
        }
        blocks.resume("--halt never --resume last").exit_code(0);
    }
}

#[test]
fn changed_file_of_ranges_is_rejected_with_a_joblog() {
    let blocks = Blocks::new(seq(20), Named);
    let flags = "--joblog log --pipe-part --block 10";
    blocks.run(&format!("-j1 --halt soon,done=2 {flags}"), "cat");
    let file = blocks.place.at("here/in");
    fs::write(&file, seq(20).replace('7', "8")).expect("write file");
    let refused = blocks.run(&format!("--resume {flags}"), "cat").exit_code(255);
    assert_eq!(refused.error_line(&["here/in` was changed since the run began"]).text(), "");
}

#[test]
fn changed_block_of_a_pipe_is_rejected() {
    let blocks = Blocks::new(seq(20), Pipe);
    blocks.run("-j1 --halt soon,done=2 --pipe -N 5", "cat");
    let mut command = blocks.place.command("run --halt never --resume last");
    let refused = Run::start(command.stdin(input(seq(30).replace('3', "33").as_bytes()))).wait();
    let refused = refused.exit_code(255).stderr_contains("block 1 of the input has changed");
    assert_eq!(refused.text(), "");
}

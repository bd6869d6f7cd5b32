//! Ways to see the output of jobs, each against the same promises: every byte, no line torn,
//! nothing waits forever.

#[path = "../../bin/text.rs"]
mod text;
mod bytes;
mod long_lines;
mod order;
mod live;
mod stdout_targets;
mod results;
mod tables;
mod results_files;
mod buffered_output;
mod options;
mod times;
mod job_lines;

use std::fs;

#[cfg(unix)]
use super::is_root;
use super::{Run, RunOutput, file, input, minder, path, pipe, run_to_end, run_with_input, temp_dir};

/// The arguments of test_child's `text`, and so its output.
#[derive(Clone, Copy, Debug)]
struct Text {
    id: usize,
    lens: [usize; 2],
    longest: usize,
    code: usize,
}

impl Text {
    fn word(&self) -> String {
        let Self { id, lens: [out, err], longest, code } = self;
        format!("{id},{out},{err},{longest},{code}")
    }

    fn lines(&self, stream: usize) -> Vec<Vec<u8>> {
        text::lines(self.id, stream, self.lens[stream], self.longest)
    }
}

/// Some jobs of all sizes, numbered from 0.
fn texts(many: usize, longest: usize, most: usize) -> Vec<Text> {
    // Under Wine, all of it takes many times as long.
    let (many, most) = if cfg!(windows) { (many.min(7), most.min(200_000)) } else { (many, most) };
    let sizes = [0, 1, 300, 70_000, 300_000, 1_200_000, most];
    let size = |at: usize| sizes[at % sizes.len()].min(most);
    let lens = |id: usize| [size(id * 5 + 6), size(id * 3 + id / 7)];
    (0..many).map(|id| Text { id, lens: lens(id), longest, code: 0 }).collect()
}

/// Words of the jobs, as lines of input.
fn feed(jobs: &[Text]) -> Vec<u8> {
    jobs.iter().flat_map(|job| (job.word() + "\n").into_bytes()).collect()
}

/// Takes a stream apart that has lines of these jobs in any order; fails where a line is torn or a
/// job's bytes are not its bytes, in their order. Gives the numbers of the jobs as their lines
/// come, without repetition side by side.
#[track_caller]
fn untangle(all: &[u8], stream: usize, jobs: &[Text], tagged: bool) -> Vec<usize> {
    let mut lines: Vec<_> = jobs.iter().map(|job| job.lines(stream).into_iter()).collect();
    let mut rest = all;
    let mut order = Vec::new();
    while !rest.is_empty() {
        let tag = if tagged { rest.iter().position(|byte| *byte == b'\t').expect("find tag") + 1 } else { 0 };
        let body = &rest[tag..];
        let beginning = String::from_utf8_lossy(&body[..body.len().min(60)]);
        let id: Option<usize> =
            beginning.strip_prefix('\u{1}').and_then(|text| text.split(' ').next()?.parse().ok());
        let id = id.unwrap_or_else(|| {
            panic!(
                "torn after {} bytes: {:?}",
                all.len() - rest.len(),
                String::from_utf8_lossy(&body[..body.len().min(900)])
            )
        });
        if tagged {
            assert_eq!(String::from_utf8_lossy(&rest[..tag - 1]), jobs[id].word(), "another's tag");
        }
        let line = lines[id].next().unwrap_or_else(|| panic!("more of {id} than it wrote: {beginning:?}"));
        assert!(
            body.starts_with(&line),
            "{id} is torn after {} bytes: {beginning:?}",
            all.len() - rest.len()
        );
        rest = &body[line.len()..];
        if tagged && !line.ends_with(b"\n") && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").expect("find line break before the next tag");
        }
        if order.last() != Some(&id) {
            order.push(id);
        }
    }
    for (id, left) in lines.iter_mut().enumerate() {
        assert_eq!(left.count(), 0, "lines of {id} are missing");
    }
    order
}

/// Runs these jobs under these flags and looks at every byte; gives the order of the jobs on
/// standard output.
#[track_caller]
fn compare(flags: &str, jobs: &[Text]) -> Vec<usize> {
    let ended = run_with_input(&format!("run {flags} CHILD text"), &feed(jobs)).exit_code(0);
    let tagged = flags.contains("--tag");
    untangle(&ended.errors, 1, jobs, tagged);
    untangle(&ended.out, 0, jobs, tagged)
}

/// `minder` with these flags and this shell line, in which `CHILD` stands for test_child, for these
/// arguments.
fn shell(flags: &str, line: &str, args: &[&str]) -> minder::Command {
    let mut command = minder(&format!("run {flags}"));
    super::with_script(&mut command, line).arg(":::").args(args);
    command
}

/// Returns whether this platform supports these flags. `--pty` is not available on Windows.
fn is_known(flags: &str) -> bool {
    cfg!(unix) || !flags.contains("--pty")
}

/// Returns how many files are below a directory.
fn files(dir: &std::path::Path) -> usize {
    fs::read_dir(dir)
        .expect("list directory")
        .flatten()
        .map(|item| if item.file_type().is_ok_and(|it| it.is_dir()) { files(&item.path()) } else { 1 })
        .sum()
}

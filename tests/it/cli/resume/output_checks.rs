//! Checks the output of the attempts at a run of test_child's `work` jobs: whole or torn, once or
//! twice, in order or not.
//!
//! Every line names its job and its number and has the same length, so that any stream can be taken
//! apart.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::text;

/// The length of a line, with its end.
const WIDTH: usize = 64;

/// Returns how many lines test_child's `work` writes for this job.
pub(super) fn lines_of(seed: usize, job: usize) -> usize {
    let hash = (job * 1_000_003 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (hash / 8) % [1, 64, 64, 64, 64, 64, 2048, 16_384][hash % 8]
}

fn line(job: usize, number: usize) -> Vec<u8> {
    format!("{job:06} {number:06} {:>49}\n", number ^ job).into_bytes()
}

/// Returns what `work` writes to its stdout.
pub(super) fn work(seed: usize, job: usize) -> Vec<u8> {
    (0..lines_of(seed, job)).flat_map(|number| line(job, number)).collect()
}

/// Returns the job and the number of a line of `work`, or `None` for other lines.
fn known(bytes: &[u8]) -> Option<(usize, usize)> {
    let text = str::from_utf8(bytes).ok()?;
    let job = text.get(..6)?.parse().ok()?;
    let number = text.get(7..13)?.parse().ok()?;
    (line(job, number) == bytes).then_some((job, number))
}

/// One attempt of the runner: its output, and whether it was killed.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) out: Vec<u8>,
    pub(super) err: String,
    pub(super) killed: bool,
    /// Jobs that it asked to end itself, after a request to end: their output is there,
    /// and may be torn.
    pub(super) cut: BTreeSet<usize>,
}

/// The form in which a run shows its jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) tagged: bool,
    pub(super) merged: bool,
    /// Lines of different jobs are mixed.
    pub(super) mixed: bool,
    pub(super) ordered: bool,
}

impl Look {
    pub(super) fn of(flags: &str) -> Self {
        let has = |flag: &str| flags.split(' ').any(|word| word == flag);
        Self { tagged: has("--tag"), merged: has("--pty"), mixed: has("--lb"), ordered: has("-k") }
    }
}

/// The whole lines of one attempt, in order.
#[derive(Debug, Default)]
struct Lines {
    found: Vec<(usize, usize)>,
    /// Jobs whose last line, to stderr, came merged with the others.
    ended: Vec<usize>,
    /// The bytes behind the last newline.
    torn: Vec<u8>,
}

impl Lines {
    fn of(shown: &Shown, look: Look, before: Option<&Lines>) -> Self {
        let mut lines = Self::default();
        for (place, piece) in shown.out.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let Some(rest) = piece.strip_suffix(b"\n") else {
                assert!(
                    shown.killed || !shown.cut.is_empty(),
                    "torn at the end of an attempt that ended by itself: {:?}",
                    text(piece)
                );
                lines.torn = piece.to_vec();
                break;
            };
            let rest = if look.merged { rest.strip_suffix(b"\r").unwrap_or(rest) } else { rest };
            let (tag, rest) = match rest.iter().position(|byte| *byte == b'\t') {
                Some(tab) if look.tagged => (Some(text(&rest[..tab])), &rest[tab + 1..]),
                _ => (None, rest),
            };
            let whole = [rest, b"\n"].concat();
            if let Some((job, number)) = known(&whole) {
                assert!(tag.is_none_or(|tag| tag == job.to_string()), "job {job} has another's tag");
                lines.found.push((job, number));
            } else if look.merged
                && let Some(job) = rest.strip_prefix(b"err ")
            {
                lines.ended.push(text(job).parse().expect("parse number"));
            } else if !shown.cut.is_empty()
                && let Some(last) = whole.len().checked_sub(WIDTH)
            {
                // The line begins with the part of another line that was cut off.
                lines.found.push(known(&whole[last..]).unwrap_or_else(|| panic!("torn: {:?}", text(&whole))));
            } else if look.tagged && !shown.cut.is_empty() && whole.len() < WIDTH {
                // The first part of a line that was cut off, which was ended before the next tag.
            } else {
                // The attempt before was killed after it had shown the first part of this line.
                assert!(place == 0 && whole.len() < WIDTH, "torn: line {place}, {:?}", text(&whole));
                let before = before.unwrap_or_else(|| panic!("torn: line {place}, {:?}", text(&whole)));
                let from = before.torn.as_slice();
                let missing = WIDTH - whole.len();
                let from = from.iter().position(|byte| *byte == b'\t').map_or(from, |tab| &from[tab + 1..]);
                lines.found.extend(from.get(..missing).and_then(|head| known(&[head, &whole].concat())));
            }
        }
        lines
    }

    /// Fails unless the lines of each job are contiguous and complete. The last job of a killed
    /// attempt may lack its end, and the first job of a resumed attempt its beginning.
    fn check_grouped(&self, seed: usize, shown: &Shown, first: bool, ordered: bool) {
        let runs: Vec<&[(usize, usize)]> = self.found.chunk_by(|a, b| a.0 == b.0 && a.1 + 1 == b.1).collect();
        for (place, run) in runs.iter().enumerate() {
            let (job, from) = run[0];
            let (_, to) = run[run.len() - 1];
            let cut = shown.cut.contains(&job) || (shown.killed && place + 1 == runs.len());
            let taken_up = !first && place == 0;
            assert!(from == 0 || taken_up, "job {job} begins with line {from}");
            assert!(to + 1 == lines_of(seed, job) || cut, "job {job} ends with line {to}");
        }
        let order: Vec<usize> = runs.iter().map(|run| run[0].0).collect();
        assert!(!ordered || order.is_sorted(), "not in order: {order:?}");
    }

    fn check_mixed(&self) {
        let mut last = BTreeMap::new();
        for &(job, number) in &self.found {
            let before = last.insert(job, number);
            assert!(before.is_none_or(|before| before < number), "job {job}: line {number} after {before:?}");
        }
    }
}

/// Fails unless the output of every job is complete. At most `twice_max` jobs may have output in
/// more than one attempt.
pub(super) fn check(attempts: &[Shown], look: Look, seed: usize, jobs: &BTreeSet<usize>, twice_max: usize) {
    let mut all: Vec<Lines> = Vec::new();
    for shown in attempts {
        let lines = Lines::of(shown, look, all.last());
        if look.mixed {
            lines.check_mixed();
        } else {
            lines.check_grouped(seed, shown, all.is_empty(), look.ordered);
        }
        all.push(lines);
    }
    let mut covered: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut seen_in: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (attempt, lines) in all.iter().enumerate() {
        for &(job, number) in &lines.found {
            covered.entry(job).or_default().insert(number);
            seen_in.entry(job).or_default().insert(attempt);
        }
    }
    for &job in jobs {
        let there = covered.get(&job).map_or(0, BTreeSet::len);
        let wanted = lines_of(seed, job);
        assert_eq!(there, wanted, "lines of job {job}");
        let name = format!("err {job:06}\n");
        let is_shown = attempts.iter().any(|shown| shown.err.contains(&name))
            || all.iter().any(|lines| lines.ended.contains(&job));
        assert!(is_shown, "the stderr of job {job} is lost");
    }
    let twice: Vec<&usize> = seen_in.iter().filter(|(_, seen)| seen.len() > 1).map(|(job, _)| job).collect();
    assert!(twice.len() <= twice_max, "{} jobs were seen twice, not {twice_max}: {twice:?}", twice.len());
}

//! Small file systems in memory, that fill up. Only root may make them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use minder::Stdio;

use super::Place;
use crate::cli::{Run, file, is_root, job_bytes, path, text};
use crate::support::CHILD;

/// A file system that is unmounted when this is dropped.
pub(super) struct Disk(PathBuf);

fn tool(words: &str) -> bool {
    let mut words = words.split(' ');
    let mut command = minder::Command::new(words.next().expect("take program"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().and_then(|mut child| child.wait()).is_ok_and(|exit| exit.status.success())
}

impl Disk {
    /// None, with a word about it, where that is not allowed.
    pub(super) fn mount(at: &Path, bytes: usize) -> Option<Self> {
        fs::create_dir_all(at).expect("create directory");
        if is_root() && tool(&format!("mount -t tmpfs -o size={bytes},mode=0700 minder-test {}", path(at))) {
            return Some(Self(at.to_owned()));
        }
        crate::support::skip(format_args!("only root may mount a small file system here"));
        None
    }

    pub(super) fn read_only(at: &Path) {
        assert!(tool(&format!("mount -o remount,ro {}", path(at))), "cannot remount");
    }

    fn grow(&self) {
        assert!(tool(&format!("mount -o remount,size=64M {}", path(&self.0))), "cannot remount");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        tool(&format!("umount -l {}", path(&self.0)));
    }
}

/// The jobs whose output in a stream may be torn.
#[derive(Clone, Copy, PartialEq)]
enum Torn {
    Nothing,
    /// The last job, which was shown as it came.
    Last,
    /// Any job: its own file found no room, and it failed with partial output.
    Any,
}

/// Returns the jobs with complete output in a stream. Fails if it contains anything else, except
/// cut output where `torn` allows it.
fn whole(stream: &[u8], len: usize, torn: Torn) -> Vec<usize> {
    let mut rest = stream;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let id = rest
            .split(|byte| *byte == b' ')
            .next()
            .and_then(|head| text(head).strip_prefix('[')?.parse().ok());
        let id = id.unwrap_or_else(|| panic!("torn after {found:?}"));
        let all = [format!("[{id} {len}]\n").as_bytes(), &job_bytes(id, len)].concat();
        if let Some(next) = rest.strip_prefix(all.as_slice()) {
            found.push(id);
            rest = next;
        } else {
            let same = all.iter().zip(rest).take_while(|(one, other)| one == other).count();
            // A byte of the next job may be as that of this one would have been.
            let next = (1..=same).rev().find(|at| rest[*at..].is_empty() || is_job(&rest[*at..], len));
            if let (Torn::Any, Some(next)) = (torn, next) {
                rest = &rest[next..];
                continue;
            }
            let behind = text(&rest[same..rest.len().min(same + 30)]);
            let end = format!("{same} bytes, and then of {}: {behind:?}", rest.len() - same);
            assert!(torn == Torn::Last && all.starts_with(rest), "job {id} is torn after {found:?}: {end}");
            break;
        }
    }
    found
}

/// Returns whether the stream begins with the head line of a job.
fn is_job(stream: &[u8], len: usize) -> bool {
    let head = &stream[..stream.len().min(20)];
    let end = format!(" {len}]\n");
    let digits = head.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let rest = head.get(1 + digits..).unwrap_or_default();
    head.starts_with(b"[") && digits > 0 && rest.starts_with(end.as_bytes())
}

/// Returns the number of disk sizes that are tried.
fn sizes() -> usize {
    std::env::var("MINDER_DISKS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// The record has that much room: the run ends in order, and continues when there is more.
fn fills_up(flags: &str, pages: usize, len: usize, jobs: usize) {
    let place = Place::new();
    let Some(disk) = Disk::mount(&place.at("state"), pages * 4096) else { return };
    let mut command = place.command(&format!("run -j3 {flags}"));
    let line = format!("{CHILD} job {{}},{len},0,0 2>/dev/null && echo {{}} >>../log");
    command.arg(line).arg(":::").args((1..=jobs).map(|job| job.to_string()));
    let first = Run::start(&command).wait();
    let what = format!("{flags}, {pages} pages: {}", first.err);
    eprintln!("{what}");
    let mut shown = whole(&first.out, len, Torn::Last);
    assert!(first.err.lines().count() <= 1 && !first.err.contains("(os error"), "{what}");
    if first.status == minder::ExitStatus::Exited(0) {
        assert!(first.err.is_empty() || first.err.contains("no record is kept"), "{what}");
        shown.sort_unstable();
        assert_eq!(shown, (1..=jobs).collect::<Vec<_>>(), "{what}");
        return;
    }
    assert_eq!(first.status, minder::ExitStatus::Exited(255), "{what}");
    assert!(first.err.starts_with("minder: ") && first.err.contains("no space left"), "{what}");
    disk.grow();
    let second = place.ended(&format!("run --resume {}", place.id())).exit_code(0);
    let again = whole(&second.out, len, Torn::Nothing);
    let all: BTreeSet<usize> = shown.iter().chain(&again).copied().collect();
    assert_eq!(all, (1..=jobs).collect(), "{what}, and then {}", second.err);
    // Each worker records shown jobs, and once more when it exits.
    assert!(shown.len() + again.len() <= jobs + 2 * 3, "{what}: {shown:?}, {again:?}");
    assert!(file(&place.at("log")).lines().count() <= jobs + 6, "{what}: too many ran twice");
    assert!(second.err.lines().all(|line| line.contains("torn")), "{what}, and then {}", second.err);
    place.ended(&format!("run --resume {}", place.id())).exit_code(0).stderr("");
}

#[test]
fn full_disk_during_journal_writes_loses_nothing() {
    for flags in ["", "-k"] {
        // 4 pages are a run without a job; each further one has some 30 rows.
        (2..2 + sizes()).for_each(|pages| fills_up(flags, pages, 5, 200));
    }
}

#[test]
fn full_disk_during_output_writes_loses_nothing() {
    for flags in ["-k", "", "--buffer 64k", "-k --buffer 64k"] {
        (0..sizes()).for_each(|step| fills_up(flags, 6 + step * step * 9, 200_000, 12));
    }
}

#[test]
fn job_without_room_for_output_fails_and_runs_again() {
    for (flags, pages) in [("--spool", 30), ("-k --spool", 40), ("--spool", 6)] {
        let place = Place::new();
        let len = 200_000;
        let jobs = 12;
        let Some(disk) = Disk::mount(&place.at("state"), pages * 4096) else { return };
        let mut command = place.command(&format!("run -j3 {flags}"));
        let line = format!("{CHILD} job {{}},{len},0,0 2>/dev/null");
        command.arg(line).arg(":::").args((1..=jobs).map(|job| job.to_string()));
        let first = Run::start(&command).wait();
        let what = format!("{flags}, {pages} pages: {:?} {}", first.status, first.err);
        assert_ne!(first.status, minder::ExitStatus::Exited(0), "{what}");
        disk.grow();
        let second = place.ended(&format!("run --resume-failed {}", place.id())).exit_code(0);
        let again = whole(&second.out, len, Torn::Any);
        for job in (1..=jobs).filter(|job| !again.contains(job)) {
            let all = [format!("[{job} {len}]\n").as_bytes(), &job_bytes(job, len)].concat();
            assert!(first.out.windows(all.len()).any(|part| part == all), "job {job} is lost: {what}");
        }
    }
}

/// The output of the jobs of a run that failed is removed: a resumed run has room on the disk.
#[test]
fn run_that_filled_the_disk_is_resumed() {
    let place = Place::new();
    let state = place.at("state");
    let Some(_disk) = Disk::mount(&state, 2 << 20) else { return };
    let mut command = place.command("run -j3 -k --buffer 64k");
    command.arg(format!("{CHILD} job {{}},1500000,0,0 2>/dev/null; {CHILD} sleep-ms 300"));
    command.args([":::", "1", "2", "3"]);
    let first = Run::start(&command).wait().exit_code(255);
    assert!(first.err.contains("no space left"), "{first:?}");
    let left = fs::read_dir(state.join("runs").join(place.id())).expect("list directory");
    let spilled = left.filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("spill-"))
    });
    assert_eq!(spilled.count(), 0, "files of jobs without a row");
    let second = place.ended(&format!("run -j1 --resume {}", place.id())).exit_code(0);
    let mut shown = whole(&first.out, 1_500_000, Torn::Last);
    shown.extend(whole(&second.out, 1_500_000, Torn::Nothing));
    assert_eq!(shown.into_iter().collect::<BTreeSet<_>>(), (1..=3).collect());
}

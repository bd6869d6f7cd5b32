//! Output that earlier attempts saved and did not write: finds it, and checks it before anything is
//! read.
//!
//! A file may be gone, too short, or not ours. The machine may have lost power before the data was
//! on disk, a cleaner may have emptied the directory of `--tmpdir`, or another user may have
//! created a file of that name there. This affects the jobs that wrote the files, and no others.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minder_os::files::{create_private_dir, is_owned_by_user, open_no_follow};

use crate::attachment::AgentOutput;
use crate::config::ResumeMode;
use crate::config::RunConfig;
use crate::notice::Notice;
use crate::observer::Observer;
use crate::output::decorate::LineStyle;
use crate::output::store::FinishedJob;
use crate::output::store::JobFile;
use crate::output::store::Location;
use crate::output::store::Segment;
use crate::text::os_error_text;
use minder_record::event::{OsBytes, OutputSegment};
use minder_record::job_set::JobSet;
use minder_record::merge::{AgentEvent, Rounds};
use minder_record::run_state::RunState;
use minder_record::stale_output::check_output_dir;
use minder_record::store;
use minder_template::Job;

/// The most reasons that are reported, and the most ranges of jobs that a message names.
const NAMED_MAX: usize = 8;
/// The most names that are tried for a directory.
const DIRS_MAX: u32 = 100;

/// The saved output of earlier attempts.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) unshown: Vec<FinishedJob>,
    /// Jobs with output that cannot be read.
    pub(crate) lost: JobSet,
}

/// Finds output that was recorded and not written. Reports the jobs with output that cannot be
/// read, and removes them from `progress`, so that they run again, unless `config` or `mode` say
/// otherwise.
pub(crate) fn read(
    dir: &Path,
    progress: &mut RunState,
    mode: ResumeMode,
    config: &RunConfig,
    observer: &dyn Observer,
) -> Kept {
    let mut all_args = std::mem::take(&mut progress.unshown_args);
    let unshown = std::mem::take(&mut progress.unshown);
    let dirs = Dirs::new(dir, progress);
    let mut files = Files::default();
    let mut found = Vec::new();
    let mut lost = Losses::default();
    for (job, segments) in unshown {
        let columns: Vec<_> = all_args.remove(&job).unwrap_or_default().iter().map(OsBytes::to_os).collect();
        let succeeded = !progress.failed.contains(job);
        let style = LineStyle::of(config, &Job { columns: &columns, number: job, slot: 1, ..Job::default() });
        let style = if config.color_failed && !succeeded { LineStyle::failed(style) } else { style };
        let mut finished = FinishedJob {
            job,
            style,
            segments: Vec::new(),
            time: if succeeded { config.times.success } else { config.times.failure },
            end: None,
            needs_shown_event: true,
            from_earlier_attempt: true,
        };
        for segment in &segments {
            match dirs.of_file(&segment.file).and_then(|dir| files.find(segment, dir)) {
                Ok(segment) => finished.segments.push(segment),
                Err(error) => lost.add(job, &segment.file, &os_error_text(&error)),
            }
        }
        if config.record.skip_lost || !lost.jobs.contains(job) {
            found.push(finished);
        }
    }
    if !lost.jobs.is_empty() {
        lost.report(
            observer,
            match mode {
                _ if config.record.skip_lost => "; counted as done (--skip-lost)",
                ResumeMode::Failed => "; --resume would run what is lost again",
                ResumeMode::Rest | ResumeMode::RestAndFailed => {
                    "; what is lost will run again (--skip-lost counts it as done)"
                }
            },
        );
        if config.record.skip_lost {
            lost.jobs = JobSet::default();
        } else if mode != ResumeMode::Failed {
            lost.jobs.jobs().for_each(|job| progress.forget(job));
        }
    }
    Kept { unshown: found, lost: lost.jobs }
}

/// Checks the output that agents have saved and no attempt has shown. Reports the jobs with output that
/// cannot be read, and removes them from `progress`, so that they run again. With `--skip-lost`, they count
/// as done.
///
/// # Errors
/// The directory of the agents cannot be read.
pub(crate) fn check_agents(
    dir: &Path,
    progress: &mut RunState,
    config: &RunConfig,
    observer: &dyn Observer,
) -> io::Result<AgentOutput> {
    let mut output = AgentOutput::default();
    if progress.unshown_by_agents.is_empty() {
        return Ok(output);
    }
    let mut lost = Losses::default();
    let mut files = Files::default();
    let mut rounds = Rounds::read(dir)?;
    let mut seen = JobSet::default();
    // The newest first: it has the last result of each of its jobs.
    for number in rounds.numbers().collect::<Vec<_>>().into_iter().rev() {
        let Some(mut round) = rounds.take(number) else { continue };
        let unshown = output.unshown.entry(number).or_default();
        round.visit(|event| {
            let AgentEvent { agent, counts, is_tried, ended, .. } = event;
            let is_wanted = counts && !is_tried && progress.unshown_by_agents.contains(ended.job);
            if !is_wanted || !seen.insert(ended.job) {
                return;
            }
            unshown.insert(ended.job);
            for segment in &ended.kept {
                if let Err(error) = files.find(segment, &agent.dir(dir)) {
                    lost.add(ended.job, &segment.file, &os_error_text(&error));
                }
            }
        });
    }
    if !lost.jobs.is_empty() {
        lost.report(
            observer,
            if config.record.skip_lost {
                "; counted as done (--skip-lost)"
            } else {
                "; what is lost will run again (--skip-lost counts it as done)"
            },
        );
    }
    for job in lost.jobs.jobs() {
        progress.unshown_by_agents.remove(job);
        output.unshown.values_mut().for_each(|unshown| _ = unshown.remove(job));
        if !config.record.skip_lost {
            progress.forget(job);
        }
    }
    output.lost = lost.jobs;
    Ok(output)
}

/// Creates the directory for the output of an attempt, in a directory that other users may share.
pub(crate) fn create_output_dir(tmpdir: &Path, run: &str, attempt: u32) -> io::Result<PathBuf> {
    let mut dir = tmpdir.join(format!("minder-{run}-{attempt}"));
    for number in 1..DIRS_MAX {
        match create_private_dir(&dir) {
            // The name is predictable: a file of another user is left alone.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                dir.set_file_name(format!("minder-{run}-{attempt}-{number}"));
            }
            created => return created.map(|()| dir),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The directories with output of earlier attempts.
struct Dirs<'a> {
    dir: &'a Path,
    /// The directories of attempts that chose one, or why one cannot be used.
    chosen: BTreeMap<u32, Result<PathBuf, String>>,
}

impl<'a> Dirs<'a> {
    fn new(dir: &'a Path, progress: &RunState) -> Self {
        let chosen = progress.outputs.iter().map(|(attempt, dir)| {
            let dir = PathBuf::from(dir.to_os());
            let checked = check_output_dir(&dir).map_err(|error| os_error_text(&error));
            (*attempt, checked.map(|()| dir))
        });
        Self { dir, chosen: chosen.collect() }
    }

    /// Returns the directory of an output file, by the attempt in its name.
    fn of_file(&self, file: &str) -> io::Result<&Path> {
        match store::attempt_of(file).and_then(|attempt| self.chosen.get(&attempt)) {
            Some(Ok(dir)) => Ok(dir),
            Some(Err(why)) => Err(io::Error::other(why.clone())),
            None => Ok(self.dir),
        }
    }
}

/// Files with output that were found, and that several jobs share, with their lengths.
#[derive(Default)]
struct Files(HashMap<Arc<Path>, u64>);

impl Files {
    /// Finds a segment of a job's output. Its file is opened again when it is written: one descriptor for
    /// each job is too many.
    ///
    /// # Errors
    /// Its file does not exist, is too short, or belongs to another user.
    fn find(&mut self, segment: &OutputSegment, dir: &Path) -> io::Result<Segment> {
        let mut found = Segment::saved(segment, dir)?;
        let (len, end) = match &mut found.location {
            Location::Named(path, range) => {
                let len = match self.0.get_key_value(path) {
                    Some((known, &len)) => {
                        *path = Arc::clone(known);
                        len
                    }
                    None => *self.0.entry(Arc::clone(path)).or_insert(len_of(path)?),
                };
                (len, range.end)
            }
            Location::Own(JobFile { path: Some(path), range, .. }) => (len_of(path)?, range.end),
            _ => return Ok(found),
        };
        if len < end { Err(io::Error::other("the file is too short")) } else { Ok(found) }
    }
}

/// Returns the length of a file of this user.
fn len_of(path: &Path) -> io::Result<u64> {
    let metadata = open_no_follow(path)?.metadata()?;
    if is_owned_by_user(&metadata) {
        Ok(metadata.len())
    } else {
        Err(io::Error::other("the file belongs to another user"))
    }
}

/// Output that cannot be read.
#[derive(Default)]
struct Losses {
    jobs: JobSet,
    /// By reason: the first file, and the jobs.
    reasons: BTreeMap<String, (String, JobSet)>,
}

impl Losses {
    fn add(&mut self, job: u64, file: &str, why: &str) {
        // Only the first reason of a job counts.
        if self.jobs.insert(job) {
            let of =
                self.reasons.entry(why.to_owned()).or_insert_with(|| (file.to_owned(), JobSet::default()));
            of.1.insert(job);
        }
    }

    /// Reports the jobs and what happens to them.
    fn report(&self, observer: &dyn Observer, consequence: &'static str) {
        for (why, (file, jobs)) in self.reasons.iter().take(NAMED_MAX) {
            let plural = if jobs.len() == 1 { "" } else { "s" };
            observer.notice(&Notice::OutputUnreadable {
                jobs: format!("job{plural} {}", ranges(jobs)),
                file: Some(file.clone()),
                reason: Some(why.clone()),
                consequence,
            });
        }
        let named = self.reasons.values().take(NAMED_MAX).map(|(_, jobs)| jobs.len()).sum();
        let more = self.jobs.len().saturating_sub(named);
        if more > 0 {
            let jobs = format!("{more} more jobs");
            observer.notice(&Notice::OutputUnreadable { jobs, file: None, reason: None, consequence });
        }
    }
}

/// Formats job numbers for people.
fn ranges(jobs: &JobSet) -> String {
    let range = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    let mut named: Vec<String> = jobs.ranges().take(NAMED_MAX).map(range).collect();
    let rest: u64 = jobs.ranges().skip(NAMED_MAX).map(|(first, last)| last - first + 1).sum();
    if rest > 0 {
        named.push(format!("and {rest} more"));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_abbreviate_many_jobs() {
        let named = |jobs: &[u64]| {
            let mut set = JobSet::default();
            jobs.iter().for_each(|job| _ = set.insert(*job));
            ranges(&set)
        };
        assert_eq!(named(&[7]), "7");
        assert_eq!(named(&[1, 2, 3, 5]), "1-3, 5");
        let many: Vec<u64> = (0..20).map(|job| job * 2).collect();
        assert_eq!(named(&many), "0, 2, 4, 6, 8, 10, 12, 14, and 12 more");
    }

    #[test]
    fn create_output_dir_picks_another_name_when_taken() {
        let tmpdir = tempfile::tempdir().expect("create temp dir");
        let created = || create_output_dir(tmpdir.path(), "61c0aa00", 2).expect("create output directory");
        let names = [created(), created()].map(|dir| dir.file_name().expect("get directory name").to_owned());
        assert_eq!(names, ["minder-61c0aa00-2", "minder-61c0aa00-2-1"]);
    }
}

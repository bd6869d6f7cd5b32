//! What a run was asked to do: its flags and its commands, as its manifest has them.

use std::path::Path;

use minder_record::event::{JobFinished, OsBytes};
use minder_record::manifest::Manifest;
use minder_record::reader::Run;
use minder_template::{Job, Template};

use crate::config::recorded_template;
use crate::flags::RunFlags;
use crate::recorded;
use crate::running::total;

/// The flags and the number of jobs of the run, as its manifest has them.
pub(super) struct Request<'a> {
    pub(super) manifest: &'a Manifest,
    /// The flags of the run, if this version knows them.
    pub(super) flags: Option<Box<RunFlags>>,
    /// The command of a job; `None` if the record does not have all that is needed for it.
    template: Option<Template>,
    /// The number of jobs, if it was known when the run began.
    pub(super) total: Option<u64>,
}

impl<'a> Request<'a> {
    pub(super) fn of(manifest: &'a Manifest, dir: &Path) -> Self {
        let total = total(manifest);
        let arguments = match total {
            Some(_) => manifest.arguments(dir).unwrap_or_default(),
            None => Vec::new(),
        };
        let typed = recorded::typed_flags(manifest).unwrap_or_default();
        let flags = recorded::parse(manifest, &[&typed], &arguments).ok();
        // The names of columns are in the input, and redacted arguments are nowhere.
        let known = flags.as_ref().filter(|flags| flags.input.header.is_none() && !flags.record.redact_args);
        let template = known.and_then(|flags| recorded_template(flags).ok());
        Self { manifest, flags, template, total }
    }

    /// Returns the command of a job as it can be pasted into a shell; `None` if the record does not
    /// have all that is needed for it. A placeholder for the slot stays: slots are not recorded.
    pub(super) fn command(&self, job: &JobFinished) -> Option<String> {
        let template = self.template.as_ref()?;
        let columns: Vec<_> = job.args.iter().map(OsBytes::to_os).collect();
        let job = Job { columns: &columns, number: job.job, slot: 0, total: self.total, ..Job::default() };
        Some(template.display(&job))
    }

    /// Returns the variables of `--env` and those of the environment, as `NAME=VALUE`.
    pub(super) fn environment(&self) -> Vec<OsBytes> {
        let set = self.flags.iter().flat_map(|flags| &flags.control.env);
        let set = set.filter(|text| text.as_encoded_bytes().contains(&b'='));
        let inherited = self.manifest.environment.iter();
        let inherited = inherited.map(|(name, value)| OsBytes([name.as_bytes(), b"=", &value.0].concat()));
        set.map(|text| OsBytes::from(text.as_os_str())).chain(inherited).collect()
    }
}

/// Explains why there is no result of a job.
pub(super) fn absence(run: &Run, id: &str, number: u64) -> String {
    let manifest = run.manifest.as_ref().ok();
    let is_over = || run.attempts.last()?.finished.as_ref().filter(|end| end.why.is_none());
    // A run that ended with no job left has recorded all of them.
    let recorded = || is_over().and(run.jobs.keys().next_back().copied());
    match manifest.and_then(total).or_else(recorded) {
        _ if number == 0 => "jobs are counted from 1".to_owned(),
        Some(1) if number > 1 => format!("run {id} has only job 1, no job {number}"),
        Some(total) if number > total => format!("run {id} has jobs 1 to {total}, no job {number}"),
        _ if run.alive => format!("job {number} of run {id} has not finished yet"),
        _ => {
            let hint = manifest.and_then(|manifest| recorded::resume_command(manifest, id));
            let hint = hint.map_or_else(String::new, |command| format!(" ({command})"));
            format!("job {number} of run {id} has no result: it did not run, or was cut off{hint}")
        }
    }
}

//! Opens the sources of a run and yields the arguments of one job after the other.

use std::ffi::OsString;
use std::fs::File;
use std::sync::{Arc, OnceLock};

use anyhow::Result;

use crate::input::batching::ArgBatcher;
use crate::input::batching::{self};
use crate::input::plan::{Header, InputFindings, InputPlan, JobArgs, Kind, Record, Source};
use crate::input::product::Combined;
use crate::input::records::Records;

/// The number of arguments of the first job that has any, once it is read. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnCount(Arc<OnceLock<usize>>);

impl ColumnCount {
    pub(crate) fn get(&self) -> Option<usize> {
        self.0.get().copied()
    }

    /// Sets the number. Only the first call has an effect.
    pub(crate) fn set(&self, columns: usize) {
        let _ = self.0.set(columns);
    }
}

/// An opened input, of which only the headers were read.
#[derive(Debug)]
pub struct ArgumentReader {
    /// The names of the columns, if they have names.
    pub names: Vec<OsString>,
    /// `true` if a read may block.
    pub may_block: bool,
    batcher: ArgBatcher,
    total: Option<u64>,
    /// A regular file with one record per job: its records can be counted beforehand.
    countable: Option<(File, u8)>,
    first_job: ColumnCount,
    findings: Arc<InputFindings>,
}

impl ArgumentReader {
    /// Opens the sources and reads their headers. `slots` is the number of slots over which the
    /// last records may be distributed.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn open(plan: InputPlan, slots: usize) -> Result<Self> {
        let mut names = Vec::new();
        let mut readers = Vec::new();
        let countable = countable(&plan);
        let may_block = plan.sources.iter().any(|source| !matches!(source.kind, Kind::Arguments(_)));
        let has_known_count = plan.arity.is_plain() && !plan.skip_blank && plan.eof.is_none();
        let total = if has_known_count { count_jobs(&plan) } else { None };
        for source in &plan.sources {
            let mut records = Records::open(source, &plan)?;
            let mut source_names = Vec::new();
            match (plan.header, &source.kind) {
                (Header::Lines(lines), _) => {
                    for _ in 0..lines {
                        if let Some(Record::Columns(columns)) = records.next()? {
                            source_names = columns;
                        }
                    }
                }
                (Header::FileNames, Kind::File(path)) => source_names = vec![path.clone().into()],
                (Header::FileNames, _) => source_names = vec![OsString::new()],
                (Header::None, _) if plan.skip_first && names.is_empty() && readers.is_empty() => {
                    records.next()?;
                }
                (Header::None, _) => (),
            }
            names.append(&mut source_names);
            readers.push((records, source.linked));
        }
        let findings = Arc::clone(&plan.findings);
        let combined = Combined::new(readers, plan.link, plan.empty_counts);
        let batcher = ArgBatcher::new(combined, plan.arity, slots);
        Ok(Self { names, may_block, batcher, total, countable, first_job: ColumnCount::default(), findings })
    }

    /// Returns the next job's arguments, or `None` at the end.
    ///
    /// # Errors
    /// A source cannot be read any more.
    pub fn next_arguments(&mut self) -> Result<Option<JobArgs>> {
        let next = self.batcher.next()?;
        if let Some(JobArgs::Columns(columns)) = &next {
            self.first_job.set(columns.len());
        }
        Ok(next)
    }

    /// Returns what is noticed while files are read.
    pub(crate) fn findings(&self) -> Arc<InputFindings> {
        Arc::clone(&self.findings)
    }

    /// Returns the number of arguments of the first job, which is set when that job is read.
    pub(crate) fn first_job(&self) -> ColumnCount {
        self.first_job.clone()
    }

    /// Sets the limits of a command line, for inputs that put as many arguments into a command as
    /// fit: what a command costs without arguments and with one more, how many bytes it may have if
    /// its shell accepts fewer than the operating system, how many arguments it may have, and what
    /// else the operating system limits.
    pub fn set_costs(
        &mut self,
        base: usize,
        cost: batching::CostFn,
        bytes_max: Option<usize>,
        most: impl FnOnce() -> usize,
        line: impl FnOnce(usize) -> Option<batching::LineLimit>,
    ) {
        if self.batcher.is_limited() {
            let line = line(self.batcher.bytes_max());
            self.batcher.set_costs(base, cost, bytes_max, most(), line);
        }
    }

    /// Returns `true` if jobs have several records each.
    pub fn gathers(&self) -> bool {
        self.batcher.is_limited()
    }

    /// Returns the number of jobs, if it is known without reading.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Takes the file whose records are the jobs, and its separator, if they can be counted
    /// beforehand.
    pub fn take_countable(&mut self) -> Option<(File, u8)> {
        self.countable.take()
    }
}

/// Returns how many jobs these sources make, if all of them are on the command line.
fn count_jobs(plan: &InputPlan) -> Option<u64> {
    let mut groups: Vec<Vec<u64>> = Vec::new();
    if plan.sources.is_empty() {
        return None;
    }
    for source in &plan.sources {
        let Kind::Arguments(values) = &source.kind else { return None };
        let header = match plan.header {
            Header::Lines(lines) => lines,
            _ => u64::from(plan.skip_first && groups.is_empty()),
        };
        let len = (values.len() as u64).saturating_sub(header);
        let len = if plan.empty_counts && plan.sources.len() > 1 { len.max(1) } else { len };
        match groups.last_mut() {
            Some(group) if source.linked || plan.link => group.push(len),
            _ => groups.push(vec![len]),
        }
    }
    let wraps = plan.link;
    let length = |group: &Vec<u64>| match wraps {
        _ if group.contains(&0) => 0,
        true => group.iter().copied().max().unwrap_or(0),
        false => group.iter().copied().min().unwrap_or(0),
    };
    let records = groups.iter().map(length).try_fold(1, u64::checked_mul)?;
    Some(records.div_ceil(plan.arity.records().max(1)))
}

/// Returns the only file, or redirected standard input, if each of its records is a job.
fn countable(plan: &InputPlan) -> Option<(File, u8)> {
    let plain = plan.arity.is_plain()
        && plan.arity.records() == 1
        && plan.eof.is_none()
        && plan.words.is_none()
        && !plan.skip_blank
        && !plan.skip_comments;
    let ([Source { kind, .. }], [separator], true, false) =
        (plan.sources.as_slice(), plan.separator.as_slice(), plain, plan.skip_first)
    else {
        return None;
    };
    if plan.header != Header::None {
        return None;
    }
    let path = match kind {
        Kind::File(path) => path.clone(),
        Kind::Stdin => minder_os::stdio::stdin_path()?,
        Kind::Arguments(_) => return None,
    };
    // Checked before it is opened: opening a named pipe waits for a writer.
    if !std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let file = File::open(&path).ok()?;
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some((file, *separator))
}

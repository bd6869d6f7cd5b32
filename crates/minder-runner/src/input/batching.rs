//! The grouping of records into jobs.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;

use anyhow::{Result, bail};

use super::plan::{ArgsPerJob, Fill};
use crate::input::JobArgs;
use crate::input::Record;
use crate::input::product::Combined;

/// Returns how many bytes one more argument adds to a command.
pub type CostFn = Box<dyn Fn(&OsStr) -> usize + Send>;

/// Returns `true` if the operating system accepts a command with these arguments.
pub type FitsFn = Box<dyn Fn(&[OsString]) -> bool + Send>;

/// The limit of the operating system for a command, if commands may come near it.
pub struct LineLimit {
    /// The most UTF-16 units on Windows, the most bytes on Unix.
    pub units_max: usize,
    /// Checks a command line exactly.
    pub takes: FitsFn,
}

impl fmt::Debug for LineLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineLimit").field("units_max", &self.units_max).finish_non_exhaustive()
    }
}

/// Gathers records into the arguments of jobs.
pub(crate) struct ArgBatcher {
    source: Combined,
    arity: ArgsPerJob,
    slots: usize,
    /// The size of the command without arguments.
    base: usize,
    cost: CostFn,
    line: Option<LineLimit>,
    /// The number of records in the last line that was too long for all of its records.
    last_cut: usize,
    /// The most arguments of a command.
    arguments_max: usize,
    /// Records that did not fit into the last job, or are to be distributed.
    pending: VecDeque<Record>,
    /// The number of records for each of the last jobs, once the end of the input is known.
    share: Option<usize>,
}

impl fmt::Debug for ArgBatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgBatcher").field("arity", &self.arity).finish_non_exhaustive()
    }
}

impl ArgBatcher {
    pub(crate) fn new(source: Combined, arity: ArgsPerJob, slots: usize) -> Self {
        let cost = Box::new(|argument: &OsStr| argument.len() + 1);
        Self {
            source,
            arity,
            slots: slots.max(1),
            base: 0,
            cost,
            line: None,
            last_cut: 1,
            arguments_max: usize::MAX,
            pending: VecDeque::new(),
            share: None,
        }
    }

    /// Sets the cost of a command, how many bytes its shell accepts, and how many arguments it may
    /// have.
    pub(crate) fn set_costs(
        &mut self,
        base: usize,
        cost: CostFn,
        bytes_max: Option<usize>,
        arguments_max: usize,
        line: Option<LineLimit>,
    ) {
        self.base = base;
        self.cost = cost;
        self.arguments_max = arguments_max;
        self.line = line;
        self.arity.bytes_max = self.arity.bytes_max.min(bytes_max.unwrap_or(usize::MAX));
    }

    /// Returns the most bytes of a command, as the user would type it.
    pub(crate) fn bytes_max(&self) -> usize {
        self.arity.bytes_max
    }

    /// Returns `true` if a job may get several arguments, as many as a command line has room for.
    pub(crate) fn is_limited(&self) -> bool {
        self.arity.limit() > 1 || self.arity.bounded
    }

    /// Returns the arguments of the next job.
    pub(crate) fn next(&mut self) -> Result<Option<JobArgs>> {
        if let Some(share) = self.share {
            return Ok(self.take_share(share));
        }
        if self.arity.none {
            return Ok(self.source.next()?.map(|_| Record::Columns(Vec::new())));
        }
        let limit = self.arity.limit().min(self.arguments_max as u64);
        if limit == 1 && !self.arity.lines && !self.arity.strict && !self.arity.bounded {
            return self.source.next();
        }
        // The place of a record in its group counts: the whole group fails with it.
        let is_fixed = self.arity.most.is_some() && self.arity.fill == Fill::One;
        let mut unfit = None;
        let mut unfit_count = 0;
        let mut taken = Vec::new();
        let mut bytes = self.base;
        let mut ended = false;
        while (taken.len() as u64 + unfit_count) < limit {
            let Some(record) = self.record()? else {
                ended = true;
                break;
            };
            bytes += self.cost_of(&record);
            if bytes > self.arity.bytes_max {
                // A full line is not too long, unless the user requires a number of arguments that
                // does not fit.
                let alone = taken.is_empty() && (self.arity.strict || self.arity.bounded);
                if alone || self.arity.strict && self.arity.most.is_some() {
                    bail!("a command would have {bytes} bytes, and may have {} (-s)", self.arity.bytes_max);
                }
                if !taken.is_empty() {
                    self.pending.push_front(record);
                    break;
                }
            }
            if let Record::Unfit(why) = record {
                if is_fixed {
                    unfit.get_or_insert(why);
                    unfit_count += 1;
                    continue;
                }
                if taken.is_empty() {
                    return Ok(Some(record));
                }
                self.pending.push_front(record);
                break;
            }
            taken.push(record);
        }
        if let Some(why) = unfit {
            return Ok(Some(Record::Unfit(why)));
        }
        ended &= !self.cut_line(&mut taken)?;
        if ended && self.arity.fill == Fill::Shared && taken.len() > 1 {
            let share = taken.len().div_ceil(self.slots);
            self.share = Some(usize::try_from(limit).map_or(share, |limit| share.min(limit)));
            self.pending.extend(taken);
            return self.next();
        }
        Ok(join_columns(taken))
    }

    /// Puts back the records that do not fit into one line for the operating system. Returns `true`
    /// if there were any. One record always stays: if it is too long, it fails alone.
    fn cut_line(&mut self, taken: &mut Vec<Record>) -> Result<bool> {
        if taken.len() <= 1 {
            return Ok(false);
        }
        let Some(line) = &self.line else { return Ok(false) };
        let mut all = Vec::new();
        let mut ends = Vec::new();
        for record in &*taken {
            if let Record::Columns(columns) = record {
                all.extend_from_slice(columns);
            }
            ends.push(all.len());
        }
        let takes = |count: usize| (line.takes)(&all[..ends[count - 1]]);
        if takes(taken.len()) {
            return Ok(false);
        }
        if self.arity.strict && self.arity.most.is_some() {
            bail!(
                "a command would be longer than the {} characters that the system takes (-x)",
                line.units_max
            );
        }
        // A line holds about as many records as the last one, so the search starts there, in
        // growing steps.
        let mut fitting = 1;
        let mut too_many = taken.len();
        let mut guess = self.last_cut;
        let mut step = self.last_cut / 16 + 1;
        while too_many - fitting > 1 {
            let count = guess.clamp(fitting + 1, too_many - 1);
            if takes(count) {
                fitting = count;
            } else {
                too_many = count;
            }
            guess = if too_many == taken.len() {
                fitting + step
            } else if fitting == 1 {
                too_many.saturating_sub(step)
            } else {
                usize::midpoint(fitting, too_many)
            };
            step *= 4;
        }
        self.last_cut = fitting;
        for record in taken.drain(fitting..).rev() {
            self.pending.push_front(record);
        }
        Ok(true)
    }

    /// Returns the arguments of a job that gets `share` of the last records.
    fn take_share(&mut self, share: usize) -> Option<JobArgs> {
        let count = share.min(self.pending.len());
        join_columns(self.pending.drain(..count).collect())
    }

    /// Returns the next record. Lines that continue in the next line are joined.
    fn record(&mut self) -> Result<Option<Record>> {
        if let Some(record) = self.pending.pop_front() {
            return Ok(Some(record));
        }
        if !self.arity.lines {
            return self.source.next();
        }
        let mut started: Option<Vec<OsString>> = None;
        loop {
            let columns = match self.source.next()? {
                Some(Record::Columns(columns)) => columns,
                Some(unfit) => return Ok(Some(unfit)),
                None => return Ok(started.map(Record::Columns)),
            };
            let columns = match started.take() {
                Some(mut before) => {
                    let mut columns = columns.into_iter();
                    if let (Some(last), Some(first)) = (before.last_mut(), columns.next()) {
                        last.push(first);
                    }
                    before.extend(columns);
                    before
                }
                None if columns.iter().all(|value| is_blank(value)) => continue,
                None => columns,
            };
            let is_continued =
                |value: &OsString| matches!(value.as_encoded_bytes().last(), Some(b' ' | b'\t'));
            if columns.last().is_some_and(is_continued) {
                started = Some(columns)
            } else {
                return Ok(Some(Record::Columns(columns)));
            }
        }
    }

    fn cost_of(&self, record: &Record) -> usize {
        match record {
            Record::Columns(columns) => columns.iter().map(|value| (self.cost)(value)).sum(),
            Record::Unfit(_) => 0,
        }
    }
}

fn is_blank(value: &OsStr) -> bool {
    value.as_encoded_bytes().iter().all(u8::is_ascii_whitespace)
}

fn join_columns(records: Vec<Record>) -> Option<JobArgs> {
    let mut all: Option<Vec<OsString>> = None;
    for record in records {
        match (record, &mut all) {
            (Record::Columns(columns), None) => all = Some(columns),
            (Record::Columns(columns), Some(all)) => all.extend(columns),
            (Record::Unfit(_), _) => (),
        }
    }
    all.map(Record::Columns)
}

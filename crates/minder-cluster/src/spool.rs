//! The spool: the arguments of all jobs, read once by the coordinator, and found by number by agents.
//!
//! | file | content |
//! | --- | --- |
//! | `arguments` | a record for each job: its length, a CRC-32, and its arguments, each behind its length |
//! | `index` | the offset of the record of each [`STEP`]th job, beginning with job 1; eight bytes each |
//! | `count` | how many jobs are complete, and whether the input has ended |
//! | `names` | the names of the columns, as a list in JSON, if they have names |
//!
//! `count` is written after the other two have been synced, so that a reader never sees a job before its
//! arguments. Numbers are little-endian. The highest bit of the length of a record is set if the job has no
//! arguments, but a reason why it cannot run.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use minder_os::files::{open_no_follow, read_at, write_all_at};
use minder_record::agents::SPOOL;
use minder_record::event::OsBytes;
use minder_record::store::create_dirs;

use crate::file;

const ARGUMENTS: &str = "arguments";
const INDEX: &str = "index";
const COUNT: &str = "count";
const NAMES: &str = "names";
/// The number of jobs for one position in the index.
pub const STEP: u64 = 128;
/// The longest arguments of one job, in bytes: those of a command of Linux have at most 2 MiB (execve(2)).
pub const ARGUMENTS_MAX: usize = 8 << 20;
/// The length and the checksum before each record.
const HEAD: usize = 8;
/// The bit of the length of a record without arguments.
const UNFIT: u32 = 1 << 31;
/// The number of bytes that the writer gathers.
const GATHERED: usize = 64 << 10;
/// The number of bytes that a reader reads at once.
const READ_AHEAD: usize = 64 << 10;
/// The digits of the number in `count`.
const DIGITS: usize = 20;
const OPEN: &str = " open\n";
const ENDED: &str = " done\n";

/// How much of the input is in the spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of jobs whose arguments are there.
    pub jobs: u64,
    /// `true` if no more will come.
    pub has_ended: bool,
}

/// What the spool has of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spooled {
    /// Its arguments.
    Arguments(Vec<OsBytes>),
    /// Why the input has no arguments for it.
    Unfit(Vec<u8>),
}

/// Appends jobs.
#[derive(Debug)]
pub struct SpoolWriter {
    dir: PathBuf,
    arguments: File,
    index: File,
    count: File,
    /// Records and offsets that are not written yet.
    records: Vec<u8>,
    offsets: Vec<u8>,
    /// The length of `arguments` with `records`.
    len: u64,
    jobs: u64,
    published: u64,
}

impl SpoolWriter {
    /// Creates the spool of a run. `names` are the names of the columns, if they have names.
    ///
    /// # Errors
    ///
    /// It exists, or a file cannot be created.
    pub fn create(run: &Path, names: &[OsBytes]) -> io::Result<Self> {
        let dir = run.join(SPOOL);
        create_dirs(&dir)?;
        if !names.is_empty() {
            file::write(&dir.join(NAMES), &serde_json::to_vec(names)?)?;
        }
        let create = |name: &str| file::create(&dir.join(name));
        let writer = Self {
            arguments: create(ARGUMENTS)?,
            index: create(INDEX)?,
            count: create(COUNT)?,
            records: Vec::new(),
            offsets: Vec::new(),
            len: 0,
            jobs: 0,
            published: 0,
            dir,
        };
        writer.write_count(false)?;
        Ok(writer)
    }

    /// Appends a job. Agents see it after [`publish`](Self::publish). Returns its number.
    ///
    /// # Errors
    ///
    /// The arguments are longer than [`ARGUMENTS_MAX`], or the disk is full.
    pub fn push(&mut self, arguments: &[OsBytes]) -> io::Result<u64> {
        let mut record = Vec::new();
        for OsBytes(argument) in arguments {
            record.extend_from_slice(&length(argument.len(), 0)?.to_le_bytes());
            record.extend_from_slice(argument);
        }
        self.push_record(&record, 0)
    }

    /// Appends a job that cannot run, and the reason.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_unfit(&mut self, why: &[u8]) -> io::Result<u64> {
        self.push_record(why, UNFIT)
    }

    fn push_record(&mut self, record: &[u8], bit: u32) -> io::Result<u64> {
        let len = length(record.len(), bit)?;
        if self.jobs.is_multiple_of(STEP) {
            self.offsets.extend_from_slice(&self.len.to_le_bytes());
        }
        self.jobs += 1;
        self.records.extend_from_slice(&len.to_le_bytes());
        self.records.extend_from_slice(&checksum(self.jobs, len, record).to_le_bytes());
        self.records.extend_from_slice(record);
        self.len += (HEAD + record.len()) as u64;
        if self.records.len() >= GATHERED {
            self.write()?;
        }
        Ok(self.jobs)
    }

    /// Returns how many jobs were appended that agents do not see yet.
    pub fn unpublished(&self) -> u64 {
        self.jobs - self.published
    }

    /// Makes all jobs visible to agents. `has_ended` states that no more will come.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn publish(&mut self, has_ended: bool) -> io::Result<()> {
        self.write()?;
        self.named(self.arguments.sync_data().and_then(|()| self.index.sync_data()))?;
        self.write_count(has_ended)?;
        self.published = self.jobs;
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let written =
            self.arguments.write_all(&self.records).and_then(|()| self.index.write_all(&self.offsets));
        self.named(written)?;
        self.records.clear();
        self.offsets.clear();
        Ok(())
    }

    fn write_count(&self, has_ended: bool) -> io::Result<()> {
        let text = format!("{:0DIGITS$}{}", self.jobs, if has_ended { ENDED } else { OPEN });
        self.named(write_all_at(&self.count, text.as_bytes(), 0).and_then(|()| self.count.sync_data()))
    }

    fn named(&self, done: io::Result<()>) -> io::Result<()> {
        done.map_err(|error| file::named("cannot write", &self.dir, &error))
    }
}

/// Reads the arguments of jobs, best in ascending order.
#[derive(Debug)]
pub struct SpoolReader {
    dir: PathBuf,
    arguments: File,
    index: File,
    /// A part of `arguments`, and its offset.
    part: Vec<u8>,
    part_at: u64,
    /// The job whose record is at `at`.
    job: u64,
    at: u64,
}

impl SpoolReader {
    /// Opens the spool of a run.
    ///
    /// # Errors
    ///
    /// It does not exist, or cannot be read.
    pub fn open(run: &Path) -> io::Result<Self> {
        let dir = run.join(SPOOL);
        let open = |name: &str| {
            let path = dir.join(name);
            open_no_follow(&path).map_err(|error| file::named("cannot read", &path, &error))
        };
        Ok(Self {
            arguments: open(ARGUMENTS)?,
            index: open(INDEX)?,
            part: Vec::new(),
            part_at: 0,
            job: 1,
            at: 0,
            dir,
        })
    }

    /// Returns the names of the columns, or nothing if they have none.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is damaged.
    pub fn names(&self) -> io::Result<Vec<OsBytes>> {
        let path = self.dir.join(NAMES);
        match file::read(&path, ARGUMENTS_MAX as u64)? {
            None => Ok(Vec::new()),
            Some(text) => serde_json::from_slice(&text)
                .map_err(|error| file::named("cannot read", &path, &error.into())),
        }
    }

    /// Returns how much of the input is in the spool now.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is damaged.
    pub fn count(&self) -> io::Result<Count> {
        let path = self.dir.join(COUNT);
        let text = file::read(&path, (DIGITS + OPEN.len()) as u64)?.unwrap_or_default();
        let parse = |text: &[u8]| {
            let (digits, state) = str::from_utf8(text).ok()?.split_at_checked(DIGITS)?;
            let has_ended = state == ENDED;
            (has_ended || state == OPEN).then_some(Count { jobs: digits.parse().ok()?, has_ended })
        };
        parse(&text).ok_or_else(|| {
            file::named("cannot read", &path, &io::Error::new(io::ErrorKind::InvalidData, "it is damaged"))
        })
    }

    /// Returns what there is of a job, which [`count`](Self::count) has counted. Reads at most [`STEP`]
    /// records before it.
    ///
    /// # Errors
    ///
    /// [`InvalidData`](io::ErrorKind::InvalidData) if the record is damaged, or an error of the file system.
    pub fn job(&mut self, job: u64) -> io::Result<Spooled> {
        let found = self.find(job);
        if found.is_err() {
            // The next call begins at the index.
            self.job = u64::MAX;
            self.part.clear();
        }
        found.map_err(|error| {
            file::named(&format!("cannot read the arguments of job {job} in"), &self.dir, &error)
        })
    }

    fn find(&mut self, job: u64) -> io::Result<Spooled> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "they are damaged");
        let before = job.checked_sub(1).ok_or_else(damaged)?;
        if self.job > job || job - self.job > STEP {
            let mut offset = [0; 8];
            let entry = before / STEP;
            if read_at(&self.index, &mut offset, entry * 8)? != offset.len() {
                return Err(damaged());
            }
            self.job = entry * STEP + 1;
            self.at = u64::from_le_bytes(offset);
        }
        loop {
            let mut head = self.bytes(HEAD)?.ok_or_else(damaged)?;
            let word = take_word(&mut head).ok_or_else(damaged)?;
            let crc = take_word(&mut head).ok_or_else(damaged)?;
            let len = (word & !UNFIT) as usize;
            if len > ARGUMENTS_MAX {
                return Err(damaged());
            }
            if self.job == job {
                let record = &self.bytes(HEAD + len)?.ok_or_else(damaged)?[HEAD..];
                let is_valid = checksum(job, word, record) == crc;
                let spooled = if !is_valid {
                    None
                } else if word & UNFIT != 0 {
                    Some(Spooled::Unfit(record.to_vec()))
                } else {
                    arguments(record).map(Spooled::Arguments)
                };
                let spooled = spooled.ok_or_else(damaged)?;
                self.at += (HEAD + len) as u64;
                self.job += 1;
                return Ok(spooled);
            }
            self.at += (HEAD + len) as u64;
            self.job += 1;
        }
    }

    /// Returns the next `len` bytes at `at`, or `None` if the file is shorter.
    fn bytes(&mut self, len: usize) -> io::Result<Option<&[u8]>> {
        let has = |part: &[u8], part_at: u64, at: u64| {
            at >= part_at && at + len as u64 <= part_at + part.len() as u64
        };
        if !has(&self.part, self.part_at, self.at) {
            self.part.resize(len.max(READ_AHEAD), 0);
            let mut read = 0;
            while read < self.part.len() {
                match read_at(&self.arguments, &mut self.part[read..], self.at + read as u64)? {
                    0 => break,
                    more => read += more,
                }
            }
            self.part.truncate(read);
            self.part_at = self.at;
        }
        if !has(&self.part, self.part_at, self.at) {
            return Ok(None);
        }
        let start = usize::try_from(self.at - self.part_at).unwrap_or(usize::MAX);
        Ok(self.part.get(start..start + len))
    }
}

/// Returns a length as it is written, with a bit beside it.
fn length(len: usize, bit: u32) -> io::Result<u32> {
    match u32::try_from(len) {
        Ok(word) if len <= ARGUMENTS_MAX => Ok(word | bit),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "the arguments are too long")),
    }
}

/// Takes a number from the beginning of `bytes`.
fn take_word(bytes: &mut &[u8]) -> Option<u32> {
    let (word, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*word))
}

/// Returns the arguments in a record.
fn arguments(mut record: &[u8]) -> Option<Vec<OsBytes>> {
    let mut arguments = Vec::new();
    while !record.is_empty() {
        let len = take_word(&mut record)? as usize;
        let (argument, rest) = record.split_at_checked(len)?;
        arguments.push(OsBytes::from(argument));
        record = rest;
    }
    Some(arguments)
}

/// Returns the checksum of the record of a job. The number is part of it: behind damage, the record of
/// another job may be found in its place.
fn checksum(job: u64, word: u32, record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&job.to_le_bytes());
    hasher.update(&word.to_le_bytes());
    hasher.update(record);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::{Seek as _, SeekFrom};

    use proptest::prelude::*;

    use super::*;

    fn spooled(run: &Path, jobs: u64) -> SpoolReader {
        let mut writer = SpoolWriter::create(run, &[]).expect("create spool");
        for job in 1..=jobs {
            assert_eq!(writer.push(&[argument(job)]).expect("append"), job);
        }
        writer.publish(true).expect("publish");
        SpoolReader::open(run).expect("open spool")
    }

    /// Returns the arguments of a job that has some.
    fn arguments_of(reader: &mut SpoolReader, job: u64) -> io::Result<Vec<OsBytes>> {
        match reader.job(job)? {
            Spooled::Arguments(arguments) => Ok(arguments),
            Spooled::Unfit(why) => panic!("{why:?}"),
        }
    }

    fn argument(job: u64) -> OsBytes {
        OsBytes::from(format!("argument {job}").as_str())
    }

    #[test]
    fn names_are_those_of_the_columns() {
        let run = tempfile::tempdir().expect("create directory");
        let names = [OsBytes::from("name"), OsBytes(vec![0xff])];
        SpoolWriter::create(run.path(), &names).expect("create spool");
        let reader = SpoolReader::open(run.path()).expect("open spool");
        assert_eq!(reader.names().expect("read names"), names);
        fs::write(run.path().join(SPOOL).join(NAMES), "[").expect("write");
        assert!(reader.names().is_err());
    }

    #[test]
    fn jobs_are_seen_when_they_are_published() {
        let run = tempfile::tempdir().expect("create directory");
        let mut writer = SpoolWriter::create(run.path(), &[]).expect("create spool");
        let reader = SpoolReader::open(run.path()).expect("open spool");
        assert_eq!(reader.count().expect("count"), Count::default());
        writer.push(&[argument(1)]).expect("append");
        assert_eq!((reader.count().expect("count").jobs, writer.unpublished()), (0, 1));
        writer.publish(false).expect("publish");
        assert_eq!(reader.count().expect("count"), Count { jobs: 1, has_ended: false });
        assert!(SpoolWriter::create(run.path(), &[]).is_err(), "the input is read once");
    }

    #[test]
    fn far_job_is_found_without_reading_the_others() {
        let run = tempfile::tempdir().expect("create directory");
        let mut reader = spooled(run.path(), 200_000);
        assert_eq!(arguments_of(&mut reader, 199_999).expect("read"), [argument(199_999)]);
        assert!(reader.part_at > 3_000_000, "it began at {}", reader.part_at);
        assert_eq!(arguments_of(&mut reader, 3).expect("read"), [argument(3)]);
        assert_eq!(arguments_of(&mut reader, 4).expect("read"), [argument(4)]);
        assert!(arguments_of(&mut reader, 0).is_err() && arguments_of(&mut reader, 200_001).is_err());
        assert_eq!(arguments_of(&mut reader, 5).expect("read"), [argument(5)]);
    }

    #[test]
    fn damaged_record_costs_its_job_alone() {
        let run = tempfile::tempdir().expect("create directory");
        let mut reader = spooled(run.path(), 1000);
        let path = run.path().join(SPOOL).join(ARGUMENTS);
        let mut file = OpenOptions::new().write(true).open(path).expect("open");
        file.seek(SeekFrom::Start(HEAD as u64)).expect("seek");
        file.write_all(b"x").expect("write");
        assert_eq!(
            arguments_of(&mut reader, 1).expect_err("it is damaged").kind(),
            io::ErrorKind::InvalidData
        );
        assert_eq!(arguments_of(&mut reader, 2).expect("read"), [argument(2)]);
    }

    #[test]
    fn zeros_and_lost_ends_are_errors() {
        let run = tempfile::tempdir().expect("create directory");
        drop(spooled(run.path(), 1000));
        let path = run.path().join(SPOOL).join(ARGUMENTS);
        let len = fs::metadata(&path).expect("look").len();
        let file = OpenOptions::new().write(true).open(&path).expect("open");
        file.set_len(len / 2).expect("cut");
        let mut reader = SpoolReader::open(run.path()).expect("open spool");
        assert!(arguments_of(&mut reader, 1000).is_err());
        assert_eq!(arguments_of(&mut reader, 7).expect("read"), [argument(7)]);
        file.set_len(len).expect("fill with zeros");
        assert!(arguments_of(&mut reader, 1000).is_err());
        fs::write(run.path().join(SPOOL).join(COUNT), "").expect("write");
        assert!(reader.count().is_err());
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused() {
        let run = tempfile::tempdir().expect("create directory");
        let mut writer = SpoolWriter::create(run.path(), &[]).expect("create spool");
        assert!(writer.push(&[OsBytes(vec![b'x'; ARGUMENTS_MAX])]).is_err());
        assert_eq!(writer.push(&[OsBytes(vec![b'x'; ARGUMENTS_MAX - 4])]).expect("it fits"), 1);
        assert_eq!(writer.push_unfit(b"why").expect("append"), 2);
        writer.publish(true).expect("publish");
        let mut reader = SpoolReader::open(run.path()).expect("open spool");
        assert_eq!(arguments_of(&mut reader, 1).expect("read")[0].0.len(), ARGUMENTS_MAX - 4);
        assert_eq!(reader.job(2).expect("read"), Spooled::Unfit(b"why".to_vec()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn arguments_are_read_as_they_were_written(
            jobs in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..4), 1..400),
            wanted in proptest::collection::vec(any::<prop::sample::Index>(), 1..50),
        ) {
            let run = tempfile::tempdir().expect("create directory");
            let jobs: Vec<Vec<OsBytes>> =
                jobs.into_iter().map(|columns| columns.into_iter().map(OsBytes).collect()).collect();
            let mut writer = SpoolWriter::create(run.path(), &[]).expect("create spool");
            for job in &jobs {
                writer.push(job).expect("append");
            }
            writer.publish(true).expect("publish");
            let mut reader = SpoolReader::open(run.path()).expect("open spool");
            for index in wanted.iter().map(|index| index.index(jobs.len())) {
                prop_assert_eq!(&arguments_of(&mut reader, index as u64 + 1).expect("read"), &jobs[index]);
            }
        }
    }
}

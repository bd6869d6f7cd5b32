//! The configuration of the splitter.

use std::fs::File;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::column::{Column, Key};
use super::header::{Header, HeaderParser};

/// The default size of a block.
pub const BLOCK: u64 = 1 << 20;

/// The largest record: a block grows until it contains one. GNU parallel has no limit.
pub(crate) const RECORD_MAX: usize = 1 << 30;
/// The longest header.
pub(crate) const HEADER_MAX: usize = 16 << 20;
/// The most blocks that wait for a job.
pub(crate) const READY_MAX: usize = 2;
/// The most file ranges, which take no memory, that wait for a job.
pub(crate) const SPANS_MAX: usize = 256;
/// Blocks in addition to those of running jobs: the waiting ones and the one that is being filled.
pub(crate) const BLOCKS_OWN: usize = READY_MAX + 1;
/// The number of blocks if all jobs get the same input: the slowest job decides when one is reused.
pub(crate) const TEE_BLOCKS: usize = 4;
/// The number of bytes read at once if the input is not cut into blocks.
pub(crate) const READ: usize = 256 << 10;
/// The most bytes that wait for a stream that gets single lines. One line may be longer.
pub(crate) const STREAM_MAX: usize = 256 << 10;
/// The longest chunk that is written at once.
pub(crate) const CHUNK_MAX: usize = 64 << 10;

/// The rules by which the input is cut into blocks and distributed to jobs.
#[derive(Clone, Debug)]
pub struct SplitterConfig {
    /// The distribution of the input to jobs.
    pub spread: Distribution,
    /// The size of a block.
    pub block: BlockSize,
    /// The number of records of a block, instead of a size: `-N` times `-L`.
    pub records: Option<NonZeroU64>,
    /// The beginning of a record. Escapes were resolved before.
    pub start: Option<Vec<u8>>,
    /// The end of a record: a line break if neither this nor `start` is set.
    pub end: Option<Vec<u8>>,
    /// `true` if these two are regular expressions.
    pub regexp: bool,
    /// `true` if the separator is removed from the end of a record.
    pub remove_separator: bool,
    /// `true` if a block of whitespace makes no job.
    pub skip_blank: bool,
    /// The part of the input that is repeated before each block.
    pub header: Option<Header>,
    /// Lines with the same value in this column form one record.
    pub group_by: Option<Column>,
    /// The regular expression between columns. Default: a tab.
    pub colsep: Option<String>,
    /// `true` if the first line of the first source is skipped.
    pub skip_first: bool,
    /// `true` if the jobs of a distribution start even if there is no input for them.
    pub all_streams: bool,
    /// The time to wait for a full block before a job gets what was read of it.
    pub block_timeout: Option<Duration>,
    /// `true` if each block that is read gets a checksum.
    pub has_checksums: bool,
    /// The number of slots that divide a file with [`BlockSize::Shares`], if it is not the number
    /// of jobs that run at once: a resumed run cuts its files as its first attempt did.
    pub share_slots: Option<NonZeroU64>,
}

/// The size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// This many bytes.
    Bytes(u64),
    /// A file is cut into this many blocks per slot.
    Shares(NonZeroU64),
}

/// The distribution of the input to jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// A job for each chunk.
    Blocks,
    /// Each block goes to a job that waits for input.
    RoundRobin,
    /// Every job gets all of the input.
    Tee,
    /// Lines with the same value in this column go to the same job.
    Shard(Column),
    /// The value in this column is the number of the job, from 1, modulo the number of jobs.
    Bin(Column),
}

/// The source of the input.
#[derive(Debug)]
pub enum SplitterSource {
    /// Streams, which are read one after the other.
    Streams(Vec<StreamSource>),
    /// Regular files, which are not read to be cut if each block has its own job.
    Files(Vec<PathBuf>),
}

/// Input that is read from its beginning to its end.
#[derive(Debug)]
pub enum StreamSource {
    /// Any descriptor that can be read; it may be non-blocking.
    Open(File),
    /// A file that is opened when it is read.
    Path(PathBuf),
}

impl Distribution {
    /// Returns the flag of a distribution whose jobs all run at once, since each gets its input bit
    /// by bit.
    pub fn flag(&self) -> Option<&'static str> {
        match self {
            Self::Blocks => None,
            Self::RoundRobin => Some("--round-robin"),
            Self::Tee => Some("--tee"),
            Self::Shard(_) => Some("--shard"),
            Self::Bin(_) => Some("--bin"),
        }
    }
}

impl Default for SplitterConfig {
    fn default() -> Self {
        Self {
            spread: Distribution::Blocks,
            block: BlockSize::Bytes(BLOCK),
            records: None,
            start: None,
            end: None,
            regexp: false,
            remove_separator: false,
            skip_blank: false,
            header: None,
            group_by: None,
            colsep: None,
            skip_first: false,
            all_streams: false,
            block_timeout: None,
            has_checksums: false,
            share_slots: None,
        }
    }
}

impl SplitterConfig {
    /// Rejects options that exclude each other, and files that cannot be split.
    pub(super) fn check(&self, source: &SplitterSource) -> Result<()> {
        let by_line = match self.spread {
            Distribution::Shard(_) => Some("--shard"),
            Distribution::Bin(_) => Some("--bin"),
            _ => None,
        };
        if let Some(flag) = by_line {
            let others = [
                (self.group_by.is_some(), "--group-by"),
                (self.records.is_some(), "-N"),
                (self.start.is_some(), "--recstart"),
                (self.end.as_ref().is_some_and(|end| end != b"\n"), "--recend"),
                (self.remove_separator, "--remove-rec-sep"),
            ];
            if let Some((_, other)) = others.iter().find(|(is_set, _)| *is_set) {
                bail!("`{flag}` distributes lines: it cannot be used with `{other}`");
            }
        }
        if self.group_by.is_some() && (self.start.is_some() || self.end.is_some()) {
            bail!("`--group-by` groups lines: it cannot be used with `--recstart` and `--recend`");
        }
        match (source, self.block) {
            (_, BlockSize::Bytes(0)) => bail!("`--block` is 0, the minimum is 1"),
            (SplitterSource::Streams(_), BlockSize::Shares(_)) => {
                bail!("a negative `--block` divides files: it requires `--pipe-part`")
            }
            _ => {}
        }
        if matches!((source, &self.spread), (SplitterSource::Files(_), Distribution::Blocks)) {
            if self.records.is_some() {
                bail!("`--pipe-part` does not count records: `-N` and `-L` require `--pipe`");
            }
            if self.remove_separator {
                bail!("`--pipe-part` does not edit the input: `--remove-rec-sep` requires `--pipe`");
            }
        }
        check_files(source)
    }

    /// Returns what finds the header, if there is one.
    pub(super) fn header_parser(&self) -> Result<Option<HeaderParser>, String> {
        self.header.as_ref().map(HeaderParser::new).transpose()
    }

    /// Returns what finds the stream of a line, if each line goes to one stream.
    pub(super) fn stream_key(&self) -> Result<Option<Key>, String> {
        match &self.spread {
            Distribution::Shard(column) | Distribution::Bin(column) => {
                Key::new(column.clone(), self.colsep.as_deref()).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Rejects files that cannot be read, so that no job starts before that is known.
fn check_files(source: &SplitterSource) -> Result<()> {
    let about = |path: &Path| std::fs::metadata(path).with_context(|| cannot_read(path));
    match source {
        SplitterSource::Streams(sources) => {
            for source in sources {
                if let StreamSource::Path(path) = source
                    && about(path)?.is_dir()
                {
                    return Err(anyhow!("is a directory").context(cannot_read(path)));
                }
            }
        }
        SplitterSource::Files(paths) => {
            for path in paths {
                if !about(path)?.is_file() {
                    bail!(
                        "`{}` is not a regular file, which --pipe-part requires (`--pipe` reads standard \
                         input)",
                        path.display()
                    );
                }
            }
        }
    }
    Ok(())
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read `{}`", path.display())
}

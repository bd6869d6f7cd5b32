//! What a run was asked to do: enough to go on with it by its id alone.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::event::OsBytes;

/// Its name in the run's folder.
pub const MANIFEST: &str = "manifest.json";
/// Its name until it is whole.
pub const UNFINISHED: &str = "manifest.json.tmp";
/// The arguments of the command line, each with a NUL behind it.
pub const ARGUMENTS: &str = "arguments";

/// The most that is read of a manifest.
const LEN_MAX: u64 = 16 << 20;

/// What a run was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of minder.
    pub version: String,
    /// The run's id.
    pub run: String,
    /// Its place among all runs, from 1: the higher, the later. Runs of old versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Seconds since 1970, by a clock that may jump.
    pub at: f64,
    /// The folder that it was started in.
    pub cwd: OsBytes,
    /// The command as typed, with its placeholders.
    pub words: Vec<OsBytes>,
    /// The flags that are needed again.
    #[serde(default)]
    pub flags: BTreeMap<String, serde_json::Value>,
    /// Where the arguments come from.
    pub input: InputSource,
}

/// Where the arguments came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "lowercase")]
pub enum InputSource {
    /// The command line: what stood behind the command lies in this file of the run's folder. Files
    /// of arguments had these marks; standard input may be read beside them.
    Arguments {
        /// The name of the file with the arguments.
        file: String,
        /// The number of arguments.
        count: u64,
        /// The number of jobs, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        jobs: Option<u64>,
        /// The files with arguments, as they were.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileFingerprint>,
        /// What standard input was read from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdin: Option<Box<InputSource>>,
    },
    /// A file that had these marks when the run began.
    File(FileFingerprint),
    /// They cannot be had again.
    /// The reason.
    Lost {
        /// Why they are lost.
        why: String,
    },
}

/// What a file is known by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileFingerprint {
    /// The absolute path.
    pub path: OsBytes,
    /// The device number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<u64>,
    /// The inode number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ino: Option<u64>,
    /// The length in bytes.
    pub len: u64,
    /// Nanoseconds since 1970, if the file system says.
    pub mtime: Option<u64>,
}

impl Manifest {
    /// A manifest of a run that begins now, whose id is given to it by
    /// [`JournalWriter::create`](super::writer::JournalWriter::create).
    pub fn new(cwd: &Path, words: &[impl AsRef<OsStr>], input: InputSource) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: String::new(),
            number: None,
            at: super::event::now(),
            cwd: cwd.as_os_str().into(),
            words: words.iter().map(|word| word.as_ref().into()).collect(),
            flags: BTreeMap::new(),
            input,
        }
    }

    /// Writes the manifest under another name and renames it, so that a reader never sees a part of
    /// it.
    pub(crate) fn write(&self, folder: &Path, sync: bool) -> io::Result<()> {
        let unfinished = folder.join(UNFINISHED);
        let mut file = minder_os::files::create_private_file(&unfinished)?;
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        file.write_all(&text)?;
        if sync {
            file.sync_all()?;
        }
        drop(file);
        fs::rename(unfinished, folder.join(MANIFEST))
    }

    /// Reads the manifest of a run.
    ///
    /// # Errors
    /// When it is missing, a link, too large, or not understood.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let read = || -> Result<Self> {
            let mut text = Vec::new();
            open_file(&path)?.take(LEN_MAX + 1).read_to_end(&mut text)?;
            ensure!(text.len() as u64 <= LEN_MAX, "it is too large");
            Ok(serde_json::from_slice(&text)?)
        };
        read().with_context(|| format!("cannot read the manifest `{}`", path.display()))
    }

    /// The arguments of the command line, exactly as they were.
    ///
    /// # Errors
    /// When they are not kept, or not all of them are there.
    pub fn arguments(&self, folder: &Path) -> Result<Vec<OsString>> {
        let InputSource::Arguments { file, count, .. } = &self.input else {
            bail!("the arguments of run {} are not in its record", self.run);
        };
        ensure!(file == ARGUMENTS, "the manifest of run {} names an unknown file `{file}`", self.run);
        let path = folder.join(ARGUMENTS);
        let mut bytes = Vec::new();
        open_file(&path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .with_context(|| format!("cannot read the arguments `{}`", path.display()))?;
        let mut found: Vec<OsString> = bytes
            .split(|&byte| byte == 0)
            .map(|bytes| minder_os::encoding::os_string_from_encoded(bytes.to_vec()))
            .collect();
        let rest = found.pop().unwrap_or_default();
        let whole = rest.is_empty() && found.len() as u64 == *count;
        ensure!(whole, "`{}` is damaged: it has {} of {count} arguments", path.display(), found.len());
        Ok(found)
    }
}

impl InputSource {
    /// The command line; they are counted when they are written.
    pub fn arguments(
        jobs: Option<u64>,
        files: Vec<FileFingerprint>,
        stdin: Option<Box<InputSource>>,
    ) -> Self {
        Self::Arguments { file: ARGUMENTS.to_owned(), count: 0, jobs, files, stdin }
    }

    /// The marks of a file of arguments, if it can be had again: a pipe has none.
    pub fn marks(path: &Path) -> Option<FileFingerprint> {
        FileFingerprint::of(path).ok()
    }

    /// A file as it is now.
    pub fn file(path: &Path) -> io::Result<Self> {
        FileFingerprint::of(path).map(Self::File)
    }
}

impl FileFingerprint {
    fn of(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let about = fs::metadata(&path)?;
        if !about.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mtime = about.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let mtime = mtime.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Ok(Self { path: path.as_os_str().into(), dev: None, ino: None, len: about.len(), mtime })
    }

    /// Refuses a file that is no longer what it was.
    pub fn check(&self) -> Result<()> {
        let path = self.path.to_os();
        let now =
            Self::of(Path::new(&path)).with_context(|| format!("cannot read the input `{}`", self.path))?;
        ensure!(
            now.len == self.len && now.mtime == self.mtime,
            "the input `{}` was changed since the run began",
            self.path
        );
        Ok(())
    }
}

/// Writes the arguments; says how many there are.
pub(crate) fn write_arguments(
    folder: &Path,
    arguments: impl IntoIterator<Item: AsRef<OsStr>>,
    sync: bool,
) -> io::Result<u64> {
    let mut file =
        BufWriter::with_capacity(64 << 10, minder_os::files::create_private_file(&folder.join(ARGUMENTS))?);
    let mut count = 0;
    for argument in arguments {
        let bytes = argument.as_ref().as_encoded_bytes();
        if bytes.contains(&0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an argument contains a NUL byte"));
        }
        file.write_all(bytes)?;
        file.write_all(&[0])?;
        count += 1;
    }
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    if sync {
        file.sync_all()?;
    }
    Ok(count)
}

/// Opens a regular file: no link is followed, and no pipe waited for.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    minder_os::files::open_no_follow(path)
}

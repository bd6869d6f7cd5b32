//! The manifest of a run: what the run was asked to do, so that its id is enough to resume it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::error::{Context, Error, ErrorKind, Result};
use crate::event::OsBytes;

/// The name of the manifest in the directory of a run.
pub const MANIFEST: &str = "manifest.json";
/// The name of a manifest that is not complete yet.
pub const UNFINISHED: &str = "manifest.json.tmp";
/// The name of the file with the arguments of the command line, each followed by a NUL byte.
pub const ARGUMENTS: &str = "arguments";

/// The maximum length of a manifest in bytes.
const LEN_MAX: u64 = 16 << 20;

/// The description of a run, from which it can be resumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of minder that began the run.
    pub version: String,
    /// The id of the run: 8 hexadecimal digits.
    pub run: String,
    /// The number of the run, counted from 1. Later runs have higher numbers. Runs of old versions
    /// have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The time at which the run began, in seconds since 1970. The clock may jump.
    pub at: f64,
    /// The working directory of the command.
    pub cwd: OsBytes,
    /// The command as the user typed it, with its placeholders.
    pub words: Vec<OsBytes>,
    /// Variables of the environment in which the run began. Old versions recorded none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, OsBytes>,
    /// The flags that resuming needs, by name.
    #[serde(default)]
    pub flags: BTreeMap<String, serde_json::Value>,
    /// The source of the arguments.
    pub input: InputSource,
}

/// The source of the jobs' arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "lowercase")]
pub enum InputSource {
    /// The command line. A file in the directory of the run contains the arguments after the
    /// command. Some of them may name files with arguments, and standard input may be read as
    /// well.
    Arguments {
        /// The name of the file with the arguments.
        file: String,
        /// The number of arguments.
        count: u64,
        /// The number of jobs, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        jobs: Option<u64>,
        /// The files with arguments, as they were when the run began.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileFingerprint>,
        /// The source of standard input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdin: Option<Box<InputSource>>,
    },
    /// A file, as it was when the run began.
    File(FileFingerprint),
    /// A source that cannot be read again, such as a pipe.
    Lost {
        /// Why it cannot be read again.
        why: String,
    },
}

/// The properties by which a changed file is noticed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileFingerprint {
    /// The absolute path.
    pub path: OsBytes,
    /// The device number. This version does not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<u64>,
    /// The inode number. This version does not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ino: Option<u64>,
    /// The length in bytes.
    pub len: u64,
    /// The time of its last modification, in nanoseconds since 1970, if the file system records
    /// that.
    pub mtime: Option<u64>,
}

impl Manifest {
    /// Returns the manifest of a run that begins now. Its id and its number are empty until
    /// [`JournalWriter::create`](crate::writer::JournalWriter::create) assigns them.
    pub fn new(cwd: &Path, command: &[impl AsRef<OsStr>], input: InputSource) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: String::new(),
            number: None,
            at: crate::event::now(),
            cwd: cwd.as_os_str().into(),
            words: command.iter().map(|argument| argument.as_ref().into()).collect(),
            environment: BTreeMap::new(),
            flags: BTreeMap::new(),
            input,
        }
    }

    /// Writes the manifest under another name and renames it, so that readers never see a part of
    /// it.
    pub(crate) fn write(&self, dir: &Path, sync: bool) -> io::Result<()> {
        let unfinished = dir.join(UNFINISHED);
        let mut file = minder_os::files::create_private_file(&unfinished)?;
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        file.write_all(&text)?;
        if sync {
            file.sync_all()?;
        }
        drop(file);
        fs::rename(unfinished, dir.join(MANIFEST))
    }

    /// Reads the manifest of a run.
    ///
    /// # Errors
    ///
    /// If the file is missing, a link, larger than 16 MiB, or not a manifest.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(MANIFEST);
        let read = || -> Result<Self> {
            let mut text = Vec::new();
            open_file(&path)?.take(LEN_MAX + 1).read_to_end(&mut text)?;
            if text.len() as u64 > LEN_MAX {
                return Err(Error::new(ErrorKind::Corrupt, "it is too large"));
            }
            Ok(serde_json::from_slice(&text)?)
        };
        read().context(|| format!("cannot read the manifest `{}`", path.display()))
    }

    /// Reads the arguments of the command line after the command.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoArguments`] if the arguments came from elsewhere, [`ErrorKind::Corrupt`] if
    /// some of them are missing, or an error of the file system.
    pub fn arguments(&self, dir: &Path) -> Result<Vec<OsString>> {
        let InputSource::Arguments { file, count, .. } = &self.input else {
            let text = format!("the arguments of run {} are not in its record", self.run);
            return Err(Error::new(ErrorKind::NoArguments, text));
        };
        if file != ARGUMENTS {
            let text = format!("the manifest of run {} names an unknown file `{file}`", self.run);
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        let path = dir.join(ARGUMENTS);
        let mut bytes = Vec::new();
        open_file(&path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .context(|| format!("cannot read the arguments `{}`", path.display()))?;
        let mut found: Vec<OsString> = bytes
            .split(|&byte| byte == 0)
            .map(|bytes| minder_os::encoding::os_string_from_encoded(bytes.to_vec()))
            .collect();
        let rest = found.pop().unwrap_or_default();
        if !rest.is_empty() || found.len() as u64 != *count {
            let text =
                format!("`{}` is damaged: it has {} of {count} arguments", path.display(), found.len());
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        Ok(found)
    }

    /// Returns the arguments of the command line that are in the first bytes of their file. Without
    /// that file, there are none.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn first_arguments(&self, dir: &Path, bytes_max: u64) -> io::Result<Vec<OsBytes>> {
        if !matches!(self.input, InputSource::Arguments { .. }) {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        open_file(&dir.join(ARGUMENTS))?.take(bytes_max).read_to_end(&mut bytes)?;
        let whole = bytes.split_inclusive(|byte| *byte == 0).filter_map(|bytes| bytes.strip_suffix(b"\0"));
        Ok(whole.map(OsBytes::from).collect())
    }
}

impl InputSource {
    /// Returns the command line as a source. The arguments are counted when they are written.
    pub fn arguments(
        jobs: Option<u64>,
        files: Vec<FileFingerprint>,
        stdin: Option<Box<InputSource>>,
    ) -> Self {
        Self::Arguments { file: ARGUMENTS.to_owned(), count: 0, jobs, files, stdin }
    }

    /// Returns the fingerprint of a file with arguments, or `None` if it is not a regular file.
    pub fn fingerprint(path: &Path) -> Option<FileFingerprint> {
        FileFingerprint::of(path).ok()
    }

    /// Returns a regular file as a source, with its current fingerprint.
    ///
    /// # Errors
    ///
    /// If the file cannot be inspected, or is not a regular file.
    pub fn file(path: &Path) -> io::Result<Self> {
        FileFingerprint::of(path).map(Self::File)
    }
}

impl FileFingerprint {
    fn of(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let metadata = fs::metadata(&path)?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mtime =
            metadata.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let mtime = mtime.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Ok(Self { path: path.as_os_str().into(), dev: None, ino: None, len: metadata.len(), mtime })
    }

    /// Checks that length and modification time of the file are still the same.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InputChanged`] if they changed, or an error of the file system.
    pub fn check(&self) -> Result<()> {
        let path = self.path.to_os();
        let now = Self::of(Path::new(&path)).context(|| format!("cannot read the input `{}`", self.path))?;
        if now.len != self.len || now.mtime != self.mtime {
            let text = format!("the input `{}` was changed since the run began", self.path);
            return Err(Error::new(ErrorKind::InputChanged, text));
        }
        Ok(())
    }
}

/// Writes the file with the arguments. Returns their number.
pub(crate) fn write_arguments(
    dir: &Path,
    arguments: impl IntoIterator<Item: AsRef<OsStr>>,
    sync: bool,
) -> io::Result<u64> {
    let mut file =
        BufWriter::with_capacity(64 << 10, minder_os::files::create_private_file(&dir.join(ARGUMENTS))?);
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

/// Opens a regular file for reading. Does not follow a link, and does not wait for a named pipe.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    minder_os::files::open_no_follow(path)
}

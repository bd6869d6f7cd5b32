//! The files of one job in addition to standard output: `--results` in GNU parallel's layout
//! (`DIR/1/ARGUMENT/stdout`, `stderr` and `seq`, or files that the user names), and `--files`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf, is_separator};

use minder::Stream;
use minder_os::encoding::os_string_from_encoded;
use minder_os::files::{create_private_file, remove_open_file};

use crate::config;
use crate::config::OutputFiles;
use crate::read_range::read_range;
use crate::results::path_escape::PathRules;
use crate::text::os_error_text;
use minder_template::{Job, Template};

/// The most names that are tried for a file that must not exist yet.
const NAMES_MAX: u32 = 1000;

/// The files of one job.
#[derive(Debug)]
pub(crate) struct JobResults {
    /// The path that messages name.
    place: PathBuf,
    files: [Option<File>; 2],
    /// `true` for each stream that is also written to standard output or standard error.
    shown: [bool; 2],
    /// The name that is written in place of the standard output.
    name: Option<PathBuf>,
    /// `true` if the file is useless until its name is written.
    nameless: bool,
    /// The size of the header before the job's output, and whether the job writes to the file
    /// itself.
    head: u64,
    straight: [bool; 2],
}

impl JobResults {
    /// Creates the files of a job, if it has any. Files of an earlier run are replaced, and links
    /// are not followed. `run` is the id of the run.
    pub(crate) fn create(
        wanted: &OutputFiles,
        job: &Job<'_>,
        run: Option<&str>,
    ) -> Result<Option<Self>, String> {
        if !wanted.has_job_files() {
            return Ok(None);
        }
        let cannot = |path: &Path, error: &io::Error| cannot_write(path, error);
        let (paths, place) = match &wanted.results {
            Some(config::Results::Tree { root, keys }) => {
                let dir = below(root, &keys.of(job.columns)).map_err(|error| cannot(root, &error))?;
                let paths = create_job_dir(&dir).map_err(|error| cannot(root, &error))?;
                (paths, dir)
            }
            Some(config::Results::Named(name)) => {
                let name = text(name, job)?;
                let paths = named(&name).map_err(|error| cannot(Path::new(&name), &error))?;
                (paths, PathBuf::from(name))
            }
            Some(config::Results::Table { .. }) | None => return Self::alone(wanted, job, run).map(Some),
        };
        let [out, err, number] = paths;
        let make = |path: &Path| anew(path).map_err(|error| cannot(&place, &error));
        let mut seq = make(&number)?;
        seq.write_all(job.number.to_string().as_bytes()).map_err(|error| cannot(&place, &error))?;
        let files = [Some(make(&out)?), Some(make(&err)?)];
        Ok(Some(Self {
            files,
            shown: [wanted.shown && !wanted.names, wanted.shown],
            name: wanted.names.then_some(out),
            nameless: false,
            head: 0,
            straight: [false; 2],
            place,
        }))
    }

    /// Creates a file for standard output alone.
    fn alone(wanted: &OutputFiles, job: &Job<'_>, run: Option<&str>) -> Result<Self, String> {
        let (file, path) = create_output_file(wanted, job.number, run)?;
        Ok(Self {
            place: path.clone(),
            files: [Some(file), None],
            shown: [false, true],
            name: Some(path),
            nameless: true,
            head: 0,
            straight: [false; 2],
        })
    }

    /// Returns `true` if this stream is also written to standard output or standard error.
    pub(crate) fn shows(&self, stream: Stream) -> bool {
        self.shown[stream as usize]
    }

    /// Returns the file for a stream that is not shown, so that the job writes to it directly.
    pub(crate) fn hand_over(&mut self, stream: Stream) -> io::Result<Option<File>> {
        let file = match &self.files[stream as usize] {
            Some(file) if !self.shown[stream as usize] => Some(file.try_clone()?),
            _ => None,
        };
        self.straight[stream as usize] = file.is_some();
        Ok(file)
    }

    /// Returns the file that the job wrote to directly, and how many bytes are the job's.
    pub(crate) fn handed_over(&self, stream: Stream) -> io::Result<Option<(&File, u64)>> {
        if !self.straight[stream as usize] {
            return Ok(None);
        }
        let Some(file) = &self.files[stream as usize] else { return Ok(None) };
        let head = if stream == Stream::Stdout { self.head } else { 0 };
        Ok(Some((file, file.metadata()?.len().saturating_sub(head))))
    }

    /// Writes the header before the job's output.
    pub(crate) fn begin(&mut self, head: &[u8]) -> io::Result<()> {
        self.head = head.len() as u64;
        self.push(Stream::Stdout, head)
    }

    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        match &mut self.files[stream as usize] {
            Some(file) => file.write_all(bytes),
            None => Ok(()),
        }
    }

    /// Appends a part of a file.
    pub(crate) fn push_file(&mut self, stream: Stream, from: &File, at: u64, end: u64) -> io::Result<()> {
        match &mut self.files[stream as usize] {
            Some(file) => read_range(from, at..end, |bytes| file.write_all(bytes)),
            None => Ok(()),
        }
    }

    /// Returns the line that is written in place of the standard output.
    pub(crate) fn line(&self) -> Option<Vec<u8>> {
        let name = self.name.as_ref()?;
        Some([name.as_os_str().as_encoded_bytes(), b"\n"].concat())
    }

    /// Drops the files before the job runs again. A file whose name was not written yet is removed.
    pub(crate) fn discard(self) {
        if let (true, Some(name)) = (self.nameless, self.name) {
            let _ = fs::remove_file(name);
        }
    }

    /// Returns the path that messages name.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }
}

pub(crate) fn cannot_write(results: &Path, error: &io::Error) -> String {
    format!("cannot write results in `{}`: {}", results.display(), os_error_text(error))
}

/// Expands a template with the values of a job.
pub(super) fn text(template: &Template, job: &Job<'_>) -> Result<OsString, String> {
    let words = template.argv(job).map_err(|error| error.to_string())?;
    Ok(words.into_iter().next().unwrap_or_default())
}

/// Creates the directory of a job and the missing directories above it.
fn below(root: &Path, keys: &[(OsString, &OsStr)]) -> io::Result<PathBuf> {
    create_dirs(root)?;
    let mut dir = root.to_owned();
    for (key, value) in keys {
        for name in [key.as_os_str(), value] {
            dir = crate::results::path_escape::create_value_dir(&dir, name, PathRules::of_system())?;
        }
    }
    Ok(dir)
}

/// Creates a directory and the missing directories above it. If something else has its name, the first
/// file in it cannot be created, and that error tells why.
fn create_dirs(dir: &Path) -> io::Result<()> {
    match fs::create_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Creates a directory, and returns the paths of the files for both streams and the number.
fn create_job_dir(dir: &Path) -> io::Result<[PathBuf; 3]> {
    create_dirs(dir)?;
    if fs::symlink_metadata(dir)?.is_symlink() {
        return Err(io::Error::other(format!("`{}` is a link", dir.display())));
    }
    Ok(["stdout", "stderr", "seq"].map(|name| dir.join(name)))
}

/// Returns the paths of the files for both streams and the number, as the user named them: in a
/// directory if the name ends with a separator.
fn named(name: &OsStr) -> io::Result<[PathBuf; 3]> {
    refuse_data_stream(Path::new(name))?;
    let bytes = name.as_encoded_bytes();
    if bytes.last().is_some_and(|last| is_separator(char::from(*last))) {
        return create_job_dir(Path::new(name).components().as_path());
    }
    if let Some(dir) = Path::new(name).parent().filter(|dir| !dir.as_os_str().is_empty()) {
        create_dirs(dir)?;
    }
    Ok([&b""[..], b".err", b".seq"].map(|end| PathBuf::from(os_string_from_encoded([bytes, end].concat()))))
}

/// Refuses a name that Windows would take for an alternate data stream, where the output would not
/// be found ("Naming Files, Paths, and Namespaces").
pub(super) fn refuse_data_stream(name: &Path) -> io::Result<()> {
    let holds = |part: Component<'_>| match part {
        Component::Normal(part) => part.as_encoded_bytes().contains(&b':'),
        _ => false,
    };
    if PathRules::of_system() == PathRules::Windows && name.components().any(holds) {
        let text = "on Windows, `:` selects an alternate data stream, in which the output would be hidden";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// Creates a file and replaces an existing one.
fn anew(path: &Path) -> io::Result<File> {
    loop {
        match remove_open_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => (),
        }
        match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
            // A job with the same argument on the other worker thread was faster: the last one
            // wins.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            made => return made,
        }
    }
}

/// Creates the file of `--files` for one job, which only its owner can read.
pub(crate) fn create_output_file(
    wanted: &OutputFiles,
    number: u64,
    run: Option<&str>,
) -> Result<(File, PathBuf), String> {
    let dir = &wanted.directory;
    let made = (0..NAMES_MAX).find_map(|time| {
        let path = dir.join(own_name(wanted, number, run, time));
        match create_private_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            made => Some(made.map(|file| (file, path))),
        }
    });
    let taken = || Err(io::Error::other("all names are taken"));
    made.unwrap_or_else(taken).map_err(|error| {
        format!("cannot make a file for output in `{}`: {}", dir.display(), os_error_text(&error))
    })
}

/// Returns a name for the file with one job's output. Each `time` gives another one.
fn own_name(wanted: &OutputFiles, number: u64, run: Option<&str>, time: u32) -> String {
    if wanted.gnu_names {
        // Scripts expect GNU parallel's names: `par`, five letters, `.par`.
        let mut sum = u64::from(crc32fast::hash(format!("{}-{number}-{time}", wanted.token).as_bytes()));
        let letter = |_| {
            let letter = char::from_digit((sum % 36) as u32, 36).unwrap_or('0');
            sum /= 36;
            letter
        };
        return format!("par{}.par", (0..5).map(letter).collect::<String>());
    }
    let again = if time == 0 { String::new() } else { format!("-{}", time + 1) };
    format!("minder-{}-{number}{again}.out", run.unwrap_or(&wanted.token))
}

//! Files that go to a host before a job, and come back after it, as parts in [messages](crate::protocol).
//!
//! A file appears under its name when it is complete: until then it has another name in the same directory.
//! Permissions go with it, as far as the umask of the receiver allows; owners, times and links do not. A link
//! is read: its content is sent. In a directory, links to directories are left out.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

use minder_os::files::{create_file_with_mode, mode};
use minder_record::agents::AgentKey;
use minder_record::event::OsBytes;

use crate::file::named;

/// The most bytes of one part.
pub const PART_MAX: usize = 64 << 10;
/// The most files and directories below one name.
const FILES_MAX: usize = 1_000_000;

/// A part of a file, or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it goes: relative to the directory of the receiver, or absolute.
    pub name: OsBytes,
    /// The permissions.
    pub mode: u32,
    /// What it is.
    pub kind: PartKind,
    /// The bytes, of a file.
    pub bytes: Vec<u8>,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A directory.
    Directory,
    /// The beginning of a file, and not all of it.
    First,
    /// More of the file that was begun.
    Middle,
    /// The end of the file that was begun.
    Last,
    /// A whole file.
    Whole,
}

impl PartKind {
    /// All kinds, in the order of their numbers in messages.
    pub(crate) const ALL: [Self; 5] = [Self::Directory, Self::First, Self::Middle, Self::Last, Self::Whole];
}

/// Returns where a file goes: what follows `/./` in its name, if it has that, without `.` in between.
///
/// ```
/// use std::path::{Path, PathBuf};
/// use minder_cluster::transfer::place;
///
/// assert_eq!(place(Path::new("data/./a/b.txt")), Ok(PathBuf::from("a/b.txt")));
/// assert_eq!(place(Path::new("./b.txt")), Ok(PathBuf::from("b.txt")));
/// assert_eq!(place(Path::new("/tmp/b.txt")), Ok(PathBuf::from("/tmp/b.txt")));
/// assert!(place(Path::new("../b.txt")).is_err());
/// ```
///
/// # Errors
/// It is outside of the directory of the receiver, and not absolute.
pub fn place(name: &Path) -> Result<PathBuf, String> {
    let bytes = name.as_os_str().as_encoded_bytes();
    let start = bytes.windows(3).position(|part| part == b"/./").map_or(0, |at| at + 3);
    let rest = PathBuf::from(minder_os::encoding::os_string_from_encoded(bytes[start..].to_vec()));
    let mut place = PathBuf::new();
    for component in rest.components() {
        match component {
            Component::CurDir => (),
            Component::ParentDir => {
                return Err(format!("`{}` leads out of the directory of the jobs", name.display()));
            }
            other => place.push(other),
        }
    }
    if place.as_os_str().is_empty() || place == Path::new("/") {
        return Err(format!("`{}` is not the name of a file", name.display()));
    }
    Ok(place)
}

/// Reads files, part by part.
#[derive(Debug, Default)]
pub struct Sender {
    /// What is left: where each is, and where it goes.
    left: VecDeque<(PathBuf, PathBuf)>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    path: PathBuf,
    name: OsBytes,
    mode: u32,
    has_begun: bool,
    next: Vec<u8>,
}

impl Sender {
    /// Adds a file, or a directory with all that is in it. `place` is where it goes.
    pub fn push(&mut self, path: PathBuf, place: PathBuf) {
        self.left.push_back((path, place));
    }

    /// Returns whether nothing is left.
    pub fn is_done(&self) -> bool {
        self.left.is_empty() && self.open.is_none()
    }

    /// Leaves out the rest.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the next part, or `None` if nothing is left.
    ///
    /// # Errors
    /// A file cannot be read, or is neither a file nor a directory.
    pub fn next_part(&mut self) -> io::Result<Option<Part>> {
        if let Some(open) = &mut self.open {
            let following = read_part(&mut open.file, &open.path)?;
            let is_last = following.is_empty();
            let kind = match (open.has_begun, is_last) {
                (false, true) => PartKind::Whole,
                (false, false) => PartKind::First,
                (true, false) => PartKind::Middle,
                (true, true) => PartKind::Last,
            };
            let bytes = std::mem::replace(&mut open.next, following);
            open.has_begun = true;
            let part = Part { name: open.name.clone(), mode: open.mode, kind, bytes };
            if is_last {
                self.open = None;
            }
            return Ok(Some(part));
        }
        let Some((path, place)) = self.left.pop_front() else { return Ok(None) };
        let failed = |error: &io::Error| named("cannot read", &path, error);
        // A named pipe is not opened: that would wait for a writer.
        let metadata = fs::metadata(&path).map_err(|error| failed(&error))?;
        let name = OsBytes::from(place.as_os_str());
        let mode = mode(&metadata);
        if metadata.is_dir() {
            self.push_entries(&path, &place)?;
            return Ok(Some(Part { name, mode, kind: PartKind::Directory, bytes: Vec::new() }));
        }
        if !metadata.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a directory");
            return Err(failed(&error));
        }
        let mut file = File::open(&path).map_err(|error| failed(&error))?;
        let next = read_part(&mut file, &path)?;
        self.open = Some(Open { file, path, name, mode, has_begun: false, next });
        self.next_part()
    }

    fn push_entries(&mut self, dir: &Path, place: &Path) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir).map_err(|error| named("cannot read", dir, &error))? {
            entries.push(entry?.file_name());
        }
        entries.sort();
        for name in entries.into_iter().rev() {
            let path = dir.join(&name);
            let is_link = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
            let is_sent =
                fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() || metadata.is_dir() && !is_link);
            if is_sent {
                self.left.push_front((path, place.join(&name)));
            }
        }
        if self.left.len() > FILES_MAX {
            let text = format!("it has more than {FILES_MAX} files");
            return Err(named("cannot send", dir, &io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        Ok(())
    }
}

fn read_part(file: &mut File, path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.take(PART_MAX as u64).read_to_end(&mut bytes);
    read.map_err(|error| named("cannot read", path, &error))?;
    Ok(bytes)
}

/// Writes files, part by part.
#[derive(Debug)]
pub struct Receiver {
    dir: PathBuf,
    open: Option<Incoming>,
    has_ended: bool,
}

#[derive(Debug)]
struct Incoming {
    file: File,
    name: OsBytes,
    path: PathBuf,
    unfinished: PathBuf,
}

impl Drop for Incoming {
    /// Removes a file that was not finished.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.unfinished);
    }
}

impl Receiver {
    /// Creates one for files whose names are relative to a directory.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, open: None, has_ended: false }
    }

    /// Writes a part. Returns where the file is, when it is complete.
    ///
    /// # Errors
    /// It cannot be written. The file that was begun is removed.
    pub fn take(&mut self, part: &Part) -> io::Result<Option<PathBuf>> {
        let result = self.try_take(part);
        if result.is_err() {
            self.open = None;
        }
        result
    }

    /// Removes the file that was begun. Later parts are refused.
    pub fn end(&mut self) {
        self.open = None;
        self.has_ended = true;
    }

    fn try_take(&mut self, part: &Part) -> io::Result<Option<PathBuf>> {
        let path = self.dir.join(part.name.to_os());
        let failed = |error: io::Error| named("cannot write", &path, &error);
        if self.has_ended {
            return Err(failed(io::ErrorKind::Interrupted.into()));
        }
        match part.kind {
            PartKind::Directory => {
                fs::create_dir_all(&path).map_err(failed)?;
                return Ok(None);
            }
            PartKind::First | PartKind::Whole => self.open = Some(begin(&path, part).map_err(failed)?),
            PartKind::Middle | PartKind::Last => (),
        }
        let Some(open) = self.open.as_mut().filter(|open| open.name == part.name) else {
            let error = io::Error::new(io::ErrorKind::InvalidData, "its beginning is missing");
            return Err(failed(error));
        };
        open.file.write_all(&part.bytes).map_err(failed)?;
        if matches!(part.kind, PartKind::First | PartKind::Middle) {
            return Ok(None);
        }
        let open = self.open.take();
        if let Some(open) = open {
            fs::rename(&open.unfinished, &open.path).map_err(failed)?;
        }
        Ok(Some(path))
    }
}

/// Creates a file under another name, and the directories above it.
fn begin(path: &Path, part: &Part) -> io::Result<Incoming> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    fs::create_dir_all(dir)?;
    let mut unfinished = std::ffi::OsString::from(".");
    // A long name would not leave room.
    let short: String = name.to_string_lossy().chars().take(40).collect();
    unfinished.push(format!("{short}.minder-{}", AgentKey::random()));
    let unfinished = dir.join(unfinished);
    let file = create_file_with_mode(&unfinished, part.mode)?;
    Ok(Incoming { file, name: part.name.clone(), path: path.to_owned(), unfinished })
}

/// Removes files and directories below a directory, and then the directories above them that are empty, up to
/// the directory itself. What does not exist is left out.
pub fn remove(dir: &Path, names: &[PathBuf]) {
    for name in names {
        let path = dir.join(name);
        let is_dir = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
        let _ = if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        let above = path.ancestors().skip(1).take_while(|above| *above != dir && above.starts_with(dir));
        for empty in above {
            if fs::remove_dir(empty).is_err() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(from: &Path, name: &str, to: &Path) -> io::Result<()> {
        let mut sender = Sender::default();
        sender.push(from.join(name), place(Path::new(name)).expect("a place"));
        let mut receiver = Receiver::new(to.to_owned());
        while let Some(part) = sender.next_part()? {
            receiver.take(&part)?;
        }
        assert!(sender.is_done());
        Ok(())
    }

    #[test]
    fn files_and_directories_are_copied() {
        let from = tempfile::tempdir().expect("create directory");
        let to = tempfile::tempdir().expect("create directory");
        let sizes = [0, 1, PART_MAX - 1, PART_MAX, PART_MAX + 1, 3 * PART_MAX];
        fs::create_dir_all(from.path().join("a/b/empty")).expect("create directories");
        for size in sizes {
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            fs::write(from.path().join(format!("a/b/{size}")), bytes).expect("write file");
        }
        copy(from.path(), "a", to.path()).expect("copy");
        assert!(to.path().join("a/b/empty").is_dir());
        for size in sizes {
            let name = format!("a/b/{size}");
            let read = |dir: &Path| fs::read(dir.join(&name)).expect("read file");
            assert!(read(from.path()) == read(to.path()), "{name}");
        }
        let names = fs::read_dir(to.path().join("a/b")).expect("list").count();
        assert_eq!(names, sizes.len() + 1, "no unfinished file is left");
        remove(to.path(), &["a/b".into()]);
        assert_eq!(fs::read_dir(to.path()).expect("list").count(), 0, "empty directories are removed");
    }

    #[test]
    fn unfinished_file_is_removed() {
        let to = tempfile::tempdir().expect("create directory");
        let mut receiver = Receiver::new(to.path().to_owned());
        let part = Part { name: "x".into(), mode: 0o644, kind: PartKind::First, bytes: b"a".to_vec() };
        receiver.take(&part).expect("write");
        let other = Part { name: "y".into(), kind: PartKind::Last, ..part };
        assert!(receiver.take(&other).is_err());
        let left = || fs::read_dir(to.path()).expect("list").count();
        assert_eq!(left(), 0);
        let part = Part { name: "x".into(), kind: PartKind::First, ..other };
        receiver.take(&part).expect("write");
        assert_eq!(left(), 1);
        receiver.end();
        assert!(receiver.take(&part).is_err());
        assert_eq!(left(), 0);
    }

    #[test]
    fn missing_file_and_pipe_are_errors() {
        let from = tempfile::tempdir().expect("create directory");
        let to = tempfile::tempdir().expect("create directory");
        let error = copy(from.path(), "none", to.path()).expect_err("no file").to_string();
        assert!(error.contains("none"), "{error}");
    }
}

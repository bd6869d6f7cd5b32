//! The file in which measurements are kept, so that an interrupted run can be continued.
//!
//! Its first line names the program and the processors, and each other line is a row of JSON. Opening it
//! writes a new file beside it and renames that: a link is never followed, another program's file is never
//! changed, and a line that a crash left incomplete is gone.
//!
//! The lock is on another file beside it, since each start puts a new file in place of the results. It is
//! held from before they are read. The lock file is never removed: another process may have opened it to
//! lock it, and would then lock a file that has no name.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use minder_os::files::{create_private_file, is_owned_by_user, is_writable_by_others, open_no_follow};
use minder_record::append_file::LineWriter;
use minder_record::reader::Corruption;
use minder_record::store;

use super::rows::{Row, columns};
use minder_ui::rows::{Format, Rows};
use minder_ui::{format_bytes, message};

/// The file in the state directory.
const NAME: &str = "turnaround.jsonl";
/// The longest file that is read: a full run has 1 MB.
const BYTES_MAX: u64 = 64 << 20;

/// A file of measurements, which no other process writes.
#[derive(Debug)]
pub(super) struct ResultsFile {
    path: PathBuf,
    writer: LineWriter<File>,
    _lock: File,
}

impl ResultsFile {
    /// Returns the path of the file in the state directory, and creates that.
    ///
    /// # Errors
    /// If there is no state directory, it cannot be created, or it is another user's.
    pub(super) fn default_path() -> Result<PathBuf> {
        let dir = store::state_root()?.join("bench");
        store::create_dirs(&dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
        let metadata = fs::symlink_metadata(&dir)?;
        if !metadata.is_dir() || !is_owned_by_user(&metadata) {
            bail!("cannot use `{}`: it is a link, or belongs to another user", dir.display());
        }
        Ok(dir.join(NAME))
    }

    /// Opens the file, and returns what it has; nothing if it is to be fresh. Prints a message if lines are
    /// damaged.
    ///
    /// # Errors
    /// If the path is something else than such a file, another user may write to it, another process uses
    /// it, or its measurements were made with another number of processors.
    pub(super) fn open(path: &Path, processors: usize, is_fresh: bool) -> Result<(Self, Vec<Row>)> {
        let context = || format!("cannot use the results `{}`", path.display());
        // Another program's file gets no lock file.
        read(path, processors, is_fresh).with_context(context)?;
        let lock = lock(path).with_context(context)?;
        let (rows, damage) = read(path, processors, is_fresh).with_context(context)?;
        if damage.bad_lines > 0 {
            let damage = Corruption { torn_tail: false, ..damage };
            message(&format!("`{}`: {damage}; other lines are kept", path.display()));
        }
        let file = Self::create(path, processors, &rows, lock).with_context(context)?;
        Ok((file, rows))
    }

    fn create(path: &Path, processors: usize, rows: &[Row], lock: File) -> Result<Self> {
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(new);
        let mut contents = head(processors).into_bytes();
        for row in rows {
            contents.extend(line(row)?);
        }
        let written = create_private_file(&new).and_then(|mut file| {
            file.write_all(&contents)?;
            fs::rename(&new, path)?;
            Ok(file)
        });
        let file = written.inspect_err(|_| {
            // It may not exist.
            let _ = fs::remove_file(&new);
        })?;
        let writer = LineWriter::new(file, contents.len() as u64, false);
        Ok(Self { path: path.to_owned(), writer, _lock: lock })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If it cannot be written. Then the file has the rows before.
    pub(super) fn append(&mut self, row: &Row) -> Result<()> {
        let context = || format!("cannot write the results `{}`", self.path.display());
        let line = line(row)?;
        self.writer.append(&line).with_context(context)
    }
}

/// Locks the results with this path, which may not exist yet, until the returned file is closed.
fn lock(path: &Path) -> Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let file = match open_no_follow(&name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match create_private_file(&name) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open_no_follow(&name),
            created => created,
        },
        opened => opened,
    }?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another process uses it (--results names another file)"),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Returns the first line.
fn head(processors: usize) -> String {
    format!("{{\"minder\":\"bench turnaround\",\"format\":1,\"processors\":{processors}}}\n")
}

fn line(row: &Row) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut rows = Rows::new(&mut out, Format::Json, columns())?;
    rows.row(&row.values())?;
    rows.flush()?;
    Ok(out)
}

/// Reads a file, and returns its rows and its damage; nothing if there is none, or it is to be fresh.
fn read(path: &Path, processors: usize, is_fresh: bool) -> Result<(Vec<Row>, Corruption)> {
    let file = match open_no_follow(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Vec::new(), Corruption::default()));
        }
        opened => opened?,
    };
    let metadata = file.metadata()?;
    if !is_owned_by_user(&metadata) || is_writable_by_others(&metadata) {
        bail!("other users may write to it (--results names another file)");
    }
    if metadata.len() == 0 {
        return Ok((Vec::new(), Corruption::default()));
    }
    let mut reader = BufReader::new(io::Read::take(file, BYTES_MAX));
    let mut first = Vec::new();
    reader.read_until(b'\n', &mut first)?;
    if !first.starts_with(b"{\"minder\":\"bench turnaround\",\"format\":1,") {
        bail!("it is another kind of file (--results names another one)");
    }
    if is_fresh {
        return Ok((Vec::new(), Corruption::default()));
    }
    if first != head(processors).as_bytes() {
        let other = "its measurements were made on another number of processors";
        bail!("{other} than {processors} (--fresh starts again)");
    }
    if metadata.len() > BYTES_MAX {
        bail!("it is longer than {} (--results names another file)", format_bytes(BYTES_MAX));
    }
    read_rows(&mut reader)
}

/// Reads the rows after the first line, and skips damaged ones.
fn read_rows(reader: &mut impl BufRead) -> Result<(Vec<Row>, Corruption)> {
    let mut rows = Vec::new();
    let mut damage = Corruption::default();
    let mut line = Vec::new();
    for number in 2.. {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        match serde_json::from_slice(&line).map_err(Into::into).and_then(|row| Row::read(&row)) {
            Ok(row) => rows.push(row),
            // A crash may have left the last line incomplete.
            Err(_) if !line.ends_with(b"\n") => damage.torn_tail = true,
            Err(_) => {
                damage.bad_lines += 1;
                damage.first_bad_line.get_or_insert(number);
            }
        }
    }
    Ok((rows, damage))
}

#[cfg(test)]
mod tests {
    use minder_bench::Workload;

    use super::*;
    use minder_ui::format_error;

    fn reason(path: &Path, processors: usize) -> String {
        format_error(&ResultsFile::open(path, processors, false).expect_err("open results"))
    }

    #[test]
    fn file_keeps_rows_and_drops_an_incomplete_line() {
        let dir = tempfile::tempdir().expect("create directory");
        let path = dir.path().join("results");
        let (mut file, rows) = ResultsFile::open(&path, 2, false).expect("create results");
        assert!(rows.is_empty());
        let kept = [Row::example(Workload::Io, 2, 31), Row::example(Workload::Cpu, 5, 150)];
        kept.iter().for_each(|row| file.append(row).expect("append row"));
        assert!(reason(&path, 2).contains("another process uses it"));
        drop(file);
        let complete = fs::read(&path).expect("read results");
        fs::write(&path, [&complete[..], b"{\"workload\":\"io\",\"run"].concat()).expect("damage results");
        assert!(reason(&path, 1).ends_with("processors than 1 (--fresh starts again)"));
        let (mut file, rows) = ResultsFile::open(&path, 2, false).expect("open results");
        assert_eq!(rows, kept);
        file.append(&kept[0]).expect("append row");
        drop(file);
        assert_eq!(ResultsFile::open(&path, 2, false).expect("open results").1.len(), 3);
        assert!(ResultsFile::open(&path, 1, true).expect("start again").1.is_empty());
        // The results and their lock file.
        assert_eq!(fs::read_dir(dir.path()).expect("list directory").count(), 2);
    }

    #[test]
    fn lock_is_held_from_before_the_rows_are_read() {
        let dir = tempfile::tempdir().expect("create directory");
        let path = dir.path().join("results");
        // Another start has the lock, and has not put its file in place yet.
        let other = lock(&path).expect("lock the results");
        assert!(reason(&path, 2).contains("another process uses it") && !path.exists());
        drop(other);
        let (mut file, _) = ResultsFile::open(&path, 2, false).expect("create results");
        // The lock is that of the path, so a file that takes the place of the results changes nothing.
        fs::remove_file(&path).expect("remove results");
        assert!(reason(&path, 2).contains("another process uses it"));
        fs::write(&path, "").expect("replace results");
        assert!(reason(&path, 2).contains("another process uses it"));
        file.append(&Row::example(Workload::Io, 2, 31)).expect("append row");
        drop(file);
        ResultsFile::open(&path, 2, false).expect("open results");
    }

    #[test]
    fn damaged_lines_are_skipped_and_counted() {
        let row = Row::example(Workload::Io, 2, 31);
        let valid = line(&row).expect("write row");
        let of = |text: &[&[u8]]| read_rows(&mut &text.concat()[..]).expect("read rows");
        let damage =
            |torn_tail, bad_lines, first_bad_line| Corruption { torn_tail, bad_lines, first_bad_line };
        let rest = &valid[9..];
        assert_eq!(of(&[&valid, &valid]), (vec![row, row], Corruption::default()));
        assert_eq!(of(&[&valid, rest, &valid]), (vec![row, row], damage(false, 1, Some(3))));
        assert_eq!(of(&[b"\xff\n\n", &valid, b"{\"work"]), (vec![row], damage(true, 2, Some(2))));
        // Only its end is lost.
        assert_eq!(of(&[&valid[..valid.len() - 1]]), (vec![row], Corruption::default()));
    }

    #[test]
    fn long_file_is_refused() {
        let dir = tempfile::tempdir().expect("create directory");
        let path = dir.path().join("results");
        drop(ResultsFile::open(&path, 2, false).expect("create results"));
        let file = File::options().write(true).open(&path).expect("open the file");
        file.set_len(BYTES_MAX + 1).expect("extend the file");
        assert!(reason(&path, 2).contains("it is longer than 64 MiB"));
    }

    #[test]
    fn other_files_are_not_changed() {
        let dir = tempfile::tempdir().expect("create directory");
        let path = dir.path().join("thesis");
        fs::write(&path, "chapter 1\n").expect("write a file");
        let error = reason(&path, 2);
        assert!(error.contains("it is another kind of file"), "{error}");
        let fresh = ResultsFile::open(&path, 2, true).expect_err("start again in another file");
        assert_eq!(format_error(&fresh), error);
        assert_eq!(fs::read(&path).expect("read the file"), b"chapter 1\n");
        assert_eq!(fs::read_dir(dir.path()).expect("list directory").count(), 1);
        assert!(reason(dir.path(), 2).starts_with("cannot use the results `"));
    }

    #[cfg(unix)]
    #[test]
    fn file_is_private_and_links_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().expect("create directory");
        let path = dir.path().join("results");
        let link = dir.path().join("link");
        drop(ResultsFile::open(&path, 2, false).expect("create results"));
        let mode = |path: &Path| fs::metadata(path).expect("read mode").permissions().mode() & 0o7777;
        assert_eq!(mode(&path), 0o600);
        symlink(&path, &link).expect("create link");
        assert!(reason(&link, 2).starts_with("cannot use the results `"));
        fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).expect("set mode");
        assert!(reason(&path, 2).contains("other users may write to it"));
    }
}

//! The directories and files of cgroups on Linux. Each path is relative to an open directory and has one
//! component, so no link is followed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstatfs, mkdirat, openat, unlinkat};

use crate::host_stats::second_cgroup;

/// `CGROUP2_SUPER_MAGIC` of statfs(2).
const CGROUP2_SUPER_MAGIC: u64 = 0x6367_7270;

/// Returns the root of the hierarchy, and the cgroup of this process.
pub(super) fn find() -> io::Result<Option<(File, File)>> {
    let Some((root, own)) = second_cgroup() else { return Ok(None) };
    let open = |path: &Path| {
        let dir = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // Nothing is to be written to a directory of another file system.
        #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "the type differs by processor")]
        if fstatfs(&dir)?.f_type as u64 != CGROUP2_SUPER_MAGIC {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        Ok(File::from(dir))
    };
    Ok(Some((open(&root)?, open(&own)?)))
}

pub(super) fn read(dir: &File, file: &str) -> io::Result<String> {
    let mut text = String::new();
    File::from(open_file(dir, file, OFlags::RDONLY)?).read_to_string(&mut text)?;
    Ok(text)
}

pub(super) fn write(dir: &File, file: &str, text: &str) -> io::Result<()> {
    let file = open_file(dir, file, OFlags::WRONLY)?;
    // The kernel takes all of it or returns an error.
    rustix::io::retry_on_intr(|| rustix::io::write(&file, text.as_bytes()))?;
    Ok(())
}

pub(super) fn create(dir: &File, name: &str) -> io::Result<()> {
    Ok(mkdirat(dir, name, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH)?)
}

pub(super) fn open(dir: &File, name: &str) -> io::Result<File> {
    open_file(dir, name, OFlags::RDONLY | OFlags::DIRECTORY).map(File::from)
}

pub(super) fn remove(dir: &File, name: &str) -> io::Result<()> {
    Ok(unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}

pub(super) fn names(dir: &File) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if entry.file_type() == FileType::Directory && !matches!(&*name, "." | "..") {
            names.push(name.into_owned());
        }
    }
    Ok(names)
}

pub(super) fn wait_empty(dir: &File, timeout: Duration) -> io::Result<bool> {
    let end = Instant::now() + timeout;
    let events = open_file(dir, "cgroup.events", OFlags::RDONLY)?;
    loop {
        let mut text = [0; 256];
        let count = rustix::io::pread(&events, &mut text, 0)?;
        if text[..count].split(|byte| *byte == b'\n').any(|line| line == b"populated 0") {
            return Ok(true);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        // The kernel reports each change of the file so, until the file is read again.
        let wait = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => return Err(error.into()),
        }
    }
}

fn open_file(dir: &File, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(openat(dir, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

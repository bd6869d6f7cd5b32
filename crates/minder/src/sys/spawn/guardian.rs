//! Starts the program of a guardian, and waits until it is ready.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::{SpawnError, Spawner};
use crate::command::{Command, Stdio};
use crate::group::Group;
use crate::sys::guardian::{
    Channel, GuardianError, GuardianLink, Kind, PROGRAM, PROGRAM_VARIABLE, Received, Record, VERSION,
    receive, socket_pair,
};
use crate::sys::time::timespec;

/// Starts the program, unless it runs.
pub(crate) fn start(link: &Arc<GuardianLink>) -> Result<(), GuardianError> {
    link.connect_by(|deadline| {
        let path = find(link.settings().program.as_deref()).ok_or(GuardianError::NotFound)?;
        let (channel, mut process) = launch(link, &path)?;
        match greet(link, &channel, deadline, &path) {
            Ok(()) => Ok((channel, process.pid().cast_signed())),
            Err(error) => {
                let _ = process.signal(libc::SIGKILL);
                let _ = process.wait_and_reap();
                Err(error)
            }
        }
    })
}

/// Returns the path of the program: the given one; that in the environment; in the directory of
/// this program; in PATH.
fn find(given: Option<&Path>) -> Option<PathBuf> {
    let named = given.map(Path::to_owned).or_else(|| Some(std::env::var_os(PROGRAM_VARIABLE)?.into()));
    if let Some(path) = named {
        // The program starts in another directory.
        return Some(std::path::absolute(&path).unwrap_or(path));
    }
    let own = std::env::current_exe().ok()?;
    let sibling = own.with_file_name(PROGRAM);
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let listed = std::env::split_paths(&directories).filter(|dir| dir.is_absolute());
    std::iter::once(sibling).chain(listed.map(|dir| dir.join(PROGRAM))).find(|path| path.is_file())
}

/// Starts the program with its end of a new socket pair as standard input. It inherits no other
/// descriptor, no environment and, where a child can begin a session, not the host's session.
fn launch(link: &GuardianLink, path: &Path) -> Result<(Channel, crate::sys::reap::Process), GuardianError> {
    let settings = link.settings();
    let (channel, theirs) = socket_pair().map_err(|error| GuardianError::Start(path.to_owned(), error))?;
    let session = cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple"));
    let mut command = Command::new(path);
    command
        .args(&settings.args)
        .env_clear()
        .current_dir("/")
        // Elsewhere it begins a session itself, which a process that leads a group cannot do.
        .group(if session { Group::Session } else { Group::Inherit })
        .stdin(File::from(theirs))
        .stdout(Stdio::null())
        .stderr(if settings.inherit_stderr { Stdio::inherit() } else { Stdio::null() });
    match Spawner::new().spawn(&command) {
        Ok(spawned) => Ok((channel, spawned.process)),
        Err(SpawnError { error, .. }) => Err(GuardianError::Start(path.to_owned(), error)),
    }
}

/// Tells the program what it needs to know, and waits for its reply.
fn greet(
    link: &GuardianLink,
    channel: &Channel,
    deadline: Option<Instant>,
    path: &Path,
) -> Result<(), GuardianError> {
    let host = rustix::process::getpid().as_raw_nonzero().get();
    let grace = u64::try_from(link.settings().grace.as_millis()).unwrap_or(u64::MAX);
    let hello = Record { pid: host, id: VERSION, value: grace, ..Record::new(Kind::Hello) };
    let tag = Record { value: link.tag(), ..Record::new(Kind::Tag) };
    for record in [hello, tag] {
        if channel.send(record).is_err() {
            return Err(GuardianError::NoGuardian(path.to_owned()));
        }
    }
    loop {
        match receive(channel.as_fd()) {
            Received::Record(record, _) if record.is(Kind::Ready) => {
                let matches = record.id == VERSION;
                return if matches { Ok(()) } else { Err(GuardianError::Version(path.to_owned())) };
            }
            Received::Record(..) | Received::End => return Err(GuardianError::NoGuardian(path.to_owned())),
            Received::Nothing => (),
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(GuardianError::TimedOut(path.to_owned()));
        }
        let time = left.map(timespec);
        // An error, such as an interrupt, is ignored: the next round looks again.
        let _ = poll(&mut [PollFd::from_borrowed_fd(channel.as_fd(), PollFlags::IN)], time.as_ref());
    }
}

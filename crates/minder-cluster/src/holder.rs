//! The holder of a run: the coordinator that works on it.
//!
//! The lock of a run (flock(2)) excludes other processes of the same machine. On network file systems it may
//! exclude no other machine. A coordinator therefore makes a directory `holder/N`, with N one higher than all
//! others: mkdir(2) succeeds for one process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use minder_os::files::create_private_dir;
use minder_record::agents::HOLDERS;
use serde::{Deserialize, Serialize};

use crate::beat::{Beat, BeatWriter};
use crate::file;

/// The file that describes a holder.
const WHO: &str = "who";
/// The file that a holder creates when it ends.
const OVER: &str = "over";
/// The longest description of a holder.
const WHO_MAX: u64 = 4096;

/// The description of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The name of its machine.
    pub node: String,
    /// The id of the boot of the machine, where the system has one (`/proc/sys/kernel/random/boot_id`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// Its process id.
    pub pid: u32,
    /// When it started, as [`minder_os::processes::start_time`] has it. With the pid, it names the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// The version of minder.
    pub version: String,
}

impl Who {
    /// Returns the description of this process, which has this version of minder.
    pub fn this_process(version: &str) -> Self {
        Self {
            node: minder_os::machine::name(),
            boot: minder_os::machine::boot_id(),
            pid: std::process::id(),
            started: minder_os::processes::start_time(std::process::id()),
            version: version.to_owned(),
        }
    }

    /// Returns whether both are processes of one machine that was not started again between them.
    pub fn is_same_boot(&self, other: &Self) -> bool {
        self.boot.is_some() && self.boot == other.boot && self.node == other.node
    }

    /// Returns whether this process of this machine runs, as far as the system shows it.
    fn is_running(&self) -> bool {
        self.started.is_some_and(|started| minder_os::processes::is_running(self.pid, started))
    }
}

/// The last holder of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastHolder {
    /// There was none.
    None,
    /// It has ended.
    Over(u64),
    /// It was a process of this machine, and is gone if the lock of the run is free.
    Here(u64, Who),
    /// It may work: on another machine, or on this one where the file system has no locks. Observe its beat.
    /// Its description is `None` as long as it has not written one.
    Elsewhere(u64, Option<Who>),
}

impl LastHolder {
    /// Returns its number, or 0.
    pub fn number(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Over(number) | Self::Here(number, _) | Self::Elsewhere(number, _) => *number,
        }
    }
}

/// Returns the last holder of a run. `own` describes this process.
///
/// # Errors
///
/// The directory cannot be read.
pub fn last(run: &Path, own: &Who) -> io::Result<LastHolder> {
    let number = match newest(run)? {
        None => return Ok(LastHolder::None),
        Some((number, true)) => return Ok(LastHolder::Over(number)),
        Some((number, false)) => number,
    };
    Ok(match who(run, number)? {
        Some(who) if who.is_same_boot(own) && !who.is_running() => LastHolder::Here(number, who),
        who => LastHolder::Elsewhere(number, who),
    })
}

/// Returns the number of the last holder of a run, and whether it has ended. `None` if there was none.
///
/// # Errors
///
/// The directory cannot be read.
pub fn newest(run: &Path) -> io::Result<Option<(u64, bool)>> {
    let number = highest(run)?;
    if number == 0 {
        return Ok(None);
    }
    Ok(Some((number, file::read(&dir(run, number).join(OVER), 0)?.is_some())))
}

/// Returns the description of a holder, if it has written one.
///
/// # Errors
///
/// The file cannot be read.
pub fn who(run: &Path, number: u64) -> io::Result<Option<Who>> {
    let text = file::read(&dir(run, number).join(WHO), WHO_MAX)?;
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
}

/// Reads the beat of a holder. `None` if it has none yet.
///
/// # Errors
///
/// The file cannot be read.
pub fn beat_of(run: &Path, number: u64) -> io::Result<Option<Beat>> {
    Beat::read(&dir(run, number))
}

/// This process, as the holder of a run.
#[derive(Debug)]
pub struct Holder {
    run: PathBuf,
    number: u64,
    /// Its beat.
    pub beat: BeatWriter,
}

impl Holder {
    /// Becomes the holder after `last`. `None` if another process was faster.
    ///
    /// # Errors
    ///
    /// A file or directory cannot be created.
    pub fn make(run: &Path, last: &LastHolder, own: &Who) -> io::Result<Option<Self>> {
        let holders = run.join(HOLDERS);
        match create_private_dir(&holders) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(file::named("cannot create", &holders, &error));
            }
            _ => (),
        }
        let Some(number) = last.number().checked_add(1) else { return Ok(None) };
        let own_dir = dir(run, number);
        match create_private_dir(&own_dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            made => made.map_err(|error| file::named("cannot create", &own_dir, &error))?,
        }
        // A process that is killed before it has written this counts as lost, since it has no beat.
        file::write(&own_dir.join(WHO), &serde_json::to_vec(own)?)?;
        let beat = BeatWriter::create(&own_dir)?;
        Ok(Some(Self { run: run.to_owned(), number, beat }))
    }

    /// Returns its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether no other process has become the holder.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn is_last(&self) -> io::Result<bool> {
        Ok(!dir(&self.run, self.number + 1).try_exists()?)
    }

    /// States that this process has ended its work, so that the next one need not wait.
    ///
    /// # Errors
    ///
    /// The file cannot be created.
    pub fn end(self) -> io::Result<()> {
        file::create(&dir(&self.run, self.number).join(OVER)).map(drop)
    }
}

/// Returns the directory of a holder.
pub fn dir(run: &Path, number: u64) -> PathBuf {
    run.join(HOLDERS).join(number.to_string())
}

/// Returns the highest number of a holder, or 0.
fn highest(run: &Path) -> io::Result<u64> {
    let holders = run.join(HOLDERS);
    let entries = match fs::read_dir(&holders) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(|error| file::named("cannot read", &holders, &error))?,
    };
    let mut highest = 0;
    for entry in entries {
        let name = entry?.file_name();
        let number: Option<u64> = name.to_str().and_then(|name| name.parse().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(node: &str, pid: u32) -> Who {
        Who {
            node: node.to_owned(),
            boot: Some("b1".to_owned()),
            pid,
            started: None,
            version: "0.1.0".to_owned(),
        }
    }

    #[test]
    fn one_of_two_becomes_the_holder() {
        let run = tempfile::tempdir().expect("create directory");
        let here = who("n1", 1);
        let there = who("n2", 2);
        let none = last(run.path(), &here).expect("read holders");
        assert_eq!(none, LastHolder::None);
        let mut first = Holder::make(run.path(), &none, &here).expect("make").expect("the first one");
        assert!(Holder::make(run.path(), &none, &there).expect("make").is_none());
        let found = last(run.path(), &there).expect("read holders");
        assert_eq!(found, LastHolder::Elsewhere(1, Some(here.clone())));
        assert_eq!(last(run.path(), &who("n1", 9)).expect("read"), LastHolder::Here(1, here.clone()));
        first.beat.beat(0, 0).expect("beat");
        assert_eq!(beat_of(run.path(), 1).expect("read").map(|beat| beat.count), Some(2));

        let second = Holder::make(run.path(), &found, &there).expect("make").expect("it takes over");
        assert_eq!(second.number(), 2);
        assert!(!first.is_last().expect("read") && second.is_last().expect("read"));
        second.end().expect("end");
        assert_eq!(last(run.path(), &here).expect("read"), LastHolder::Over(2));
    }

    #[test]
    fn holder_without_a_description_is_elsewhere() {
        let run = tempfile::tempdir().expect("create directory");
        fs::create_dir_all(run.path().join("holder/7")).expect("create");
        fs::create_dir_all(run.path().join("holder/x")).expect("create");
        assert_eq!(last(run.path(), &who("n1", 1)).expect("read"), LastHolder::Elsewhere(7, None));
        fs::write(run.path().join("holder/7/who"), "{").expect("write");
        assert_eq!(last(run.path(), &who("n1", 1)).expect("read"), LastHolder::Elsewhere(7, None));
    }

    #[test]
    fn the_same_machine_after_a_restart_is_another_one() {
        let old = who("n1", 1);
        let new = Who { boot: Some("b2".to_owned()), ..old.clone() };
        let unknown = Who { boot: None, ..old.clone() };
        assert!(old.is_same_boot(&who("n1", 2)));
        assert!(!old.is_same_boot(&new) && !unknown.is_same_boot(&unknown));
    }
}

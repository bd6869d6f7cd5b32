//! Beats: a file by which a process shows that it works, and how observers read it.
//!
//! A beat has a counter, and what is useful to know of its process. The file stays open, and is overwritten
//! and synced: then every machine that opens it reads the new counter. No time is in it. An observer compares
//! the counter with the one that it has read before, and measures the time between with its own monotonic
//! clock.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use minder_os::files::write_all_at;

use crate::file;

/// The name of the file.
pub const BEAT: &str = "beat";
/// The time between two beats.
pub const INTERVAL: Duration = Duration::from_secs(5);
/// A process counts as lost if its beat has not changed for this time, unless the user says otherwise.
pub const LOST_AFTER: Duration = Duration::from_secs(60);
/// The digits of each number. All beats have the same length, so that one overwrites the other exactly.
const DIGITS: usize = 20;
const LEN: usize = 3 * (DIGITS + 1);

/// What a beat says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// How many beats there were.
    pub count: u64,
    /// The length of the journal of the process, in bytes.
    pub journal: u64,
    /// How many jobs the process has claimed that have no result yet.
    pub open: u64,
}

impl Beat {
    fn encode(self) -> String {
        format!("{:0DIGITS$} {:0DIGITS$} {:0DIGITS$}\n", self.count, self.journal, self.open)
    }

    fn decode(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok().filter(|text| text.len() == LEN)?;
        let mut numbers = text.strip_suffix('\n')?.split(' ').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { count: next()?, journal: next()?, open: next()? })
    }

    /// Reads the beat in the directory of an agent or a holder. `None` if there is none yet, or if it is
    /// being overwritten.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read(dir: &Path) -> io::Result<Option<Self>> {
        Ok(file::read(&dir.join(BEAT), LEN as u64)?.and_then(|text| Self::decode(&text)))
    }
}

/// Writes beats.
#[derive(Debug)]
pub struct BeatWriter {
    path: PathBuf,
    file: File,
    count: u64,
    last: Instant,
}

impl BeatWriter {
    /// Creates the file, with the first beat.
    ///
    /// # Errors
    ///
    /// The file exists, or cannot be written.
    pub fn create(dir: &Path) -> io::Result<Self> {
        let path = dir.join(BEAT);
        let file = file::create(&path)?;
        let mut writer = Self { path, file, count: 0, last: Instant::now() };
        writer.beat(0, 0)?;
        Ok(writer)
    }

    /// Writes the next beat, and waits until other machines can read it. See [`Beat`] for the numbers.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The next call tries again, with the same counter.
    pub fn beat(&mut self, journal: u64, open: u64) -> io::Result<()> {
        let beat = Beat { count: self.count + 1, journal, open };
        let written =
            write_all_at(&self.file, beat.encode().as_bytes(), 0).and_then(|()| self.file.sync_data());
        written.map_err(|error| file::named("cannot write", &self.path, &error))?;
        self.count = beat.count;
        self.last = Instant::now();
        Ok(())
    }

    /// Returns for how long no beat was written.
    pub fn silence(&self) -> Duration {
        self.last.elapsed()
    }
}

/// What an observer knows of a process.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    beat: Option<Beat>,
    /// When the observer saw it change.
    changed: Instant,
}

impl Watch {
    /// Begins to observe a process. It counts as alive until the observer has seen no change for long enough.
    pub fn new(now: Instant) -> Self {
        Self { beat: None, changed: now }
    }

    /// Takes what was read. A beat that cannot be read changes nothing.
    pub fn observe(&mut self, beat: Option<Beat>, now: Instant) {
        if let Some(beat) = beat
            && self.beat.is_none_or(|known| known.count != beat.count)
        {
            self.beat = Some(beat);
            self.changed = now;
        }
    }

    /// Returns the last beat that was read.
    pub fn beat(&self) -> Option<Beat> {
        self.beat
    }

    /// Returns for how long the beat has not changed.
    pub fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.changed)
    }

    /// Returns whether the process counts as lost.
    pub fn is_lost(&self, now: Instant, lost_after: Duration) -> bool {
        self.silence(now) >= lost_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beat_is_read_again() {
        let dir = tempfile::tempdir().expect("create directory");
        assert_eq!(Beat::read(dir.path()).expect("a missing beat is accepted"), None);
        let mut writer = BeatWriter::create(dir.path()).expect("create beat");
        writer.beat(u64::MAX, 3).expect("write beat");
        let beat = Beat::read(dir.path()).expect("read beat");
        assert_eq!(beat, Some(Beat { count: 2, journal: u64::MAX, open: 3 }));
        assert!(BeatWriter::create(dir.path()).is_err(), "a beat belongs to one process");
    }

    #[test]
    fn beat_that_is_not_complete_is_none() {
        for text in [&b""[..], b"1 2\n", &[0; LEN], &[b' '; LEN], b"garbage"] {
            assert_eq!(Beat::decode(text), None, "{text:?}");
        }
    }

    #[test]
    fn watch_needs_no_clock_of_the_other_machine() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut watch = Watch::new(start);
        watch.observe(Some(Beat { count: 7, journal: 0, open: 0 }), at(10));
        // A counter that is lower is a change, too: the process wrote it.
        watch.observe(Some(Beat { count: 3, journal: 0, open: 0 }), at(50));
        watch.observe(Some(Beat { count: 3, journal: 9, open: 0 }), at(100));
        watch.observe(None, at(105));
        assert_eq!(watch.silence(at(109)), Duration::from_secs(59));
        assert!(!watch.is_lost(at(109), LOST_AFTER) && watch.is_lost(at(110), LOST_AFTER));
    }
}

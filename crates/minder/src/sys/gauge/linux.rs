//! Linux: the files of `/proc`.

use std::fs;
use std::io;
use std::time::Duration;

use super::{Disk, Memory, Swaps};

/// Processes and threads that run or could run at this moment, but for the one that asks. Not the load average, which is
/// a minute late: a runner that goes by it starts far too much, then nothing for far too long.
pub(crate) fn load() -> io::Result<f64> {
    let path = "/proc/loadavg";
    runnable(&fs::read_to_string(path)?)
        .map(|count| f64::from(count.saturating_sub(1)))
        .ok_or_else(|| odd(path))
}

pub(crate) fn memory() -> io::Result<Memory> {
    let path = "/proc/meminfo";
    of_meminfo(&fs::read_to_string(path)?).ok_or_else(|| odd(path))
}

pub(crate) fn swaps() -> io::Result<Swaps> {
    let path = "/proc/vmstat";
    of_vmstat(&fs::read_to_string(path)?).ok_or_else(|| odd(path))
}

/// Whole disks and their partitions: a partition is never busier than its disk.
pub(crate) fn disks() -> io::Result<Vec<Disk>> {
    Ok(fs::read_to_string("/proc/diskstats")?.lines().filter_map(disk).collect())
}

fn odd(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("`{path}` does not say it"))
}

/// The numerator of the fourth word.
fn runnable(loadavg: &str) -> Option<u32> {
    loadavg.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

fn of_meminfo(text: &str) -> Option<Memory> {
    let bytes = |name: &str| Some(number(text, name)? << 10);
    // Before Linux 3.14 the kernel does not estimate it.
    let available =
        bytes("MemAvailable:").or_else(|| Some(bytes("MemFree:")? + bytes("Buffers:")? + bytes("Cached:")?));
    Some(Memory { available: available?, total: bytes("MemTotal:")? })
}

fn of_vmstat(text: &str) -> Option<Swaps> {
    Some(Swaps { ins: number(text, "pswpin")?, outs: number(text, "pswpout")? })
}

fn disk(line: &str) -> Option<Disk> {
    let mut words = line.split_whitespace();
    let name = words.nth(2)?;
    // The tenth figure behind the name.
    let busy: u64 = words.nth(9)?.parse().ok()?;
    Some(Disk { name: name.to_owned(), busy: Duration::from_millis(busy) })
}

/// The number behind a word that begins a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next())?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_read() {
        assert_eq!(runnable("2.02 0.96 4.43 3/345 12345\n"), Some(3));
        assert_eq!(runnable("2.02 0.96\n"), None);
        let text =
            "MemTotal:  4096 kB\nMemFree: 10 kB\nMemAvailable:   1024 kB\nBuffers: 1 kB\nCached: 2 kB\n";
        assert_eq!(of_meminfo(text), Some(Memory { available: 1 << 20, total: 4 << 20 }));
        let old = "MemTotal: 4096 kB\nMemFree: 10 kB\nBuffers: 1 kB\nCached: 2 kB\n";
        assert_eq!(of_meminfo(old), Some(Memory { available: 13 << 10, total: 4 << 20 }));
        assert_eq!(of_vmstat("nr_free 7\npswpin 3\npswpout 4\n"), Some(Swaps { ins: 3, outs: 4 }));
        let line = " 254  0 vda 11 2 333 44 55 66 777 888 0 1234 99 0 0 0 0 0 0";
        assert_eq!(disk(line), Some(Disk { name: "vda".into(), busy: Duration::from_millis(1234) }));
        assert_eq!(disk("short"), None);
    }

    #[test]
    fn this_machine_answers() {
        assert!(load().is_ok());
        assert!(memory().is_ok_and(|memory| memory.available <= memory.total && memory.total > 1 << 20));
        assert!(disks().is_ok());
    }
}

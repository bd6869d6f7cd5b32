//! Linux: the files of `/proc`.

use std::fs;
use std::io;
use std::time::Duration;

use super::types::{DiskStats, Memory, SwapCounters};

/// Counts the processes and threads that run or are ready to run, without the calling one. The load
/// average is a minute late: a runner that uses it starts far too many jobs, then none for far too
/// long.
pub(super) fn load() -> io::Result<f64> {
    let path = "/proc/loadavg";
    let count = parse_runnable(&fs::read_to_string(path)?).ok_or_else(|| unknown_format(path))?;
    Ok(f64::from(count.saturating_sub(1)))
}

pub(super) fn memory() -> io::Result<Memory> {
    let path = "/proc/meminfo";
    parse_meminfo(&fs::read_to_string(path)?).ok_or_else(|| unknown_format(path))
}

pub(super) fn swap_counters() -> io::Result<SwapCounters> {
    let path = "/proc/vmstat";
    parse_vmstat(&fs::read_to_string(path)?).ok_or_else(|| unknown_format(path))
}

/// Lists disks and their partitions. A partition is never busier than its disk.
pub(super) fn disks() -> io::Result<Vec<DiskStats>> {
    Ok(fs::read_to_string("/proc/diskstats")?.lines().filter_map(parse_disk).collect())
}

fn unknown_format(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("unknown format of `{path}`"))
}

/// Returns the numerator of the fourth field.
fn parse_runnable(loadavg: &str) -> Option<u32> {
    loadavg.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

fn parse_meminfo(text: &str) -> Option<Memory> {
    let bytes = |name: &str| Some(number(text, name)? << 10);
    // Before Linux 3.14 the kernel did not report `MemAvailable`.
    let available =
        bytes("MemAvailable:").or_else(|| Some(bytes("MemFree:")? + bytes("Buffers:")? + bytes("Cached:")?));
    Some(Memory { available: available?, total: bytes("MemTotal:")? })
}

fn parse_vmstat(text: &str) -> Option<SwapCounters> {
    Some(SwapCounters { pages_in: number(text, "pswpin")?, pages_out: number(text, "pswpout")? })
}

fn parse_disk(line: &str) -> Option<DiskStats> {
    let mut fields = line.split_whitespace();
    let name = fields.nth(2)?;
    // The tenth field after the name, in milliseconds.
    let busy: u64 = fields.nth(9)?.parse().ok()?;
    Some(DiskStats { name: name.to_owned(), busy: Duration::from_millis(busy) })
}

/// Returns the number after a name at the beginning of a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut fields| if fields.next()? == name { fields.next() } else { None })?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_parsed() {
        assert_eq!(parse_runnable("2.02 0.96 4.43 3/345 12345\n"), Some(3));
        assert_eq!(parse_runnable("2.02 0.96\n"), None);
        let text =
            "MemTotal:  4096 kB\nMemFree: 10 kB\nMemAvailable:   1024 kB\nBuffers: 1 kB\nCached: 2 kB\n";
        assert_eq!(parse_meminfo(text), Some(Memory { available: 1 << 20, total: 4 << 20 }));
        let old = "MemTotal: 4096 kB\nMemFree: 10 kB\nBuffers: 1 kB\nCached: 2 kB\n";
        assert_eq!(parse_meminfo(old), Some(Memory { available: 13 << 10, total: 4 << 20 }));
        assert_eq!(
            parse_vmstat("nr_free 7\npswpin 3\npswpout 4\n"),
            Some(SwapCounters { pages_in: 3, pages_out: 4 })
        );
        let line = " 254  0 vda 11 2 333 44 55 66 777 888 0 1234 99 0 0 0 0 0 0";
        assert_eq!(
            parse_disk(line),
            Some(DiskStats { name: "vda".into(), busy: Duration::from_millis(1234) })
        );
        assert_eq!(parse_disk("short"), None);
    }

    #[test]
    fn this_machine_reports_all_values() {
        assert!(load().is_ok());
        assert!(memory().is_ok_and(|memory| memory.available <= memory.total && memory.total > 1 << 20));
        assert!(disks().is_ok());
    }
}

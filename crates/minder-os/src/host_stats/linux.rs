//! Linux: the files of `/proc`.

#![expect(unsafe_code, reason = "getrusage")]

use std::fs::File;
use std::io::{self, Read as _};
use std::time::Duration;

use super::types::{DiskStats, Memory, ProcessorTimes, SwapCounters};

/// Counts the processes and threads that run or are ready to run, without the calling one. The load
/// average is a minute late: a runner that uses it starts far too many jobs, then none for far too
/// long.
pub(super) fn load() -> io::Result<f64> {
    let path = "/proc/loadavg";
    let count = parse_runnable(&read_text(path)?).ok_or_else(|| unknown_format(path))?;
    Ok(f64::from(count.saturating_sub(1)))
}

pub(super) fn memory() -> io::Result<Memory> {
    let path = "/proc/meminfo";
    parse_meminfo(&read_text(path)?).ok_or_else(|| unknown_format(path))
}

pub(super) fn processor_times() -> io::Result<ProcessorTimes> {
    let path = "/proc/stat";
    let ticks = rustix::param::clock_ticks_per_second();
    parse_stat(&read_text(path)?, ticks).ok_or_else(|| unknown_format(path))
}

pub(super) fn own_peak_memory() -> io::Result<u64> {
    let path = "/proc/self/status";
    let kibibytes = number(&read_text(path)?, "VmHWM:").ok_or_else(|| unknown_format(path))?;
    Ok(kibibytes << 10)
}

pub(super) fn own_peak_memory_bound() -> io::Result<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for the answer.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all-zero is a valid `rusage`, and the call has filled it.
    let kibibytes = unsafe { usage.assume_init() }.ru_maxrss;
    Ok(u64::try_from(kibibytes).unwrap_or(0) << 10)
}

pub(super) fn swap_counters() -> io::Result<SwapCounters> {
    let path = "/proc/vmstat";
    parse_vmstat(&read_text(path)?).ok_or_else(|| unknown_format(path))
}

/// Lists disks and their partitions. A partition is never busier than its disk.
pub(super) fn disks() -> io::Result<Vec<DiskStats>> {
    Ok(read_text("/proc/diskstats")?.lines().filter_map(parse_disk).collect())
}

/// Reads a file of the kernel. `std` looks for its size, which is zero, and then begins with 32 bytes.
fn read_text(path: &str) -> io::Result<String> {
    /// Most of the files are shorter: they need one read, and another one that finds the end.
    const USUAL_BYTES: usize = 4 << 10;
    /// `/proc/stat` has a line for each processor and a number for each interrupt.
    const BYTES_MAX: u64 = 16 << 20;
    let mut text = String::with_capacity(USUAL_BYTES);
    File::open(path)?.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
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

/// Adds up the columns of the line `cpu`: user, nice, system, idle, iowait, irq, softirq, steal.
/// The others are parts of these (proc_stat(5)).
fn parse_stat(text: &str, ticks: u64) -> Option<ProcessorTimes> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let columns: Vec<u64> =
        line.split_whitespace().take(8).filter_map(|column| column.parse().ok()).collect();
    let idle = columns.get(3)? + columns.get(4).unwrap_or(&0);
    let all: u64 = columns.iter().sum();
    let time = |count: u64| Duration::from_secs_f64(count as f64 / ticks.max(1) as f64);
    Some(ProcessorTimes { busy: time(all - idle), idle: time(idle) })
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
        let times = ProcessorTimes { busy: Duration::from_secs(2), idle: Duration::from_millis(300) };
        assert_eq!(parse_stat("cpu  100 20 30 25 5 10 20 20 70 7\ncpu0 1 2\n", 100), Some(times));
        assert_eq!(parse_stat("cpu0 1 2 3 4\n", 100), None);
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
        assert!(processor_times().is_ok_and(|times| !times.busy.is_zero()));
        let peak = own_peak_memory().unwrap();
        assert!(peak > 64 << 10);
        // Up to a batch of each processor is missing.
        assert!(own_peak_memory_bound().unwrap() + (1 << 20) >= peak);
    }
}

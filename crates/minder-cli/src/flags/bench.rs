//! Flags of `minder bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// See [`crate::verbs::bench`].
#[derive(Debug, Args)]
#[command(
    subcommand_value_name = "WHAT",
    disable_help_subcommand = true,
    after_help = "Try: minder bench wait"
)]
pub(crate) struct BenchFlags {
    #[command(subcommand)]
    pub(crate) what: Bench,
}

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// One wait for one of many objects, by mechanism and number of objects.
    #[command(after_help = "Try: minder bench wait --svg wait.svg", after_long_help = WAIT)]
    Wait(WaitFlags),
}

/// See [`crate::verbs::bench::wait`].
#[derive(Debug, Args)]
pub(crate) struct WaitFlags {
    /// Numbers of objects that are waited for [default: 2,8,32,64 … 16384]
    ///
    /// A list of numbers and of ranges, in which each is twice the one before: 2,64,2048 or 2..16384. The default is
    /// 2,8,32,64,128,512,1024,2048,8192,16384.
    #[arg(
        long,
        value_name = "LIST",
        default_value = "2,8,32,64,128,512,1024,2048,8192,16384",
        hide_default_value = true,
        value_parser = sizes
    )]
    pub(crate) objects: Sizes,

    #[command(flatten)]
    pub(crate) measure: MeasureFlags,
}

/// What all of them know.
#[derive(Debug, Args)]
pub(crate) struct MeasureFlags {
    /// Only this mechanism, of all that there are; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Measure everything so many times.
    ///
    /// In each round every mechanism has its turn. Tables and charts show medians over the rounds.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    /// Print each measurement as CSV, the names of the columns first (RFC 4180).
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,

    /// Print each measurement as JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a chart of the medians as well: CPU time over sizes, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// Sizes in rising order, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<u64>);

/// The largest size that is meant: beyond it no machine has descriptors, or memory.
const SIZE_MAX: u64 = 1 << 20;

/// A list of numbers and of ranges: `2,64,2048`, `2..16384`.
///
/// # Errors
/// One line that names the text.
fn sizes(text: &str) -> Result<Sizes, String> {
    let wrong = || format!("`{text}` is no list of numbers and ranges (2,64,2048 or 2..16384)");
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| digits).ok_or_else(wrong)
    };
    let mut sizes = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first == 0 || last > SIZE_MAX {
            return Err(format!("`{part}` is out of range: 1 to {SIZE_MAX}"));
        }
        if first > last {
            return Err(format!("`{part}` ends before it begins"));
        }
        sizes.extend(
            std::iter::successors(Some(first), |size| Some(size * 2)).take_while(|size| *size < last),
        );
        sizes.push(last);
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(Sizes(sizes))
}

const WAIT: &str = "\
Examples:
  minder bench wait                           a table of medians
  minder bench wait --svg wait.svg            and a chart of them
  minder bench wait --csv > wait.csv          every measurement, for a program of your own
  minder bench wait --objects 2..16384        a size of each power of two
  minder bench wait --mechanism epoll --mechanism select

One of N objects is signalled, a mechanism waits until it tells which, and the object is
reset. What is shown is that without the signal and the reset alone. Each object is as
likely as any other.

Mechanisms:
  epoll, poll …  those of minder, by the names of `minder doctor`
  select         the system call of 4.2BSD, with sets of bits of any size
  bare-poll      the system call, without a library around it
  bare-epoll     the same of Linux
  thread-each    a thread an object, which is blocked in a read and hands the news on
  pool           resident threads with 63 objects each, all sent off and called back at
                 each wait; up to 64 objects without them

Columns:
  mechanism objects round waits cpu_ns wall_ns

cpu_ns is the CPU time of one wait, of all threads together; wall_ns is the time that
passed. Ctrl-C keeps what was measured. What this machine refuses is named, with the
reason.

Exit status:
  0        everything was measured that this machine can do
  130, 143 Ctrl-C, TERM: what was measured until then is shown
  141      whoever read the output closed it
  255      anything else; one line on stderr says what";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_lists_and_ranges() {
        let read = |text| sizes(text).map(|sizes| sizes.0);
        assert_eq!(read("2,64,2048"), Ok(vec![2, 64, 2048]));
        assert_eq!(read("64,2,64"), Ok(vec![2, 64]));
        assert_eq!(read("2..16"), Ok(vec![2, 4, 8, 16]));
        assert_eq!(read("3..20,1"), Ok(vec![1, 3, 6, 12, 20]));
        assert_eq!(read("5..5"), Ok(vec![5]));
        for wrong in
            ["", ",", "2,", "x", "-1", "+1", "2..", "..2", "2...4", "0", "0..4", "4..2", "9999999", "2 4"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}

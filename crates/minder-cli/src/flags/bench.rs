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
    /// The end of one of many children, by mechanism and number of children.
    #[command(after_help = "Try: minder bench exit --live 10,1000", after_long_help = EXIT)]
    Exit(ExitFlags),
    /// One start of a child, by mechanism and size of the parent.
    #[command(after_help = "Try: minder bench spawn --parent-mib 10,512", after_long_help = SPAWN)]
    Spawn(SpawnFlags),
    /// Does nothing, until it is killed: what is measured with where the system has no such
    /// program.
    #[command(hide = true)]
    Idle,
}

/// See [`crate::verbs::bench::wait`].
#[derive(Debug, Args)]
pub(crate) struct WaitFlags {
    /// Numbers of objects that are waited for [default: 0,2,8,32,64 … 16384]
    ///
    /// A list of numbers and of ranges, in which each is twice the one before: 2,64,2048 or
    /// 2..16384. 0 is a look without waiting, where there is nothing to wait for. The default
    /// is 0,2,8,32,64,128,512,1024,2048,8192,16384; on Windows 0,2,32,63,64,65,256,1024,2048,
    /// 4096.
    #[arg(long, value_name = "LIST", value_parser = objects)]
    pub(crate) objects: Option<Sizes>,

    #[command(flatten)]
    pub(crate) measure: MeasureFlags,
}

/// See [`crate::verbs::bench::exit`]. Starting thousands of children takes its time, so there are
/// fewer rounds.
#[derive(Debug, Args)]
#[command(mut_arg("rounds", |rounds| rounds.default_value("2")))]
pub(crate) struct ExitFlags {
    /// Numbers of children that live: a list of numbers, and of ranges in which each is twice the
    /// one before [default: 10,100,1000,5000; on Windows 10,100,1000]
    #[arg(long, value_name = "LIST", value_parser = sizes)]
    pub(crate) live: Option<Sizes>,

    /// What each child runs, without a shell; it must not end by itself [default: sleep 1000000; on
    /// Windows minder itself]
    #[arg(long, value_name = "COMMAND", value_parser = child)]
    pub(crate) child: Option<ChildLine>,

    #[command(flatten)]
    pub(crate) measure: MeasureFlags,
}

/// See [`crate::verbs::bench::spawn`].
#[derive(Debug, Args)]
pub(crate) struct SpawnFlags {
    /// Sizes of the parent in MiB: a list of numbers, and of ranges in which each is twice the one
    /// before.
    #[arg(long, value_name = "LIST", default_value = "10,2048", value_parser = sizes)]
    pub(crate) parent_mib: Sizes,

    /// What each child runs, without a shell; it must end at once [default: true; on Windows
    /// cmd.exe /d /c exit]
    #[arg(long, value_name = "COMMAND", value_parser = child)]
    pub(crate) child: Option<ChildLine>,

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

    /// Write a chart of the medians as well, over sizes, as SVG: CPU time; wall time on Windows.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// Sizes in rising order, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<u64>);

/// The largest size that is meant: beyond it no machine has descriptors, or memory.
const SIZE_MAX: u64 = 1 << 20;

/// The same, in which 0 may stand alone.
///
/// # Errors
/// One line that names the text.
fn objects(text: &str) -> Result<Sizes, String> {
    let others: Vec<&str> = text.split(',').filter(|part| *part != "0").collect();
    let none = text.split(',').count() > others.len();
    if none && others.is_empty() {
        return Ok(Sizes(vec![0]));
    }
    let Sizes(sizes) = sizes(&others.join(","))?;
    Ok(Sizes(none.then_some(0).into_iter().chain(sizes).collect()))
}

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

/// A program and its arguments, which were separated by blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildLine(pub(crate) Vec<String>);

/// Words between blanks.
///
/// # Errors
/// For no word at all.
fn child(text: &str) -> Result<ChildLine, String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { Err("there is no program in it".to_owned()) } else { Ok(ChildLine(words)) }
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
likely as any other. With 0 objects it is a look without waiting.

Mechanisms:
  epoll, iocp …  those of minder, by the names of `minder doctor`
  pool           resident threads with 63 objects each, all sent off and called back at
                 each wait; up to 64 objects without them
Unix:
  select         the system call of 4.2BSD, with sets of bits of any size
  bare-poll      the system call, without a library around it
  bare-epoll     the same of Linux
  thread-each    a thread an object, which is blocked in a read and hands the news on
Windows:
  bare-wfmo      one WaitForMultipleObjects, which takes 64 objects
  scan           the same for each 64 objects, without waiting, again and again
  threads-at-each-wait   threads with 63 objects each, made at each wait
  posting-pool   resident threads with 63 objects each, which stay in their calls and
                 post what they hear to a completion port; with 0 objects the bare call

Columns:
  mechanism objects round waits cpu_ns wall_ns

cpu_ns is the CPU time of one wait, of all threads together; wall_ns is the time that
passed. Ctrl-C keeps what was measured. What this machine refuses is named, with the
reason. Under Wine each row has a column `note` that says so: times are Wine's then.

Exit status:
  0        everything was measured that this machine can do
  130, 143 Ctrl-C, TERM: what was measured until then is shown
  141      whoever read the output closed it
  255      anything else; one line on stderr says what";

const EXIT: &str = "\
Examples:
  minder bench exit                           tables of medians
  minder bench exit --live 10,1000            fewer children
  minder bench exit --csv > exit.csv          every measurement, for a program of your own
  minder bench exit --mechanism epoll --mechanism sigchld-each

N children live. What is shown as `one` is the cost of one end among them: a child at
random is killed, and its end is noticed and taken. A `burst` kills all N at once: the
cost of one of these ends. An end that is not heard within ten seconds is lost, and named.

Mechanisms:
  epoll, iocp …  those of minder, by the names of `minder doctor`
  floor          waitpid of the child that was killed (Windows: WaitForSingleObject): the
                 least there is, and deaf to any other
  thread-each    a thread a child, in waitpid or WaitForSingleObject
Unix:
  thread-one     one thread for all, in waitpid(-1)
Linux:
  sigchld-any    the signal, then waitpid(-1) until none is left
  sigchld-each   the signal, then waitpid of each child that lives, as libuv does
Windows:
  scan           told that one has ended, WaitForMultipleObjects of all, 64 by each call

Columns:
  mechanism kind live round exits cpu_ns wall_ns

cpu_ns is the CPU time of one end, of the whole process and with the kill; wall_ns is the
time that passed. No child is left behind, on Linux not even by kill -9; what a child starts
itself is not ended. Ctrl-C keeps what was measured. On Windows CPU time goes on in steps of
1/64 s, too coarse for so few ends: look at wall time. Under Wine there is a column `note`.

Exit status:
  0        everything was measured that this machine can do
  130, 143 Ctrl-C, TERM: what was measured until then is shown
  141      whoever read the output closed it
  255      anything else; one line on stderr says what";

const SPAWN: &str = "\
Examples:
  minder bench spawn                          tables of medians
  minder bench spawn --parent-mib 16..1024    a size of each power of two
  minder bench spawn --child /bin/true --csv > spawn.csv

The parent holds so much memory, in the smallest pages, and starts a child with two pipes.
What is shown is the call alone; the program is looked up in PATH before, and the end of the
child is waited for between the starts.

Mechanisms:
  minder       with a session of its own and a pidfd (Windows: a job of its own)
  set          the same by a ChildSet: watched, and what serves all children is made once
Unix:
  posix_spawn  Rust's standard library; no session and no pidfd, for which it would fork
  fork         the same with setsid between fork and exec; no pidfd
Windows:
  std          Rust's standard library; no job
  create-process   CreatePipe twice and CreateProcessW, with nothing around them; no job

Columns:
  mechanism parent_mib round spawns cpu_ns wall_ns

cpu_ns is the CPU time of the parent alone; wall_ns is the time that passed, until the child
runs its program (Windows: until there is a process). Ctrl-C keeps what was measured. On
Windows CPU time goes on in steps of 1/64 s: look at wall time. Under Wine there is a column
`note`.

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

    #[test]
    fn there_may_be_no_objects() {
        let read = |text| objects(text).map(|sizes| sizes.0);
        assert_eq!(read("0"), Ok(vec![0]));
        assert_eq!(read("4,0,2"), Ok(vec![0, 2, 4]));
        assert_eq!(read("2..4"), Ok(vec![2, 4]));
        for wrong in ["", ",", "0,", "0..4", "00"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}

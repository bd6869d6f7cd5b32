//! Flags of `minder bench`.

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, value_parser};

use super::output::{EACH_CSV, EACH_JSON, OutputFlags};
use super::sizes::{Sizes, sizes, sizes_up_to};
use super::turnaround::{self, TurnaroundFlags};

// Flags of `crate::bench`.
#[derive(Debug, Args)]
#[command(
    subcommand_value_name = "WHAT",
    disable_help_subcommand = true,
    after_help = "Try: minder bench wait"
)]
#[expect(missing_docs, reason = "a doc comment would replace the one of the subcommand")]
pub struct BenchFlags {
    #[command(subcommand)]
    pub(crate) what: Bench,
}

// The operation that is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// One wait for one of many objects, by mechanism and number of objects.
    #[command(after_help = "Try: minder bench wait --svg wait.svg", after_long_help = WAIT)]
    Wait(WaitFlags),
    /// The exit of one of many children, by mechanism and number of children.
    #[command(after_help = "Try: minder bench exit --live 10,1000", after_long_help = EXIT)]
    Exit(ExitFlags),
    /// One start of a child, by mechanism and size of the parent.
    #[command(after_help = "Try: minder bench spawn --parent-mib 10,512", after_long_help = SPAWN)]
    Spawn(SpawnFlags),
    /// Marking, sweeping and allocating cells, by heap and size of its blocks.
    #[command(after_help = "Try: minder bench sweep --block 1,32", after_long_help = SWEEP)]
    Sweep(CellSweepFlags),
    /// Computations run serially or concurrently: which form ends first, and which answers soonest.
    #[command(after_help = "Try: minder bench turnaround --quick", after_long_help = turnaround::HELP)]
    Turnaround(Box<TurnaroundFlags>),
    /// Does nothing until it is killed: the child of `bench exit` on Windows.
    #[command(hide = true)]
    Idle,
    /// Computes or sleeps: the child of `bench turnaround`.
    #[command(hide = true)]
    Compute(ComputeFlags),
}

/// Flags of the child of `minder bench turnaround`.
#[derive(Debug, Args)]
pub(crate) struct ComputeFlags {
    /// What it does: see [`minder_bench::compute`].
    pub(crate) name: String,
    /// How much of it.
    pub(crate) amount: u64,
}

/// Flags of `minder bench wait`.
#[derive(Debug, Args)]
pub(crate) struct WaitFlags {
    /// Numbers of objects that are waited for [default: 0,2,8,32,64 … 16384]
    ///
    /// A list of numbers and of ranges, in which each is twice the one before: 2,64,2048 or
    /// 2..16384. 0 is a poll without objects. The default
    /// is 0,2,8,32,64,128,512,1024,2048,8192,16384; on Windows 0,2,32,63,64,65,256,1024,2048,
    /// 4096.
    #[arg(long, value_name = "LIST", value_parser = objects)]
    pub(crate) objects: Option<Sizes>,

    #[command(flatten)]
    pub(crate) measure: MeasureFlags,
}

/// Flags of `minder bench exit`. Starting thousands of children is slow, so the default is
/// fewer rounds.
#[derive(Debug, Args)]
#[command(mut_arg("rounds", |rounds| rounds.default_value("2")))]
pub(crate) struct ExitFlags {
    /// Numbers of live children: a list of numbers, and of ranges in which each is twice the
    /// one before [default: 10,100,1000,5000; on Windows 10,100,1000]
    #[arg(long, value_name = "LIST", value_parser = sizes)]
    pub(crate) live: Option<Sizes>,

    /// What each child runs, without a shell; it must not exit by itself [default: sleep 1000000; on
    /// Windows minder itself]
    #[arg(long, value_name = "COMMAND", value_parser = child)]
    pub(crate) child: Option<ChildLine>,

    #[command(flatten)]
    pub(crate) measure: MeasureFlags,
}

/// Flags of `minder bench spawn`.
#[derive(Debug, Args)]
pub(crate) struct SpawnFlags {
    /// Sizes of the parent in MiB: a list of numbers, and of ranges in which each is twice the one
    /// before.
    #[arg(long, value_name = "LIST", default_value = "10,2048", value_parser = sizes)]
    pub(crate) parent_mib: Sizes,

    /// What each child runs, without a shell; it must exit at once [default: true; on Windows
    /// cmd.exe /d /c exit]
    #[arg(long, value_name = "COMMAND", value_parser = child)]
    pub(crate) child: Option<ChildLine>,

    #[command(flatten)]
    pub(crate) measure: MeasureFlags,
}

/// Flags of `minder bench sweep`.
#[derive(Debug, Args)]
#[command(mut_arg("rounds", |rounds| rounds.default_value("3")))]
pub(crate) struct CellSweepFlags {
    /// Number of cells in the chain.
    ///
    /// A cell needs 17 bytes. The published experiment has 105910837.
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = cells())]
    pub(crate) cells: u64,

    /// Sizes of blocks in KiB, each a power of two [default: 1,4,16,32,64,256,1024]
    ///
    /// A list of numbers, and of ranges in which each is twice the one before: 1,32 or 1..1024. The
    /// heaps of minder always have blocks of 64 KiB.
    #[arg(long, value_name = "KIB-LIST", value_parser = blocks)]
    pub(crate) block: Option<Sizes>,

    #[command(flatten)]
    pub(crate) measure: MeasureFlags,
}

/// Returns a parser of numbers of cells, up to more than any machine has.
fn cells() -> RangedU64ValueParser {
    value_parser!(u64).range(1_000..=1 << 40)
}

/// The largest block, in KiB.
const BLOCK_MAX: u64 = 1 << 10;

/// Flags of all measurements.
#[derive(Debug, Args)]
#[command(mut_arg("csv", |csv| csv.help(EACH_CSV)), mut_arg("json", |json| json.help(EACH_JSON)))]
#[command(mut_arg("svg", |svg| svg.help(
    "Also write a chart of the medians over sizes, as SVG: CPU time; wall time on Windows"
)))]
pub(crate) struct MeasureFlags {
    /// Measure only this mechanism; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Number of rounds.
    ///
    /// Each round measures every mechanism once at every size. Tables and charts show medians over
    /// the rounds.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// Parses [`sizes`] that may also contain 0.
///
/// # Errors
/// One line that quotes the text.
fn objects(text: &str) -> Result<Sizes, String> {
    let others: Vec<&str> = text.split(',').filter(|part| *part != "0").collect();
    let has_zero = text.split(',').count() > others.len();
    if has_zero && others.is_empty() {
        return Ok(Sizes(vec![0]));
    }
    let Sizes(sizes) = sizes(&others.join(","))?;
    Ok(Sizes(has_zero.then_some(0).into_iter().chain(sizes).collect()))
}

/// Parses sizes of blocks, which are powers of two.
///
/// # Errors
/// One line that quotes the text.
fn blocks(text: &str) -> Result<Sizes, String> {
    let sizes = sizes_up_to(text, BLOCK_MAX)?;
    match sizes.0.iter().find(|size| !size.is_power_of_two()) {
        Some(other) => Err(format!("`{other}` is not a power of two")),
        None => Ok(sizes),
    }
}

/// A program and its arguments, which are split at spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildLine(pub(crate) Vec<String>);

/// Splits a command at spaces.
///
/// # Errors
/// If there is no program.
fn child(text: &str) -> Result<ChildLine, String> {
    let line: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if line.is_empty() { Err("there is no program in it".to_owned()) } else { Ok(ChildLine(line)) }
}

const WAIT: &str = "\
Examples:
  minder bench wait                           a table of medians
  minder bench wait --svg wait.svg            and a chart of them
  minder bench wait --csv > wait.csv          every measurement, for a program
  minder bench wait --objects 2..16384        a size of each power of two
  minder bench wait --mechanism epoll --mechanism select

One of N objects is signalled, a mechanism waits and reports which, and the
object is reset. The cost of the signal and the reset alone is subtracted. Each
object is equally likely. With 0 objects it is a poll, which does not wait.

Mechanisms:
  epoll, iocp …  those of minder, by the names of `minder doctor`
  pool           resident threads with 63 objects each, all dispatched and
                 recalled at each wait; up to 64 objects without threads

Unix:
  select         the system call, with sets of any size
  bare-poll      the system call, without a library around it
  bare-epoll     epoll_wait, without a library around it (Linux)
  thread-each    a thread for each object, blocked in a read, which reports to
                 the waiter

Windows:
  bare-wfmo      one WaitForMultipleObjects, which takes 64 objects
  scan           the same for each 64 objects, without waiting, in a loop
  threads-at-each-wait   threads with 63 objects each, started for each wait
  posting-pool   resident threads with 63 objects each, which stay in their
                 calls and post signalled objects to a completion port; with 0
                 objects the bare call

Columns:
  mechanism objects round waits cpu_ns wall_ns

cpu_ns is the CPU time of one wait, of all threads together; wall_ns is the time
that passed. After Ctrl-C the measurements so far are shown. Cases that this
machine cannot measure are listed with the reason. Under Wine each row has a
column `note`: the times are those of Wine.

Exit status:
  0        all cases that this machine can measure were measured
  130      Ctrl-C, HUP, QUIT: the measurements so far are shown
  143      TERM: the same
  141      the reader of stdout closed it
  255      any other error; one line on stderr describes it";

const EXIT: &str = "\
Examples:
  minder bench exit                           tables of medians
  minder bench exit --live 10,1000            fewer children
  minder bench exit --csv > exit.csv          every measurement, for a program
  minder bench exit --mechanism epoll --mechanism sigchld-each

N children live. `one` is the cost of one exit among them: a random child is
killed, its exit is observed and the child is reaped. `burst` kills all N at
once, and is the cost of one of these exits. An exit that is not observed within
ten seconds is reported as lost.

Mechanisms:
  epoll, iocp …  those of minder, by the names of `minder doctor`
  floor          waitpid of the child that was killed (Windows:
                 WaitForSingleObject): the least possible cost; it observes no
                 other exit
  thread-each    a thread for each child, in waitpid or WaitForSingleObject

Unix:
  thread-one     one thread for all, in waitpid(-1)
Linux:
  sigchld-any    the signal, then waitpid(-1) until no more child has exited
  sigchld-each   the signal, then waitpid of each live child, as libuv does

Windows:
  scan           after an exit, WaitForMultipleObjects of all children, 64 by
                 each call

Columns:
  mechanism kind live round exits cpu_ns wall_ns

cpu_ns is the CPU time of one exit, of the whole process and with the kill;
wall_ns is the time that passed. No child is left behind, on Linux not even
after kill -9; processes that a child starts are not killed. After Ctrl-C the
measurements so far are shown. On Windows CPU time has steps of 1/64 s, too
coarse for so few exits: use wall time. Under Wine there is a column `note`.

Exit status:
  0        all cases that this machine can measure were measured
  130      Ctrl-C, HUP, QUIT: the measurements so far are shown
  143      TERM: the same
  141      the reader of stdout closed it
  255      any other error; one line on stderr describes it";

const SPAWN: &str = "\
Examples:
  minder bench spawn                          tables of medians
  minder bench spawn --parent-mib 16..1024    a size of each power of two
  minder bench spawn --child /bin/true --csv > spawn.csv

The parent has this much memory, in the smallest pages, and starts a child with
two pipes. The call alone is measured: the program is looked up in PATH before,
and the exit of the child is waited for between the starts.

Mechanisms:
  minder       with a new session and a pidfd (Windows: a new job object)
  set          the same by a ChildSet, which watches the child; the set is made
               once

Unix:
  posix_spawn  Rust's standard library; no session and no pidfd, for which it
               would fork
  fork         the same with setsid between fork and exec; no pidfd

Windows:
  std          Rust's standard library; no job object
  create-process   CreatePipe twice and CreateProcessW, without a library; no
                   job object

Columns:
  mechanism parent_mib round spawns cpu_ns wall_ns

cpu_ns is the CPU time of the parent alone; wall_ns is the time that passed
until the child runs its program (Windows: until the process exists). After
Ctrl-C the measurements so far are shown. On Windows CPU time has steps of 1/64
s: use wall time. Under Wine there is a column `note`.

Exit status:
  0        all cases that this machine can measure were measured
  130      Ctrl-C, HUP, QUIT: the measurements so far are shown
  143      TERM: the same
  141      the reader of stdout closed it
  255      any other error; one line on stderr describes it";

const SWEEP: &str = "\
Examples:
  minder bench sweep                          tables of medians
  minder bench sweep --block 1,32             sizes of the published experiment
  minder bench sweep --cells 105910837        its cells, which need 2 GiB
  minder bench sweep --csv > sweep.csv        every measurement, for a program

A chain of N cells of 16 bytes is in a heap with blocks of some size. Each phase
is measured apart, in this order:
  mark-live      all cells live: mark them
  sweep-live     … and sweep the heap
  mark-half      half of the cells were dropped at random: mark the others
  sweep-half     … and sweep the heap
  refill-half    allocate as many cells as are free
  sweep-dead     all cells were dropped: sweep the heap
  refill-dead    allocate all cells again

Mechanisms:
  inline         as in Emacs 28: each block has its marks and a link to the next
                 block at its end; the sweep writes each dead cell to link it
                 into a list. Each block follows the one before in memory
  inline-shuffled   the same, with the blocks in random order
  minder         the heap of minder: the marks are beside the blocks, and the
                 sweep touches no cell. The marks of the last collection are
                 cleared when the next one begins, which counts for mark-live,
                 mark-half and sweep-dead
  minder-maintained   the same, but they were cleared before

Columns:
  mechanism kind block_kib round cells cpu_ns wall_ns

cpu_ns is the CPU time of one cell: of those that were marked, of all that were
swept, of those that were allocated. wall_ns is the time that passed. After
Ctrl-C the measurements so far are shown. If this machine has not enough free
memory, nothing is measured. On Windows CPU time has steps of 1/64 s: use wall
time. Under Wine there is a column `note`.

Exit status:
  0        all cases that this machine can measure were measured
  130      Ctrl-C, HUP, QUIT: the measurements so far are shown
  143      TERM: the same
  141      the reader of stdout closed it
  255      any other error; one line on stderr describes it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_accept_zero() {
        let read = |text| objects(text).map(|sizes| sizes.0);
        assert_eq!(read("0"), Ok(vec![0]));
        assert_eq!(read("4,0,2"), Ok(vec![0, 2, 4]));
        assert_eq!(read("2..4"), Ok(vec![2, 4]));
        for invalid in ["", ",", "0,", "0..4", "00"] {
            assert!(read(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn blocks_are_powers_of_two() {
        assert_eq!(blocks("32,1..4"), Ok(Sizes(vec![1, 2, 4, 32])));
        assert_eq!(blocks("3"), Err("`3` is not a power of two".to_owned()));
        assert!(blocks("2048").is_err() && blocks("").is_err());
    }
}

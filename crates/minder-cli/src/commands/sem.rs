//! `sem`: runs a command when a semaphore has a free slot, like `sem` of GNU parallel.
//!
//! A semaphore is a directory of files. A lock on one of them is a slot. The process that waits for
//! the command holds the lock, and the command inherits it, as from flock(1). When the command exits, the
//! slot is released. If that process is killed before, the kernel releases the slot when the last process
//! of the command has exited, and nothing has to be cleaned up. Without `--fg`, that process is a second
//! minder in the background, which acquires the slot itself; the first minder exits once the slot is
//! acquired.
//!
//! Slots are polled: file locks offer no wait for one of several, and no wait with a timeout.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::{Command, Descriptors, ExitStatus, Group, Stdio};
use minder_os::files::{create_private_file, duplicate_high, open_private_file};
use minder_os::terminal::terminal_name;

use crate::ui::{self, message};
use minder_record::store::{create_dirs, state_root};
use minder_runner::jobs_setting::{EXPECTED_JOBS, JobsSpec, processors};
use minder_template::Invocation;
use minder_ui::exit;
use minder_ui::units::time;

use minder_runner::spawn_command;

/// A command that waits for a slot of a semaphore, and how it runs.
#[derive(Debug)]
pub(crate) struct SemArgs {
    /// The name of the semaphore. Without one, the terminal's name is used.
    pub(crate) name: Option<OsString>,
    /// The most commands that may run at once, as typed.
    pub(crate) jobs: Option<OsString>,
    /// The longest wait for a slot, as typed.
    pub(crate) timeout: Option<OsString>,
    pub(crate) foreground: bool,
    /// Only wait until no command holds a slot.
    pub(crate) wait: bool,
    /// Print the command before its output.
    pub(crate) print: bool,
    /// Print the command on stderr.
    pub(crate) verbose: bool,
    /// Run the arguments directly, without a shell.
    pub(crate) quote: bool,
    pub(crate) shell: OsString,
    /// A file to remove once the slot is held. The process that started this one in the background
    /// waits for the removal.
    pub(crate) started: Option<PathBuf>,
    /// The command and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// The file that is locked while slots are counted.
const GATE_FILE: &str = "gate";
/// The prefix of the slots' files.
const SLOT_PREFIX: &str = "turn-";
/// The first and the longest delay between two polls.
const DELAY_MIN: Duration = Duration::from_millis(1);
const DELAY_MAX: Duration = Duration::from_millis(50);
/// The exit status after a timeout, as in GNU parallel.
const TIMED_OUT: u8 = 1;
/// The maximum length of an encoded name in bytes. File names are limited to 255.
const NAME_MAX: usize = 200;

/// Waits for a slot, and runs the command or leaves it running.
pub(crate) fn run(sem: SemArgs) -> Result<ExitCode> {
    // The command inherits the descriptors that the user's shell opened.
    let descriptors = Descriptors::inherited();
    let name = sem.name.clone().or_else(terminal_name).unwrap_or_else(|| "no terminal".into());
    let semaphore = Semaphore::open(&name)?;
    if sem.wait {
        semaphore.wait_for_all()?;
        return Ok(ExitCode::SUCCESS);
    }
    if sem.command.is_empty() {
        // GNU parallel succeeds as well.
        return Ok(ExitCode::SUCCESS);
    }
    let slots_max = slots_max(sem.jobs.as_deref())?;
    let limit = match &sem.timeout {
        Some(timeout) => WaitLimit::parse(timeout)?,
        None => None,
    };
    if !sem.foreground {
        return semaphore.run_in_background(&sem, &name, &descriptors);
    }
    let Some(slot) = semaphore.acquire(slots_max, limit)? else {
        message("no slot became free in time: the command is not run");
        return Ok(ExitCode::from(TIMED_OUT));
    };
    if let Some(started) = &sem.started {
        // The process that waits for the removal may have been killed, and the file removed.
        let _ = std::fs::remove_file(started);
    }
    run_in_foreground(&sem, &slot, descriptors)
}

/// Runs the command until it exits, releases its slot, and returns its exit status.
fn run_in_foreground(sem: &SemArgs, slot: &File, descriptors: Descriptors) -> Result<ExitCode> {
    let line = sem.command.join(OsStr::new(" "));
    let shown = minder_template::shell_line(line.as_encoded_bytes().to_vec());
    if sem.verbose {
        ui::command_message(&shown);
    }
    if sem.print {
        ui::with_stdout(|out| Ok(writeln!(out, "{shown}")?))?;
    }
    let mut command = match sem.command.split_first() {
        Some((program, args)) if sem.quote => {
            let mut command = Command::new(program);
            command.args(args);
            command
        }
        _ => spawn_command(Invocation::of_line(Some(&sem.shell), &line)?),
    };
    command.env("PARALLEL_SEQ", "1").env("PARALLEL_JOBSLOT", "1");
    command.env("PARALLEL_PID", std::process::id().to_string());
    // On Windows the command has no descriptors, and ends with this process.
    let descriptors = match std::env::consts::FAMILY {
        "unix" => descriptors.with(duplicate_high(slot)?),
        _ => descriptors,
    };
    command.descriptors(&descriptors);
    // In our process group, Ctrl-C reaches the command, and it may read from the terminal.
    let exit = command.group(Group::Inherit).spawn()?.wait()?;
    // For all duplicates: a daemon of the command has one. If it fails, the slot is released with the last.
    let _ = slot.unlock();
    Ok(ExitCode::from(shell_status(exit.status)))
}

/// Returns the exit status that a shell reports.
fn shell_status(status: ExitStatus) -> u8 {
    match status {
        ExitStatus::Exited(code) => u8::try_from(code).unwrap_or(exit::OTHER),
        ExitStatus::Signaled { signal, .. } => u8::try_from(128 + signal).unwrap_or(exit::OTHER),
        _ => exit::OTHER,
    }
}

/// Returns how many commands may run at once, or `None` for no limit.
fn slots_max(jobs: Option<&OsStr>) -> Result<Option<usize>> {
    let Some(jobs) = jobs else { return Ok(Some(1)) };
    let parse = |text: &str| JobsSpec::parse(text.trim()).map(|spec| spec.of(processors()));
    let parse_file = || std::fs::read_to_string(jobs).ok().and_then(|text| parse(&text));
    let slots = jobs.to_str().and_then(parse).or_else(parse_file).with_context(|| {
        format!(
            "-j: invalid value `{}`: expected {EXPECTED_JOBS}, or a file that contains one",
            jobs.display()
        )
    })?;
    Ok(Some(slots).filter(|slots| *slots > 0))
}

/// The limit of a wait for a slot.
#[derive(Clone, Copy, Debug)]
struct WaitLimit {
    deadline: Instant,
    /// Run the command without a free slot after the deadline.
    run_anyway: bool,
}

impl WaitLimit {
    /// Parses the value of `--semaphore-timeout`. A negative one gives up after the timeout; zero
    /// means no limit.
    fn parse(text: &OsStr) -> Result<Option<Self>> {
        let text = text.to_str().unwrap_or_default();
        let (run_anyway, duration) = match text.strip_prefix('-') {
            Some(duration) => (false, duration),
            None => (true, text),
        };
        match time(duration) {
            Ok(Duration::ZERO) => Ok(None),
            Ok(duration) => {
                Ok(Instant::now().checked_add(duration).map(|deadline| Self { deadline, run_anyway }))
            }
            Err(why) => bail!("--semaphore-timeout: {why}"),
        }
    }

    fn has_passed(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

/// A semaphore: a directory with one file for each slot.
#[derive(Debug)]
struct Semaphore {
    dir: PathBuf,
}

impl Semaphore {
    fn open(name: &OsStr) -> Result<Self> {
        let dir = state_root()?.join("semaphores").join(file_name(name)?);
        create_dirs(&dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
        // The files of another directory are not to be locked, or counted as slots.
        if std::fs::symlink_metadata(&dir).is_ok_and(|it| it.is_symlink()) {
            bail!("cannot use `{}`: it is a symbolic link", dir.display());
        }
        Ok(Self { dir })
    }

    /// Waits for a slot. Returns the locked file, or `None` after a timeout.
    fn acquire(&self, slots_max: Option<usize>, limit: Option<WaitLimit>) -> Result<Option<File>> {
        let mut delay = DELAY_MIN;
        loop {
            let gate = self.lock_gate()?;
            let scan = self.scan()?;
            let is_free = slots_max.is_none_or(|slots_max| scan.held < slots_max);
            let exceeded = limit.filter(WaitLimit::has_passed);
            if is_free || exceeded.is_some_and(|limit| limit.run_anyway) {
                return self.take_slot(scan).map(Some);
            }
            // Release the free slots before the gate: the next process counts them.
            drop(scan);
            drop(gate);
            if exceeded.is_some() {
                return Ok(None);
            }
            back_off(&mut delay, limit.map(|limit| limit.deadline));
        }
    }

    /// Waits until no slot is held.
    fn wait_for_all(&self) -> Result<()> {
        let mut delay = DELAY_MIN;
        loop {
            let gate = self.lock_gate()?;
            if self.scan()?.held == 0 {
                return Ok(());
            }
            drop(gate);
            back_off(&mut delay, None);
        }
    }

    /// Starts another minder that acquires a slot and runs the command. Returns when it holds the slot
    /// or has exited.
    fn run_in_background(&self, sem: &SemArgs, name: &OsStr, descriptors: &Descriptors) -> Result<ExitCode> {
        let program = std::env::current_exe().and_then(std::fs::canonicalize);
        let program = program.context("cannot find minder's own program")?;
        let started = self.dir.join(format!("start-{}", std::process::id()));
        // An earlier process with this pid may have been killed and left it.
        let _ = std::fs::remove_file(&started);
        create_private_file(&started).with_context(|| format!("cannot create `{}`", started.display()))?;
        let mut command = Command::new(program);
        command.args(["sem", "--plain", "--fg"]);
        for (flag, value) in [
            ("--id", Some(name)),
            ("--jobs", sem.jobs.as_deref()),
            ("--semaphore-timeout", sem.timeout.as_deref()),
            ("--shell", Some(sem.shell.as_os_str())),
            ("--semaphore-started", Some(started.as_os_str())),
        ] {
            if let Some(value) = value {
                command.arg(flag).arg(value);
            }
        }
        for (flag, enabled) in [("-v", sem.print), ("-t", sem.verbose), ("-q", sem.quote)] {
            if enabled {
                command.arg(flag);
            }
        }
        command.arg("--").args(&sem.command);
        if std::io::stdin().is_terminal() {
            // A background process must not read from the terminal.
            command.stdin(Stdio::null());
        }
        command.descriptors(descriptors);
        let mut holder = command.group(Group::New).spawn()?;
        let mut delay = DELAY_MIN;
        loop {
            let exit = holder.wait_timeout(delay)?;
            if !started.exists() {
                return Ok(ExitCode::SUCCESS);
            }
            if let Some(exit) = exit {
                let _ = std::fs::remove_file(&started);
                return Ok(ExitCode::from(shell_status(exit.status)));
            }
            delay = (delay * 2).min(DELAY_MAX);
        }
    }

    /// Locks the semaphore, so that only one process at a time counts and takes slots.
    fn lock_gate(&self) -> Result<File> {
        let gate = open(&self.dir.join(GATE_FILE))?;
        gate.lock().context("cannot lock the semaphore")?;
        Ok(gate)
    }

    /// Counts the slots. The caller holds the gate.
    fn scan(&self) -> Result<SlotScan> {
        let mut scan = SlotScan::default();
        let entries = std::fs::read_dir(&self.dir);
        for entry in entries.with_context(|| format!("cannot read `{}`", self.dir.display()))? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(SLOT_PREFIX)?.parse::<u64>().ok());
            let Some(number) = number else { continue };
            scan.last = scan.last.max(number);
            let file = open(&entry.path())?;
            match file.try_lock() {
                Ok(()) => scan.free = Some(file),
                Err(TryLockError::WouldBlock) => scan.held += 1,
                Err(TryLockError::Error(error)) => return Err(error).context("cannot lock a slot"),
            }
        }
        Ok(scan)
    }

    /// Returns the free slot of the scan, or a new one. The caller holds the gate.
    fn take_slot(&self, scan: SlotScan) -> Result<File> {
        if let Some(free) = scan.free {
            return Ok(free);
        }
        let file = open(&self.dir.join(format!("{SLOT_PREFIX}{}", scan.last.saturating_add(1))))?;
        file.lock().context("cannot lock a slot")?;
        Ok(file)
    }
}

/// The slots of a semaphore while the gate is locked.
#[derive(Debug, Default)]
struct SlotScan {
    held: usize,
    /// A slot that was free. The scan has locked it.
    free: Option<File>,
    /// The highest number of a slot.
    last: u64,
}

fn open(path: &Path) -> Result<File> {
    open_private_file(path).with_context(|| format!("cannot open `{}`", path.display()))
}

/// Sleeps for `delay`, at most until `deadline`, and doubles the delay.
fn back_off(delay: &mut Duration, deadline: Option<Instant>) {
    minder_os::time::pause(*delay, deadline);
    *delay = (*delay * 2).min(DELAY_MAX);
}

/// Encodes a name as a unique file name. Bytes other than letters, digits, `-`, `_` and `.` are
/// written as `%` and two hexadecimal digits.
fn file_name(name: &OsStr) -> Result<String> {
    let mut out = String::from("id-");
    for &byte in name.as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(char::from(byte)),
            _ => out += &format!("%{byte:02x}"),
        }
    }
    if out.len() > NAME_MAX {
        bail!("`--id {}` is too long for a file name", name.display());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_max_accepts_the_values_of_jobs() {
        let processors = processors();
        let parse = |text: &str| slots_max(Some(OsStr::new(text))).ok();
        assert_eq!(slots_max(None).ok(), Some(Some(1)));
        assert_eq!(parse("3"), Some(Some(3)));
        assert_eq!(parse("0"), Some(None));
        assert_eq!(parse("+2"), Some(Some(processors + 2)));
        assert_eq!(parse("-100000"), Some(Some(1)));
        assert_eq!(parse("200%"), Some(Some(processors * 2)));
        for invalid in ["x", "", "+", "-x", "1.5", "x%"] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn file_name_is_unique_for_each_name() {
        let encode = |text: &str| file_name(OsStr::new(text)).unwrap_or_default();
        assert_eq!(encode("my-task_1.x"), "id-my-task_1.x");
        assert_eq!(encode("/dev/pts/3"), "id-%2fdev%2fpts%2f3");
        assert_eq!(encode(".."), "id-..");
        assert_eq!(encode(""), "id-");
        assert_ne!(encode("a%2f"), encode("a/"));
        assert!(file_name(OsStr::new(&"x".repeat(300))).is_err());
    }

    #[test]
    fn acquire_reuses_released_slots() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let semaphore = Semaphore { dir: dir.path().to_owned() };
        let now = |run_anyway| Some(WaitLimit { deadline: Instant::now(), run_anyway });
        let acquire = |slots_max, limit| semaphore.acquire(Some(slots_max), limit).expect("scan slots");
        let first = acquire(2, None).expect("acquire first slot");
        let second = acquire(2, None).expect("acquire second slot");
        assert!(acquire(2, now(false)).is_none());
        let third = acquire(2, now(true)).expect("acquire slot beyond the maximum");
        assert!(acquire(3, now(false)).is_none());
        drop(first);
        drop(third);
        let reused = acquire(2, now(false)).expect("acquire released slot");
        drop(reused);
        drop(second);
        semaphore.wait_for_all().expect("wait for all slots");
        assert_eq!(semaphore.scan().expect("scan slots").last, 3);
    }
}

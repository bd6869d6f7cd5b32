//! `sem`: runs a command when it is its turn, as GNU parallel's semaphores do.
//!
//! A semaphore is a folder of files; a lock on one of them is a turn. The process that waits for
//! the command holds it, so that whatever ends that process ends the turn, and nothing is left to
//! clean up. Without `--fg` this process is a second minder, in the background: it takes the turn
//! itself, and the first ends when it has.
//!
//! Locks are asked for again and again: no system tells which of several is free first, or gives up
//! waiting for one.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::{Command, Descriptors, ExitStatus, Group, Stdio};
use minder_os::files::create_private_file;
use minder_os::terminal::terminal_name;

use crate::exit;
use crate::face::Sem;
use crate::report::{self, message};
use crate::units::time;
use minder_record::store::{create_dirs, state_root};
use minder_runner::jobs_setting::{JobsSpec, processors};
use minder_template::Invocation;

use minder_runner::spawn_command;

/// Held while turns are counted.
const GATE: &str = "gate";
/// What the files of turns begin with.
const TURN: &str = "turn-";
/// The first pause between two looks, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// The status of those who gave up to wait: GNU parallel's.
const GAVE_UP: u8 = 1;
/// What a name may have in bytes, once its odd ones are written as numbers: a file's name has 255.
const NAME_MAX: usize = 200;

/// Waits for the turn, and runs the command or leaves it running.
pub(crate) fn run(sem: Sem) -> Result<ExitCode> {
    // What the user's shell left open is there for the command.
    let descriptors = Descriptors::inherited();
    let name = sem.name.clone().or_else(terminal_name).unwrap_or_else(|| "no terminal".into());
    let turns = Semaphore::open(&name)?;
    if sem.wait {
        turns.wait_for_all()?;
        return Ok(ExitCode::SUCCESS);
    }
    if sem.words.is_empty() {
        // As for GNU parallel: nothing is to be run.
        return Ok(ExitCode::SUCCESS);
    }
    let most = turns_at_once(sem.jobs.as_deref())?;
    let patience = sem.patience.as_deref().map(patience).transpose()?.flatten();
    if !sem.foreground {
        return turns.hand_over(&sem, &name, &descriptors);
    }
    let Some(_turn) = turns.take(most, patience)? else {
        message("there was no turn in time: the command is not run");
        return Ok(ExitCode::from(GAVE_UP));
    };
    if let Some(started) = &sem.started {
        // Whoever waited for it may be gone, and the file with it.
        let _ = std::fs::remove_file(started);
    }
    foreground(&sem, &descriptors)
}

/// Runs the command to its end; its status is ours.
fn foreground(sem: &Sem, descriptors: &Descriptors) -> Result<ExitCode> {
    let line = sem.words.join(OsStr::new(" "));
    let shown = report::table::escape(line.as_encoded_bytes());
    if sem.say {
        report::command_message(&shown);
    }
    if sem.print {
        report::with_stdout(|out| Ok(writeln!(out, "{shown}")?))?;
    }
    let mut command = match sem.words.split_first() {
        Some((program, args)) if sem.quote => {
            let mut command = Command::new(program);
            command.args(args);
            command
        }
        _ => spawn_command(&Invocation::of_line(Some(&sem.shell), &line)?),
    };
    command.env("PARALLEL_SEQ", "1").env("PARALLEL_JOBSLOT", "1");
    command.env("PARALLEL_PID", std::process::id().to_string());
    // Ours, so that Ctrl-C reaches it, and it may read from the terminal.
    command.descriptors(descriptors);
    let exit = command.group(Group::Inherit).spawn()?.wait()?;
    Ok(ExitCode::from(status_of(exit.status)))
}

/// What a shell shows for this end.
fn status_of(status: ExitStatus) -> u8 {
    match status {
        ExitStatus::Exited(code) => u8::try_from(code).unwrap_or(exit::OTHER),
        ExitStatus::Signaled { signal, .. } => u8::try_from(128 + signal).unwrap_or(exit::OTHER),
        _ => exit::OTHER,
    }
}

/// How many may run at once; `None` for any number.
fn turns_at_once(jobs: Option<&OsStr>) -> Result<Option<usize>> {
    let Some(jobs) = jobs else { return Ok(Some(1)) };
    let read = |text: &str| JobsSpec::parse(text.trim()).map(|amount| amount.of(processors()));
    let of_file = || std::fs::read_to_string(jobs).ok().and_then(|text| read(&text));
    let number = jobs.to_str().and_then(read).or_else(of_file);
    let number = number.with_context(|| {
        format!("`--jobs {}` is neither a number, N%, +N or -N, nor a file with one", jobs.display())
    })?;
    Ok(Some(number).filter(|number| *number > 0))
}

/// When the wait for a turn ends, and whether the command then runs all the same.
#[derive(Clone, Copy, Debug)]
struct WaitLimit {
    deadline: Instant,
    run_anyway: bool,
}

fn patience(text: &OsStr) -> Result<Option<WaitLimit>> {
    let typed = text.to_str().unwrap_or_default();
    let (run_anyway, length) = match typed.strip_prefix('-') {
        Some(length) => (false, length),
        None => (true, typed),
    };
    match time(length) {
        Ok(Duration::ZERO) => Ok(None),
        Ok(length) => {
            Ok(Instant::now().checked_add(length).map(|deadline| WaitLimit { deadline, run_anyway }))
        }
        Err(why) => bail!("--semaphore-timeout: {why}"),
    }
}

/// The turns of one semaphore.
#[derive(Debug)]
struct Semaphore {
    folder: PathBuf,
}

impl Semaphore {
    fn open(name: &OsStr) -> Result<Self> {
        let folder = state_root()?.join("semaphores").join(file_name(name)?);
        create_dirs(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        Ok(Self { folder })
    }

    /// Waits for a turn; nothing if there was none in time.
    fn take(&self, most: Option<usize>, patience: Option<WaitLimit>) -> Result<Option<File>> {
        let mut pause = PAUSE_MIN;
        loop {
            let gate = self.lock_dir()?;
            let look = self.look()?;
            let overdue = patience.filter(|patience| Instant::now() >= patience.deadline);
            if most.is_none_or(|most| look.held < most) || overdue.is_some_and(|patience| patience.run_anyway)
            {
                return self.turn(look).map(Some);
            }
            drop((look, gate));
            if overdue.is_some() {
                return Ok(None);
            }
            backoff(&mut pause, patience.map(|patience| patience.deadline));
        }
    }

    /// Waits until nobody has a turn.
    fn wait_for_all(&self) -> Result<()> {
        let mut pause = PAUSE_MIN;
        loop {
            let gate = self.lock_dir()?;
            if self.look()?.held == 0 {
                return Ok(());
            }
            drop(gate);
            backoff(&mut pause, None);
        }
    }

    /// Starts another minder that takes the turn and runs the command; waits until it has the turn.
    fn hand_over(&self, sem: &Sem, name: &OsStr, descriptors: &Descriptors) -> Result<ExitCode> {
        let own = std::env::current_exe().and_then(std::fs::canonicalize);
        let own = own.context("cannot find the program of minder itself")?;
        let started = self.folder.join(format!("start-{}", std::process::id()));
        // It is left over if a process with this number was killed.
        let _ = std::fs::remove_file(&started);
        create_private_file(&started).with_context(|| format!("cannot make `{}`", started.display()))?;
        let mut command = Command::new(own);
        command.args(["sem", "--plain", "--fg"]);
        for (flag, value) in [
            ("--id", Some(name)),
            ("--jobs", sem.jobs.as_deref()),
            ("--semaphore-timeout", sem.patience.as_deref()),
            ("--shell", Some(sem.shell.as_os_str())),
            ("--semaphore-started", Some(started.as_os_str())),
        ] {
            if let Some(value) = value {
                command.arg(flag).arg(value);
            }
        }
        for (flag, wanted) in [("-v", sem.print), ("-t", sem.say), ("-q", sem.quote)] {
            if wanted {
                command.arg(flag);
            }
        }
        command.arg("--").args(&sem.words);
        if std::io::stdin().is_terminal() {
            // What runs in the background does not read from the terminal.
            command.stdin(Stdio::Null);
        }
        command.descriptors(descriptors);
        let mut holder = command.group(Group::New).spawn()?;
        let mut pause = PAUSE_MIN;
        loop {
            let ended = holder.wait_timeout(pause)?;
            if !started.exists() {
                return Ok(ExitCode::SUCCESS);
            }
            if let Some(ended) = ended {
                let _ = std::fs::remove_file(&started);
                return Ok(ExitCode::from(status_of(ended.status)));
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Turns are counted and taken by one process at a time.
    fn lock_dir(&self) -> Result<File> {
        let gate = open(&self.folder.join(GATE))?;
        gate.lock().context("cannot lock the semaphore")?;
        Ok(gate)
    }

    fn look(&self) -> Result<SlotScan> {
        let mut look = SlotScan::default();
        let entries = std::fs::read_dir(&self.folder);
        for entry in entries.with_context(|| format!("cannot read `{}`", self.folder.display()))? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(number) = name.to_str().and_then(|name| name.strip_prefix(TURN)?.parse::<u64>().ok())
            else {
                continue;
            };
            look.last = look.last.max(number);
            let file = open(&entry.path())?;
            match file.try_lock() {
                Ok(()) => look.free = Some(file),
                Err(TryLockError::WouldBlock) => look.held += 1,
                Err(TryLockError::Error(error)) => return Err(error).context("cannot lock a turn"),
            }
        }
        Ok(look)
    }

    /// The free turn that was seen, or a new one.
    fn turn(&self, look: SlotScan) -> Result<File> {
        if let Some(free) = look.free {
            return Ok(free);
        }
        let file = open(&self.folder.join(format!("{TURN}{}", look.last.saturating_add(1))))?;
        file.lock().context("cannot lock a turn")?;
        Ok(file)
    }
}

/// What there is of turns, while the gate is held.
#[derive(Debug, Default)]
struct SlotScan {
    held: usize,
    /// One that nobody had. It is locked now.
    free: Option<File>,
    /// The highest number.
    last: u64,
}

fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    file.with_context(|| format!("cannot open `{}`", path.display()))
}

/// Lets time pass, a little more each time.
fn backoff(pause: &mut Duration, until: Option<Instant>) {
    minder_os::time::pause(*pause, until);
    *pause = (*pause * 2).min(PAUSE_MAX);
}

/// A name as the name of a file that no other name has: odd bytes are written as numbers.
fn file_name(name: &OsStr) -> Result<String> {
    let mut out = String::from("id-");
    for &byte in name.as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(char::from(byte)),
            _ => out += &format!("%{byte:02x}"),
        }
    }
    if out.len() > NAME_MAX {
        bail!("`--id {}` is too long for the name of a file", name.display());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_turns_are_read() {
        let processors = processors();
        let read = |text: &str| turns_at_once(Some(OsStr::new(text))).ok();
        assert_eq!(turns_at_once(None).ok(), Some(Some(1)));
        assert_eq!(read("3"), Some(Some(3)));
        assert_eq!(read("0"), Some(None));
        assert_eq!(read("+2"), Some(Some(processors + 2)));
        assert_eq!(read("-100000"), Some(Some(1)));
        assert_eq!(read("200%"), Some(Some(processors * 2)));
        for wrong in ["x", "", "+", "-x", "1.5", "x%"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_of_semaphores_do_not_meet() {
        let name = |text: &str| file_name(OsStr::new(text)).unwrap_or_default();
        assert_eq!(name("my-task_1.x"), "id-my-task_1.x");
        assert_eq!(name("/dev/pts/3"), "id-%2fdev%2fpts%2f3");
        assert_eq!((name(".."), name("")), ("id-..".to_owned(), "id-".to_owned()));
        assert_ne!(name("a%2f"), name("a/"));
        assert!(file_name(OsStr::new(&"x".repeat(300))).is_err());
    }

    #[test]
    fn turns_are_taken_and_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let turns = Semaphore { folder: folder.path().to_owned() };
        let now = |run_anyway| Some(WaitLimit { deadline: Instant::now(), run_anyway });
        let first = turns.take(Some(2), None).expect("a look").expect("a turn");
        let second = turns.take(Some(2), None).expect("a look").expect("a turn");
        assert!(turns.take(Some(2), now(false)).expect("a look").is_none());
        let third = turns.take(Some(2), now(true)).expect("a look").expect("one more than allowed");
        assert!(turns.take(Some(3), now(false)).expect("a look").is_none());
        drop((first, third));
        let again = turns.take(Some(2), now(false)).expect("a look").expect("a turn");
        drop((again, second));
        turns.wait_for_all().expect("nobody has a turn");
        assert_eq!(turns.look().expect("a look").last, 3);
    }
}

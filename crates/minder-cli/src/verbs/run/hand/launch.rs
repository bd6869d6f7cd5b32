//! From the arguments of a job to what is started.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use minder::exec::Start;
use minder::{Charge, Command, Delivery, Group, Size, SpawnOptions, Stdio, Stream, WhenFull};
use minder_os::terminal::terminal_size;

use super::super::input::Task;
use super::super::job::Running;
use super::super::output::Own;
use super::super::results::{Copies, Refusal, Results, cannot_write};
use super::super::shared::Shared;
use super::super::spread::Meal;
use super::Hand;
use crate::plan::{Timeout, View, Way};
use crate::report::reason;
use minder_template::Job;

/// Pours its input into the pipe that its name is, beside the command that reads it: only who opens
/// a named pipe for writing can wait until somebody reads. The words of the command stay words, and
/// its first a program: `exec` knows nothing else. Descriptor 3 is our input for `cat` alone: the
/// command has its own, which the user's shell left open, or none.
const FIFO: &str =
    r#"{ cat <&3 3<&- >"$0" & } 3<&0; (exec "$@") </dev/null; s=$?; kill $! 2>/dev/null; exit $s"#;
/// The size of a job's own terminal where ours has none.
const TERMINAL: Size = Size { rows: 24, columns: 80 };

impl Hand<'_> {
    /// Prepares what a job needs beside its command.
    pub(super) fn prepare(
        &mut self,
        command: &mut Command,
        running: &mut Running,
        task: &Task,
        start: Start,
    ) -> Result<SpawnOptions, Refusal> {
        let plan = self.shared.plan;
        command.stdin(Stdio::Null).die_with_parent(true);
        running.copies = Copies::create(&plan.beside, &job(self.shared, task, start))?;
        if let Some(part) = task.part().take() {
            self.serve(command, running, task, Meal::new(part))?;
        }
        self.surround(command, running, task, start)?;
        if plan.print {
            running.head = plan.template.display(&job(self.shared, task, start)).into_bytes();
            running.head.push(b'\n');
        }
        let mut options = SpawnOptions::default().rank(task.number);
        if let Some(Timeout::After(limit)) = plan.control.timeout
            && let Some(at) = Instant::now().checked_add(limit)
        {
            running.timeout = Some(limit);
            options = options.deadline(at, plan.kill());
        }
        let run = self.shared.book.run();
        running.results = Results::create(&plan.beside, &job(self.shared, task, start), run)?;
        if plan.pty {
            let size =
                terminal_size().map_or(TERMINAL, |size| Size { rows: size.rows, columns: size.columns });
            command.group(Group::Terminal(size));
        } else if plan.spool {
            let files = [self.spool(running)?, self.spool(running)?];
            let [out, err] = files.map(Stdio::from);
            command.stdout(out).stderr(err);
            hand_over(command, running)?;
            return Ok(options);
        } else if plan.view == View::Straight {
            self.straight(command, running);
            hand_over(command, running)?;
            return Ok(options);
        } else {
            command.stdout(Stdio::Piped).stderr(Stdio::Piped);
            hand_over(command, running)?;
        }
        running.live = match plan.view {
            _ if !plan.may_be_live() => false,
            View::Ordered => self.shared.stage.start(running.number) && running.may_live,
            View::Grouped if !running.may_live => false,
            View::Grouped => {
                let alone = self.shared.degree == 1 || self.shared.input.total() == Some(1);
                alone && self.shared.stage.claim(running.number)
            }
            View::Lines | View::Straight => false,
        };
        Ok(match running.live || plan.view == View::Lines {
            true => options.delivery(Delivery::Live).when_full(WhenFull::Hold),
            false => options.delivery(Delivery::AtEnd).when_full(WhenFull::Spill).files(true),
        })
    }

    /// Lets the job read its part: as its input, or as a file that is there before it starts, or as
    /// a named pipe.
    fn serve(
        &mut self,
        command: &mut Command,
        running: &mut Running,
        task: &Task,
        mut meal: Meal,
    ) -> Result<(), String> {
        let (Some(pipe), Some(asked)) = (self.shared.input.pipe(), &self.shared.plan.pipe) else {
            return Ok(());
        };
        let path = PathBuf::from(task.columns().first().cloned().unwrap_or_default());
        let failed = |error: std::io::Error| format!("cannot make `{}`: {}", path.display(), reason(&error));
        match asked.way {
            Way::Stdin => {
                command.stdin(Stdio::Piped);
            }
            Way::File => {
                // What an attempt before this one left.
                let _ = std::fs::remove_file(&path);
                let mut file = minder_os::files::create_private_file(&path).map_err(failed)?;
                running.files.push(path.clone());
                meal.pour(pipe, |bytes| file.write_all(bytes)).map_err(failed)?;
                if meal.is_torn() {
                    return Err(pipe.error().unwrap_or_else(|| format!("cannot fill `{}`", path.display())));
                }
            }
            Way::Fifo => {
                let _ = std::fs::remove_file(&path);
                minder_os::files::create_fifo(&path).map_err(|error| match error.kind() {
                    std::io::ErrorKind::Unsupported => {
                        "--fifo: this system has no pipes in folders: --cat gives each job a file".to_owned()
                    }
                    _ => failed(error),
                })?;
                let mut words =
                    vec![FIFO.into(), path.clone().into_os_string(), command.get_program().to_owned()];
                words.extend(command.get_args().map(std::ffi::OsStr::to_owned));
                *command = Command::new("/bin/sh");
                command.arg("-c").args(words).stdin(Stdio::Piped).die_with_parent(true);
                running.files.push(path);
            }
        }
        running.meal = Some(meal);
        Ok(())
    }

    /// What a job finds around it: its folder, variables, niceness.
    fn surround(
        &self,
        command: &mut Command,
        running: &mut Running,
        task: &Task,
        start: Start,
    ) -> Result<(), Refusal> {
        let control = &self.shared.plan.control;
        command.descriptors(&self.shared.plan.descriptors);
        for (name, value) in &self.shared.plan.environment {
            command.env(name, value);
        }
        for (name, value) in &control.env {
            command.env(name, value);
        }
        command.nice(control.nice);
        if let Some(name) = &control.slot_var {
            // As GNU parallel counts them here, from 0.
            command.env(name, (start.slot - 1).to_string());
        }
        if self.shared.plan.parallel_env {
            command.env("PARALLEL_SEQ", task.number.to_string());
            command.env("PARALLEL_JOBSLOT", start.slot.to_string());
            command.env("PARALLEL_PID", self.shared.plan.pid.to_string());
            // This machine.
            command.env("PARALLEL_SSHLOGIN", ":").env("PARALLEL_SSHHOST", ":");
        }
        if let Some(folder) = &control.folder {
            let words = folder.argv(&job(self.shared, task, start)).map_err(|error| error.to_string())?;
            let mut path = PathBuf::from(words.into_iter().next().unwrap_or_default());
            if path.as_os_str() == "..." {
                let (book, token) = (self.shared.book, &self.shared.plan.beside.token);
                // Without a record the folder is not ours alone.
                let whose = if book.is_kept() { String::new() } else { format!("minder-{token}-") };
                path = book.folder().join(format!("{whose}work-{}", task.number));
                if self.shared.plan.beside.cleanup {
                    running.copies.own(path.clone());
                }
                match minder_os::files::create_private_dir(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(format!("cannot make `{}`: {}", path.display(), reason(&error)).into());
                    }
                    _ => (),
                }
            } else if !path.as_os_str().is_empty() {
                std::fs::create_dir_all(&path).map_err(|error| {
                    Refusal::of(
                        &format!("cannot make `{}`", path.display()),
                        &error,
                        folder.has_placeholders(),
                    )
                })?;
            }
            command.current_dir(path);
        }
        Ok(())
    }

    /// A job that writes for itself, and perhaps has the terminal.
    fn straight(&self, command: &mut Command, running: &mut Running) {
        command.stdout(Stdio::Inherit).stderr(Stdio::Inherit);
        if self.shared.plan.control.tty {
            // Of our group, which has the terminal: a group of its own would be stopped when it reads.
            // Without any terminal its input is empty, as GNU parallel has it.
            command
                .group(Group::Inherit)
                .stdin(minder_os::terminal::open_terminal().map_or(Stdio::Null, Stdio::from));
        }
        let head = std::mem::take(&mut running.head);
        self.shared.stage.show(Stream::Stdout, &head, None);
    }

    /// A file for a job to write to.
    pub(super) fn spool(&mut self, running: &mut Running) -> Result<std::fs::File, String> {
        let shared = self.shared;
        let folder = shared.book.folder();
        let made = match shared.book.name("spill", self.place) {
            None => minder_os::files::create_unnamed_file(folder).map(|file| (file, None)),
            Some(name) => {
                self.spools += 1;
                let path = folder.join(format!("{name}-job{}", self.spools));
                minder_os::files::create_private_file(&path).map(|file| (file, Some(path)))
            }
        };
        let made = made.and_then(|(file, path)| {
            Ok((file.try_clone()?, Own { file: Some(file), path, range: 0..0, charge: Charge::default() }))
        });
        let (file, own) = made.map_err(|error| {
            format!("cannot make a file for output in `{}`: {}", folder.display(), reason(&error))
        })?;
        running.spool.push(own);
        Ok(file)
    }
}

/// Lets a job write to its files itself, where nothing of it is to be shown.
fn hand_over(command: &mut Command, running: &mut Running) -> Result<(), String> {
    let Some(results) = &mut running.results else { return Ok(()) };
    if !results.shows(Stream::Stdout) {
        let head = std::mem::take(&mut running.head);
        results.begin(&head).map_err(|error| cannot_write(results.place(), &error))?;
    }
    for stream in [Stream::Stdout, Stream::Stderr] {
        let file = results.hand_over(stream).map_err(|error| cannot_write(results.place(), &error))?;
        match (stream, file) {
            (Stream::Stdout, Some(file)) => _ = command.stdout(file),
            (Stream::Stderr, Some(file)) => _ = command.stderr(file),
            (_, None) => (),
        }
    }
    Ok(())
}

/// What a job puts into the template.
pub(super) fn job<'a>(shared: &Shared<'_>, task: &'a Task, start: Start) -> Job<'a> {
    Job {
        columns: task.columns(),
        number: task.number,
        slot: start.slot,
        total: shared.input.total(),
        slots: u32::try_from(shared.degree).ok(),
    }
}

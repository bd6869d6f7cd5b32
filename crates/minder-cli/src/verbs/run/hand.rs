//! One loop's part: from an argument to a command, from an event to the screen, from an end to the tally.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use minder::exec::{Crew, Launch, Start, Supply, Verdict, Worker};
use minder::{
    ChildSet, Command, Delivery, Error, ErrorKind, Event, Kill, Outcome, SpawnOptions, Status, Stdio,
    WhenFull,
};

use super::input::{Input, Item};
use super::screen::{Gather, Screen};
use crate::plan::Plan;
use crate::report::{Tally, count, say};
use crate::template::{self, Job};

/// How long a job that wants the terminal has to end.
const TERMINAL_GRACE: Duration = Duration::from_secs(1);

/// What the loops and the main thread share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) crew: &'a Arc<Crew<Item>>,
    pub(super) screen: &'a Screen,
    pub(super) input: &'a Input,
    fatal: Mutex<Option<String>>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        crew: &'a Arc<Crew<Item>>,
        screen: &'a Screen,
        input: &'a Input,
    ) -> Self {
        Self { plan, crew, screen, input, fatal: Mutex::new(None) }
    }

    /// Ends the run with this message. The first one counts.
    pub(super) fn fail(&self, message: String) {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
        self.crew.kill();
    }

    /// Whether something of ours failed, and the jobs are killed for it.
    fn has_failed(&self) -> bool {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What ended the run, if something did.
    pub(super) fn take_failure(&self) -> Option<String> {
        let fatal = self.fatal.lock().unwrap_or_else(PoisonError::into_inner).take();
        fatal.or_else(|| self.screen.take_failure()).or_else(|| self.input.error())
    }

    /// Runs one loop to its end.
    pub(super) fn work(&self, set: &mut ChildSet, slots: usize) -> Tally {
        let mut hand = Hand {
            shared: self,
            out: Gather::new(self.screen),
            tally: Tally::default(),
            begun: Vec::new(),
            torn: Vec::new(),
        };
        let driven = self.crew.drive(set, slots, &mut hand);
        hand.out.flush();
        if let Err(error) = driven {
            self.fail(match error.kind() {
                ErrorKind::Exhausted => {
                    format!("{error}, and no job runs whose end could free some (`minder doctor` shows the limits)")
                }
                // The only files that the library writes.
                _ if error.to_string().contains("spill") => {
                    format!("{error} (TMPDIR names another folder for output that does not fit into memory)")
                }
                _ => error.to_string(),
            });
        }
        hand.tally
    }
}

/// One loop's worker.
struct Hand<'a> {
    shared: &'a Shared<'a>,
    out: Gather<'a>,
    tally: Tally,
    /// When the job in each slot was started.
    begun: Vec<Option<Instant>>,
    /// The slots of jobs that were killed by a failure of ours. The torn pieces that they wrote are not shown.
    torn: Vec<u32>,
}

impl Hand<'_> {
    fn name(&self, start: Start, item: &Item) -> String {
        match item {
            Item::Value(value) => shorten(&self.shared.plan.template.display(&job(value, start))),
            Item::TooLong(_) => format!("job {}", start.job),
        }
    }

    /// Counts a job that was not started, and says why.
    fn give_up(&mut self, name: &str, why: &str) -> Verdict {
        self.shared.screen.aside(|| say(&format!("cannot run `{name}`: {why}")));
        self.tally.add_refused(name, why);
        Verdict::FailedForGood
    }
}

impl Worker for Hand<'_> {
    type Job = Item;

    fn supply(&mut self) -> Supply<Item> {
        self.shared.input.supply()
    }

    fn launch(&mut self, start: Start, item: &Item) -> Result<Launch, Verdict> {
        let argv = match item {
            Item::Value(value) => self.shared.plan.template.argv(&job(value, start)),
            Item::TooLong(len) => {
                let why = format!("a line of {len} bytes; an argument has at most 131,071");
                return Err(self.give_up(&format!("job {}", start.job), &why));
            }
        };
        let argv = match argv {
            Ok(argv) => argv,
            Err(error) if error.kind() == template::ErrorKind::Column => {
                // The same for every job: said once, and no other job is tried.
                self.shared.fail(error.to_string());
                return Err(Verdict::FailedForGood);
            }
            Err(error) => {
                let name = self.name(start, item);
                return Err(self.give_up(&name, &error.to_string()));
            }
        };
        let mut words = argv.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command.stdin(Stdio::Null).stdout(Stdio::Piped).stderr(Stdio::Piped).die_with_parent(true);
        let slot = start.slot as usize;
        if self.begun.len() <= slot {
            self.begun.resize(slot + 1, None);
        }
        self.begun[slot] = Some(Instant::now());
        let options = SpawnOptions::default().delivery(Delivery::AtEnd).when_full(WhenFull::Spill);
        Ok(Launch { command, options })
    }

    fn event(&mut self, start: Start, item: &Item, event: Event) -> Option<Kill> {
        match event {
            Event::Output(_, stream, bytes) if !self.torn.contains(&start.slot) => {
                self.out.push(stream, &bytes)
            }
            Event::Exited(_, exit)
                if matches!(exit.status, Status::Signaled { .. }) && self.shared.has_failed() =>
            {
                self.torn.push(start.slot);
            }
            Event::Stopped(_, signal) if minder::os::wants_terminal(signal) => {
                let name = self.name(start, item);
                self.shared.screen.aside(|| {
                    say(&format!("`{name}` wants the terminal, which jobs do not have, and is ended: give it a file as input, or the answer as an argument"));
                });
                return Some(Kill::after(TERMINAL_GRACE));
            }
            _ => (),
        }
        None
    }

    fn done(&mut self, start: Start, item: &Item, outcome: Outcome) -> Verdict {
        self.out.end_job();
        self.torn.retain(|slot| *slot != start.slot);
        let wall = self
            .begun
            .get(start.slot as usize)
            .copied()
            .flatten()
            .map_or(Duration::ZERO, |begun| begun.elapsed());
        let shared = self.shared;
        let mut tally = std::mem::take(&mut self.tally);
        tally.add(&outcome, wall, || self.name(start, item));
        self.tally = tally;
        if shared.screen.is_broken() {
            shared.crew.cancel();
        }
        if outcome.exit.status.success() { Verdict::Succeeded } else { Verdict::Failed }
    }

    fn refused(&mut self, start: Start, item: &Item, error: Error) -> Verdict {
        let why = error.reason();
        let hopeless = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
        if hopeless && self.shared.plan.template.has_fixed_program() {
            // The same for every job: said once, and no other job is tried.
            let ran = self.shared.crew.counts();
            let jobs = match (ran.succeeded + ran.failed, self.shared.input.total()) {
                (0, Some(total)) => format!(" ({}, none started)", count(total, "job")),
                (0, None) => " (no job was started)".to_owned(),
                (ran, _) => format!(" ({} ran before)", count(ran, "job")),
            };
            self.shared
                .fail(format!("{}{jobs}", error.to_string().replacen("failed to start", "cannot run", 1)));
            return Verdict::FailedForGood;
        }
        let name = self.name(start, item);
        self.give_up(&name, &why)
    }

    fn idle(&mut self) {
        self.out.flush();
        if self.shared.screen.is_broken() {
            self.shared.crew.cancel();
        }
    }
}

/// What one argument puts into the template.
fn job(value: &OsString, start: Start) -> Job<'_> {
    Job { columns: std::slice::from_ref(value), number: start.job, slot: start.slot }
}

/// A command line for a message: its beginning, if it is long.
fn shorten(line: &str) -> String {
    const SHOWN_MAX: usize = 120;
    match line.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

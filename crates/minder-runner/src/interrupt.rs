//! What Ctrl-C does to a run whose jobs run on agents: it ends them, or lets them continue without this
//! process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use minder::Signal;
use minder::guard::ProcessGuard;
use minder::os::wait_ready;
use minder::poll::Interest;
use minder_os::terminal;

use crate::config::OnInterrupt;
use crate::context::RunContext;
use crate::notice::Notice;

/// The question to the user. A line of another text repeats it.
const QUESTION: &str = "minder: cancel the run, detach from it, or go on? [c/d/g] ";
/// The time between two looks at signals while the user is asked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// What a signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It ends the run and its agents.
    Cancel,
    /// It ends this process. The agents continue.
    Detach,
    /// Nothing.
    GoOn,
    /// Nothing, since the agents lack input that this process reads.
    Refused,
}

/// Decides what a signal does. `has_refused`: an earlier one was refused, so that this one ends the run.
pub(crate) fn answer(
    signal: Signal,
    guard: &mut ProcessGuard,
    context: &RunContext<'_>,
    has_refused: bool,
) -> Answer {
    let record = &context.config.record;
    let is_wanted = matches!(signal, Signal::INT | Signal::HUP);
    if record.agents.is_none() || !is_wanted || has_refused {
        return Answer::Cancel;
    }
    let answer = match record.coordination.on_interrupt {
        OnInterrupt::Cancel => Answer::Cancel,
        OnInterrupt::Detach => Answer::Detach,
        OnInterrupt::Ask if signal == Signal::INT => ask(guard, context),
        OnInterrupt::Ask => Answer::Cancel,
    };
    if answer == Answer::Detach && !context.queue.is_spooled() {
        context.observer.notice(&Notice::CannotDetach);
        return Answer::Refused;
    }
    answer
}

/// Asks the user on the terminal. Nothing is shown meanwhile. A second Ctrl-C, and the end of the answers,
/// ends the run.
fn ask(guard: &mut ProcessGuard, context: &RunContext<'_>) -> Answer {
    if !std::io::stderr().is_terminal() || !terminal::is_in_foreground() {
        return Answer::Cancel;
    }
    let Ok(terminal) = terminal::open_terminal() else { return Answer::Cancel };
    let mut answer = Answer::Cancel;
    context.observer.try_suspend_display(&mut || {
        answer = ask_on(&terminal, guard).unwrap_or(Answer::Cancel);
    });
    answer
}

fn ask_on(mut terminal: &File, guard: &mut ProcessGuard) -> std::io::Result<Answer> {
    let mut answers = BufReader::with_capacity(256, terminal.try_clone()?);
    loop {
        terminal.write_all(QUESTION.as_bytes())?;
        while answers.buffer().is_empty() {
            match guard.next_signal() {
                Some(Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT) => {
                    terminal.write_all(b"\n")?;
                    return Ok(Answer::Cancel);
                }
                Some(Signal::TSTP) => guard.suspend_self(),
                _ => (),
            }
            if wait_ready(terminal, Interest::READABLE, Some(Instant::now() + CHECK_INTERVAL))? {
                break;
            }
        }
        let mut line = String::new();
        if answers.read_line(&mut line)? == 0 {
            return Ok(Answer::Cancel);
        }
        match line.trim_start().chars().next() {
            Some('c' | 'C') => return Ok(Answer::Cancel),
            Some('d' | 'D') => return Ok(Answer::Detach),
            Some('g' | 'G') => return Ok(Answer::GoOn),
            _ => (),
        }
    }
}

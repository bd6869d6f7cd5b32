//! `--interactive`: each job is confirmed on the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use minder::os::wait_ready;
use minder::poll::Interest;
use minder_runner::Confirm;

use crate::ui::Progress;

/// The interval at which a prompt checks whether the run ends.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Prompts on the controlling terminal, whatever standard input and standard output are.
#[derive(Debug)]
pub(super) struct TerminalPrompt {
    terminal: File,
    answers: BufReader<File>,
    progress: Progress,
}

impl TerminalPrompt {
    /// Opens the terminal.
    ///
    /// # Errors
    /// There is no terminal.
    pub(super) fn open(progress: &Progress) -> Result<Self> {
        let terminal =
            minder_os::terminal::open_terminal().context("-p asks on the terminal, and there is none")?;
        let answers = BufReader::with_capacity(256, terminal.try_clone()?);
        Ok(Self { terminal, answers, progress: progress.clone() })
    }
}

impl Confirm for TerminalPrompt {
    /// An answer that begins with `y` or `Y` runs the job. The end of the answers refuses all jobs
    /// that are left.
    fn confirm(&mut self, command: &str, is_cancelled: &dyn Fn() -> bool) -> bool {
        let Self { terminal, answers, progress } = self;
        let mut answer = String::new();
        let asked = progress.suspend(|| {
            terminal.write_all(format!("{command} ?...").as_bytes())?;
            // A line may have been read with the one before.
            while answers.buffer().is_empty() {
                if is_cancelled() {
                    return terminal.write_all(b"\n").map(|()| 0);
                }
                let check_at = Instant::now() + CHECK_INTERVAL;
                if wait_ready(&*terminal, Interest::READABLE, Some(check_at))? {
                    break;
                }
            }
            answers.read_line(&mut answer)
        });
        asked.is_ok() && answer.trim_start().starts_with(['y', 'Y'])
    }
}

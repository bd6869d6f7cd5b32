//! Runs the scripts with both programs, several at a time, and compares their answers.

use super::generator::{Script, Tool};
use super::normalisations;
use super::reasons::{self, Difference};
use super::rows::Outcome;
use super::sandbox::{Answer, Player, Sandbox};
use anyhow::Result;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The programs that are compared.
#[derive(Debug)]
pub(super) struct Players {
    pub(super) parallel: Option<Player>,
    pub(super) xargs: Option<Player>,
    pub(super) ours_parallel: Player,
    pub(super) ours_xargs: Player,
}

impl Players {
    /// Returns the program with which minder is compared, if it is there.
    pub(super) fn theirs(&self, tool: Tool) -> Option<&Player> {
        match tool {
            Tool::Parallel => self.parallel.as_ref(),
            Tool::Xargs => self.xargs.as_ref(),
        }
    }

    fn ours(&self, tool: Tool) -> &Player {
        match tool {
            Tool::Parallel => &self.ours_parallel,
            Tool::Xargs => &self.ours_xargs,
        }
    }
}

/// A script and the answers to it.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) script: Script,
    pub(super) theirs: Answer,
    pub(super) ours: Answer,
    pub(super) outcome: Outcome,
}

/// Compares all scripts, `jobs` at a time; the order is that of the scripts.
pub(super) fn compare(scripts: &[Script], players: &Players, jobs: usize) -> Result<Vec<Comparison>> {
    let root = std::env::temp_dir().join(format!("minder-compat-{}", std::process::id()));
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    let done = std::thread::scope(|scope| {
        let work = |number: usize| -> Result<()> {
            let sandbox = Sandbox::new(root.join(number.to_string()));
            while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let comparison = compare_one(script, players, &sandbox)?;
                let mut all = all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                all.push(comparison);
                if all.len().is_multiple_of(20) || all.len() == scripts.len() {
                    eprint!("\r  script {} of {} ", all.len(), scripts.len());
                }
            }
            Ok(())
        };
        let workers: Vec<_> = (0..jobs).map(|number| scope.spawn(move || work(number))).collect();
        workers.into_iter().map(|worker| worker.join()).collect::<Vec<_>>()
    });
    eprintln!();
    remove(&root);
    for result in done {
        result.map_err(|_| anyhow::anyhow!("a thread that compares scripts panicked"))??;
    }
    let mut all = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.sort_by_key(|comparison| comparison.script.number);
    Ok(all)
}

fn compare_one(script: &Script, players: &Players, sandbox: &Sandbox) -> Result<Comparison> {
    let Some(player) = players.theirs(script.tool) else {
        anyhow::bail!("{} is missing", script.tool.name())
    };
    let theirs = sandbox.run(script, player)?;
    let again = sandbox.run(script, player)?;
    let ours = sandbox.run(script, players.ours(script.tool))?;
    let outcome =
        if theirs != again || theirs.timed_out { Outcome::Unstable } else { judge(script, &theirs, &ours) };
    Ok(Comparison { script: script.clone(), theirs, ours, outcome })
}

/// Returns the outcome for two answers, of which the first is stable.
fn judge(script: &Script, theirs: &Answer, ours: &Answer) -> Outcome {
    match normalisations::needed(theirs, ours) {
        Some(names) if names.is_empty() => Outcome::Same,
        Some(names) => Outcome::Normalised(names.into_iter().map(String::from).collect()),
        None => match reasons::find(&Difference { script, theirs, ours }) {
            Some(reason) => Outcome::Known(reason.into()),
            None => Outcome::NotNamed,
        },
    }
}

fn remove(root: &Path) {
    if let Err(error) = std::fs::remove_dir_all(root) {
        eprintln!("compat: cannot remove {}: {error}", root.display());
    }
}

#[cfg(test)]
mod tests {
    use super::super::generator::{SEED, scripts};
    use super::*;

    #[test]
    fn judge_tells_same_normalised_and_different() {
        let script = &scripts(SEED)[0];
        let answer = |stdout: &str, stderr: &str| Answer {
            stdout: stdout.into(),
            stderr: stderr.into(),
            ..Answer::default()
        };
        let judged = |left: Answer, right: Answer| judge(script, &left, &right);
        assert_eq!(judged(answer("a", ""), answer("a", "")), Outcome::Same);
        assert_eq!(judged(answer("a", ""), answer("b", "")), Outcome::NotNamed);
        assert!(matches!(
            judged(answer("a", "parallel: x\n"), answer("a", "minder: x\n")),
            Outcome::Normalised(_)
        ));
    }
}

//! Questions about something that is built once, and their answers in paired rounds.

use super::{Answer, Asked, Bench, machine, report};
use anyhow::{Context, Result};

/// A question about a `T`, and how it is answered.
pub(super) struct Question<T> {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// The number of rounds without `--rounds`.
    pub(super) rounds: usize,
    pub(super) ask: fn(&Bench, &T) -> Result<Answer>,
}

/// Answers the questions of `bench VERB` that the command line asks for, and reports each with the versions.
pub(super) fn ask<T>(
    verb: &str,
    questions: &[Question<T>],
    asked: &Asked,
    bench: &mut Bench,
    about: &T,
    versions: &[String],
) -> Result<()> {
    let is_asked = |name: &str| asked.only.is_empty() || asked.only.iter().any(|only| only == name);
    for question in questions.iter().filter(|question| is_asked(question.name)) {
        let usual = if asked.quick { question.rounds.min(3) } else { question.rounds };
        bench.rounds = asked.rounds.unwrap_or(usual);
        eprintln!("bench: {}: {}", question.name, question.what);
        let before = machine::load();
        let mut answer =
            (question.ask)(bench, about).with_context(|| format!("bench {verb} {}", question.name))?;
        answer.remarks.extend(versions.iter().cloned());
        report(verb, (question.name, question.what), bench, &answer, &before)?;
    }
    Ok(())
}

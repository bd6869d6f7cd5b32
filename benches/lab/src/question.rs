//! Questions, and their answers in paired rounds.

use crate::bench::{Answer, Bench, results};
use crate::machine;
use crate::peers::Peers;
use anyhow::{Context, Result, bail};

/// A question about a `T`, and how it is answered.
pub(crate) struct Question<T> {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The number of rounds without `--rounds`.
    pub(crate) rounds: usize,
    pub(crate) ask: fn(&Bench, &T) -> Result<Answer>,
}

/// A `T` that was made ready, and remarks about it, such as the versions of what it has.
pub(crate) type Ready<T> = (T, Vec<String>);

/// Answers the questions of `bench-lab VERB` that the command line asks for, and reports each.
/// `about` is what the answers begin with.
pub(crate) fn answer<T>(
    (verb, about): (&str, &str),
    questions: &[Question<T>],
    words: &[String],
    peers: fn() -> Result<Peers>,
    ready: impl FnOnce(&Bench, &Asked) -> Result<Ready<T>>,
) -> Result<()> {
    let names: Vec<&str> = questions.iter().map(|question| question.name).collect();
    let asked = Asked::parse(verb, &names, words)?;
    let mut bench = Bench { peers: peers()?, rounds: 0, quick: asked.quick };
    let (subject, remarks) = ready(&bench, &asked)?;
    for question in questions.iter().filter(|question| asked.includes(question.name)) {
        bench.rounds = asked.rounds(question.rounds, 3);
        eprintln!("bench: {}: {}", question.name, question.what);
        let before = machine::load();
        let context = || format!("bench {verb} {}", question.name);
        let mut answer = (question.ask)(&bench, &subject).with_context(context)?;
        answer.remarks.extend(remarks.iter().cloned());
        let title = format!("{}: {}", about.replace("NAME", question.name), question.what);
        report((verb, question.name), &title, &bench, &answer, &before)?;
    }
    Ok(())
}

/// Prints the table, and keeps it and its rows.
fn report(
    (verb, name): (&str, &str),
    title: &str,
    bench: &Bench,
    answer: &Answer,
    load_before: &str,
) -> Result<()> {
    let again = format!(
        "cargo bench-lab {verb} --only {name} --rounds {}{}",
        bench.rounds,
        if bench.quick { " --quick" } else { "" }
    );
    let mut text = format!("# {title}\n\n{}\n", answer.table);
    for remark in answer.remarks.iter().chain(&bench.peers.left_out) {
        text.push_str(&format!("- {remark}\n"));
    }
    text.push_str(&machine::describe(&bench.peers, bench.rounds, load_before)?);
    text.push_str(&format!("- produced by: `{again}`\n- raw rows: `{verb}-{name}.csv`\n"));
    let dir = results(bench.quick);
    std::fs::create_dir_all(&dir)?;
    std::fs::write(dir.join(format!("{verb}-{name}.csv")), answer.rows.text())?;
    std::fs::write(dir.join(format!("{verb}-{name}.md")), &text)?;
    println!("{text}");
    Ok(())
}

/// The options of the command line.
#[derive(Default)]
pub(crate) struct Asked {
    rounds: Option<usize>,
    pub(crate) quick: bool,
    only: Vec<String>,
    /// The number of cells, for `cells` alone.
    pub(crate) cells: Option<usize>,
}

impl Asked {
    /// Reads the options of a verb that answers questions of these names.
    pub(crate) fn parse(verb: &str, names: &[&str], words: &[String]) -> Result<Self> {
        use lexopt::prelude::*;
        let mut asked = Self::default();
        let mut words = lexopt::Parser::from_args(words);
        while let Some(word) = words.next()? {
            match word {
                Long("quick") => asked.quick = true,
                Long("rounds") => asked.rounds = Some(words.value()?.parse::<usize>()?.max(1)),
                Long("only") => asked.only.push(words.value()?.string()?),
                Long("cells") if verb == "cells" => asked.cells = Some(words.value()?.parse()?),
                other => bail!("{verb}: {}; hint: cargo bench-lab help", other.unexpected()),
            }
        }
        if asked.cells.is_some_and(|cells| cells < 1_000) {
            bail!("--cells: expected at least 1000");
        }
        if let Some(unknown) = asked.only.iter().find(|o| !names.contains(&o.as_str())) {
            bail!("unknown name `{unknown}`; hint: one of {}", names.join(", "));
        }
        Ok(asked)
    }

    /// Returns whether a question is to be answered.
    pub(crate) fn includes(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Returns the number of rounds: that of the caller, else the usual one, which a quick look
    /// limits.
    pub(crate) fn rounds(&self, usual: usize, quick_most: usize) -> usize {
        self.rounds.unwrap_or(if self.quick { usual.min(quick_most) } else { usual })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_verb() {
        let parse = |verb: &str, line: &str| {
            let words: Vec<String> = line.split_whitespace().map(String::from).collect();
            Asked::parse(verb, &["json", "chain"], &words)
        };
        let asked = parse("cells", "--quick --cells 5000 --only json --rounds=0").unwrap();
        assert_eq!((asked.cells, asked.rounds(9, 3), asked.quick), (Some(5_000), 1, true));
        assert!(asked.includes("json") && !asked.includes("chain"));
        let asked = parse("run", "--quick").unwrap();
        assert_eq!((asked.rounds(9, 3), asked.rounds(2, 3), asked.includes("chain")), (3, 2, true));
        for bad in ["--cells", "--cells x", "--cells 1", "--only nothing", "--nosuch", "json"] {
            assert!(parse("cells", bad).is_err(), "{bad}");
        }
        assert!(parse("run", "--cells 5000").is_err());
    }
}

//! The page about a comparison, and the answers that differ.

use super::comparison::Comparison;
use super::generator::Tool;
use super::rows::{Outcome, Row};
use super::sandbox::Answer;
use super::{normalisations, reasons};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The shares of identical answers that are aimed at, in per cent.
const GOALS: [(Tool, usize); 2] = [(Tool::Parallel, 85), (Tool::Xargs, 95)];

const BUILDS: [&str; 2] = ["before", "after"];

/// Returns the page for rows of one or both builds.
pub(super) fn page(rows: &[Row]) -> Result<String> {
    let mut text = String::from(HEAD);
    counts(rows, &mut text)?;
    normalised(rows, &mut text)?;
    known(rows, &mut text)?;
    not_named(rows, &mut text)?;
    options(rows, &mut text)?;
    Ok(text)
}

const HEAD: &str = "\
# minder compared with GNU parallel and xargs

1,500 small scripts of bash, 1,000 that call GNU parallel and 500 that call xargs, are made from a seed
by `benches/compat/src`. Every option of both programs is in at least three of them. Each script runs in a
fresh directory, twice with the other program and once with minder under its name. Standard output and
the exit status are compared byte by byte, standard error after the normalisations below. A script to
which the other program gives two answers is unstable and not counted.

Produced by `cargo bench-compat`; raw rows: `compat.csv`. `cargo bench-compat --show N,…` prints these
scripts and both answers.

## Counts

";

fn of<'a>(rows: &'a [Row], build: &'a str, tool: Tool) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(move |row| row.build == build && row.tool == tool.name())
}

fn counts(rows: &[Row], text: &mut String) -> Result<()> {
    writeln!(
        text,
        "| program | build | commit | scripts | unstable | same bytes | same after normalisation | identical \
         | goal | known difference | not named |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )?;
    for (tool, goal) in GOALS {
        for build in BUILDS {
            let all: Vec<&Row> = of(rows, build, tool).collect();
            let Some(first) = all.first() else {
                writeln!(text, "| {} | {build} | not measured yet | | | | | | {goal} % | | |", tool.name())?;
                continue;
            };
            let count = |is: fn(&Row) -> bool| all.iter().filter(|row| is(row)).count();
            let counted = count(Row::is_counted);
            writeln!(
                text,
                "| {} | {build} | {} | {} | {} | {} | {} | {} | {goal} % | {} | {} |",
                tool.name(),
                first.commit,
                all.len(),
                all.len() - counted,
                count(|row| row.outcome == Outcome::Same),
                count(|row| matches!(row.outcome, Outcome::Normalised(_))),
                share(count(Row::is_identical), counted),
                count(|row| matches!(row.outcome, Outcome::Known(_))),
                count(|row| row.outcome == Outcome::NotNamed),
            )?;
        }
    }
    Ok(())
}

fn share(part: usize, of: usize) -> String {
    let tenths = (part * 1000).checked_div(of).unwrap_or(0);
    format!("{part} of {of}: {}.{} %", tenths / 10, tenths % 10)
}

/// Counts the rows of each build and tool by a name that they may have several of.
fn by_name(rows: &[Row], names: impl Fn(&Row) -> Vec<String>) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        for name in names(row) {
            *counts.entry((name, format!("{} {}", row.tool, row.build))).or_insert(0) += 1;
        }
    }
    counts
}

/// Writes a table with a column for each program and build.
fn table(
    text: &mut String,
    head: &str,
    lines: &[(&str, &str)],
    counts: &BTreeMap<(String, String), usize>,
) -> Result<()> {
    let columns = ["parallel before", "parallel after", "xargs before", "xargs after"];
    writeln!(text, "| {head} | {} | meaning |", columns.join(" | "))?;
    writeln!(text, "| --- | ---: | ---: | ---: | ---: | --- |")?;
    for (name, why) in lines {
        let number = |column: &&str| {
            let count = counts.get(&((*name).to_string(), (*column).to_string()));
            count.map_or_else(String::new, usize::to_string)
        };
        writeln!(
            text,
            "| {name} | {} | {why} |",
            columns.iter().map(number).collect::<Vec<_>>().join(" | ")
        )?;
    }
    Ok(())
}

fn normalised(rows: &[Row], text: &mut String) -> Result<()> {
    writeln!(
        text,
        "\n## Normalisations of standard error\n\nScripts whose answers are the same only after each:\n"
    )?;
    let counts = by_name(rows, |row| match &row.outcome {
        Outcome::Normalised(names) => names.clone(),
        _ => Vec::new(),
    });
    let lines: Vec<_> = normalisations::ALL.iter().map(|n| (n.name, n.why)).collect();
    table(text, "normalisation", &lines, &counts)
}

fn known(rows: &[Row], text: &mut String) -> Result<()> {
    writeln!(text, "\n## Known differences\n")?;
    let counts = by_name(rows, |row| match &row.outcome {
        Outcome::Known(name) => vec![name.clone()],
        _ => Vec::new(),
    });
    let lines: Vec<_> = reasons::ALL.iter().map(|reason| (reason.name, reason.why)).collect();
    table(text, "reason", &lines, &counts)
}

fn not_named(rows: &[Row], text: &mut String) -> Result<()> {
    writeln!(text, "\n## Differences that are not named\n")?;
    for tool in Tool::ALL {
        for build in BUILDS {
            let numbers: Vec<String> = of(rows, build, tool)
                .filter(|row| row.outcome == Outcome::NotNamed)
                .map(|row| row.script.to_string())
                .collect();
            if of(rows, build, tool).next().is_some() {
                writeln!(text, "- {}, {build}: {}", tool.name(), wrapped(&numbers))?;
            }
        }
    }
    Ok(())
}

/// Returns the numbers in lines of a width for reading.
fn wrapped(numbers: &[String]) -> String {
    if numbers.is_empty() {
        return "none".into();
    }
    numbers.chunks(18).map(|line| line.join(", ")).collect::<Vec<_>>().join(",\n  ")
}

fn options(rows: &[Row], text: &mut String) -> Result<()> {
    writeln!(text, "\n## By option\n\nIdentical answers of the scripts that use it and are not unstable.\n")?;
    writeln!(text, "| program | option | before | after |\n| --- | --- | ---: | ---: |")?;
    for tool in Tool::ALL {
        let mut names: Vec<&str> = rows
            .iter()
            .filter(|row| row.tool == tool.name())
            .flat_map(|row| &row.options)
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let cell = |build: &str| {
                let is_in = |row: &&Row| row.is_counted() && row.options.iter().any(|option| option == name);
                let used: Vec<&Row> = of(rows, build, tool).filter(is_in).collect();
                let same = used.iter().filter(|row| row.is_identical()).count();
                if used.is_empty() { String::new() } else { format!("{same} of {}", used.len()) }
            };
            let [before, after] = BUILDS.map(cell);
            writeln!(text, "| {} | `{name}` | {before} | {after} |", tool.name())?;
        }
    }
    Ok(())
}

/// Returns a script with both answers.
pub(super) fn script_and_answers(comparison: &Comparison) -> String {
    let Comparison { script, theirs, ours, outcome } = comparison;
    let mut text = format!("## {} {} ({})", script.tool.name(), script.number, script.environment.name());
    text.push_str(&format!(" {}: {outcome:?}\n\n{}", script.options.join(" "), indented(&script.text)));
    if theirs == ours {
        text.push_str(&answer("both", theirs));
    } else {
        text.push_str(&answer(script.tool.name(), theirs));
        text.push_str(&answer("minder", ours));
    }
    text.push('\n');
    text
}

/// Returns the scripts whose answers differ, or are unstable.
pub(super) fn differences(comparisons: &[Comparison]) -> String {
    let differs = |c: &&Comparison| !matches!(c.outcome, Outcome::Same | Outcome::Normalised(_));
    comparisons.iter().filter(differs).map(script_and_answers).collect()
}

fn answer(who: &str, answer: &Answer) -> String {
    let mut text = format!("- {who}: exit status {}\n", answer.status);
    for (name, stream) in [("stdout", &answer.stdout), ("stderr", &answer.stderr)] {
        if !stream.is_empty() {
            text.push_str(&format!("  {name}:\n{}", indented(stream)));
        }
    }
    text
}

/// Returns the first lines of a text, indented, with control characters and backslashes escaped.
fn indented(text: &str) -> String {
    const LINES_MAX: usize = 40;
    let mut out = String::new();
    for line in text.lines().take(LINES_MAX) {
        let shown: String = line
            .chars()
            .map(|c| if c.is_control() || c == '\\' { c.escape_default().to_string() } else { c.to_string() })
            .collect();
        out.push_str(&format!("    {shown}\n"));
    }
    if text.lines().count() > LINES_MAX {
        out.push_str("    …\n");
    }
    if !text.ends_with('\n') {
        out.push_str("    (no newline at the end)\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tool: Tool, build: &str, script: usize, outcome: Outcome) -> Row {
        Row {
            build: build.into(),
            commit: "c0ffee".into(),
            tool: tool.name().into(),
            script,
            options: vec!["-n".into()],
            environment: "user".into(),
            outcome,
        }
    }

    #[test]
    fn page_counts_each_outcome() {
        let outcomes = [
            Outcome::Same,
            Outcome::Normalised(vec!["shell path".into()]),
            Outcome::Known("no Perl".into()),
            Outcome::NotNamed,
            Outcome::Unstable,
        ];
        let rows: Vec<Row> = outcomes
            .into_iter()
            .enumerate()
            .map(|(at, o)| row(Tool::Parallel, "before", at + 1, o))
            .collect();
        let page = page(&rows).unwrap();
        assert!(
            page.contains("| parallel | before | c0ffee | 5 | 1 | 1 | 1 | 2 of 4: 50.0 % | 85 % | 1 | 1 |"),
            "{page}"
        );
        assert!(page.contains("| parallel | after | not measured yet |"), "{page}");
        assert!(page.contains("| shell path | 1 |  |  |  | "), "{page}");
        assert!(page.contains("| no Perl | 1 |  |  |  | "), "{page}");
        assert!(page.contains("- parallel, before: 4\n"), "{page}");
        assert!(page.contains("| parallel | `-n` | 2 of 4 |  |"), "{page}");
    }

    #[test]
    fn indented_shows_control_characters_and_a_missing_newline() {
        assert_eq!(indented("a\tb\n"), "    a\\tb\n");
        assert_eq!(indented("a"), "    a\n    (no newline at the end)\n");
        assert_eq!(indented(&"a\n".repeat(50)).lines().count(), 41);
    }
}

//! The rows of a comparison: one for each script and build, in `target/compat/compat.csv`.

use super::generator::Script;
use anyhow::{Context, Result, bail};
use minder_ui::rows::CsvTable;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

const COLUMNS: [&str; 8] =
    ["build", "commit", "tool", "script", "options", "environment", "result", "reason"];

/// How the answer of minder compares with that of the other program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The same bytes and the same exit status.
    Same,
    /// The same after these normalisations of standard error.
    Normalised(Vec<String>),
    /// Different, for a reason that is known.
    Known(String),
    /// Different.
    NotNamed,
    /// The other program itself gave two answers, or did not end: not counted.
    Unstable,
}

/// A script and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// What the build is called in the report: `before` or `after`.
    pub(super) build: String,
    pub(super) commit: String,
    pub(super) tool: String,
    pub(super) script: usize,
    pub(super) options: Vec<String>,
    pub(super) environment: String,
    pub(super) outcome: Outcome,
}

impl Row {
    pub(super) fn new(build: &str, commit: &str, script: &Script, outcome: Outcome) -> Self {
        Self {
            build: build.into(),
            commit: commit.into(),
            tool: script.tool.name().into(),
            script: script.number,
            options: script.options.iter().map(|option| (*option).into()).collect(),
            environment: script.environment.name().into(),
            outcome,
        }
    }

    pub(super) fn is_identical(&self) -> bool {
        matches!(self.outcome, Outcome::Same | Outcome::Normalised(_))
    }

    pub(super) fn is_counted(&self) -> bool {
        self.outcome != Outcome::Unstable
    }

    fn fields(&self) -> Vec<String> {
        let (result, reason) = match &self.outcome {
            Outcome::Same => ("same", String::new()),
            Outcome::Normalised(names) => ("normalised", names.join("+")),
            Outcome::Known(reason) => ("different", reason.clone()),
            Outcome::NotNamed => ("different", String::new()),
            Outcome::Unstable => ("unstable", String::new()),
        };
        vec![
            self.build.clone(),
            self.commit.clone(),
            self.tool.clone(),
            self.script.to_string(),
            self.options.join(";"),
            self.environment.clone(),
            result.into(),
            reason,
        ]
    }

    fn of(fields: &[String]) -> Result<Self> {
        let [build, commit, tool, script, options, environment, result, reason] = fields else {
            bail!("expected {} fields, found {}", COLUMNS.len(), fields.len());
        };
        let outcome = match (result.as_str(), reason.as_str()) {
            ("same", _) => Outcome::Same,
            ("normalised", names) => Outcome::Normalised(names.split('+').map(String::from).collect()),
            ("different", "") => Outcome::NotNamed,
            ("different", reason) => Outcome::Known(reason.into()),
            ("unstable", _) => Outcome::Unstable,
            _ => bail!("invalid result `{result}`: expected same, normalised, different or unstable"),
        };
        Ok(Self {
            build: build.clone(),
            commit: commit.clone(),
            tool: tool.clone(),
            script: script.parse().with_context(|| format!("invalid script `{script}`"))?,
            options: options.split(';').map(String::from).collect(),
            environment: environment.clone(),
            outcome,
        })
    }
}

/// Returns the rows as text.
pub(super) fn csv(rows: &[Row]) -> String {
    CsvTable { rows: rows.iter().map(Row::fields).collect(), ..CsvTable::new(&COLUMNS) }.text()
}

/// Reads the rows of a file. One that does not exist or is empty has none.
pub(super) fn read(file: &Path) -> Result<Vec<Row>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    parse(&text).with_context(|| format!("cannot read {} (remove it to start anew)", file.display()))
}

fn parse(text: &str) -> Result<Vec<Row>> {
    let rows = CsvTable::read(text)?.rows.into_iter().zip(1..);
    rows.map(|(fields, number)| Row::of(&fields).with_context(|| format!("row {number}"))).collect()
}

/// Returns the old rows and the new ones; a new row replaces that of the same build and script.
pub(super) fn merge(old: Vec<Row>, new: Vec<Row>) -> Vec<Row> {
    let mut rows: BTreeMap<(Reverse<String>, usize), Row> = BTreeMap::new();
    for row in old.into_iter().chain(new) {
        // `before` stands before `after`.
        rows.insert((Reverse(row.build.clone()), row.script), row);
    }
    rows.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(build: &str, tool: &str, script: usize, outcome: Outcome) -> Row {
        Row {
            build: build.into(),
            commit: "c".into(),
            tool: tool.into(),
            script,
            options: vec!["-n".into(), "{.}".into()],
            environment: "cron".into(),
            outcome,
        }
    }

    #[test]
    fn parse_returns_the_rows_that_csv_wrote() {
        let outcomes = [
            Outcome::Same,
            Outcome::Normalised(vec!["a b".into(), "c".into()]),
            Outcome::Known("why, \"this\"".into()),
            Outcome::NotNamed,
            Outcome::Unstable,
        ];
        let rows: Vec<Row> = outcomes.into_iter().map(|outcome| row("before", "xargs", 3, outcome)).collect();
        assert_eq!(parse(&csv(&rows)).unwrap(), rows);
    }

    #[test]
    fn read_returns_no_rows_of_a_missing_or_empty_file_and_names_a_wrong_row() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("compat.csv");
        assert_eq!(read(&file).unwrap(), []);
        fs::write(&file, "").unwrap();
        assert_eq!(read(&file).unwrap(), []);
        let good = csv(&[row("before", "xargs", 3, Outcome::Same)]);
        for (wrong, error) in [
            (format!("{good}before\n"), "line 3: expected 8 fields, found 1"),
            (
                good.replace("same", "equal"),
                "row 1: invalid result `equal`: expected same, normalised, different or unstable",
            ),
            (good.replace(",3,", ",three,"), "row 1: invalid script `three`: invalid digit found in string"),
            ("a,b\na,b\n".into(), "row 1: expected 8 fields, found 2"),
        ] {
            fs::write(&file, wrong).unwrap();
            let found = format!("{:#}", read(&file).unwrap_err());
            let expected = format!("cannot read {} (remove it to start anew): {error}", file.display());
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn merge_replaces_the_row_of_the_same_build_and_script() {
        let old = vec![
            row("after", "xargs", 1, Outcome::Same),
            row("before", "xargs", 2, Outcome::Same),
            row("after", "xargs", 2, Outcome::Same),
        ];
        let merged = merge(old, vec![row("after", "xargs", 2, Outcome::NotNamed)]);
        let found: Vec<_> = merged.iter().map(|row| (row.build.as_str(), row.script, &row.outcome)).collect();
        let expected =
            [("before", 2, &Outcome::Same), ("after", 1, &Outcome::Same), ("after", 2, &Outcome::NotNamed)];
        assert_eq!(found, expected);
    }
}

//! Samples of `benches/peers/library`: their medians and paired ratios.

use super::super::mechanisms::{Aim, Goal};
use super::super::table::markdown;
use anyhow::{Context, Result};
use minder_bench::Spread;
use std::fmt::Write;

/// What is measured, and its name in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contestant {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
}

/// What the program does in a sample. Zero leaves an option at its default.
#[derive(Clone, Debug, Default)]
pub(super) struct Setting {
    pub(super) question: &'static str,
    pub(super) children: usize,
    pub(super) at_once: usize,
    pub(super) live: usize,
    pub(super) host_mib: usize,
}

impl Setting {
    /// Returns the number that tells the samples of a contestant apart.
    pub(super) fn size(&self) -> usize {
        self.live.max(self.host_mib)
    }
}

/// One sample: numbers under the names of the columns.
#[derive(Clone, Debug)]
struct Sample {
    round: usize,
    name: &'static str,
    size: usize,
    numbers: Vec<f64>,
}

/// A contestant, and the size of the setting.
pub(super) type Point = (&'static str, usize);

/// The samples of a question, all with the same columns.
#[derive(Debug, Default)]
pub(super) struct Samples {
    columns: Vec<String>,
    list: Vec<Sample>,
}

/// A number of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Column(&'static str),
    /// Processor time of the program and of its children.
    Tree,
}

/// Processor time of the program, with all its threads.
pub(super) const PARENT: Value = Value::Column("self_ns");

impl Samples {
    /// Adds what the program printed: the names of the columns, and the numbers.
    pub(super) fn add(
        &mut self,
        round: usize,
        who: Contestant,
        setting: &Setting,
        printed: &str,
    ) -> Result<()> {
        let mut lines = printed.lines();
        let (Some(head), Some(row), None) = (lines.next(), lines.next(), lines.next()) else {
            anyhow::bail!("a sample printed `{}`", printed.trim())
        };
        self.columns = head.split(',').map(String::from).collect();
        let numbers: Vec<f64> = row
            .split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(|| format!("the row `{row}`"))?;
        anyhow::ensure!(numbers.len() == self.columns.len(), "the row `{row}` below `{head}`");
        self.list.push(Sample { round, name: who.name, size: setting.size(), numbers });
        Ok(())
    }

    fn number(&self, sample: &Sample, value: Value) -> Option<f64> {
        match value {
            Value::Column(name) => {
                let place = self.columns.iter().position(|column| column == name)?;
                sample.numbers.get(place).copied()
            }
            Value::Tree => {
                Some(self.number(sample, PARENT)? + self.number(sample, Value::Column("children_ns"))?)
            }
        }
    }

    /// Returns a number of each round.
    fn values(&self, value: Value, (name, size): Point) -> impl Iterator<Item = (usize, f64)> {
        let samples = self.list.iter().filter(move |sample| sample.name == name && sample.size == size);
        samples.filter_map(move |sample| Some((sample.round, self.number(sample, value)?)))
    }

    /// Returns a number over the rounds; `None` without a sample.
    pub(super) fn spread(&self, value: Value, point: Point) -> Option<Spread> {
        Spread::of(self.values(value, point).map(|(_, number)| number))
    }

    /// Returns how many times the number of `below` that of `above` is, round by round.
    pub(super) fn ratio(&self, value: Value, above: Point, below: Point) -> Option<Spread> {
        Spread::of_ratios(self.values(value, above), self.values(value, below))
    }

    /// Returns a goal for such a ratio.
    pub(super) fn goal(&self, what: String, value: Value, above: Point, below: Point, aim: Aim) -> Goal {
        Goal::ratio(what, self.ratio(value, above, below), aim)
    }

    /// Returns a table of what a child costs: a line for each contestant, in microseconds.
    pub(super) fn costs(&self, lines: &[(String, Point, Option<f64>)]) -> String {
        let micros = |value, point| self.scaled(value, point, 1e3, 1);
        let rows: Vec<Vec<String>> = lines
            .iter()
            .map(|(title, point, calls)| {
                vec![
                    title.clone(),
                    micros(PARENT, *point),
                    micros(Value::Tree, *point),
                    micros(Value::Column("wall_ns"), *point),
                    calls.map_or_else(|| "–".into(), |calls| format!("{calls:.1}")),
                    self.scaled(Value::Column("threads"), *point, 1.0, 0),
                    self.scaled(Value::Column("hwm_kib"), *point, 1024.0, 1),
                ]
            })
            .collect();
        let head = [
            "contestant",
            "CPU of the parent us/child",
            "with the children us/child",
            "wall us/child",
            "system calls/child",
            "threads",
            "HWM MiB",
        ];
        markdown(&head, &rows)
    }

    /// Returns a number divided by `unit`, with its extremes; a dash without a sample.
    pub(super) fn scaled(&self, value: Value, point: Point, unit: f64, decimals: usize) -> String {
        let spread = self.spread(value, point);
        spread.map_or_else(|| "–".into(), |spread| spread.scaled(1.0 / unit).show(decimals))
    }

    pub(super) fn csv(&self) -> Result<String> {
        let mut text = format!("contestant,size,round,{}\n", self.columns.join(","));
        for Sample { round, name, size, numbers } in &self.list {
            let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
            writeln!(text, "{name},{size},{},{}", round + 1, numbers.join(","))?;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Samples {
        let mut samples = Samples::default();
        let setting = Setting { host_mib: 10, ..Setting::default() };
        for (round, name, own, theirs) in
            [(0, "a", 10, 30), (0, "b", 20, 20), (1, "b", 10, 10), (1, "a", 30, 50), (2, "a", 1, 1)]
        {
            let printed = format!("children,self_ns,children_ns\n9,{own},{theirs}\n");
            samples.add(round, Contestant { name, title: name }, &setting, &printed).unwrap();
        }
        samples
    }

    #[test]
    fn ratios_are_formed_within_a_round() {
        let samples = samples();
        assert_eq!(samples.ratio(PARENT, ("a", 10), ("b", 10)).unwrap().show(2), "1.75 [0.50-3.00]");
        assert_eq!(samples.ratio(Value::Tree, ("a", 10), ("b", 10)).unwrap().show(2), "2.50 [1.00-4.00]");
        assert!(samples.ratio(PARENT, ("a", 10), ("b", 2048)).is_none());
        assert!(samples.spread(Value::Column("threads"), ("a", 10)).is_none());
        assert_eq!(samples.scaled(PARENT, ("b", 10), 10.0, 1), "1.5 [1.0-2.0]");
    }

    #[test]
    fn rows_without_the_named_columns_are_refused() {
        let mut samples = Samples::default();
        let who = Contestant { name: "a", title: "a" };
        for printed in ["", "a,b\n", "a,b\n1\n", "a\nx\n", "a\n1\n2\n"] {
            assert!(samples.add(0, who, &Setting::default(), printed).is_err(), "{printed:?}");
        }
        assert!(self::samples().csv().unwrap().starts_with("contestant,size,round,children,self_ns"));
    }
}

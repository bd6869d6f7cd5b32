//! Samples of programs that print their numbers: medians and paired ratios, in rounds.

use super::table::markdown;
use super::{Bench, round_order};
use anyhow::{Context, Result};
use minder_bench::Spread;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The columns of the rows.
pub(super) const CSV: &str = "contestant,size,round,name,value";

/// The numbers of a sample, with their names.
pub(super) type Numbers = Vec<(String, f64)>;

/// What is measured, and its name in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contestant {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
}

impl AsRef<str> for Contestant {
    fn as_ref(&self) -> &str {
        self.name
    }
}

impl Contestant {
    /// Returns its title, for a table.
    pub(super) fn title(&self) -> String {
        self.title.into()
    }
}

/// Reads the lines `name,value` that a program printed.
pub(super) fn rows(printed: &str) -> Result<Numbers> {
    let row = |line: &str| {
        let (name, value) = line.split_once(',').with_context(|| format!("the row `{line}`"))?;
        let value = value.parse().with_context(|| format!("the row `{line}`"))?;
        Ok((name.to_string(), value))
    };
    printed.lines().map(row).collect()
}

/// One number of a sample.
#[derive(Clone, Debug)]
struct Row {
    contestant: String,
    /// What tells the samples of a contestant apart, such as a size in bytes.
    size: usize,
    round: usize,
    name: String,
    value: f64,
}

/// The samples of a question.
#[derive(Debug, Default)]
pub(super) struct Samples {
    list: Vec<Row>,
    /// Why contestants have no samples.
    missing: BTreeMap<String, String>,
}

impl Samples {
    pub(super) fn add(&mut self, round: usize, who: impl AsRef<str>, size: usize, numbers: Numbers) {
        self.list.extend(numbers.into_iter().map(|(name, value)| Row {
            contestant: who.as_ref().into(),
            size,
            round,
            name,
            value,
        }));
    }

    /// Samples all contestants and sizes in turn, round after round. If a sample fails, `forgive` returns
    /// why the contestant is left out, or the error.
    pub(super) fn add_rounds<C: AsRef<str>>(
        &mut self,
        bench: &Bench,
        (all, sizes): (&[C], &[usize]),
        sample: impl Fn(&C, usize) -> Result<Numbers>,
        forgive: impl Fn(&C, anyhow::Error) -> Result<String>,
    ) -> Result<()> {
        let pairs: Vec<(&C, usize)> =
            sizes.iter().flat_map(|size| all.iter().map(|who| (who, *size))).collect();
        for round in 0..bench.rounds {
            bench.round(round);
            for (who, size) in round_order(round, &pairs) {
                if self.is_left_out(who) {
                    continue;
                }
                match sample(who, size) {
                    Ok(numbers) => self.add(round, who, size, numbers),
                    Err(why) => self.leave_out(who, forgive(who, why)?),
                }
            }
        }
        Ok(())
    }

    /// Drops a contestant, with the reason.
    pub(super) fn leave_out(&mut self, who: impl AsRef<str>, why: String) {
        self.list.retain(|row| row.contestant != who.as_ref());
        self.missing.insert(who.as_ref().into(), why);
    }

    pub(super) fn is_left_out(&self, who: impl AsRef<str>) -> bool {
        self.missing.contains_key(who.as_ref())
    }

    /// Returns the reasons, a line for each.
    pub(super) fn left_out(&self) -> Vec<String> {
        // Many have the same reason.
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, why) in &self.missing {
            by_reason.entry(why).or_default().push(name);
        }
        by_reason.iter().map(|(why, names)| format!("not present: {}: {why}", names.join(", "))).collect()
    }

    fn of<'a>(&'a self, who: &'a str, size: usize, name: &'a str) -> impl Iterator<Item = &'a Row> {
        self.list.iter().filter(move |row| row.contestant == who && row.size == size && row.name == name)
    }

    /// Returns a number over the rounds, times `factor`; `None` without a sample.
    pub(super) fn spread(
        &self,
        who: impl AsRef<str>,
        size: usize,
        name: &str,
        factor: f64,
    ) -> Option<Spread> {
        Spread::of(self.of(who.as_ref(), size, name).map(|row| row.value * factor))
    }

    /// Returns the sum of a number over the rounds; `None` without a sample.
    pub(super) fn total(&self, who: impl AsRef<str>, size: usize, name: &str) -> Option<Spread> {
        let mut rows = self.of(who.as_ref(), size, name).peekable();
        rows.peek()?;
        Spread::of([rows.map(|row| row.value).sum()])
    }

    /// Returns a number of `above` and `below` of the same round, as `of` combines them.
    pub(super) fn paired(
        &self,
        (above, below): (impl AsRef<str>, impl AsRef<str>),
        size: usize,
        name: &str,
        of: fn(f64, f64) -> f64,
    ) -> Option<Spread> {
        let above = above.as_ref();
        let below = below.as_ref();
        let partner = |row: &Row| self.of(below, size, name).find(|other| other.round == row.round);
        let pairs = self.of(above, size, name).filter_map(|row| Some(of(row.value, partner(row)?.value)));
        Spread::of(pairs)
    }

    /// Returns how many times the number of `below` that of `above` is, round by round.
    pub(super) fn ratio(
        &self,
        above: impl AsRef<str>,
        below: impl AsRef<str>,
        size: usize,
        name: &str,
    ) -> Option<Spread> {
        let values = |who| self.of(who, size, name).map(|row| (row.round, row.value));
        Spread::of_ratios(values(above.as_ref()), values(below.as_ref()))
    }

    /// Returns a cell of a table: a number times `factor` with its extremes.
    pub(super) fn cell(
        &self,
        who: impl AsRef<str>,
        size: usize,
        (name, factor, decimals): (&str, f64, usize),
    ) -> String {
        match self.spread(&who, size, name, factor) {
            Some(spread) => spread.show(decimals),
            None if self.is_left_out(who) => "not present".into(),
            None => "–".into(),
        }
    }

    /// Returns a table with a line for each contestant, under its title, and a column for each number.
    pub(super) fn table<C: AsRef<str>>(
        &self,
        head: &str,
        (all, title): (&[C], fn(&C) -> String),
        size: usize,
        columns: &[(&str, (&str, f64, usize))],
    ) -> String {
        let head: Vec<&str> = std::iter::once(head).chain(columns.iter().map(|(title, _)| *title)).collect();
        let line = |who: &C| {
            let cells = columns.iter().map(|(_, number)| self.cell(who, size, *number));
            std::iter::once(title(who)).chain(cells).collect()
        };
        markdown(&head, &all.iter().map(line).collect::<Vec<Vec<String>>>())
    }

    pub(super) fn csv(&self) -> Result<String> {
        let mut text = format!("{CSV}\n");
        for Row { contestant, size, round, name, value } in &self.list {
            writeln!(text, "{contestant},{size},{},{name},{value}", round + 1)?;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::peers::Peers;
    use super::*;

    fn samples() -> Samples {
        let mut samples = Samples::default();
        for (round, name, value) in
            [(0, "a", 10.0), (0, "b", 20.0), (1, "b", 10.0), (1, "a", 30.0), (2, "a", 1.0)]
        {
            samples.add(round, name, 4, vec![("cpu_us".into(), value)]);
        }
        samples
    }

    #[test]
    fn ratios_are_formed_within_a_round() {
        let samples = samples();
        assert_eq!(samples.ratio("a", "b", 4, "cpu_us").unwrap().show(2), "1.75 [0.50-3.00]");
        assert!(samples.ratio("a", "b", 5, "cpu_us").is_none());
        assert_eq!(samples.cell("b", 4, ("cpu_us", 0.1, 1)), "1.5 [1.0-2.0]");
        assert_eq!(samples.cell("b", 4, ("wall_s", 1.0, 1)), "–");
        assert_eq!(samples.total("b", 4, "cpu_us").unwrap().show(0), "30 [30-30]");
        assert!(samples.total("b", 4, "wall_s").is_none());
        let columns = [("CPU", ("cpu_us", 1.0, 0))];
        let table = samples.table("who", (&["b"], |who| who.to_uppercase()), 4, &columns);
        assert_eq!(table, "| who | CPU |\n| --- | ---: |\n| B | 15 [10-20] |\n");
    }

    #[test]
    fn a_contestant_that_was_left_out_has_no_rows() {
        let mut samples = samples();
        samples.leave_out("b", "no b".into());
        assert_eq!(samples.cell("b", 4, ("cpu_us", 1.0, 1)), "not present");
        assert_eq!(samples.left_out(), ["not present: b: no b"]);
        assert_eq!(samples.csv().unwrap().lines().nth(1), Some("a,4,1,cpu_us,10"));
        assert_eq!(samples.csv().unwrap().lines().count(), 4);
    }

    #[test]
    fn a_contestant_whose_failure_is_forgiven_is_left_out() {
        let bench = Bench { peers: Peers::none().unwrap(), rounds: 2, quick: true };
        let mut samples = Samples::default();
        let sample = |who: &&str, size: usize| {
            anyhow::ensure!(*who != "b", "no b");
            Ok(vec![("x".to_string(), f64::from(u32::try_from(size)?))])
        };
        let all = (&["a", "b"][..], &[1, 2][..]);
        samples.add_rounds(&bench, all, sample, |_, why| Ok(why.to_string())).unwrap();
        assert_eq!(samples.csv().unwrap(), format!("{CSV}\na,1,1,x,1\na,2,1,x,2\na,2,2,x,2\na,1,2,x,1\n"));
        assert!(samples.is_left_out("b"));
        assert!(Samples::default().add_rounds(&bench, all, sample, |_, why| Err(why)).is_err());
    }

    #[test]
    fn rows_that_are_no_numbers_are_refused() {
        assert_eq!(rows("a,1\nb,2.5\n").unwrap(), [("a".to_string(), 1.0), ("b".into(), 2.5)]);
        assert!(rows("a\n").is_err() && rows("a,x\n").is_err());
    }
}

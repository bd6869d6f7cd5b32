//! Samples of contestants: their medians and paired ratios, and the rows that are kept of them.
//!
//! All rows begin with the name of the contestant, a kind if there are several, a size and the
//! round. The other columns are numbers; an empty field is a number that the sample does not have.

use crate::bench::{Bench, round_order};
use crate::table::markdown;
use anyhow::{Context, Result, ensure};
use minder_bench::Spread;
use minder_ui::rows::CsvTable;
use std::collections::BTreeMap;

/// The numbers of a sample, with their names.
pub(crate) type Numbers = Vec<(String, f64)>;

/// What is measured, and its name in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
}

impl AsRef<str> for Contestant {
    fn as_ref(&self) -> &str {
        self.name
    }
}

impl Contestant {
    /// Returns its title, for a table.
    pub(crate) fn title(&self) -> String {
        self.title.into()
    }
}

/// Reads the lines `name,value` that a program printed.
pub(crate) fn numbers(printed: &str) -> Result<Numbers> {
    let row = |line: &str| {
        let (name, value) = line.split_once(',').with_context(|| format!("the row `{line}`"))?;
        let value = value.parse().with_context(|| format!("the row `{line}`"))?;
        Ok((name.to_string(), value))
    };
    printed.lines().map(row).collect()
}

/// Forgives no error, for [`Samples::add_rounds`].
pub(crate) fn fail<P>(_: P, why: anyhow::Error) -> Result<String> {
    Err(why)
}

/// Raises each number to the one of the same name that was seen now, if that is greater.
pub(crate) fn raise(most: &mut Numbers, seen: Numbers) {
    for (name, value) in seen {
        match most.iter_mut().find(|(known, _)| *known == name) {
            Some((_, greatest)) => *greatest = greatest.max(value),
            None => most.push((name, value)),
        }
    }
}

/// A contestant, and what tells its samples apart. `(&contestant, size)` is one, and so is
/// `(&contestant, kind, size)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point<'a> {
    name: &'a str,
    /// Such as `one` or `burst`; empty if there is only one kind.
    kind: &'a str,
    /// Such as a number of bytes or of children.
    size: usize,
}

impl<'a, C: AsRef<str> + ?Sized> From<(&'a C, usize)> for Point<'a> {
    fn from((who, size): (&'a C, usize)) -> Self {
        Self { name: who.as_ref(), kind: "", size }
    }
}

impl<'a, C: AsRef<str> + ?Sized> From<(&'a C, &'a str, usize)> for Point<'a> {
    fn from((who, kind, size): (&'a C, &'a str, usize)) -> Self {
        Self { name: who.as_ref(), kind, size }
    }
}

/// Returns each contestant with each size, as points.
pub(crate) fn pairs<'a, C>(all: &'a [C], sizes: &[usize]) -> Vec<(&'a C, usize)> {
    sizes.iter().flat_map(|size| all.iter().map(|who| (who, *size))).collect()
}

/// What was measured of a contestant in a round.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    name: String,
    kind: String,
    size: usize,
    round: usize,
    numbers: Numbers,
}

impl Sample {
    /// Returns the number of this name.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.numbers.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn point(&self) -> Point<'_> {
        Point { name: &self.name, kind: &self.kind, size: self.size }
    }
}

/// A number of a sample: one that has a name, or one that is computed of others.
pub(crate) trait Number {
    fn of(&self, sample: &Sample) -> Option<f64>;
}

impl Number for &str {
    fn of(&self, sample: &Sample) -> Option<f64> {
        sample.number(self)
    }
}

impl<F: Fn(&Sample) -> Option<f64>> Number for F {
    fn of(&self, sample: &Sample) -> Option<f64> {
        self(sample)
    }
}

/// The samples of a question.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    list: Vec<Sample>,
    /// Why contestants have no samples.
    missing: BTreeMap<String, String>,
}

impl Samples {
    /// Adds numbers to the sample of a round, which counts from 1.
    pub(crate) fn add<'a>(&mut self, round: usize, point: impl Into<Point<'a>>, numbers: Numbers) {
        let point = point.into();
        match self.list.iter_mut().find(|sample| sample.round == round && sample.point() == point) {
            Some(sample) => sample.numbers.extend(numbers),
            None => {
                let Point { name, kind, size } = point;
                self.list.push(Sample { name: name.into(), kind: kind.into(), size, round, numbers });
            }
        }
    }

    /// Samples all points in turn, round after round. If a sample fails, `forgive` returns why the
    /// contestant is left out, or the error.
    pub(crate) fn add_rounds<'a, P: Copy + Into<Point<'a>>>(
        &mut self,
        bench: &Bench,
        all: &[P],
        mut sample: impl FnMut(P) -> Result<Numbers>,
        forgive: impl Fn(P, anyhow::Error) -> Result<String>,
    ) -> Result<()> {
        for round in 0..bench.rounds {
            bench.round(round);
            for point in round_order(round, all) {
                let name = point.into().name;
                if self.is_left_out(name) {
                    continue;
                }
                match sample(point) {
                    Ok(numbers) => self.add(round + 1, point, numbers),
                    Err(why) => {
                        let why = forgive(point, why).with_context(|| name.to_string())?;
                        self.leave_out(name, why);
                    }
                }
            }
        }
        Ok(())
    }

    /// Drops a contestant, with the reason.
    pub(crate) fn leave_out(&mut self, who: impl AsRef<str>, why: String) {
        self.list.retain(|sample| sample.name != who.as_ref());
        self.missing.insert(who.as_ref().into(), why);
    }

    pub(crate) fn is_left_out(&self, who: impl AsRef<str>) -> bool {
        self.missing.contains_key(who.as_ref())
    }

    /// Returns the reasons, a line for each.
    pub(crate) fn left_out(&self) -> Vec<String> {
        // Many have the same reason.
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, why) in &self.missing {
            by_reason.entry(why).or_default().push(name);
        }
        by_reason.iter().map(|(why, names)| format!("not present: {}: {why}", names.join(", "))).collect()
    }

    /// Returns the names of contestants in the order in which they came first.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for sample in &self.list {
            if !names.contains(&sample.name.as_str()) {
                names.push(&sample.name);
            }
        }
        names
    }

    /// Returns the sizes in ascending order.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.list.iter().map(|sample| sample.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn of<'a>(&'a self, point: Point<'a>) -> impl Iterator<Item = &'a Sample> {
        self.list.iter().filter(move |sample| sample.point() == point)
    }

    /// Returns a number over the rounds; `None` without a sample.
    pub(crate) fn spread<'a>(&self, point: impl Into<Point<'a>>, number: impl Number) -> Option<Spread> {
        Spread::of(self.of(point.into()).filter_map(|sample| number.of(sample)))
    }

    /// Returns the sum of a number over the rounds; `None` without a sample.
    pub(crate) fn total<'a>(&self, point: impl Into<Point<'a>>, number: impl Number) -> Option<Spread> {
        let sum =
            self.of(point.into()).filter_map(|sample| number.of(sample)).reduce(|sum, value| sum + value);
        Spread::of(sum)
    }

    /// Returns how many times the number of `below` that of `above` is, round by round.
    pub(crate) fn ratio<'a>(
        &self,
        above: impl Into<Point<'a>>,
        below: impl Into<Point<'a>>,
        number: impl Number,
    ) -> Option<Spread> {
        let values = |point| self.of(point).filter_map(|it| Some((it.round, number.of(it)?)));
        Spread::of_ratios(values(above.into()), values(below.into()))
    }

    /// Returns what `of` computes of a sample of `one` and that of `other` in the same round.
    pub(crate) fn paired<'a>(
        &self,
        one: impl Into<Point<'a>>,
        other: impl Into<Point<'a>>,
        of: impl Fn(&Sample, &Sample) -> Option<f64>,
    ) -> Option<Spread> {
        let other = other.into();
        let partner = |sample: &Sample| self.of(other).find(|it| it.round == sample.round);
        Spread::of(self.of(one.into()).filter_map(|sample| of(sample, partner(sample)?)))
    }

    /// Returns the dearest of these sizes over the cheapest, round by round.
    pub(crate) fn unevenness(&self, name: &str, sizes: &[usize], number: &str) -> Option<Spread> {
        let mut rounds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for sample in self.list.iter().filter(|it| it.name == name && sizes.contains(&it.size)) {
            rounds.entry(sample.round).or_default().extend(sample.number(number));
        }
        // A round that lacks a size tells nothing.
        let whole = rounds.into_values().filter(|values| values.len() == sizes.len());
        Spread::of(whole.filter_map(|values| Spread::of(values).map(|it| it.max / it.min)))
    }

    /// Returns a cell of a table: a number times `factor` with its extremes.
    pub(crate) fn cell<'a>(
        &self,
        point: impl Into<Point<'a>>,
        (number, factor, decimals): (impl Number, f64, usize),
    ) -> String {
        let point = point.into();
        match self.spread(point, number) {
            Some(spread) => spread.scaled(factor).show(decimals),
            None if self.is_left_out(point.name) => "not present".into(),
            None => "–".into(),
        }
    }

    /// Returns a table with a line for each contestant, under its title, and a column for each number.
    pub(crate) fn table<C: AsRef<str>>(
        &self,
        head: &str,
        (all, title): (&[C], fn(&C) -> String),
        size: usize,
        columns: &[(&str, (&str, f64, usize))],
    ) -> String {
        let head: Vec<&str> = std::iter::once(head).chain(columns.iter().map(|(title, _)| *title)).collect();
        let line = |who: &C| {
            let cells = columns.iter().map(|(_, number)| self.cell((who, size), *number));
            std::iter::once(title(who)).chain(cells).collect()
        };
        markdown(&head, &all.iter().map(line).collect::<Vec<Vec<String>>>())
    }

    /// Reads rows of samples: those that [`rows`](Self::rows) returns, or those of `minder bench`.
    /// The columns before the round are known by their order.
    pub(crate) fn read(table: &CsvTable) -> Result<Self> {
        let round = table.index("round").filter(|place| [2, 3].contains(place));
        let round = round.with_context(|| format!("the columns {}", table.columns.join(",")))?;
        let mut samples = Self::default();
        for row in &table.rows {
            let context = || format!("the row `{}`", row.join(","));
            let kind = if round == 3 { row[1].as_str() } else { "" };
            let size = row[round - 1].parse().with_context(context)?;
            let cells = table.columns.iter().zip(row).skip(round + 1);
            let cells = cells.filter(|(name, cell)| *name != "note" && !cell.is_empty());
            let number = |(name, cell): (&String, &String)| Ok((name.clone(), cell.parse()?));
            let numbers = cells.map(number).collect::<Result<_>>().with_context(context)?;
            samples.add(row[round].parse().with_context(context)?, (&row[0], kind, size), numbers);
        }
        ensure!(samples.list.len() == table.rows.len(), "two rows of a contestant in a round");
        Ok(samples)
    }

    /// Returns the rows: one for each sample, a column for each number.
    pub(crate) fn rows(&self) -> CsvTable {
        let has_kinds = self.list.iter().any(|sample| !sample.kind.is_empty());
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.list.iter().flat_map(|sample| &sample.numbers) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let keys =
            ["contestant", "kind", "size", "round"].into_iter().filter(|key| has_kinds || *key != "kind");
        let mut table = CsvTable::new(&keys.chain(names.iter().copied()).collect::<Vec<_>>());
        for sample in &self.list {
            let mut row = vec![sample.name.clone()];
            row.extend(has_kinds.then(|| sample.kind.clone()));
            row.extend([sample.size, sample.round].map(|number| number.to_string()));
            let cell = |name: &&str| sample.number(name).as_ref().map(f64::to_string).unwrap_or_default();
            row.extend(names.iter().map(cell));
            table.rows.push(row);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Peers;

    fn samples() -> Samples {
        let mut samples = Samples::default();
        for (round, name, value) in
            [(1, "a", 10.0), (1, "b", 20.0), (2, "b", 10.0), (2, "a", 30.0), (3, "a", 1.0)]
        {
            samples.add(round, (name, 4), vec![("cpu_us".into(), value)]);
        }
        samples
    }

    #[test]
    fn ratios_are_formed_within_a_round() {
        let samples = samples();
        assert_eq!(samples.ratio(("a", 4), ("b", 4), "cpu_us").unwrap().show(2), "1.75 [0.50-3.00]");
        assert!(samples.ratio(("a", 5), ("b", 5), "cpu_us").is_none());
        let more = |a: &Sample, b: &Sample| Some(a.number("cpu_us")? - b.number("cpu_us")?);
        assert_eq!(samples.paired(("a", 4), ("b", 4), more).unwrap().show(0), "5 [-10-20]");
        let twice = |sample: &Sample| Some(2.0 * sample.number("cpu_us")?);
        assert_eq!(samples.spread(("b", 4), twice).unwrap().show(0), "30 [20-40]");
        assert_eq!(samples.cell(("b", 4), ("cpu_us", 0.1, 1)), "1.5 [1.0-2.0]");
        assert_eq!(samples.cell(("b", 4), ("wall_s", 1.0, 1)), "–");
        assert_eq!(samples.total(("b", 4), "cpu_us").unwrap().show(0), "30 [30-30]");
        assert!(samples.total(("b", 4), "wall_s").is_none());
        let columns = [("CPU", ("cpu_us", 1.0, 0))];
        let table = samples.table("who", (&["b"], |who| who.to_uppercase()), 4, &columns);
        assert_eq!(table, "| who | CPU |\n| --- | ---: |\n| B | 15 [10-20] |\n");
    }

    #[test]
    fn a_contestant_that_was_left_out_has_no_rows() {
        let mut samples = samples();
        samples.leave_out("b", "no b".into());
        assert_eq!(samples.cell(("b", 4), ("cpu_us", 1.0, 1)), "not present");
        assert_eq!(samples.left_out(), ["not present: b: no b"]);
        assert_eq!(samples.rows().text(), "contestant,size,round,cpu_us\na,4,1,10\na,4,2,30\na,4,3,1\n");
    }

    #[test]
    fn a_contestant_whose_failure_is_forgiven_is_left_out() {
        let bench = Bench { peers: Peers::none().unwrap(), rounds: 2, quick: true };
        let mut samples = Samples::default();
        let sample = |(who, size): (&&str, usize)| {
            ensure!(*who != "b", "no b");
            Ok(vec![("x".to_string(), f64::from(u32::try_from(size)?))])
        };
        let all = pairs(&["a", "b"], &[1, 2]);
        samples.add_rounds(&bench, &all, sample, |_, why| Ok(why.to_string())).unwrap();
        assert_eq!(samples.rows().text(), "contestant,size,round,x\na,1,1,1\na,2,1,2\na,2,2,2\na,1,2,1\n");
        assert!(samples.is_left_out("b"));
        assert!(Samples::default().add_rounds(&bench, &all, sample, fail).is_err());
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let mut samples = samples();
        samples.add(3, ("a", 4), vec![("wall_s".into(), 0.25)]);
        samples.add(1, ("c, d", "burst", 7), vec![("wall_s".into(), 2.0)]);
        let text = samples.rows().text();
        assert!(text.contains("\na,,4,3,1,0.25\n\"c, d\",burst,7,1,,2\n"), "{text}");
        let again = Samples::read(&CsvTable::read(&text).unwrap()).unwrap();
        assert_eq!(again.rows().text(), text);
        let columns = "mechanism,objects,round,waits,cpu_ns,wall_ns,note\n";
        let ours = format!("{columns}epoll,2,1,9,200,210.5,under Wine\nepoll,64,1,9,300,1,under Wine\n");
        let ours = Samples::read(&CsvTable::read(&ours).unwrap()).unwrap();
        assert_eq!(ours.spread(("epoll", 2), "wall_ns").unwrap().median, 210.5);
        assert_eq!((ours.names(), ours.sizes()), (vec!["epoll"], vec![2, 64]));
        for wrong in ["a,b\n", "a,n,round,x\nb,1,1,y\n", "a,n,round,x\nb,1,1,1\nb,1,1,2\n"] {
            assert!(Samples::read(&CsvTable::read(wrong).unwrap()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn unevenness_is_of_rounds_with_all_sizes() {
        let mut samples = Samples::default();
        for (round, size, cost) in [(1, 2, 200.0), (2, 2, 300.0), (2, 64, 360.0)] {
            samples.add(round, ("epoll", size), vec![("cpu_ns".into(), cost)]);
        }
        assert_eq!(samples.unevenness("epoll", &[2, 64], "cpu_ns").unwrap().show(1), "1.2 [1.2-1.2]");
        assert!(samples.unevenness("poll", &[2, 64], "cpu_ns").is_none());
    }

    #[test]
    fn lines_that_are_not_numbers_are_refused() {
        assert_eq!(numbers("a,1\nb,2.5\n").unwrap(), [("a".to_string(), 1.0), ("b".into(), 2.5)]);
        assert!(numbers("a\n").is_err() && numbers("a,x\n").is_err());
    }
}

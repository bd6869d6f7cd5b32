//! CSV rows that `minder bench` and the other programs print, and their medians and paired ratios.

use anyhow::{Context, Result, bail};
use minder_bench::Spread;

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// A mechanism, or another program.
    pub(crate) name: String,
    /// `one` or `burst`, for questions that measure both.
    pub(crate) kind: Option<String>,
    /// Objects, living children, MiB of the parent.
    pub(crate) size: u64,
    pub(crate) round: u64,
    /// How many operations were measured.
    pub(crate) count: u64,
    /// Nanoseconds of processor time for one operation.
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
    /// A remark about the row, if the rows have such a column.
    pub(crate) note: Option<String>,
}

/// Rows under the names of their columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    head: String,
    pub(crate) list: Vec<Row>,
}

/// A mechanism and a size, whose cost is looked up in the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Option<&'a str>,
    pub(crate) size: u64,
}

impl Row {
    fn read(line: &str, kinds: bool) -> Result<Self> {
        let cells: Vec<&str> = line.split(',').collect();
        let (name, kind, numbers) = match cells[..] {
            [name, kind, ref rest @ ..] if kinds => (name, Some(kind.to_string()), rest),
            [name, ref rest @ ..] => (name, None, rest),
            [] => bail!("an empty row"),
        };
        let (numbers, note) = match *numbers {
            [ref numbers @ .., note] if numbers.len() == 5 => (numbers, Some(note.to_string())),
            ref numbers => (numbers, None),
        };
        let [size, round, count, cpu, wall] = numbers else { bail!("{} cells", cells.len()) };
        Ok(Self {
            name: name.into(),
            kind,
            size: size.parse()?,
            round: round.parse()?,
            count: count.parse()?,
            cpu: cpu.parse()?,
            wall: wall.parse()?,
            note,
        })
    }

    fn is(&self, point: Point<'_>) -> bool {
        self.name == point.name && self.kind.as_deref() == point.kind && self.size == point.size
    }

    fn csv(&self) -> String {
        let Self { name, kind, size, round, count, cpu, wall, note } = self;
        let note = note.as_ref().map(|note| format!(",{note}")).unwrap_or_default();
        let kind = kind.as_ref().map(|kind| format!("{kind},")).unwrap_or_default();
        format!("{name},{kind}{size},{round},{count},{cpu},{wall}{note}\n")
    }
}

impl Rows {
    /// Reads what a program printed; the columns are known by their order, which the head has to
    /// confirm.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let head = lines.next().context("no rows, not even the names of columns")?;
        let names: Vec<&str> = head.split(',').collect();
        let kinds = names.get(1) == Some(&"kind");
        let costs = head.strip_suffix(",note").unwrap_or(head).ends_with(",cpu_ns,wall_ns");
        if names.get(2 + usize::from(kinds)) != Some(&"round") || !costs {
            bail!("columns that are not known here: {head}");
        }
        let list = lines.map(|line| Row::read(line, kinds).with_context(|| format!("the row `{line}`")));
        Ok(Self { head: head.into(), list: list.collect::<Result<_>>()? })
    }

    /// Adds what a program measured alone, as a part of this round.
    pub(crate) fn add(&mut self, other: Self, round: u64) {
        self.head = other.head;
        self.list.extend(other.list.into_iter().map(|row| Row { round, ..row }));
    }

    pub(crate) fn csv(&self) -> String {
        let rows: String = self.list.iter().map(Row::csv).collect();
        format!("{}\n{rows}", self.head)
    }

    /// Names in the order in which they came first.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.list {
            if !names.contains(&row.name.as_str()) {
                names.push(&row.name);
            }
        }
        names
    }

    pub(crate) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.list.iter().map(|row| row.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Processor time in nanoseconds over the rounds; `None` without a row.
    pub(crate) fn cpu(&self, point: Point<'_>) -> Option<Spread> {
        Spread::of(self.list.iter().filter(|row| row.is(point)).map(|row| row.cpu))
    }

    /// How many times `below` costs, round by round.
    pub(crate) fn ratio(&self, above: Point<'_>, below: Point<'_>) -> Option<Spread> {
        self.ratio_of(above, below, |row| row.cpu)
    }

    /// The same by the time that passed.
    pub(crate) fn wall_ratio(&self, above: Point<'_>, below: Point<'_>) -> Option<Spread> {
        self.ratio_of(above, below, |row| row.wall)
    }

    fn ratio_of(&self, above: Point<'_>, below: Point<'_>, cost: impl Fn(&Row) -> f64) -> Option<Spread> {
        let costs = |point| {
            let rows = self.list.iter().filter(move |row| row.is(point));
            rows.map(|row| (row.round, cost(row)))
        };
        Spread::of_ratios(costs(above), costs(below))
    }

    /// The dearest size over the cheapest, round by round.
    pub(crate) fn unevenness(&self, name: &str, sizes: &[u64]) -> Option<Spread> {
        let mine = |row: &&Row| row.name == name && sizes.contains(&row.size);
        let mut rounds: Vec<u64> = self.list.iter().filter(mine).map(|row| row.round).collect();
        rounds.sort_unstable();
        rounds.dedup();
        Spread::of(rounds.into_iter().filter_map(|round| {
            let costs =
                Spread::of(self.list.iter().filter(mine).filter(|r| r.round == round).map(|r| r.cpu))?;
            let all = self.list.iter().filter(mine).filter(|r| r.round == round).count() == sizes.len();
            all.then_some(costs.max / costs.min)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: &str = "mechanism,objects,round,waits,cpu_ns,wall_ns\n\
                        epoll,2,1,100,200,210\npoll,2,1,100,400,410\n\
                        epoll,2,2,100,300,310\npoll,2,2,100,900,910\nepoll,64,2,100,360,370.5\n";

    fn at(name: &str, size: u64) -> Point<'_> {
        Point { name, kind: None, size }
    }

    #[test]
    fn rows_are_read_and_written() {
        let rows = Rows::read(WAIT).unwrap();
        assert_eq!(rows.csv(), WAIT);
        assert_eq!((rows.names(), rows.sizes()), (vec!["epoll", "poll"], vec![2, 64]));
        let kinds = "mechanism,kind,live,round,exits,cpu_ns,wall_ns\nfloor,one,10,1,100,1.5,2\n";
        let mut exits = Rows::read(kinds).unwrap();
        assert_eq!(exits.csv(), kinds);
        exits.add(Rows::read(kinds).unwrap(), 2);
        assert_eq!(exits.list[1].round, 2);
        for wrong in ["", "a,b\n", "mechanism,objects,round,waits,cpu_ns,wall_ns\nepoll,2,1\n"] {
            assert!(Rows::read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn ratios_are_formed_within_a_round() {
        let rows = Rows::read(WAIT).unwrap();
        assert_eq!(rows.cpu(at("epoll", 2)).unwrap().show(0), "250 [200-300]");
        assert_eq!(rows.ratio(at("poll", 2), at("epoll", 2)).unwrap().show(1), "2.5 [2.0-3.0]");
        assert_eq!(rows.ratio(at("epoll", 64), at("epoll", 2)).unwrap().show(1), "1.2 [1.2-1.2]");
        assert!(rows.ratio(at("epoll", 2), at("mio", 2)).is_none() && rows.cpu(at("epoll", 3)).is_none());
        // A round that lacks a size says nothing about evenness.
        assert_eq!(rows.unevenness("epoll", &[2, 64]).unwrap().show(1), "1.2 [1.2-1.2]");
        assert!(rows.unevenness("poll", &[2, 64]).is_none());
    }
}

//! What was measured, as rows for programs, tables for people, and a chart.

use std::collections::BTreeMap;
use std::io::{self, Write};

use minder::lab::Meter;

use super::{BenchSpec, Case, Measurement};
use crate::export::rows::Value;
use crate::report::chart::{Chart, Curve, Panel};
use crate::report::count;
use crate::ui::table::{Column, Table};

/// Whether CPU time goes on in steps that can be seen: few operations then seem to cost nothing.
const COARSE: bool = Meter::TICK.as_millis() > 0;

impl BenchSpec {
    /// The columns of a row.
    pub(super) fn columns(&self) -> Vec<String> {
        let operations = format!("{}s", self.operation);
        let kind = self.kinds.then_some("kind");
        let names = ["mechanism"].into_iter().chain(kind);
        let names = names.chain([self.size, "round", &operations, "cpu_ns", "wall_ns"]);
        names.chain(self.note.map(|_| "note")).map(str::to_owned).collect()
    }

    /// A row.
    pub(super) fn values(&self, point: &Case, round: u32, figure: &Measurement) -> Vec<Value> {
        let integer = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        // A tenth of a nanosecond is finer than any clock.
        let real = |number: f64| Value::Real((number * 10.0).round() / 10.0);
        let kind = self.kinds.then(|| Value::Text(point.kind.unwrap_or_default().to_owned()));
        let head = [Value::Text(point.mechanism.to_owned())].into_iter().chain(kind);
        let tail = [
            integer(point.size),
            integer(round.into()),
            integer(figure.operations),
            real(figure.cpu_ns),
            real(figure.wall_ns),
        ];
        head.chain(tail).chain(self.note.map(|note| Value::Text(note.to_owned()))).collect()
    }

    /// What is measured, for whoever watches: `wait: epoll, 64 objects`.
    pub(super) fn describe(&self, point: &Case) -> String {
        let kind = point.kind.map(|kind| format!(", {kind}")).unwrap_or_default();
        format!("{}: {}{kind}, {} {}", self.operation, point.mechanism, point.size, self.sizes)
    }
}

/// Everything that was measured, by the places of points.
#[derive(Debug)]
pub(super) struct Results<'a> {
    pub(super) subject: &'a BenchSpec,
    pub(super) points: &'a [Case],
    figures: Vec<Vec<Measurement>>,
    refused: Vec<Option<String>>,
}

impl<'a> Results<'a> {
    pub(super) fn new(subject: &'a BenchSpec, points: &'a [Case]) -> Self {
        let (figures, refused) = (vec![Vec::new(); points.len()], vec![None; points.len()]);
        Self { subject, points, figures, refused }
    }

    pub(super) fn take(&mut self, place: usize, figure: Measurement) {
        self.figures[place].push(figure);
    }

    /// Takes note that a point cannot be measured, and why.
    pub(super) fn refuse(&mut self, place: usize, why: String) {
        self.refused[place] = Some(why);
    }

    pub(super) fn is_refused(&self, place: usize) -> bool {
        self.refused[place].is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.figures.iter().all(Vec::is_empty)
    }

    /// One line for each mechanism and reason: what was not measured.
    pub(super) fn gaps(&self) -> Vec<String> {
        let mut gaps: Vec<(&Case, &String, Vec<String>)> = Vec::new();
        for (point, why) in self.points.iter().zip(&self.refused) {
            let Some(why) = why else { continue };
            let same = |gap: &&mut (&Case, &String, Vec<String>)| {
                gap.0.mechanism == point.mechanism && gap.0.kind == point.kind && gap.1 == why
            };
            match gaps.iter_mut().find(same) {
                Some((.., sizes)) => sizes.push(point.size.to_string()),
                None => gaps.push((point, why, vec![point.size.to_string()])),
            }
        }
        let line = |(point, why, sizes): (&Case, &String, Vec<String>)| {
            let kind = point.kind.map(|kind| format!(", {kind}")).unwrap_or_default();
            format!("{}{kind}, {} {}: {why}", point.mechanism, sizes.join(", "), self.subject.sizes)
        };
        gaps.into_iter().map(line).collect()
    }

    /// Two tables of medians, of CPU and of time that passed, and what was not measured.
    pub(super) fn tables(&self, out: &mut dyn Write, rounds: u32) -> io::Result<()> {
        if !self.is_empty() {
            let BenchSpec { operation, whose, note, .. } = self.subject;
            if let Some(note) = note {
                writeln!(out, "Note: {note}.\n")?;
            }
            writeln!(out, "CPU time of one {operation}, {whose}{}:\n", of_rounds(rounds))?;
            self.table(out, |figure| figure.cpu_ns)?;
            writeln!(out, "\nWall time of one {operation}:\n")?;
            self.table(out, |figure| figure.wall_ns)?;
        }
        let gaps = self.gaps();
        if !gaps.is_empty() {
            writeln!(out, "\nNot measured:")?;
        }
        gaps.iter().try_for_each(|gap| writeln!(out, "  {gap}"))
    }

    fn table(&self, out: &mut dyn Write, value: impl Fn(&Measurement) -> f64) -> io::Result<()> {
        let mechanisms = self.mechanisms();
        let kind = self.subject.kinds.then(|| Column::left("kind"));
        let columns = kind.into_iter().chain([Column::right(self.subject.size)]);
        let columns = columns.chain(mechanisms.iter().map(|name| Column::right(name))).collect();
        let mut table = Table::new(out, columns);
        let mut rows: Vec<(Option<&str>, u64)> =
            self.points.iter().map(|point| (point.kind, point.size)).collect();
        let kinds = self.kinds();
        rows.sort_by_key(|(kind, size)| (kinds.iter().position(|it| it == kind), *size));
        rows.dedup();
        for (kind, size) in rows {
            let cells = mechanisms.iter().map(|mechanism| {
                let place = self.place(mechanism, kind, size);
                place.and_then(|place| self.median(place, &value)).map_or("-".to_owned(), cost)
            });
            let head = self.subject.kinds.then(|| kind.unwrap_or_default().to_owned());
            let row: Vec<String> = head.into_iter().chain([size.to_string()]).chain(cells).collect();
            table.row(&row)?;
        }
        table.finish()
    }

    /// The medians of CPU time, or of wall time where CPU time is too coarse to be drawn; a panel
    /// for each kind.
    pub(super) fn chart(&self, rounds: u32) -> Chart {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let note = self.subject.note.map(|note| format!(" ({note})")).unwrap_or_default();
        let system = format!("{} {}{note}", std::env::consts::OS, std::env::consts::ARCH);
        let panels = self.kinds().into_iter().map(|kind| {
            let mut curves: Vec<Curve> =
                self.mechanisms().iter().map(|mechanism| self.curve(mechanism, kind)).collect();
            curves.extend(self.subject.published.iter().cloned());
            Panel { title: kind.unwrap_or_default().to_owned(), curves }
        });
        Chart {
            title: self.subject.title.to_owned(),
            subtitle: format!(
                "minder {}, {system}, {}{}",
                env!("CARGO_PKG_VERSION"),
                count(processors as u64, "processor"),
                of_rounds(rounds)
            ),
            across: self.subject.axis.to_owned(),
            up: match COARSE {
                false => format!("CPU time of one {}, {}", self.subject.operation, self.subject.whose),
                true => format!("Wall time of one {}", self.subject.operation),
            },
            panels: panels.collect(),
        }
    }

    fn curve(&self, mechanism: &str, kind: Option<&str>) -> Curve {
        let of = |point: &&Case| point.mechanism == mechanism && point.kind == kind;
        let medians: BTreeMap<u64, f64> = self
            .points
            .iter()
            .filter(of)
            .filter_map(|point| {
                let place = self.place(mechanism, kind, point.size)?;
                let drawn = |figure: &Measurement| if COARSE { figure.wall_ns } else { figure.cpu_ns };
                Some((point.size, self.median(place, drawn)?))
            })
            .collect();
        // There is no place for 0 on an axis of logarithms.
        let sizes = medians.into_iter().filter(|(size, _)| *size > 0);
        let points = sizes.map(|(size, cpu)| (size as f64, cpu)).collect();
        Curve { label: mechanism.to_owned(), points, published: false }
    }

    fn median(&self, place: usize, value: impl Fn(&Measurement) -> f64) -> Option<f64> {
        median(self.figures[place].iter().map(value).collect())
    }

    fn place(&self, mechanism: &str, kind: Option<&str>, size: u64) -> Option<usize> {
        self.points
            .iter()
            .position(|point| point.mechanism == mechanism && point.kind == kind && point.size == size)
    }

    /// In the order of the points.
    fn mechanisms(&self) -> Vec<&'static str> {
        first_of_each(self.points.iter().map(|point| point.mechanism))
    }

    fn kinds(&self) -> Vec<Option<&'static str>> {
        first_of_each(self.points.iter().map(|point| point.kind))
    }
}

fn of_rounds(rounds: u32) -> String {
    if rounds > 1 { format!(", median of {rounds} rounds") } else { String::new() }
}

fn first_of_each<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// The middle one, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        len if len % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Nanoseconds as people write them, with three digits: `412 ns`, `1.23 us`, `12.3 us`, `130 us`,
/// `1.45 ms`.
fn cost(ns: f64) -> String {
    let (value, unit) = match ns {
        ..999.5 => return format!("{:.0} ns", ns.max(0.0)),
        ..999.5e3 => (ns / 1e3, "us"),
        ..999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    match value {
        ..9.995 => format!("{value:.2} {unit}"),
        ..99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::rows::{Format, Rows};

    fn subject(kinds: bool) -> BenchSpec {
        BenchSpec {
            operation: "wait",
            size: "objects",
            sizes: "objects",
            kinds,
            whose: "all threads",
            title: "What one wait costs",
            axis: "objects",
            published: Vec::new(),
            note: None,
        }
    }

    fn point(mechanism: &'static str, size: u64) -> Case {
        Case { mechanism, kind: None, size }
    }

    fn figure(cpu_ns: f64) -> Measurement {
        Measurement { operations: 50, cpu_ns, wall_ns: cpu_ns * 2.0 }
    }

    #[test]
    fn medians_stand_in_the_middle() {
        let of = |values: &[f64]| median(values.to_vec());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(of(&[4.0, 1.0, 100.0, 2.0]), Some(3.0));
    }

    #[test]
    fn costs_have_three_digits() {
        let values = [-1.0, 0.0, 4.4, 412.0, 999.6, 1_234.0, 12_340.0, 99_960.0, 130_000.0, 1.45e6, 2e9];
        let texts = values.map(cost);
        let wanted = [
            "0 ns", "0 ns", "4 ns", "412 ns", "1.00 us", "1.23 us", "12.3 us", "100 us", "130 us", "1.45 ms",
            "2.00 s",
        ];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn tables_are_of_medians_and_name_what_is_missing() {
        let subject = subject(false);
        let points = [point("epoll", 2), point("pool", 2), point("epoll", 64), point("pool", 64)];
        let mut results = Results::new(&subject, &points);
        assert!(results.is_empty());
        [300.0, 100.0, 200.0].iter().for_each(|cpu| results.take(0, figure(*cpu)));
        results.take(2, figure(1500.0));
        results.refuse(1, "no threads".to_owned());
        results.refuse(3, "no threads".to_owned());
        let mut out = Vec::new();
        results.tables(&mut out, 3).expect("memory");
        let text = String::from_utf8(out).expect("text");
        let wanted = "\
CPU time of one wait, all threads, median of 3 rounds:

objects    epoll  pool
      2   200 ns     -
     64  1.50 us     -

Wall time of one wait:

objects    epoll  pool
      2   400 ns     -
     64  3.00 us     -

Not measured:
  pool, 2, 64 objects: no threads
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn kinds_have_a_column_and_a_panel() {
        let subject = subject(true);
        let of = |kind| Case { kind: Some(kind), ..point("floor", 2) };
        let points = [of("one"), of("burst")];
        let mut results = Results::new(&subject, &points);
        results.take(0, figure(10.0));
        results.take(1, figure(20.0));
        let mut out = Vec::new();
        results.tables(&mut out, 1).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.contains("\nkind   objects  floor\none          2  10 ns\nburst        2  20 ns\n"),
            "{text}"
        );
        let chart = results.chart(5);
        assert_eq!(
            chart.panels.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>(),
            ["one", "burst"]
        );
    }

    #[test]
    fn a_note_stands_beside_every_figure() {
        let subject = BenchSpec { note: Some("under Wine"), ..subject(false) };
        let points = [point("scan", 0), point("scan", 2)];
        let mut results = Results::new(&subject, &points);
        results.take(0, figure(10.0));
        results.take(1, figure(20.0));
        let mut out = Vec::new();
        results.tables(&mut out, 1).expect("memory");
        assert!(out.starts_with(b"Note: under Wine.\n\nCPU time"));
        let chart = results.chart(1);
        assert!(chart.subtitle.contains(" (under Wine), "), "{}", chart.subtitle);
        // No look at nothing is on the chart.
        assert_eq!(chart.panels[0].curves[0].points.len(), 1);
        assert_eq!(subject.columns().last().map(String::as_str), Some("note"));
        let values = subject.values(&points[0], 1, &figure(1.0));
        assert_eq!(values.last(), Some(&Value::Text("under Wine".to_owned())));
    }

    #[test]
    fn rows_are_as_their_columns_say() {
        let write = |subject: &BenchSpec, format| {
            let mut out = Vec::new();
            let mut rows = Rows::new(&mut out, format, subject.columns()).expect("memory");
            let point = Case { kind: subject.kinds.then_some("one"), ..point("epoll", 64) };
            rows.row(&subject.values(&point, 3, &figure(123.456))).expect("memory");
            rows.flush().expect("memory");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(
            write(&subject(false), Format::Csv),
            "mechanism,objects,round,waits,cpu_ns,wall_ns\r\nepoll,64,3,50,123.5,246.9\r\n"
        );
        assert_eq!(
            write(&subject(true), Format::Json),
            "{\"mechanism\":\"epoll\",\"kind\":\"one\",\"objects\":64,\"round\":3,\"waits\":50,\"cpu_ns\":123.5,\"wall_ns\":246.9}\n"
        );
    }
}

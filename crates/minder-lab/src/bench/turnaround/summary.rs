//! The medians of each case, and the groups in which they are shown.

use minder_bench::{Form, Lengths, Order, Runner, Spread, TurnaroundCase, TurnaroundMeasurement, Workload};

use super::rows::Row;

/// The rows of each case, by group.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) rows: Vec<Row>,
}

/// What is shown together: a workload, a rule of lengths and a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) workload: Workload,
    pub(super) lengths: Lengths,
    pub(super) bias_ms: u64,
}

impl Group {
    fn of(case: &TurnaroundCase) -> Self {
        Self { workload: case.workload, lengths: case.lengths, bias_ms: case.bias_ms }
    }

    /// Returns the case of a form.
    pub(super) fn case(&self, form: Form, count: usize) -> TurnaroundCase {
        let Self { workload, lengths, bias_ms } = *self;
        TurnaroundCase { workload, form, lengths, bias_ms, count }
    }
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = if self.lengths == Lengths::Ramp { " × i" } else { "" };
        write!(f, "{}, {} ms{rule}", self.workload.name(), self.bias_ms)
    }
}

impl Summary {
    /// Returns the groups: by workload, then by bias.
    pub(super) fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.rows.iter().map(|row| Group::of(&row.case)).collect();
        groups.sort_by_key(|group| (group.workload, group.lengths, group.bias_ms));
        groups.dedup();
        groups
    }

    /// Returns the forms of a group: by runner, then by order and degree. Timers have as many as there
    /// are computations, which is one form.
    pub(super) fn forms(&self, group: Group) -> Vec<Form> {
        let rows = self.rows.iter().filter(|row| Group::of(&row.case) == group);
        let mut forms: Vec<Form> = rows.map(|row| general(row.case.form)).collect();
        forms.sort_by_key(|form| (form.runner, form.order, form.degree));
        forms.dedup();
        forms
    }

    /// Returns the numbers of computations of a group.
    pub(super) fn counts(&self, group: Group) -> Vec<usize> {
        let rows = self.rows.iter().filter(|row| Group::of(&row.case) == group);
        let mut counts: Vec<usize> = rows.map(|row| row.case.count).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// Returns how often a case was measured.
    pub(super) fn repetitions(&self, group: Group) -> u32 {
        let rows = self.rows.iter().filter(|row| Group::of(&row.case) == group);
        rows.map(|row| row.repetition).max().unwrap_or(0)
    }

    /// Returns the rows of a case.
    pub(super) fn of_case(&self, case: &TurnaroundCase) -> impl Iterator<Item = &Row> {
        let wanted = TurnaroundCase { form: general(case.form), ..*case };
        self.rows
            .iter()
            .filter(move |row| TurnaroundCase { form: general(row.case.form), ..row.case } == wanted)
    }

    /// Returns the median of a value of a case, with its spread.
    pub(super) fn spread(
        &self,
        case: &TurnaroundCase,
        value: impl Fn(&TurnaroundMeasurement) -> f64,
    ) -> Option<Spread> {
        Spread::of(self.of_case(case).map(|row| value(&row.measurement)))
    }

    /// Returns the median of the ratio of a value to that of the serial form, formed within each
    /// repetition.
    pub(super) fn over_serial(
        &self,
        case: &TurnaroundCase,
        value: impl Fn(&TurnaroundMeasurement) -> f64,
    ) -> Option<Spread> {
        let form = Form { runner: Runner::Serial, degree: 1, order: Order::Longest };
        let serial = TurnaroundCase { form, ..*case };
        let values = |case| self.of_case(case).map(|row| (row.repetition, value(&row.measurement)));
        Spread::of_ratios(values(case), values(&serial))
    }
}

/// Returns the form without the degree of timers, which is the number of computations.
fn general(form: Form) -> Form {
    if form.runner == Runner::Timers { Form { degree: 0, ..form } } else { form }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_formed_within_a_repetition() {
        let threads = |row: Row| {
            let form = Form { runner: Runner::Threads, degree: 2, ..row.case.form };
            Row { case: TurnaroundCase { form, ..row.case }, ..row }
        };
        let again = |row: Row| Row { repetition: 2, ..row };
        let io = |elapsed| Row::example(Workload::Io, 8, elapsed);
        let rows = vec![
            io(100),
            threads(io(50)),
            again(io(400)),
            again(threads(io(300))),
            Row::example(Workload::Cpu, 2, 9),
        ];
        let summary = Summary { rows };
        let elapsed = |it: &TurnaroundMeasurement| it.elapsed.as_millis() as f64;
        let case = summary.rows[1].case;
        let ratio = summary.over_serial(&case, elapsed).expect("two ratios");
        assert_eq!((ratio.min, ratio.median, ratio.max), (0.5, 0.625, 0.75));
        assert_eq!(summary.spread(&case, elapsed).map(|it| it.median), Some(175.0));
        let groups = summary.groups();
        assert_eq!(
            groups.iter().map(Group::to_string).collect::<Vec<_>>(),
            ["cpu, 10 ms × i", "io, 10 ms × i"]
        );
        assert_eq!((summary.forms(groups[1]).len(), summary.counts(groups[1])), (2, vec![8]));
        assert_eq!(summary.repetitions(groups[1]), 2);
    }
}

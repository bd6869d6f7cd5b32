//! Goals: limits of measured values, and whether they were met.

#[cfg(test)]
use crate::samples::Samples;
use crate::table::markdown;
use minder_bench::Spread;

/// A limit of the median over the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeast(f64),
    /// Shown for comparison.
    None,
}

/// A measured value and its limit.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) what: String,
    /// The unit of the value and of the limit; empty for ratios.
    pub(crate) unit: &'static str,
    /// `None` if a measurement that it needs is missing.
    pub(crate) figure: Option<Spread>,
    pub(crate) aim: Aim,
}

impl Goal {
    /// Returns a goal for a value.
    pub(crate) fn of(what: impl Into<String>, unit: &'static str, figure: Option<Spread>, aim: Aim) -> Self {
        Self { what: what.into(), unit, figure, aim }
    }

    /// Returns a goal for a ratio.
    pub(crate) fn ratio(what: impl Into<String>, figure: Option<Spread>, aim: Aim) -> Self {
        Self::of(what, "", figure, aim)
    }

    /// Returns a goal for a time in microseconds, from nanoseconds.
    pub(crate) fn micros(what: impl Into<String>, nanos: Option<Spread>, aim: Aim) -> Self {
        Self::of(what, " us", nanos.map(|nanos| nanos.scaled(1e-3)), aim)
    }

    fn verdict(&self) -> &'static str {
        let Some(figure) = &self.figure else { return "not measured" };
        match self.aim {
            Aim::None => "",
            Aim::AtMost(limit) if figure.median <= limit => "met",
            Aim::AtLeast(limit) if figure.median >= limit => "met",
            _ => "**missed**",
        }
    }

    fn row(&self) -> Vec<String> {
        let aim = match self.aim {
            Aim::AtMost(limit) => format!("at most {limit}{}", self.unit),
            Aim::AtLeast(limit) => format!("at least {limit}{}", self.unit),
            Aim::None => "none".into(),
        };
        let figure = self.figure.as_ref().map_or_else(String::new, |f| format!("{}{}", f.show(2), self.unit));
        vec![self.what.clone(), figure, aim, self.verdict().into()]
    }
}

/// Returns the goals as a table, followed by the number of those met and missed.
pub(crate) fn table(goals: &[Goal]) -> String {
    let rows: Vec<Vec<String>> = goals.iter().map(Goal::row).collect();
    let count = |verdict: &str| goals.iter().filter(|goal| goal.verdict() == verdict).count();
    let unknown = goals.iter().filter(|g| g.figure.is_none() && !matches!(g.aim, Aim::None)).count();
    let mut text = markdown(&["measurement", "median [minimum-maximum]", "goal", ""], &rows);
    text.push_str(&format!("\nGoals met: {}; missed: {}", count("met"), count("**missed**")));
    if unknown > 0 {
        text.push_str(&format!("; not measured: {unknown}"));
    }
    text.push_str(".\n");
    text
}

/// Returns the goals above other tables.
pub(crate) fn above(goals: &[Goal], tables: &str) -> String {
    format!("Goals are for medians; ratios are formed within a round.\n\n{}\n{tables}", table(goals))
}

/// Checks that each goal has a value in the rows of `docs/measurements`: it names numbers, contestants
/// and sizes as the rows do.
#[cfg(test)]
pub(crate) fn assert_measured(rows: &str, goals: impl Fn(&Samples) -> Vec<Goal>) {
    let file = xtask::tree::root().join(format!("docs/measurements/{rows}.csv"));
    let table = minder_ui::rows::CsvTable::read(&std::fs::read_to_string(file).unwrap()).unwrap();
    let goals = goals(&Samples::read(&table).unwrap());
    let missing: Vec<&str> = goals.iter().filter(|it| it.figure.is_none()).map(|it| &*it.what).collect();
    assert!(!goals.is_empty() && missing.is_empty(), "{rows}: {missing:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_compares_the_median_with_the_limit() {
        let one = |median: f64, aim| Goal::ratio("x", Spread::of([median]), aim).verdict();
        assert_eq!((one(1.15, Aim::AtMost(1.15)), one(1.16, Aim::AtMost(1.15))), ("met", "**missed**"));
        assert_eq!((one(30.0, Aim::AtLeast(30.0)), one(29.9, Aim::AtLeast(30.0))), ("met", "**missed**"));
        assert_eq!(one(5.0, Aim::None), "");
        let nan = Goal::ratio("x", Spread::of([f64::NAN]), Aim::AtMost(1.0));
        assert_eq!(nan.verdict(), "**missed**");
        assert_eq!(Goal::ratio("x", None, Aim::AtMost(1.0)).verdict(), "not measured");
    }

    #[test]
    fn table_counts_met_and_missed_goals() {
        let goals = [
            Goal::micros("a wait", Spread::of([250.0]), Aim::AtMost(0.3)),
            Goal::ratio("over bare", Spread::of([1.5]), Aim::AtMost(1.15)),
            Goal::ratio("over nothing", None, Aim::AtMost(1.15)),
            Goal::ratio("over mio", None, Aim::None),
        ];
        let text = table(&goals);
        assert!(text.contains("| a wait | 0.25 [0.25-0.25] us | at most 0.3 us | met |"), "{text}");
        assert!(text.ends_with("Goals met: 1; missed: 1; not measured: 1.\n"), "{text}");
    }
}

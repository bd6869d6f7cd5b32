//! Medians, and tables in Markdown.

/// A median with its extremes.
#[derive(Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of at least one number; of none, it is all zero.
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (sorted.first().copied(), sorted.last().copied()) else {
            return Self { median: 0.0, least: 0.0, most: 0.0 };
        };
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Self { median, least, most }
    }

    /// Returns `median [minimum-maximum]` with this number of decimals.
    pub(crate) fn show(&self, decimals: usize) -> String {
        format!("{:.decimals$} [{:.decimals$}-{:.decimals$}]", self.median, self.least, self.most)
    }
}

/// A table with a head and rows of as many cells.
pub(crate) fn markdown(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head.to_vec());
    text.push_str(&format!("| --- |{}\n", " ---: |".repeat(head.len() - 1)));
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_numbers() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).show(0), "2 [1-3]");
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).show(1), "2.5 [1.0-4.0]");
        assert_eq!(Spread::of([]).show(0), "0 [0-0]");
    }

    #[test]
    fn a_table_has_a_rule_below_its_head() {
        assert_eq!(
            markdown(&["a", "b"], &[vec!["1".into(), "2".into()]]),
            "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"
        );
    }
}

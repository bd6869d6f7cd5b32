//! Tables in Markdown, and the numbers in their cells.

use minder_bench::Spread;

/// Returns the median of numbers with their extremes, for a cell; of none, a dash.
pub(crate) fn shown(numbers: impl IntoIterator<Item = f64>, decimals: usize) -> String {
    Spread::of(numbers).map_or_else(|| "–".into(), |spread| spread.show(decimals))
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
    fn a_table_has_a_rule_below_its_head() {
        assert_eq!(
            markdown(&["a", "b"], &[vec!["1".into(), "2".into()]]),
            "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"
        );
    }
}

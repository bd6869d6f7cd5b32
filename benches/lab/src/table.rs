//! Tables in Markdown, and the numbers in their cells.

use minder_bench::Spread;

/// Returns the median of numbers with their extremes, for a cell; of none, a dash.
pub(crate) fn shown(numbers: impl IntoIterator<Item = f64>, decimals: usize) -> String {
    show(Spread::of(numbers), decimals)
}

/// Returns a median with its extremes, for a cell; without a value, a dash.
pub(crate) fn show(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(|| "–".into(), |spread| spread.show(decimals))
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

/// Returns a number with commas between its thousands.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([2, 999, 2048, 1_234_567].map(grouped), ["2", "999", "2,048", "1,234,567"]);
    }

    #[test]
    fn a_table_has_a_rule_below_its_head() {
        assert_eq!(
            markdown(&["a", "b"], &[vec!["1".into(), "2".into()]]),
            "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"
        );
    }
}

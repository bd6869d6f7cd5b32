//! A histogram as a line of text.

use minder_ui::symbols::Symbols;

/// The heading of a column of histograms.
pub(super) const HEADING: &str = "1 µs to 10 ms";

/// The characters of the bars, from low to high.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bars([char; 8]);

const UNICODE: Bars = Bars(['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']);
const ASCII: Bars = Bars(['.', ':', '-', '=', '+', '*', '#', '@']);

impl Bars {
    /// Returns those that the terminal can show.
    pub(super) fn of_locale() -> Self {
        Symbols::of_locale().pick(UNICODE, ASCII)
    }

    /// Returns a bar for each number, relative to the largest one. A number that is not 0 has a bar, so
    /// that one late sleep of a thousand is seen.
    pub(super) fn draw(self, counts: &[u64]) -> String {
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let bar = |count: &u64| match count {
            0 => ' ',
            count => self.0[usize::try_from((count * 8).div_ceil(most) - 1).unwrap_or(0).min(7)],
        };
        counts.iter().map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_relative_and_none_is_lost() {
        assert_eq!(UNICODE.draw(&[0, 1, 125, 126, 500, 1000, 0]), " ▁▁▂▄█ ");
        assert_eq!(ASCII.draw(&[0, 1, 1000]), " .@");
        assert_eq!(UNICODE.draw(&[0, 0]), "  ");
        assert_eq!(UNICODE.draw(&[]), "");
    }
}

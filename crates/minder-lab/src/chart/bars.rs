//! A chart of bars: groups one below the other, all with the same scale.

use anyhow::Result;
use minder_bench::Spread;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::style::{Area, DrawResult, Heading, LETTER, LIGHT_GREY, LINE, color, font, line, text, to_i32};

/// A chart of bars.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// The text above everything else.
    pub title: String,
    /// The unit of the values, and what was measured. It may have several lines.
    pub subtitle: String,
    /// The groups, from top to bottom.
    pub groups: Vec<BarGroup>,
}

/// Bars below a title.
#[derive(Clone, Debug)]
pub struct BarGroup {
    /// What the bars have in common.
    pub title: String,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// A bar as long as a median, with a line from the least to the greatest value.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What was measured.
    pub label: String,
    /// The value.
    pub value: Spread,
    /// Whether it has the first color. Others are grey.
    pub is_ours: bool,
}

/// Distances in pixels.
const MARGIN: i32 = 16;
const LONGEST: i32 = 480;
const THICKNESS: i32 = 13;
/// The space for the number beyond the longest bar.
const NUMBER: i32 = 72;
const TITLE: i32 = 34;

impl BarChart {
    /// Returns the chart as SVG.
    ///
    /// # Errors
    /// Those of plotters, which has none for text in memory.
    pub fn svg(&self) -> Result<String> {
        let heading = Heading { title: &self.title, subtitle: &self.subtitle, left: MARGIN };
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let letters = bars().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
        let left = MARGIN + LETTER * to_i32(letters);
        let most = bars().map(|bar| bar.value.max).fold(f64::MIN_POSITIVE, f64::max);
        let lines = TITLE * to_i32(self.groups.len()) + LINE * to_i32(bars().count());
        let size = (left + LONGEST + NUMBER, heading.height() + lines + MARGIN);
        heading.page(size, |area| {
            let mut top = heading.height();
            for group in &self.groups {
                text(area, &group.title, (MARGIN, top + TITLE - 8), font(16), (HPos::Left, VPos::Bottom))?;
                top += TITLE;
                for bar in &group.bars {
                    bar.draw(area, (left, top), f64::from(LONGEST) / most)?;
                    top += LINE;
                }
            }
            Ok(())
        })
    }
}

impl Bar {
    fn draw(&self, area: &Area<'_>, (left, top): (i32, i32), pixels: f64) -> DrawResult {
        let Spread { median, min, max, .. } = self.value;
        let [end, low, high] = [median, min, max].map(|value| left + (value * pixels).round() as i32);
        let fill = if self.is_ours { color(0) } else { LIGHT_GREY };
        let middle = top + THICKNESS / 2;
        text(area, &self.label, (left - 9, middle), font(14), (HPos::Right, VPos::Center))?;
        area.draw(&Rectangle::new([(left, top), (end, top + THICKNESS)], fill.filled()))?;
        line(area, &[(low, middle), (high, middle)], BLACK)?;
        text(area, &format!("{median:.1}"), (high + 8, middle), font(14), (HPos::Left, VPos::Center))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_well_formed;
    use super::*;

    #[test]
    fn each_bar_has_a_label_and_a_number() {
        let bar = |label: &str, values: [f64; 3]| Bar {
            label: label.to_owned(),
            value: Spread::of(values).expect("three values"),
            is_ours: label == "ours",
        };
        let bars = vec![bar("ours", [4.0, 4.5, 6.0]), bar("a & b", [1.0, 2.0, 12.0])];
        let groups = vec![BarGroup { title: "a group".to_owned(), bars }];
        let chart = BarChart { title: "bars".to_owned(), subtitle: "us".to_owned(), groups };
        let svg = chart.svg().expect("draw chart");
        assert_well_formed(&svg);
        for text in ["ours", "a &amp; b", "a group", "4.5", "2.0"] {
            assert!(svg.lines().any(|line| line == text), "{text} is missing:\n{svg}");
        }
        let empty = BarChart { groups: Vec::new(), ..chart };
        assert_well_formed(&empty.svg().expect("draw chart"));
    }
}

//! Every chart of the laboratory and of `docs/measurements`, as SVG: curves over sizes, and bars.
//!
//! ```
//! use minder_lab::chart::{Axis, Chart, Curve, Panel, Scale, Unit};
//!
//! let curve = Curve::new("epoll", vec![(2.0, 250.0), (64.0, 255.0)]);
//! let axis = Axis { label: "CPU time of one wait".into(), unit: Unit::Nanoseconds };
//! let chart = Chart {
//!     title: "Waiting for one of many objects".into(),
//!     subtitle: "linux, median of 5 rounds".into(),
//!     x_axis: Axis { label: "objects".into(), unit: Unit::Count },
//!     x_scale: Scale::Logarithmic,
//!     columns: 1,
//!     panels: vec![Panel { title: String::new(), axis, curves: vec![curve] }],
//! };
//! assert!(chart.svg()?.starts_with("<svg"));
//! # Ok::<(), anyhow::Error>(())
//! ```

mod style;
mod scale;
mod bars;

use std::ops::Range;

use anyhow::Result;
use minder_ui::count;
use minder_ui::rows::CsvTable;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub use self::bars::{Bar, BarChart, BarGroup};
use self::scale::{LEAST, range, round_outwards, ticks};
pub use self::scale::{Scale, Unit};
use self::style::{
    Area, DrawResult, FAINT, GREY, GRID, Heading, LETTER, LINE, color, curve_line, dashed, font, line, mark,
    text, to_i32,
};

/// A chart of costs over sizes: one or more panels in rows. Curves differ in color and in the shape
/// of their marks.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The text above everything else.
    pub title: String,
    /// The machine and the number of rounds. It may have several lines.
    pub subtitle: String,
    /// The horizontal axis of all panels.
    pub x_axis: Axis,
    /// How positions on it grow.
    pub x_scale: Scale,
    /// The number of panels in a row.
    pub columns: usize,
    /// Panels, from left to right and from top to bottom. Those with the same vertical axis have
    /// the same range.
    pub panels: Vec<Panel>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What is on it.
    pub label: String,
    /// The unit of its values.
    pub unit: Unit,
}

/// One pair of axes with its curves.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Empty if it is the only panel.
    pub title: String,
    /// The vertical axis.
    pub axis: Axis,
    /// The curves. Those with the same label have the same color in all panels.
    pub curves: Vec<Curve>,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What was measured.
    pub label: String,
    /// Sizes and values of the vertical axis, in ascending order of sizes.
    pub points: Vec<(f64, f64)>,
    /// Sizes, and the least and the greatest value at each, which a vertical line connects.
    pub extremes: Vec<(f64, f64, f64)>,
    /// Whether it is a published curve: dashed, without marks, and named below the axes.
    pub published: bool,
}

/// Describes the version and this machine, for a subtitle: `minder 0.1.0, linux x86_64, 2
/// processors`.
pub(crate) fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    format!("minder {}, {system}, {}", env!("CARGO_PKG_VERSION"), count(processors as u64, "processor"))
}

/// Adds the note of rows, if they have one, to the description of the machine.
pub(crate) fn noted(machine: &str, rows: &CsvTable) -> String {
    let note = rows.index("note").zip(rows.rows.first());
    note.map_or_else(|| machine.to_owned(), |(place, row)| format!("{machine} ({})", row[place]))
}

// The layout of the page, in pixels.
const LEFT: i32 = 84;
/// The space for labels of curves, at least.
const RIGHT: i32 = 144;
const BOTTOM: i32 = 62;
/// The space above the axes, for the title of a panel.
const TOP: i32 = 24;
const PLOT: (i32, i32) = (640, 430);
/// The least distance between labels of sizes.
const LABEL_DISTANCE_MIN: i32 = 46;

impl Curve {
    /// Returns a measured curve without extremes.
    pub fn new(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), points, extremes: Vec::new(), published: false }
    }
}

impl Chart {
    /// Returns the chart as SVG.
    ///
    /// # Errors
    /// Those of plotters, which has none for text in memory.
    pub fn svg(&self) -> Result<String> {
        let published = self.labels(true);
        let labels = self.labels(false);
        let letters = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let wide = LEFT + PLOT.0 + RIGHT.max(44 + LETTER * to_i32(letters));
        let high = TOP + PLOT.1 + BOTTOM;
        let columns = self.columns.max(1);
        let rows = self.panels.len().div_ceil(columns).max(1);
        let heading = Heading { title: &self.title, subtitle: &self.subtitle, left: LEFT };
        let below = heading.height() + high * to_i32(rows);
        let width = wide * to_i32(columns.min(self.panels.len()).max(1));
        heading.page((width, below + LINE * to_i32(published.len()) + 8), |area| {
            // Marks keep a distance from the frame.
            let sizes = self.x_scale.widen(&range(&self.sizes()));
            for (at, panel) in self.panels.iter().enumerate() {
                let frame = PlotArea {
                    left: to_i32(at % columns) * wide + LEFT,
                    top: heading.height() + to_i32(at / columns) * high + TOP,
                    sizes: sizes.clone(),
                    x_scale: self.x_scale,
                    costs: round_outwards(&range(&self.costs(&panel.axis))),
                };
                frame.axes(area, self, panel)?;
                frame.curves(area, panel, &labels)?;
            }
            for (at, label) in (0..).zip(published) {
                let y = below + at * LINE + LINE / 2 - 4;
                dashed(area, &[(LEFT, y), (LEFT + 36, y)])?;
                let style = font(14).color(&GREY).pos(Pos::new(HPos::Left, VPos::Center));
                area.draw(&Text::new(label.to_owned(), (LEFT + 46, y), style))?;
            }
            Ok(())
        })
    }

    fn all_curves(&self) -> impl Iterator<Item = &Curve> {
        self.panels.iter().flat_map(|panel| &panel.curves)
    }

    /// Returns the labels of published or of measured curves; the order of the latter gives each
    /// its color in every panel.
    fn labels(&self, published: bool) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for curve in self.all_curves().filter(|curve| curve.published == published) {
            if !labels.contains(&curve.label.as_str()) {
                labels.push(&curve.label);
            }
        }
        labels
    }

    /// Returns all sizes that are on the axis.
    fn sizes(&self) -> Vec<f64> {
        let sizes = self.all_curves().flat_map(|curve| &curve.points).map(|point| point.0);
        sizes.filter(|size| *size >= self.x_scale.least()).collect()
    }

    /// Returns all values of the panels with this vertical axis.
    fn costs(&self, axis: &Axis) -> Vec<f64> {
        let curves =
            || self.panels.iter().filter(|panel| panel.axis == *axis).flat_map(|panel| &panel.curves);
        let points = curves().flat_map(|curve| &curve.points).map(|point| point.1);
        let extremes = curves().flat_map(|curve| &curve.extremes).flat_map(|(_, low, high)| [*low, *high]);
        points.chain(extremes).filter(|cost| *cost >= LEAST).collect()
    }

    /// Returns the sizes that get labels, as far as there is space: those that were measured, and
    /// the last ones of published curves.
    fn labelled_sizes(&self, x: impl Fn(f64) -> i32) -> Vec<f64> {
        let measured = self.all_curves().filter(|curve| !curve.published).flat_map(|curve| &curve.points);
        let ends = self.all_curves().filter(|curve| curve.published).flat_map(|curve| curve.points.last());
        let mut measured: Vec<f64> = measured.map(|point| point.0).collect();
        measured.sort_by(f64::total_cmp);
        let mut sizes: Vec<f64> = Vec::new();
        for size in measured.into_iter().chain(ends.map(|point| point.0)) {
            if sizes.iter().all(|other| (x(*other) - x(size)).abs() >= LABEL_DISTANCE_MIN) {
                sizes.push(size);
            }
        }
        sizes
    }
}

/// The position and the ranges of one pair of axes.
struct PlotArea {
    /// The x coordinate of the vertical axis.
    left: i32,
    /// The y coordinate of its upper end.
    top: i32,
    sizes: Range<f64>,
    x_scale: Scale,
    costs: Range<f64>,
}

impl PlotArea {
    fn x(&self, size: f64) -> i32 {
        self.left + (self.x_scale.fraction(&self.sizes, size) * f64::from(PLOT.0)).round() as i32
    }

    fn y(&self, cost: f64) -> i32 {
        self.top + PLOT.1
            - (Scale::Logarithmic.fraction(&self.costs, cost) * f64::from(PLOT.1)).round() as i32
    }

    /// Draws the grid, the axes and their labels.
    fn axes(&self, area: &Area<'_>, chart: &Chart, panel: &Panel) -> DrawResult {
        let right = self.left + PLOT.0;
        let bottom = self.top + PLOT.1;
        let middle = self.left + PLOT.0 / 2;
        text(area, &panel.title, (middle, self.top - 8), font(16), (HPos::Center, VPos::Bottom))?;
        for tick in ticks(&self.costs) {
            let y = self.y(tick.value);
            line(area, &[(self.left, y), (right, y)], if tick.is_whole_decade { GRID } else { FAINT })?;
            if tick.is_labelled {
                let label = panel.axis.unit.format(tick.value);
                text(area, &label, (self.left - 9, y), font(14), (HPos::Right, VPos::Center))?;
            }
        }
        for size in chart.labelled_sizes(|size| self.x(size)) {
            let x = self.x(size);
            line(area, &[(x, self.top), (x, bottom)], GRID)?;
            line(area, &[(x, bottom), (x, bottom + 5)], BLACK)?;
            let label = chart.x_axis.unit.format(size);
            text(area, &label, (x, bottom + 9), font(14), (HPos::Center, VPos::Top))?;
        }
        line(area, &[(self.left, self.top), (self.left, bottom), (right, bottom)], BLACK)?;
        text(area, &chart.x_axis.label, (middle, bottom + 32), font(15), (HPos::Center, VPos::Top))?;
        let style = font(15).transform(FontTransform::Rotate270).color(&BLACK);
        let style = style.pos(Pos::new(HPos::Center, VPos::Top));
        let position = (self.left - LEFT + 8, self.top + PLOT.1 / 2);
        area.draw(&Text::new(panel.axis.label.clone(), position, style))
    }

    fn curves(&self, area: &Area<'_>, panel: &Panel, labels: &[&str]) -> DrawResult {
        let mut ends = Vec::new();
        for curve in &panel.curves {
            let positions: Vec<(i32, i32)> =
                curve.points.iter().map(|(size, cost)| (self.x(*size), self.y(*cost))).collect();
            if curve.published {
                dashed(area, &positions)?;
                continue;
            }
            let Some((_, y)) = positions.last() else { continue };
            let style_index = labels.iter().position(|label| *label == curve.label).unwrap_or(0);
            ends.push((*y, style_index));
            for (size, low, high) in &curve.extremes {
                let x = self.x(*size);
                line(area, &[(x, self.y(*low)), (x, self.y(*high))], color(style_index))?;
            }
            curve_line(area, &positions, style_index)?;
            for position in &positions {
                mark(area, *position, style_index)?;
            }
        }
        ends.sort_unstable();
        let bottom = self.top + PLOT.1;
        let wanted: Vec<i32> = ends.iter().map(|(y, _)| *y).collect();
        for (y, (_, style_index)) in separate_labels(&wanted, self.top..bottom).into_iter().zip(ends) {
            let x = self.left + PLOT.0 + 14;
            curve_line(area, &[(x, y), (x + 20, y)], style_index)?;
            mark(area, (x + 10, y), style_index)?;
            text(area, labels[style_index], (x + 26, y), font(15), (HPos::Left, VPos::Center))?;
        }
        Ok(())
    }
}

/// Moves labels, which are in ascending order, so that none overlaps another. Each stays as close to
/// its wanted position as possible.
fn separate_labels(wanted: &[i32], area: Range<i32>) -> Vec<i32> {
    let mut positions = wanted.to_vec();
    for index in 1..positions.len() {
        positions[index] = positions[index].max(positions[index - 1] + LINE);
    }
    let mut limit = area.end;
    for position in positions.iter_mut().rev() {
        *position = (*position).min(limit);
        limit = *position - LINE;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(label: &str, points: &[(f64, f64)]) -> Curve {
        Curve::new(label, points.to_vec())
    }

    fn chart(curves: Vec<Curve>) -> Chart {
        Chart {
            title: "What one wait costs".to_owned(),
            subtitle: "minder on linux".to_owned(),
            x_axis: Axis { label: "objects & more".to_owned(), unit: Unit::Count },
            x_scale: Scale::Logarithmic,
            columns: 2,
            panels: vec![Panel { title: String::new(), axis: cpu_time(), curves }],
        }
    }

    fn cpu_time() -> Axis {
        Axis { label: "CPU time of one wait".to_owned(), unit: Unit::Nanoseconds }
    }

    /// Fails unless every element is closed in order, and no text has an unescaped `<` or `&`.
    pub(super) fn assert_well_formed(svg: &str) {
        let mut open = Vec::new();
        for piece in svg.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').unwrap_or_else(|| panic!("no end of a tag: {piece}"));
            let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
            match tag {
                _ if tag.starts_with('?') || tag.ends_with('/') => {}
                _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "{tag}"),
                _ => open.push(name),
            }
            for part in text.split('&').skip(1) {
                assert!(["amp;", "lt;", "gt;"].iter().any(|it| part.starts_with(it)), "{text}");
            }
        }
        assert!(open.is_empty() && svg.starts_with("<svg"), "{open:?}");
    }

    #[test]
    fn svg_contains_all_labels() {
        let names = ["epoll", "poll", "select", "bare-poll", "bare-epoll", "thread-each", "pool", "io_uring"];
        let mut curves: Vec<Curve> = (1..)
            .zip(names)
            .map(|(at, name)| curve(name, &[(2.0, f64::from(at) * 300.0), (16384.0, 1e6)]))
            .collect();
        curves.push(Curve { published: true, ..curve("published: a pool", &[(2.0, 1e3), (2048.0, 130e3)]) });
        let mut chart = chart(curves);
        let svg = chart.svg().expect("draw chart");
        assert_well_formed(&svg);
        for word in names.into_iter().chain([
            "published: a pool",
            "16,384",
            "1 us",
            "1 ms",
            "What one wait costs",
            "minder on linux",
        ]) {
            assert!(svg.lines().any(|line| line == word), "{word} is missing:\n{svg}");
        }
        assert!(svg.contains("objects &amp; more") && svg.contains("CPU time of one wait"), "{svg}");
        // Two panels side by side.
        let second = Panel { title: "burst".to_owned(), ..chart.panels[0].clone() };
        chart.panels.push(second);
        let svg = chart.svg().expect("draw chart");
        assert_well_formed(&svg);
        assert_eq!(svg.lines().filter(|line| *line == "epoll").count(), 2);
        // A third one in the next row, with an axis of ratios.
        let axis = Axis { label: "turnaround".to_owned(), unit: Unit::Times };
        let curves = vec![curve("epoll", &[(2.0, 1.5), (17.0, 27.0)])];
        chart.panels.push(Panel { title: "ratio".to_owned(), axis, curves });
        let taller = chart.svg().expect("draw chart");
        assert_well_formed(&taller);
        assert!(taller.lines().any(|line| line == "10 ×"), "{taller}");
        let height = |svg: &str| -> i32 {
            let (_, rest) = svg.split_once("height=\"").expect("find the height");
            rest.split('"').next().and_then(|text| text.parse().ok()).expect("parse the height")
        };
        assert_eq!(height(&taller) - height(&svg), TOP + PLOT.1 + BOTTOM);
        // A second line of the subtitle moves the panels down.
        chart.subtitle += "\nnot shown: pool";
        let noted = chart.svg().expect("draw chart");
        assert_well_formed(&noted);
        assert!(noted.lines().any(|line| line == "not shown: pool"), "{noted}");
        assert_eq!(height(&noted) - height(&taller), LINE);
    }

    #[test]
    fn chart_with_few_or_no_points_is_drawn() {
        for curves in [
            vec![],
            vec![curve("one", &[(64.0, 500.0)])],
            vec![curve("none", &[]), curve("zero", &[(2.0, 0.0), (64.0, 0.0)])],
        ] {
            assert_well_formed(&chart(curves).svg().expect("draw chart"));
        }
    }

    #[test]
    fn extremes_are_in_the_range_of_the_axis() {
        let extremes = vec![(2.0, 30.0, 7e4)];
        let chart = chart(vec![Curve { extremes, ..curve("one", &[(2.0, 300.0), (64.0, 400.0)]) }]);
        let svg = chart.svg().expect("draw chart");
        assert_well_formed(&svg);
        assert!(svg.lines().any(|line| line == "10 us"), "{svg}");
        // A size below 1 is on a linear axis.
        let linear =
            Chart { x_scale: Scale::Linear, ..self::chart(vec![curve("one", &[(0.25, 50.0), (2.0, 60.0)])]) };
        let svg = linear.svg().expect("draw chart");
        assert_well_formed(&svg);
        assert!(svg.lines().any(|line| line == "0.3"), "{svg}");
    }

    #[test]
    fn curve_without_an_own_color_is_dotted() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let curves = names.map(|name| curve(name, &[(2.0, 300.0), (64.0, 900.0)]));
        let lines = |count: usize| {
            chart(curves[..count].to_vec()).svg().expect("draw chart").matches("polyline").count()
        };
        assert!(lines(9) - lines(8) > 10 * (lines(8) - lines(7)), "{} {} {}", lines(7), lines(8), lines(9));
    }

    #[test]
    fn spread_labels_do_not_overlap() {
        assert_eq!(separate_labels(&[100, 105, 300], 0..400), [100, 119, 300]);
        assert_eq!(separate_labels(&[390, 395, 400], 0..400), [362, 381, 400]);
        assert_eq!(separate_labels(&[], 0..400), [0; 0]);
    }
}

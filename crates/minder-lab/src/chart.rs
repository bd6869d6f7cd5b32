//! A chart of costs over sizes, as SVG: one or more panels in rows. Both axes are logarithmic; curves
//! differ in color and in the shape of their marks.

use std::ops::Range;

use anyhow::{Result, anyhow};
use minder_runner::text::count;
use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A chart of costs over sizes.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// The version, the machine and the number of rounds. It may have several lines.
    pub(crate) subtitle: String,
    /// The label of the horizontal axis.
    pub(crate) x_label: String,
    pub(crate) x_scale: Scale,
    /// The number of panels in a row.
    pub(crate) columns: usize,
    /// Panels, from left to right and from top to bottom, with the same horizontal axis. Those with the
    /// same vertical axis have the same range.
    pub(crate) panels: Vec<Panel>,
}

/// How positions on the horizontal axis grow. The vertical axis is always logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

/// A vertical axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) unit: Unit,
}

/// The unit of a vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    /// A ratio.
    Times,
}

/// One pair of axes with its curves.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// Empty if it is the only panel.
    pub(crate) title: String,
    /// The vertical axis.
    pub(crate) axis: Axis,
    pub(crate) curves: Vec<Curve>,
}

/// One curve: sizes and values of the vertical axis, in ascending order of sizes.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether it is a published curve: dashed, without marks, and named below the axes.
    pub(crate) published: bool,
}

// The layout of the page, in pixels.
/// Describes the version and the machine, for a subtitle: `minder 0.1.0, linux x86_64, 2 processors`. A note
/// about all measurements stands in parentheses.
pub(crate) fn machine(processors: usize, note: Option<&str>) -> String {
    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
    let system = format!("{} {}{note}", std::env::consts::OS, std::env::consts::ARCH);
    format!("minder {}, {system}, {}", env!("CARGO_PKG_VERSION"), count(processors as u64, "processor"))
}

/// The space above the panels, with a subtitle of one line.
const HEAD: i32 = 62;
const LEFT: i32 = 84;
/// The space for labels of curves, at least, and the space of one letter of them.
const RIGHT: i32 = 144;
const LETTER: i32 = 8;
const BOTTOM: i32 = 62;
/// The space above the axes, for the title of a panel.
const TOP: i32 = 24;
const PLOT: (i32, i32) = (640, 430);
/// The height of a line of text.
const LINE: i32 = 19;
/// The least distance between labels of sizes.
const LABEL_DISTANCE_MIN: i32 = 46;

/// The palette of Okabe and Ito, which is safe for color-blind readers, with brown in place of
/// yellow, which is hard to see on white.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(127, 85, 57),
];
const GREY: RGBColor = RGBColor(110, 110, 110);
const GRID: RGBColor = RGBColor(222, 222, 222);
const FAINT: RGBColor = RGBColor(241, 241, 241);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawResult =
    std::result::Result<(), DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>>;

impl Chart {
    /// Returns the chart as SVG.
    ///
    /// # Errors
    /// Those of plotters, which has none for text in memory.
    pub(crate) fn svg(&self) -> Result<String> {
        let mut text = String::new();
        self.draw(&mut text).map_err(|error| anyhow!("cannot draw the chart: {error}"))?;
        Ok(text)
    }

    fn draw(&self, text: &mut String) -> DrawResult {
        let published = self.published();
        let labels = self.labels();
        let letters = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let wide = LEFT + PLOT.0 + RIGHT.max(44 + LETTER * to_i32(letters));
        let high = TOP + PLOT.1 + BOTTOM;
        let columns = self.columns.max(1);
        let rows = self.panels.len().div_ceil(columns).max(1);
        let head = HEAD + LINE * to_i32(self.subtitle.lines().count().saturating_sub(1));
        let below = head + high * to_i32(rows);
        let height = below + LINE * to_i32(published.len()) + 8;
        let width = wide * to_i32(columns.min(self.panels.len()).max(1));
        let area = SVGBackend::with_string(text, (width.cast_unsigned(), height.cast_unsigned()));
        let area = area.into_drawing_area();
        area.fill(&WHITE)?;
        area.draw(&Text::new(self.title.clone(), (LEFT, 12), font(21).color(&BLACK)))?;
        for (at, line) in (0..).zip(self.subtitle.lines()) {
            area.draw(&Text::new(line.to_owned(), (LEFT, 40 + LINE * at), font(14).color(&GREY)))?;
        }
        let least = self.x_scale.least();
        let sizes = range(values(&self.panels, |_| true, |point| point.0, least));
        // Marks keep a distance from the frame.
        let sizes = self.x_scale.widen(&sizes);
        for (at, panel) in self.panels.iter().enumerate() {
            let costs = range(values(&self.panels, |other| other.axis == panel.axis, |point| point.1, LEAST));
            let frame = PlotArea {
                left: to_i32(at % columns) * wide + LEFT,
                top: head + to_i32(at / columns) * high + TOP,
                sizes: sizes.clone(),
                x_scale: self.x_scale,
                costs: round_outwards(&costs),
            };
            frame.axes(&area, self, &panel.axis)?;
            let title = font(16).color(&BLACK).pos(Pos::new(HPos::Center, VPos::Bottom));
            area.draw(&Text::new(panel.title.clone(), (frame.left + PLOT.0 / 2, frame.top - 8), title))?;
            frame.curves(&area, panel, &labels)?;
        }
        for (at, label) in (0..).zip(published) {
            let y = below + at * LINE + LINE / 2 - 4;
            dashed(&area, &[(LEFT, y), (LEFT + 36, y)])?;
            let style = font(14).color(&GREY).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(label.to_owned(), (LEFT + 46, y), style))?;
        }
        area.present()
    }

    /// Returns the labels of measured curves; their order gives each its color in every panel.
    fn labels(&self) -> Vec<&str> {
        let curves = self.panels.iter().flat_map(|panel| &panel.curves).filter(|curve| !curve.published);
        let mut labels: Vec<&str> = Vec::new();
        for curve in curves {
            if !labels.contains(&curve.label.as_str()) {
                labels.push(&curve.label);
            }
        }
        labels
    }

    /// Returns the labels of published curves.
    fn published(&self) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for curve in self.panels.iter().flat_map(|panel| &panel.curves).filter(|curve| curve.published) {
            if !labels.contains(&curve.label.as_str()) {
                labels.push(&curve.label);
            }
        }
        labels
    }

    /// Returns the sizes that get labels, as far as there is space: those that were measured, and
    /// the last ones of published curves.
    fn sizes(&self, x: impl Fn(f64) -> i32) -> Vec<f64> {
        let curves = || self.panels.iter().flat_map(|panel| &panel.curves);
        let measured = curves().filter(|curve| !curve.published).flat_map(|curve| &curve.points);
        let ends = curves().filter(|curve| curve.published).flat_map(|curve| curve.points.last());
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

/// Returns one coordinate of all points of the panels that are asked for, without smaller ones than `least`.
fn values(
    panels: &[Panel],
    is_asked: impl Fn(&Panel) -> bool,
    value: impl Fn(&(f64, f64)) -> f64,
    least: f64,
) -> Vec<f64> {
    let curves = panels.iter().filter(|panel| is_asked(panel)).flat_map(|panel| &panel.curves);
    curves.flat_map(|curve| &curve.points).map(value).filter(|value| *value >= least).collect()
}

fn to_i32(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The start of a logarithmic axis: a nanosecond, one object, or a ratio of one. Smaller values are drawn
/// there.
const LEAST: f64 = 1.0;

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

    fn position(&self, point: &(f64, f64)) -> (i32, i32) {
        (self.x(point.0), self.y(point.1))
    }

    /// Draws the grid, the axes and their labels.
    fn axes(&self, area: &Area<'_>, chart: &Chart, axis: &Axis) -> DrawResult {
        let right = self.left + PLOT.0;
        let bottom = self.top + PLOT.1;
        for (cost, whole) in ticks(&self.costs) {
            let y = self.y(cost);
            line(area, &[(self.left, y), (right, y)], if whole { GRID } else { FAINT })?;
            // A range of less than a decade would have at most one label of a whole decade.
            if whole || self.costs.end / self.costs.start < 30.0 && is_labelled(cost) {
                let style = font(14).color(&BLACK).pos(Pos::new(HPos::Right, VPos::Center));
                area.draw(&Text::new(format_tick(axis.unit, cost), (self.left - 9, y), style))?;
            }
        }
        for size in chart.sizes(|size| self.x(size)) {
            let x = self.x(size);
            line(area, &[(x, self.top), (x, bottom)], GRID)?;
            line(area, &[(x, bottom), (x, bottom + 5)], BLACK)?;
            let style = font(14).color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
            let label = format!("{}", (size * 10.0).round() / 10.0);
            area.draw(&Text::new(label, (x, bottom + 9), style))?;
        }
        line(area, &[(self.left, self.top), (self.left, bottom), (right, bottom)], BLACK)?;
        let style = font(15).color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(chart.x_label.clone(), (self.left + PLOT.0 / 2, bottom + 32), style))?;
        let style = font(15).transform(FontTransform::Rotate270).color(&BLACK);
        let style = style.pos(Pos::new(HPos::Center, VPos::Top));
        let position = (self.left - LEFT + 8, self.top + PLOT.1 / 2);
        area.draw(&Text::new(axis.label.clone(), position, style))
    }

    fn curves(&self, area: &Area<'_>, panel: &Panel, labels: &[&str]) -> DrawResult {
        let mut ends = Vec::new();
        for curve in &panel.curves {
            let positions: Vec<(i32, i32)> = curve.points.iter().map(|point| self.position(point)).collect();
            if curve.published {
                dashed(area, &positions)?;
                continue;
            }
            let Some((_, y)) = positions.last() else { continue };
            let style_index = labels.iter().position(|label| *label == curve.label).unwrap_or(0);
            ends.push((*y, style_index));
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
            let style = font(15).color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(labels[style_index].to_owned(), (x + 26, y), style))?;
        }
        Ok(())
    }
}

impl Scale {
    /// Returns the position of a value on the axis, from 0 to 1.
    fn fraction(self, range: &Range<f64>, value: f64) -> f64 {
        match self {
            Self::Linear => (value - range.start) / (range.end - range.start),
            Self::Logarithmic => (value.max(LEAST) / range.start).ln() / (range.end / range.start).ln(),
        }
    }

    /// Returns the least value that the range of the axis includes.
    fn least(self) -> f64 {
        match self {
            Self::Linear => f64::MIN,
            Self::Logarithmic => LEAST,
        }
    }

    /// Adds a margin on both sides of a range.
    fn widen(self, range: &Range<f64>) -> Range<f64> {
        match self {
            Self::Linear => {
                let margin = (range.end - range.start) * 0.05;
                range.start - margin..range.end + margin
            }
            Self::Logarithmic => range.start / 1.2..range.end * 1.2,
        }
    }
}

/// Returns the range of the values; a single value gets a margin on both sides.
fn range(values: Vec<f64>) -> Range<f64> {
    let least = values.iter().copied().reduce(f64::min).unwrap_or(LEAST);
    let most = values.iter().copied().reduce(f64::max).unwrap_or(LEAST);
    if most > least { least..most } else { least / 2.0..most * 2.0 }
}

/// Extends a range to 1, 2 or 5 of a decade.
fn round_outwards(range: &Range<f64>) -> Range<f64> {
    let near = |value: f64| {
        let decade = 10f64.powf(value.log10().floor());
        [0.5, 1.0, 2.0, 5.0, 10.0, 20.0].map(|step| step * decade)
    };
    let low = near(range.start).into_iter().rev().find(|step| *step <= range.start * 0.95);
    let high = near(range.end).into_iter().find(|step| *step >= range.end * 1.05);
    low.unwrap_or(range.start)..high.unwrap_or(range.end)
}

/// Returns the grid values of a logarithmic axis, and whether each is a whole decade.
fn ticks(range: &Range<f64>) -> Vec<(f64, bool)> {
    let first = range.start.log10().floor() as i32;
    let last = range.end.log10().ceil() as i32;
    let all = (first..=last)
        .flat_map(|decade| (1..10).map(move |step| (f64::from(step) * 10f64.powi(decade), step == 1)));
    // Powers are not exact, so the bounds have a small tolerance.
    all.filter(|(value, _)| *value >= range.start * 0.999 && *value <= range.end * 1.001).collect()
}

fn is_labelled(cost: f64) -> bool {
    let step = cost / 10f64.powf((cost * 1.001).log10().floor());
    (step - 2.0).abs() < 0.1 || (step - 5.0).abs() < 0.1
}

/// Formats a round number of a unit: `100 ns`, `10 us`, `2 ms`; `5 ×`.
fn format_tick(unit: Unit, number: f64) -> String {
    let (value, unit) = match (unit, number * 1.001) {
        (Unit::Times, _) => (number, "×"),
        (Unit::Nanoseconds, ..1e3) => (number, "ns"),
        (Unit::Nanoseconds, ..1e6) => (number / 1e3, "us"),
        (Unit::Nanoseconds, ..1e9) => (number / 1e6, "ms"),
        (Unit::Nanoseconds, _) => (number / 1e9, "s"),
    };
    format!("{} {unit}", (value * 10.0).round() / 10.0)
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

fn font(size: i32) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, f64::from(size), FontStyle::Normal)
}

fn line(area: &Area<'_>, positions: &[(i32, i32)], color: RGBColor) -> DrawResult {
    area.draw(&PathElement::new(positions.to_vec(), color.stroke_width(1)))
}

/// Draws the line of a curve. After as many curves as there are colors, lines are dotted.
fn curve_line(area: &Area<'_>, positions: &[(i32, i32)], style_index: usize) -> DrawResult {
    let style = COLORS[style_index % COLORS.len()].stroke_width(2);
    if style_index < COLORS.len() {
        area.draw(&PathElement::new(positions.to_vec(), style))
    } else {
        area.draw(&DashedPathElement::new(positions.iter().copied(), 2, 4, style))
    }
}

fn dashed(area: &Area<'_>, positions: &[(i32, i32)]) -> DrawResult {
    area.draw(&DashedPathElement::new(positions.iter().copied(), 7, 5, GREY.stroke_width(2)))
}

/// Draws the mark of a point; each style has its own shape.
fn mark(area: &Area<'_>, (x, y): (i32, i32), style_index: usize) -> DrawResult {
    let color = COLORS[style_index % COLORS.len()];
    let full = color.filled();
    let hollow = WHITE.filled();
    let edge = color.stroke_width(2);
    let square = [(x - 4, y - 4), (x + 4, y + 4)];
    let around = |points: [(i32, i32); 4]| points.map(|(right, down)| (x + right, y + down));
    match style_index % COLORS.len() {
        0 => area.draw(&Circle::new((x, y), 5, full)),
        1 => area.draw(&Rectangle::new(square, full)),
        2 => area.draw(&TriangleMarker::new((x, y), 6, full)),
        3 => area.draw(&Polygon::new(around([(0, -6), (6, 0), (0, 6), (-6, 0)]), full)),
        4 => area.draw(&Cross::new((x, y), 4, edge)),
        5 => {
            area.draw(&Circle::new((x, y), 4, hollow))?;
            area.draw(&Circle::new((x, y), 4, edge))
        }
        6 => {
            area.draw(&Rectangle::new(square, hollow))?;
            area.draw(&Rectangle::new(square, edge))
        }
        _ => {
            area.draw(&PathElement::new(vec![(x - 5, y), (x + 5, y)], edge))?;
            area.draw(&PathElement::new(vec![(x, y - 5), (x, y + 5)], edge))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(label: &str, points: &[(f64, f64)]) -> Curve {
        Curve { label: label.to_owned(), points: points.to_vec(), published: false }
    }

    fn chart(curves: Vec<Curve>) -> Chart {
        Chart {
            title: "What one wait costs".to_owned(),
            subtitle: "minder on linux".to_owned(),
            x_label: "objects & more".to_owned(),
            x_scale: Scale::Logarithmic,
            columns: 2,
            panels: vec![Panel { title: String::new(), axis: cpu_time(), curves }],
        }
    }

    fn cpu_time() -> Axis {
        Axis { label: "CPU time of one wait".to_owned(), unit: Unit::Nanoseconds }
    }

    /// Fails unless every element is closed in order, and no text has an unescaped `<` or `&`.
    fn assert_well_formed(svg: &str) {
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
            "16384",
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
    fn scales_begin_at_0_and_end_at_1() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let range = 1.0..15.0;
            assert_eq!([1.0, 15.0].map(|value| scale.fraction(&range, value)), [0.0, 1.0]);
            let wide = scale.widen(&range);
            assert!(wide.start < 1.0 && wide.end > 15.0, "{wide:?}");
        }
        assert_eq!(Scale::Linear.fraction(&(1.0..15.0), 8.0), 0.5);
        let linear =
            Chart { x_scale: Scale::Linear, ..chart(vec![curve("one", &[(0.25, 50.0), (2.0, 60.0)])]) };
        let svg = linear.svg().expect("draw chart");
        assert_well_formed(&svg);
        // A size below 1 is on the axis.
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

    #[test]
    fn axes_end_at_round_values() {
        assert_eq!(round_outwards(&(310.0..7.2e6)), 200.0..1e7);
        assert_eq!(round_outwards(&(1000.0..2000.0)), 500.0..5000.0);
        assert_eq!(
            [100.0, 1000.0, 20e3, 1e6, 1e9].map(|ns| format_tick(Unit::Nanoseconds, ns)),
            ["100 ns", "1 us", "20 us", "1 ms", "1 s"]
        );
        let whole: Vec<f64> =
            ticks(&(200.0..1e4)).into_iter().filter(|tick| tick.1).map(|tick| tick.0).collect();
        assert_eq!(whole, [1e3, 1e4]);
    }
}

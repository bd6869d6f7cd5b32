//! A chart of time and of calls of the filter by number of bytes, from the rows of the question `sizes`.

use super::super::Bench;
use super::super::samples::CSV;
use super::super::svg::{self, count, text};
use super::in_units;
use super::kind::Kind;
use super::sizes::{KINDS, PREFIX};
use anyhow::{Context, Result, ensure};
use minder_bench::Spread;
use std::fmt::Write;

/// The panels: a number and its title.
const PANELS: [(&str, &str); 2] = [("wall_s", "wall time, seconds"), ("calls", "calls of the filter")];
/// The name of the file.
const NAME: &str = "emacs-sizes.svg";

/// Places and sizes, in pixels.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const TOP: f64 = 100.0;
const PANEL_WIDTH: f64 = 290.0;
const PANEL_HEIGHT: f64 = 250.0;
const LEFT: [f64; 2] = [60.0, 440.0];

/// Writes the chart if there are rows, beside them.
pub(super) fn write(bench: &Bench) -> Result<()> {
    let directory = bench.results();
    let Ok(rows) = std::fs::read_to_string(directory.join("emacs-sizes.csv")) else { return Ok(()) };
    svg::write(&directory.join(NAME), &draw(&rows).context("emacs-sizes.csv")?)
}

/// A number of a kind for a size, over the rounds.
struct Point {
    kind: Kind,
    size: f64,
    value: Spread,
}

/// Reads the points of a panel, by kind and size.
fn points(rows: &str, name: &str) -> Result<Vec<Point>> {
    let mut lines = rows.lines();
    ensure!(lines.next() == Some(CSV), "other columns than {CSV}");
    let wanted = format!("{PREFIX}{name}");
    let mut values: Vec<(Kind, f64, f64)> = Vec::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let [kind, size, _, name, value] = fields[..] else { continue };
        if name == wanted
            && let Some(kind) = Kind::named(kind)
        {
            let number = |text: &str| text.parse().with_context(|| format!("the row `{line}`"));
            values.push((kind, number(size)?, number(value)?));
        }
    }
    let mut sizes: Vec<f64> = values.iter().map(|(_, size, _)| *size).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let mut points = Vec::new();
    for kind in KINDS {
        for size in &sizes {
            let own = values.iter().filter(|row| row.0 == kind && row.1.total_cmp(size).is_eq());
            let value = Spread::of(own.map(|row| row.2));
            points.extend(value.map(|value| Point { kind, size: *size, value }));
        }
    }
    Ok(points)
}

/// A logarithmic scale from the values to pixels.
#[derive(Clone, Copy)]
struct Scale {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        let share = (value / self.least).ln() / (self.most / self.least).ln();
        self.from + share * (self.to - self.from)
    }
}

fn draw(rows: &str) -> Result<String> {
    let mut svg = svg::begin((WIDTH, HEIGHT));
    text(&mut svg, (16.0, 26.0), 17, "start", "Emacs: four short lines, then bulk output of a child")?;
    let subtitle = "pseudo-terminal, trivial filter; median, with minimum and maximum of the rounds; both \
                    axes are logarithmic";
    text(&mut svg, (16.0, 46.0), 11, "start", subtitle)?;
    for (place, kind) in KINDS.into_iter().enumerate() {
        let x = 16.0 + count(place) * 170.0;
        let color = kind.color();
        writeln!(svg, "<rect x=\"{x}\" y=\"58\" width=\"14\" height=\"10\" fill=\"{color}\"/>")?;
        text(&mut svg, (x + 20.0, 67.0), 11, "start", kind.title())?;
    }
    for ((name, title), left) in PANELS.into_iter().zip(LEFT) {
        draw_panel(&mut svg, left, title, &points(rows, name)?)?;
    }
    Ok(svg::end(svg))
}

fn draw_panel(svg: &mut String, left: f64, title: &str, points: &[Point]) -> Result<()> {
    let bottom = TOP + PANEL_HEIGHT;
    text(svg, (left, TOP - 10.0), 12, "start", title)?;
    let extremes = |of: fn(&Point) -> [f64; 2]| {
        let all = points.iter().flat_map(of);
        all.fold((f64::MAX, f64::MIN_POSITIVE), |(least, most), value| (least.min(value), most.max(value)))
    };
    let (first, last) = extremes(|point| [point.size; 2]);
    let (least, most) = extremes(|point| [point.value.min, point.value.max]);
    if points.is_empty() || first >= last || least <= 0.0 {
        return Ok(());
    }
    let across = Scale { least: first, most: last, from: left, to: left + PANEL_WIDTH };
    // Whole powers of ten.
    let [low, high] = [least.log10().floor(), most.log10().ceil().max(least.log10().floor() + 1.0)];
    let up = Scale { least: 10f64.powf(low), most: 10f64.powf(high), from: bottom, to: TOP };
    let mut power = low;
    while power <= high {
        let value = 10f64.powf(power);
        grid(svg, [left, left + PANEL_WIDTH], [up.place(value); 2])?;
        text(svg, (left - 6.0, up.place(value) + 4.0), 11, "end", &value.to_string())?;
        power += 1.0;
    }
    for point in points.iter().filter(|point| point.kind == points[0].kind) {
        let x = across.place(point.size);
        grid(svg, [x; 2], [TOP, bottom])?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of bytes")]
        text(svg, (x, bottom + 16.0), 11, "middle", &in_units(point.size as usize))?;
    }
    for kind in KINDS {
        draw_line(svg, kind, points.iter().filter(|point| point.kind == kind), (across, up))?;
    }
    Ok(())
}

/// Draws the line of a kind, with the extremes of each point.
fn draw_line<'a>(
    svg: &mut String,
    kind: Kind,
    points: impl Iterator<Item = &'a Point>,
    (across, up): (Scale, Scale),
) -> Result<()> {
    let color = kind.color();
    let mut line = String::new();
    for Point { size, value, .. } in points {
        let x = across.place(*size);
        let y = up.place(value.median);
        write!(line, "{x:.1},{y:.1} ")?;
        let [from, to] = [value.min, value.max].map(|value| up.place(value));
        writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from:.1}\" y2=\"{to:.1}\" \
             stroke=\"{color}\"/>\n\
             <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>"
        )?;
    }
    let line = line.trim_end();
    writeln!(svg, "<polyline points=\"{line}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>")?;
    Ok(())
}

fn grid(svg: &mut String, [x1, x2]: [f64; 2], [y1, y2]: [f64; 2]) -> Result<()> {
    writeln!(
        svg,
        "<line x1=\"{x1:.1}\" x2=\"{x2:.1}\" y1=\"{y1:.1}\" y2=\"{y2:.1}\" \
         stroke=\"#dddddd\"/>"
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "contestant,size,round,name,value\nstock,65536,1,pty_wall_s,1\n\
                        stock,1048576,1,pty_wall_s,10\nnative,65536,1,pty_wall_s,0.1\n\
                        native,65536,2,pty_wall_s,0.3\nstock,65536,1,pty_cpu_s,7\n\
                        stock,65536,1,pty_calls,20\n";

    #[test]
    fn points_are_medians_over_the_rounds() {
        let points = points(ROWS, "wall_s").unwrap();
        let medians: Vec<_> = points.iter().map(|point| point.value.median).collect();
        assert_eq!(medians, [1.0, 10.0, 0.2]);
        assert!(self::points("contestant,value\n", "wall_s").is_err());
    }

    #[test]
    fn axes_have_powers_of_ten_and_sizes() {
        let svg = draw(ROWS).unwrap();
        for label in [">0.1</text>", ">1</text>", ">10</text>", ">64 KiB</text>", ">1 MiB</text>"] {
            assert!(svg.contains(label), "{label}: {svg}");
        }
        // The smallest and the largest value are in the corners.
        assert!(svg.contains("60.0,266.7 350.0,100.0") || svg.contains("350.0,100.0\""), "{svg}");
    }
}

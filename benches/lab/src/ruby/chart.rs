//! A chart of the processor time of a request, from the rows of the questions about HTTP.

use super::super::Bench;
use super::super::samples::CSV;
use super::super::svg::{self, count, text};
use super::contestant::Contestant;
use anyhow::{Context, Result};
use minder_bench::Spread;
use std::fmt::Write;

/// The questions with such rows, and their titles.
const PANELS: [(&str, &str); 3] = [
    ("keep-alive", "64 connections that stay open"),
    ("idle", "1,000 idle connections and 16 active ones"),
    ("close", "a connection for each request"),
];
/// The name of the file.
const NAME: &str = "ruby-requests.svg";

/// Widths and heights, in pixels.
const NAMES: f64 = 250.0;
const BARS: f64 = 400.0;
const WIDTH: f64 = 720.0;
const LINE: f64 = 19.0;
const BAR: f64 = 13.0;
const HEAD: f64 = 58.0;
const PANEL_HEAD: f64 = 34.0;

/// Writes the chart of the rows that are there, beside them. Without rows there is no chart.
pub(super) fn write(bench: &Bench) -> Result<()> {
    let directory = bench.results();
    let mut panels = Vec::new();
    for (name, title) in PANELS {
        if let Ok(rows) = std::fs::read_to_string(directory.join(format!("ruby-{name}.csv"))) {
            panels.push((title, bars(&rows).with_context(|| format!("ruby-{name}.csv"))?));
        }
    }
    if !panels.is_empty() {
        svg::write(&directory.join(NAME), &draw(&panels)?)?;
    }
    Ok(())
}

/// A bar of a panel.
#[derive(Debug)]
struct Bar {
    who: Contestant,
    micros: Spread,
}

/// Reads the processor time of a request of each server, in the order of the rows of the first round.
fn bars(rows: &str) -> Result<Vec<Bar>> {
    let mut lines = rows.lines();
    anyhow::ensure!(lines.next() == Some(CSV), "other columns than {CSV}");
    let mut values: Vec<(&str, Vec<f64>)> = Vec::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let [name, _, _, "cpu_us", value] = fields[..] else { continue };
        let value = value.parse().with_context(|| format!("the row `{line}`"))?;
        match values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, list)) => list.push(value),
            None => values.push((name, vec![value])),
        }
    }
    let bar =
        |(name, list): (&str, Vec<f64>)| Some(Bar { who: Contestant::new(name), micros: Spread::of(list)? });
    Ok(values.into_iter().filter_map(bar).collect())
}

/// Draws a panel below the other, each with its own scale.
fn draw(panels: &[(&str, Vec<Bar>)]) -> Result<String> {
    let lines: usize = panels.iter().map(|(_, bars)| bars.len()).sum();
    let height = HEAD + count(panels.len()) * PANEL_HEAD + count(lines) * LINE + 16.0;
    let mut svg = svg::begin((WIDTH, height));
    text(&mut svg, (16.0, 26.0), 17, "start", "HTTP server in Ruby: processor time of a request")?;
    let subtitle = "microseconds of the server, median; lines: minimum and maximum of the rounds";
    text(&mut svg, (16.0, 46.0), 11, "start", subtitle)?;
    let mut top = HEAD;
    for (title, bars) in panels {
        text(&mut svg, (16.0, top + 22.0), 13, "start", title)?;
        top += PANEL_HEAD;
        let longest = bars.iter().map(|bar| bar.micros.max).fold(f64::MIN_POSITIVE, f64::max);
        for bar in bars {
            draw_bar(&mut svg, top, bar, BARS / longest)?;
            top += LINE;
        }
    }
    Ok(svg::end(svg))
}

fn draw_bar(svg: &mut String, top: f64, bar: &Bar, scale: f64) -> Result<()> {
    let Spread { median, min, max, .. } = bar.micros;
    let color = match bar.who.mode() {
        "minder" => "#0072b2",
        "c" => "#6e6e6e",
        _ => "#e69f00",
    };
    let middle = top + BAR / 2.0;
    text(svg, (NAMES - 8.0, middle + 4.0), 11, "end", &bar.who.title())?;
    let width = median * scale;
    writeln!(
        svg,
        "<rect x=\"{NAMES}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{color}\"/>"
    )?;
    let [from, to] = [min, max].map(|micros| NAMES + micros * scale);
    writeln!(
        svg,
        "<line x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle}\" y2=\"{middle}\" stroke=\"#000000\"/>"
    )?;
    text(svg, (to + 6.0, middle + 4.0), 11, "start", &format!("{median:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "contestant,size,round,name,value\nc,0,1,cpu_us,4\nminder:epoll,0,1,cpu_us,6\n\
                        c,0,1,rate,100\nc,0,2,cpu_us,5\n";

    #[test]
    fn bars_are_medians_over_the_rounds() {
        let bars = bars(ROWS).unwrap();
        assert_eq!(bars.iter().map(|bar| bar.micros.median).collect::<Vec<_>>(), [4.5, 6.0]);
        assert!(self::bars("contestant,value\n").is_err());
    }

    #[test]
    fn each_bar_has_a_name_and_a_value() {
        let svg = draw(&[("a & b", bars(ROWS).unwrap())]).unwrap();
        assert!(svg.contains(">minder (epoll)</text>") && svg.contains(">6.0</text>"), "{svg}");
        assert!(svg.contains("a &amp; b") && svg.ends_with("</svg>\n"), "{svg}");
        // The longest bar has the full width.
        assert!(svg.contains("width=\"400.0\""), "{svg}");
    }
}

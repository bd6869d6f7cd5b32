//! Parts of charts in SVG.

use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::Path;

/// Returns the begin of a chart of this width and height, in pixels.
pub(super) fn begin((width, height): (f64, f64)) -> String {
    format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    )
}

/// Returns the whole chart.
pub(super) fn end(mut svg: String) -> String {
    svg.push_str("</svg>\n");
    svg
}

/// Writes a chart into a file, and prints its path.
pub(super) fn write(file: &Path, svg: &str) -> Result<()> {
    std::fs::write(file, svg).with_context(|| file.display().to_string())?;
    eprintln!("bench: {}", file.strip_prefix(xtask::tree::root()).unwrap_or(file).display());
    Ok(())
}

/// Adds a line of text; `anchor` is the place of the point in it.
pub(super) fn text(
    svg: &mut String,
    (x, y): (f64, f64),
    size: usize,
    anchor: &str,
    text: &str,
) -> Result<()> {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\">{text}</text>"
    )?;
    Ok(())
}

/// Returns a number of lines.
#[expect(clippy::cast_precision_loss, reason = "a number of lines")]
pub(super) fn count(number: usize) -> f64 {
    number as f64
}

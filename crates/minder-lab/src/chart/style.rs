//! Colors, marks, fonts, and the page with its title.

use anyhow::{Result, anyhow};
use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

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
pub(super) const GREY: RGBColor = RGBColor(110, 110, 110);
pub(super) const LIGHT_GREY: RGBColor = RGBColor(190, 190, 190);
pub(super) const GRID: RGBColor = RGBColor(222, 222, 222);
pub(super) const FAINT: RGBColor = RGBColor(241, 241, 241);

/// The height of a line of text, and the width of a letter.
pub(super) const LINE: i32 = 19;
pub(super) const LETTER: i32 = 8;
/// The space above everything else, with a subtitle of one line.
const HEAD: i32 = 62;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type DrawResult =
    std::result::Result<(), DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>>;

/// The text above a chart.
pub(super) struct Heading<'a> {
    pub(super) title: &'a str,
    pub(super) subtitle: &'a str,
    pub(super) left: i32,
}

impl Heading<'_> {
    /// Returns the height.
    pub(super) fn height(&self) -> i32 {
        HEAD + LINE * to_i32(self.subtitle.lines().count().saturating_sub(1))
    }

    /// Returns a page of this width and height, in pixels, as SVG.
    ///
    /// # Errors
    /// Those of plotters, which has none for text in memory.
    pub(super) fn page(
        &self,
        (width, height): (i32, i32),
        draw: impl FnOnce(&Area<'_>) -> DrawResult,
    ) -> Result<String> {
        let mut svg = String::new();
        let size = (width.cast_unsigned(), height.cast_unsigned());
        let drawn = self.draw(&SVGBackend::with_string(&mut svg, size).into_drawing_area(), draw);
        drawn.map_err(|error| anyhow!("cannot draw the chart: {error}"))?;
        Ok(svg)
    }

    fn draw(&self, area: &Area<'_>, draw: impl FnOnce(&Area<'_>) -> DrawResult) -> DrawResult {
        area.fill(&WHITE)?;
        text(area, self.title, (self.left, 12), font(21), (HPos::Left, VPos::Top))?;
        for (at, line) in (0..).zip(self.subtitle.lines()) {
            let style = font(14).color(&GREY);
            area.draw(&Text::new(line.to_owned(), (self.left, 40 + LINE * at), style))?;
        }
        draw(area)?;
        area.present()
    }
}

pub(super) fn to_i32(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(super) fn font(size: i32) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, f64::from(size), FontStyle::Normal)
}

/// Draws black text; the anchor is the place of the position in it.
pub(super) fn text(
    area: &Area<'_>,
    text: &str,
    position: (i32, i32),
    font: FontDesc<'static>,
    (across, down): (HPos, VPos),
) -> DrawResult {
    area.draw(&Text::new(text.to_owned(), position, font.color(&BLACK).pos(Pos::new(across, down))))
}

pub(super) fn line(area: &Area<'_>, positions: &[(i32, i32)], color: RGBColor) -> DrawResult {
    area.draw(&PathElement::new(positions.to_vec(), color.stroke_width(1)))
}

/// Returns the color of a curve.
pub(super) fn color(style_index: usize) -> RGBColor {
    COLORS[style_index % COLORS.len()]
}

/// Draws the line of a curve. After as many curves as there are colors, lines are dotted.
pub(super) fn curve_line(area: &Area<'_>, positions: &[(i32, i32)], style_index: usize) -> DrawResult {
    let style = color(style_index).stroke_width(2);
    if style_index < COLORS.len() {
        area.draw(&PathElement::new(positions.to_vec(), style))
    } else {
        area.draw(&DashedPathElement::new(positions.iter().copied(), 2, 4, style))
    }
}

pub(super) fn dashed(area: &Area<'_>, positions: &[(i32, i32)]) -> DrawResult {
    area.draw(&DashedPathElement::new(positions.iter().copied(), 7, 5, GREY.stroke_width(2)))
}

/// Draws the mark of a point; each style has its own shape.
pub(super) fn mark(area: &Area<'_>, (x, y): (i32, i32), style_index: usize) -> DrawResult {
    let color = color(style_index);
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

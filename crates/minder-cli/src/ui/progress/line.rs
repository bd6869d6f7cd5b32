//! What a picture of the run says, and how it is made to fit.

use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use crate::ui::color::Palette;
use crate::ui::table::{escape, shorten};
use minder_runner::{RunningSnapshot, Snapshot};

/// How wide the graph is.
const GRAPH_MIN: usize = 10;
const GRAPH_MAX: usize = 30;
/// Jobs that have a line of their own.
const JOBS_MAX: usize = 5;
const BETWEEN: &str = " · ";
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How a line is to look.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLayout {
    /// Columns that it may take; without a terminal it takes what it needs.
    pub(super) width: Option<usize>,
    pub(super) graph: bool,
    /// How many pictures there were.
    pub(super) turn: Option<usize>,
    pub(super) paint: Palette,
}

/// How long the rest takes, and when on the clock that is over, as far as either is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Eta {
    pub(super) left: Option<Duration>,
    pub(super) ends: Option<String>,
}

/// The rank of the percentage, without which a graph says little.
const PERCENT: u8 = 5;

/// How a part of a line is painted.
type Colour = fn(Palette, &str) -> String;

/// A part of a line. What matters least goes first where there is no room: that of the highest
/// rank.
struct Part {
    rank: u8,
    text: String,
    colour: Colour,
}

/// The line that says how far the run is.
pub(super) fn first(view: &Snapshot, rest: &Eta, look: &LineLayout) -> String {
    let spinner = look.turn.map_or_else(String::new, |turn| format!("{} ", SPINNER[turn % SPINNER.len()]));
    let mut parts = parts(view, rest, look.graph);
    let wide = |parts: &[Part]| {
        let texts = parts.iter().map(|part| part.text.width()).sum::<usize>();
        spinner.width() + texts + BETWEEN.width() * parts.len().saturating_sub(1)
    };
    let width = look.width.unwrap_or(usize::MAX);
    while wide(&parts) > width && parts.len() > 1 {
        let least = parts.iter().enumerate().max_by_key(|(_, part)| part.rank).map_or(0, |(place, _)| place);
        parts.remove(least);
    }
    let room = width.saturating_sub(wide(&parts));
    let painted = |part: &Part| (part.colour)(look.paint, &part.text);
    let texts: Vec<String> = parts.iter().map(painted).collect();
    if wide(&parts) > width {
        return shorten(&format!("{spinner}{}", parts[0].text), width);
    }
    let with_percent = parts[0].rank == PERCENT;
    match share(view).filter(|_| with_percent && look.width.is_some() && room > GRAPH_MIN) {
        Some(share) => {
            let graph = graph(share, (room - 1).min(GRAPH_MAX), look.paint);
            format!("{spinner}{graph} {}", texts.join(BETWEEN))
        }
        None => format!("{spinner}{}", texts.join(BETWEEN)),
    }
}

fn parts(view: &Snapshot, rest: &Eta, percent: bool) -> Vec<Part> {
    let (done, plain): (u64, Colour) = (view.finished(), |_, text| text.to_owned());
    let part = |rank, text, colour| Part { rank, text, colour };
    let of = view.known_total().map_or_else(String::new, |total| format!("/{total}"));
    let mut parts = Vec::new();
    if let Some(share) = share(view).filter(|_| percent) {
        parts.push(part(PERCENT, format!("{:>2} %", (share * 100.0).floor()), plain));
    }
    parts.push(part(0, format!("{done}{of} done"), plain));
    parts.push(part(7, format!("{} running", view.counts.running), plain));
    let failed = view.counts.failed;
    let (rank, colour): (u8, Colour) = if failed > 0 { (1, Palette::failed) } else { (8, plain) };
    parts.push(part(rank, format!("{failed} failed"), colour));
    if let Some(why) = &view.paused {
        parts.push(part(3, format!("waiting: {}", escape(why.as_bytes())), Palette::notable));
    }
    parts.push(part(9, coarse(view.elapsed), Palette::faint));
    if let Some(left) = rest.left {
        parts.push(part(4, format!("about {} left", until(left)), plain));
    }
    if let Some(ends) = &rest.ends {
        parts.push(part(6, format!("ends {ends}"), plain));
    }
    parts
}

/// The part of all jobs that is done.
fn share(view: &Snapshot) -> Option<f64> {
    let total = view.known_total().filter(|total| *total > 0)?;
    Some((view.finished() as f64 / total as f64).min(1.0))
}

fn graph(share: f64, width: usize, paint: Palette) -> String {
    // Full only when it is.
    let full = ((share * width as f64) as usize).min(width);
    paint.done(&"━".repeat(full)) + &paint.faint(&"─".repeat(width - full))
}

/// A line for each of the oldest jobs, at most so many.
pub(super) fn jobs(view: &Snapshot, most: usize, look: &LineLayout) -> Vec<String> {
    let shown = &view.running[..view.running.len().min(most).min(JOBS_MAX)];
    let ages: Vec<String> = shown.iter().map(|job| coarse(job.age)).collect();
    let wide = ages.iter().map(|age| age.width()).max().unwrap_or(0);
    let line = |(place, (job, said)): (usize, (&RunningSnapshot, &String))| {
        let slowest = place == 0 && shown.len() > 1 && view.median.is_some_and(|median| job.age > median);
        let mark = if slowest { "  slowest" } else { "" };
        let (begin, name) = (format!("  {said:>wide$}  "), escape(job.name.as_bytes()));
        let Some(width) = look.width else { return format!("{begin}{name}{mark}") };
        let room = width.saturating_sub(begin.width());
        // The name is worth more than the mark.
        let (mark, room) = if room > 2 * mark.width() { (mark, room - mark.width()) } else { ("", room) };
        if room < 2 {
            return shorten(begin.trim_end(), width);
        }
        format!("{begin}{}{}", look.paint.name(&shorten(&name, room)), look.paint.notable(mark))
    };
    shown.iter().zip(&ages).enumerate().map(line).collect()
}

/// A time that goes by, as a glance takes it in: `12 s`, `4 min 7 s`, `34 min`, `2 h 5 min`, `3 d 4
/// h`.
pub(super) fn coarse(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: u64, unit, small: u64, units| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {units}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..600 => two(minutes, "min", seconds % 60, "s"),
        600..3600 => format!("{minutes} min"),
        3600..172_800 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

/// A time to come: never nothing, and no more exact than it can be.
fn until(left: Duration) -> String {
    let seconds = left.as_secs_f64().ceil().max(1.0);
    let seconds = if seconds > 120.0 { (seconds / 5.0).ceil() * 5.0 } else { seconds };
    coarse(Duration::from_secs(seconds as u64))
}

/// A time that a job took: `42 ms`, `3.1 s`, `12 s`.
pub(crate) fn rough(time: Duration) -> String {
    match time.as_millis() {
        0..1000 => format!("{} ms", time.as_millis()),
        1000..9950 => format!("{:.1} s", time.as_secs_f64()),
        _ => coarse(time),
    }
}

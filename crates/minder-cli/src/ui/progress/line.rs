//! Formats the lines of the progress display, and shortens them to the width of the terminal.

use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use minder_runner::{RunningSnapshot, Snapshot};
use minder_ui::color::Palette;
use minder_ui::symbols::Symbols;
use minder_ui::table::escape;

/// The bounds of the width of the bar, in columns.
const BAR_MIN: usize = 10;
const BAR_MAX: usize = 30;
/// The maximum number of jobs that are shown, one per line.
const JOBS_MAX: usize = 5;
/// The frames of the spinner.
const SPINNER: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
const ASCII_SPINNER: &str = r"|/-\";

/// The layout of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLayout {
    /// The number of columns of the terminal; `None` if the line may have any length.
    pub(super) width: Option<usize>,
    /// `true` if the bar is shown.
    pub(super) bar: bool,
    /// The number of frames drawn before, which selects the frame of the spinner; `None` for no
    /// spinner.
    pub(super) frame: Option<usize>,
    pub(super) palette: Palette,
    pub(super) symbols: Symbols,
}

/// The estimated end of the run, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Eta {
    /// The time until the end.
    pub(super) left: Option<Duration>,
    /// The local time of the end.
    pub(super) ends: Option<String>,
}

/// The rank of the percentage. The bar is shown only together with it.
const PERCENT: u8 = 5;

/// A function that colors a part of a line.
type Color = fn(Palette, &str) -> String;

/// A part of a line. If the line is too long, the parts with the highest ranks are dropped first.
struct Part {
    rank: u8,
    text: String,
    color: Color,
}

/// Returns the line with the state of the whole run.
pub(super) fn first(snapshot: &Snapshot, eta: &Eta, layout: &LineLayout) -> String {
    let LineLayout { palette, symbols, .. } = *layout;
    let separator = symbols.pick(" · ", ", ");
    let frames = symbols.pick(SPINNER, ASCII_SPINNER);
    let spinner = layout.frame.and_then(|frame| frames.chars().cycle().nth(frame % frames.chars().count()));
    let spinner = spinner.map_or_else(String::new, |symbol| format!("{symbol} "));
    let mut parts = parts(snapshot, eta, layout.bar);
    let line_width = |parts: &[Part]| {
        let texts = parts.iter().map(|part| part.text.width()).sum::<usize>();
        spinner.width() + texts + separator.width() * parts.len().saturating_sub(1)
    };
    let width = layout.width.unwrap_or(usize::MAX);
    while line_width(&parts) > width && parts.len() > 1 {
        let last = parts.iter().enumerate().max_by_key(|(_, part)| part.rank).map_or(0, |(index, _)| index);
        parts.remove(last);
    }
    let room = width.saturating_sub(line_width(&parts));
    let painted = |part: &Part| (part.color)(palette, &part.text);
    let texts: Vec<String> = parts.iter().map(painted).collect();
    if line_width(&parts) > width {
        return symbols.shorten(&format!("{spinner}{}", parts[0].text), width);
    }
    let has_percent = parts[0].rank == PERCENT;
    let text = texts.join(separator);
    if has_percent
        && layout.width.is_some()
        && room > BAR_MIN
        && let Some(fraction) = fraction(snapshot)
    {
        let bar = bar(fraction, (room - 1).min(BAR_MAX), layout);
        format!("{spinner}{bar} {text}")
    } else {
        format!("{spinner}{text}")
    }
}

fn parts(snapshot: &Snapshot, eta: &Eta, percent: bool) -> Vec<Part> {
    let plain: Color = |_, text| text.to_owned();
    let part = |rank, text, color| Part { rank, text, color };
    let done = snapshot.finished();
    let total = snapshot.known_total().map_or_else(String::new, |total| format!("/{total}"));
    let mut parts = Vec::new();
    if percent && let Some(fraction) = fraction(snapshot) {
        parts.push(part(PERCENT, format!("{:>2} %", (fraction * 100.0).floor()), plain));
    }
    parts.push(part(0, format!("{done}{total} done"), plain));
    parts.push(part(7, format!("{} running", snapshot.counts.running), plain));
    let failed = snapshot.counts.failed;
    let text = format!("{failed} failed");
    parts.push(if failed > 0 { part(1, text, Palette::failed) } else { part(8, text, plain) });
    if let Some(why) = &snapshot.paused {
        parts.push(part(3, format!("waiting: {}", escape(why.as_bytes())), Palette::notable));
    }
    parts.push(part(9, coarse(snapshot.elapsed), Palette::faint));
    if let Some(left) = eta.left {
        parts.push(part(4, format!("about {} left", until(left)), plain));
    }
    if let Some(ends) = &eta.ends {
        parts.push(part(6, format!("ends {ends}"), plain));
    }
    parts
}

/// Returns the fraction of all jobs that is done.
fn fraction(snapshot: &Snapshot) -> Option<f64> {
    let total = snapshot.known_total().filter(|total| *total > 0)?;
    Some((snapshot.finished() as f64 / total as f64).min(1.0))
}

fn bar(fraction: f64, width: usize, LineLayout { palette, symbols, .. }: &LineLayout) -> String {
    // Rounded down, so that the bar is full only at the end.
    let full = ((fraction * width as f64) as usize).min(width);
    let [done, rest] = symbols.pick(["━", "─"], ["#", "-"]);
    palette.done(&done.repeat(full)) + &palette.faint(&rest.repeat(width - full))
}

/// Returns a line for each of the oldest jobs, at most `most` lines.
pub(super) fn jobs(snapshot: &Snapshot, most: usize, layout: &LineLayout) -> Vec<String> {
    let running = usize::try_from(snapshot.counts.running).unwrap_or(usize::MAX);
    // The line with the number of the others takes a row, too, unless there is only one.
    let jobs_max = if running > most && most > 1 { most - 1 } else { most };
    let shown = &snapshot.running[..snapshot.running.len().min(jobs_max).min(JOBS_MAX)];
    let ages: Vec<String> = shown.iter().map(|job| coarse(job.age)).collect();
    let age_width = ages.iter().map(|age| age.width()).max().unwrap_or(0);
    let line = |(index, (job, age)): (usize, (&RunningSnapshot, &String))| {
        let slowest = index == 0 && shown.len() > 1 && snapshot.median.is_some_and(|median| job.age > median);
        let mut mark = if slowest { "  slowest" } else { "" };
        let begin = format!("  {age:>age_width$}  ");
        let name = escape(job.name.as_bytes());
        let name = layout.symbols.convert(&name);
        let Some(width) = layout.width else { return format!("{begin}{name}{mark}") };
        let mut room = width.saturating_sub(begin.width());
        // If space is short, the name is more important than the mark.
        if room > 2 * mark.width() {
            room -= mark.width();
        } else {
            mark = "";
        }
        if room < 2 {
            return layout.symbols.shorten(begin.trim_end(), width);
        }
        let name = layout.symbols.shorten(&name, room);
        format!("{begin}{}{}", layout.palette.name(&name), layout.palette.notable(mark))
    };
    let more = (running > shown.len() && most > shown.len() && !shown.is_empty())
        .then(|| format!("  and {} more", running - shown.len()))
        .map(|more| layout.width.map_or_else(|| more.clone(), |width| layout.symbols.shorten(&more, width)));
    shown.iter().zip(&ages).enumerate().map(line).chain(more).collect()
}

/// Formats a duration with at most two units: `12 s`, `4 min 7 s`, `34 min`, `3 d 4 h`.
pub(super) fn coarse(time: Duration) -> String {
    let seconds = time.as_secs();
    let minutes = seconds / 60;
    let hours = seconds / 3600;
    let days = seconds / 86_400;
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

/// Formats an estimated duration: at least 1 s, and beyond two minutes a multiple of 5 s.
fn until(left: Duration) -> String {
    let seconds = left.as_secs_f64().ceil().max(1.0);
    let seconds = if seconds > 120.0 { (seconds / 5.0).ceil() * 5.0 } else { seconds };
    coarse(Duration::from_secs(seconds as u64))
}

/// Formats the duration of a job: `42 ms`, `3.1 s`, `12 s`.
pub(crate) fn rough(time: Duration) -> String {
    match time.as_millis() {
        0..1000 => format!("{} ms", time.as_millis()),
        1000..9950 => format!("{:.1} s", time.as_secs_f64()),
        _ => coarse(time),
    }
}

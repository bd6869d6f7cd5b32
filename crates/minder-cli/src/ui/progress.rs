//! The progress display, on stderr. On a terminal it is a few lines below the output. They are
//! redrawn, and erased while job output is written. In a file or a pipe it is one plain line every
//! 30 s, so that a log shows that the run is alive.
//!
//! A [`Snapshot`] is taken only when the display is drawn, at most ten times a second.

mod estimate;
mod line;
mod slow;
#[cfg(test)]
mod tests;

pub(crate) use line::rough;
pub(crate) use slow::SlowJobs;

use std::fmt;
use std::io::{Write, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use minder_runner::Snapshot;

use self::estimate::{Estimate, Sample};
use self::line::{Eta, LineLayout};
use super::message::{message, stderr_is_writable};
use crate::ui::color::{Palette, can_draw};
use crate::ui::format::local_zone;

/// The interval between two drawings on a terminal.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);
/// The interval between two samples of the run if stderr is not a terminal.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between two lines if stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(30);
/// The minimum time between a drawing and the next one that follows output. If output arrives
/// faster, the display is drawn at the next [`DRAW_INTERVAL`].
const REDRAW_DELAY: Duration = Duration::from_millis(2);
/// How long an incomplete line of output postpones the display.
const INCOMPLETE_LINE_MAX: Duration = Duration::from_millis(500);
/// If less time is left, the time of the end includes seconds.
const SECONDS_MAX: Duration = Duration::from_secs(600);
/// If less time is left, the time of the end has a day of the week instead of a date.
const WEEKDAY_MAX: Duration = Duration::from_secs(6 * 86_400);
/// The assumed size of a terminal that does not report its size.
const SIZE: (usize, usize) = (80, 24);

/// The parts of the display that flags request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgressOptions {
    /// A bar with the fraction of jobs that is done.
    pub(crate) bar: bool,
    /// The local time of the estimated end.
    pub(crate) eta: bool,
    /// The jobs that have been running the longest.
    pub(crate) jobs: bool,
}

/// The progress display; without options it does nothing. Clones share one display.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    options: ProgressOptions,
    palette: Palette,
    /// When [`Progress::draw`] has something to do next, in nanoseconds since the start of the run.
    /// Only the main thread uses it, so it needs no lock.
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sink: Box<dyn Sink>,
    estimate: Estimate,
    /// When the last plain line was written.
    line_at: Duration,
    /// The number of frames so far.
    frames: usize,
    /// The lines of the last frame; empty before the first one and after [`Progress::clear`].
    lines: Vec<String>,
    /// The number of lines of the display that are on the screen now.
    drawn: usize,
    drawn_at: Option<Instant>,
    /// Since when the last line of output is incomplete.
    incomplete_since: Option<Instant>,
}

/// The target of the display.
trait Sink: fmt::Debug + Send {
    /// Returns the columns and rows of a terminal.
    fn size(&self) -> Option<(usize, usize)>;
    /// Returns `true` if a write would not block.
    fn is_ready(&self) -> bool;
    /// Writes the text. Errors are ignored.
    fn write(&mut self, text: &str);
}

/// A terminal on standard error.
#[derive(Debug)]
struct Terminal;

impl Sink for Terminal {
    fn size(&self) -> Option<(usize, usize)> {
        let size = terminal_size::terminal_size_of(stderr());
        Some(size.map_or(SIZE, |(width, height)| (width.0.into(), height.0.into())))
    }

    fn is_ready(&self) -> bool {
        stderr_is_writable().unwrap_or(true)
    }

    fn write(&mut self, text: &str) {
        let _ = stderr().write_all(text.as_bytes());
    }
}

/// Standard error that is a file, a pipe, or a terminal that jobs write to.
#[derive(Debug)]
struct Log;

impl Sink for Log {
    fn size(&self) -> Option<(usize, usize)> {
        None
    }

    fn is_ready(&self) -> bool {
        stderr_is_writable().unwrap_or(true)
    }

    fn write(&mut self, text: &str) {
        message(text);
    }
}

impl Progress {
    /// Returns `true` if the display shows anything at all.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Creates a display on stderr. It consists of plain lines, as in a log, if jobs write to the
    /// terminal directly (`may_draw` is `false`).
    pub(crate) fn new(options: ProgressOptions, palette: Palette, may_draw: bool) -> Self {
        let sink: Box<dyn Sink> = if may_draw && can_draw() { Box::new(Terminal) } else { Box::new(Log) };
        Self::on(options, palette, sink)
    }

    fn on(options: ProgressOptions, palette: Palette, sink: Box<dyn Sink>) -> Self {
        if options == ProgressOptions::default() {
            return Self(None);
        }
        let state = State {
            sink,
            estimate: Estimate::default(),
            line_at: Duration::ZERO,
            frames: 0,
            lines: Vec::new(),
            drawn: 0,
            drawn_at: None,
            incomplete_since: None,
        };
        Self(Some(Arc::new(Inner { options, palette, next: AtomicU64::new(0), state: Mutex::new(state) })))
    }

    /// Returns the time until [`Self::draw`] has something to do, if it ever has.
    pub(crate) fn due(&self, elapsed: Duration) -> Option<Duration> {
        let inner = self.0.as_ref()?;
        Some(inner.next().saturating_sub(elapsed))
    }

    /// Draws the state of the run if it is time to. Calls `take` only then.
    pub(crate) fn draw(&self, elapsed: Duration, take: impl FnOnce() -> Snapshot) {
        let Some(inner) = &self.0 else { return };
        if elapsed < inner.next() {
            return;
        }
        // A worker thread that holds the lock may be writing to a terminal that accepts nothing. The
        // main thread, which draws, has to handle signals and must not wait for it.
        let Some(mut state) = inner.try_lock() else { return inner.set_next(elapsed + DRAW_INTERVAL) };
        let snapshot = take();
        let eta = inner.update_estimate(&mut state, &snapshot);
        match state.sink.size() {
            Some(size) => {
                inner.set_next(elapsed + DRAW_INTERVAL);
                state.lines = inner.frame(&snapshot, &eta, size, state.frames);
                state.frames += 1;
                if state.sink.is_ready() {
                    state.show(Instant::now());
                }
            }
            None => {
                inner.set_next(elapsed + SAMPLE_INTERVAL);
                if elapsed >= state.line_at + LINE_INTERVAL {
                    state.line_at = elapsed;
                    let layout = LineLayout {
                        width: None,
                        bar: inner.options.bar,
                        frame: None,
                        palette: Palette::PLAIN,
                    };
                    if state.sink.is_ready() {
                        state.sink.write(&line::first(&snapshot, &eta, &layout));
                    }
                }
            }
        }
    }

    /// Erases the display while `write` writes complete lines to the terminal.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.suspend_for(true, write)
    }

    /// Erases the display while `write` writes to the terminal. If the output does not end with a
    /// complete line (`ends_line` is `false`), the display waits for the rest of the line, at most
    /// [`INCOMPLETE_LINE_MAX`].
    pub(crate) fn suspend_for<T>(&self, ends_line: bool, write: impl FnOnce() -> T) -> T {
        let Some(inner) = &self.0 else { return write() };
        let mut state = inner.lock();
        state.hide();
        let result = write();
        let now = Instant::now();
        state.incomplete_since = (!ends_line).then_some(now);
        if state.drawn_at.is_none_or(|at| now.duration_since(at) >= REDRAW_DELAY) {
            state.show(now);
        }
        result
    }

    /// Erases the display while `act` runs, unless that would block: another thread may hold the
    /// lock, or the terminal may accept nothing.
    pub(crate) fn try_suspend<T>(&self, act: impl FnOnce() -> T) -> T {
        let state = self.0.as_ref().and_then(|inner| inner.try_lock());
        let Some(mut state) = state.filter(|state| state.sink.is_ready()) else { return act() };
        state.hide();
        act()
    }

    /// Erases the display permanently.
    pub(crate) fn clear(&self) {
        if let Some(inner) = &self.0 {
            let mut state = inner.lock();
            state.hide();
            state.lines.clear();
            inner.set_next(Duration::MAX);
        }
    }
}

impl Inner {
    fn next(&self) -> Duration {
        Duration::from_nanos(self.next.load(Ordering::Relaxed))
    }

    fn set_next(&self, next: Duration) {
        self.next.store(u64::try_from(next.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sample to the estimate, and returns the estimated end.
    fn update_estimate(&self, state: &mut State, snapshot: &Snapshot) -> Eta {
        let settled = snapshot.finished() + snapshot.counts.skipped;
        let ages: Vec<Duration> = snapshot.running.iter().map(|job| job.age).collect();
        let sample = Sample {
            elapsed: snapshot.elapsed,
            done: snapshot.finished(),
            rest: snapshot.known_total().map(|total| total.saturating_sub(settled)),
            running: snapshot.counts.running,
            ages: &ages,
            median: snapshot.median.or(snapshot.expected),
            expected: snapshot.expected,
            suspended: false,
        };
        state.estimate.add(&sample);
        let left = state.estimate.left(&sample);
        let ends = if self.options.eta { left.and_then(|left| clock(Timestamp::now(), left)) } else { None };
        Eta { left, ends }
    }

    /// Returns the lines of a frame for a terminal of this size.
    fn frame(
        &self,
        snapshot: &Snapshot,
        eta: &Eta,
        (width, rows): (usize, usize),
        frame: usize,
    ) -> Vec<String> {
        // The last column stays free: after a character in it, some terminals move the cursor to the
        // next line.
        let width = Some(width.saturating_sub(1).max(1));
        let layout = LineLayout { width, bar: self.options.bar, frame: Some(frame), palette: self.palette };
        let mut lines = vec![line::first(snapshot, eta, &layout)];
        if self.options.jobs {
            lines.extend(line::jobs(snapshot, rows.saturating_sub(2), &layout));
        }
        lines
    }
}

impl State {
    /// Draws the last frame over the one on the screen.
    fn show(&mut self, now: Instant) {
        if self.lines.is_empty() {
            return;
        }
        let mut text = String::new();
        match self.incomplete_since {
            Some(since) if now.duration_since(since) < INCOMPLETE_LINE_MAX => return,
            Some(_) => text += "\r\n",
            None => (),
        }
        self.incomplete_since = None;
        text += &self.move_to_start();
        for (index, line) in self.lines.iter().enumerate() {
            text += if index > 0 { "\r\n" } else { "" };
            text += line;
            text += "\x1b[K";
        }
        if self.lines.len() < self.drawn {
            // Erases the lines of the previous frame below.
            text += "\x1b[J";
        }
        self.sink.write(&text);
        self.drawn = self.lines.len();
        self.drawn_at = Some(now);
    }

    /// Erases the display.
    fn hide(&mut self) {
        if self.drawn > 0 {
            let text = self.move_to_start() + "\x1b[J";
            self.sink.write(&text);
            self.drawn = 0;
        }
    }

    /// Returns the control sequence that moves the cursor to the start of the display.
    fn move_to_start(&self) -> String {
        match self.drawn {
            0 => String::new(),
            1 => "\r".to_owned(),
            lines => format!("\r\x1b[{}A", lines - 1),
        }
    }
}

/// Formats the local time at which `left` has passed: `14:05:10` if that is soon, `14:05` on the
/// same day, `Mon 09:10` within the week, else `12 Nov 17:40`.
fn clock(now: Timestamp, left: Duration) -> Option<String> {
    let zone = local_zone();
    let ends = now.checked_add(SignedDuration::try_from(left).ok()?).ok()?;
    let ends = ends.to_zoned(zone.clone());
    let now = now.to_zoned(zone);
    let form = match left {
        _ if left < SECONDS_MAX => "%H:%M:%S",
        _ if ends.date() == now.date() => "%H:%M",
        _ if left < WEEKDAY_MAX => "%a %H:%M",
        _ => "%-d %b %H:%M",
    };
    Some(ends.strftime(form).to_string())
}

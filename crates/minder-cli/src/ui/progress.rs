//! The progress display, on stderr. On a terminal it is a few lines below the output. They are
//! redrawn, and erased while job output is written. Without a flag it is the status line: one line, once
//! the run has lasted for two seconds. In a file or a pipe it is one plain line after each 30 s, so that a
//! log shows that the run is alive.
//!
//! A [`Snapshot`] is taken only when the display is drawn, at most ten times a second.

mod estimate;
mod line;
mod options;
mod sink;
mod slow;
#[cfg(test)]
mod tests;
mod trace;

pub(crate) use line::rough;
pub(crate) use options::{Heartbeat, ProgressOptions};
pub(crate) use slow::SlowJobs;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use minder_os::stdio::stdout_is_pipe;
use minder_os::sync::Mutex;
use minder_runner::Snapshot;

use self::estimate::{Estimate, Sample};
use self::line::{Eta, LineLayout};
use self::options::LINE_INTERVAL;
use self::sink::{Sink, Stderr};
use self::trace::{OutputTrace, RESET};
use minder_ui::color::Palette;
use minder_ui::format::local_zone;
use minder_ui::message_line;
use minder_ui::symbols::Symbols;

/// The age of the run from which on the status line is shown.
const STATUS_DELAY: Duration = Duration::from_secs(2);

/// The interval between two drawings on a terminal.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);
/// The time of the next drawing of a display that shows nothing more.
const NEVER: Duration = Duration::from_nanos(u64::MAX);
/// The interval between two samples of the run if stderr is not a terminal.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum time between a drawing and the next one that follows output. If output arrives
/// faster, the display is drawn at the next [`DRAW_INTERVAL`].
const REDRAW_DELAY: Duration = Duration::from_millis(2);
/// The longest time for which an incomplete line of output postpones a display that a flag
/// requests. The status line waits until the line is complete.
const INCOMPLETE_LINE_MAX: Duration = Duration::from_millis(500);
/// If less time is left, the time of the end includes seconds.
const SECONDS_MAX: Duration = Duration::from_secs(600);
/// If less time is left, the time of the end has a day of the week instead of a date.
const WEEKDAY_MAX: Duration = Duration::from_secs(6 * 86_400);

/// The progress display. Without options it only keeps messages apart from output on a terminal. Clones
/// share one display.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    options: ProgressOptions,
    palette: Palette,
    symbols: Symbols,
    /// The time at which [`Progress::draw`] has something to do next, in nanoseconds since the
    /// start of the run. Only the main thread uses it, so it needs no lock.
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sink: Box<dyn Sink>,
    estimate: Estimate,
    /// The time at which the last plain line was written, or what counts as one.
    line_at: Duration,
    /// `true` if there was a message since the last sample.
    has_message: bool,
    /// The number of frames so far.
    frames: usize,
    /// The lines of the last frame; empty before the first one and after [`Progress::clear`].
    lines: Vec<String>,
    /// The number of lines of the display that are on the screen now.
    drawn: usize,
    drawn_at: Option<Instant>,
    trace: OutputTrace,
}

impl Progress {
    /// Returns `true` if the display shows anything at all.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.options != ProgressOptions::default())
    }

    /// Creates a display on stderr. It consists of plain lines, as in a log, if jobs write to the
    /// terminal directly (`may_draw` is `false`). A status line then makes no sense, nor if the reader of
    /// standard output may write to the terminal.
    pub(crate) fn new(options: ProgressOptions, palette: Palette, may_draw: bool) -> Self {
        let sink = Stderr::new(may_draw);
        let status = options.status && sink.size().is_some() && !stdout_is_pipe();
        let is_unasked = options.heartbeat == Heartbeat::IfCi;
        let heartbeat = if is_unasked && sink.is_terminal() {
            Heartbeat::Never
        } else {
            options.heartbeat.resolve(std::env::var_os("CI"))
        };
        Self::on(
            ProgressOptions { status, heartbeat, ..options },
            (palette, Symbols::of_locale()),
            Box::new(sink),
        )
    }

    fn on(options: ProgressOptions, (palette, symbols): (Palette, Symbols), sink: Box<dyn Sink>) -> Self {
        let next = match options {
            _ if options.is_requested() => Duration::ZERO,
            _ if sink.size().is_none() && options.heartbeat.interval().is_some() => Duration::ZERO,
            ProgressOptions { status: true, .. } => STATUS_DELAY,
            _ if sink.is_terminal() => NEVER,
            _ => return Self(None),
        };
        let state = State {
            sink,
            estimate: Estimate::default(),
            line_at: Duration::ZERO,
            has_message: false,
            frames: 0,
            lines: Vec::new(),
            drawn: 0,
            drawn_at: None,
            trace: OutputTrace::default(),
        };
        let inner = Inner { options, palette, symbols, next: AtomicU64::new(0), state: Mutex::new(state) };
        inner.set_next(next);
        Self(Some(Arc::new(inner)))
    }

    /// Returns the time until [`Self::draw`] has something to do, if it ever has.
    pub(crate) fn due(&self, elapsed: Duration) -> Option<Duration> {
        let next = self.0.as_ref()?.next();
        (next < NEVER).then(|| next.saturating_sub(elapsed))
    }

    /// Draws the state of the run if it is time to. Calls `take` only then.
    pub(crate) fn draw(&self, elapsed: Duration, take: impl FnOnce() -> Snapshot) {
        let Some(inner) = &self.0 else { return };
        if elapsed < inner.next() {
            return;
        }
        // A worker thread that holds the lock may be writing to a terminal that accepts nothing. The
        // main thread, which draws, has to handle signals and must not wait for it.
        let Some(mut state) = inner.state.try_lock() else { return inner.set_next(elapsed + DRAW_INTERVAL) };
        let snapshot = take();
        let eta = inner.update_estimate(&mut state, &snapshot);
        match state.sink.size() {
            Some(size) => {
                inner.set_next(elapsed + DRAW_INTERVAL);
                state.lines = inner.frame(&snapshot, &eta, size, state.frames);
                state.frames += 1;
                if state.sink.is_ready() {
                    state.show(Instant::now(), inner.options);
                }
            }
            None => {
                let interval = inner.options.heartbeat.interval().unwrap_or(LINE_INTERVAL);
                inner.set_next(elapsed + SAMPLE_INTERVAL.min(interval));
                if !inner.options.is_requested() {
                    let written_at = elapsed.saturating_sub(snapshot.silence);
                    let said_at = if std::mem::take(&mut state.has_message) { elapsed } else { written_at };
                    state.line_at = state.line_at.max(said_at);
                }
                if elapsed >= state.line_at + interval {
                    state.line_at = elapsed;
                    let layout = LineLayout {
                        width: None,
                        bar: inner.options.bar,
                        frame: None,
                        palette: Palette::PLAIN,
                        symbols: inner.symbols,
                    };
                    if state.sink.is_ready() {
                        state.sink.write(&message_line(&line::first(&snapshot, &eta, &layout)));
                    }
                }
            }
        }
    }

    /// Erases the display while `write` writes output of jobs to the terminal. While its last line is
    /// incomplete, the display waits for the rest of the line.
    pub(crate) fn write_output<T>(&self, bytes: &[u8], write: impl FnOnce() -> T) -> T {
        let Some(inner) = &self.0 else { return write() };
        let mut state = inner.state.lock();
        state.hide();
        let result = write();
        let now = Instant::now();
        state.trace.push(bytes, now);
        state.show_after_write(now, inner.options);
        result
    }

    /// Erases the display while `write` writes messages: complete lines, which begin on a new line
    /// and without the color of the output.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        let Some(inner) = &self.0 else { return write() };
        let mut state = inner.state.lock();
        state.hide();
        state.end_output();
        let result = write();
        state.has_message = true;
        state.restore_style();
        state.show_after_write(Instant::now(), inner.options);
        result
    }

    /// Does the same as [`suspend`](Self::suspend), unless that would block: another thread may hold the
    /// lock, or the terminal may accept nothing.
    pub(crate) fn try_suspend<T>(&self, act: impl FnOnce() -> T) -> T {
        let state = self.0.as_ref().and_then(|inner| inner.state.try_lock());
        let Some(mut state) = state.filter(|state| state.sink.is_ready()) else { return act() };
        state.hide();
        state.end_output();
        let result = act();
        state.restore_style();
        result
    }

    /// Erases the display permanently. What is written next begins on a new line.
    pub(crate) fn finish(&self) {
        if let Some(inner) = &self.0 {
            let mut state = inner.state.lock();
            state.hide();
            state.lines.clear();
            state.end_output();
            inner.set_next(NEVER);
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
        let Self { options, palette, symbols, .. } = *self;
        let layout = LineLayout { width, bar: options.bar, frame: Some(frame), palette, symbols };
        let mut lines = vec![line::first(snapshot, eta, &layout)];
        if self.options.jobs {
            lines.extend(line::jobs(snapshot, rows.saturating_sub(2), &layout));
        }
        lines
    }
}

impl State {
    /// Draws the last frame over the one on the screen.
    fn show(&mut self, now: Instant, options: ProgressOptions) {
        if self.lines.is_empty() || !self.sink.is_in_foreground() {
            return;
        }
        let mut text = String::new();
        if let Some(since) = self.trace.open_since() {
            if !options.is_requested() || now.duration_since(since) < INCOMPLETE_LINE_MAX {
                return;
            }
            self.trace.end_line();
            text += "\r\n";
        }
        text += &self.move_to_start();
        if !self.trace.style().is_empty() {
            text += RESET;
        }
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

    fn show_after_write(&mut self, now: Instant, options: ProgressOptions) {
        if self.drawn_at.is_none_or(|at| now.duration_since(at) >= REDRAW_DELAY) {
            self.show(now, options);
        }
    }

    /// Erases the display, and restores the color of the output.
    fn hide(&mut self) {
        if self.drawn > 0 {
            let text = self.move_to_start() + "\x1b[J" + self.trace.style();
            self.sink.write(&text);
            self.drawn = 0;
        }
    }

    /// Ends an incomplete line of output and switches its color off.
    fn end_output(&mut self) {
        if !self.sink.is_terminal() {
            return;
        }
        let mut text = String::new();
        if self.trace.open_since().is_some() {
            self.trace.end_line();
            text += "\r\n";
        }
        if !self.trace.style().is_empty() && self.sink.size().is_some() {
            text += RESET;
        }
        if !text.is_empty() {
            self.sink.write(&text);
        }
    }

    /// Switches the color of the output on again.
    fn restore_style(&mut self) {
        if !self.trace.style().is_empty() && self.sink.size().is_some() {
            self.sink.write(self.trace.style());
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

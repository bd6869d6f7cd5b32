//! The progress display, on stderr. On a terminal it is a few lines below the output, which are
//! redrawn, and hidden while job output is written. Elsewhere it is one plain line every 30 s, so
//! that a log shows that the run is alive.
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

/// How often it is drawn on a terminal.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
/// How often the run is looked at where there is no terminal, and how often it is told of.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
const TOLD_EVERY: Duration = Duration::from_secs(30);
/// How soon after a picture it may be drawn again behind output. Behind output that comes faster it
/// waits for its time.
const REDRAWN_AFTER: Duration = Duration::from_millis(2);
/// How long a line of output may lack its end until the picture goes below it all the same.
const TORN_MAX: Duration = Duration::from_millis(500);
/// An end that is so near is told to the second, and one that is so near by the day of the week.
const SECONDS_TOLD: Duration = Duration::from_secs(600);
const WEEKDAY_TOLD: Duration = Duration::from_secs(6 * 86_400);
/// What a terminal is taken for that does not know its size.
const SIZE: (usize, usize) = (80, 24);

/// What is wanted for the eye.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgressOptions {
    /// A graph of what is done.
    pub(crate) bar: bool,
    /// The time on the clock when it is over.
    pub(crate) eta: bool,
    /// The jobs that run the longest.
    pub(crate) jobs: bool,
}

/// Draws, or does nothing. Clones draw the same picture.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    wish: ProgressOptions,
    paint: Palette,
    /// When something is to be done again, in nanoseconds of the run. It is known without the lock.
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sink: Box<dyn Sink>,
    estimate: Estimate,
    /// When a log was told last.
    told: Duration,
    pictures: usize,
    /// The last picture; empty before the first and after the last.
    lines: Vec<String>,
    /// How many of its lines are on the screen now.
    drawn: usize,
    drawn_at: Option<Instant>,
    /// Since when the last line of output lacks its end.
    torn: Option<Instant>,
}

/// Where pictures go.
trait Sink: fmt::Debug + Send {
    /// Columns and rows, of a terminal.
    fn size(&self) -> Option<(usize, usize)>;
    /// Whether writing would not have to wait.
    fn is_ready(&self) -> bool;
    /// Whoever closed it does not want to see.
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

/// Standard error that is a file or a pipe.
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
    /// Whether anything is ever drawn or told.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// What is wanted, on stderr. Where others write to the terminal and do not ask (`may_draw` is
    /// false), it is told in plain lines as in a log.
    pub(crate) fn new(wish: ProgressOptions, paint: Palette, may_draw: bool) -> Self {
        let sink: Box<dyn Sink> = if may_draw && can_draw() { Box::new(Terminal) } else { Box::new(Log) };
        Self::on(wish, paint, sink)
    }

    fn on(wish: ProgressOptions, paint: Palette, sink: Box<dyn Sink>) -> Self {
        if wish == ProgressOptions::default() {
            return Self(None);
        }
        let state = State {
            sink,
            estimate: Estimate::default(),
            told: Duration::ZERO,
            pictures: 0,
            lines: Vec::new(),
            drawn: 0,
            drawn_at: None,
            torn: None,
        };
        Self(Some(Arc::new(Inner { wish, paint, next: AtomicU64::new(0), state: Mutex::new(state) })))
    }

    /// After how long [`Self::draw`] has something to do, if ever.
    pub(crate) fn due(&self, elapsed: Duration) -> Option<Duration> {
        let inner = self.0.as_ref()?;
        Some(inner.next().saturating_sub(elapsed))
    }

    /// Draws the state of the run, if it is time to; only then is it asked for.
    pub(crate) fn draw(&self, elapsed: Duration, view: impl FnOnce() -> Snapshot) {
        let Some(inner) = &self.0 else { return };
        if elapsed < inner.next() {
            return;
        }
        // Somebody writes, maybe to a terminal that takes nothing; whoever draws has signals to take.
        let Some(mut state) = inner.try_lock() else { return inner.set_next(elapsed + DRAWN_EVERY) };
        let view = view();
        let rest = inner.look_at(&mut state, &view);
        match state.sink.size() {
            Some(size) => {
                inner.set_next(elapsed + DRAWN_EVERY);
                state.lines = inner.picture(&view, &rest, size, state.pictures);
                state.pictures += 1;
                if state.sink.is_ready() {
                    state.show(Instant::now());
                }
            }
            None => {
                inner.set_next(elapsed + LOOKED_EVERY);
                if elapsed >= state.told + TOLD_EVERY {
                    state.told = elapsed;
                    let look =
                        LineLayout { width: None, graph: inner.wish.bar, turn: None, paint: Palette::PLAIN };
                    if state.sink.is_ready() {
                        state.sink.write(&line::first(&view, &rest, &look));
                    }
                }
            }
        }
    }

    /// Takes the picture away while somebody writes whole lines to the terminal.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.suspend_for(true, write)
    }

    /// Takes the picture away while somebody writes to the terminal: whole lines, or something that
    /// lacks its end. Then the picture waits for that, for a while, instead of tearing a line.
    pub(crate) fn suspend_for<T>(&self, whole: bool, write: impl FnOnce() -> T) -> T {
        let Some(inner) = &self.0 else { return write() };
        let mut state = inner.lock();
        state.hide();
        let result = write();
        let now = Instant::now();
        state.torn = (!whole).then_some(now);
        if state.drawn_at.is_none_or(|at| now.duration_since(at) >= REDRAWN_AFTER) {
            state.show(now);
        }
        result
    }

    /// Takes the picture away while somebody does something who must not wait for those that write.
    pub(crate) fn try_suspend<T>(&self, act: impl FnOnce() -> T) -> T {
        let state = self.0.as_ref().and_then(|inner| inner.try_lock());
        let Some(mut state) = state.filter(|state| state.sink.is_ready()) else { return act() };
        state.hide();
        act()
    }

    /// Takes the picture away for good.
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

    fn look_at(&self, state: &mut State, view: &Snapshot) -> Eta {
        let over = view.finished() + view.counts.skipped;
        let ages: Vec<Duration> = view.running.iter().map(|job| job.age).collect();
        let sample = Sample {
            elapsed: view.elapsed,
            done: view.finished(),
            rest: view.known_total().map(|total| total.saturating_sub(over)),
            running: view.counts.running,
            ages: &ages,
            median: view.median,
            suspended: false,
        };
        state.estimate.add(&sample);
        let left = state.estimate.left(&sample);
        let ends = left.filter(|_| self.wish.eta).and_then(|left| clock(Timestamp::now(), left));
        Eta { left, ends }
    }

    /// All lines, for a terminal of this size.
    fn picture(
        &self,
        view: &Snapshot,
        rest: &Eta,
        (width, rows): (usize, usize),
        turn: usize,
    ) -> Vec<String> {
        // The last column stays free: a cursor behind it is in the next line on some terminals.
        let width = Some(width.saturating_sub(1).max(1));
        let look = LineLayout { width, graph: self.wish.bar, turn: Some(turn), paint: self.paint };
        let mut lines = vec![line::first(view, rest, &look)];
        if self.wish.jobs {
            lines.extend(line::jobs(view, rows.saturating_sub(2), &look));
        }
        lines
    }
}

impl State {
    /// Draws the picture over the one that is there.
    fn show(&mut self, now: Instant) {
        if self.lines.is_empty() {
            return;
        }
        let mut text = String::new();
        match self.torn {
            Some(since) if now.duration_since(since) < TORN_MAX => return,
            Some(_) => text += "\r\n",
            None => (),
        }
        self.torn = None;
        text += &self.back();
        for (place, line) in self.lines.iter().enumerate() {
            text += if place > 0 { "\r\n" } else { "" };
            text += line;
            text += "\x1b[K";
        }
        if self.lines.len() < self.drawn {
            // Lines below that were there before.
            text += "\x1b[J";
        }
        self.sink.write(&text);
        (self.drawn, self.drawn_at) = (self.lines.len(), Some(now));
    }

    /// Takes it off the screen.
    fn hide(&mut self) {
        if self.drawn > 0 {
            let text = self.back() + "\x1b[J";
            self.sink.write(&text);
            self.drawn = 0;
        }
    }

    /// The way to where the picture begins.
    fn back(&self) -> String {
        match self.drawn {
            0 => String::new(),
            1 => "\r".to_owned(),
            lines => format!("\r\x1b[{}A", lines - 1),
        }
    }
}

/// The time on the clock after so long: `14:05:10` soon, `14:05` later today, `Mon 09:10`, `12 Nov
/// 17:40`.
fn clock(now: Timestamp, left: Duration) -> Option<String> {
    let zone = local_zone();
    let ends = now.checked_add(SignedDuration::try_from(left).ok()?).ok()?;
    let (ends, now) = (ends.to_zoned(zone.clone()), now.to_zoned(zone));
    let form = match left {
        _ if left < SECONDS_TOLD => "%H:%M:%S",
        _ if ends.date() == now.date() => "%H:%M",
        _ if left < WEEKDAY_TOLD => "%a %H:%M",
        _ => "%-d %b %H:%M",
    };
    Some(ends.strftime(form).to_string())
}

//! Draws on a simulated terminal, and compares what it shows at the screen.

use super::line::{coarse, rough};
use super::*;
use minder_runner::RunningSnapshot;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A simulated terminal.
#[derive(Debug)]
struct Screen {
    size: Option<(usize, usize)>,
    ready: bool,
    foreground: bool,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    writes: usize,
    written: String,
    /// `true` once a character went beyond the last column, or the cursor above the first row.
    beyond: bool,
}

/// A terminal that the test and the display share.
#[derive(Clone, Debug)]
struct SharedScreen(Arc<Mutex<Screen>>);

impl SharedScreen {
    fn new(size: Option<(usize, usize)>) -> Self {
        let screen = Screen {
            size,
            ready: true,
            foreground: true,
            lines: vec![Vec::new()],
            row: 0,
            column: 0,
            writes: 0,
            written: String::new(),
            beyond: false,
        };
        Self(Arc::new(Mutex::new(screen)))
    }

    fn with<T>(&self, access: impl FnOnce(&mut Screen) -> T) -> T {
        access(&mut self.0.lock())
    }

    /// Returns the text on the screen.
    fn text(&self) -> String {
        let line = |line: &Vec<char>| {
            line.iter().filter(|c| **c != '\0').collect::<String>().trim_end().to_owned() + "\n"
        };
        self.with(|screen| screen.lines.iter().map(line).collect::<String>()).trim_end().to_owned()
    }

    fn progress(&self, options: ProgressOptions) -> Progress {
        self.progress_with(options, Symbols::Unicode)
    }

    fn progress_with(&self, options: ProgressOptions, symbols: Symbols) -> Progress {
        Progress::on(options, (Palette::PLAIN, symbols), Box::new(self.clone()))
    }

    /// Writes output of a job.
    fn output(&self, progress: &Progress, text: &str) {
        progress.write_output(text.as_bytes(), || self.clone().write(text));
    }

    /// Lets as much time pass as an incomplete line postpones a display.
    fn wait_for_the_rest_of_a_line(&self, progress: &Progress) {
        let Some(inner) = &progress.0 else { panic!("the display is disabled") };
        let since = Instant::now().checked_sub(INCOMPLETE_LINE_MAX).expect("subtract from the time");
        inner.state.lock().trace.push(b"-", since);
    }
}

impl Sink for SharedScreen {
    fn size(&self) -> Option<(usize, usize)> {
        self.with(|screen| screen.size)
    }

    fn is_terminal(&self) -> bool {
        self.with(|screen| screen.size.is_some())
    }

    fn is_ready(&self) -> bool {
        self.with(|screen| screen.ready)
    }

    fn is_in_foreground(&self) -> bool {
        self.with(|screen| screen.foreground)
    }

    fn write(&mut self, text: &str) {
        self.with(|screen| {
            screen.writes += 1;
            screen.written += text;
            match screen.size {
                Some(_) => screen.apply(text),
                None => screen.apply(&text.replace('\n', "\r\n")),
            }
        });
    }
}

impl Screen {
    fn apply(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => {
                    self.row += 1;
                    self.lines.resize(self.lines.len().max(self.row + 1), Vec::new());
                }
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['));
                    let sequence: String = rest.by_ref().take_while_inclusive();
                    let (number, command) = sequence.split_at(sequence.len() - 1);
                    match command {
                        "A" => {
                            let up = number.parse().unwrap_or(1);
                            self.beyond |= up > self.row;
                            self.row = self.row.saturating_sub(up);
                        }
                        "K" => self.lines[self.row].truncate(self.column),
                        "J" => {
                            self.lines[self.row].truncate(self.column);
                            self.lines.truncate(self.row + 1);
                        }
                        "m" => (),
                        _ => panic!("unknown escape sequence `{sequence}`"),
                    }
                }
                c => {
                    let line = &mut self.lines[self.row];
                    line.resize(line.len().max(self.column + 1), ' ');
                    line[self.column] = c;
                    // The second half of a wide character.
                    let wide = c.width().unwrap_or(0);
                    line.resize(line.len().max(self.column + wide), '\0');
                    self.column += wide;
                    self.beyond |= self.size.is_some_and(|(width, _)| self.column >= width);
                }
            }
        }
    }
}

/// Reads an escape sequence up to and including its last letter.
trait TakeWhileInclusive {
    fn take_while_inclusive(self) -> String;
}

impl<T: Iterator<Item = char>> TakeWhileInclusive for T {
    fn take_while_inclusive(self) -> String {
        let mut sequence = String::new();
        for c in self {
            sequence.push(c);
            if c.is_ascii_alphabetic() {
                break;
            }
        }
        sequence
    }
}

const STATUS: ProgressOptions =
    ProgressOptions { status: true, bar: false, eta: false, jobs: false, heartbeat: Heartbeat::Never };
const BAR: ProgressOptions = ProgressOptions { bar: true, ..STATUS };
const JOBS: ProgressOptions = ProgressOptions { jobs: true, ..STATUS };

fn snapshot(succeeded: u64, failed: u64, running: u64, total: Option<u64>, seconds: u64) -> Snapshot {
    let mut snapshot = Snapshot { total, elapsed: Duration::from_secs(seconds), ..Snapshot::default() };
    snapshot.counts.succeeded = succeeded;
    snapshot.counts.failed = failed;
    snapshot.counts.running = running;
    snapshot
}

fn running(names: &[(&str, u64)]) -> Vec<RunningSnapshot> {
    let numbered = names.iter().zip(1..);
    numbered
        .map(|((name, age), job)| RunningSnapshot {
            job,
            name: (*name).to_owned(),
            age: Duration::from_secs(*age),
        })
        .collect()
}

/// Returns what a new display shows for this state.
fn drawn(options: ProgressOptions, size: (usize, usize), snapshot: &Snapshot) -> String {
    let screen = SharedScreen::new(Some(size));
    screen.progress(options).draw(snapshot.elapsed, || snapshot.clone());
    assert!(!screen.with(|screen| screen.beyond), "{size:?}: {}", screen.text());
    screen.text()
}

#[test]
fn line_shows_counts_times_and_bar() {
    let two = snapshot(1, 1, 1, Some(3), 12);
    assert_eq!(drawn(JOBS, (100, 24), &two), "⠋ 2/3 done · 1 running · 1 failed · 12 s · about 5 s left");
    assert_eq!(
        drawn(BAR, (100, 24), &two),
        "⠋ ━━━━━━━━━━━━━━━━━━━━────────── 66 % · 2/3 done · 1 running · 1 failed · 12 s · about 5 s left"
    );
    let unknown = snapshot(2, 0, 1, None, 1);
    assert_eq!(drawn(BAR, (100, 24), &unknown), "⠋ 2 done · 1 running · 0 failed · 1 s");
    let mut over = Snapshot { input_ended: true, ..unknown };
    over.counts.submitted = 4;
    assert!(drawn(BAR, (100, 24), &over).contains(" 50 % · 2/4 done · "));
}

#[test]
fn display_is_ascii_in_a_locale_without_utf8() {
    let screen = SharedScreen::new(Some((90, 24)));
    let progress = screen.progress_with(ProgressOptions { jobs: true, ..BAR }, Symbols::Ascii);
    let names = running(&[("./test.sh …", 12), (&"x".repeat(100), 3)]);
    let snapshot = Snapshot { running: names, ..snapshot(1, 1, 2, Some(4), 12) };
    progress.draw(Duration::from_secs(1), || snapshot.clone());
    let text = screen.text();
    assert!(text.is_ascii(), "{text}");
    assert!(text.starts_with("| ######") && text.contains("#---"), "{text}");
    assert!(text.contains(" 50 %, 2/4 done, 2 running, 1 failed, "), "{text}");
    assert!(text.contains("\n  12 s  ./test.sh ...\n") && text.ends_with("xx..."), "{text}");
    progress.draw(Duration::from_secs(2), || snapshot.clone());
    assert!(screen.text().starts_with("/ #"), "{}", screen.text());
}

#[test]
fn line_shows_why_jobs_wait() {
    let held = Snapshot { paused: Some("load above 8".to_owned()), ..snapshot(1, 0, 1, Some(3), 12) };
    assert!(drawn(BAR, (100, 24), &held).contains(" · 0 failed · waiting: load above 8 · 12 s"));
}

#[test]
fn line_fits_every_width_and_drops_parts_by_rank() {
    let names = running(&[("日本語日本語日本語日本語 ./test.sh linux", 7300), ("b\x1b[2J", 70), ("", 3)]);
    let all = Snapshot {
        running: names,
        median: Some(Duration::from_secs(2)),
        paused: Some("load above 8".to_owned()),
        ..snapshot(123_456, 7, 64, Some(1_000_000), 3700)
    };
    let everything = ProgressOptions { bar: true, eta: true, jobs: true, ..STATUS };
    for width in 4..=220 {
        for snapshot in [&all, &snapshot(0, 0, 0, None, 0), &snapshot(5, 0, 2, Some(7), 9)] {
            let text = drawn(everything, (width, 24), snapshot);
            for line in text.lines() {
                assert!(line.width() < width, "{width}: {text}");
            }
            let done = if snapshot.total == Some(7) { "5/7 done" } else { "done" };
            assert!(width < 24 || text.contains(done), "{width}: {text}");
        }
    }
    assert_eq!(drawn(BAR, (20, 24), &snapshot(5, 1, 2, Some(70), 9)), "⠋ 6/70 done");
    assert_eq!(drawn(BAR, (26, 24), &snapshot(5, 1, 2, Some(70), 9)), "⠋ 6/70 done · 1 failed");
    assert_eq!(
        drawn(BAR, (48, 24), &snapshot(5, 1, 2, Some(70), 9)),
        "⠋ 6/70 done · 1 failed · about 1 min 22 s left"
    );
}

#[test]
fn oldest_jobs_have_lines_that_are_erased_when_they_finish() {
    let screen = SharedScreen::new(Some((60, 24)));
    let progress = screen.progress(JOBS);
    let names = running(&[("./test.sh bsd", 125), ("b", 30), ("c", 4), ("d", 3), ("e", 2), ("f", 1)]);
    let mut snapshot =
        Snapshot { running: names, median: Some(Duration::from_secs(3)), ..snapshot(9, 0, 6, None, 200) };
    progress.draw(Duration::from_secs(1), || snapshot.clone());
    assert_eq!(
        screen.text(),
        [
            "⠋ 9 done · 6 running · 0 failed · 3 min 20 s",
            "  2 min 5 s  ./test.sh bsd  slowest",
            "       30 s  b",
            "        4 s  c",
            "        3 s  d",
            "        2 s  e",
            "  and 1 more",
        ]
        .join("\n")
    );
    snapshot.running.truncate(1);
    snapshot.counts.running = 1;
    progress.draw(Duration::from_secs(2), || snapshot.clone());
    assert_eq!(screen.text(), "⠙ 9 done · 1 running · 0 failed · 3 min 20 s\n  2 min 5 s  ./test.sh bsd");
    progress.suspend(|| screen.clone().write("output\r\n"));
    assert!(screen.text().starts_with("output"), "{}", screen.text());
    progress.draw(Duration::from_secs(3), || snapshot.clone());
    assert!(screen.text().ends_with("failed · 3 min 20 s\n  2 min 5 s  ./test.sh bsd"), "{}", screen.text());
    assert_eq!(screen.text().lines().count(), 3);
    progress.finish();
    assert_eq!(screen.text(), "output");
    progress.draw(Duration::from_secs(4), || snapshot.clone());
    assert_eq!(screen.text(), "output", "nothing is drawn after `finish`");
    // A terminal with few rows has no room for all lines.
    snapshot.running = running(&[("a", 3), ("b", 2)]);
    snapshot.counts.running = 2;
    assert_eq!(drawn(JOBS, (60, 2), &snapshot).lines().count(), 1);
    assert_eq!(drawn(JOBS, (60, 3), &snapshot).lines().count(), 2);
}

#[test]
fn display_follows_the_width_of_the_terminal() {
    let screen = SharedScreen::new(Some((100, 24)));
    let progress = screen.progress(BAR);
    let snapshot = snapshot(1, 0, 1, Some(3), 12);
    for (turn, width) in [100, 30, 60, 20, 100].into_iter().enumerate() {
        screen.with(|screen| screen.size = Some((width, 24)));
        progress.draw(Duration::from_secs(turn as u64 + 1), || snapshot.clone());
        let text = screen.text();
        assert!(text.lines().count() == 1 && text.width() < width, "{width}: {text}");
    }
}

#[test]
fn display_waits_for_the_rest_of_a_line() {
    let screen = SharedScreen::new(Some((60, 24)));
    let progress = screen.progress(BAR);
    let snapshot = snapshot(0, 0, 1, None, 1);
    progress.draw(Duration::from_secs(1), || snapshot.clone());
    screen.output(&progress, "half a li");
    assert_eq!(screen.text(), "half a li");
    progress.draw(Duration::from_secs(2), || snapshot.clone());
    assert_eq!(screen.text(), "half a li");
    screen.output(&progress, "ne\r\n");
    progress.draw(Duration::from_secs(3), || snapshot.clone());
    assert!(screen.text().starts_with("half a line\n⠹ 0 done"), "{}", screen.text());
    // After some time the display is drawn below an incomplete line.
    screen.output(&progress, "prompt: ");
    screen.wait_for_the_rest_of_a_line(&progress);
    progress.draw(Duration::from_secs(4), || snapshot.clone());
    progress.draw(Duration::from_secs(5), || snapshot.clone());
    assert!(screen.text().starts_with("half a line\nprompt:\n⠼ 0 done"), "{}", screen.text());
    assert_eq!(screen.text().lines().count(), 3);
}

#[test]
fn status_line_appears_after_two_seconds() {
    let screen = SharedScreen::new(Some((60, 24)));
    let progress = screen.progress(STATUS);
    assert_eq!(progress.due(Duration::ZERO), Some(STATUS_DELAY));
    progress.draw(Duration::from_millis(1999), || panic!("a snapshot is taken"));
    progress.draw(STATUS_DELAY, || snapshot(1, 0, 2, Some(3), 2));
    assert_eq!(screen.text(), "⠋ 1/3 done · 2 running · 0 failed · 2 s · about 2 s left");
    progress.finish();
    assert_eq!((screen.text().as_str(), progress.due(STATUS_DELAY)), ("", None));
    let log = SharedScreen::new(None);
    assert!(!log.progress(ProgressOptions::default()).is_wanted());
}

#[test]
fn status_line_breaks_no_line_of_output() {
    let screen = SharedScreen::new(Some((60, 24)));
    let progress = screen.progress(STATUS);
    screen.output(&progress, "10 %");
    screen.wait_for_the_rest_of_a_line(&progress);
    progress.draw(Duration::from_secs(3), || snapshot(0, 0, 1, None, 3));
    assert_eq!(screen.text(), "10 %");
    screen.output(&progress, "\r\n");
    progress.draw(Duration::from_secs(4), || snapshot(0, 0, 1, None, 4));
    assert_eq!(screen.text(), "10 %\n⠙ 0 done · 1 running · 0 failed · 4 s");
}

#[test]
fn display_in_the_background_is_not_drawn() {
    let screen = SharedScreen::new(Some((60, 24)));
    let progress = screen.progress(BAR);
    screen.with(|screen| screen.foreground = false);
    progress.draw(Duration::from_secs(1), || snapshot(0, 0, 1, None, 1));
    screen.output(&progress, "a\r\n");
    assert_eq!(screen.text(), "a");
    screen.with(|screen| screen.foreground = true);
    progress.draw(Duration::from_secs(2), || snapshot(0, 0, 1, None, 2));
    assert!(screen.text().starts_with("a\n⠙ 0 done"), "{}", screen.text());
}

#[test]
fn colors_of_output_do_not_reach_the_display_and_survive_it() {
    let screen = SharedScreen::new(Some((60, 24)));
    let progress = screen.progress(STATUS);
    screen.output(&progress, "\x1b[31mred\r\n");
    progress.draw(Duration::from_secs(3), || snapshot(0, 0, 1, None, 3));
    screen.output(&progress, "still red\r\n");
    let written = screen.with(|screen| std::mem::take(&mut screen.written));
    let status = "⠋ 0 done · 1 running · 0 failed · 3 s\x1b[K";
    assert!(
        written.starts_with(&format!("\x1b[31mred\r\n\x1b[0m{status}\r\x1b[J\x1b[31mstill red\r\n")),
        "{written:?}"
    );
    progress.suspend(|| screen.clone().write("message\r\n"));
    let written = screen.with(|screen| std::mem::take(&mut screen.written));
    assert!(written.contains("\x1b[0mmessage\r\n\x1b[31m"), "{written:?}");
    screen.output(&progress, "no\x1b[0m more");
    progress.finish();
    let written = screen.with(|screen| std::mem::take(&mut screen.written));
    assert!(written.ends_with("no\x1b[0m more\r\n"), "{written:?}");
}

#[test]
fn message_begins_on_its_own_line() {
    for options in [ProgressOptions::default(), STATUS] {
        let screen = SharedScreen::new(Some((60, 24)));
        let progress = screen.progress(options);
        screen.output(&progress, "begun");
        progress.suspend(|| screen.clone().write("message\r\n"));
        screen.output(&progress, "end\r\n");
        progress.try_suspend(|| screen.clone().write("another\r\n"));
        assert_eq!(screen.text(), "begun\nmessage\nend\nanother");
    }
    let log = SharedScreen::new(None);
    let progress = log.progress(BAR);
    progress.write_output(b"to a terminal", || ());
    progress.suspend(|| log.clone().write("message\n"));
    assert_eq!(log.text(), "message", "no line was begun here");
}

#[test]
fn draw_does_not_wait_for_a_blocked_terminal_or_lock() {
    let screen = SharedScreen::new(Some((60, 24)));
    let progress = screen.progress(BAR);
    screen.with(|screen| screen.ready = false);
    progress.draw(Duration::from_secs(1), || snapshot(0, 0, 1, None, 1));
    assert_eq!(screen.with(|screen| screen.writes), 0);
    // A thread that writes output holds the lock.
    screen.with(|screen| screen.ready = true);
    progress.suspend(|| {
        progress.draw(Duration::from_secs(2), || panic!("a snapshot is taken during a write"));
        assert_eq!(progress.due(Duration::from_secs(2)), Some(DRAW_INTERVAL), "`draw` is not postponed");
        assert_eq!(progress.try_suspend(|| 3), 3);
    });
    progress.try_suspend(|| assert_eq!(screen.text(), ""));
    progress.draw(Duration::from_secs(3), || snapshot(0, 0, 1, None, 1));
    assert!(screen.text().contains("0 done"));
}

#[test]
fn number_of_drawings_is_bounded() {
    let screen = SharedScreen::new(Some((60, 24)));
    let progress = screen.progress(ProgressOptions { bar: true, eta: true, jobs: true, ..STATUS });
    let mut snapshots = 0;
    for micros in (0..10_000_000).step_by(50) {
        let elapsed = Duration::from_micros(micros);
        progress.draw(elapsed, || {
            snapshots += 1;
            Snapshot { elapsed, ..snapshot(micros / 50, 0, 8, Some(1_000_000), 0) }
        });
    }
    assert_eq!((snapshots, screen.with(|screen| screen.writes)), (100, 100));
    assert_eq!(progress.due(Duration::from_millis(9950)), Some(Duration::from_millis(50)));
    let start = Instant::now();
    (0..2000).for_each(|_| progress.suspend(|| ()));
    let most = 2 * (start.elapsed().as_millis() / REDRAW_DELAY.as_millis() + 2);
    assert!(screen.with(|screen| screen.writes) as u128 <= 100 + most + 2, "drawn after each line of output");
}

#[test]
fn log_gets_a_line_every_30_seconds() {
    let screen = SharedScreen::new(None);
    let progress = screen.progress(BAR);
    for second in 0..=95 {
        let elapsed = Duration::from_secs(second);
        assert!(progress.due(elapsed).is_some_and(|due| due <= SAMPLE_INTERVAL));
        progress.draw(elapsed, || snapshot(second, 0, 1, Some(200), second));
        progress.suspend(|| ());
    }
    let lines = [
        "minder: 15 % · 30/200 done · 1 running · 0 failed · 30 s · about 2 min 50 s left",
        "minder: 30 % · 60/200 done · 1 running · 0 failed · 1 min · about 2 min 20 s left",
        "minder: 45 % · 90/200 done · 1 running · 0 failed · 1 min 30 s · about 1 min 50 s left",
    ];
    assert_eq!(screen.text(), lines.join("\n"));
    progress.finish();
    assert_eq!(screen.text(), lines.join("\n"));
}

#[test]
fn heartbeat_follows_silence() {
    let screen = SharedScreen::new(None);
    let heartbeat = Heartbeat::After(Duration::from_secs(30));
    let progress = screen.progress(ProgressOptions { heartbeat, ..ProgressOptions::default() });
    let at = |second: u64, silence: u64| {
        let silence = Duration::from_secs(silence);
        progress
            .draw(Duration::from_secs(second), || Snapshot { silence, ..snapshot(1, 0, 1, Some(2), second) });
        screen.text().lines().count()
    };
    assert_eq!([at(10, 0), at(39, 29)], [0, 0]);
    assert_eq!(screen.text(), "");
    assert_eq!(at(40, 30), 1);
    assert!(screen.text().starts_with("minder: 1/2 done · 1 running · 0 failed · 40 s"), "{}", screen.text());
    assert_eq!([at(69, 59), at(70, 60), at(75, 3), at(101, 29), at(102, 30)], [1, 2, 2, 2, 3]);
    // A message shows that the run is alive, too.
    progress.suspend(|| ());
    assert_eq!([at(131, 59), at(133, 61), at(160, 88), at(161, 89)], [3, 3, 3, 4]);
}

#[test]
fn heartbeat_is_on_by_default_in_ci_only() {
    let after = |ci: Option<&str>| Heartbeat::IfCi.resolve(ci.map(Into::into)).interval();
    assert_eq!([after(None), after(Some("")), after(Some("false"))], [None; 3]);
    assert_eq!([after(Some("true")), after(Some("1"))], [Some(LINE_INTERVAL); 2]);
    assert_eq!(Heartbeat::Never.resolve(Some("true".into())).interval(), None);
}

#[test]
fn display_without_options_does_nothing() {
    let screen = SharedScreen::new(Some((60, 24)));
    let progress = screen.progress(ProgressOptions::default());
    progress.draw(Duration::ZERO, || panic!("a snapshot is taken"));
    assert_eq!((progress.due(Duration::ZERO), progress.suspend(|| 3)), (None, 3));
    progress.finish();
    assert_eq!(screen.with(|screen| screen.writes), 0);
}

#[test]
fn durations_have_at_most_two_units() {
    let texts = [0, 12, 60, 247, 600, 2047, 3600, 7500, 172_800, 273_600]
        .map(|seconds| coarse(Duration::from_secs(seconds)));
    let expected =
        ["0 s", "12 s", "1 min", "4 min 7 s", "10 min", "34 min", "1 h", "2 h 5 min", "2 d", "3 d 4 h"];
    assert_eq!(texts, expected);
    let texts = [3, 3100, 9949, 9950, 61_000].map(|millis| rough(Duration::from_millis(millis)));
    assert_eq!(texts, ["3 ms", "3.1 s", "9.9 s", "9 s", "1 min 1 s"]);
}

#[test]
fn clock_formats_depend_on_the_time_left() {
    let now: Timestamp = "2026-11-20T12:00:00Z".parse().expect("parse time");
    let of = |seconds| clock(now, Duration::from_secs(seconds)).expect("format time").chars().count();
    // The lengths of `14:05:10`, `14:05`, `Mon 09:10` and of a date, in any time zone.
    assert_eq!((of(30), of(4 * 86_400)), (8, 9));
    assert!(of(700) == 5 || of(700) == 9, "{}", of(700));
    assert!(of(40 * 86_400) >= 12);
    assert_eq!(clock(now, Duration::MAX), None);
    let eta = ProgressOptions { eta: true, ..STATUS };
    let text = drawn(eta, (100, 24), &snapshot(1, 0, 1, Some(3), 12));
    assert!(text.contains(" · 12 s · about 12 s left · ends ") && !text.contains('%'), "{text}");
}

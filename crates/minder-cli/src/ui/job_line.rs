//! The lines of `--status-level`: one for each job or attempt that ends.

use minder_os::escape;
use minder_runner::report::{FailureReason, JobEnd};
use unicode_width::UnicodeWidthStr;

use super::progress::rough;
use super::summary::cause_text;
use minder_ui::color::Palette;
use minder_ui::symbols::Symbols;

/// The fewest columns for the command of a job. If a line has less room for it, the line has no columns.
const NAME_MIN: usize = 8;

/// The widths of the columns: the result, the number of the job, and its time.
const MARK_WIDTH: usize = 5;
const NUMBER_WIDTH: usize = 4;
const TIME_WIDTH: usize = 7;

/// The fewest columns of a terminal on which lines begin with the counter.
const COUNTED_MIN: usize = 60;

/// How many jobs have ended, of how many. The total is unknown while the input is read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndedCount {
    pub(crate) ended: u64,
    pub(crate) total: Option<u64>,
}

/// The style of the lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobLines {
    pub(crate) palette: Palette,
    pub(crate) symbols: Symbols,
    /// The number of columns of the terminal; `None` if a line may have any length.
    pub(crate) width: Option<usize>,
    /// What the lines begin with if all jobs have lines.
    pub(crate) count: Option<EndedCount>,
}

impl JobLines {
    /// Formats the end of a job, with its number and its time:
    ///
    /// ```text
    /// [ 7/12] ok       3     1.2 s  ./test.sh a
    /// [ 8/12] FAIL     4    400 ms  (exit 3) ./test.sh b
    /// ```
    pub(crate) fn ended(self, end: &JobEnd) -> String {
        match &end.failure {
            _ if end.is_cut_off => self.line("cut", Palette::notable, "", end),
            None => self.line("ok", Palette::done, "", end),
            Some(_) => self.line("FAIL", Palette::failed, "", end),
        }
    }

    /// Formats the end of an attempt of a job that runs again:
    ///
    /// ```text
    /// retry    4    400 ms  1/3 (exit 3) ./test.sh b
    /// ```
    pub(crate) fn retried(self, end: &JobEnd, attempt: u32, attempts_max: Option<u32>) -> String {
        let of = attempts_max.map_or_else(String::new, |max| format!("/{max}"));
        self.line("retry", Palette::notable, &format!("{attempt}{of} "), end)
    }

    fn line(self, mark: &str, color: fn(Palette, &str) -> String, attempt: &str, end: &JobEnd) -> String {
        let time = match &end.failure {
            Some(FailureReason::NotStarted(_) | FailureReason::TimedOut(_)) => String::new(),
            _ => rough(end.wall),
        };
        let cause = match &end.failure {
            Some(reason) if !end.is_cut_off => format!("({}) ", cause_text(reason)),
            _ => String::new(),
        };
        let counter = self.counter();
        let gap = " ".repeat(MARK_WIDTH.saturating_sub(mark.len()));
        let number = end.number;
        let head = format!("{gap} {number:>NUMBER_WIDTH$}  {time:>TIME_WIDTH$}  {attempt}{cause}");
        let head = self.symbols.convert(&head);
        let name = escape(end.name.as_bytes());
        let name = self.symbols.convert(&name);
        let rest = match self.width.map(|width| width.saturating_sub(counter.len() + mark.len())) {
            None => format!("{head}{name}"),
            Some(room) if head.width() + name.width().min(NAME_MIN) <= room => {
                self.symbols.shorten(&format!("{head}{name}"), room)
            }
            // The time is the least that a reader needs, and `minder log` has it.
            Some(room) => {
                let text = format!(" {number} {attempt}{cause}{name}");
                self.symbols.shorten(&self.symbols.convert(&text), room)
            }
        };
        format!("{counter}{}{rest}", color(self.palette, mark))
    }

    fn counter(self) -> String {
        match self.count {
            _ if self.width.is_some_and(|width| width < COUNTED_MIN) => String::new(),
            Some(EndedCount { ended, total: Some(total) }) => {
                let width = total.to_string().len();
                format!("[{ended:>width$}/{total}] ")
            }
            Some(EndedCount { ended, total: None }) => format!("[{ended}] "),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use minder::ExitStatus;

    use super::*;

    const LINES: JobLines =
        JobLines { palette: Palette::PLAIN, symbols: Symbols::Unicode, width: None, count: None };
    const WALL: Duration = Duration::from_millis(1234);

    fn end(failure: Option<FailureReason>) -> JobEnd {
        let name = "./test.sh a".to_owned();
        JobEnd { number: 12, name, wall: WALL, failure, is_cut_off: false, command: None, total: None }
    }

    #[test]
    fn counter_stands_first_where_there_is_room() {
        let count = |ended, total| JobLines { count: Some(EndedCount { ended, total }), ..LINES };
        assert_eq!(count(7, Some(120)).ended(&end(None)), "[  7/120] ok      12    1.2 s  ./test.sh a");
        assert_eq!(count(7, None).ended(&end(None)), "[7] ok      12    1.2 s  ./test.sh a");
        let narrow = |width| JobLines { width: Some(width), ..count(7, Some(9)) }.ended(&end(None));
        assert_eq!(narrow(59), "ok      12    1.2 s  ./test.sh a");
        assert_eq!(narrow(60), "[7/9] ok      12    1.2 s  ./test.sh a");
    }

    #[test]
    fn line_names_result_number_time_and_command() {
        let exited = |status| Some(FailureReason::Exited(status, WALL));
        let killed = ExitStatus::Signaled { signal: 11, core_dumped: false };
        for (failure, line) in [
            (None, "ok      12    1.2 s  ./test.sh a"),
            (exited(ExitStatus::Exited(3)), "FAIL    12    1.2 s  (exit 3) ./test.sh a"),
            (exited(killed), "FAIL    12    1.2 s  (killed by SEGV) ./test.sh a"),
            (
                Some(FailureReason::TimedOut(Duration::from_secs(10))),
                "FAIL    12           (timed out after 10 s) ./test.sh a",
            ),
            (
                Some(FailureReason::NotStarted("not found".to_owned())),
                "FAIL    12           (not found) ./test.sh a",
            ),
        ] {
            assert_eq!(LINES.ended(&end(failure)), line);
        }
        let cut = JobEnd { is_cut_off: true, ..end(exited(killed)) };
        assert_eq!(LINES.ended(&cut), "cut     12    1.2 s  ./test.sh a");
        let failed = end(exited(ExitStatus::Exited(3)));
        assert_eq!(LINES.retried(&failed, 1, Some(3)), "retry   12    1.2 s  1/3 (exit 3) ./test.sh a");
        assert_eq!(LINES.retried(&failed, 7, None), "retry   12    1.2 s  7 (exit 3) ./test.sh a");
    }

    #[test]
    fn line_fits_the_terminal() {
        let lines = |width, symbols| JobLines { width: Some(width), symbols, ..LINES };
        assert_eq!(lines(31, Symbols::Unicode).ended(&end(None)), "ok      12    1.2 s  ./test.sh…");
        assert_eq!(lines(31, Symbols::Ascii).ended(&end(None)), "ok      12    1.2 s  ./test....");
        assert_eq!(lines(20, Symbols::Unicode).ended(&end(None)), "ok 12 ./test.sh a");
        assert_eq!(lines(5, Symbols::Unicode).ended(&end(None)), "ok 1…");
        let exited = end(Some(FailureReason::Exited(ExitStatus::Exited(3), WALL)));
        assert_eq!(lines(20, Symbols::Unicode).ended(&exited), "FAIL 12 (exit 3) ./…");
        assert_eq!(lines(31, Symbols::Unicode).ended(&exited), "FAIL 12 (exit 3) ./test.sh a");
        assert_eq!(lines(41, Symbols::Unicode).ended(&exited), "FAIL    12    1.2 s  (exit 3) ./test.sh a");
        let failed = end(Some(FailureReason::NotStarted("a · b".to_owned())));
        assert_eq!(lines(60, Symbols::Ascii).ended(&failed), "FAIL    12           (a, b) ./test.sh a");
    }
}

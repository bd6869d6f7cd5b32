//! The lines of `--status-level`: one for each job or attempt that ends.

use minder_os::escape;
use minder_runner::report::{FailureReason, JobEnd};
use unicode_width::UnicodeWidthStr;

use super::progress::rough;
use super::summary::cause_text;
use minder_ui::color::Palette;
use minder_ui::symbols::Symbols;

/// The fewest columns for the command of a job.
const NAME_MIN: usize = 10;

/// The style of the lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobLines {
    pub(crate) palette: Palette,
    pub(crate) symbols: Symbols,
    /// The number of columns of the terminal; `None` if a line may have any length.
    pub(crate) width: Option<usize>,
}

impl JobLines {
    /// Formats the end of a job: `ok 1.2 s ./test.sh a`, `FAIL (exit 3) 400 ms ./test.sh b`.
    pub(crate) fn ended(self, end: &JobEnd) -> String {
        match &end.failure {
            _ if end.is_cut_off => self.line("cut off", Palette::notable, end),
            None => self.line("ok", Palette::done, end),
            Some(reason) => self.line(&format!("FAIL ({})", cause_text(reason)), Palette::failed, end),
        }
    }

    /// Formats the end of an attempt of a job that runs again: `retry 1/3 (exit 3) 400 ms ./test.sh b`.
    pub(crate) fn retried(self, end: &JobEnd, attempt: u32, attempts_max: Option<u32>) -> String {
        let of = attempts_max.map_or_else(String::new, |max| format!("/{max}"));
        let cause =
            end.failure.as_ref().map_or_else(String::new, |reason| format!(" ({})", cause_text(reason)));
        self.line(&format!("retry {attempt}{of}{cause}"), Palette::notable, end)
    }

    fn line(self, mark: &str, color: fn(Palette, &str) -> String, end: &JobEnd) -> String {
        let time = match &end.failure {
            Some(FailureReason::NotStarted(_) | FailureReason::TimedOut(_)) => String::new(),
            _ => format!(" {}", rough(end.wall)),
        };
        let mark = self.symbols.convert(mark);
        let name = escape(end.name.as_bytes());
        let name = self.symbols.convert(&name);
        let room =
            self.width.map(|width| width.saturating_sub(mark.width() + time.width() + 1).max(NAME_MIN));
        let name = room.map_or_else(|| name.to_string(), |room| self.symbols.shorten(&name, room));
        format!("{}{time} {name}", color(self.palette, &mark))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use minder::ExitStatus;

    use super::*;

    const LINES: JobLines = JobLines { palette: Palette::PLAIN, symbols: Symbols::Unicode, width: None };
    const WALL: Duration = Duration::from_millis(1234);

    fn end(failure: Option<FailureReason>) -> JobEnd {
        JobEnd { name: "./test.sh a".to_owned(), wall: WALL, failure, is_cut_off: false, command: None }
    }

    #[test]
    fn line_names_result_time_and_command() {
        let exited = |status| Some(FailureReason::Exited(status, WALL));
        let killed = ExitStatus::Signaled { signal: 11, core_dumped: false };
        for (failure, line) in [
            (None, "ok 1.2 s ./test.sh a"),
            (exited(ExitStatus::Exited(3)), "FAIL (exit 3) 1.2 s ./test.sh a"),
            (exited(killed), "FAIL (killed by SEGV) 1.2 s ./test.sh a"),
            (
                Some(FailureReason::TimedOut(Duration::from_secs(10))),
                "FAIL (timed out after 10 s) ./test.sh a",
            ),
            (Some(FailureReason::NotStarted("not found".to_owned())), "FAIL (not found) ./test.sh a"),
        ] {
            assert_eq!(LINES.ended(&end(failure)), line);
        }
        let cut = JobEnd { is_cut_off: true, ..end(exited(killed)) };
        assert_eq!(LINES.ended(&cut), "cut off 1.2 s ./test.sh a");
        let failed = end(exited(ExitStatus::Exited(3)));
        assert_eq!(LINES.retried(&failed, 1, Some(3)), "retry 1/3 (exit 3) 1.2 s ./test.sh a");
        assert_eq!(LINES.retried(&failed, 7, None), "retry 7 (exit 3) 1.2 s ./test.sh a");
    }

    #[test]
    fn line_fits_the_terminal() {
        let lines = |width, symbols| JobLines { width: Some(width), symbols, ..LINES };
        assert_eq!(lines(19, Symbols::Unicode).ended(&end(None)), "ok 1.2 s ./test.sh…");
        assert_eq!(lines(19, Symbols::Ascii).ended(&end(None)), "ok 1.2 s ./test....");
        assert_eq!(lines(5, Symbols::Unicode).ended(&end(None)), "ok 1.2 s ./test.sh…");
        let failed = end(Some(FailureReason::NotStarted("a · b".to_owned())));
        assert_eq!(lines(60, Symbols::Ascii).ended(&failed), "FAIL (a, b) ./test.sh a");
    }
}

//! Every exit status of the command, each with the one sentence that the help prints. Those of
//! `run` are GNU parallel's.

/// All jobs succeeded.
pub(crate) const SUCCESS: u8 = 0;
/// 1 to 100: so many jobs failed.
pub(crate) const FAILED_MAX: u8 = 100;
/// More than 100 jobs failed.
pub(crate) const FAILED_MORE: u8 = 101;
/// Something else went wrong: flags, the template, no such command, a full disk. One line on stderr
/// says what.
pub(crate) const OTHER: u8 = 255;
/// Whoever read our output closed it: what a shell shows for a filter that a closed pipe ended.
pub(crate) const BROKEN_PIPE: u8 = 141;

/// Three wishes to end: what a shell shows for Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
/// The same after a wish by TERM.
pub(crate) const TERMINATED: u8 = 143;

/// The table for the help.
pub(crate) const HELP: &str = "\
Exit status:
  0        all jobs succeeded
  1 to 100 so many jobs failed
  101      more than 100 jobs failed
  130, 143 a signal ended the run: Ctrl-C, TERM (the run ends by that signal)
  141      whoever read the output closed it
  255      anything else; one line on stderr says what";

/// The status for this many failed jobs.
pub(crate) fn of_failed(failed: u64) -> u8 {
    match u8::try_from(failed) {
        Ok(0) => SUCCESS,
        Ok(failed) if failed <= FAILED_MAX => failed,
        _ => FAILED_MORE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_jobs_are_counted_to_a_hundred() {
        let statuses = [0, 1, 100, 101, 255, 256, 1_000_000].map(of_failed);
        assert_eq!(statuses, [0, 1, 100, 101, 101, 101, 101]);
    }
}

//! The ends of jobs that GNU parallel reports on standard error: time-outs, and those that `--halt` counts.

use minder::jobs::HaltTrigger;
use minder_runner::report::FailureReason;

use crate::flags::ControlFlags;

/// The selection of ends of jobs that are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobReports {
    /// The ends that `--halt` counts.
    halt: Option<HaltTrigger>,
}

impl JobReports {
    /// Returns what these flags report; `None` without the command line of GNU parallel, or if no job is.
    pub(super) fn new(is_parallel: bool, flags: &ControlFlags) -> Option<Self> {
        let halt = flags.halt.as_deref().and_then(trigger);
        (is_parallel && (halt.is_some() || flags.timeout.is_some())).then_some(Self { halt })
    }

    /// Returns whether the end of a job is reported. Without a failure, the job succeeded.
    pub(crate) fn includes(self, failure: Option<&FailureReason>) -> bool {
        self.halts_on(failure) || matches!(failure, Some(FailureReason::TimedOut(_)))
    }

    /// Returns whether `--halt` counts a job that ended like this.
    pub(crate) fn halts_on(self, failure: Option<&FailureReason>) -> bool {
        self.halt.is_some_and(|trigger| match trigger {
            HaltTrigger::Failed => failure.is_some(),
            HaltTrigger::Succeeded => failure.is_none(),
            _ => true,
        })
    }

    /// Returns the word for the result of a job that `--halt` counts.
    pub(crate) fn result(self) -> &'static str {
        match self.halt {
            Some(HaltTrigger::Succeeded) => "succeeded",
            Some(HaltTrigger::Finished) => "finished",
            _ => "failed",
        }
    }
}

/// Returns what a valid value of `--halt` counts.
fn trigger(text: &str) -> Option<HaltTrigger> {
    match text {
        "never" | "0" => None,
        "-1" | "-2" => Some(HaltTrigger::Succeeded),
        _ if text.contains("success") => Some(HaltTrigger::Succeeded),
        _ if text.contains("done") => Some(HaltTrigger::Finished),
        _ => Some(HaltTrigger::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigger_reads_old_and_new_forms() {
        assert_eq!(trigger("never"), None);
        for text in ["1", "2", "10%", "now,fail=1", "soon,fail=3%"] {
            assert_eq!(trigger(text), Some(HaltTrigger::Failed), "{text}");
        }
        assert_eq!(trigger("-2"), Some(HaltTrigger::Succeeded));
        assert_eq!(trigger("now,success=2"), Some(HaltTrigger::Succeeded));
        assert_eq!(trigger("soon,done=2"), Some(HaltTrigger::Finished));
    }
}

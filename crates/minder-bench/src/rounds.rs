//! Rounds: each measures every case once, so that other load on the machine affects all cases
//! alike.

use crate::case::{Case, Measurement};
use crate::error::{Error, Result};
use crate::results::Results;

/// Measures the cases of one subject. It keeps what consecutive cases share, such as children.
pub trait Suite {
    /// Measures a case once. Returns `None` if it gave up because `is_cancelled` returned `true`; a
    /// measurement that takes long calls it now and then.
    ///
    /// # Errors
    /// If this machine cannot measure the case. The error may be [fatal](Error::is_fatal).
    fn measure(&mut self, case: &Case, is_cancelled: &mut dyn FnMut() -> bool)
    -> Result<Option<Measurement>>;
}

/// Follows the rounds, and can cancel them.
pub trait Observer {
    /// The error of [`measured`](Self::measured).
    type Error: From<Error>;

    /// Returns whether measuring ends early.
    fn is_cancelled(&mut self) -> bool;

    /// Is called before the case at `index` is measured in `round`, which counts from 1.
    fn starting(&mut self, index: usize, round: u32, case: &Case);

    /// Is called after a measurement.
    ///
    /// # Errors
    /// An error ends the rounds.
    fn measured(
        &mut self,
        round: u32,
        case: &Case,
        measurement: &Measurement,
    ) -> std::result::Result<(), Self::Error>;
}

/// An [`Observer`] that ignores all calls and never cancels.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {
    type Error = Error;

    fn is_cancelled(&mut self) -> bool {
        false
    }

    fn starting(&mut self, _index: usize, _round: u32, _case: &Case) {}

    fn measured(&mut self, _round: u32, _case: &Case, _measurement: &Measurement) -> Result<()> {
        Ok(())
    }
}

/// Measures every case in every round, until all is done or the observer cancels. A case that
/// fails once is not tried again.
///
/// # Errors
/// If a case fails with a [fatal](Error::is_fatal) error, or the observer returns an error. The
/// errors of other cases are added to the results.
pub fn run_rounds<O: Observer>(
    suite: &mut dyn Suite,
    results: &mut Results<'_>,
    rounds: u32,
    observer: &mut O,
) -> std::result::Result<(), O::Error> {
    for round in 1..=rounds {
        for (index, case) in results.cases().iter().enumerate() {
            if results.has_failed(index) {
                continue;
            }
            observer.starting(index, round, case);
            match suite.measure(case, &mut || observer.is_cancelled()) {
                Ok(Some(measurement)) => {
                    results.add(index, measurement);
                    observer.measured(round, case, &measurement)?;
                }
                Ok(None) => return Ok(()),
                // A signal can make a system call fail.
                Err(_) if observer.is_cancelled() => return Ok(()),
                Err(error) if error.is_fatal() => return Err(error.into()),
                Err(error) => results.add_error(index, error),
            }
            if observer.is_cancelled() {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder::ErrorKind;

    /// Fails for one size with an error of this kind.
    struct Fails(u64, ErrorKind, u32);

    impl Suite for Fails {
        fn measure(
            &mut self,
            case: &Case,
            is_cancelled: &mut dyn FnMut() -> bool,
        ) -> Result<Option<Measurement>> {
            self.2 += 1;
            if is_cancelled() {
                return Ok(None);
            }
            if case.size == self.0 {
                return Err(Error::with_text(self.1, "unfit".to_owned()));
            }
            Ok(Some(Measurement { operations: 1, cpu_ns: 1.0, wall_ns: 1.0 }))
        }
    }

    #[test]
    fn failed_case_is_not_tried_again() {
        let cases = Case::grid(&[1, 2], &["pool"]);
        let mut results = Results::new(&cases);
        let mut suite = Fails(2, ErrorKind::Other, 0);
        run_rounds(&mut suite, &mut results, 3, &mut NoObserver).expect("run rounds");
        assert_eq!(suite.2, 4);
        assert!(results.has_failed(1) && results.median(0, |it| it.cpu_ns) == Some(1.0));
    }

    #[test]
    fn fatal_error_ends_rounds() {
        let cases = Case::grid(&[1, 2], &["pool"]);
        let mut results = Results::new(&cases);
        let mut suite = Fails(1, ErrorKind::InvalidInput, 0);
        let error = run_rounds(&mut suite, &mut results, 3, &mut NoObserver).expect_err("run rounds");
        assert!(error.is_fatal() && suite.2 == 1 && results.is_empty());
    }
}

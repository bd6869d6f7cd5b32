//! All measurements of a set of cases.

use crate::case::{Case, Measurement};
use crate::error::Error;
use crate::median::median;

/// The measurements of each case, and the reason for each case that cannot be measured.
///
/// Cases are addressed by their index in [`cases`](Self::cases).
#[derive(Debug)]
pub struct Results<'a> {
    cases: &'a [Case],
    measurements: Vec<Vec<Measurement>>,
    errors: Vec<Option<Error>>,
}

/// Sizes at which a mechanism cannot be measured, for one reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unmeasured<'a> {
    /// The name of the mechanism.
    pub mechanism: &'static str,
    /// The kind of operation, if the suite has several.
    pub kind: Option<&'static str>,
    /// The sizes, in the order of the cases.
    pub sizes: Vec<u64>,
    /// The reason.
    pub error: &'a Error,
}

impl<'a> Results<'a> {
    /// Makes results without a measurement.
    #[must_use]
    pub fn new(cases: &'a [Case]) -> Self {
        let measurements = vec![Vec::new(); cases.len()];
        let errors = cases.iter().map(|_| None).collect();
        Self { cases, measurements, errors }
    }

    /// Returns the cases, in the order of measuring.
    #[must_use]
    pub fn cases(&self) -> &'a [Case] {
        self.cases
    }

    /// Adds a measurement of the case at `index`.
    ///
    /// # Panics
    /// If there is no such case.
    pub fn add(&mut self, index: usize, measurement: Measurement) {
        self.measurements[index].push(measurement);
    }

    /// Records that the case at `index` cannot be measured.
    ///
    /// # Panics
    /// If there is no such case.
    pub fn add_error(&mut self, index: usize, error: Error) {
        self.errors[index] = Some(error);
    }

    /// Returns whether measuring the case at `index` failed before.
    ///
    /// # Panics
    /// If there is no such case.
    #[must_use]
    pub fn has_failed(&self, index: usize) -> bool {
        self.errors[index].is_some()
    }

    /// Returns whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.measurements.iter().all(Vec::is_empty)
    }

    /// Returns the median of a value of all measurements of the case at `index`; `None` without
    /// measurements.
    ///
    /// # Panics
    /// If there is no such case.
    #[must_use]
    pub fn median(&self, index: usize, value: impl Fn(&Measurement) -> f64) -> Option<f64> {
        median(self.measurements[index].iter().map(value).collect())
    }

    /// Returns what was not measured, with one entry for each mechanism, kind and reason.
    #[must_use]
    pub fn unmeasured(&self) -> Vec<Unmeasured<'_>> {
        let mut unmeasured: Vec<Unmeasured<'_>> = Vec::new();
        for (case, error) in self.cases.iter().zip(&self.errors) {
            let Some(error) = error else { continue };
            let same = unmeasured.iter_mut().find(|entry| {
                entry.mechanism == case.mechanism
                    && entry.kind == case.kind
                    && entry.error.to_string() == error.to_string()
            });
            match same {
                Some(entry) => entry.sizes.push(case.size),
                None => unmeasured.push(Unmeasured {
                    mechanism: case.mechanism,
                    kind: case.kind,
                    sizes: vec![case.size],
                    error,
                }),
            }
        }
        unmeasured
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder::ErrorKind;

    #[test]
    fn unmeasured_sizes_are_grouped_by_mechanism_and_reason() {
        let cases = Case::grid(&[2, 64, 128], &["pool", "scan"]);
        let mut results = Results::new(&cases);
        let fail = |text: &str| Error::with_text(ErrorKind::Other, text.to_owned());
        results.add_error(0, fail("no threads"));
        results.add_error(2, fail("no threads"));
        results.add_error(4, fail("no memory"));
        results.add_error(1, fail("no threads"));
        let found: Vec<_> =
            results.unmeasured().into_iter().map(|entry| (entry.mechanism, entry.sizes)).collect();
        assert_eq!(found, [("pool", vec![2, 64]), ("scan", vec![2]), ("pool", vec![128])]);
        assert!(results.is_empty() && results.has_failed(0) && !results.has_failed(3));
    }
}

//! The median of measured values with their extremes, and of ratios that are formed within a round.

use crate::median::median;

/// The median of some values, the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of these values; `None` without values.
    ///
    /// ```
    /// use minder_bench::Spread;
    /// let spread = Spread::of([3.0, 1.0, 2.5]).expect("three values");
    /// assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 3.0));
    /// assert_eq!(Spread::of([]), None);
    /// ```
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let min = values.iter().copied().reduce(f64::min)?;
        let max = values.iter().copied().reduce(f64::max)?;
        Some(Self { median: median(values)?, min, max })
    }

    /// Returns the spread of how many times the value of `below` in the same round each value of `above` is.
    /// A round without a value of `below`, or with zero, has no ratio; `None` without ratios.
    ///
    /// A machine that is slow in one round is slow for both, so such ratios vary less than those of medians.
    ///
    /// ```
    /// use minder_bench::Spread;
    /// let above = [(1, 10.0), (2, 40.0), (3, 1.0)];
    /// let below = [(2, 10.0), (1, 5.0)];
    /// let ratio = Spread::of_ratios(above, below).expect("two ratios");
    /// assert_eq!((ratio.median, ratio.min, ratio.max), (3.0, 2.0, 4.0));
    /// ```
    #[must_use]
    pub fn of_ratios<R: PartialEq>(
        above: impl IntoIterator<Item = (R, f64)>,
        below: impl IntoIterator<Item = (R, f64)>,
    ) -> Option<Self> {
        let below: Vec<(R, f64)> = below.into_iter().collect();
        let ratio = |(round, value): (R, f64)| {
            let (_, unit) = below.iter().find(|(other, unit)| *other == round && *unit != 0.0)?;
            Some(value / unit)
        };
        Self::of(above.into_iter().filter_map(ratio))
    }

    /// Returns the spread of the values times `factor`, for another unit.
    ///
    /// ```
    /// use minder_bench::Spread;
    /// assert_eq!(Spread::of([2e-3]).map(|it| it.scaled(1e3)), Spread::of([2.0]));
    /// ```
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { median: self.median * factor, min: self.min * factor, max: self.max * factor }
    }

    /// Returns `median [minimum-maximum]` with this number of decimals.
    ///
    /// ```
    /// use minder_bench::Spread;
    /// assert_eq!(Spread::of([1.0, 2.0]).map(|it| it.show(1)), Some("1.5 [1.0-2.0]".to_string()));
    /// ```
    #[must_use]
    pub fn show(self, decimals: usize) -> String {
        format!("{:.decimals$} [{:.decimals$}-{:.decimals$}]", self.median, self.min, self.max)
    }
}

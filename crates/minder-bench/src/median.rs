//! The median of measured values.

/// Returns the middle value, or the mean of the two middle values; `None` without values.
///
/// ```
/// use minder_bench::median;
/// assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
/// assert_eq!(median(vec![4.0, 1.0, 100.0, 2.0]), Some(3.0));
/// assert_eq!(median(Vec::new()), None);
/// ```
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        len if len % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

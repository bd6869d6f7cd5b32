//! What a case takes in theory: computations that share the processors equally, and cost nothing else.

use std::time::Duration;

use super::case::TurnaroundCase;
use super::form::Runner;
use super::measurement::{mean, percentile_95};

/// What a case takes in theory.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The time until all computations are done.
    pub elapsed: Duration,
    /// The mean of the relative turnarounds.
    pub turnaround: f64,
    /// The 95th percentile of the relative turnarounds.
    pub turnaround_p95: f64,
}

/// Predicts a case on this many processors. The computations that run and need a processor share all
/// of them equally; a sleep needs none. Starting and finishing cost nothing.
///
/// ```
/// use minder_bench::{Form, Lengths, Order, Runner, TurnaroundCase, Workload, predict};
///
/// let form = Form { runner: Runner::Serial, degree: 1, order: Order::Longest };
/// let (workload, lengths) = (Workload::Io, Lengths::Ramp);
/// let prediction = predict(&TurnaroundCase { workload, form, lengths, bias_ms: 10, count: 17 }, 1);
/// assert_eq!(prediction.elapsed.as_millis(), 1530);
/// assert_eq!(format!("{:.1}", prediction.turnaround), "27.0");
/// ```
#[must_use]
pub fn predict(case: &TurnaroundCase, processors: usize) -> Prediction {
    let ends = ends(case, processors.max(1));
    let relative = |(index, end): (usize, &f64)| end / case.length(index).as_secs_f64();
    let turnarounds: Vec<f64> = ends.iter().enumerate().map(relative).collect();
    Prediction {
        elapsed: Duration::from_secs_f64(ends.iter().copied().fold(0.0, f64::max)),
        turnaround: mean(&turnarounds),
        turnaround_p95: percentile_95(turnarounds),
    }
}

/// Returns when each computation is done, in seconds, by its index.
fn ends(case: &TurnaroundCase, processors: usize) -> Vec<f64> {
    let degree = if case.form.runner == Runner::Timers { case.count } else { case.form.degree.max(1) };
    let mut waiting = case.start_order().into_iter();
    let mut running: Vec<(usize, f64)> = Vec::new();
    let mut ends = vec![0.0; case.count];
    let mut now = 0.0;
    loop {
        let room = degree - running.len();
        running.extend(waiting.by_ref().take(room).map(|index| (index, case.length(index).as_secs_f64())));
        let busy = running.iter().filter(|(index, _)| case.workload.needs_cpu(*index)).count();
        let share = (processors as f64 / busy.max(1) as f64).min(1.0);
        let rate = |index: usize| if case.workload.needs_cpu(index) { share } else { 1.0 };
        let step = running.iter().map(|(index, left)| left / rate(*index)).reduce(f64::min);
        let Some(step) = step else { return ends };
        now += step;
        running.retain_mut(|(index, left)| {
            *left -= step * rate(*index);
            // A remainder of rounding counts as done.
            let is_done = *left < 1e-9;
            if is_done {
                ends[*index] = now;
            }
            !is_done
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::{Lengths, Workload};
    use super::super::form::{Form, Order};
    use super::*;

    fn case(workload: Workload, runner: Runner, degree: usize, order: Order) -> TurnaroundCase {
        let form = Form { runner, degree, order };
        TurnaroundCase { workload, form, lengths: Lengths::Ramp, bias_ms: 10, count: 17 }
    }

    fn millis(prediction: &Prediction) -> u128 {
        (prediction.elapsed + Duration::from_micros(1)).as_millis()
    }

    #[test]
    fn serial_turnaround_is_the_formula_of_prefix_sums() {
        let longest = predict(&case(Workload::Io, Runner::Serial, 1, Order::Longest), 1);
        let shortest = predict(&case(Workload::Cpu, Runner::Serial, 1, Order::Shortest), 2);
        // Independent of the simulation: done after all longer ones, or after all shorter ones.
        let sum = |from: u64, to: u64| (from..=to).sum::<u64>() as f64;
        let of = |end: &dyn Fn(u64) -> f64| (1..=17).map(|i| end(i) / i as f64).sum::<f64>() / 17.0;
        assert!((longest.turnaround - of(&|i| sum(i, 17))).abs() < 1e-9, "{longest:?}");
        assert!((shortest.turnaround - of(&|i| sum(1, i))).abs() < 1e-9, "{shortest:?}");
        assert_eq!(format!("{:.1} {:.2}", longest.turnaround, shortest.turnaround), "27.0 5.00");
        assert_eq!((millis(&longest), millis(&shortest)), (1530, 1530));
    }

    #[test]
    fn waits_overlap_and_computations_share_the_processors() {
        let all =
            |workload, processors| predict(&case(workload, Runner::Threads, 25, Order::Longest), processors);
        assert_eq!((millis(&all(Workload::Io, 1)), all(Workload::Io, 1).turnaround), (170, 1.0));
        assert_eq!(millis(&all(Workload::Cpu, 1)), 1530);
        // The longest one runs alone at the end, so two processors take a bit more than half.
        assert!((765..=775).contains(&millis(&all(Workload::Cpu, 2))), "{:?}", all(Workload::Cpu, 2));
        // The odd ones compute for 810 ms in all, and the waits end before.
        assert_eq!(millis(&all(Workload::Mixed, 1)), 810);
        let timers = predict(&case(Workload::Io, Runner::Timers, 1, Order::Longest), 1);
        assert_eq!(millis(&timers), 170);
    }

    #[test]
    fn equal_computations_are_divided_by_the_processors() {
        for (count, processors, wanted) in [(8, 2, 40), (16, 2, 80), (9, 2, 50), (8, 1, 80)] {
            let mut case = case(Workload::Cpu, Runner::Threads, 2, Order::Longest);
            (case.lengths, case.count) = (Lengths::Equal, count);
            assert_eq!(millis(&predict(&case, processors)), wanted, "{count}, {processors}");
        }
    }
}

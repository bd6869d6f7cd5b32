//! Which cases are measured, how often, and how long that takes.

use std::time::Duration;

use super::case::{Lengths, TurnaroundCase, Workload};
use super::form::{Form, Order, Runner};
use super::model::predict;

/// The longest bias that is measured with every number of computations and several times. Longer ones are
/// measured once, with few computations.
const LONG_BIAS_MS: u64 = 270;
/// The most computations with a longer bias.
const LONG_COUNT: usize = 5;

/// What a plan is made of. The lists are those of the flags, or their defaults.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// What the computations do.
    pub workloads: Vec<Workload>,
    /// What runs them.
    pub runners: Vec<Runner>,
    /// The lengths of the first computation, in milliseconds.
    pub biases_ms: Vec<u64>,
    /// The numbers of computations.
    pub counts: Vec<usize>,
    /// How many computations run at once. The greatest one stands for each that is not less than the
    /// number of computations: all run at once then.
    pub degrees: Vec<usize>,
    /// The rule of their lengths.
    pub lengths: Lengths,
    /// How often a case is measured. Cases with a bias above 270 ms are measured once.
    pub repetitions: u32,
    /// The processors that this process may use.
    pub processors: usize,
    /// The most time that all runs may take in theory; `None` for any.
    pub time_max: Option<Duration>,
}

/// A case, and which of its repetitions this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlannedRun {
    /// The case.
    pub case: TurnaroundCase,
    /// Its repetition, from 1 on.
    pub repetition: u32,
}

/// The runs, in the order of measuring.
///
/// The first repetition of every bias comes first, in ascending order of the biases, then the second
/// repetitions, and so on: forms that are compared run one after the other. A repetition of a bias that
/// does not fit into the time that is left is left out, as a whole.
///
/// If not even the first repetition of any bias fits, the plan leaves out parts of every repetition, until
/// one fits: first the greatest numbers of computations, then the least degrees, at last all degrees and
/// so the forms that have one, and then the last workloads.
///
/// ```
/// use minder_bench::{Lengths, Plan, PlanOptions, Runner, Workload};
/// use std::time::Duration;
///
/// let options = PlanOptions {
///     workloads: vec![Workload::Io],
///     runners: vec![Runner::Serial],
///     biases_ms: vec![10, 30],
///     counts: vec![5],
///     degrees: vec![],
///     lengths: Lengths::Ramp,
///     repetitions: 2,
///     processors: 1,
///     time_max: Some(Duration::from_millis(1500)),
/// };
/// let plan = Plan::new(&options);
/// // Two orders of 150 ms each; those of 450 ms fit once; then the second repetition of 10 ms does.
/// assert_eq!((plan.runs.len(), plan.left_out.as_slice()), (6, &[(30, 2)][..]));
/// assert_eq!(plan.expected(&plan.runs), Duration::from_millis(1500));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// The runs.
    pub runs: Vec<PlannedRun>,
    /// The biases in milliseconds and their repetitions that did not fit into the time.
    pub left_out: Vec<(u64, u32)>,
    /// The numbers of computations that did not fit into the time, with any bias.
    pub left_out_counts: Vec<usize>,
    /// The degrees that did not fit into the time, with any bias.
    pub left_out_degrees: Vec<usize>,
    /// The workloads that did not fit into the time, with any bias.
    pub left_out_workloads: Vec<Workload>,
    processors: usize,
}

/// Why a plan without a limit of time has no runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmptyPlan {
    /// None of the runners runs any of the workloads.
    NoForm,
    /// With these biases only few computations are measured, and the counts are greater.
    LongBias {
        /// The bias up to which any number is measured, in milliseconds.
        bias_ms: u64,
        /// The greatest number of computations with a longer bias.
        count: usize,
    },
}

impl PlanOptions {
    /// Returns why there is nothing to measure, whatever the time; `None` if there is.
    ///
    /// ```
    /// use minder_bench::{EmptyPlan, Lengths, PlanOptions, Runner, Workload};
    ///
    /// let options = PlanOptions {
    ///     workloads: vec![Workload::Cpu],
    ///     runners: vec![Runner::Timers],
    ///     biases_ms: vec![10],
    ///     counts: vec![5],
    ///     degrees: vec![2],
    ///     lengths: Lengths::Ramp,
    ///     repetitions: 1,
    ///     processors: 1,
    ///     time_max: None,
    /// };
    /// assert_eq!(options.empty(), Some(EmptyPlan::NoForm)); // a timer does not compute
    /// ```
    #[must_use]
    pub fn empty(&self) -> Option<EmptyPlan> {
        let has_cases =
            |options: &Self| options.biases_ms.iter().any(|bias| !cases(options, *bias).is_empty());
        if has_cases(self) {
            return None;
        }
        let short = Self { biases_ms: vec![1], ..self.clone() };
        let long = EmptyPlan::LongBias { bias_ms: LONG_BIAS_MS, count: LONG_COUNT };
        Some(if has_cases(&short) { long } else { EmptyPlan::NoForm })
    }
}

/// How many of each list of the options are measured: the first workloads and counts, and the last degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    workloads: usize,
    counts: usize,
    degrees: usize,
}

impl Extent {
    /// Returns the extents to try, from everything to the least.
    fn all(options: &PlanOptions) -> impl Iterator<Item = Self> {
        let [workloads, counts, degrees] =
            [options.workloads.len(), options.counts.len(), options.degrees.len()];
        let fewer_counts = (1..=counts).rev().map(move |counts| Self { workloads, counts, degrees });
        let fewer_degrees =
            (0..degrees).rev().map(move |degrees| Self { workloads, counts: counts.min(1), degrees });
        let fewer_workloads =
            (1..workloads).rev().map(move |workloads| Self { workloads, counts: counts.min(1), degrees: 0 });
        fewer_counts.chain(fewer_degrees).chain(fewer_workloads)
    }

    /// Returns the options of this extent, whose lists are in ascending order.
    fn of(self, options: &PlanOptions) -> PlanOptions {
        PlanOptions {
            workloads: options.workloads[..self.workloads].to_vec(),
            counts: options.counts[..self.counts].to_vec(),
            degrees: options.degrees[options.degrees.len() - self.degrees..].to_vec(),
            ..options.clone()
        }
    }
}

impl Plan {
    /// Makes a plan. It is empty if no extent fits into the time.
    #[must_use]
    pub fn new(options: &PlanOptions) -> Self {
        let mut sorted = options.clone();
        sorted.counts.sort_unstable();
        sorted.degrees.sort_unstable();
        for extent in Extent::all(&sorted) {
            let fewer = extent.of(&sorted);
            let plan = Self::of(&fewer);
            if !plan.runs.is_empty() {
                return Self {
                    left_out_counts: sorted.counts[extent.counts..].to_vec(),
                    left_out_degrees: sorted.degrees[..sorted.degrees.len() - extent.degrees].to_vec(),
                    left_out_workloads: sorted.workloads[extent.workloads..].to_vec(),
                    ..plan
                };
            }
        }
        Self::of(&sorted)
    }

    /// Makes a plan that leaves out repetitions only.
    fn of(options: &PlanOptions) -> Self {
        let mut plan = Self { processors: options.processors, ..Self::default() };
        let mut left = options.time_max;
        for repetition in 1..=options.repetitions {
            for &bias_ms in &options.biases_ms {
                if repetition > 1 && bias_ms > LONG_BIAS_MS {
                    continue;
                }
                let runs: Vec<PlannedRun> =
                    cases(options, bias_ms).into_iter().map(|case| PlannedRun { case, repetition }).collect();
                if runs.is_empty() {
                    continue;
                }
                let time = expected(&runs, options.processors);
                match &mut left {
                    Some(left) if *left < time => plan.left_out.push((bias_ms, repetition)),
                    left => {
                        *left = left.map(|left| left - time);
                        plan.runs.extend(runs);
                    }
                }
            }
        }
        plan
    }

    /// Returns how long these runs take in theory.
    #[must_use]
    pub fn expected(&self, runs: &[PlannedRun]) -> Duration {
        expected(runs, self.processors)
    }
}

fn expected(runs: &[PlannedRun], processors: usize) -> Duration {
    let micros = |run: &PlannedRun| predict(&run.case, processors).elapsed.as_secs_f64() * 1e6;
    Duration::from_micros(runs.iter().map(|run| micros(run).round() as u64).sum())
}

/// Returns the cases of a bias: for each workload and number of computations, all forms in turn.
fn cases(options: &PlanOptions, bias_ms: u64) -> Vec<TurnaroundCase> {
    let lengths = options.lengths;
    let mut cases = Vec::new();
    for &workload in &options.workloads {
        for &count in &options.counts {
            // Equal computations have the same cost with any number.
            if lengths == Lengths::Ramp && bias_ms > LONG_BIAS_MS && count > LONG_COUNT {
                continue;
            }
            let forms = forms(options, workload, count).into_iter();
            cases.extend(forms.map(|form| TurnaroundCase { workload, form, lengths, bias_ms, count }));
        }
    }
    cases
}

/// Returns the forms in which a number of computations run.
///
/// - Shortest first: only where the order matters, and in the workloads of which it was published.
/// - Children: the workloads `cpu` and `io`, longest first. Their lengths are the same in the others.
/// - Timers: only waits.
fn forms(options: &PlanOptions, workload: Workload, count: usize) -> Vec<Form> {
    let mut degrees: Vec<usize> = options.degrees.iter().copied().filter(|degree| *degree < count).collect();
    degrees.extend(options.degrees.iter().copied().max().filter(|degree| *degree >= count));
    let has_orders = options.lengths == Lengths::Ramp && workload != Workload::Loops;
    let mut forms = Vec::new();
    let mut add = |runner, degree, order| forms.push(Form { runner, degree, order });
    for &runner in &options.runners {
        match runner {
            Runner::Serial => {
                add(runner, 1, Order::Longest);
                if has_orders {
                    add(runner, 1, Order::Shortest);
                }
            }
            Runner::Threads => {
                for &degree in &degrees {
                    add(runner, degree, Order::Longest);
                    if has_orders && 1 < degree && degree < count {
                        add(runner, degree, Order::Shortest);
                    }
                }
            }
            Runner::Children if matches!(workload, Workload::Cpu | Workload::Io) => {
                degrees.iter().for_each(|degree| add(runner, *degree, Order::Longest));
            }
            Runner::Timers if workload == Workload::Io => add(runner, count, Order::Longest),
            Runner::Children | Runner::Timers => (),
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> PlanOptions {
        PlanOptions {
            workloads: Workload::ALL.to_vec(),
            runners: Runner::ALL.to_vec(),
            biases_ms: vec![10, 810],
            counts: vec![2, 8, 17],
            degrees: vec![1, 2, 4, 25],
            lengths: Lengths::Ramp,
            repetitions: 3,
            processors: 2,
            time_max: None,
        }
    }

    #[test]
    fn degrees_that_run_all_at_once_are_measured_as_one() {
        let names = |workload, count| -> Vec<String> {
            forms(&options(), workload, count).iter().map(Form::to_string).collect()
        };
        assert_eq!(
            names(Workload::Io, 2),
            [
                "serial",
                "serial, shortest first",
                "1 thread",
                "25 threads",
                "1 child",
                "25 children",
                "timers"
            ]
        );
        let loops = names(Workload::Loops, 8);
        assert_eq!(loops, ["serial", "1 thread", "2 threads", "4 threads", "25 threads"]);
        assert!(names(Workload::Cpu, 8).contains(&"4 threads, shortest first".to_owned()));
        assert!(!names(Workload::Mixed, 8).iter().any(|name| name.contains("child") || name == "timers"));
    }

    #[test]
    fn long_biases_are_measured_once_with_few_computations() {
        let plan = Plan::new(&options());
        let long: Vec<&PlannedRun> = plan.runs.iter().filter(|run| run.case.bias_ms == 810).collect();
        assert!(long.iter().all(|run| run.case.count <= 5 && run.repetition == 1) && !long.is_empty());
        let short = plan.runs.iter().filter(|run| run.case.bias_ms == 10).count();
        assert_eq!(short % 3, 0);
        assert!(plan.left_out.is_empty());
        let unique: std::collections::HashSet<&PlannedRun> = plan.runs.iter().collect();
        assert_eq!(unique.len(), plan.runs.len());
    }

    #[test]
    fn plan_takes_no_more_than_its_time() {
        for seconds in [0, 1, 5, 20, 100] {
            let time_max = Duration::from_secs(seconds);
            let plan = Plan::new(&PlanOptions { time_max: Some(time_max), ..options() });
            assert!(plan.expected(&plan.runs) <= time_max, "{seconds}");
            let all = Plan::new(&options());
            let groups = |plan: &Plan| {
                let mut groups: Vec<_> =
                    plan.runs.iter().map(|run| (run.case.bias_ms, run.repetition)).collect();
                groups.dedup();
                groups.len()
            };
            assert_eq!(groups(&plan) + plan.left_out.len(), groups(&all));
        }
    }

    #[test]
    fn counts_then_degrees_then_workloads_are_left_out_when_no_repetition_fits() {
        let planned = |millis| {
            let time_max = Some(Duration::from_millis(millis));
            let options = PlanOptions { biases_ms: vec![30, 10], time_max, ..options() };
            let plan = Plan::new(&options);
            assert!(plan.expected(&plan.runs) <= Duration::from_millis(millis));
            plan
        };
        let all = planned(1_000_000);
        assert!(all.left_out.is_empty() && all.left_out_counts.is_empty());
        // 17 computations of 10 ms take 1.53 s in each serial form, 8 take 360 ms, and 2 take 30 ms.
        let fewer = planned(15_000);
        assert_eq!(
            (fewer.left_out_counts.as_slice(), fewer.left_out_degrees.as_slice()),
            (&[17][..], &[][..])
        );
        assert!(fewer.runs.iter().all(|run| run.case.count <= 8) && fewer.left_out.contains(&(30, 1)));
        let least = planned(400);
        assert_eq!(least.left_out_counts, [8, 17]);
        assert!(!least.left_out_degrees.is_empty() && !least.left_out_degrees.contains(&25));
        let serial = planned(240);
        assert_eq!(serial.left_out_degrees, [1, 2, 4, 25]);
        assert!(
            serial.runs.iter().all(|run| matches!(run.case.form.runner, Runner::Serial | Runner::Timers))
        );
        let cpu = planned(100);
        assert_eq!(cpu.left_out_workloads, [Workload::Io, Workload::Mixed]);
        assert!(planned(50).runs.is_empty());
    }

    #[test]
    fn plan_without_cases_has_a_reason() {
        let timers = PlanOptions { runners: vec![Runner::Timers], ..options() };
        assert_eq!(timers.empty(), None);
        let computing = PlanOptions { workloads: vec![Workload::Cpu, Workload::Mixed], ..timers };
        assert_eq!(computing.empty(), Some(EmptyPlan::NoForm));
        let long = PlanOptions { biases_ms: vec![810], counts: vec![8, 17], ..options() };
        assert!(matches!(long.empty(), Some(EmptyPlan::LongBias { bias_ms: 270, count: 5 })));
        assert_eq!(PlanOptions { lengths: Lengths::Equal, ..long }.empty(), None);
    }

    #[test]
    fn equal_computations_have_one_order() {
        let options = PlanOptions { lengths: Lengths::Equal, counts: vec![8, 16], ..options() };
        let plan = Plan::new(&options);
        assert!(plan.runs.iter().all(|run| run.case.form.order == Order::Longest));
        assert!(plan.runs.iter().any(|run| run.case.bias_ms == 810 && run.case.count == 16));
    }
}

//! Many bytes into a filter that counts and drops them: the memory of Emacs, and the lateness of a timer.

use super::kind::{self, LIGHT, NATIVE};
use super::library::missing;
use super::{Emacs, in_units};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use anyhow::Result;

const BYTES: usize = 256 << 20;
const KIB_IN_MIB: f64 = 1.0 / 1024.0;

pub(super) fn burst(bench: &Bench, emacs: &Emacs) -> Result<Answer> {
    let bytes = bench.scaled(BYTES);
    let mut samples = Samples::default();
    // A short read would add a delay to each of 65,536 reads of the default settings.
    let which = ("burst_", &kind::ALL[..], &[bytes][..]);
    emacs.add_rounds(bench, &mut samples, which, &["burst", "pipe", "{}"])?;
    let columns = [
        ("peak MiB more", ("burst_peak_kib", KIB_IN_MIB, 1)),
        ("timer late ms", ("burst_late_ms", 1.0, 0)),
        ("wall s", ("burst_wall_s", 1.0, 2)),
        ("CPU s", ("burst_cpu_s", 1.0, 2)),
        ("of it garbage collection, wall s", ("burst_gc_s", 1.0, 2)),
        ("calls of the filter", ("burst_calls", 1.0, 0)),
    ];
    let kinds = emacs.present(&kind::ALL);
    let table = samples.table("process", (&kinds, Contestant::title), bytes, &columns);
    let remarks = vec![
        format!(
            "{} of lines through a pipe, without decoding. Peak: the largest resident memory of Emacs \
             (VmHWM), its resident memory before subtracted. The timer is one of 100 ms that repeats; the \
             largest time beyond 100 ms between two of its calls. \
             A process runs before, and is not measured.",
            in_units(bytes)
        ),
        "CPU: Emacs with all its threads, and without the child; for the relay, without the relay.".into(),
    ];
    Ok(Answer::with_goals(&samples, &goals_of(&samples, bytes), &table, remarks))
}

fn goals_of(samples: &Samples, bytes: usize) -> Vec<Goal> {
    let mut goals = Vec::new();
    for kind in kind::ALL {
        let is_ours = [NATIVE, LIGHT].contains(&kind);
        let aim = |limit| if is_ours { Aim::AtMost(limit) } else { Aim::None };
        let mut add = |what, unit, name: &str, factor, limit| {
            let figure = samples.spread((&kind, bytes), name).map(|it| it.scaled(factor));
            if is_ours || figure.is_some() {
                let what = format!("{what}: {}", kind.title);
                goals.push(Goal { what, unit, figure, aim: aim(limit) });
            }
        };
        add("peak memory more", " MiB", "burst_peak_kib", KIB_IN_MIB, 64.0);
        add("timer late", " ms", "burst_late_ms", 1.0, 150.0);
    }
    goals.extend(missing(samples, bytes, "burst"));
    goals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("emacs-burst", |samples| goals_of(samples, BYTES));
    }
}

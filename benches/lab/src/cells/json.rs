//! A message of a language server: how fast it is parsed, and what dropping its values takes.

use super::{Lab, rounds, sample};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::programs::built;
use crate::samples::{Contestant, Samples};
use anyhow::Result;
use xtask::run;

/// How often a process parses the message; the numbers are medians.
const TIMES: usize = 51;
/// Emacs collects after each, which takes longer.
const TIMES_EMACS: usize = 9;
/// The samples have no further size.
const SIZE: usize = 0;

const OURS: Contestant = Contestant { name: "minder", title: "minder, a region" };
const SERDE: Contestant = Contestant { name: "serde_json", title: "serde_json::Value" };
const SONIC: Contestant = Contestant { name: "sonic-rs", title: "sonic_rs::Value" };
const EMACS: Contestant = Contestant { name: "emacs", title: "Emacs, `json-parse-string`" };
const TYPED: Contestant = Contestant { name: "minder-typed", title: "minder, then typed values" };
const SERDE_TYPED: Contestant =
    Contestant { name: "serde_json-typed", title: "serde_json, typed values without a tree" };
const ALL: [Contestant; 6] = [OURS, SERDE, SONIC, EMACS, TYPED, SERDE_TYPED];

pub(super) fn json(bench: &Bench, lab: &Lab) -> Result<Answer> {
    let file = built("cells/message.json");
    run::read(&mut lab.ours(&["message", &file]))?;
    let bytes = std::fs::metadata(&file)?.len();
    let missing = |who: &Contestant| if *who == EMACS { lab.emacs.as_ref().err().cloned() } else { None };
    let samples = rounds(bench, &ALL, SIZE, missing, |who| {
        if *who == EMACS {
            return sample(&mut Lab::emacs("cells-json", &[&file, &TIMES_EMACS.to_string()]));
        }
        sample(&mut lab.ours(&["json", who.name, &file, &TIMES.to_string()]))
    })?;
    let remarks = vec![
        format!(
            "A message of {bytes} bytes with 4,000 completions as of a language server. A process parses it \
             {TIMES} times ({TIMES_EMACS} in Emacs) and drops the values each time; the numbers are medians \
             of CPU time. MB: 1,000,000 bytes. The memory of a region is used again for the next message. \
             Typed: structures of Rust with their own strings, by `minder_cells::from_view`."
        ),
        "serde_json takes memory from the allocator of the system and gives it back, which is a large part \
         of its time. Emacs makes property lists and vectors; its drop is a full collection."
            .into(),
    ];
    Ok(Answer::with_goals(&samples, &goals_of(&samples), &costs(&samples), remarks))
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let value = |name| samples.spread((&OURS, SIZE), name);
    let mut goals = vec![
        Goal::of("parsing", " MB/s", value("parse_mb_s"), Aim::AtLeast(600.0)),
        Goal::of("drop of a region", " us", value("drop_us"), Aim::AtMost(10.0)),
    ];
    let typed = samples.ratio((&TYPED, SIZE), (&SERDE_TYPED, SIZE), "parse_ms");
    goals.push(Goal::ratio("typed values: minder over serde_json", typed, Aim::None));
    for other in [SERDE, SONIC, EMACS] {
        for (what, name) in [("parsing", "parse_ms"), ("drop", "drop_us")] {
            let what = format!("{what}: {} over minder", other.title);
            goals.push(Goal::ratio(what, samples.ratio((&other, SIZE), (&OURS, SIZE), name), Aim::None));
        }
    }
    goals
}

fn costs(samples: &Samples) -> String {
    let columns = [
        ("parse ms", ("parse_ms", 1.0, 2)),
        ("parse MB/s", ("parse_mb_s", 1.0, 0)),
        ("drop us", ("drop_us", 1.0, 1)),
    ];
    samples.table("contestant", (&ALL, Contestant::title), SIZE, &columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("cells-json", goals_of);
    }
}

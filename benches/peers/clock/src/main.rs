//! Sleeps, timers and ticks: `minder` compared with the standard library, tokio and `spin_sleep`.
//!
//!     clock QUESTION CONTESTANT [--count N] [--time-us N] [--within-ms N] [--seed N]
//!
//! One process measures one contestant. The caller starts the processes in turn.
//!
//! Prints rows `name,value`.

mod interval;
mod numbers;
mod sleepers;
mod std_sleep;
mod timers;

use anyhow::{Context, Result, bail};
use std::time::Duration;

/// The parameters of a measurement.
pub(crate) struct Options {
    question: String,
    contestant: String,
    /// The number of sleeps, timers or ticks.
    count: usize,
    /// The length of a sleep, the tolerance of a timer, or the period of the ticks.
    time: Duration,
    /// The time in which the timers expire.
    within: Duration,
    /// Chooses the random deadlines.
    seed: u64,
}

fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let measure = match options.question.as_str() {
        "sleepers" => sleepers::measure,
        "timers" => timers::measure,
        "interval" => interval::measure,
        other => bail!("unknown question `{other}`; hint: sleepers, timers or interval"),
    };
    let numbers =
        measure(&options).with_context(|| format!("{} {}", options.question, options.contestant))?;
    for (name, value) in numbers {
        println!("{name},{value}");
    }
    Ok(())
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let (Some(question), Some(contestant)) = (args.next(), args.next()) else {
            bail!("no question and no contestant; hint: clock sleepers precise");
        };
        let mut options = Self {
            question,
            contestant,
            count: 1_000,
            time: Duration::from_millis(1),
            within: Duration::from_secs(1),
            seed: 1,
        };
        while let Some(arg) = args.next() {
            let value = args.next().with_context(|| format!("{arg} needs a value"))?;
            let number: u64 = value.parse().with_context(|| format!("the value of {arg}"))?;
            match &*arg {
                "--count" => options.count = usize::try_from(number)?.max(1),
                "--time-us" => options.time = Duration::from_micros(number),
                "--within-ms" => options.within = Duration::from_millis(number.max(1)),
                "--seed" => options.seed = number.max(1),
                _ => bail!("unknown option `{arg}`"),
            }
        }
        Ok(options)
    }

    /// Returns the error for a contestant that the question does not have.
    pub(crate) fn unknown(&self) -> anyhow::Error {
        anyhow::anyhow!("unknown contestant `{}` of {}", self.contestant, self.question)
    }
}

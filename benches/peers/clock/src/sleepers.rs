//! Measures the lateness of sleeps, and the share of a processor that they use.

use crate::Options;
use crate::numbers::{Numbers, Stopwatch, lateness, micros_after};
use crate::std_sleep::std_sleep;
use anyhow::Result;
use minder::clock::Sleeper;
use spin_sleep::SpinSleeper;
use std::time::{Duration, Instant};

/// Sleeps before the measurement: a thrifty sleeper adapts to the lateness of those before.
const WARM_UP: usize = 100;

pub(crate) fn measure(options: &Options) -> Result<Numbers> {
    let Options { count, time, .. } = *options;
    match options.contestant.as_str() {
        "std" => Ok(sleep_repeatedly(count, time, std_sleep)),
        "precise" => Ok(by_sleeper(count, time, Sleeper::precise())),
        "thrifty" => Ok(by_sleeper(count, time, Sleeper::thrifty())),
        "spin_sleep" => {
            let sleeper = SpinSleeper::default();
            Ok(sleep_repeatedly(count, time, |time| sleeper.sleep(time)))
        }
        "tokio" => by_tokio(count, time),
        _ => Err(options.unknown()),
    }
}

fn by_sleeper(count: usize, time: Duration, mut sleeper: Sleeper) -> Numbers {
    sleep_repeatedly(count, time, |time| {
        sleeper.sleep(time);
    })
}

fn sleep_repeatedly(count: usize, time: Duration, mut sleep: impl FnMut(Duration)) -> Numbers {
    let mut late = Vec::with_capacity(count);
    for _ in 0..WARM_UP {
        sleep(time);
    }
    let watch = Stopwatch::start();
    for _ in 0..count {
        let begin = Instant::now();
        sleep(time);
        late.push(micros_after(begin + time, Instant::now()));
    }
    [watch.stop(), lateness(&late)].concat()
}

fn by_tokio(count: usize, time: Duration) -> Result<Numbers> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    Ok(runtime.block_on(async {
        let mut late = Vec::with_capacity(count);
        for _ in 0..WARM_UP {
            tokio::time::sleep(time).await;
        }
        let watch = Stopwatch::start();
        for _ in 0..count {
            let begin = Instant::now();
            tokio::time::sleep(time).await;
            late.push(micros_after(begin + time, Instant::now()));
        }
        [watch.stop(), lateness(&late)].concat()
    }))
}

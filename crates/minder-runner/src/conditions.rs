//! The conditions for starting a job, as the user states them: `--load`, `--memfree`,
//! `--memsuspend`, `--noswap`, `--limit`.
//!
//! This is plain data and its parser. The admission policy evaluates it.

use anyhow::{Result, bail};

use crate::jobs_setting::JobsSpec;
use crate::jobs_setting::processors;

/// The limit for `--load 0`: only an idle machine has a lower load.
const LOAD_MIN: f64 = 0.01;

/// The conditions for starting a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Fewer processes than this run on the machine.
    pub load: Option<f64>,
    /// At least this many bytes of memory are free. Below half of it, the youngest job is killed.
    pub memfree: Option<u64>,
    /// While less than twice this many bytes of memory are free, jobs are suspended.
    pub memsuspend: Option<u64>,
    /// The machine does not swap in and out.
    pub noswap: bool,
    /// Another condition, checked before each start.
    pub limit: Option<Limit>,
}

/// The argument of `--limit`.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A shell command: exit status 0 starts a job, 1 starts none, 2 kills the youngest one.
    Command(String),
    /// The busiest disk is busy for less than this percentage of the time.
    Io(f64),
    /// The same as `--load`.
    Load(f64),
    /// The same as `--memfree`.
    Memory(u64),
}

impl Conditions {
    /// Returns `true` if there is any condition.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// Parses the argument of `--load`: as for `-j`, or a number with a fraction.
///
/// # Errors
/// The text is neither.
pub fn load(text: &str) -> Result<f64> {
    load_on(text, processors())
}

fn load_on(text: &str, processors: usize) -> Result<f64> {
    let fraction = || {
        let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        is_decimal.then(|| text.parse::<f64>().ok()).flatten()
    };
    // Numbers of processes are small enough to be exact.
    let load = match JobsSpec::parse(text) {
        Some(JobsSpec::Percent(percent)) => Some(processors as f64 * percent as f64 / 100.0),
        Some(spec) => Some(spec.of(processors) as f64),
        None => fraction(),
    };
    match load {
        Some(load) => Ok(load.max(LOAD_MIN)),
        None => {
            bail!(
                "invalid load `{text}`: expected a number of processes (8, 0.5), or one relative to the \
                 processors (150%, +2, -1)"
            )
        }
    }
}

/// Parses the argument of `--memfree` and `--memsuspend`: a number, which may have a fraction, and
/// a unit. K, M, G, T, P are powers of 1024, and k, m, g, t, p are powers of 1000.
///
/// # Errors
/// The text is not a size, or is 0.
pub fn size(text: &str) -> Result<u64> {
    const UNITS: &str = "KMGTPkmgtp";
    let unit = text.chars().last().and_then(|last| UNITS.find(last));
    let number = unit.map_or(text, |_| &text[..text.len() - 1]);
    let factor = match unit {
        None => 1,
        Some(place @ 0..5) => 1 << (10 * (place + 1)),
        Some(place) => 1000_u64.pow(place as u32 - 4),
    };
    let is_decimal = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    // A float is exact up to 2^53: more memory than any machine has.
    match number.parse::<f64>() {
        Ok(count) if is_decimal && count * factor as f64 >= 1.0 => Ok((count * factor as f64) as u64),
        _ => bail!(
            "invalid size `{text}`: expected bytes, or a number with the suffix K, M, G, T or P (512M, 1.5G)"
        ),
    }
}

/// Parses the argument of `--limit`.
///
/// # Errors
/// The number after `io`, `load` or `mem` is invalid, or the line is empty.
pub fn limit(text: &str) -> Result<Limit> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words[..] {
        [] => bail!("there is no command"),
        ["io", percent] => match percent.trim_end_matches('%').parse::<f64>() {
            Ok(number) if number > 0.0 && number <= 100.0 => Limit::Io(number),
            _ => bail!("invalid percentage `{percent}`: expected a number from 1 to 100"),
        },
        ["load", number] => Limit::Load(load(number)?),
        ["mem", number] => Limit::Memory(size(number)?),
        _ => Limit::Command(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_parses_numbers_and_percentages() {
        let known = [
            ("8", 8.0),
            ("0", 0.01),
            ("0.5", 0.5),
            ("150%", 6.0),
            ("10%", 0.4),
            ("+2", 6.0),
            ("-1", 3.0),
            ("-9", 1.0),
        ];
        for (text, expected) in known {
            let load = load_on(text, 4).expect(text);
            assert!((load - expected).abs() < 1e-9, "{text}: {load}");
        }
        for odd in ["", "x", "nan", "inf", "1e3", "-0.5", ".", "1.2.3", "8 "] {
            assert!(load_on(odd, 4).is_err(), "{odd}");
        }
    }

    #[test]
    fn size_parses_units() {
        let known = [
            ("1", 1),
            ("1000", 1000),
            ("1k", 1000),
            ("1K", 1024),
            ("1m", 1_000_000),
            ("1.5M", 3 << 19),
            ("2G", 2 << 30),
            ("1p", 1_000_000_000_000_000),
            ("1P", 1 << 50),
        ];
        for (text, bytes) in known {
            assert_eq!(size(text).expect(text), bytes, "{text}");
        }
        for odd in ["", "0", "0G", "G", "-1", "1e3", "nan", "1GB", "1 G", "ä"] {
            assert!(size(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn limit_parses_commands_and_numbers() {
        assert_eq!(limit("io 80").expect("parse percentage"), Limit::Io(80.0));
        assert_eq!(limit(" mem  1G ").expect("parse size"), Limit::Memory(1 << 30));
        assert_eq!(limit("load 2").expect("parse load"), Limit::Load(2.0));
        assert_eq!(limit("io").expect("parse command"), Limit::Command("io".into()));
        assert_eq!(limit("test -e go").expect("parse command"), Limit::Command("test -e go".into()));
        for odd in ["", " ", "io x", "io 0", "io 101", "mem x", "load x"] {
            assert!(limit(odd).is_err(), "{odd}");
        }
    }
}

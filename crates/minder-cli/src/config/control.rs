//! Flags that delay, terminate and retry jobs.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use minder::jobs::{HaltPolicy, HaltTrigger, Threshold};
use minder::{Signal, Termination};

use super::env_file;
use crate::flags::{ControlFlags, RunFlags};
use minder_runner::conditions::{self, Conditions};
use minder_runner::config::{Control, JobStdin, LimitPer, Timeout};
use minder_template::{Options, Template};
use minder_ui::units::time;

/// The default of `--retry-delay` for `--retries 0`, which retries a job until it succeeds.
const ENDLESS_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Returns the time-outs, retries, conditions and environment of the jobs.
pub(super) fn control(flags: &RunFlags, options: &Options) -> Result<Control> {
    let control = &flags.control;
    let JobVariables { env, env_of_job } = job_variables(flags, options)?;
    if let Some(name) = &control.process_slot_var
        && (name.is_empty() || name.as_encoded_bytes().contains(&b'='))
    {
        bail!("--process-slot-var: invalid name `{}`: expected a variable's name", name.display());
    }
    check_limits(control)?;
    if control.timer_slack.is_some() && minder::clock::resolution().timer_slack.is_none() {
        bail!("--timer-slack: the timers of this system have no slack that could be set: leave the flag out");
    }
    Ok(Control {
        timeout: control.timeout.as_deref().map(timeout).transpose()?.flatten(),
        attempts: match control.retries {
            None => 1,
            Some(0) => u32::MAX,
            Some(times) => u32::try_from(times).unwrap_or(u32::MAX),
        },
        retry_delay: match (control.retry_delay, control.retries) {
            (Some(delay), _) => delay,
            // Otherwise a job that always fails would keep a processor busy forever.
            (None, Some(0)) if !flags.parallel_env => ENDLESS_RETRY_DELAY,
            (None, _) => Duration::ZERO,
        },
        halt: control.halt.as_deref().map(halt).transpose()?.flatten(),
        kill: match control.termseq.as_deref().map(termseq).transpose()? {
            Some(steps) => Some(Termination::signals(&steps)?),
            None => None,
        },
        delay: control.delay.unwrap_or_default(),
        start_interval: control.rate.unwrap_or_default(),
        limit_per: limit_per(&control.limit_per, options)?,
        conditions: Conditions {
            load: control.load.as_deref().map(conditions::load).transpose().context("--load")?,
            memfree: control.memfree.filter(|size| *size > 0),
            memsuspend: control.memsuspend.filter(|size| *size > 0),
            noswap: control.noswap,
            limit: control.limit.as_deref().map(conditions::limit).transpose().context("--limit")?,
        },
        jobserver: !control.no_jobserver,
        close_fds: control.close_fds,
        nice: match control.nice {
            // GNU parallel sets the niceness; minder adds to it.
            nice if flags.parallel_env && nice != 0 => minder_os::limits::nice_increment(nice),
            nice => nice,
        },
        memory_max: control.memory_max,
        cpu_max: control.cpu_max.map(|time| time.as_secs_f64().ceil().max(1.0) as u64),
        timer_slack: control.timer_slack,
        directory: control.wd.as_ref().map(|dir| Template::text(dir, options)),
        env,
        env_of_job,
        slot_var: control.process_slot_var.clone(),
        stdin: stdin(control.stdin.as_deref()),
        tty: control.tty,
        interactive: control.interactive,
    })
}

/// Refuses limits of jobs that this system does not have.
fn check_limits(control: &ControlFlags) -> Result<()> {
    let limits = [(control.memory_max.is_some(), "--memory-max"), (control.cpu_max.is_some(), "--cpu-max")];
    match limits.iter().find(|(is_given, _)| *is_given && std::env::consts::OS != "linux") {
        Some((_, flag)) => bail!("{flag}: jobs have no such limit on this system: leave the flag out"),
        None => Ok(()),
    }
}

/// Variables that flags set for the jobs.
#[derive(Default)]
struct JobVariables {
    /// The same for all jobs.
    env: Vec<(OsString, OsString)>,
    /// With placeholders.
    env_of_job: Vec<(OsString, Template)>,
}

/// Returns the variables that `--env-file` and `--env` set. The latter win.
fn job_variables(flags: &RunFlags, options: &Options) -> Result<JobVariables> {
    let control = &flags.control;
    let mut variables = JobVariables::default();
    for file in &control.env_file {
        env_file::read(file, &mut variables.env)?;
    }
    for variable in &control.env {
        let bytes = variable.as_encoded_bytes();
        if let Some(at) = bytes.iter().position(|byte| *byte == b'=') {
            if at == 0 {
                bail!("--env `{}` has no name", variable.display());
            }
            let part = |bytes: &[u8]| minder_os::encoding::os_string_from_encoded(bytes.to_vec());
            let name = part(&bytes[..at]);
            let text = part(&bytes[at + 1..]);
            let template = Template::text(&text, options);
            if !flags.parallel_env && template.has_placeholders() {
                variables.env_of_job.push((name, template));
            } else {
                variables.env.push((name, text));
            }
        }
    }
    Ok(variables)
}

/// Refuses a second `--limit-per` of the same command line, which no run can observe beside the first.
pub(crate) fn check_single_limit(flags: &RunFlags) -> Result<()> {
    match flags.control.limit_per.as_slice() {
        [first, _, second, ..] => bail!(
            "`--limit-per` is given twice, for `{}` and `{}`: a run has one such limit",
            first.display(),
            second.display()
        ),
        _ => Ok(()),
    }
}

/// Parses the two arguments of `--limit-per`. Those of a resumed run come behind those of its record, and
/// replace them.
fn limit_per(arguments: &[OsString], options: &Options) -> Result<Option<LimitPer>> {
    let [.., text, max] = arguments else { return Ok(None) };
    let max = max.to_str().and_then(|max| max.parse().ok()).filter(|max| *max > 0);
    let Some(max) = max else {
        let given = arguments[arguments.len() - 1].display();
        bail!("--limit-per: invalid number `{given}`: expected how many jobs may run at once, such as 2");
    };
    let key = Template::text(text, options);
    if !key.has_placeholders() {
        let text = text.display();
        bail!("--limit-per: `{text}` is the same for each job: use a placeholder such as {{1}}, or -j {max}");
    }
    if key.needs_slot() {
        bail!("--limit-per: {{%}} is not known before a job starts: use its arguments, such as {{1}}");
    }
    Ok(Some(LimitPer { key, max }))
}

/// Returns what jobs read on standard input.
fn stdin(flag: Option<&OsStr>) -> JobStdin {
    match flag.map(OsStr::as_encoded_bytes) {
        None | Some(b"null") => JobStdin::Null,
        Some(b"inherit") => JobStdin::Inherit,
        Some(_) => JobStdin::File(flag.map(PathBuf::from).unwrap_or_default()),
    }
}

/// Parses the argument of `--timeout`. Returns `None` for 0, which means no limit, as in GNU
/// parallel.
fn timeout(text: &str) -> Result<Option<Timeout>> {
    match text.strip_suffix('%').map(str::parse::<f64>) {
        Some(Ok(percent)) if percent.is_finite() && percent > 0.0 => {
            Ok(Some(Timeout::Median(percent / 100.0)))
        }
        Some(_) => bail!("--timeout: invalid percentage `{text}`: 200% is twice the median"),
        None => match time(text) {
            Ok(Duration::ZERO) => Ok(None),
            Ok(time) => Ok(Some(Timeout::After(time))),
            Err(why) => bail!("--timeout: {why}"),
        },
    }
}

/// Parses the argument of `--halt`: the forms of GNU parallel, including the old numbers.
fn halt(text: &str) -> Result<Option<HaltPolicy>> {
    let invalid = || {
        anyhow::anyhow!(
            "--halt: invalid value `{text}`: expected never, or now or soon, a comma, and fail=N, success=N \
             or done=N, such as now,fail=1 or soon,fail=10%"
        )
    };
    let threshold = |text: &str| -> Option<Threshold> {
        match text.strip_suffix('%') {
            Some(percent) => {
                percent.parse().ok().filter(|percent| (1..=100).contains(percent)).map(Threshold::Percent)
            }
            None => text.parse().ok().filter(|count| *count > 0).map(Threshold::Count),
        }
    };
    let old_form = |now, on| Ok(Some(HaltPolicy::new(on, Threshold::Count(1)).now(now)));
    match text {
        "never" | "0" => return Ok(None),
        "1" => return old_form(false, HaltTrigger::Failed),
        "2" => return old_form(true, HaltTrigger::Failed),
        "-1" => return old_form(false, HaltTrigger::Succeeded),
        "-2" => return old_form(true, HaltTrigger::Succeeded),
        _ => (),
    }
    if text.ends_with('%') && !text.contains(',') {
        return Ok(Some(HaltPolicy::new(HaltTrigger::Failed, threshold(text).ok_or_else(invalid)?)));
    }
    let (when, why) = text.split_once(',').ok_or_else(invalid)?;
    if when == "never" {
        return Ok(None);
    }
    let now = match when {
        "now" => true,
        "soon" => false,
        _ => return Err(invalid()),
    };
    let (on, count) = why.split_once('=').ok_or_else(invalid)?;
    let on = match on {
        "fail" => HaltTrigger::Failed,
        "success" => HaltTrigger::Succeeded,
        "done" => HaltTrigger::Finished,
        _ => return Err(invalid()),
    };
    Ok(Some(HaltPolicy::new(on, threshold(count).ok_or_else(invalid)?).now(now)))
}

/// The maximum number of signals in `--termseq`.
const STEPS_MAX: usize = 8;

/// Parses the argument of `--termseq`: signals, and after each the milliseconds until the next one.
fn termseq(text: &str) -> Result<Vec<(Signal, Duration)>> {
    let mut steps = Vec::new();
    let mut parts = text.split(',');
    while let Some(name) = parts.next() {
        let name = name.strip_prefix("SIG").unwrap_or(name);
        let signal = name
            .parse()
            .ok()
            .filter(|number| (1..=64).contains(number))
            .or_else(|| minder_os::signals::number(name));
        let Some(signal) = signal else {
            bail!("--termseq: invalid signal `{name}`: an example is TERM,200,TERM,100,TERM,50,KILL,25");
        };
        let pause = match parts.next() {
            None => Duration::ZERO,
            Some(pause) => match pause.parse() {
                Ok(millis) => Duration::from_millis(millis),
                Err(_) => bail!("--termseq: invalid milliseconds `{pause}`: an example is TERM,200,KILL,25"),
            },
        };
        steps.push((Signal::from_raw(signal), pause));
    }
    if steps.len() > STEPS_MAX {
        bail!("--termseq has {} signals, the maximum is {STEPS_MAX}", steps.len());
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halt_parses_old_and_new_forms() {
        let plan = |now, on, at| Some(HaltPolicy::new(on, at).now(now));
        for (text, read) in [
            ("never", None),
            ("0", None),
            ("1", plan(false, HaltTrigger::Failed, Threshold::Count(1))),
            ("-2", plan(true, HaltTrigger::Succeeded, Threshold::Count(1))),
            ("20%", plan(false, HaltTrigger::Failed, Threshold::Percent(20))),
            ("now,fail=1", plan(true, HaltTrigger::Failed, Threshold::Count(1))),
            ("soon,success=3%", plan(false, HaltTrigger::Succeeded, Threshold::Percent(3))),
            ("now,done=10", plan(true, HaltTrigger::Finished, Threshold::Count(10))),
        ] {
            assert_eq!(halt(text).ok(), Some(read), "{text}");
        }
        for invalid in
            ["", "now", "soon,fail", "later,fail=1", "now,fail=0", "now,fail=x", "now,end=1", "3", "200%"]
        {
            assert!(halt(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn termseq_parses_signals_and_milliseconds() {
        let read = termseq("TERM,200,INT,100,9,25").ok();
        let millis = Duration::from_millis;
        assert_eq!(
            read,
            Some(vec![(Signal::TERM, millis(200)), (Signal::INT, millis(100)), (Signal::KILL, millis(25))])
        );
        assert_eq!(termseq("KILL").ok(), Some(vec![(Signal::KILL, Duration::ZERO)]));
        for invalid in ["", "NONE,3", "TERM,x", "0,1", "99", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"] {
            assert!(termseq(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn timeout_parses_seconds_and_percentages() {
        assert_eq!(timeout("1.5").ok(), Some(Some(Timeout::After(Duration::from_millis(1500)))));
        assert_eq!(timeout("0").ok(), Some(None));
        assert_eq!(timeout("200%").ok(), Some(Some(Timeout::Median(2.0))));
        assert!(["", "x", "-1", "x%", "0%", "-5%"].iter().all(|text| timeout(text).is_err()));
    }
}

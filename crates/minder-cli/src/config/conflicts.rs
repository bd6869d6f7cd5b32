//! Flags of `minder run` that cannot be used together. Command lines of GNU parallel are not
//! checked: by its rules, one of two such flags is ignored.

use anyhow::{Result, bail};

use crate::flags::{DisplayFlags, OrderFlag, OutputFlags, OutputTimeFlag, RunFlags};

/// Two flags of which one would be ignored silently, and whether each is given.
type Pair = ((bool, &'static str), (bool, &'static str));

/// Refuses flags that would have no effect, because of another flag or without one.
pub(crate) fn check(flags: &RunFlags) -> Result<()> {
    if flags.parallel_env {
        return Ok(());
    }
    if let Some((first, second)) = excluded(flags) {
        bail!("`{first}` cannot be used with `{second}`");
    }
    check_nice(flags)?;
    check_columns(flags)?;
    match missing(flags) {
        Some((flag, other)) => bail!("`{flag}` requires {other}"),
        None => Ok(()),
    }
}

/// Refuses a placeholder as a column of the input: jobs have values after they are divided by it.
fn check_columns(flags: &RunFlags) -> Result<()> {
    let pipe = &flags.pipe;
    let columns = [("--group-by", &pipe.group_by), ("--shard", &pipe.shard), ("--bin", &pipe.bin)];
    let is_placeholder = |text: &str| text.starts_with('{') && text.ends_with('}');
    for (flag, column) in columns {
        if let Some(text) = column.as_deref().filter(|text| is_placeholder(text)) {
            bail!(
                "{flag}: invalid column `{text}`: expected the number or the name of a column of the lines \
                 that --pipe divides (--limit-per {text} N limits the jobs that run at once for each value)"
            );
        }
    }
    Ok(())
}

/// Refuses a niceness that has no effect beyond that of its limit.
pub(super) fn check_nice(flags: &RunFlags) -> Result<()> {
    // Niceness is between -20 and 19.
    if !(-39..=39).contains(&flags.control.nice) {
        bail!("--nice: `{}` is out of range: expected -39 to 39", flags.control.nice);
    }
    Ok(())
}

/// Returns why two of these flags cannot be used together, if there are two.
pub(crate) fn exclusion(flags: &RunFlags) -> Option<String> {
    let pair = excluded(flags).or_else(|| hidden_display(flags).map(|flag| (flag, "--quiet")));
    pair.map(|(first, second)| format!("`{first}` cannot be used with `{second}`"))
}

/// Returns a given flag and the flag that it depends on, if the latter is not given.
pub(crate) fn missing(flags: &RunFlags) -> Option<(&'static str, &'static str)> {
    dependent_flags(flags).into_iter().find_map(|(alone, flag, other)| alone.then_some((flag, other)))
}

/// Returns two flags that are given and exclude each other.
fn excluded(flags: &RunFlags) -> Option<(&'static str, &'static str)> {
    let mut pairs = pairs(flags).into_iter();
    pairs.find_map(|((one, first), (other, second))| (one && other).then_some((first, second)))
}

/// Refuses a progress display with `--quiet`. In a resumed run, one of them may come from the record:
/// then `--quiet` counts.
pub(super) fn check_display(flags: &RunFlags) -> Result<()> {
    match hidden_display(flags) {
        Some(flag) => bail!("`{flag}` cannot be used with `--quiet`"),
        None => Ok(()),
    }
}

/// Returns a flag for a progress display that is given with `--quiet`.
fn hidden_display(flags: &RunFlags) -> Option<&'static str> {
    let DisplayFlags { bar, eta, progress, quiet, .. } = flags.display;
    let shown = [(bar, "--bar"), (eta, "--eta"), (progress, "--progress")];
    shown.into_iter().find_map(|(is_given, flag)| (is_given && quiet).then_some(flag))
}

/// Returns the flag that shows output at another time than its default, if one is given.
pub(super) fn output_time_flag(output: &OutputFlags) -> Option<&'static str> {
    let is_other = |time: Option<OutputTimeFlag>| time.is_some_and(|time| time != OutputTimeFlag::Immediate);
    match output {
        _ if is_other(output.success_output) => Some("--success-output"),
        _ if is_other(output.failure_output) => Some("--failure-output"),
        _ if is_other(output.cancelled_output) => Some("--cancelled-output"),
        _ => None,
    }
}

/// Returns the pairs of flags that exclude each other.
fn pairs(flags: &RunFlags) -> Vec<Pair> {
    let RunFlags { arity, input, pipe, control, output, .. } = flags;
    let args = (arity.max_args.is_some(), "--max-args");
    let each = (arity.max_replace_args.is_some(), "--max-replace-args");
    let lines = (arity.lines.is_some(), "--lines");
    let context = (arity.context, "-X");
    let multiple = (arity.multiple, "-m");
    let parts = (pipe.is_wanted(), "--pipe");
    let words = (input.split_words, "--words");
    let stdin = (control.stdin.is_some(), "--stdin");
    let spreads = [
        (pipe.tee, "--tee"),
        (pipe.round_robin, "--round-robin"),
        (pipe.shard.is_some(), "--shard"),
        (pipe.bin.is_some(), "--bin"),
    ];
    let mut pairs = vec![
        (args, each),
        (context, multiple),
        ((input.null, "--null"), (input.delimiter.is_some(), "--delimiter")),
        ((output.keep_order, "--keep-order"), (output.no_keep_order, "--no-keep-order")),
        ((output.group, "--group"), (output.line_buffer, "--line-buffer")),
        ((output.group, "--group"), (output.ungroup, "--ungroup")),
        (words, (input.null, "--null")),
        (words, (input.delimiter.is_some(), "--delimiter")),
        (words, (input.colsep.is_some(), "--colsep")),
        (words, (input.csv, "--csv")),
        (words, (input.header.is_some(), "--header")),
        (words, (input.skip_first_line, "--skip-first-line")),
        (words, (input.skip_comments, "--skip-comments")),
        (words, (input.trim.is_some(), "--trim")),
        (words, parts),
        (stdin, parts),
        (stdin, (control.tty, "--tty")),
        (parts, context),
        (parts, multiple),
        (parts, (arity.xargs, "--xargs")),
        (parts, (arity.max_chars.is_some(), "--max-chars")),
        (parts, (input.shuf, "--shuf")),
        (parts, (input.order.is_some(), "--order")),
        (parts, (control.tty, "--tty")),
        (parts, (!control.limit_per.is_empty(), "--limit-per")),
        (parts, (input.skip_comments, "--skip-comments")),
    ];
    // These show output while a job runs, or show names in place of output.
    let (is_timed, timed) = output_time_flag(output).map_or((false, ""), |flag| (true, flag));
    let untimed = [
        (output.line_buffer, "--line-buffer"),
        (output.ungroup, "--ungroup"),
        (output.files, "--files"),
        (control.tty, "--tty"),
    ];
    pairs.extend(untimed.map(|other| ((is_timed, timed), other)));
    if !parts.0 {
        // With parts of the input, -L defines a record, and -N the number of records of a job.
        pairs.extend([(lines, args), (lines, each)]);
    }
    for (index, one) in spreads.iter().enumerate() {
        pairs.extend(spreads[index + 1..].iter().map(|other| (*one, *other)));
    }
    pairs
}

/// Returns flags that need another one: whether such a flag is alone, its name, and what it needs.
fn dependent_flags(flags: &RunFlags) -> [(bool, &'static str, &'static str); 5] {
    let RunFlags { input, pipe, control, record, .. } = flags;
    let resumes = record.resume.is_some() || record.resume_failed.is_some() || record.retry_failed.is_some();
    let random = input.shuf || input.order == Some(OrderFlag::Random);
    [
        (input.seed.is_some() && !random, "--seed", "`--shuf` or `--order random`"),
        (control.retry_delay.is_some() && control.retries.is_none(), "--retry-delay", "`--retries`"),
        (pipe.block.is_some() && !pipe.is_wanted(), "--block", "`--pipe` or `--pipe-part`"),
        (
            pipe.regexp && pipe.recstart.is_none() && pipe.recend.is_none(),
            "--regexp",
            "`--recstart` or `--recend`",
        ),
        (record.skip_lost && !resumes, "--skip-lost", "`--resume`, `--resume-failed` or `--retry-failed`"),
    ]
}

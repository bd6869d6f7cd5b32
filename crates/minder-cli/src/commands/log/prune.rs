//! `--prune`: removes old records, and lists them with the reason.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;

use crate::ui::{count, format_bytes, message};
use minder_record::retention::{PruneReason, RetentionPolicy, prune};
use minder_ui::format::{local_zone, relative_date};

/// Removes the runs beyond the limits. With `dry_run`, only lists them.
pub(super) fn run(out: &mut dyn Write, root: &Path, dry_run: bool) -> Result<()> {
    let policy = RetentionPolicy::default();
    let pruned = prune(root, policy, dry_run)?;
    let now = Timestamp::now();
    let zone = local_zone();
    for run in &pruned.removed {
        let when = relative_date(run.at, now, &zone);
        let size = format_bytes(run.bytes);
        let why = reason_text(policy, run.why);
        writeln!(out, "{}  {when}  {size}  {why}", run.id)?;
    }
    for (id, why) in &pruned.left {
        message(&format!("run {id} is kept: {}", super::select::one_line(&why.to_string())));
    }
    let removed = count(pruned.removed.len() as u64, "run");
    let rest = format_bytes(pruned.bytes);
    let limits = policy_text(policy);
    if dry_run {
        message(&format!("would remove {removed}; {rest} would remain ({limits})"));
    } else {
        message(&format!("removed {removed}; {rest} remain ({limits})"));
    }
    Ok(())
}

/// Describes the policy.
fn policy_text(policy: RetentionPolicy) -> String {
    format!(
        "limits: {} days, {}, {} in total",
        days(policy),
        count(policy.runs_max as u64, "run"),
        format_bytes(policy.bytes_max)
    )
}

/// Describes the limit that a run exceeds.
fn reason_text(policy: RetentionPolicy, why: PruneReason) -> String {
    match why {
        PruneReason::Age => format!("older than {} days", days(policy)),
        PruneReason::Runs => format!("more than {}", count(policy.runs_max as u64, "run")),
        PruneReason::Bytes => format!("more than {} in total", format_bytes(policy.bytes_max)),
    }
}

fn days(policy: RetentionPolicy) -> u64 {
    policy.age_max.as_secs() / 86_400
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_limits() {
        let policy = RetentionPolicy { runs_max: 1, ..RetentionPolicy::default() };
        let reasons =
            [PruneReason::Age, PruneReason::Runs, PruneReason::Bytes].map(|why| reason_text(policy, why));
        assert_eq!(reasons, ["older than 30 days", "more than 1 run", "more than 1.0 GiB in total"]);
        assert_eq!(policy_text(policy), "limits: 30 days, 1 run, 1.0 GiB in total");
    }
}

//! `--prune`: removes old records, and says which and by what rule.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;

use crate::report::{count, format_error, message};
use crate::text::format_bytes;
use crate::ui::format::{local_zone, relative_date};
use minder_record::retention::{PruneReason, RetentionPolicy, prune};

/// Removes what the rule names; with `dry_run`, only tells of it.
pub(super) fn run(out: &mut dyn Write, root: &Path, dry_run: bool) -> Result<()> {
    let rule = RetentionPolicy::default();
    let pruned = prune(root, rule, dry_run)?;
    let (now, zone) = (Timestamp::now(), local_zone());
    for gone in &pruned.removed {
        let (when, size, why) =
            (relative_date(gone.at, now, &zone), format_bytes(gone.bytes), beyond(rule, gone.why));
        writeln!(out, "{}  {when}  {size}  {why}", gone.id)?;
    }
    for (id, why) in &pruned.left {
        message(&format!("run {id} is kept: {}", super::one_line(&format_error(why))));
    }
    let (removed, rest) = (count(pruned.removed.len() as u64, "run"), format_bytes(pruned.bytes));
    let (removed, left) = match dry_run {
        true => (format!("{removed} would be removed"), format!("{rest} would be left")),
        false => (format!("{removed} removed"), format!("{rest} left")),
    };
    message(&format!("{removed}, {left} ({})", stated(rule)));
    Ok(())
}

/// The rule in words.
fn stated(rule: RetentionPolicy) -> String {
    format!(
        "kept are runs of the last {} days, at most {}, {} in all",
        days(rule),
        rule.runs_max,
        format_bytes(rule.bytes_max)
    )
}

/// What of the rule a run is beyond.
fn beyond(rule: RetentionPolicy, why: PruneReason) -> String {
    match why {
        PruneReason::Age => format!("older than {} days", days(rule)),
        PruneReason::Runs => format!("more than {}", count(rule.runs_max as u64, "run")),
        PruneReason::Bytes => format!("more than {} in all", format_bytes(rule.bytes_max)),
    }
}

fn days(rule: RetentionPolicy) -> u64 {
    rule.age_max.as_secs() / 86_400
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_told_in_words() {
        let rule = RetentionPolicy { runs_max: 1, ..RetentionPolicy::default() };
        let whys = [PruneReason::Age, PruneReason::Runs, PruneReason::Bytes].map(|why| beyond(rule, why));
        assert_eq!(whys, ["older than 30 days", "more than 1 run", "more than 1.0 GiB in all"]);
        assert_eq!(stated(rule), "kept are runs of the last 30 days, at most 1, 1.0 GiB in all");
    }
}

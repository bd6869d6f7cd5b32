//! `--prune`: removes old records, and says which and by what rule.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;

use crate::journal::folder::{self, is_alive};
use crate::journal::prune::{Rule, prune};
use crate::journal::row::{now, since_1970};
use crate::report::when::{size, when, zone};
use crate::report::{count, say};

/// Removes what the rule names; with `dry`, only tells of it.
pub(super) fn run(out: &mut dyn Write, root: &Path, dry: bool) -> Result<()> {
    let rule = Rule::default();
    let due = due(root, rule)?;
    let (now, zone) = (Timestamp::now(), zone());
    let line = |id: &str, at: f64, bytes: u64, why: &str| {
        format!("{id}  {}  {}  {why}\n", when(at, now, &zone), size(bytes))
    };
    if dry {
        for due in &due {
            out.write_all(line(&due.id, due.at, due.bytes, &due.why).as_bytes())?;
        }
        say(&format!("{} would be removed ({})", count(due.len() as u64, "run"), stated(rule)));
        return Ok(());
    }
    let whys: BTreeMap<&str, &str> = due.iter().map(|due| (due.id.as_str(), due.why.as_str())).collect();
    let pruned = prune(root, rule)?;
    for gone in &pruned.removed {
        let why = whys.get(gone.id.as_str()).copied().unwrap_or("by then beyond the rule");
        out.write_all(line(&gone.id, gone.at, gone.bytes, why).as_bytes())?;
    }
    for (id, why) in &pruned.left {
        say(&format!("run {id} is kept: {}", super::one_line(why)));
    }
    let removed = pruned.removed.len() as u64;
    say(&format!("{} removed, {} left ({})", count(removed, "run"), size(pruned.bytes), stated(rule)));
    Ok(())
}

/// The rule in words.
fn stated(rule: Rule) -> String {
    let days = rule.age_max.as_secs() / 86_400;
    format!(
        "kept are runs of the last {days} days, at most {}, {} in all",
        rule.runs_max,
        size(rule.bytes_max)
    )
}

/// A run that is to go.
#[derive(Debug, PartialEq)]
struct Due {
    id: String,
    at: f64,
    bytes: u64,
    why: String,
}

/// What [`prune`] removes, but for what it finds to be in use when it gets there; in its order, oldest first.
fn due(root: &Path, rule: Rule) -> Result<Vec<Due>> {
    let mut all = Vec::new();
    for run in folder::list(root)? {
        let (bytes, last) = taken(&run.folder);
        all.push((run, bytes, last));
    }
    let (mut count, mut bytes) = (all.len(), all.iter().map(|(_, bytes, _)| bytes).sum::<u64>());
    let now = now();
    let mut due = Vec::new();
    for (run, size_of, last) in all.into_iter().rev() {
        let why = if now - last.max(run.at.min(now)) > rule.age_max.as_secs_f64() {
            format!("older than {} days", rule.age_max.as_secs() / 86_400)
        } else if count > rule.runs_max {
            format!("more than {} runs", rule.runs_max)
        } else if bytes > rule.bytes_max {
            format!("more than {} in all", size(rule.bytes_max))
        } else {
            continue;
        };
        if is_alive(&run.folder) {
            continue;
        }
        (count, bytes) = (count - 1, bytes - size_of);
        due.push(Due { id: run.id, at: run.at, bytes: size_of, why });
    }
    Ok(due)
}

/// The bytes that a run takes, and when something was last written to it.
fn taken(folder: &Path) -> (u64, f64) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.filter_map(|file| file.metadata().ok()).filter(std::fs::Metadata::is_file);
    files.fold((0, 0.0), |(bytes, last): (u64, f64), file| {
        (bytes + file.len(), last.max(file.modified().map_or(0.0, since_1970)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_due_is_what_goes() {
        let root = tempfile::tempdir().expect("a folder");
        for id in ["00000001", "00000002", "00000003"] {
            let folder = folder::runs(root.path()).join(id);
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join("attempt-1.jsonl"), [0; 2000]).expect("a file");
        }
        let year = Duration::from_secs(365 * 86_400);
        let rule = |runs_max, bytes_max| Rule { age_max: year, runs_max, bytes_max };
        let whys =
            |rule| due(root.path(), rule).expect("runs").into_iter().map(|due| due.why).collect::<Vec<_>>();
        assert_eq!(whys(rule(9, 1 << 30)), [""; 0]);
        assert_eq!(whys(rule(1, 1 << 30)), ["more than 1 runs"; 2]);
        assert_eq!(whys(rule(9, 4096)), ["more than 4.0 KiB in all"]);
        assert_eq!(whys(Rule { age_max: Duration::ZERO, runs_max: 9, bytes_max: 1 << 30 }).len(), 3);
        let due: Vec<String> =
            due(root.path(), rule(2, 1 << 30)).expect("runs").into_iter().map(|due| due.id).collect();
        let gone = prune(root.path(), rule(2, 1 << 30)).expect("pruned").removed;
        assert_eq!(gone.into_iter().map(|gone| gone.id).collect::<Vec<_>>(), due);
    }
}

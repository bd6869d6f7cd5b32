//! What all trials use: the version that is upgraded, the right to make a machine, lists of files, and the
//! first example of the README.

use crate::{bare, install};
use anyhow::{Result, ensure};

/// The version from which the packages are upgraded.
pub(super) const OLDER: &str = "0.0.9";

/// Returns an error without the right to make a root directory for other programs.
pub(super) fn need_root() -> Result<()> {
    ensure!(install::is_root(), "chroot and mount need root (run it as root)");
    Ok(())
}

/// Compares two lists of files.
pub(super) fn same_files(before: &str, after: &str) -> Result<()> {
    let without = |list: &str, other: &str| -> Vec<String> {
        list.lines().filter(|line| !other.lines().any(|known| known == *line)).map(str::to_owned).collect()
    };
    let left = without(after, before);
    let gone = without(before, after);
    ensure!(left.is_empty(), "these files are left behind:\n{}", left.join("\n"));
    ensure!(gone.is_empty(), "these files are gone:\n{}", gone.join("\n"));
    println!("dist: {} files, as before", before.lines().count());
    Ok(())
}

/// Returns the first example of the README, as a user of the package runs it.
pub(super) fn example() -> String {
    let arguments = bare::FIRST.split_once(" -- ").map_or(bare::FIRST, |(_, arguments)| arguments);
    format!("minder {arguments}")
}

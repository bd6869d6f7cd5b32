//! The control group of this process (cgroups(7)), and what the process may do there.

use std::fs;
use std::path::PathBuf;

use rustix::fs::{Access, access};

use super::types::Capability;

/// Returns the directory of our group in the second version of the hierarchy.
pub(super) fn own_dir() -> Option<PathBuf> {
    find_dir(
        &fs::read_to_string("/proc/self/mountinfo").ok()?,
        &fs::read_to_string("/proc/self/cgroup").ok()?,
    )
}

/// Returns whether this process may make cgroups, for the limits of its children.
pub(super) fn delegated() -> Capability {
    let mechanism = Capability::available("children", "cgroup");
    let Some(dir) = own_dir() else { return mechanism.absent("version 2 is not mounted") };
    let writable = |path: &PathBuf| access(path, Access::WRITE_OK).is_ok();
    if !writable(&dir) || !writable(&dir.join("cgroup.procs")) {
        return mechanism.refused("not delegated");
    }
    let controllers = fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
    let has_memory = controllers.split_ascii_whitespace().any(|name| name == "memory");
    if has_memory { mechanism } else { mechanism.note("without the controller of memory") }
}

/// Returns our directory: the mount point of the hierarchy, and our path relative to the mounted
/// root.
fn find_dir(mounts: &str, groups: &str) -> Option<PathBuf> {
    let (root, point) = mounts.lines().find_map(|line| {
        // 35 24 0:30 ROOT POINT OPTIONS … - TYPE SOURCE OPTIONS
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        right.starts_with("cgroup2 ").then(|| left.next().zip(left.next())).flatten()
    })?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let own = own.strip_prefix(root.trim_end_matches('/')).unwrap_or(own);
    Some(PathBuf::from(point).join(own.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_dir_is_found_below_mount_point() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let at = |groups| find_dir(mounts, groups).map(|path| path.display().to_string());
        assert_eq!(at("0::/user.slice/a b\n"), Some("/sys/fs/cgroup/user.slice/a b".into()));
        assert_eq!(at("3:cpu:/x\n0::/\n"), Some("/sys/fs/cgroup/".into()));
        assert_eq!(at("3:cpu:/x\n"), None);
        let bound = "30 24 0:26 /box /cg rw - cgroup2 none rw\n";
        assert_eq!(find_dir(bound, "0::/box/in\n"), Some(PathBuf::from("/cg/in")));
        assert_eq!(find_dir("1 2 0:3 / /proc rw - proc proc rw\n", "0::/\n"), None);
    }
}

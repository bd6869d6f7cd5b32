//! The memory that the control groups of this process still have (cgroups(7)): both versions.

use std::fs;
use std::path::{Path, PathBuf};

use super::types::Memory;

/// The files of one version of the hierarchy.
struct Version {
    /// The text with which its line in `/proc/self/mountinfo` continues after ` - `.
    kind: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// The line of `memory.stat` with the cache that the kernel drops first.
    cache: &'static str,
}

const FIRST: Version = Version {
    kind: "cgroup ",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: "total_inactive_file ",
};
const SECOND: Version =
    Version { kind: "cgroup2 ", limit: "memory.max", usage: "memory.current", cache: "inactive_file " };

/// Returns `memory` with the limits of the groups of this process, each of which also limits the
/// groups below it.
pub(super) fn limited(memory: Memory) -> Memory {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    limited_by(memory, &read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
}

/// Returns the mount point of the second version, and the directory of this process there.
pub(crate) fn second_cgroup() -> Option<(PathBuf, PathBuf)> {
    let read = |path| fs::read_to_string(path).ok();
    find(&SECOND, &read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?)
}

fn limited_by(mut memory: Memory, mounts: &str, groups: &str) -> Memory {
    for version in [SECOND, FIRST] {
        let Some((point, own)) = find(&version, mounts, groups) else { continue };
        for dir in own.ancestors().take_while(|dir| dir.starts_with(&point)) {
            let Some((limit, free)) = free_in(&version, dir) else { continue };
            memory.total = memory.total.min(limit);
            memory.available = memory.available.min(free);
        }
    }
    memory
}

/// Returns the limit of a group and what it leaves, if there is a limit.
fn free_in(version: &Version, dir: &Path) -> Option<(u64, u64)> {
    let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
    // `max` means that there is no limit.
    let limit: u64 = read(version.limit)?.trim().parse().ok()?;
    let usage: u64 = read(version.usage)?.trim().parse().ok()?;
    let stat = read("memory.stat").unwrap_or_default();
    let cache = stat.lines().find_map(|line| line.strip_prefix(version.cache)?.trim().parse().ok());
    Some((limit, limit.saturating_sub(usage.saturating_sub(cache.unwrap_or(0)))))
}

/// Returns the mount point of the hierarchy, and the directory of this process below it.
fn find(version: &Version, mounts: &str, groups: &str) -> Option<(PathBuf, PathBuf)> {
    let is_first = version.kind == FIRST.kind;
    let (root, point) = mounts.lines().find_map(|line| {
        // 35 24 0:30 ROOT POINT OPTIONS … - TYPE SOURCE OPTIONS
        let (left, right) = line.split_once(" - ")?;
        let right = right.strip_prefix(version.kind)?;
        let controls_memory = || right.split([' ', ',']).any(|option| option == "memory");
        let mut left = left.split(' ').skip(3);
        (!is_first || controls_memory()).then(|| left.next().zip(left.next())).flatten()
    })?;
    let own = groups.lines().find_map(|line| {
        // ID:CONTROLLERS:PATH
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = fields.next().zip(fields.next())?;
        let is_own = if is_first {
            controllers.split(',').any(|name| name == "memory")
        } else {
            controllers.is_empty()
        };
        is_own.then_some(path)
    })?;
    // In a container the path may be that of the host, which is not below the mount.
    let own = own.strip_prefix(root.trim_end_matches('/')).unwrap_or(own);
    let point = PathBuf::from(point);
    let dir = point.join(own.trim_start_matches('/'));
    Some(if dir.is_dir() { (point, dir) } else { (point.clone(), point) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Memory = Memory { available: 8 << 30, total: 16 << 30 };

    /// Writes the files of a group, and returns what is left of the memory of the machine.
    fn left(mount: &str, groups: &str, files: &[(&str, &str)]) -> Memory {
        let root = tempfile::tempdir().expect("create directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("path has a parent")).expect("create directory");
            fs::write(path, text).expect("write file");
        }
        limited_by(MACHINE, &mount.replace("POINT", &root.path().display().to_string()), groups)
    }

    #[test]
    fn tightest_group_of_the_second_version_counts() {
        let mount = "30 24 0:26 / POINT rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let files = [
            ("memory.stat", ""),
            ("a/memory.max", "1000000\n"),
            ("a/memory.current", "900000\n"),
            ("a/memory.stat", "anon 1\ninactive_file 50000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "5\n"),
        ];
        assert_eq!(left(mount, "0::/a/b\n", &files), Memory { available: 150_000, total: 1_000_000 });
        assert_eq!(left(mount, "0::/\n", &files), MACHINE);
        assert_eq!(left(mount, "3:memory:/a\n", &files), MACHINE);
        // A path of the host.
        let own = [("memory.max", "7000"), ("memory.current", "8000")];
        assert_eq!(left(mount, "0::/docker/x\n", &own), Memory { available: 0, total: 7000 });
    }

    #[test]
    fn first_version_has_other_files() {
        let mounts = "1 2 0:3 /box POINT/cpu rw - cgroup cgroup rw,cpu\n\
                      1 2 0:4 /box POINT rw - cgroup cgroup rw,memory\n";
        let files = [
            ("in/memory.limit_in_bytes", "4096000"),
            ("in/memory.usage_in_bytes", "96000"),
            ("in/memory.stat", "inactive_file 1\ntotal_inactive_file 6000\n"),
            ("memory.limit_in_bytes", "9223372036854771712"),
            ("memory.usage_in_bytes", "200000"),
        ];
        let groups = "5:cpu:/\n4:memory:/box/in\n";
        assert_eq!(left(mounts, groups, &files), Memory { available: 4_006_000, total: 4_096_000 });
        assert_eq!(left(mounts, "5:cpu:/\n", &files), MACHINE);
    }
}

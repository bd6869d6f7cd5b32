//! The root file system of the virtual machine: an archive of cpio, which the kernel unpacks into memory.

use crate::artifacts::Program;
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The packages that are copied in addition to the essential ones of Debian. One that is not installed is
/// left out.
const PACKAGES: [&str; 7] = ["iproute2", "libc-bin", "make", "mawk", "mount", "procps", "tmux"];

/// Files that no package lists.
const MORE: [&str; 8] = [
    "/bin/sh",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/usr/bin/awk",
    "/usr/bin/which",
];

/// What no test reads.
const LEFT_OUT: [&str; 5] =
    ["/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/", "/usr/share/lintian/"];

/// Process 1. The tests run in a session without a terminal, in a control group below the root, and with
/// the limits that systemd sets. Their output is a pipe, as usual. Its reader exits after the line that
/// begins with END: processes that tests left behind may hold the pipe. The last close of ttyS1 waits until
/// all output has left the machine.
const INIT: &str = r#"#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root USER=root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -o remount,size=90% /
chmod 1777 /tmp
for name in fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do
    ln -s "/proc/self/${name#*:}" "/dev/${name%:*}"
done
ip link set lo up
cd /sys/fs/cgroup
echo '+cpu +memory +pids' >cgroup.subtree_control
mkdir tests
echo 4194304 >/proc/sys/kernel/pid_max
ulimit -Sn 1024
ulimit -Hn 524288
stty -F /dev/ttyS1 raw
setsid -w sh -c 'echo 0 >/sys/fs/cgroup/tests/cgroup.procs; exec sh /tests' </dev/null 2>&1 |
    sed -u '/^END/q' >/dev/ttyS1
echo b >/proc/sysrq-trigger
"#;

/// Writes the archive. `script` runs in the machine, after which it ends.
pub(super) fn write(archive: &Path, programs: &[Program], script: &str) -> Result<()> {
    let mut files = Files::default();
    files.add_packages()?;
    for path in MORE {
        files.add(Path::new(path));
    }
    for program in programs {
        files.add(&program.path);
    }
    files.add_libraries()?;
    for path in tree::files()? {
        files.add(&tree::root().join(path));
    }
    cpio(Path::new("/"), &files.names, File::create(archive)?)?;

    // A second archive follows, of files that this machine does not have.
    let home = archive.with_extension("added");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    let mut added = Files::default();
    let temporary = tree::target_dir().join("tmp");
    for directory in ["/proc", "/sys", "/dev", "/run", "/root", "/tmp", "/var/tmp"].map(Path::new) {
        added.make_directory(&home, directory)?;
    }
    added.make_directory(&home, &temporary)?;
    let init = INIT.replace("END", super::END.trim_end());
    for (name, text) in [("init", init.as_str()), ("tests", script)] {
        fs::write(home.join(name), text)?;
        run::read(run::command("chmod").arg("755").arg(home.join(name)))?;
        added.names.insert(name.into());
    }
    cpio(&home, &added.names, File::options().append(true).open(archive)?)
}

/// The names of files and directories, relative to `/`. A directory stands before what it contains.
#[derive(Default)]
struct Files {
    names: BTreeSet<PathBuf>,
}

impl Files {
    /// Adds a file with its directories, and what it links to. What does not exist is left out.
    fn add(&mut self, path: &Path) {
        let Ok(about) = path.symlink_metadata() else { return };
        // Directories such as /bin may be links to others.
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        if let Some(link) = path.ancestors().skip(1).find(|above| above.is_symlink()) {
            self.add(link);
        }
        let Ok(real) = parent.canonicalize() else { return };
        let path = real.join(name);
        let Ok(relative) = path.strip_prefix("/") else { return };
        if !self.names.insert(relative.to_owned()) {
            return;
        }
        self.add_above(relative);
        if about.is_symlink()
            && let Ok(target) = fs::read_link(&path)
        {
            self.add(&real.join(target));
        }
    }

    fn add_packages(&mut self) -> Result<()> {
        let mut query = run::command("dpkg-query");
        query.args(["-W", "-f", r"${db:Status-Status} ${Essential} ${Package}\n"]);
        for line in run::read(&mut query)?.lines() {
            let Some((kind, package)) = line.rsplit_once(' ') else { continue };
            let wanted = kind == "installed yes" || (kind == "installed no" && PACKAGES.contains(&package));
            if !wanted {
                continue;
            }
            let listed = run::read(run::command("dpkg-query").args(["-L", package]))?;
            for path in listed.lines().filter(|path| !LEFT_OUT.iter().any(|begin| path.starts_with(begin))) {
                self.add(Path::new(path));
            }
        }
        Ok(())
    }

    /// Adds the libraries of all programs that were added.
    fn add_libraries(&mut self) -> Result<()> {
        let programs: Vec<PathBuf> =
            self.names.iter().map(|name| Path::new("/").join(name)).filter(|path| is_elf(path)).collect();
        ensure!(!programs.is_empty(), "no program was found");
        // Fails for a program without libraries.
        let output = run::command("ldd").args(&programs).output().context("cannot run `ldd`")?;
        for line in String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| line.strip_prefix('\t'))
        {
            let path = line.split_once(" => ").map_or(line, |(_, path)| path);
            let path = path.split(" (").next().unwrap_or_default();
            if path.starts_with('/') {
                self.add(Path::new(path));
            }
        }
        Ok(())
    }

    fn make_directory(&mut self, home: &Path, path: &Path) -> Result<()> {
        let relative = path.strip_prefix("/")?;
        fs::create_dir_all(home.join(relative))?;
        self.names.insert(relative.to_owned());
        self.add_above(relative);
        Ok(())
    }

    fn add_above(&mut self, relative: &Path) {
        let above = relative.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
        self.names.extend(above.map(Path::to_owned));
    }
}

fn is_elf(path: &Path) -> bool {
    let mut begin = [0; 4];
    let file = path.is_file().then(|| File::open(path).ok()).flatten();
    file.is_some_and(|mut file| file.read_exact(&mut begin).is_ok()) && begin == *b"\x7fELF"
}

/// Writes an archive of these files of a directory, all owned by root.
fn cpio(directory: &Path, names: &BTreeSet<PathBuf>, archive: File) -> Result<()> {
    let list = tree::target_dir().join("kernel/names");
    let mut text = File::create(&list)?;
    for name in names {
        let name = name.to_str().with_context(|| format!("{} is not UTF-8", name.display()))?;
        write!(text, "{name}\0")?;
    }
    let mut cmd = run::command("cpio");
    cmd.args(["--create", "--format=newc", "--null", "--quiet", "--owner=+0:+0"]).current_dir(directory);
    let status = cmd.stdin(File::open(&list)?).stdout(archive).stderr(Stdio::inherit()).status();
    ensure!(status.context("cannot run `cpio`")?.success(), "`cpio` failed");
    Ok(())
}

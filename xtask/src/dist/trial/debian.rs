//! The package of Debian, on a pristine Debian that debootstrap installs in a directory.

use super::machine::{OLDER, example, need_root, same_files};
use crate::bare::{self, system};
use crate::dist::layout::{self, DEB, LINKS};
use crate::dist::linux_packages::write_deb;
use crate::dist::program::LINUX;
use crate::dist::release::Release;
use crate::{install, run, tree};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Instant;

/// Packages that are there before ours: each contains something that ours must not disturb, or tries it.
const BESIDE: [&str; 6] = ["man-db", "bash-completion", "parallel", "zsh", "fish", "tmux"];

/// The steps on a machine of Debian: a name, and lines of bash, in `/srv` and in one environment.
/// `$EXAMPLE` is the first example of the README. `grep -c` reads to the end, so that what writes to it does
/// not fail with SIGPIPE.
const STEPS: [(&str, &str); 9] = [
    ("install the older version", "apt-get -qq install -y ./minder_${OLDER}-1_amd64.deb"),
    (
        "run the first example",
        r#"test "$(eval "$EXAMPLE" | sort)" = "$(for f in LICENSE-*; do wc -c "$f"; done | sort)"
minder log | grep -c 'wc -c'"#,
    ),
    (
        "upgrade, and read the record of the older version",
        r#"apt-get -qq install -y "./minder_${VERSION}-1_amd64.deb"
test "$(dpkg-query -W -f '${Version}' minder)" = "$VERSION-1"
minder log last | grep -c LICENSE-APACHE
eval "$EXAMPLE" >/dev/null
test "$(minder log | grep -c 'wc -c')" = 2"#,
    ),
    (
        "read the manual pages",
        r#"man -P cat minder-run | grep -c '^NAME'
man -w minder minder-log minder-parallel | wc -l | grep -cx 3
whatis minder-run | grep -c '^minder-run (1)'"#,
    ),
    ("complete words in bash, zsh and fish", include_str!("complete.bash")),
    (
        "use the links beside the tools themselves",
        r#"[[ $(parallel --version) == 'GNU parallel '* ]]
test "$(command -v xargs)" = /usr/bin/xargs
for name in $LINKS; do
    PATH=/usr/lib/minder/bin:$PATH "$name" --version | grep -c '^minder '
done
test -z "$(dpkg -L parallel minder | sort | uniq -d | while read -r f; do test -d "$f" || echo "$f"; done)""#,
    ),
    (
        "install GNU parallel again",
        "dpkg --remove parallel >/dev/null\napt-get -qq install -y --no-install-recommends parallel",
    ),
    ("remove", "apt-get -qq remove -y minder\ntest ! -e /usr/bin/minder\ntest -d ~/.local/state/minder"),
    ("purge", "apt-get -qq purge -y minder\n! dpkg-query -W minder 2>/dev/null"),
];

/// Lists the files of a machine, except lists and caches of its package manager, and what its user wrote.
const LIST: &str = r"find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /srv \
-o -path /root -o -path /opt -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \
-o -path /var/lib/dpkg \) -prune -o -print | sort";

/// Tries the package.
pub(in crate::dist) fn check(release: &Release, files: &[PathBuf]) -> Result<()> {
    need_root()?;
    install::programs(&[system::DEBOOTSTRAP]).map_err(anyhow::Error::msg)?;
    let home = tree::target_dir().join("packages");
    let machine = Machine { root: home.join("debian") };
    system::install(&machine.root, &BESIDE, &home.join("debootstrap.log"))?;
    let srv = machine.root.join("srv");
    let top = layout::make(release, &LINUX, &DEB)?;
    let name = |version: &str| format!("minder_{version}-1_amd64.deb");
    write_deb(release, &top, &LINUX, OLDER, &srv.join(name(OLDER)))?;
    // The first one is for this machine.
    std::fs::copy(files.first().context("no package")?, srv.join(name(&release.version)))?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        std::fs::copy(release.source.join(name), srv.join(name))?;
    }
    machine.step(release, "update the lists of packages", "apt-get -qq update")?;
    let before = run::read(&mut machine.inside(release, LIST))?;
    for (name, lines) in STEPS {
        machine.step(release, name, lines)?;
    }
    let after = run::read(&mut machine.inside(release, LIST))?;
    same_files(&before, &after)?;
    std::fs::remove_dir_all(&machine.root)?;
    Ok(())
}

/// A Debian in a directory.
struct Machine {
    root: PathBuf,
}

impl Machine {
    /// Runs a step with its output in a file, of which an error shows the end.
    fn step(&self, release: &Release, name: &str, lines: &str) -> Result<()> {
        let begin = Instant::now();
        let log = self.root.with_file_name("trial.log");
        let mut cmd = self.inside(release, lines);
        let done = run::run_to_file(&mut cmd, &log);
        done.map_err(|why| {
            let why = format!("{why:#}");
            // The command itself is a page long.
            let end = why.rsplit_once("):\n").map_or(why.as_str(), |(_, end)| end);
            anyhow::anyhow!("cannot {name}: {end}")
        })?;
        println!("dist: {name}: {:.1} s", begin.elapsed().as_secs_f64());
        Ok(())
    }

    /// Returns bash lines that run inside, as root.
    fn inside(&self, release: &Release, lines: &str) -> std::process::Command {
        let enter = format!("{}root=$1\nshift\nexec chroot \"$root\" \"$@\"\n", system::MOUNT);
        let mut cmd = system::apart();
        cmd.args(["sh", "-c", &enter, "trial"]).arg(&self.root);
        cmd.args(["/usr/bin/env", "-i", "HOME=/root", "USER=root", "LANG=C.UTF-8", "TERM=xterm"]);
        cmd.args(["DEBIAN_FRONTEND=noninteractive", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
        cmd.args([format!("VERSION={}", release.version), format!("OLDER={OLDER}")]);
        cmd.args([format!("LINKS={}", LINKS.join(" ")), format!("EXAMPLE={}", example())]);
        cmd.args(bare::network_variables());
        // bash stays as process 1 and reaps orphans, as an init does.
        let line = format!("cd /srv\nset -e -o pipefail\n{lines}");
        cmd.args(["/bin/bash", "-c", r#"bash -c "$1"; exit $?"#, "init", &line]);
        cmd
    }
}

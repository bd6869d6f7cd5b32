//! The files for other systems, as far as Debian has their tools.

use super::machine::need_root;
use crate::dist::program::LINUX;
use crate::dist::release::Release;
use crate::{install, run, tree};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};

const TOOLS: [install::Program; 5] = [
    install::Program { name: "ruby", package: "ruby" },
    install::Program { name: "nix-instantiate", package: "nix-bin" },
    install::Program { name: "buildah", package: "buildah" },
    install::Program { name: "busybox", package: "busybox-static" },
    install::Program { name: "unshare", package: "util-linux" },
];

/// Does in the directory `$1` what `makepkg` does after a build, with the program `$2`, and lists the files.
const PKGBUILD: &str = r#"set -eu
cd "$1"
. ./PKGBUILD
test "$(sha256sum <"$3" | cut -d' ' -f1)" = "${sha256sums[0]}"
tar -xzf "$3"
pkgdir=$1/pkg
install -D "$2" "$pkgname-$pkgver/target/release/minder"
(check)
(package)
"$pkgdir/usr/bin/minder" --version
test -s "$pkgdir/usr/share/man/man1/minder-run.1"
test -s "$pkgdir/usr/share/zsh/site-functions/_minder"
test -s "$pkgdir/usr/share/licenses/minder/LICENSE-MIT""#;

/// Builds the image from the directory `$1` with the store `$2`, and runs jobs as the user of the image, with
/// minder as process 1. A shell is put beside it, for jobs.
const IMAGE: &str = r#"set -eu
store="buildah --storage-driver vfs --root $2/store --runroot $2/run"
$store bud --quiet --isolation chroot --tag minder "$1"
container=$($store from minder)
$store copy --quiet "$container" "$(command -v busybox)" /bin/busybox
$store copy --quiet "$container" "$(command -v busybox)" /bin/sh
root=$($store mount "$container")
user=$($store inspect --format '{{.OCIv1.Config.User}}' minder)
test "$($store inspect --format '{{.OCIv1.Config.Entrypoint}}' minder)" = '[/usr/bin/minder]'
test "$user" = 65532:65532
mkdir -p "$root/proc" "$root/dev"
touch "$root/dev/null"
cat >"$2/enter" <<'END'
mount -t proc proc "$2/proc"
mount --bind /dev/null "$2/dev/null"
user=$1
shift
exec /usr/sbin/chroot --userspec="$user" "$@"
END
inside=(env -i PATH=/usr/bin:/bin unshare --mount --pid --fork --kill-child
    sh "$2/enter" "$user" "$root" /usr/bin/minder run --no-record --quiet)
# The second job looks for zombies after the first one has left an orphan.
orphan='(busybox sleep 0.2 &); echo a'
out=$("${inside[@]}" -j1 -k ::: "$orphan" 'busybox sleep 1; busybox ps -o pid,stat,args')
echo "$out"
test "$(echo "$out" | head -1)" = a
echo "$out" | grep -q '^ *1 .*/usr/bin/minder run'
if echo "$out" | grep -q ' Z '; then exit 1; fi
"${inside[@]}" 'busybox sleep 60; echo {}' ::: a b &
unshare=$!
sleep 1
begin=$SECONDS
kill -TERM "$(ps -o pid= --ppid "$unshare")"
status=0
wait "$unshare" || status=$?
test "$status" = 143
test "$((SECONDS - begin))" -lt 5"#;

/// Checks them.
pub(in crate::dist) fn check(release: &Release, _: &[PathBuf]) -> Result<()> {
    need_root()?;
    install::programs(&TOOLS).map_err(anyhow::Error::msg)?;
    let top = release.build.join("recipes");
    run::run(run::command("ruby").arg("-c").arg(top.join("homebrew/minder.rb")))?;
    run::read(run::command("nix-instantiate").arg("--parse").arg(top.join("nix/flake.nix")))?;
    for name in ["minder", "minder.installer", "minder.locale.en-US"] {
        let mut read = run::command("ruby");
        read.args(["-ryaml", "-e", "YAML.safe_load(File.read(ARGV[0])).fetch('ManifestVersion')"]);
        run::run(read.arg(top.join(format!("winget/{name}.yaml"))))?;
    }
    let work = tree::target_dir().join("packages/recipes");
    if work.exists() {
        std::fs::remove_dir_all(&work)?;
    }
    let unpacked = release.build.join(LINUX.triple).join("stage");
    let source = release.out.join(format!("minder-{}.tar.gz", release.version));
    let aur = fresh(&work, "aur", &top.join("aur/PKGBUILD"))?;
    let mut package = run::command("bash");
    package.args(["-c", PKGBUILD, "trial"]).arg(&aur).arg(unpacked.join("minder")).arg(source);
    let version = run::read(&mut package)?;
    let version = version.lines().last().unwrap_or_default().to_owned();
    ensure!(version == format!("minder {}", release.version), "the package of Arch Linux has {version}");
    let image = fresh(&work, "image", &top.join("container/Containerfile"))?;
    let archive = format!("minder-{}-{}.tar.gz", release.version, LINUX.triple);
    std::fs::copy(release.out.join(&archive), image.join(&archive))?;
    let store = work.join("store");
    std::fs::create_dir_all(&store)?;
    let mut build = run::command("bash");
    run::run_to_file(build.args(["-c", IMAGE, "trial"]).arg(&image).arg(&store), &work.join("image.log"))?;
    println!("dist: the image is built, and its program reaps orphans and obeys TERM as process 1");
    std::fs::remove_dir_all(&work)?;
    Ok(())
}

/// Returns a new directory with a copy of the file.
fn fresh(work: &Path, name: &str, file: &Path) -> Result<PathBuf> {
    let dir = work.join(name);
    std::fs::create_dir_all(&dir)?;
    std::fs::copy(file, dir.join(file.file_name().unwrap_or_default()))?;
    Ok(dir)
}

//! The surroundings: each has a name, and a shell line that runs a test program in it.

use crate::{install, run};

/// One of them. In the line, `"$@"` is the program with its arguments; `$PROGRAM` and `$TESTS` are
/// the same as variables, and `$TARGET_TMP` is the directory in which tests keep files.
pub(super) struct Surrounding {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) line: &'static str,
    pub(super) needs: Needs,
    /// `true` if the programs come from a checkout elsewhere.
    pub(super) elsewhere: bool,
    /// `true` if the output of the programs can be read. Otherwise a program counts as one test.
    pub(super) is_seen: bool,
}

/// The requirement of a surrounding.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Needs {
    Nothing,
    Root,
    Turkish,
    Shells,
}

use Needs::{Nothing, Root, Shells, Turkish};

const fn plain(name: &'static str, what: &'static str, line: &'static str) -> Surrounding {
    Surrounding { name, what, line, needs: Nothing, elsewhere: false, is_seen: true }
}

const fn with(needs: Needs, surrounding: Surrounding) -> Surrounding {
    Surrounding { needs, ..surrounding }
}

const fn unseen(surrounding: Surrounding) -> Surrounding {
    Surrounding { is_seen: false, ..surrounding }
}

/// The shells that Debian has.
pub(super) const SHELLS: [install::Program; 8] = [
    install::Program { name: "bash", package: "bash" },
    install::Program { name: "zsh", package: "zsh" },
    install::Program { name: "ksh93", package: "ksh93u+m" },
    install::Program { name: "mksh", package: "mksh" },
    install::Program { name: "yash", package: "yash" },
    install::Program { name: "busybox", package: "busybox" },
    install::Program { name: "posh", package: "posh" },
    install::Program { name: "fish", package: "fish" },
];

/// All of them.
pub(super) const SURROUNDINGS: [Surrounding; 21] = [
    plain("plain", "as it is here", r#""$@""#),
    with(Shells, plain("shells", "with every shell installed", r#""$@""#)),
    plain(
        "load",
        "with two busy loops",
        r#"busy() { setpriv --pdeathsig KILL sh -c 'while :; do :; done' & }
busy; a=$!; busy; b=$!
"$@"; status=$?; kill $a $b; exit $status"#,
    ),
    plain("nice", "with the niceness 19", r#"nice -n 19 "$@""#),
    // In a mount namespace, this user may write to the directory of the tests' files. `PATH` loses the
    // directories of root: execvp(3) returns `permission denied` for a program that may be in one.
    with(
        Root,
        plain(
            "user",
            "as a user that is not root",
            r#"exec unshare --mount sh -c 'mount -t tmpfs -o mode=1777 tests "$TARGET_TMP"
exec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$TARGET_TMP" \
USER=nobody PATH=/usr/local/bin:/usr/bin:/bin "$@"' sh "$@""#,
        ),
    ),
    plain("c", "in the locale C", r#"env -u LC_ALL LANG=C "$@""#),
    with(Turkish, plain("turkish", "in the locale tr_TR.UTF-8", r#"LC_ALL=tr_TR.UTF-8 "$@""#)),
    Surrounding {
        elsewhere: true,
        ..plain("path", "in a directory whose name has spaces and a letter beyond ASCII", r#""$@""#)
    },
    plain("umask-077", "with the umask 077", r#"umask 077; "$@""#),
    plain("umask-000", "with the umask 000", r#"umask 000; "$@""#),
    plain("home-unset", "without HOME", r#"env -u HOME "$@""#),
    plain("home-gone", "with a HOME that does not exist", r#"HOME=/nonexistent "$@""#),
    plain("session", "without a terminal, in a new session", r#"setsid -w "$@" < /dev/null"#),
    plain(
        "terminal",
        "on a terminal, in its foreground",
        r#"exec script -qec 'timeout --foreground -k 5 2400 "$PROGRAM" $TESTS' /dev/null"#,
    ),
    unseen(plain("null", "with all streams on /dev/null", r#""$@" < /dev/null > /dev/null 2>&1"#)),
    unseen(plain("closed", "with all streams closed", r#""$@" <&- >&- 2>&-"#)),
    plain("term-unset", "without TERM", r#"env -u TERM "$@""#),
    plain("term-dumb", "with TERM=dumb and NO_COLOR", r#"TERM=dumb NO_COLOR=1 "$@""#),
    plain(
        "make",
        "inside a build whose jobserver is gone",
        r#"MAKEFLAGS='-j4 --jobserver-auth=3,4' MFLAGS=-j4 MAKELEVEL=2 "$@""#,
    ),
    plain(
        "shell-env",
        "with variables that shells and GNU parallel read",
        r#"POSIXLY_CORRECT=1 CDPATH=/usr:/etc BASH_ENV=/nonexistent/rc ENV=/nonexistent/rc \
PARALLEL='--tag -k' PARALLEL_HOME=/nonexistent PARALLEL_SHELL=/nonexistent \
SHELL=/nonexistent GREP_OPTIONS=-v "$@""#,
    ),
    plain(
        "minder-env",
        "with variables that minder reads",
        r#"MINDER_BACKEND=poll MINDER_STATE_DIR=/nonexistent/state XDG_STATE_HOME=/nonexistent \
COLUMNS=40 LINES=5 "$@""#,
    ),
];

impl Surrounding {
    /// Installs what it needs.
    pub(super) fn ready(&self) -> Result<(), install::Missing> {
        if cfg!(not(target_os = "linux")) {
            return Err("the surroundings need Linux; hint: run them there".into());
        }
        match self.needs {
            Nothing => Ok(()),
            Root if install::is_root() => Ok(()),
            Root => Err("only root can become another user; hint: run it as root".into()),
            Shells => install::programs(&SHELLS),
            Turkish => turkish(),
        }
    }
}

fn turkish() -> Result<(), install::Missing> {
    let there = || run::read(run::command("locale").arg("-a")).is_ok_and(|all| all.contains("tr_TR.utf8"));
    if there() {
        return Ok(());
    }
    install::apt(&["locales"])?;
    let mut make = run::command("localedef");
    make.args(["-i", "tr_TR", "-f", "UTF-8", "tr_TR.UTF-8"]);
    run::run(&mut make).map_err(|e| format!("{e:#}; hint: sudo localedef -i tr_TR -f UTF-8 tr_TR.UTF-8"))
}

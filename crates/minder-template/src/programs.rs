//! The programs that are known to read an argument as code: which argument, and what to write in
//! its place.
//!
//! A row is: names, where the code is, the cure. In a name, a `*` at its end stands for a version
//! (`python*` is `python3.11`, too); a second word is the program's verb (`git rebase`). In a cure,
//! `%` is the program. The rows come from the manuals of the programs. The list can never be whole:
//! `minder help values` says so, and what `--only` is for.

/// Where a program keeps its program text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Code {
    /// A shell: the first operand after an option with `c`.
    Shell,
    /// In or after one of these options. `takes`: options with an argument. `anywhere`: also after
    /// operands.
    Option { letters: &'static [u8], long: &'static [&'static str], takes: &'static [u8], anywhere: bool },
    /// The first operand, unless an option `e` gave one or `f` names a file.
    Operand { takes: &'static [u8] },
    /// Everything after the first operand.
    Remote { takes: &'static [u8] },
    /// Every word.
    All,
    /// A word that begins so.
    Starts(&'static [&'static str]),
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) names: &'static [&'static str],
    pub(crate) code: Code,
    pub(crate) cure: &'static str,
}

const fn row(names: &'static [&'static str], code: Code, cure: &'static str) -> Row {
    Row { names, code, cure }
}

const fn option(letters: &'static [u8], takes: &'static [u8]) -> Code {
    Code::Option { letters, long: &[], takes, anywhere: false }
}

const fn anywhere(letters: &'static [u8], long: &'static [&'static str]) -> Code {
    Code::Option { letters, long, takes: b"", anywhere: true }
}

/// Where there is no way to hand a value over.
const CHECK: &str = "check values with `--only REGEXP`";
/// For programs that read their environment.
const ENVIRONMENT: &str = "hand it over in the environment, `V={} % …`, or check values with `--only REGEXP`";
pub(crate) const SHELL: &str = "write `% -c '… \"$1\" …' % {}`";
const SQL: &str =
    "write `printf 'SELECT :'\"'\"'v'\"'\"'' | % -v v={}`, or check values with `--only REGEXP`";
const AWK: &str = "write `V={} % '… ENVIRON[\"V\"] …'` as a shell line, or check values with `--only REGEXP`";
const SED: &str = "`head`, `tail` and --tag often do the same; else write `V={} awk '… ENVIRON[\"V\"] …'` as a shell line, or check \
                   values with `--only REGEXP`";
const SSH: &str = "send it on standard input, `printf '%s\\n' {} | ssh HOST 'read -r v; …'`, or check values with `--only REGEXP`";

/// See the module.
pub(crate) const PROGRAMS: &[Row] = &[
    row(
        &[
            "sh", "bash*", "rbash", "dash", "ash", "ksh*", "rksh*", "mksh", "oksh", "lksh", "pdksh", "posh",
            "zsh*", "yash", "osh", "ysh", "hush",
        ],
        Code::Shell,
        SHELL,
    ),
    row(&["csh", "tcsh", "rc", "es", "elvish", "nu", "xonsh"], Code::Shell, ENVIRONMENT),
    row(&["fish"], Code::Shell, "write `fish -c '… $argv[1] …' -- {}`"),
    row(
        &["fish"],
        Code::Option { letters: b"cC", long: &["command", "init-command"], takes: b"", anywhere: false },
        "write `fish -c '… $argv[1] …' -- {}`",
    ),
    row(
        &["python*", "pypy*", "ipython*", "bpython", "sage"],
        option(b"c", b"mWXQ"),
        "write `% -c '… sys.argv[1] …' {}`",
    ),
    row(&["perl*"], option(b"eE", b"I"), "write `perl -e '… $ARGV[0] …' -- {}`"),
    row(&["raku"], option(b"e", b"I"), "write `raku -e '… @*ARGS[0] …' {}`"),
    row(&["ruby*", "jruby", "truffleruby"], option(b"e", b"IrCEW"), "write `ruby -e '… ARGV[0] …' -- {}`"),
    row(&["php*"], option(b"rRBE", b"cdztSf"), "write `php -r '… $argv[1] …' -- {}`"),
    row(&["lua*", "luajit*", "texlua"], option(b"e", b"l"), ENVIRONMENT),
    row(
        &["node*", "nodejs", "bun", "tsx", "ts-node"],
        Code::Option { letters: b"ep", long: &["eval", "print"], takes: b"rC", anywhere: false },
        "write `node -e '… process.argv[1] …' -- {}`",
    ),
    row(&["deno eval", "deno repl"], Code::All, ENVIRONMENT),
    row(
        &["R", "Rscript", "julia", "elixir", "groovy", "ghc", "scala", "swift"],
        anywhere(b"eE", &["eval"]),
        ENVIRONMENT,
    ),
    row(&["guile*", "racket"], anywhere(b"ce", &[]), ENVIRONMENT),
    row(&["clojure", "clj", "bb"], anywhere(b"e", &["eval"]), ENVIRONMENT),
    row(
        &["sbcl", "ccl", "ecl", "clisp", "octave*", "erl", "iex"],
        anywhere(b"", &["eval", "load-expression"]),
        ENVIRONMENT,
    ),
    row(&["erl", "matlab"], anywhere(b"r", &["batch", "eval"]), ENVIRONMENT),
    row(&["gnuplot", "osascript", "dc", "wish", "swipl"], anywhere(b"eg", &["expression"]), ENVIRONMENT),
    row(&["expect"], anywhere(b"c", &[]), "write `expect -c '… [lindex $argv 0] …' -- {}`"),
    row(&["emacs*", "emacsclient"], anywhere(b"", &["eval", "execute"]), ENVIRONMENT),
    row(&["vi", "vim", "nvim", "ex", "view", "gvim"], anywhere(b"c", &["cmd"]), ENVIRONMENT),
    row(&["vi", "vim", "nvim", "ex", "view", "gvim"], Code::Starts(&["+"]), ENVIRONMENT),
    row(&["gdb", "lldb"], anywhere(b"o", &["ex", "eval-command", "iex", "one-line"]), ENVIRONMENT),
    row(&["psql"], anywhere(b"c", &["command"]), SQL),
    row(&["mysql", "mariadb"], anywhere(b"e", &["execute"]), CHECK),
    row(&["duckdb"], anywhere(b"c", &["cmd"]), CHECK),
    // `.param set` evaluates what it sets.
    row(&["sqlite3"], Code::Remote { takes: b"" }, CHECK),
    row(&["mongosh", "mongo"], anywhere(b"", &["eval"]), ENVIRONMENT),
    row(
        &["su", "runuser"],
        anywhere(b"c", &["command", "session-command"]),
        "write `% -c '… \"$1\"' - USER -- % {}`",
    ),
    row(&["script", "flock", "sg"], anywhere(b"c", &["command"]), ENVIRONMENT),
    row(&["nix-shell"], anywhere(b"", &["run", "command"]), ENVIRONMENT),
    row(
        &["env"],
        Code::Option { letters: b"S", long: &["split-string"], takes: b"uC", anywhere: false },
        "write the words without `-S`",
    ),
    row(&["rsync"], anywhere(b"e", &["rsh", "rsync-path"]), CHECK),
    row(
        &["tar", "gtar", "bsdtar"],
        anywhere(
            b"IF",
            &[
                "to-command",
                "use-compress-program",
                "checkpoint-action",
                "info-script",
                "new-volume-script",
                "rsh-command",
                "rmt-command",
            ],
        ),
        CHECK,
    ),
    row(&["split"], anywhere(b"", &["filter"]), "write `$FILE` in the filter, which split sets"),
    row(&["sort"], anywhere(b"", &["compress-program"]), CHECK),
    row(&["zip"], anywhere(b"", &["TT", "unzip-command"]), CHECK),
    row(&["man"], anywhere(b"P", &["pager"]), CHECK),
    row(&["nc", "ncat", "netcat"], anywhere(b"ec", &["exec", "sh-exec"]), CHECK),
    row(&["socat"], Code::Starts(&["SYSTEM:", "EXEC:", "SHELL:", "system:", "exec:", "shell:"]), CHECK),
    row(
        &["git"],
        Code::Starts(&[
            "alias.",
            "core.sshCommand=",
            "core.editor=",
            "core.pager=",
            "core.fsmonitor=",
            "core.hooksPath=",
            "sequence.editor=",
            "credential.helper=",
            "filter.",
            "diff.",
            "merge.",
            "pager.",
            "gpg.",
            "uploadpack.",
            "--upload-pack",
            "--exec=",
        ]),
        CHECK,
    ),
    row(&["git rebase"], anywhere(b"x", &["exec"]), CHECK),
    row(&["git submodule", "git bisect"], Code::All, CHECK),
    row(
        &["git filter-branch"],
        anywhere(
            b"",
            &["tree-filter", "env-filter", "index-filter", "msg-filter", "commit-filter", "tag-name-filter"],
        ),
        ENVIRONMENT,
    ),
    row(
        &["ssh", "autossh", "rsh", "slogin", "mosh", "pdsh", "sshpass"],
        Code::Remote { takes: b"BbcDEeFIiJLlmOopPQRSWw" },
        SSH,
    ),
    row(
        &["ssh", "scp", "sftp", "autossh"],
        Code::Starts(&[
            "ProxyCommand",
            "-oProxyCommand",
            "LocalCommand",
            "-oLocalCommand",
            "KnownHostsCommand",
        ]),
        CHECK,
    ),
    row(
        &["adb shell", "vagrant ssh", "clush", "ansible", "gcloud compute", "lxc exec"],
        anywhere(b"abc", &["command", "args"]),
        CHECK,
    ),
    row(&["adb shell"], Code::All, CHECK),
    row(&["sbatch"], anywhere(b"", &["wrap"]), "put it into a script: `sbatch script {}`"),
    row(&["npx", "npm exec", "npm x"], anywhere(b"c", &["call"]), ENVIRONMENT),
    row(&["nodemon"], anywhere(b"x", &["exec"]), ENVIRONMENT),
    row(&["entr"], Code::Option { letters: b"s", long: &[], takes: b"", anywhere: false }, ENVIRONMENT),
    row(&["xterm", "urxvt", "rxvt", "screen"], anywhere(b"eX", &[]), ENVIRONMENT),
    row(
        &[
            "tmux new",
            "tmux new-session",
            "tmux neww",
            "tmux new-window",
            "tmux split-window",
            "tmux splitw",
            "tmux respawn-pane",
            "tmux run",
            "tmux run-shell",
            "tmux if-shell",
            "tmux pipe-pane",
            "tmux display-popup",
            "tmux send-keys",
        ],
        Code::All,
        CHECK,
    ),
    row(
        &["awk", "gawk", "mawk", "nawk", "original-awk", "goawk", "frawk"],
        Code::Operand { takes: b"Fv" },
        AWK,
    ),
    row(&["sed", "gsed", "ssed"], Code::Operand { takes: b"l" }, SED),
    row(&["m4"], Code::Starts(&["-D", "--define"]), CHECK),
    row(&["hyperfine", "concurrently", "at", "batch"], Code::All, ENVIRONMENT),
    row(&["watch"], Code::All, CHECK),
    row(&["eval"], Code::All, "leave `eval` out"),
    row(
        &["parallel", "minder run", "minder parallel", "minder sem", "sem", "rush"],
        Code::All,
        "hand it to that run behind `:::` from a file or standard input, or check values with `--only REGEXP`",
    ),
    row(&["powershell", "pwsh", "wsl"], Code::All, CHECK),
];

/// The shell of Windows, which is one there only: elsewhere it is a program of the user's own.
pub(crate) const WINDOWS: &[Row] = &[row(&["cmd"], Code::All, CHECK)];

/// Commands that run the command in their own arguments; whatever follows them may be a program's
/// name.
pub(crate) const WRAPPERS: &str = "\
    - ! [ apptainer builtin bundle busybox bwrap catchsegv ccache chpst chronic chroot chrt command conda coproc dbus-run-session \
    direnv distrobox doas docker dumb-init eatmydata entr env exec fakeroot fd fdfind find firejail flatpak flock gdb gosu ionice kubectl \
    ltrace lxc mamba micromamba mosh mpirun nice nix nocorrect noglob nohup npx nsenter numactl parallel perf pipenv pixi \
    pkexec podman poetry proot proxychains prun qrsh rlwrap runuser salloc schroot screen script setpriv setsid setuidgid singularity \
    srun ssh ssh-agent sshpass stdbuf strace su su-exec sudo systemd-run taskset tcsh time timeout tini tmux toolbox torsocks toybox \
    unbuffer unshare uv vagrant valgrind watch xargs xvfb-run yes";

/// Wrappers whose operands may well be several, whatever follows them.
pub(crate) const GATHERERS: &str = "find fd fdfind gdb yes";

/// Commands that run none of their arguments: a program's name among them is text.
pub(crate) const PLAIN: &str = "\
    : [ apt apt-get basename brew cargo cat cd chmod chown cmp comm cp curl cut dd df diff dirname dnf du echo egrep export expr false \
    fgrep file fold git go grep gunzip gzip head hg install jq kill less ln locate logger ls make man md5sum mkdir mktemp more mv nl \
    npm od pacman paste pgrep pip pip3 pkill printf ps pwd realpath rg rm rmdir rsync scp seq sha1sum sha256sum shellcheck sleep sort \
    stat svn systemctl tac tail tar tee test touch tr true type uniq unzip wc wget whatis whence whereis which yarn yum zcat zip";

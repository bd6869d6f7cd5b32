//! The programs that are known to read an argument as code: which argument, and what to write
//! instead.
//!
//! A rule has names, the position of the code, and a hint. A `*` at the end of a name stands for a
//! version (`python*` includes `python3.11`). A second word in a name is a subcommand
//! (`git rebase`). In a hint, `%` is the program. The rules come from the manuals of the programs.
//! The list can never be complete: `minder help values` explains that, and `--only`.

use crate::program_text::Language;

/// The arguments of a program that are program text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProgramTextRule {
    /// The first operand after an option that contains `c`, as in shells.
    Shell,
    /// The argument of one of these options. `takes` are the other options that have arguments.
    /// With `anywhere`, options may follow operands.
    Option { letters: &'static [u8], long: &'static [&'static str], takes: &'static [u8], anywhere: bool },
    /// The first operand, unless an option `e` has the program text or `f` names a file. With `anywhere`,
    /// options may follow operands.
    Operand { takes: &'static [u8], anywhere: bool },
    /// Everything after the first operand, and the argument of one of these options.
    Remote { long: &'static [&'static str], takes: &'static [u8] },
    /// Every argument.
    All,
    /// Every argument except the name of a semaphore, the value of `--id` before the command.
    Semaphore,
    /// An argument that begins with one of these.
    Starts(&'static [&'static str]),
}

/// A rule for some programs.
#[derive(Debug)]
pub(crate) struct ProgramRule {
    pub(crate) names: &'static [&'static str],
    pub(crate) code: ProgramTextRule,
    pub(crate) hint: &'static str,
    /// The language of the program text, if that is one whose texts are understood.
    pub(crate) language: Option<Language>,
}

impl ProgramRule {
    const fn in_language(self, language: Language) -> ProgramRule {
        ProgramRule { language: Some(language), ..self }
    }
}

const fn rule(names: &'static [&'static str], code: ProgramTextRule, hint: &'static str) -> ProgramRule {
    ProgramRule { names, code, hint, language: None }
}

const fn option(letters: &'static [u8], takes: &'static [u8]) -> ProgramTextRule {
    ProgramTextRule::Option { letters, long: &[], takes, anywhere: false }
}

const fn anywhere(letters: &'static [u8], long: &'static [&'static str]) -> ProgramTextRule {
    ProgramTextRule::Option { letters, long, takes: b"", anywhere: true }
}

/// The hint for a run within a run.
pub(crate) const INNER_RUN: &str =
    "give it the value on standard input, or admit plain values only: `--only '[\\w.]+'`";

/// For programs without a safe way to pass a value.
const CHECK: &str = "check values with `--only REGEXP`";
/// For programs that read their environment.
const ENVIRONMENT: &str = "hand it over in the environment, `V={} % …`, or check values with `--only REGEXP`";
pub(crate) const SHELL: &str = "write `% -c '… \"$1\" …' % {}`";
pub(crate) const EVAL: &str = "leave `eval` out";
const SQL: &str = "for the name of a table, admit only such names with `--only '[a-z_]+'`; for a value, \
                   write `printf 'SELECT :'\"'\"'v'\"'\"'' | % -v v={}`";
const AWK: &str = "write `V={} % '… ENVIRON[\"V\"] …'` as a shell line, or check values with `--only REGEXP`";
const SED: &str = "`head`, `tail` and --tag often do the same; else write `V={} awk '… ENVIRON[\"V\"] …'` as \
                   a shell line, or check values with `--only REGEXP`";
const SSH: &str = "send it on standard input, `printf '%s\\n' {} | ssh HOST 'read -r v; …'`, or check values \
                   with `--only REGEXP`";

/// The rules. Several rules may name the same program.
pub(crate) const PROGRAMS: &[ProgramRule] = &[
    rule(
        &[
            "sh", "bash*", "rbash", "dash", "ash", "ksh*", "rksh*", "mksh", "oksh", "lksh", "pdksh", "posh",
            "zsh*", "yash", "osh", "ysh", "hush",
        ],
        ProgramTextRule::Shell,
        SHELL,
    )
    .in_language(Language::Shell),
    rule(&["csh", "tcsh", "rc", "es", "elvish", "nu", "xonsh"], ProgramTextRule::Shell, ENVIRONMENT),
    rule(&["fish"], ProgramTextRule::Shell, "write `fish -c '… $argv[1] …' -- {}`"),
    rule(
        &["fish"],
        ProgramTextRule::Option {
            letters: b"cC",
            long: &["command", "init-command"],
            takes: b"",
            anywhere: false,
        },
        "write `fish -c '… $argv[1] …' -- {}`",
    ),
    rule(
        &["python*", "pypy*", "ipython*", "bpython", "sage"],
        option(b"c", b"mWXQ"),
        "write `% -c '… sys.argv[1] …' {}`",
    )
    .in_language(Language::Python),
    rule(&["perl*"], option(b"eE", b"I"), "write `perl -e '… $ARGV[0] …' -- {}`").in_language(Language::Perl),
    rule(&["raku"], option(b"e", b"I"), "write `raku -e '… @*ARGS[0] …' {}`"),
    rule(&["ruby*", "jruby", "truffleruby"], option(b"e", b"IrCEW"), "write `ruby -e '… ARGV[0] …' -- {}`")
        .in_language(Language::Ruby),
    rule(&["php*"], option(b"rRBE", b"cdztSf"), "write `php -r '… $argv[1] …' -- {}`"),
    rule(&["lua*", "luajit*", "texlua"], option(b"e", b"l"), ENVIRONMENT),
    rule(
        &["node*", "nodejs", "bun", "tsx", "ts-node"],
        ProgramTextRule::Option { letters: b"ep", long: &["eval", "print"], takes: b"rC", anywhere: false },
        "write `node -e '… process.argv[1] …' -- {}`",
    )
    .in_language(Language::Node),
    rule(&["deno eval", "deno repl"], ProgramTextRule::All, ENVIRONMENT),
    rule(
        &["R", "Rscript", "julia", "elixir", "groovy", "ghc", "scala", "swift"],
        anywhere(b"eE", &["eval"]),
        ENVIRONMENT,
    ),
    rule(&["guile*", "racket"], anywhere(b"ce", &[]), ENVIRONMENT),
    rule(&["clojure", "clj", "bb"], anywhere(b"e", &["eval"]), ENVIRONMENT),
    rule(
        &["sbcl", "ccl", "ecl", "clisp", "octave*", "erl", "iex"],
        anywhere(b"", &["eval", "load-expression"]),
        ENVIRONMENT,
    ),
    rule(&["erl", "matlab"], anywhere(b"r", &["batch", "eval"]), ENVIRONMENT),
    rule(&["gnuplot", "osascript", "dc", "wish", "swipl"], anywhere(b"eg", &["expression"]), ENVIRONMENT),
    rule(&["expect"], anywhere(b"c", &[]), "write `expect -c '… [lindex $argv 0] …' -- {}`"),
    rule(&["emacs*", "emacsclient"], anywhere(b"", &["eval", "execute"]), ENVIRONMENT),
    rule(&["vi", "vim", "nvim", "ex", "view", "gvim"], anywhere(b"c", &["cmd"]), ENVIRONMENT),
    rule(&["vi", "vim", "nvim", "ex", "view", "gvim"], ProgramTextRule::Starts(&["+"]), ENVIRONMENT),
    rule(&["gdb", "lldb"], anywhere(b"o", &["ex", "eval-command", "iex", "one-line"]), ENVIRONMENT),
    rule(&["psql"], anywhere(b"c", &["command"]), SQL).in_language(Language::Sql),
    rule(&["mysql", "mariadb"], anywhere(b"e", &["execute"]), CHECK).in_language(Language::Sql),
    rule(&["duckdb"], anywhere(b"cs", &["cmd"]), CHECK).in_language(Language::Sql),
    // `.param set` evaluates its value.
    rule(&["sqlite3", "duckdb"], ProgramTextRule::Remote { long: &["cmd"], takes: b"cs" }, CHECK)
        .in_language(Language::Sql),
    rule(&["make", "gmake"], anywhere(b"E", &["eval"]), ENVIRONMENT),
    rule(&["mongosh", "mongo"], anywhere(b"", &["eval"]), ENVIRONMENT),
    rule(
        &["su", "runuser"],
        anywhere(b"c", &["command", "session-command"]),
        "write `% -c '… \"$1\"' - USER -- % {}`",
    ),
    rule(&["script", "flock", "sg"], anywhere(b"c", &["command"]), ENVIRONMENT),
    rule(&["nix-shell"], anywhere(b"", &["run", "command"]), ENVIRONMENT),
    rule(
        &["env"],
        ProgramTextRule::Option { letters: b"S", long: &["split-string"], takes: b"uC", anywhere: false },
        "write the words without `-S`",
    ),
    rule(
        &["env"],
        ProgramTextRule::Starts(&[
            "GIT_SSH_COMMAND=",
            "GIT_SSH=",
            "GIT_EDITOR=",
            "GIT_SEQUENCE_EDITOR=",
            "GIT_PAGER=",
            "RSYNC_RSH=",
            "LD_PRELOAD=",
            "BASH_ENV=",
            "ENV=",
        ]),
        CHECK,
    ),
    rule(&["rsync"], anywhere(b"e", &["rsh", "rsync-path"]), CHECK),
    rule(
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
    rule(&["split"], anywhere(b"", &["filter"]), "write `$FILE` in the filter, which split sets"),
    rule(&["sort"], anywhere(b"", &["compress-program"]), CHECK),
    rule(&["zip"], anywhere(b"", &["TT", "unzip-command"]), CHECK),
    rule(&["man"], anywhere(b"P", &["pager"]), CHECK),
    rule(&["nc", "ncat", "netcat"], anywhere(b"ec", &["exec", "sh-exec"]), CHECK),
    rule(
        &["socat"],
        ProgramTextRule::Starts(&["SYSTEM:", "EXEC:", "SHELL:", "system:", "exec:", "shell:"]),
        CHECK,
    ),
    rule(
        &["git"],
        ProgramTextRule::Starts(&[
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
    rule(&["git rebase"], anywhere(b"x", &["exec"]), CHECK),
    rule(&["git submodule", "git bisect"], ProgramTextRule::All, CHECK),
    rule(
        &["git filter-branch"],
        anywhere(
            b"",
            &["tree-filter", "env-filter", "index-filter", "msg-filter", "commit-filter", "tag-name-filter"],
        ),
        ENVIRONMENT,
    ),
    rule(
        &["ssh", "autossh", "rsh", "slogin", "mosh", "pdsh", "sshpass"],
        ProgramTextRule::Remote { long: &[], takes: b"BbcDEeFIiJLlmOopPQRSWw" },
        SSH,
    ),
    rule(
        &["ssh", "scp", "sftp", "autossh"],
        ProgramTextRule::Starts(&[
            "ProxyCommand",
            "-oProxyCommand",
            "LocalCommand",
            "-oLocalCommand",
            "KnownHostsCommand",
        ]),
        CHECK,
    ),
    rule(
        &["adb shell", "vagrant ssh", "clush", "ansible", "gcloud compute", "lxc exec"],
        anywhere(b"abc", &["command", "args"]),
        CHECK,
    ),
    rule(&["adb shell"], ProgramTextRule::All, CHECK),
    rule(&["sbatch"], anywhere(b"", &["wrap"]), "put it into a script: `sbatch script {}`"),
    rule(&["npx", "npm exec", "npm x"], anywhere(b"c", &["call"]), ENVIRONMENT),
    rule(&["nodemon"], anywhere(b"x", &["exec"]), ENVIRONMENT),
    rule(
        &["entr"],
        ProgramTextRule::Option { letters: b"s", long: &[], takes: b"", anywhere: false },
        ENVIRONMENT,
    ),
    rule(&["xterm", "urxvt", "rxvt", "screen"], anywhere(b"eX", &[]), ENVIRONMENT),
    rule(
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
        ProgramTextRule::All,
        CHECK,
    ),
    rule(
        &["awk", "gawk", "mawk", "nawk", "original-awk", "goawk", "frawk"],
        ProgramTextRule::Operand { takes: b"FvfiEl", anywhere: false },
        AWK,
    )
    .in_language(Language::Awk),
    rule(&["sed", "gsed", "ssed"], ProgramTextRule::Operand { takes: b"lf", anywhere: true }, SED)
        .in_language(Language::Sed),
    rule(&["m4"], ProgramTextRule::Starts(&["-D", "--define"]), CHECK),
    rule(&["hyperfine", "concurrently", "at", "batch"], ProgramTextRule::All, ENVIRONMENT),
    rule(&["watch"], ProgramTextRule::All, CHECK),
    rule(&["eval"], ProgramTextRule::All, EVAL),
    rule(&["parallel", "minder run", "minder parallel", "rush"], ProgramTextRule::All, INNER_RUN),
    rule(
        &["minder sem", "sem"],
        ProgramTextRule::Semaphore,
        "only the value of `--id` before the command may be one; else admit plain values only, as with \
         `--only '[\\w.]+'`",
    ),
    rule(&["powershell", "pwsh", "wsl"], ProgramTextRule::All, CHECK),
];

/// The rules for Windows only: elsewhere, `cmd` is some other program.
pub(crate) const WINDOWS: &[ProgramRule] = &[rule(&["cmd"], ProgramTextRule::All, CHECK)];

/// Commands that run a command given in their arguments. Any word after them may be the name of a
/// program.
pub(crate) const WRAPPERS: &str = "\
    - ! [ apptainer builtin bundle busybox bwrap catchsegv ccache chpst chronic chroot chrt \
    command conda coproc dbus-run-session direnv distrobox doas docker dumb-init eatmydata entr \
    env exec fakeroot fd fdfind find firejail flatpak flock gdb gosu ionice kubectl ltrace lxc \
    mamba micromamba mosh mpirun nice nix nocorrect noglob nohup npx nsenter numactl parallel \
    perf pipenv pixi pkexec podman poetry proot proxychains prun qrsh rlwrap runuser salloc \
    schroot screen script setpriv setsid setuidgid singularity srun ssh ssh-agent sshpass stdbuf \
    strace su su-exec sudo systemd-run taskset tcsh time timeout tini tmux toolbox torsocks \
    toybox unbuffer unshare uv vagrant valgrind watch xargs xvfb-run yes";

/// Wrappers for which several values are ordinary operands.
pub(crate) const GATHERERS: &str = "find fd fdfind gdb yes";

/// Commands that run none of their arguments: the name of a program among them is text.
pub(crate) const PLAIN: &str = "\
    : [ apt apt-get basename brew cargo cat cd chmod chown cmp comm cp curl cut dd df diff \
    dirname dnf du echo egrep export expr false fgrep file fold git go grep gunzip gzip head hg \
    install jq kill less ln locate logger ls make man md5sum mkdir mktemp more mv nl npm od \
    pacman paste pgrep pip pip3 pkill printf ps pwd realpath rg rm rmdir rsync scp seq sha1sum \
    sha256sum shellcheck sleep sort stat svn systemctl tac tail tar tee test touch tr true type \
    uniq unzip wc wget whatis whence whereis which yarn yum zcat zip";

//! The builtins of shells: which of them may have a value as an argument, and where.
//!
//! The table is a list of what is allowed. A builtin of a shell that is not in it is refused,
//! whatever its argument.
//!
//! The names are those that `compgen -b` (bash 5.2), `${(k)builtins}` with all that loads by itself
//! (zsh 5.9), `builtin` (ksh93u+m), `whence -v` (mksh R59), `help` (busybox 1.35), `command -V`
//! (yash 2.52) and the manual of dash name. Which ones evaluate was tried with values such as
//! `a[$(cmd)]` as each argument of each, behind each option letter. ksh93u+m refuses
//! `$(…)` in numbers and older ones do not; so there each number is refused.

use crate::kinds::{ALL, BASH, BUSYBOX, DASH, KORN, KSH, MKSH, ShellSet, YASH, ZSH};
use crate::word_list::lists;

/// Builtins that take any text as any argument: in the shells named, and where it is no builtin.
const SAFE: &[(ShellSet, &str)] = &[
    (ALL, ": cd chdir echo false pwd times true type whence where which"),
    (ALL.without(KSH), "bg disown fg kill popd pushd dirs umask suspend help caller"),
    (ALL.without(KORN), "exit return break continue ulimit hash sleep logout"),
    (ALL.without(KSH), "login rename realpath"),
    (DASH.or(BUSYBOX).or(YASH), "wait"),
];

/// Builtins with a rule of their own, in [`values`].
pub(crate) const RULED: &str =
    ". source [ test builtin command declare exec export local print printf read readonly typeset";

/// All builtins that are in neither list. No argument of theirs may hold a value.
pub(crate) const OTHERS: &[(ShellSet, &str)] = &[
    (
        ALL,
        "alias bg break continue eval exit fc fg getopts hash jobs kill let return set shift trap umask ulimit unalias",
    ),
    (ALL, "unset wait"),
    (BASH, "bind compgen complete compopt coproc enable history mapfile readarray shopt"),
    (
        ZSH,
        "- autoload bindkey bye compadd comparguments compcall compctl compdescribe compfiles compgroups compquote",
    ),
    (
        ZSH,
        "compset comptags comptry compvalues dirs disable disown echotc echoti emulate enable float functions getln",
    ),
    (
        ZSH,
        "history integer limit log logout noglob popd private pushd pushln r rehash sched setopt suspend ttyctl",
    ),
    (
        ZSH,
        "unfunction unhash unlimit unsetopt vared zcompile zformat zle zmodload zparseopts zregexparse zstyle",
    ),
    (KSH, "autoload compound disown enum float functions hist integer nameref redirect sleep stop suspend"),
    (
        MKSH,
        "autoload bind functions global history integer login nameref r rename realpath stop suspend sleep",
    ),
    (YASH, "array bindkey complete disown dirs help history popd pushd suspend"),
    (BUSYBOX, "help history"),
];

/// Says whether a command of this name is a builtin of one of these shells whose arguments can be
/// evaluated.
pub(crate) fn can_evaluate(name: &[u8], kinds: ShellSet) -> bool {
    let among =
        |table: &[(ShellSet, &str)]| table.iter().any(|(of, names)| kinds.meets(*of) && lists(names, name));
    let precommand = lists("noglob nocorrect - eval", name);
    precommand || lists(RULED, name) || (among(OTHERS) && !is_safe(name, kinds))
}

/// Says whether this only runs what stands behind it.
pub(crate) fn is_prefix(name: &[u8]) -> bool {
    lists("command builtin exec - noglob nocorrect", name)
}

fn is_safe(name: &[u8], kinds: ShellSet) -> bool {
    SAFE.iter().any(|(of, names)| kinds.is_within(*of) && lists(names, name))
}

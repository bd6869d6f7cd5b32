//! The builtins of shells, and which of them accept a value as an argument.
//!
//! The tables list what is allowed. A builtin that is in no list of allowed ones is refused,
//! whatever its argument.
//!
//! The names come from `compgen -b` (bash 5.2), `${(k)builtins}` with everything that zsh loads
//! automatically (zsh 5.9), `builtin` (ksh93u+m), `whence -v` (mksh R59), `help` (busybox 1.35),
//! `command -V` (yash 2.52) and the manual of dash. To find out which ones evaluate, each was run
//! with values such as `a[$(cmd)]` as each argument, and after each option letter. ksh93u+m refuses
//! `$(…)` in numbers, older versions do not; so each number is refused for ksh93.

use crate::kinds::{ALL, BASH, BUSYBOX, DASH, KORN, KSH, MKSH, ShellSet, YASH, ZSH};
use crate::word_list::lists;

/// Builtins that accept any text as any argument, in these shells and in those that do not have
/// them.
const SAFE: &[(ShellSet, &str)] = &[
    (ALL, ": cd chdir echo false pwd times true type whence where which"),
    (ALL.without(KSH), "bg disown fg kill popd pushd dirs umask suspend help caller"),
    (ALL.without(KORN), "exit return break continue ulimit hash sleep logout"),
    (ALL.without(KSH), "login rename realpath"),
    (DASH.or(BUSYBOX).or(YASH), "wait"),
];

/// Builtins with a separate rule in `simple_command`.
pub(crate) const RULED: &str =
    ". source [ test builtin command declare exec export local print printf read readonly typeset";

/// All other builtins. None of their arguments may contain a value.
pub(crate) const OTHERS: &[(ShellSet, &str)] = &[
    (
        ALL,
        "alias bg break continue eval exit fc fg getopts hash jobs kill let return set shift trap umask \
         ulimit unalias",
    ),
    (ALL, "unset wait"),
    (BASH, "bind compgen complete compopt coproc enable history mapfile readarray shopt"),
    (
        ZSH,
        "- autoload bindkey bye compadd comparguments compcall compctl compdescribe compfiles compgroups \
         compquote",
    ),
    (
        ZSH,
        "compset comptags comptry compvalues dirs disable disown echotc echoti emulate enable float \
         functions getln",
    ),
    (
        ZSH,
        "history integer limit log logout noglob popd private pushd pushln r rehash sched setopt suspend \
         ttyctl",
    ),
    (
        ZSH,
        "unfunction unhash unlimit unsetopt vared zcompile zformat zle zmodload zparseopts zregexparse \
         zstyle",
    ),
    (KSH, "autoload compound disown enum float functions hist integer nameref redirect sleep stop suspend"),
    (
        MKSH,
        "autoload bind functions global history integer login nameref r rename realpath stop suspend sleep",
    ),
    (YASH, "array bindkey complete disown dirs help history popd pushd suspend"),
    (BUSYBOX, "help history"),
];

/// Returns whether one of these shells has a builtin of this name that can evaluate its arguments.
pub(crate) fn can_evaluate(name: &[u8], kinds: ShellSet) -> bool {
    let is_in =
        |table: &[(ShellSet, &str)]| table.iter().any(|(of, names)| kinds.meets(*of) && lists(names, name));
    let is_precommand = lists("noglob nocorrect - eval", name);
    is_precommand || lists(RULED, name) || (is_in(OTHERS) && !is_safe(name, kinds))
}

/// Returns whether this command only runs its arguments as a command.
pub(crate) fn is_prefix(name: &[u8]) -> bool {
    lists("command builtin exec - noglob nocorrect", name)
}

fn is_safe(name: &[u8], kinds: ShellSet) -> bool {
    SAFE.iter().any(|(of, names)| kinds.is_within(*of) && lists(names, name))
}

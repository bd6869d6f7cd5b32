//! The variables that shells treat specially: what may be assigned to each.
//!
//! The names come from `set`, `typeset -p` and the manuals of each shell; what each does with a
//! text was tried by assigning `a[$(cmd)]`, `$(cmd)` and the like in every way there is, in bash
//! 5.2, dash 0.5.12, busybox 1.35, zsh 5.9, ksh93u+m, mksh R59 and yash 2.52. A name that begins as
//! the shells' own do counts as special, whether that shell has it or not.

use crate::kinds::{ALL, BASH, BUSYBOX, DASH, KSH, MKSH, ShellSet, YASH, ZSH};
use crate::word_list::lists;

/// What a shell does with what is assigned to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It keeps it.
    Text,
    /// It evaluates it, then or later.
    Evaluated,
    /// It reads the rest of the line by it.
    Grammar,
}

/// Variables that are special, and that no shell evaluates.
const TEXT: &str = "\
    BASH_ARGV0 BASH_COMPAT BASH_XTRACEFD BASH_REMATCH BASH_VERSION HISTFILE HISTFILESIZE HISTCONTROL HISTIGNORE \
    HISTTIMEFORMAT KSH_VERSION ZDOTDIR ZSH_VERSION YASH_VERSION YASH_LOADPATH ZSH BASH";

/// Variables that shells evaluate, or run: numbers, prompts, commands, files that are read.
const EVALUATED: &[(ShellSet, &str)] = &[
    // `PS4` is expanded by each of them; the others only where somebody types. `ENV` and its kin name a file
    // that is run.
    (
        ALL,
        "ENV FPATH LINENO OPTIND PPID PROMPT PROMPT2 PROMPT3 PROMPT4 PS0 PS1 PS2 PS3 PS4 RANDOM SRANDOM SECONDS",
    ),
    (ALL, "PROMPT_COMMAND RPROMPT RPROMPT2 RPS1 RPS2 RPS3 RPS4 SPROMPT EPOCHREALTIME EPOCHSECONDS"),
    // Integers of the shell, by `declare -i`, `typeset -i`.
    (BASH, "HISTCMD FUNCNEST DIRSTACK HISTSIZE MAILCHECK TMOUT EUID UID PIPESTATUS"),
    (
        ZSH,
        "ARGC COLUMNS DIRSTACKSIZE EGID ERRNO EUID FUNCNEST GID HISTCMD HISTSIZE KEYTIMEOUT LINES LISTMAX LOGCHECK",
    ),
    (
        ZSH,
        "MAILCHECK REPORTMEMORY REPORTTIME SAVEHIST SHLVL TMOUT TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTYIDLE UID",
    ),
    (ZSH, "PERIOD BAUD MBEGIN MEND status"),
    // The words of an `stty` that zsh runs before a command, formats that are expanded as prompts are.
    (ZSH, "STTY WATCH WATCHFMT watch"),
    // A command's name (`< file` runs it), code of modules, folders of code, arrays of the prompt.
    (ZSH, "NULLCMD READNULLCMD MODULE_PATH TIMEFMT argv fpath module_path prompt psvar PSVAR zle_highlight"),
    (KSH, "COLUMNS ERRNO FIGNORE FUNCNEST HISTCMD HISTSIZE JOBMAX LINES MAILCHECK SHLVL TMOUT"),
    (MKSH, "COLUMNS EPOCHREALTIME EXECSHELL HISTSIZE LINES PATHSEP PGRP PIPESTATUS TMOUT USER_ID MAILCHECK"),
    (YASH, "COMMAND_NOT_FOUND_HANDLER HISTSIZE HISTRMDUP MAILCHECK DIRSTACK"),
    (DASH, "HISTSIZE MAILCHECK"),
    (BUSYBOX, "FUNCNAME"),
];

/// How names of the shells' own begin; those that are not in `TEXT` count as evaluated.
const OWN: &[&str] = &["BASH", "COMP_", "KSH", "TRY_BLOCK_", "YASH", "ZLE_", "ZSH"];

/// Tables of the shell as variables: commands, aliases, options.
const GRAMMAR: &[(ShellSet, &str)] = &[
    (BASH, "BASH_ALIASES BASH_CMDS BASHOPTS SHELLOPTS"),
    (
        ZSH,
        "aliases builtins commands dis_aliases dis_builtins dis_functions dis_galiases dis_patchars dis_reswords",
    ),
    (
        ZSH,
        "dis_saliases functions galiases histchars modules nameddirs options patchars reswords saliases widgets",
    ),
    (ZSH, "HISTCHARS mapfile"),
];

/// Variables that shells fill by themselves, with what may be an argument or a part of one. Those
/// that a builtin fills are noted where it is called.
const FILLED: &str = "_ BASH_ARGV BASH_ARGV0 BASH_REMATCH KSH_MATCH MATCH argv history historywords match";

/// Returns what one of these shells does with what is assigned to this variable.
pub(crate) fn assigned(name: &[u8], kinds: ShellSet) -> Use {
    let among = |table: &[(ShellSet, &str)]| {
        table.iter().any(|(shells, names)| kinds.meets(*shells) && lists(names, name))
    };
    match () {
        () if among(GRAMMAR) => Use::Grammar,
        () if among(EVALUATED) => Use::Evaluated,
        () if lists(TEXT, name) => Use::Text,
        () if OWN.iter().any(|start| name.starts_with(start.as_bytes())) => Use::Evaluated,
        () => Use::Text,
    }
}

/// Says whether shells put arguments into this variable by themselves.
pub(crate) fn is_filled(name: &[u8]) -> bool {
    lists(FILLED, name)
}

/// Says whether shells expand the text of this variable once more, as they do with `PS4`.
pub(crate) fn is_prompt(name: &[u8]) -> bool {
    ["PS", "PROMPT", "RPROMPT", "RPS", "SPROMPT"].iter().any(|start| name.starts_with(start.as_bytes()))
        || lists("prompt", name)
}

/// Returns the variables into which shells put arguments by themselves.
pub(crate) fn filled() -> Vec<Vec<u8>> {
    FILLED.split_ascii_whitespace().map(|name| name.as_bytes().to_vec()).collect()
}

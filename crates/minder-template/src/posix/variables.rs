//! The variables that shells treat specially, and what a line may assign to each.
//!
//! The names come from `set`, `typeset -p` and the manuals of each shell. To find out what a shell
//! does with the text, `a[$(cmd)]`, `$(cmd)` and similar texts were assigned to each variable with
//! every form of assignment, in bash 5.2, dash 0.5.12, busybox 1.35, zsh 5.9, ksh93u+m, mksh R59
//! and yash 2.52. A name with a prefix that shells reserve counts as special, even if that shell
//! does not have the variable.

use crate::kinds::{ALL, BASH, BUSYBOX, DASH, KSH, MKSH, ShellSet, YASH, ZSH};
use crate::word_list::lists;

/// The use that a shell makes of the text that is assigned to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Stores it.
    Text,
    /// Evaluates it, then or later.
    Evaluated,
    /// Stores it, and known programs run it.
    Run,
    /// Changes how it parses the rest of the line.
    Grammar,
}

/// Special variables that no shell evaluates.
const TEXT: &str = "BASH_ARGV0 BASH_COMPAT BASH_XTRACEFD BASH_REMATCH BASH_VERSION HISTFILE HISTFILESIZE \
                    HISTCONTROL HISTIGNORE HISTTIMEFORMAT KSH_VERSION ZDOTDIR ZSH_VERSION YASH_VERSION \
                    YASH_LOADPATH ZSH BASH";

/// Variables that shells evaluate or run: numbers, prompts, commands, files that are sourced.
const EVALUATED: &[(ShellSet, &str)] = &[
    // Every shell expands `PS4`; the other prompts are for interactive shells. `ENV` and similar
    // variables name a file that the shell runs.
    (
        ALL,
        "ENV FPATH LINENO OPTIND PPID PROMPT PROMPT2 PROMPT3 PROMPT4 PS0 PS1 PS2 PS3 PS4 RANDOM SRANDOM \
         SECONDS",
    ),
    (ALL, "PROMPT_COMMAND RPROMPT RPROMPT2 RPS1 RPS2 RPS3 RPS4 SPROMPT EPOCHREALTIME EPOCHSECONDS"),
    // Integers, as after `declare -i` or `typeset -i`.
    (BASH, "HISTCMD FUNCNEST DIRSTACK HISTSIZE MAILCHECK TMOUT EUID UID PIPESTATUS"),
    (
        ZSH,
        "ARGC COLUMNS DIRSTACKSIZE EGID ERRNO EUID FUNCNEST GID HISTCMD HISTSIZE KEYTIMEOUT LINES LISTMAX \
         LOGCHECK",
    ),
    (
        ZSH,
        "MAILCHECK REPORTMEMORY REPORTTIME SAVEHIST SHLVL TMOUT TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTYIDLE \
         UID",
    ),
    (ZSH, "PERIOD BAUD MBEGIN MEND status"),
    // The arguments of the `stty` that zsh runs before a command; formats that zsh expands like
    // prompts.
    (ZSH, "STTY WATCH WATCHFMT watch"),
    // The name of a command that `< file` runs; directories of modules and functions; arrays that
    // prompts use.
    (ZSH, "NULLCMD READNULLCMD MODULE_PATH TIMEFMT argv fpath module_path prompt psvar PSVAR zle_highlight"),
    (KSH, "COLUMNS ERRNO FIGNORE FUNCNEST HISTCMD HISTSIZE JOBMAX LINES MAILCHECK SHLVL TMOUT"),
    (MKSH, "COLUMNS EPOCHREALTIME EXECSHELL HISTSIZE LINES PATHSEP PGRP PIPESTATUS TMOUT USER_ID MAILCHECK"),
    (YASH, "COMMAND_NOT_FOUND_HANDLER HISTSIZE HISTRMDUP MAILCHECK DIRSTACK"),
    (DASH, "HISTSIZE MAILCHECK"),
    (BUSYBOX, "FUNCNAME"),
];

/// Variables that known programs run as a command, or load as code. The list cannot be complete.
const RUN: &str = "GIT_SSH_COMMAND GIT_SSH GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_ASKPASS \
                   GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND MANPAGER LESSOPEN LESSCLOSE \
                   SSH_ASKPASS SUDO_ASKPASS RSYNC_RSH CVS_RSH SVN_SSH PERL5OPT PERL5DB RUBYOPT NODE_OPTIONS \
                   LD_PRELOAD LD_AUDIT TAR_OPTIONS MAKEFLAGS";

/// The prefixes of names that shells reserve. A name with one that is not in `TEXT` counts as
/// evaluated.
const RESERVED_PREFIXES: &[&str] = &["BASH", "COMP_", "KSH", "TRY_BLOCK_", "YASH", "ZLE_", "ZSH"];

/// Internal tables of the shell as variables: commands, aliases, options.
const GRAMMAR: &[(ShellSet, &str)] = &[
    (BASH, "BASH_ALIASES BASH_CMDS BASHOPTS SHELLOPTS"),
    (
        ZSH,
        "aliases builtins commands dis_aliases dis_builtins dis_functions dis_galiases dis_patchars \
         dis_reswords",
    ),
    (
        ZSH,
        "dis_saliases functions galiases histchars modules nameddirs options patchars reswords saliases \
         widgets",
    ),
    (ZSH, "HISTCHARS mapfile"),
];

/// Variables that shells fill automatically with an argument or a part of one. `simple_command`
/// records those that a builtin fills.
const FILLED: &str = "_ BASH_ARGV BASH_ARGV0 BASH_REMATCH KSH_MATCH MATCH argv history historywords match";

/// Returns what one of these shells does with the text that is assigned to this variable.
pub(crate) fn assigned(name: &[u8], kinds: ShellSet) -> Use {
    let is_in = |table: &[(ShellSet, &str)]| {
        table.iter().any(|(shells, names)| kinds.meets(*shells) && lists(names, name))
    };
    if is_in(GRAMMAR) {
        return Use::Grammar;
    }
    if is_in(EVALUATED) {
        return Use::Evaluated;
    }
    if lists(RUN, name) {
        return Use::Run;
    }
    let is_reserved = RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()));
    if is_reserved && !lists(TEXT, name) { Use::Evaluated } else { Use::Text }
}

/// Returns whether shells fill this variable with arguments.
pub(crate) fn is_filled(name: &[u8]) -> bool {
    lists(FILLED, name)
}

/// Returns whether shells expand the text of this variable when they use it, as that of `PS4`.
pub(crate) fn is_prompt(name: &[u8]) -> bool {
    ["PS", "PROMPT", "RPROMPT", "RPS", "SPROMPT"].iter().any(|start| name.starts_with(start.as_bytes()))
        || lists("prompt", name)
}

/// Returns the variables that shells fill with arguments.
pub(crate) fn filled() -> Vec<Vec<u8>> {
    FILLED.split_ascii_whitespace().map(|name| name.as_bytes().to_vec()).collect()
}

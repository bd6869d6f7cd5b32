//! The builtins of shells that evaluate an argument, a variable's name, or change the parameters.
//!
//! Which ones do was tried on dash and bash with values such as `a[$(cmd)]`, as each argument of each builtin; the
//! Korn shells and zsh evaluate wherever they want a number.

use super::evaluators::{self, Word};
use super::{Error, Placeholder};

/// What a simple command means for values that are in variables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Effect {
    /// It evaluates a variable's value as code.
    pub(super) evaluates: bool,
    /// It puts one of its arguments into a variable.
    pub(super) stores: bool,
    /// It puts its input into a variable.
    pub(super) reads: bool,
}

/// Variables whose value is evaluated when they are set, or later by the shell itself.
const EVALUATED: &[&str] = &[
    "BASH_ENV",
    "COLUMNS",
    "ENV",
    "ERRNO",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "FUNCNEST",
    "HISTCMD",
    "HISTSIZE",
    "KEYTIMEOUT",
    "LINENO",
    "LINES",
    "LISTMAX",
    "MAILCHECK",
    "OPTIND",
    "PPID",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "RANDOM",
    "RPROMPT",
    "RPS1",
    "SAVEHIST",
    "SECONDS",
    "SRANDOM",
    "TMOUT",
    "argv",
    "psvar",
];

/// Builtins of which no argument may hold a value.
const NEVER: &[&str] = &[
    "bind",
    "bindkey",
    "compgen",
    "complete",
    "coproc",
    "enable",
    "fc",
    "float",
    "functions",
    "getopts",
    "integer",
    "let",
    "mapfile",
    "nameref",
    "read",
    "readarray",
    "sched",
    "select",
    "trap",
    "unset",
    "vared",
    "wait",
    "zcompile",
    "zmodload",
    "zparseopts",
    "zstyle",
];

/// Builtins of the Korn shells and zsh that evaluate a number.
const KORN_NUMBERS: &[&str] = &[
    "bg", "break", "cd", "continue", "dirs", "exit", "fg", "jobs", "kill", "popd", "print", "pushd",
    "repeat", "return", "sleep", "suspend", "ulimit", "umask",
];

/// Says whether a variable of this name must not get a value.
pub(super) fn evaluated_variable(name: &[u8]) -> bool {
    EVALUATED.iter().any(|known| known.as_bytes() == name)
}

/// Checks one simple command of a shell line. `korn`: numbers are expressions. `function`: inside a function.
pub(super) fn check(words: &[Word], korn: bool, function: bool) -> Result<Effect, Error> {
    let mut effect = Effect { evaluates: evaluators::check_programs(words)?, ..Effect::default() };
    let Some(at) = builtin(words) else {
        return Ok(effect);
    };
    let name = String::from_utf8_lossy(&words[at].text).into_owned();
    let rest = &words[at + 1..];
    let held = rest.iter().find_map(|w| w.holds);
    parameters(&name, rest, function)?;
    if let Some(placeholder) = held {
        values(&name, rest, placeholder, korn)?;
    }
    // An expansion may hold a value: where a value would be refused, a variable must not have one.
    let variables: Vec<Word> = rest.iter().map(Word::as_if_a_value).collect();
    effect.evaluates |= match variables.iter().find_map(|w| w.holds) {
        Some(placeholder) => name == "eval" || values(&name, &variables, placeholder, korn).is_err(),
        None => false,
    };
    let options = |letters: &[u8]| {
        rest.iter().any(|w| w.text.starts_with(b"-") && w.text.iter().any(|b| letters.contains(b)))
    };
    match name.as_str() {
        "declare" | "typeset" | "local" | "export" | "readonly" => {
            effect.evaluates |= options(b"inaAEF");
            effect.stores = held.is_some();
        }
        "let" | "integer" | "nameref" | "float" => effect.evaluates = true,
        "printf" => effect.stores = options(b"v") && held.is_some(),
        "read" | "mapfile" | "readarray" => {
            effect.reads = true;
            effect.evaluates |= options(b"C");
        }
        _ => {}
    }
    Ok(effect)
}

/// Skips `command`, `builtin`, `exec` and their options.
fn builtin(words: &[Word]) -> Option<usize> {
    const PREFIXES: [&[u8]; 6] = [b"command", b"builtin", b"exec", b"-", b"noglob", b"nocorrect"];
    let mut at = 0;
    while PREFIXES.contains(&words.get(at)?.text.as_slice()) {
        at += 1;
        while words.get(at)?.text.starts_with(b"-") {
            at += 1;
        }
    }
    Some(at)
}

/// Refuses what would change or read the parameters that hold the values, or how the line is read.
fn parameters(name: &str, rest: &[Word], function: bool) -> Result<(), Error> {
    match name {
        "alias" | "emulate" | "setopt" | "unsetopt" => Err(Error::refused(format!(
            "`{name}` changes how the rest of the line is read: write what it stands for"
        ))),
        _ if function => Ok(()),
        "shift" | "getopts" => Err(Error::refused(format!(
            "`{name}` would work on minder's own parameters: write `{{}}` or `{{1}}` where a value belongs"
        ))),
        "set" if !options_only(rest) => Err(Error::refused(
            "`set` with words would replace minder's own parameters: use a variable, or a function of your own",
        )),
        _ => Ok(()),
    }
}

fn options_only(words: &[Word]) -> bool {
    let mut takes = false;
    words.iter().all(|w| {
        let name = std::mem::take(&mut takes);
        takes = w.text.ends_with(b"o") && w.text.starts_with(b"-") || w.text == b"+o";
        let option = w.text.len() > 1
            && matches!(w.text[0], b'-' | b'+')
            && w.text[1..].iter().all(u8::is_ascii_alphabetic);
        let array = option && w.text[1..].contains(&b'A');
        w.gap.is_none() && (name || option && !array)
    })
}

/// Refuses a value as an argument of a builtin that evaluates it.
fn values(name: &str, rest: &[Word], placeholder: Placeholder, korn: bool) -> Result<(), Error> {
    let refuse = |why: &str| Err(Error::refused(format!("`{placeholder}` {why}")));
    match name {
        _ if NEVER.contains(&name) => refuse(&format!(
            "is an argument of `{name}`, which can evaluate it: assign it with `v={{}}` instead"
        )),
        "." | "source" if rest.iter().any(|w| w.nested) => {
            refuse(&format!("is part of what `{name}` runs: write it to a file of your own"))
        }
        "export" | "readonly" | "declare" | "typeset" | "local" => {
            let option = rest.iter().any(|w| w.text.starts_with(b"-") && w.text != b"--");
            match option || rest.iter().any(|w| w.holds.is_some() && !assigns(w)) {
                true => {
                    refuse(&format!("is a name or an option's for `{name}`: write `NAME={{}}; {name} NAME`"))
                }
                false => Ok(()),
            }
        }
        "printf" => printf(rest, placeholder, korn),
        "test" | "[" => test(rest, placeholder, korn),
        _ if korn && KORN_NUMBERS.contains(&name) => refuse(&format!(
            "is an argument of `{name}`, where this shell evaluates numbers: use `--shell /bin/dash`"
        )),
        _ => Ok(()),
    }
}

/// `NAME=` before the value.
fn assigns(word: &Word) -> bool {
    let start = &word.text[..word.gap.unwrap_or(word.text.len())];
    match start.iter().position(|&b| b == b'=') {
        Some(end) => super::scan::is_name(&start[..end]) && !evaluated_variable(&start[..end]),
        None => false,
    }
}

fn printf(rest: &[Word], placeholder: Placeholder, korn: bool) -> Result<(), Error> {
    // `printf -va[$(cmd)] x` runs cmd in bash: no value may be read as an option.
    let format = rest.iter().position(|w| w.text == b"--").map_or(0, |i| i + 1);
    let first = rest.get(format);
    let open = first
        .is_some_and(|w| w.holds.is_some() && format == 0 && w.gap == Some(0) || w.text.starts_with(b"-"));
    let mut letters = first.map_or(b"".as_slice(), |w| &w.text).split(|&b| b == b'%').skip(1);
    let numbers = korn
        && (first.is_some_and(|w| w.gap.is_some())
            || letters.any(|l| !matches!(l.first(), Some(b's' | b'b' | b'c'))));
    if open || numbers {
        return Err(Error::refused(format!(
            "`{placeholder}` can be read by `printf` as more than text: write `printf '%s\\n' {{}}`"
        )));
    }
    Ok(())
}

fn test(rest: &[Word], placeholder: Placeholder, korn: bool) -> Result<(), Error> {
    let open = |w: &Word| w.gap == Some(0) || can_be(w, &[b"-v", b"-R"]);
    // `[ -v 'a[$(cmd)]' ]` runs cmd in bash; two values side by side can be that.
    if rest.windows(2).any(|pair| open(&pair[0]) && pair[1].holds.is_some()) {
        return Err(Error::refused(format!(
            "`{placeholder}` stands in `[ … ]` where it can be evaluated as a variable: put an operator such as `=` before it"
        )));
    }
    if korn && rest.iter().any(numeric) {
        return Err(Error::refused(format!(
            "`{placeholder}` stands beside a comparison of numbers, which this shell evaluates: write `env test {{}} …`"
        )));
    }
    Ok(())
}

/// An operator of `test` or `[[` that compares numbers, or a word that a value can make one: `-{}`.
pub(super) fn numeric(word: &Word) -> bool {
    can_be(word, &[b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge"])
}

/// Says whether the word is one of these, or begins like one of them before its first value.
fn can_be(word: &Word, operators: &[&[u8]]) -> bool {
    operators.iter().any(|operator| match word.gap {
        None => word.text == *operator,
        Some(0) => false,
        Some(gap) => operator.starts_with(&word.text[..gap]),
    })
}

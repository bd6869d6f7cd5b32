//! What a simple command does with values: in which arguments of a builtin they may stand.

use crate::error::Error;
use crate::eval_commands;
use crate::kinds::{BASH, BUSYBOX, DASH, KORN, ShellSet, ZSH};
use crate::placeholder::expression::Placeholder;
use crate::posix::builtins::{OTHERS, RULED, can_evaluate, is_prefix};
use crate::posix::flow::{Flow, PARAMETERS};
use crate::posix::names::{is_name, mentions};
use crate::posix::variables::{Use, assigned};
use crate::word::Word;
use crate::word_list::lists;

/// What a line is checked with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) kinds: ShellSet,
    /// Inside a function.
    pub(crate) function: bool,
    /// Values are what `--only` says: they may stand anywhere.
    pub(crate) harmless: bool,
    /// How many expansions in the place of the command are read as something else.
    pub(crate) depth: usize,
}

/// How many expansions in the place of one command are followed.
const DEPTH_MAX: usize = 8;

/// What a simple command does beside what is in the flow.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// It puts its input into a variable: these, or one that is not known.
    pub(crate) reads: Option<Vec<Vec<u8>>>,
    /// The placeholder that is its name.
    pub(crate) named: Option<Placeholder>,
    /// Text of the line that is run as commands.
    pub(crate) code: Option<Vec<u8>>,
}

/// CheckCache one simple command of a shell line.
pub(crate) fn check(words: &[Word], context: Context, flow: &mut Flow) -> Result<Found, Error> {
    let mut found = Found::default();
    let reached = eval_commands::check_programs(words, context.harmless, false)?;
    flow.evaluate(&reached.names);
    let Some(at) = command_word(words, context)? else {
        return Ok(found);
    };
    let (first, rest) = (&words[at], &words[at + 1..]);
    let may_be_builtin = |word: &Word| word.text.is_empty() || can_become_builtin(word, context.kinds);
    flow.call(first, rest, may_be_builtin);
    let held = rest.iter().find_map(|word| word.holds).filter(|_| !context.harmless);
    if first.odd || first.gap.is_some() {
        found.named = unknown(first, rest, held, context, flow)?;
        read_otherwise(first, rest, context, flow, &mut found)?;
        return Ok(found);
    }
    let builtin = |word: &Word| {
        word.gap.is_none()
            && word.text != b"."
            && (can_evaluate(&word.text, context.kinds) || is_prefix(&word.text))
    };
    flow.builtin_as_argument |= rest.iter().any(|word| word.odd && word.gap.is_none() || builtin(word));
    let name = String::from_utf8_lossy(&first.text).into_owned();
    parameters(&name, rest, context)?;
    if let Some(placeholder) = held {
        values(&name, rest, placeholder, context)?;
    }
    // An expansion may hold a value: where a value would be refused, a variable must not have one.
    let dynamic: Vec<Vec<u8>> = rest.iter().flat_map(|word| word.names.iter().cloned()).collect();
    let variables: Vec<Word> = rest.iter().map(Word::as_if_a_value).collect();
    if let Some(placeholder) = variables.iter().find_map(|word| word.holds)
        && values(&name, &variables, placeholder, context).is_err()
    {
        flow.evaluate(&dynamic);
    }
    flow.evaluate(&named(&name, rest, context));
    stores(&name, rest, flow, &mut found);
    Ok(found)
}

/// Returns the variables that a builtin evaluates by the names in its arguments: `unset 'v[i]'`, `[
/// v -eq 1 ]` in zsh.
fn named(name: &str, rest: &[Word], context: Context) -> Vec<Vec<u8>> {
    let kinds = context.kinds;
    let all: Vec<Vec<u8>> = rest.iter().flat_map(mentions).collect();
    match name {
        _ if !can_evaluate(name.as_bytes(), kinds) => Vec::new(),
        "eval" | "trap" | "." | "source" | "set" | "alias" | "unalias" => Vec::new(),
        "test" | "[" if kinds.meets(KORN) && rest.iter().any(|w| numeric(w) || w.text == b"-t") => all,
        "printf" if kinds.meets(KORN) && printf(rest, Placeholder::VALUE, true).is_err() => all,
        _ if lists(RULED, name.as_bytes()) || lists("unset getopts mapfile readarray", name.as_bytes()) => {
            rest.iter().filter(|word| word.text.contains(&b'[')).flat_map(mentions).collect()
        }
        _ => all,
    }
}

/// Skips `command`, `builtin`, `exec` and their options. Returns `None` where they only look for a
/// command.
fn command_word(words: &[Word], context: Context) -> Result<Option<usize>, Error> {
    let mut at = 0;
    while let Some(word) = words.get(at)
        && word.gap.is_none()
        && is_prefix(&word.text)
    {
        let name = &word.text;
        at += 1;
        while let Some(option) = words.get(at).filter(|word| word.text.starts_with(b"-")) {
            let letters = &option.text[1..];
            if let (Some(placeholder), false) = (option.holds, context.harmless) {
                return Err(Error::refused(format!(
                    "`{placeholder}` is an option of `{}`: write the option as it is",
                    String::from_utf8_lossy(name)
                )));
            }
            if name == b"command" && letters.iter().any(|letter| b"vV".contains(letter)) {
                return Ok(None);
            }
            at += if name == b"exec" && letters.ends_with(b"a") { 2 } else { 1 };
        }
    }
    Ok((at < words.len()).then_some(at))
}

/// Judges a command whose name is not written as it is: it may be any builtin.
fn unknown(
    first: &Word,
    rest: &[Word],
    held: Option<Placeholder>,
    context: Context,
    flow: &mut Flow,
) -> Result<Option<Placeholder>, Error> {
    let refuse = |placeholder: Placeholder, why: &str| Err(Error::refused(format!("`{placeholder}` {why}")));
    let dynamic: Vec<Vec<u8>> = rest.iter().flat_map(|word| word.names.iter().cloned()).collect();
    let becomes = can_become_builtin(first, context.kinds);
    let odd = first.odd || first.substituted || becomes || (first.made && first.text.is_empty());
    match (first.holds, held) {
        (_, Some(placeholder)) if odd => refuse(
            placeholder,
            "is an argument of a command whose name the shell makes up, which may be `eval`: write the name, or `env` before it",
        ),
        (Some(placeholder), _) if first.odd || first.several => refuse(
            placeholder,
            "is part of a command's name that the shell makes up: write it without braces and patterns",
        ),
        // Which builtins a value names is looked at job by job.
        (Some(placeholder), _) if first.is_whole() || !may_be_builtin(&first.text) => {
            Ok(first.is_whole().then_some(placeholder))
        }
        (Some(placeholder), _) => refuse(
            placeholder,
            "is part of a command's name, which may become `eval`: write a folder before it, `./`",
        ),
        (None, _) => {
            if odd {
                flow.evaluate(&dynamic);
            }
            if context.function && first.is_variable() && first.names == [PARAMETERS] {
                flow.runs_parameters = true;
                return Ok(None);
            }
            flow.command(&first.names, held.is_some());
            Ok(None)
        }
    }
}

/// CheckCache a command whose name is an expansion as what it becomes: the text in `${v:-text}`, or
/// nothing at all.
fn read_otherwise(
    first: &Word,
    rest: &[Word],
    context: Context,
    flow: &mut Flow,
    found: &mut Found,
) -> Result<(), Error> {
    if context.depth == DEPTH_MAX {
        return Err(Error::refused("the command's name is one of many expansions: write the name"));
    }
    let context = Context { depth: context.depth + 1, ..context };
    let mut lines: Vec<Vec<Word>> = Vec::new();
    if first.splits && first.text.is_empty() && first.holds.is_none() {
        lines.push(rest.to_vec());
    }
    if !first.alternatives.is_empty() && first.holds.is_none() {
        let text = first.with_alternatives();
        let parts = text.split(|byte| first.splits && b" \t\n".contains(byte));
        let literal = |part: &[u8]| Word { text: part.to_vec(), ..Word::default() };
        let words = parts.filter(|part| !first.splits || !part.is_empty()).map(literal);
        lines.push(words.chain(rest.iter().cloned()).collect());
    }
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let other = check(line, context, flow)?;
        if let Some(reads) = other.reads {
            found.reads.get_or_insert_default().extend(reads);
        }
        found.named = found.named.or(other.named);
        if let Some(code) = other.code {
            let all = found.code.get_or_insert_default();
            all.push(b'\n');
            all.extend(code);
        }
    }
    Ok(())
}

/// Says whether the text of a word and what its expansions give can be the name of a builtin that
/// evaluates.
fn can_become_builtin(word: &Word, kinds: ShellSet) -> bool {
    // What stands for the name of a shell is no text of the word.
    let shell = |name: &Vec<u8>| lists("SHELL BASH 0", name);
    if word.text.is_empty() || (word.text == b"sh" && word.names.len() == 1 && word.names.iter().all(shell)) {
        return false;
    }
    let (start, end) = word.text.split_at(word.gap.unwrap_or(word.text.len()));
    let fits = |name: &str| {
        name.as_bytes().strip_prefix(start).is_some_and(|rest| {
            let mut rest = rest.iter();
            end.iter().all(|byte| rest.any(|other| other == byte))
        })
    };
    let names = OTHERS.iter().filter(|(of, _)| kinds.meets(*of)).map(|(_, names)| *names).chain([RULED]);
    let mut all = names.flat_map(str::split_ascii_whitespace);
    all.any(|name| fits(name) && can_evaluate(name.as_bytes(), kinds))
}

/// Says whether a name with this in it can be a builtin's.
fn may_be_builtin(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_lowercase() || b"[:.-".contains(byte))
}

/// Notes what a builtin puts into variables, and what it evaluates by itself.
fn stores(name: &str, rest: &[Word], flow: &mut Flow, found: &mut Found) {
    let literal = |words: &[Word]| -> Option<Vec<Vec<u8>>> {
        let names = words.iter().filter(|word| !word.text.starts_with(b"-"));
        names.map(|word| (word.gap.is_none() && !word.odd).then(|| word.text.clone())).collect()
    };
    let options = |allowed: &[u8]| {
        rest.iter().all(|word| {
            !matches!(word.text.first(), Some(b'-' | b'+'))
                || word.text.starts_with(b"-") && word.text[1..].iter().all(|b| allowed.contains(b))
        })
    };
    match name {
        "declare" | "typeset" | "local" | "export" | "readonly" => {
            if !options(b"xrglu-") {
                flow.evaluate_any();
                // Another name for a variable that may be a prompt.
                flow.expands_prompt |=
                    rest.iter().any(|word| word.start().starts_with(b"-") && word.text.contains(&b'n'));
            }
            for word in rest {
                declared(word, flow);
            }
        }
        "nameref" => {
            flow.evaluate_any();
            flow.expands_prompt = true;
        }
        "integer" | "float" | "compound" | "enum" | "array" => flow.evaluate_any(),
        "let" => flow.evaluate_any(),
        // They run the editor's name as a command line.
        "fc" | "hist" => {
            let names = ["EDITOR", "FCEDIT", "HISTEDIT", "VISUAL"];
            flow.evaluate(&names.map(|name| name.as_bytes().to_vec()));
        }
        "printf" if rest.first().is_some_and(|word| word.text.starts_with(b"-v")) => {
            // A name that is not known may be a prompt's.
            let named = if rest[0].text == b"-v" { rest.get(1) } else { rest.first() };
            flow.expands_prompt |= named.is_some_and(|word| word.gap.is_some());
            let target = match &rest[0].text[2..] {
                b"" => rest.get(1).map_or(b"".as_slice(), |word| &word.text),
                name => name,
            };
            match rest.iter().any(|word| word.holds.is_some()) {
                true => flow.store(target),
                false => flow.copy(target, &rest.iter().flat_map(|w| w.names.clone()).collect::<Vec<_>>()),
            }
        }
        "cd" | "chdir" | "pushd" if rest.iter().any(|word| word.holds.is_some() || word.dynamic) => {
            for name in ["PWD", "OLDPWD", "DIRSTACK", "dirstack"] {
                flow.fill(name.as_bytes());
            }
        }
        "read" | "mapfile" | "readarray" | "getln" | "vared" => {
            if !options(b"aAdeinNprstuzqkEC0123456789-") || name != "read" {
                flow.evaluate_any();
            }
            let names =
                literal(rest).map(|names| if names.is_empty() { vec![b"REPLY".to_vec()] } else { names });
            found.reads = Some(names.unwrap_or_else(|| vec![Vec::new()]));
        }
        "getopts" | "zparseopts" => {
            flow.store(b"OPTARG");
            literal(rest).unwrap_or_default().iter().for_each(|name| flow.copy(name, &[PARAMETERS.to_vec()]));
        }
        "eval" | "trap" => runs(name, rest, flow, found),
        _ => {}
    }
}

/// Notes what `eval` or `trap` runs: text of the line, or what is in variables.
fn runs(name: &str, rest: &[Word], flow: &mut Flow, found: &mut Found) {
    match name {
        "eval" => {
            let text: Option<Vec<&[u8]>> = rest
                .iter()
                .map(|word| (word.gap.is_none() && !word.odd).then_some(word.text.as_slice()))
                .collect();
            match text {
                Some(text) => found.code = Some(text.join(&b' ')),
                None => {
                    let names: Vec<Vec<u8>> =
                        rest.iter().flat_map(|word| word.names.iter().cloned()).collect();
                    flow.evaluate(&names);
                    // The text around an expansion may evaluate more.
                    if rest.iter().any(|word| !word.text.is_empty()) {
                        flow.evaluate_any();
                    }
                }
            }
        }
        _ => match rest.iter().find(|word| !word.text.starts_with(b"-")) {
            Some(code) if code.gap.is_none() && !code.odd => found.code = Some(code.text.clone()),
            Some(code) => {
                flow.evaluate(&code.names);
                flow.evaluate_any();
            }
            None => {}
        },
    }
}

/// Notes one word of `export`, `local` and their like.
fn declared(word: &Word, flow: &mut Flow) {
    let start = &word.text[..word.gap.unwrap_or(word.text.len())];
    let Some(end) = start.iter().position(|&byte| byte == b'=') else {
        // A name that is not known may be a prompt's.
        flow.expands_prompt |= word.text.contains(&b'=');
        return;
    };
    let name = start[..end].strip_suffix(b"+").unwrap_or(&start[..end]);
    flow.declare(name);
    match word.holds.is_some() {
        true => flow.store(name),
        false if word.gap.is_none() && !word.odd => flow.text(name, &word.text[end + 1..], &mentions(word)),
        false => flow.copy(name, &mentions(word)),
    }
}

/// Refuses what would change or read the parameters that hold the values, or how the line is read.
fn parameters(name: &str, rest: &[Word], context: Context) -> Result<(), Error> {
    const SHOPT: &str =
        "-s -u -q nullglob failglob dotglob globstar nocaseglob nocasematch inherit_errexit lastpipe";
    match name {
        "shopt" if rest.iter().all(|word| word.gap.is_none() && lists(SHOPT, &word.text)) => Ok(()),
        "alias" | "emulate" | "setopt" | "unsetopt" | "shopt" | "zmodload" | "enable" | "disable"
            if context.kinds.meets(BASH | ZSH) || name == "alias" =>
        {
            Err(Error::refused(format!(
                "`{name}` changes how the rest of the line is read: write what it stands for"
            )))
        }
        _ if context.function => Ok(()),
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
fn values(name: &str, rest: &[Word], placeholder: Placeholder, context: Context) -> Result<(), Error> {
    let refuse = |why: &str| Err(Error::refused(format!("`{placeholder}` {why}")));
    let kinds = context.kinds;
    // Braces make several words of one, which may be an option and its argument.
    let spread = rest.iter().any(|word| word.braces && (word.holds.is_some() || word.dynamic));
    match name {
        "." | "source" if rest.iter().any(|w| w.nested) => {
            refuse(&format!("is part of what `{name}` runs: write it to a file of your own"))
        }
        "." | "source" | "builtin" | "command" | "exec" => Ok(()),
        _ if spread && lists(RULED, name.as_bytes()) => {
            refuse(&format!("stands in braces, of which `{name}` gets several words: write the words"))
        }
        "export" | "readonly" | "declare" | "typeset" | "local" => {
            let option = rest.iter().any(|w| w.text.starts_with(b"-") && w.text != b"--");
            match option || rest.iter().any(|w| w.holds.is_some() && !assigns(w, kinds)) {
                true => {
                    refuse(&format!("is a name or an option's for `{name}`: write `NAME={{}}; {name} NAME`"))
                }
                false => Ok(()),
            }
        }
        "print" if kinds.meets(KORN) && !prints(rest) => {
            refuse("can be an option of `print`: write `print -r -- {}`")
        }
        "print" => Ok(()),
        "read" if kinds.is_within(BASH | DASH | BUSYBOX) && prompts(rest) => Ok(()),
        "printf" => printf(rest, placeholder, kinds.meets(KORN)),
        "test" | "[" => test(rest, placeholder, kinds),
        _ if !can_evaluate(name.as_bytes(), kinds) => Ok(()),
        "exit" | "return" | "break" | "continue" | "logout" | "bye" | "sleep" | "ulimit" | "kill"
        | "umask" => refuse(&format!(
            "is an argument of `{name}`, where this shell evaluates numbers: see `--only`, or use `--shell dash`"
        )),
        "trap" => refuse("is part of what `trap` runs: write `v={}; trap '… \"$v\" …' EXIT`"),
        _ => refuse(&format!(
            "is an argument of `{name}`, which can evaluate it: assign it with `v={{}}` instead, or see `--only`"
        )),
    }
}

/// `read -r -p {} x`: a prompt, which is written as it is.
fn prompts(rest: &[Word]) -> bool {
    let held: Vec<usize> = (0..rest.len()).filter(|&i| rest[i].holds.is_some()).collect();
    let plain = |i: usize| !rest[i].splits && !rest[i].several && !rest[i].braces;
    held.iter().all(|&i| i > 0 && plain(i) && matches!(rest[i - 1].text.as_slice(), b"-p" | b"-rp"))
        && rest.iter().enumerate().all(|(i, word)| held.contains(&i) || word.gap.is_none())
}

/// `print -r -- {}`.
fn prints(rest: &[Word]) -> bool {
    let first = rest.iter().position(|word| word.holds.is_some()).unwrap_or(rest.len());
    let options = &rest[..first];
    let end = options.iter().position(|word| word.text == b"--" && word.gap.is_none());
    end.is_some_and(|end| {
        options[..end].iter().all(|word| {
            word.gap.is_none()
                && word.text.starts_with(b"-")
                && word.text[1..].iter().all(|letter| b"rnlN".contains(letter))
        })
    })
}

/// `NAME=` before the value.
fn assigns(word: &Word, kinds: ShellSet) -> bool {
    let start = &word.text[..word.gap.unwrap_or(word.text.len())];
    match start.iter().position(|&b| b == b'=') {
        Some(end) => is_name(&start[..end]) && assigned(&start[..end], kinds) == Use::Text && !word.braces,
        None => false,
    }
}

fn printf(rest: &[Word], placeholder: Placeholder, korn: bool) -> Result<(), Error> {
    // `printf -va[$(cmd)] x` runs cmd in bash: no value may be read as an option.
    let format = rest.iter().position(|w| w.text == b"--" && w.gap.is_none()).map_or(0, |i| i + 1);
    let first = rest.get(format);
    let open = first.is_some_and(|w| {
        (w.holds.is_some() && format == 0 && w.gap == Some(0)) || w.text.starts_with(b"-") || w.splits
    });
    let options = rest[..format].iter().any(|w| w.gap.is_some() || w.text != b"--");
    let mut letters = first.map_or(b"".as_slice(), |w| &w.text).split(|&b| b == b'%').skip(1);
    let numbers = korn
        && (first.is_some_and(|w| w.gap.is_some() || w.odd)
            || letters.any(|l| !matches!(l.first(), Some(b's' | b'b' | b'c'))));
    if open || options || numbers {
        return Err(Error::refused(format!(
            "`{placeholder}` can be read by `printf` as more than text: write `printf '%s\\n' {{}}`, or see `--only`"
        )));
    }
    Ok(())
}

fn test(rest: &[Word], placeholder: Placeholder, kinds: ShellSet) -> Result<(), Error> {
    let operators: &[&[u8]] = if kinds.meets(ZSH) { &[b"-v", b"-R", b"-t"] } else { &[b"-v", b"-R"] };
    let evaluates = kinds.meets(BASH | KORN);
    let open = |w: &Word| w.gap == Some(0) || can_be(w, operators);
    // `[ -v 'a[$(cmd)]' ]` runs cmd in bash; two values side by side can be that.
    let elements = evaluates && rest.iter().any(|word| word.elements);
    if elements || rest.windows(2).any(|pair| open(&pair[0]) && pair[1].holds.is_some()) {
        return Err(Error::refused(format!(
            "`{placeholder}` stands in `[ … ]` where it can be evaluated as a variable: put an operator such as `=` before it"
        )));
    }
    if evaluates && rest.iter().any(|word| word.splits && word.holds.is_some()) {
        return Err(Error::refused(format!(
            "`{placeholder}` stands in `[ … ]` where it can be several words: put it in double quotes"
        )));
    }
    if kinds.meets(KORN) && rest.iter().any(numeric) {
        return Err(Error::refused(format!(
            "`{placeholder}` stands beside a comparison of numbers, which this shell evaluates: write `env test {{}} …`, or see \
             `--only`"
        )));
    }
    Ok(())
}

/// An operator of `test` or `[[` that compares numbers, or a word that a value can make one: `-{}`.
pub(crate) fn numeric(word: &Word) -> bool {
    can_be(word, &[b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge"])
}

/// Says whether the word is one of these, or begins like one of them before its first value.
pub(crate) fn can_be(word: &Word, operators: &[&[u8]]) -> bool {
    operators.iter().any(|operator| match word.gap {
        None => word.text == *operator,
        Some(0) => false,
        Some(gap) => operator.starts_with(&word.text[..gap]),
    })
}

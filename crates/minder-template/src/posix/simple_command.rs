//! The rules for simple commands: which arguments of a builtin may contain a value.

use crate::error::Error;
use crate::eval_commands::{self, ShellText, Trust};
use crate::kinds::{BASH, BUSYBOX, DASH, KORN, ShellSet, ZSH};
use crate::placeholder::expression::Placeholder;
use crate::posix::builtins::{OTHERS, RULED, can_evaluate, is_prefix};
use crate::posix::flow::{Flow, PARAMETERS};
use crate::posix::names::{is_name, mentions};
use crate::posix::variables::{Use, assigned};
use crate::program_text::{Alphabet, ValueCheck};
use crate::word::Word;
use crate::word_list::lists;

/// The surroundings of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandContext {
    pub(crate) kinds: ShellSet,
    /// The command is in the body of a function.
    pub(crate) in_function: bool,
    /// The user vouches for the values: they may stand anywhere.
    pub(crate) trusted: bool,
    /// Values that each job checks may stand in program texts that are understood.
    pub(crate) accepts_plain_values: bool,
    /// The number of expansions in the name of the command that were replaced by an alternative.
    pub(crate) depth: usize,
}

/// The maximum of [`CommandContext::depth`].
const DEPTH_MAX: usize = 8;

/// The effects of a simple command that [`Flow`] does not record.
#[derive(Debug, Default)]
pub(crate) struct CommandEffects {
    /// The variables that get its input. An empty name stands for an unknown variable.
    pub(crate) input_variables: Option<Vec<Vec<u8>>>,
    /// The placeholder that is the name of the command.
    pub(crate) command_name: Option<Placeholder>,
    /// Text of the line that the command runs as commands.
    pub(crate) code: Option<Vec<u8>>,
    /// The checks of values in program texts.
    pub(crate) checks: Vec<ValueCheck>,
    /// The program texts of shells that contain values.
    pub(crate) shell_texts: Vec<ShellText>,
}

/// Checks one simple command of a shell line.
pub(crate) fn check(
    words: &[Word],
    context: CommandContext,
    flow: &mut Flow,
) -> Result<CommandEffects, Error> {
    let mut found = CommandEffects::default();
    let trust = match context {
        CommandContext { trusted: true, .. } => Trust::Everything,
        CommandContext { accepts_plain_values: true, .. } => Trust::PlainValues,
        _ => Trust::Nothing,
    };
    let program_text = eval_commands::check_programs(words, trust, false)?;
    flow.evaluate(&program_text.variables);
    found.checks = program_text.checks;
    found.shell_texts = program_text.shell_texts;
    let Some(at) = command_word(words, context)? else {
        return Ok(found);
    };
    let first = &words[at];
    let rest = &words[at + 1..];
    let may_be_builtin = |word: &Word| word.text.is_empty() || can_become_builtin(word, context.kinds);
    flow.call(first, rest, may_be_builtin);
    let placeholder = if context.trusted { None } else { rest.iter().find_map(|word| word.placeholder) };
    if first.special || first.first_expansion.is_some() {
        found.command_name = check_unknown_name(first, rest, placeholder, context, flow)?;
        check_alternatives(first, rest, context, flow, &mut found)?;
        return Ok(found);
    }
    let is_builtin = |word: &Word| {
        word.first_expansion.is_none()
            && word.text != b"."
            && (can_evaluate(&word.text, context.kinds) || is_prefix(&word.text))
    };
    flow.builtin_as_argument |=
        rest.iter().any(|word| word.special && word.first_expansion.is_none() || is_builtin(word));
    let name = String::from_utf8_lossy(&first.text).into_owned();
    refuse_line_changes(&name, rest, context)?;
    if let Some(placeholder) = placeholder {
        let checked = check_values(&name, rest, placeholder, context);
        match checked.is_err().then(|| plain_format(&name, rest, context)).flatten() {
            Some(checks) => found.checks.extend(checks),
            None => checked?,
        }
    }
    // A variable may hold the value of a placeholder. Where a placeholder would be refused, these
    // variables are recorded as evaluated.
    let dynamic: Vec<Vec<u8>> = rest.iter().flat_map(|word| word.variables.iter().cloned()).collect();
    let variables: Vec<Word> = rest.iter().map(Word::with_expansion_as_value).collect();
    if let Some(placeholder) = variables.iter().find_map(|word| word.placeholder)
        && check_values(&name, &variables, placeholder, context).is_err()
    {
        record_evaluated(&name, rest, &dynamic, flow);
    }
    record_evaluated(&name, rest, &variables_in_arguments(&name, rest, context), flow);
    record_stores(&name, rest, flow, &mut found);
    Ok(found)
}

/// Records variables that a command evaluates. `[ $v -gt 3 ]` reads numbers only.
fn record_evaluated(name: &str, rest: &[Word], variables: &[Vec<u8>], flow: &mut Flow) {
    if variables.is_empty() {
        return;
    }
    let is_test = matches!(name, "test" | "[");
    let indices = 0..rest.len();
    if is_test && indices.clone().any(|at| is_compared(rest, at) && rest[at].composes_name(0)) {
        flow.evaluate_any();
    }
    let is_number = |at: usize| is_compared(rest, at) || rest[at].variables.is_empty();
    if is_test && rest.iter().any(is_comparison) && indices.clone().all(is_number) {
        flow.compare(variables);
    } else {
        flow.evaluate(variables);
    }
}

/// Returns the variables that a builtin evaluates because its arguments name them: `unset 'v[i]'`,
/// and `[ v -eq 1 ]` in zsh.
fn variables_in_arguments(name: &str, rest: &[Word], context: CommandContext) -> Vec<Vec<u8>> {
    let kinds = context.kinds;
    let all: Vec<Vec<u8>> = rest.iter().flat_map(mentions).collect();
    match name {
        _ if !can_evaluate(name.as_bytes(), kinds) => Vec::new(),
        "eval" | "trap" | "." | "source" | "set" | "alias" | "unalias" => Vec::new(),
        "test" | "[" if kinds.meets(KORN) && rest.iter().any(|w| may_be_comparison(w) || w.text == b"-t") => {
            all
        }
        "printf" if kinds.meets(KORN) && check_printf(rest, Placeholder::VALUE, true).is_err() => all,
        _ if lists(RULED, name.as_bytes()) || lists("unset getopts mapfile readarray", name.as_bytes()) => {
            rest.iter().filter(|word| word.text.contains(&b'[')).flat_map(mentions).collect()
        }
        _ => all,
    }
}

/// Skips `command`, `builtin`, `exec` and their options. Returns the index of the name, or `None`
/// if the command is not run.
fn command_word(words: &[Word], context: CommandContext) -> Result<Option<usize>, Error> {
    let mut at = 0;
    while let Some(word) = words.get(at)
        && word.first_expansion.is_none()
        && is_prefix(&word.text)
    {
        let name = &word.text;
        at += 1;
        while let Some(option) = words.get(at).filter(|word| word.text.starts_with(b"-")) {
            let letters = &option.text[1..];
            if let Some(placeholder) = option.placeholder
                && !context.trusted
            {
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

/// Checks a command whose name is not literal. It may be any builtin.
fn check_unknown_name(
    first: &Word,
    rest: &[Word],
    argument: Option<Placeholder>,
    context: CommandContext,
    flow: &mut Flow,
) -> Result<Option<Placeholder>, Error> {
    let refuse = |placeholder: Placeholder, why: &str| Err(Error::refused(format!("`{placeholder}` {why}")));
    let dynamic: Vec<Vec<u8>> = rest.iter().flat_map(|word| word.variables.iter().cloned()).collect();
    let can_be_builtin = can_become_builtin(first, context.kinds);
    let is_composed =
        first.special || first.substituted || can_be_builtin || (first.altered && first.text.is_empty());
    match (first.placeholder, argument) {
        (_, Some(placeholder)) if is_composed => refuse(
            placeholder,
            "is an argument of a command whose name the shell makes up, which may be `eval`: write the \
             name, or `env` before it",
        ),
        (Some(placeholder), _) if first.special || first.one_of_several => refuse(
            placeholder,
            "is part of a command's name that the shell makes up: write it without braces and patterns",
        ),
        // `Line` checks for each job whether the value is the name of a builtin.
        (Some(placeholder), _) if first.is_single_value() || !may_be_builtin(&first.text) => {
            Ok(first.is_single_value().then_some(placeholder))
        }
        (Some(placeholder), _) => refuse(
            placeholder,
            "is part of a command's name, which may become `eval`: write a directory before it, such as `./`",
        ),
        (None, _) => {
            if is_composed {
                flow.evaluate(&dynamic);
            }
            if context.in_function && first.is_plain_variable() && first.variables == [PARAMETERS] {
                flow.runs_parameters = true;
                return Ok(None);
            }
            flow.command(&first.variables, argument.is_some());
            Ok(None)
        }
    }
}

/// Checks what a command becomes if its name is an expansion: with the text of `${v:-text}` as its
/// name, or with its first argument as its name if the expansion is empty.
fn check_alternatives(
    first: &Word,
    rest: &[Word],
    context: CommandContext,
    flow: &mut Flow,
    found: &mut CommandEffects,
) -> Result<(), Error> {
    if context.depth == DEPTH_MAX {
        return Err(Error::refused("the command's name is one of many expansions: write the name"));
    }
    let context = CommandContext { depth: context.depth + 1, ..context };
    let mut lines: Vec<Vec<Word>> = Vec::new();
    if first.splits && first.text.is_empty() && first.placeholder.is_none() {
        lines.push(rest.to_vec());
    }
    if !first.alternatives.is_empty() && first.placeholder.is_none() {
        let text = first.with_alternatives();
        let parts = text.split(|byte| first.splits && b" \t\n".contains(byte));
        let literal = |part: &[u8]| Word { text: part.to_vec(), ..Word::default() };
        let words = parts.filter(|part| !first.splits || !part.is_empty()).map(literal);
        lines.push(words.chain(rest.iter().cloned()).collect());
    }
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let other = check(line, context, flow)?;
        if let Some(variables) = other.input_variables {
            found.input_variables.get_or_insert_default().extend(variables);
        }
        found.command_name = found.command_name.or(other.command_name);
        found.checks.extend(other.checks);
        found.shell_texts.extend(other.shell_texts);
        if let Some(code) = other.code {
            let all = found.code.get_or_insert_default();
            all.push(b'\n');
            all.extend(code);
        }
    }
    Ok(())
}

/// Returns whether the text of a word, together with its expansions, can be the name of a builtin
/// that evaluates.
fn can_become_builtin(word: &Word, kinds: ShellSet) -> bool {
    // `$SHELL` has the text `sh` here, which is not part of a name.
    let shell = |name: &Vec<u8>| lists("SHELL BASH 0", name);
    if word.text.is_empty()
        || (word.text == b"sh" && word.variables.len() == 1 && word.variables.iter().all(shell))
    {
        return false;
    }
    let (start, end) = word.text.split_at(word.first_expansion.unwrap_or(word.text.len()));
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

/// Returns whether the name of a builtin can contain this text.
fn may_be_builtin(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_lowercase() || b"[:.-".contains(byte))
}

/// Records the variables that a builtin assigns, and those that it evaluates.
fn record_stores(name: &str, rest: &[Word], flow: &mut Flow, found: &mut CommandEffects) {
    let literal = |words: &[Word]| -> Option<Vec<Vec<u8>>> {
        let names = words.iter().filter(|word| !word.text.starts_with(b"-"));
        names
            .map(|word| (word.first_expansion.is_none() && !word.special).then(|| word.text.clone()))
            .collect()
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
                // `-n` makes another name for a variable, which may be a prompt.
                flow.expands_prompt |= rest
                    .iter()
                    .any(|word| word.literal_start().starts_with(b"-") && word.text.contains(&b'n'));
            }
            for word in rest {
                record_declaration(word, flow);
            }
        }
        "nameref" => {
            flow.evaluate_any();
            flow.expands_prompt = true;
        }
        "integer" | "float" | "compound" | "enum" | "array" => flow.evaluate_any(),
        "let" => flow.evaluate_any(),
        // These run the name of the editor as a command line.
        "fc" | "hist" => {
            let names = ["EDITOR", "FCEDIT", "HISTEDIT", "VISUAL"];
            flow.evaluate(&names.map(|name| name.as_bytes().to_vec()));
        }
        "printf" if rest.first().is_some_and(|word| word.text.starts_with(b"-v")) => {
            record_printf_target(rest, flow);
        }
        "cd" | "chdir" | "pushd"
            if rest.iter().any(|word| word.placeholder.is_some() || word.has_expansion) =>
        {
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
            found.input_variables = Some(names.unwrap_or_else(|| vec![Vec::new()]));
        }
        "getopts" | "zparseopts" => {
            flow.store(b"OPTARG");
            for name in literal(rest).unwrap_or_default() {
                flow.copy(&name, &[PARAMETERS.to_vec()]);
            }
        }
        "eval" | "trap" => record_code(name, rest, flow, found),
        _ => {}
    }
}

/// Records the variable that `printf -v` assigns.
fn record_printf_target(rest: &[Word], flow: &mut Flow) {
    // An unknown name may be that of a prompt.
    let named = if rest[0].text == b"-v" { rest.get(1) } else { rest.first() };
    flow.expands_prompt |= named.is_some_and(|word| word.first_expansion.is_some());
    let target = match &rest[0].text[2..] {
        b"" => rest.get(1).map_or(b"".as_slice(), |word| &word.text),
        name => name,
    };
    if rest.iter().any(|word| word.placeholder.is_some()) {
        flow.store(target);
    } else {
        let from: Vec<Vec<u8>> = rest.iter().flat_map(|word| word.variables.clone()).collect();
        flow.copy(target, &from);
        if rest.iter().any(|word| word.placeholder_count > 0) {
            flow.compose(target);
        }
    }
}

/// Records the code that `eval` or `trap` runs: text of the line, or the text of variables.
fn record_code(name: &str, rest: &[Word], flow: &mut Flow, found: &mut CommandEffects) {
    match name {
        "eval" => {
            let text: Option<Vec<&[u8]>> = rest
                .iter()
                .map(|word| (word.first_expansion.is_none() && !word.special).then_some(word.text.as_slice()))
                .collect();
            match text {
                Some(text) => found.code = Some(text.join(&b' ')),
                None => {
                    let names: Vec<Vec<u8>> =
                        rest.iter().flat_map(|word| word.variables.iter().cloned()).collect();
                    flow.evaluate(&names);
                    // The text around an expansion may evaluate more.
                    if rest.iter().any(|word| !word.text.is_empty()) {
                        flow.evaluate_any();
                    }
                }
            }
        }
        _ => match rest.iter().find(|word| !word.text.starts_with(b"-")) {
            Some(code) if code.first_expansion.is_none() && !code.special => {
                found.code = Some(code.text.clone())
            }
            Some(code) => {
                flow.evaluate(&code.variables);
                flow.evaluate_any();
            }
            None => {}
        },
    }
}

/// Records one argument of `export`, `local` and similar builtins.
fn record_declaration(word: &Word, flow: &mut Flow) {
    let start = &word.text[..word.first_expansion.unwrap_or(word.text.len())];
    let Some(end) = start.iter().position(|&byte| byte == b'=') else {
        // An unknown name may be that of a prompt.
        flow.expands_prompt |= word.text.contains(&b'=');
        return;
    };
    let name = start[..end].strip_suffix(b"+").unwrap_or(&start[..end]);
    flow.declare(name);
    if word.composes_name(end + 1) {
        flow.compose(name);
    }
    if word.placeholder.is_some() {
        flow.store(name);
    } else if word.first_expansion.is_none() && !word.special {
        flow.copy_literal(name, &word.text[end + 1..], &mentions(word));
    } else {
        flow.copy(name, &mentions(word));
    }
}

/// Refuses builtins that read or replace minder's positional parameters, or that change how the
/// shell parses the rest of the line.
fn refuse_line_changes(name: &str, rest: &[Word], context: CommandContext) -> Result<(), Error> {
    const SHOPT: &str =
        "-s -u -q nullglob failglob dotglob globstar nocaseglob nocasematch inherit_errexit lastpipe";
    match name {
        "shopt" if rest.iter().all(|word| word.first_expansion.is_none() && lists(SHOPT, &word.text)) => {
            Ok(())
        }
        "alias" | "emulate" | "setopt" | "unsetopt" | "shopt" | "zmodload" | "enable" | "disable"
            if context.kinds.meets(BASH | ZSH) || name == "alias" =>
        {
            Err(Error::refused(format!(
                "`{name}` changes how the rest of the line is read: write what it stands for"
            )))
        }
        _ if context.in_function => Ok(()),
        "shift" | "getopts" => Err(Error::refused(format!(
            "`{name}` would work on minder's own parameters: write `{{}}` or `{{1}}` where a value belongs"
        ))),
        "set" if !options_only(rest) => Err(Error::refused(
            "`set` with words would replace minder's own parameters: use a variable, or a function of your \
             own",
        )),
        _ => Ok(()),
    }
}

/// Returns whether the words are options of `set` and the names of options, and none assigns an
/// array.
fn options_only(words: &[Word]) -> bool {
    let mut takes_name = false;
    words.iter().all(|w| {
        let is_name = std::mem::take(&mut takes_name);
        takes_name = w.text.ends_with(b"o") && w.text.starts_with(b"-") || w.text == b"+o";
        let is_option = w.text.len() > 1
            && matches!(w.text[0], b'-' | b'+')
            && w.text[1..].iter().all(u8::is_ascii_alphabetic);
        let is_array = is_option && w.text[1..].contains(&b'A');
        w.first_expansion.is_none() && (is_name || is_option && !is_array)
    })
}

/// Refuses an argument with a value if the builtin evaluates it.
fn check_values(
    name: &str,
    rest: &[Word],
    placeholder: Placeholder,
    context: CommandContext,
) -> Result<(), Error> {
    let refuse = |why: &str| Err(Error::refused(format!("`{placeholder}` {why}")));
    let kinds = context.kinds;
    // Braces make several words of one. These may be an option and its argument.
    let spread = rest.iter().any(|word| word.braces && (word.placeholder.is_some() || word.has_expansion));
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
            if option || rest.iter().any(|w| w.placeholder.is_some() && !is_assignment(w, kinds)) {
                return refuse(&format!(
                    "is a name or an option's for `{name}`: write `NAME={{}}; {name} NAME`"
                ));
            }
            Ok(())
        }
        "print" if kinds.meets(KORN) && !follows_print_options(rest) => {
            refuse("can be an option of `print`: write `print -r -- {}`")
        }
        "print" => Ok(()),
        "read" if kinds.is_within(BASH | DASH | BUSYBOX) && is_prompt_of_read(rest) => Ok(()),
        "printf" => check_printf(rest, placeholder, kinds.meets(KORN)),
        "test" | "[" => check_test(rest, placeholder, kinds),
        _ if !can_evaluate(name.as_bytes(), kinds) => Ok(()),
        "exit" | "return" | "break" | "continue" | "logout" | "bye" | "sleep" | "ulimit" | "kill"
        | "umask" => refuse(&format!(
            "is an argument of `{name}`, where this shell evaluates numbers: see `--only`, or use `--shell \
             dash`"
        )),
        "trap" => refuse("is part of what `trap` runs: write `v={}; trap '… \"$v\" …' EXIT`"),
        _ => refuse(&format!(
            "is an argument of `{name}`, which can evaluate it: assign it with `v={{}}` instead, or see \
             `--only`"
        )),
    }
}

/// Returns whether values are only prompts, which `read` prints unchanged: `read -r -p {} x`.
fn is_prompt_of_read(rest: &[Word]) -> bool {
    let value_indices: Vec<usize> = (0..rest.len()).filter(|&i| rest[i].placeholder.is_some()).collect();
    let is_plain = |i: usize| !rest[i].splits && !rest[i].one_of_several && !rest[i].braces;
    value_indices
        .iter()
        .all(|&i| i > 0 && is_plain(i) && matches!(rest[i - 1].text.as_slice(), b"-p" | b"-rp"))
        && rest
            .iter()
            .enumerate()
            .all(|(i, word)| value_indices.contains(&i) || word.first_expansion.is_none())
}

/// Returns whether values come after `--` and harmless options: `print -r -- {}`.
fn follows_print_options(rest: &[Word]) -> bool {
    let first = rest.iter().position(|word| word.placeholder.is_some()).unwrap_or(rest.len());
    let options = &rest[..first];
    let end = options.iter().position(|word| word.text == b"--" && word.first_expansion.is_none());
    end.is_some_and(|end| {
        options[..end].iter().all(|word| {
            word.first_expansion.is_none()
                && word.text.starts_with(b"-")
                && word.text[1..].iter().all(|letter| b"rnlN".contains(letter))
        })
    })
}

/// Returns whether the word is `NAME=` and a value, and no shell evaluates that variable.
fn is_assignment(word: &Word, kinds: ShellSet) -> bool {
    let start = &word.text[..word.first_expansion.unwrap_or(word.text.len())];
    match start.iter().position(|&b| b == b'=') {
        Some(end) => is_name(&start[..end]) && assigned(&start[..end], kinds) == Use::Text && !word.braces,
        None => false,
    }
}

fn check_printf(rest: &[Word], placeholder: Placeholder, korn: bool) -> Result<(), Error> {
    // `printf -va[$(cmd)] x` runs cmd in bash: no value may become an option.
    let format_index =
        rest.iter().position(|w| w.text == b"--" && w.first_expansion.is_none()).map_or(0, |i| i + 1);
    let format = rest.get(format_index);
    let can_be_option = format.is_some_and(|w| {
        (w.placeholder.is_some() && format_index == 0 && w.first_expansion == Some(0))
            || w.text.starts_with(b"-")
            || w.splits
    });
    let has_options = rest[..format_index].iter().any(|w| w.first_expansion.is_some() || w.text != b"--");
    let mut conversions = format.map_or(b"".as_slice(), |w| &w.text).split(|&b| b == b'%').skip(1);
    let may_read_number = korn
        && (format.is_some_and(|w| w.first_expansion.is_some() || w.special)
            || conversions.any(|conversion| !matches!(conversion.first(), Some(b's' | b'b' | b'c'))));
    if can_be_option || has_options || may_read_number {
        return Err(Error::refused(format!(
            "`{placeholder}` can be read by `printf` as more than text: write `printf '%s\\n' {{}}`, or see \
             `--only`"
        )));
    }
    Ok(())
}

/// Returns the checks of values in the format of `printf`, if they only have to be plain text there.
fn plain_format(name: &str, rest: &[Word], context: CommandContext) -> Option<Vec<ValueCheck>> {
    let at = rest.iter().position(|word| word.text != b"--" || word.first_expansion.is_some())?;
    let format = &rest[at];
    let is_changed = format.has_expansion || format.nested || format.special || format.one_of_several;
    let is_value = |word: &Word| word.values.first().map(|(index, _)| *index) == word.first_expansion;
    if name != "printf" || !context.accepts_plain_values || at > 1 || is_changed || !is_value(format) {
        return None;
    }
    // The words with a letter in place of each value in the format.
    let mut words = rest.to_vec();
    let mut text = format.text.clone();
    for (index, _) in format.values.iter().rev() {
        if is_in_conversion(&format.text, *index) {
            return None;
        }
        text.insert(*index, b'x');
    }
    words[at] = Word { text, ..Word::default() };
    let other = words.iter().find_map(|word| word.placeholder);
    if let Some(placeholder) = other {
        check_printf(&words, placeholder, context.kinds.meets(KORN)).ok()?;
    }
    let check = |&(index, placeholder): &(usize, Placeholder)| {
        let excluded = vec![b'%'];
        ValueCheck {
            placeholder: placeholder.text(),
            alphabet: match index {
                0 => Alphabet::Operand { excluded },
                _ => Alphabet::Text { excluded },
            },
            program: name.to_owned(),
            hint: "write `printf '%s\\n' {}`".to_owned(),
        }
    };
    Some(format.values.iter().map(check).collect())
}

/// Returns whether a value at `index` of a format would be a part of a conversion, or of an escape.
fn is_in_conversion(format: &[u8], index: usize) -> bool {
    let before = &format[..index];
    let length = before.iter().rev().take_while(|byte| b"-+ #.*'0123456789".contains(byte)).count();
    let percents = before[..index - length].iter().rev().take_while(|byte| **byte == b'%').count();
    percents % 2 == 1 || before.ends_with(b"\\")
}

fn check_test(rest: &[Word], placeholder: Placeholder, kinds: ShellSet) -> Result<(), Error> {
    let operators: &[&[u8]] = if kinds.meets(ZSH) { &[b"-v", b"-R", b"-t"] } else { &[b"-v", b"-R"] };
    let evaluates = kinds.meets(BASH | KORN);
    let can_be_operator = |w: &Word| w.first_expansion == Some(0) || may_be_operator(w, operators);
    // `[ -v 'a[$(cmd)]' ]` runs cmd in bash. Two adjacent values can be `-v` and its operand.
    let has_elements = evaluates && rest.iter().any(|word| word.array_elements);
    if has_elements || rest.windows(2).any(|pair| can_be_operator(&pair[0]) && pair[1].placeholder.is_some())
    {
        return Err(Error::refused(format!(
            "`{placeholder}` stands in `[ … ]` where it can be evaluated as a variable: put an operator \
             such as `=` before it"
        )));
    }
    if evaluates && rest.iter().any(|word| word.splits && word.placeholder.is_some()) {
        return Err(Error::refused(format!(
            "`{placeholder}` stands in `[ … ]` where it can be several words: put it in double quotes"
        )));
    }
    if kinds.meets(KORN) && rest.iter().any(may_be_comparison) {
        return Err(Error::refused(format!(
            "`{placeholder}` stands next to a comparison of numbers, which this shell evaluates: write `env \
             test {{}} …`, or see `--only`"
        )));
    }
    Ok(())
}

/// Returns whether the word is, or can become, an operator of `test` or `[[` that compares numbers:
/// `-eq`, `-{}`.
pub(crate) fn may_be_comparison(word: &Word) -> bool {
    may_be_operator(word, &[b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge"])
}

/// Returns whether the word is one of these operators, or begins like one of them before its first
/// value or expansion.
pub(crate) fn may_be_operator(word: &Word, operators: &[&[u8]]) -> bool {
    operators.iter().any(|operator| match word.first_expansion {
        None => word.text == *operator,
        Some(0) => false,
        Some(first_expansion) => operator.starts_with(&word.text[..first_expansion]),
    })
}

/// Returns whether the word at this index is an operand of a comparison of numbers.
pub(crate) fn is_compared(words: &[Word], at: usize) -> bool {
    at > 0 && is_comparison(&words[at - 1]) || words.get(at + 1).is_some_and(is_comparison)
}

/// Returns whether the word is an operator that compares numbers.
pub(crate) fn is_comparison(word: &Word) -> bool {
    word.first_expansion.is_none() && !word.special && may_be_comparison(word)
}

//! What a line does with variables: into which a value may come, and which are read as code.
//!
//! A value in a variable is as dangerous as the value itself where the shell evaluates the
//! variable. So the scanner notes each store, each copy and each evaluation by the variable's name,
//! and [`Flow::is_safe`] decides at the line's end. Nothing depends on the order of the line but
//! numbers: a variable counts as one only behind its assignment.

use std::collections::BTreeSet;

use crate::kinds::ShellSet;
use crate::posix::variables::Use;
use crate::posix::{builtins, variables};
use crate::word::Word;

/// Variables, as far as their names are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// One of them may be any variable.
    pub(crate) any: bool,
    pub(crate) names: BTreeSet<Vec<u8>>,
}

/// A command with arguments that values or expansions make up.
///
/// One of them may be `eval`, where a function runs its arguments.
#[derive(Debug, Clone)]
struct FunctionCall {
    /// The literal words; whether the command's name is none.
    words: BTreeSet<Vec<u8>>,
    unknown: bool,
    /// Whether an argument is put together; the variables that are handed over.
    made: bool,
    names: Vec<Vec<u8>>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow {
    kinds: ShellSet,
    /// Those that may hold a value.
    stores: Names,
    /// Those that are read as code.
    evaluates: Names,
    /// Those that get what others hold.
    copies: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// Those that hold a number where the line is read.
    numbers: BTreeSet<Vec<u8>>,
    /// Those that arithmetic reads, all of them numbers there.
    reckoned: BTreeSet<Vec<u8>>,
    /// Those that arithmetic reads where they are not known to be numbers.
    unknown: BTreeSet<Vec<u8>>,
    /// Those that get something else than a number.
    others: BTreeSet<Vec<u8>>,
    /// Those whose text is a command's name; whether its arguments hold values.
    commands: Vec<(Vec<u8>, bool)>,
    /// Those that get something else than the name of a program.
    unclear: BTreeSet<Vec<u8>>,
    /// The line names a variable that shells fill with arguments, or makes up names.
    pub(crate) names_filled: bool,
    /// A text with expansions, or one that is not known, becomes a prompt, which the shell expands:
    /// `$1` there is a value.
    pub(crate) expands_prompt: bool,
    /// The functions of the line, and the commands that may call them.
    functions: BTreeSet<Vec<u8>>,
    calls: Vec<FunctionCall>,
    /// A function runs its parameters as a command.
    pub(crate) runs_parameters: bool,
    /// The name of a builtin that evaluates stands among the arguments of a command.
    pub(crate) builtin_as_argument: bool,
    /// Arrays, and what builtins assign: together, bash reads `([…]=…)` in a value.
    arrays: BTreeSet<Vec<u8>>,
    declared: BTreeSet<Vec<u8>>,
}

/// The name of all positional parameters of a function.
pub(crate) const PARAMETERS: &[u8] = b"1";

impl Flow {
    pub(crate) fn new(kinds: ShellSet) -> Flow {
        Flow { kinds, ..Flow::default() }
    }

    /// Notes that a variable gets a value.
    pub(crate) fn store(&mut self, name: &[u8]) {
        self.stores.names.insert(name.to_vec());
        self.set(name);
        self.unclear.insert(name.to_vec());
    }

    /// Notes that a shell puts a value into a variable by itself: it reads no code there.
    pub(crate) fn fill(&mut self, name: &[u8]) {
        self.stores.names.insert(name.to_vec());
        self.others.insert(name.to_vec());
        self.unclear.insert(name.to_vec());
    }

    /// Notes that a variable gets what these hold, or text of the line if there are none.
    pub(crate) fn copy(&mut self, name: &[u8], from: &[Vec<u8>]) {
        self.copies.push((name.to_vec(), from.to_vec()));
        self.set(name);
        self.expands_prompt |= variables::is_prompt(name);
        self.unclear.insert(name.to_vec());
    }

    /// Notes that a variable gets a text of the line, which may name what `from` says.
    pub(crate) fn text(&mut self, name: &[u8], text: &[u8], from: &[Vec<u8>]) {
        self.copies.push((name.to_vec(), from.to_vec()));
        self.set(name);
        self.expands_prompt |= variables::is_prompt(name) && text.iter().any(|byte| b"$`".contains(byte));
        let first = text.split(|byte| b" \t\n".contains(byte)).next().unwrap_or_default();
        if builtins::can_evaluate(first, self.kinds) || builtins::is_prefix(first) {
            self.unclear.insert(name.to_vec());
        }
    }

    /// Notes a variable that gets something else than a number; some are evaluated by the shell
    /// itself.
    fn set(&mut self, name: &[u8]) {
        self.others.insert(name.to_vec());
        if variables::assigned(name, self.kinds) != Use::Text {
            self.evaluates.names.insert(name.to_vec());
        }
    }

    /// Notes that a variable that is not known gets a value.
    pub(crate) fn store_any(&mut self) {
        self.stores.any = true;
    }

    /// Notes that a variable gets a number. `surely`: whatever else the line does.
    pub(crate) fn number(&mut self, name: &[u8], surely: bool) {
        if surely {
            self.numbers.insert(name.to_vec());
        }
    }

    /// Notes that what these variables hold is read as code.
    pub(crate) fn evaluate(&mut self, names: &[Vec<u8>]) {
        self.evaluates.names.extend(names.iter().cloned());
    }

    /// Notes that what any variable holds may be read as code.
    pub(crate) fn evaluate_any(&mut self) {
        self.evaluates.any = true;
    }

    /// Notes a variable in arithmetic. What is no number there may name another variable, and that
    /// one the next.
    pub(crate) fn measure(&mut self, name: &[u8]) {
        match self.numbers.contains(name) {
            true => drop(self.reckoned.insert(name.to_vec())),
            false => drop(self.unknown.insert(name.to_vec())),
        }
    }

    /// Notes variables that are a command's name. `values`: its arguments hold placeholders.
    pub(crate) fn command(&mut self, names: &[Vec<u8>], values: bool) {
        self.commands.extend(names.iter().map(|name| (name.clone(), values)));
    }

    pub(crate) fn function(&mut self, name: &[u8]) {
        self.functions.insert(name.to_vec());
    }

    /// Notes a command. `may_be_builtin` says whether a word can become a builtin's name.
    pub(crate) fn call(&mut self, first: &Word, rest: &[Word], may_be_builtin: impl Fn(&Word) -> bool) {
        let (mut made, mut names) = (false, Vec::new());
        for word in rest.iter().filter(|word| word.gap.is_some()) {
            let apart = !word.splits && !word.odd && !may_be_builtin(word);
            let handed_on = word.is_variable() && word.names == [PARAMETERS];
            if apart || handed_on || (word.is_whole() && !word.odd) {
                continue;
            }
            made |= !word.is_variable() && (word.holds.is_some() || word.substituted || word.made);
            made |= !word.alternatives.is_empty();
            names.extend(word.names.iter().cloned());
        }
        if made || !names.is_empty() {
            let literal = |word: &&Word| word.gap.is_none() && !word.odd;
            let words = std::iter::once(first).chain(rest).filter(literal);
            let words = words.map(|word| word.text.clone()).collect();
            self.calls.push(FunctionCall { words, unknown: !literal(&first), made, names });
        }
    }

    /// Whether a function that runs its arguments may get one that is made up.
    pub(crate) fn hands_over_made_up(&self) -> bool {
        let held = self.held(&[]);
        let unclear =
            |name: &Vec<u8>| name == PARAMETERS || held.contains(name) || self.unclear.contains(name);
        self.calls.iter().any(|call| {
            (call.unknown || !call.words.is_disjoint(&self.functions))
                && (call.made || self.stores.any || call.names.iter().any(unclear))
        })
    }

    pub(crate) fn array(&mut self, name: &[u8]) {
        self.arrays.insert(name.to_vec());
    }

    pub(crate) fn declare(&mut self, name: &[u8]) {
        self.declared.insert(name.to_vec());
    }

    /// Says whether no variable that may hold a value is read as code, in a line with values.
    pub(crate) fn is_safe(&self) -> bool {
        let held = self.held(&[]);
        let holds = self.stores.any || !held.is_empty();
        // What the line sets may name any variable, also those that shells fill with arguments by
        // themselves.
        let set = |names: &BTreeSet<Vec<u8>>| !names.is_disjoint(&self.others);
        let known = self.evaluates.any || set(&self.reckoned) || set(&self.unknown);
        let any = known || !self.unknown.is_empty();
        let evaluates = any || !self.evaluates.names.is_empty();
        let filled = self.held(&variables::filled());
        !(any && holds || known && self.names_filled || self.stores.any && evaluates)
            && filled.is_disjoint(&self.evaluates.names)
            && (!holds || self.arrays.is_disjoint(&self.declared))
    }

    /// Returns a variable that the line sets, and that names a command whose arguments hold values.
    pub(crate) fn command_of_the_line(&self) -> Option<&[u8]> {
        let held = self.held(&[]);
        let set = |name: &Vec<u8>| self.unclear.contains(name) || name == PARAMETERS;
        let found = self.commands.iter().find(|(name, values)| set(name) && (*values || !held.is_empty()));
        found.map(|(name, _)| name.as_slice())
    }

    /// Returns the variables that may hold a value, by whatever way; `more` do, too.
    fn held(&self, more: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
        let mut held = self.stores.names.clone();
        held.extend(more.iter().cloned());
        loop {
            let before = held.len();
            for (name, from) in &self.copies {
                if from.iter().any(|source| held.contains(source)) {
                    held.insert(name.clone());
                }
            }
            if held.len() == before {
                return held;
            }
        }
    }
}

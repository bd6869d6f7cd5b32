//! Draws a line from the grammar, with its placeholders and the arguments that its programs must
//! get.

use std::collections::HashMap;

use super::super::Random;

/// The rules, by name.
pub(super) struct Grammar {
    rules: HashMap<&'static str, Vec<Choice>>,
}

/// One alternative of a rule.
struct Choice {
    text: &'static str,
    weight: usize,
    /// The shells that it is for. Empty means all.
    shells: Option<&'static str>,
}

impl Choice {
    fn is_for(&self, family: &str) -> bool {
        self.shells.is_none_or(|shells| shells.split(',').any(|shell| shell == family))
    }
}

impl Grammar {
    pub(super) fn new() -> Grammar {
        let mut rules: HashMap<&str, Vec<Choice>> = HashMap::new();
        let mut name = "";
        let mut words = false;
        for line in include_str!("rules.txt").lines().chain(include_str!("names.txt").lines()) {
            match line.strip_prefix("    ") {
                None if line.is_empty() || line.starts_with('#') => {}
                None => (name, words) = line.strip_suffix(" =").map_or((line, false), |name| (name, true)),
                Some(line) => {
                    let (weight, line) = match line.split_once("× ") {
                        Some((weight, line)) if !words => (weight.parse().expect("parse weight"), line),
                        _ => (1, line),
                    };
                    let (shells, line) = match line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
                        Some((shells, line)) if !shells.starts_with('(') => (Some(shells), line),
                        _ => (None, line),
                    };
                    let choice = |text| Choice { text, weight, shells };
                    let texts = rules.entry(name).or_default();
                    if words {
                        texts.extend(line.split(' ').map(choice));
                    } else {
                        texts.push(choice(line));
                    }
                }
            }
        }
        Grammar { rules }
    }

    /// Returns the names of missing rules.
    pub(super) fn missing(&self) -> Vec<&str> {
        let referred = self.rules.values().flatten().flat_map(|choice| {
            choice.text.split('«').skip(1).filter_map(|part| part.split_once('»')).map(|(name, _)| name)
        });
        let known = |name: &&str| !self.rules.contains_key(name) && !OWN.contains(name);
        referred.filter(known).collect()
    }

    fn choose(&self, name: &str, family: &str, random: &mut Random) -> Option<&'static str> {
        let choices = self.rules.get(name)?;
        // Sometimes a construct of another shell: a shell may accept more than its manual documents.
        let strange = random.below(20) == 0;
        let fits = |choice: &&Choice| strange || choice.is_for(family);
        let total: usize = choices.iter().filter(fits).map(|choice| choice.weight).sum();
        let mut left = random.below(total.max(1));
        for choice in choices.iter().filter(fits) {
            match left.checked_sub(choice.weight) {
                Some(less) => left = less,
                None => return Some(choice.text),
            }
        }
        None
    }
}

/// The built-in rules of the generator.
const OWN: [&str; 9] = ["hole", "hole-in", "value", "value-in", "probe", "name", "var", "enter", "leave"];

/// The depth from which the shortest alternative is taken.
const DEPTH_MAX: usize = 9;

/// The maximum length of a line.
const LENGTH_MAX: usize = 400;

/// A program call with known arguments.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    pub(super) written: String,
    pub(super) name: String,
    /// The parts of each word after the name.
    pub(super) words: Vec<Vec<Piece>>,
}

impl Probe {
    /// Returns whether the line still contains the call unchanged.
    pub(super) fn is_in(&self, line: &str) -> bool {
        let ends = |rest: &str| rest.chars().next().is_none_or(|c| " \n;&|<>)`".contains(c));
        line.match_indices(&self.written).any(|(at, text)| ends(&line[at + text.len()..]))
    }
}

/// A part of a word.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(&'static str),
    /// The argument with this number.
    Value(usize),
}

/// A line as it was drawn.
#[derive(Debug, Clone, Default)]
pub(super) struct Drawn {
    pub(super) line: String,
    pub(super) probes: Vec<Probe>,
}

pub(super) struct Writer<'a> {
    pub(super) grammar: &'a Grammar,
    pub(super) random: &'a mut Random,
    pub(super) family: &'a str,
    /// The number of arguments of the job.
    pub(super) count: usize,
    drawn: Drawn,
    /// The variable that holds a value.
    stored: Option<&'static str>,
    /// The current position is in the body of a function.
    function: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        grammar: &'a Grammar,
        random: &'a mut Random,
        family: &'a str,
        count: usize,
    ) -> Writer<'a> {
        Writer { grammar, random, family, count, drawn: Drawn::default(), stored: None, function: false }
    }

    pub(super) fn draw(mut self) -> Drawn {
        self.rule("line", 0);
        self.drawn
    }

    fn rule(&mut self, name: &str, depth: usize) {
        match name {
            "hole" => self.hole(false),
            "hole-in" => self.hole(true),
            "value" => self.value(false),
            "value-in" => self.value(true),
            "probe" => self.probe(),
            "name" => self.drawn.line += self.stored.unwrap_or("w"),
            "var" => {
                let name =
                    self.random.pick(&["v", "v", "v", "v", "x", "i", "REPLY", "path", "_", "M", "IFS"]);
                self.stored = Some(name);
                self.drawn.line += name;
            }
            "enter" => self.function = true,
            "leave" => self.function = false,
            _ if depth > DEPTH_MAX || self.drawn.line.len() > LENGTH_MAX => self.drawn.line.push('x'),
            _ => {
                let text = self.grammar.choose(name, self.family, self.random);
                self.text(text.unwrap_or("x"), depth);
            }
        }
    }

    fn text(&mut self, text: &str, depth: usize) {
        for (nth, part) in text.split('«').enumerate() {
            let mut rest = part;
            if nth > 0 {
                let (name, behind) = part.split_once('»').expect("find end of rule name");
                self.rule(name, depth + 1);
                rest = behind;
            }
            for c in rest.chars() {
                self.drawn.line.push(match c {
                    '␤' => '\n',
                    '␠' => ' ',
                    c => c,
                });
            }
        }
    }

    /// Writes a value, or a variable that holds one.
    fn hole(&mut self, quoted: bool) {
        let name = match (self.function, self.stored) {
            (true, _) => self.random.pick(&["1", "1", "@", "*"]),
            (false, Some(name)) if self.random.below(10) < 7 => name,
            _ => return self.value(quoted),
        };
        let brace = self.random.below(3) == 0 && name.len() > 1;
        let quotes = if quoted || self.random.below(2) == 0 { "" } else { "\"" };
        self.drawn.line +=
            &if brace { format!("{quotes}${{{name}}}{quotes}") } else { format!("{quotes}${name}{quotes}") };
    }

    /// Writes a placeholder. Outside quotes it may get quotes around it.
    fn value(&mut self, quoted: bool) {
        const FORMS: [&str; 16] = [
            "{}", "{}", "{}", "{}", "{}", "{}", "{}", "{1}", "{1}", "{.}", "{/}", "{//}", "{/.}", "{#}",
            "{%}", "{-1}",
        ];
        const AROUND: [(&str, &str); 7] =
            [("", ""), ("", ""), ("", ""), ("\"", "\""), ("'", "'"), ("a", ""), ("\"a ", "\"")];
        let form = match self.random.below(4) {
            0 if self.count > 1 => "{2}",
            _ => self.random.pick(&FORMS),
        };
        let (before, after) = if quoted { ("", "") } else { self.random.pick(&AROUND) };
        self.drawn.line += before;
        self.drawn.line += form;
        self.drawn.line += after;
    }

    /// Writes a call of a program that logs its arguments.
    fn probe(&mut self) {
        use Piece::{Text, Value};
        let name = format!("probe{}", self.drawn.probes.len());
        let mut written = format!("prog {name}");
        let mut words = Vec::new();
        // Placeholders in functions are refused.
        for _ in 0..if self.function { 0 } else { 1 + self.random.below(3) } {
            let value = self.random.below(self.count);
            let mark = if self.count > 1 { format!("{{{}}}", value + 1) } else { "{}".to_owned() };
            let (text, pieces) = match self.random.below(9) {
                0..=2 => (mark, vec![Value(value)]),
                3 => (format!("\"{mark}\""), vec![Value(value)]),
                4 => (format!("'{mark}'"), vec![Value(value)]),
                5 => (format!("a{mark}0"), vec![Text("a"), Value(value), Text("0")]),
                6 => (format!("\"a {mark}'0\""), vec![Text("a "), Value(value), Text("'0")]),
                7 => (format!("'$(x \"{mark}'"), vec![Text("$(x \""), Value(value)]),
                _ => (format!("--x={mark}"), vec![Text("--x="), Value(value)]),
            };
            written.push(' ');
            written += &text;
            words.push(pieces);
        }
        written += " end";
        words.push(vec![Text("end")]);
        self.drawn.line += &written;
        self.drawn.probes.push(Probe { written, name, words });
    }
}

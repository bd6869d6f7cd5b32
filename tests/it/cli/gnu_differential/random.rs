//! Random invocations, made of what most invocations are made of.
//!
//! 16 a run; 32 with `MINDER_LONG=1`, 2000 with `MINDER_ORACLE=full`. `MINDER_SEED` repeats a choice. What
//! fails is made smaller before it is shown.

mod piped;

use std::sync::Mutex;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::harness::{self, Implementation, Scene};

/// The number of invocations that are tried.
const TRIES: usize = 16;
const TRIES_LONG: usize = 32;
const TRIES_FULL: usize = 2000;

/// The most steps in which a failure is made smaller: each step starts GNU parallel once.
const STEPS: usize = 30;

/// The number of failures that are shown.
const SHOWN: usize = 8;

/// Returns the seed of the choice of cases.
pub(super) fn seed() -> u64 {
    let asked = std::env::var("MINDER_SEED").ok().and_then(|text| text.parse().ok());
    // Fixed by default: two runs of the tests compare the same cases.
    asked.unwrap_or(1)
}

/// Known differences, and the invocations that each of them touches, which are not compared.
pub(super) const KNOWN: &[Known] = &[
    Known {
        why: "whether a line continues is decided after its columns are trimmed",
        touches: |invocation| {
            let lists =
                invocation.words.iter().filter(|word| word.starts_with(":::") || *word == "-a").count();
            let returns = invocation.words.iter().any(|word| word.ends_with('\r'))
                || invocation.input.contains(&b'\r')
                || invocation.files.iter().any(|(_, content)| content.contains(&b'\r'));
            invocation.begins("-L") && (invocation.has("--colsep") || lists > 1 || returns)
        },
    },
    Known {
        why: "the text of the tag is not repeated",
        touches: |invocation| {
            let lists =
                invocation.words.iter().filter(|word| word.starts_with(":::") || *word == "-a").count();
            let several =
                ["-n", "-N", "-L", "-X", "-m", "--colsep"].iter().any(|flag| invocation.begins(flag));
            invocation.has("--tagstring") && (lists > 1 || several)
        },
    },
    Known {
        why: "Inside single quotes a value is unchanged",
        touches: |invocation| invocation.is_quoted && !invocation.is_plain,
    },
    Known {
        why: "`:::+` links with `-a`, too",
        touches: |invocation| {
            let links = |word: &String| word.starts_with(":::") && word.ends_with('+');
            invocation.has("-a") && invocation.words.iter().any(links)
        },
    },
    Known {
        why: "where a record has several columns, a line may be a little longer",
        touches: |invocation| {
            let sources =
                invocation.words.iter().filter(|word| word.starts_with(":::") || *word == "-a").count();
            invocation.has("-s") && (sources > 1 || invocation.has("--colsep"))
        },
    },
    Known {
        why: "with `--pipe-part`, blocks may end elsewhere, but always between records",
        touches: |invocation| invocation.has("--pipe-part") && invocation.has("--regexp"),
    },
    Known {
        why: "The same applies with `-a`",
        touches: |invocation| invocation.has_empty && invocation.has("-a"),
    },
    Known {
        why: "with `-q`, and where the shell takes exactly one word",
        touches: |invocation| {
            invocation.has("-q")
                && invocation.words.iter().any(|word| word.contains("{2") || word.contains("{3"))
        },
    },
    Known { why: "other control characters are written by", touches: |it| it.is_shown() && it.has_control },
    Known { why: "a printed line has fewer quotes", touches: |it| it.is_shown() && it.has("-q") },
    Known { why: "or the delimiter of `-d`", touches: |invocation| invocation.has_end },
    Known {
        why: "the text of the tag is not repeated",
        touches: |invocation| {
            let many = ["-n2", "-n3", "-N1", "-N2", "-N3", "-L2", "-X", "-m", "--xargs"];
            invocation.has("<{}>") && many.iter().any(|amount| invocation.has(amount))
        },
    },
    Known {
        why: "blank lines of a block reach the job",
        touches: |invocation| {
            let input = &invocation.input;
            let behind = &input[input.trim_ascii_end().len()..];
            let blank = input.trim_ascii_start().len() < input.len()
                || !matches!(behind, b"" | b"\n")
                || input.windows(2).any(|pair| pair == b"\n\n");
            invocation.has("--pipe") && invocation.has("-r") && blank && !input.trim_ascii().is_empty()
        },
    },
    Known {
        why: "a record that consists of its end only gives no job, even with `--header`",
        touches: |invocation| invocation.has("--rrs") && invocation.has("--header"),
    },
    Known {
        why: "Blank lines do not count",
        touches: |invocation| {
            (invocation.has_blank || invocation.has_empty || invocation.has("--trim"))
                && (invocation.has("-L1") || invocation.has("-L2"))
        },
    },
    Known {
        why: "it gives each job that many lines",
        touches: |invocation| {
            let has = |name| invocation.has(name);
            has("--pipe") && (has("-L1") || has("-L2")) && !has("-N2")
        },
    },
    Known {
        why: "An option that would have no effect is refused",
        touches: |invocation| invocation.has("--pipe-part") && invocation.has("--rrs"),
    },
    Known { why: "an empty record counts as a record", touches: piped::has_bare_record },
];

/// A difference that is meant.
pub(super) struct Known {
    pub(super) why: &'static str,
    touches: fn(&Invocation) -> bool,
}

/// A command line with all that it reads.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    words: Vec<String>,
    input: Vec<u8>,
    files: Vec<(String, Vec<u8>)>,
    /// `true` if a placeholder stands in quotes of the shell.
    is_quoted: bool,
    /// `true` if a shell takes all values as they are.
    is_plain: bool,
    /// `true` if a value is whitespace only.
    has_blank: bool,
    /// `true` if a source has no value.
    has_empty: bool,
    /// `true` if a value has a control character.
    has_control: bool,
    /// `true` if a value that is a word contains a separator of the input's values.
    has_end: bool,
    /// `true` if the order of lines is left open.
    is_sorted: bool,
}

/// A source of values.
#[derive(Clone, Debug)]
struct Source {
    kind: Kind,
    is_linked: bool,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Input,
    Words,
    File,
    Option,
}

/// The division of the input into records and columns.
#[derive(Clone, Debug)]
struct Cut {
    /// The flags, and the separator of records.
    records: (&'static [&'static str], &'static str),
    columns: Option<&'static str>,
    trim: Option<&'static str>,
    has_header: bool,
    has_last_end: bool,
}

/// Parts of values. What a shell might mistake is more frequent than in life.
const PARTS: &[&str] = &[
    "a", "b", "x.y", "d/e.f", "/g", "1", "23", ",", " ", "  ", "\t", "'", "\"", "$HOME", "$(a)", "`", "\\",
    "*", "?", "~", "#", "!", ";", "&", "|", "<", ">", "(", ")", "{}", "{1}", "{", "}", "%", "^", "=", "[a]",
    "ä", "€", "日本", "-", "--", "\r", ":", "@", "+",
];

/// Words of the template.
const TEMPLATES: &[&str] = &[
    "{}",
    "{.}",
    "{/}",
    "{//}",
    "{/.}",
    "{1}",
    "{2}=",
    "{3}=",
    "{-1}",
    "{1.}",
    "{2/}=",
    "{1//}",
    "{-1/.}",
    "{#}",
    "x{}y",
    "{}{}",
    "{1}{2}",
    "p{.}q{/}",
    "x{2}",
    "'{}'",
    "'a {1} b'",
    "'{/}'",
    "text",
    "'a  b'",
    "{name}",
    "{",
];

/// Options that leave the number of jobs and values alone.
const MANNERS: &[&[&str]] = &[
    &["-k"],
    &["-k", "-j3"],
    &["-j1"],
    &["-j1", "-u"],
    &["-j1", "--lb"],
    &["-k", "-j2", "--lb"],
    &["-k", "--group", "-j2"],
    &["-j3"],
    &["-k", "--tag"],
    &["-k", "--tagstring", "<{}>"],
    // Of `{#}` in a tag GNU parallel makes one thing or another.
    &["-k", "--tagstring", "{1}:"],
    &["-j1", "--lb", "--tag"],
    &["-k", "-v"],
    &["-k", "--dry-run"],
    &["-k", "--plus"],
];

/// Options for the number of values of a job.
const AMOUNTS: &[&[&str]] = &[
    &[],
    &[],
    &[],
    &["-n2"],
    &["-n1"],
    &["-N2"],
    &["-N3"],
    &["-N1"],
    &["-L1"],
    &["-L2"],
    &["-j1", "-X"],
    &["-j1", "-m"],
    &["-j1", "--xargs"],
    &["-j1", "-X", "-s", "200"],
    &["-j1", "-m", "-s", "150"],
    &["-j1", "-X", "-n3"],
    &["-j1", "-m", "-n2"],
];

fn value() -> impl Strategy<Value = String> {
    let plain = prop::collection::vec(prop::sample::select(&PARTS[..7]), 1..3);
    let any = prop::collection::vec(prop::sample::select(PARTS), 0..5);
    prop_oneof![2 => plain, 3 => any].prop_map(|parts| parts.concat())
}

fn source() -> impl Strategy<Value = Source> {
    let kinds = vec![Kind::Words, Kind::Input, Kind::File, Kind::Option];
    (prop::sample::select(kinds), any::<bool>(), prop::collection::vec(value(), 0..5))
        .prop_map(|(kind, is_linked, values)| Source { kind, is_linked, values })
}

fn cut() -> impl Strategy<Value = Cut> {
    let records: Vec<(&[&str], &str)> = vec![
        (&[], "\n"),
        (&[], "\n"),
        (&[], "\n"),
        (&["-0"], "\0"),
        (&["-d", ","], ","),
        (&["--delimiter", ";"], ";"),
        (&["-d", r"\t"], "\t"),
    ];
    let columns = vec![",", r"\s+", " ", "[.,/]", r"\t"];
    let trims = vec!["n", "l", "r", "lr", "rl"];
    (
        prop::sample::select(records),
        prop::option::weighted(0.25, prop::sample::select(columns)),
        prop::option::weighted(0.15, prop::sample::select(trims)),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(records, columns, trim, has_header, has_last_end)| Cut {
            records,
            columns,
            trim,
            has_header,
            has_last_end,
        })
}

/// -r, -q, --link.
type Switches = [bool; 3];

fn switches() -> impl Strategy<Value = Switches> {
    (prop::bool::weighted(0.15), prop::bool::weighted(0.15), prop::bool::weighted(0.15)).prop_map(Into::into)
}

fn invocation() -> impl Strategy<Value = Invocation> {
    let manners = (prop::sample::select(MANNERS), prop::sample::select(AMOUNTS), switches());
    let words = prop::collection::vec(prop::sample::select(TEMPLATES), 0..4);
    (prop::collection::vec(source(), 1..4), cut(), manners, words, any::<bool>())
        .prop_map(|(sources, cut, manners, words, is_echo)| build(sources, &cut, manners, &words, is_echo))
}

type Manners = (&'static [&'static str], &'static [&'static str], Switches);

/// Makes a command line of all this.
fn build(sources: Vec<Source>, cut: &Cut, manners: Manners, template: &[&str], is_echo: bool) -> Invocation {
    let (manner, amount, [skip_empty, quote, link]) = manners;
    let mut words: Vec<String> =
        [manner, amount, cut.records.0].concat().into_iter().map(str::to_owned).collect();
    let mut add = |more: &[&str]| words.extend(more.iter().map(|&word| word.to_owned()));
    [(skip_empty, "-r"), (quote, "-q"), (link, "--link")]
        .iter()
        .filter(|(wanted, _)| *wanted)
        .for_each(|(_, word)| add(&[word]));
    cut.columns.iter().for_each(|columns| add(&["--colsep", columns]));
    cut.trim.iter().for_each(|trim| add(&["--trim", trim]));
    if cut.has_header {
        add(&["--header", ":"]);
    }
    let mut invocation = Invocation {
        words,
        input: Vec::new(),
        files: Vec::new(),
        is_quoted: !quote && template.iter().any(|word| word.contains('\'') && word.contains('{')),
        is_plain: sources.iter().flat_map(|source| &source.values).all(|value| is_plain(value)),
        has_empty: sources.iter().any(|source| source.values.is_empty()),
        has_control: sources
            .iter()
            .flat_map(|source| &source.values)
            .any(|value| value.contains(['\t', '\r'])),
        has_end: sources
            .iter()
            .filter(|source| source.kind == Kind::Words)
            .any(|source| source.values.iter().any(|value| value.contains(cut.records.1))),
        has_blank: sources.iter().flat_map(|source| &source.values).any(|value| value.trim().is_empty()),
        is_sorted: manner == ["-j3"],
    };
    let command: &[&str] = match (is_echo, quote) {
        (true, _) => &["echo"],
        (false, true) => &["printf", "[%s]\\n"],
        (false, false) => &["printf '[%s]\\n'"],
    };
    let template = [command, template].concat();
    invocation.place(sources, cut, &template);
    invocation
}

/// Returns whether a value needs no quotes in a shell.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./,_-".contains(&byte))
}

impl Invocation {
    /// Returns whether an argument begins with this flag.
    fn begins(&self, flag: &str) -> bool {
        self.words.iter().any(|other| other.starts_with(flag))
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }

    /// Returns whether the command is printed.
    fn is_shown(&self) -> bool {
        self.has("-v") || self.has("--dry-run")
    }

    /// Adds the sources: those of options before the command, the others after it.
    fn place(&mut self, mut sources: Vec<Source>, cut: &Cut, template: &[&str]) {
        // Standard input is read if it is the only source, or if `-` names it. At most one source reads it.
        let mut has_input = sources.len() == 1 && sources[0].kind == Kind::Input;
        let is_whole = has_input;
        let mut behind = Vec::new();
        sources.sort_by_key(|source| source.kind != Kind::Option);
        for (at, source) in sources.into_iter().enumerate() {
            let bytes = source.bytes(cut);
            let plus = if source.is_linked && at > 0 && source.kind != Kind::Option { "+" } else { "" };
            match source.kind {
                Kind::Input if is_whole => self.input = bytes,
                Kind::Input if !has_input => {
                    has_input = true;
                    self.input = bytes;
                    behind.extend([format!("::::{plus}"), "-".to_owned()]);
                }
                Kind::Option | Kind::File | Kind::Input => {
                    let name = format!("file{at}");
                    self.files.push((name.clone(), bytes));
                    if source.kind == Kind::Option {
                        self.words.extend(["-a".to_owned(), name]);
                    } else {
                        behind.extend([format!("::::{plus}"), name]);
                    }
                }
                Kind::Words => {
                    behind.push(format!(":::{plus}"));
                    behind.extend(source.head(cut));
                    behind.extend(source.values);
                }
            }
        }
        self.words.extend(template.iter().map(|&word| word.to_owned()));
        self.words.extend(behind);
    }

    /// Both results, where they differ.
    fn differs(&self, right: Implementation) -> Option<String> {
        if KNOWN.iter().any(|known| (known.touches)(self)) {
            return None;
        }
        let scene = Scene::new();
        let run = |implementation| {
            scene.place(&self.files);
            let (status, out, err) = scene.run_words(implementation, &self.words, &self.input);
            let out = String::from_utf8_lossy(&out).into_owned();
            ((status, if self.is_sorted { harness::sorted(&out) } else { out }), err)
        };
        let (theirs, errors) = run(Implementation::Gnu);
        if harness::has_broken(&errors) {
            return None;
        }
        let (ours, _) = run(right);
        if std::env::var_os("MINDER_ORACLE_SHOW").is_some() {
            eprintln!("=== parallel {:?}\n  {theirs:?}", self.words);
        }
        (theirs != ours).then(|| {
            let files: String = self
                .files
                .iter()
                .map(|(name, content)| format!("  {name}: {:?}\n", String::from_utf8_lossy(content)))
                .collect();
            let input = String::from_utf8_lossy(&self.input);
            format!(
                "=== parallel {:?}\n  input: {input:?}\n{files}  GNU  {theirs:?}\n  ours {ours:?}\n",
                self.words
            )
        })
    }
}

impl Source {
    /// Returns the name of the column, if the first value is a header.
    fn head(&self, cut: &Cut) -> Option<String> {
        cut.has_header.then(|| "name".to_owned())
    }

    fn bytes(&self, cut: &Cut) -> Vec<u8> {
        let end = cut.records.1;
        let values: Vec<String> = self.head(cut).into_iter().chain(self.values.iter().cloned()).collect();
        let mut text = values.join(end);
        if cut.has_last_end && !values.is_empty() {
            text += end;
        }
        text.into_bytes()
    }
}

#[test]
fn random_invocations_match() {
    try_them(&invocation(), Implementation::Ours);
}

#[test]
fn random_piped_inputs_match() {
    try_them(&piped::invocation(), Implementation::Ours);
}

/// Returns whether the generator is any good: GNU parallel itself must give one result.
#[test]
#[ignore = "a check of the generator, not of us"]
fn gnu_parallel_agrees_with_itself_on_random_invocations() {
    try_them(&invocation(), Implementation::Gnu);
    try_them(&piped::invocation(), Implementation::Gnu);
}

/// Tries as many as asked for, on a few threads; what fails is made smaller.
fn try_them(strategy: &(impl Strategy<Value = Invocation> + Sync), right: Implementation) {
    if !super::is_there() {
        return;
    }
    let tries = match (crate::support::is_full(), crate::support::is_long()) {
        (true, _) => TRIES_FULL,
        (_, true) => TRIES_LONG,
        _ => TRIES,
    };
    let seed = seed();
    eprintln!("MINDER_SEED={seed}");
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..super::AT_ONCE {
            let faults = &faults;
            scope.spawn(move || {
                let mut bytes = [worker as u8; 32];
                bytes[..8].copy_from_slice(&seed.to_le_bytes());
                let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
                let mut runner = TestRunner::new_with_rng(Config::default(), rng);
                for _ in 0..tries / super::AT_ONCE {
                    if faults.lock().expect("lock list of faults").len() >= SHOWN {
                        return;
                    }
                    let tree = strategy.new_tree(&mut runner).expect("draw invocation");
                    if let Some(fault) = smallest(tree, right) {
                        // At once: a long run may be cut off.
                        eprintln!("{fault}");
                        faults.lock().expect("lock list of faults").push(fault);
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().expect("lock is not poisoned");
    assert!(faults.is_empty(), "{} differ", faults.len());
}

/// Simplifies a failing invocation and returns the smallest failure, or `None` if it does not fail.
fn smallest(mut tree: impl ValueTree<Value = Invocation>, right: Implementation) -> Option<String> {
    let mut fault = tree.current().differs(right)?;
    let mut moved = tree.simplify();
    for _ in 0..STEPS {
        if !moved {
            break;
        }
        match tree.current().differs(right) {
            Some(smaller) => {
                fault = smaller;
                moved = tree.simplify();
            }
            None => moved = tree.complicate(),
        }
    }
    Some(fault)
}

//! Jobs with any number of arguments, chosen placeholders, and words repeated for each value.

use super::*;
use minder_template::{PlaceholderKind, PlaceholderSet, Repeat};

/// Returns all shells of this machine that minder accepts.
fn all_shells() -> Vec<OsString> {
    let mut shells = shells();
    let more = ["/bin/dash", "/bin/zsh", "/bin/mksh", "/bin/ksh", "/usr/bin/ksh93"];
    shells.extend(more.iter().filter(|path| Path::new(path).exists()).map(OsString::from));
    shells
}

/// Spellings of `{}`. The first is the usual one.
const MARKS: [&str; 8] = ["{}", "FILE", "@", ",,", "{x}", "é", "[]", "="];

/// A part of a word, with its text and its meaning.
enum Part {
    Text(&'static str, &'static str),
    /// A placeholder in these quotes, `"` or `'` or none.
    Value(&'static str, Which),
    /// `"$(printf '<%s>' …)"` around the placeholder for each argument.
    Inner,
}

#[derive(Clone, Copy)]
enum Which {
    Each,
    First,
    Last,
    Number,
}

struct Model<'a> {
    mark: &'static str,
    repeat: Repeat,
    values: &'a [Vec<u8>],
}

impl Model<'_> {
    fn written(&self, word: &[Part]) -> String {
        let mark = |which: &Which| match which {
            Which::Each => self.mark,
            Which::First => "{1}",
            Which::Last => "{-1}",
            Which::Number => "{#}",
        };
        let part = |part: &Part| match part {
            Part::Text(written, _) => (*written).to_owned(),
            Part::Value(quote, which) => format!("{quote}{}{quote}", mark(which)),
            Part::Inner => format!("\"$(printf '<%s>' {})\"", self.mark),
        };
        word.iter().map(part).collect()
    }

    /// Returns the words that a word of the template becomes.
    fn meant(&self, word: &[Part]) -> Vec<Vec<u8>> {
        let repeats = word.iter().any(|part| matches!(part, Part::Value(_, Which::Each)));
        let count = self.values.len();
        if self.repeat == Repeat::Context && repeats && count > 0 {
            return (0..count).flat_map(|nth| self.joined(word, &self.values[nth..nth + 1])).collect();
        }
        self.joined(word, self.values)
    }

    fn joined(&self, word: &[Part], values: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        let mut now: Vec<u8> = Vec::new();
        for part in word {
            match part {
                Part::Text(_, meant) => now.extend_from_slice(meant.as_bytes()),
                Part::Value("", Which::Each) => {
                    for (nth, value) in values.iter().enumerate() {
                        if nth > 0 {
                            words.push(std::mem::take(&mut now));
                        }
                        now.extend_from_slice(value);
                    }
                }
                Part::Value(_, Which::Each) => now.extend(values.join(&b' ')),
                Part::Value(_, Which::First) => now.extend(self.values.first().into_iter().flatten()),
                Part::Value(_, Which::Last) => now.extend(self.values.last().into_iter().flatten()),
                Part::Value(_, Which::Number) => now.extend_from_slice(b"1"),
                Part::Inner if values.is_empty() => now.extend_from_slice(b"<>"),
                Part::Inner => now.extend(values.iter().flat_map(|value| [b"<", &value[..], b">"].concat())),
            }
        }
        if !(values.is_empty() && matches!(word, [Part::Value("", Which::Each)])) {
            words.push(now);
        }
        words
    }
}

fn word(random: &mut Random) -> Vec<Part> {
    const TEXTS: [(&str, &str); 12] = [
        ("a", "a"),
        ("0", "0"),
        ("\\'", "'"),
        ("\\$", "$"),
        ("' $(x \"'", " $(x \""),
        ("\"; ' \\\" \\$x\"", "; ' \" $x"),
        ("''", ""),
        ("\"$UNSET_V\"", ""),
        ("'\n'", "\n"),
        ("+", "+"),
        ("\\\\", "\\"),
        ("\"`:`\"", ""),
    ];
    let part = |random: &mut Random| match random.below(9) {
        0..=2 => {
            let (written, meant) = random.pick(&TEXTS);
            Part::Text(written, meant)
        }
        3 => Part::Inner,
        4 => Part::Value(
            random.pick(&["", "'", "\""]),
            random.pick(&[Which::First, Which::Last, Which::Number]),
        ),
        _ => Part::Value(random.pick(&["", "'", "\""]), Which::Each),
    };
    (0..1 + random.below(4)).map(|_| part(random)).collect()
}

#[test]
fn several_arguments_are_exact_and_never_run() {
    let place = Place::new();
    let hostile = hostile(&place.canary());
    let mut random = Random(7);
    for (i, shell) in all_shells().iter().enumerate() {
        let rounds = if i == 0 { 400 } else { 150 };
        for round in 0..if crate::support::is_long() { rounds } else { rounds / 2 } {
            let count = random.pick(&[0, 1, 2, 2, 3, 5, 12]);
            let values: Vec<Vec<u8>> = (0..count).map(|_| value(&mut random, &hostile)).collect();
            let repeat = random.pick(&[Repeat::Joined, Repeat::Context]);
            let model = Model { mark: random.pick(&MARKS), repeat, values: &values };
            let mut line = String::new();
            let mut expected = Vec::new();
            for _ in 0..1 + random.below(4) {
                line +=
                    random.pick(&["printf '%s\\0' a", "for i in a", "f() { printf '%s\\0' \"$@\"; }; f a"]);
                let for_loop = line.ends_with("in a");
                expected.extend_from_slice(b"a\0");
                for _ in 0..1 + random.below(3) {
                    let word = word(&mut random);
                    line += " ";
                    line += &model.written(&word);
                    expected.extend(model.meant(&word).into_iter().flat_map(|word| [word, vec![0]].concat()));
                }
                line += if for_loop { "; do printf '%s\\0' \"$i\"; done\n" } else { " # it's\n" };
            }
            let placeholders = PlaceholderSet::default().replace(PlaceholderKind::Value, model.mark).unwrap();
            let options =
                Options { placeholders, repeat, missing_is_empty: true, append: false, ..with_shell(shell) };
            let context = format!("{}, round {round}, {repeat:?}, {count}:\n{line}", shell.display());
            let template = match Template::parse(&[OsString::from(&line)], &options) {
                Ok(template) => template,
                // A line may have none of the marks, or use one of the shell's own.
                Err(error) if model.mark == "=" || model.mark == "@" => {
                    assert_eq!(error.kind(), ErrorKind::Refused, "{context}: {error}");
                    continue;
                }
                Err(error) => panic!("{context}: {error}"),
            };
            let columns: Vec<OsString> = values.iter().cloned().map(OsString::from_vec).collect();
            let argv = template.argv(&Job { columns: &columns, ..Job::default() }).unwrap();
            let size: usize = argv.iter().map(|word| word.len() + 1).sum();
            assert!(size <= template.size_of(&columns), "{context}");
            if let Err(why) = check(&place, &argv, &expected) {
                panic!("{context}: {why}\n--- became\n{}\n{columns:?}", argv[2].display());
            }
        }
    }
}

#[test]
fn line_depends_only_on_number_of_arguments() {
    let hostile = hostile("CANARY");
    let mut random = Random(8);
    for _ in 0..2_000 {
        let model = Model {
            mark: random.pick(&MARKS[..5]),
            repeat: random.pick(&[Repeat::Joined, Repeat::Context]),
            values: &[],
        };
        let line = format!("x {} {}", model.written(&word(&mut random)), model.written(&word(&mut random)));
        let placeholders =
            PlaceholderSet::default().replace(PlaceholderKind::Value, model.mark).unwrap().plus(true);
        let options =
            Options { placeholders, repeat: model.repeat, missing_is_empty: true, ..Options::default() };
        let Ok(template) = Template::parse(&[line.clone().into()], &options) else { continue };
        let count = random.below(6);
        let lines = [0, 1, 2].map(|_| {
            let columns: Vec<OsString> =
                (0..count).map(|_| OsString::from_vec(value(&mut random, &hostile))).collect();
            template.argv(&Job { columns: &columns, ..Job::default() }).map(|argv| argv[2].clone())
        });
        assert!(lines.iter().all(|other| *other == lines[0]), "{line}: {lines:?}");
    }
}

/// Everything that could evaluate an argument, with several arguments.
#[test]
fn accepted_line_never_runs_one_of_several_values() {
    let place = Place::new();
    let canary = place.canary();
    let values = [
        "a[$(touch C)]",
        "-va[$(touch C)]",
        "$(touch C)",
        "1;touch C",
        "v",
        "a[$(touch C)]",
        "eq",
        "a[$(touch C)]",
    ];
    let values = values.map(|value| OsString::from(value.replace('C', &canary)));
    // What a value and the next one make together: an operator and its operand, an option and its
    // argument.
    let pairs = [
        "[ -{} ]",
        "[ -{} -a x ]",
        "test -{}",
        "[ x -{} ]",
        "printf -{}",
        "declare -{}",
        "wait -{}",
        "cd -{}",
        "kill -{}",
    ];
    let lines = applied().chain(whole().chain(pairs).map(str::to_owned));
    let lines: Vec<String> = lines.collect();
    // Without MINDER_LONG=1, every line is tried in every shell in one of the two ways.
    let is_long = crate::support::is_long();
    for (at, line) in lines.iter().enumerate() {
        for (nth, shell) in shells().into_iter().enumerate() {
            let mark = MARKS[at % 4];
            let ways = [Repeat::Joined, Repeat::Context].into_iter().enumerate();
            for (_, repeat) in ways.filter(|(way, _)| is_long || (at / 4 + nth + way).is_multiple_of(2)) {
                let placeholders = PlaceholderSet::default().replace(PlaceholderKind::Value, mark).unwrap();
                let options = Options { placeholders, repeat, ..with_shell(&shell) };
                let Ok(template) = Template::parse(&[line.replace("{}", mark).into()], &options) else {
                    continue;
                };
                for columns in [&values[..2], &values[1..4], &values[4..6], &values[6..]] {
                    let Ok(argv) = template.argv(&Job { columns, ..Job::default() }) else { continue };
                    if let Err(why) = place.run(&argv) {
                        panic!("{}, {repeat:?}: {line}: {why}: {}", shell.display(), argv[2].display());
                    }
                }
            }
        }
    }
}

/// Random tokens with several values, each text of a placeholder, and both ways to repeat.
#[test]
fn token_soup_never_runs_one_of_several_values() {
    let place = Place::new();
    let canary = place.canary();
    let values = [
        "$(touch C)",
        "a[$(touch C)]",
        "';touch C;'",
        "\";touch C;\"",
        "`touch C`",
        ")`touch C`(",
        "};touch C;{",
    ];
    let values = values.map(|value| OsString::from(value.replace('C', &canary)));
    let tokens: Vec<&str> = SOUP.split(' ').collect();
    for (i, shell) in shells().iter().enumerate() {
        let wanted = crate::support::cases("MINDER_SOUP", 60, 400);
        let mut accepted = 0;
        let mut seed = i as u64 * 1_000_000_000;
        while accepted < wanted {
            seed += 1;
            let mut random = Random(seed);
            let mark = random
                .pick(&["{}", "FILE", "@", "x", "e", "%", "=", "?", "i", "-", "~", "*", "!", ":", "[", "]"]);
            let mut line = format!("echo {mark} ");
            for _ in 0..2 + random.below(9) {
                line += &random.pick(&tokens).replace("{}", mark).replace('␣', " ").replace('␤', "\n");
            }
            let placeholders = PlaceholderSet::default().replace(PlaceholderKind::Value, mark).unwrap();
            let repeat = random.pick(&[Repeat::Joined, Repeat::Context]);
            let options = Options { placeholders, repeat, ..with_shell(shell) };
            let Ok(template) = Template::parse(&[OsString::from(&line)], &options) else {
                continue;
            };
            let from = random.below(4);
            let columns = &values[from..from + random.pick(&[0, 1, 2, 3])];
            let Ok(argv) = template.argv(&Job { columns, ..Job::default() }) else { continue };
            accepted += 1;
            if let Err(why) = place.run(&argv) {
                panic!("{}, seed {seed}, {mark}: {line}: {why}\n{}", shell.display(), argv[2].display());
            }
        }
    }
}

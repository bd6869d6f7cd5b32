//! The commands that read an argument as a program: where a placeholder in it would be code.
//!
//! The rule: a place is refused when it is code whatever the value is. Shells and languages with `-c` or
//! `-e`, programs whose first operand is a program (awk, sed), programs that hand words to another shell
//! (ssh, watch), and the builtins of bash and the Korn shells that evaluate an argument or a variable's name.
//! A value that happens to look like an option is not this module's subject.

use super::{Error, Placeholder};

/// One word of a simple command, as far as it is known before it runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    /// What is literal in it, quotes removed; values and expansions are left out.
    pub(super) text: Vec<u8>,
    /// Where in `text` the first value or expansion stands.
    pub(super) gap: Option<usize>,
    /// The first placeholder in it, nested ones included.
    pub(super) holds: Option<Placeholder>,
    /// A placeholder stands in a substitution in it.
    pub(super) nested: bool,
    /// It has an expansion.
    pub(super) dynamic: bool,
    /// One of its placeholders stands for each argument, not counting nested ones.
    pub(super) repeats: bool,
    /// It is one of the words that one word of the template stands for.
    pub(super) several: bool,
}

impl Word {
    /// Notes a placeholder at this point.
    pub(super) fn value(&mut self, placeholder: Placeholder) {
        self.holds.get_or_insert(placeholder);
        self.gap.get_or_insert(self.text.len());
        self.repeats |= placeholder.repeats();
    }

    /// Notes a placeholder in a substitution at this point.
    pub(super) fn nested(&mut self, placeholder: Placeholder) {
        self.holds.get_or_insert(placeholder);
        self.gap.get_or_insert(self.text.len());
        self.nested = true;
    }

    /// Notes a placeholder for each of `count` arguments: what ends before the last one goes to `words`.
    pub(super) fn values(&mut self, placeholder: Placeholder, count: usize, words: &mut Vec<Word>) {
        for nth in 0..count {
            if nth > 0 {
                words.push(std::mem::take(self));
            }
            self.value(placeholder);
            self.several |= count > 1;
        }
    }

    /// The word as one of several.
    pub(super) fn among_several(self) -> Word {
        Word { several: true, ..self }
    }

    /// Notes an expansion at this point.
    pub(super) fn expansion(&mut self) {
        self.dynamic = true;
        self.gap.get_or_insert(self.text.len());
    }

    /// The word as if its expansions were placeholders.
    pub(super) fn as_if_a_value(&self) -> Word {
        let holds = self.holds.or(self.dynamic.then_some(Placeholder::VALUE));
        Word { holds, ..self.clone() }
    }

    /// The literal start of the word.
    fn start(&self) -> &[u8] {
        &self.text[..self.gap.unwrap_or(self.text.len())]
    }

    fn is_option(&self) -> bool {
        self.start().starts_with(b"-") && (self.text.len() > 1 || self.gap.is_some())
    }

    fn is_whole(&self) -> bool {
        self.text.is_empty() && !self.dynamic && !self.nested
    }
}

/// Where a program keeps its program text.
#[derive(Debug, Clone, Copy)]
enum Code {
    /// A shell: the first operand after an option with `c`.
    Shell,
    /// In or after one of these options. `takes`: options with an argument. `anywhere`: also after operands.
    Option { letters: &'static [u8], long: &'static [&'static str], takes: &'static [u8], anywhere: bool },
    /// The first operand, unless an option `e` gave one or `f` names a file.
    Operand { takes: &'static [u8] },
    /// Everything after the first operand.
    Remote { takes: &'static [u8] },
    /// Every word.
    All,
}

const fn option(letters: &'static [u8], takes: &'static [u8]) -> Code {
    Code::Option { letters, long: &[], takes, anywhere: false }
}

const fn anywhere(letters: &'static [u8], long: &'static [&'static str]) -> Code {
    Code::Option { letters, long, takes: b"", anywhere: true }
}

/// Names without version digits (`python3.11` is `python`).
const PROGRAMS: &[(&[&str], Code)] = &[
    (
        &["sh", "bash", "rbash", "dash", "ash", "ksh", "mksh", "oksh", "lksh", "pdksh", "zsh", "yash"],
        Code::Shell,
    ),
    (&["fish", "csh", "tcsh", "rc", "es", "elvish", "nu", "xonsh"], Code::Shell),
    (&["python", "pypy"], option(b"c", b"mWXQ")),
    (&["perl"], option(b"eE", b"I")),
    (&["ruby", "jruby", "truffleruby"], option(b"e", b"IrCEW")),
    (&["php"], option(b"rRBE", b"cdztSf")),
    (&["lua", "luajit", "texlua"], option(b"e", b"l")),
    (
        &["node", "nodejs", "bun"],
        Code::Option { letters: b"ep", long: &["eval", "print"], takes: b"rC", anywhere: false },
    ),
    (&["R", "Rscript", "julia", "elixir", "groovy", "ghc"], anywhere(b"eE", &[])),
    (&["guile", "racket"], anywhere(b"ce", &[])),
    (&["emacs", "emacsclient"], anywhere(b"", &["eval", "execute"])),
    (&["vi", "vim", "nvim", "ex", "view"], anywhere(b"c", &["cmd"])),
    (&["psql"], anywhere(b"c", &["command"])),
    (&["mysql", "mariadb"], anywhere(b"e", &["execute"])),
    (&["su", "runuser", "script", "flock", "sg"], anywhere(b"c", &["command"])),
    (&["nix-shell"], anywhere(b"", &["run", "command"])),
    (&["env"], Code::Option { letters: b"S", long: &["split-string"], takes: b"uC", anywhere: false }),
    (&["rsync"], anywhere(b"e", &["rsh", "rsync-path"])),
    (&["tar"], anywhere(b"", &["to-command", "use-compress-program", "checkpoint-action"])),
    (&["awk", "gawk", "mawk", "nawk", "original-awk"], Code::Operand { takes: b"Fv" }),
    (&["sed", "gsed", "ssed"], Code::Operand { takes: b"l" }),
    (&["ssh", "autossh", "rsh", "slogin"], Code::Remote { takes: b"BbcDEeFIiJLlmOopPQRSWw" }),
    (&["watch", "parallel", "cmd", "powershell", "pwsh", "eval"], Code::All),
];

/// Commands that run the command in their own arguments; whatever follows them may be a program's name.
const WRAPPERS: &[&str] = &[
    "-",
    "!",
    "[",
    "builtin",
    "busybox",
    "bwrap",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "docker",
    "doas",
    "entr",
    "env",
    "exec",
    "fakeroot",
    "fd",
    "fdfind",
    "find",
    "firejail",
    "flock",
    "gdb",
    "ionice",
    "kubectl",
    "ltrace",
    "lxc",
    "mosh",
    "nice",
    "nocorrect",
    "noglob",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "podman",
    "proot",
    "rlwrap",
    "runuser",
    "screen",
    "script",
    "setpriv",
    "setsid",
    "srun",
    "ssh",
    "sshpass",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "tmux",
    "toybox",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "xargs",
    "xvfb-run",
    "yes",
];

/// Checks a command whose words reach programs only. Returns whether one of them gets an expansion as code.
pub(super) fn check_programs(words: &[Word]) -> Result<bool, Error> {
    let Some(first) = words.first() else {
        return Ok(false);
    };
    let wrapped = WRAPPERS.contains(&name(first).as_str()) || first.is_option() || first.gap.is_some();
    let mut expands = false;
    for (at, word) in words.iter().enumerate() {
        let program = name(word);
        let Some((_, code)) = PROGRAMS.iter().find(|(names, _)| names.contains(&program.as_str())) else {
            continue;
        };
        let rest = &words[at + 1..];
        // Behind an unknown program only the unmistakable is taken for a command: `sh -c`, `perl -e`.
        if at == 0
            || wrapped
            || (matches!(code, Code::Shell | Code::Option { .. }) && direct_flag(*code, rest))
        {
            for &i in &code_words(*code, rest) {
                expands |= rest[i].dynamic;
                if let Some(placeholder) = rest[i].holds {
                    return Err(as_code(placeholder, &program, rest[i].is_whole()));
                }
            }
            if let Some(holder) = rest.iter().find(|w| w.nested && w.text == PROCESS) {
                return Err(as_code(holder.holds.unwrap_or(Placeholder::VALUE), &program, false));
            }
        }
    }
    check_unknown(words)?;
    check_wrapped(words)?;
    Ok(expands)
}

/// Wrappers whose operands may well be several, whatever follows them.
const GATHERERS: &[&str] = &["find", "fd", "fdfind", "gdb", "yes"];

/// Several values where a wrapper wants one: the second would be the command that it runs. `env V={} cmd`, `timeout {} cmd`.
fn check_wrapped(words: &[Word]) -> Result<(), Error> {
    let program = name(&words[0]);
    let first = words.iter().position(|word| word.several);
    let (Some(first), true) = (first.filter(|&i| i > 0), WRAPPERS.contains(&program.as_str())) else {
        return Ok(());
    };
    let assigns = |word: &Word| word.start().contains(&b'=');
    let before = &words[1..first];
    // Behind a first operand stands what the wrapped command takes.
    if GATHERERS.contains(&program.as_str()) || before.iter().any(|w| !w.is_option() && !assigns(w)) {
        return Ok(());
    }
    let run = &words[first..];
    let length = run.iter().take_while(|word| word.several).count();
    let split = (assigns(&run[0]) || run[0].is_option())
        && run[1..length].iter().any(|w| w.start() != run[0].start());
    let argument =
        run[0].start().is_empty() && before.last().is_some_and(|word| word.is_option() && word.text != b"--");
    let command = run[0].start().is_empty() && run[length..].iter().any(|word| !word.is_option());
    match run[0].holds {
        Some(placeholder) if split || argument || command => Err(Error::refused(format!(
            "`{placeholder}` stands where `{program}` takes one value, and the next would be its command: give each job one value"
        ))),
        _ => Ok(()),
    }
}

/// What stands in a word's text for `<(…)`.
pub(super) const PROCESS: &[u8] = b"<()";

/// A program that is not known before the job runs: text with blanks after its `-c` or `-e` looks like a program.
fn check_unknown(words: &[Word]) -> Result<(), Error> {
    if words[0].gap.is_none() {
        return Ok(());
    }
    for pair in words.windows(2) {
        let flagged = matches!(pair[0].text.as_slice(), b"-c" | b"-e" | b"-lc" | b"-ec");
        if let (true, Some(placeholder)) = (flagged, pair[1].holds)
            && pair[1].text.contains(&b' ')
        {
            return Err(Error::refused(format!(
                "`{placeholder}` is part of the program text of a program that is not known beforehand, which may run it as code: hand it over as an argument of its own"
            )));
        }
    }
    Ok(())
}

fn direct_flag(code: Code, rest: &[Word]) -> bool {
    let letters = match code {
        Code::Shell => b"c".as_slice(),
        Code::Option { letters, .. } => letters,
        _ => return false,
    };
    let cluster = rest.first().map_or(b"".as_slice(), |word| &word.text);
    cluster.starts_with(b"-") && !cluster.starts_with(b"--") && cluster.iter().any(|b| letters.contains(b))
}

/// Finds the words after a program's name that hold program text.
fn code_words(code: Code, words: &[Word]) -> Vec<usize> {
    match code {
        Code::All => (0..words.len()).collect(),
        Code::Shell => shell_code(words),
        Code::Option { letters, long, takes, anywhere } => {
            option_code(letters, long, takes, anywhere, words).0
        }
        Code::Operand { takes } => {
            let (mut found, operand) = option_code(b"e", &["expression", "source"], takes, false, words);
            let given = |w: &Word| w.text.starts_with(b"-f") || w.text.starts_with(b"--file");
            let before = &words[..operand.unwrap_or(words.len())];
            if let (true, Some(operand)) = (found.is_empty() && !before.iter().any(given), operand) {
                found.push(operand);
            }
            found
        }
        Code::Remote { takes } => match option_code(b"", &[], takes, false, words).1 {
            Some(host) => (host + 1..words.len()).collect(),
            None => Vec::new(),
        },
    }
}

fn shell_code(words: &[Word]) -> Vec<usize> {
    let option = |w: &Word| w.is_option() || w.start().starts_with(b"+");
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|w| option(w) && w.text != b"--") {
        let cluster = &word.text[1..];
        if cluster.first() != Some(&b'-') && (cluster.contains(&b'c') || word.holds.is_some()) {
            // The program text follows the last option; a value among the options is as bad.
            let end = (at + 1..words.len()).find(|&i| !option(&words[i])).unwrap_or(words.len());
            return (at..words.len().min(end + 1)).collect();
        }
        let takes = cluster.ends_with(b"o")
            || cluster.ends_with(b"O")
            || matches!(cluster, b"-rcfile" | b"-init-file");
        at += if takes { 2 } else { 1 };
    }
    Vec::new()
}

/// The words that are code because of an option, and the first operand.
fn option_code(
    letters: &[u8],
    long: &[&str],
    takes: &[u8],
    anywhere: bool,
    words: &[Word],
) -> (Vec<usize>, Option<usize>) {
    let mut found = Vec::new();
    let mut operand = None;
    let mut at = 0;
    while at < words.len() {
        let word = &words[at];
        let text = word.text.as_slice();
        let here = at;
        at += 1;
        if !word.is_option() || text == b"--" {
            operand.get_or_insert(if text == b"--" { at } else { here });
            if anywhere && text != b"--" {
                continue;
            }
            break;
        }
        // Long options are also read with one dash, as emacs has them.
        let bare = text.strip_prefix(b"--").unwrap_or(&text[1..]);
        let option = bare.split(|&b| b == b'=').next().unwrap_or(bare);
        if !option.is_empty() && long.iter().any(|name| name.as_bytes() == option) {
            found.push(if bare.contains(&b'=') { here } else { at });
            at += usize::from(!bare.contains(&b'='));
            continue;
        }
        if text.starts_with(b"--") {
            continue;
        }
        let special = |b: &u8| letters.contains(b) || takes.contains(b);
        let Some(letter) = text[1..].iter().position(special) else {
            // A value among the letters of an option may be the letter, and the program.
            if word.holds.is_some() && !letters.is_empty() {
                found.push(here);
            }
            continue;
        };
        let attached = letter + 2 < text.len() || word.gap.is_some();
        if letters.contains(&text[1 + letter]) {
            found.push(if attached { here } else { at });
        }
        at += usize::from(!attached);
    }
    found.retain(|&i| i < words.len());
    (found, operand.filter(|&i| i < words.len()))
}

/// The name that decides what a program is: without folder, version and `.exe`.
pub(super) fn name(word: &Word) -> String {
    let base = word.text.rsplit(|&b| b == b'/').next().unwrap_or(b"");
    let base = String::from_utf8_lossy(base);
    let base = base.strip_suffix(".exe").unwrap_or(&base);
    let short = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if short.is_empty() { base.to_owned() } else { short.to_owned() }
}

fn as_code(placeholder: Placeholder, program: &str, whole: bool) -> Error {
    let part = if whole { "is" } else { "is part of" };
    let cure = match program {
        "perl" => "write `perl -e '… $ARGV[0] …' {}`".to_owned(),
        "python" | "pypy" => format!("write `{program} -c '… sys.argv[1] …' {{}}`"),
        "ruby" => "write `ruby -e '… ARGV[0] …' {}`".to_owned(),
        "node" | "nodejs" => "write `node -e '… process.argv[1] …' {}`".to_owned(),
        "awk" | "gawk" | "mawk" | "nawk" => {
            format!("write `V={{}} {program} '… ENVIRON[\"V\"] …'` as a shell line")
        }
        "sed" | "gsed" => "write `V={} awk '… ENVIRON[\"V\"] …'` as a shell line".to_owned(),
        "ssh" | "autossh" | "rsh" => {
            "send it on standard input: `printf '%s\\n' {} | ssh HOST 'read -r v; …'`".to_owned()
        }
        "eval" => "leave `eval` out".to_owned(),
        "watch" => "write `watch -- sh -c '…'` in a script of its own".to_owned(),
        "sh" | "bash" | "dash" | "ash" | "ksh" | "mksh" | "zsh" | "yash" if whole => {
            format!("to run values as programs on purpose, pipe them: `printf '%s\\n' {{}} | {program}`")
        }
        "sh" | "bash" | "dash" | "ash" | "ksh" | "mksh" | "zsh" | "yash" => {
            format!("write `{program} -c '… \"$1\" …' {program} {{}}`")
        }
        _ => format!("hand it over in the environment: `V={{}} {program} …`"),
    };
    Error::refused(format!(
        "`{placeholder}` {part} the program text of `{program}`, which runs it as code: {cure}"
    ))
}

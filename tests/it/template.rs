//! Templates against real shells: a job sees exactly its value, and no value is ever run.
//!
//! A generator writes random lines together with their expected output. Each line contains many
//! small commands, each with a separate value, so that one process checks many pairs of template
//! and value. `MINDER_SHELLS=/bin/mksh:…` adds shells, `MINDER_SOUP=20000` makes the search for a
//! hole in the scanner longer.
#![cfg(unix)]

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

use minder_template::{ErrorKind, Job, Options, Template};

mod grammar;
mod numbers;
mod programs;
mod several;
mod shells;

/// Pairs of template and value that are tried on `sh`, and on every further shell; with `MINDER_LONG=1`
/// four times as many.
const PAIRS: usize = 2_500;
const PAIRS_MORE: usize = 375;
const PAIRS_PER_LINE: usize = 25;

/// Returns the shells of this machine that are tried. `MINDER_SHELLS` adds more, separated by
/// colons.
fn shells() -> Vec<OsString> {
    let more = std::env::var_os("MINDER_SHELLS").unwrap_or_default();
    let more = more.as_bytes().split(|&b| b == b':').filter(|path| !path.is_empty());
    let mut shells: Vec<OsString> = vec!["/bin/sh".into()];
    shells.extend(more.map(|path| OsStr::from_bytes(path).to_owned()));
    let dirs = ["/bin", "/usr/bin", "/usr/local/bin"];
    for name in ["bash", "dash", "zsh", "ksh93", "mksh", "busybox"] {
        let found = dirs.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists());
        shells.extend(found.map(OsString::from));
    }
    shells
}

/// Returns the same shells and yash, which accepts ASCII only.
fn shells_and_yash() -> Vec<OsString> {
    let mut shells = shells();
    let yash = ["/bin/yash", "/usr/bin/yash", "/usr/local/bin/yash"];
    shells.extend(yash.iter().find(|path| Path::new(path).exists()).map(OsString::from));
    shells
}

fn with_shell(shell: &OsStr) -> Options {
    Options { shell: Some(shell.to_owned()), ..Options::default() }
}

/// A directory with files for globs, and the path that hostile values try to create.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "-n"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        Place { dir }
    }

    fn canary(&self) -> String {
        self.dir.path().join("CANARY").to_str().unwrap().to_owned()
    }

    /// Runs an argv. Returns its output, or an error if the canary was created.
    fn run(&self, argv: &[OsString]) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).current_dir(self.dir.path()).stdin(std::process::Stdio::null());
        let output = command.env("LC_ALL", "C").output().unwrap();
        if Path::new(&self.canary()).exists() {
            return Err("a value was run".to_owned());
        }
        Ok(output.stdout)
    }
}

/// A small random number generator, so that a seed repeats a failure.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Values that try to break out, separated by three spaces. `C` is the canary, `␤` a newline.
const HOSTILE: &str = r##"
$(touch C)   `touch C`   ;touch C;   ␤touch C␤   '; touch C; '   "; touch C; "   "$(touch C)"   '$(touch C)'
& touch C &   | touch C   || touch C ||   )touch C;(   }; touch C; {   a[$(touch C)]   -va[$(touch C)]   -v
([$(touch C)]=1)   (1 $(touch C))   ${x:=$(touch C)}   ${x:-`touch C`}   $((a[$(touch C)]))   x=$(touch C)
\$(touch C)   \\`touch C`   \"$(touch C)   '"$(touch C)"'   1e touch C   p;e touch C   $'\'$(touch C)
<(touch C)   >C   a>C   esac;touch C   done;touch C   *)touch C;;   #␤touch C   -n   --   -   *   ?   [ab]
~   ~root   {}   {1}   $1   $@   \   \\   '   "   `   $   !   !!   =   (   )   ␤   a␤   ␤␤␤   %s%n
\0\n\c   a b   é   -e   if
"##;

fn hostile(canary: &str) -> Vec<String> {
    let written = HOSTILE.split("   ").flat_map(|part| part.split('\n')).filter(|part| !part.is_empty());
    let mut values: Vec<String> = written.map(|v| v.replace('C', canary).replace('␤', "\n")).collect();
    values.extend(["", " ", " a  b ", "\t", "\r", "\u{1}\u{7f}"].map(String::from));
    values
}

fn value(random: &mut Random, hostile: &[String]) -> Vec<u8> {
    match random.below(10) {
        0..=5 => {
            let i = random.below(hostile.len());
            hostile[i].as_bytes().to_vec()
        }
        6 => {
            let first = random.below(hostile.len());
            let second = random.below(hostile.len());
            [hostile[first].as_bytes(), hostile[second].as_bytes()].concat()
        }
        7 => b"long '\"$`\\\n".repeat(random.below(400)),
        _ => (0..random.below(20)).map(|_| 1 + random.below(255) as u8).collect(),
    }
}

/// A line that is being written, with its expected output.
struct Writer<'a> {
    random: &'a mut Random,
    line: String,
    expected: Vec<u8>,
    values: Vec<Vec<u8>>,
    hostile: &'a [String],
    /// There is only one value, written `{}`.
    single: bool,
}

impl Writer<'_> {
    /// Writes a placeholder and returns its value.
    fn placeholder(&mut self) -> Vec<u8> {
        if self.single {
            self.line += "{}";
            return self.values[0].clone();
        }
        let n = self.values.len();
        self.line += &format!("{{{n}}}");
        self.values[n - 1].clone()
    }

    fn text(&mut self, choices: &[(&str, &str)], out: &mut Vec<u8>) {
        let (written, meant) = self.random.pick(choices);
        self.line += written;
        out.extend_from_slice(meant.as_bytes());
    }

    /// Writes a word and returns its meaning.
    fn word(&mut self, depth: usize) -> Vec<u8> {
        const BARE: [(&str, &str); 8] = [
            ("a", "a"),
            ("0", "0"),
            ("+", "+"),
            ("\\'", "'"),
            ("\\\"", "\""),
            ("\\\\", "\\"),
            ("@", "@"),
            ("\\$", "$"),
        ];
        const SINGLE: [(&str, &str); 9] = [
            ("a", "a"),
            ("0", "0"),
            ("\"", "\""),
            ("$(x", "$(x"),
            ("`", "`"),
            ("\\", "\\"),
            ("${", "${"),
            (" # ", " # "),
            ("\n", "\n"),
        ];
        let mut out = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            match self.random.below(8) {
                0 => self.text(&BARE, &mut out),
                1..=3 => out.extend(self.placeholder()),
                4 => {
                    self.line.push('\'');
                    for _ in 0..self.random.below(4) {
                        match self.random.below(2) {
                            0 => self.text(&SINGLE, &mut out),
                            _ => out.extend(self.placeholder()),
                        }
                    }
                    self.line.push('\'');
                }
                _ => out.extend(self.double(depth)),
            }
        }
        out
    }

    fn double(&mut self, depth: usize) -> Vec<u8> {
        const DOUBLE: [(&str, &str); 14] = [
            ("a", "a"),
            ("0", "0"),
            ("'", "'"),
            (" ; | & ( ) # ", " ; | & ( ) # "),
            ("\\\\", "\\"),
            ("\\$", "$"),
            ("\\`", "`"),
            ("\\\"", "\""),
            ("\n", "\n"),
            ("{x", "{x"),
            ("}", "}"),
            ("$ ", "$ "),
            ("\\n", "\\n"),
            ("${UNSET_V}", ""),
        ];
        let mut out = Vec::new();
        self.line.push('"');
        for _ in 0..self.random.below(4) {
            match self.random.below(5) {
                0 | 1 => self.text(&DOUBLE, &mut out),
                2 if depth < 3 => {
                    let command = self.random.pick(&[
                        "$(printf %s ",
                        "$( printf '%s' ",
                        "$( (:); printf \"%s\" ",
                        "$(:\nprintf %s ",
                    ]);
                    self.line += command;
                    let mut inner = self.word(depth + 1);
                    self.line.push(')');
                    while inner.last() == Some(&b'\n') {
                        inner.pop();
                    }
                    out.extend(inner);
                }
                _ => out.extend(self.placeholder()),
            }
        }
        self.line.push('"');
        out
    }

    /// Writes a word that has quotes or literal text, so that it is a word even if it is empty.
    fn printed(&mut self) {
        self.line.push(' ');
        let word = self.word(0);
        self.expected.extend(word);
        self.expected.push(0);
    }

    fn print(&mut self) {
        self.line += "printf '%s\\0'";
        for _ in 0..1 + self.random.below(2) {
            self.printed();
        }
    }

    /// Writes a word that is printed separately.
    fn printed_alone(&mut self, before: &str, after: &str) {
        self.line += before;
        self.printed();
        self.line += after;
    }

    /// Writes a printing command between two texts.
    fn print_between(&mut self, before: &str, after: &str) {
        self.line += before;
        self.print();
        self.line += after;
    }

    fn command(&mut self, number: usize) {
        match self.random.below(14) {
            0 => {
                self.line += "for f in";
                self.printed();
                self.printed_alone("", "; do printf '%s\\0' \"$f\"; done");
            }
            1 => {
                self.line += "v=";
                let word = self.word(0);
                self.expected.extend(word);
                self.expected.push(0);
                self.line += "; printf '%s\\0' \"$v\"";
            }
            2 => {
                self.line += "if [ x";
                self.placeholder();
                self.line += " = x";
                self.placeholder();
                self.print_between(" ]; then ", "\nelse printf no; fi");
            }
            3 => {
                self.line += "case x";
                self.placeholder();
                self.line += " in (no) :;; *'";
                self.placeholder();
                self.print_between("') ", " ;; *) printf no ;; esac");
            }
            4 => self.print_between("", " | cat"),
            5 => self.print_between("", &format!(" >t{number}{{#}} && cat <./\"t\"{number}'{{#}}'")),
            6 => self.print_between("(", ")"),
            7 => self.print_between("{ ", "; } && ! false"),
            8 => self.printed_alone("f() { printf '%s\\0' \"$1\"; }; f", ""),
            9 => self.print_between("", " # it's {} $( \" `"),
            10 => self.print_between("cat >/dev/null <<'E'; ", "\nit's \"$( `\nE"),
            11 => self.print_between("while :; do ", "; break; done"),
            12 => self.printed_alone("sh -c 'printf \"%s\\0\" \"$1\"' sh", ""),
            _ => self.print(),
        }
        self.line.push('\n');
    }
}

/// Writes a line of `pairs` commands. Returns it with its values and its output.
fn write_line(seed: u64, pairs: usize, hostile: &[String]) -> (String, Vec<Vec<u8>>, Vec<u8>) {
    let mut random = Random(seed);
    let mut writer = Writer {
        random: &mut random,
        line: String::new(),
        expected: Vec::new(),
        values: Vec::new(),
        hostile,
        single: pairs == 1,
    };
    for number in 0..pairs {
        let value = value(writer.random, writer.hostile);
        writer.values.push(value);
        // Draws again until the command contains its value. A draw may also be refused, since after the
        // start of a here-document no word may span several lines.
        let line_len = writer.line.len();
        let expected_len = writer.expected.len();
        loop {
            writer.command(number);
            let written = &writer.line[line_len..];
            let mark = if pairs == 1 { "{}".to_owned() } else { format!("{{{}}}", number + 1) };
            let holds = written.split(" # ").next().is_some_and(|code| code.contains(&mark));
            match Template::parse(&[written.into()], &Options::default()) {
                Ok(_) if holds => break,
                Err(error) if holds => {
                    assert!(error.to_string().contains("here-document"), "{written}: {error}")
                }
                _ => {}
            }
            writer.line.truncate(line_len);
            writer.expected.truncate(expected_len);
        }
    }
    (writer.line, writer.values, writer.expected)
}

/// Runs a template on values. The error contains the output of the shell.
fn check(place: &Place, argv: &[OsString], expected: &[u8]) -> Result<(), String> {
    let seen = place.run(argv)?;
    if seen == expected {
        return Ok(());
    }
    let at = seen.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let part = |bytes: &[u8]| {
        bytes[at.saturating_sub(20).min(bytes.len())..].iter().take(80).copied().collect::<Vec<_>>()
    };
    Err(format!(
        "differs at byte {at}: saw {:?}, not {:?}",
        OsString::from_vec(part(&seen)),
        OsString::from_vec(part(expected))
    ))
}

fn each_line(pairs: usize, pairs_per_line: usize, shell: &OsStr) {
    let place = Place::new();
    let hostile = hostile(&place.canary());
    for seed in 0..pairs.div_ceil(pairs_per_line) as u64 {
        let (line, values, expected) = write_line(seed, pairs_per_line, &hostile);
        let template = Template::parse(&[OsString::from(&line)], &with_shell(shell))
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{line}"));
        let columns: Vec<OsString> = values.into_iter().map(OsString::from_vec).collect();
        let argv = template.argv(&Job { columns: &columns, number: 1, slot: 1, ..Job::default() }).unwrap();
        if let Err(why) = check(&place, &argv, &expected) {
            panic!(
                "{}, seed {seed}: {why}\n{line}\n--- became\n{}\n{columns:?}",
                shell.display(),
                argv[2].display()
            );
        }
    }
}

#[test]
fn job_gets_exact_values_and_never_runs_them() {
    for (i, shell) in shells().iter().enumerate() {
        each_line(times() * if i == 0 { PAIRS } else { PAIRS_MORE }, PAIRS_PER_LINE, shell);
    }
}

fn times() -> usize {
    if crate::support::is_long() { 4 } else { 1 }
}

#[test]
fn single_value_in_short_line_is_exact() {
    for shell in shells() {
        each_line(times() * 100, 1, &shell);
    }
}

/// Quoted values are pasted into the same lines, as other tools do. The check must detect that.
#[test]
fn check_detects_pasted_values() {
    let place = Place::new();
    let hostile = hostile(&place.canary());
    let mut run = 0;
    let mut differ = 0;
    for seed in 0..300 {
        let (line, values, expected) = write_line(seed, 1, &hostile);
        let quoted = [
            b"'".as_slice(),
            &values[0]
                .iter()
                .flat_map(|&b| if b == b'\'' { b"'\\''".to_vec() } else { vec![b] })
                .collect::<Vec<_>>(),
            b"'",
        ]
        .concat();
        let mut pasted = Vec::new();
        for (i, part) in line.replace("{#}", "1").split("{}").enumerate() {
            if i > 0 {
                pasted.extend_from_slice(&quoted);
            }
            pasted.extend_from_slice(part.as_bytes());
        }
        match check(&place, &["/bin/sh".into(), "-c".into(), OsString::from_vec(pasted)], &expected) {
            Ok(()) => {}
            Err(why) if why.contains("was run") => {
                run += 1;
                std::fs::remove_file(place.canary()).unwrap();
            }
            Err(_) => differ += 1,
        }
    }
    assert!(run >= 10 && differ >= 10, "{run} values were run, {differ} lines printed something else");
}

/// Commands that get a value as an argument, separated by commas.
const WORDS: &str = "\
alias, bg, bind, break, builtin, caller, cd, command, compgen -W, complete -W, declare, declare -i, dirs
echo, enable, eval, exec, exit, export, fg, getopts, getopts a, hash, history, integer, jobs, kill, let
local, mapfile, mapfile -t, popd, print, printf, printf %d, printf -v, pushd, read, read -r, readarray
readonly, return, set, shift, sleep, suspend, test, test -v, test -n, test -t, test 1 -eq, [ -v, [, [[
[[ -v, [[ 1 -eq, [[ a =, time, times, trap, type, typeset, typeset -i, ulimit -n, umask, unalias, unset
unset -v, wait, wait -n, sh -c, env, xargs, set --, test -o, command -v, sed, awk, perl -e, x=1; echo
f() { :; }; f";

/// Lines with values, two or more spaces between them.
const LINES: &str = r##"
RANDOM={}   SECONDS={}   OPTIND={}   HISTCMD={}   SRANDOM={}   LINENO={}   COLUMNS={}
PS4={}; set -x; :   IFS={}; x=a; echo $x   x={}; echo $((x))   x={}; echo $(($x))
x={}; y=abc; echo ${y:x}   x={}; echo ${!x}   x={}; echo ${x@P}   x={}; a[$x]=1   x={}; a[x]=1
x={}; echo ${a[x]}   x={}; [ $x -eq 1 ]   x={}; [[ $x -eq 1 ]]   x={}; [ -v "$x" ]   x={}; printf "$x" y
x={}; unset "$x"   x={}; read "$x"   x={}; export "$x"   x={}; let x   x={}; sh -c "$x"
x={}; eval "$x"   x={}; y=$x; echo $((y))   : {}; echo $((_))   : {}; echo ${!_}
a={}; b={}; echo "${a%$b}" ${a#$b} ${a:-$b}   printf '%s' {} | { read -r x; echo $((x)); }
for x in {}; do echo $((x)); done   case {} in $x) ;; {}) ;; esac   declare -n r={}; echo $r
declare -A m; m[{}]=1   a=({}); echo ${a[0]}   a=([{}]=1)   typeset -i x; x={}   export x={}; export x
readonly x={}   local x={}   echo {} > {}   echo ${x:={}}   x=$(printf %s {}); echo $((x))   cat <<< {}
f() { echo $(($1)); }; f {}   f() { eval "$1"; }; f {}   set -- {}; eval $1   test {} {}   [ {} {} ]
[ {} -a {} ]   printf {} {} {}   echo $[{}]   echo "$[{}]"   echo $'{}'   echo `echo {}`   echo "\{}"
$x{}   ~{}   {}=1   x{}=1   a{}[0]=1   echo {a,{}}   echo {1..{}}   echo *{}*   exec 3<{}   exec 3<&{}
wait {}   echo ${a[{}]}   ((a={}))   BASH_ENV={} bash -c :   ENV={} sh -c :   [[ {} = a ]]
[[ a =~ {} ]]   [[ -f {} ]]   [[ {} < a ]]   [[ -o {} ]]   [[ -t {} ]]   exit {}   x+={}; echo $x
_={}; echo $((_))   REPLY={}; echo $((REPLY))   echo "${x:-$(echo {})}"   trap -- {} EXIT
read x <<< {}; echo $((x))   while read x; do let x; done <<< {}
: >& {}   : 1>& {}   : >&2{}   exec >& {}   f={}; : >& "$f"   { :; } >& {}   : &> {}   : >> {}
{sh,-c,{}}   command {eval,{}}   $'eval' {}   $(echo eval) {}   w=eval; $w {}   {} {}   "$CC" {}
UID={} :   EUID={} :   SHLVL={}   ZLE_RPROMPT_INDENT={}   TRY_BLOCK_ERROR={}   KSHUID={}   PIPESTATUS={}
logout {}   bye {}   getln {}   private {}   [ -t {} ]   [[ -t {} ]]   zformat -f {} x   zregexparse x {} x
echo $x[{}]   echo "$x[{}]"   echo $argv[{}]   i={}; echo $x[i]   echo $+x[{}]   echo $x:s/a/{}/
v={}; trap 'eval "$v"' EXIT   trap 'eval "$v"' EXIT; v={}   PS4='$((v))'; set -x; v={}; :
v={}; PS4=$v; set -x; :
v={}; eval 'eval "$v"'   v={} eval 'echo $((v))'   f() { "$@"; }; f eval {}   f() { $1 $2; }; f eval {}
i={}; x=([i]=1)   i={}; unset 'v[i]'   i={}; read 'v[i]'   i={}; echo {v[i]}> f   i={}; test $i
i={}; test $i -eq 1
[[ {} =~ (.*) ]]; echo $((BASH_REMATCH[1]))   . /dev/stdin <<< {}   read -p {} x   print -r -- {}
cd {}; echo $((PWD))
"##;

/// Returns the commands of `WORDS`, each with a value.
fn applied() -> impl Iterator<Item = String> {
    let words = WORDS.split([',', '\n']).map(str::trim).filter(|word| !word.is_empty());
    words.flat_map(|word| {
        let opened = word.bytes().take_while(|&b| b == b'[').count();
        ["", " x"].map(|after| format!("{word} {{}}{after} {}", "]".repeat(opened)))
    })
}

fn whole() -> impl Iterator<Item = &'static str> {
    LINES.split("   ").flat_map(|part| part.split('\n')).filter(|line| !line.is_empty())
}

/// Every builtin, assignment and expansion that could evaluate its argument is refused or harmless.
#[test]
fn accepted_line_never_runs_a_value() {
    let place = Place::new();
    let canary = place.canary();
    let values = [
        "a[$(touch C)]",
        "-va[$(touch C)]",
        "$(touch C)",
        "(1 $(touch C))",
        "([$(touch C)]=1)",
        "`touch C`",
        "x=$(touch C)",
        "1;touch C",
        "path[$(touch C)1]",
        "-v a[$(touch C)]",
        "eval",
    ];
    let columns = values.map(|value| [OsString::from(value.replace('C', &canary))]);
    // Without MINDER_LONG=1, every line is tried in every shell with a quarter of the values, and every
    // value in every shell with a quarter of the lines.
    let is_long = crate::support::is_long();
    for (row, line) in applied().chain(whole().map(str::to_owned)).enumerate() {
        for (nth, shell) in shells_and_yash().into_iter().enumerate() {
            let Ok(template) = Template::parse(&[OsString::from(&line)], &with_shell(&shell)) else {
                continue;
            };
            let is_chosen = |column: usize| is_long || (row + nth + column).is_multiple_of(4);
            for (_, column) in columns.iter().enumerate().filter(|(column, _)| is_chosen(*column)) {
                let Ok(argv) = template.argv(&Job { columns: column, number: 1, slot: 1, ..Job::default() })
                else {
                    continue;
                };
                if let Err(why) = place.run(&argv) {
                    panic!("{}: {line}: {why}: {}", shell.display(), column[0].display());
                }
            }
        }
    }
}

#[test]
fn ordinary_text_is_not_changed() {
    let place = Place::new();
    let columns = [OsString::from("v")];
    for (line, expected) in [
        ("printf '%s|' {a,b\\} {foo} '{0}' {\\} \"{ }\" {}", "{a,b}|{foo}|{0}|{}|{ }|v|"),
        ("printf '%s|' a{ }b '$1 $@' \\$1 {}", "a{|}b|$1 $@|$1|v|"),
        ("x=1; { printf '%s|' ${x} $((x + 1)) \"${x:-2}\" {}; }", "1|2|1|v|"),
        ("echo 'a b' | awk '{print $2}'; echo {}", "b\nv\n"),
        ("awk 'BEGIN { print ARGV[1] }'", "v\n"),
        ("printf '%s|' $0 `echo \\`echo x\\`` {} # no {} 'here", "/bin/sh|x|v|"),
        ("cat <<E\n$(1\nE\ntrue", ""),
    ] {
        let template = match Template::parse(&[line.into()], &Options::default()) {
            Ok(template) => template,
            Err(error) if expected.is_empty() => {
                assert_eq!(error.kind(), ErrorKind::Refused);
                continue;
            }
            Err(error) => panic!("{line}: {error}"),
        };
        let argv = template.argv(&Job { columns: &columns, number: 1, slot: 1, ..Job::default() }).unwrap();
        assert_eq!(String::from_utf8(place.run(&argv).unwrap()).unwrap(), expected, "{line}");
    }
}

/// Random tokens. Most lines are refused. An accepted line must not run a value, however the shell
/// parses it.
#[test]
fn token_soup_never_runs_a_value() {
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
    let columns = values.map(|value| [OsString::from(value.replace('C', &canary))]);
    let tokens: Vec<&str> = SOUP.split(' ').collect();
    for (i, shell) in shells().iter().enumerate() {
        let wanted = crate::support::cases("MINDER_SOUP", 60, 500);
        let mut accepted = 0;
        let mut seed = i as u64 * 1_000_000_000;
        while accepted < wanted {
            seed += 1;
            let mut random = Random(seed);
            let mut line = String::from("echo {} ");
            for _ in 0..2 + random.below(9) {
                line += &random.pick(&tokens).replace('␣', " ").replace('␤', "\n");
            }
            let Ok(template) = Template::parse(&[OsString::from(&line)], &with_shell(shell)) else {
                continue;
            };
            // Arithmetic accepts numbers only.
            let job = Job { columns: &columns[seed as usize % 7], number: 1, slot: 1, ..Job::default() };
            let Ok(argv) = template.argv(&job) else { continue };
            accepted += 1;
            if let Err(why) = place.run(&argv) {
                panic!("{}, seed {seed}: {line}: {why}\n{}", shell.display(), argv[2].display());
            }
        }
    }
}

/// Tokens, separated by one space. `␣` is a space, `␤` a newline.
const SOUP: &str = "\
{} {} {} {} {} \"{}\" '{}' ' ' \" \" \" $( $( ) ) ` ` ${x ${x:- } } \\ \\ $(( )) + # ␣#␣ ␤ ␤ ␣ ␣ ␣ ␣ ; \
;␣ | && & ( ) ␣{␣ ;} <<E␤ <<E␣ ␤E␤ <<'E'␤ ␣>␣ <<<␣ case␣x␣in␣ x) (x) ;; ␣esac if␣:;␣ then␣ ;fi ␣else␣ \
eval␣ sh␣-c␣ ␣[␣ ␣] ␣[[␣ ␣]]␣ -eq -v $' $\" $[ ] printf␣ echo␣ x= ␣x= y=({} [ x $x $ ! ~ * ␣-c␣ ␣-e␣ \
for␣i␣in␣ ;do␣ ;done $i $y x␣ , @ = : test␣ read␣x␣ let␣ unset␣ export␣ declare␣ ''' \"\"\" \\\" \\' \
\\` \\$ \\␤ ␣\\␤ $(: <( ␤) ;)";

#[test]
fn bytes_that_are_not_utf8_are_kept() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let value = OsString::from_vec(b"d\xff/\xfe.x\xfd".to_vec());
    let columns = [value.clone()];
    let job = Job { columns: &columns, number: 1, slot: 1, ..Job::default() };
    let template =
        Template::parse(&[OsString::from_vec(b"e\xf0 {} '{.}' {/}".to_vec())], &Options::default()).unwrap();
    let argv = template.argv(&job).unwrap();
    assert_eq!(argv[2].as_bytes(), b"e\xf0 \"$1\" ''\"$2\"'' \"$3\"");
    assert_eq!(argv[4], value);
    assert_eq!(argv[5].as_bytes(), b"d\xff/\xfe");
    assert_eq!(argv[6].as_bytes(), b"\xfe.x\xfd");
    // In the command's own text there is no quoting to rely on: all of it is text for `eval`.
    let shown = template.display(&job);
    assert!(shown.starts_with("eval \"$(printf 'e\\360 ") && shown.is_ascii(), "{shown}");
}

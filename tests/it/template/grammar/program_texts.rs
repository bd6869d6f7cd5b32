//! Drawn programs of awk, sed, perl, python and shells with plain values in them, and values that leave
//! a mark if such a program runs them.
//!
//! The values consist of the characters that are accepted in program texts. They are names of a program
//! and a module that leave a mark, and words of the languages that run text: the lines of the input are
//! names of that program, too. The promise: a program that is accepted never runs a value, or its
//! input because of one.
//!
//! `MINDER_PROGRAMS=100000` draws more programs, `MINDER_SEED=N` begins elsewhere.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use minder_template::{Job, Options, Template, ValueRules};

use super::super::Random;
use super::sandbox::{Ground, Sandbox};
use crate::support::number;

/// The number of drawn programs, and that with `MINDER_LONG=1`.
const CASES: u64 = 400;
const CASES_LONG: u64 = 10_000;

/// The rules of a language: a name, then its choices, separated by three spaces. A capital letter that
/// names a rule is replaced by a choice of it, and `V` by a placeholder. `␤` is a newline, `·` nothing.
struct Language {
    /// The commands, with `PROGRAM` and `INPUT`. The first word is searched for in some directories.
    commands: &'static [&'static str],
    rules: &'static [(char, &'static str)],
}

const AWK: Language = Language {
    commands: &[
        "mawk PROGRAM INPUT",
        "gawk PROGRAM INPUT",
        "busybox awk PROGRAM INPUT",
        "original-awk PROGRAM INPUT",
    ],
    rules: &[
        ('P', "{ A }   E { A }   BEGIN { A }   /R/ { A }   E   /R/   /R/ { A } E { A }   A   !/R/"),
        (
            'A',
            "print E   print E, E   x = E; print x   printf \"S\"   print > \"S\"   E($0)   E   \
            system(E)   \
             E | getline   print | \"S\"   A; A   A; A   if (E) A   sub(/R/, \"S\")   y = E / E   # S␤A   \
             A # S   V $0   V",
        ),
        (
            'E',
            "V   V   $V   \"S\"   \"S\"   \"S\"   E == E   E == E   $1 == \"S\"   E ~ /R/   sysV   VV   \
            V($0)   \
             NR   $1   E / E   (E)   E \"S\"   length(E)   @V($0)   index(\"S\", E)   E && E   E || E   -V",
        ),
        ('S', "V   V   V   a   S S   ·   \\\"   \\V   mark   |V   VV   %s"),
        ('R', "V   V   a   [V]   [^V]x   \\/   V+   [[:alpha:]V]   ^V$   RR"),
    ],
};

const SED: Language = Language {
    commands: &[
        "sed PROGRAM INPUT",
        "sed -n PROGRAM INPUT",
        "sed -E PROGRAM INPUT",
        "busybox sed PROGRAM INPUT",
    ],
    rules: &[
        ('P', "C   C   C;C   C␤C   {C;C}   C;C;C"),
        ('C', "AB   AB   AB   AB   AV   VV"),
        ('A', "·   ·   V   /R/   V,V   $   \\,R,   /R/,/R/   V!   1~V   V,$"),
        (
            'B',
            "p   d   s/R/T/F   s/R/T/F   s/R/T/F   s,R,T,F   s|R|T|F   sVRVTV   y/V/V/   aT   a\\␤T   \
            i T   rT   \
             eV   e V   e   qV   bV   :V   V   {p}   Vmark   l   =",
        ),
        ('R', "V   V   a   [V]   \\/   m.*   ^V$   .*   RR"),
        ('T', "V   V   a   &   \\/   \\V   TT   mark   ·"),
        ('F', "·   ·   ·   g   V   e   gV   wV   2   p"),
    ],
};

const PERL: Language = Language {
    commands: &["perl -ne PROGRAM INPUT", "perl -pe PROGRAM INPUT", "perl -lane PROGRAM INPUT"],
    rules: &[
        ('P', "A   A   A; A   A; A; A   A␤A"),
        (
            'A',
            "print E   print \"S\"   print \"S\"   print \"S\"   E   s/R/S/   s/R/S/   s/R/S/g   s/R/S/V   \
             s/R/E/e   s,R,S,   s|R|S|   tr/V/V/   y,V,V,   V \"mark\"   VV   $x = E   V $_   \
             open F, \"S\"   \
             do \"S\"   print if E   print if E   print unless /R/   $h{V} = E   sysV   # S   m/R/   \
             print qw(V)   \
             print q(V)   print <V>   `V`   require V   use V   \"S\"->V   &V   &$x   V   $_ = \"S\"   \
             print for split /R/   V()   sort V @x   print $F[V]   die \"S\" if E",
        ),
        (
            'E',
            "V   V   \"S\"   \"S\"   'Q'   'Q'   $_ =~ /R/   /R/   $h{V}   $a[V]   E . E   E . E   \
            $x / V   \
             split(/R/, $_)   -V   VV   eV   $V   @V   V::V   (E)   V(E)   $x->V   $x->{V}   $x->[V]   \
             $_ eq \"S\"   \
             $F[0] eq \"S\"   $. == V",
        ),
        (
            'S',
            "V   V   V   a   $_   $h{V}   $a[V]   $F[0] V   @{[V]}   \\V   \\\"   ${V}   $V   @V   \
            mark   S S   V[0]   \
             $xV   $x{V}   $x->{V}   ·   V|",
        ),
        ('Q', "V   V   a   $V   \\V   mark   @{[V]}"),
        ('R', "V   V   V   a   ^V$   [V]   (?{V})   $V   @V   \\/   V+   RR   $x[V]   m.*"),
    ],
};

const PYTHON: Language = Language {
    commands: &["python3 -S -c PROGRAM INPUT"],
    rules: &[
        ('P', "A   A   A; A   A␤A   import mark as m if 0 else 0   import sys; A"),
        (
            'A',
            "print(E)   print(E)   print(E)   E   x = E   import V   from V import V   exec(E)   A; A   \
            # S␤A   \
             if E: print(E)   f = E   V(\"mark\")   del V   V   print(E, E)   x = [E, E]   x = {E: E}   \
             assert E",
        ),
        (
            'E',
            "V   V   \"S\"   \"S\"   'Q'   'Q'   \"\"\"S\"\"\"   f\"S\"   f'{V}'   r\"S\"   b'Q'   \
            E + E   E + E   x[V]   \
             E.V   V.V   (E)   [E]   osV   VV   __import__(E)   E % E   E // E   'Q' 'Q'   -V   \
             \"S\".format(E)   \
             len(E)   \"S\".join(E)   E == E   int(V)",
        ),
        ('S', "V   V   V   a   {V}   \\V   \\\"   %s   #   S S   ·   '"),
        ('Q', "V   V   a   {V}   \\V   \\'   Q Q   \""),
    ],
};

const SHELL: Language = Language {
    commands: &[
        "dash -c PROGRAM",
        "bash -c PROGRAM",
        "zsh -c PROGRAM",
        "ksh93 -c PROGRAM",
        "mksh -c PROGRAM",
        "busybox sh -c PROGRAM",
    ],
    rules: &[
        ('P', "A   A   A; A   A && A   A␤A"),
        (
            'A',
            "prog W   prog W   prog W   prog W W   W prog   x=W; prog \"$x\"   x=W; prog $x   x=W; $x   \
            prog W | cat   V   \
             V mark   eval W   if A; then A; fi   for i in W; do A; done   case W in W) A;; esac   \
             prog W > V   \
             prog W>f   W>f prog   [ W = W ]   test W W   prog $(A)   export W   set W   . W   command W   \
             prog {a,W}   f() { prog W; }; f W   exec W   prog a; A   x=W prog W   [[ W = W ]]   \
             while A; do A; done   \
             prog W ) A   { A; }   (A)   ! A   W=mark prog   alias a=W; a   trap W EXIT   prog # W␤A   \
             prog W & A",
        ),
        (
            'W',
            "V   V   V   \"V\"   \"V\"   'V'   'V'   aV   Va   \"$xV\"   $V   ~V   \"a V\"   -V   VV   \
            =V   V=a   {V,b}   \
             $((V))   \\V   \"\\V\"   `V`   \"$(A)\"   ${x:-V}   a/V   a:V   \"V W'",
        ),
    ],
};

/// Values of the accepted characters, separated by white space. `BIN` is the directory of the programs.
const VALUES: &str = "\
    1 2 10 0 -1 +1 1.5 1e 2e 1w e w r ee me se /e ,e /mark/e ,mark,e /e/mark =e . .. // / + ++ -- - = \
    == : :: , @ % \
    mark BIN/mark ./mark mark.pm mark.py =mark -mark +mark @mark %mark mark=1 PATH=BIN x=mark mark: \
    mark, mark. \
    system getline system.mark print printf e.mark emark 1emark 1,2emark close BEGIN END func function \
    length \
    return next in exit exec eval evalbytes readpipe qx q qq qw qx.mark. qx,mark, qx:mark: qx/mark/ \
    qx=mark= \
    qx%mark% qx+mark+ qx-mark- s.a.mark.e s.m.system.e s,m,exec,e s:.*:system:e s.^.mark.ee s/m/exec/e \
    s.m.readpipe.e s.a.readpipe.e tr.a.b. y.a.b. y,a,b, m.a. do require use no import from unlink open \
    fork dump sort glob CORE::system \
    CORE::exec POSIX::_exit @INC @ENV %ENV __END__ __DATA__ =pod =cut =begin @x @F @_ $_ STDIN ARGV \
    main::mark \
    os os.system os.popen __import__ builtins.exec exec.mark x.y lambda yield raise None True pass \
    import.mark \
    a b a.b a-b a_b a+b a=b a:b a,b a/b a@b a%b a%sb %s %d %n -n -e -v --eval --exec=mark -i -c . : source \
    eval.mark if then fi do done esac in case while for time command builtin env - x PS4=mark \
    BASH_ENV=mark r:mark \
    1/e 1/w s/a/mark/e /a/e a/e s mark/e e/mark";

impl Language {
    /// Expands the text of a choice.
    fn expand(&self, text: &str, random: &mut Random, depth: usize, out: &mut String) {
        for letter in text.chars() {
            match letter {
                'V' => *out += random.pick(&["{1}", "{1}", "{2}"]),
                '·' => {}
                '␤' => out.push('\n'),
                letter => match self.rules.iter().find(|(name, _)| *name == letter) {
                    Some((_, choices)) if depth < 7 && out.len() < 200 => {
                        let choices: Vec<&str> = choices.split("   ").map(str::trim).collect();
                        self.expand(random.pick(&choices), random, depth + 1, out);
                    }
                    Some(_) => *out += "{1}",
                    None => out.push(letter),
                },
            }
        }
    }

    fn draw(&self, random: &mut Random) -> String {
        let mut program = String::new();
        self.expand("P", random, 0, &mut program);
        program
    }
}

fn value(random: &mut Random, values: &[String]) -> OsString {
    const CHARACTERS: &[u8] = b"aems1_.,:/@%+=-";
    let character = |random: &mut Random| char::from(random.pick(CHARACTERS));
    match random.below(8) {
        0 => (0..1 + random.below(5)).map(|_| character(random)).collect::<String>().into(),
        1 => format!("{}{}", values[random.below(values.len())], values[random.below(values.len())]).into(),
        2 => format!("{}mark{}", character(random), character(random)).into(),
        _ => values[random.below(values.len())].clone().into(),
    }
}

/// The program and the modules that leave a mark, and the input.
struct Traps {
    bin: PathBuf,
    input: PathBuf,
}

impl Traps {
    fn new(ground: &Ground) -> Traps {
        let bin = ground.programs();
        let script = "#!/bin/sh\n: >MARK\n";
        ground.add_file("bin/mark", script, 0o755);
        ground.add_file("bin/mark.pm", "open my $f, '>', 'MARK'; 1;\n", 0o644);
        ground.add_file("bin/mark.py", "open('MARK', 'w')\n", 0o644);
        let input = ground.add_file("input", "mark\nmark 1\n: >MARK\na mark\n1\n", 0o644);
        Traps { bin, input }
    }

    fn variables(&self) -> [(&str, &str); 2] {
        let bin = self.bin.to_str().unwrap();
        [("PYTHONPATH", bin), ("PERL5LIB", bin)]
    }
}

/// A drawn program with its values.
struct Case {
    words: Vec<OsString>,
    columns: [OsString; 2],
}

impl Case {
    fn new(command: &str, program: &str, traps: &Traps, columns: [OsString; 2]) -> Option<Case> {
        let mut words: Vec<OsString> = Vec::new();
        for word in command.split(' ') {
            words.push(match word {
                "PROGRAM" => program.into(),
                "INPUT" => traps.input.clone().into(),
                word => word.into(),
            });
        }
        let dirs = ["/bin", "/usr/bin", "/usr/local/bin"].map(|dir| Path::new(dir).join(&words[0]));
        words[0] = dirs.into_iter().find(|path| path.exists())?.into();
        // A value would be appended as the name of a file to read.
        ["{1}", "{2}"].iter().any(|value| program.contains(value)).then_some(Case { words, columns })
    }

    fn argv(&self, options: &Options) -> Option<Vec<OsString>> {
        let template = Template::parse(&self.words, options).ok()?;
        template.argv(&Job { columns: &self.columns, ..Job::default() }).ok()
    }
}

fn draw(seed: u64, traps: &Traps, values: &[String]) -> Option<Case> {
    let languages = [&AWK, &SED, &PERL, &PYTHON, &SHELL];
    let language = languages[seed as usize % languages.len()];
    let mut random = Random(seed);
    random.next();
    let command = random.pick(language.commands);
    let program = language.draw(&mut random);
    let columns = [value(&mut random, values), value(&mut random, values)];
    Case::new(command, &program, traps, columns)
}

fn values(traps: &Traps) -> Vec<String> {
    let bin = traps.bin.to_str().unwrap();
    VALUES.split_ascii_whitespace().map(|value| value.replace("BIN", bin)).collect()
}

#[test]
fn plain_value_in_program_text_is_never_run() {
    let ground = Ground::new();
    let traps = Traps::new(&ground);
    let values = values(&traps);
    let mut sandbox = Sandbox::new(&ground, 0);
    let plain = Options { plain_values_in_program_texts: true, ..Options::default() };
    let cases = crate::support::cases("MINDER_PROGRAMS", CASES, CASES_LONG);
    let mut seed = number("MINDER_SEED").unwrap_or(0);
    let mut run = 0;
    let mut faults = Vec::new();
    // Draws until enough programs were accepted with their values.
    while run < cases {
        seed += 1;
        let Some(case) = draw(seed, &traps, &values) else { continue };
        let Some(argv) = case.argv(&plain) else { continue };
        run += 1;
        let mut marks = |argv: &[OsString]| sandbox.run(argv, &traps.variables()).marked;
        // A program may run `mark` itself, whatever its values are.
        let other = Case { columns: ["1".into(), "1".into()], words: case.words.clone() };
        if marks(&argv) && !other.argv(&plain).is_some_and(|argv| marks(&argv)) {
            faults.push(format!("seed {seed}: {:?} with {:?}", case.words, case.columns));
        }
    }
    eprintln!("{run} programs run of {seed} drawn");
    assert!(faults.is_empty(), "{} programs run a value:\n{}", faults.len(), faults.join("\n"));
}

/// The same values in programs that are refused, or refused with this value: the test must notice that
/// they run it.
#[test]
fn refused_program_texts_leave_marks() {
    let ground = Ground::new();
    let traps = Traps::new(&ground);
    let mut sandbox = Sandbox::new(&ground, 0);
    let plain = Options { plain_values_in_program_texts: true, ..Options::default() };
    let trusting =
        Options { value_rules: ValueRules::new(Some("(?s).*"), false).unwrap(), ..Options::default() };
    for (command, program, value) in [
        ("awk PROGRAM INPUT", "{ {1}($0) }", "system"),
        ("sed PROGRAM INPUT", "1{1}", "e"),
        ("perl -ne PROGRAM INPUT", "{1} $_", "system"),
        ("perl -pe PROGRAM INPUT", "{1}", "s.m.readpipe.e"),
        ("python3 -S -c PROGRAM", "import {1}", "mark"),
        ("sh -c PROGRAM", "{1} x", "mark"),
        ("zsh -c PROGRAM", "command {1}", "mark"),
    ] {
        let columns = [value, "1"].map(OsString::from);
        let Some(case) = Case::new(command, program, &traps, columns) else { continue };
        assert!(case.argv(&plain).is_none(), "accepted: {program} with {value}");
        let argv = case.argv(&trusting).unwrap();
        assert!(sandbox.run(&argv, &traps.variables()).marked, "leaves no mark: {program} with {value}");
    }
}

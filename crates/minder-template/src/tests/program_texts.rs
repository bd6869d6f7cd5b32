//! Program texts with plain values: which are accepted, and what their values may be.

use super::*;

fn plain(line: &str) -> Result<Template, Error> {
    let options = Options { plain_values_in_program_texts: true, ..posix() };
    Template::parse(&[line.into()], &options)
}

/// A line, values that are accepted, and values that fail their job. Three spaces separate the parts,
/// commas the values.
const ACCEPTED: &str = r##"
awk '($1=="{}") {print $0}' f   a,1.5,a/b,x@y,-e   a"b,a b,a\
awk '$1 == {}' f   1,1.5,-1,NF,abc   getline,system,print,func,a b,a.b,1;2
awk '/^{}$/' f   a,1,a.b,a-b   a/b,a|b
awk '/[{}]/' f   a,1   a-b,[:alpha:]
awk '/a[[:space:]]{}/ {print $2/2}' f   a   a/b
awk '{print sys{}}' f   1   tem,a
awk '{print {}{}}' f   1   sys,a
awk '{printf "{} %s\n", $1}' f   a   a%s
awk '{print > "{}.txt"}' f   a,a/b   a b
sed -n {}p f   1,20   1e,1w,-1,$
sed -n '{},{}p' f   1   a
sed 's/a/{}/' f   b,b.c,b:c   b/c,b&c,a b,a\
sed 's|a|{}|g;s,b,{},' f   b   a/b|c,a|b,a b
sed '/{}/d' f   a   a/b
sed -e 's/x/y/' -e 's/a/{}/' f   b   b/c
sed '/x/a {}' f   text   two words
perl -pe 's/foo/{}/g' f   a,a.b   a/b,x@y,a$b
perl -ne 'print if /^{}\t/' f   a,a.b   a/b,a|b
perl -lane 'print "$F[0] {}" if $F[1] eq "{}"' f   a   x@y,a"b
perl -e 'print {} + 1'   1,-1,1.5   a,exec,fork
perl -ne 'print if $. == {}' f   3   e
perl -ne 'print "x" if $h{a} eq '\''{}'\''' f   a,x@y   it's
perl -ne 'print "$h{ {} }"' f   1   fork
perl -e 'print "${{}}"'   1   a
python3 -c 'print("{}")'   a,x@y,a/b   a"b,a\
python3 -c "print({} * 2)"   1,-1,1.5   a,exit
python3 -c 'x = """{}"""'   a   a"b
ruby -e 'puts "{}"'   a   x@y,a"b
node -e 'console.log("{}")'   a   a"b
sqlite3 db "select * from t where a='{}'"   a,x@y   it's
sqlite3 db 'select {} from t'   a,t.a,1   a b,a;b
sh -c 'echo {}'   a,a/b,a-b   -n,a;b,a b,=ls,a=b,$x
sh -c 'echo "{}" > out'   a,-n,a=b   $x,a"b
bash -c "cd {} && make"   a,a/b   -,a;b,~
env -i bash -c 'echo {}'   a   a;b
printf '{}\n'   a,a-b   -v,%d,a b
"##;

/// Lines that are refused, since their program could run a value, or is not followed.
const REFUSED: &str = r##"
awk '{system("echo {}")}' f
awk '{print | "cat {}"}' f
awk '"echo {}" | getline x' f
awk '{x = {} /a/ + 1} (1) /b/' f
awk '@{}("x")' f
awk '{print "\{}"}' f
awk '{print "{}' f
awk "/$x{}/" f
awk '# {}' f
awk 'a' '{}' -f {}; awk '{system("{}")}'
sed 's/a/{}/e' f
sed '1e echo {}' f
sed 's/a/b/{}' f
sed -e '{}' -e 's/a/\{}/' f
sed 's{}a{}b{}' f
sed 's/[/{}]/x/' f
sed ':{}' f
sed -e{}p f
perl -e 'system "{}"'
perl -e 'exec("x", "{}")'
perl -e 'eval "{}"'
perl -e '`{}`'
perl -e 'open F, "{}"'
perl -pe 's/a/{}/e' f
perl -pe 's/a/b/{}' f
perl -pe 's{a}{{}}' f
perl -e 'print <<{}'
perl -e '"{}"->x'
perl -e '&{"{}"}()'
perl -e 'print q({})'
perl -e 'f(x) / {} / 2'
perl -e 'print "' -e '{}"'
python3 -c 'import os; os.system("{}")'
python3 -c 'exec("{}")'
python3 -c 'print(f"{}")'
python3 -c '__import__("{}")'
python3 -c 'getattr(x, "{}")()'
ruby -e 'system("{}")'
ruby -e 'puts `{}`'
ruby -e 'x.send("{}")'
node -e 'eval("{}")'
node -e 'x["{}"]()'
sqlite3 db '.shell {}'
sqlite3 db '{}'
psql -c "copy t to program 'x{}'"
sh -c '{} x'
sh -c 'eval {}'
sh -c '. {}; x'
sh -c 'exec {}'
sh -c 'x{}=1 y'
sh -c 'echo $(({}))'
sh -c 'echo {}>f'
sh -c 'echo "$x{}"'
sh -c 'awk "/{}/" f'
sh -c 'case x in {}) ls;; esac'
sh -{} 'echo x'
bash -c 'echo {a,{}}'
fish -c 'echo {}'
ssh host 'rm {}'
eval 'echo {}'
lua -e 'print("{}")'
"##;

#[test]
fn plain_values_are_accepted_in_program_texts() {
    for row in ACCEPTED.lines().filter(|row| !row.is_empty()) {
        let parts: Vec<&str> = row.split("   ").collect();
        let &[line, accepted, failing] = &parts[..] else { panic!("{row}") };
        assert!(parse(line).is_err(), "accepted without the option: {line}");
        let template = plain(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        for value in accepted.split(',') {
            let argv = argv(&template, &[value]);
            assert!(argv.is_ok(), "{line}: `{value}`: {}", argv.unwrap_err());
        }
        for value in failing.split(',') {
            let error = argv(&template, &[value]).expect_err(&format!("{line}: `{value}`"));
            assert_eq!(error.kind(), ErrorKind::Value, "{line}: {error}");
            assert!(error.to_string().contains("--only"), "{error}");
        }
        assert!(argv(&template, &[""]).is_err(), "{line}: accepts an empty value");
    }
}

#[test]
fn program_text_that_may_run_a_value_is_refused() {
    for line in REFUSED.lines().filter(|line| !line.is_empty()) {
        let parsed = plain(line);
        assert!(parsed.is_err(), "accepted: {line}");
        assert_ne!(parsed.unwrap_err().kind(), ErrorKind::Syntax, "{line}");
    }
}

#[test]
fn plain_value_is_the_same_without_a_shell() {
    let options = Options { plain_values_in_program_texts: true, quote: true, ..posix() };
    let words = ["awk", "$1 == \"{1}\"", "{2}"].map(OsString::from);
    let template = Template::parse(&words, &options).unwrap();
    assert_eq!(argv(&template, &["a", "x y"]).unwrap(), ["awk", "$1 == \"a\"", "x y"]);
    let error = argv(&template, &["a\"b", "f"]).unwrap_err().to_string();
    assert!(error.contains("ENVIRON") && error.contains("--only"), "{error}");
    // Several values would be several words of the program.
    let words = ["sed", "-n", "{}p"].map(OsString::from);
    assert!(argv(&Template::parse(&words, &options).unwrap(), &["1", "2"]).is_err());
}

#[test]
fn variable_that_programs_run_takes_no_value() {
    for line in [
        "GIT_SSH_COMMAND={} git fetch",
        "export GIT_EDITOR={}; git commit",
        "env GIT_PAGER={} git log",
        "x={}; sh <<E\necho $x\nE\n:",
        "x={}; python3 - <<E\nprint('$x')\nE\n:",
    ] {
        assert_eq!(parse(line).expect_err(line).kind(), ErrorKind::Refused, "{line}");
    }
    for line in [
        "MYEDITOR={} ls",
        "x={}; cat <<E\n$x\nE\n:",
        "x={}; sh <<'E'\necho $y\nE\n:",
        "sh <<E\necho $x\nE\n:; : {}",
    ] {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn file_of_perl_is_no_command() {
    for line in ["perl -ne 'print' {}", "perl -pi -e 's/a/b/' {}", "perl -lane 'print $F[0]' x {}"] {
        let template = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        argv(&template, &["a b/c.txt"]).unwrap();
        for value in ["touch x|", " touch x | ", "|touch x", ">x"] {
            assert_eq!(argv(&template, &[value]).expect_err(line).kind(), ErrorKind::Value, "{line} {value}");
        }
    }
    let template = parse("perl -e 'print $ARGV[0]' {}").unwrap();
    argv(&template, &["a|"]).unwrap();
}

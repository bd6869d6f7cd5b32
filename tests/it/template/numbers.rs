//! Arithmetic on values in real shells: plain numbers give the right results, and no other value
//! reaches the shell.

use super::*;

/// Lines, the shells that have that syntax, and the output for the value 5. `*` is every shell.
const LINES: &[(&str, &str, &str)] = &[
    ("echo $(( {} + 1 ))", "*", "6"),
    ("echo $(( {} % 2 ))", "*", "1"),
    ("echo \"$(( 2 * ({1} - {}) + {} ))\"", "*", "5"),
    ("echo $((10 - {}))", "*", "5"),
    ("v={}; echo $((v*2))", "*", "10"),
    ("v=\"{}\"; echo $(( $v * 2 ))", "*", "10"),
    ("v='{}'; w=$v; echo $((w))", "*", "5"),
    ("v={}; v=$((v + 1)); echo \"$v\"", "*", "6"),
    ("for w in {} 1; do echo $((w * 2)); done", "*", "10\n2"),
    ("v={}; eval 'echo $((v))'", "*", "5"),
    ("v=a{}; a5=3; echo $((v))", "bash zsh ksh93 mksh", "3"),
    ("i={}; while [ $i -lt 7 ]; do i=$((i + 1)); done; echo $i", "*", "7"),
    ("sleep $(( {} / 9 )); echo slept", "*", "slept"),
    ("(( {} > 2 )) && echo more", "bash zsh ksh93 mksh", "more"),
    ("[[ {} -gt 3 ]] && echo more", "bash zsh ksh93 mksh", "more"),
    ("v={}; [[ $v -gt 3 ]] && echo more", "bash zsh ksh93 mksh", "more"),
    ("echo $[ {} + 1 ]", "bash zsh", "6"),
    ("for ((i=3; i<{}; i++)); do echo $i; done", "bash zsh ksh93", "3\n4"),
    ("v=abcdefgh; echo ${v:{}:2}", "bash zsh ksh93 mksh busybox", "fg"),
    ("v=abcdefgh; echo \"${v:1:{}}\"", "bash zsh ksh93 mksh busybox", "bcdef"),
];

/// Lines with a number and another value that may stay in a variable.
const MIXED: &[(&str, &str)] = &[
    ("echo $(( {1} + 1 )) {2}", "*"),
    ("n={1}; f={2}; echo $((n*2)) \"$f\"", "*"),
    ("f={2}; n={1}; [[ $n -gt 3 ]] && echo \"$f\"", "bash zsh ksh93 mksh"),
    ("f={2}; for ((i=4; i<{1}; i++)); do echo \"$f\"; done", "bash zsh ksh93"),
    ("v={2}; echo \"${v:{1}:3}\"", "bash zsh ksh93 mksh busybox"),
    ("a=5; a5={2}; echo $((a{1}))", "*"),
    ("v=a{1}; a5={2}; echo $((v))", "*"),
    ("v=a{1}; a5={2}; echo $(({1})); [[ $v -gt 3 ]]", "bash zsh ksh93 mksh"),
    ("a5={2}; echo $(({1})); [[ a{1} -gt 3 ]]", "bash zsh ksh93 mksh"),
    ("v=a; v+={1}; a5={2}; echo $(({1})); [[ $v -gt 3 ]]", "bash zsh ksh93 mksh"),
    ("x=5; v=a$x; a5={2}; echo $(({1})); [[ $v -gt 3 ]]", "bash zsh ksh93 mksh"),
    ("a5={2}; for v in a{1}; do [[ $v -gt 3 ]]; done; echo $(({1}))", "bash zsh ksh93 mksh"),
    ("a5={2}; w=xyz; : $(({1})); v=a{1}; echo ${w:v:1}", "bash zsh ksh93 mksh"),
    ("a5={2}; : $(({1})); export v=a{1}; [[ $v -gt 3 ]]", "bash zsh ksh93 mksh"),
    ("a5={2}; : $(({1})); printf -v v 'a%s' {1}; [[ $v -gt 3 ]]", "bash zsh"),
    ("a5={2}; : $(({1})); : ${v:=a{1}}; [[ $v -gt 3 ]]", "bash zsh ksh93 mksh"),
    ("a5={2}; : $(({1})); v=(a{1}); [[ $v -gt 3 ]]", "bash zsh ksh93 mksh"),
    ("a5={2}; : $(({1})); v=$(echo a{1}); [[ $v -gt 3 ]]", "bash zsh ksh93 mksh"),
    ("a5={2}; : $(({1})); read v <<< a{1}; [[ $v -gt 3 ]]", "bash zsh ksh93 mksh"),
    ("x=5; a5={2}; [ \"a$x\" -gt 3 ]; : {1}", "*"),
    ("x=5; a5={2}; [ a$x -gt 3 ]; : $(({1}))", "*"),
    ("i={1}; a5={2}; while [ $i -lt 7 ]; do i=$((i + 1)); done; : \"$a5\"", "*"),
    ("x=5; v=a$x; a5={2}; [[ $v -gt 3 ]]; : {1}", "bash zsh ksh93 mksh"),
    ("b=a5x; a5={2}; v=${b%x}; [[ $v -gt 3 ]]; : {1}", "bash zsh ksh93 mksh"),
    ("b=a5x; a5={2}; [[ ${b%x} -gt 3 ]]; : {1}", "bash zsh ksh93 mksh"),
];

const NUMBERS: &[i64] = &[0, 1, 5, -1, -5, 42, 2_147_483_647];

/// Values that are not plain numbers. `C` is the canary.
const OTHERS: &[&str] = &[
    "a[$(touch C)]",
    "1+a[$(touch C)]",
    "1,a[$(touch C)]",
    "$(touch C)",
    "`touch C`",
    "1]; touch C; [",
    "1))); touch C; ((",
    "x",
    "_",
    "1+1",
    "08",
    "0x10",
    "٣",
    "1\n",
    " 1",
    "",
    "1000000000000000000000000000000",
];

fn cases<'l>(shells: &'l [OsString], names: &str) -> impl Iterator<Item = &'l OsString> {
    let names: Vec<String> = names.split(' ').map(str::to_owned).collect();
    shells.iter().filter(move |shell| {
        let name = Path::new(shell).file_name().unwrap().to_str().unwrap();
        names.iter().any(|known| known == "*" || known == name)
    })
}

fn job<'j>(columns: &'j [OsString]) -> Job<'j> {
    Job { columns, number: 1, slot: 1, ..Job::default() }
}

#[test]
fn number_gives_the_right_result_and_other_value_fails_the_job() {
    let place = Place::new();
    let shells = shells();
    for (line, names, expected) in LINES {
        for shell in cases(&shells, names) {
            let template = Template::parse(&[line.into()], &with_shell(shell))
                .unwrap_or_else(|error| panic!("{shell:?}: {line}: {error}"));
            let argv = template.argv(&job(&["5".into()])).unwrap();
            let output = place.run(&argv).unwrap();
            assert_eq!(String::from_utf8_lossy(&output).trim_end(), *expected, "{shell:?}: {line}");
            for other in OTHERS {
                let value = other.replace('C', &place.canary());
                let error = template.argv(&job(&[value.into()])).expect_err(line);
                assert_eq!(error.kind(), ErrorKind::Value, "{shell:?}: {line}");
            }
        }
    }
}

#[test]
fn arithmetic_accepts_signs() {
    let place = Place::new();
    let shells = shells();
    for shell in cases(&shells, "*") {
        let line = "v={}; echo $(( {} / 2 )) $((v / 2)) $((1 - {1})) $((1 - v)) $(( -v / 2 ))";
        let template = Template::parse(&[line.into()], &with_shell(shell)).unwrap();
        for number in NUMBERS {
            for text in [number.to_string(), format!("{number:+}")] {
                let output = place.run(&template.argv(&job(&[text.into()])).unwrap()).unwrap();
                let [half, minus] = [number / 2, 1 - number];
                let expected = format!("{half} {half} {minus} {minus} {}\n", -number / 2);
                assert_eq!(String::from_utf8_lossy(&output), expected, "{shell:?}");
            }
        }
    }
}

/// A value next to a number is never evaluated: the job fails, or the value remains text.
#[test]
fn value_next_to_a_number_is_not_evaluated() {
    let place = Place::new();
    let shells = shells();
    for (line, names) in MIXED {
        for shell in cases(&shells, names) {
            let Ok(template) = Template::parse(&[line.into()], &with_shell(shell)) else { continue };
            for other in OTHERS {
                let value = other.replace('C', &place.canary());
                let Ok(argv) = template.argv(&job(&["5".into(), value.into()])) else { continue };
                place.run(&argv).unwrap_or_else(|error| panic!("{shell:?}: {line}: {other}: {error}"));
            }
        }
    }
}

/// Tokens of lines with a number `{1}` and another value `{2}`, separated by one space. `␣` is a
/// space.
const SOUP: &str = "\
{1} {1} {1} {2} {2} a5={2};␣ a5={2};␣ v={1};␣ v=a{1};␣ v=a;␣ v+={1};␣ w={2};␣ w=$v;␣ v=$w;␣ a=3;␣ \
x=5;␣ v=a$x;␣ echo␣$(({1}));␣ echo␣$(({1}));␣ $(( )) (( [[␣ ␣]] ␣-gt␣ ␣-eq␣ 3 + - * ␣ ; ;␣ a a5 v w \
$v $w ${v} ${v:{1}} ${a5:{1}:1} ${w: :{1} } {v} ␣[␣ ␣] [ ] v[{1}]=1 a[ $[ for␣((i=0;i<{1};i++));␣do␣ \
;␣done for␣v␣in␣ ;␣do␣ export␣v= declare␣ eval␣ printf␣-v␣v␣ %s␣ echo␣ read␣v␣<<<␣ $( ) \" ' && || \
test␣ let␣ , ? : = == ! ~ # 10# 0x _ ${#v} ${v%x} ${v:=a{1}} v=(a{1});␣ ${v[0]} {#} a{#}";

/// No line with a number runs the other value.
#[test]
fn token_soup_with_a_number_never_runs_a_value() {
    let place = Place::new();
    let values = ["a[$(touch C)]", "b[$(touch C)]", "$(touch C)", "1;touch C", "([0]=$(touch C))"];
    let values = values.map(|value| value.replace('C', &place.canary()));
    let tokens: Vec<&str> = SOUP.split(' ').collect();
    let wanted = crate::support::cases("MINDER_SOUP", 60, 150);
    for (i, shell) in shells().iter().enumerate() {
        let mut checked = 0;
        let mut seed = i as u64 * 1_000_000_000;
        while checked < wanted {
            seed += 1;
            let mut random = Random(seed);
            let mut line = String::from("a5={2}; echo $(({1})); ");
            for _ in 0..2 + random.below(9) {
                line += &random.pick(&tokens).replace('␣', " ");
            }
            let Ok(template) = Template::parse(&[OsString::from(&line)], &with_shell(shell)) else {
                continue;
            };
            let value = OsString::from(&values[seed as usize % values.len()]);
            let Ok(argv) = template.argv(&Job { number: 5, ..job(&["5".into(), value]) }) else { continue };
            checked += 1;
            if let Err(why) = place.run(&argv) {
                panic!("{}, seed {seed}: {line}: {why}\n{}", shell.display(), argv[2].display());
            }
        }
    }
}

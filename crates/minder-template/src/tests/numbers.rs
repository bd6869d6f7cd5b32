//! Arithmetic on values: which lines are accepted, and which values each job accepts.

use super::*;

const SHELLS: [&str; 6] = ["dash", "bash", "zsh", "ksh93", "mksh", "busybox"];
const IS_WINDOWS: bool = matches!(std::env::consts::FAMILY.as_bytes(), b"windows");
const NUMBERS: [&str; 7] = ["0", "7", "-1", "+5", "42", "999999999999999999", "-999999999999999999"];
const OTHERS: [&str; 26] = [
    "a[$(touch pwned)]",
    "$(touch pwned)",
    "x",
    "_",
    "1+1",
    "08",
    "00",
    "-01",
    "0x10",
    "16#ff",
    "1e3",
    "1.5",
    "٣",
    "１",
    "1\n",
    "\n1",
    " 1",
    "1 ",
    "",
    "-",
    "+",
    "--1",
    "+-1",
    "1000000000000000000",
    "1000000000000000000000000000000",
    "1,a[$(touch pwned)]",
];

fn run(line: &str, shell: &str, values: &[&str]) -> Result<Vec<String>, Error> {
    argv(&parse_with(line, shell).unwrap_or_else(|error| panic!("{shell}: {line}: {error}")), values)
}

/// Asserts that a line is accepted, and that a job with a value runs only if it is a number.
#[track_caller]
fn assert_checked(line: &str, shells: &[&str]) {
    for shell in shells {
        for number in NUMBERS {
            run(line, shell, &[number]).unwrap_or_else(|error| panic!("{shell}: {line}: {error}"));
        }
        for other in OTHERS {
            let error = run(line, shell, &[other]).expect_err(line);
            assert_eq!(error.kind(), ErrorKind::Value, "{shell}: {line}");
            let text = error.to_string();
            assert!(text.contains("is not a decimal number") && !text.contains('\n'), "{text}");
        }
    }
}

#[test]
fn value_in_arithmetic_is_checked_to_be_a_number() {
    for line in [
        "echo $(( {} + 1 ))",
        "sleep $(( {} % 2 ))",
        "echo \"$(( ({1} + 2) * {} ))\"",
        "echo $(( {} + 1 )) {}",
        "echo {}; echo $(( {} ))",
        "v=$(( {} * 2 )); echo \"$v\"",
        "echo $(( {#} + {} ))",
        "v={}; echo $((v*2))",
        "v=\"{}\"; echo $(( $v * 2 ))",
        "v='{}'; w=$v; echo $((w))",
        "for w in {}; do echo $((w * 2)); done",
        "v={}; v=$((v + 1)); echo \"$v\"",
        "v={} eval 'echo $((v))'",
        "i={}; while [ $i -lt 3 ]; do i=$((i + 1)); done",
        "v={}; if [ $((v % 2)) -eq 0 ]; then echo even; fi",
    ] {
        assert_checked(line, &SHELLS);
    }
    let conditions = ["(( {} > 2 ))", "[[ {} -gt 3 ]]", "[[ 3 -le \"{}\" ]]", "v={}; [[ $v -gt 3 ]]"];
    for line in conditions {
        assert_checked(line, &["bash", "zsh", "ksh93", "mksh"]);
    }
    let line = "i={}; [ \"$i\" -lt 3 ]";
    assert_checked(line, &["zsh", "ksh93", "mksh"]);
    assert!(run(line, "bash", &["a[$(x)]"]).is_ok() && run(line, "dash", &["a[$(x)]"]).is_ok());
    assert_checked("echo $[ {} + 1 ]", &["bash", "zsh"]);
    assert_checked("for ((i=0; i<{}; i++)); do echo $i; done", &["bash", "zsh", "ksh93"]);
    assert_checked("v=abc; echo ${v:{}:1}", &["bash", "zsh", "ksh93", "mksh", "busybox"]);
    assert_checked("v=abc; echo \"${v:1:{}}\"", &["bash", "zsh", "ksh93", "mksh", "busybox"]);
}

#[test]
fn only_values_that_arithmetic_reads_are_checked() {
    for (line, shell) in [
        ("echo $(( {1} + 1 )) {2}", "dash"),
        ("n={1}; f={2}; head -n $((n*2)) \"$f\"", "dash"),
        ("f={2}; n={1}; [[ $n -gt 3 ]] && cat \"$f\"", "bash"),
        ("f={2}; for ((i=0; i<{1}; i++)); do cat \"$f\"; done", "bash"),
        ("v={2}; echo \"${v:{1}:3}\"", "bash"),
    ] {
        run(line, shell, &["3", "a[$(x)]"]).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(run(line, shell, &["x", "3"]).is_err(), "{line}");
    }
    // Nothing of the value is evaluated.
    for line in ["v={}; echo ${v:0:3}", "v={}; echo \"${v: -3}\"", "v={}; echo ${v:1}"] {
        for shell in ["bash", "zsh", "ksh93", "mksh", "busybox"] {
            run(line, shell, &["a[$(x)]"]).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
}

#[test]
fn name_that_a_number_completes_counts_as_any_variable() {
    for (line, values) in [
        ("a=5; a1={2}; echo $((a{1}))", &["1", "b[$(x)]"]),
        ("v=a{1}; a1={2}; [[ $v -gt 3 ]]; echo $(({1}))", &["1", "b[$(x)]"]),
        ("a5={2}; echo $(({1})); [[ a{1} -gt 3 ]]", &["5", "b[$(x)]"]),
        ("v=a; v+={1}; a5={2}; [[ $v -gt 3 ]]; echo $(({1}))", &["5", "b[$(x)]"]),
        ("v={1}{2}; echo $((v))", &["5", "b[$(x)]"]),
    ] {
        if let Ok(template) = parse_with(line, "bash") {
            assert_eq!(argv(&template, values).expect_err(line).kind(), ErrorKind::Value);
        }
    }
    for line in
        ["a=5; a1={}; echo $((a{#}))", "v=a{#}; a1={}; [[ $v -gt 3 ]]", "x=5; v=a$x; a5={}; [[ $v -gt 3 ]]"]
    {
        if let Ok(template) = parse_with(line, "bash") {
            assert_eq!(argv(&template, &["b[$(x)]"]).expect_err(line).kind(), ErrorKind::Value);
        }
    }
}

#[test]
fn composed_text_is_harmless_where_no_variable_holds_a_value() {
    for line in [
        "for i in {3..300}; do [ -e /proc/self/fd/$i ] && echo $i; done; : {}",
        "for i in {10..69} 500; do echo {} >&$i || exit 9; done",
        "for f in *.txt; do [ -e $f ] && echo {} $f; done",
        "d=/tmp/$USER; [ -e $d ] && echo {}",
        "v={}; for i in {1..3}; do [ -e /x/$i ] && echo \"$v\"; done",
    ] {
        let template = parse_with(line, "bash").unwrap_or_else(|error| panic!("{line}: {error}"));
        argv(&template, &["b[$(x)]"]).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn refusal_that_is_not_about_numbers_stays() {
    for (line, shell, part) in [
        ("echo $(( $(cat {}) + 1 ))", "bash", "arithmetic"),
        ("[[ $(wc -l < {}) -gt 3 ]]", "bash", "arithmetic"),
        ("[[ -f {1} && {2} -gt 3 ]]", "bash", "arithmetic"),
        ("[[ -v {} ]]", "bash", "arithmetic"),
        ("v=$(cat {}); echo $((v))", "bash", "evaluates variables"),
        ("echo {} | while read -r v; do echo $((v)); done", "bash", "evaluates variables"),
        ("f() { echo $(($1)); }; f {}", "bash", "evaluates variables"),
        ("v={}; eval echo $v", "bash", "evaluates variables"),
        ("v={}; [ -f $v ]", "bash", "evaluates variables"),
        ("v={}; [ $v = x ]", "bash", "evaluates variables"),
        ("v={}; echo ${!v}", "bash", "evaluates variables"),
        ("v={}; y=abc; echo ${y:v}", "bash", "evaluates variables"),
        ("(( {} > 2 ))", "dash", "`((…))`"),
        ("echo $[ {} + 1 ]", "dash", "`$[`"),
        ("for ((i=0; i<{}; i++)); do :; done", "dash", "`for ((`"),
        ("echo $((3-{}))", "bash", "put a space before it"),
        ("echo ${v:-{}}", "bash", "`${…}`"),
        ("echo `echo $(( {} ))`", "bash", "backticks"),
        ("f() { echo $(( {} )); }; f", "bash", "in a function"),
    ] {
        assert_refused_by(line, shell, part);
    }
}

#[test]
fn program_with_a_digit_or_the_name_of_cmd_is_a_program() {
    for program in ["cmd1", "cmd2", "watch2", "eval1", "./cmd", "cmd", "env2", "sed4", "ssh2", "./watch2"] {
        for line in [format!("{program} -c {{}} | cat"), format!("{program} {{}} x; :")] {
            assert!(parse_with(&line, "bash").is_ok() || IS_WINDOWS, "{line}");
        }
        assert!(direct(&[program, "-c", "a {}"]).is_ok() || IS_WINDOWS, "{program}");
    }
    for program in ["python3.11", "perl5.36", "lua5.4", "bash5", "php8.2", "ruby3.1", "zsh-5.9"] {
        let option = if program.starts_with("python") || program.contains("sh") { "-c" } else { "-e" };
        let option = if program.starts_with("php") { "-r" } else { option };
        assert_refused(&format!("{program} {option} 'a {{}}'"), "the program text of");
    }
}

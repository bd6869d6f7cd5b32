//! The shell functions of `minder parallel --env-setup`: env_parallel and parset, in bash and zsh.

use std::path::Path;

use super::{MINDER, Run, RunOutput, from, parallel_compat::at_home, temp_dir};

const SHELLS: [&str; 2] = ["bash", "zsh"];

/// What both shells know: the same code prints the same.
const PREAMBLE: &str = r#"
f() { printf '%s|' "$1" "$value" "${array[@]}"; echo; }
value='a  '\''b'
array=('x y' '$(touch pwned)')
"#;

/// Runs code in a shell that has loaded the functions, in this directory. Returns `None` if there is no
/// such shell.
fn run_in(shell: &str, dir: &Path, code: &str) -> Option<RunOutput> {
    let is_here = std::env::split_paths(&std::env::var_os("PATH")?).any(|dir| dir.join(shell).is_file());
    if !is_here {
        crate::support::skip(format_args!("{shell} is not in PATH; cure: apt-get install {shell}"));
        return None;
    }
    let mut command = from(shell, "");
    let code = format!("eval \"$('{MINDER}' parallel --env-setup {shell})\"\n{code}");
    at_home(&mut command, dir);
    command.args(["-c", &code]).current_dir(dir).env("TMPDIR", dir).env("HOME", dir);
    Some(Run::start(&command).wait())
}

/// Runs code in each shell. It prints these lines, exits with this status, and leaves nothing.
#[track_caller]
fn expect(code: &str, status: i32, lines: &[&str]) {
    for shell in SHELLS {
        let dir = temp_dir();
        let Some(out) = run_in(shell, dir.path(), code) else { continue };
        let out = out.exit_code(status);
        assert_eq!(out.text().lines().collect::<Vec<_>>(), lines, "{shell}: {}", out.err);
        let mut left = std::fs::read_dir(dir.path()).expect("list directory").flatten();
        let is_ours = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"minder-");
        assert!(!left.any(|entry| is_ours(&entry.file_name())), "{shell}: a directory is left");
        assert!(!dir.path().join("pwned").exists(), "{shell}: a value became code");
    }
}

#[test]
fn jobs_have_functions_variables_and_aliases() {
    let code = format!(
        "{PREAMBLE}
        [ -n \"${{ZSH_VERSION-}}\" ] || shopt -s expand_aliases
        alias greet='echo hello'
        typeset -A map
        map[key]='of a map'
        env_parallel -k f ::: 1 'two words'
        env_parallel -k 'greet {{}}; echo \"${{map[key]}}\"' ::: you"
    );
    let first = r"1|a  'b|x y|$(touch pwned)|";
    let second = r"two words|a  'b|x y|$(touch pwned)|";
    expect(&code, 0, &[first, second, "hello you", "of a map"]);
}

#[test]
fn settings_of_the_shell_change_nothing() {
    let code = format!(
        "{PREAMBLE}
        set -euf
        IFS=:
        env_parallel -k f ::: a:b
        parset out f ::: c:d
        printf '%s\\n' \"${{out[@]}}\""
    );
    expect(&code, 0, &[r"a:b|a  'b|x y|$(touch pwned)|", r"c:d|a  'b|x y|$(touch pwned)|"]);
}

#[test]
fn variable_may_be_longer_than_an_argument() {
    expect(
        "big=$(head -c 3000000 /dev/zero | tr '\\0' x); env_parallel 'echo ${#big}; :' ::: 1",
        0,
        &["3000000"],
    );
}

#[test]
fn options_env_select_names() {
    let code = "f() { echo f; }; g() { echo g; }; value=v
        env_parallel --env f '(f; g) 2>/dev/null; echo \"[${value-unset}]\"; :' ::: 1
        env_parallel --record-env
        h() { echo h; }
        env_parallel --env _ '(f; h) 2>/dev/null; :' ::: 1
        env_parallel --session
        i() { echo i; }
        env_parallel '(h; i) 2>/dev/null; :' ::: 1
        env_parallel --end-session
        env_parallel '(h; i) 2>/dev/null; :' ::: 1";
    expect(code, 0, &["f", "[unset]", "h", "i", "h", "i"]);
}

#[test]
fn parset_assigns_outputs_in_the_order_of_the_arguments() {
    let code = r#"
        parset all 'sleep 0.{}; printf "%s\n\n" {}' ::: 2 1
        printf '<%s>' "${all[@]}"
        parset one,two 'echo {}' ::: '$(touch pwned)' '"; touch pwned'
        printf '<%s>' "$one" "$two"
        parset 'three four' 'printf "a\0b%s" {}' ::: 1 2
        printf '<%s>' "$three" "$four"
        in_function() { local -a inner; parset inner echo ::: 5 6; printf '<%s>' "${inner[@]}"; }
        in_function
        printf '<%s>\n' "${inner-gone}""#;
    let expected = "<2\n><1\n><$(touch pwned)><\"; touch pwned><ab1><ab2><5><6><gone>";
    expect(code, 0, &expected.lines().collect::<Vec<_>>());
}

#[test]
fn parset_returns_the_status_of_the_run() {
    expect(
        "parset all 'echo {}; [ {} = 0 ]' ::: 0 3 4; code=$?; echo \"${all[@]}\"; exit $code",
        2,
        &["0 3 4"],
    );
    let too_many = "parset one,two echo ::: 1 2 3; code=$?; echo $one $two; exit $code";
    expect(too_many, 255, &["1 2"]);
}

#[test]
fn parset_refuses_what_is_no_name() {
    for name in ["", "1", "a-b", "a[$(touch pwned)]", "a b;c", "a["] {
        for shell in SHELLS {
            let dir = temp_dir();
            let code = format!("parset '{name}' echo ::: 1");
            let Some(out) = run_in(shell, dir.path(), &code) else { continue };
            let out = out.exit_code(255).stderr_contains("parset: invalid name `");
            assert_eq!(out.text(), "", "{name}");
            assert!(!dir.path().join("pwned").exists(), "{name}");
        }
    }
}

#[test]
fn parset_assigns_to_no_variable_that_bash_evaluates() {
    let dir = temp_dir();
    let code = "declare -i n; parset n,m 'printf %s {}' ::: 'x[$(touch pwned)]' 2";
    let Some(out) = run_in("bash", dir.path(), code) else { return };
    out.exit_code(255).stderr_contains("parset: cannot assign to `n`");
    assert!(!dir.path().join("pwned").exists(), "an output became code");
}

#[test]
fn only_bash_and_zsh_have_the_functions() {
    let mut command = from(MINDER, "parallel --env-setup dash");
    at_home(&mut command, Path::new("/nonexistent"));
    let out = Run::start(&command).wait().exit_code(255);
    out.error_line(&["there is no env_parallel for `dash`: expected bash or zsh"]);
}

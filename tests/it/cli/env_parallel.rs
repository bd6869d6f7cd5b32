//! The shell functions of `minder parallel --env-setup`: env_parallel and parset, in bash and zsh.

use std::path::Path;

use super::{MINDER, Run, RunOutput, from, parallel_compat::at_home, temp_dir};

const SHELLS: [&str; 2] = ["bash", "zsh"];

/// Definitions that both shells understand: the same code prints the same.
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
        crate::support::skip(format_args!("{shell} is not in PATH; hint: apt-get install {shell}"));
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
fn env_after_the_command_word_belongs_to_the_command() {
    let code = "f() { echo \"f $*\"; }; value=v
        env_parallel f --env value ::: 1
        env_parallel --tagstring --env 'f {} \"$value\"' ::: 2
        env_parallel --env value,f 'f {} \"$value\"' ::: 3
        PARALLEL='--env f' env_parallel 'f \"${value-unset}\"; :' ::: 4";
    expect(code, 0, &["f --env value 1", "--env\tf 2 v", "f 3 v", "f unset"]);
}

#[test]
fn names_that_begin_like_those_of_the_shell_reach_jobs() {
    let code = "OPTIONS=a EPOCH_LENGTH=b COMP_LEVEL=c BASH_OPTIONS=d BASHER=e _minder_mine=f _minder=g
        env_parallel 'echo $OPTIONS $EPOCH_LENGTH $COMP_LEVEL $BASH_OPTIONS $BASHER
            echo $_minder_mine $_minder' ::: 1
        for name in _minder_text _minder_dir; do
            parset $name echo ::: 1 2>/dev/null || echo $?
        done";
    expect(code, 0, &["a b c d e", "f g 1", "255", "255"]);
}

#[test]
fn temporary_directory_may_have_any_name() {
    let code = r#"f() { echo "f $1"; }
        for name in 't$(touch pwned)' 't`touch pwned`' 't\$HOME' "t'\"x" $'a\nb'; do
            mkdir "$PWD/$name"
            export TMPDIR=$PWD/$name
            env_parallel f ::: 1
            parset out f ::: 2
            echo "${out[@]}"
            rmdir "$PWD/$name"
        done"#;
    expect(code, 0, &["f 1", "f 2"].repeat(5));
}

#[test]
fn newlines_in_names_and_values_are_kept() {
    let code = r#"value=$'a\nf() { touch pwned; }'; export exported=$'b\nc'
        f() { printf '%s.' 'd
e'; }
        alias greet=$'printf f.\nprintf g.'
        if [ -n "${ZSH_VERSION-}" ]; then functions[$'h\nf']='touch pwned'; fi
        env_parallel 'printf "%s." "$value" "$exported"; f; greet; :' ::: 1"#;
    expect(code, 0, &["a", "f() { touch pwned; }.b", "c.d", "e.f.g."]);
}

#[test]
fn options_and_functions_of_the_shell_change_nothing() {
    let code = r#"
        f() { builtin printf '%s,' "$@"; }; F() { touch pwned; }; unset none
        if [ -n "${ZSH_VERSION-}" ]; then
            setopt ksh_arrays sh_word_split null_glob glob_subst no_case_match all_export no_unset err_exit
        else
            shopt -s nocasematch failglob expand_aliases
            set -eu
        fi
        alias greet='builtin printf greet.'
        for name in local printf command declare typeset alias shift set trap read test \
            mktemp rm cat tr compgen shopt continue functions setopt print zmodload eval; do
            builtin eval "$name() { builtin echo $name is called; }"
        done
        [ -n "${ZSH_VERSION-}" ] || { POSIXLY_CORRECT=; export -n POSIXLY_CORRECT; builtin set -a; }
        IFS=01
        env_parallel --env f,greet 'greet; f {}; F 2>/dev/null; builtin echo {}' ::: 10
        parset out,two 'greet; builtin printf "<%s>"' ::: 20 30
        builtin printf '%s\n' "$out" "$two"
        parset out 'greet; builtin printf "<%s>"' ::: 40
        builtin printf '%s\n' "${out[@]}""#;
    expect(code, 0, &["greet.10,10", "greet.<20>", "greet.<30>", "greet.<40>"]);
}

#[test]
fn aliases_change_no_function_when_they_are_loaded() {
    for shell in SHELLS {
        let dir = temp_dir();
        let code = format!(
            r#"[ -n "${{ZSH_VERSION-}}" ] || shopt -s expand_aliases
            for name in local printf command builtin declare typeset alias shift return trap read test \
                mktemp rm cat tr compgen shopt emulate true eval env_parallel parset case; do
                alias "$name=echo alias"
            done
            \eval "$('{MINDER}' parallel --env-setup {shell})"
            \env_parallel 'echo {{}}; cat 1' ::: 1
            \parset out echo ::: 2
            \printf '%s\n' "$out""#
        );
        let Some(out) = run_in(shell, dir.path(), &code) else { continue };
        assert_eq!(out.text(), "1\nalias 1\n2\n", "{shell}: {}", out.err);
    }
}

#[test]
fn file_of_bash_env_is_read_in_each_job_as_without_env_parallel() {
    let code = r#"mkdir 'a"b'; echo 'own=1; unset -v BASH_ENV' >'a"b/file'; echo 'own=2' >plain
        export dir='a"b' BASH_ENV
        for BASH_ENV in '$dir/file' '$(echo plain)' 'a\"b/file' nothing; do
            for run in "$BASH -c" 'env_parallel -n0'; do
                eval "$run 'echo \${own-unset} \${BASH_ENV-unset}' ::: 1"
            done
        done 2>&1
        export -n BASH_ENV
        env_parallel 'echo $BASH_ENV; printenv BASH_ENV; :' ::: 1
        export PARALLEL_SHELL=sh
        env_parallel 'echo $PARALLEL_SHELL' ::: 1"#;
    let dir = temp_dir();
    let Some(out) = run_in("bash", dir.path(), code) else { return };
    let lines = ["1 unset", "2 $(echo plain)", "1 unset", "unset nothing"].map(|line| [line, line]).concat();
    let lines = [lines, vec!["nothing", "sh 1"]].concat();
    assert_eq!(out.text().lines().collect::<Vec<_>>(), lines, "{}", out.err);
}

#[test]
fn parset_assigns_what_a_dry_run_prints() {
    let code = "parset out --dry-run 'printf \"%s
%s\" {}' ::: 1 2; printf '<%s>' \"${out[@]}\"; parset one,two --dry-run echo ::: 3 4; echo $one $two
        env_parallel --dry-run echo ::: 5";
    let expected = "<printf \"%s\n%s\" 1><printf \"%s\n%s\" 2>echo 3 echo 4\necho 5";
    expect(code, 0, &expected.lines().collect::<Vec<_>>());
}

#[test]
fn parset_leaves_no_file_in_another_directory() {
    let code = "mkdir out; parset all --tmpdir out echo ::: 1 2; echo ${all[@]}; rmdir out || echo left
        parset all --results out echo ::: 3; echo ${all[@]}; cat out/1/3/stdout";
    expect(code, 0, &["1 2", "3", "3"]);
}

#[test]
fn parset_evaluates_no_index() {
    let code = "declare -A map 2>/dev/null || typeset -A map; other=(a b c)
        parset 'map[key],other[2]' echo ::: 1 2
        echo ${map[key]} ${other[2]}
        for name in 'x,other[x]' 'other[@]' 'map[@]' 'other[1+1]'; do
            parset $name echo ::: 'y[$(touch pwned)]' 2>/dev/null || echo $?
        done
        [ -n \"${ZSH_VERSION-}\" ] || shopt -s nocasematch
        parset 'x,other[x]' echo ::: 'y[$(touch pwned)]' 2 2>/dev/null || echo $?";
    expect(code, 0, &["1 2", "255", "255", "255", "255", "255"]);
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

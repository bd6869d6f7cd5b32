//! Lines that each shell accepts or refuses: builtins, variables, expansions, redirections,
//! programs.

use super::*;

const SHELLS: [&str; 7] = ["dash", "bash", "busybox", "zsh", "ksh93", "mksh", "yash"];

const KORN: &[&str] = &["zsh", "ksh93", "mksh"];

#[track_caller]
fn in_each(shells: &[&str], line: &str, accepted: bool) {
    for shell in shells {
        match parse_with(line, shell) {
            Ok(_) if accepted => {}
            Err(error) if !accepted => {
                let text = error.to_string();
                assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
                assert_eq!(error.kind(), ErrorKind::Refused, "{shell}: {line}: {text}");
            }
            other => panic!("{shell}: {line}: {:?}", other.map(|_| "accepted")),
        }
    }
}

#[test]
fn value_in_variable_is_refused_where_it_is_evaluated() {
    for line in [
        "v={}; trap 'eval \"$v\"' EXIT",
        "trap 'eval \"$v\"' EXIT; v={}",
        "v={}; eval 'eval \"$v\"'",
        "PS4='$((v))'; set -x; v={}; :",
        "v={}; PS4=$v; set -x; :",
        "read PS4 <<< {}",
        "f() { v=$1; }; f {}; PS4=$v",
        "w=eval; $w {}",
        "w=eval; \"$w\" {}",
        "$(echo eval) {}",
        "`echo eval` {}",
        "${w:=eval} x; $w {}",
        "for w in eval; do $w {}; done",
        "for w in eval {}; do x=\"$x $w\"; done; $x",
        "f() { \"$@\"; }; f eval {}",
        "f() { $1 $2; }; f eval {}",
        "$'eval' {}",
        "$'\\x65val' {}",
        "{eval,{}}",
        "{sh,-c,{}}",
        "/bin/s? -c {}",
        "command {eval,{}}",
        "i={}; x=([i]=1)",
        "i={}; unset 'v[i]'",
        "i={}; read 'v[i]'",
        "i={}; x[$i]=1",
        "i={}; echo {v[i]}> f",
        "echo {v[{}]}> f",
        "echo a >& {}",
        "f={}; echo a >& \"$f\"",
        "f() { >&$1; }; f {}",
        "exec 3<<< {}; . /dev/fd/3",
        ". /dev/stdin <<< {}",
        "a=(); declare \"a={}\"",
        "e{} x",
        "cat >! {}",
    ] {
        in_each(&SHELLS, line, false);
    }
}

#[test]
fn expansion_as_command_name_counts_as_builtin() {
    for line in [
        "${w:-eval} {}",
        "\"${w:-eval}\" {}",
        "${w-eval} {}",
        "${w+eval} {}",
        "${w:+eval} {}",
        "${w:=eval} {}",
        "${w:-${x:-eval}} {}",
        "${w:-\"eval\"} {}",
        "${w:-$(echo eval)} {}",
        "${w:-`echo eval`} {}",
        "${w:-command} eval {}",
        "${w:-command eval} {}",
        "command ${w:-eval} {}",
        "command \"${w:-eval}\" {}",
        "${w:-command} \"${x:-eval}\" {}",
        "${w:-sh -c} 'echo {}'",
        "${w:-sh} -c 'echo {}'",
        "e${w:-v}al {}",
        "e${w}val {}",
        "${w}eval {}",
        "$w eval {}",
        "${w:-} eval {}",
        "v={}; ${w:-eval} \"$v\"",
        "v={}; ${w}eval \"$v\"",
    ] {
        in_each(&SHELLS, line, false);
    }
    for line in ["${!w} {}", "${w/#/eval} {}", "${w//*/eval} {}", "${w:0:4} {}", "$'ev'al {}"] {
        in_each(&["bash"], line, false);
    }
    for line in ["${(P)w} {}", "${:-eval} {}", "${(e)w} {}", "${(k)builtins[(r)eval]} {}"] {
        in_each(&["zsh"], line, false);
    }
    for line in [
        "${CC:-gcc} -c {}",
        "\"${CC:-gcc}\" -c {}",
        "${PREFIX}gcc {}",
        "${PREFIX:-arm-}gcc {}",
        "\"${TOOLS:-/opt}/bin/prog\" {}",
        "\"${TOOLS%/}/prog\" {}",
        "$SUDO rm {}",
        "${SUDO:-} rm {}",
        "${SHELL:-/bin/sh} f {}",
        "$SHELL f {}",
        "${EDITOR:-vi -n} {}",
    ] {
        in_each(&SHELLS, line, true);
    }
}

#[test]
fn variable_that_shells_fill_counts_as_value() {
    for line in [
        "PS4='$((_))'; set -x; : {}; :",
        "PS4='$((v))'; v=_; set -x; : {}; :",
        "PS4='$(($1))'; set -x; : {}",
        "PS4='$((BASH_ARGV))'; set -x; : {}",
        "PS4='`echo $1`'; set -x; : {}",
        "export PS4='$((_))'; set -x; : {}; :",
        "export PS4='$(($1))'; set -x; : {}; :",
        "x='$(($1))'; PS4=$x; set -x; : {}",
        "f() { PS4=$1; }; f '$(($1))'; set -x; : {}",
        "for PS4 in '$(($1))'; do set -x; : {}; done",
        ": ${PS4:=$(($1))}; set -x; : {}",
        "unset PS4; : ${PS4:=\\$((_))}; set -x; : {}",
        "printf -v PS4 %s '$(($1))'; set -x; : {}",
        "n=PS4; printf -v $n %s '$(($1))'; set -x; : {}",
        "n=PS4; export \"$n=\\$((\\$1))\"; set -x; : {}",
        "typeset -n p=PS4; p='$(($1))'; set -x; : {}",
        "PS4=+; PS4+='$(($1))'; set -x; : {}",
        ": {}; export x=_; echo $((x))",
        ": {}; echo $((_))",
        ": {}; x=_; echo $((x))",
        ": {}; x=_; y=x; let y",
        ": {}; trap 'echo $((_))' EXIT",
        ": {}; eval 'echo $((_))'",
        ": {}; eval \"echo \\$((_)) $x\"",
        ": {}; typeset -i n=_",
        "EDITOR={}; set -o history; fc",
    ] {
        in_each(&SHELLS, line, false);
    }
    in_each(&["zsh"], ": {}; ${(e)_}", false);
    in_each(&["zsh"], ": {}; echo ${(e)_}", false);
    in_each(&["zsh"], ": {}; x=arg; echo $((${x}v))", false);
    in_each(&["zsh"], ": {}; x=argv; echo $((x))", false);
    in_each(&["zsh"], "i={}; cat <<E\n$w[i]\nE", false);
    in_each(&["zsh"], "i={}; cat <<E\n$w [i] ${\nE", false);
    in_each(&["zsh"], "i={}; cat <<'E'\n$w[i]\nE", true);
    in_each(&["zsh", "dash"], "i={}; cat <<E\n$w [i]\nE", true);
    in_each(KORN, ": {}; [ _ -eq 1 ]", false);
    in_each(&["bash"], ": {}; _=1; echo ${x[_]}", false);
    for line in ["STTY={} cat f", "export STTY={}", "WATCHFMT={}; :", "READNULLCMD={}; < f", "TIMEFMT={}; :"]
    {
        in_each(&["zsh"], line, false);
    }
    for line in [
        "n=$(wc -l < f); echo $((n / 2)) {}",
        "for i in $(seq 3); do cp {} x$((i * 2)); done",
        "echo $((COUNT + 1)) {}",
        "i=0; let i++; cp {} $i",
        "echo {1}_x {} | tr ' ' _",
        "PS4='+ '; set -x; cp {} x",
        "export PS4='+ '; set -x; cp {} x",
        "export $(cat env); prog {}",
        "export \"PATH=$HOME/bin:$PATH\"; prog {}",
        "EDITOR={} git commit",
    ] {
        in_each(&SHELLS, line, true);
    }
}

#[test]
fn common_lines_are_accepted() {
    for line in [
        "i=0; v={}; i=$((i+1)); echo \"$i\" \"$v\"",
        "for i in 1 2 3; do cp {} {.}.$((i*2)); done",
        "v={}; echo \"$(( ${#v} + 1 ))\"",
        "v={}; echo \"${v%.c}\" \"${v##*/}\" \"${v:-x}\" \"${#v}\"",
        "f={}; trap 'rm -f \"$f\"' EXIT; cp {} \"$f\"",
        "eval \"$(opam env)\"; make {}",
        "retry() { \"$@\" || \"$@\"; }; retry curl {}",
        "\"$CC\" -c {}",
        "CC=gcc; $CC -c {}",
        "v={}; prog & p=$!; kill $p",
        "cd {} && make 2>&1 >log",
        "exec >{}.log 2>&1; make",
        "PATH={}:$PATH make",
        "LC_ALL=C TZ={} date",
        "cp {}{,.bak}",
        "mkdir -p {//} && mv {} \"{//}/x {/}\"",
        "cmd1 {}",
        "./watch2 {}",
        "eval1 {}",
        "echo $(( {#} % 2 ))",
        "sed -n '{#}p' f; cat {}",
        "grep -e sh -c {}",
        "echo sed {}",
        "git commit -m {}",
    ] {
        in_each(&SHELLS, line, true);
    }
}

#[test]
fn cmd_counts_as_shell_on_windows_only() {
    in_each(&SHELLS, "cmd {}", std::env::consts::FAMILY != "windows");
}

#[test]
fn line_is_refused_only_for_shells_that_evaluate_it() {
    const OTHERS: &[&str] = &["dash", "bash", "busybox", "yash"];
    for line in ["exit {}", "[ {} -eq 1 ]", "printf '%d' {}", "sleep {}; print {}"] {
        in_each(if line.starts_with("sleep") { &["ksh93", "mksh"] } else { KORN }, line, false);
        in_each(OTHERS, line, true);
    }
    for line in [
        "echo $x[{}]",
        "echo \"$x[{}]\"",
        "echo $+x[{}]",
        "echo $=x {}",
        "echo \"$x:s/a/{}/\"",
        "i={}; echo $x[i]",
        "[ -t {} ]",
        "[[ -t {} ]]",
        "UID={} true",
        "export SHLVL={}",
        "logout {}",
        "bye {}",
        "getln {}",
        "private {}",
        "print {}",
        "status={}; :",
        "functions[f]='eval $1'; f {}",
        "zmodload zsh/stat; echo {}",
    ] {
        in_each(&["zsh"], line, false);
    }
    in_each(&["zsh", "ksh93", "mksh"], "print -r -- {}", true);
    in_each(&["zsh"], "echo $x[1] ${x}[{}] $x: {}; UIDS={}", true);
    in_each(&["mksh"], "KSHUID={}; :", false);
    in_each(&["mksh"], "for PIPESTATUS in {}; do :; done", false);
    in_each(&["bash"], "i={}; test $i = 1", false);
    in_each(&["bash"], "i={}; test \"$i\" = 1", true);
    in_each(&["bash"], "[[ {} =~ (.*) ]]; echo $((BASH_REMATCH))", false);
    in_each(&["bash"], "v={}; jobs -x eval \"$v\"", false);
    in_each(&["bash"], "v={}; echo ${v:0:3} ${v/a/b} ${v^^} ${v@Q}", true);
    in_each(&["bash"], "v={}; echo ${v@P}", false);
    in_each(&["ksh93"], "echo ${v/%.c/\"{#}\"}", false);
    in_each(&["bash", "zsh", "mksh"], "echo ${v/#.c/\"{#}\"}", true);
    in_each(&["ksh93", "bash"], "echo ${v/.c/\"{#}\"}", true);
    in_each(&["bash"], "shopt -s nullglob; cat {}/*", true);
    in_each(&["bash", "dash", "busybox"], "read -p {}: x", true);
    in_each(KORN, "read -p {}: x", false);
    in_each(&["dash", "bash", "yash"], "COLUMNS={} ls", true);
    in_each(&["dash", "busybox"], "UID={} docker compose up", true);
}

#[test]
fn placeholder_is_refused_as_code_of_known_program() {
    for line in [
        "./w bash -l -c 'echo {}'",
        "singularity exec img bash -l -c 'f {}'",
        "conda run -n e python -u -c 'print(\"{}\")'",
        "chronic perl -w -e 'print \"{}\"'",
        "poetry run bash -euo pipefail -c 'f {}'",
        "chronic awk '{}'",
        "./w sed 's/{}/x/'",
        "./w ssh host 'rm {}'",
        "chronic watch 'ls {}'",
        "minder run 'echo {}'",
        "minder parallel echo {}",
        "find . -exec minder run 'echo {}' \\;",
        "bash <<< \"echo {}\"",
        "bash -s <<< {}",
        "python3 <<< {}",
        "fish --command='echo {}'",
        "split --filter='gzip > {}' f",
        "tar -I {} -cf x.tar f",
        "tar -F {} -cf x.tar f",
        "sort --compress-program={} f",
        "posh -c 'echo {}'",
        "python3-dbg -c 'x {}'",
        "ipython -c '{}'",
        "deno eval '{}'",
        "tmux new -d 'echo {}'",
        "hyperfine 'echo {}'",
        "git rebase -x '{}' main",
        "git -c alias.x='!{}' x",
        "git -c core.sshCommand={} fetch",
        "ssh -o ProxyCommand='nc {} 22' h",
        "vim +{} f",
        "sqlite3 db \"insert into t values('{}')\"",
        "osascript -e {}",
        "adb shell 'ls {}'",
        "sbatch --wrap='f {}'",
        "socat SYSTEM:{} -",
        "npx -c 'f {}'",
        "perl5.36 -e '{}'",
        "perl {-e,{}}",
    ] {
        in_each(&["bash"], line, false);
    }
    for words in
        [&["./w", "bash", "-l", "-c", "echo {}"][..], &["posh", "-c", "{}"], &["tar", "-I", "{}", "f"]]
    {
        assert_eq!(direct(words).unwrap_err().kind(), ErrorKind::Refused, "{words:?}");
    }
    for words in [&["cmd1", "{}"][..], &["git", "clean", "-x", "{}"], &["git", "-c", "user.name={}", "x"]] {
        assert!(direct(words).is_ok(), "{words:?}");
    }
}

#[test]
fn only_allows_placeholders_in_code() {
    let options = |only: &str| Options {
        shell: Some("bash".into()),
        value_rules: ValueRules::new(Some(only), false).unwrap(),
        ..Options::default()
    };
    for (line, written) in [
        ("sed -n {}p f", "sed -n \"$1\"p f"),
        ("echo $(( {} + 1 ))", "echo $(( ${1} + 1 ))"),
        ("ssh host 'rm {}'", "ssh host 'rm '\"$1\"''"),
        ("a=x; echo ${a:{}}", "a=x; echo ${a:${1}}"),
        ("a=({}); echo", "a=(\"$1\"); echo"),
        ("i={}; echo $((i * 2))", "i=\"$1\"; echo $((i * 2))"),
        ("let x={}", "let x=\"$1\""),
    ] {
        let template =
            Template::parse(&[line.into()], &options("[0-9]+")).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert_eq!(argv(&template, &["12"]).unwrap()[2], written);
        for value in ["", "12a", "1\n", "\n1", "a[$(x)]"] {
            let error = argv(&template, &[value]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Value);
            assert!(error.to_string().contains("does not match `--only [0-9]+`"), "{error}");
        }
    }
    // A line that cannot be parsed remains an error.
    for line in ["echo `x {}`", "echo '{}", "f() { echo {}; }; f", "cat <<E\n{}\nE"] {
        assert!(Template::parse(&[line.into()], &options("[0-9]+")).is_err(), "{line}");
    }
    let words = ["bash", "-c", "echo {}"].map(OsString::from);
    assert_eq!(argv(&Template::parse(&words, &options("a|b")).unwrap(), &["b"]).unwrap()[2], "echo b");
    assert!(argv(&Template::parse(&words, &options("a|b")).unwrap(), &["ab"]).is_err());
    assert!(ValueRules::new(Some("a)(b"), false).is_err());
    // Every column is checked, even if the template does not use it.
    let template = Template::parse(&["echo {1}".into()], &options("[a-z]+")).unwrap();
    assert!(argv(&template, &["a", "B"]).is_err());
}

#[test]
fn no_dash_refuses_values_that_begin_with_dash() {
    let options = Options { value_rules: ValueRules::new(None, true).unwrap(), ..posix() };
    let template = Template::parse(&["rm".into(), "{}".into(), "{/}".into()], &options).unwrap();
    assert!(argv(&template, &["a/b-c"]).is_ok());
    for value in ["-rf", "a/-rf"] {
        let error = argv(&template, &[value]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the value `-rf` begins with `-`, which programs read as an option (--no-dash-values)"
        );
    }
}

#[test]
fn value_as_command_name_must_not_be_builtin() {
    for shell in SHELLS {
        let template = parse_with("{1} {2} | cat", shell).unwrap();
        assert!(argv(&template, &["ls", "x"]).is_ok());
        assert!(argv(&template, &["echo", "x"]).is_ok());
        for name in ["eval", ".", "trap", "exec", "command"] {
            assert_eq!(
                argv(&template, &[name, "x"]).unwrap_err().kind(),
                ErrorKind::Value,
                "{shell}: {name}"
            );
        }
        let template = parse_with("retry() { \"$@\"; }; retry {1} {2}", shell).unwrap();
        assert!(argv(&template, &["ls", "x"]).is_ok());
        assert!(argv(&template, &["eval", "x"]).is_err());
    }
}

#[test]
fn command_composed_of_values_is_refused() {
    for line in [
        "{1}{2} \"touch x\"",
        "command {1}{2} x",
        "f() { \"$@\"; }; x={}; f $x",
        "f() { \"$@\"; }; x={}; f \"$x\"",
        "f() { shift; \"$@\"; }; f a $(echo {})",
        "f() { \"$@\"; }; f \"$(basename {})\" \"touch x\"",
        "f() { \"$@\"; }; f `basename x` {}",
        "f() { \"$@\"; }; x={}; f \"${x#a}\" x",
        "f() { \"$@\"; }; f ev{} x",
        "f() { \"$@\"; }; f {1}{2} x",
        "f() { \"$@\"; }; f \"{1}{2}\" x",
        "g() { \"$@\"; }; f() { g \"$@\"; }; f {1}{2} x",
        "g() { \"$@\"; }; f() { g \"$1$2\" x; }; f {1} {2}",
        "g() { \"$@\"; }; f() { g \"$*\" x; }; IFS=; f {1} {2}",
        "f() { \"$*\"; }; IFS=; f {1} {2}",
        "f() { \"$@\"; }; for x in {}; do f $x; done",
        "f() { \"$@\"; }; echo {} | while read -r x; do f $x; done",
        "f() { command \"$@\"; }; f ev{} x",
        "function f { \"$@\"; }; f ev{} x",
        "f() { \"$@\"; }; ls | command f ev{} x",
        "f() { \"${1##*/}\" x; }; f {}",
        "f() { \"${1#a}\" x; }; f {}",
        "f() { command \"${1##*/}\" x; }; f {}",
    ] {
        in_each(&SHELLS, line, false);
    }
    in_each(&["bash"], "f() { \"${1,,}\" x; }; f {}", false);
    in_each(&["bash", "zsh", "ksh93", "mksh"], "f() { \"${1:1}\" x; }; f {}", false);
    in_each(&["bash", "zsh", "mksh"], "f() { [ \"$@\" ]; }; f -v {}", false);
    in_each(&["bash"], "a=(-v {}); [ \"${a[@]}\" ]", false);
    for line in [
        "retry() { \"$@\" || \"$@\"; }; retry curl -o {/.}.html --url={} \"$HOME\"",
        "f() { echo \"$@\"; }; x={}; f $x \"${x#a}\" {1}{2}",
        "retry() { \"$@\"; }; x=$(date); echo \"$x\"; retry {1} {2}",
        "{1}/{2} x",
        "./{1}{2} x",
        "echo {1}{2}",
    ] {
        in_each(&SHELLS, line, true);
    }
}

#[test]
fn yash_refuses_values_beyond_ascii() {
    let template = parse_with("echo {}", "yash").unwrap();
    assert!(argv(&template, &["a \u{1}"]).is_ok());
    assert_eq!(argv(&template, &["\u{e9}"]).unwrap_err().kind(), ErrorKind::Value);
}

//! The shell, the environment and the directory of a job; profiles and `$PARALLEL`.

use super::{Case, case, script};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    // Quoting.
    case("-k -q echo '$HOME' '*' {} ::: a 'b  c'"),
    case("-k --quote echo ';' '|' '>x' {} ::: a").tree(),
    case("-k -q printf '%s|' 'a  b' {} '' ::: \"it's\" ''"),
    case("-k -q echo 'a{}b' '{}' '{.}' ::: 'x y.z'"),
    case("-k -q sh -c 'echo \"$1\" {}' sh 'p q' ::: a")
        .differs("Where a value would be code, the line is refused"),
    case("-k -q sh -c 'echo \"$1\"' {} {} ::: a 'b  c'"),
    case("-k -q perl -e 'print \"@ARGV\\n\"' {} ::: 'a  b'").status(),
    case("-k -q -X -j1 echo '<{}>' ::: 'a b' c"),
    case("-k -q echo $'a\\nb' {} ::: x"),
    case("-k --shellquote ::: a 'b c' \"it's\" '$x' '' '*' '~' 'a\\b' '\"'"),
    case("-k --shell-quote").input("a b\n'\n\"\nplain\n$\n\\\n"),
    case("-k --shell-quote --shell-quote ::: 'a b'"),
    case("-k --shellquote --shellquote --shellquote ::: 'a b' \"it's\""),
    case("-k --shellquote echo {} ::: 'a b'"),
    case("-k --shellquote ::: ä $'a\\tb' $'a\\nb' '!' '#' '{}' '(a)' 'a,b' 'a=b' '%' '^' 'a:b'")
        .differs("A value of `:::` may contain a newline"),
    // Programs and shells.
    case("-k 'echo $0 {}' ::: a"),
    case("-k 'echo $0' ::: a").env(&[("PARALLEL_SHELL", "/bin/bash")]),
    case("-k 'echo {} $BASH_VERSION | wc -w' ::: a").env(&[("PARALLEL_SHELL", "/bin/bash")]),
    case("-k 'a=(1 2 {}); echo ${a[2]}' ::: x 'y  z'").env(&[("PARALLEL_SHELL", "/bin/bash")])
        .differs("Where a value would be code, the line is refused"),
    case("-k '[[ {} == a* ]] && echo yes' ::: ab").env(&[("PARALLEL_SHELL", "/bin/bash")]),
    case("-k 'cat <(echo {})' ::: x 'y  z'").env(&[("PARALLEL_SHELL", "/bin/bash")]),
    script("bash -c 'f() { echo \"f $1\"; }; export -f f; PARALLEL_SHELL=/bin/bash parallel -k f ::: \
        a \"b  c\"'"),
    script("bash -c 'f() { echo \"f $1 $2\"; }; export -f f; PARALLEL_SHELL=/bin/bash parallel -k --env f f \
        {} {#} ::: a b'"),
    case("-k ./own {} ::: a 'b c'").files(&[("own", "#!/bin/sh\necho own \"$1\"\n")]),
    case("-k 'set -- {} x; echo $#' ::: 'a b'").differs("Where a value would be code, the line is refused"),
    case("-k 'exit 3' ::: a"),
    case("-k 'echo $PPID' ::: a").count(),
    case("-k ': {}; cat' ::: a").input("must not be read\n"),
    case("-k 'echo {} >&2' ::: a b").errors(),
    // The environment.
    case("-k 'echo $X {}' ::: a").env(&[("X", "from outside")]),
    case("-k --env X 'echo $X {}' ::: a").env(&[("X", "from  outside")]),
    case("-k --env=X 'echo \"$X\" {}' ::: a").env(&[("X", "from  outside")]),
    case("-k --env X,Y 'echo $X $Y {}' ::: a").env(&[("X", "1"), ("Y", "2")]),
    case("-k --env X --env Y 'echo $X $Y {}' ::: a").env(&[("X", "1"), ("Y", "2")]),
    case("-k --env NOSUCH 'echo \"$NOSUCH\" {}' ::: a"),
    script("parallel --record-env; X=1 parallel -k --env _ 'echo $X {}' ::: a"),
    script("X=1 parallel --record-env; X=1 parallel -k --env _ 'echo \"<$X>\" {}' ::: a"),
    case("-k 'echo $PARALLEL_SEQ' ::: a b"),
    case("-k 'echo $PARALLEL_SSHLOGIN $PARALLEL_SSHHOST' ::: a"),
    case("-k ': {}; env | grep -E \"^PARALLEL_(SEQ|JOBSLOT|SSHLOGIN|SSHHOST)=\" | sort' ::: a b"),
    case("-k 'test -n \"$PARALLEL_PID\" && echo there' ::: a"),
    case("-k 'echo $TMPDIR' ::: a").env(&[("TMPDIR", "/tmp")]),
    // Its directory.
    case("-k --wd / pwd ::: a"),
    case("-k --workdir / pwd ::: a"),
    case("-k --workdir=/usr pwd ::: a"),
    case("-k --wd . pwd ::: a"),
    case("-k --wd sub pwd ::: a").files(&[("sub/x", "")]),
    case("-k --wd new pwd ::: a").tree(),
    case("-k --wd {} pwd ::: / /usr /usr/lib"),
    case("-k --wd '/usr/{}' pwd ::: lib"),
    case("-k --wd ... ': {}; pwd | sed s,/[^/]*$,,' ::: a").status(),
    case("-k --wd made/deep pwd ::: a").tree(),
    case("-k --cleanup --wd ... 'echo {}' ::: a"),
    case("-k --nice 10 'nice; echo {}' ::: a"),
    case("-k --nice=5 'nice; : {}' ::: a"),
    case("-k --nice 19 'echo \"a  b\" {}' ::: 'c  d'"),
    case("-k --nice 0 'nice; : {}' ::: a"),
    // The niceness is set, not added, and stays where it may not be lower.
    script("nice -n 3 parallel -k --nice 10 'nice; : {}' ::: a"),
    script("nice -n 12 parallel -k --nice 5 'nice; : {}' ::: a"),
    script("nice -n 12 parallel -k --nice 0 'nice; : {}' ::: a"),
    script("nice -n 12 parallel -k --nice -3 'nice; : {}' ::: a"),
    script("nice -n 7 parallel -k --nice 99 'nice; : {}' ::: a"),
    script("nice -n 7 parallel -k --nice -99 'nice; : {}' ::: a"),
    script("nice -n 7 parallel -k 'nice; : {}' ::: a"),
    // A process that may lower nothing.
    script("nice -n 12 setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice parallel -k --nice 5 'nice; : \
        {}' ::: a"),
    case("-k --tmpdir . 'echo {}' ::: a").tree(),
    case("-k --tempdir . 'echo {}' ::: a").status(),
    // Templates.
    case("-k --template t=out{#} 'cat out{#}' ::: a 'b c'").files(&[("t", "value {} number {#}\n")]).tree(),
    case("-k --tmpl t=out{1} 'cat out{1}' ::: x y ::: 1").files(&[("t", "{1}-{2}\n")]).tree(),
    case("-k --cleanup --tmpl t=out{#} 'cat out{#}' ::: a").files(&[("t", "<{}>\n")]).tree(),
    case("-k --header : --tmpl t={#}.t 'cat {#}.t' ::: x 1 ::: y 2").files(&[("t", "X: {x} Y: {y}\n")]),
    // Options from elsewhere.
    case("echo ::: a b").env(&[("PARALLEL", "-k -v")]),
    case("echo ::: a b").env(&[("PARALLEL", "-kvj1")]),
    case("echo ::: a").env(&[("PARALLEL", "--tagstring x\\ y -k")]),
    case("echo ::: a").env(&[("PARALLEL", "--tagstring 'x  y' -k")]),
    case("--plain -k echo ::: a b").env(&[("PARALLEL", "-v")]),
    case("--silent -k echo ::: a").env(&[("PARALLEL", "-v")]),
    case("-k echo ::: a").env(&[("PARALLEL", "--nosuchoption")]),
    script("echo -v > $HOME/.parallel/config; parallel -k echo ::: a b"),
    script("printf '# no\\n--tag\\n-v\\n' > $HOME/.parallel/config; parallel -k echo ::: a"),
    script("echo -v > $HOME/.parallel/config; parallel --plain -k echo ::: a"),
    script("echo -v > $HOME/.parallel/mine; parallel -J mine -k echo ::: a"),
    script("echo -v > $HOME/.parallel/mine; parallel --profile mine -k echo ::: a"),
    script("echo -v > $HOME/.parallel/mine; echo --tag > $HOME/.parallel/two; parallel -J mine -Jtwo -k \
        echo ::: a"),
    script("echo -v > $HOME/.parallel/config; echo --tag > $HOME/.parallel/mine; parallel -J mine -k \
        echo ::: a"),
    script("echo -v > here; parallel -J ./here -k echo ::: a"),
    script("echo -v > here; parallel -J $PWD/here -k echo ::: a"),
    script("parallel -J nosuch -k echo ::: a"),
    script("echo --tag > $HOME/.parallel/config; PARALLEL=-v parallel -k echo ::: a"),
    script("echo --tagstring b > $HOME/.parallel/config; PARALLEL='--tagstring c' parallel -k echo ::: a"),
    script("mkdir h; echo -v > h/config; PARALLEL_HOME=$PWD/h parallel -k echo ::: a"),
    script("echo '-k --tagstring \"x  y\"' > $HOME/.parallel/config; parallel echo ::: a"),
    script("echo -v > $HOME/.parallelrc; parallel -k echo ::: a"),
    script("echo 'echo pre \\;' > $HOME/.parallel/pre; parallel -k -J pre echo ::: a"),
    // In each other.
    script("parallel -k 'parallel -k echo {}-\\{\\} ::: x y' ::: a b")
        .differs("Where a value would be code, the line is refused"),
    script("parallel -k parallel -k echo {} ::: a b")
        .differs("Where a value would be code, the line is refused"),
    script("seq 3 | parallel -k 'seq {} | parallel -k echo'"),
];

//! Joblogs, and continuing from them.

use super::{Case, case, script};

const HEAD: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
const LOG: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n\
    1\t:\t1000000000.000\t     0.001\t0\t2\t0\t0\techo a\n\
    2\t:\t1000000000.000\t     0.001\t0\t2\t3\t0\techo b\n";
const LOGGED: &[(&str, &str)] = &[("log", LOG)];

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("-j1 --joblog log echo ::: a 'b c'").tree(),
    case("-j1 --jl log echo ::: a").tree(),
    case("-j1 --joblog=log 'echo {}; exit {}' ::: 0 1 2").tree(),
    case("-j1 --joblog log 'kill -9 $$' ::: a").tree(),
    case("-j1 --joblog log 'kill -TERM $$; echo {}' ::: a").tree(),
    case("-j1 --joblog log -q echo '$x' {} ::: 'a  b'").tree(),
    case("-j1 --joblog log 'printf \"%s\" {}; printf xx >&2' ::: abc").tree(),
    case("-j1 --joblog log echo {} \\; exit 0 ::: $'two\\nlines' $'a\\tb'").tree()
        .differs("A value of `:::` may contain a newline"),
    case("-j1 --joblog log -n2 echo ::: a b c").tree(),
    case("-j1 --joblog log -X echo a{} ::: 1 2 3").tree(),
    case("-j1 --joblog log").input("echo a\nfalse\n").tree(),
    case("-j1 --joblog log --dry-run echo ::: a").tree(),
    case("-j1 --joblog log echo").input("").tree(),
    case("-j1 --joblog log echo ::: new").files(LOGGED).tree(),
    case("-j1 --joblog +log echo ::: new").files(LOGGED).tree(),
    case("-j1 --joblog +log echo ::: new").tree().differs("a new joblog begins with its header"),
    case("-j1 --joblog log --tag echo ::: a").tree(),
    case("-j1 --joblog log -v echo ::: a").tree().differs("the line that `-v` shows is not counted"),
    case("-j1 --joblog log --lb echo ::: a").tree(),
    case("-j1 --joblog log -u echo ::: a").tree(),
    case("-j1 --joblog log --halt now,fail=1 'exit {}' ::: 0 3 0").tree(),
    case("-j1 --joblog log --retries 2 'exit {}' ::: 1 0").tree(),
    case("-j1 --joblog log --results out echo ::: a").tree(),
    case("-j1 --joblog log --env X 'echo $X {}' ::: a").env(&[("X", "1")]).tree(),
    case("-j1 --joblog log --wd /tmp pwd ::: a").tree(),
    case("-j1 --joblog log nosuchcommand ::: a").tree(),
    case("-j1 --joblog log echo ::: ä '€'").tree(),
    case("-j1 --joblog log 'echo {};' 'echo two' ::: a").tree(),
    case("-j1 --joblog nosuch/dir/log echo ::: a").tree(),
    // Resuming.
    case("-j1 --joblog log --resume echo ::: a b c").files(LOGGED).tree(),
    case("-j1 --joblog log --resume-failed echo ::: a b c").files(LOGGED).tree(),
    case("-j1 --joblog log --retry-failed").files(LOGGED).tree()
        .differs("a command that a joblog names is not run"),
    case("-j1 --joblog log --retry-failed echo other {} ::: x y z").files(LOGGED).tree()
        .differs("a command that a joblog names is not run"),
    case("-j1 --joblog log --resume echo other {} ::: a b c").files(LOGGED).tree(),
    case("-j1 --joblog log --resume echo ::: a b").files(LOGGED).tree(),
    case("-j1 --joblog log --resume echo ::: a b").tree(),
    case("-j1 --joblog log --resume-failed echo ::: a b").tree(),
    case("-j1 --joblog log --retry-failed").tree().differs("a command that a joblog names is not run"),
    case("-j1 --joblog +log --resume echo ::: a b c").files(LOGGED).tree(),
    case("-j1 --joblog log --resume echo ::: a b").files(&[("log", HEAD)]).tree(),
    case("-j1 --joblog log --resume echo ::: a b").files(&[("log", "")]).tree(),
    case("-j1 --joblog log --resume echo ::: a b").files(&[("log", "not a joblog\n")]).tree()
        .differs("An invalid value is refused"),
    case("-j1 --resume echo ::: a b"),
    case("-j1 --resume-failed echo ::: a b"),
    case("-j1 --retry-failed echo ::: a b").differs("a command that a joblog names is not run"),
    script("parallel -j1 --joblog log 'exit {}' ::: 0 1 2; sed -i 's/exit/echo now/' log; parallel -j1 \
        --joblog log --retry-failed; cut -f1,7,9 log").differs("a command that a joblog names is not run"),
    script("parallel -j1 --joblog log 'exit {}' ::: 0 1 2; parallel -j1 --joblog log --resume-failed 'echo \
        {}' ::: 0 1 2 3; cut -f1,7,9 log"),
    script("parallel -j1 --joblog log --halt now,fail=1 'echo {}; exit {}' ::: 0 1 0 0; parallel -j1 \
        --joblog log --resume 'echo {}' ::: 0 1 0 0"),
    script("parallel -j1 --joblog log 'kill -9 $$' ::: a; parallel -j1 --joblog log --resume-failed echo \
        ::: a b; cut -f1,7,8,9 log"),
    script("parallel -k -j2 --joblog log echo ::: a b; parallel -j1 --joblog log --resume -k echo ::: a b c \
        d; tail -n +2 log | cut -f1,7 | sort"),
    script("seq 4 | parallel -j1 --joblog log -N2 echo; seq 8 | parallel -j1 --joblog log --resume -N2 echo"),
    script("parallel -j1 --joblog log --pipe -N1 cat < in; parallel -j1 --joblog log --resume --pipe -N1 \
        cat < in2").files(&[("in", "a\nb\n"), ("in2", "a\nb\nc\n")]),
    script("parallel -j1 --results out echo ::: a b; parallel -j1 --results out --resume echo new {} ::: a \
        b c").differs("resumes from a joblog, not from `--results`"),
    script("parallel -j1 --results out 'exit {}' ::: 0 1; parallel -j1 --results out --resume-failed echo \
        new {} ::: 0 1 2").differs("resumes from a joblog, not from `--results`"),
];

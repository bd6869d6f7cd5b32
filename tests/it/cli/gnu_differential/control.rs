//! Flags that stop a run, retry jobs, delay them, or kill them.

use super::{Case, case, script};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    // Exit statuses without halting.
    case("true ::: a b"),
    case("false ::: a"),
    case("false ::: a b c"),
    case("exit ::: 0 0 3"),
    case("'exit {}' ::: 1 0 255"),
    case("'kill -9 $$' ::: a b"),
    script("seq 100 | parallel -j4 false; echo $?"),
    script("seq 101 | parallel -j4 false; echo $?"),
    script("seq 150 | parallel -j4 false; echo $?"),
    case("--halt never 'exit {}' ::: 1 0 2"),
    case("-k 'echo {}; exit {}' ::: 1 0 2"),
    // --halt.
    case("-j1 --halt 0 'echo {}; exit {}' ::: 0 3 0 5"),
    case("-j1 --halt 1 'echo {}; exit {}' ::: 0 3 0 5"),
    case("-j1 --halt 2 'echo {}; exit {}' ::: 0 3 0 5"),
    case("-j1 --halt -1 'echo {}; exit {}' ::: 2 0 3 5"),
    case("-j1 --halt -2 'echo {}; exit {}' ::: 2 0 3 5"),
    case("-j1 --halt 20% 'echo {}; exit {}' ::: 0 3 0 0 4 0 0 0 1 0"),
    case("-j1 --halt-on-error 2 'echo {}; exit {}' ::: 0 3 0"),
    case("-j1 --halt-on-error=1 'echo {}; exit {}' ::: 0 3 0"),
    case("-j1 --halt now,fail=1 'echo {}; exit {}' ::: 0 3 0 5"),
    case("-j1 --halt soon,fail=1 'echo {}; exit {}' ::: 0 3 0 5"),
    case("-j1 --halt now,done=1 'exit {}' ::: 3 0"),
    case("-j1 --halt soon,done=1 'exit {}' ::: 0 3"),
    case("-j1 --halt now,fail=2 'echo {}; exit {}' ::: 0 3 0 5 0"),
    case("-j1 --halt soon,fail=2 'echo {}; exit {}' ::: 0 3 0 5 0"),
    case("-j1 --halt now,success=1 'echo {}; exit {}' ::: 3 0 0 5"),
    case("-j1 --halt soon,success=2 'echo {}; exit {}' ::: 3 0 0 5"),
    case("-j1 --halt now,done=2 'echo {}; exit {}' ::: 3 0 0 5"),
    case("-j1 --halt soon,done=3 'echo {}; exit {}' ::: 3 0 0 5"),
    case("-j1 --halt soon,fail=50% 'echo {}; exit {}' ::: 1 2 0 0"),
    case("-j1 --halt now,fail=50% 'echo {}; exit {}' ::: 1 0 2 0"),
    case("-j1 --halt soon,success=50% 'echo {}; exit {}' ::: 1 0 0 0 0 0"),
    case("-j1 --halt soon,done=50% 'echo {}; exit {}' ::: 1 0 0 0"),
    case("-j1 --halt now,done=30% 'echo {}; exit {}' ::: 0 0 0 0 0 0 0 0 0 0"),
    script("seq 10 >ten; parallel -j1 -a ten --halt soon,done=50% echo; echo $?"),
    script("seq 10 | parallel -j1 --halt now,done=30% echo; echo $?"),
    script("seq 10 | parallel -j1 --halt soon,fail=50% 'echo {}; [ {} -gt 3 ]'; echo $?"),
    script("seq 10 >ten; parallel -j1 --halt soon,success=20% 'echo {}; [ {} -gt 3 ]' :::: ten; echo $?"),
    case("-j1 --halt now,fail=1 'exit {}' ::: 0 0"),
    case("-j1 --halt now,success=1 'exit {}' ::: 1 2"),
    case("-j1 --halt now,fail=1 'kill -9 $$' ::: a"),
    case("-j3 --halt now,fail=1 'sleep {}; echo {}; exit 3' ::: 0.3 20 21"),
    case("-j3 --halt 2 'sleep {}; echo {}; exit 3' ::: 0.3 20 21"),
    case("-j4 --halt now,fail=2 'sleep {1}; exit {2}' ::: 0 0.5 20 21 :::+ 1 2 0 0"),
    case("-j3 --halt now,done=2 'sleep {1}; exit {2}' ::: 0 0.5 20 21 :::+ 1 2 0 0"),
    case("-j4 --halt now,fail=50% 'sleep {1}; exit {2}' ::: 0 0.5 20 21 :::+ 1 2 0 0"),
    case("-j4 --halt now,done=50% 'sleep {1}; exit {2}' ::: 0 0.5 20 21 :::+ 0 2 0 0"),
    case("-j4 --halt now,fail=20% 'sleep {1}; exit {2}' ::: 0 20 21 22 :::+ 2 0 0 0"),
    case("-j4 --halt now,fail=25% 'sleep {1}; exit {2}' ::: 0 20 21 22 :::+ 3 0 0 0"),
    case("-j3 --halt now,fail=30% 'sleep {1}; exit {2}' ::: 0 20 21 :::+ 2 0 0"),
    case("-j3 --halt now,done=2 'sleep {}' ::: 0 0.5 20").differs("101, although no job failed"),
    case("-j2 --halt soon,fail=1 'sleep {}; echo {}; exit 3' ::: 0.2 1 0.1 0.1"),
    case("-j2 --halt now,success=1 'sleep {}; echo {}' ::: 0.3 20 0.1"),
    case("-j2 -k --halt now,fail=1 'echo {}; sleep {}; exit 4' ::: 20 0.3")
        .differs("The output of killed jobs is shown"),
    case("-j1 --halt now,fail=1 ::: 'echo a; false' 'echo b'"),
    // --retries.
    script("parallel -j1 --retries 3 'echo {} >> log; false' ::: a b; echo $?; cat log"),
    script("parallel -j1 --retries=3 'echo {} >> log; test $(wc -l < log) -ge 2' ::: a; echo $?; cat log"),
    script("parallel -j1 --retries 1 'echo {} >> log; false' ::: a; echo $?; cat log"),
    script("parallel -j1 --retries 0 'echo {} >> log; test $(wc -l < log) -ge 4' ::: a; echo $?; cat log"),
    case("-j1 --retries 2 'echo {}; false' ::: a"),
    case("-j1 --retries 3 'echo $PARALLEL_SEQ {#} {}; echo e >&2; exit 7' ::: a").errors(),
    case("-j1 --retries 3 --halt now,fail=1 'echo {}; exit 7' ::: a b"),
    script("parallel -j1 --retries 2 --joblog log false ::: a; cut -f1,7,8,9 log"),
    // --timeout, --delay, --term-seq.
    case("-j2 --timeout 1 'sleep {}; echo {}' ::: 0.1 20"),
    case("-j2 --timeout=1s 'echo {}; sleep {}; echo {}' ::: 0.1 20"),
    case("-j2 --timeout 0.02m 'sleep {}; echo {}' ::: 20 0.1"),
    case("-j1 --timeout 500% 'sleep {}; echo {}' ::: 0.2 0.2 0.2 0.2 20"),
    case("-j1 --timeout 1 --retries 2 'echo {} >> log; sleep 20' ::: a").tree(),
    script("parallel -j1 --timeout 1 --joblog log 'sleep {}' ::: 0 20; cut -f1,7,8,9 log"),
    case("-j1 --timeout 1 --term-seq TERM,300,KILL 'trap \"echo got TERM; exit 3\" TERM; sleep 20 & wait; : \
        {}' ::: a").sorted(),
    case("-j1 --timeout 1 --term-seq USR1,1000,KILL,25 'trap \"echo got USR1; exit 3\" USR1; sleep 20 & \
        wait; : {}' ::: a"),
    case("-j1 --timeout 1 --term-seq KILL,25 'trap \"echo never\" TERM; sleep 20 & wait; : {}' ::: a"),
    case("-j1 --timeout 1 --termseq INT,100,KILL,25 'trap \"echo got INT; exit 3\" INT; sleep 20 & wait; : \
        {}' ::: a").status(),
    script("date +%s > t; parallel -j4 --delay 0.5 echo ::: a b c d > out; sort out; test $(($(date +%s) - \
        $(cat t))) -ge 1 && echo late"),
    script("date +%s > t; parallel -j4 --delay=1s -k echo ::: a b c; test $(($(date +%s) - $(cat t))) -ge 2 \
        && echo late"),
    case("-j2 -k --delay 0.01m echo ::: a b"),
    case("-k --delay 0.1auto 'echo {}; exit {}' ::: 0 1 0").differs("`auto` is not supported"),
    // What holds jobs back.
    case("-k --load 10000 echo ::: a b"),
    case("-k --load=100000% echo ::: a b"),
    case("-k --max-load 10000 echo ::: a").status(),
    case("-k --memfree 1k echo ::: a b"),
    case("-k --memfree=1M echo ::: a b"),
    case("-k --memsuspend 1k echo ::: a b"),
    case("-k --noswap echo ::: a b"),
    case("-k --limit true echo ::: a b"),
    case("-k --limit 'test ! -e stop' echo ::: a b"),
    case("-k --limit 'io 100' echo ::: a").status(),
    case("-k --limit 'load 10000' echo ::: a b"),
    case("-k --limit 'mem 1' echo ::: a b"),
    script("touch stop; (sleep 2; rm stop) & parallel -j1 --limit 'test ! -e stop' 'test -e stop && echo \
        early; echo {}' ::: a b"),
    // Signals.
    script("parallel -j1 'echo {} >> started; sleep 1; echo {}' ::: a b c > out & until test -s started; do \
        sleep 0.1; done; kill -HUP $!; wait $!; echo $?; cat out")
        .differs("HUP and TERM end a run and its jobs"),
    script("parallel -j1 'echo {} >> started; sleep 1; echo {}' ::: a b c > out & until test -s started; do \
        sleep 0.1; done; kill -TERM $!; wait $!; cat out"),
    script("parallel -j1 'echo {} >> started; sleep 20' ::: a b > out & until test -s started; do sleep \
        0.1; done; kill -TERM $!; kill -TERM $!; wait $!; cat out started"),
    script("parallel -j1 'echo {} >> started; sleep 20' ::: a b > out & until test -s started; do sleep \
        0.1; done; kill -TERM $!; sleep 0.5; kill -TERM $!; wait $!; echo $?")
        .differs("HUP and TERM end a run and its jobs"),
    script("parallel -j1 'echo {} >> started; sleep 20' ::: a b > out & until test -s started; do sleep \
        0.1; done; kill -INT $!; sleep 1; kill -TERM $!; kill -TERM $!; wait $!; cat out").status(),
    script("parallel -j1 'echo {} >> started; sleep 2; echo {}' ::: a 2> err & until test -s started; do \
        sleep 0.1; done; kill -USR1 $!; wait $!; grep -c sleep err").differs("USR1 has no effect"),
    script("parallel -j2 'if [ {} = b ]; then sleep 0.7; kill -HUP $PARALLEL_PID; fi; sleep 1.5; echo {}' \
        ::: a b c d").sorted().differs("HUP and TERM end a run and its jobs"),
    script("parallel -j1 'kill -0 $PARALLEL_PID && echo there' ::: a"),
    // Asking first: a terminal is there.
    script("printf 'y\\nn\\ny\\n' | script -qec 'parallel -j1 -p \"echo got {} >> log\" ::: a b c' \
        /dev/null > said; cat log"),
    script("printf 'y\\nn\\nY\\n' | script -qec 'parallel -j1 --interactive \"echo got {} >> log\" ::: a b \
        c' /dev/null > said; cat log"),
    case("--tty echo ::: a b"),
    case("-j1 --tty 'echo {} $(test -t 0 && echo tty)' ::: a b"),
    case("-j1 --open-tty echo ::: a b"),
    case("-j1 -o echo ::: a b"),
];

//! The order of jobs, their number at once, and their slots.

use super::{Case, case, script};

const FIVE: &str = "1\n2\n3\n4\n5\n";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("-j1 echo").input(FIVE),
    case("-j 1 echo").input(FIVE),
    case("--jobs 1 echo").input(FIVE),
    case("--jobs=1 echo").input(FIVE),
    case("-P1 echo").input(FIVE),
    case("-P 1 echo").input(FIVE),
    case("--max-procs 1 echo").input(FIVE),
    case("--max-procs=1 echo").input(FIVE),
    case("-j0 -k echo").input(FIVE),
    case("-j100% -k echo").input(FIVE),
    case("-j200% -k echo").input(FIVE),
    case("-j+0 -k echo").input(FIVE),
    case("-j+2 -k echo").input(FIVE),
    case("-j-1000 echo").input(FIVE).differs("never fewer than one"),
    case("-j-1000 echo {%}").input(FIVE).differs("never fewer than one"),
    case("-j1% echo").input(FIVE),
    case("-j2.5 -k echo").input(FIVE).status(),
    case("-P+1 -k echo").input(FIVE),
    case("-P-1000 echo").input(FIVE).differs("never fewer than one"),
    case("-P50% -k echo").input(FIVE),
    case("--jobs +1 -k echo").input(FIVE),
    case("--jobs 100% -k echo").input(FIVE),
    case("--max-procs -1000 echo").input(FIVE).differs("never fewer than one"),
    case("-j procs echo").input(FIVE).files(&[("procs", "1\n")]),
    case("--jobs ./procs echo").input(FIVE).files(&[("procs", "1")]),
    case("-P procs echo").input(FIVE).files(&[("procs", "-1000\n")]).differs("never fewer than one"),
    case("-k -j procs echo").input(FIVE).files(&[("procs", "100%\n")]),
    // The last three run at once, or report that they do not. The file changes a second later, so
    // that its time does, too.
    script("echo 1 > procs; parallel -k -j procs 'if [ {} = 2 ]; then sleep 1.2; echo 3 > procs; sleep 1.2; \
        fi; if [ {} -gt 2 ]; then touch run{}; for i in $(seq 100); do test -e run3 -a -e run4 -a -e run5 \
        && break; sleep 0.1; done; test $i -lt 100 || echo alone; fi; echo {}' ::: 1 2 3 4 5"),
    case("-j2 'sleep 0.{}; echo {#} {%}' ::: 5 9 1 1"),
    case("-j3 'echo {%}; sleep 1; : {}' ::: a b c").sorted(),
    case("-j3 'echo $PARALLEL_JOBSLOT; sleep 1; : {}' ::: a b c").sorted(),
    case("-j2 'echo $PARALLEL_SEQ {#}; sleep 0.{}' ::: 1 2 3").sorted(),
    case("-j1 'echo $PARALLEL_SEQ $PARALLEL_JOBSLOT' ::: a b"),
    case("-j2 'sleep 0.{}; echo $slot {%}' --process-slot-var ::: 5").status(),
    case("-j1 --process-slot-var=name 'echo $name' ::: a b"),
    case("-j2 --process-slot-var name 'echo $name {%}; sleep 0.5' ::: a b").sorted(),
    case("--shuf -j1 echo ::: 1 2 3 4 5 6 7 8").sorted(),
    case("--shuf -k echo {1}{2} ::: 1 2 3 ::: a b").sorted(),
    case("--shuf -j1 echo {#} ::: 1 2 3").sorted(),
    case("--shuf -j1 echo").input(FIVE).sorted(),
    case("--use-cores-instead-of-threads -k echo ::: a"),
    case("--use-sockets-instead-of-threads -k echo ::: a"),
    case("--use-cpus-instead-of-cores -k echo ::: a"),
    case("--use-cores-instead-of-threads -j100% -k echo ::: a"),
    case("-j1 -j2 -k echo ::: a"),
    case("-kj1 echo ::: a b"),
    case("-j1k echo ::: a b").status(),
    case("-kvj2 echo ::: a b"),
    case("-j2 -k 'sleep 0.{}; echo {}' ::: 6 1 1 1"),
    script("parallel -j2 'sleep 0.{}; echo {}' ::: 9 1 2 3"),
    script("seq 200 | parallel -j0 'sleep 0.01; echo {}' | sort -n | cksum"),
    script("parallel -j4 'test $(ls run* 2>/dev/null | wc -l) -lt 4 && touch run{}; sleep 0.2; rm run{}' \
        ::: 1 2 3 4 5 6 7 8; echo $?"),
    // The order of options, and of several of one kind.
    case("-k -I a -I b echo a b ::: x"),
    case("-k --tagstring a --tagstring b echo ::: x"),
    case("-k --tag --tagstring b echo ::: x"),
    case("-k -n2 -N1 echo {1} {2} ::: a b"),
    case("-k -d, -d: echo").input("a,b:c"),
    case("-k --trim l --trim r echo x{}x ::: ' a '"),
    case("-k -- echo -k {} ::: a"),
    case("-k echo -j1 -v {} ::: a"),
    case("-- -k ::: a").status(),
];

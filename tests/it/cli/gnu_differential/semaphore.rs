//! `sem`: a limit of commands at once for each name, over processes.
//!
//! A command that has to outlast the next line of its script waits for a file, not for a time: GNU parallel
//! may take seconds to start on a busy machine.

use super::{Case, case, script};

/// A program that ends when there is a file `go`.
const HELD: &[(&str, &str)] = &[("held", "#!/bin/sh\nuntil test -e go; do sleep 0.1; done\n")];

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("--semaphore --fg --id x echo hello"),
    case("--semaphore --fg --id x 'echo a; exit 3'"),
    case("--sem --fg --id x echo hello"),
    case("--fg --id x echo hello"),
    case("--semaphore --semaphore-name x --fg echo hello").status(),
    case("--semaphorename x --fg echo hello"),
    case("--semaphore --fg --id x -j2 echo a b c"),
    case("--semaphore --fg --id x echo '{}' a"),
    case("--semaphore --fg --id x 'cat; echo end'").input("in\n"),
    case("--semaphore --fg --id x nosuchcommand"),
    case("--semaphore --fg --id x 'kill -9 $$'"),
    case("--semaphore --fg --id x -q echo 'a  b' '$x'"),
    case("--semaphore --id x --wait"),
    script("sem --fg --id x echo hello"),
    script("sem --fg --id x 'exit 4'; echo $?"),
    script("sem --id x './held; echo background'; echo first; touch go; sem --id x --wait; echo \
        last").files(HELD),
    script("sem --bg --id x './held; echo background'; echo first; touch go; sem --id x --wait").files(HELD),
    script("parallel --semaphore --bg --id x './held; echo background'; echo first; touch go; parallel \
        --semaphore --wait --id x").files(HELD),
    script("parallel --bg --id x './held; echo background'; touch go; sem --wait --id x; echo \
        last").files(HELD),
    script("for i in 1 2 3; do sem --id x \"sleep 0.2; echo $i\"; done; sem --wait --id x").sorted(),
    script("for i in 1 2 3 4; do sem -j2 --id x \"sleep 0.4; echo $i >> log\"; done; sem --wait --id x; \
        sort log"),
    script("for i in 1 2 3 4 5 6; do sem -j2 --id x 'echo in >> log; sleep 0.3; echo out >> log'; done; sem \
        --wait --id x; awk '/in/ { n++ } /out/ { n-- } n > 2 { print \"too many\" }' log; grep -c in log"),
    script("sem --id x ./held; sem --st -1 --fg --id x echo never; echo $?; touch go; sem --wait --id \
        x").files(HELD),
    script("sem --id x ./held; sem --st 1 --fg --id x echo anyway; echo $?; touch go; sem --wait --id \
        x").files(HELD),
    script("sem --id x ./held; sem --semaphore-timeout 1s --fg --id x echo anyway; touch go; sem --wait \
        --id x").files(HELD),
    script("sem --id x ./held; sem --semaphoretimeout -1 --fg --id x echo never; echo $?; touch go; sem \
        --wait --id x").files(HELD),
    script("sem --id x sleep 2 & sem --fg --id y echo other; wait"),
    script("sem --wait --id none; echo $?"),
    script("sem --fg --id 'a b/c' echo odd name; echo $?"),
    script("sem --fg --id x --timeout 1 sleep 20; echo $?").status(),
];

//! Options of GNU parallel about output and its records.

use super::super::recipe::{Recipe, flags, lines};

const TEXTS: &[&str] = &[
    "'echo a; echo b >&2; echo {}'",
    "'printf \"no newline\"'",
    "'echo {}; exit 2'",
    "echo",
    "'seq 3'",
    "'printf \"a\\rb\\n\"'",
];

pub(super) const RECIPES: &[Recipe] = &[
    flags(&["--keep-order", "-k"], &["OPT", "OPT -j2"])
        .with(&["'sleep 0.0{#}; echo {}'", "echo {}", "'echo {}; echo e{} >&2'"])
        .mixes(),
    flags(&["--no-keep-order"], &["OPT", "-k OPT"]).serial(),
    flags(&["--group"], &["OPT", "-u OPT"]).with(TEXTS).mixes(),
    flags(&["--ungroup", "-u"], &["OPT"]).with(TEXTS).serial(),
    flags(&["--line-buffer", "--lb", "--linebuffered"], &["OPT", "OPT --tag"]).with(TEXTS).serial(),
    flags(&["--latest-line", "--ll"], &["OPT"]).with(&["echo {}", "'echo a; echo b'"]).serial(),
    flags(&["--tag"], &["OPT"]).with(TEXTS).mixes(),
    flags(
        &["--tagstring"],
        &["OPT x", "OPT '{}'", "OPT '{#}:'", "OPT 'a\\tb'", "OPT '{.}-{/}'", "OPT '<{1}>'", "OPT ''"],
    )
    .with(TEXTS)
    .mixes(),
    flags(&["--ctag"], &["OPT"]).with(TEXTS),
    flags(&["--ctagstring"], &["OPT x", "OPT '{}'", "OPT '{#}:'"]).with(TEXTS),
    flags(&["--color", "--colour"], &["OPT", "OPT --tag"]).with(TEXTS),
    flags(
        &["--color-failed", "--cf", "--colour-failed", "--color-fail", "--colour-fail"],
        &["OPT", "OPT --tag"],
    )
    .with(TEXTS),
    flags(&["--dry-run"], &["OPT", "OPT -v"])
        .with(&[
            "echo",
            "echo {} '{.}'",
            "'echo {} | wc -c'",
            "f {} '>' x",
            "echo \"it's\" {}",
            "\"echo '{}' \\\"{}\\\"\"",
        ])
        .mixes(),
    flags(&["--verbose", "-t"], &["OPT"]).with(&["echo", "'echo {} | wc -c'", "f {}", "'exit {#}'"]).serial(),
    flags(&["-v"], &["OPT", "OPT OPT"]).with(&["echo", "'echo {} | wc -c'", "f {}", "'exit {#}'"]).serial(),
    flags(&["--silent"], &["OPT", "-v OPT"]),
    flags(&["--bar"], &["OPT"]).serial(),
    flags(&["--eta"], &["OPT"]).serial(),
    flags(&["--progress"], &["OPT"]).serial(),
    flags(&["--compress"], &["OPT"]).with(TEXTS).mixes(),
    flags(&["--compress-program", "--use-compress-program"], &["OPT gzip --compress", "OPT cat"]).with(TEXTS),
    flags(
        &["--decompress-program", "--use-decompress-program"],
        &["OPT 'gzip -dc' --compress-program gzip", "OPT cat --compress-program cat"],
    )
    .with(TEXTS),
    lines(
        &["--output-as-files", "--outputasfiles", "--files"],
        &[
            "parallel FLAGS OPT --tmpdir . COMMAND ::: VALUES | wc -l",
            "parallel FLAGS OPT COMMAND ::: VALUES | while read f; do cat \"$f\"; done",
            "cat $(parallel FLAGS OPT COMMAND ::: VALUES)",
        ],
    ),
    lines(
        &["--tmpdir", "--tempdir"],
        &[
            "mkdir t; parallel FLAGS OPT t COMMAND ::: VALUES; ls t",
            "mkdir t; parallel FLAGS OPT t --files COMMAND ::: VALUES | sed 's/[^/]*$//' | sort -u",
            "parallel FLAGS OPT nosuch COMMAND ::: VALUES",
        ],
    ),
    lines(
        &["--results", "--res", "--result"],
        &[
            "parallel FLAGS OPT out COMMAND ::: VALUES; find out -type f | LC_ALL=C sort; cat \
             out/1/*/stdout",
            "parallel FLAGS OPT out COMMAND ::: a b ::: 1 2; find out | LC_ALL=C sort",
            "parallel FLAGS OPT out/ COMMAND ::: VALUES; find out | LC_ALL=C sort",
            "parallel FLAGS OPT 'out-{}.txt' COMMAND ::: a b c; cat out-*",
            "parallel FLAGS OPT out --header : COMMAND ::: name a b; find out -type f | LC_ALL=C sort",
            "parallel FLAGS OPT -.tsv echo {} ::: a b | cut -f 1,7-",
            "parallel FLAGS OPT out.csv echo {} ::: a b; cut -d, -f 1,7- out.csv",
        ],
    ),
    lines(
        &["--joblog", "--jl"],
        &[
            "parallel FLAGS OPT log COMMAND ::: VALUES; cut -f 1,2,5- log",
            "parallel FLAGS -j1 OPT log COMMAND ::: a b; cut -f 7,9 log",
            "parallel FLAGS OPT +log COMMAND ::: a; parallel FLAGS OPT +log COMMAND ::: b; cut -f 1,7,9 \
             log",
            "parallel FLAGS -j1 OPT log 'exit {}' ::: 0 1 2; cut -f 1,7,8,9 log",
            "parallel FLAGS -j1 OPT log 'kill -9 $$; echo {}' ::: 0; cut -f 7,8 log",
        ],
    ),
    lines(
        &["--resume"],
        &[
            "parallel -j1 --joblog log 'echo {}; exit {}' ::: 0 1 2; parallel FLAGS OPT --joblog log \
             echo {} ::: 0 1 2 3",
            "parallel FLAGS OPT --joblog log COMMAND ::: VALUES; cut -f 1,7 log",
            "parallel FLAGS OPT COMMAND ::: VALUES",
            "parallel -k --results out echo ::: a b; parallel -k --results out OPT echo ::: a b c",
        ],
    ),
    lines(
        &["--resume-failed"],
        &[
            "parallel -j1 --joblog log 'echo {}; exit {}' ::: 0 1 2; parallel FLAGS OPT --joblog log \
             echo again {} ::: 0 1 2 3",
            "parallel FLAGS OPT --joblog log COMMAND ::: VALUES; cut -f 1,7 log",
            "parallel -j1 --joblog log 'test {} = b' ::: a b; parallel FLAGS OPT --joblog log echo ::: \
             a b; cut -f 1,7 log",
        ],
    ),
    lines(
        &["--retry-failed"],
        &[
            "parallel -j1 --joblog log 'echo {}; exit {}' ::: 0 1 2; parallel -k OPT --joblog log",
            "parallel -j1 --joblog log 'test {} = b' ::: a b; parallel -k OPT --joblog log; cut -f 1,7 log",
            "parallel -j1 --joblog log 'exit {}' ::: 0 1; parallel -k OPT --joblog log echo ::: 0 1",
        ],
    ),
];

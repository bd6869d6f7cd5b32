//! Options of GNU parallel about blocks of the input.

use super::super::recipe::{Recipe, blocks, lines};

const REGEXPS: &[&str] = &[
    "parallel FLAGS -k --pipe --regexp -N1 COMMAND < records.txt",
    "printf 'a1b22c333' | parallel FLAGS -k --pipe --regexp -N1 COMMAND",
];
const KEYS: &[&str] = &[
    "parallel FLAGS -j2 COMMAND < keys.tsv | LC_ALL=C sort",
    "printf '%s\\n' VALUES | parallel FLAGS -j3 COMMAND | LC_ALL=C sort",
];
const SORTED: &[&str] = &[
    "seq 40 | parallel FLAGS --pipe -N4 -j2 COMMAND | LC_ALL=C sort",
    "cat lines.txt | parallel FLAGS --pipe -N1 -j3 COMMAND | LC_ALL=C sort",
];

pub(super) const RECIPES: &[Recipe] = &[
    lines(
        &["--pipe", "--spreadstdin"],
        &[
            "seq 9 | parallel FLAGS OPT COMMAND",
            "seq 9 | parallel FLAGS OPT -N3 cat -n",
            "cat lines.txt | parallel FLAGS OPT 'echo {#}; wc -l'",
            "printf 'no newline' | parallel FLAGS OPT cat",
            "parallel FLAGS OPT cat < empty.txt",
            "seq 4 | parallel FLAGS OPT -N2 'cat; echo {}' ::: a b",
            "parallel FLAGS OPT 'tr a-z A-Z' < <(cat list.txt)",
        ],
    ),
    lines(
        &["--pipe-part"],
        &[
            "parallel FLAGS OPT -a lines.txt wc -l",
            "parallel FLAGS OPT --block 20 -a lines.txt cat",
            "parallel FLAGS OPT --block 1k -a list.txt 'cat; echo {#}'",
            "parallel FLAGS OPT cat :::: lines.txt",
            "seq 3 | parallel FLAGS OPT cat",
            "parallel FLAGS OPT -a records.txt --recstart START --block 30 cat",
        ],
    ),
    blocks(&["--block", "--block-size"], &["OPT 20", "OPT 1k", "OPT 7", "OPT 1M", "OPT 0.01k", "OPT x"])
        .mixes(),
    blocks(&["--block-timeout", "--bt"], &["OPT 5", "OPT 1m"]),
    blocks(&["--recstart"], &["OPT START", "OPT 'S'", "OPT '\\n'", "OPT x -N1"]).on(&[
        "parallel FLAGS -k --pipe COMMAND < records.txt",
        "parallel FLAGS -k --pipe -N1 COMMAND < records.txt",
        "parallel FLAGS -k --pipe --block 30 COMMAND < records.txt",
    ]),
    blocks(&["--recend"], &["OPT END", "OPT ''", "OPT '\\n'", "OPT ';'", "OPT 'END\\n'"]).on(&[
        "parallel FLAGS -k --pipe -N1 COMMAND < records.txt",
        "printf 'a;b;c' | parallel FLAGS -k --pipe -N1 COMMAND",
        "parallel FLAGS -k --pipe --block 30 COMMAND < records.txt",
    ]),
    blocks(
        &["--regexp"],
        &[
            "OPT --recend '[0-9]+'",
            "OPT --recstart 'START [0-9]'",
            "OPT --recend 'END\\n'",
            "OPT --recstart '[a-z]'",
        ],
    )
    .on(REGEXPS),
    blocks(
        &["--remove-rec-sep", "--removerecsep", "--rrs"],
        &["OPT --recend ';'", "OPT --recend 'END\\n'", "OPT --recstart START", "OPT"],
    )
    .on(&[
        "printf 'a;b;c' | parallel FLAGS -k --pipe -N1 COMMAND",
        "parallel FLAGS -k --pipe -N1 COMMAND < records.txt",
    ]),
    blocks(&["--round-robin", "--round"], &["OPT", "OPT -N1"]).on(SORTED).with(&[
        "cat",
        "'sed s/^/x/'",
        "'cat; true {#}'",
    ]),
    blocks(&["--tee"], &["OPT --pipe", "OPT --pipe -k"])
        .on(&[
            "seq 5 | parallel FLAGS -k COMMAND ::: 1 2",
            "cat list.txt | parallel FLAGS -k COMMAND ::: a b c",
        ])
        .with(&["'wc -l; echo {}'", "'grep -c {}'", "head -n {}", "wc -l"]),
    blocks(&["--shard"], &["OPT 1 --pipe -C '\\t'", "OPT 1 --pipe"]).on(KEYS).with(&["cat", "'sed s/^/x/'"]),
    blocks(&["--bin"], &["OPT 1 --pipe", "OPT 1 --pipe -C '\\t'"])
        .on(&[
            "seq 9 | parallel FLAGS -j3 COMMAND | LC_ALL=C sort -n",
            "parallel FLAGS -j2 COMMAND < keys.tsv | LC_ALL=C sort",
        ])
        .with(&["cat", "'sed s/^/x/'"]),
    blocks(&["--group-by"], &["OPT 1 --pipe", "OPT 1 --pipe -C '\\t' -N1", "OPT 2 --pipe -C '\\t' -N1"])
        .on(&["parallel FLAGS -k COMMAND < keys.tsv", "parallel FLAGS -k --block 10 COMMAND < keys.tsv"]),
    blocks(&["--cat"], &["OPT", "OPT -N2"]).with(&[
        "wc -l '<' {}",
        "cat {}",
        "'cat {} {}; echo {#}'",
        "'test -f {} && echo file'",
    ]),
    blocks(&["--fifo"], &["OPT", "OPT -N2"]).with(&["cat {}", "'wc -l < {}'", "'test -p {} && cat {}'"]),
];

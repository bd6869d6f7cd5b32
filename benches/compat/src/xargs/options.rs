//! The options of findutils' xargs, from its manual.

use super::super::recipe::{Recipe, flags, lines};

const REPLACING: &[&str] = &[
    "echo a,,b",
    "echo ,, {} _",
    "sh -c 'echo \"$1\"' sh ,,",
    "./args {} ,, _",
    "echo {}",
    "sh -c 'echo \"$1\"' sh {}",
    "basename {}",
    "bash -c 'f \"$1\"' _ {}",
];
const LINES: &[&str] = &[
    "xargs FLAGS COMMAND < words.txt",
    "seq 7 | xargs FLAGS COMMAND",
    "xargs FLAGS COMMAND < trailing.txt",
    "xargs FLAGS COMMAND < blanks.txt",
    "printf '%s\\n' QUOTED | xargs FLAGS COMMAND",
];
const ENDS: &[&str] = &[
    "printf '%s\\n' a EOF b c | xargs FLAGS COMMAND",
    "xargs FLAGS COMMAND < list.txt",
    "printf 'a b EOF c\\nd' | xargs FLAGS COMMAND",
    "printf '%s\\n' a _ b | xargs FLAGS COMMAND",
];
const LONG: &[&str] = &[
    "seq 30 | xargs FLAGS COMMAND",
    "xargs FLAGS COMMAND < words.txt",
    "printf '%s ' aaaaaaaaaaaaaaaaaaaaaaaa b c | xargs FLAGS COMMAND",
];
const EMPTY: &[&str] = &[
    "xargs FLAGS COMMAND < empty.txt",
    "printf ' \\n\\n' | xargs FLAGS COMMAND",
    "printf a | xargs FLAGS COMMAND",
    "true | xargs FLAGS COMMAND",
    "printf '\"\"' | xargs FLAGS COMMAND",
];

pub(in super::super) const RECIPES: &[Recipe] = &[
    lines(
        &["-0", "--null"],
        &[
            "printf '%s\\0' QUOTED | xargs FLAGS OPT COMMAND",
            "xargs OPT FLAGS COMMAND < zero.bin",
            "find sub dir -type f -print0 | LC_ALL=C sort -z | xargs OPT FLAGS COMMAND",
            "printf 'a b\\0c\\nd\\0\\0e' | xargs OPT FLAGS COMMAND",
            "xargs FLAGS OPT COMMAND < list.txt",
            "find . -name '*.txt' -print0 | LC_ALL=C sort -z | xargs OPT wc -l",
        ],
    ),
    lines(
        &["-a", "--arg-file"],
        &[
            "xargs OPT list.txt FLAGS COMMAND",
            "xargs FLAGS OPT words.txt COMMAND",
            "xargs OPT nosuch.txt FLAGS COMMAND",
            "seq 3 | xargs OPT list.txt sh -c 'cat; echo \"$@\"' sh",
            "xargs OPT <(seq 3) FLAGS COMMAND",
            "xargs OPT empty.txt FLAGS COMMAND",
            "seq 3 | xargs OPT - FLAGS COMMAND",
        ],
    ),
    flags(
        &["-d", "--delimiter"],
        &[
            "OPT ,",
            "OPT '\\n'",
            "OPT ' '",
            "OPT '\\t'",
            "OPT '\\0'",
            "OPT '\\x2c'",
            "OPT '\\054'",
            "OPT ab",
            "OPT ';'",
        ],
    )
    .on(&[
        "printf 'a,b c;d\\te' | xargs FLAGS COMMAND",
        "xargs FLAGS COMMAND < words.txt",
        "printf '%s\\n' QUOTED | xargs FLAGS COMMAND",
        "printf 'x,,y,' | xargs FLAGS COMMAND",
        "xargs FLAGS COMMAND < table.csv",
    ]),
    flags(&["-E"], &["OPT EOF", "OPT b", "OPT ''", "OPT _"]).on(ENDS).mixes(),
    flags(&["-e", "--eof"], &["OPT=EOF", "OPT=b", "OPT"]).on(ENDS),
    flags(&["-I"], &["OPT ,,", "OPT {}", "OPT _"]).with(REPLACING),
    flags(&["-i", "--replace"], &["OPT", "OPT=,,", "OPT=_", "OPT={}"]).with(REPLACING),
    flags(&["-L"], &["OPT 2", "OPT 1", "OPT 3", "OPT 0"]).on(LINES),
    flags(&["-l", "--max-lines"], &["OPT=2", "OPT", "OPT=3"]).on(LINES),
    flags(&["-n", "--max-args"], &["OPT 2", "OPT 1", "OPT 3", "OPT 10", "OPT 0", "OPT x"]).mixes(),
    flags(&["-P", "--max-procs"], &["OPT 4 -n 1", "OPT 1", "OPT 0 -n 2", "OPT 2 -L 1"])
        .on(&[
            "seq 9 | xargs FLAGS COMMAND | LC_ALL=C sort",
            "xargs FLAGS COMMAND < words.txt | LC_ALL=C sort",
            "cat list.txt | xargs FLAGS COMMAND > out.txt; LC_ALL=C sort out.txt",
        ])
        .with(&["echo", "./args", "printf '<%s>\\n'", "bash -c 'f \"$@\"' _"]),
    flags(&["-o", "--open-tty"], &["OPT", "OPT -n 1"]),
    flags(&["-p", "--interactive"], &["OPT", "OPT -n 1"]),
    flags(&["--process-slot-var"], &["OPT SLOT", "OPT SLOT -n 1", "OPT SLOT -n 1 -P 1", "OPT MYVAR -L 1"])
        .with(&["sh -c 'echo \"$SLOT:$MYVAR\" \"$@\"' sh", "echo"]),
    flags(&["-r", "--no-run-if-empty"], &["OPT", "OPT -n 2", "OPT -0"]).on(EMPTY).mixes(),
    flags(
        &["-s", "--max-chars"],
        &["OPT 20", "OPT 30", "OPT 1000", "OPT 8", "OPT 20 -x", "OPT 25 -n 3", "OPT x"],
    )
    .on(LONG)
    .with(&["echo", "./args", "sh -c 'echo $#' sh"]),
    lines(
        &["--show-limits"],
        &[
            "xargs OPT echo < /dev/null > out.txt; cat out.txt",
            "xargs OPT -r echo < /dev/null 2>&1 | wc -l",
            "xargs OPT FLAGS COMMAND < list.txt 2> /dev/null",
            "xargs OPT -s 100 -r < /dev/null",
        ],
    ),
    flags(&["-t", "--verbose"], &["OPT", "OPT -n 1", "OPT -n 2"]).mixes(),
    flags(&["-x", "--exit"], &["OPT -s 20", "OPT -s 30 -n 2", "OPT -n 2", "OPT"])
        .on(LONG)
        .with(&["echo", "./args"])
        .mixes(),
    lines(
        &["--help"],
        &[
            "xargs OPT | head -n 1",
            "xargs OPT > /dev/null; echo $?",
            "xargs OPT | grep -c -e '--null'",
            "xargs OPT < list.txt | wc -l > /dev/null; echo done",
        ],
    ),
    lines(
        &["--version"],
        &["xargs OPT | head -n 1", "xargs OPT > /dev/null; echo $?", "xargs OPT | wc -l", "xargs OPT"],
    ),
    lines(
        &["no option"],
        &[
            "xargs < words.txt",
            "xargs COMMAND < words.txt",
            "printf '%s\\n' QUOTED | xargs COMMAND",
            "ls *.txt | xargs COMMAND",
            "cat <(seq 3) | xargs COMMAND",
            "xargs COMMAND <<< \"a 'b c'\"",
            "seq 3 | xargs -- COMMAND",
            "xargs COMMAND < blanks.txt",
            "x=$(xargs COMMAND < list.txt); echo \"$? [$x]\"",
            "find sub -type f | xargs COMMAND",
        ],
    ),
    lines(
        &["unknown option"],
        &[
            "xargs --nosuch echo < list.txt; echo $?",
            "xargs -Z echo < list.txt 2> /dev/null; echo $?",
            "xargs -n < list.txt > /dev/null 2>&1; echo $?",
        ],
    ),
];

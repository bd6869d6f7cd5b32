//! Options of GNU parallel about when and where jobs run, and about their environment.

use super::super::recipe::{Recipe, flags, lines};

const STATUSES: &[&str] =
    &["'echo {}; exit {}'", "'exit {}'", "'test {} -lt 2'", "'echo {} >&2; false'", "true"];
const NUMBERS: &[&str] = &["parallel FLAGS -j1 COMMAND ::: 0 1 2 3", "seq 0 4 | parallel FLAGS -j1 COMMAND"];

pub(super) const RECIPES: &[Recipe] = &[
    flags(
        &["--jobs", "-j", "--max-procs", "-P"],
        &[
            "OPT 1",
            "OPT 1 -u",
            "OPT 2 -k",
            "OPT 100% -k",
            "OPT +1 -k",
            "OPT 0 -k",
            "OPT -1 -k",
            "OPT 50% -k",
            "OPT numbers.txt -k",
        ],
    ),
    flags(&["--timeout"], &["OPT 0.5", "OPT 10", "OPT 1s", "OPT 1000%", "OPT 1m"])
        .with(&["'sleep 0.1; echo {}'", "echo {}", "'echo {}; test {#} -gt 1 || sleep 3'"])
        .serial(),
    flags(&["--retries"], &["OPT 2", "OPT 3", "OPT 1"])
        .with(&["'echo {} >> tries; wc -l < tries; false'", "'test {} = a'", "'echo {}; exit 3'"])
        .serial(),
    flags(
        &["--halt-on-error", "--halt"],
        &[
            "OPT now,fail=1",
            "OPT soon,fail=1",
            "OPT 1",
            "OPT 2",
            "OPT 0",
            "OPT soon,success=1",
            "OPT now,done=2",
            "OPT soon,fail=50%",
            "OPT never",
            "OPT now,fail=2",
        ],
    )
    .on(NUMBERS)
    .with(STATUSES),
    flags(&["--term-seq"], &["OPT TERM,100,KILL,25", "OPT INT,50,KILL,25", "OPT KILL,25"])
        .with(&["'sleep 3; echo {}'", "echo {}"])
        .on(&["parallel FLAGS --timeout 0.5 -j1 COMMAND ::: a b"]),
    flags(&["--delay"], &["OPT 0.01", "OPT 0", "OPT 0.1s"]).mixes(),
    flags(&["--load"], &["OPT 1000", "OPT 100000%"]),
    flags(&["--memfree"], &["OPT 1k", "OPT 1M"]),
    flags(&["--memsuspend"], &["OPT 1k", "OPT 10k"]),
    flags(&["--noswap"], &["OPT"]),
    flags(&["--limit"], &["OPT true", "OPT 'exit 0'", "OPT 'load 1000'", "OPT 'mem 1k'"]),
    flags(&["--nice"], &["OPT 1", "OPT 10", "OPT 0"]).with(&["nice", "'echo {}; nice'", "echo {}"]),
    flags(&["--workdir", "--wd"], &["OPT sub", "OPT ./sub", "OPT .", "OPT nosuch/made", "OPT '{1//}'"])
        .with(&["'ls | head -n 3'", "'basename \"$PWD\"'", "'basename \"$OLDPWD\"'", "'cat inner.txt'"]),
    flags(&["--env"], &["OPT MYVAR", "OPT f", "OPT _", "OPT MYVAR,f", "OPT nosuch"])
        .on(&[
            "MYVAR='x  y' parallel FLAGS COMMAND ::: VALUES",
            "export MYVAR=\"it's\"; parallel FLAGS COMMAND ::: 1 2",
        ])
        .with(&["'echo \"$MYVAR\" {}'", "f {}", "'f \"$MYVAR\"'"]),
    flags(&["--process-slot-var"], &["OPT SLOT", "OPT MYVAR"])
        .on(&["parallel FLAGS -j1 COMMAND ::: VALUES"])
        .with(&["'echo \"$SLOT$MYVAR\" {}'", "'env | grep -c -e ^SLOT= -e ^MYVAR='"]),
    flags(&["--tty"], &["OPT"]).with(&["echo {}", "'test -t 0 || echo {} no'", "cat"]).serial(),
    flags(&["--open-tty", "-o"], &["OPT"]).with(&["echo {}", "'test -t 0 || echo {} no'", "cat"]).serial(),
    flags(&["--interactive", "-p"], &["OPT"]).serial(),
    flags(&["--use-cpus-instead-of-cores"], &["OPT", "OPT -j1"]),
    flags(&["--use-cores-instead-of-threads"], &["OPT", "OPT -j1"]),
    flags(&["--use-sockets-instead-of-threads"], &["OPT", "OPT -j1"]),
    flags(&["--plain", "--no-profile"], &["OPT"]).on(&[
        "mkdir -p ~/.parallel; echo --tag > ~/.parallel/config; parallel FLAGS COMMAND ::: VALUES",
        "PARALLEL='--tag -v' parallel FLAGS COMMAND ::: VALUES",
        "parallel FLAGS COMMAND ::: VALUES",
    ]),
    flags(&["--profile", "-J"], &["OPT mine", "OPT ./local", "OPT nosuch"]).on(&[
        "mkdir -p ~/.parallel; echo --tag > ~/.parallel/mine; echo -v > local; parallel FLAGS -j1 \
         COMMAND ::: VALUES",
        "mkdir -p ~/.parallel; printf '%s\\n' '# tags' \"--tagstring 'a b'\" | tee local > \
         ~/.parallel/mine; parallel FLAGS COMMAND ::: VALUES",
    ]),
    lines(
        &["--semaphore"],
        &[
            "parallel OPT --fg echo a b",
            "parallel OPT --id mine --fg 'exit 3'",
            "parallel OPT --id \
             mine 'echo x > made'; parallel OPT --id mine --wait; cat made",
            "for i in 1 2 3; do parallel OPT -j1 --id mine \"echo $i >> made\"; done; parallel OPT --id \
             mine --wait; cat made",
            "parallel OPT --fg -j2 echo 'a  b'",
        ],
    ),
    lines(
        &["--fg"],
        &[
            "parallel --semaphore OPT echo a",
            "sem OPT 'echo a; exit 4'",
            "sem OPT --id x f a",
            "sem OPT -u echo out",
        ],
    ),
    lines(
        &["--bg"],
        &[
            "parallel --semaphore OPT 'echo a > made'; parallel --semaphore --wait; cat made",
            "sem OPT --id x 'echo b > made'; sem --wait --id x; cat made",
            "sem OPT -j1 'exit 3'; sem --wait; echo $?",
        ],
    ),
    lines(
        &["--wait"],
        &[
            "sem --bg 'echo a > made'; sem OPT; cat made",
            "parallel --semaphore OPT",
            "sem --id none OPT; echo $?",
        ],
    ),
    lines(
        &["--semaphore-name", "--id"],
        &[
            "sem OPT mine --fg echo a",
            "sem OPT mine -j2 'echo x > made'; sem OPT mine --wait; cat made",
            "parallel --semaphore OPT 'a b' --fg echo c",
        ],
    ),
    lines(
        &["--semaphore-timeout", "--st"],
        &[
            "sem OPT 1 --fg echo a",
            "sem --id x -j1 'sleep 2'; sem --id x -j1 OPT -1 --fg echo late; echo $?; sem --id x --wait",
            "sem OPT 5 --id y --fg 'exit 2'",
        ],
    ),
];

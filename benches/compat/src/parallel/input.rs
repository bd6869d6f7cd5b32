//! Options of GNU parallel about input, arguments of jobs, and placeholders.

use super::super::recipe::{Recipe, commands, flags, lines};

const COLUMNS: &[&str] = &[
    "echo {2} {1}",
    "'echo {1}-{3}'",
    "echo",
    "echo {-1}",
    "'printf \"%s;\" {} {2}; echo'",
    "echo {3} {1} {9}",
];

pub(super) const RECIPES: &[Recipe] = &[
    commands(
        &["command"],
        &[
            "echo",
            "wc -c",
            "'echo one; echo two'",
            "f",
            "'f {} | f'",
            "'! true'",
            "test -e",
            "ls",
            "'exit 3;'",
            "'seq 2 | while read n; do echo $n {}; done'",
            "''",
            "nosuchprogram",
            "./nosuch",
            "'(echo {})'",
        ],
    ),
    commands(
        &["{}"],
        &["echo {}", "'echo \"{}\"'", "\"echo '{}'\"", "echo {} x{}y", "'echo {}>{#}.out; cat {#}.out'"],
    ),
    commands(&["{.}"], &["echo {.}", "'echo {.}.bak'", "echo {} {.}"]),
    commands(&["{/}"], &["echo {/}", "'echo \"{/}\"'", "echo x/{/}"]),
    commands(&["{//}"], &["echo {//}", "'cd {//} && ls'", "echo {//}/{/}"]),
    commands(&["{/.}"], &["echo {/.}", "'echo {/.}.new'", "echo {/.} {.}"]),
    commands(&["{#}"], &["echo {#}", "'echo {#}:{}'", "'exit {#}'"]),
    commands(
        &["{%}"],
        &["'true {%}; echo ok'", "'test {%} -le 9 && echo slot'", "'echo {} > slot-{%}; cat slot-{%}'"],
    ),
    commands(&["{n}"], &["echo {1}", "echo {2} {1}", "'echo {1}{2}{3}'", "echo {-1} {-2}", "echo {0} {01}"]),
    commands(&["{n.}"], &["echo {1.}", "echo {2.} {1.}", "'echo {-1.}.x'"]),
    commands(&["{n/}"], &["echo {1/}", "echo {2/} {1/}", "'echo \"{-1/}\"'"]),
    commands(&["{n//}"], &["echo {1//}", "echo {2//} {1//}", "'ls {1//}'"]),
    commands(&["{n/.}"], &["echo {1/.}", "echo {2/.} {1/.}", "'echo {-1/.}'"]),
    commands(
        &["{=perl expression=}"],
        &[
            "\"echo {= s/a/b/ =}\"",
            "\"echo {= \\$_ .= 'x' =}\"",
            "'echo {= $_=uc =} {}'",
            "echo '{= tr/a-z/A-Z/ =}'",
        ],
    ),
    commands(
        &["{=n perl expression=}"],
        &["\"echo {=1 s/a/b/ =}\"", "'echo {=2 $_=length =} {1}'", "'echo {=1 $_=$_*2 =}'"],
    ),
    lines(
        &[":::"],
        &[
            "parallel FLAGS COMMAND OPT VALUES",
            "parallel FLAGS COMMAND OPT VALUES OPT 1 2",
            "parallel FLAGS COMMAND OPT 1 2 OPT VALUES OPT x",
            "parallel FLAGS COMMAND OPT",
            "parallel FLAGS OPT 'echo a' 'echo b; echo c' f",
        ],
    ),
    lines(
        &[":::+"],
        &[
            "parallel FLAGS COMMAND ::: VALUES OPT 1 2 3",
            "parallel FLAGS COMMAND ::: a b c OPT x y ::: 1 2",
            "parallel FLAGS COMMAND ::: 1 2 3 4 OPT VALUES OPT p q r s",
            "parallel FLAGS COMMAND :::: list.txt OPT 1 2 3",
        ],
    ),
    lines(
        &["::::"],
        &[
            "parallel FLAGS COMMAND OPT list.txt",
            "parallel FLAGS COMMAND OPT list.txt OPT numbers.txt",
            "parallel FLAGS COMMAND OPT <(printf '%s\\n' VALUES)",
            "cat list.txt | parallel FLAGS COMMAND OPT - ::: x y",
            "parallel FLAGS COMMAND OPT nosuch.txt",
            "parallel FLAGS COMMAND OPT list.txt names.txt",
            "parallel FLAGS COMMAND OPT empty.txt",
        ],
    ),
    lines(
        &["::::+"],
        &[
            "parallel FLAGS COMMAND :::: list.txt OPT numbers.txt",
            "parallel FLAGS COMMAND ::: VALUES OPT list.txt",
            "parallel FLAGS COMMAND :::: numbers.txt OPT list.txt ::: x",
        ],
    ),
    lines(
        &["--null", "-0"],
        &[
            "printf '%s\\0' VALUES | parallel FLAGS OPT COMMAND",
            "parallel FLAGS OPT COMMAND < zero.bin",
            "find sub dir -type f -print0 | LC_ALL=C sort -z | parallel OPT FLAGS COMMAND",
            "parallel FLAGS OPT -a zero.bin COMMAND",
        ],
    ),
    lines(
        &["--arg-file", "-a"],
        &[
            "parallel FLAGS OPT list.txt COMMAND",
            "parallel OPT names.txt FLAGS COMMAND",
            "parallel OPT list.txt OPT numbers.txt FLAGS COMMAND",
            "parallel OPT <(printf '%s\\n' VALUES) FLAGS COMMAND",
            "parallel OPT nosuch.txt FLAGS COMMAND",
            "parallel OPT list.txt FLAGS COMMAND ::: x y",
            "seq 3 | parallel FLAGS OPT - COMMAND",
            "seq 3 | parallel FLAGS OPT list.txt 'cat; echo {}'",
        ],
    ),
    flags(&["--arg-file-sep"], &["OPT ::file", "OPT ,,"]).on(&[
        "parallel FLAGS COMMAND ::file list.txt",
        "parallel FLAGS COMMAND ,, list.txt ,, numbers.txt",
        "parallel FLAGS COMMAND ::: VALUES",
    ]),
    flags(&["--arg-sep"], &["OPT ,,", "OPT //"]).on(&[
        "parallel FLAGS COMMAND ,, VALUES",
        "parallel FLAGS COMMAND // 1 2 // VALUES",
        "parallel FLAGS COMMAND ,, a b // 1 2",
    ]),
    flags(&["--basenamereplace", "--bnr"], &["OPT ,,", "OPT '[b]'"]).with(&[
        "echo ,,",
        "echo '[b]' {}",
        "'echo x,,y'",
    ]),
    flags(&["--basenameextensionreplace", "--bner"], &["OPT ,,", "OPT '[e]'"]).with(&[
        "echo ,,",
        "echo '[e]' {/.}",
        "'echo x,,y'",
    ]),
    flags(&["--dirnamereplace", "--dnr"], &["OPT ,,", "OPT '[d]'"]).with(&[
        "echo ,,",
        "echo '[d]'",
        "'echo ,, {//}'",
    ]),
    flags(&["--extensionreplace", "--er"], &["OPT ,,", "OPT '[x]'"]).with(&[
        "echo ,,",
        "echo '[x]'",
        "'echo ,, {.}'",
    ]),
    flags(&["--seqreplace"], &["OPT ,,", "OPT SEQ"]).with(&["echo ,,", "echo SEQ {}", "'echo ,,{#}'"]),
    flags(&["--slotreplace"], &["OPT ,,", "OPT SLOT"]).with(&[
        "'true ,,; echo {}'",
        "'test SLOT -gt 0 && echo yes'",
        "'echo {}; true {%}'",
    ]),
    flags(&["--colsep", "-C"], &["OPT '\\t'", "OPT ' '", "OPT ,", "OPT '[:,]'", "OPT '\\s+'"])
        .on(&[
            "parallel FLAGS COMMAND :::: table.tsv",
            "parallel FLAGS COMMAND < table.csv",
            "parallel FLAGS -a words.txt COMMAND",
            "parallel FLAGS COMMAND ::: a,b 'c:d,e' 'f g'",
        ])
        .with(COLUMNS),
    flags(&["--csv"], &["OPT", "OPT --header :"])
        .on(&[
            "parallel FLAGS COMMAND < table.csv",
            "parallel FLAGS COMMAND :::: table.csv",
            "parallel FLAGS COMMAND ::: 'a,b' '\"x,y\",z'",
        ])
        .with(COLUMNS),
    flags(&["--header"], &["OPT :", "OPT 1", "OPT '.*\\n'", "OPT 0"])
        .on(&[
            "parallel FLAGS COMMAND ::: name a b ::: size 1 2",
            "parallel FLAGS COMMAND < heads.txt",
            "parallel FLAGS -C '\\t' COMMAND :::: table.tsv",
        ])
        .with(&[
            "echo {name} {size}",
            "echo {name}",
            "echo {1}",
            "'echo \"{name}\" {}'",
            "echo {name.} {size/}",
        ]),
    flags(
        &["--delimiter", "-d"],
        &["OPT ,", "OPT '\\t'", "OPT ' '", "OPT '\\n'", "OPT ';'", "OPT '\\0'", "OPT '\\x2c'"],
    )
    .on(&[
        "printf 'a,b;c\\td e' | parallel FLAGS COMMAND",
        "parallel FLAGS COMMAND < table.csv",
        "parallel FLAGS -a words.txt COMMAND",
        "printf 'x,,y,' | parallel FLAGS COMMAND",
    ]),
    flags(&["-E"], &["OPT b", "OPT EOF", "OPT ''"]).on(&[
        "parallel FLAGS COMMAND :::: list.txt",
        "printf '%s\\n' a EOF b c | parallel FLAGS COMMAND",
        "parallel FLAGS COMMAND ::: a b c",
    ]),
    flags(&["--eof", "-e"], &["OPT=b", "OPT=EOF", "OPT"])
        .on(&["parallel FLAGS COMMAND :::: list.txt", "printf '%s\\n' a EOF b c | parallel FLAGS COMMAND"]),
    flags(&["-I"], &["OPT ,,", "OPT _", "OPT '<>'", "OPT '{{}}'", "OPT %"]).with(&[
        "echo ,, _ '<>' %",
        "'echo x,,y _'",
        "echo '{{}}' {}",
        "'echo \"_\" ,, {#}'",
        "echo % '<>'",
    ]),
    flags(&["--replace", "-i"], &["OPT=,,", "OPT=_", "OPT"]).with(&[
        "echo ,, _",
        "'echo x,,y _'",
        "echo {} {}",
    ]),
    flags(&["-L"], &["OPT 2", "OPT 1", "OPT 3"]).on(&[
        "parallel FLAGS COMMAND < words.txt",
        "seq 7 | parallel FLAGS COMMAND",
        "parallel FLAGS COMMAND < trailing.txt",
        "parallel FLAGS COMMAND ::: VALUES",
    ]),
    flags(&["--max-lines", "-l"], &["OPT=2", "OPT", "OPT=3"]).on(&[
        "parallel FLAGS COMMAND < words.txt",
        "seq 7 | parallel FLAGS COMMAND",
        "parallel FLAGS COMMAND < trailing.txt",
    ]),
    flags(&["--link", "--xapply"], &["OPT"]).on(&[
        "parallel FLAGS COMMAND ::: VALUES ::: 1 2 3",
        "parallel FLAGS COMMAND :::: list.txt numbers.txt",
        "parallel FLAGS COMMAND ::: a b c d ::: 1 2 ::: x",
        "parallel FLAGS -a list.txt -a names.txt COMMAND",
    ]),
    flags(&["--max-args", "-n"], &["OPT 2", "OPT 1", "OPT 3", "OPT 10", "OPT 0"]).mixes(),
    flags(&["--max-replace-args", "-N"], &["OPT 2", "OPT 1", "OPT 3", "OPT 0"]).with(&[
        "echo {1} {2}",
        "echo",
        "'echo {2}-{1}'",
        "'echo {} end'",
        "echo {3}{2}{1} {#}",
    ]),
    flags(&["-m"], &["OPT", "OPT -n 2", "OPT -s 40"])
        .on(&["seq 9 | parallel FLAGS -j1 COMMAND", "parallel FLAGS -j1 COMMAND ::: VALUES"])
        .with(&["echo", "echo a{}b", "echo {} end", "echo {.}"]),
    flags(&["-X"], &["OPT", "OPT -n 2", "OPT -s 40"])
        .on(&["seq 9 | parallel FLAGS -j1 COMMAND", "parallel FLAGS -j1 COMMAND ::: VALUES"])
        .with(&["echo", "echo a{}b", "echo {} end", "echo {.}"]),
    flags(&["--xargs"], &["OPT", "OPT -n 2", "OPT -s 40", "OPT -n 3 -x"])
        .on(&[
            "seq 9 | parallel FLAGS -j1 COMMAND",
            "parallel FLAGS -j1 COMMAND ::: VALUES",
            "cat list.txt numbers.txt | parallel FLAGS -j1 COMMAND",
        ])
        .with(&["echo", "echo {} end", "./args", "'echo {} | wc -w'"]),
    flags(&["--max-chars", "-s"], &["OPT 20", "OPT 30", "OPT 1000", "OPT 8"])
        .on(&[
            "seq 19 | parallel FLAGS -j1 -X COMMAND",
            "seq 19 | parallel FLAGS -j1 -m COMMAND",
            "seq 5 | parallel FLAGS COMMAND",
        ])
        .with(&["echo", "echo {}", "echo a{}"]),
    flags(&["--exit", "-x"], &["OPT", "OPT -n 2", "OPT -s 30"])
        .on(&["seq 9 | parallel FLAGS -j1 --xargs COMMAND", "seq 4 | parallel FLAGS COMMAND"])
        .with(&["echo", "echo {}"]),
    flags(&["--no-run-if-empty", "-r"], &["OPT"]).on(&[
        "parallel FLAGS COMMAND < empty.txt",
        "printf 'a\\n\\nb\\n' | parallel FLAGS COMMAND",
        "parallel FLAGS COMMAND ::: ''",
        "parallel FLAGS COMMAND < blanks.txt",
    ]),
    flags(&["--plus"], &["OPT"]).with(&[
        "echo {##} {#}",
        "echo {..} {...}",
        "echo {/..}",
        "echo {+/} {+.}",
        "'echo {%.txt}'",
        "echo {:-none}",
        "echo {^a}",
        "echo {^^}",
        "echo {:2:3}",
        "echo {/a/b}",
        "echo {0#}",
        "echo {uniq}",
        "echo {%.gz}.new",
        "echo {+..}",
    ]),
    flags(&["--quote", "-q"], &["OPT"]).with(&[
        "echo '$HOME' {}",
        "echo 'a  b' {}",
        "printf '%s|' {} \"it's\" '*'",
        "./args 'x;y' {}",
        "f {}",
    ]),
    flags(&["--shuf"], &["OPT"])
        .on(&[
            "parallel FLAGS COMMAND ::: VALUES | LC_ALL=C sort",
            "seq 5 | parallel FLAGS COMMAND | LC_ALL=C sort",
        ])
        .with(&["echo {}", "echo x"]),
    flags(&["--skip-first-line"], &["OPT"]).on(&[
        "parallel FLAGS COMMAND < list.txt",
        "parallel FLAGS COMMAND :::: heads.txt",
        "seq 4 | parallel FLAGS COMMAND",
        "parallel FLAGS COMMAND ::: VALUES",
    ]),
    flags(&["--total-jobs", "--total"], &["OPT 3", "OPT 10"]).with(&["echo {##}", "echo {#}"]),
    flags(&["--trim"], &["OPT l", "OPT r", "OPT lr", "OPT n", "OPT rl"])
        .on(&["parallel FLAGS COMMAND ::: ' a ' '  b' 'c  '", "parallel FLAGS COMMAND < blanks.txt"])
        .with(&["'echo \"<{}>\"'", "./args"]),
    flags(&["--template", "--tmpl"], &["OPT form.txt=made-{#}.txt", "OPT form.txt={}.made"])
        .on(&["parallel FLAGS -j1 COMMAND ::: a b; ls; cat made-1.txt a.made"])
        .with(&["echo {}", "cat form.txt"]),
    flags(&["--rpl"], &["OPT '{up} $_=uc'", "OPT '{x} s/a/b/;'", "OPT '{r} $_=reverse'"]).with(&[
        "echo {up} {x}",
        "echo {r}",
        "'echo {x}{}'",
    ]),
    flags(&["--parens"], &["OPT ,,,,", "OPT '(::)'"]).with(&[
        "'echo ,,s/a/b/,,'",
        "echo {}",
        "'echo (: s/a/b/ :)'",
    ]),
    flags(&["--filter"], &["OPT '{1} ne {2}'", "OPT '{1} < 3'"])
        .on(&["parallel FLAGS COMMAND ::: 1 2 3 ::: 1 2 3"])
        .with(&["echo {1} {2}"]),
];

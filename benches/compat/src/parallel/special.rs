//! Options of GNU parallel that print something, are about other machines or databases, or belong to
//! its shell functions.

use super::super::recipe::{Recipe, flags, lines};

/// A line for an option about other machines; `:` is this one, reached without ssh.
const HERE: &[&str] = &[
    "parallel FLAGS -S : COMMAND ::: VALUES",
    "seq 3 | parallel FLAGS -S : COMMAND",
    "parallel FLAGS -S 1/: COMMAND :::: list.txt",
];

pub(super) const RECIPES: &[Recipe] = &[
    lines(
        &["--help", "-h"],
        &["parallel OPT | head -n 1", "parallel OPT", "parallel OPT > /dev/null; echo $?"],
    ),
    lines(&["--version", "-V"], &["parallel OPT", "parallel OPT | head -n 1", "parallel OPT | wc -l"]),
    lines(
        &["--minversion"],
        &[
            "parallel OPT 20130722",
            "parallel OPT 20991231; echo $?",
            "parallel OPT 20130722 && echo new enough",
            "parallel OPT 20221122",
        ],
    ),
    lines(
        &["--number-of-cpus"],
        &["parallel OPT", "test $(parallel OPT) -ge 1 && echo some", "echo $(($(parallel OPT) + 1))"],
    ),
    lines(
        &["--number-of-cores"],
        &["parallel OPT", "test $(parallel OPT) -ge 1 && echo some", "echo $(($(parallel OPT) + 1))"],
    ),
    lines(
        &["--number-of-sockets"],
        &["parallel OPT", "test $(parallel OPT) -ge 1 && echo some", "echo $(($(parallel OPT) + 1))"],
    ),
    lines(
        &["--number-of-threads"],
        &["parallel OPT", "test $(parallel OPT) -ge 1 && echo some", "echo $(($(parallel OPT) + 1))"],
    ),
    lines(
        &["--max-line-length-allowed"],
        &["parallel OPT", "parallel OPT > n; test $(cat n) -gt 1000 && echo long", "parallel OPT | wc -l"],
    ),
    lines(
        &["--show-limits"],
        &["parallel OPT < /dev/null", "parallel OPT echo ::: a b", "parallel OPT -s 100 < /dev/null"],
    ),
    lines(
        &["--shell-quote"],
        &[
            "parallel -k OPT ::: VALUES",
            "printf '%s\\n' VALUES | parallel -k OPT",
            "parallel -k OPT OPT ::: 'a b' \"it's\"",
            "parallel -k OPT echo ::: '*' '$x' ''",
        ],
    ),
    lines(
        &["--shell-completion"],
        &[
            "parallel OPT bash | head -n 1",
            "parallel OPT zsh | wc -l",
            "parallel OPT auto | head -n 1",
            "parallel OPT nosuch",
        ],
    ),
    lines(
        &["--citation", "--bibtex"],
        &["parallel OPT < /dev/null | head -n 1", "parallel OPT < /dev/null > /dev/null; echo $?"],
    ),
    lines(
        &["--record-env"],
        &[
            "parallel OPT; test -s ~/.parallel/ignored_vars && echo there",
            "parallel OPT; parallel -k --env _ COMMAND ::: VALUES",
            "NEW=1; parallel OPT; export NEW; parallel --env _ 'echo \"$NEW\"' ::: 1",
        ],
    ),
    flags(&["--will-cite"], &["OPT"]).mixes(),
    flags(&["--no-notice", "--nn"], &["OPT"]),
    flags(&["--gnu"], &["OPT"]).mixes(),
    flags(&["--debug", "-D"], &["OPT nothing", "OPT xyz"]),
    flags(&["--cleanup"], &["OPT", "OPT -S :", "OPT --return {}.made -S :"]),
    flags(&["--sshlogin", "-S"], &["OPT :", "OPT 2/: -k", "OPT :,:", "OPT 1/:"]),
    flags(&["--sshloginfile", "--slf"], &["OPT here.txt", "OPT nosuch.txt"])
        .on(&["echo : > here.txt; parallel FLAGS COMMAND ::: VALUES"]),
    flags(&["--ssh"], &["OPT false", "OPT 'ssh -v'"]).on(HERE),
    flags(&["--ssh-delay"], &["OPT 0.01", "OPT 0"]).on(HERE),
    flags(&["--controlmaster", "-M"], &["OPT"]).on(HERE),
    flags(&["--hostgroups", "--hgrp"], &["OPT"]).on(HERE),
    lines(
        &["--filter-hosts"],
        &[
            "parallel FLAGS OPT -S : COMMAND ::: VALUES",
            "parallel OPT -S : -k echo ::: a",
            "seq 3 | parallel FLAGS OPT -S : COMMAND",
        ],
    ),
    lines(
        &["--nonall"],
        &[
            "parallel OPT -S : echo hello",
            "parallel OPT --tag -S : 'basename \"$PWD\"'",
            "parallel OPT -S : 'exit 3'",
        ],
    ),
    lines(
        &["--onall"],
        &[
            "parallel OPT -S : echo ::: a b",
            "parallel OPT -k -S : echo {} {#} ::: a b",
            "parallel OPT -j1 -S : 'exit {}' ::: 0 1",
        ],
    ),
    flags(&["--transfer"], &["OPT"]).on(HERE).with(&["cat {}", "echo {}"]),
    flags(&["--transferfile", "--tf"], &["OPT {}", "OPT list.txt"])
        .on(HERE)
        .with(&["echo {}", "cat list.txt"]),
    flags(&["--return"], &["OPT {}.made", "OPT {.}.x"])
        .on(HERE)
        .with(&["'echo {} > {}.made; cat {}.made'", "echo {}"]),
    flags(&["--trc"], &["OPT {}.made", "OPT {.}.x"])
        .on(HERE)
        .with(&["'echo {} > {}.made; cat {}.made'", "echo {}"]),
    flags(&["--basefile", "--bf"], &["OPT list.txt", "OPT nosuch.txt"]).on(HERE),
    flags(&["--rsync-opts"], &["OPT -a", "OPT '-a -v'"]).on(HERE),
    flags(&["--sql"], &["OPT sqlite3:////./db/t", "OPT csv:///./t"]),
    flags(&["--sql-master"], &["OPT sqlite3:////./db/t", "OPT csv:///./t"]),
    flags(&["--sql-worker"], &["OPT sqlite3:////./db/t", "OPT csv:///./t"]),
    flags(&["--sql-and-worker"], &["OPT sqlite3:////./db/t", "OPT csv:///./t"]),
    lines(
        &["--embed"],
        &[
            "parallel OPT | head -n 1",
            "parallel OPT > program; bash -n program && echo shell",
            "parallel OPT | grep -c parallel > /dev/null; echo $?",
        ],
    ),
    flags(&["--session"], &["OPT"]),
    lines(
        &["--_parset"],
        &[
            "parallel -k OPT a,b echo ::: 1 2",
            "parallel OPT x echo ::: 1",
            "parallel -k OPT out echo ::: 1 2 3 | wc -l",
        ],
    ),
    flags(&["--tmux"], &["--dry-run OPT"]),
    flags(&["--tmuxpane"], &["--dry-run OPT"]),
    lines(
        &["--shebang", "--hashbang"],
        &[
            "printf '%s\\n' \"#!$(command -v parallel) OPT -k echo\" a b > s; chmod +x s; ./s",
            "printf '%s\\n' \"#!$(command -v parallel) OPT -k -r -j1 sh -c\" 'echo a b' 'exit 2' > s; \
             chmod +x s; ./s",
            "printf '%s\\n' \"#!$(command -v parallel) OPT --tag -j1 echo x\" '' y > s; chmod +x s; ./s",
        ],
    ),
    lines(
        &["--shebang-wrap"],
        &[
            "printf '%s\\n' \"#!$(command -v parallel) OPT -k /bin/sh\" 'echo \"<$1>\"' > s; chmod +x \
             s; ./s VALUES",
            "printf '%s\\n' \"#!$(command -v parallel) OPT -k --pipe /bin/cat\" 'x' > s; chmod +x s; \
             seq 3 | ./s",
            "printf '%s\\n' \"#!$(command -v parallel) OPT -k /bin/bash\" 'echo \"$@\"; exit 3' > s; \
             chmod +x s; ./s a b ::: c d",
        ],
    ),
];

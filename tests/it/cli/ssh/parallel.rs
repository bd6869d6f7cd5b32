//! GNU parallel is the oracle for its options for other machines, too. A script runs with GNU parallel and
//! with us, on the same hosts. What is written, the status, and the files that are left here and there have
//! to be equal.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::sshd::{Hosts, Setup};
use super::*;
use crate::support::{is_full, output, skip};

/// A script for `sh`, and the files that are there beforehand.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

/// Files with blanks and quotes in their names.
const FILES: &[(&str, &str)] =
    &[("in/f 1.txt", "1\n"), ("in/f'2.txt", "1\n2\n"), ("in/f\"3$.txt", "1\n2\n3\n")];

/// `HOME` stands for the home directory of the hosts.
const CASES: &[Case] = &[
    ("parallel -k -S 2/alpha,2/beta echo ::: a b c d", &[]),
    (
        "parallel -k -S 1/alpha --tag 'echo {} {#} $PARALLEL_SSHLOGIN $PARALLEL_SSHHOST; \
         echo $PARALLEL_SEQ' ::: a 'b  c' \"it's\"",
        &[],
    ),
    ("printf '2/alpha\\n# none\\n\\n2/beta\\n' >hosts; parallel -k --slf hosts 'echo {}; pwd' ::: a b", &[]),
    ("parallel -k -S 2/alpha --trc {.}.out 'cat {} {} > {.}.out' ::: in/*.txt", FILES),
    (
        "parallel -k -S 2/alpha,2/beta --wd w --transferfile {} --return {.}.out 'wc -l < {} > {.}.out' \
         ::: in/*.txt",
        FILES,
    ),
    (
        "parallel -k -S 2/alpha --bf lib.sh --transfer --return {.}.out --cleanup \
         '. ./lib.sh; f {} > {.}.out' ::: in/*.txt",
        &[("in/a b.txt", "12\n"), ("lib.sh", "f() { wc -c <\"$1\"; }\n")],
    ),
    ("parallel -k -S 2/alpha --bf lib.sh 'cat lib.sh; echo {}' ::: a b", &[("lib.sh", "lib\n")]),
    ("parallel -k -S 1/alpha --wd HOME/new/deep 'pwd; echo {} > made' ::: a", &[]),
    ("parallel -k -S 1/alpha --wd . 'pwd' ::: a", &[]),
    ("parallel -k -S 1/alpha --wd ... --trc {}.out 'cat {} > {}.out' ::: a b", &[("a", "A\n"), ("b", "B\n")]),
    (
        "X='one two' Y=$(printf 'l1\\nl2') Z='q\"'; export X Y Z; parallel -k -S 1/alpha --env X,Y --env Z \
         'echo \"$X\" \"$Y\" \"$Z\" {}' ::: a",
        &[],
    ),
    (
        "bash -c 'f() { echo \"f: $1 $V\"; }; export -f f; export V=\"v w\"; export PARALLEL_SHELL=/bin/bash
         parallel -k -S 1/alpha --env f --env V f {} ::: a \"b c\"'",
        &[],
    ),
    ("parallel -S 2/alpha 'exit {}' ::: 0 1 0 3 2", &[]),
    (
        "parallel -k -S 1/alpha --joblog log 'echo {}; exit {}' ::: 0 1 2; echo $?
         cut -f 1,2,5- log; rm log",
        &[],
    ),
    (
        "p='parallel -k -S 1/alpha --joblog log'; $p 'echo {}; exit {}' ::: 0 1
         $p --resume 'echo {}; exit {}' ::: 0 1 2; $p --resume-failed 'echo again {}' ::: 0 1 2
         cut -f 1,2,5- log; rm log",
        &[],
    ),
    ("parallel -k -S 1/alpha --retries 3 'echo {} >> tries; [ $(wc -l < tries) -ge 3 ]' ::: a", &[]),
    ("parallel -k -S 1/alpha,1/: --tag 'exit {}' ::: 1 0 3", &[]),
    ("parallel -k --onall -S alpha,beta --tag echo {} {#} ::: a b ::: 1 2", &[]),
    (
        "printf '0\\n1\\n2\\n' | parallel -k --onall -j1 -S 1/beta,1/alpha \
         'echo {} $PARALLEL_SSHLOGIN; exit {}'",
        &[],
    ),
    ("parallel -k --onall --colsep , -S alpha,: -a list 'echo {2} {1}'", &[("list", "a,b\nc d,e\n")]),
    ("parallel -k --nonall -S alpha,beta,gamma --tag 'echo $PARALLEL_SSHHOST; exit 3'", &[]),
    ("parallel -k --nonall -v -S alpha,beta echo hello", &[]),
    ("parallel -k -S 1/alpha --transferfile 'in/./{/}' --wd w 'ls' ::: in/*.txt", FILES),
    ("parallel -k -S 1/alpha --transfer cat ::: missing", &[]),
    ("parallel -k -S 1/alpha -q printf '%s|%s\\n' {} 'a  b' ::: 'x y' '$z' '*'", &[]),
    ("parallel -k -v --tag -S 1/alpha 'echo x{}y; echo z' ::: a 'b c'", &[]),
    ("parallel --lb -S 1/alpha --tagstring 'x{}' 'echo {}; echo e' ::: a b", &[]),
    ("parallel -k --plus -S 1/alpha --tag 'echo {} {host} {sshlogin} {%c}' ::: a.c 'b c'", &[]),
    ("parallel -k --dry-run -S 1/alpha echo x{}y ::: a 'b c'", &[]),
];

/// One case in this many is run, unless all are asked for: GNU parallel takes a second for each.
const EVERY: usize = 5;

/// What is compared.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    status: ExitStatus,
    out: String,
    here: BTreeMap<String, String>,
    there: BTreeMap<String, String>,
}

#[test]
fn hosts_are_used_as_gnu_parallel_uses_them() {
    // The programs that GNU parallel needs. It quotes names for an rsync of its time.
    let programs = ["/usr/bin/parallel", "/usr/bin/rsync", "/bin/bash"];
    if let Some(lacks) = programs.into_iter().find(|program| !Path::new(program).exists()) {
        skip(format_args!("needs {lacks} (apt-get install parallel rsync)"));
        return;
    }
    // Otherwise sshd would start commands in the home directory of the user.
    let server = "ForceCommand cd @DIR/home && exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"";
    let Some(hosts) = Hosts::with(Setup { server, ..Setup::default() }) else { return };
    let gnu = program(&hosts, "gnu", programs[0]);
    let ours = program(&hosts, "ours", MINDER);
    let version = |dir: &Path| {
        let version = output(std::process::Command::new(dir.join("parallel")).arg("--version"));
        text(&version.stdout).lines().next().unwrap_or_default().to_owned()
    };
    assert!(version(&gnu).starts_with("GNU parallel") && version(&ours).starts_with("minder"));
    let every = if is_full() { 1 } else { EVERY };
    let first = usize::try_from(crate::support::number("MINDER_SEED").unwrap_or(1)).unwrap_or(1) % every;
    let mut faults = Vec::new();
    for case in CASES.iter().skip(first).step_by(every) {
        let theirs = outcome(&hosts, &gnu, case);
        let ours = outcome(&hosts, &ours, case);
        if theirs != ours {
            faults.push(format!("=== {}\nGNU  {theirs:?}\nours {ours:?}\n", case.0));
        }
    }
    assert!(faults.is_empty(), "{} differ\n\n{}", faults.len(), faults.join("\n"));
}

/// Creates a directory in which `parallel` is this program.
fn program(hosts: &Hosts, name: &str, path: &str) -> PathBuf {
    let dir = hosts.dir().join(name);
    fs::create_dir(&dir).expect("create directory");
    std::os::unix::fs::symlink(path, dir.join("parallel")).expect("create link");
    dir
}

fn outcome(hosts: &Hosts, program: &Path, (script, files): &Case) -> Outcome {
    for name in ["home", "tmp", "here", "local/.parallel"] {
        let dir = hosts.dir().join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).expect("empty directory");
        }
        fs::create_dir_all(&dir).expect("create directory");
    }
    fs::write(hosts.dir().join("local/.parallel/will-cite"), "").expect("write file");
    for (name, content) in *files {
        let path = hosts.dir().join("here").join(name);
        fs::create_dir_all(path.parent().expect("path has a parent")).expect("create directory");
        fs::write(&path, content).expect("write file");
    }
    let mut command = hosts.command_of(Path::new("/bin/sh"), "");
    command.arg("-c").arg(script.replace("HOME", &hosts.home("").display().to_string()));
    command.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    command.env("HOME", hosts.dir().join("local")).env("PARALLEL_SHELL", "/bin/sh");
    command.env("PARALLEL_SSH", hosts.ssh()).env("RSYNC_OLD_ARGS", "1");
    command.stdin(Stdio::null());
    let ended = Run::start(&command).wait();
    let out = ended.text().to_owned();
    Outcome {
        status: ended.status,
        out,
        here: files_below(&hosts.dir().join("here")),
        there: files_below(&hosts.home("")),
    }
}

/// Returns the files below a directory, with their content. Those that GNU parallel keeps for itself are left
/// out.
fn files_below(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(&next).expect("list directory").flatten() {
            let path = entry.path();
            let name = path.strip_prefix(dir).expect("strip directory").display().to_string();
            if name == ".parallel" {
                continue;
            }
            if path.is_dir() {
                dirs.push(path);
                found.insert(name + "/", String::new());
            } else {
                let content = fs::read(&path).expect("read file");
                found.insert(name, text(&content).to_owned());
            }
        }
    }
    found
}

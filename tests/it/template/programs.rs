//! Programs that run an argument as code, as far as they are known: their lines are refused, in a shell line and as words.
//!
//! Nothing runs here. The list cannot be whole, so lines that are still accepted are named, too: one that is refused later goes
//! to the other list.

use super::*;

/// Lines whose value would be program text, one a line.
const REFUSED: &str = r##"
sh -c 'echo {}'
bash -c 'echo {}'
bash -lc 'echo {}'
bash -l -c 'echo {}'
bash -euo pipefail -c 'echo {}'
bash --norc -c 'echo {}'
env bash -c 'echo {}'
env -i A=b sh -c 'echo {}'
nice -n 5 sh -c 'echo {}'
sudo -u x sh -c 'echo {}'
timeout 5 sh -c 'echo {}'
xargs -n1 sh -c 'echo {}'
posh -c 'echo {}'
rksh -c 'echo {}'
fish -c 'echo {}'
zsh -fc 'echo {}'
ksh93 -c 'echo {}'
busybox sh -c 'echo {}'
python3 -c 'print("{}")'
python3.11 -u -c 'print("{}")'
perl -e 'print "{}"'
perl -ne 'print "{}"'
perl -w -e 'print "{}"'
ruby -e 'puts "{}"'
php -r 'echo "{}";'
node -e 'x("{}")'
node --eval 'x("{}")'
lua -e 'print("{}")'
Rscript -e 'x("{}")'
julia -e 'x("{}")'
awk '{}'
awk '/{}/' f
gawk -v x=1 '/{}/' f
sed 's/a/{}/' f
sed -e 's/a/{}/' f
sed -n {}p f
ssh host 'rm {}'
ssh -p 22 host rm {}
watch ls {}
parallel 'echo {}'
psql -c 'vacuum {}'
mysql -e 'drop table {}'
su -c 'echo {}' user
flock f -c 'echo {}'
script -c 'echo {}'
vim -c '{}' f
emacs --eval '{}'
tar --to-command={} -xf x.tar
tar --use-compress-program={} -xf x.tar
rsync -e {} a b:
env -S '{}'
nix-shell --run 'echo {}'
eval 'echo {}'
./w bash -c 'echo {}'
poetry run python -c 'print("{}")'
"##;

/// Lines that are accepted although their program runs the value: the list of programs does not have them.
const OPEN: &str = r##"
"##;

fn lines(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.is_empty())
}

/// The words of a line that quotes with single quotes only.
fn words(line: &str) -> Vec<OsString> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.into_iter().map(OsString::from).collect()
}

/// How the line is judged as a line for these shells, and as words.
fn judged(line: &str) -> Vec<(String, bool)> {
    let mut judged = Vec::new();
    for shell in ["/bin/sh", "/bin/bash", "/bin/zsh", "/bin/ksh93"] {
        let parsed = Template::parse(&[line.into()], &with_shell(OsStr::new(shell)));
        judged.push((shell.to_owned(), parsed.is_ok_and(|template| template.argv(&job()).is_ok())));
    }
    let parsed = Template::parse(&words(line), &Options::default());
    judged.push(("as words".to_owned(), parsed.is_ok_and(|template| template.argv(&job()).is_ok())));
    judged
}

fn job() -> Job<'static> {
    static VALUE: std::sync::LazyLock<[OsString; 1]> = std::sync::LazyLock::new(|| ["x".into()]);
    Job { columns: &*VALUE, ..Job::default() }
}

#[test]
fn a_program_that_runs_its_argument_is_refused_where_it_is_known() {
    let mut accepted = Vec::new();
    for line in lines(REFUSED) {
        let ways = judged(line).into_iter().filter(|(_, accepted)| *accepted).map(|(way, _)| way);
        let ways: Vec<String> = ways.collect();
        if !ways.is_empty() {
            accepted.push(format!("{line}: {}", ways.join(", ")));
        }
    }
    assert!(accepted.is_empty(), "accepted:\n{}", accepted.join("\n"));
}

#[test]
fn what_is_known_to_be_open_is_said() {
    let closed: Vec<&str> =
        lines(OPEN).filter(|line| judged(line).iter().all(|(_, accepted)| !accepted)).collect();
    assert!(closed.is_empty(), "refused by now, and so for the other list:\n{}", closed.join("\n"));
}

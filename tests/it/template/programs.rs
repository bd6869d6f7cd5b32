//! Programs that are known to run an argument as code. Their lines are refused, as shell lines and as
//! arguments.
//!
//! Nothing runs here. The list cannot be complete, so lines that are still accepted are listed, too.
//! A line that is refused later moves to the other list.

use super::*;

/// Commands whose value would be program text, one on each line.
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
osh -c 'echo {}'
ysh -c 'echo {}'
hush -c 'echo {}'
ipython -c 'print("{}")'
bpython -c 'print("{}")'
sage -c 'print("{}")'
python3-dbg -c 'print("{}")'
deno eval 'x("{}")'
tsx -e 'x("{}")'
ts-node -e 'x("{}")'
clojure -e '(x "{}")'
sbcl --eval '(x "{}")'
erl -eval 'x("{}").'
octave --eval 'x("{}")'
gnuplot -e 'x="{}"'
expect -c 'x {}'
osascript -e 'x "{}"'
raku -e 'say "{}"'
sqlite3 db "insert into t values('{}')"
duckdb -c 'select "{}"'
mongosh --eval 'x("{}")'
lldb -o 'p {}'
gdb -ex 'p {}' prog
tmux new -d 'echo {}'
tmux split-window 'echo {}'
screen -X 'echo {}'
xterm -e 'echo {}'
hyperfine 'echo {}'
entr -s 'echo {}'
nodemon --exec 'echo {}'
concurrently 'echo {}'
adb shell 'ls {}'
vagrant ssh -c 'ls {}'
gcloud compute ssh --command='ls {}'
ansible all -a 'ls {}'
ssh -o ProxyCommand='nc {} 22' h
git -c core.sshCommand={} fetch
git -c alias.x='!{}' x
git rebase -x '{}'
git submodule foreach 'echo {}'
git filter-branch --tree-filter 'rm {}'
tar -I {} -cf x.tar f
tar -F {} -cf x.tar f
vim +{} f
minder run 'echo {}'
minder run -n0 'echo {}' ::: a
minder parallel 'echo {}' ::: a
find . -exec minder run 'echo {}' \;
bash <<< 'echo {}'
bash -s <<< {}
fish --command='echo {}'
split --filter='gzip > {}' f
sort --compress-program={} f
zip -TT {} x.zip f
npx -c 'echo {}'
npm exec -c 'echo {}'
sbatch --wrap 'echo {}'
socat SYSTEM:{} -
man -P {} ls
nc -e {} h 1
dc -e '{}'
./w bash -l -c 'echo {}'
singularity exec img.sif bash -l -c 'run {}'
apptainer exec img.sif bash -l -c 'run {}'
poetry run bash -euo pipefail -c 'f {}'
conda run -n e python -u -c 'print("{}")'
chronic perl -w -e 'print "{}"'
chronic awk '{}' f
chronic sed 's/{}/x/' f
chronic ssh host 'rm {}'
chronic watch {}
uv run python -c 'print("{}")'
direnv exec . bash -l -c 'echo {}'
ccache sh -e -c 'echo {}'
env GIT_SSH_COMMAND={} git fetch
sed f -e '{}'
sed f -n -e 's/a/{}/'
sed f --expression='{}'
sed f --expr '{}'
sed -f s f -e {}
sed -nf s f -e {}
sed {} -e p
gawk -f p -e {}
gawk -i lib {}
gawk --sou={}
sqlite3 -cmd {} db
sqlite3 -cmd 'select {}' db
sqlite3 db -cmd {} 'select 1'
duckdb -cmd {} db
duckdb -s {} db
duckdb db {}
make --eval={} all
make all -E {}
psql --comm={} db
"##;

/// Commands whose options look like those of [`REFUSED`], but whose value is a file or an argument.
const ACCEPTED: &str = r##"
sed -f s {}
sed -nf s {}
sed --file=s {}
sed -e p {}
sed -e p -- {}
sed -l 5 p {}
sed p {} -n
awk -F: -f p {}
awk -F {} 1 f
gawk 1 f -e {}
gawk -i inplace 1 {}
sqlite3 {} 'select 1'
sqlite3 -cmd 'select 1' {}
sqlite3 -init {} db
duckdb {} -c 'select 1'
duckdb -c 'select 1' {}
make -C {} all
tar --checkpoint=5 -cf {} x
"##;

/// Commands that are accepted although their program runs the value, since the table does not contain
/// the program.
const OPEN: &str = r##"
m4 -D 'x={}'
pdsh -w h 'ls {}'
clush -w h 'ls {}'
wine cmd /c 'echo {}'
scp host:{} .
rsync host:{} .
"##;

fn lines(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.is_empty())
}

/// Splits a line that has single quotes only.
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

/// Returns whether the line is accepted as a line for each shell, and as arguments.
fn judged(line: &str) -> Vec<(String, bool)> {
    let mut judged = Vec::new();
    for shell in ["/bin/sh", "/bin/bash", "/bin/zsh", "/bin/ksh93"] {
        let parsed = Template::parse(&[line.into()], &with_shell(OsStr::new(shell)));
        judged.push((shell.to_owned(), parsed.is_ok_and(|template| template.argv(&job()).is_ok())));
    }
    if line.contains("<<<") {
        // As a word it is a word.
        return judged;
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
fn known_program_is_refused_where_it_runs_a_value() {
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
fn value_that_no_program_runs_is_accepted() {
    let refused: Vec<&str> =
        lines(ACCEPTED).filter(|line| judged(line).iter().any(|(_, accepted)| !accepted)).collect();
    assert!(refused.is_empty(), "refused:\n{}", refused.join("\n"));
}

#[test]
fn known_gaps_are_still_accepted() {
    let closed: Vec<&str> =
        lines(OPEN).filter(|line| judged(line).iter().all(|(_, accepted)| !accepted)).collect();
    assert!(closed.is_empty(), "refused by now, and so for the other list:\n{}", closed.join("\n"));
}

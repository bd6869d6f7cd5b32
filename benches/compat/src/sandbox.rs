//! Runs a script in a fresh directory, with one of the compared programs in PATH under the name that
//! the script calls.

use super::generator::{Environment, Script, Tool};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::run;

/// How long a script may run.
const TIME_MAX: Duration = Duration::from_secs(20);

/// The files in the directory of a script.
const SAMPLES: &[(&str, &str)] = &[
    ("list.txt", "a\nb\nc\n"),
    ("numbers.txt", "1\n2\n3\n"),
    ("names.txt", "notes.txt\ndir/data.tar.gz\nodd name.txt\nit's\nsub/inner.txt\n"),
    ("lines.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"),
    ("words.txt", "a b c\nd,e f\n\ng h\ni\n"),
    ("trailing.txt", "a \nb\nc\t\n\nd e \nf\n"),
    ("blanks.txt", "  lead\ntrail  \n\n \t \n both \n"),
    ("quotes.txt", "'a b' \"c d\"\ne\\ f g\\\nh\n\"it's\" plain\n"),
    ("table.tsv", "name\tsize\nalpha\t10\nbeta gamma\t20\n\t30\ndelta\n"),
    ("table.csv", "name,size\n\"a,b\",1\n\"say \"\"hi\"\"\",2\nplain,3\n"),
    ("keys.tsv", "k1\t1\nk2\t2\nk1\t3\nk3\t4\nk2\t5\nk3\t6\nk1\t7\n"),
    ("heads.txt", "name\nx\ny\n"),
    ("records.txt", "START 1\nbody\nEND\nSTART 2\nmore;body\nEND\nSTART 3\nEND\n"),
    ("zero.bin", "a\0b c\0d\ne\0"),
    ("notes.txt", "notes\n"),
    ("odd name.txt", "odd\n"),
    ("it's", "apostrophe\n"),
    ("a", "file a\n"),
    ("abc", "file abc\n"),
    ("form.txt", "value {} number {#}\n"),
    ("empty.txt", ""),
    ("dir/data.tar.gz", "data\n"),
    ("sub/inner.txt", "inner\n"),
    ("args", "#!/bin/sh\nfor arg do printf '<%s>' \"$arg\"; done\necho\n"),
];

/// What a script did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// The exit status; a signal counts as 128 and its number, as in a shell.
    pub(super) status: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Whether the script was ended. Its status does not tell: xargs itself returns that of `timeout`.
    pub(super) timed_out: bool,
}

/// A program that scripts call.
#[derive(Clone, Debug)]
pub(super) enum Player {
    /// Called by its own names.
    Link(PathBuf),
    /// Called as `PROGRAM WORDS…`, whatever the name.
    Words(PathBuf, String),
}

/// A directory for one script at a time. Each script, with each player, gets the same paths.
#[derive(Debug)]
pub(super) struct Sandbox {
    root: PathBuf,
}

impl Sandbox {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Runs the script with this player.
    pub(super) fn run(&self, script: &Script, player: &Player) -> Result<Answer> {
        self.prepare(script, player).with_context(|| format!("cannot prepare {}", self.root.display()))?;
        let mut cmd = self.command(script.environment);
        cmd.stdout(File::create(self.root.join("stdout"))?);
        cmd.stderr(File::create(self.root.join("stderr"))?);
        let begun = Instant::now();
        let mut child = start(&mut cmd)?;
        let status = child.wait()?;
        let timed_out = begun.elapsed() >= TIME_MAX;
        end_session(child.id());
        let text = |name: &str| -> Result<String> {
            Ok(String::from_utf8_lossy(&fs::read(self.root.join(name))?).into_owned())
        };
        Ok(Answer { status: exit_code(status), stdout: text("stdout")?, stderr: text("stderr")?, timed_out })
    }

    fn prepare(&self, script: &Script, player: &Player) -> std::io::Result<()> {
        if self.root.exists() {
            fs::remove_dir_all(&self.root)?;
        }
        let work = self.root.join("work");
        for dir in ["bin", "home/.parallel", "tmp", "work/dir", "work/sub"] {
            fs::create_dir_all(self.root.join(dir))?;
        }
        for (name, text) in SAMPLES {
            fs::write(work.join(name), text)?;
        }
        fs::set_permissions(work.join("args"), fs::Permissions::from_mode(0o755))?;
        // GNU parallel asks for citations otherwise.
        fs::write(self.root.join("home/.parallel/will-cite"), "")?;
        fs::write(self.root.join("script"), &script.text)?;
        let names: &[&str] = if script.tool == Tool::Xargs { &["xargs"] } else { &["parallel", "sem"] };
        for name in names {
            player.install(name, &self.root.join("bin").join(name))?;
        }
        Ok(())
    }

    /// Returns the command of a script, in a new session: it has no terminal, and the processes that
    /// remain are known.
    fn command(&self, environment: Environment) -> Command {
        let mut cmd = run::command("setsid");
        let seconds = TIME_MAX.as_secs().to_string();
        cmd.args(["timeout", "-k", "2", &seconds, "/bin/bash"]).arg(self.root.join("script"));
        cmd.current_dir(self.root.join("work")).stdin(Stdio::null()).env_clear();
        cmd.env("PATH", format!("{}:/usr/bin:/bin", self.root.join("bin").display()));
        cmd.env("HOME", self.root.join("home")).env("TMPDIR", self.root.join("tmp"));
        let variables: &[(&str, &str)] = match environment {
            Environment::User | Environment::FewFiles => &[("SHELL", "/bin/bash"), ("LANG", "C.UTF-8")],
            Environment::CLocale => &[("SHELL", "/bin/bash"), ("LC_ALL", "C")],
            Environment::Cron => &[("SHELL", "/bin/sh"), ("LOGNAME", "user")],
            Environment::NoShell => &[("LANG", "C.UTF-8")],
        };
        cmd.envs(variables.iter().copied());
        cmd
    }
}

impl Player {
    /// Puts the player at this path, under the name that scripts call.
    fn install(&self, name: &str, at: &Path) -> std::io::Result<()> {
        match self {
            Self::Link(program) if program.is_dir() => symlink(program.join(name), at),
            Self::Link(program) => symlink(program, at),
            Self::Words(program, words) => {
                fs::write(at, format!("#!/bin/sh\nexec '{}' {words} \"$@\"\n", program.display()))?;
                fs::set_permissions(at, fs::Permissions::from_mode(0o755))
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "xtask builds without minder and its Command")]
fn start(cmd: &mut Command) -> Result<Child> {
    cmd.spawn().context("cannot run `setsid`")
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Kills the processes of a session that are left.
fn end_session(session: u32) {
    let Ok(processes) = fs::read_dir("/proc") else { return };
    for process in processes.flatten() {
        let pid = process.file_name().to_string_lossy().into_owned();
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
        if session_of(&stat) == Some(session) {
            run::succeeds(run::command("kill").args(["-9", &pid]));
        }
    }
}

/// Returns the session in the text of `/proc/PID/stat`.
fn session_of(stat: &str) -> Option<u32> {
    // The name of the program, in parentheses, may contain spaces. After it: state, parent, group.
    stat.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Script {
        let options = vec!["-n"];
        let environment = Environment::Cron;
        Script { tool: Tool::Xargs, number: 1, environment, options, text: text.into() }
    }

    #[test]
    fn run_calls_the_player_under_the_name_of_the_script() {
        let sandbox = Sandbox::new(std::env::temp_dir().join(format!("compat-test-{}", std::process::id())));
        let echo = Player::Words("/bin/echo".into(), "words".into());
        let answer =
            sandbox.run(&script("xargs -n 1; echo $SHELL >&2; cat list.txt; exit 3"), &echo).unwrap();
        assert_eq!(answer.stdout, "words -n 1\na\nb\nc\n");
        assert_eq!(answer.stderr, "/bin/sh\n");
        assert_eq!(answer.status, 3);
        // The next script finds no files of this one.
        let real = Player::Link("/bin/cat".into());
        let answer = sandbox.run(&script("echo b | xargs; touch made; exec kill -9 $$"), &real).unwrap();
        assert_eq!((answer.stdout.as_str(), answer.status), ("b\n", 137));
        let answer = sandbox.run(&script("ls made"), &real).unwrap();
        assert_eq!(answer.status, 2);
        // A status of xargs is not taken for that of `timeout`.
        let answer = sandbox.run(&script("exit 124"), &real).unwrap();
        assert_eq!((answer.status, answer.timed_out), (124, false));
        fs::remove_dir_all(&sandbox.root).unwrap();
    }

    #[test]
    fn session_of_skips_a_name_with_spaces_and_parentheses() {
        assert_eq!(session_of("12 (a) b (c)) S 1 12 7 0 -1"), Some(7));
        assert_eq!(session_of("12 (a) S"), None);
    }
}

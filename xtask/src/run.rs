//! Runs other programs: prints the command line, and names it in the error if it fails.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

/// Variables about xtask that `cargo run` sets; other programs must not get them.
const OURS: [&str; 5] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "LD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "RUST_RECURSION_COUNT",
];

/// Returns a command that runs at the repository's root.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut cmd = Command::new(program);
    cmd.current_dir(crate::tree::root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if OURS.contains(&text.as_ref()) || text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_BIN_") {
            cmd.env_remove(&name);
        }
    }
    cmd
}

/// Returns a command that is killed after this many seconds, by `timeout` of coreutils.
pub fn bounded(seconds: &str, program: impl AsRef<OsStr>) -> Command {
    let mut cmd = command("timeout");
    cmd.args(["-k", "5", seconds]).arg(program);
    cmd
}

/// Returns the cargo that started xtask.
pub fn cargo() -> Command {
    let mut cmd = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    prepare_for_cargo(&mut cmd);
    cmd
}

/// A variable that every cargo gets.
static FOR_CARGO: OnceLock<(&str, &str)> = OnceLock::new();

/// Sets an environment variable for every cargo that this program starts from now on.
pub(crate) fn set_for_cargo(name: &'static str, value: &'static str) {
    // It is set once, before the first step.
    let _ = FOR_CARGO.set((name, value));
}

/// Sets the variable of [`set_for_cargo`] in the environment of a command.
pub(crate) fn prepare_for_cargo(cmd: &mut Command) {
    cmd.envs(FOR_CARGO.get().copied());
}

/// Returns a command of a program that is started with the default actions of the keys Ctrl-C and Ctrl-\: a
/// shell ignores them for what it starts in the background, and that is inherited. Tests send these signals.
pub(crate) fn with_default_signals(program: impl AsRef<OsStr>) -> Command {
    const DEFAULT: &str = "--default-signal=INT,QUIT,HUP";
    if !succeeds(command("env").args([DEFAULT, "true"])) {
        return command(program);
    }
    let mut cmd = command("env");
    cmd.arg(DEFAULT).arg(program);
    cmd
}

/// Prints the command, runs it with our own streams, and fails if it does.
pub fn run(cmd: &mut Command) -> Result<()> {
    eprintln!("  $ {}", show(cmd));
    let line = brief(cmd);
    let status = cmd.status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs the command as [`run`] does, and returns its standard output, which is shown as it arrives.
/// The output goes through a file: a pipe could be held open by a process that outlives the command.
pub(crate) fn run_captured(cmd: &mut Command, through: &Path) -> Result<String> {
    eprintln!("  $ {}", show(cmd));
    let (status, output) = capture(cmd, through)?;
    if !status.success() {
        bail!("`{}` failed ({status})", brief(cmd));
    }
    Ok(output)
}

/// Runs the command as [`run_captured`] does, without its line. Returns its exit status, too.
pub(crate) fn capture(cmd: &mut Command, through: &Path) -> Result<(ExitStatus, String)> {
    let file = create(through)?;
    let mut grown = std::fs::File::open(through)?;
    let mut output = Vec::new();
    let mut show_more = || {
        let known = output.len();
        let read = grown.read_to_end(&mut output);
        read.and_then(|_| io::stdout().write_all(&output[known..]))
    };
    let status = watch(cmd.stdout(file), Duration::from_millis(200), |_| drop(show_more()))?;
    show_more()?;
    Ok((status, String::from_utf8_lossy(&output).into_owned()))
}

/// Runs the command with its output in a file, of which an error shows the end.
pub(crate) fn run_to_file(cmd: &mut Command, path: &Path) -> Result<()> {
    const SHOWN: usize = 10;
    let file = create(path)?;
    let status = cmd.stdout(file.try_clone()?).stderr(file).status();
    let status = status.with_context(|| format!("cannot run `{}`", brief(cmd)))?;
    if !status.success() {
        let output = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let lines: Vec<&str> = output.lines().collect();
        let end = lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default().join("\n");
        bail!("`{}` failed ({status}):\n{end}", brief(cmd));
    }
    Ok(())
}

fn create(path: &Path) -> Result<std::fs::File> {
    let cannot = || format!("cannot create {}", path.display());
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).with_context(cannot)?;
    }
    std::fs::File::create(path).with_context(cannot)
}

/// A command that runs alongside this program, with both outputs in one file.
pub(crate) struct Background {
    child: Child,
    output: PathBuf,
}

impl Background {
    /// Starts the command.
    #[expect(clippy::disallowed_methods, reason = "xtask builds without minder and its Command")]
    pub(crate) fn start(cmd: &mut Command, output: &Path) -> Result<Self> {
        let file = create(output)?;
        cmd.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = cmd.spawn().with_context(|| format!("cannot run `{}`", brief(cmd)))?;
        Ok(Self { child, output: output.to_path_buf() })
    }

    /// Waits for its end; returns its exit status and its output.
    pub(crate) fn finish(mut self) -> Result<(ExitStatus, String)> {
        let status = self.child.wait()?;
        let output = std::fs::read(&self.output)?;
        Ok((status, String::from_utf8_lossy(&output).into_owned()))
    }
}

/// Returns the processor time, in seconds, of this program and of all programs that it has run and
/// that have exited; `None` where the system has no /proc.
pub(crate) fn cpu_seconds() -> Option<f64> {
    /// The kernel reports times in this unit, whatever its own clock (`getconf CLK_TCK`).
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name, which may contain spaces. The fields 14 to 17 are `utime`, `stime`,
    // `cutime` and `cstime`.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(14 - 3..=17 - 3)?.iter().map(|field| field.parse::<f64>());
    Some(ticks.sum::<Result<f64, _>>().ok()? / TICKS_PER_SECOND)
}

/// Runs the command without showing its output, and returns its standard output.
pub fn read(cmd: &mut Command) -> Result<String> {
    Ok(read_both(cmd)?.0)
}

/// Runs the command without showing its output, and returns its standard output and standard error.
pub fn read_both(cmd: &mut Command) -> Result<(String, String)> {
    let line = show(cmd);
    let out = cmd.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{line}`"))?;
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    if !out.status.success() {
        bail!("`{line}` failed ({}): {}", out.status, stderr.trim());
    }
    Ok((String::from_utf8_lossy(&out.stdout).into_owned(), stderr))
}

/// Returns whether the command can be run and succeeds, without showing its output.
pub fn succeeds(cmd: &mut Command) -> bool {
    cmd.stdin(Stdio::null()).output().is_ok_and(|out| out.status.success())
}

/// Runs the command with the streams that are set for it. Its exit status is ignored: the caller reads
/// it elsewhere.
pub fn finish(cmd: &mut Command) -> Result<()> {
    cmd.status().with_context(|| format!("cannot run `{}`", brief(cmd)))?;
    Ok(())
}

/// Runs the command until it exits, and calls `look` with its pid at this interval. Returns its exit
/// status.
#[expect(
    clippy::disallowed_methods,
    reason = "xtask has to build without minder, whose Command it cannot use"
)]
pub fn watch(cmd: &mut Command, every: Duration, mut look: impl FnMut(u32)) -> Result<ExitStatus> {
    let mut child = cmd.spawn().with_context(|| format!("cannot run `{}`", brief(cmd)))?;
    let pid = child.id();
    let (sender, exit) = mpsc::channel();
    let waiter = std::thread::spawn(move || sender.send(child.wait()));
    let end = loop {
        match exit.recv_timeout(every) {
            Err(mpsc::RecvTimeoutError::Timeout) => look(pid),
            end => break end,
        }
    };
    // The thread has sent its result and returns.
    let _ = waiter.join();
    Ok(end??)
}

/// Finds a program in PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path).map(|dir| dir.join(&name)).find(|file| file.is_file())
}

/// Returns the command as a shell line, with the environment that is set for it.
pub fn show(cmd: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in cmd.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), quote(value)));
        }
    }
    words.push(brief(cmd));
    words.join(" ")
}

/// Returns the command without its environment. The cargo that started xtask is shown as `cargo`.
fn brief(cmd: &Command) -> String {
    let program = cmd.get_program();
    let ours = std::env::var_os("CARGO").is_some_and(|cargo| cargo == program);
    let first = if ours { "cargo".into() } else { quote(program) };
    std::iter::once(first).chain(cmd.get_args().map(quote)).collect::<Vec<_>>().join(" ")
}

/// Returns a word of a shell line.
pub(crate) fn quote(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "_-./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

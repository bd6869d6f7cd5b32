//! The child that the tests start: it executes one verb with its arguments.
//!
//! Tests run this instead of the tools of the machine, so that they mean the same everywhere.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "output is what this program is for")]
#![cfg_attr(unix, expect(unsafe_code, reason = "the disposition of a signal"))]
#![expect(
    clippy::disallowed_methods,
    reason = "it sleeps if its arguments say so, and starts its children as others do"
)]

use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

mod append;
mod pattern;
mod jobs;
mod mini_shell;
#[cfg(unix)]
mod steps;
mod text;
#[cfg(windows)]
mod job_objects;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as system;

use pattern::append_pattern;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let words = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    match act(&Words(words), &args) {
        Ok(code) => ExitCode::from(code),
        // The reader is gone: that is how a pipeline ends.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(141),
        Err(error) => {
            eprintln!("test_child: {error}");
            ExitCode::from(125)
        }
    }
}

/// The verb and its arguments.
struct Words(Vec<String>);

impl Words {
    fn word(&self, place: usize) -> &str {
        self.0.get(place).map_or("", String::as_str)
    }

    /// Returns an argument as a number, or 0 if it is not a number.
    fn number(&self, place: usize) -> usize {
        self.word(place).parse().unwrap_or(0)
    }
}

fn act(words: &Words, args: &[std::ffi::OsString]) -> io::Result<u8> {
    let word = |place| words.word(place);
    let number = |place| words.number(place);
    if let Some(code) = jobs::act(words, args)? {
        return Ok(code);
    }
    #[cfg(windows)]
    if let Some(code) = job_objects::act(words, args)? {
        return Ok(code);
    }
    match word(0) {
        // exit CODE: all 32 bits of it, where the exit code has that many.
        "exit" => std::process::exit(number(1) as i32),
        // spew BYTES [CHUNK]: the pattern, in writes of CHUNK bytes.
        "spew" => spew(&mut io::stdout(), number(1), number(2))?,
        // both BYTES [CHUNK]: the pattern on both streams, in turns.
        "both" => both(number(1), number(2))?,
        // gate BYTES: waits for the end of the input, then spews and exits with BYTES modulo 7.
        "gate" => {
            io::copy(&mut io::stdin(), &mut io::sink())?;
            spew(&mut io::stdout(), number(1), 0)?;
            return Ok((number(1) % 7) as u8);
        }
        // relay OUT ERR CODE: OUT bytes and ERR bytes, then what comes in goes out, then the code.
        "relay" => {
            spew(&mut io::stdout(), number(1), 0)?;
            spew(&mut io::stderr(), number(2), 0)?;
            cat()?;
            std::process::exit(number(3) as i32);
        }
        // script OUT ERR MS CODE: OUT bytes, a pause, ERR bytes, a pause, the code.
        "script" => {
            spew(&mut io::stdout(), number(1), 0)?;
            pause(number(3));
            spew(&mut io::stderr(), number(2), 0)?;
            pause(number(3));
            return Ok(number(4) as u8);
        }
        // lines N PERIOD_MS: numbered lines.
        "lines" => {
            for line in 0..number(1) {
                writeln!(io::stdout(), "line {line}")?;
                pause(number(2));
            }
        }
        "sleep-ms" => pause(number(1)),
        // use-memory BYTES MS: writes to so much memory, and keeps it for a while.
        "use-memory" => {
            let bytes = std::hint::black_box(vec![1_u8; number(1)]);
            pause(number(2));
            drop(bytes);
        }
        "cat" => cat()?,
        "count" => println!("{}", io::copy(&mut io::stdin(), &mut io::sink())?),
        // close-stdin MS [AFTER_MS]: closes its input and lives on for a while.
        "close-stdin" => {
            pause(number(2));
            close_stdin(number(1))?;
        }
        "echo-args" => {
            for arg in args.iter().skip(1) {
                println!("{arg:?}");
            }
        }
        "echo-env" => {
            let mut all: Vec<_> = std::env::vars_os().collect();
            all.sort();
            for (key, value) in all {
                println!("{key:?}={value:?}");
            }
        }
        "cwd" => println!("{}", std::env::current_dir()?.display()),
        _ => return family(words, args),
    }
    Ok(0)
}

/// Executes the verbs that start other processes.
fn family(words: &Words, args: &[std::ffi::OsString]) -> io::Result<u8> {
    let word = |place| words.word(place);
    let number = |place| words.number(place);
    match word(0) {
        // hold-stdout MS [BYTES]: leaves a grandchild that holds the outputs, silently; BYTES are written
        // before.
        "hold-stdout" => {
            spew(&mut io::stdout(), number(2), 0)?;
            descend(&["sleep-ms", word(1)])?;
        }
        // leave-lines N PERIOD_MS: leaves a grandchild that is still running writing.
        "leave-lines" => descend(&["lines", word(1), word(2)])?,
        // tree DEPTH: each one starts the next, prints its pid and sleeps.
        "tree" => {
            if number(1) > 1 {
                descend(&["tree", &(number(1) - 1).to_string()])?;
            }
            println!("{}", std::process::id());
            pause(600_000);
        }
        // herd N VERB …: starts N of these in a set, passes on what they write, and stays.
        "herd" => herd(number(1), &args[args.len().min(2)..])?,
        _ => return system::act(words),
    }
    Ok(0)
}

fn spew(to: &mut impl Write, bytes: usize, chunk: usize) -> io::Result<()> {
    let chunk = if chunk == 0 { 64 << 10 } else { chunk };
    let mut piece = Vec::with_capacity(chunk);
    let mut at = 0;
    while at < bytes {
        piece.clear();
        append_pattern(&mut piece, at, chunk.min(bytes - at));
        to.write_all(&piece)?;
        // Standard output keeps what follows the last line end.
        to.flush()?;
        at += piece.len();
    }
    Ok(())
}

/// Copies the input to the output, each chunk at once.
fn cat() -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        match io::stdin().read(&mut piece)? {
            0 => return Ok(()),
            count => io::stdout().write_all(&piece[..count])?,
        }
        io::stdout().flush()?;
    }
}

fn both(bytes: usize, chunk: usize) -> io::Result<()> {
    let chunk = if chunk == 0 { 4 << 10 } else { chunk };
    let mut at = 0;
    let mut piece = Vec::with_capacity(chunk);
    while at < bytes {
        piece.clear();
        append_pattern(&mut piece, at, chunk.min(bytes - at));
        io::stdout().write_all(&piece)?;
        io::stdout().flush()?;
        io::stderr().write_all(&piece)?;
        at += piece.len();
    }
    Ok(())
}

fn pause(ms: usize) {
    std::thread::sleep(Duration::from_millis(ms as u64));
}

/// Starts this program again with another verb, on our streams, and does not wait for it.
fn descend(args: &[&str]) -> io::Result<()> {
    Command::new(std::env::current_exe()?).args(args).stdin(Stdio::null()).spawn().map(drop)
}

/// All children end with this process, on any exit, as the library promises.
fn herd(many: usize, args: &[std::ffi::OsString]) -> io::Result<()> {
    let mut command = minder::Command::new(std::env::current_exe()?);
    command.args(args).stdin(minder::Stdio::null()).stdout(minder::Stdio::piped());
    let mut set = minder::ChildSet::new(minder::ChildSetOptions::default())?;
    for _ in 0..many {
        set.spawn(&command, minder::SpawnOptions::default())?;
    }
    while let Some(event) = set.next_event(None)?.into_event() {
        if let minder::Event::Output { chunk: bytes, .. } = event {
            io::stdout().write_all(&bytes)?;
            io::stdout().flush()?;
        }
    }
    Ok(())
}

fn close_stdin(ms: usize) -> io::Result<()> {
    system::close_stdin();
    println!("closed");
    io::stdout().flush()?;
    pause(ms);
    Ok(())
}

/// The verbs that only Unix has.
#[cfg(unix)]
mod system {
    use std::fs;
    use std::io::{self, Write};
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};
    use std::process::{Command, Stdio};

    use nix::unistd::{getpgid, getsid};
    use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};

    use super::{Words, pause};

    pub(super) fn act(words: &Words) -> io::Result<u8> {
        let word = |place| words.word(place);
        let number = |place| words.number(place);
        match word(0) {
            // ignore-term MS [VERB …]: takes no SIGTERM from here on; neither do its children.
            "ignore-term" => {
                // SAFETY: no handler is installed.
                unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
                println!("ready");
                io::stdout().flush()?;
                pause(number(1));
            }
            // stubborn-tree: ignores SIGTERM, with a child in its group and one in its own session that
            // do, too. Prints the pids of all three.
            "stubborn-tree" => {
                // SAFETY: no handler is installed; ignored signals stay ignored in what is started.
                unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
                let same = myself(&["sleep-ms", "600000"]).spawn()?.id();
                let stray = myself(&["daemon", "600000"]).spawn()?.id();
                wait_for_session(stray);
                println!("{} {same} {stray}", std::process::id());
                io::stdout().flush()?;
                pause(600_000);
            }
            // headless-stray: leaves a child in its own session, whose main thread exits. Prints both pids.
            "headless-stray" => headless_stray()?,
            "headless" => headless()?,
            // session-stray MS: leaves a child in its own session, prints both pids, and lives on for
            // MS.
            "session-stray" => {
                let stray = myself(&["daemon", "600000"]).spawn()?.id();
                wait_for_session(stray);
                println!("{} {stray}", std::process::id());
                io::stdout().flush()?;
                pause(number(1));
            }
            // leave-group MS: leaves a child in its group that holds none of its streams, prints its pid,
            // and ends.
            "leave-group" => {
                let child =
                    myself(&["sleep-ms", word(1)]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
                println!("{}", child.id());
            }
            "daemon" => {
                rustix::process::setsid()?;
                pause(number(1));
            }
            // join-parent MS: moves to its parent's group, prints its pid, and sleeps.
            "join-parent" => join_parent(number(1))?,
            "stop-self" => kill_process(getpid(), Signal::STOP)?,
            "kill-self" => {
                let signal = Signal::from_named_raw(number(1) as i32).ok_or(io::ErrorKind::InvalidInput)?;
                kill_process(getpid(), signal)?;
                pause(1000);
            }
            "fds" => fds()?,
            "limits" => {
                let limit = getrlimit(Resource::Nofile);
                println!("{} {}", limit.current.unwrap_or(0), limit.maximum.unwrap_or(0));
            }
            // raise-limit SOFT OPEN: lowers the soft limit, raises it as a host does, opens descriptors, and
            // prints what its own child finds.
            "raise-limit" => raise_limit(number(1), number(2))?,
            "sigmask" => {
                let status = fs::read_to_string("/proc/self/status")?;
                for line in
                    status.lines().filter(|line| line.starts_with("SigBlk") || line.starts_with("SigIgn"))
                {
                    println!("{line}");
                }
            }
            "ids" => {
                println!("{} {} {}", std::process::id(), getpgid(None)?, getsid(None)?);
            }
            // timer-slack [leaf]: prints its timer slack and, unless it is a leaf, that of a child.
            "timer-slack" => timer_slack(word(1) == "leaf")?,
            "terminal" => terminal()?,
            // terminal-sizes: for each line of input, prints the size of the terminal and how many
            // SIGWINCH came so far.
            "terminal-sizes" => terminal_sizes()?,
            // steps TAG STEP …: a child of a random script.
            "steps" => return super::steps::act(words),
            verb => {
                eprintln!("test_child: no such verb: {verb}");
                return Ok(124);
            }
        }
        Ok(0)
    }

    fn timer_slack(is_leaf: bool) -> io::Result<()> {
        print!("{}", fs::read_to_string("/proc/self/timerslack_ns")?);
        io::stdout().flush()?;
        if !is_leaf {
            myself(&["timer-slack", "leaf"]).status()?;
        }
        Ok(())
    }

    fn join_parent(ms: usize) -> io::Result<()> {
        let parent = rustix::process::getppid().map(raw).unwrap_or_default();
        let group = getpgid(Some(nix::unistd::Pid::from_raw(parent)))?;
        nix::unistd::setpgid(nix::unistd::Pid::from_raw(0), group)?;
        println!("{}", std::process::id());
        io::stdout().flush()?;
        pause(ms);
        Ok(())
    }

    pub(super) fn close_stdin() {
        // SAFETY: descriptor 0 is ours, and nothing in this program reads from it any more.
        drop(unsafe { OwnedFd::from_raw_fd(0) });
    }

    fn myself(args: &[&str]) -> Command {
        let mut command = Command::new("/proc/self/exe");
        if let Ok(path) = std::env::current_exe() {
            command = Command::new(path);
        }
        command.args(args).stdin(Stdio::null());
        command
    }

    fn headless_stray() -> io::Result<()> {
        let stray = myself(&["headless"]).spawn()?.id();
        wait_for_session(stray);
        println!("{} {stray}", std::process::id());
        io::stdout().flush()?;
        pause(600_000);
        Ok(())
    }

    fn headless() -> io::Result<()> {
        rustix::process::setsid()?;
        std::thread::spawn(|| pause(600_000));
        // SAFETY: it ends this thread alone, whose stack stays mapped.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::syscall(libc::SYS_exit, 0);
        }
        Ok(())
    }

    /// Waits until the child has left our session.
    fn wait_for_session(pid: u32) {
        let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
        while getsid(Some(pid)).is_ok_and(|session| session != pid) {
            pause(1);
        }
    }

    fn raise_limit(soft: usize, open: usize) -> io::Result<()> {
        use std::io::Read;
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(soft as u64), maximum })?;
        let guard =
            minder::guard::ProcessGuard::install(&minder::guard::GuardOptions::new().guardians(false))?;
        guard.raise_fd_limit()?;
        let held = (0..open).map(|_| fs::File::open("/dev/null")).collect::<io::Result<Vec<_>>>()?;
        let find = |verb: &str| -> io::Result<String> {
            let mut command = minder::Command::new(std::env::current_exe()?);
            let mut child =
                command.arg(verb).stdin(minder::Stdio::null()).stdout(minder::Stdio::piped()).spawn()?;
            let mut text = String::new();
            child.stdout.take().ok_or(io::ErrorKind::NotFound)?.read_to_string(&mut text)?;
            child.wait()?;
            Ok(text)
        };
        let expected = format!("{soft} {}\n", maximum.unwrap_or(0));
        let limits = find("limits")?;
        let again = if limits == expected { "again" } else { limits.as_str() };
        println!("{soft} {again}, {} descriptors", find("fds")?.lines().count());
        io::stdout().flush()?;
        drop(held);
        guard.exit(0)
    }

    fn raw(pid: Pid) -> i32 {
        pid.as_raw_nonzero().get()
    }

    /// The open descriptors, without the one that reads the list, and what they name.
    fn fds() -> io::Result<()> {
        let mut found = Vec::new();
        for item in fs::read_dir("/proc/self/fd")? {
            found.extend(item?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
        }
        found.sort_unstable();
        for fd in found {
            // The list's own descriptor is closed by now.
            if let Ok(target) = fs::read_link(format!("/proc/self/fd/{fd}")) {
                println!("{fd} {}", target.display());
            }
        }
        Ok(())
    }

    /// Prints which streams are terminals, their size, and whether there is a controlling one.
    fn terminal() -> io::Result<()> {
        use rustix::termios::{isatty, tcgetsid, tcgetwinsize};
        let stdin = io::stdin();
        let stdout = io::stdout();
        let stderr = io::stderr();
        let are = [isatty(&stdin), isatty(&stdout), isatty(&stderr)];
        let size = tcgetwinsize(stdin.as_fd())?;
        let own = raw(tcgetsid(stdin.as_fd())?) == getsid(None)?.as_raw();
        let controlling = fs::OpenOptions::new().read(true).open("/dev/tty").is_ok();
        println!("{are:?} {}x{} own={own} controlling={controlling}", size.ws_row, size.ws_col);
        io::stdout().flush()?;
        eprintln!("and this is stderr");
        Ok(())
    }

    fn terminal_sizes() -> io::Result<()> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static CHANGES: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn count(_signal: libc::c_int) {
            CHANGES.fetch_add(1, Ordering::SeqCst);
        }
        let handler = count as extern "C" fn(libc::c_int) as *const () as libc::sighandler_t;
        // SAFETY: the handler only adds to a number.
        unsafe { libc::signal(libc::SIGWINCH, handler) };
        println!("ready");
        for line in io::stdin().lines() {
            line?;
            let size = rustix::termios::tcgetwinsize(io::stdin().as_fd())?;
            println!("{}x{} {}", size.ws_row, size.ws_col, CHANGES.load(Ordering::SeqCst));
        }
        Ok(())
    }
}

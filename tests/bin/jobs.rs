//! The jobs that tests give to the command, and the circumstances under which they start it.

#![cfg_attr(unix, expect(unsafe_code, reason = "descriptors and limits as a host may leave them"))]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use super::append::append;
use super::pattern::job_bytes;
use super::{Words, pause};

/// Executes a verb and returns its exit code, or returns `None` if the verb is not one of these.
pub(super) fn act(words: &Words, args: &[OsString]) -> io::Result<Option<u8>> {
    let word = |place| words.word(place);
    let number = |place| words.number(place);
    match word(0) {
        // job ID,OUT,ERR,CODE: a head line and then that many bytes of every value, on both streams; then the
        // code.
        "job" => return job(word(1)).map(Some),
        // text ID,OUT,ERR,LONGEST,CODE: lines that name their job, on both streams; then the code.
        "text" => return text(word(1)).map(Some),
        // mini-shell LINE VALUE…: does what a shell would do with the line, of the little that it knows.
        "mini-shell" => std::process::exit(super::mini_shell::run(words)?),
        // fill BYTES FILE: that many bytes in lines, then the file is made. Lives on until FILE.go is there.
        "fill" => fill(number(1), Path::new(word(2)))?,
        // meet DIRECTORY N [ARGUMENT]: waits until N of these run at the same time, or have done so before,
        // and prints how many it saw.
        "meet" => meet(Path::new(word(1)), number(2))?,
        // append FILE WORD: adds a line to a file, and prints the word.
        "append" => {
            let mut file = append(Path::new(word(1)))?;
            file.write_all(format!("{}\n", word(2)).as_bytes())?;
            println!("{}", word(2));
        }
        // await FILE WORD: prints the word when the file exists.
        "await" => {
            while !Path::new(word(1)).exists() {
                pause(2);
            }
            println!("{}", word(2));
        }
        // touch FILE MS: makes the file, and lives on.
        "touch" => {
            File::create(word(1))?;
            pause(number(2));
        }
        // work LOG SEED JOB: notes that it starts, writes the lines of this job, and notes that it has ended.
        "work" => work(Path::new(word(1)), number(2), number(3))?,
        // raw WORD: exactly the bytes of the argument.
        "raw" => io::stdout().write_all(args.get(1).map_or(&[], |arg| arg.as_encoded_bytes()))?,
        // variable NAME: its value.
        "variable" => println!("{}", std::env::var(word(1)).unwrap_or_default()),
        // count-args ARG…: how many bytes each has.
        "count-args" => {
            for arg in args.iter().skip(1) {
                println!("{}", arg.len());
            }
        }
        // read-tty: a line of the terminal.
        "read-tty" => {
            let mut byte = [0];
            File::open(if cfg!(windows) { "CONIN$" } else { "/dev/tty" })?.read_exact(&mut byte)?;
        }
        // as CHANGE,… PROGRAM ARG…: becomes the program, under these circumstances. They are those of Unix.
        #[cfg(unix)]
        "as" => return Err(circumstances::become_with(word(1), args)),
        _ => return Ok(None),
    }
    io::stdout().flush()?;
    Ok(Some(0))
}

fn job(text: &str) -> io::Result<u8> {
    let parts: Vec<usize> = text.split(',').filter_map(|part| part.parse().ok()).collect();
    let [id, out, err, code] = parts[..] else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut streams: [(&mut dyn Write, Vec<u8>, usize); 2] = [
        (&mut io::stdout().lock(), job_bytes(id, out), 0),
        (&mut io::stderr().lock(), job_bytes(id, err), 0),
    ];
    for (stream, bytes, _) in &mut streams {
        writeln!(stream, "[{id} {}]", bytes.len())?;
    }
    // In turns, by chunks that fit nothing.
    let mut rest = true;
    while std::mem::take(&mut rest) {
        for (stream, bytes, at) in &mut streams {
            let end = bytes.len().min(*at + 60_007);
            stream.write_all(&bytes[*at..end])?;
            stream.flush()?;
            *at = end;
            rest |= end < bytes.len();
        }
    }
    Ok(code as u8)
}

fn text(text: &str) -> io::Result<u8> {
    let parts: Vec<usize> = text.split(',').filter_map(|part| part.parse().ok()).collect();
    let [id, out, err, longest, code] = parts[..] else { return Err(io::ErrorKind::InvalidInput.into()) };
    let [out, err] =
        [(0, out), (1, err)].map(|(stream, len)| super::text::lines(id, stream, len, longest).concat());
    let mut stdout = io::stdout().lock();
    let mut stderr = io::stderr().lock();
    // In turns, by chunks that fit nothing, past the buffers of the standard library.
    for at in (0..out.len().max(err.len())).step_by(60_007) {
        let piece = |bytes: &[u8]| bytes[at.min(bytes.len())..(at + 60_007).min(bytes.len())].to_vec();
        stdout.write_all(&piece(&out))?;
        stdout.flush()?;
        stderr.write_all(&piece(&err))?;
    }
    Ok(code as u8)
}

fn fill(bytes: usize, mark: &Path) -> io::Result<()> {
    let line = [vec![b'x'; 99], vec![b'\n']].concat().repeat(655);
    let mut stdout = io::stdout().lock();
    let mut rest = bytes;
    while rest > 0 {
        let part = rest.min(line.len());
        stdout.write_all(&line[line.len() - part..])?;
        rest -= part;
    }
    stdout.flush()?;
    File::create(mark)?;
    while !mark.with_extension("go").exists() {
        pause(2);
    }
    Ok(())
}

fn work(log: &Path, seed: usize, job: usize) -> io::Result<()> {
    let note = |what: &str| -> io::Result<()> {
        let mut file = append(log)?;
        file.write_all(format!("{what}{job}\n").as_bytes())
    };
    note("+")?;
    // Many small ones, some of 128 KiB, a few of up to 1 MiB: tests know the same rule.
    let hash = (job * 1_000_003 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let lines = (hash / 8) % [1, 64, 64, 64, 64, 64, 2048, 16_384][hash % 8];
    let text: Vec<u8> =
        (0..lines).flat_map(|line| format!("{job:06} {line:06} {:>49}\n", line ^ job).into_bytes()).collect();
    let mut stdout = io::stdout().lock();
    for piece in text.chunks(60_007) {
        stdout.write_all(piece)?;
        stdout.flush()?;
    }
    eprintln!("err {job:06}");
    note("-")
}

fn meet(directory: &Path, many: usize) -> io::Result<()> {
    let own = directory.join(std::process::id().to_string());
    let met = directory.join("met");
    File::create(&own)?;
    let mut most = 0;
    loop {
        let there = fs::read_dir(directory)?.flatten().filter(|item| item.file_name() != "met").count();
        most = most.max(there);
        if most >= many {
            File::create(&met)?;
        }
        if met.exists() {
            break;
        }
        pause(2);
    }
    pause(3);
    fs::remove_file(own)?;
    println!("{most}");
    Ok(())
}

/// The limits and settings under which a process of Unix starts another program.
#[cfg(unix)]
mod circumstances {
    use std::ffi::OsString;
    use std::io;
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::{Resource, Rlimit, setrlimit};

    /// Returns only when it failed.
    pub(super) fn become_with(changes: &str, args: &[OsString]) -> io::Error {
        let Some(program) = args.get(2) else { return io::ErrorKind::InvalidInput.into() };
        let mut command = Command::new(program);
        command.args(&args[3..]);
        for change in changes.split(',') {
            let (what, value) = change.split_once('=').unwrap_or((change, ""));
            let number: u32 = value.parse().unwrap_or(0);
            let limit = Rlimit { current: Some(u64::from(number)), maximum: Some(u64::from(number)) };
            let result = match what {
                "nofile" => setrlimit(Resource::Nofile, limit).map_err(io::Error::from),
                "nproc" => setrlimit(Resource::Nproc, limit).map_err(io::Error::from),
                "user" => {
                    command.uid(number).gid(number);
                    Ok(())
                }
                "ignore" => set_ignored(number),
                "block" => block(number),
                // Without a terminal, whatever the caller has.
                "session" => rustix::process::setsid().map(drop).map_err(io::Error::from),
                #[cfg(target_os = "linux")]
                "plain" => close_on_exec(),
                #[cfg(target_os = "linux")]
                "traced" => nix::sys::ptrace::traceme().map_err(io::Error::from),
                "close" => {
                    // SAFETY: one of our standard streams, which nothing in this program uses from here on.
                    drop(unsafe { OwnedFd::from_raw_fd(number.cast_signed()) });
                    Ok(())
                }
                _ => Err(io::ErrorKind::InvalidInput.into()),
            };
            if let Err(error) = result {
                return error;
            }
        }
        // The mask and ignored signals survive exec, except SIGPIPE, which gets its default action
        // back.
        command.exec()
    }

    /// Lets a program inherit the standard streams only.
    #[cfg(target_os = "linux")]
    fn close_on_exec() -> io::Result<()> {
        // SAFETY: the call sets a flag, and closes nothing.
        match unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn set_ignored(signal: u32) -> io::Result<()> {
        // SAFETY: no handler is installed.
        let before = unsafe { libc::signal(signal.cast_signed(), libc::SIG_IGN) };
        if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn block(signal: u32) -> io::Result<()> {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `set` has room for one set, and the call fills it.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: `set` was initialised by the line above.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal.cast_signed()) };
        // SAFETY: `set` is initialised; the old one is not requested.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

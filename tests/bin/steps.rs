//! A child of a random script (`tests/it/scripts`): it executes the steps that its arguments name.

#![expect(unsafe_code, reason = "the disposition of a signal, and streams that are closed early")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio};

use rustix::process::{Signal, getpid, kill_process};

use super::{Words, pause};

/// The streams whose bytes are distinguished.
const OUT: usize = 0;
const ERR: usize = 1;

/// `steps TAG STEP…`; the tag finds the process in a list of processes. A step is a word with
/// numbers, separated by colons:
///
/// - `out:BYTES:BLOCK`, `err:BYTES:BLOCK`, `both:BYTES:BLOCK`: writes in blocks; `both` in turns.
/// - `drain`, `echo`: reads the input to its end, and drops it or writes it to stdout.
/// - `close-in`, `close-out`, `close-err`: closes its end of the pipe.
/// - `ignore-term`, `pause:MS`, `stop`, `raise:SIGNAL`, `exit:CODE`.
/// - `hold:MS`, `leave:MS`, `stray:MS`: starts a process that lives for MS, with its outputs, or
///   without them in its group, or without them in a separate session.
/// - `setsid`: what a stray does first.
pub(super) fn act(words: &Words) -> io::Result<u8> {
    let tag = words.word(1);
    let mut at = [0; 2];
    for step in words.0.iter().skip(2) {
        let mut fields = step.split(':');
        let name = fields.next().unwrap_or_default();
        let mut number = || fields.next().and_then(|field| field.parse::<usize>().ok()).unwrap_or(0);
        match name {
            "out" => write(&mut at, &[OUT], number(), number())?,
            "err" => write(&mut at, &[ERR], number(), number())?,
            "both" => write(&mut at, &[OUT, ERR], number(), number())?,
            "drain" => copy_input(false)?,
            "echo" => copy_input(true)?,
            "close-in" => close(0)?,
            "close-out" => close(1)?,
            "close-err" => close(2)?,
            // SAFETY: no handler is installed.
            "ignore-term" => drop(unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) }),
            "pause" => pause(number()),
            "stop" => kill_process(getpid(), Signal::STOP)?,
            "hold" => drop(start(tag, &[&format!("pause:{}", number())], false)?),
            "leave" => drop(start(tag, &[&format!("pause:{}", number())], true)?),
            "stray" => {
                let stray = start(tag, &["setsid", &format!("pause:{}", number())], true)?;
                wait_for_session(&stray);
            }
            "setsid" => drop(rustix::process::setsid()?),
            "raise" => {
                let signal = Signal::from_named_raw(number() as i32).ok_or(io::ErrorKind::InvalidInput)?;
                kill_process(getpid(), signal)?;
                pause(600_000);
            }
            "exit" => return Ok(number() as u8),
            _ => return Err(io::Error::other(format!("unknown step {step}"))),
        }
    }
    Ok(0)
}

/// Returns byte number `at` of what is written to `stream`. `tests/it/scripts/plan.rs` has the same.
/// A few bytes in a row occur once only. No terminal changes them.
fn byte(stream: usize, at: usize) -> u8 {
    let mut bits = ((at as u64) << 2 | stream as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^= bits >> 29;
    bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    b'a' + ((bits >> 40) % 25) as u8
}

fn write(at: &mut [usize; 2], streams: &[usize], bytes: usize, block: usize) -> io::Result<()> {
    let mut written = 0;
    while written < bytes {
        let count = block.max(1).min(bytes - written);
        for &stream in streams {
            let piece: Vec<u8> = (at[stream]..at[stream] + count).map(|at| byte(stream, at)).collect();
            write_all(stream, &piece)?;
            at[stream] += count;
        }
        written += count;
    }
    Ok(())
}

/// Writes without a buffer, so that a kill loses nothing that was written before.
fn write_all(stream: usize, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = match stream {
            OUT => rustix::io::write(io::stdout().as_fd(), bytes),
            _ => rustix::io::write(io::stderr().as_fd(), bytes),
        };
        match count {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => (),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Replaces one of our streams by the null device, so that a later step does not fail.
fn close(stream: i32) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: both are open descriptors, and the std streams use `stream` by its number only.
    let result = unsafe { libc::dup2(null.as_raw_fd(), stream) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn copy_input(to_output: bool) -> io::Result<()> {
    let mut piece = vec![0; 16 << 10];
    loop {
        match rustix::io::read(io::stdin().as_fd(), &mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) if to_output => write_all(OUT, &piece[..count])?,
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Starts this program with these steps, on our outputs or without any.
fn start(tag: &str, steps: &[&str], quiet: bool) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["steps", tag]).args(steps).stdin(Stdio::null());
    if quiet {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    command.spawn()
}

/// Waits until a stray has left our session.
fn wait_for_session(stray: &Child) {
    let pid = nix::unistd::Pid::from_raw(stray.id().cast_signed());
    while nix::unistd::getsid(Some(pid)).is_ok_and(|session| session != pid) {
        pause(1);
    }
}

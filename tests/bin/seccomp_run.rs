//! `seccomp_run CALL[,CALL…] PROGRAM ARGUMENT…`: runs a program to which the kernel refuses these
//! system calls (ENOSYS), as old kernels and sandboxes do. `write-64k` is refused a write of just
//! that many bytes (ENOSPC), and `flock-none` is answered as on a file system without locks (ENOLCK).
//! Linux only.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "a seccomp filter"))]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    let mut words = std::env::args_os().skip(1);
    let calls = words.next().unwrap_or_default().to_string_lossy().into_owned();
    let program = words.next().expect("take program");
    let rules = calls.split(',').map(|name| Rule {
        call: number(name),
        length: name.ends_with("-64k").then_some(64 << 10),
        error: if name.ends_with("-none") { libc::ENOLCK } else { libc::ENOSYS },
    });
    deny(&rules.collect::<Vec<_>>())?;
    Err(std::process::Command::new(program).args(words).exec())
}

#[cfg(target_os = "linux")]
fn number(name: &str) -> u32 {
    let number = match name {
        "clone3" => libc::SYS_clone3,
        "pidfd_open" => libc::SYS_pidfd_open,
        "pidfd_send_signal" => libc::SYS_pidfd_send_signal,
        "close_range" => libc::SYS_close_range,
        "epoll_create1" => libc::SYS_epoll_create1,
        "write-64k" => libc::SYS_write,
        "flock-none" => libc::SYS_flock,
        "io_uring_setup" => libc::SYS_io_uring_setup,
        "timerfd_create" => libc::SYS_timerfd_create,
        other => panic!("no call is called {other}"),
    };
    u32::try_from(number).expect("convert system call number")
}

/// What happens to a system call.
#[cfg(target_os = "linux")]
struct Rule {
    call: u32,
    /// The length of the writes that are refused.
    length: Option<u32>,
    error: i32,
}

/// Installs the filter: load the number, compare it with each, answer the error or continue. Where a
/// rule has a length, the third argument is compared with it, and the answer is ENOSPC.
#[cfg(target_os = "linux")]
fn deny(rules: &[Rule]) -> std::io::Result<()> {
    /// The offset of the third argument in the data of a filter (`seccomp_data`), on a machine with
    /// the low bytes first.
    const THIRD: u32 = 32;
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    let equal = |k: u32, jf: u8| libc::sock_filter {
        jf,
        ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k)
    };
    let refuse = |error: i32| statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | error as u32);
    for &Rule { call, length, error } in rules {
        match length {
            None => filter.extend([equal(call, 1), refuse(error)]),
            // The number is loaded again behind it.
            Some(length) => filter.extend([
                equal(call, 4),
                statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, THIRD),
                equal(length, 1),
                refuse(libc::ENOSPC),
                statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
            ]),
        }
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: numbers only.
    let first = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its filter outlive the call.
    let second = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if first != 0 || second != 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

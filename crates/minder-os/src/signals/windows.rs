//! Windows has no signals.

/// The exit code of a process of a job object that was terminated by the library.
const KILLED: i32 = 1;
/// `STATUS_CONTROL_C_EXIT` of ntstatus.h.
const CONTROL_C_EXIT: u32 = 0xC000_013A;

pub(super) fn number(name: &str) -> Option<i32> {
    // The signals by which users terminate programs. A job object is terminated in one way only.
    let known = [("HUP", 1), ("INT", 2), ("QUIT", 3), ("KILL", 9), ("TERM", 15)];
    known.into_iter().find_map(|(known, number)| (known == name).then_some(number))
}

pub(super) fn looks_killed(code: Option<i32>, _signal: Option<i32>) -> bool {
    code == Some(KILLED)
}

pub(super) fn looks_terminated(code: Option<i32>, _signal: Option<i32>) -> bool {
    code == Some(CONTROL_C_EXIT.cast_signed())
}

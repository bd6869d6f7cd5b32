//! Queries about processes, handles and threads on Windows, for tests.

#![expect(unsafe_code, reason = "handles of processes, and lists of all that there are")]

use std::fs::File;
use std::io::Read;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::os::windows::process::ExitStatusExt;
use std::process::Output;
use std::time::Duration;

use minder::{Command, ExitStatus, Stdio};
use windows_sys::Win32::Foundation::{FILETIME, HANDLE, INVALID_HANDLE_VALUE, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CREATE_TOOLHELP_SNAPSHOT_FLAGS, CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW,
    Process32NextW, TH32CS_SNAPPROCESS, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::Threading::{
    CreateSemaphoreW, GetCurrentProcess, GetProcessHandleCount, GetProcessTimes, OpenProcess,
    PROCESS_ACCESS_RIGHTS, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE,
    ReleaseSemaphore, TerminateProcess, WaitForSingleObject,
};

/// Returns whether the handle is signalled within this time.
pub(crate) fn readable(handle: BorrowedHandle<'_>, within: Duration) -> bool {
    // A wait may end a little before its time; it is rounded up.
    let time = u32::try_from(within.as_nanos().div_ceil(1_000_000)).expect("convert time");
    // SAFETY: the handle is borrowed, so open.
    match unsafe { WaitForSingleObject(handle.as_raw_handle(), time) } {
        WAIT_OBJECT_0 => true,
        WAIT_TIMEOUT => false,
        _ => panic!("a wait: {}", std::io::Error::last_os_error()),
    }
}

/// Runs a program to its end, with an empty input. A program that std starts would inherit every
/// inheritable handle of that moment, such as a pipe that another test gives to a child.
pub(crate) fn output(command: &mut std::process::Command) -> Output {
    let mut same = Command::new(command.get_program());
    same.args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => same.env(name, value),
            None => same.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        same.current_dir(dir);
    }
    output_of(&mut same)
}

/// Runs a program to its end.
pub(crate) fn output_of(command: &mut Command) -> Output {
    fn read(pipe: Option<impl Read>) -> Vec<u8> {
        let mut bytes = Vec::new();
        pipe.expect("take pipe").read_to_end(&mut bytes).expect("read to end");
        bytes
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run program");
    let complaints = child.stderr.take();
    let complaints = std::thread::spawn(move || read(complaints));
    let stdout = read(child.stdout.take());
    let stderr = complaints.join().expect("join thread");
    let code = child.wait().expect("wait for child").status.code().expect("get exit code");
    Output { status: std::process::ExitStatus::from_raw(code.cast_unsigned()), stdout, stderr }
}

/// Returns one end of a pipe as a file.
pub(crate) fn file(end: impl Into<OwnedHandle>) -> File {
    File::from(end.into())
}

/// Returns whether this is the status of a killed process. Windows has no signals: the library ends
/// processes with exit code 1.
pub(crate) fn killed(status: ExitStatus, _by: i32) -> bool {
    status == ExitStatus::Exited(1)
}

/// Opens a process, or returns `None` if the pid is not in use.
fn open(pid: u32, rights: PROCESS_ACCESS_RIGHTS) -> Option<OwnedHandle> {
    // SAFETY: numbers only.
    let raw = unsafe { OpenProcess(rights, 0, pid) };
    if raw.is_null() {
        return None;
    }
    // SAFETY: the call above made this handle, and it has no other owner.
    Some(unsafe { OwnedHandle::from_raw_handle(raw) })
}

/// Returns whether a process with this pid exists and has not exited.
pub(crate) fn lives(pid: u32) -> bool {
    // SAFETY: the handle is open, and the call does not wait.
    let over =
        |process: OwnedHandle| unsafe { WaitForSingleObject(process.as_raw_handle(), 0) } == WAIT_OBJECT_0;
    open(pid, PROCESS_SYNCHRONIZE).is_some_and(|process| !over(process))
}

/// Kills a process.
pub(crate) fn end(pid: u32) {
    let process = open(pid, PROCESS_TERMINATE).expect("open process");
    // SAFETY: the handle is open, with the right to do so.
    let answer = unsafe { TerminateProcess(process.as_raw_handle(), 9) };
    assert!(answer != 0, "{pid} cannot be ended: {}", std::io::Error::last_os_error());
}

/// Kills the processes that a child left behind.
pub(crate) fn kill_group_of(child: u32) {
    let left = children_of(child);
    assert!(!left.is_empty(), "the child left no process");
    for pid in left {
        end(pid);
    }
}

/// Returns the pids of the live children of this process, without the console hosts that Windows
/// starts for them.
pub(crate) fn own_children() -> Vec<u32> {
    children_of(std::process::id())
}

/// Returns the start time of a process. A process that has exited still has one while a handle is
/// open.
fn began(pid: u32) -> Option<u64> {
    let process = open(pid, PROCESS_QUERY_LIMITED_INFORMATION)?;
    let [mut began, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open, and all four outlive the call.
    let answer =
        unsafe { GetProcessTimes(process.as_raw_handle(), &mut began, &mut ended, &mut kernel, &mut user) };
    (answer != 0).then_some(u64::from(began.dwHighDateTime) << 32 | u64::from(began.dwLowDateTime))
}

/// Returns the live children of a process, which may itself have exited. Children of an earlier
/// process with the same pid do not count.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let since = began(parent);
    processes()
        .into_iter()
        .filter(|(_, of)| *of == parent)
        .map(|(pid, _)| pid)
        .filter(|pid| lives(*pid) && began(*pid) >= since)
        .collect()
}

fn snapshot(of: CREATE_TOOLHELP_SNAPSHOT_FLAGS) -> OwnedHandle {
    // SAFETY: numbers only.
    let raw = unsafe { CreateToolhelp32Snapshot(of, 0) };
    assert!(raw != INVALID_HANDLE_VALUE, "a snapshot: {}", std::io::Error::last_os_error());
    // SAFETY: the call above made this handle, and it has no other owner.
    unsafe { OwnedHandle::from_raw_handle(raw) }
}

/// Returns the pid of every process and of its parent.
fn processes() -> Vec<(u32, u32)> {
    let list = snapshot(TH32CS_SNAPPROCESS);
    let list: HANDLE = list.as_raw_handle();
    let mut entry = PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
    let mut found = Vec::new();
    // SAFETY: the snapshot is open, and `entry` holds its size.
    let mut more = unsafe { Process32FirstW(list, &mut entry) };
    while more != 0 {
        found.push((entry.th32ProcessID, entry.th32ParentProcessID));
        // SAFETY: as above.
        more = unsafe { Process32NextW(list, &mut entry) };
    }
    found
}

/// Returns the number of threads of this process.
pub(crate) fn threads() -> usize {
    let list = snapshot(TH32CS_SNAPTHREAD);
    let list: HANDLE = list.as_raw_handle();
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..Default::default() };
    let mut count = 0;
    // SAFETY: the snapshot is open, and `entry` holds its size.
    let mut more = unsafe { Thread32First(list, &mut entry) };
    while more != 0 {
        count += usize::from(entry.th32OwnerProcessID == std::process::id());
        // SAFETY: as above.
        more = unsafe { Thread32Next(list, &mut entry) };
    }
    count
}

/// Returns the number of open handles of this process.
pub(crate) fn open_descriptors() -> usize {
    let mut count = 0;
    // SAFETY: a pseudo-handle that is always valid.
    let own = unsafe { GetCurrentProcess() };
    // SAFETY: `own` names this process, `count` outlives the call.
    let answer = unsafe { GetProcessHandleCount(own, &mut count) };
    assert!(answer != 0, "a count: {}", std::io::Error::last_os_error());
    count as usize
}

/// Returns the sizes of the files in `dir`. Files without a name on Unix have one here until they
/// are closed.
pub(crate) fn nameless_files(dir: &std::path::Path) -> Vec<u64> {
    let there = std::fs::read_dir(dir).into_iter().flatten().flatten();
    there
        .filter_map(|item| item.metadata().ok())
        .filter(|data| data.is_file())
        .map(|data| data.len())
        .collect()
}

/// Sleeps. Only for states that no handle announces, such as those of a process that is not our
/// child, and where a test needs time to pass.
pub(crate) fn nap(time: Duration) {
    let millis = u32::try_from(time.as_nanos().div_ceil(1_000_000)).expect("convert time");
    // SAFETY: takes nothing; its result needs no closing.
    let us = unsafe { GetCurrentProcess() };
    // SAFETY: the handle is always open; we do not end meanwhile.
    unsafe { WaitForSingleObject(us, millis) };
}

/// The tokens of a build, as make shares them on Windows: a semaphore with a name.
pub(crate) struct Tokens {
    semaphore: OwnedHandle,
}

impl Tokens {
    /// That many, under this name.
    pub(crate) fn new(name: &str, count: i32) -> Self {
        let name: Vec<u16> = name.encode_utf16().chain([0]).collect();
        // SAFETY: no attributes; the name ends with a zero and outlives the call.
        let raw = unsafe { CreateSemaphoreW(std::ptr::null(), count, i32::MAX, name.as_ptr()) };
        assert!(!raw.is_null(), "a semaphore: {}", std::io::Error::last_os_error());
        // SAFETY: the call above made this handle, and it has no other owner.
        Self { semaphore: unsafe { OwnedHandle::from_raw_handle(raw) } }
    }

    /// Puts one more to them.
    pub(crate) fn put(&self) {
        // SAFETY: the handle is open; the count before is not asked for.
        let answer = unsafe { ReleaseSemaphore(self.semaphore.as_raw_handle(), 1, std::ptr::null_mut()) };
        assert!(answer != 0, "a token: {}", std::io::Error::last_os_error());
    }

    /// Takes all free tokens, and returns how many.
    pub(crate) fn take_all(&self) -> usize {
        // SAFETY: the handle is open, and the call does not wait.
        let take = || unsafe { WaitForSingleObject(self.semaphore.as_raw_handle(), 0) } == WAIT_OBJECT_0;
        std::iter::repeat_with(take).take_while(|taken| *taken).count()
    }
}

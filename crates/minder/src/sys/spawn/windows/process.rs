//! Creates a process in its job object from parameters and handles.
//!
//! Since Windows 10 a process can be created in its job (`PROC_THREAD_ATTRIBUTE_JOB_LIST`). If that
//! is refused, the process is created suspended, assigned to the job and resumed. It has run no
//! code before that, so none of its children is outside the job. If this process dies between the
//! two steps, the child stays suspended for ever. This is why it is the second choice.

#![expect(unsafe_code, reason = "CreateProcessW and its attribute list")]

use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::os::windows::io::{AsHandle, AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED, HANDLE,
};
use windows_sys::Win32::System::Threading::{
    CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DeleteProcThreadAttributeList,
    EXTENDED_STARTUPINFO_PRESENT, InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_CREATION_FLAGS,
    PROCESS_INFORMATION, ResumeThread, STARTF_USESTDHANDLES, STARTUPINFOEXW, UpdateProcThreadAttribute,
};

use super::process_params::ProcessParams;
use crate::group::Group;
use crate::sys::last_error::done;
use crate::sys::process_tree::ProcessTree;
use crate::sys::reap::Process;

/// The exit code of a process that is terminated before it ran any code.
const NEVER_RAN: u32 = 1;

/// The time at which a process is assigned to its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobAssignment {
    AtCreation,
    AfterCreation,
}

/// The arguments for the creation of a process.
pub(super) struct CreateArgs<'a> {
    pub(super) params: ProcessParams,
    pub(super) theirs: &'a [Option<OwnedHandle>; 3],
    pub(super) group: Group,
    pub(super) flags: PROCESS_CREATION_FLAGS,
}

/// Starts the process in the job of `tree`. Tries `entry` first, and sets it to the assignment that
/// worked.
pub(super) fn start(
    request: &CreateArgs<'_>,
    tree: &mut ProcessTree,
    entry: &mut JobAssignment,
) -> io::Result<Process> {
    if *entry == JobAssignment::AtCreation {
        let process = create(request, Some(tree)).map(|made| Process::new(made.pid, made.process));
        match process {
            Err(error) if is_about_jobs(&error) => (),
            result => return result,
        }
    }
    let CreatedProcess { pid, process, thread } = create(request, None)?;
    // Windows refused the job, not the program.
    *entry = JobAssignment::AfterCreation;
    let ready = match tree.take_in(process.as_handle()) {
        // The caller did not request a tree.
        Err(_) if request.group == Group::Inherit => Ok(()),
        Err(error) => Err(without_job(&error)),
        Ok(()) => Ok(()),
    };
    let process = Process::new(pid, process);
    ready.and_then(|()| resume(&thread)).inspect_err(|_| drop(process.terminate(NEVER_RAN)))?;
    Ok(process)
}

/// Returns whether the error may be caused by the job. Programs cause some of these errors, too.
/// The attempt without a job then fails in the same way.
fn is_about_jobs(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(code, Some(ERROR_ACCESS_DENIED | ERROR_NOT_SUPPORTED | ERROR_INVALID_PARAMETER))
}

fn without_job(error: &io::Error) -> io::Error {
    let text =
        format!("it cannot be put into a job object, and so not be killed with what it starts: {error}");
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// A new process and its first thread.
struct CreatedProcess {
    pid: u32,
    process: OwnedHandle,
    thread: OwnedHandle,
}

/// Calls `CreateProcessW` once. The process starts in the job of `tree`, or suspended if there is
/// no `tree`.
fn create(request: &CreateArgs<'_>, tree: Option<&ProcessTree>) -> io::Result<CreatedProcess> {
    let params = &request.params;
    let streams = request
        .theirs
        .each_ref()
        .map(|handle| handle.as_ref().map_or(null_mut(), AsRawHandle::as_raw_handle));
    let mut inherited = streams.iter().copied().filter(|handle| !handle.is_null()).collect::<Vec<HANDLE>>();
    inherited.sort_unstable();
    inherited.dedup();
    let job = tree.map(|tree| [tree.job().as_raw_handle()]);
    let mut attributes = Attributes::new(2)?;
    if let Some(job) = &job {
        attributes.set(PROC_THREAD_ATTRIBUTE_JOB_LIST, job)?;
    }
    if !inherited.is_empty() {
        attributes.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &inherited)?;
    }
    let mut startup = STARTUPINFOEXW { lpAttributeList: attributes.list(), ..STARTUPINFOEXW::default() };
    startup.StartupInfo.cb = size_of::<STARTUPINFOEXW>() as u32;
    startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    [startup.StartupInfo.hStdInput, startup.StartupInfo.hStdOutput, startup.StartupInfo.hStdError] = streams;
    let mut made = PROCESS_INFORMATION::default();
    let inherit = i32::from(!inherited.is_empty());
    let suspended = if tree.is_none() { CREATE_SUSPENDED } else { 0 };
    let flags = request.flags | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT | suspended;
    let environment = params.environment.as_ref().map_or(null(), |block| block.as_ptr().cast::<c_void>());
    let dir = params.dir.as_ref().map_or(null(), |dir| dir.as_ptr());
    let program = params.program.as_ptr();
    // The call may write to the command line, and a second attempt needs it unchanged.
    let mut command_line = params.line.clone();
    let line = command_line.as_mut_ptr();
    // `EXTENDED_STARTUPINFO_PRESENT` declares that the structure continues with the list.
    let startup = (&raw const startup).cast();
    // SAFETY: zeros end the program, the line, the directory and the environment. The call may write
    // to `command_line`, a local. The attribute list and the arrays that it points to outlive the
    // call. Its handles are open and inheritable.
    let answer = unsafe {
        CreateProcessW(program, line, null(), null(), inherit, flags, environment, dir, startup, &mut made)
    };
    if answer == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above created the handle, and nothing else owns it.
    let thread = unsafe { OwnedHandle::from_raw_handle(made.hThread) };
    // SAFETY: as above.
    let process = unsafe { OwnedHandle::from_raw_handle(made.hProcess) };
    Ok(CreatedProcess { pid: made.dwProcessId, process, thread })
}

fn resume(thread: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the handle is open, and has every right on the thread.
    let answer = unsafe { ResumeThread(thread.as_raw_handle()) };
    if answer == u32::MAX { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A list of attributes for a new process. It contains pointers to the values.
struct Attributes<'a> {
    /// Memory that is aligned for pointers; the operating system returns its size.
    memory: Vec<usize>,
    values: PhantomData<&'a [HANDLE]>,
}

impl<'a> Attributes<'a> {
    fn new(count: u32) -> io::Result<Self> {
        let mut size = 0;
        // SAFETY: without a list the call only returns the size, and fails.
        unsafe { InitializeProcThreadAttributeList(null_mut(), count, 0, &mut size) };
        let mut memory = vec![0; size.div_ceil(size_of::<usize>())];
        // SAFETY: `memory` has the size that was asked for.
        let answer =
            unsafe { InitializeProcThreadAttributeList(memory.as_mut_ptr().cast(), count, 0, &mut size) };
        if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(Self { memory, values: PhantomData }) }
    }

    /// Sets an attribute that is a list of handles.
    fn set(&mut self, attribute: u32, handles: &'a [HANDLE]) -> io::Result<()> {
        let list = self.list();
        let attribute = attribute as usize;
        let value = handles.as_ptr().cast();
        let size = size_of_val(handles);
        // SAFETY: the list was initialised by `new`; `value` is as large as the argument states,
        // and lives as long as the list.
        let answer =
            unsafe { UpdateProcThreadAttribute(list, 0, attribute, value, size, null_mut(), null()) };
        done(answer)
    }

    fn list(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.memory.as_mut_ptr().cast()
    }
}

impl Drop for Attributes<'_> {
    fn drop(&mut self) {
        // SAFETY: the list was initialised by `new`, and is deleted once.
        unsafe { DeleteProcThreadAttributeList(self.list()) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::windows::ffi::OsStrExt;
    use std::time::{Duration, Instant};

    use windows_sys::Win32::System::SystemServices::JOB_OBJECT_QUERY;
    use windows_sys::Win32::System::Threading::DETACHED_PROCESS;

    use super::*;
    use crate::exit_status::ExitStatus;
    use crate::sys::process_tree::ProcessSnapshot;

    /// Returns a request to start `cmd.exe` with these arguments.
    fn request(params: &str, group: Group) -> CreateArgs<'static> {
        let program = minder_os::system_paths::system_dir().join("cmd.exe");
        let wide = |text: &str| text.encode_utf16().chain([0]).collect::<Vec<_>>();
        let program = program.as_os_str().encode_wide().chain([0]).collect();
        let params =
            ProcessParams { program, line: wide(&format!("cmd.exe {params}")), environment: None, dir: None };
        CreateArgs { params, theirs: &[None, None, None], group, flags: DETACHED_PROCESS }
    }

    fn end(process: &mut Process) -> ExitStatus {
        process.wait(Some(Instant::now() + Duration::from_secs(20))).unwrap().unwrap().status
    }

    #[test]
    fn process_starts_in_job_at_creation_or_by_assignment() {
        for first in [JobAssignment::AtCreation, JobAssignment::AfterCreation] {
            let mut tree = ProcessTree::new(true).unwrap();
            let mut entry = first;
            let mut process = start(&request("/d /c exit 7", Group::New), &mut tree, &mut entry).unwrap();
            assert_eq!((end(&mut process), entry), (ExitStatus::Exited(7), first));
            let mut process = start(&request("/d /k", Group::New), &mut tree, &mut entry).unwrap();
            assert!(tree.is_alive(&ProcessSnapshot), "{first:?}: it is not in the job");
            tree.signal_all(&process, crate::sys::process_tree::TreeSignal::Kill).unwrap();
            end(&mut process);
            assert!(!tree.is_alive(&ProcessSnapshot), "{first:?}");
        }
    }

    /// A job handle without the right to assign processes fails both kinds of assignment.
    #[test]
    fn full_job_fails_start_unless_group_is_inherited() {
        let refused = || ProcessTree::new(true).unwrap().with_rights(JOB_OBJECT_QUERY).unwrap();
        let mut tree = refused();
        let mut entry = JobAssignment::AtCreation;
        let before = Instant::now();
        let error = start(&request("/d /k", Group::New), &mut tree, &mut entry).unwrap_err();
        assert!(error.to_string().starts_with("it cannot be put into a job object"), "{error}");
        assert!(before.elapsed() < Duration::from_secs(20));
        let mut tree = refused();
        let mut entry = JobAssignment::AtCreation;
        let mut process = start(&request("/d /k", Group::Inherit), &mut tree, &mut entry).unwrap();
        assert_eq!((process.peek().unwrap(), entry), (None, JobAssignment::AfterCreation));
        tree.signal_all(&process, crate::sys::process_tree::TreeSignal::Kill).unwrap();
        assert_eq!(end(&mut process), ExitStatus::Exited(1));
    }

    #[test]
    fn invalid_program_stays_the_reported_error() {
        let mut tree = ProcessTree::new(true).unwrap();
        let mut entry = JobAssignment::AtCreation;
        let mut request = request("", Group::New);
        request.params.program = std::env::temp_dir().as_os_str().encode_wide().chain([0]).collect();
        let error = start(&request, &mut tree, &mut entry).unwrap_err();
        assert!(error.raw_os_error().is_some() && entry == JobAssignment::AtCreation, "{error}");
    }
}

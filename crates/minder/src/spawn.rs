//! Starting one child, and the errors of a failed start.

use std::io;

use crate::command::Command;
use crate::process_attributes::AttributeStep;
use crate::sys::reap::reap_orphans;
use crate::sys::spawn::{NO_FILE, NO_PROGRAM, SpawnError, SpawnStep, Spawner, is_no_program};
use crate::{Child, Error, ErrorKind, Operation, Result};

/// Starts a command on the calling thread: see [`Command::spawn`].
pub(crate) fn spawn(command: &Command) -> Result<Child> {
    reap_orphans();
    let spawned = Spawner::new().spawn(command).map_err(|failure| explain(command, failure))?;
    Child::new(spawned)
}

/// Returns the error for a failed start, with a hint where one is known.
pub(crate) fn explain(command: &Command, failure: SpawnError) -> Error {
    let SpawnError { step, error } = failure;
    let kind = error.kind();
    let general = |error| Error::new("start", error).during(Operation::Spawn).with_subject(&command.program);
    match (step, kind) {
        (SpawnStep::Lookup, io::ErrorKind::NotFound) => {
            general(error).with_kind(ErrorKind::NotFound, "not found in PATH")
        }
        (SpawnStep::Exec | SpawnStep::Process, io::ErrorKind::PermissionDenied) if is_directory(command) => {
            general(error).with_kind(ErrorKind::PermissionDenied, "is a directory")
        }
        // The platform code has described the cause in the text of the error.
        (SpawnStep::Exec | SpawnStep::Process, _) if error.get_ref().is_some() => general(error),
        (SpawnStep::Exec, io::ErrorKind::NotFound) => general(error).with_kind(ErrorKind::NotFound, NO_FILE),
        (SpawnStep::Exec, io::ErrorKind::ArgumentListTooLong) => {
            general(error).with_kind(ErrorKind::TooLong, too_long(command))
        }
        (SpawnStep::Exec, _) if is_no_program(&error) => {
            general(error).with_kind(ErrorKind::Other, NO_PROGRAM)
        }
        (SpawnStep::Arguments, _) => {
            let text = "an argument or a variable holds a NUL byte, which cannot be passed to a program";
            general(error).with_kind(ErrorKind::InvalidInput, text)
        }
        (SpawnStep::Tail, _) => {
            let text = "only Windows has raw command lines: pass separate arguments";
            general(error).with_kind(ErrorKind::Unsupported, text)
        }
        (SpawnStep::Variable, _) => {
            general(error).with_kind(ErrorKind::InvalidInput, "the name of a variable is empty or holds `=`")
        }
        (SpawnStep::Guardian, kind) => explain_guardian(general(error), kind),
        (SpawnStep::Directory, _) => {
            let dir = command.current_dir.as_deref().unwrap_or_else(|| std::path::Path::new(""));
            Error::new("enter the directory", error).during(Operation::EnterDirectory).with_subject(dir)
        }
        (SpawnStep::Niceness, io::ErrorKind::PermissionDenied) => general(error).with_kind(
            ErrorKind::PermissionDenied,
            "a niceness that low needs a privilege (CAP_SYS_NICE, or a higher `ulimit -e`)",
        ),
        (SpawnStep::Niceness, _) => general(error)
            .with_kind(ErrorKind::Unsupported, "a niceness can only be set on Linux and Windows"),
        (SpawnStep::TimerSlack, _) => {
            general(error).with_kind(ErrorKind::Unsupported, "a timer slack can only be set on Linux")
        }
        (SpawnStep::Attribute(step), io::ErrorKind::Unsupported) => {
            general(error).with_kind(ErrorKind::Unsupported, not_supported(step))
        }
        (SpawnStep::Attribute(step), _) => explain_attribute(command, step, error),
        _ => general(error),
    }
}

/// Returns why an attribute cannot be set on this system.
fn not_supported(step: AttributeStep) -> &'static str {
    match step {
        AttributeStep::Limit(_) => "the limit of a resource can only be set on Linux",
        AttributeStep::Umask => "a umask can only be set on Linux",
        AttributeStep::Groups => "groups can only be set on Linux",
        AttributeStep::Gid => "a group id can only be set on Linux",
        AttributeStep::Uid => "a user id can only be set on Linux",
        AttributeStep::Cgroup => "only Linux has cgroups",
    }
}

/// Returns the error for an attribute that the kernel refused.
fn explain_attribute(command: &Command, step: AttributeStep, error: io::Error) -> Error {
    let attributes = command.attributes.as_deref();
    let id = |id: Option<u32>| id.unwrap_or(0).to_string();
    let (phrase, subject) = match step {
        AttributeStep::Limit(resource) => ("set the limit of", resource.name().to_owned()),
        AttributeStep::Umask => ("set the umask of", command.program.to_string_lossy().into_owned()),
        AttributeStep::Groups => ("set the groups of", command.program.to_string_lossy().into_owned()),
        AttributeStep::Gid => ("set the group id", id(attributes.and_then(|attributes| attributes.gid))),
        AttributeStep::Uid => ("set the user id", id(attributes.and_then(|attributes| attributes.uid))),
        AttributeStep::Cgroup => ("join the cgroup of", command.program.to_string_lossy().into_owned()),
    };
    Error::new(phrase, error).during(Operation::Spawn).with_subject(subject)
}

/// Returns the error for a child that is not on the list of its guardian.
pub(crate) fn explain_guardian(error: Error, kind: io::ErrorKind) -> Error {
    match kind {
        io::ErrorKind::WouldBlock => error.with_kind(
            ErrorKind::Exhausted,
            "its guardian does not read the list of children: it is stopped, or the machine is busy",
        ),
        io::ErrorKind::BrokenPipe => {
            error.with_kind(ErrorKind::Other, "its guardian has exited: start another one")
        }
        io::ErrorKind::PermissionDenied => error.with_kind(
            ErrorKind::PermissionDenied,
            "its guardian belongs to the process of which this one is a fork: start another one",
        ),
        _ => error,
    }
}

/// Returns whether the program is named by a path, and the path is that of a directory.
fn is_directory(command: &Command) -> bool {
    let program = std::path::Path::new(&command.program);
    // A trailing slash makes a path of a bare name.
    let is_path =
        command.program.as_encoded_bytes().iter().any(|byte| std::path::is_separator(*byte as char));
    let dir = command.current_dir.as_deref().unwrap_or_else(|| std::path::Path::new(""));
    is_path && dir.join(program).is_dir()
}

/// Returns which limit of execve(2) the arguments exceed. On Linux one string may have 32 pages,
/// including its terminating NUL.
fn too_long(command: &Command) -> &'static str {
    const ONE_MAX: usize = 128 << 10;
    if command.args.iter().any(|arg| arg.len() >= ONE_MAX) {
        "one argument is longer than the 131,071 bytes that Linux takes: \
         pass it through a file or standard input"
    } else {
        "arguments and environment together are longer than the system takes: \
         pass them through a file or standard input"
    }
}

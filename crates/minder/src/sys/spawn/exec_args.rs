//! The path, arguments and environment of a program for execve(2): C strings in one block of memory.

#![expect(unsafe_code, reason = "C strings of another owner; pointers that move to another thread")]

use std::borrow::Cow;
use std::ffi::{CStr, OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::script::{self, SHELL};
use super::variables::{VariableBlock, append_variable, push_variable};
use super::{SpawnError, SpawnStep};
use crate::command::{Command, Env};

/// The directories in which a program is searched for if the child has no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/bin:/usr/bin";

/// The strings of one child. The memory is kept from one spawn to the next.
#[derive(Default)]
pub(super) struct ExecArgs {
    strings: Strings,
    args: usize,
    pointers: Vec<*const c_char>,
    /// The shared variables that the last child started with, before its changes. Most runs start all
    /// children with the same list.
    variables: Option<VariableBlock>,
    /// The last look into PATH: most runs start one program many times.
    found: Option<CachedLookup>,
}

// SAFETY: the pointers lead into `strings` and `variables`, which move with them and whose memory stays in
// place. Each `build` rebuilds them, and only the owner reads them.
unsafe impl Send for ExecArgs {}

impl std::fmt::Debug for ExecArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecArgs").field("bytes", &self.strings.bytes.len()).finish_non_exhaustive()
    }
}

/// C strings one after the other, and where each begins.
#[derive(Default)]
struct Strings {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Strings {
    fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }

    fn push(&mut self, string: &OsStr) -> Result<(), SpawnError> {
        if string.as_bytes().contains(&0) {
            return Err(SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput));
        }
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(string.as_bytes());
        self.bytes.push(0);
        Ok(())
    }
}

/// The path at which a program was found, and the PATH of that search.
#[derive(Debug)]
struct CachedLookup {
    program: OsString,
    search: Option<OsString>,
    path: OsString,
}

impl ExecArgs {
    /// Builds the strings for `command`. With `in_shell`, its program is a script that the shell runs.
    pub(super) fn build(&mut self, command: &Command, in_shell: bool) -> Result<(), SpawnError> {
        let path = resolve(&mut self.found, command)?;
        let strings = &mut self.strings;
        strings.clear();
        if in_shell {
            strings.push(SHELL.as_ref())?;
            strings.push(SHELL.as_ref())?;
            strings.push(&not_an_option(path))?;
        } else {
            strings.push(path)?;
            strings.push(&command.program)?;
        }
        for arg in &command.args {
            strings.push(arg)?;
        }
        self.args = strings.starts.len() - 1;
        self.environment(&command.env)?;
        self.point(&command.env);
        Ok(())
    }

    /// The program's path.
    pub(super) fn path(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.strings.bytes).unwrap_or_default()
    }

    /// The argument vector, ended by a null pointer.
    pub(super) fn argv(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    /// The environment vector, ended by a null pointer.
    pub(super) fn envp(&self) -> *const *const c_char {
        self.pointers[self.args + 1..].as_ptr()
    }

    /// Adds a variable `NAME=value` to the environment, in place of one with the same name. Copies no
    /// other variable.
    ///
    /// # Safety
    /// `variable` outlives every use of [`envp`](Self::envp) before the next [`build`](Self::build).
    pub(super) unsafe fn add_variable(&mut self, variable: &CStr) {
        let bytes = variable.to_bytes();
        let name = &bytes[..bytes.iter().position(|byte| *byte == b'=').map_or(bytes.len(), |at| at + 1)];
        let mut at = self.args + 1;
        while let Some(&entry) = self.pointers.get(at).filter(|entry| !entry.is_null()) {
            // SAFETY: an entry of an environment is a C string.
            if unsafe { CStr::from_ptr(entry) }.to_bytes().starts_with(name) {
                self.pointers.remove(at);
            } else {
                at += 1;
            }
        }
        self.pointers.insert(at, variable.as_ptr());
    }

    /// Adds the variables of this process, unless the command has others, and the changed ones. Keeps
    /// shared ones as a block.
    ///
    /// The variables of this process are copied for each start. `vars_os` takes the lock of the standard
    /// library, so another thread may change them at any time.
    fn environment(&mut self, env: &Env) -> Result<(), SpawnError> {
        let strings = &mut self.strings;
        match (&env.base, &self.variables) {
            (Some(base), Some(block)) if block.is_of(base) => (),
            (Some(base), _) => self.variables = Some(VariableBlock::new(base.clone())?),
            (None, _) => {
                for (name, value) in std::env::vars_os() {
                    if !env.changes.iter().any(|(changed, _)| *changed == name) {
                        strings.starts.push(strings.bytes.len());
                        append_variable(&mut strings.bytes, &name, &value);
                    }
                }
            }
        }
        for (at, (name, value)) in env.changes.iter().enumerate() {
            let is_last = env.changes[at + 1..].iter().all(|(later, _)| later != name);
            match value {
                Some(value) if is_last => {
                    strings.starts.push(strings.bytes.len());
                    push_variable(&mut strings.bytes, name, value)?;
                }
                _ => (),
            }
        }
        Ok(())
    }

    /// Turns the starts into pointers, once the strings no longer move.
    fn point(&mut self, env: &Env) {
        let base = self.strings.bytes.as_ptr().cast::<c_char>();
        let pointer = |start: &usize| base.wrapping_add(*start);
        let (args, variables) = self.strings.starts[1..].split_at(self.args);
        self.pointers.clear();
        self.pointers.extend(args.iter().map(pointer));
        self.pointers.push(std::ptr::null());
        if let (Some(_), Some(block)) = (&env.base, &self.variables) {
            block.point(&mut self.pointers, &env.changes);
        }
        self.pointers.extend(variables.iter().map(pointer));
        self.pointers.push(std::ptr::null());
    }

    /// Returns whether the program of `command`, which the kernel refused to execute, is a script
    /// without `#!`.
    pub(super) fn is_script(&mut self, command: &Command) -> Result<bool, SpawnError> {
        let mut path = PathBuf::from(resolve(&mut self.found, command)?);
        // The child enters its directory before it executes the program.
        if let Some(dir) = &command.current_dir {
            path = dir.join(path);
        }
        script::is_script(&path).map_err(|error| SpawnStep::Exec.failed(error))
    }

    /// Forgets the last look into PATH, since the program may have moved; says whether there was
    /// one.
    pub(super) fn forget(&mut self) -> bool {
        self.found.take().is_some()
    }
}

/// Returns the path of a script in a form that the shell does not read as an option.
fn not_an_option(path: &OsStr) -> Cow<'_, OsStr> {
    let is_option = path.as_bytes().starts_with(b"-");
    if is_option { Cow::Owned(Path::new(".").join(path).into_os_string()) } else { Cow::Borrowed(path) }
}

/// Returns the path of the program: as given where it has a slash, else from PATH. The last answer is kept
/// in `found`.
fn resolve<'a>(found: &'a mut Option<CachedLookup>, command: &'a Command) -> Result<&'a OsStr, SpawnError> {
    let program = &command.program;
    if program.is_empty() {
        return Err(SpawnStep::Lookup.failed(io::ErrorKind::NotFound));
    }
    if program.as_bytes().contains(&b'/') {
        // `build` refuses a zero byte in it.
        return Ok(program);
    }
    if program.as_bytes().contains(&0) {
        return Err(SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput));
    }
    let search = search_path(&command.env);
    let search = search.as_deref();
    let is_known = |known: &CachedLookup| known.program == *program && known.search.as_deref() == search;
    if !found.as_ref().is_some_and(is_known) {
        let path = look_up(program, search).map_err(|error| SpawnStep::Lookup.failed(error))?;
        *found = Some(CachedLookup { program: program.clone(), search: search.map(OsStr::to_owned), path });
    }
    Ok(found.as_ref().map_or(program, |found| &found.path))
}

/// Returns the PATH of the child.
fn search_path(env: &Env) -> Option<Cow<'_, OsStr>> {
    if let Some((_, value)) = env.changes.iter().rev().find(|(name, _)| name == "PATH") {
        return value.as_deref().map(Cow::Borrowed);
    }
    match &env.base {
        Some(base) => {
            let variable = base.variables.iter().find(|(name, _)| name == "PATH");
            variable.map(|(_, value)| Cow::Borrowed(value.as_os_str()))
        }
        None => std::env::var_os("PATH").map(Cow::Owned),
    }
}

/// Searches the directories of PATH for an executable file. A file that exists but may not be
/// executed determines the error only if no executable follows, as in execvp(3).
fn look_up(program: &OsStr, search: Option<&OsStr>) -> io::Result<OsString> {
    let path = search.unwrap_or_else(|| OsStr::new(DEFAULT_PATH));
    let mut refused = None;
    for dir in path.as_bytes().split(|&byte| byte == b':') {
        let mut candidate = OsString::from_vec(dir.to_vec());
        if candidate.is_empty() {
            candidate.push(".");
        }
        candidate.push("/");
        candidate.push(program);
        match runnable(Path::new(&candidate)) {
            // Absolute, since the child may start in another directory than ours.
            Ok(()) => return Ok(std::path::absolute(&candidate)?.into_os_string()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = Some(error),
            Err(_) => (),
        }
    }
    Err(refused.unwrap_or_else(|| io::Error::from(io::ErrorKind::NotFound)))
}

/// Returns whether this is a file that we may run.
fn runnable(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    if !path.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    Ok(accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)?)
}

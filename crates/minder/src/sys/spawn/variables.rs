//! Environment variables for execve(2): C strings `NAME=value` in one block of memory.

use std::ffi::{OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::{SpawnError, SpawnStep};
use crate::environment::Environment;

/// The variables of an [`Environment`] as C strings.
#[derive(Debug)]
pub(super) struct VariableBlock {
    of: Environment,
    /// The strings. Their memory stays in place while the block lives, also if the block moves.
    _bytes: Vec<u8>,
    pointers: Vec<*const c_char>,
    /// The places of the variables in the list, sorted by the length of the name, then by the name: most
    /// comparisons need the length only.
    by_name: Vec<usize>,
}

impl VariableBlock {
    /// # Errors
    /// A variable that no program could read: an empty name, `=` in a name, a zero byte.
    pub(super) fn new(of: Environment) -> Result<Self, SpawnError> {
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        for (name, value) in of.variables.iter() {
            starts.push(bytes.len());
            push_variable(&mut bytes, name, value)?;
        }
        let base = bytes.as_ptr().cast::<c_char>();
        let pointers = starts.into_iter().map(|start| base.wrapping_add(start)).collect();
        let mut by_name: Vec<usize> = (0..of.variables.len()).collect();
        by_name.sort_by_key(|place| by_length(&of.variables[*place].0));
        Ok(Self { _bytes: bytes, pointers, by_name, of })
    }

    /// Returns whether it was made of this list, and not of a copy.
    pub(super) fn is_of(&self, environment: &Environment) -> bool {
        std::sync::Arc::ptr_eq(&self.of.variables, &environment.variables)
    }

    /// Appends a pointer to each variable that is not among the `changes`. They are valid while the
    /// block lives.
    pub(super) fn point<T>(&self, pointers: &mut Vec<*const c_char>, changes: &[(OsString, T)]) {
        let name = |place: usize| &self.of.variables[place].0;
        let is_known = |changed: &OsString| {
            self.by_name.binary_search_by_key(&by_length(changed), |at| by_length(name(*at))).is_ok()
        };
        if !changes.iter().any(|(changed, _)| is_known(changed)) {
            pointers.extend_from_slice(&self.pointers);
            return;
        }
        for (place, pointer) in self.pointers.iter().enumerate() {
            if !changes.iter().any(|(changed, _)| changed == name(place)) {
                pointers.push(*pointer);
            }
        }
    }
}

fn by_length(name: &OsString) -> (usize, &OsString) {
    (name.len(), name)
}

/// Appends `NAME=value` and a zero, if a program can read that.
pub(super) fn push_variable(bytes: &mut Vec<u8>, name: &OsStr, value: &OsStr) -> Result<(), SpawnError> {
    // An `=` at the beginning is part of the name, as in std.
    if name.is_empty() || name.as_bytes()[1..].contains(&b'=') {
        return Err(SpawnStep::Variable.failed(io::ErrorKind::InvalidInput));
    }
    if name.as_bytes().contains(&0) || value.as_bytes().contains(&0) {
        return Err(SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput));
    }
    append_variable(bytes, name, value);
    Ok(())
}

/// Appends `NAME=value` and a zero.
pub(super) fn append_variable(bytes: &mut Vec<u8>, name: &OsStr, value: &OsStr) {
    bytes.reserve(name.len() + value.len() + 2);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(b'=');
    bytes.extend_from_slice(value.as_bytes());
    bytes.push(0);
}

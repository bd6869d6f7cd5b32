//! A program that records its arguments and does nothing else. Lines of tests may run it under
//! any name.
//!
//! It appends one record to the file that `ARGUMENT_LOG` names: each argument as `LENGTH:BYTES`,
//! then a `;`.

use std::fs::OpenOptions;
use std::io::Write;

fn main() {
    let Some(log) = std::env::var_os("ARGUMENT_LOG") else { return };
    let mut record = Vec::new();
    for argument in std::env::args_os().skip(1) {
        let bytes = argument.as_encoded_bytes();
        record.extend_from_slice(format!("{}:", bytes.len()).as_bytes());
        record.extend_from_slice(bytes);
    }
    record.push(b';');
    // One write, so that records of programs that run side by side are not mixed.
    if let Ok(mut log) = OpenOptions::new().append(true).create(true).open(log) {
        let _ = log.write_all(&record);
    }
}

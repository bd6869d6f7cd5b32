//! Black-box tests: one file a module of the library, and what the command does.

#![expect(clippy::print_stderr, reason = "a test says what it skipped, and which backend failed")]

mod kit;
#[cfg(unix)]
mod spawn;
#[cfg(unix)]
mod child;
#[cfg(unix)]
mod wait;
#[cfg(unix)]
mod set;
#[cfg(unix)]
mod lab;
#[cfg(unix)]
mod regression;
#[cfg(unix)]
mod cli;
#[cfg(unix)]
mod template;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod refused;
mod pump;
mod exec;
mod examples;
mod doctor;

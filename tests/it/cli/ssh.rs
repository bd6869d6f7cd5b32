//! Runs on hosts that are reached by ssh. Each test has its own sshd, which all of its hosts share.

mod sshd;
mod jobs;
mod loss;
mod shells;
mod programs;
mod refusals;
mod networks;
mod faults;
mod parallel;
mod files;

use super::*;

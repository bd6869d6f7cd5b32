//! How processes on several machines share the jobs of a run, in a directory that all of them see.
//!
//! *Agents* run the jobs, and one *coordinator* shows their output. They exchange nothing but files:
//! `docs/design/cluster.md` explains why each is as it is.
//!
//! | module | files in the directory of a run | what they decide |
//! | --- | --- | --- |
//! | [`round`] | `rounds/A/jobs`, `cancel` | which jobs there are to run |
//! | [`claim`] | `rounds/A/claims/N.E`, `frontier` | which agent runs a range of jobs |
//! | [`beat`] | `agents/KEY/beat`, `holder/N/beat` | whether a process still works |
//! | [`agents`] | `agents/KEY/{beat,journal.jsonl}` | which agents of a round still work |
//! | [`holder`] | `holder/N/{who,over}` | which coordinator works on the run |
//! | [`spool`] | `spool/{arguments,index,count}` | the arguments of each job |
//!
//! Journals, and which of their events count, are in `minder_record::merge`. An agent on a host without that
//! directory is connected by [`ssh`], with the messages of [`protocol`] and the files of [`transfer`]. The
//! module [`flow`] limits what is on its way.
//!
//! This crate declares no flag and prints nothing. Its interface may change with every release.
//!
//! Nothing here compares the clocks of two machines. Files are private, and opened without following links.

mod file;
pub mod beat;
pub mod agents;
pub mod claim;
pub mod holder;
pub mod round;
pub mod spool;
pub mod transfer;
pub mod protocol;
pub mod flow;
pub mod ssh;

#[cfg(test)]
mod tests;

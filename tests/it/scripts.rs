//! Random scripts: what children do and what is done to them, against a model of what is reported.
//!
//! Each script is drawn from its seed: one to five children, what they write, read and leave behind,
//! and how they end; and the calls of a `ChildSet`, a `BackgroundSet`, a `Child`, `output_with` or a
//! `Pipeline`.
//! The model checks each event and each outcome. After a script, no descriptor, thread, child or
//! zombie may be left.
//!
//! `MINDER_SCRIPTS` sets how many scripts are run; `MINDER_SEED` repeats one of them.

mod background;
mod draw;
mod lone;
mod model;
mod pipeline;
mod plan;
mod processes;
mod set;

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::support::{alone, cases, number, on_drop, own_children};
use plan::{Host, Script};
use processes::{Held, Tag};

/// The number of scripts that are run by default: about four seconds of processor time.
const SCRIPTS: u64 = 150;
/// The number of scripts with `MINDER_LONG=1`.
const SCRIPTS_LONG: u64 = 700;
/// Longer than any script takes on a busy machine.
const BOUND: Duration = Duration::from_secs(180);
/// The first scripts open what is kept from one to the next. Their leaks are not counted.
const FIRST: u64 = 20;

#[test]
fn random_scripts_match_the_model() {
    alone("scripts::random_scripts_match_the_model", || {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let clock = clock.expect("clock is after 1970").as_nanos() as u64 % 1_000_000;
        let seed = number("MINDER_SEED");
        let (few, many) = if seed.is_some() { (1, 1) } else { (SCRIPTS, SCRIPTS_LONG) };
        let count = cases("MINDER_SCRIPTS", few, many);
        let watchdog = watchdog();
        for first in 0..FIRST {
            run(&draw::script(first), &watchdog, None);
        }
        let held = Held::now();
        let begun = Instant::now();
        for number in 0..count {
            let script = draw::script(seed.unwrap_or(clock + number));
            run(&script, &watchdog, Some(held));
        }
        eprintln!("{count} scripts from {clock} in {:?}: {:?}", begun.elapsed(), model::checked());
    });
}

/// Runs a script, and checks that it leaves nothing behind. A failure prints the script.
fn run(script: &Script, watchdog: &Sender<String>, held: Option<Held>) {
    watchdog.send(script.to_string()).expect("start the time of a script");
    let tag = Tag::of_script(script.seed);
    let _named = on_drop(|| {
        if std::thread::panicking() {
            eprintln!("{script}");
        }
    });
    match script.host {
        Host::Set { backend, by_descriptor } => set::run(script, backend, by_descriptor),
        Host::Background { backend, eager_exit, taken_bytes } => {
            background::run(script, backend, eager_exit, taken_bytes);
        }
        Host::Lone => lone::run(script),
        Host::Capture { timeout_ms, bytes_max, by_reader } => {
            lone::capture(script, timeout_ms, bytes_max, by_reader);
        }
        Host::Pipeline { missing, .. } => pipeline::run(script, missing),
    }
    // What a script may leave behind: the model has checked the rest.
    if script.ending == plan::Ending::Drop || script.children.iter().any(plan::Plan::has_family) {
        tag.kill_all();
    }
    if script.ending == plan::Ending::Drop {
        processes::reap_all();
    }
    assert_eq!(own_children(), [0; 0], "children after the script");
    if let Some(held) = held {
        held.check();
    }
}

/// Starts the thread that ends this process if a script does not. It gets the text of each script
/// when it begins.
fn watchdog() -> Sender<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut script = String::new();
        loop {
            match receiver.recv_timeout(BOUND) {
                Ok(next) => script = next,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    eprintln!("a script does not end: {script}");
                    Tag::of_process().kill_all();
                    std::process::abort();
                }
            }
        }
    });
    sender
}

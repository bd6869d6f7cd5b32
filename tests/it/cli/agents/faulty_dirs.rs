//! Runs of 10,000 jobs whose directory cannot be written, is full, or is slow for 10 s: a file system in user
//! space (FUSE) fails on request.

use std::process::Command as Program;

use super::super::checked_jobs::{end, wait_for_starts};
use super::faults::{LOST_MAX, check, start};
use super::*;
use crate::support::{nap, output, skip, tell};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/cli/agents/faulty_dir.c");

/// A state directory that fails on request.
struct FaultyDir {
    on: OnAgents,
    server: minder::Child,
}

impl FaultyDir {
    /// Mounts it, or skips the test.
    fn mount() -> Option<Self> {
        let on = OnAgents::new();
        let dir = on.dir.path();
        let program = dir.join("faulty_dir");
        let line =
            format!("cc -O1 -o '{}' '{SOURCE}' $(pkg-config --cflags --libs fuse3)", program.display());
        if !is_root()
            || !Path::new("/dev/fuse").exists()
            || !output(Program::new("sh").args(["-c", &line])).status.success()
        {
            skip(format_args!("needs FUSE (as root, apt-get install gcc libfuse3-dev pkg-config)"));
            return None;
        }
        for name in ["state", "backing"] {
            fs::create_dir(dir.join(name)).expect("create directory");
        }
        fs::write(dir.join("control"), "ok").expect("write");
        let mut command = Command::new(&program);
        command.args([dir.join("state"), dir.join("backing"), dir.join("control")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = command.spawn().expect("start file system");
        let until = Instant::now() + PATIENCE;
        while fs::read_link(dir.join("state/.calls")).is_err() {
            if server.try_wait().expect("poll file system").is_some() {
                skip(format_args!("needs FUSE, which is not allowed here"));
                return None;
            }
            assert!(Instant::now() < until, "the file system is not mounted");
            nap(Duration::from_millis(10)); // There is no event for a mount.
        }
        Some(Self { on, server })
    }

    /// Says how the directory behaves from now on.
    fn behave(&self, how: &str) {
        let dir = self.on.dir.path();
        // Another name first: a reader sees all or nothing.
        fs::write(dir.join("control.new"), how).expect("write");
        fs::rename(dir.join("control.new"), dir.join("control")).expect("rename");
    }
}

impl Drop for FaultyDir {
    fn drop(&mut self) {
        self.behave("ok");
        for agent in self.on.working() {
            // It may have ended.
            let _ = kill_process(agent, Signal::KILL);
        }
        output(Program::new("umount").arg("-l").arg(self.on.dir.path().join("state")));
        let _ = self.server.kill(Termination::IMMEDIATE);
    }
}

/// Lets the directory of a run behave so for 10 s. A run that ends by it is resumed once.
fn misbehave(how: &str) {
    let Some(faulty) = FaultyDir::mount() else { return };
    let on = &faulty.on;
    let run = start(on, "", "");
    wait_for_starts(on.dir.path(), 1000);
    faulty.behave(how);
    nap(Duration::from_secs(10));
    faulty.behave("ok");
    let ended = end(run);
    let mut shown = ended.text();
    tell(&format!("{how}: {:?} {}", ended.status, ended.err));
    if ended.status != ExitStatus::Exited(0) {
        let resumed = end(Run::start(&on.command("resume"))).exit_code(0);
        shown += &resumed.text();
    }
    check(on, &shown, 0, 3 * LOST_MAX);
}

#[test]
#[ignore = "10,000 jobs, and a directory that fails for 10 s: cargo xtask cluster"]
fn ten_thousand_jobs_survive_a_directory_that_is_read_only_for_10_s() {
    misbehave("readonly");
}

#[test]
#[ignore = "10,000 jobs, and a directory that fails for 10 s: cargo xtask cluster"]
fn ten_thousand_jobs_survive_a_directory_that_is_full_for_10_s() {
    misbehave("full");
}

#[test]
#[ignore = "10,000 jobs, and a directory that is slow for 10 s: cargo xtask cluster"]
fn ten_thousand_jobs_survive_a_directory_whose_calls_take_300_ms() {
    misbehave("slow 300");
}

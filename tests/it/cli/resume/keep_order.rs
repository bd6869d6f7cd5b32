//! Many finished jobs that wait for their turn, and a kill while they are shown.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;

use minder::ExitStatus;

use super::{Running, Trial, Victim, home, is_killed, recorded};
use crate::cli::{minder, path, pipe, with_script};

/// Bytes of each job: together far more than a pipe holds.
const LEN: usize = 100_000;

/// Returns the jobs whose head line is in a stream.
fn heads(stream: &[u8]) -> BTreeSet<usize> {
    let lines = stream.split(|byte| *byte == b'\n');
    let head = |line: &[u8]| {
        let from = line.iter().rposition(|byte| *byte == b'[')?;
        let (job, len) = str::from_utf8(&line[from + 1..]).ok()?.strip_suffix(']')?.split_once(' ')?;
        (len.parse() == Ok(LEN)).then(|| job.parse().ok())?
    };
    lines.filter_map(head).collect()
}

#[test]
fn kill_while_showing_repeats_at_most_the_running_jobs() {
    let trial = Trial::new("-k -j2", 0, 40);
    let go = trial.file("go");
    let line = format!("case {{}} in 1) CHILD await {} 1;; *) CHILD job {{}},{LEN},0,0;; esac", path(&go));
    let (mut reader, writer) = pipe();
    let mut command = minder("run -k -j2");
    with_script(&mut command, &line).arg(":::").args((1..=trial.jobs).map(|job| job.to_string()));
    command.env("MINDER_STATE_DIR", trial.file("state")).current_dir(trial.file("here")).stdout(writer);
    command.stderr(minder::Stdio::null());
    let child = command.spawn().expect("start command");
    drop(command);
    let mut running = Running { child, sinks: None, here: home(trial.dir.path()) };
    running.wait_until("the other jobs", |_| {
        trial.run().is_some_and(|run| recorded(&run).len() == trial.jobs - 1)
    });
    fs::write(&go, "").expect("write file");
    // Half of it is read; then reading stops, and the pipe fills up.
    let mut first = vec![0; trial.jobs * LEN / 2];
    reader.read_exact(&mut first).expect("read bytes");
    running.kill(Victim::Runner);
    reader.read_to_end(&mut first).expect("read to end");
    let status = running.child.wait().expect("wait for child").status;
    assert!(is_killed(status), "{status:?}");
    running.settle();
    drop(running);
    let words = trial.words();
    let running = Running::start(&words, trial.dir.path(), true);
    let (status, second, err) = running.wait();
    assert_eq!(status, ExitStatus::Exited(0), "{err}");
    let first = heads(&first);
    let second = heads(&second);
    assert_eq!(&first | &second, (2..=trial.jobs).collect(), "a job is lost");
    let twice: Vec<&usize> = first.intersection(&second).collect();
    assert!(twice.len() <= 2, "seen twice: {twice:?}");
}

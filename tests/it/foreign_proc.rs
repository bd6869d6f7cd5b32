//! A `/proc` that is not ours: no foreign process is signalled, and missing guarantees are
//! reported.

use std::path::Path;
use std::process::{Command, Output};

const MINDER: &str = env!("CARGO_BIN_EXE_minder-dup");

/// Runs a script in a PID namespace that sees the `/proc` of the one round it, which `outer` fills;
/// `None` without the right to make them.
fn in_namespaces(dir: &Path, outer: &str, inner: &str) -> Option<Output> {
    let namespace = || {
        let mut command = Command::new("timeout");
        command.args(["100", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command
    };
    if !namespace().arg("true").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a namespace needs unshare(1) and the right to use it");
        return None;
    }
    std::fs::write(dir.join("inner"), inner).expect("write file");
    let script = format!("{outer}\nunshare --pid --fork sh ./inner");
    let output = namespace()
        .args(["sh", "-c", &script])
        .env("MINDER", MINDER)
        .env("MINDER_STATE_DIR", dir.join("state"))
        .current_dir(dir)
        .output();
    Some(output.expect("run unshare"))
}

/// A job that prints its pid and waits.
const JOB: &str = "printf 'echo $$ >started; exec sleep 300' >job\n";
const STARTED: &str = "until [ -s started ]; do sleep 0.05; done\n";

#[test]
fn processes_of_another_namespace_are_not_descendants() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    // Outside, the processes from number 3 on are shells, and each has children of higher numbers.
    let outer = "mkfifo go; exec 3<>go
i=0; while [ $i -lt 60 ]; do
    sh -c 'read x <go; sleep 300 & sleep 300 & sleep 300 & : >ready.$$; wait' & i=$((i+1))
done
i=0; while [ $i -lt 60 ]; do echo; i=$((i+1)); done >&3
until [ $(ls | grep -c ready) = 60 ]; do sleep 0.05; done";
    // In the inner namespace the job has the pid of one of the shells, and the unrelated processes have
    // the pids of their children.
    let inner = format!(
        "{JOB}\"$MINDER\" run sh job ::: x 2>said & minder=$!
{STARTED}
strangers=; i=0; while [ $i -lt 260 ]; do sleep 300 & strangers=\"$strangers $!\"; i=$((i+1)); done
echo job $(cat started)
kill -TERM $minder; wait $minder
for one in $strangers; do kill -0 $one || echo stranger $one is gone; done
cat said"
    );
    let Some(output) = in_namespaces(dir.path(), outer, &inner) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    let job = text.lines().find_map(|line| line.strip_prefix("job ")?.parse::<u32>().ok());
    let job = job.expect("find pid of the job");
    assert!((3..60).contains(&job), "the pid of the job is not one of a shell: {job}");
    assert!(!text.contains("is gone"), "{text}");
    let why = "minder: no guardians: `/proc` belongs to another PID namespace; after `kill -9` of minder, \
        descendants of its jobs would keep running";
    assert!(text.contains(why), "{text}");
}

#[test]
fn jobs_end_with_the_runner_without_guardians() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    for (name, hide) in [("of another namespace", ""), ("not mounted", "mount -t tmpfs none /proc; ")] {
        let _ = std::fs::remove_file(dir.path().join("started"));
        let inner = format!(
            "{hide}{JOB}\"$MINDER\" run sh job ::: x 2>said & minder=$!
{STARTED}
job=$(cat started); kill -9 $minder
i=0; while kill -0 $job && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done
kill -0 $job && echo lives
cat said"
        );
        let Some(output) = in_namespaces(dir.path(), "", &inner) else { return };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("minder: no guardians: `/proc` ") && !text.contains("lives"), "{name}: {text}");
    }
}

#[test]
fn doctor_reports_a_foreign_proc() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let Some(output) = in_namespaces(dir.path(), "", "\"$MINDER\" doctor") else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("/proc belongs to another PID namespace"), "{text}");
}

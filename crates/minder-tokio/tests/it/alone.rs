//! Tests that need a process for themselves, because they limit or count its descriptors.

/// Runs an ignored test of this program in a new process, with this limit of descriptors.
#[track_caller]
pub(crate) fn run(name: &str, descriptors: usize) {
    let program = std::env::current_exe().expect("this program has a path");
    let script = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).arg(program).args([name, "--exact", "--ignored", "--nocapture"]);
    let output = command.output().expect("start this program again");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

//! Files that go to a host before a job, and come back after it.

use std::fs;
use std::path::Path;

use super::sshd::Hosts;
use super::*;

/// Returns the files below a directory, with their contents.
fn files(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir_left) = left.pop() {
        for entry in fs::read_dir(&dir_left).expect("read directory") {
            let path = entry.expect("read entry").path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("a path below").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("read file")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn files_go_and_come_back() {
    let Some(hosts) = Hosts::start() else { return };
    let here = hosts.dir().join("here");
    fs::create_dir_all(here.join("in")).expect("create directory");
    let names = ["in/a b.txt", "in/it's.txt", "in/-x.txt", "in/$(touch evil).txt", "in/é\n.txt"];
    for name in names {
        fs::write(here.join(name), name).expect("write file");
    }
    fs::write(here.join("lib.sh"), "lib ").expect("write file");
    let flags = "-k --wd work --transfer --return {.}.out --basefile lib.sh --cleanup";
    let mut run = hosts.on("ssh:2/alpha,2/beta", flags);
    run.arg("cat lib.sh {} >{.}.out; ls lib.sh").arg(":::").args(names);
    let ended = Run::start(&run).wait().exit_code(0);
    assert_eq!(ended.text(), "lib.sh\n".repeat(names.len()));
    for name in names {
        let output = here.join(Path::new(name).with_extension("out"));
        assert_eq!(fs::read_to_string(output).expect("read output"), format!("lib {name}"));
    }
    assert!(!here.join("evil").exists());
    assert_eq!(files(&hosts.home("work")), [], "what was sent is removed");
    hosts.expect_nothing_left();
}

#[test]
fn directories_and_large_files_are_sent_whole() {
    let Some(hosts) = Hosts::start() else { return };
    let here = hosts.dir().join("here");
    fs::create_dir_all(here.join("tree/deep/empty")).expect("create directories");
    let large: String = (0..200_000).map(|line| format!("{line}\n")).collect();
    fs::write(here.join("tree/deep/large"), &large).expect("write file");
    fs::write(here.join("tree/small"), "small").expect("write file");
    let script = "cp -R tree back; ls -d tree/deep/empty";
    let mut run = hosts.on("ssh:alpha", "--wd ... --transferfile x/./../none");
    let refused = Run::start(run.arg("echo {}").args([":::", "1"])).wait().exit_code(1);
    assert!(refused.err.contains("leads out of the directory of the jobs"), "{}", refused.err);
    let mut run = hosts.on("ssh:alpha", "-n0 --wd ... --transferfile tree --return back");
    let ended = Run::start(run.arg(script).args([":::", "1"])).wait().exit_code(0);
    assert_eq!(ended.text(), "tree/deep/empty\n");
    assert!(files(&here.join("tree")) == files(&here.join("back")), "the copy differs");
    hosts.expect_nothing_left();
}

#[test]
fn missing_files_fail_a_job_or_are_named() {
    let Some(hosts) = Hosts::start() else { return };
    let here = hosts.dir().join("here");
    fs::write(here.join("there"), "x").expect("write file");
    let mut run = hosts.on("ssh:alpha", "-k --wd ... --transfer --return {}.out");
    let run = Run::start(run.arg("echo {}").args([":::", "there", "nowhere"]));
    let ended = run.wait().exit_code(1);
    assert_eq!(ended.text(), "there\n", "a job without its file does not run");
    for part in ["cannot read `", "/nowhere`: no such file", "alpha: job 1 returns less than it should: "] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    // A file that cannot be written here: no result is recorded without it.
    fs::create_dir(here.join("there.out")).expect("create directory");
    let mut run = hosts.on("ssh:alpha", "--wd ... --transfer --return {}.out");
    let ended = Run::start(run.arg("echo y >{}.out").args([":::", "there"])).wait().exit_code(255);
    for part in ["alpha", "cannot write `", "/there.out`", "1 job left"] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    let mut run = hosts.on("ssh:alpha", "--basefile none");
    let ended = Run::start(run.arg("echo").args([":::", "there"])).wait().exit_code(255);
    assert!(ended.err.contains("--basefile: cannot read `"), "{}", ended.err);
    // No agent counts as one that may work.
    let status = Run::start(&hosts.command("status")).wait();
    assert!(status.err.contains("no run is running here"), "{} {}", status.text(), status.err);
    hosts.expect_nothing_left();
}

//! The program on the host: the same one, one that was copied, or one that is installed there.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::OnceLock;

use super::sshd::{Hosts, Setup};
use super::*;
use crate::support::{output, skip};

/// Changes the path of the program in each command, so that it is not found.
const HIDE: &str = concat!(
    "ForceCommand exec /bin/sh -c ",
    r#""$(printf %s "$SSH_ORIGINAL_COMMAND" | sed s#@DIR/program/#/no/such/#)""#,
);
const SHELL_PATH: &str = "PATH=@DIR/bin:/usr/bin:/bin";

/// Returns the bytes of a small copy of the program.
fn small_program() -> &'static [u8] {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let dir = tempfile::tempdir().expect("create directory");
        let stripped = dir.path().join("minder");
        // The symbols are most of it.
        let result = std::process::Command::new("strip").arg("-o").arg(&stripped).arg(MINDER).output();
        let is_stripped = result.is_ok_and(|output| output.status.success());
        fs::read(if is_stripped { stripped } else { PathBuf::from(MINDER) }).expect("read program")
    })
}

/// Writes a program in another process. A process that another test has just forked would hold a file of
/// this process open for writing, and such a file cannot be started.
fn write_program(path: &Path, bytes: &[u8]) {
    let source = path.with_extension("source");
    fs::write(&source, bytes).expect("write program");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o700)).expect("set permissions");
    let copied = output(std::process::Command::new("cp").arg("-p").arg("--").arg(&source).arg(path));
    assert!(copied.status.success(), "{copied:?}");
}

/// Hosts that do not find the program, and the program.
fn hosts_without(setup: Setup<'_>) -> Option<(Hosts, PathBuf)> {
    let hosts = Hosts::with(Setup { server: HIDE, ..setup })?;
    let dir = hosts.dir().join("program");
    fs::create_dir(&dir).expect("create directory");
    fs::create_dir(hosts.dir().join("bin")).expect("create directory");
    let program = dir.join("minder");
    write_program(&program, small_program());
    Some((hosts, program))
}

fn run(hosts: &Hosts, program: &Path) -> RunOutput {
    run_on("ssh:2/alpha --quiet", hosts, program)
}

fn run_on(places: &str, hosts: &Hosts, program: &Path) -> RunOutput {
    let mut command = hosts.command_of(program, &format!("run -k --on {places}"));
    command.arg("--ssh").arg(hosts.ssh());
    let ended = Run::start(command.args(["echo {}; ps -o args= -p $PPID >&2", ":::", "1", "2", "3"])).wait();
    hosts.expect_nothing_left();
    ended
}

/// Returns the files in the cache, by their names.
fn cached(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache.join("minder")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[test]
fn program_is_copied_once() {
    let Some((hosts, program)) = hosts_without(Setup::default()) else { return };
    // Two agents get a copy at the same time, or one after the other.
    let first = run_on("ssh:2/alpha,2/beta", &hosts, &program).exit_code(0);
    assert_eq!(first.text(), "1\n2\n3\n");
    let cache = hosts.home(".cache");
    let files = cached(&cache);
    let [copy] = &files[..] else { panic!("{files:?}") };
    assert!(fs::read(copy).expect("read copy") == small_program());
    let metadata = fs::metadata(copy).expect("find copy");
    assert_eq!(metadata.mode() & 0o7777, 0o700);
    assert!(first.err.contains(path(copy)) && first.err.contains(": copied minder "), "{}", first.err);
    let second = run(&hosts, &program).exit_code(0);
    assert_eq!(second.text(), "1\n2\n3\n");
    assert_eq!(cached(&cache), files);
    assert_eq!(fs::metadata(copy).expect("find copy").ino(), metadata.ino(), "it was copied again");
    // A copy that is not complete, or another file, is replaced.
    fs::write(copy, "#!/bin/sh\necho minder 9.9.9\n").expect("write");
    let third = run(&hosts, &program).exit_code(0);
    assert_eq!(third.text(), "1\n2\n3\n");
    assert!(!third.err.contains(": copied minder "), "{}", third.err);
    assert!(fs::read(copy).expect("read copy") == small_program());
    assert_eq!(cached(&cache), files);
}

#[test]
fn cache_directory_is_that_of_the_host() {
    let setup = Setup { env: "XDG_CACHE_HOME=@DIR/cache", ..Setup::default() };
    let Some((hosts, program)) = hosts_without(setup) else { return };
    assert_eq!(run(&hosts, &program).exit_code(0).text(), "1\n2\n3\n");
    assert_eq!(cached(&hosts.dir().join("cache")).len(), 1);
    assert!(!hosts.home(".cache").exists());
}

#[test]
fn installed_program_of_the_same_version_is_used() {
    let Some((hosts, program)) = hosts_without(Setup { env: SHELL_PATH, ..Setup::default() }) else { return };
    let install = |text: String| {
        let path = hosts.dir().join("bin/minder");
        write_program(&path, text.as_bytes());
    };
    install(format!("#!/bin/sh\nexec '{MINDER}' \"$@\"\n"));
    assert_eq!(run(&hosts, &program).exit_code(0).text(), "1\n2\n3\n");
    assert!(!hosts.home(".cache").exists());
    install("#!/bin/sh\necho minder 9.9.9\n".to_owned());
    assert_eq!(run(&hosts, &program).exit_code(0).text(), "1\n2\n3\n");
    assert_eq!(cached(&hosts.home(".cache")).len(), 1);
    // It says that it has this version, and has another.
    fs::remove_dir_all(hosts.home(".cache")).expect("remove cache");
    let version = output(std::process::Command::new(MINDER).arg("--version")).stdout;
    let version = text(&version);
    let hello = r#"{"protocol":1,"version":"9.9.9","node":"x"}"#;
    let length = format!("\\0\\0\\0\\{:o}", hello.len() + 1);
    install(format!(
        "#!/bin/sh\n[ $1 = --version ] && echo '{}' && exit\n\
         echo $3 hello\nprintf '{length}h%s' '{hello}'; cat >/dev/null\n",
        version.trim()
    ));
    let ended = run(&hosts, &program).exit_code(255);
    assert!(ended.err.contains("it has minder 9.9.9, and this is minder"), "{}", ended.err);
}

#[test]
fn cache_that_cannot_be_written_is_named() {
    let setup = Setup { env: "XDG_CACHE_HOME=/proc/none", ..Setup::default() };
    let Some((hosts, program)) = hosts_without(setup) else { return };
    let begun = Instant::now();
    let ended = run(&hosts, &program).exit_code(255);
    assert!(ended.err.contains("alpha: ") || ended.err.contains("beta: "), "{}", ended.err);
    assert!(ended.err.contains("/proc/none"), "{}", ended.err);
    assert!(begun.elapsed() < SOON);
}

#[test]
fn cache_whose_programs_cannot_run_is_named() {
    for (options, expected) in [("noexec", "cannot run programs in "), ("ro", "Read-only file system")] {
        let mount = format!("mount -t tmpfs -o {options} tmpfs @DIR/home && exec \"$0\" \"$@\"");
        let enter = ["unshare", "-m", "sh", "-c", &mount];
        if !is_root() || !output(std::process::Command::new("unshare").args(["-m", "true"])).status.success()
        {
            skip(format_args!("needs to mount a file system (run it as root)"));
            return;
        }
        let Some((hosts, program)) = hosts_without(Setup { enter: &enter, ..Setup::default() }) else {
            return;
        };
        let ended = run(&hosts, &program).exit_code(255);
        assert!(ended.err.contains(expected), "{}", ended.err);
    }
}

//! Files in addition to the screen: names of files in place of output, files that the user names,
//! copies of templates.

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{Run, feed, files, input, is_known, minder, path, shell, temp_dir, texts, untangle};

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[cfg(unix)]
fn mode(file: &Path) -> u32 {
    fs::metadata(file).expect("read metadata").permissions().mode() & 0o777
}

#[test]
fn files_option_writes_one_file_per_job() {
    let jobs = texts(9, 3000, 700_000);
    let all =
        ["-j1", "-j4", "-k -j4", "--lb -j4", "--spool -j4", "-j4 --buffer 64k --no-record", "--pty -j3"];
    for flags in all.into_iter().filter(|flags| is_known(flags)) {
        let dir = temp_dir();
        let mut command = minder(&format!("run {flags} --files --tmpdir {} CHILD text", path(dir.path())));
        let ended = Run::start(command.stdin(input(&feed(&jobs)))).wait().exit_code(0);
        let names = String::from_utf8(ended.out).expect("decode UTF-8");
        let names: Vec<&Path> = names.lines().map(Path::new).collect();
        assert_eq!(names.len(), jobs.len(), "{flags}");
        assert_eq!(files(dir.path()), jobs.len(), "{flags}: something else is left");
        #[cfg(unix)] // Modes are those of Unix.
        assert!(names.iter().all(|name| mode(name) == 0o600));
        if flags.contains("--pty") {
            continue;
        }
        untangle(&ended.errors, 1, &jobs, false);
        let mut all: Vec<Vec<u8>> = names.iter().map(|name| fs::read(name).expect("read file")).collect();
        let mut wanted: Vec<Vec<u8>> = jobs.iter().map(|job| job.lines(0).concat()).collect();
        if !flags.contains("-k") {
            all.sort();
            wanted.sort();
        }
        assert!(all == wanted, "{flags}");
    }
}

#[test]
fn retried_job_has_one_file() {
    let dir = temp_dir();
    let flags = format!("--files --retries 3 --tmpdir {}", path(dir.path()));
    let ended = Run::start(&shell(&flags, "echo {}; exit 1", &["a", "b"])).wait().exit_code(2);
    assert_eq!(String::from_utf8_lossy(&ended.out).lines().count(), 2);
    assert_eq!(files(dir.path()), 2);
}

#[cfg(target_os = "linux")] // A directory that not even root may write.
#[test]
fn unwritable_output_files_are_one_line_of_error() {
    let flags = "--no-record --files --tmpdir /proc/none";
    Run::start(&shell(flags, "echo {}", &["a", "b"]))
        .wait()
        .exit_code(255)
        .error_line(&["cannot make a file for output in `/proc/none`"]);
}

#[test]
fn results_template_names_the_file() {
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    let line = "echo out {}; echo err >&2";
    Run::start(&shell(&format!("--results {}", path(&at("d/{#}.txt"))), line, &["a", "b/c"]))
        .wait()
        .exit_code(0);
    assert_eq!(text(&at("d/2.txt")), "out b/c\n");
    assert_eq!(text(&at("d/2.txt.err")), "err\n");
    assert_eq!(text(&at("d/2.txt.seq")), "2");
    assert_eq!(files(dir.path()), 6);
    Run::start(&shell(&format!("--results {}", path(&at("e{}/"))), line, &["x"])).wait().exit_code(0);
    assert_eq!(text(&at("ex/stdout")), "out x\n");
    assert_eq!(text(&at("ex/seq")), "1");
    // No link is followed, where everybody may make one.
    #[cfg(unix)]
    fs::write(at("victim"), "precious").expect("write file");
    #[cfg(unix)]
    symlink(at("victim"), at("l")).expect("create symbolic link");
    Run::start(&shell(&format!("--results {}", path(&at("{}"))), line, &["l"])).wait().exit_code(0);
    #[cfg(unix)]
    assert_eq!(text(&at("victim")), "precious");
    assert_eq!(text(&at("l")), "out l\n");
}

#[test]
fn results_directories_follow_column_names() {
    let dir = temp_dir();
    let line = "echo {z}";
    let flags = format!("--header : --files --results {}", path(dir.path()));
    let ended = Run::start(&shell(&flags, line, &["z", "1", ":::", "a/b", "2"])).wait().exit_code(0);
    let value = if cfg!(windows) { "a%2Fb" } else { "a\\_b" };
    let own = [value, "2", "z", "1"].iter().fold(dir.path().to_owned(), |path, name| path.join(name));
    assert_eq!(text(&own.join("stdout")), "1\n");
    assert_eq!(String::from_utf8_lossy(&ended.out), format!("{}\n", path(&own.join("stdout"))));
}

#[test]
fn template_copies_contain_the_values() {
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("t"), "<{}> {#} {/.} {n}\n$(echo {})").expect("write file");
    fs::write(at("victim"), "precious").expect("write file");
    #[cfg(unix)]
    fs::set_permissions(at("t"), fs::Permissions::from_mode(0o640)).expect("set permissions");
    #[cfg(unix)]
    symlink(at("victim"), at("1.o")).expect("create symbolic link");
    let flags = format!("-j2 -k --template {}={}", path(&at("t")), path(&at("{#}.o")));
    let line = format!("cat {}", path(&at("{#}.o")));
    let wanted = "<it's> 1 it's {n}\n$(echo it's)<a b/c.d> 2 c {n}\n$(echo a b/c.d)";
    let ended = Run::start(&shell(&flags, &line, &["it's", "a b/c.d"])).wait().exit_code(0);
    assert_eq!(String::from_utf8_lossy(&ended.out), wanted);
    assert_eq!(text(&at("victim")), "precious");
    #[cfg(unix)]
    assert_eq!(mode(&at("1.o")), 0o640);
    assert_eq!(files(dir.path()), 4);
    // Several, which go with the job, also with one that fails and one that cannot start.
    let more = format!("{flags} --cleanup --retries 2 --tmpl {}={}", path(&at("t")), path(&at("{}.q")));
    let ended = Run::start(&shell(&more, &format!("{line}; exit 1"), &["x"])).wait().exit_code(1);
    assert_eq!(String::from_utf8_lossy(&ended.out), "<x> 1 x {n}\n$(echo x)");
    let mut command = minder(&format!("run {more}"));
    Run::start(command.args(["/no/such/program", "{}", ":::", "x"])).wait();
    // A copy that replaced a file stays: `1.o` was there.
    assert_eq!(files(dir.path()), 4);
}

#[test]
fn failed_template_copies_are_one_line_of_error() {
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("t"), "{}").expect("write file");
    fs::create_dir(at("d")).expect("create directory");
    for (flag, why, code) in [
        (format!("{}={}", path(&at("no")), path(&at("o"))), "cannot read the template `", 255),
        (path(&at("t")).to_owned(), "--template `", 255),
        // A name that is made of a job's values fails that job alone.
        (format!("{}={}", path(&at("t")), path(&at("no/{}.o"))), "cannot write `", 2),
        (format!("{}={}", path(&at("t")), path(&at("d"))), "cannot write `", 255),
    ] {
        let command = shell(&format!("-j2 --template {flag}"), "echo {}", &["a", "b"]);
        let ended = Run::start(&command).wait().exit_code(code);
        if code == 255 {
            ended.error_line(&[why]);
        } else {
            assert!(ended.err.contains(why), "{ended:?}");
        }
    }
    assert_eq!(files(dir.path()), 1, "a part is left");
}

#[test]
fn working_directories_are_created_and_cleaned_up() {
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    let flags = format!("--wd {}", path(&at("new/{}")));
    Run::start(&shell(&flags, "touch x {}", &["a", "b"])).wait().exit_code(0);
    // The argument is a last word.
    assert_eq!(files(&at("new/b")), 2);
    for (more, left) in [("", 2), ("--cleanup", 0)] {
        let own = at(&format!("tmp{more}"));
        fs::create_dir(&own).expect("create directory");
        let flags = format!("--no-record --tmpdir {} {more} --wd ...", path(&own));
        Run::start(&shell(&flags, "touch {}", &["a", "b"])).wait().exit_code(0);
        assert_eq!(files(&own), left);
        assert_eq!(fs::read_dir(&own).expect("list directory").count(), left);
    }
}

//! Settings of `minder run` from files and variables, and `minder config`.

use std::path::PathBuf;

use minder::Command;
use minder_os::files::create_private_dir;

use super::{Run, RunOutput, file, minder, path, temp_dir};

/// A project and the user's configuration, each with a file or without.
struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new(project: &str, user: &str) -> Self {
        let scene = Self { dir: temp_dir() };
        for (dir, text) in [("project", project), ("user", user)] {
            create_private_dir(&scene.at(dir)).expect("create directory");
            if !text.is_empty() {
                std::fs::write(scene.at(dir).join("minder.toml"), text).expect("write file");
            }
        }
        std::fs::create_dir(scene.at("project/below")).expect("create directory");
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns `minder` in a directory below that of the project.
    fn minder(&self, line: &str) -> Command {
        let mut command = minder(line);
        command.current_dir(self.at("project/below"));
        command.env("MINDER_CONFIG_DIR", self.at("user")).env("MINDER_STATE_DIR", self.at("state"));
        command
    }

    fn run(&self, line: &str) -> RunOutput {
        Run::start(&self.minder(line)).wait()
    }

    /// Returns the rows of a table of `minder config`, as `setting=value`.
    fn settings(&self, line: &str) -> Vec<String> {
        let text = self.run(line).exit_code(0).stderr("").text();
        let rows = text.lines().skip(1).take_while(|line| !line.is_empty());
        rows.map(|row| row.split_whitespace().take(2).collect::<Vec<_>>().join("=")).collect()
    }
}

const ECHO: &str = "CHILD echo-args ::: a";

#[test]
fn nearest_project_file_is_used_and_overrides_the_users() {
    let scene = Scene::new("[run]\ntagstring = 'project'\n", "[run]\ntagstring = 'user'\nquiet = true\n");
    let run = |scene: &Scene| scene.run(&format!("run {ECHO}")).exit_code(0).stderr("").text();
    assert_eq!(run(&scene), "project\t\"a\"\n");
    std::fs::write(scene.at("project/below/minder.toml"), "[run]\ntagstring = 'near'\n").expect("write file");
    assert_eq!(run(&scene), "near\t\"a\"\n");
    assert_eq!(scene.settings("config"), ["tagstring=near", "quiet=true"]);
    std::fs::remove_file(scene.at("project/below/minder.toml")).expect("remove file");
    std::fs::remove_file(scene.at("project/minder.toml")).expect("remove file");
    assert_eq!(run(&scene), "user\t\"a\"\n");
}

#[test]
fn typed_flags_override_variables_and_variables_override_files() {
    let scene = Scene::new("[run]\ntagstring = 'file'\n", "");
    let mut command = scene.minder(&format!("run {ECHO}"));
    command.env("MINDER_RUN_TAGSTRING", "variable");
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "variable\t\"a\"\n");
    let mut command = scene.minder(&format!("run --tagstring typed {ECHO}"));
    command.env("MINDER_RUN_TAGSTRING", "variable");
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "typed\t\"a\"\n");
    let mut command = scene.minder(&format!("run --no-config {ECHO}"));
    command.env("MINDER_RUN_TAGSTRING", "variable");
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "\"a\"\n");
}

#[test]
fn settings_that_a_stronger_flag_excludes_are_dropped() {
    for (setting, typed, out) in [
        ("keep-order = true", "-u", "\"a\"\n"),
        ("ungroup = true", "--tag", "a\t\"a\"\n"),
        ("tag = true", "--tagstring x", "x\t\"a\"\n"),
        ("tagstring = 'x'", "--tag", "a\t\"a\"\n"),
        ("line-buffer = true", "-k", "\"a\"\n"),
        ("quiet = true", "--status-level none", "\"a\"\n"),
        ("quiet = true", "--bar", "\"a\"\n"),
        ("no-keep-order = true", "-k", "\"a\"\n"),
        ("retry-delay = 1", "", "\"a\"\n"),
    ] {
        let scene = Scene::new("", &format!("[run]\n{setting}\n"));
        assert_eq!(scene.run(&format!("run {typed} {ECHO}")).exit_code(0).text(), out, "{setting} {typed}");
    }
    // Flags that were typed still exclude each other.
    let scene = Scene::new("[run]\ntag = true\n", "");
    let err = scene.run(&format!("run -k -u {ECHO}")).exit_code(255).err;
    assert!(err.contains("`--keep-order` cannot be used with"), "{err}");
}

#[test]
fn false_turns_off_what_a_weaker_source_turns_on() {
    let scene = Scene::new("[run]\ntag = false\ntagstring = false\n", "[run]\ntag = true\ntagstring = 'x'\n");
    assert_eq!(scene.run(&format!("run {ECHO}")).exit_code(0).text(), "\"a\"\n");
    let scene = Scene::new("", "[run]\ntag = true\n");
    let mut command = scene.minder(&format!("run {ECHO}"));
    assert_eq!(Run::start(command.env("MINDER_RUN_TAG", "no")).wait().exit_code(0).text(), "\"a\"\n");
}

#[test]
fn profile_overrides_the_table_run_of_its_file() {
    let project = "[run]\ntagstring = 'p'\n[profile.ci]\ntagstring = 'ci'\n";
    let scene = Scene::new(project, "[profile.night]\nquiet = true\n");
    assert_eq!(scene.run(&format!("run --profile ci {ECHO}")).exit_code(0).text(), "ci\t\"a\"\n");
    let mut command = scene.minder(&format!("run {ECHO}"));
    command.env("MINDER_RUN_PROFILE", "ci");
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "ci\t\"a\"\n");
    assert_eq!(scene.settings("config --profile night"), ["tagstring=p", "quiet=true"]);
    scene
        .run(&format!("run --profile nihgt {ECHO}"))
        .exit_code(255)
        .stderr("minder: unknown profile `nihgt`; did you mean `night`? The profiles are ci, night\n");
    Run::start(command.env("MINDER_RUN_PROFILE", "other")).wait().exit_code(255).stderr(
        "minder: cannot use `MINDER_RUN_PROFILE`: unknown profile `other`: the profiles are ci, night\n",
    );
    Scene::new("", "")
        .run(&format!("run --profile x {ECHO}"))
        .exit_code(255)
        .stderr("minder: unknown profile `x`: no minder.toml defines one\n");
}

#[test]
fn errors_in_a_file_name_its_line() {
    for (text, line, why) in [
        ("[run]\njbos = 2", 2, "unknown setting `jbos`; did you mean `jobs`?"),
        ("[run]\nsilent = true", 2, "unknown setting `silent`; did you mean `quiet`?"),
        ("[run]\nj = 2", 2, "unknown setting `j`; did you mean `jobs`?"),
        ("[run]\nX = true", 2, "`-X` has no long name, and can only be typed"),
        ("[rum]\n", 1, "unknown table `rum`; did you mean `run`?"),
        ("jobs = 3", 1, "unknown table `jobs`; put it below [run]"),
        ("run = 3", 1, "`run` must be a table"),
        ("[run]\n\ntag = 1", 3, "`tag` is true or false"),
        ("[run]\r\njobs = true", 2, "`jobs` requires a value"),
        ("[run]\njobs = [1, 2]", 2, "`jobs` takes one value, not an array"),
        ("[run]\njobs = 0x10", 2, "`jobs` cannot be this number"),
        ("[run]\ntimeout = 1979-05-27", 2, "`timeout` cannot be a date"),
        ("[run]\ntagstring = \"a\\u0000\"", 2, "contains a NUL character"),
        ("[run]\nretries = 'x'", 2, "--retries: invalid number `x`"),
        ("[run]\nstatus-level = 'x'", 2, "invalid value `x` for --status-level"),
        ("[run]\nhalt = 'x'", 2, "--halt: invalid value `x`"),
        ("[run]\nkeep-order = true\nungroup = true", 3, "cannot be used with"),
        ("[run]\nquiet = true", 2, "`quiet` may not be set by a project's file: the run would not say"),
        ("[run]\nfailure-output = 'never'", 2, "`failure-output` may not be set by a project's file"),
        ("[profile.x]\nhalt = 'now,done=1'", 2, "`halt` may not be set by a project's file: the run would"),
        ("[run]\ntagstring = \"\\u001b[2J\"", 2, "`tagstring` may not be set by a project's file: it has"),
        ("[run]\nresume = 'x'", 2, "`resume` can only be typed: it belongs to one command line"),
        ("[run]\nprofile = 'x'", 2, "`profile` can only be typed: it decides which settings are read"),
        ("[run]\njobs = 1\njobs = 2", 3, "duplicate key"),
        ("[run\n", 1, "unclosed table"),
        ("[profile.x]\njbos = 1", 2, "unknown setting `jbos`"),
        (
            "[run]\nshell = 'x'",
            2,
            "`shell` may not be set by a project's file: it selects the program that runs",
        ),
        ("[run]\nenv = ['A=1']", 2, "`env` may not be set by a project's file"),
        ("[run]\njobs = 'procs'", 2, "`jobs` may not be set by a project's file: it names a file"),
    ] {
        let scene = Scene::new(text, "");
        let place = format!("cannot use `{}`: line {line}: ", path(&scene.at("project/minder.toml")));
        scene.run(&format!("run {ECHO}")).exit_code(255).error_line(&[&place, why]);
        scene.run("config").exit_code(255).error_line(&[&place, why]);
    }
}

#[test]
fn unsuitable_contents_are_refused() {
    let scene = Scene::new("", "");
    let at = scene.at("project/minder.toml");
    std::fs::write(&at, b"[run]\ntagstring = '\xff'\n").expect("write file");
    scene.run(&format!("run {ECHO}")).exit_code(255).error_line(&["line 2: it is not UTF-8"]);
    std::fs::write(&at, vec![b'\n'; (1 << 20) + 1]).expect("write file");
    scene.run(&format!("run {ECHO}")).exit_code(255).error_line(&["larger than 1 MiB"]);
    std::fs::write(&at, "[run]\n".to_owned() + &"#".repeat((1 << 20) - 6)).expect("write file");
    scene.run(&format!("run {ECHO}")).exit_code(0).stderr("");
    let profiles: String = (0..101).map(|number| format!("[profile.p{number}]\n")).collect();
    std::fs::write(&at, profiles).expect("write file");
    scene.run(&format!("run {ECHO}")).exit_code(255).error_line(&["more than 100 profiles"]);
    std::fs::write(&at, "\u{feff}[run]\r\ntag = true\r\n").expect("write file");
    assert_eq!(scene.run(&format!("run {ECHO}")).exit_code(0).stderr("").text(), "a\t\"a\"\n");
    // An error that only the whole command line shows names the source, too.
    std::fs::write(&at, "[run]\nsuccess-output = 'final'\n").expect("write file");
    scene
        .run(&format!("run --results r.csv {ECHO}"))
        .exit_code(255)
        .error_line(&["`--success-output` is set by", "minder.toml:2)"]);
}

#[test]
fn the_users_file_may_set_what_a_projects_may_not() {
    let scene = Scene::new("", "[run]\nenv = ['A=1', 'B=2']\n");
    assert_eq!(scene.settings("config"), ["env=A=1,"]);
    if cfg!(unix) {
        let mut command = scene.minder("run");
        command.args(["echo $A$B {}", ":::", "a"]);
        assert_eq!(Run::start(&command).wait().exit_code(0).stderr("").text(), "12 a\n");
    }
    // A setting changes the command of no run.
    for (setting, line) in [
        ("env = ['A={}']", "run -k echo ::: a"),
        ("env = ['A={name}']", "run --header : -k echo ::: name a"),
        ("wd = '{name}'", "run --header : -k echo ::: name a"),
    ] {
        let scene = Scene::new("", &format!("[run]\n{setting}\n"));
        let flag = format!("`--{}`", &setting[..setting.find(' ').expect("find the name")]);
        let file = scene.at("user/minder.toml");
        scene.run(line).exit_code(255).error_line(&[&flag, "would take it from the command", path(&file)]);
    }
    // In its own directory it is not a project's.
    let mut command = scene.minder("config");
    let text = Run::start(command.current_dir(scene.at("user"))).wait().exit_code(0).stderr("").text();
    assert!(text.contains("project file: none"), "{text}");
}

#[test]
fn errors_about_a_flag_name_the_variable_that_sets_it() {
    let scene = Scene::new("", "");
    let mut command = scene.minder(&format!("run {ECHO}"));
    Run::start(command.env("MINDER_RUN_NAMES", "a,b"))
        .wait()
        .exit_code(255)
        .error_line(&["--names has 2 names for 1 job (`--names` is set by MINDER_RUN_NAMES)"]);
}

#[test]
fn variables_are_checked() {
    let scene = Scene::new("", "");
    for (name, value, err) in [
        ("MINDER_RUN_JBOS", "3", "unknown variable `MINDER_RUN_JBOS`; did you mean `MINDER_RUN_JOBS`?"),
        ("MINDER_RUN_SILENT", "1", "unknown variable `MINDER_RUN_SILENT`; did you mean `MINDER_RUN_QUIET`?"),
        ("MINDER_RUN_ZZZZZZ", "1", "unknown variable `MINDER_RUN_ZZZZZZ`: no flag"),
        ("MINDER_RUN_TAG", "maybe", "cannot use `MINDER_RUN_TAG`: `tag` is true or false"),
        ("MINDER_RUN_JOBS", "x", "cannot use `MINDER_RUN_JOBS`: -j: invalid value `x`"),
        ("MINDER_RUN_DRY_RUN", "1", "cannot use `MINDER_RUN_DRY_RUN`: `dry-run` can only be typed"),
    ] {
        let mut command = scene.minder(&format!("run {ECHO}"));
        Run::start(command.env(name, value)).wait().exit_code(255).error_line(&[err]);
    }
    let mut command = scene.minder(&format!("run {ECHO}"));
    command.env("MINDER_RUN_TAG", "1").env("MINDER_RUN_JOBS", "");
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "a\t\"a\"\n");
}

#[test]
#[cfg(unix)] // Bytes that are not UTF-8.
fn variables_may_have_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new("", "");
    let value = std::ffi::OsStr::from_bytes(b"\xff");
    let mut command = scene.minder(&format!("run {ECHO}"));
    assert_eq!(
        Run::start(command.env("MINDER_RUN_TAGSTRING", value)).wait().exit_code(0).out,
        b"\xff\t\"a\"\n"
    );
    let mut command = scene.minder(&format!("run {ECHO}"));
    Run::start(command.env("MINDER_RUN_GRACE", value))
        .wait()
        .exit_code(255)
        .error_line(&["cannot use `MINDER_RUN_GRACE`", "UTF-8"]);
}

#[test]
fn other_command_lines_have_no_settings() {
    let scene = Scene::new("[run]\njbos = 2\n", "[run]\njbos = 2\n");
    for line in ["parallel CHILD echo-args ::: a", "xargs CHILD echo-args", "run --help", "log"] {
        let mut command = scene.minder(line);
        let ended = Run::start(command.env("MINDER_RUN_JBOS", "1")).wait();
        assert!(!ended.err.contains("jbos") && !ended.err.contains("JBOS"), "{line}: {}", ended.err);
    }
}

#[test]
fn resumed_run_repeats_the_recorded_settings() {
    let scene = Scene::new("[run]\ntagstring = 'first'\n", "");
    let marker = scene.at("marker");
    let mut command = scene.minder("run -j1");
    command.args(super::script("test -e {}; exit $?")).args([":::", path(&marker)]);
    if cfg!(unix) {
        Run::start(&command).wait().exit_code(1);
        std::fs::write(scene.at("project/minder.toml"), "[run]\njbos = 'second'\n").expect("write file");
        std::fs::write(&marker, "").expect("write file");
        let mut command = scene.minder("retry last");
        command.env("MINDER_RUN_JOBS", "x");
        Run::start(&command).wait().exit_code(0);
        let manifests: String = std::fs::read_dir(scene.at("state/runs"))
            .expect("list runs")
            .map(|run| file(&run.expect("get name").path().join("manifest.json")))
            .collect();
        assert!(manifests.contains("--tagstring=first"), "{manifests}");
        scene
            .run("run --profile x --resume last")
            .exit_code(255)
            .error_line(&["a run is resumed with its recorded settings: leave out `--profile`"]);
    }
}

#[test]
#[cfg(unix)] // The backend `poll`.
fn minder_backend_overrides_a_file() {
    let scene = Scene::new("[run]\nbackend = 'poll'\n", "");
    assert!(scene.run("config").text().contains("minder.toml:2"));
    let mut command = scene.minder("config");
    let text = Run::start(command.env("MINDER_BACKEND", "poll")).wait().exit_code(0).text();
    assert!(
        text.contains("poll   MINDER_BACKEND") && text.contains("overridden by MINDER_BACKEND"),
        "{text}"
    );
}

#[test]
fn dry_run_uses_settings_and_quiet_hides_the_message_about_a_file() {
    let scene = Scene::new("[run]\nmax-chars = 1000000\norder = 'given'\n", "[run]\nmax-args = 2\n");
    let text = scene.run("run --dry-run echo ::: a b c").exit_code(0).stderr("").text();
    assert_eq!(text, "echo a b\necho c\n");
    let scene = Scene::new("", "");
    std::fs::create_dir(scene.at("project/minder.toml")).expect("create directory");
    scene.run(&format!("run --quiet {ECHO}")).exit_code(0).stderr("");
    scene.run(&format!("run {ECHO}")).exit_code(0).stderr_contains("is ignored: it is not a regular file");
}

#[test]
fn config_prints_json() {
    let scene = Scene::new("[run]\nkeep-order = true\n", "[run]\nkeep-order = false\n");
    let text = scene.run("config --json").exit_code(0).stderr("").text();
    for part in ["\"setting\": \"keep-order\"", "\"line\": 2", "overridden by ", "\"profile\": null"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
#[cfg(unix)] // Owners, modes, links and named pipes.
fn files_that_others_control_are_ignored() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let text = "[run]\ntag = true\n";
    let ignored = |scene: &Scene, why: &str| {
        let at = scene.at("project/minder.toml");
        let ended = scene.run(&format!("run {ECHO}")).exit_code(0);
        assert_eq!(ended.text(), "\"a\"\n", "{why}");
        ended.stderr(&format!("minder: `{}` is ignored: {why}\n", path(&at)));
        let text = scene.run("config").exit_code(0).text();
        assert!(text.contains(why), "{text}");
    };
    let scene = Scene::new(text, "");
    let at = scene.at("project/minder.toml");
    std::fs::set_permissions(&at, PermissionsExt::from_mode(0o664)).expect("set mode");
    ignored(&scene, "other users may write to it (chmod go-w)");
    std::fs::set_permissions(&at, PermissionsExt::from_mode(0o644)).expect("set mode");
    if super::is_root() {
        chown(&at, Some(1), None).expect("change owner");
        ignored(&scene, "it belongs to another user");
    }
    let replace = |make: &dyn Fn(&std::path::Path)| {
        let _ = std::fs::remove_file(&at);
        make(&at);
    };
    replace(&|at| minder_os::files::create_fifo(at).expect("create named pipe"));
    ignored(&scene, "it is not a regular file");
    replace(&|at| symlink("/dev/zero", at).expect("create link"));
    ignored(&scene, "it is a symbolic link");
    replace(&|at| symlink("minder.toml", at).expect("create link"));
    ignored(&scene, "it is a symbolic link");
    std::fs::remove_file(&at).expect("remove link");
    // The user may link to the file.
    std::fs::write(scene.at("real"), text).expect("write file");
    std::fs::set_permissions(scene.at("real"), PermissionsExt::from_mode(0o600)).expect("set mode");
    symlink(scene.at("real"), scene.at("user/minder.toml")).expect("create link");
    assert_eq!(scene.run(&format!("run {ECHO}")).exit_code(0).stderr("").text(), "a\t\"a\"\n");
    std::fs::remove_file(scene.at("user/minder.toml")).expect("remove link");
    symlink("minder.toml", scene.at("user/minder.toml")).expect("create link");
    scene.run(&format!("run {ECHO}")).exit_code(255).error_line(&["cannot use `", "user/minder.toml`"]);
}

#[test]
#[cfg(unix)] // A file name with a newline.
fn odd_directories_are_searched() {
    let scene = Scene::new("[run]\ntag = true\n", "");
    let odd = scene.at("project/below/odd\n name '\"");
    std::fs::create_dir(&odd).expect("create directory");
    let mut command = scene.minder(&format!("run {ECHO}"));
    assert_eq!(Run::start(command.current_dir(&odd)).wait().exit_code(0).text(), "a\t\"a\"\n");
    std::fs::write(odd.join("minder.toml"), "[run]\njbos = 1\n").expect("write file");
    Run::start(&command).wait().exit_code(255).error_line(&["odd\\n name", "line 2"]);
}

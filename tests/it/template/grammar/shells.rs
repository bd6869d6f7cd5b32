//! The shells that run the lines, under each name that changes their behaviour.

use std::path::{Path, PathBuf};

use minder_template::{Job, Options, Template};

use super::sandbox::{Ground, Sandbox};
use super::values::MARK;

/// A shell and its arguments.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    /// The family whose names and constructs it has.
    pub(super) family: &'static str,
    pub(super) program: PathBuf,
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// The program and arguments before a line.
    pub(super) head: Vec<std::ffi::OsString>,
}

/// Names, families, and whether it is also tried under the name `sh`.
const KNOWN: [(&str, &str, bool); 11] = [
    ("dash", "dash", false),
    ("bash", "bash", true),
    ("busybox", "busybox", false),
    ("zsh", "zsh", true),
    ("ksh93", "ksh", true),
    ("ksh", "ksh", false),
    ("mksh", "mksh", true),
    ("lksh", "mksh", false),
    ("oksh", "mksh", false),
    ("posh", "posh", false),
    ("yash", "yash", false),
];

/// The directories that may contain shells.
const DIRS: [&str; 3] = ["/bin", "/usr/bin", "/usr/local/bin"];

/// Returns the shells of this machine. Prints which ones are missing, and which minder refuses.
pub(super) fn found(ground: &Ground) -> Vec<Subject> {
    let mut subjects = Vec::new();
    let mut absent = Vec::new();
    let mut known = Vec::new();
    for (name, family, called_sh) in KNOWN {
        let places = DIRS.map(|dir| Path::new(dir).join(name));
        let Some(program) = places.into_iter().find(|path| path.exists()) else {
            absent.push(name);
            continue;
        };
        // `ksh` is often another name of `ksh93` or `mksh`.
        let real = program.canonicalize().unwrap();
        if name != "busybox" && known.contains(&real) {
            continue;
        }
        known.push(real);
        let mut add = |name: String, program: PathBuf, variables| {
            subjects.push(Subject { name, family, program, variables, head: Vec::new() });
        };
        add(name.to_owned(), program.clone(), &[] as &[(&str, &str)]);
        if called_sh {
            add(format!("{name} as sh"), ground.called_sh(name, &program), &[]);
        }
        if name == "bash" {
            add("bash --posix".to_owned(), program.clone(), &[("POSIXLY_CORRECT", "1")]);
        }
        if ["bash", "zsh", "ksh93"].contains(&name) {
            add(format!("{name}, UTF-8"), program, &[("LC_ALL", "C.UTF-8")]);
        }
    }
    let mut refused = Vec::new();
    subjects.retain_mut(|subject| {
        let options = Options { shell: Some(subject.program.clone().into()), ..Options::default() };
        let columns = ["x".into()];
        let job = Job { columns: &columns, ..Job::default() };
        let Ok(template) = Template::parse(&["echo {} ".into()], &options) else {
            refused.push(subject.name.clone());
            return false;
        };
        let argv = template.argv(&job).unwrap();
        let line = argv.iter().position(|word| word == "-c").expect("find `-c`");
        subject.head = argv[..=line].to_vec();
        true
    });
    eprintln!("shells not tried: not here: {}; refused by minder: {}", absent.join(", "), refused.join(", "));
    let mut sandbox = Sandbox::new(ground, 99);
    subjects.retain(|subject| works(subject, &mut sandbox));
    subjects
}

/// Returns whether an evaluated value leaves its mark in this shell, and programs log their
/// arguments. Otherwise nothing could fail.
fn works(subject: &Subject, sandbox: &mut Sandbox) -> bool {
    let mut argv = subject.head.clone();
    argv.extend(["prog a \"$1\"; eval \"$1\"".into(), "sh".into(), format!("$(:>{MARK})").into()]);
    let mut trace = sandbox.run(&argv, subject.variables);
    // A program that was just written cannot be started while another thread's child has it open for
    // writing, from its fork to its exec (ETXTBSY of execve(2)).
    for _ in 0..5 {
        if trace.calls.is_empty() {
            minder_os::time::pause(std::time::Duration::from_millis(100), None);
            trace = sandbox.run(&argv, subject.variables);
        }
    }
    assert!(trace.marked, "{}: a value that is evaluated leaves no mark", subject.name);
    let call = [b"a".to_vec(), format!("$(:>{MARK})").into_bytes()];
    // zsh starts `cat` for a redirection without a command.
    assert_eq!(trace.calls[0], call, "{}: a program's arguments are not reported", subject.name);
    true
}

//! The tests of the gem, as a step of `cargo xtask test`.

use super::{GEM, Profile, extension, gem, sources};
use crate::install::Missing;
use crate::part::Part;
use crate::{install, run, tree};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The checks that were left out, and the closing lines of the test programs.
pub(crate) type Checked = (Vec<Missing>, Vec<String>);

/// The files of the quick part: children, the scheduler, and a guardian.
const QUICK: [&str; 7] = [
    "test_child.rb",
    "test_children.rb",
    "test_children_process.rb",
    "test_guardian.rb",
    "test_run.rb",
    "test_scheduler.rb",
    "test_waiting.rb",
];

/// Returns the test files, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("test_") && name.ends_with(".rb") {
            found.push(directory.join(name));
        }
    }
    found.sort();
    Ok(found)
}

/// Runs the tests of the gem. The rest includes Ruby's own tests of schedulers, and a trial installation.
pub(crate) fn check(part: Part) -> Result<Checked> {
    if cfg!(not(target_os = "linux")) {
        return Ok((vec!["the gem is tested on Linux; hint: run it there".into()], Vec::new()));
    }
    if let Err(missing) = super::ready().and_then(|()| install::apt(&["ruby-test-unit"])) {
        return Ok((vec![missing], Vec::new()));
    }
    let library = extension(Profile::Dev)?;
    let tests = tree::root().join(GEM).join("test");
    let mut left_out = Vec::new();
    let mut all = run::with_default_signals("ruby");
    all.arg("-W1").arg("-I").arg(&library);
    let files = part.of(files(&tests)?, &QUICK)?;
    all.args(files.iter().flat_map(|file| ["-r".as_ref(), file.as_os_str()])).args(["-e", ""]);
    let output = run::run_captured(&mut all, &tree::target_dir().join("ruby.log"))?;
    let closing = output.lines().filter(|line| line.contains(" assertions, ")).map(str::to_owned).collect();
    if !part.has_rest() {
        return Ok((left_out, closing));
    }
    match sources() {
        Ok(sources) => {
            let mut own = run::with_default_signals("ruby");
            own.arg("-I").arg(&library).arg(tests.join("conformance/run.rb")).arg(sources);
            run::run(&mut own)?;
        }
        Err(missing) => left_out.push(missing),
    }
    gem::try_gem(&gem::build()?)?;
    Ok((left_out, closing))
}

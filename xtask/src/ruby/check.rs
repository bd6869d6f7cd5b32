//! The tests of the gem, as a step of `cargo xtask test`.

use super::{GEM, Profile, extension, gem, sources};
use crate::install::Missing;
use crate::{install, run, tree};
use anyhow::Result;

/// What was left out, and the closing lines of the test programs.
pub(crate) type Checked = (Vec<Missing>, Vec<String>);

/// Runs the tests of the gem, Ruby's own tests of schedulers, and a trial installation.
pub(crate) fn check() -> Result<Checked> {
    if cfg!(not(target_os = "linux")) {
        return Ok((vec!["the gem is tested on Linux; cure: such a machine".into()], Vec::new()));
    }
    if let Err(missing) = super::ready().and_then(|()| install::apt(&["ruby-test-unit"])) {
        return Ok((vec![missing], Vec::new()));
    }
    let library = extension(Profile::Dev)?;
    let tests = tree::root().join(GEM).join("test");
    let mut left_out = Vec::new();
    let mut all = run::with_default_signals("ruby");
    all.arg("-W1").arg("-I").arg(&library).arg(tests.join("all.rb"));
    let output = run::run_captured(&mut all, &tree::target_dir().join("ruby.log"))?;
    let closing = output.lines().filter(|line| line.contains(" assertions, ")).map(str::to_owned).collect();
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

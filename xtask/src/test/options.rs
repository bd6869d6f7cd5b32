//! The command line of `cargo xtask test`.

use super::{STEPS, Side, Step, step};
use crate::part::Part;
use anyhow::Result;
use lexopt::prelude::*;

/// The options of the command line.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The names of the steps to run; all if empty.
    pub(super) only: Vec<String>,
    pub(super) part: Part,
    /// Every case of the comparison with GNU parallel, every test under Wine, every target.
    pub(super) full: bool,
    /// One step after the other, each with its output as it arrives.
    pub(super) sequential: bool,
    pub(super) list: bool,
}

impl Options {
    pub(super) fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut part = None;
        let mut args = lexopt::Parser::from_args(args);
        while let Some(arg) = args.next()? {
            match arg {
                Long("all") => part = Some(Part::All),
                Long("rest") => part = Some(Part::Rest),
                Long("full") => options.full = true,
                Long("sequential") => options.sequential = true,
                Long("list") => options.list = true,
                Long("only") => options.only.push(args.value()?.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        for name in &options.only {
            step(name)?;
        }
        // A step that is named runs as a whole.
        let is_whole = options.full || !options.only.is_empty();
        options.part = part.unwrap_or(if is_whole { Part::All } else { Part::Quick });
        Ok(options)
    }

    /// Returns the chosen steps of one side, in the table's order.
    pub(super) fn steps(&self, side: Side) -> Vec<&'static Step> {
        let is_named = |step: &&Step| self.only.is_empty() || self.only.iter().any(|name| name == step.name);
        let is_asked = |step: &&Step| step.part.is_in(self.part);
        STEPS.iter().filter(|step| step.side == side).filter(is_named).filter(is_asked).collect()
    }

    /// Returns the words with which another process runs these steps.
    pub(super) fn words(&self, steps: &[&Step]) -> Vec<&'static str> {
        let mut words = vec!["--sequential"];
        match self.part {
            Part::Quick => {}
            Part::Rest => words.push("--rest"),
            Part::All => words.push("--all"),
        }
        if self.full {
            words.push("--full");
        }
        words.extend(steps.iter().flat_map(|step| ["--only", step.name]));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options> {
        Options::parse(&args.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn chosen(args: &[&str]) -> Vec<&'static str> {
        let options = parse(args).unwrap();
        let both = options.steps(Side::First).into_iter().chain(options.steps(Side::Second));
        both.map(|step| step.name).collect()
    }

    #[test]
    fn only_chooses_steps_in_the_order_of_the_table() {
        assert_eq!(chosen(&["--only", "doc", "--only=fmt"]), ["fmt", "doc"]);
        assert_eq!(chosen(&["--only=wine", "--full", "--only=fmt"]), ["fmt", "wine"]);
        assert_eq!(chosen(&["--all"]).len(), STEPS.len());
        assert!(parse(&["--only", "nothing"]).is_err());
        assert!(parse(&["doc"]).is_err());
    }

    #[test]
    fn default_and_rest_together_are_all() {
        let quick = chosen(&[]);
        let rest = chosen(&["--rest"]);
        for step in &STEPS {
            let is_in = (quick.contains(&step.name), rest.contains(&step.name));
            let expected = (step.part.has_quick(), step.part.has_rest());
            assert_eq!(is_in, expected, "{}", step.name);
        }
        assert_eq!(quick, ["fmt", "tidy", "test", "c", "ruby", "emacs", "python"]);
        assert_eq!(chosen(&["--rest", "--only=test", "--only=c"]), ["c"]);
    }

    #[test]
    fn part_depends_on_the_other_options() {
        let part = |args: &[&str]| parse(args).unwrap().part;
        assert_eq!(part(&[]), Part::Quick);
        assert_eq!(part(&["--sequential"]), Part::Quick);
        assert_eq!(part(&["--only=ruby"]), Part::All);
        assert_eq!(part(&["--only=ruby", "--rest"]), Part::Rest);
        assert_eq!(part(&["--full"]), Part::All);
        assert_eq!(part(&["--full", "--rest"]), Part::Rest);
    }

    #[test]
    fn second_process_runs_the_same_part() {
        for args in [&["--all"][..], &["--rest"], &["--full"], &["--only=wine", "--only=loom"]] {
            let options = parse(args).unwrap();
            let steps = options.steps(Side::Second);
            let again = parse(&options.words(&steps)).unwrap();
            assert_eq!((again.part, again.full), (options.part, options.full), "{args:?}");
            let names = |steps: Vec<&Step>| steps.iter().map(|step| step.name).collect::<Vec<_>>();
            assert_eq!(names(again.steps(Side::Second)), names(steps), "{args:?}");
        }
    }
}

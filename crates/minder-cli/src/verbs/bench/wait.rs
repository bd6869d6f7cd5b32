//! `minder bench wait`: one wait for one of many objects.

use std::process::ExitCode;

use anyhow::{Result, bail};

use super::{Desk, Point, Subject, chosen, conduct};
use crate::flags::WaitFlags;
use crate::report::chart::Curve;

pub(super) fn run(flags: &WaitFlags) -> Result<ExitCode> {
    let subject = Subject {
        operation: "wait",
        size: "objects",
        sizes: "objects",
        kinds: false,
        whose: "all threads",
        title: "Waiting for one of many objects",
        axis: "objects that are waited for",
        published: vec![published()],
    };
    let mechanisms = chosen(&minder::backends().collect::<Vec<_>>(), &flags.measure)?;
    let sizes = &flags.objects.0;
    let points: Vec<Point> = sizes
        .iter()
        .flat_map(|size| mechanisms.iter().map(|mechanism| Point { mechanism, kind: None, size: *size }))
        .collect();
    let desk = Desk::enter()?;
    conduct(&subject, &flags.measure, desk, &points, |_, _| bail!("not yet"))
}

/// The curve that the designs of `pool` are known by.
fn published() -> Curve {
    let points = vec![(2.0, 1e3), (64.0, 1e3), (65.0, 10e3), (2048.0, 130e3)];
    let label = "published: pool of waiter threads, Emacs on Windows, 6-core laptop";
    Curve { label: label.to_owned(), points, published: true }
}

//! Kills of process trees: one that a task waits for, and one after a drop.

use minder::{ExitInfo, KillStep, Result, Termination};
use tokio::runtime::Handle;
use tokio::time::{sleep_until, timeout_at};

use crate::exit::ExitWatch;

/// Kills a child with everything that it started, and waits until all of it has exited.
pub(crate) async fn kill(
    child: &mut minder::Child,
    watch: &mut ExitWatch,
    how: Termination,
) -> Result<ExitInfo> {
    let mut kill = child.start_kill(how)?;
    loop {
        match child.advance_kill(&mut kill)? {
            KillStep::Finished(exit) => return Ok(exit),
            KillStep::Running(at) => drop(timeout_at(at.into(), watch.changed()).await),
            KillStep::Exited(at) => sleep_until(at.into()).await,
            _ => (),
        }
    }
}

/// Kills a child whose future was dropped. A task of the runtime reaps it; without a runtime, this call
/// waits for its end.
pub(crate) fn kill_dropped(mut child: minder::Child) {
    // The tree is stopped and killed here and now. What follows only waits for its end.
    let _ = child.kill(Termination::IMMEDIATE);
    let dropped = Dropped(Some(child));
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(dropped.reap());
    }
}

/// A child whose future was dropped.
struct Dropped(Option<minder::Child>);

impl Dropped {
    async fn reap(mut self) {
        let Some(child) = &mut self.0 else { return };
        let mut watch = ExitWatch::new(child);
        // An error means that the child outlives its kill. The library reaps it later.
        let _ = kill(child, &mut watch, Termination::IMMEDIATE).await;
        self.0 = None;
    }
}

/// The runtime ended before the child.
impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill_and_wait(Termination::IMMEDIATE);
        }
    }
}

//! Kills of process trees: one that a task waits for, and one after a drop.

use minder::{ExitInfo, Kill, KillStep, Result, Termination};
use tokio::runtime::Handle;
use tokio::time::{sleep_until, timeout_at};

use crate::exit::ExitWatch;

/// Continues a kill of a child and everything that it started, until all of it has exited.
pub(crate) async fn finish_kill(
    mut kill: Kill,
    child: &mut minder::Child,
    watch: &mut ExitWatch,
) -> Result<ExitInfo> {
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
    // The whole tree is stopped and killed here and now. To look for what is left of it, as other kills do,
    // would read the process table once for each of many futures that are dropped together.
    let is_killed = child.kill(Termination::IMMEDIATE).is_ok();
    let dropped = Dropped(Some(child));
    // A child that may not be killed, because it runs as another user, is reaped by the library later.
    if let (true, Ok(runtime)) = (is_killed, Handle::try_current()) {
        runtime.spawn(dropped.reap());
    }
}

/// A child whose future was dropped.
struct Dropped(Option<minder::Child>);

impl Dropped {
    async fn reap(mut self) {
        let Some(child) = &mut self.0 else { return };
        let mut watch = ExitWatch::new(child);
        while let Ok(None) = child.try_wait() {
            watch.changed().await;
        }
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

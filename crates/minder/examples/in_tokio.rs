//! Runs 1,000 children inside tokio, on its thread: tokio watches the descriptor of a set.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::time::Duration;

use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions, Stdio};
#[cfg(unix)]
use tokio::io::unix::AsyncFd;

const CHILDREN: usize = 1000;
const AT_ONCE: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("child") {
        println!("text");
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let bytes = runtime.block_on(run_children())?;
    println!("tokio: {CHILDREN} children wrote {bytes} bytes");
    Ok(())
}

async fn run_children() -> Result<usize, Box<dyn std::error::Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut set = ChildSet::new(ChildSetOptions::new())?;
    // Before tokio 1.54 there is only this function. An `OwnedFd` is what `register` asks for.
    #[cfg(unix)]
    #[expect(deprecated, reason = "`AsyncFd::register` is unsafe")]
    let handle = AsyncFd::new(set.poll_handle()?.try_clone_to_owned()?)?;
    let mut started = 0;
    let mut bytes = 0;
    while started < CHILDREN || !set.is_empty() {
        while started < CHILDREN && set.len() < AT_ONCE {
            set.spawn(&command, SpawnOptions::new())?;
            started += 1;
        }
        // Other tasks of the runtime run during this wait.
        #[cfg(unix)]
        let mut ready = handle.readable().await?;
        // A set has no handle on Windows so far, and is polled.
        #[cfg(windows)]
        tokio::time::sleep(Duration::from_millis(1)).await;
        // A timeout of zero never blocks. The handle is ready again only after all events were taken.
        while let NextEvent::Event(event) = set.next_event(Some(Duration::ZERO))? {
            match event {
                Event::Output { chunk, .. } => bytes += chunk.len(),
                Event::Done { outcome, .. } => assert!(outcome.exit.status.success()),
                _ => (),
            }
        }
        #[cfg(unix)]
        ready.clear_ready();
    }
    Ok(bytes)
}

//! Runs 1,000 children inside smol: a set on its own thread, whose descriptor or handle smol watches.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

#[cfg(windows)]
use async_io::os::windows::Waitable;
use minder::{BackgroundSet, ChildSetOptions, Command, Event, SpawnOptions, Stdio};

const CHILDREN: usize = 1000;
const AT_ONCE: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("child") {
        println!("text");
        return Ok(());
    }
    let bytes = smol::block_on(run_children())?;
    println!("smol: {CHILDREN} children wrote {bytes} bytes");
    Ok(())
}

async fn run_children() -> Result<usize, Box<dyn std::error::Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").stdin(Stdio::null()).stdout(Stdio::piped());
    let set = BackgroundSet::new(ChildSetOptions::new())?;
    #[cfg(unix)]
    let handle = smol::Async::new_nonblocking(set.clone())?;
    #[cfg(windows)]
    let handle = Waitable::new(set.clone())?;
    let mut events = Vec::new();
    let mut started = 0;
    let mut bytes = 0;
    while started < CHILDREN || !set.is_empty() {
        while started < CHILDREN && set.len() < AT_ONCE {
            set.spawn(&command, SpawnOptions::new())?;
            started += 1;
        }
        // Other tasks of the executor run during this wait.
        #[cfg(unix)]
        handle.readable().await?;
        #[cfg(windows)]
        handle.ready().await?;
        set.drain_events(&mut events, usize::MAX);
        for event in events.drain(..) {
            match event {
                Event::Output { chunk, .. } => bytes += chunk.len(),
                Event::Done { outcome, .. } => assert!(outcome.exit.status.success()),
                _ => (),
            }
        }
    }
    Ok(bytes)
}

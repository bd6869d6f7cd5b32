//! Runs 500 commands inside tokio, at most 50 at once, each with a time limit.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::Arc;
use std::time::Duration;

use minder::{CaptureOptions, Command};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let places = Arc::new(Semaphore::new(50));
    let mut tasks = JoinSet::new();
    for number in 0..500 {
        let places = Arc::clone(&places);
        tasks.spawn(async move {
            let _place = places.acquire_owned().await;
            let mut command = Command::new("sh");
            command.args(["-c", &format!("echo {number}")]);
            minder_tokio::output(&command, CaptureOptions::new().timeout(Duration::from_secs(60))).await
        });
    }
    let mut bytes = 0;
    while let Some(output) = tasks.join_next().await {
        bytes += output??.stdout.len();
    }
    println!("tokio: 500 children wrote {bytes} bytes");
    Ok(())
}

//! A thread for each object, which is blocked in a read of it and hands the news to whoever waits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::{Baseline, Objects};
use crate::sys::thread::start_small;

/// More threads are not started: a machine has something else to do.
const THREADS_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct ThreadEach {
    objects: Arc<Objects>,
    over: Arc<AtomicBool>,
    news: Receiver<usize>,
    threads: Vec<JoinHandle<()>>,
}

impl ThreadEach {
    pub(super) fn open(objects: Arc<Objects>) -> io::Result<Self> {
        if objects.len() > THREADS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("at most {THREADS_MAX} threads are started"),
            ));
        }
        let (sender, news) = channel();
        let mut it = Self { objects, over: Arc::default(), news, threads: Vec::new() };
        for index in 0..it.objects.len() {
            let (objects, over, sender) = (Arc::clone(&it.objects), Arc::clone(&it.over), sender.clone());
            it.threads.push(start_small("bench", move || hear(index, &objects, &over, &sender))?);
        }
        Ok(it)
    }
}

/// Hands on what is read of one object.
fn hear(index: usize, objects: &Objects, over: &AtomicBool, news: &Sender<usize>) {
    while objects.reset(index).is_ok() && !over.load(Ordering::Acquire) {
        if news.send(index).is_err() {
            return;
        }
    }
}

impl Baseline for ThreadEach {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        // Without any thread there would be nobody to wait for.
        self.news.recv().map(Some).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn look(&mut self) -> io::Result<Option<usize>> {
        Ok(self.news.try_recv().ok())
    }

    fn resets(&self) -> bool {
        true
    }
}

impl Drop for ThreadEach {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        for (index, thread) in self.threads.drain(..).enumerate() {
            if self.objects.signal(index).is_ok() {
                let _ = thread.join();
            }
        }
    }
}

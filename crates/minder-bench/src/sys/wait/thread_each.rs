//! A thread for each object, which blocks in a read of it and sends its index to the waiting
//! thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::objects::Objects;
use super::types::WaitBaseline;
use crate::sys::thread::spawn_small;

/// The most threads that are started, to leave the machine usable.
const THREADS_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct ThreadEach {
    objects: Arc<Objects>,
    is_stopped: Arc<AtomicBool>,
    signalled: Receiver<usize>,
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
        let (sender, signalled) = channel();
        // Dropping it joins the threads that were started before one failed to start.
        let mut each = Self { objects, is_stopped: Arc::default(), signalled, threads: Vec::new() };
        for index in 0..each.objects.len() {
            let objects = Arc::clone(&each.objects);
            let is_stopped = Arc::clone(&each.is_stopped);
            let sender = sender.clone();
            let thread = spawn_small(move || forward(index, &objects, &is_stopped, &sender))?;
            each.threads.push(thread);
        }
        Ok(each)
    }
}

/// Sends the index of the object each time that it is signalled.
fn forward(index: usize, objects: &Objects, is_stopped: &AtomicBool, sender: &Sender<usize>) {
    while objects.reset(index).is_ok() && !is_stopped.load(Ordering::Acquire) {
        if sender.send(index).is_err() {
            return;
        }
    }
}

impl WaitBaseline for ThreadEach {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        // Without objects there is no sender.
        self.signalled.recv().map(Some).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn poll(&mut self) -> io::Result<Option<usize>> {
        Ok(self.signalled.try_recv().ok())
    }

    fn resets(&self) -> bool {
        true
    }
}

impl Drop for ThreadEach {
    fn drop(&mut self) {
        // Each signal below makes its thread load this: the write and the read of the object order
        // them.
        self.is_stopped.store(true, Ordering::Release);
        for (index, thread) in self.threads.drain(..).enumerate() {
            if self.objects.signal(index).is_ok() {
                let _ = thread.join();
            }
        }
    }
}

//! Threads that wait in waitpid(2) and hand over what they hear: one for each child, or one for all.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::WaitOptions;

use super::unix::{has_children, number, wait};
use super::{End, Hear};
use crate::sys::thread::start_small;

/// How long threads may take to end when their children are gone.
const END: Duration = Duration::from_secs(1);

/// The way from the threads to whoever waits.
#[derive(Debug)]
struct News {
    told: Receiver<End>,
    tell: Option<Sender<End>>,
}

impl News {
    fn new() -> Self {
        let (tell, told) = channel();
        Self { told, tell: Some(tell) }
    }

    fn next(&self, deadline: Instant) -> io::Result<Option<End>> {
        match self.told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(end) => Ok(Some(end)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("a thread ended early")),
        }
    }

    /// Whether all threads have said their last word, within a bound.
    fn end(&mut self) -> bool {
        self.tell = None;
        let until = Instant::now() + END;
        loop {
            match self.told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(_) => (),
                Err(error) => return error == RecvTimeoutError::Disconnected,
            }
        }
    }
}

/// A thread for each child.
#[derive(Debug)]
pub(super) struct Each {
    news: News,
    threads: HashMap<u32, JoinHandle<()>>,
    /// Children whose threads have nothing left to do.
    ended: Vec<u32>,
}

impl Each {
    pub(super) fn new() -> Self {
        Self { news: News::new(), threads: HashMap::new(), ended: Vec::new() }
    }

    fn join_ended(&mut self) {
        for pid in self.ended.drain(..) {
            let _ = self.threads.remove(&pid).map(JoinHandle::join);
        }
    }
}

impl Hear for Each {
    fn add(&mut self, pid: u32) -> io::Result<()> {
        self.join_ended();
        let number = number(pid)?;
        let tell = self.news.tell.clone();
        let work = move || {
            if let (Ok(Some(end)), Some(tell)) = (wait(Some(number), WaitOptions::empty()), tell) {
                // Nobody listens any more when the children are being cleared away.
                let _ = tell.send(end);
            }
        };
        let thread = start_small("bench", work)?;
        self.threads.insert(pid, thread);
        Ok(())
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<End>> {
        let end = self.news.next(deadline)?;
        self.ended.extend(end.map(|end| end.pid));
        Ok(end)
    }
}

impl Drop for Each {
    fn drop(&mut self) {
        if self.news.end() {
            self.threads.drain().for_each(|(_, thread)| drop(thread.join()));
        }
    }
}

/// One thread for all children. It takes the ends of any child of this process.
#[derive(Debug)]
pub(super) struct One {
    news: News,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl One {
    pub(super) fn open() -> io::Result<Self> {
        if has_children() {
            return Err(io::Error::other("this process has other children, whose ends it would take"));
        }
        let news = News::new();
        let over = Arc::new(AtomicBool::new(false));
        let (tell, is_over) = (news.tell.clone(), Arc::clone(&over));
        let work = move || {
            while !is_over.load(Ordering::Acquire) {
                match (wait(None, WaitOptions::empty()), &tell) {
                    (Ok(Some(end)), Some(tell)) => drop(tell.send(end)),
                    // There is no child; whoever starts one says so, and it is not missed when that was just now.
                    _ => std::thread::park(),
                }
            }
        };
        let thread = start_small("bench", work)?;
        Ok(Self { news, over, thread: Some(thread) })
    }

    fn rouse(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Hear for One {
    fn add(&mut self, _pid: u32) -> io::Result<()> {
        self.rouse();
        Ok(())
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<End>> {
        self.news.next(deadline)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.rouse();
        if self.news.end() {
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

//! Threads that wait in waitpid(2) and hand over what they hear: one for each child, or one for
//! all.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::process::WaitOptions;

use super::news::News;
use super::unix::{has_children, number, wait};
use super::{End, Hear};
use crate::sys::spawn::Spawned;
use crate::sys::thread::start_small;

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
    fn add(&mut self, child: Spawned) -> io::Result<()> {
        self.join_ended();
        let pid = child.process.pid();
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
                    // There is no child; whoever starts one says so, and it is not missed when that was just
                    // now.
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
    fn add(&mut self, _child: Spawned) -> io::Result<()> {
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

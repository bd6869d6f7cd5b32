//! A thread for each child, in `WaitForSingleObject` of it, which hands over what it hears.

use std::collections::HashMap;
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::children::Children;
use super::news::News;
use super::windows::is_over;
use super::{End, Hear};
use crate::sys::spawn::Spawned;
use crate::sys::thread::start_small;

#[derive(Debug)]
pub(super) struct ThreadEach {
    news: News,
    threads: HashMap<u32, JoinHandle<()>>,
    /// Children whose threads have nothing left to do.
    ended: Vec<u32>,
    children: Children,
}

impl ThreadEach {
    pub(super) fn new() -> Self {
        let (news, threads) = (News::new(), HashMap::new());
        Self { news, threads, ended: Vec::new(), children: Children::default() }
    }
}

impl Hear for ThreadEach {
    fn add(&mut self, child: Spawned) -> io::Result<()> {
        for pid in self.ended.drain(..) {
            let _ = self.threads.remove(&pid).map(JoinHandle::join);
        }
        let pid = child.process.pid();
        self.children.add(child);
        let process = self.children.handle(pid)?.try_clone_to_owned()?;
        let tell = self.news.tell.clone();
        let work = move || {
            if let (Ok(true), Some(tell)) = (is_over(&process, Duration::MAX), tell) {
                // How it ended is looked at by whoever hears it; nobody does when the children are being
                // cleared away.
                let _ = tell.send(End { pid, killed: false });
            }
        };
        self.threads.insert(pid, start_small("bench", work)?);
        Ok(())
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<End>> {
        let Some(End { pid, .. }) = self.news.next(deadline)? else { return Ok(None) };
        self.ended.push(pid);
        self.children.take(pid).map(Some)
    }
}

impl Drop for ThreadEach {
    fn drop(&mut self) {
        if self.news.end() {
            self.threads.drain().for_each(|(_, thread)| drop(thread.join()));
        }
    }
}

//! A real pipe.

use std::os::fd::OwnedFd;

use super::*;

#[test]
fn a_pipe_that_is_slow_does_not_keep_records_back() {
    let (reader, mut writer) = io::pipe().unwrap();
    let plan = PipePlan { block_timeout: Some(Duration::from_millis(1)), ..plan() };
    let file = File::from(OwnedFd::from(reader));
    let pipe = Pipe::open(plan, PipeSource::Reader(file), 1).unwrap();
    let (told, news) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| pipe.read(move || told.send(()).unwrap_or_default()));
        for _ in 0..3 {
            writer.write_all(b"whole\npart").unwrap();
            let mut part = loop {
                match pipe.next() {
                    Supply::Job(part) => break part,
                    Supply::Later => news.recv().unwrap(),
                    Supply::End => panic!("it goes on"),
                }
            };
            assert!(drain(&pipe, &mut part).ends_with(b"whole\n"));
        }
        drop(writer);
    });
}

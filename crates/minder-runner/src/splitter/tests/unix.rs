//! A real pipe.

use std::fs::File;
use std::os::fd::OwnedFd;

use super::*;

#[test]
fn slow_pipe_yields_complete_records_early() {
    let (input, mut writer) = io::pipe().unwrap();
    let config = SplitterConfig { block_timeout: Some(Duration::from_millis(1)), ..config() };
    let file = File::from(OwnedFd::from(input));
    let source = SplitterSource::Streams(vec![StreamSource::Open(file)]);
    let (reader, queue) = open_source(config, source, 1).unwrap();
    let (notify, take_wake) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| reader.read(move || notify.send(()).unwrap_or_default()));
        for _ in 0..3 {
            writer.write_all(b"whole\npart").unwrap();
            let mut part = loop {
                match queue.next() {
                    NextJob::Ready(part) => break part,
                    NextJob::Pending => take_wake.recv().unwrap(),
                    NextJob::Exhausted => panic!("the input ended early"),
                }
            };
            assert!(drain(&queue, &mut part).ends_with(b"whole\n"));
        }
        drop(writer);
    });
}

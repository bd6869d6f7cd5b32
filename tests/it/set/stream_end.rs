//! The end of a stream, when its child lives on.

use minder::{ChildSet, Stdio, Termination};

use super::streaming::{StreamLog, at_end, read_while, tight};
use crate::support::each_backend;

/// A stream that ends while its child lives on is reported as ended, after its file.
#[test]
fn stream_eof_is_reported_before_the_exit() {
    each_backend(|backend| {
        let dir = tempfile::tempdir().expect("create temporary directory");
        let mut set = ChildSet::new(tight(backend, dir.path())).expect("create set");
        let mut command = minder::Command::new("/bin/sh");
        let over = dir.path().join("over");
        command.args(["-c", "head -c 200000 /dev/zero; exec >&-; : > \"$0\"; exec sleep 600"]).arg(&over);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let id = set.spawn(&command, at_end(true)).expect("spawn test child");
        let mut stream_log = StreamLog::default();
        // A pipe holds less than that: by then a file has the rest.
        read_while(&mut stream_log, &mut set, || !over.exists());
        set.start_streaming(id).expect("start streaming");
        stream_log.read_until(&mut set, |stream_log| {
            stream_log.records.get(&id).is_some_and(|record| record.eofs[0])
        });
        assert_eq!((stream_log.of(id).outs[0].len(), stream_log.of(id).files), (200_000, 1));
        set.kill(id, Termination::IMMEDIATE).expect("kill child");
        stream_log.wait_all(&mut set);
    });
}

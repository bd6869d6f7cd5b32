"""The process of the program, and its end."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from typing import IO, List, Mapping, Optional

_READ = 256 << 10
_MESSAGES = 64 << 10
# How long the program may take to end when all jobs have ended, and after it was killed, in
# seconds.
_AFTER = 5.0
# Ctrl-C on a terminal reaches the program, too. A second signal would kill the jobs at once.
_PATIENCE = 1.0


class Child:
    """The program, with pipes for values and results. Its messages are in a file: nothing has to
    read them while it runs."""

    def __init__(
        self,
        words: List[str],
        cwd: Optional[str],
        env: Optional[Mapping[str, str]],
        grace: int,
    ) -> None:
        self._owner = os.getpid()
        self._grace = grace
        self._messages = tempfile.TemporaryFile()
        self._said = ""
        try:
            self._process = subprocess.Popen(
                words,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                cwd=cwd,
                env=env,
            )
        except BaseException:
            self._messages.close()
            raise
        # One thread reads at a time, and `end` closes the pipe only when none does.
        self.reading: threading.Lock = threading.Lock()
        self.is_ended: bool = False

    @property
    def values(self) -> IO[bytes]:
        """The pipe for values."""
        assert self._process.stdin is not None
        return self._process.stdin

    def read(self) -> bytes:
        """Returns the next bytes of the table of results, or none at its end."""
        # Two processes would divide the table between them.
        if os.getpid() != self._owner:
            raise RuntimeError("cannot read results: another process started the run")
        assert self._process.stdout is not None
        return os.read(self._process.stdout.fileno(), _READ)

    def wait(self) -> int:
        """Waits for the exit of the program. Returns its exit status."""
        return self._process.wait()

    def messages(self) -> str:
        """Returns what the program has written to its standard error, at most the last 64 KiB."""
        if self._messages.closed:
            return self._said
        size = os.fstat(self._messages.fileno()).st_size
        # The program shares the position of this file, and would write there.
        if hasattr(os, "pread"):
            text = os.pread(self._messages.fileno(), _MESSAGES, max(0, size - _MESSAGES))
        else:
            self._messages.seek(max(0, size - _MESSAGES))
            text = self._messages.read(_MESSAGES)
        return text.decode("utf-8", "replace")

    def terminate(self) -> None:
        """Asks the program to end its jobs and then itself. Does not wait."""
        self._process.terminate()

    def end(self, interrupted: bool = False) -> None:
        """Ends the program and everything that it started, and waits for that: for the time that
        jobs have to exit, and a few seconds."""
        # A copy of this process by fork has no right to end it.
        if self.is_ended or os.getpid() != self._owner:
            return
        self.is_ended = True
        try:
            if interrupted:
                self._exits_within(_PATIENCE)
            self.terminate()
            # A thread in `read` sees the end of the pipe when the program has ended. Without one,
            # the program would wait for its reader: so the pipe is closed.
            bound = self._grace + _AFTER
            is_held = self.reading.acquire(timeout=bound)
            if not is_held:
                self._process.kill()
                is_held = self.reading.acquire(timeout=_AFTER)
            if is_held:
                assert self._process.stdout is not None
                self._process.stdout.close()
                self.reading.release()
            if not self._exits_within(bound):
                self._process.kill()
                self._exits_within(_AFTER)
        except BaseException:
            # Its guardians end the jobs.
            self._process.kill()
            raise
        finally:
            self._said = self.messages()
            self._messages.close()

    def _exits_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

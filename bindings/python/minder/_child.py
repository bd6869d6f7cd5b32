"""The process of the program, and its end."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import threading
import time
from typing import IO, Iterator, List, Mapping, Optional, Set

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
        self.program: str = words[0]
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
        self._lock = threading.Lock()
        # The threads that read or wait for their turn.
        self._readers: Set[int] = set()
        self.is_ended: bool = False
        self.has_written: bool = False

    @property
    def values(self) -> IO[bytes]:
        """The pipe for values."""
        assert self._process.stdin is not None
        return self._process.stdin

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Keeps other threads from reading."""
        thread = threading.get_ident()
        self._readers.add(thread)
        try:
            with self._lock:
                try:
                    yield
                finally:
                    # A signal handler that called `end` has left this to the thread below it.
                    if self.is_ended:
                        self._close_pipe()
        finally:
            self._readers.discard(thread)

    def read(self) -> bytes:
        """Returns the next bytes of the table of results, or none at its end."""
        # Two processes would divide the table between them.
        if os.getpid() != self._owner:
            raise RuntimeError("cannot read results: another process started the run")
        assert self._process.stdout is not None
        part = os.read(self._process.stdout.fileno(), _READ)
        self.has_written = self.has_written or bool(part)
        return part

    def wait(self) -> Optional[int]:
        """Waits for the exit of the program. Returns its exit status, or `None` if that is lost: the
        system drops it if SIGCHLD is ignored, and other code may take it."""
        is_lost = False
        if hasattr(os, "waitid") and self._process.returncode is None:
            # `Popen.wait` reports 0 for a lost status, and holds a lock while it waits, which a
            # signal handler could not get.
            try:
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:
                is_lost = True
        status = self._process.wait()
        return None if is_lost and status == 0 else status

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
            if threading.get_ident() in self._readers:
                # A signal handler that interrupted `read`, which uses the pipe when this returns.
                self._drain(bound)
            elif self._acquire(bound):
                self._close_pipe()
                self._lock.release()
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

    def _acquire(self, seconds: float) -> bool:
        if self._lock.acquire(timeout=seconds):
            return True
        self._process.kill()
        return self._lock.acquire(timeout=_AFTER)

    def _close_pipe(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _drain(self, seconds: float) -> None:
        """Drops the rest of the table, for at most this time."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        if not hasattr(select, "poll"):
            # On Windows `terminate` has ended the program at once.
            return
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if poll.poll(max(0.0, end - time.monotonic()) * 1000) and not os.read(pipe, _READ):
                return

    def _exits_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

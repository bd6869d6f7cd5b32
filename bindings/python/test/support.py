"""What several tests need."""

import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, List

PACKAGE = Path(__file__).resolve().parent.parent
# Longer than any of these takes on a busy machine.
LONG = 30.0
# A job with a grandchild. It writes both process ids to a file named after its value, and ends in
# an hour.
FAMILY = "sleep 3600 & echo $$ $! > {}.new; mv {}.new {}; echo started; wait"


class Directory(unittest.TestCase):
    """Each test has an empty directory."""

    def setUp(self) -> None:
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)


def eventually(holds: Callable[[], bool], seconds: float = LONG) -> bool:
    """Returns whether something becomes true in this time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def is_running(pid: int) -> bool:
    """Returns whether a process exists and has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        # Nothing may wait for an orphan in a container.
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return not os.path.isdir("/proc/self")


def family(path: Path) -> List[int]:
    """Waits until a job of `FAMILY` has started. Returns the ids of its processes."""
    assert eventually(path.exists), path
    return [int(word) for word in path.read_text().split()]


def all_gone(pids: List[int], seconds: float = LONG) -> bool:
    """Returns whether all these processes end in this time."""
    return eventually(lambda: not any(map(is_running, pids)), seconds)


def python(
    program: str, *args: str, cwd: Path, start_new_session: bool = False
) -> "subprocess.Popen[str]":
    """Starts a program in Python that can import the package."""
    path = os.pathsep.join([str(PACKAGE), str(PACKAGE / "test")])
    return subprocess.Popen(
        [sys.executable, "-c", program, *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=start_new_session,
        # A shell may have started the tests with this signal ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )

"""Nothing is left of a run that ends early."""

import gc
import itertools
import os
import signal
import subprocess
import threading
import time
from typing import Any, Iterable, Iterator, List, Tuple

import minder
from support import FAMILY, LONG, Directory, all_gone, eventually, family, is_running, python

# Prints the first result, and then waits for the others.
READER = """
import sys, minder
for result in minder.run({command!r}, sys.argv[1:], jobs=9, grace=1):
    print(result.value, flush=True)
"""


class Families(Directory):
    def setUp(self) -> None:
        super().setUp()
        self.names = ["one", "two"]

    def families(self) -> List[int]:
        return [pid for name in self.names for pid in family(self.directory / name)]

    def start(self, **settings: Any) -> "minder.Run[str]":
        """Starts a job that ends at once, and two that do not."""
        command = "[ {} = done ] && exit; " + FAMILY
        return minder.run(command, ["done", *self.names], jobs=9, cwd=self.directory, **settings)


class End(Families):
    def test_break_ends_jobs_and_grandchildren(self) -> None:
        pids: List[int] = []
        for result in self.start():
            self.assertEqual(result.value, "done")
            pids = self.families()
            self.assertTrue(all(map(is_running, pids)))
            break
        # The loop had the only reference.
        self.assertTrue(all_gone(pids, 2))

    def test_exception_in_a_with_statement_ends_them(self) -> None:
        results = self.start()
        next(results)
        pids = self.families()
        with self.assertRaises(KeyError), results:
            raise KeyError
        self.assertFalse(any(map(is_running, pids)))
        self.assertIsNone(next(results, None))

    def test_exception_of_a_comprehension_ends_them(self) -> None:
        pids: List[int] = []

        def fail() -> int:
            pids.extend(self.families())
            raise KeyError

        with self.assertRaises(KeyError):
            [fail() for _ in self.start()]
        self.assertTrue(pids and all_gone(pids, 2))

    def test_garbage_collection_ends_them(self) -> None:
        cycle: List[Any] = [self.start()]
        cycle.append(cycle)
        pids = self.families()
        del cycle
        gc.collect()
        self.assertTrue(all_gone(pids, 2))

    def test_jobs_that_ignore_the_request_are_killed_after_the_grace(self) -> None:
        results = minder.run(f'trap "" TERM; {FAMILY}', self.names, cwd=self.directory, grace=1)
        pids = self.families()
        begin = time.monotonic()
        results.close()
        self.assertTrue(0.9 < time.monotonic() - begin < LONG / 2)
        self.assertTrue(all_gone(pids, 2))

    def test_close_by_another_thread_ends_the_wait(self) -> None:
        results = self.start()
        next(results)
        pids = self.families()
        threading.Timer(0.1, results.close).start()
        self.assertEqual(list(results), [])
        self.assertTrue(all_gone(pids, 5))

    def test_close_by_a_signal_handler_of_the_reader_ends_the_wait(self) -> None:
        # No result comes, and many come.
        runs: List[Tuple[str, Iterable[int]]] = [("sleep", [3600]), ("echo", itertools.count())]
        for command, values in runs:
            results = minder.run([command], values, grace=1)
            took: List[float] = []

            def close(*_: object, results: "minder.Run[int]" = results) -> None:
                begin = time.monotonic()
                results.close()
                took.append(time.monotonic() - begin)

            before = signal.signal(signal.SIGALRM, close)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                self.assertEqual(len(list(results)) > 0, command == "echo")
            finally:
                signal.signal(signal.SIGALRM, before)
            self.assertLess(took[0], 3)

    def test_close_does_not_wait_for_a_producer(self) -> None:
        released = threading.Event()

        def values() -> Iterator[str]:
            yield "a"
            released.wait(LONG)
            yield "b"

        with minder.run(["true"], values()) as results:
            self.assertTrue(next(results).ok)
        released.set()

    def test_finished_run_leaves_no_process_and_no_descriptor(self) -> None:
        def descriptors() -> int:
            return len(os.listdir("/proc/self/fd"))

        list(minder.run(["true"], ["a"]))
        before = descriptors()
        for _ in range(5):
            list(minder.run(["echo"], ["a", "b"]))
            minder.run(["sleep"], [3600]).close()
        self.assertTrue(eventually(lambda: descriptors() <= before), (before, descriptors()))

    def test_copy_of_the_process_does_not_end_the_run(self) -> None:
        results = minder.run(["sleep"], [0.3])
        pid = os.fork()
        if pid == 0:
            results.close()
            os._exit(0)
        os.waitpid(pid, 0)
        self.assertEqual([result.ok for result in results], [True])

    def test_copy_of_the_process_takes_no_result(self) -> None:
        results = minder.run(["sleep"], [0.3, 0.3], jobs=1)
        pid = os.fork()
        if pid == 0:
            try:
                next(results)
            except RuntimeError:
                os._exit(3)
            os._exit(0)
        self.assertEqual(len(list(results)), 2)
        self.assertEqual(os.waitpid(pid, 0)[1], 3 << 8)


class Killed(Families):
    def test_kill_of_the_program_is_an_error(self) -> None:
        with self.start() as results:
            next(results)
            pids = self.families()
            os.kill(results._child._process.pid, signal.SIGKILL)
            begin = time.monotonic()
            with self.assertRaisesRegex(minder.RunError, "ended by SIGKILL") as raised:
                next(results)
            self.assertLess(time.monotonic() - begin, LONG / 2)
            self.assertEqual(raised.exception.status, -9)
        self.assertTrue(all_gone(pids, 5))

    def test_kill_of_the_program_within_a_result_is_an_error(self) -> None:
        with minder.run("head -c {} /dev/zero", [20_000_000]) as results:
            # The result fills the pipe by then. An earlier kill has the same end.
            time.sleep(0.3)
            os.kill(results._child._process.pid, signal.SIGKILL)
            with self.assertRaisesRegex(minder.RunError, "ended by SIGKILL"):
                next(results)

    def test_kill_of_the_program_is_an_error_where_sigchld_is_ignored(self) -> None:
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            self.assertEqual(len(list(minder.run(["true"], ["a", "b"]))), 2)
            with self.start() as results:
                next(results)
                os.kill(results._child._process.pid, signal.SIGKILL)
                with self.assertRaisesRegex(minder.RunError, "SIGCHLD") as raised:
                    next(results)
                self.assertIsNone(raised.exception.status)
        finally:
            signal.signal(signal.SIGCHLD, before)

    def other(self) -> "subprocess.Popen[str]":
        """Starts another Python that reads the results, and waits for the first."""
        command = "[ {} = done ] && exit; " + FAMILY
        child = python(READER.format(command=command), "done", *self.names, cwd=self.directory)
        assert child.stdout is not None and child.stdout.readline() == "done\n"
        return child

    def test_interrupt_ends_them(self) -> None:
        child = self.other()
        pids = self.families()
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=LONG)
        self.assertIn("KeyboardInterrupt", error)
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertFalse(any(map(is_running, pids)))

    def test_interrupt_of_the_process_group_leaves_jobs_time_to_exit(self) -> None:
        command = (
            "[ {} = done ] && exit; trap 'sleep 0.3; echo > $MINDER_JOB.bye; exit' TERM; " + FAMILY
        )
        program = READER.format(command=command)
        # As on a terminal: the signal reaches the program, too.
        child = python(program, "done", *self.names, cwd=self.directory, start_new_session=True)
        pids = self.families()
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=LONG)
        self.assertFalse(any(map(is_running, pids)))
        self.assertEqual(len(list(self.directory.glob("*.bye"))), 2)

    def test_kill_of_python_ends_them_with_the_next_job(self) -> None:
        command = "[ {} = done ] && exit; [ {} = later ] && sleep 1 && exit; " + FAMILY
        child = python(
            READER.format(command=command), "done", "later", *self.names, cwd=self.directory
        )
        pids = self.families()
        child.kill()
        child.communicate()
        self.assertTrue(all_gone(pids))

    def test_exit_of_python_ends_them(self) -> None:
        program = """if True:
            import sys, support, minder, pathlib
            results = minder.run(support.FAMILY, sys.argv[1:], jobs=9)
            for name in sys.argv[1:]:
                support.family(pathlib.Path(name))
            sys.exit("done")
        """
        child = python(program, *self.names, cwd=self.directory)
        _, error = child.communicate(timeout=LONG)
        self.assertEqual((error, child.returncode), ("done\n", 1))
        self.assertFalse(any(map(is_running, self.families())))

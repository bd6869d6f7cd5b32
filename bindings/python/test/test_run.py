"""What jobs get, and what their results have."""

import asyncio
import itertools
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterator, List, Union
from unittest import mock

import minder
from support import LONG, PACKAGE, Directory, eventually


class Values(Directory):
    def test_value_is_given_back_as_the_object_that_it_was(self) -> None:
        values: List[minder.Scalar] = [
            "a b",
            b'\xff\xfe"',
            "",
            "x\ny",
            Path("p"),
            3,
            0.5,
            "-n",
            "\udcff",
        ]
        values += ["it's $(id)", "ü"]
        found = {}
        for result in minder.run(["printf", "<%s>", "{}"], values, jobs=3):
            found[result.job] = result
        self.assertEqual([found[job].value for job in sorted(found)], values)
        self.assertIs(found[5].value, values[4])
        expected = [
            os.fsencode(v) if isinstance(v, (str, bytes, Path)) else str(v).encode() for v in values
        ]
        self.assertEqual(
            [found[job].stdout for job in sorted(found)], [b"<%s>" % e for e in expected]
        )

    def test_value_in_a_line_is_no_shell_code(self) -> None:
        (result,) = minder.run("printf '%s|' {} {/}; exit 3", ["$(id)/;'\n"])
        self.assertEqual((result.stdout, result.exit_code), (b"$(id)/;'\n|;'\n|", 3))

    def test_tuple_gives_several_arguments(self) -> None:
        pairs: List[minder.Value] = [("a", 1), (b"\xff", ""), ("", "")]
        results = list(minder.run(["printf", "%s,%s", "{2}", "{1}"], pairs, keep_order=True))
        self.assertEqual([result.stdout for result in results], [b"1,a", b",\xff", b","])
        self.assertEqual([result.value for result in results], pairs)

    def test_words_are_no_flags_and_no_separators(self) -> None:
        words = ["echo", ":::", "a b", "{}", "::::", "--jobs", ":::+"]
        (result,) = minder.run(words, ["x"])
        self.assertEqual(result.stdout_text, "::: a b x :::: --jobs :::+\n")

    def test_wrong_values_are_named(self) -> None:
        first: Any = {
            "abc": TypeError,
            (None,): TypeError,
            ("a\0b",): ValueError,
            ((),): ValueError,
        }
        for values, error in first.items():
            with self.assertRaisesRegex(error, "invalid value"):
                minder.run(["true"], values)
        later: Any = {("a", ("b", "c")): ValueError, ("a", object()): TypeError}
        for values, error in later.items():
            with self.assertRaisesRegex(error, "invalid value"):
                list(minder.run(["true"], values))
        commands: List[Union[str, List[str]]] = ["", " ", []]
        for command in commands:
            with self.assertRaisesRegex(ValueError, "invalid command"):
                minder.run(command, ["a"])
        with self.assertRaisesRegex(ValueError, "invalid timeout 0: expected more than 0 seconds"):
            minder.run(["true"], ["a"], timeout=0)

    def test_no_values_are_no_results(self) -> None:
        self.assertEqual(list(minder.run(["false"], [])), [])

    def test_error_of_the_producer_is_raised_after_the_results_so_far(self) -> None:
        def values() -> Iterator[str]:
            yield "a"
            self.assertTrue(eventually(lambda: bool(found)))
            raise KeyError("no more")

        found: List[str] = []
        with self.assertRaisesRegex(KeyError, "no more"):
            for result in minder.run(["true"], values()):
                found.append(result.value)
        self.assertEqual(found, ["a"])

    def test_results_come_while_the_producer_waits_for_them(self) -> None:
        seen = threading.Semaphore(0)

        def values() -> Iterator[int]:
            for number in range(5):
                yield number
                seen.acquire()

        found = []
        for result in minder.run(["true"], values()):
            found.append(result.value)
            seen.release()
        self.assertEqual(found, [0, 1, 2, 3, 4])

    def test_endless_producer_is_held_back(self) -> None:
        taken = [0]

        def values() -> Iterator[str]:
            while True:
                taken[0] += 1
                yield "x" * 99

        with minder.run("sleep 0.01; : {}", values(), jobs=1) as results:
            next(results)
            before = taken[0]
            time.sleep(0.2)
            self.assertLess(taken[0], before + 1000)
        self.assertLess(taken[0], 20000)


class Results(Directory):
    def test_end_of_a_job_is_told_apart(self) -> None:
        lines = ["exit 0", "exit 7", "kill -9 $$", "echo out; echo err >&2; sleep 99"]
        command = ["sh", "-c", '[ "$1" != "sleep" ]; eval "$1"', "sh"]
        results = {r.value: r for r in minder.run(command, lines, jobs=4, timeout=1)}
        good, bad, killed, late = (results[line] for line in lines)
        self.assertTrue(good.ok and good.check() is good)
        self.assertEqual((bad.ok, bad.exit_code, bad.signal, bad.how), (False, 7, None, "exit 7"))
        self.assertEqual(
            (killed.exit_code, killed.signal, killed.how), (None, 9, "killed by SIGKILL")
        )
        self.assertEqual((late.ok, late.exit_code, late.timed_out), (False, None, True))
        self.assertEqual((late.stdout, late.stderr_text), (b"out\n", "err\n"))
        self.assertTrue(0.9 < late.duration < LONG and abs(late.start - time.time()) < LONG)
        with self.assertRaisesRegex(
            minder.JobError, r"job 4 failed \(timed out\): sh -c .*: err$"
        ) as raised:
            late.check()
        self.assertIs(raised.exception.result, late)

    def test_settings_reach_the_jobs(self) -> None:
        env = {**os.environ, "NAME": "{}"}
        line = "pwd; echo $NAME; echo x >> tries-{}; [ $(wc -l < tries-{}) -ge 3 ]"
        results = minder.run(
            line, ["a", "b"], cwd=self.directory, env=env, retries=5, keep_order=True
        )
        for result in results:
            self.assertEqual(result.check().stdout_text, f"{self.directory.resolve()}\n{{}}\n")

    def test_halt_ends_the_run_without_an_error(self) -> None:
        results = list(minder.run(["false"], range(100), jobs=1, halt="now,fail=2"))
        self.assertEqual([result.value for result in results], [0, 1])

    def test_record_is_left_on_request_only(self) -> None:
        env = {**os.environ, "MINDER_STATE_DIR": str(self.directory / "state")}
        list(minder.run(["true"], ["quiet"], env=env))
        list(minder.run(["true"], ["recorded"], env=env, record=True))
        log = subprocess.run(
            [minder.find_program(), "log"], env=env, stdout=subprocess.PIPE, text=True
        )
        self.assertIn("recorded", log.stdout)
        self.assertNotIn("quiet", log.stdout)

    def test_results_are_shared_by_threads(self) -> None:
        found: List[int] = []
        results = minder.run(["true"], range(200), jobs=4)

        def take() -> None:
            for result in results:
                found.append(result.value)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(found), list(range(200)))


class Errors(Directory):
    def test_command_that_does_not_exist_is_named(self) -> None:
        with self.assertRaisesRegex(minder.RunError, "cannot run `no-such-program`") as raised:
            list(minder.run(["no-such-program"], ["a"]))
        self.assertEqual(raised.exception.status, 255)

    def test_program_that_a_value_names_fails_its_job_alone(self) -> None:
        results = minder.run(["{}"], ["true", "no-such-program"], keep_order=True)
        self.assertEqual([result.exit_code for result in results], [0, 127])
        self.assertIn("no-such-program", results.messages)

    def test_wrong_flag_is_named(self) -> None:
        results = minder.run(["true"], ["a"], flags=["--no-such-flag"])
        with self.assertRaisesRegex(minder.RunError, "unknown flag `--no-such-flag`"):
            next(results)
        self.assertIsNone(next(results, None))

    def test_flag_that_changes_the_input_is_an_error(self) -> None:
        with self.assertRaisesRegex(minder.RunError, "other arguments than its value"):
            list(minder.run(["echo"], ["a", "b"], flags=["-n2"]))

    def test_flag_that_changes_the_output_is_an_error(self) -> None:
        for flag in ("--dry-run", "--version"):
            results = minder.run(["echo"], itertools.repeat("a"), flags=[flag])
            with self.assertRaisesRegex(minder.RunError, "no table of results"):
                list(results)

    def test_value_that_is_too_long_fails_its_job_alone(self) -> None:
        long = "x" * 140_000
        results = list(minder.run(["echo"], [long, "b"], keep_order=True))
        self.assertEqual([result.value for result in results], [long, "b"])
        self.assertEqual([result.exit_code for result in results], [127, 0])

    def test_tuple_with_an_argument_that_is_too_long_gives_no_wrong_pairs(self) -> None:
        pairs = [("a", "b"), ("x" * 131_072, "y"), ("c", "d")]
        found = []
        with self.assertRaisesRegex(ValueError, "131072 bytes: expected at most 131071"):
            for result in minder.run(["echo"], pairs):
                found.append(result.stdout)
        self.assertIn(found, ([], [b"a b\n"]))

    def test_arguments_of_other_types_are_named(self) -> None:
        wrong: Any = [
            (TypeError, {"command": b"true"}),
            (TypeError, {"flags": "-k"}),
            (TypeError, {"grace": "1"}),
            (TypeError, {"grace": 0.5}),
            (ValueError, {"grace": -1}),
            (ValueError, {"grace": 10**10}),
        ]
        for error, arguments in wrong:
            with self.subTest(arguments), self.assertRaisesRegex(error, "^invalid .*: expected"):
                settings: Any = {"command": ["true"], "values": ["a"], **arguments}
                minder.run(**settings)

    def test_tiny_timeout_is_no_infinite_one(self) -> None:
        (result,) = minder.run(["sleep"], [LONG], timeout=1e-9)
        self.assertTrue(result.timed_out)

    def test_error_of_a_run_can_be_pickled(self) -> None:
        error = pickle.loads(pickle.dumps(minder.RunError("text", 255, "said")))
        self.assertEqual((str(error), error.status, error.messages), ("text", 255, "said"))

    def test_result_can_be_pickled(self) -> None:
        command = "echo {}; echo no >&2; [ {} -lt 9 ] || { head -c 9000000 /dev/zero; exit 3; }"
        for result in minder.run(command, [1, 9]):
            copied = pickle.loads(pickle.dumps(result))
            self.assertEqual(copied, result)
            self.assertEqual((copied.stdout, copied.stderr), (result.stdout, b"no\n"))
        with self.assertRaises(minder.JobError) as raised:
            result.check()
        error = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual((str(error), error.result), (str(raised.exception), result))

    def test_program_without_a_table_is_named(self) -> None:
        for name in ("true", "false"):
            program = shutil.which(name)
            assert program is not None
            with mock.patch.dict(os.environ, MINDER_PROGRAM=program):
                with self.assertRaisesRegex(minder.RunError, f"{name} printed no table"):
                    next(minder.run(["true"], ["a"]))

    def test_directory_that_does_not_exist_is_named(self) -> None:
        with self.assertRaisesRegex(FileNotFoundError, "no-such-directory"):
            minder.run(["true"], ["a"], cwd=self.directory / "no-such-directory")

    def test_program_is_found_by_the_variable_first(self) -> None:
        before = os.environ.get("MINDER_PROGRAM")
        self.assertTrue(os.path.isabs(minder.find_program()))
        try:
            os.environ["MINDER_PROGRAM"] = "/no/such/minder"
            with self.assertRaisesRegex(
                minder.ProgramNotFoundError, "/no/such/minder.*MINDER_PROGRAM"
            ):
                minder.run(["true"], ["a"])
            os.environ["MINDER_PROGRAM"] = sys.executable
            self.assertEqual(minder.find_program(), sys.executable)
            del os.environ["MINDER_PROGRAM"]
            env = {"PATH": str(self.directory), "PYTHONPATH": str(PACKAGE)}
            code = "import minder; minder.find_program()"
            missing = subprocess.run([sys.executable, "-c", code], env=env, stderr=subprocess.PIPE)
            self.assertIn(b"cannot find the program minder", missing.stderr)
        finally:
            if before is not None:
                os.environ["MINDER_PROGRAM"] = before

    def test_module_is_the_program(self) -> None:
        words = [sys.executable, "-m", "minder", "--version"]
        env = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        output = subprocess.run(
            words, stdout=subprocess.PIPE, text=True, check=True, env=env
        ).stdout
        self.assertRegex(output, r"^minder \d")


class Asynchronous(Directory):
    def test_loop_runs_while_results_are_waited_for(self) -> None:
        async def main() -> int:
            ticks = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0.01)

            ticker = asyncio.ensure_future(tick())
            async with minder.run(["sleep"], [0.3, 0.3], jobs=1) as results:
                values = [result.check().value async for result in results]
            ticker.cancel()
            self.assertEqual(values, [0.3, 0.3])
            return ticks

        self.assertGreater(asyncio.run(main()), 10)

    def test_cancellation_ends_the_run(self) -> None:
        async def main() -> None:
            async with minder.run(["sleep"], [3600]) as results:
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(results.__anext__(), 0.3)
                self.assertEqual([result async for result in results], [])

        begin = time.monotonic()
        asyncio.run(main())
        self.assertLess(time.monotonic() - begin, LONG)

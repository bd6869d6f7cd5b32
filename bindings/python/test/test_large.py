"""Many values, and large outputs."""

import time
import unittest
from pathlib import Path

import minder
from support import python

MEGABYTE = 1 << 20


class Large(unittest.TestCase):
    def test_ten_thousand_values_have_a_result_each(self) -> None:
        results = minder.run(["true"], map(str, range(10_000)), jobs=8)
        self.assertEqual(
            sorted(int(result.check().value) for result in results), list(range(10_000))
        )

    def test_ten_thousand_values_in_order(self) -> None:
        results = minder.run(["echo"], range(10_000), jobs=8, keep_order=True)
        for number, result in enumerate(results):
            self.assertEqual((result.value, result.stdout), (number, b"%d\n" % number))

    def test_large_output_is_whole(self) -> None:
        line = "head -c {} /dev/zero | tr '\\0' '\"'; head -c {} /dev/zero >&2"
        (result,) = minder.run(line, [50 * MEGABYTE])
        self.assertEqual(result.check().stdout, b'"' * (50 * MEGABYTE))
        self.assertEqual(len(result.stderr), 50 * MEGABYTE)

    def test_large_outputs_need_little_memory(self) -> None:
        program = """if True:
            import resource, minder
            def peak():
                return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            before = peak()
            for result in minder.run("head -c {}M /dev/zero", [50] * 6, jobs=2):
                with result.open_stdout() as file:
                    while file.read(65536):
                        pass
            print(peak() - before)
            result.stdout
            print(peak() - before)
        """
        child = python(program, cwd=Path("/"))
        output, error = child.communicate(timeout=300)
        streamed, whole = (int(line) / 1024 for line in output.split())
        # One output of 50 MiB, once.
        self.assertLess(streamed, 30, error)
        self.assertTrue(45 < whole < 85, whole)

    def test_slow_consumer_gets_everything(self) -> None:
        count = 0
        for result in minder.run("head -c {}M /dev/zero", [4] * 60, jobs=4):
            count += len(result.stdout)
            if result.job % 10 == 0:
                time.sleep(0.3)
        self.assertEqual(count, 60 * 4 * MEGABYTE)

"""The reader of tables."""

import unittest
from typing import List

from minder import _output
from minder._rows import Row, Truncated, rows

HEAD = b"Seq,Host,Starttime,JobRuntime,Send,Receive,Exitval,Signal,Command,V1,Stdout,Stderr\n"


def read(table: bytes, size: int) -> List[Row]:
    chunks = [table[at : at + size] for at in range(0, len(table), size)]
    return list(rows(lambda: chunks.pop(0) if chunks else b""))


class Rows(unittest.TestCase):
    def test_fields_are_the_same_for_chunks_of_any_size(self) -> None:
        quoted = b'"a,""b""\n\xff"'
        table = HEAD + b'2,:,1.500,0.250,0,4,0,0,"echo ""x""",' + quoted + b',"""",\n'
        table += b'1,:,2.000,1.000,0,0,-1,15,c,,,"""""\n"\n'
        for size in range(1, len(table) + 1):
            second, first = read(table, size)
            self.assertEqual((second.job, second.start, second.duration), (2, 1.5, 0.25))
            self.assertEqual((second.command, second.values), (b'echo "x"', [b'a,"b"\n\xff']))
            self.assertEqual((second.stdout.read(), second.stderr.read()), (b'"', b""))
            self.assertEqual((first.exit_value, first.signal, first.values), (-1, 15, [b""]))
            self.assertEqual((first.stdout.read(), first.stderr.read()), (b"", b'""\n'))

    def test_values_beyond_those_of_the_first_job_follow_the_outputs(self) -> None:
        (row,) = read(HEAD + b"1,:,0.0,0.0,0,0,0,0,c,a,out,err,b\n", 100)
        self.assertEqual((row.values, row.stdout.read()), ([b"a", b"b"], b"out"))

    def test_empty_table_has_no_rows(self) -> None:
        self.assertEqual(read(b"", 1), [])
        self.assertEqual(read(HEAD, 100), [])

    def test_table_that_ends_within_a_row_is_an_error(self) -> None:
        row = b'1,:,0.0,0.0,0,0,0,0,"c",a,"o""",\n'
        self.assertEqual(len(read(HEAD + row, 7)), 1)
        for end in range(1, len(row)):
            with self.assertRaises(Truncated):
                read(HEAD + row[:end], 1000)


class Outputs(unittest.TestCase):
    def test_long_output_is_in_a_file_and_can_be_read_several_times(self) -> None:
        output = _output.Output()
        part = bytes(range(256)) * 4096
        count = _output.IN_MEMORY // len(part) + 2
        for _ in range(count):
            output.add(part)
        self.assertEqual(output.tail(3), b"\xfd\xfe\xff")
        with output.open() as first, output.open() as second:
            self.assertEqual(first.read(300), second.read(300))
            self.assertEqual(first.read(1), bytes([300 % 256]))
        self.assertEqual(output.read(), part * count)

    def test_short_output_is_in_memory(self) -> None:
        output = _output.Output()
        for part in (b"a", b"", b"bc\n"):
            output.add(part)
        with output.open() as file:
            self.assertEqual(file.readlines(), [b"abc\n"])
        self.assertEqual((output.read(), output.tail(2)), (b"abc\n", b"c\n"))

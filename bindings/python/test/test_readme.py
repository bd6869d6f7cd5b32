"""The examples of the documents."""

import doctest
import os
from pathlib import Path

import minder
from support import PACKAGE, Directory


class Examples(Directory):
    def test_readme_shows_what_happens(self) -> None:
        before = os.getcwd()
        os.chdir(self.directory)
        self.addCleanup(os.chdir, before)
        Path("a.txt").write_text("hello")
        failed, tried = doctest.testfile(str(PACKAGE / "README.md"), module_relative=False)
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 15)

    def test_documentation_strings_show_what_happens(self) -> None:
        failed, tried = doctest.testmod(minder)
        self.assertTrue(tried and not failed)
        for name in minder.__all__:
            self.assertTrue(name in ("Scalar", "Value") or getattr(minder, name).__doc__, name)

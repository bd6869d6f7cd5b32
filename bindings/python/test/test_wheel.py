"""The wheel, and an installation of it."""

import os
import platform
import re
import struct
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import List, Set

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import build_wheel
import minder
from support import Directory

EXAMPLE = """if True:
    import minder
    print(minder.find_program())
    print(sorted(r.check().stdout for r in minder.run(["echo"], ["a", "b"])))
"""


def elf(machine: int) -> bytes:
    return b"\x7fELF".ljust(18, b"\0") + struct.pack("<H", machine) + b"rest"


class Wheel(Directory):
    def build(self, program: bytes, tag: str) -> zipfile.ZipFile:
        path = self.directory / "program"
        path.write_bytes(program)
        wheel = zipfile.ZipFile(build_wheel.build(path, tag, "1.2.3", self.directory))
        self.addCleanup(wheel.close)
        return wheel

    def test_wheel_has_program_package_and_licences(self) -> None:
        wheel = self.build(elf(183), "manylinux2014_aarch64.musllinux_1_1_aarch64")
        assert wheel.filename is not None
        self.assertEqual(
            os.path.basename(wheel.filename),
            "minder-1.2.3-py3-none-manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
        )
        program = wheel.getinfo("minder-1.2.3.data/scripts/minder")
        self.assertEqual(program.external_attr >> 16, 0o100755)
        self.assertEqual(program.date_time, (1980, 1, 1, 0, 0, 0))
        names = set(wheel.namelist())
        self.assertLess({"minder/__init__.py", "minder/py.typed"}, names)
        self.assertLess(
            {f"minder-1.2.3.dist-info/licenses/LICENSE-{name}" for name in ("MIT", "APACHE")}, names
        )
        self.assertFalse([name for name in names if "test" in name or "pycache" in name])
        tags = wheel.read("minder-1.2.3.dist-info/WHEEL").decode()
        self.assertIn("\nTag: py3-none-musllinux_1_1_aarch64\n", tags)
        record = wheel.read("minder-1.2.3.dist-info/RECORD").decode()
        self.assertEqual({line.split(",")[0] for line in record.splitlines()}, names)

    def test_wheel_for_windows_has_the_name_of_windows(self) -> None:
        wheel = self.build(b"MZ...", "win_amd64")
        self.assertIn("minder-1.2.3.data/scripts/minder.exe", wheel.namelist())

    def test_program_of_another_system_is_refused(self) -> None:
        for program, tag in (
            (elf(62), "win_amd64"),
            (elf(62), "manylinux2014_aarch64"),
            (b"MZ", "musl_x86_64"),
        ):
            with self.assertRaisesRegex(ValueError, f"not one for {tag}"):
                self.build(program, tag)
        with self.assertRaisesRegex(ValueError, "invalid platform tag 'any'"):
            self.build(elf(62), "any")

    def test_versions_are_those_of_python(self) -> None:
        self.assertEqual(build_wheel.python_version("1.2.3"), "1.2.3")
        self.assertEqual(build_wheel.python_version("1.2.3-rc.1"), "1.2.3rc1")
        with self.assertRaisesRegex(ValueError, "invalid version '1.2'"):
            build_wheel.python_version("1.2")


class Installation(Directory):
    def files(self, directory: Path) -> Set[str]:
        return {str(path) for path in directory.rglob("*") if path.is_file()}

    def run_words(self, words: List[str]) -> str:
        env = {k: v for k, v in os.environ.items() if k not in ("MINDER_PROGRAM", "PYTHONPATH")}
        env.update(PATH="/usr/bin:/bin", SOURCE_DATE_EPOCH="1700000000", PYTHONNOUSERSITE="1")
        done = subprocess.run(words, env=env, cwd=self.directory, stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, words)
        return done.stdout

    def test_wheel_is_reproducible_and_leaves_nothing(self) -> None:
        script = str(Path(build_wheel.__file__))
        tag = f"linux_{platform.machine()}"
        wheels = []
        for name in ("first", "second"):
            words = [sys.executable, script, "--program", minder.find_program()]
            words += ["--platform-tag", tag, "--out", str(self.directory / name)]
            wheels.append(Path(self.run_words(words).strip()))
        self.assertEqual(wheels[0].name, wheels[1].name)
        self.assertTrue(wheels[0].read_bytes() == wheels[1].read_bytes())

        home = self.directory / "venv"
        venv.create(home, with_pip=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        self.run_words([*pip, "--version"])
        before = self.files(home)
        self.run_words([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheels[0])])
        program = str(home / "bin" / "minder")
        version = build_wheel.python_version(build_wheel.workspace_version())
        self.assertRegex(self.run_words([program, "--version"]), re.escape(version))
        example = self.run_words([str(home / "bin" / "python"), "-c", EXAMPLE])
        self.assertEqual(example, f"{program}\n[b'a\\n', b'b\\n']\n")
        self.run_words([*pip, "uninstall", "--quiet", "--yes", "minder"])
        self.assertEqual(self.files(home) - before, set())

    def test_program_is_found_below_a_target_directory(self) -> None:
        script = str(Path(build_wheel.__file__))
        words = [sys.executable, script, "--program", minder.find_program()]
        words += ["--platform-tag", f"linux_{platform.machine()}", "--out", str(self.directory)]
        wheel = self.run_words(words).strip()
        home = self.directory / "venv"
        venv.create(home, with_pip=True)
        python = str(home / "bin" / "python")
        target = str(self.directory / "target")
        pip = [
            python,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--no-index",
        ]
        self.run_words([*pip, "--target", target, wheel])
        code = f"import sys; sys.path.insert(0, {target!r}); "
        code += "import minder; print(minder.find_program())"
        self.assertEqual(
            self.run_words([python, "-c", code]).strip(), os.path.join(target, "bin", "minder")
        )

#!/usr/bin/env python3
"""Packs a program and the package `minder` into a wheel.

maturin makes such wheels, too, but only of a program that it builds by itself, with its own flags.
The program of a release is built once, for all of its archives, so this script takes it as it is.
It needs the standard library only, and writes the same bytes for the same input.
"""

import argparse
import base64
import hashlib
import os
import re
import sys
import time
import zipfile
from pathlib import Path
from typing import Dict, List, Tuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# The first time that a zip file can have.
EPOCH = 315532800
# The numbers of processors in the head of an ELF file.
MACHINES = {"x86_64": 62, "aarch64": 183, "i686": 3, "armv7l": 40, "riscv64": 243}

METADATA = """\
Metadata-Version: 2.1
Name: minder
Version: {version}
Summary: Runs a command for each value of an iterable, several at once
License: MIT OR Apache-2.0
Classifier: Environment :: Console
Classifier: Operating System :: {system}
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Rust
Classifier: Typing :: Typed
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{readme}"""


def main() -> None:
    """Reads the flags, and prints the path of the wheel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--program", type=Path, required=True, help="the program")
    parser.add_argument(
        "--platform-tag",
        required=True,
        help="such as manylinux2014_x86_64, win_amd64; several are joined by dots",
    )
    parser.add_argument("--version", help="by default that of the workspace")
    parser.add_argument("--out", type=Path, required=True, help="the directory for the wheel")
    args = parser.parse_args()
    try:
        version = python_version(args.version or workspace_version())
        print(build(args.program, args.platform_tag, version, args.out))
    except (OSError, ValueError) as error:
        sys.exit(f"build_wheel: {error}")


def workspace_version() -> str:
    """Returns the version in the manifest of the workspace."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    # Python 3.9 cannot read TOML.
    section = manifest.partition("[workspace.package]")[2].partition("\n[")[0]
    found = re.search(r'^version = "([^"]+)"', section, re.MULTILINE)
    if found is None:
        raise ValueError("cannot find the version in Cargo.toml")
    return found[1]


def python_version(version: str) -> str:
    """Returns a version of Cargo as Python writes it: `1.2.3-rc.1` is `1.2.3rc1`."""
    found = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?", version)
    if found is None:
        raise ValueError(f"invalid version {version!r}: expected 1.2.3, or 1.2.3-rc.1")
    stage = {"alpha": "a", "beta": "b", "rc": "rc", None: ""}[found[2]]
    return found[1] + stage + (found[3] or "")


def check_program(program: bytes, tag: str) -> None:
    """Checks that a program is one for the system of the tag."""
    if tag.startswith("win"):
        fits = program.startswith(b"MZ")
    elif tag.startswith("macosx"):
        fits = program[:4] in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
    else:
        machine = next((number for name, number in MACHINES.items() if tag.endswith(name)), None)
        if machine is None:
            raise ValueError(f"invalid platform tag {tag!r}: expected one as manylinux2014_x86_64")
        fits = (
            program.startswith(b"\x7fELF") and int.from_bytes(program[18:20], "little") == machine
        )
    if not fits:
        raise ValueError(f"the program is not one for {tag}")


def build(program: Path, platform_tag: str, version: str, out: Path) -> Path:
    """Writes the wheel. Returns its path."""
    tags = platform_tag.split(".")
    contents = program.read_bytes()
    for tag in tags:
        check_program(contents, tag)
    is_windows = tags[0].startswith("win")
    info = f"minder-{version}.dist-info"
    # Installers put this directory into `bin` or `Scripts`.
    name = f"minder-{version}.data/scripts/minder" + (".exe" if is_windows else "")
    entries: Dict[str, Tuple[bytes, int]] = {name: (contents, 0o755)}
    for file in HERE.glob("minder/*"):
        if file.suffix in (".py", ".typed"):
            entries[f"minder/{file.name}"] = (file.read_bytes(), 0o644)
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        entries[f"{info}/licenses/{licence}"] = ((ROOT / licence).read_bytes(), 0o644)
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    system = "Microsoft :: Windows" if is_windows else "POSIX"
    metadata = METADATA.format(version=version, readme=readme, system=system)
    entries[f"{info}/METADATA"] = (metadata.encode(), 0o644)
    wheel = ["Wheel-Version: 1.0", "Generator: build_wheel.py", "Root-Is-Purelib: false"]
    wheel += [f"Tag: py3-none-{tag}" for tag in tags]
    entries[f"{info}/WHEEL"] = ("\n".join(wheel + [""]).encode(), 0o644)
    record = f"{info}/RECORD"
    lines = [record_line(path, entries[path][0]) for path in sorted(entries)]
    entries[record] = ("\n".join([*lines, f"{record},,", ""]).encode(), 0o644)

    out.mkdir(parents=True, exist_ok=True)
    path = out / f"minder-{version}-py3-none-{platform_tag}.whl"
    # Installers look for the directory of the description at the end.
    names = sorted(entries, key=lambda name: (name.startswith(info), name))
    write(path, [(name, *entries[name]) for name in names])
    return path


def record_line(path: str, contents: bytes) -> str:
    """Returns the line of a file in the list of the wheel."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(contents)}"


def write(path: Path, entries: List[Tuple[str, bytes, int]]) -> None:
    """Writes a zip file in which nothing depends on the time, the user or the directory."""
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH)), EPOCH)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents, mode in entries:
            entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
            entry.create_system = 3  # Unix, whose permissions follow.
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, contents)


if __name__ == "__main__":
    main()

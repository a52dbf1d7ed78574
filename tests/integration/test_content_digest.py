"""Golden vectors of the content digest: one wheel, every installer, every kind of place.

The digest is "sha256 of what a distribution puts on disk, the same for the vendor's wheel, a
rebuilt wheel and the installed files".
"""

from __future__ import annotations

import csv
import hashlib
import io
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.adapters.installed import Content, read_contents, read_installed
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.wheelfile import inspect_wheel
from envlock.model.facts import Layout
from tests.support import pythons
from tests.support.pythons import cached_wheels, clean_env, make_venv, python_for
from tests.support.wheels import record_hash

pytestmark = pytest.mark.integration

GOLDEN = "sha256:b4315246f0e51e8460bfd43938612a190ddc79d5f0a7b5863a5ccb0015c1e9aa"

STEM = "Every_Scheme-1.0+das.opt1.dtk2604"
INFO = f"{STEM}.dist-info"
ENTRY_POINTS = """\
[console_scripts]
every = every_scheme:main
Every-Upper = every_scheme:main [extra]

[gui_scripts]
every-gui = every_scheme:main
"""
MEMBERS: dict[str, bytes] = {
    "every_scheme/__init__.py": b"def main():\n    print('every')\n",
    "every_scheme/empty.py": b"",
    "every_scheme/sourceless.pyc": b"\xa7\r\r\n code without a source",
    "every_scheme/\u6570\u636e/\u00e9t\u00e9.txt": "\u6570\u636e".encode(),
    "every_scheme/a, comma.txt": b"comma",
    'every_scheme/the "quoted".txt': b"quotes",
    "every_scheme/bin/helper": b"#!/bin/sh\nexit 0\n",
    f"{STEM}.data/purelib/every_pure.py": b"pure = True\n",
    f"{STEM}.data/platlib/every_plat.py": b"plat = True\n",
    f"{STEM}.data/scripts/every-plain": b"#!python\nprint('plain')\n",
    f"{STEM}.data/scripts/every-option": b"#!python -E\nprint('option')\n",
    f"{STEM}.data/scripts/every-window": b"#!pythonw\nprint('window')\n",
    f"{STEM}.data/scripts/every-env": b"#!/usr/bin/env python3\nprint('env')\n",
    f"{STEM}.data/scripts/every-shell": b"#!/bin/sh\necho shell\n",
    f"{STEM}.data/scripts/every-binary": b"\x7fELF\0\0#!python\n" + bytes(range(256)) * 64,
    f"{STEM}.data/scripts/every-open": b"#!python",
    f"{STEM}.data/headers/every.h": b"#define EVERY\n",
    f"{STEM}.data/headers/deep/er.h": b"#define DEEPER\n",
    f"{STEM}.data/data/bin/every-data": b"#!/usr/bin/env python3\nprint('data')\n",
    f"{STEM}.data/data/share/every/\u6570.txt": b"share",
    f"{STEM}.data/data/include/every-data.h": b"#define DATA\n",
    f"{STEM}.data/data/etc/every.conf": b"conf",
    f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: Every.Scheme\n"
    b"Version: 1.0+das.opt1.dtk2604\nProvides-Extra: extra\n",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\n"
    b"Tag: py3-none-any\n",
    f"{INFO}/entry_points.txt": ENTRY_POINTS.encode(),
    f"{INFO}/licenses/LICENSE": b"free\n",
}
RUNNABLE = ("helper", "every-data")

#: Where each member belongs, and what stands for a first line that an installer writes.
CONTENT: dict[str, bytes] = {
    "lib/every_scheme/__init__.py": b"def main():\n    print('every')\n",
    "lib/every_scheme/empty.py": b"",
    "lib/every_scheme/sourceless.pyc": b"\xa7\r\r\n code without a source",
    "lib/every_scheme/\u6570\u636e/\u00e9t\u00e9.txt": "\u6570\u636e".encode(),
    "lib/every_scheme/a, comma.txt": b"comma",
    'lib/every_scheme/the "quoted".txt': b"quotes",
    "lib/every_scheme/bin/helper": b"#!/bin/sh\nexit 0\n",
    "lib/every_pure.py": b"pure = True\n",
    "lib/every_plat.py": b"plat = True\n",
    "bin/every-plain": b"#!python\nprint('plain')\n",
    "bin/every-option": b"#!python\nprint('option')\n",
    "bin/every-window": b"#!python\nprint('window')\n",
    "bin/every-env": b"#!python\nprint('env')\n",
    "bin/every-shell": b"#!/bin/sh\necho shell\n",
    "bin/every-binary": b"\x7fELF\0\0#!python\n" + bytes(range(256)) * 64,
    "bin/every-open": b"#!python\n",
    "bin/every-data": b"#!python\nprint('data')\n",
    "include/every.h": b"#define EVERY\n",
    "include/deep/er.h": b"#define DEEPER\n",
    "data/share/every/\u6570.txt": b"share",
    "data/include/every-data.h": b"#define DATA\n",
    "data/etc/every.conf": b"conf",
    f"lib/{INFO}/METADATA": MEMBERS[f"{INFO}/METADATA"],
    f"lib/{INFO}/WHEEL": MEMBERS[f"{INFO}/WHEEL"],
    f"lib/{INFO}/entry_points.txt": ENTRY_POINTS.encode(),
    f"lib/{INFO}/licenses/LICENSE": b"free\n",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [(name, record_hash(data), len(data)) for name, data in MEMBERS.items()]
    record = io.StringIO(newline="")
    csv.writer(record, lineterminator="\n").writerows([*rows, (f"{INFO}/RECORD", "", "")])
    path = tmp_path_factory.mktemp("wheel") / f"{STEM}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**MEMBERS, f"{INFO}/RECORD": record.getvalue().encode()}.items():
            member = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            member.external_attr = (0o100755 if name.endswith(RUNNABLE) else 0o100644) << 16
            archive.writestr(member, data)
    return path


@pytest.fixture(scope="module")
def python() -> str:
    """The oldest pip that matters runs on nothing newer."""
    found = python_for("3.10")
    if found is None:
        pytest.skip("no Python 3.10 here")
    return found


# --- installers: (interpreter, wheel, prefix or nothing) ---------------------------------------

Install = Callable[[Path, Path, "Path | None"], None]


def old_pip(python: Path, wheel: Path, prefix: Path | None) -> None:
    """pip 22.0.2, as Ubuntu 22.04 has it, run from its own wheel."""
    [own] = cached_wheels("pip-22.0.2", "pip==22.0.2").glob("pip-*.whl")
    where = [] if prefix is None else ["--prefix", str(prefix)]
    command = [str(python), f"{own}/pip", "install", "--no-index", "--no-deps", *where, str(wheel)]
    done = subprocess.run(command, env=clean_env(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def new_pip(python: Path, wheel: Path, prefix: Path | None) -> None:
    where = [] if prefix is None else ["--prefix", str(prefix)]
    pythons.pip(python, "install", "--no-index", "--no-deps", *where, str(wheel))


def uv(python: Path, wheel: Path, prefix: Path | None) -> None:
    where = [] if prefix is None else ["--prefix", str(prefix)]
    pythons.uv(
        "pip", "install", "--python", str(python), "--offline", "--no-deps", *where, str(wheel)
    )


# --- places ---------------------------------------------------------------------------------


def install(how: Install, place: str, wheel: Path, python: str, folder: Path) -> Layout:
    """Installs into a place and says how it is laid out."""
    if place == "prefix":  # no venv: headers are elsewhere, as in a system or conda Python
        how(Path(python), wheel, folder / "usr")
        target = read_target(Named(python, "--python"), clean_env())
        return target.layout.moved(str(folder / "usr"))
    path = folder / {"venv": "v", "long": "/".join(["x" * 50] * 3), "space": "my venv"}[place]
    path.parent.mkdir(parents=True, exist_ok=True)
    own = make_venv(path, python)
    how(own, wheel, None)
    return read_target(Named(str(own), "--python"), clean_env()).layout


def content_of(layout: Layout, *, trust_record: bool = False) -> Content:
    dists = [dist for dist in read_installed(layout) if dist.name == "every-scheme"]
    [content] = read_contents(dists, layout, trust_record=trust_record)
    return content


def test_golden_vector() -> None:
    """``SCHEME/PATH NUL hex LF``, sorted by ``SCHEME/PATH`` as bytes; done here by hand."""
    lines = sorted(
        place.encode() + b"\0" + hashlib.sha256(data).hexdigest().encode() + b"\n"
        for place, data in CONTENT.items()
    )
    assert f"sha256:{hashlib.sha256(b''.join(lines)).hexdigest()}" == GOLDEN


def test_the_wheels_own(wheel: Path) -> None:
    found = inspect_wheel(str(wheel))
    assert found.errors == ()
    assert found.content == GOLDEN


@pytest.mark.parametrize("how", [old_pip, new_pip, uv])
@pytest.mark.parametrize("place", ["venv", "prefix", "long", "space"])
def test_one_digest(how: Install, place: str, wheel: Path, python: str, tmp_path: Path) -> None:
    layout = install(how, place, wheel, python, tmp_path)
    content = content_of(layout)
    assert content.reason == ""
    assert {place: file.hex for place, file in content.files.items()} == {
        place: hashlib.sha256(data).hexdigest() for place, data in CONTENT.items()
    }
    assert content.digest == GOLDEN
    assert content.mismatched == ()
    # installers differ about the mode of scripts, and about nothing else
    outside = {place for place in content.executable if not place.startswith("bin/")}
    assert outside == {"lib/every_scheme/bin/helper"}
    assert "bin/every-data" in content.executable
    assert content_of(layout, trust_record=True).digest == GOLDEN


@pytest.mark.parametrize(("place", "start"), [("long", b"#!/bin/sh\n'''exec' "), ("venv", b"#!/")])
def test_long_paths_have_a_trampoline(
    place: str, start: bytes, wheel: Path, python: str, tmp_path: Path
) -> None:
    """Else the vectors above would prove nothing about it."""
    layout = install(uv, place, wheel, python, tmp_path)
    assert (len(layout.scripts) > 127) is (place == "long")
    assert Path(layout.scripts, "every-option").read_bytes().startswith(start)

"""Wheels that are hard to install right, one for each way in which installers went wrong."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.support.wheels import make_wheel

ENTRY_POINTS = """
[console_scripts]
hard-run = hard.cli:main
Hard.Nested = hard.cli:App.run
hard-extra = hard.cli:main [fast]

[gui_scripts]
hard-window = hard.gui:main

[other.group]
not-a-script = hard.cli:main
"""


def _noise(size: int) -> bytes:
    """Bytes that do not deflate, the same ones every time."""
    blocks = (hashlib.sha256(b"%d" % number).digest() for number in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def scripts(folder: Path) -> Path:
    """Entry points of both kinds, and scripts with every first line there is."""
    return make_wheel(
        folder, "hard-scripts", "1.0",
        {
            "hard/__init__.py": "",
            "hard/cli.py": "def main():\n    print('ran')\n\n\nclass App:\n    run = main\n",
            ".data/scripts/plain": "#!python\nprint('plain')\n",
            ".data/scripts/window": "#!pythonw\nprint('window')\n",
            ".data/scripts/options": "#!python -s\nprint('options')\n",
            ".data/scripts/carriage": b"#!python\r\nprint('carriage')\r\n",
            ".data/scripts/absolute": "#!/usr/bin/python3\nprint('absolute')\n",
            ".data/scripts/shell": "#!/bin/sh\necho shell\n",
            ".data/scripts/open-end": "#!python",
            ".data/scripts/none": "echo none\n",
            ".data/scripts/binary": b"\x7fELF\0\1\2",
            ".data/scripts/empty": "",
            ".data/scripts/large": b"#!python\n" + b"# line\n" * 400_000,
            ".data/scripts/may-run": "#!python\nprint('may run')\n",
            "not_installed.py": "#!python\n",
        },
        entry_points=ENTRY_POINTS,
        executable=[".data/scripts/may-run"],
    )  # fmt: skip


def schemes(folder: Path) -> Path:
    """Every scheme, and data that lands where another scheme would."""
    return make_wheel(
        folder, "Hard.Schemes", "2.0+local.1",
        {
            "hard_schemes/__init__.py": "",
            ".data/purelib/hard_pure.py": "PURE = 1\n",
            ".data/platlib/hard_plat/native.so": b"\x7fELF native",
            ".data/headers/hard.h": "#define HARD 1\n",
            ".data/headers/deep/er.h": "#define DEEPER 1\n",
            ".data/data/share/hard/notice.txt": "notice\n",
            ".data/data/etc/hard.conf": "conf\n",
            ".data/data/bin/hard-data-tool": "#!python\nnot rewritten\n",
            ".data/scripts/hard-tool": "#!python\nprint('tool')\n",
        },
        purelib=False,
    )  # fmt: skip


def names(folder: Path) -> Path:
    """Names that need quoting, other alphabets, nothing inside, and folders shared by nobody."""
    return make_wheel(
        folder, "hard_names", "1.0",
        {
            "name space/with space.py": "",
            "name,space/comma,quoted.txt": "a,b\n",
            'name"space/double"quoted.txt': "quoted\n",
            "名前/模块.py": "NAME = '名前'\n",
            "näme/ünicode.txt": "ü\n",
            "deep/er/and/deeper/still/module.py": "DEEP = 1\n",
            "deep/er/other.py": "",
            "empty.txt": "",
            "empty_stored.txt": "",
            "kept.pyc": b"\0\1",
            "link_like": "target.txt",
        },
        stored=["empty_stored.txt"],
    )  # fmt: skip


def modes(folder: Path) -> Path:
    """Exec bits with and without the kind of file, and modes that nobody should have."""
    return make_wheel(
        folder, "hard-modes", "1.0",
        dict.fromkeys(MODES, b"\x7fELF"),
        modes=MODES,
    )  # fmt: skip


MODES = {
    "modes/regular_755": 0o100755,
    "modes/regular_644": 0o100644,
    "modes/regular_600": 0o100600,
    "modes/regular_444": 0o100444,
    "modes/owner_only": 0o100744,
    "modes/others_only": 0o100645,
    "modes/set_user": 0o104755,
    "modes/world_writes": 0o100666,
    "modes/all": 0o100777,
    "modes/nothing": 0,
}


def sizes(folder: Path) -> Path:
    """Members around the sizes at which a reader takes another way; stored, deflated, zip64."""
    files = {f"sizes/{size}.bin": _noise(size) for size in SIZES}
    files |= {f"sizes/stored-{size}.bin": _noise(size) for size in SIZES}
    files["sizes/zeros.bin"] = bytes(5_000_000)
    files["sizes/zip64.bin"] = _noise(70_000)
    files["sizes/zip64-stored.bin"] = _noise(70_000)
    return make_wheel(
        folder, "hard-sizes", "1.0", files,
        stored=[name for name in files if "stored" in name],
        zip64=[name for name in files if "zip64" in name],
    )  # fmt: skip


SIZES = (1, 8191, 8192, 8193, 262_143, 262_144, 262_145, 1_048_575, 1_048_576, 1_048_577, 3_333_333)


def odd(folder: Path) -> Path:
    """What no wheel should have."""
    info = "hard_odd-1.0.dist-info"
    return make_wheel(
        folder, "hard-odd", "1.0",
        {
            "odd/__init__.py": "",
            "odd/__pycache__/__init__.cpython-311.pyc": b"\0\1",
            f"{info}/INSTALLER": "somebody\n",
            f"{info}/REQUESTED": "yes\n",
            f"{info}/direct_url.json": "{}",
            f"{info}/RECORD.jws": "signature",
            f"{info}/licenses/LICENSE": "free\n",
        },
        entry_points="# comment\n[console_scripts]\nodd-run = odd:main\nodd%run = odd:main\n",
    )  # fmt: skip


HARD = {one.__name__: one for one in (scripts, schemes, names, modes, sizes, odd)}

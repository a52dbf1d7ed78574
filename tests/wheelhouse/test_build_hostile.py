"""What others made or may see: names inside wheels, passwords of indexes."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from envlock.adapters import process
from envlock.adapters.build_sdist import PipBuilder
from envlock.adapters.found_wheels import identify
from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.resolving import Pin, RemoteFile
from envlock.errors import ProgramFailed


@pytest.mark.parametrize(
    ("name", "metadata", "info"),
    [
        ("pkg (1).whl", "Name: {away}/torch\nVersion: 1\n", "Tag: py3-none-any\n"),
        ("pkg (1).whl", "Name: ../torch\nVersion: 1\n", "Tag: py3-none-any\n"),
        ("pkg (1).whl", "Name: torch\nVersion: 1/../../x\n", "Tag: py3-none-any\n"),
        ("pkg (1).whl", "Name: torch\nVersion: 1\\x\n", "Tag: py3-none-any\n"),
        ("pkg (1).whl", "Name: torch\nVersion: 1\n 2\n", "Tag: py3-none-any\n"),
        ("pkg (1).whl", "Name: torch\nVersion: 1\n", "Tag: py3-none-../../x\n"),
        ("pkg (1).whl", "Name: torch\nVersion: 1\n", "Build: 1\\x\nTag: py3-none-any\n"),
        ("torch-1-py3-none-..%2F..%2Fx.whl", "Name: torch\nVersion: 1\n", ""),
    ],
)
def test_hostile_names_inside_a_wheel(tmp_path: Path, name: str, metadata: str, info: str) -> None:
    """What is in a file says where it is put: never anywhere else."""
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torch-1.dist-info/METADATA", metadata.format(away=tmp_path / "away"))
        archive.writestr("torch-1.dist-info/WHEEL", f"Wheel-Version: 1.0\n{info}")
    found = identify(str(path))
    assert not found.file and found.problem and not found.misnamed


def test_passwords_are_on_no_command_line_of_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip is given them all the same."""
    commands: list[str] = []
    given: dict[str, str] = {}

    def failing(command: Sequence[str], *, env: dict[str, str], **_: object) -> process.Finished:
        commands.extend(command)
        given.update(env)
        return process.Finished(code=1, output="", timed_out=False)

    monkeypatch.setattr(process, "run", failing)
    secret = "http://me:secret@index.invalid"
    settings = IndexSettings(
        index=f"{secret}/a", more=(f"{secret}/b", f"{secret}/c"), proxy=secret,
        links=(f"{secret}/links", "/some folder"),
    )  # fmt: skip
    sdist = RemoteFile(file="a-1.tar.gz", urls=("http://index.invalid/a-1.tar.gz",), sha256="")
    with pytest.raises(ProgramFailed):
        PipBuilder(env={"PIP_INDEX_URL": "other"}, settings=settings).build(
            Pin("a", "1", sdist=sdist), str(tmp_path)
        )
    assert commands[-2:] == ["--find-links", "/some folder"]
    assert not [word for word in commands if "secret" in word]
    assert given["PIP_INDEX_URL"] == f"{secret}/a" and given["PIP_PROXY"] == secret
    assert given["PIP_EXTRA_INDEX_URL"] == f"{secret}/b {secret}/c"
    assert given["PIP_FIND_LINKS"] == f"{secret}/links"

"""What sources say about their build."""

from __future__ import annotations

import io
import tarfile
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from envlock.adapters.incoming import Web
from envlock.adapters.sources import (
    SourceFacts,
    fetch_archives,
    project_name,
    read_archive,
    read_tree,
)

PROJECT = '[build-system]\nrequires = ["setuptools", "torch>=2"]\n'
TREE = {
    "pyproject.toml": PROJECT,
    "setup.py": "import os\nfrom torch.utils import x\n# import numpy\n",
    "ops/__init__.py": "",
    "src/kernels/__init__.py": "",
    "src/kernels/deep/__init__.py": "",
    "csrc/a.cpp": "",
}
FACTS = SourceFacts(
    requires=("setuptools", "torch>=2"),
    imports=frozenset({"os", "torch"}),
    packages=frozenset({"ops", "kernels"}),
)


def tarball(path: Path, files: Mapping[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"ops-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def zipped(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"ops-1.0/{name}", text)
    return path


def test_a_tree(tmp_path: Path) -> None:
    for name, text in TREE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert read_tree(str(tmp_path / "tree")) == FACTS
    assert read_tree(str(tmp_path / "tree" / "csrc")) is None
    assert read_tree(str(tmp_path / "nowhere")) is None


def test_archives(tmp_path: Path) -> None:
    assert read_archive(str(tarball(tmp_path / "ops-1.0.tar.gz", TREE))) == FACTS
    assert read_archive(str(zipped(tmp_path / "ops-1.0.zip", TREE))) == FACTS
    no_project = tarball(tmp_path / "b.tar.gz", {"setup.py": "x"})
    assert read_archive(str(no_project)) == SourceFacts()


@pytest.mark.parametrize("text", ["[build-system", "\0", "x = 1\nx = 2"])
def test_what_cannot_be_read_is_not_known(text: str, tmp_path: Path) -> None:
    assert read_archive(str(tarball(tmp_path / "a.tar.gz", {"pyproject.toml": text}))) is None


@pytest.mark.parametrize("text", ["build-system = 3", "[build-system]\nrequires = 3",
                                  "[build-system]\nrequires = [3]"])  # fmt: skip
def test_what_is_of_another_kind_requires_nothing(text: str, tmp_path: Path) -> None:
    found = read_archive(str(tarball(tmp_path / "a.tar.gz", {"pyproject.toml": text})))
    assert found == SourceFacts()


def test_damaged_archives(tmp_path: Path) -> None:
    whole = tarball(tmp_path / "a.tar.gz", TREE).read_bytes()
    for name, data in {"b.tar.gz": whole[:60], "c.tar.gz": b"", "d.zip": b"PK"}.items():
        (tmp_path / name).write_bytes(data)
        assert read_archive(str(tmp_path / name)) is None
    assert read_archive(str(tmp_path / "nowhere.zip")) is None
    assert fetch_archives(["http://127.0.0.1:9/a.tar.gz", "http://[::1/a.tar.gz"], {}) == {}


def test_archives_behind_urls_share_one_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a look-up of a name that nothing can interrupt."""
    data = tarball(tmp_path / "a.tar.gz", TREE).read_bytes()
    started, over = threading.Barrier(4), threading.Event()

    class Answer(io.BytesIO):
        headers: Mapping[str, str] = {}

    def open_(self: object, url: str) -> Answer:
        started.wait(20)  # nobody begins later than the others
        if "silent" in url:
            over.wait(20)
        return Answer(data)

    monkeypatch.setattr(Web, "open", open_)
    good = [f"http://h/{one}.tar.gz?token=x#sha256=0" for one in "ab"]
    silent = [f"http://silent/{one}.tar.gz" for one in "ab"]
    found = fetch_archives([*good, *silent], {}, 2)
    over.set()
    assert found == dict.fromkeys(good, FACTS)


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("pyproject.toml", "[project]\nname = 'Flash.Attn'\n", "flash-attn"),
        ("pyproject.toml", "[project]\nversion = '1'\n", ""),
        ("pyproject.toml", "project = 1\n", ""),
        ("pyproject.toml", "not toml", ""),
        ("setup.cfg", "[metadata]\nname = torch\nversion = 1\n", "torch"),
        ("PKG-INFO", "Metadata-Version: 2.1\nName: Torch\n", "torch"),
        ("setup.py", "setup(name='torch')\n", ""),
    ],
)
def test_the_name_that_a_tree_says_it_has(file: str, text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    assert project_name(str(tmp_path)) == name
    assert project_name(f"{tmp_path.as_uri()}[extra]") == name
    assert project_name("https://x/y") == project_name(str(tmp_path / "none")) == ""

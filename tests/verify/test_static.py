"""static.lock names exactly what is damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.installed import read_installed
from envlock.model.check import Case, Status
from envlock.model.facts import Layout
from envlock.model.manifest import Manifest
from envlock.verify import static
from tests.support.fake_manifest import fake_layout, lock_site, put_dist

TORCH = "2.10.0+das.opt1.dtk2604"
FILES = {"torch/__init__.py": "x = 1\n", "torch/lib/libtorch.so": "ELF", "torch/bin/protoc": "#"}


class Site:
    """A locked site folder: torch (protected), tqdm and numpy."""

    def __init__(self, prefix: Path) -> None:
        self.layout: Layout = fake_layout(prefix)
        self.folder = Path(self.layout.purelib)
        put_dist(self.folder, "torch", TORCH, FILES)
        put_dist(self.folder, "tqdm", "4.66.0", {"tqdm/__init__.py": "y = 1\n"})
        put_dist(self.folder, "numpy", "1.26.4", {"numpy/__init__.py": "z = 1\n"})
        (self.folder / "torch/bin/protoc").chmod(0o755)
        self.manifest: Manifest = lock_site(self.layout, "torch")

    def cases(self) -> dict[str, Case]:
        found = static.compare(self.manifest, read_installed(self.layout), self.layout)
        return {case.name.split()[0]: case for case in found}

    def remove(self, name: str, version: str) -> None:
        shutil.rmtree(self.folder / f"{name}-{version}.dist-info")
        shutil.rmtree(self.folder / name)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def _upgrade(name: str, old: str, new: str) -> Callable[[Site], None]:
    def change(site: Site) -> None:
        site.remove(name, old)
        put_dist(site.folder, name, new, {f"{name}/__init__.py": "new = 1\n"})

    return change


def _delete(place: str) -> Callable[[Site], None]:
    return lambda site: (site.folder / place).unlink()


def _change(place: str) -> Callable[[Site], object]:
    return lambda site: (site.folder / place).write_text("changed\n")


def _rebuild(site: Site) -> None:
    site.remove("numpy", "1.26.4")
    put_dist(site.folder, "numpy", "1.26.4", {"numpy/__init__.py": "z = 2\n"})


def _twin(name: str, version: str) -> Callable[[Site], None]:
    return lambda site: put_dist(site.folder, name, version, {f"{name}/new.py": ""})


# what happened; which distribution; status; words of the reason
DAMAGE = [
    (_delete("torch/lib/libtorch.so"), "torch", Status.FAILED, "'lib/torch/lib/libtorch.so'"),
    (_change("torch/__init__.py"), "torch", Status.FAILED, "changed: 'lib/torch/__init__.py'"),
    (_change("tqdm/__init__.py"), "tqdm", Status.FAILED, "changed: 'lib/tqdm/__init__.py'"),
    (_upgrade("torch", TORCH, "2.13.0"), "torch", Status.FAILED, f"is 2.13.0, not {TORCH}"),
    (_upgrade("tqdm", "4.66.0", "4.67.0"), "tqdm", Status.WARNED, "is 4.67.0, not 4.66.0"),
    (_rebuild, "numpy", Status.FAILED, "other bytes at the same version"),
    (lambda site: site.remove("tqdm", "4.66.0"), "tqdm", Status.FAILED, "not installed"),
    (_twin("torch", "2.13.0"), "torch", Status.FAILED, "'torch-2.13.0.dist-info'"),
    (_twin("tqdm", "4.67.0"), "tqdm", Status.WARNED, "'tqdm-4.67.0.dist-info'"),
    (_delete(f"torch-{TORCH}.dist-info/RECORD"), "torch", Status.FAILED, "no RECORD"),
    (
        lambda site: (site.folder / "torch/bin/protoc").chmod(0o644),
        "torch",
        Status.FAILED,
        "not executable any more: 'lib/torch/bin/protoc'",
    ),
]


def test_an_untouched_site_passes(site: Site) -> None:
    cases = site.cases()
    assert {name: case.status for name, case in cases.items()} == dict.fromkeys(
        ("numpy", "torch", "tqdm"), Status.PASSED
    )
    assert cases["torch"].metrics["files"] == 4  # METADATA is content too


@pytest.mark.parametrize(("damage", "name", "status", "words"), DAMAGE)
def test_exactly_the_damaged_one_is_named(
    site: Site, damage: Callable[[Site], object], name: str, status: Status, words: str
) -> None:
    damage(site)
    cases = site.cases()
    assert (cases[name].status, words in cases[name].reason) == (status, True), cases[name]
    others = [case.status for other, case in cases.items() if other != name]
    assert others == [Status.PASSED] * 2


def test_what_the_manifest_could_not_keep_is_not_compared(site: Site) -> None:
    bare = [replace(d, content="", reason="editable install") for d in site.manifest.distributions]
    site.manifest = replace(site.manifest, distributions=tuple(bare))
    cases = site.cases()
    assert {case.status for case in cases.values()} == {Status.SKIPPED}
    assert cases["torch"].reason == "not compared: editable install"


def test_what_is_not_in_the_manifest_is_listed(site: Site) -> None:
    put_dist(site.folder, "scipy", "1.15.0", {"scipy/__init__.py": ""})
    assert static.extra(site.manifest, read_installed(site.layout)) == ["scipy 1.15.0"]

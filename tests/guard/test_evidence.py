"""What is found out beside the command line and the plan."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from envlock.adapters import network
from envlock.adapters.installed import Installed, Inventory
from envlock.adapters.installer import Change, Plan, Planner
from envlock.guard import evidence
from envlock.guard.case import Evidence, Protected
from envlock.guard.command import parse
from envlock.guard.decide import decide
from envlock.guard.run import Scene
from envlock.model.dist import Metadata
from envlock.model.facts import Layout, Target
from envlock.model.record import Row
from tests.support.wheels import make_wheel

TORCH = Protected(name="torch", version="2.10.0+das", installed="2.10.0+das")
PROJECT = '[build-system]\nrequires = ["torch"]\n'


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """URL of a folder; its server knows no ranges, and takes any query."""
    handler = partial(Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def scene(line: str, folder: Path) -> Scene:
    site = str(folder / "site")
    layout = Layout(prefix=str(folder), purelib=site, platlib=site, scripts=f"{folder}/bin",
                    headers=f"{folder}/include", data=str(folder))  # fmt: skip
    target = Target(executable="python", source="", python="3.11.0", markers={}, tags=(),
                    layout=layout, sys_path=(), glibc=None, pip=None,
                    venv=True, externally_managed=None, home=str(folder))  # fmt: skip
    torch = Installed(path="", dist_info="", site=site,
                      metadata=Metadata(name="torch", version=TORCH.version, requires=()),
                      rows=(Row("torch/__init__.py", "", None),))  # fmt: skip
    return Scene(request=parse(line.split()), target=target, planner=cast(Planner, None),
                 inventory=Inventory(distributions=(torch,), findings=()),
                 protected=(TORCH,), env={})  # fmt: skip


def archive(folder: Path, name: str) -> None:
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as file:
        entry = tarfile.TarInfo(f"{name}/pyproject.toml")
        entry.size = len(PROJECT)
        file.addfile(entry, io.BytesIO(PROJECT.encode()))


def told(scene_: Scene, *changes: Change) -> tuple[Evidence, set[str]]:
    """What is found out about a plan, and what is said about it."""
    plan = Plan(changes=changes)
    found = evidence.full_evidence(scene_, plan, evidence.first_evidence(scene_))
    reasons = decide(scene_.request, plan, scene_.protected, found).reasons
    return found, {f"{one.subject} {one.code} {one.level}" for one in reasons}


@pytest.mark.parametrize("query", ["", "?sig=a/b", "?sig=x#sha256=0"])
def test_a_query_hides_no_wheel(query: str, tmp_path: Path, served: str) -> None:
    wheel = make_wheel(tmp_path, "clobber", "1.0", {"torch/__init__.py": "CLOBBERED = 1\n"})
    change = Change(name="clobber", new="1.0", url=f"{served}/{wheel.name}{query}")
    found, said = told(scene("pip install clobber", tmp_path), change)
    assert [one.build for one in found.overlaps] == ["torch"]
    assert said == {"torch guard.overlap error"}


def test_a_list_that_is_not_known_is_told(tmp_path: Path, served: str) -> None:
    change = Change(name="gone", new="1.0", url=f"{served}/gone-1.0-py3-none-any.whl?sig=a")
    found, said = told(scene("pip install gone", tmp_path), change)
    assert found.unlisted == ("gone",)
    assert said == {"gone guard.overlap info"}


@pytest.mark.parametrize("query", ["", "?token=a/b", "?token=x#sha256=0"])
def test_a_query_hides_no_source(query: str, tmp_path: Path, served: str) -> None:
    archive(tmp_path, "ext-1.0")
    url = f"{served}/ext-1.0.tar.gz{query}"
    (asked,) = evidence.first_evidence(scene(f"pip install {url}", tmp_path)).sources
    assert asked.requires == frozenset({"torch"})
    change = Change(name="ext", new="1.0", url=url)
    found, _ = told(scene("pip install ext", tmp_path), change)
    assert [one.requires for one in found.sources] == [frozenset({"torch"})]
    # one that was asked for is not looked at twice
    found, _ = told(scene(f"pip install {url}", tmp_path), change)
    assert len(found.sources) == 1


@pytest.mark.parametrize(
    ("more", "patience"), [("tqdm", network.PROBE_SECONDS), ("torch==2.9.1", 0.25)]
)
def test_silence_is_found_out_before_archives_are_asked_for(
    more: str, patience: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[str], float]] = []

    def silent(urls: list[str], seconds: float) -> bool:
        asked.append((urls, seconds))
        return False

    def fetched(*_: Any) -> None:
        raise AssertionError("nobody is there")

    monkeypatch.setattr(network, "reachable", silent)
    monkeypatch.setattr(evidence, "fetch_archives", fetched)
    urls = ["http://h/a-1.tar.gz", "http://h/b-1.tar.gz?token=x"]
    found = evidence.first_evidence(scene(f"pip install {more} {' '.join(urls)}", tmp_path))
    assert asked == [(urls, patience)]
    assert [one.requires for one in found.sources] == [None, None]


@pytest.mark.parametrize(
    ("options", "isolated"),
    [
        ("", {"apex": True, "other": True}),
        ("--no-build-isolation-package Apex", {"apex": False, "other": True}),
        ("--no-build-isolation-package=third", {"apex": True, "other": True}),
    ],
)
def test_isolation_is_decided_for_each_source(
    options: str, isolated: dict[str, bool], tmp_path: Path
) -> None:
    for name in isolated:
        archive(tmp_path, f"{name}-1.0")
    files = " ".join(f"{tmp_path}/{name}-1.0.tar.gz" for name in isolated)
    scene_ = scene(f"uv pip install {options} {files}", tmp_path)
    found = evidence.first_evidence(scene_)
    assert found.isolated
    assert {Path(one.raw).name[:-11]: one.isolated for one in found.sources} == isolated
    reasons = decide(scene_.request, Plan(), scene_.protected, found).reasons
    assert [one.level for one in reasons] == ["error"]
    shown = "other-1.0" if not isolated["apex"] else "apex-1.0"
    assert f"{shown}.tar.gz' would be built against a public 'torch'" in reasons[0].what

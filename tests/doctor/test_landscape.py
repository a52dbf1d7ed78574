"""What else stands on the way of an import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.installed import read_inventory
from envlock.doctor.landscape import (
    Landscape,
    no_target_section,
    python_section,
    user_folders,
)
from envlock.model.facts import Finding, Target
from tests.adapters.site import Site

VENDOR = "2.10.0+das.opt1.dtk2604"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path / "venv")
    site.add("torch", VENDOR)
    site.add("tqdm", "4.67.1")
    return site


@pytest.fixture
def land(site: Site) -> Landscape:
    python = str(site.prefix / "bin/python3")
    target = Target(
        executable=python,
        source="PATH",
        python="3.10.12",
        markers={},
        tags=("cp310-cp310-linux_x86_64",),
        layout=site.layout,
        sys_path=("/usr/lib/python3.10", str(site.site)),
        glibc=(2, 35),
        venv=True,
        pip="24.0",
        externally_managed=None,
        home=str(site.prefix),
    )
    return Landscape(
        target=target,
        named=python,
        inventory=read_inventory(site.layout),
        env={},
        vendor={"torch": ("label",)},
        names=("torch", "triton"),
        title="Hygon DCU (DTK)",
        python=python,
        pip=python,
        own=("0.1.0", False),
    )


def codes(land: Landscape) -> dict[str, str]:
    return {one.code: one.level for one in python_section(land).findings}


def shown(land: Landscape) -> dict[str, str]:
    return {row.name: row.value for row in python_section(land).rows if not row.detail}


def test_nothing_is_wrong(land: Landscape, site: Site) -> None:
    assert codes(land) == {}
    assert shown(land) == {
        "Python": f"3.10.12, {site.prefix}/bin/python3 (from PATH)",
        "environment": f"a venv, {site.prefix}",
        "packages": f"2 in {site.site}",
        "pip": "24.0",
        "envlock": "0.1.0, in an environment of its own",
        "torch": f"{VENDOR}  (label)",
    }


CASES: list[tuple[Mapping[str, Any], dict[str, str]]] = [
    ({"python": "/usr/bin/python3"}, {"python.other-on-path": "warning"}),
    ({"pip": "/usr/bin/python3"}, {"python.other-pip": "warning"}),
    ({"python": "", "pip": ""}, {}),
    ({"user": ("tqdm", "rich")}, {"python.user-site": "info"}),
    ({"user": ("tqdm", "torch")}, {"python.user-site": "warning"}),
    ({"env": {"PYTHONHOME": "/opt/py"}}, {"python.home-variable": "warning"}),
    ({"env": {"PYTHONPATH": "/opt/triton:/usr/local/"}}, {}),
    ({"env": {"PYTHONPATH": "/x/lib/python3.10/site-packages"}}, {}),
    ({"env": {"PYTHONPATH": "/x/lib/python3.8/site-packages"}}, {"python.path-version": "warning"}),
    ({"env": {"PYTHONPATH": "/x/lib/python3.1"}}, {"python.path-version": "warning"}),
    ({"own": ("0.1.0", True)}, {"python.own-target": "info"}),
    ({"vendor": {}}, {"stack.looks-public": "warning"}),
    ({"vendor": {}, "known": {"torch": VENDOR}}, {}),  # the manifest knows it as a vendor build
    ({"vendor": {}, "known": {"torch": "2.10.0+das.opt2"}}, {"stack.looks-public": "warning"}),
    ({"env": {"VIRTUAL_ENV": "/envlock"}}, {"python.venv-ignored": "info"}),
    ({"shadows": (Finding(code="path.shadowed", subject="torch", what="x"),)},
     {"path.shadowed": "warning"}),
]  # fmt: skip


@pytest.mark.parametrize(("change", "found"), CASES, ids=[str(case[0])[:60] for case in CASES])
def test_findings(land: Landscape, change: Mapping[str, Any], found: dict[str, str]) -> None:
    assert codes(replace(land, **change)) == found


def test_what_was_named_on_purpose_is_no_surprise(land: Landscape) -> None:
    land = replace(land, target=replace(land.target, source="--python"), python="/usr/bin/python3")
    assert codes(land) == {"python.other-on-path": "info"}


def test_a_shim_is_the_target_where_the_target_was_found_by_it(land: Landscape) -> None:
    """A version manager's ``python3`` lies elsewhere than the interpreter that it starts."""
    shim = "/home/a/.shims/python3"
    land = replace(land, named=shim, python=shim, pip="/home/a/.shims/python3")
    assert codes(land) == {}


def test_managed_by_others(land: Landscape) -> None:
    marker = "/usr/lib/python3.10/EXTERNALLY-MANAGED"
    target = replace(land.target, externally_managed=marker, venv=False, home="/usr")
    land = replace(land, target=target)
    assert codes(land) == {"python.managed": "info"}
    assert shown(land)["environment"] == f"no venv, /usr, managed by others ({marker})"


@pytest.mark.parametrize("home", ["/opt/conda", "/home/a/miniconda3", "/opt/conda/envs/x"])
def test_condas(land: Landscape, home: str) -> None:
    land = replace(land, target=replace(land.target, venv=False, home=home))
    assert shown(land)["environment"] == f"conda's, {home}"


def test_broken_metadata_and_leftovers(land: Landscape, site: Site) -> None:
    (site.add("peft", "1.0") / "RECORD").unlink()
    (site.site / "~orch-2.9.dist-info").mkdir()
    land = replace(land, inventory=read_inventory(site.layout))
    assert codes(land) == {"python.broken-metadata": "warning", "dist.leftover": "warning"}
    assert python_section(land).findings[0].subject == "peft"


def test_user_folders(land: Landscape, tmp_path: Path) -> None:
    own = str(tmp_path / "home/.local/lib/python3.10/site-packages")
    target = replace(land.target, sys_path=("/usr/lib/python3.10", own, land.target.sys_path[-1]))
    assert user_folders(target, str(tmp_path / "home/.local")) == [own]
    assert user_folders(target, str(tmp_path / "other")) == []
    # an environment below ~/.local is no user site
    inside = replace(target, layout=replace(target.layout, prefix=str(tmp_path / "home/.local/v")))
    inside = replace(inside, sys_path=(str(tmp_path / "home/.local/v/lib/site-packages"),))
    assert user_folders(inside, str(tmp_path / "home/.local")) == []


def test_no_target() -> None:
    section = no_target_section("target: no Python found", "name it", broken=False)
    [found] = section.findings
    assert (found.code, found.level, found.what) == ("python.none", "warning", "no Python found")
    assert no_target_section("x", "", broken=True).findings[0].level == "error"

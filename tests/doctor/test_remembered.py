"""What envlock knows of a target, and what has changed since, by version alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envlock.doctor.remembered import Knowledge, envlock_section
from envlock.model.dist import Distribution
from envlock.model.facts import Finding, Machine
from envlock.model.manifest import LockedTarget, Manifest, Stack

VENDOR = "2.10.0+das.opt1.dtk2604"
MANIFEST = Manifest(
    name="dtk2604-cp310",
    created="2026-11-30T08:00:00Z",
    tool="tests",
    profile="dtk",
    stack=Stack(),
    target=LockedTarget(python="3.10.12", markers={}, tags=("py3-none-any",), paths={}),
    machine=Machine(),
    distributions=(
        Distribution(name="torch", version=VENDOR, vendor=("label",), protected=True),
        Distribution(name="tqdm", version="4.67.1"),
    ),
)
HEALTHY = Knowledge(
    manifest=MANIFEST,
    source="/s/manifest.yaml",
    wheels="/w",
    installed={"torch": VENDOR, "tqdm": "4.67.1"},
    vendor=("torch",),
)


def codes(known: Knowledge) -> dict[str, str]:
    return {one.code: one.level for one in envlock_section(known).findings}


def shown(known: Knowledge) -> dict[str, str]:
    return {row.name: row.value for row in envlock_section(known).rows}


def test_as_it_was() -> None:
    assert codes(HEALTHY) == {}
    assert shown(HEALTHY) == {
        "manifest": "dtk2604-cp310 of 2026-11-30T08:00:00Z (/s/manifest.yaml)",
        "protected builds": "1 of 1 there by version; bytes: 'envlock verify'",
        "kept wheels": "/w",
    }


@pytest.mark.parametrize(
    ("now", "code", "said"),
    [
        ({"torch": "2.11.0", "tqdm": "4.67.1"}, "drift.changed", f"'{VENDOR}' is now '2.11.0'"),
        ({"tqdm": "4.67.1"}, "drift.gone", f"'{VENDOR}' is gone"),
        ({"torch": "2.10.0", "tqdm": "4.67.1"}, "drift.changed", f"'{VENDOR}' is now '2.10.0'"),
    ],
)
def test_a_protected_build_is_lost(now: dict[str, str], code: str, said: str) -> None:
    known = replace(HEALTHY, installed=now)
    [found] = envlock_section(known).findings
    assert (found.code, found.level, found.what) == (code, "error", said)
    assert found.hint == "put it back: envlock restore"
    assert shown(known)["protected builds"].startswith("0 of 1 there")
    [without] = [f for f in envlock_section(replace(known, wheels="")).findings if f.code == code]
    assert "--wheelhouse DIR" in without.hint


def test_what_moved_besides() -> None:
    known = replace(HEALTHY, installed={"torch": VENDOR, "tqdm": "4.68.0", "peft": "1.0"})
    assert codes(known) == {}
    assert shown(known)["other changes"] == "peft, tqdm"
    assert envlock_section(known).data["moved"] == ["peft", "tqdm"]


def test_nothing_is_known() -> None:
    assert codes(Knowledge(vendor=("torch",))) == {"state.no-manifest": "warning"}
    assert codes(Knowledge()) == {}
    assert codes(replace(HEALTHY, wheels="")) == {"state.no-wheels": "warning"}


def test_unfinished_and_unreadable() -> None:
    known = replace(HEALTHY, unfinished=("a restore has not ended: '/t'", "recover"))
    [found] = envlock_section(known).findings
    assert (found.code, found.level, found.hint) == ("state.unfinished", "error", "recover")
    assert codes(Knowledge(unreadable="m.yaml: cut off", vendor=("torch",))) == {
        "state.unreadable": "error"
    }


def test_what_guard_says_of_plain_installs() -> None:
    said = Finding(code="always.changed", subject="pip.conf", what="x", level="error")
    known = replace(HEALTHY, held="not held any more", holding=(said,))
    assert codes(known) == {"always.changed": "error"}
    assert shown(known)["plain installs"] == "not held any more"

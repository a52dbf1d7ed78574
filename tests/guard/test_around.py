"""The way around a vendor's own metadata, on plans made by hand."""

from __future__ import annotations

import pytest

from envlock.adapters.installed import Installed
from envlock.adapters.installer import Change, Plan, Stated
from envlock.guard.around import pins_of, without_unmet
from envlock.guard.command import parse
from envlock.guard.decide import Protected
from envlock.model.dist import Metadata

TORCH = Protected(name="torch", version="2.10.0+das", installed="2.10.0+das")


def dist(name: str, version: str, *requires: str) -> Installed:
    metadata = Metadata(name=name, version=version, requires=requires, extras=("dev",))
    return Installed(path="", dist_info="", site="", metadata=metadata)


def test_only_what_is_not_met_is_left_out() -> None:
    dists = [
        dist("Torch", "2.10.0+das", "filelock>=3", "das-runtime==1", "numpy<2",
             "gone; python_version < '3'", "black; extra == 'dev'"),
        dist("xformers", "0.0.33", "torch==2.9.1", "einops"),
        dist("peft", "0.1", "torch>=1.13", "accelerate"),
        dist("numpy", "2.1"),
        dist("filelock", "3.1"),
    ]  # fmt: skip
    stated, findings = without_unmet(dists, {"torch": TORCH}, {"python_version": "3.11"})
    assert stated == [
        Stated(name="torch", version="2.10.0+das", extras=("dev",),
               requires=("filelock>=3", "gone; python_version < '3'", "black; extra == 'dev'")),
        # what it misses of others is no reason to lose a build
        Stated(name="xformers", version="0.0.33", requires=("einops",), extras=("dev",)),
    ]  # fmt: skip
    assert [(one.code, one.subject) for one in findings] == [
        ("guard.repair", "torch"),
        ("guard.repair", "xformers"),
    ]
    assert "'das-runtime==1' and 'numpy<2'" in findings[0].what


def test_where_all_is_met_nothing_is_stated() -> None:
    dists = [dist("torch", "2.10.0+das", "filelock"), dist("filelock", "3.1", "missing")]
    assert without_unmet(dists, {"torch": TORCH}, {}) == ([], [])


@pytest.mark.parametrize(
    ("line", "pins"),
    [
        ("install ops", ("ops===1.0", "tqdm===4.0")),
        ("install ./ops-1.0-py3-none-any.whl", ("./ops-1.0-py3-none-any.whl", "tqdm===4.0")),
        ("install -e ./ops#egg=ops", ("--editable=./ops#egg=ops", "tqdm===4.0")),
        # its name is not known before it is built
        ("install ./ops", None),
        ("install -U ops", None),
        ("install --group dev", None),
    ],
)
def test_a_plan_as_pins(line: str, pins: tuple[str, ...] | None) -> None:
    plan = Plan(changes=(Change(name="ops", new="1.0"), Change(name="tqdm", new="4.0")))
    assert pins_of(parse(["pip", *line.split()]), plan) == pins


def test_a_removal_is_no_pin() -> None:
    plan = Plan(changes=(Change(name="ops", old="1.0"),))
    assert pins_of(parse(["uv", "pip", "install", "tqdm"]), plan) is None

"""The way around a vendor's own metadata, on plans made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from envlock.adapters.installed import Installed
from envlock.adapters.installer import Change, Plan, Stated
from envlock.guard.around import pins_around, pins_of, without_unmet
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


VLLM = Protected(name="vllm", version="0.9+das", installed="0.9+das")
REPAIRED = (
    Change(name="torch", old="2.10.0+das", new="2.11.0", requires=("triton==3.6.0",)),
    Change(name="triton", new="3.6.0", requires=()),
)


def pins(
    line: str, *changes: Change, files: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...] | None:
    """For a plan that repairs torch and changes something beside it."""
    held = {"torch": TORCH, "vllm": VLLM}
    plan = Plan(changes=(*REPAIRED, *changes))
    return pins_around(parse(line.split(), files.get), plan, held, frozenset({"torch"}))


PEFT = Change(name="peft", new="1.0", requires=("tqdm",))


def test_a_repair_is_left_out() -> None:
    assert pins("pip install peft", PEFT) == ("peft===1.0",)
    assert pins("pip install peft -r r.txt", PEFT, files={"r.txt": "peft"}) == ("peft===1.0",)


@pytest.mark.parametrize(
    "line",
    [
        "pip install -r http://h/r.txt",
        "pip install peft -r https://h/r.txt",
        "pip install peft -c https://h/c.txt",
        "pip install peft -r nested.txt",
        "pip install peft -c bounded.txt",
        "uv pip install peft -r https://h/r.txt",
        "uv pip install peft -c https://h/c.txt",
        "pip install -r empty.txt",
        "pip install",
    ],
)
def test_lists_that_only_the_tool_reads_are_not_taken_for_empty(line: str) -> None:
    files = {"nested.txt": "-r http://h/r.txt", "bounded.txt": "-c http://h/c.txt", "empty.txt": ""}
    assert pins(line, files=files) is None
    assert pins(line, PEFT, files=files) is None


def test_what_an_extra_needs_is_not_left_out() -> None:
    sound = Change(name="soundfile", new="1.0", requires=())
    assert pins("pip install vllm") == ()
    assert pins("pip install vllm[audio]", sound) is None
    assert pins("pip install vllm[audio]") is None  # it may be among what the repair leads to
    assert pins("pip install installed[audio]", sound) is None
    # an installed distribution lacks it
    assert pins("pip install installed", sound) is None
    extra = Change(name="peft", new="1.0", requires=("vllm[audio]",))
    assert pins("pip install peft", extra, sound) is None

"""An offer that the tool rejects, or that names nothing, is none."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from envlock.adapters.installer import Known, Plan
from envlock.cli import offering, wiring
from envlock.cli.options import Common
from envlock.cli.show import Screen
from envlock.guard import run
from envlock.guard.decide import Decision, Verdict
from envlock.guard.run import Judgement, Scene

SCENE = cast(Scene, SimpleNamespace(target=None))
#: What the refusal of an offer offers.
NEXT = ("pip", "install", "--no-deps", "x")

Offer = Callable[..., tuple[str, ...]]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """What is left of an offer, of whose plan so much is known."""
    monkeypatch.setattr(wiring, "scene", lambda *_: None)

    def left(line: str, known: Known, verdict: Verdict) -> tuple[str, ...]:
        judged = Judgement(plan=Plan(known=known), decision=Decision(verdict=verdict, instead=NEXT))
        monkeypatch.setattr(run, "judge", lambda _: judged)
        common = Common(screen=cast(Screen, None))
        refused = offering._refused(common, SCENE, line.split())
        return tuple(line.split()) if refused is None else refused

    return left


@pytest.mark.parametrize("line", ["pip install x", "uv pip install -e .", "pip install -r r.txt",
                                  "uv pip install --group dev", "uv sync --inexact"])  # fmt: skip
def test_what_is_allowed_is_offered(line: str, offer: Offer) -> None:
    assert offer(line, Known.PLANNED, Verdict.ALLOWED) == tuple(line.split())
    assert offer(line, Known.UNKNOWN, Verdict.ALLOWED) == tuple(line.split())
    assert offer(line, Known.PLANNED, Verdict.REFUSED) == NEXT


def test_what_the_tool_rejects_is_not_offered(offer: Offer) -> None:
    assert offer("pip install x", Known.REJECTED, Verdict.ALLOWED) == ()


@pytest.mark.parametrize("line", ["pip install", "pip install -q", "uv pip install --no-deps",
                                  "pip uninstall -y"])  # fmt: skip
def test_what_names_nothing_is_not_offered(line: str, offer: Offer) -> None:
    assert offer(line, Known.PLANNED, Verdict.ALLOWED) == ()

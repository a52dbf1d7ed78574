"""What is lost between two manifests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envlock.model.diff import losses, vanished
from envlock.model.dist import Distribution
from tests.support.fake_manifest import locked

A, B = (f"sha256:{letter * 64}" for letter in "ab")
TORCH = Distribution(
    name="torch", version="2.10.0+das.dtk2604", vendor=("label",), protected=True, content=A
)
CASES = [
    (TORCH, "", ""),
    (replace(TORCH, protected=False), "", ""),
    (replace(TORCH, vendor=()), "", ""),  # the same bytes are the same build
    (replace(TORCH, version="2.10+das.dtk2604"), "", ""),
    (None, "not installed any more", "not installed any more"),
    (replace(TORCH, content="", reason="no RECORD"), "no RECORD", "no RECORD"),
    (replace(TORCH, content=B), "other bytes", ""),
    (replace(TORCH, version="2.11.0+das.dtk2604", content=B), "is now '2.11.0+das.dtk2604'", ""),
    (replace(TORCH, version="2.11.0", vendor=(), content=B), "no vendor build", "no vendor build"),
    (replace(TORCH, vendor=(), content=B), "no vendor build", "no vendor build"),
]


@pytest.mark.parametrize(("now", "loss", "gone"), CASES)
def test_loss(now: Distribution | None, loss: str, gone: str) -> None:
    new = locked(*[now] if now else [])
    for find, expected in ((losses, loss), (vanished, gone)):
        found = [finding.what for finding in find(locked(TORCH), new)]
        assert len(found) == bool(expected)
        assert all(expected in what for what in found)


def test_only_what_is_protected_can_be_lost() -> None:
    assert losses(locked(replace(TORCH, protected=False)), locked()) == []


def test_what_had_no_content_cannot_lose_it() -> None:
    bare = replace(TORCH, content="", reason="no RECORD")
    assert losses(locked(bare), locked(TORCH)) == []
    assert losses(locked(bare), locked(bare)) == []


def test_every_loss_is_named() -> None:
    triton = replace(TORCH, name="triton")
    assert [one.subject for one in losses(locked(TORCH, triton), locked())] == ["torch", "triton"]

"""dev.sync_err: a runtime that hides its errors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.asking import Asked, reason, statuses
from tests.support.pythons import clean_env

TORCH = """
uint8 = "uint8"
broken = False
class OutOfMemoryError(RuntimeError): pass
class Count(int):
    def item(self): return int(self)
class Tensor:
    def __init__(self, value): self.value = value
    def __matmul__(self, other): return Tensor(512.0)
    def __ne__(self, right): return Tensor(1 if broken or self.value != right else 0)
    def sum(self): return Count(self.value)
    def numel(self): return 2**50
def ones(*shape, device): return Tensor(1.0)
def empty(count, dtype, device):
    global broken
    {answer}
class cuda:
    is_available = staticmethod(lambda: True)
    synchronize = staticmethod(lambda: None)
"""
WORK, MORE, AFTER = "work", "more memory than there is", "work after a refusal"


@pytest.mark.parametrize(
    ("answer", "failed", "words"),
    [
        ("raise OutOfMemoryError('tried to allocate 1 PiB')", [], ""),
        ("return Tensor(0)", [MORE], "1125899906842624 bytes were given"),
        ("raise RuntimeError('HIP error: invalid argument')", [MORE], "not OutOfMemoryError: "),
        ("broken = True; raise OutOfMemoryError('no')", [AFTER], "1 elements are not 512"),
    ],
)
def test_how_a_runtime_refuses(asked: Asked, answer: str, failed: list[str], words: str) -> None:
    asked.module("torch", TORCH.format(answer=answer))
    found = asked.ask("dev_sync_err", {})
    wanted = {name: "failed" if name in failed else "passed" for name in (WORK, MORE, AFTER)}
    assert statuses(found) == wanted
    assert words in reason(found)


@pytest.mark.torch
@pytest.mark.integration
def test_the_real_torch(asked: Asked, torch_target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.env = clean_env(OMP_NUM_THREADS="1")
    monkeypatch.setattr(sys, "executable", str(torch_target / "bin" / "python"))
    found = asked.ask("dev_sync_err", {}, "cpu")
    assert statuses(found) == dict.fromkeys((WORK, MORE, AFTER), "passed")

"""Kernels broken on purpose; the two that a processor has too are tried everywhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.device.broken_kernels import CAUGHT_BY, broken

ON_A_PROCESSOR = ("gemm-slice", "sdpa-gradient")


@pytest.mark.device
@pytest.mark.parametrize("fault", CAUGHT_BY)
def test_a_broken_kernel_is_caught_on_the_device(fault: str) -> None:
    python = shutil.which("python3")
    assert python is not None
    assert broken(fault, python, "cuda").well


@pytest.mark.torch
@pytest.mark.integration
@pytest.mark.parametrize("fault", ["", *ON_A_PROCESSOR])
def test_a_broken_kernel_is_caught(torch_target: Path, fault: str) -> None:
    found = broken(fault, str(torch_target / "bin" / "python"), "cpu")
    assert found.well is bool(fault), found
    assert fault or found.status == "passed"

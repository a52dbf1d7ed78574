"""What a wheelhouse has met already needs no index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.resolving import Question
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding
from envlock.model.manifest import Manifest
from envlock.wheelhouse.folder import write_papers
from envlock.wheelhouse.resolve import constraints, met
from envlock.wheelhouse.settled import settled
from tests.wheelhouse.test_check import add, manifest_of

#: A vendor build that leaves out on purpose what its metadata asks for.
TORCH = Distribution(
    name="torch", version="2.10.0+das.opt1.dtk2604", protected=True, vendor=("label",),
    requires=("numpy>=2", "nvidia-cublas==12"),
)  # fmt: skip
NUMPY = Distribution(name="numpy", version="2.2.6")
TARGET = manifest_of(
    TORCH,
    NUMPY,
    health=(
        Finding(
            code="requires.missing",
            subject="torch",
            what="needs 'nvidia-cublas==12'; not installed",
        ),
    ),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A wheelhouse in which peft and what it needs have been built."""
    wheels = tmp_path / "W"
    new = [
        add(wheels, "peft", "0.9", requires=["torch", "tqdm>=4; python_version < '3.11'",
                                             "gone; extra == 'dev'", "six; extra == 'old'"]),
        add(wheels, "tqdm", "4.5"),
        add(wheels, "six", "1.0"),
    ]  # fmt: skip
    write_papers(str(wheels), with_these(TARGET, *new))
    return wheels


def with_these(manifest: Manifest, *more: Distribution) -> Manifest:
    names = {dist.name for dist in more}
    kept = [dist for dist in manifest.distributions if dist.name not in names]
    return replace(manifest, distributions=tuple(sorted([*kept, *more], key=lambda dist: dist.key)))


def answer(folder: Path, *words: str, manifest: Manifest = TARGET, files: str = "") -> list[str]:
    asked = Question(
        requirements=words,
        files=(files,) if files else (),
        held=tuple(replace(d, requires=met(d, manifest)) for d in manifest.distributions),
        constraints=constraints(manifest),
        target=manifest.target,
    )
    return [f"{pin.name} {pin.version}" for pin in settled(str(folder), manifest, asked)]


PEFT = ["numpy 2.2.6", "peft 0.9", "torch 2.10.0+das.opt1.dtk2604", "tqdm 4.5"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["peft"], PEFT),
        (["Peft>=0.8", "tqdm"], PEFT),
        (["peft[old]"], [*PEFT[:2], "six 1.0", *PEFT[2:]]),
        (["tqdm", "win-only; sys_platform == 'win32'"], ["tqdm 4.5"]),
        (["numpy"], ["numpy 2.2.6"]),
    ],
)
def test_met(folder: Path, words: list[str], found: list[str]) -> None:
    assert answer(folder, *words) == found


@pytest.mark.parametrize(
    "words",
    [
        ["peft>0.9"],
        ["peft[dev]"],
        ["datasets"],
        ["peft @ http://a.invalid/peft-0.9-py3-none-any.whl"],
        ["./peft-0.9-py3-none-any.whl"],
        ["torch<2"],
    ],
)
def test_not_met(folder: Path, words: list[str]) -> None:
    assert answer(folder, *words) == []


def test_requirements_files(folder: Path, tmp_path: Path) -> None:
    listed = tmp_path / "r.txt"
    listed.write_text("# mine\n\npeft  # new\n")
    assert answer(folder, files=str(listed)) == PEFT
    for text in ("peft\n-r other.txt\n", "peft --hash=sha256:0\n", "peft \\\n"):
        listed.write_text(text)
        assert answer(folder, files=str(listed)) == []
    assert answer(folder, files=str(tmp_path / "none")) == []


def test_the_target_has_moved_on(folder: Path, tmp_path: Path) -> None:
    moved = with_these(TARGET, replace(NUMPY, version="2.3.0"))
    assert answer(folder, "peft", manifest=moved) == []
    other = replace(TARGET, target=replace(TARGET.target, tags=("cp310-none-any",)))
    assert answer(folder, "peft", manifest=other) == []
    more = with_these(TARGET, Distribution(name="scipy", version="1"))
    assert answer(folder, "peft", manifest=more) == []
    assert answer(tmp_path, "peft") == []


def test_what_is_open_stays_open(folder: Path) -> None:
    """A build that ended with a fault is done again."""
    lacking = add(folder, "peft", "0.9", requires=["missing"])
    write_papers(str(folder), with_these(TARGET, lacking))
    assert answer(folder, "peft") == []


@pytest.mark.parametrize("origin", ["index", "url", "file", "built"])
@pytest.mark.parametrize("own", [False, True], ids=["new", "in the target"])
def test_a_wheel_has_to_be_there(folder: Path, origin: str, own: bool) -> None:
    """What an index had then it need not have now, nor a folder of downloads."""
    tqdm = add(folder, "tqdm", "4.5")
    assert tqdm.wheel is not None
    tqdm = replace(tqdm, wheel=replace(tqdm.wheel, origin=origin))
    now = with_these(TARGET, tqdm)
    write_papers(str(folder), now)
    manifest = now if own else TARGET
    assert answer(folder, "tqdm", manifest=manifest) == ["tqdm 4.5"]
    (folder / "tqdm-4.5-py3-none-any.whl").write_bytes(b"damaged")
    assert answer(folder, "tqdm", manifest=manifest) == []


@pytest.mark.parametrize("protected", [False, True])
def test_what_only_the_target_gives_back(folder: Path, protected: bool) -> None:
    """No index is asked for a wheel that none has."""
    ref = WheelRef(file="x.whl", sha256="0" * 64, origin="url" if protected else "rebuilt")
    mine = Distribution(name="mine", version="1", wheel=ref, protected=protected)
    now = with_these(TARGET, mine)
    write_papers(str(folder), now)
    assert answer(folder, "mine", manifest=now) == ["mine 1"]

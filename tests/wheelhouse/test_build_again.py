"""build over what an earlier build left: nothing is forgotten, and what was lost is got again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.errors import Refused
from envlock.model.dist import Distribution, WheelRef
from envlock.model.manifest import Manifest, load
from envlock.wheelhouse.check import check
from envlock.wheelhouse.folder import write_papers
from envlock.wheelhouse.resolve import Built
from tests.support.wheels import make_wheel
from tests.wheelhouse import test_build
from tests.wheelhouse.test_build import MANIFEST, make_tools, run, wheels

pytestmark = pytest.mark.integration

index = test_build.index
tools = test_build.tools

PEFT = "peft-0.9-py3-none-any.whl"


def written(tmp_path: Path) -> Manifest:
    return load((tmp_path / "W" / "envlock.yaml").read_text())


def ref_of(tmp_path: Path, name: str) -> WheelRef | None:
    found = written(tmp_path).find(name)
    assert found is not None
    return found.wheel


def missing(path: Path) -> None:
    path.unlink()


def damaged(path: Path) -> None:
    path.write_bytes(b"damaged")


@pytest.mark.parametrize("lose", [missing, damaged])
@pytest.mark.parametrize("own", [False, True], ids=["target's manifest", "folder's manifest"])
def test_lost_wheel_is_got_again(
    tmp_path: Path, index: Path, own: bool, lose: Callable[[Path], None]
) -> None:
    tools = make_tools(index)
    first = run(tmp_path, tools, "peft")
    ref = ref_of(tmp_path, "peft")
    lose(tmp_path / "W" / PEFT)
    done = run(tmp_path, tools, "peft", manifest=first.manifest if own else MANIFEST)
    assert "peft" in [dist.name for dist in done.added]
    assert [f.code for f in done.findings] == (["wheel.unusable"] if lose is damaged else [])
    assert ref_of(tmp_path, "peft") == ref
    assert [f for f in check(str(tmp_path / "W")).findings if "peft" in f.subject] == []


def test_lost_dependency_is_got_again(tmp_path: Path, index: Path) -> None:
    tools = make_tools(index)
    first = run(tmp_path, tools, "peft")
    before = wheels(tmp_path)
    for wheel in (tmp_path / "W").glob("typing*"):
        wheel.unlink()
    make_wheel(index, "typing-extensions", "5.0")
    done = run(tmp_path, tools, "peft", manifest=first.manifest)
    assert [str(dist) for dist in done.added] == ["typing-extensions 4.0"]
    assert wheels(tmp_path) == before


def test_lost_wheel_of_a_folder_that_is_gone(tmp_path: Path, index: Path) -> None:
    """Another one that can be had is taken instead of failing for ever."""
    tools = make_tools(index)
    mine = make_wheel(tmp_path / "mine", "peft", "1.0")
    first = run(tmp_path, tools, "peft", links=(str(tmp_path / "mine"),))
    assert [str(dist) for dist in first.added] == ["peft 1.0"]
    mine.unlink()
    (tmp_path / "W" / "peft-1.0-py3-none-any.whl").unlink()
    done = run(tmp_path, tools, "peft", manifest=first.manifest)
    assert "peft 0.9" in [str(dist) for dist in done.added]
    assert [f.what for f in done.findings] == ["'1.0' becomes '0.9'"]


@pytest.mark.parametrize("origin", ["index", "rebuilt"])
def test_a_known_wheel_is_not_forgotten(tmp_path: Path, index: Path, origin: str) -> None:
    """Of what the request does not need, the hash says what was lost."""
    tools = make_tools(index)
    first = run(tmp_path, tools, "peft")
    changed = [
        replace(dist, wheel=replace(dist.wheel, origin=origin))
        if dist.name == "peft" and dist.wheel
        else dist
        for dist in first.manifest.distributions
    ]
    manifest = replace(first.manifest, distributions=tuple(changed))
    write_papers(str(tmp_path / "W"), manifest)
    (tmp_path / "W" / PEFT).unlink()
    run(tmp_path, tools, "numpy", manifest=manifest)
    ref = ref_of(tmp_path, "peft")
    assert ref is not None and (ref.file, ref.origin) == (PEFT, origin)
    told = [f.code for f in check(str(tmp_path / "W")).findings if f.subject == "peft"]
    assert told == ["wheelhouse.missing"]


# --------------------------------------------------------------------------- earlier additions


def two_builds(tmp_path: Path, index: Path, *, second: Manifest = MANIFEST) -> Built:
    make_wheel(index, "datasets", "3.0", requires=["numpy"])
    run(tmp_path, make_tools(index), "peft")
    return run(tmp_path, make_tools(index), "datasets", manifest=second)


def test_earlier_additions_stay(tmp_path: Path, index: Path) -> None:
    done = two_builds(tmp_path, index)
    names = {"datasets", "numpy", "peft", "sympy", "torch", "typing-extensions"}
    assert {dist.name for dist in done.manifest.distributions} == names
    assert ref_of(tmp_path, "peft") is not None
    assert done.findings == ()
    report = check(str(tmp_path / "W"))
    assert report.unknown == ()


def test_additions_suit_the_earlier_ones(tmp_path: Path, index: Path) -> None:
    make_wheel(index, "first", "1", requires=["shared<2"])
    make_wheel(index, "second", "1", requires=["shared"])
    make_wheel(index, "shared", "1")
    make_wheel(index, "shared", "2")
    run(tmp_path, make_tools(index), "first")
    done = run(tmp_path, make_tools(index), "second")
    shared = done.manifest.find("shared")
    assert shared is not None and shared.version == "1" and done.findings == ()


def test_of_another_target_nothing_is_dropped(tmp_path: Path, index: Path) -> None:
    other = replace(MANIFEST, target=replace(MANIFEST.target, tags=MANIFEST.target.tags[1:]))
    with pytest.raises(Refused, match=r"another target, .* 'peft 0\.9'"):
        two_builds(tmp_path, index, second=other)
    assert ref_of(tmp_path, "peft") is not None


def test_a_protected_build_stays(tmp_path: Path, index: Path) -> None:
    public = Distribution(name="torch", version="2.10.0")
    kept = [dist for dist in MANIFEST.distributions if dist.name != "torch"]
    after = replace(MANIFEST, distributions=(*kept, public))
    with pytest.raises(Refused, match=r"'torch': .* no vendor build"):
        two_builds(tmp_path, index, second=after)
    without = replace(MANIFEST, distributions=tuple(kept))
    done = run(tmp_path, make_tools(index), "numpy", manifest=without)
    assert [str(dist) for dist in done.manifest.protected] == [
        str(dist) for dist in MANIFEST.protected
    ]

"""check: every fault of a wheelhouse is found, and all in one run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.exports import requirements_text
from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.resolve_uv import UvResolver
from envlock.adapters.resolving import Pin, Question
from envlock.cli import main
from envlock.errors import ProgramFailed, Refused, UnusableInput
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding, Machine, TagFacts, supported_tags
from envlock.model.manifest import LockedTarget, Manifest, Stack, load
from envlock.wheelhouse import enough
from envlock.wheelhouse.check import check
from envlock.wheelhouse.folder import parse_sums, sums_text, write_papers
from envlock.wheelhouse.resolve import entry
from tests.support.pythons import clean_env
from tests.support.wheels import make_wheel, record_hash


def manifest_of(*dists: Distribution, health: tuple[Finding, ...] = ()) -> Manifest:
    return Manifest(
        name="cpu-cp310",
        created="2026-01-01T00:00:00Z",
        tool="tests",
        profile="cpu",
        stack=Stack(),
        target=LockedTarget(
            python="3.10.12",
            markers={"python_version": "3.10", "sys_platform": "linux"},
            tags=supported_tags(
                TagFacts(version=(3, 10), abi="cp310", platform="linux_x86_64", glibc=(2, 35))
            ),
            paths={"purelib": "lib/python3.10/site-packages"},
        ),
        machine=Machine(),
        health=health,
        distributions=tuple(sorted(dists, key=lambda dist: dist.key)),
    )


def add(folder: Path, name: str, version: str = "1.0", **more: object) -> Distribution:
    """A wheel, and its entry in a manifest."""
    from envlock.adapters.wheelfile import inspect_wheel

    return entry(inspect_wheel(str(make_wheel(folder, name, version, **more))))  # type: ignore[arg-type]


@pytest.fixture
def wheels(tmp_path: Path) -> tuple[Path, Manifest]:
    folder = tmp_path / "W"
    manifest = manifest_of(add(folder, "torch", requires=["sympy"]), add(folder, "sympy"))
    write_papers(str(folder), manifest)
    return folder, manifest


def texts(folder: Path) -> list[str]:
    return [f"{f.level} {f.code} {f.subject}: {f.what}" for f in check(str(folder)).findings]


def test_sound(wheels: tuple[Path, Manifest]) -> None:
    report = check(str(wheels[0]))
    assert (report.findings, report.unknown, report.without_wheel) == ((), (), ())
    assert len(report.wheels) == 2 and report.sound


def test_missing_and_unknown(wheels: tuple[Path, Manifest]) -> None:
    folder, _ = wheels
    (folder / "sympy-1.0-py3-none-any.whl").rename(folder / "other-1.0-py3-none-any.whl")
    assert texts(folder) == [
        "error wheelhouse.missing sympy: 'sympy-1.0-py3-none-any.whl' is not there",
        (
            "warning wheelhouse.unknown-wheel other-1.0-py3-none-any.whl: "
            "is in the folder, but not in its manifest"
        ),
        ("error wheelhouse.sums sympy-1.0-py3-none-any.whl: is in SHA256SUMS, but not there"),
    ]


def test_other_bytes(wheels: tuple[Path, Manifest]) -> None:
    folder, _ = wheels
    make_wheel(folder, "sympy", "1.0", {"sympy.py": "evil"})
    assert {text.split()[1] for text in texts(folder)} == {
        "wheelhouse.sha256",
        "wheelhouse.content",
        "wheelhouse.sums",
    }


def test_every_fault_of_a_wheel_is_told(wheels: tuple[Path, Manifest]) -> None:
    folder, manifest = wheels
    torch, sympy = manifest.find("torch"), manifest.find("sympy")
    assert torch and sympy and torch.wheel
    bad = add(folder, "bad", tag="cp27-cp27mu-linux_ppc64le",
              extra_record={"bad.py": record_hash(b"x")})  # fmt: skip
    swapped = replace(sympy, wheel=torch.wheel)
    write_papers(str(folder), manifest_of(torch, swapped, bad))
    found = texts(folder)
    assert "error wheel.record bad-1.0-cp27-cp27mu-linux_ppc64le.whl: " in "\n".join(found)
    assert (
        "error wheelhouse.tags bad-1.0-cp27-cp27mu-linux_ppc64le.whl: does not fit the manifest's "
        f"target ({manifest.target.tags[0]})"
    ) in found
    assert (
        "error wheelhouse.other torch-1.0-py3-none-any.whl: is not the wheel of 'sympy 1.0'"
    ) in found


def test_without_wheels(wheels: tuple[Path, Manifest]) -> None:
    folder, manifest = wheels
    extra = [
        Distribution(name="vendor", version="1+das", protected=True),
        Distribution(name="egg", version="1", reason="no RECORD"),
        Distribution(name="edit", version="1", editable=True),
    ]
    write_papers(str(folder), manifest_of(*manifest.distributions, *extra))
    assert texts(folder) == [
        "warning wheelhouse.no-wheel egg: '1' has no wheel here: no RECORD",
        "error wheelhouse.no-wheel vendor: '1+das' has no wheel here",
    ]


def test_not_enough(tmp_path: Path) -> None:
    folder = tmp_path / "W"
    a = add(folder, "a", requires=["b>=2", "c", "d; sys_platform == 'win32'", "e; extra == 'x'"])
    b = add(folder, "b", "1.0")
    write_papers(str(folder), manifest_of(a, b))
    missing = ["error requires.version a: needs 'b>=2'; '1.0' is installed",
               "error requires.missing a: needs 'c'; not installed"]  # fmt: skip
    assert texts(folder) == missing
    known = Finding(code="requires.missing", subject="a", what="needs 'c'; not installed")
    write_papers(str(folder), manifest_of(a, b, health=(known,)))
    assert texts(folder) == missing[:1]


def resolved(folder: Path) -> list[str]:
    """What uv finds missing, when it may use nothing but the folder."""
    program = str(Path(sys.executable).with_name("uv"))
    alone = UvResolver(program=program, env=clean_env(), settings=IndexSettings(no_index=True))
    found = check(str(folder), None, alone).findings
    return [f"{f.level} {f.code}: {f.what}" for f in found]


@pytest.mark.integration
def test_a_resolver_needs_nothing_else(tmp_path: Path) -> None:
    """Extras, markers of the target and pre-releases are judged, and no index is asked."""
    folder = tmp_path / "W"
    dists = [
        add(folder, "a", requires=["b[x]>=1", "no; python_version >= '3.11'"]),
        add(folder, "b", "1.0rc1+das.opt1", requires=["c; extra == 'x'", "no; extra == 'y'"]),
        add(folder, "c", "2.0", requires=["d @ https://nowhere.invalid/d-1.0.whl"]),
        add(folder, "d", "1.0"),
        Distribution(name="odd", version="1.0_vendor", reason="no wheel"),
        Distribution(name="needs-odd", version="1", requires=("odd>=1",)),
    ]
    write_papers(str(folder), manifest_of(*dists))
    assert [text for text in resolved(folder) if "no-wheel" not in text] == [
        "error requires.version: needs 'b[x]>=1'; '1.0rc1+das.opt1' is installed"
    ]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("requires", "said"),
    [
        (["gone"], "gone was not found"),
        (["b[x]"], "c was not found"),
        (["b>=2"], "depend on b>=2"),
        (["gone; sys_platform == 'win32'", "gone; python_version >= '3.11'", "b<2"], ""),
    ],
)
def test_the_resolver_judges_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requires: list[str], said: str
) -> None:
    """Where envlock's own comparison sees nothing, uv does."""
    monkeypatch.setattr(enough, "unmet", lambda dists, markers: [])
    folder = tmp_path / "W"
    a = add(folder, "a", requires=requires)
    b = add(folder, "b", requires=["c; extra == 'x'"])
    write_papers(str(folder), manifest_of(a, b))
    found = resolved(folder)
    assert len(found) == bool(said)
    assert [text for text in found if not text.startswith("error wheelhouse.not-enough: ")] == []
    assert said in "".join(found)


@pytest.mark.integration
def test_baseline_does_not_fail(tmp_path: Path) -> None:
    """What the healthy environment had unmet, extras included, is no fault of the folder."""
    folder = tmp_path / "W"
    a = add(folder, "a", requires=["b[x]>=2", "gone"])
    b = add(folder, "b", requires=["c; extra == 'x'"])
    write_papers(str(folder), manifest_of(a, b))
    health = [
        ("requires.version", "a", "needs 'b[x]>=2'; '1.0' is installed"),
        ("requires.missing", "a", "needs 'gone'; not installed"),
        ("requires.missing", "b", "needs 'c; extra == 'x''; not installed"),
    ]
    assert len(resolved(folder)) == 3
    known = tuple(Finding(code=c, subject=s, what=w, level="info") for c, s, w in health)
    write_papers(str(folder), manifest_of(a, b, health=known))
    assert resolved(folder) == []


class Says:
    """A resolver with one answer."""

    def __init__(self, answer: Exception | tuple[Pin, ...]) -> None:
        self.answer = answer

    def resolve(self, question: Question) -> tuple[Pin, ...]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((Pin("torch", "1.0"), Pin("sympy", "1.0")), []),
        (
            (Pin("mpmath", "1"),),
            [("error wheelhouse.not-enough: the wheels are not enough for the target: "
             "'mpmath' is needed")],
        ),
        (
            Refused("uv: no solution: Because x was not found"),
            [("error wheelhouse.not-enough: the wheels are not enough for the target: "
             "Because x was not found")],
        ),
        (
            ProgramFailed("uv: no answer in time", "wait"),
            [("warning wheelhouse.not-resolved: no resolver judged whether this is enough: "
             "uv: no answer in time")],
        ),
        (
            UnusableInput("target: no way to resolve for 'cp310-cp310-win_amd64'"),
            [("warning wheelhouse.not-resolved: no resolver judged whether this is enough: "
             "target: no way to resolve for 'cp310-cp310-win_amd64'")],
        ),
    ],
)  # fmt: skip
def test_answers(
    wheels: tuple[Path, Manifest], answer: Exception | tuple[Pin, ...], said: list[str]
) -> None:
    found = check(str(wheels[0]), None, Says(answer)).findings
    assert [f"{f.level} {f.code}: {f.what}" for f in found] == said


def test_requires_python(tmp_path: Path) -> None:
    folder = tmp_path / "W"
    new = add(folder, "new", requires_python=">=3.11")
    fine = add(folder, "fine", requires_python=">=3.8")
    odd = add(folder, "odd", requires_python=">=three")
    assert new.wheel
    write_papers(str(folder), manifest_of(new, fine, odd))
    assert texts(folder) == [
        (
            "error wheelhouse.python new-1.0-py3-none-any.whl: "
            "requires Python '>=3.11', the target has 3.10.12"
        )
    ]
    rebuilt = replace(new, wheel=replace(new.wheel, origin="rebuilt"))
    write_papers(str(folder), manifest_of(rebuilt, fine, odd))
    assert [text.split()[:2] for text in texts(folder)] == [["warning", "wheelhouse.python"]]


def test_every_finding_says_why_and_what_to_do(wheels: tuple[Path, Manifest]) -> None:
    folder, manifest = wheels
    bad = add(folder, "bad", requires=["gone"], tag="cp27-cp27mu-linux_ppc64le",
              extra_record={"bad.py": record_hash(b"x")})  # fmt: skip
    write_papers(str(folder), manifest_of(*manifest.distributions, bad))
    (folder / "sympy-1.0-py3-none-any.whl").rename(folder / "other-1.0-py3-none-any.whl")
    _garble(folder)
    found = check(str(folder)).findings
    assert len({finding.code for finding in found}) >= 6
    assert [f.code for f in found if not (f.subject and f.what and f.why and f.hint)] == []


def _remove(folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()


def _garble(folder: Path) -> None:
    (folder / "SHA256SUMS").write_text("hello\n")


def _edit_requirements(folder: Path) -> None:
    (folder / "requirements.txt").write_text("torch\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_remove, "SHA256SUMS: cannot be read: No such file or directory"),
        (_garble, "SHA256SUMS: cannot be read: 'hello'"),
        (_garble, "envlock.yaml: is not in SHA256SUMS"),
        (_edit_requirements, "requirements.txt: is not what SHA256SUMS says"),
    ],
)
def test_sums(wheels: tuple[Path, Manifest], change: Callable[[Path], None], message: str) -> None:
    change(wheels[0])
    assert f"error wheelhouse.sums {message}" in texts(wheels[0])


def test_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r"envlock\.yaml"):
        check(str(tmp_path))


def test_papers(wheels: tuple[Path, Manifest]) -> None:
    folder, manifest = wheels
    assert load((folder / "envlock.yaml").read_text()) == manifest
    text = (folder / "requirements.txt").read_text()
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["sympy===1.0", "torch===1.0"]
    claimed, odd = parse_sums((folder / "SHA256SUMS").read_text())
    assert odd == []
    assert set(claimed) == {path.name for path in folder.iterdir()} - {"SHA256SUMS"}


def test_invalid_version_is_a_comment() -> None:
    wheel = WheelRef(file="a-1_x-py3-none-any.whl", sha256="0" * 64, origin="file")
    text = requirements_text([Distribution(name="a", version="1-x!", wheel=wheel)])
    assert text.splitlines()[1] == "# a-1_x-py3-none-any.whl: '1-x!' is no valid version"


def test_sums_are_names() -> None:
    """A line that leads elsewhere is not followed."""
    line = f"{'0' * 64}  ../../etc/passwd\n"
    assert parse_sums(sums_text([("a", "0" * 64)]) + line) == ({"a": "0" * 64}, [line.strip()])


def test_command(wheels: tuple[Path, Manifest], capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = wheels
    assert main(["wheelhouse", "check", str(folder)]) == 0
    assert "2 wheels" in capsys.readouterr().out
    (folder / "sympy-1.0-py3-none-any.whl").unlink()
    assert main(["wheelhouse", "check", str(folder), "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "wheelhouse check" and document["exit"] == 3
    assert document["findings"][0]["code"] == "wheelhouse.missing"
    assert main(["wheelhouse", "check", str(folder / "no")]) == 4

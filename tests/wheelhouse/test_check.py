"""check: every fault of a wheelhouse is found, and all in one run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.cli import main
from envlock.errors import UnusableInput
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding, Machine, TagFacts, supported_tags
from envlock.model.manifest import LockedTarget, Manifest, Stack, load
from envlock.wheelhouse.check import check
from envlock.wheelhouse.folder import parse_sums, requirements_text, sums_text, write_papers
from envlock.wheelhouse.resolve import entry
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
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["sympy==1.0", "torch==1.0"]
    claimed, odd = parse_sums((folder / "SHA256SUMS").read_text())
    assert odd == []
    assert set(claimed) == {path.name for path in folder.iterdir()} - {"SHA256SUMS"}


def test_invalid_version_is_a_comment() -> None:
    wheel = WheelRef(file="a-1_x-py3-none-any.whl", sha256="0" * 64, origin="file")
    text = requirements_text(manifest_of(Distribution(name="a", version="1-x!", wheel=wheel)))
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

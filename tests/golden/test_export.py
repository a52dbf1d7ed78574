"""envlock export: what is in each file, what is not, and what is said about it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.cli import main
from envlock.model.dist import Distribution, WheelRef
from envlock.model.manifest import Manifest, dump
from tests.support.fake_manifest import locked

VENDOR = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"
_URL = "https://index.test/files/filelock-3.0.0-py3-none-any.whl"


def wheel(file: str, origin: str = "rebuilt", url: str = "") -> WheelRef:
    return WheelRef(file=file, sha256="1" * 64, origin=origin, size=7, url=url)


TORCH = Distribution(
    name="torch", version=VENDOR, vendor=("label",), protected=True,
    wheel=wheel(f"torch-{VENDOR}-cp311-cp311-linux_x86_64.whl"),
)  # fmt: skip
FILELOCK = Distribution(
    name="filelock", version="3.0.0",
    wheel=wheel("filelock-3.0.0-py3-none-any.whl", "index", _URL),
)  # fmt: skip
NUMPY = Distribution(name="numpy", version="1.26.4")
#: A vendor's versions of two eras that PEP 440 does not know.
APEX = Distribution(name="apex", version="0.1_dtk22.04.1", vendor=("label",), protected=True)
OLD = Distribution(name="vllm", version="0.3.3+das1.0+git3380931.abi0.dtk2404.torch2.1",
                   vendor=("label",), protected=True)  # fmt: skip
MINE = Distribution(name="mine", version="1.0", editable=True, reason="editable install")
BROKEN = Distribution(name="lost", version="", reason="METADATA is\nmissing")
TWICE = (Distribution(name="six", version="1.16.0"), Distribution(name="six", version="1.17.0"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheelhouse ``W`` in the folder that the command is given in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "W").mkdir()
    assert TORCH.wheel is not None
    (tmp_path / "W" / TORCH.wheel.file).touch()
    return tmp_path


def keep(manifest: Manifest, path: str = "W/envlock.yaml") -> str:
    markers = {"python_version": "3.11", "sys_platform": "linux"}
    target = replace(manifest.target, markers=markers)
    Path(path).write_text(dump(replace(manifest, target=target)))
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["export", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


PYLOCK = f"""\
lock-version = "1.0"
environments = [
    "python_version == \\"3.11\\" and sys_platform == \\"linux\\"",
]
requires-python = "==3.11.*"
created-by = "envlock"

[[packages]]
name = "filelock"
version = "3.0.0"

[[packages.wheels]]
name = "filelock-3.0.0-py3-none-any.whl"
url = "{_URL}"
size = 7

[packages.wheels.hashes]
sha256 = "{"1" * 64}"

[[packages]]
name = "torch"
version = "{VENDOR}"

[[packages.wheels]]
name = "torch-{VENDOR}-cp311-cp311-linux_x86_64.whl"
path = "W/torch-{VENDOR}-cp311-cp311-linux_x86_64.whl"
size = 7

[packages.wheels.hashes]
sha256 = "{"1" * 64}"
"""
REQUIREMENTS = f"""\
# install with: pip install --no-index --no-deps --find-links W --require-hashes -r FILE
filelock===3.0.0 --hash=sha256:{"1" * 64}
torch=={VENDOR} --hash=sha256:{"1" * 64}
"""
CONSTRAINTS = f"""\
# hold these builds: pip install -c FILE …, uv pip install -c FILE …
filelock===3.0.0
torch=={VENDOR}
"""


@pytest.mark.parametrize(
    ("format_name", "text"),
    [("pylock", PYLOCK), ("requirements", REQUIREMENTS), ("constraints", CONSTRAINTS)],
)
def test_what_is_written(
    format_name: str, text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = keep(locked(TORCH, FILELOCK))
    words = ("--format", format_name, "--manifest", path)
    assert run(capsys, *words) == (0, text, "")
    assert run(capsys, *words, "-q") == (0, text, "")
    code, out, err = run(capsys, *words, "-o", "pylock.toml")
    assert (code, err) == (0, "")
    assert out == f"wrote 2 distributions as {format_name}: 'pylock.toml'\n"
    assert Path("pylock.toml").read_text() == text


@pytest.mark.parametrize("format_name", ["pylock", "requirements", "constraints"])
def test_a_file_is_the_same_in_every_language(
    format_name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--format", format_name, "--manifest", keep(locked(TORCH, FILELOCK, MINE)))
    _, english, said = run(capsys, *words)
    _, chinese, told = run(capsys, *words, "--lang", "zh")
    assert chinese == english
    assert told != said


def test_a_lock_names_its_wheels_from_where_it_lies(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "locks").mkdir()
    path = keep(locked(TORCH))
    code, _, err = run(
        capsys, "--format", "pylock", "--manifest", path, "-o", "locks/pylock.dcu.toml"
    )
    assert (code, err) == (0, "")
    assert 'path = "../W/torch-2.10.0+das' in (folder / "locks/pylock.dcu.toml").read_text()


def test_a_name_that_is_none_of_a_lock(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--format", "pylock", "--manifest", keep(locked(TORCH)), "-o", "lock.toml")
    assert run(capsys, *words)[2] == (
        "envlock: pip and uv take a file for a lock by its name: pylock.toml, pylock.NAME.toml\n"
    )


@pytest.mark.parametrize("dist", [APEX, OLD], ids=["underscore", "two plus signs"])
@pytest.mark.parametrize("format_name", ["pylock", "requirements", "constraints"])
def test_a_version_that_no_tool_can_name(
    dist: Distribution, format_name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said, in the file too; a protected build that is missing makes the answer no."""
    has_wheel = replace(dist, wheel=wheel("x-1-py3-none-any.whl"))
    path = keep(locked(TORCH, has_wheel))
    code, out, err = run(capsys, "--format", format_name, "--manifest", path)
    why = f"'{dist.version}' is no version that PEP 440 knows, and pip and uv name none other"
    assert code == 3
    assert out.startswith(f"# left out: {dist}: {why}\n")
    assert f"error: {dist.name}: left out of the {format_name}: {why}" in err
    assert "[export.left-out]" in err
    assert "hint: 'envlock restore' puts it back from its wheel" in err


def test_without_a_wheel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No line has a hash then: pip refuses a file in which only some have. A lock is of files."""
    path = keep(locked(TORCH, NUMPY))
    code, out, err = run(capsys, "--format", "requirements", "--manifest", path)
    assert (code, out.splitlines()) == (
        0,
        [
            "# install with: pip install --no-deps --find-links W -r FILE",
            "numpy===1.26.4",
            f"torch=={VENDOR}",
        ],
    )
    assert "requirements: written without hashes: no wheel is known of numpy" in err
    assert "[export.no-hashes]" in err
    code, out, err = run(
        capsys, "--format", "requirements", "--no-hashes", "--manifest", path, "--only", "torch"
    )
    assert (code, out.splitlines()[1:], err) == (0, [f"torch=={VENDOR}"], "")
    code, out, err = run(capsys, "--format", "pylock", "--manifest", path)
    assert code == 0
    assert out.startswith("# left out: numpy 1.26.4: no wheel of it is known\n")
    assert "warning: numpy: left out of the pylock: no wheel of it is known" in err
    assert "hint: keep the wheels with 'envlock wheelhouse harvest'" in err


def test_a_wheel_that_is_nowhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = replace(
        TORCH, wheel=wheel(f"torch-{VENDOR}-py3-none-any.whl", "built", "https://a.test/x.gz")
    )
    path = keep(locked(gone, FILELOCK))
    code, out, err = run(capsys, "--format", "pylock", "--manifest", path)
    assert code == 3
    assert "torch: left out of the pylock: it is not known where its wheel is" in err
    assert 'name = "torch"' not in out


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (
            "torch-2.1.0+das1.0+git00661e0.abi0.dtk2404-cp310-cp310-manylinux2014_x86_64.whl",
            "is no name of a wheel that tools can read",
        ),
        ("torch-2.10.0+das.opt1-cp310-cp310-linux_x86_64.whl", "says another build than its"),
    ],
)
def test_a_file_name_that_would_spoil_the_lock(
    file: str, why: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tools refuse the whole lock for one of them; requirements do not name files."""
    (folder / "W" / file).touch()
    path = keep(locked(replace(TORCH, wheel=wheel(file)), FILELOCK))
    code, out, err = run(capsys, "--format", "pylock", "--manifest", path)
    assert (code, out.count("[[packages]]")) == (3, 1)
    assert why in err
    assert "hint: 'envlock restore' puts it back from its wheel" in err
    assert run(capsys, "--format", "requirements", "--manifest", path)[0] == 0


def test_what_has_no_place_anywhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where its reason has two lines: the second would be a requirement."""
    path = keep(locked(FILELOCK, MINE, BROKEN, *TWICE))
    code, out, err = run(capsys, "--format", "constraints", "--manifest", path)
    assert (code, out.splitlines()) == (
        0,
        [
            "# left out: lost: METADATA is missing",
            "# left out: mine 1.0: installed in development mode",
            "# left out: six 1.16.0: it is installed more than once",
            "# left out: six 1.17.0: it is installed more than once",
            *CONSTRAINTS.splitlines()[:2],
        ],
    )
    assert err.count("[export.left-out]") == 4


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--format", "pylock"], 4, "error: pylock: nothing to write: no wheel of it is known\n"),
        (
            ["--format", "constraints", "--only", "nothing"],
            4,
            "error: --only: 'nothing': not in the manifest\n",
        ),
        (
            ["--format", "constraints", "--only", "protected"],
            4,
            "error: constraints: nothing to write: no such distribution is in the manifest\n",
        ),
        (
            ["--format", "constraints", "-o", "none/x.txt"],
            4,
            "error: none/x.txt: cannot be written: ",
        ),
        (["--format", "freeze"], 2, "error: command line: invalid value for '--format'"),
        ([], 2, "error: command line: missing option '--format'"),
    ],
)
def test_refusals(
    words: list[str], code: int, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = keep(locked(NUMPY), "m.yaml")
    found, out, err = run(capsys, *words, "--manifest", path)
    assert (found, out) == (code, "")
    assert err.startswith(said)
    assert "hint: " in err


def test_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = keep(locked(TORCH, FILELOCK, NUMPY))
    words = ("--format", "constraints", "--manifest", path)
    assert run(capsys, *words, "--only", "protected")[1].splitlines()[1:] == [f"torch=={VENDOR}"]
    named = run(capsys, *words, "--only", "NumPy", "--only", "protected")[1]
    assert named.splitlines()[1:] == ["numpy===1.26.4", f"torch=={VENDOR}"]


def test_which_manifest(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--manifest``, the wheelhouse's own, the variable; and its wheels for one that has none."""
    content = f"sha256:{'2' * 64}"
    keep(locked(replace(TORCH, content=content)))
    bare = keep(locked(replace(TORCH, content=content, wheel=None)), "m.yaml")
    monkeypatch.setenv("ENVLOCK_MANIFEST", keep(locked(NUMPY), "n.yaml"))
    assert "numpy" in run(capsys, "--format", "constraints")[1]
    code, out, _ = run(capsys, "--format", "pylock", "--wheelhouse", "W")
    assert (code, 'path = "W/torch' in out) == (0, True)
    code, out, _ = run(capsys, "--format", "pylock", "--wheelhouse", "W", "--manifest", bare)
    assert (code, 'path = "W/torch' in out) == (0, True)


def test_a_newer_manifest_is_read_with_a_word(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = keep(replace(locked(NUMPY), schema="1.999"))
    code, _, err = run(capsys, "--format", "constraints", "--manifest", path)
    assert (code, err) == (
        0,
        f"envlock: '{path}' was written by a newer envlock: read as it is known\n",
    )


def test_as_a_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = keep(locked(TORCH, APEX))
    words = ("--format", "constraints", "--manifest", path, "--json")
    code, out, _ = run(capsys, *words)
    document = json.loads(out)
    assert (code, document["exit"], document["command"]) == (3, 3, "export")
    assert [one["code"] for one in document["findings"]] == ["export.left-out"]
    assert document["data"]["distributions"] == [f"torch {VENDOR}"]
    assert document["data"]["text"].splitlines()[-1] == f"torch=={VENDOR}"
    document = json.loads(run(capsys, *words, "-o", "c.txt")[1])
    assert document["data"]["output"] == str(folder / "c.txt")
    assert document["data"]["text"] is None

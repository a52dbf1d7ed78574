"""build: what a target needs for something new, and what it must not lose."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from envlock.adapters import index_settings
from envlock.adapters.index_settings import IndexSettings, parse_index_settings
from envlock.adapters.resolving import Pin, Question, RemoteFile
from envlock.errors import ProgramFailed, Refused
from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.health import unsatisfied
from envlock.model.manifest import LockedTarget, Manifest
from envlock.wheelhouse.check import check
from envlock.wheelhouse.resolve import Asked, Built, Tools, build, constraints, met
from tests.support.pythons import clean_env
from tests.support.wheels import make_wheel
from tests.wheelhouse.test_check import manifest_of

LABEL = "2.10.0+das.opt1.dtk2604"
TORCH = Distribution(
    name="torch",
    version=LABEL,
    vendor=("label",),
    protected=True,
    requires=("sympy>=1.13", "nvidia-cublas==12", "numpy<2 ; extra == 'old'"),
)
SYMPY = Distribution(name="sympy", version="1.13.1")
NUMPY = Distribution(name="numpy", version="2.2.6")


@dataclass
class Fake:
    """A resolver with a ready answer, and a downloader that makes wheels."""

    answer: tuple[Pin, ...] = ()
    wheels: Path = Path()
    asked: list[Question] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def resolve(self, question: Question) -> tuple[Pin, ...]:
        self.asked.append(question)
        return self.answer

    def download(self, wanted: Sequence[Pin], target: LockedTarget, folder: str) -> tuple[str, ...]:
        names = []
        for pin in wanted:
            self.fetched.append(pin.name)
            for wheel in self.wheels.glob(f"{pin.name}-*.whl"):
                shutil.copy(wheel, folder)
                names.append(wheel.name)
        return tuple(names)

    def build(self, pin: Pin, folder: str) -> str:
        raise AssertionError(pin)


def pin(wheel: Path) -> Pin:
    from envlock.adapters.wheelfile import inspect_wheel

    found = inspect_wheel(str(wheel))
    file = RemoteFile(file=wheel.name, urls=(wheel.as_uri(),), sha256=found.sha256)
    return Pin(found.name, found.version, (found.sha256,), (file,))


def run(tmp_path: Path, fake: Fake, manifest: Manifest, *words: str) -> Built:
    fake.wheels = tmp_path / "index"
    tools = Tools(resolver=fake, downloader=fake, builder=fake)
    return build(str(tmp_path / "W"), manifest, Asked(requirements=words), tools)


def test_adds_what_is_new(tmp_path: Path) -> None:
    new = make_wheel(tmp_path / "index", "peft", "0.9", requires=["torch", "sympy"])
    manifest = manifest_of(TORCH, SYMPY, health=health())
    fake = Fake((pin(new), Pin("torch", LABEL), Pin("sympy", "1.13.1")))
    done = run(tmp_path, fake, manifest, "peft")
    assert fake.fetched == ["peft"]
    assert [str(dist) for dist in done.added] == ["peft 0.9"]
    assert [dist.name for dist in done.held] == ["sympy", "torch"]
    assert done.findings == ()
    peft = done.manifest.find("peft")
    assert peft and peft.wheel and peft.wheel.origin == "index" and peft.content
    assert done.manifest.find("torch") == TORCH
    assert {f.level for f in check(str(tmp_path / "W")).findings} == {"error", "warning"}


def health() -> tuple[Finding, ...]:
    """What the image leaves out on purpose."""
    what = "needs 'nvidia-cublas==12'; not installed"
    return (Finding(code="requires.missing", subject="torch", what=what),)


def test_second_run_fetches_nothing(tmp_path: Path) -> None:
    new = make_wheel(tmp_path / "index", "peft", "0.9")
    manifest = manifest_of(SYMPY)
    first = Fake((pin(new),))
    run(tmp_path, first, manifest, "peft")
    second = Fake((pin(new),))
    done = run(tmp_path, second, manifest, "peft")
    assert (first.fetched, second.fetched) == (["peft"], [])
    assert [str(dist) for dist in done.added] == ["peft 0.9"]


def test_second_build_adds_to_the_first(tmp_path: Path) -> None:
    a, b = (make_wheel(tmp_path / "index", name, "1.0") for name in ("a", "b"))
    first = run(tmp_path, Fake((pin(a),)), manifest_of(SYMPY), "a")
    second = run(tmp_path, Fake((pin(b),)), first.manifest, "b")
    assert [dist.name for dist in second.manifest.distributions if dist.wheel] == ["a", "b"]
    assert {f.level for f in check(str(tmp_path / "W")).findings} == {"warning"}


def test_moves_are_told(tmp_path: Path) -> None:
    new = make_wheel(tmp_path / "index", "numpy", "2.3.0")
    done = run(tmp_path, Fake((pin(new),)), manifest_of(NUMPY, TORCH, SYMPY, health=health()), "x")
    assert [(f.code, f.subject, f.what) for f in done.findings] == [
        ("build.moved", "numpy", "'2.2.6' becomes '2.3.0'")
    ]
    assert [d.version for d in done.manifest.distributions if d.name == "numpy"] == ["2.3.0"]


def test_move_that_breaks_another(tmp_path: Path) -> None:
    scipy = Distribution(name="scipy", version="1.0", requires=("numpy<2.3",))
    new = make_wheel(tmp_path / "index", "numpy", "2.3.0")
    done = run(tmp_path, Fake((pin(new),)), manifest_of(NUMPY, scipy), "numpy>2.3")
    assert "needs 'numpy<2.3'; '2.3.0' is installed" in [f.what for f in done.findings]


def test_protected_never_moves(tmp_path: Path) -> None:
    new = make_wheel(tmp_path / "index", "torch", "2.11.0")
    with pytest.raises(Refused, match=r"replace 'torch 2\.10\.0\+das.*' by '2\.11\.0'"):
        run(tmp_path, Fake((pin(new),)), manifest_of(TORCH), "torch")
    assert not (tmp_path / "W" / "envlock.yaml").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ({"extra_record": {"peft.py": "sha256=AAAA"}}, "other bytes than RECORD"),
        ({"tag": "cp39-cp39-linux_x86_64"}, "does not fit the target"),
    ],
)
def test_bad_wheel_is_refused(tmp_path: Path, make: dict[str, object], message: str) -> None:
    wheel = make_wheel(tmp_path / "index", "peft", "1", **make)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=message):
        run(tmp_path, Fake((pin(wheel),)), manifest_of(), "peft")
    assert list((tmp_path / "W").iterdir()) == []


def test_other_bytes_and_none_are_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "index", "peft", "1")
    with pytest.raises(Refused, match="other bytes than the index said"):
        run(tmp_path, Fake((replace(pin(wheel), hashes=("0" * 64,)),)), manifest_of(), "peft")
    with pytest.raises(Refused, match=r"'gone 1' was not found"):
        run(tmp_path, Fake((Pin("gone", "1"),)), manifest_of(), "gone")


def test_what_the_image_leaves_out_stays_out() -> None:
    """Public CUDA wheels never slip in through a held torch."""
    manifest = manifest_of(TORCH, SYMPY)
    assert met(TORCH, manifest) == ("sympy>=1.13", "numpy<2 ; extra == 'old'")
    assert constraints(manifest) == ("nvidia-cublas==12", "sympy>=1.13", f"torch=={LABEL}")


def test_what_comes_in_suits_the_builds() -> None:
    """A bound on what is not there counts; one that the healthy image breaks does not."""
    build = replace(TORCH, requires=("numpy<2", "sympy>=9", "sphinx<1 ; extra == 'doc'"))
    assert constraints(manifest_of(build, SYMPY)) == ("numpy<2", f"torch=={LABEL}")


def test_health_is_that_of_afterwards(tmp_path: Path) -> None:
    """What was missing and has come in is missing no more."""
    new = make_wheel(tmp_path / "index", "numpy", "1.26")
    build = replace(TORCH, requires=("numpy<2", "das-runtime==1"))
    health = tuple(unsatisfied([build], {}))
    other = Finding(code="file.two-owners", subject="a", what="b", level="info")
    manifest = manifest_of(build, health=(*health, other))
    done = run(tmp_path, Fake((pin(new),)), manifest, "numpy")
    assert [f.what for f in done.manifest.health] == ["needs 'das-runtime==1'; not installed", "b"]
    assert done.findings == ()


def test_index_settings() -> None:
    listed = (
        ":env:.index-url='https://me:pw@a.invalid/simple'\n"
        "global.index-url='https://b.invalid'\n"
        "global.extra-index-url='https://c.invalid\\nhttps://d.invalid'\n"
        "download.find-links='/wheels'\nglobal.no-index='false'\n"
        "global.trusted-host='c.invalid'\nfreeze.cert='/no'\nodd line\n"
    )
    found = parse_index_settings(listed)
    assert found == IndexSettings(
        index="https://me:pw@a.invalid/simple",
        more=("https://c.invalid", "https://d.invalid"),
        links=("/wheels",),
        trusted=("c.invalid",),
    )
    assert found.options() == [
        "--index-url", "https://me:pw@a.invalid/simple",
        "--extra-index-url", "https://c.invalid", "--extra-index-url", "https://d.invalid",
        "--find-links", "/wheels",
    ]  # fmt: skip
    assert IndexSettings(index="x", more=("y",), no_index=True).options() == ["--no-index"]


def test_settings_of_uv_are_added() -> None:
    """pip's own stay; what would choose otherwise, and is not honoured, is said."""
    pip = IndexSettings(index="https://a.invalid", more=("https://b.invalid",), ignored=("pre",))
    env = {
        "UV_INDEX_URL": "https://other.invalid",
        "UV_INDEX": "mine=https://c.invalid https://b.invalid",
        "UV_EXTRA_INDEX_URL": "https://d.invalid",
        "UV_FIND_LINKS": "/one,/two",
        "UV_INSECURE_HOST": "c.invalid",
        "UV_CONSTRAINT": "/limits.txt",
        "UV_EXCLUDE_NEWER": "2026-01-01",
        "UV_RESOLUTION": "",
    }
    found = index_settings.with_uv_settings(pip, env)
    assert found == IndexSettings(
        index="https://a.invalid",
        more=("https://b.invalid", "https://c.invalid", "https://d.invalid"),
        links=("/one", "/two"),
        trusted=("c.invalid",),
        constraints=("/limits.txt",),
        ignored=("UV_EXCLUDE_NEWER", "UV_INDEX_URL", "pre"),
    )
    alone = {"UV_DEFAULT_INDEX": "x=https://e.invalid", "UV_NO_INDEX": "true"}
    found = index_settings.with_uv_settings(IndexSettings(), alone)
    assert (found.index, found.no_index, found.ignored) == ("https://e.invalid", True, ())


def test_settings_of_pip_are_read(tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://a.invalid/simple\n")
    env = clean_env(PIP_CONFIG_FILE=str(config), PIP_FIND_LINKS="/w")
    found = index_settings.read_index_settings(env)
    assert (found.index, found.links) == ("https://a.invalid/simple", ("/w",))
    config.write_text("no section\n")
    with pytest.raises(ProgramFailed, match="its configuration cannot be read"):
        index_settings.read_index_settings(env)

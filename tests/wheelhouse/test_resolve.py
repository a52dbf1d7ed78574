"""build: what a target needs for something new, and what it must not lose."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from envlock.adapters import index_settings
from envlock.adapters.fetch_pip import PipDownloader, target_options
from envlock.adapters.index_settings import IndexSettings, parse_index_settings
from envlock.adapters.resolve_uv import UvResolver, parse_pins, uv_platform
from envlock.adapters.resolving import Pin, Question
from envlock.adapters.uv import find_uv
from envlock.cli import main
from envlock.errors import ProgramFailed, Refused, UnusableInput
from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.manifest import LockedTarget, Manifest, dump
from envlock.wheelhouse.check import check
from envlock.wheelhouse.resolve import Built, build, constraints, met
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

    def download(self, wanted: Sequence[Pin], target: LockedTarget, folder: str) -> None:
        for pin in wanted:
            self.fetched.append(pin.name)
            for wheel in self.wheels.glob(f"{pin.name}-*.whl"):
                shutil.copy(wheel, folder)


def pin(wheel: Path) -> Pin:
    from envlock.adapters.wheelfile import inspect_wheel

    found = inspect_wheel(str(wheel))
    return Pin(found.name, found.version, (found.sha256,))


def run(tmp_path: Path, fake: Fake, manifest: Manifest, *words: str) -> Built:
    fake.wheels = tmp_path / "index"
    return build(str(tmp_path / "W"), manifest, (words, ()), fake, fake)


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
    assert constraints(manifest) == ("sympy>=1.13", f"torch=={LABEL}")


@pytest.mark.parametrize(
    ("tag", "platform"),
    [
        ("cp310-cp310-manylinux_2_35_x86_64", "x86_64-manylinux_2_35"),
        ("cp310-cp310-manylinux_2_99_aarch64", "aarch64-manylinux_2_40"),
        ("cp310-cp310-manylinux_2_30_x86_64", "x86_64-manylinux_2_28"),
    ],
)
def test_platform(tag: str, platform: str) -> None:
    target = replace(manifest_of().target, tags=("cp310-cp310-linux_x86_64", tag))
    assert uv_platform(target) == platform


def test_no_platform() -> None:
    with pytest.raises(UnusableInput, match="no way to resolve for 'cp310-cp310-macosx"):
        uv_platform(replace(manifest_of().target, tags=("cp310-cp310-macosx_11_0_arm64",)))


def test_target_options() -> None:
    tags = ("cp310-cp310-manylinux_2_35_x86_64", "cp310-abi3-linux_x86_64", "py3-none-any")
    assert target_options(replace(manifest_of().target, tags=tags)) == [
        "--implementation", "cp", "--python-version", "3.10.12", "--abi", "cp310", "--abi", "abi3",
        "--platform", "manylinux_2_35_x86_64", "--platform", "linux_x86_64",
    ]  # fmt: skip


def test_parse_pins() -> None:
    text = f"A_b[x]==1.0+c \\\n    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}\n# c\n"
    assert parse_pins(text) == (Pin("a-b", "1.0+c", ("a" * 64, "b" * 64)),)
    with pytest.raises(Refused, match="'git' is not resolved"):
        parse_pins("git @ git+https://example.invalid/x\n")


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


def test_settings_of_pip_are_read(tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://a.invalid/simple\n")
    env = clean_env(PIP_CONFIG_FILE=str(config), PIP_FIND_LINKS="/w")
    found = index_settings.read_index_settings(env)
    assert (found.index, found.links) == ("https://a.invalid/simple", ("/w",))
    config.write_text("no section\n")
    with pytest.raises(ProgramFailed, match="its configuration cannot be read"):
        index_settings.read_index_settings(env)


# --------------------------------------------------------------------------- the real uv and pip


def real(links: Path) -> tuple[UvResolver, PipDownloader]:
    """uv and pip with a folder for an index."""
    settings = IndexSettings(no_index=True, links=(str(links),))
    program = find_uv(clean_env())
    assert program
    return (
        UvResolver(program=program, env=clean_env(), settings=settings),
        PipDownloader(env=clean_env(), settings=settings),
    )


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Wheels for two Pythons, two platforms, and a public torch."""
    folder = tmp_path / "index"
    make_wheel(folder, "torch", "2.11.0", requires=["nvidia-cublas"])
    make_wheel(folder, "torch", "2.10.0")
    make_wheel(folder, "nvidia-cublas", "12")
    make_wheel(folder, "numpy", "2.2.6", tag="cp310-cp310-manylinux_2_17_x86_64")
    make_wheel(folder, "numpy", "2.3.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    make_wheel(folder, "typing-extensions", "4.0")
    make_wheel(folder, "sympy", "1.14.0")
    make_wheel(
        folder,
        "peft",
        "0.9",
        requires=[
            "torch>=1.13",
            "numpy",
            "typing-extensions; python_version < '3.11'",
            "win-only; sys_platform == 'win32'",
        ],
    )
    return folder


@pytest.mark.integration
def test_for_another_python(tmp_path: Path, index: Path) -> None:
    """A 3.10 target from whatever runs the tests: its markers, its tags, its torch."""
    manifest = manifest_of(TORCH, SYMPY, health=health())
    done = build(str(tmp_path / "W"), manifest, (["peft"], []), *real(index))
    assert [str(dist) for dist in done.added] == [
        "numpy 2.2.6",
        "peft 0.9",
        "typing-extensions 4.0",
    ]
    assert [dist.name for dist in done.held] == ["sympy", "torch"]
    assert done.findings == ()
    assert sorted(path.name for path in (tmp_path / "W").glob("*.whl")) == [
        "numpy-2.2.6-cp310-cp310-manylinux_2_17_x86_64.whl",
        "peft-0.9-py3-none-any.whl",
        "typing_extensions-4.0-py3-none-any.whl",
    ]


@pytest.mark.integration
def test_held_stays_unless_demanded(tmp_path: Path, index: Path) -> None:
    manifest = manifest_of(TORCH, SYMPY, health=health())
    done = build(str(tmp_path / "W"), manifest, (["sympy"], []), *real(index))
    assert done.added == ()
    done = build(str(tmp_path / "W"), manifest, (["sympy>=1.14"], []), *real(index))
    assert [f.what for f in done.findings] == ["'1.13.1' becomes '1.14.0'"]


@pytest.mark.integration
@pytest.mark.parametrize("request_", ["torch>2.10.0", "torch===2.10.0", "no-such-thing"])
def test_no_solution(tmp_path: Path, index: Path, request_: str) -> None:
    with pytest.raises(Refused, match="no solution"):
        build(str(tmp_path / "W"), manifest_of(TORCH, SYMPY), ([request_], []), *real(index))


@pytest.mark.integration
def test_only_an_sdist(tmp_path: Path, index: Path) -> None:
    (index / "source-1.0.tar.gz").write_bytes(b"")
    with pytest.raises(Refused, match="source"):
        build(str(tmp_path / "W"), manifest_of(), (["source"], []), *real(index))


@pytest.mark.integration
def test_failures_of_programs(tmp_path: Path, index: Path) -> None:
    resolver, downloader = real(index)
    with pytest.raises(ProgramFailed, match="uv: "):
        build(str(tmp_path / "W"), manifest_of(), (["a b c"], []), resolver, downloader)
    with pytest.raises(ProgramFailed, match="pip: "):
        downloader.download([Pin("gone", "1", ("0" * 64,))], manifest_of().target, str(tmp_path))


@pytest.mark.integration
def test_command(
    tmp_path: Path,
    index: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    manifest = tmp_path / "m.yaml"
    manifest.write_text(dump(manifest_of(TORCH, SYMPY, health=health())))
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("peft\n")
    folder = str(tmp_path / "W")
    words = ["wheelhouse", "build", folder, "--manifest", str(manifest)]
    assert main([*words, "-r", str(wanted)]) == 0
    assert "3 wheels added" in capsys.readouterr().out
    assert main(["wheelhouse", "build", folder, "sympy"]) == 0
    assert main(words) == 2
    assert "nothing to add" in capsys.readouterr().err

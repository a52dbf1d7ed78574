"""uv and pip-tools behind one protocol: the same index, the same answer, for every target."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters import process
from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.resolve_piptools import PipToolsResolver
from envlock.adapters.resolve_uv import UvResolver, knows
from envlock.adapters.resolving import OnlySource, Pin, Question, Resolver
from envlock.adapters.uv import find_uv
from envlock.errors import ProgramFailed, Refused, UnusableInput
from envlock.model.dist import Distribution
from envlock.model.facts import TagFacts, supported_tags
from envlock.model.manifest import LockedTarget
from tests.support.loopback import Loopback, Turn, loopback, serve_wheels
from tests.support.pythons import clean_env
from tests.support.sources import source
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.integration

LABEL = "2.10.0+das.opt1.dtk2604"
TORCH = Distribution(
    name="torch", version=LABEL, protected=True, requires=("sympy", "extra-need ; extra == 'x'")
)
SYMPY = Distribution(name="sympy", version="1.13.1")
#: Held, without a label, at a version that the index has too, and that needs more there.
TRITON = Distribution(name="triton", version="3.4.0", protected=True)
HELD = (TORCH, SYMPY, TRITON)
LIMITS = (f"torch=={LABEL}", "triton===3.4.0")


def linux(arch: str = "x86_64", glibc: tuple[int, int] = (2, 35), python: int = 10) -> LockedTarget:
    abi = f"cp3{python}"
    facts = TagFacts(version=(3, python), abi=abi, platform=f"linux_{arch}", glibc=glibc)
    return target(supported_tags(facts), "linux", arch, python)


def target(tags: tuple[str, ...], system: str, arch: str, python: int = 10) -> LockedTarget:
    names = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}
    return LockedTarget(
        python=f"3.{python}.2",
        markers={
            "implementation_name": "cpython",
            "implementation_version": f"3.{python}.2",
            "os_name": "nt" if system == "win32" else "posix",
            "platform_machine": arch,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": names[system],
            "platform_version": "",
            "python_full_version": f"3.{python}.2",
            "python_version": f"3.{python}",
            "sys_platform": system,
        },
        tags=tags,
        paths={},
    )


def named(*platforms: str) -> tuple[str, ...]:
    """Tags of CPython 3.10 for a platform."""
    return (*(f"cp310-cp310-{name}" for name in platforms), "cp310-none-any", "py3-none-any")


TARGETS = {
    "x86_64": linux(),
    "aarch64": linux("aarch64", (2, 17)),
    "musl": target(named("musllinux_1_2_x86_64", "musllinux_1_1_x86_64"), "linux", "x86_64"),
    "mac": target(named("macosx_14_0_arm64", "macosx_11_0_arm64"), "darwin", "arm64"),
    "windows": target(named("win_amd64"), "win32", "AMD64"),
    "ppc64le": linux("ppc64le"),
    "3.13": linux(python=13),
}
NUMPY = {
    "x86_64": "cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64",
    "aarch64": "cp310-cp310-manylinux_2_17_aarch64",
    "musl": "cp310-cp310-musllinux_1_2_x86_64",
    "mac": "cp310-cp310-macosx_11_0_arm64",
    "windows": "cp310-cp310-win_amd64",
    "ppc64le": "cp310-cp310-manylinux_2_17_ppc64le",
    "3.13": "cp313-cp313-manylinux_2_27_x86_64",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an index has."""
    folder = tmp_path_factory.mktemp("index")
    for tag in NUMPY.values():
        make_wheel(folder, "numpy", "2.2.6", tag=tag)
    make_wheel(folder, "numpy", "2.3.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    make_wheel(folder, "numpy", "2.3.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    make_wheel(folder, "torch", "2.11.0", requires=["nvidia-cublas"])
    make_wheel(folder, "torch", "2.10.0", requires=["nvidia-cublas", "triton"])
    make_wheel(
        folder, "triton", "3.4.0", requires=["nvidia-cublas"],
        tag="cp310-cp310-manylinux_2_17_x86_64",
    )  # fmt: skip
    make_wheel(folder, "nvidia-cublas", "12")
    make_wheel(folder, "sympy", "1.13.1", requires=["mpmath"])
    make_wheel(folder, "sympy", "1.14.0")
    make_wheel(folder, "extra-need", "1")
    for name in ("old-python", "on-linux", "on-windows", "on-arm"):
        make_wheel(folder, name, "1")
    make_wheel(
        folder, "peft", "0.9",
        requires=[
            "torch>=1.13", "numpy", "triton",
            "old-python; python_version < '3.11'",
            "on-linux; sys_platform == 'linux'",
            "on-windows; sys_platform == 'win32'",
            "on-arm; platform_machine == 'aarch64' or platform_machine == 'arm64'",
        ],
    )  # fmt: skip
    make_wheel(folder, "audio", "1", requires=["numpy; extra == 'sound'"], extras=["sound"])
    return folder


@pytest.fixture(scope="module")
def server(files: Path) -> Iterator[Loopback]:
    with loopback() as running:
        serve_wheels(running, files)
        yield running


Make = Callable[[IndexSettings], Resolver]


def with_uv(settings: IndexSettings) -> Resolver:
    program = find_uv(clean_env())
    assert program
    return UvResolver(program=program, env={**clean_env(), "UV_NO_CACHE": "1"}, settings=settings)


def with_pip_tools(settings: IndexSettings) -> Resolver:
    return PipToolsResolver(env=clean_env(), settings=settings)


@pytest.fixture(params=[with_uv, with_pip_tools], ids=["uv", "pip-tools"])
def make(request: pytest.FixtureRequest) -> Make:
    found: Make = request.param
    return found


def ask(*requirements: str, on: LockedTarget | None = None, **more: object) -> Question:
    question = Question(
        requirements=requirements,
        files=(),
        held=HELD,
        constraints=LIMITS,
        target=on or TARGETS["x86_64"],
    )
    return replace(question, **more)  # type: ignore[arg-type]


def by_name(pins: tuple[Pin, ...]) -> dict[str, str]:
    return {pin.name: pin.version for pin in pins}


def in_folder(files: Path) -> IndexSettings:
    return IndexSettings(no_index=True, links=(str(files),))


@pytest.mark.parametrize("where", TARGETS)
def test_markers_and_tags_of_the_target(make: Make, server: Loopback, where: str) -> None:
    """Never the host's, whatever the host is."""
    on = TARGETS[where]
    resolver = make(IndexSettings(index=server.url("/simple")))
    if isinstance(resolver, UvResolver) and not knows(on):
        with pytest.raises(UnusableInput, match="uv has no name for"):
            resolver.resolve(ask("peft", on=on))
        return
    pins = resolver.resolve(ask("peft", on=on))
    expected = {"peft": "0.9", "torch": LABEL, "sympy": "1.13.1", "numpy": "2.2.6"}
    expected |= {"triton": "3.4.0"}
    expected |= {"old-python": "1"} if where != "3.13" else {}
    expected |= {"on-windows": "1"} if where == "windows" else {}
    expected |= {"on-linux": "1"} if where not in ("windows", "mac") else {}
    expected |= {"on-arm": "1"} if where in ("aarch64", "mac") else {}
    assert by_name(pins) == expected
    numpy = next(pin for pin in pins if pin.name == "numpy")
    [wheel] = numpy.wheels
    assert wheel.file == f"numpy-2.2.6-{NUMPY[where]}.whl"
    assert wheel.urls == (server.url(f"/files/{wheel.file}"),)
    assert numpy.hashes == (wheel.sha256,) and len(wheel.sha256) == 64
    assert numpy.origin == "index"


def test_held_stay_and_say_themselves_what_they_need(make: Make, files: Path) -> None:
    """Neither the public builds nor what those need, though the index has the same versions."""
    found = by_name(make(in_folder(files)).resolve(ask("torch", "triton", "sympy")))
    assert found == {"torch": LABEL, "triton": "3.4.0", "sympy": "1.13.1"}


def test_held_moves_where_a_request_demands_it(make: Make, files: Path) -> None:
    resolver = make(in_folder(files))
    assert by_name(resolver.resolve(ask("sympy>=1.14")))["sympy"] == "1.14.0"
    assert by_name(resolver.resolve(ask("sympy>=1.14", "torch")))["torch"] == LABEL


def test_extras(make: Make, files: Path) -> None:
    resolver = make(in_folder(files))
    assert by_name(resolver.resolve(ask("audio[sound]"))) == {"audio": "1", "numpy": "2.2.6"}
    assert by_name(resolver.resolve(ask("audio"))) == {"audio": "1"}
    assert "extra-need" in by_name(resolver.resolve(ask("torch[x]")))


@pytest.mark.parametrize("request_", ["torch>2.10.0", "torch==2.10.0+cpu", "no-such-thing"])
def test_no_solution(make: Make, files: Path, request_: str) -> None:
    with pytest.raises(Refused, match=f"no solution: .*{request_.partition('=')[0]}"):
        make(in_folder(files)).resolve(ask(request_))


def test_what_is_no_requirement(make: Make, files: Path) -> None:
    with pytest.raises(ProgramFailed, match=r"a b c|found `b`"):
        make(in_folder(files)).resolve(ask("a b c"))


def test_requirements_files(make: Make, files: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("sympy\n")
    (tmp_path / "limits.txt").write_text("sympy!=1.13.1\n")
    asked = tmp_path / "asked.txt"
    asked.write_text("# text\n-r more.txt\n-c limits.txt\naudio[sound] ; python_version < '3.11'\n")
    found = by_name(make(in_folder(files)).resolve(ask(files=(str(asked),))))
    assert found == {"audio": "1", "numpy": "2.2.6", "sympy": "1.14.0"}


def test_named_files(make: Make, files: Path, server: Loopback, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "local", "1.0+here", requires=["numpy"])
    resolver = make(in_folder(files))
    [local] = [p for p in resolver.resolve(ask(f"local @ {wheel.as_uri()}")) if p.name == "local"]
    assert (local.version, local.origin) == ("1.0+here", "file")
    assert [w.file for w in local.wheels] == [wheel.name] and len(local.hashes) == 1
    url = server.url("/files/audio-1-py3-none-any.whl")
    [audio] = resolver.resolve(ask(f"audio @ {url}"))
    assert (audio.version, audio.origin, audio.wheels[0].urls) == ("1", "url", (url,))
    assert len(audio.wheels[0].sha256) == 64


def test_links_of_the_question(make: Make, files: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path, "mine", "1.0", requires=["numpy"])
    found = make(in_folder(files)).resolve(ask("mine", links=(str(tmp_path),)))
    assert by_name(found) == {"mine": "1.0", "numpy": "2.2.6"}


def test_only_a_source(make: Make, files: Path, tmp_path: Path) -> None:
    path = source(tmp_path, "bare", "1.0")
    resolver = make(in_folder(files))
    question = ask("bare", links=(str(tmp_path),))
    with pytest.raises(OnlySource):
        resolver.resolve(question)
    [pin] = resolver.resolve(replace(question, sources=True))
    assert (pin.name, pin.version, pin.wheels) == ("bare", "1.0", ())
    assert pin.sdist and pin.sdist.file == path.name and len(pin.sdist.sha256) == 64
    with pytest.raises(Refused):
        resolver.resolve(replace(question, sources=True, unbuilt=("bare",)))


def test_failure_that_no_source_would_mend(make: Make, files: Path) -> None:
    with pytest.raises(Refused) as caught:
        make(in_folder(files)).resolve(ask("torch>2.10.0"))
    assert not isinstance(caught.value, OnlySource)


def test_several_indexes_have_equal_rights(make: Make, server: Loopback, tmp_path: Path) -> None:
    make_wheel(tmp_path, "audio", "2")
    with loopback() as second:
        serve_wheels(second, tmp_path)
        settings = IndexSettings(index=server.url("/simple"), more=(second.url("/simple"),))
        assert by_name(make(settings).resolve(ask("audio"))) == {"audio": "2"}


def test_credentials_of_an_index(make: Make, files: Path) -> None:
    login = "Basic " + base64.b64encode(b"me:pass word").decode()
    with loopback() as private:
        serve_wheels(private, files)
        for turns in private.turns.values():
            turns[:] = [replace(turn, login=login) for turn in turns]
        index = private.url("/simple").replace("//", "//me:pass%20word@", 1)
        assert by_name(make(IndexSettings(index=index)).resolve(ask("audio"))) == {"audio": "1"}


def test_certificate(make: Make, files: Path, authority: Path) -> None:
    """An index whose certificate only pip's ``cert`` knows, and one that is trusted without."""
    with loopback() as private:
        private.speak_tls(authority / "server.pem")
        serve_wheels(private, files)
        index = private.url("/simple")
        for settings in (
            IndexSettings(index=index, cert=str(authority / "ca.pem")),
            IndexSettings(index=index, trusted=("127.0.0.1",)),
        ):
            assert by_name(make(settings).resolve(ask("audio"))) == {"audio": "1"}
        with pytest.raises(ProgramFailed):
            make(IndexSettings(index=index, timeout=5)).resolve(ask("audio"))


def test_proxy(make: Make, server: Loopback) -> None:
    """A host that does not exist is reached through the proxy alone."""
    with loopback() as proxy:
        proxy.turns |= {path: turns for path, turns in server.turns.items() if "audio" in path}
        settings = IndexSettings(
            index="http://index.invalid/simple", proxy=proxy.url(""), trusted=("index.invalid",)
        )
        assert by_name(make(settings).resolve(ask("audio"))) == {"audio": "1"}
        assert any("index.invalid" in h.get("host", "") for _, h in proxy.asked)


def test_index_that_is_not_there(make: Make) -> None:
    with loopback() as gone:
        index = gone.url("/simple")
    with pytest.raises(ProgramFailed, match=r"127\.0\.0\.1"):
        make(IndexSettings(index=index, timeout=1)).resolve(ask("audio"))


@pytest.mark.parametrize("status", [0, 401, 501])
def test_further_index_that_has_no_answer(make: Make, server: Loopback, status: int) -> None:
    """What the other one has under that name may be somebody else's."""
    if status == 401 and make is with_uv:
        pytest.skip("uv takes 401 for an answer where all indexes are asked alike")
    with loopback() as private:
        settings = IndexSettings(
            index=server.url("/simple"), more=(private.url("/simple"),), timeout=1
        )
        private.add("/simple/audio/", Turn(status=status))
        if status:
            with pytest.raises(ProgramFailed, match=r"pip-tools: an index cannot be asked|uv: "):
                make(settings).resolve(ask("audio"))
    if not status:
        with pytest.raises(ProgramFailed, match=r"127\.0\.0\.1"):
            make(settings).resolve(ask("audio"))


def test_passwords_are_on_no_command_line(
    make: Make, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody on the machine reads those."""
    commands: list[str] = []
    run = process.run

    def listening(command: Sequence[str], **more: object) -> process.Finished:
        commands.extend(command)
        return run(command, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "run", listening)
    (tmp_path / "a, b").mkdir()
    make_wheel(tmp_path / "a, b", "mine", "1")
    with loopback() as private:
        page = serve_wheels(private, files)
        assert page
        url = private.url("/simple").replace("//", "//me:secret@", 1)
        empty = private.add("/links", Turn(data=b"<html></html>"))
        links = empty.replace("//", "//me:secret@", 1)
        settings = IndexSettings(
            index=url, more=(f"{url}/", url.replace("127.0.0.1", "localhost")),
            links=(links, str(tmp_path / "a, b")),
        )  # fmt: skip
        question = ask("audio", "mine", links=(f"{links}?2",))
        assert by_name(make(settings).resolve(question)) == {"audio": "1", "mine": "1"}
        asked = {path for path, _ in private.asked}
    assert commands and not [word for word in commands if "secret" in word]
    assert any(path.startswith("/links") for path in asked)


def test_project_that_is_not_there(make: Make, server: Loopback) -> None:
    """404 is an answer: there is no such project."""
    server.add("/simple/never-was/", Turn(status=404))
    with pytest.raises(Refused, match="never-was"):
        make(IndexSettings(index=server.url("/simple"))).resolve(ask("never-was"))


def test_constraints_of_the_machine(make: Make, files: Path, tmp_path: Path) -> None:
    limits = tmp_path / "limits.txt"
    limits.write_text("audio<1\n")
    settings = replace(in_folder(files), constraints=(str(limits),))
    with pytest.raises(Refused, match="audio"):
        make(settings).resolve(ask("audio"))

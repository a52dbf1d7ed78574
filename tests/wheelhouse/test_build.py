"""build with the real uv, pip and downloader, a folder for an index."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.build_sdist import PipBuilder
from envlock.adapters.files import sha256
from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.resolve_piptools import PipToolsResolver
from envlock.adapters.resolve_uv import UvResolver
from envlock.adapters.uv import find_uv
from envlock.adapters.web import Web
from envlock.adapters.wheelfile import inspect_wheel
from envlock.cli import main
from envlock.cli.show import Screen
from envlock.errors import ProgramFailed, Refused
from envlock.model.dist import WheelRef
from envlock.model.manifest import Manifest, dump, load
from envlock.wheelhouse.check import check
from envlock.wheelhouse.fetch import Fetcher
from envlock.wheelhouse.resolve import Asked, Built, Tools, build, entry
from tests.support.loopback import Turn, loopback
from tests.support.pythons import clean_env
from tests.support.sources import OWN_BACKEND, source
from tests.support.wheels import make_wheel
from tests.wheelhouse.test_check import manifest_of
from tests.wheelhouse.test_resolve import SYMPY, TORCH, health

pytestmark = pytest.mark.integration


@pytest.fixture(params=["uv", "pip-tools"])
def tools(request: pytest.FixtureRequest, index: Path) -> Tools:
    return make_tools(index, request.param)


def make_tools(index: Path, resolver: str = "uv") -> Tools:
    settings, env = IndexSettings(no_index=True, links=(str(index),)), clean_env()
    program = find_uv(env)
    assert program
    return Tools(
        resolver=UvResolver(program=program, env=env, settings=settings)
        if resolver == "uv"
        else PipToolsResolver(env=env, settings=settings),
        downloader=Fetcher(web=Web(settings=settings, env=env), progress=Screen().transfer),
        builder=PipBuilder(env=env, settings=settings),
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


MANIFEST = manifest_of(TORCH, SYMPY, health=health())


def run(
    tmp_path: Path, tools: Tools, *words: str, links: tuple[str, ...] = (),
    manifest: Manifest = MANIFEST,
) -> Built:  # fmt: skip
    asked = Asked(requirements=words, links=links)
    return build(str(tmp_path / "W"), manifest, asked, tools)


def wheels(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "W").glob("*.whl"))


def test_for_another_python(tmp_path: Path, tools: Tools) -> None:
    """A 3.10 target from whatever runs the tests: its markers, its tags, its torch."""
    done = run(tmp_path, tools, "peft")
    names = ["numpy 2.2.6", "peft 0.9", "typing-extensions 4.0"]
    assert sorted(str(dist) for dist in done.added) == names
    assert [dist.name for dist in done.held] == ["sympy", "torch"]
    assert done.findings == ()
    assert wheels(tmp_path) == [
        "numpy-2.2.6-cp310-cp310-manylinux_2_17_x86_64.whl",
        "peft-0.9-py3-none-any.whl",
        "typing_extensions-4.0-py3-none-any.whl",
    ]
    left = {path.name for path in (tmp_path / "W").iterdir()} - set(wheels(tmp_path))
    assert left == {"SHA256SUMS", "envlock.yaml", "pylock.toml", "requirements.txt"}


def test_held_stays_unless_demanded(tmp_path: Path, tools: Tools) -> None:
    assert run(tmp_path, tools, "sympy").added == ()
    done = run(tmp_path, tools, "sympy>=1.14")
    assert [f.what for f in done.findings] == ["'1.13.1' becomes '1.14.0'"]


@pytest.mark.parametrize("request_", ["torch>2.10.0", "torch===2.10.0", "no-such-thing"])
def test_no_solution(tmp_path: Path, tools: Tools, request_: str) -> None:
    with pytest.raises(Refused, match="no solution"):
        run(tmp_path, tools, request_)
    assert wheels(tmp_path) == []


def test_public_runtime_that_a_request_brings(tmp_path: Path, index: Path) -> None:
    """Through a held torch nothing comes in; what something else needs is told."""
    make_wheel(index, "greedy", "1", requires=["nvidia-cublas", "torch"])
    done = run(tmp_path, make_tools(index), "greedy")
    assert [(f.code, f.subject) for f in done.findings] == [
        ("build.public-runtime", "nvidia-cublas")
    ]


# --------------------------------------------------------------------------- sources


def test_pure_source_is_built(tmp_path: Path, tools: Tools) -> None:
    path = source(tmp_path / "sources", "bare", "1.0")
    done = run(tmp_path, tools, "bare", links=(str(tmp_path / "sources"),))
    [bare] = done.added
    assert bare.wheel and bare.wheel.origin == "built" and bare.content
    assert wheels(tmp_path) == ["bare-1.0-py3-none-any.whl"]
    assert bare.wheel.sha256 == sha256(tmp_path / "W" / bare.wheel.file)
    assert bare.wheel.url == "" and path.exists()  # a path of this machine is nobody's business


def test_source_of_a_server_is_recorded_and_built_once(tmp_path: Path, index: Path) -> None:
    path = source(tmp_path / "sources", "bare", "1.0")
    tools = make_tools(index)
    with loopback() as server:
        url = server.add(f"/{path.name}", Turn(data=path.read_bytes()))
        done = run(tmp_path, tools, f"bare @ {url}")
        [bare] = done.added
        assert bare.wheel and bare.wheel.url == f"{url}#sha256={sha256(path)}"
        before = (tmp_path / "W" / bare.wheel.file).stat().st_mtime_ns
        again = run(tmp_path, tools, f"bare @ {url}", manifest=MANIFEST)
    assert again.added == done.added
    assert (tmp_path / "W" / bare.wheel.file).stat().st_mtime_ns == before


def test_older_wheel_before_newer_source(tmp_path: Path, tools: Tools, index: Path) -> None:
    """A source is taken only where nothing else is: not because it is newer."""
    source(index, "bare", "1.0")
    source(index, "both", "2.0")
    make_wheel(index, "both", "1.0")
    done = run(tmp_path, tools, "bare", "both")
    assert sorted(str(dist) for dist in done.added) == ["bare 1.0", "both 1.0"]


def test_compiled_source_is_told(tmp_path: Path, tools: Tools, index: Path) -> None:
    backend = OWN_BACKEND.replace("py3-none-any", "cp311-cp311-linux_x86_64")
    with_backend(index, "native", backend)
    with pytest.raises(Refused) as caught:
        run(tmp_path, tools, "native")
    assert "'native 1.0' has only a source, and that is no pure Python" in caught.value.message
    assert "cp311-cp311-linux_x86_64" in caught.value.message
    assert "--find-links" in caught.value.hint
    assert wheels(tmp_path) == []


def test_source_that_cannot_be_built_is_told(tmp_path: Path, tools: Tools, index: Path) -> None:
    with_backend(index, "broken", OWN_BACKEND.replace("return file", "raise SystemExit('no nvcc')"))
    with pytest.raises(Refused, match=r"'broken 1\.0' has only a source: .* cannot"):
        run(tmp_path, tools, "broken")


def with_backend(folder: Path, name: str, backend: str) -> None:
    path = source(folder, name, "1.0")
    tree = folder / "tree" / f"{name}-1.0"
    (tree / "own.py").write_text(backend)
    path.unlink()
    shutil.make_archive(str(path).removesuffix(".tar.gz"), "gztar", tree.parent, tree.name)


# --------------------------------------------------------------------------- wheels at hand


def vendor(tmp_path: Path, **how: str) -> tuple[Path, Manifest]:
    """A vendor's wheel, and the manifest of a target that has it."""
    wheel = make_wheel(tmp_path / "downloads", "torch", TORCH.version, requires=["sympy>=1.13"])
    dist = replace(entry(inspect_wheel(str(wheel))), protected=True, vendor=("label",), wheel=None)
    if how:
        wheel = wheel.rename(wheel.with_name(how["name"]))
    return wheel, manifest_of(dist, SYMPY)


RIGHT = f"torch-{TORCH.version}-py3-none-any.whl"


@pytest.mark.parametrize(
    "name",
    [RIGHT, RIGHT.replace("+", "%2B"), "torch (1).whl", "torch-2.10.0.whl", "download.WHL"],
)
def test_vendor_wheel_under_any_name(tmp_path: Path, index: Path, name: str) -> None:
    wheel, manifest = vendor(tmp_path, name=name)
    done = run(
        tmp_path, make_tools(index), "peft", links=(str(tmp_path / "downloads"),), manifest=manifest
    )
    torch = done.manifest.find("torch")
    assert torch and torch.wheel == WheelRef(
        file=RIGHT, sha256=sha256(wheel), size=wheel.stat().st_size, origin="file"
    )
    assert RIGHT in wheels(tmp_path)
    told = [(f.code, f.subject) for f in done.findings]
    assert told == ([] if name == RIGHT else [("wheel.renamed", name)])
    found = [f for f in check(str(tmp_path / "W")).findings if f.subject != "sympy"]
    assert found == []


def test_misnamed_wheel_of_something_new(tmp_path: Path, tools: Tools) -> None:
    """A folder of downloads is an index as well; a path is a request."""
    make_wheel(tmp_path / "downloads", "mine", "1.0+cu1", requires=["numpy"], file_name="x%2By.whl")
    other = make_wheel(tmp_path / "other", "yours", "2", file_name="yours (2).whl")
    done = run(tmp_path, tools, "mine", str(other), links=(str(tmp_path / "downloads"),))
    assert sorted(str(dist) for dist in done.added) == ["mine 1.0+cu1", "numpy 2.2.6", "yours 2"]
    assert {"mine-1.0+cu1-py3-none-any.whl", "yours-2-py3-none-any.whl"} < set(wheels(tmp_path))
    origins = {d.name: d.wheel.origin for d in done.added if d.wheel}
    assert origins["yours"] == "file"


def test_misnamed_wheel_inside_the_wheelhouse(tmp_path: Path, index: Path) -> None:
    _, manifest = vendor(tmp_path, name="torch (1).whl")
    os.rename(tmp_path / "downloads", tmp_path / "W")
    done = run(tmp_path, make_tools(index), "sympy", manifest=manifest)
    torch = done.manifest.find("torch")
    assert torch and torch.wheel and torch.wheel.file == RIGHT
    assert wheels(tmp_path) == [RIGHT]


def test_name_and_metadata_disagree(tmp_path: Path, index: Path) -> None:
    """The label of the file name is not in the metadata, as with builds of flash-attn."""
    _, manifest = vendor(tmp_path)
    make_wheel(
        tmp_path / "odd", "flash-attn", "2.6.3", file_name="flash_attn-2.6.3+cu123-py3-none-any.whl"
    )
    (tmp_path / "odd" / "page.whl").write_text("<html>not found</html>")
    done = run(
        tmp_path, make_tools(index), "sympy", links=(str(tmp_path / "odd"),), manifest=manifest
    )
    told = {f.subject: f.what for f in done.findings if f.code == "wheel.unusable"}
    assert (
        "'flash-attn 2.6.3+cu123', its METADATA 'flash-attn 2.6.3'"
        in told["flash_attn-2.6.3+cu123-py3-none-any.whl"]
    )
    assert "cannot be read as a wheel" in told["page.whl"]


def test_other_build_of_the_same_version(tmp_path: Path, index: Path) -> None:
    """The name proves nothing: the content digest does."""
    _, manifest = vendor(tmp_path)
    make_wheel(tmp_path / "downloads", "torch", TORCH.version, {"torch.py": "OTHER = 1\n"})
    done = run(
        tmp_path, make_tools(index), "sympy", links=(str(tmp_path / "downloads"),),
        manifest=manifest,
    )  # fmt: skip
    assert [(f.code, f.subject) for f in done.findings] == [("build.other-build", RIGHT)]
    torch = done.manifest.find("torch")
    assert torch and torch.wheel is None
    assert wheels(tmp_path) == []


def test_vendor_wheel_of_the_manifests_url(tmp_path: Path, index: Path) -> None:
    wheel, manifest = vendor(tmp_path)
    with loopback() as server:
        url = server.add(f"/{wheel.name.replace('+', '%2B')}", Turn(data=wheel.read_bytes()))
        ref = WheelRef(file=RIGHT, sha256=sha256(wheel), origin="url", url=url)
        torch, sympy = sorted(manifest.distributions, key=lambda d: d.name != "torch")
        manifest = manifest_of(replace(torch, wheel=ref), sympy)
        done = run(tmp_path, make_tools(index), "peft", manifest=manifest)
        assert RIGHT in wheels(tmp_path)
        assert (found := done.manifest.find("torch")) and found.wheel == ref
        asked = len(server.asked)
        run(tmp_path, make_tools(index), "peft", manifest=done.manifest)
        assert len(server.asked) == asked


def test_url_that_is_dead_is_told(tmp_path: Path, index: Path) -> None:
    _, manifest = vendor(tmp_path)
    with loopback() as server:
        ref = WheelRef(file=RIGHT, sha256="0" * 64, origin="url", url=server.url("/gone.whl"))
        torch, sympy = sorted(manifest.distributions, key=lambda d: d.name != "torch")
        manifest = manifest_of(replace(torch, wheel=ref), sympy)
        done = run(tmp_path, make_tools(index), "peft", manifest=manifest)
    assert [(f.code, f.subject, f.level) for f in done.findings] == [
        ("build.vendor-wheel", "torch", "warning")
    ]
    assert [dist.name for dist in done.added] != []


# --------------------------------------------------------------------------- the command


def test_failures_of_programs(tmp_path: Path, tools: Tools) -> None:
    with pytest.raises(ProgramFailed, match=r"uv: |pip-tools: "):
        run(tmp_path, tools, "a b c")


def test_command(
    tmp_path: Path,
    index: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("UV_RESOLUTION", "lowest")
    manifest = tmp_path / "m.yaml"
    manifest.write_text(dump(MANIFEST))
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("peft\n")
    folder = str(tmp_path / "W")
    words = ["wheelhouse", "build", folder, "--manifest", str(manifest)]
    assert main([*words, "-r", str(wanted)]) == 0
    said = capsys.readouterr()
    assert "3 wheels added" in said.out
    assert "UV_RESOLUTION: is set, and plays no part here" in " ".join(said.err.split())
    assert main(["wheelhouse", "build", folder, "sympy", "--resolver", "pip-tools"]) == 0
    assert load((tmp_path / "W" / "envlock.yaml").read_text()).find("peft")
    assert main([*words, "sympy", "--resolver", "poetry"]) == 2
    assert "'poetry' is not there" in capsys.readouterr().err
    assert main([*words, "-r", str(wanted), "-r", "nosuch.txt"]) == 4
    assert "no such file: 'nosuch.txt'" in capsys.readouterr().err
    assert main(words) == 2
    assert "nothing to add" in capsys.readouterr().err

"""static.labels, static.vendor_mark, static.pth and static.pyc on small site folders."""

from __future__ import annotations

import os
import py_compile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.installed import read_installed
from envlock.adapters.profiles import load_profile
from envlock.model.check import Case, Status
from envlock.model.facts import Target
from envlock.model.manifest import Manifest
from envlock.verify.static_ground import Scene
from envlock.verify.static_labels import stack_release
from envlock.verify.static_suite import STATIC
from tests.support.fake_manifest import fake_layout, lock_site, put_dist

DTK = load_profile("dtk")
TORCH = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"
FLASH = "2.8.3+das.opt1.dtk2604.torch2100.20260330.g3f0061"
VERSION = "hip = '6.3.26093'\ncuda = None\n__hcu_version__ = '2.10.0+das.opt1.dtk2604'\n"


class Image:
    """What a vendor's image has: a stack, torch, flash-attn and a few public packages."""

    def __init__(self, folder: Path, target: Target) -> None:
        self.folder = folder
        self.layout = fake_layout(folder / "env")
        self.site = Path(self.layout.purelib)
        self.target = replace(
            target, layout=self.layout, sys_path=(str(self.site),), stdlib=str(folder / "stdlib")
        )
        self.root = folder / "dtk"
        self.root.mkdir()
        self.release("DTK-26.04-DCC2602-0317")
        self.profile = replace(DTK, roots=(str(self.root),))
        self.env: dict[str, str] = {}
        self.manifest: Manifest | None = None
        self.put("torch", TORCH, VERSION)
        self.put("flash_attn", FLASH, "dtk = '26.04'\nabi = 'abi1'\n__hcu_version__ = '2.6.1'\n")
        put_dist(self.site, "tqdm", "4.66.0", {"tqdm/__init__.py": "y = 1\n"})

    def release(self, text: str) -> None:
        (self.root / ".dtk_version").write_text(f"{text}\n")

    def put(self, name: str, version: str, text: str = "") -> None:
        for old in self.site.glob(f"{name}-*.dist-info/*"):
            old.unlink()
        for folder in self.site.glob(f"{name}-*.dist-info"):
            folder.rmdir()
        files = {f"{name}/__init__.py": "x = 1\n"}
        put_dist(self.site, name, version, {**files, f"{name}/version.py": text} if text else files)

    def cases(self, check: str) -> dict[str, Case]:
        scene = Scene(
            target=self.target,
            profile=self.profile,
            manifest=self.manifest,
            installed=read_installed(self.layout),
            env=self.env,
        )
        return {case.name.split()[0]: case for case in STATIC[check](scene)}


@pytest.fixture
def image(tmp_path: Path, own_target: Target) -> Image:
    return Image(tmp_path, own_target)


def _put(name: str, version: str, text: str = "") -> Callable[[Image], None]:
    return lambda image: image.put(name, version, text)


def _release(text: str) -> Callable[[Image], None]:
    return lambda image: image.release(text)


def _abi(image: Image) -> None:
    image.put("torch", "2.1.0+git00661e0.abi0.dtk2604")
    image.put("flash_attn", "2.6.1+das.opt1.abi1.dtk2604")


LABELS, MARK = "static.labels", "static.vendor_mark"

# change; check; distribution; status; words of the reason
BUILDS = [
    (_put("flash_attn", "2.8.3+das.opt1.dtk2504"), LABELS, "flash-attn", Status.FAILED,
     "is of dtk2504, torch of dtk2604"),
    (_put("flash_attn", "2.8.3+das.opt1.dtk26041"), LABELS, "flash-attn", Status.WARNED,
     "is of dtk26041, torch of dtk2604"),
    (_put("flash_attn", "2.8.3+das.opt1.dtk2604.torch290"), LABELS, "flash-attn", Status.FAILED,
     "is built for torch 2.9.0, not 2.10.0"),
    (_put("torch", "2.9.1+das.opt1.dtk2604"), LABELS, "flash-attn", Status.FAILED,
     "is built for torch 2.10.0, not 2.9.1"),
    (_put("torch", "2.13.0"), LABELS, "flash-attn", Status.FAILED,
     "is built for torch 2.10.0, not 2.13.0"),
    (_put("torchaudio", "2.10.0+rocm7.1"), LABELS, "torchaudio", Status.FAILED,
     "is of rocm7.1, torch of dtk2604"),
    (_put("torchvision", "0.25.0+cpu"), LABELS, "torchvision", Status.FAILED, "is of cpu, torch"),
    (_release("DTK-25.04"), LABELS, "torch", Status.FAILED,
     "the stack on this machine is 'DTK-25.04'"),
    (_release("26.04.1"), LABELS, "torch", Status.WARNED, "the stack on this machine is '26.04.1'"),
    (_abi, LABELS, "flash-attn", Status.FAILED, "is of C++ ABI 1, torch of 0"),
    (_put("torch", "2.10.0", "hip = None\ncuda = '13.0'\n"), MARK, "torch", Status.FAILED,
     "is a build for CUDA, not for HIP"),
    (_put("torch", "2.10.0", "hip: str = None\ncuda = None\n"), MARK, "torch",
     Status.FAILED, "is a build for the processor alone, not for HIP"),
    (_put("torch", TORCH, "hip = '7.1.0'\ncuda = None\n"), MARK, "torch", Status.WARNED,
     "defines none of __hcu_version__, __dcu_version__"),
    (lambda image: (image.site / "torch" / "version.py").unlink(), MARK, "torch",
     Status.FAILED, "has no version file"),
    (_put("flash_attn", FLASH, "dtk = '25.04.1'\n__hcu_version__ = ''\n"), MARK, "flash-attn",
     Status.FAILED, "its version file says dtk 25.04.1, its label dtk2604"),
    (_put("flash_attn", FLASH, "torch_version = '2.9.0'\n__hcu_version__ = ''\n"), MARK,
     "flash-attn", Status.FAILED, "its version file says torch 2.9.0, its label 2.10.0"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "check", "name", "status", "words"), BUILDS)
def test_what_does_not_belong_is_named(
    image: Image,
    change: Callable[[Image], None],
    check: str,
    name: str,
    status: Status,
    words: str,
) -> None:
    change(image)
    case = image.cases(check)[name]
    assert (case.status, words in case.reason) == (status, True), case


@pytest.mark.parametrize(
    ("torch", "others", "release"),
    [
        ("2.9.0+das.opt1.dtk2604", {"vllm": "0.11.0+das.rc2.torch29.dtk2604"}, "DTK-26.04-rc4"),
        (TORCH, {"flash_attn": FLASH, "vllm": "0.18.1+das.dtk2604"}, "26.04"),
        ("2.9.1+das.opt1.dtk2604", {"lightop": "0.6.0+das.dtk2604.torch291"}, ""),
        (TORCH, {"triton": "3.4.0+git1ef59765", "aiter": "0.1.dev1+g9daa788.d20260401"}, "26.04"),
        (TORCH, {"vllm": "0.28.1+dtk2604.torch2100.2609171627.g77acaf"}, "DTK-26.04"),
        (TORCH, {"amdsmi": "24.5.3+02cbffb.dirty", "numpy": "1.26.4"}, "26.04"),
    ],
)  # fmt: skip
def test_images_as_they_are_sold_agree(
    image: Image, torch: str, others: Mapping[str, str], release: str
) -> None:
    image.put("torch", torch, VERSION)
    image.put("flash_attn", "2.8.3+das.opt1.dtk2604")
    image.release(release)
    for name, version in others.items():
        image.put(name, version)
    for check in (LABELS, MARK):
        cases = image.cases(check)
        assert {case.status for case in cases.values()} == {Status.PASSED}, cases


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("DTK-26.04-DCC2602-0317", (2604, 0)),
        ("26.04", (2604, 0)),
        ("25.04.4", (2504, 4)),
        ("dtk-26.04-rc4", (2604, 0)),
        ("", None),
    ],
)
def test_releases_as_the_stack_writes_them(text: str, release: tuple[int, int] | None) -> None:
    assert stack_release(text) == release


# --- what Python imports --------------------------------------------------------------------


def _in_front(image: Image, name: str) -> None:
    folder = image.folder / "front"
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    image.env["PYTHONPATH"] = f"/nowhere:{folder}"


def _in_the_home(image: Image, name: str) -> None:
    folder = image.folder / "home" / "site-packages"
    folder.mkdir(parents=True)
    (folder / f"{name}.py").touch()
    image.target = replace(image.target, sys_path=(str(folder), *image.target.sys_path))


def _pth(text: str) -> Callable[[Image], object]:
    return lambda image: (image.site / "stray.pth").write_text(text)


def _customize(image: Image) -> None:
    _in_front(image, "unrelated")
    (image.folder / "front" / "sitecustomize.py").touch()


SHADOWS = [
    (lambda image: _in_front(image, "torch"), "import", Status.FAILED, "'torch' of torch 2.10.0"),
    (lambda image: _in_front(image, "tqdm"), "import", Status.WARNED, "'tqdm' of tqdm 4.66.0"),
    (lambda image: _in_the_home(image, "flash_attn"), "import", Status.FAILED, "'flash_attn' of"),
    (_pth("import sys; sys.path.insert(0, '/x')\n"), "start-up", Status.WARNED, "runs code"),
    (_pth("/opt/other\n"), "start-up", Status.WARNED, "'stray.pth' adds to the import path"),
    (_customize, "start-up", Status.WARNED, "'sitecustomize.py' in"),
]


@pytest.mark.parametrize(("change", "name", "status", "words"), SHADOWS)
def test_what_hides_a_build(
    image: Image, change: Callable[[Image], object], name: str, status: Status, words: str
) -> None:
    change(image)
    cases = image.cases("static.pth")
    assert (cases[name].status, words in cases[name].reason) == (status, True), cases
    assert {c.status for other, c in cases.items() if other != name} == {Status.PASSED}


def test_what_the_user_protects_must_not_be_hidden(image: Image) -> None:
    image.manifest = lock_site(image.layout, "tqdm")
    _in_front(image, "tqdm")
    assert image.cases("static.pth")["import"].status is Status.FAILED


def test_what_makes_environments_leaves_its_own_file(image: Image) -> None:
    (image.site / "_virtualenv.pth").write_text("import _virtualenv\n")
    assert {c.status for c in image.cases("static.pth").values()} == {Status.PASSED}


def test_a_bare_folder_hides_nothing(image: Image) -> None:
    """The vendor's script puts /usr/local in front, and it has a folder of every kind."""
    (image.folder / "local" / "torch").mkdir(parents=True)
    image.env["PYTHONPATH"] = f"{image.folder / 'local'}:"
    put_dist(image.site, "tools", "1", {"tools.pth": "import tools\n", "tools/__init__.py": ""})
    assert {c.status for c in image.cases("static.pth").values()} == {Status.PASSED}


# --- byte code ------------------------------------------------------------------------------

Mode = py_compile.PycInvalidationMode


def _compile(image: Image, mode: Mode) -> Path:
    source = image.site / "torch" / "__init__.py"
    tag = f"cpython-{image.target.short.removeprefix('cp')}"
    cached = source.parent / "__pycache__" / f"__init__.{tag}.pyc"
    py_compile.compile(str(source), cfile=str(cached), invalidation_mode=mode)
    return source


@pytest.mark.parametrize("mode", list(Mode))
def test_byte_code_of_its_source(image: Image, mode: Mode) -> None:
    _compile(image, mode)
    (case,) = image.cases("static.pyc").values()
    assert (case.status, case.metrics["files"]) == (Status.PASSED, 1)


@pytest.mark.parametrize(
    ("mode", "moved", "status", "words"),
    [
        (Mode.UNCHECKED_HASH, 0, Status.FAILED, "is of another source, and is used"),
        (Mode.CHECKED_HASH, 0, Status.WARNED, "is of another source"),
        (Mode.TIMESTAMP, 100, Status.WARNED, "is of another source"),
        (Mode.TIMESTAMP, -100, Status.WARNED, "is of another source"),
    ],
)
def test_byte_code_of_another_source(
    image: Image, mode: Mode, moved: int, status: Status, words: str
) -> None:
    source = _compile(image, mode)
    time = source.stat().st_mtime + moved
    source.write_text("x = 2\n")
    os.utime(source, (time, time))
    (case,) = image.cases("static.pyc").values()
    assert (case.status, words in case.reason) == (status, True), case


def test_half_of_a_byte_code_is_not_used(image: Image) -> None:
    source = _compile(image, Mode.TIMESTAMP)
    (path,) = (source.parent / "__pycache__").iterdir()
    path.write_bytes(path.read_bytes()[:7])
    (case,) = image.cases("static.pyc").values()
    assert case.status is Status.PASSED

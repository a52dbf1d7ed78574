"""Small worlds for guard: an index of public builds, and a target with a vendor's."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from tests.support.pythons import cached_wheels, make_venv, pip
from tests.support.wheels import make_wheel

TORCH = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"
TRITON = "3.4.0+git1ef59765"
FLASH = "2.8.3+das.opt1.dtk2604.torch2100"

#: pip looks at no extra that the metadata does not list; the lines go after the requirements.
_EXTRAS = ("filelock\nProvides-Extra: gpu\nProvides-Extra: tune",)

#: What an index has: versions, and what each of them requires.
PUBLIC: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "torch": (("2.0.0", "2.4.0", "2.9.1", "2.10.0", "2.11.0"), ("filelock", "triton>=3.4")),
    "triton": (("3.5.0", "3.6.0"), ()),
    "flash-attn": (("2.8.3", "2.9.0"), ("torch",)),
    "filelock": (("3.0", "3.1"), ()),
    "numpy": (("1.26.4", "2.1.0"), ()),
    "tabulate": (("0.8", "0.9"), ()),
    "nvidia-nccl-cu12": (("2.27.5",), ()),
    "xformers": (("0.0.33",), ("torch==2.9.1",)),
    "torchvision": (("0.26.0",), ("torch==2.11.0",)),
    "accelerate": (("1.0",), ("torch>=2.0",)),
    "peft": (("0.1",), ("torch>=1.13", "accelerate")),
    # one dependent for each way to say what is needed
    "exact": (("1.0",), ("torch==2.10.0",)),
    "label": (("1.0",), (f"torch=={TORCH}",)),
    "otherlabel": (("1.0",), ("torch==2.10.0+cpu",)),
    "arbitrary": (("1.0",), ("torch===2.10.0",)),
    "wild": (("1.0",), ("torch==2.10.*",)),
    "otherwild": (("1.0",), ("torch==2.9.*",)),
    "compatible": (("1.0",), ("torch~=2.10.0",)),
    "ranged": (("1.0",), ("torch>=2.9,<2.11",)),
    "floor": (("1.0",), ("torch>=2.10.0",)),
    "higher": (("1.0",), ("torch>=2.11",)),
    "above": (("1.0",), ("torch>2.10.0",)),
    "atmost": (("1.0",), ("torch<=2.10.0",)),
    "capped": (("1.0",), ("torch<2.10",)),
    "unequal": (("1.0",), ("torch!=2.10.0",)),
    "unequalold": (("1.0",), ("torch!=2.9.1",)),
    "kernels": (("1.0",), ("triton>=3.5",)),
    "deep": (("1.0",), ("kernels",)),
    "flashy": (("1.0",), ("flash-attn>=2.9",)),
    "attentive": (("1.0",), ("flash-attn>=2.8",)),
    "serving": (("1.0",), ("torch==2.11.0", "triton==3.6.0", "flash-attn")),
    "elsewhere": (("1.0",), ('torch==2.9.1 ; sys_platform == "win32"',)),
    "extras": (
        ("1.0",),
        ("tabulate", 'torch==2.9.1 ; extra == "gpu"', 'peft ; extra == "tune"', *_EXTRAS),
    ),
    "clobbering": (("1.0",), ("clobber",)),
    "needs-built": (("1.0",), ("source-built",)),
    "cuda-app": (("1.0",), ("nvidia-nccl-cu12==2.27.5",)),
    "older": (("1.0", "2.0"), ("torch>=2.10", "tabulate")),
    "oldarrays": (("1.0",), ("numpy<2",)),
    "newarrays": (("1.0",), ("numpy>=2",)),
    "starts-at-2-4": (("1.0",), ("torch>=2.4",)),
    "is-2-4": (("1.0",), ("torch==2.4.0",)),
    "starts-at-2-0": (("1.0",), ("torch>=2.0",)),
    "starts-at-1-13": (("1.0",), ("torch>=1.13",)),
}

Builds = tuple[tuple[str, str, tuple[str, ...]], ...]


def _builds(torch: str, *requires: str, more: Builds = ()) -> Builds:
    return (
        ("torch", torch, ("filelock", *requires)),
        ("triton", TRITON, ()),
        ("flash_attn", FLASH, ("torch",)),
        *more,
    )


#: Vendor builds that a target has, by the name of the world.
KINDS: dict[str, Builds] = {
    "das": _builds(TORCH, "triton==3.4.0"),
    "dev": _builds("2.4.0.dev1+v"),
    "alpha": _builds("2.0.0a0+abc"),
    "opt10": _builds("2.10.0+das.opt10"),
    # a dependency that exists nowhere
    "missing": _builds(TORCH, "das-runtime==1.0"),
    # another triton than the one beside it, as one real image has
    "repair": _builds(TORCH, "triton==3.6.0"),
    "arrays": _builds(TORCH, "numpy<2,>=1.22"),
    # versions that PEP 440 does not know, from the time when they were installed all the same
    "invalid": (
        ("torch", "2.1.0+das1.0+git00661e0.abi0.dtk2404", ("filelock",)),
        ("triton", "2.1.0+das1.0+git3841f975.abi0.dtk2404", ()),
        ("apex", "0.1_dtk22.04.1", ()),
    ),
    # an environment over another one, which has the builds
    "child": _builds(TORCH, "triton==3.4.0"),
    "plain": (),
}

#: A build backend in a few lines: nothing has to be fetched to build with it.
BACKEND = """
import base64, hashlib, pathlib, zipfile
NAME, VERSION, REQUIRES, PACKAGES = {name!r}, {version!r}, {requires!r}, {packages!r}
def _write(folder, members):
    stem = NAME.replace("-", "_") + "-" + VERSION
    try:
        from torch import VERSION as torch
    except ImportError:
        torch = "none"
    info = stem + ".dist-info/"
    metadata = "Metadata-Version: 2.1\\nName: " + NAME + "\\nVersion: " + VERSION + "\\n"
    metadata += "".join("Requires-Dist: " + one + "\\n" for one in REQUIRES)
    members = dict(members, **{{
        NAME.replace("-", "_") + "_built_with.txt": torch,
        info + "METADATA": metadata,
        info + "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }})
    record = ""
    with zipfile.ZipFile(pathlib.Path(folder, stem + "-py3-none-any.whl"), "w") as archive:
        for path, text in members.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            record += path + ",sha256=" + digest.decode().rstrip("=") + "," + str(len(text)) + "\\n"
            archive.writestr(path, text)
        archive.writestr(info + "RECORD", record + info + "RECORD,,\\n")
    return stem + "-py3-none-any.whl"
def get_requires_for_build_wheel(settings=None):
    return {late!r}
def build_wheel(folder, settings=None, metadata=None):
    packages = {{one + "/__init__.py": "HERE = 1\\n" for one in PACKAGES}}
    return _write(folder, {{NAME.replace("-", "_") + ".py": "", **packages}})
def build_editable(folder, settings=None, metadata=None):
    here = str(pathlib.Path.cwd())
    line = "import sys; sys.path.insert(0, " + repr(here) + ")" if PACKAGES else here
    return _write(folder, {{"__editable__." + NAME + ".pth": line + "\\n"}})
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Something to be built.

    Attributes:
        build: what its build requires.
        packages: import packages in it; an editable one of these comes first on ``sys.path``, as
            ``setup.py develop`` puts it.
        late: what its backend asks for when it is asked.
    """

    name: str
    requires: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    version: str = "1.0"
    packages: tuple[str, ...] = ()
    late: tuple[str, ...] = ()

    def members(self) -> dict[str, str]:
        """The files of the tree."""
        requires = ", ".join(f'"{one}"' for one in self.build)
        backend = BACKEND.format(name=self.name, version=self.version, requires=self.requires,
                                 packages=self.packages, late=list(self.late))  # fmt: skip
        return {
            **{f"{one}/__init__.py": "HERE = 1\n" for one in self.packages},
            "pyproject.toml": f'[build-system]\nrequires = [{requires}]\nbuild-backend = "make"\n'
            'backend-path = ["."]\n',
            "make.py": backend,
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n",
        }

    def tree(self, folder: Path) -> Path:
        """Unpacked, as in a checkout."""
        path = folder / self.name
        path.mkdir(parents=True)
        for member, text in self.members().items():
            (path / member).parent.mkdir(exist_ok=True)
            (path / member).write_text(text)
        return path

    def sdist(self, folder: Path) -> Path:
        """Packed, as on an index."""
        stem = f"{self.name.replace('-', '_')}-{self.version}"
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(folder / f"{stem}.tar.gz", "w:gz") as archive:
            for member, text in self.members().items():
                data = text.encode()
                entry = tarfile.TarInfo(f"{stem}/{member}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return folder / f"{stem}.tar.gz"


#: Projects of the index that have no wheel.
SDISTS = (
    Source("source-plain"),
    Source("source-pinned", requires=("torch==2.9.1",)),
    Source("source-loose", requires=("torch>=2",)),
    Source("source-built", build=("torch",)),
    Source("source-built-plainly", build=("tabulate",)),
    # through what its build requires, and as only its backend says
    Source("source-built-deeply", build=("accelerate",)),
    Source("source-built-late", late=("torch",)),
)


@dataclass(frozen=True, slots=True)
class World:
    """Folders of public and of vendor wheels, and a target to be copied."""

    folder: Path

    @property
    def index(self) -> Path:
        return self.folder / "index"

    @property
    def vendor(self) -> Path:
        return self.folder / "vendor"

    @property
    def other(self) -> Path:
        """The vendor's versions again, with other bytes, and more of the vendor's labels."""
        return self.folder / "other"

    @property
    def target(self) -> Path:
        return self.folder / "target"

    def copy(self, path: Path) -> Path:
        """A target of one's own; returns its interpreter.

        pip itself is linked: it is most of the files, and no installer writes into a file that
        is there.
        """
        shutil.copytree(self.target, path, symlinks=True, copy_function=_copy)
        return path / "bin" / "python"

    @property
    def pip_conf(self) -> Path:
        """Settings with which pip sees the index and nothing else."""
        path = self.folder / "pip.conf"
        path.write_text(f"[global]\nno-index = true\nfind-links = {self.index}\n")
        return path

    @property
    def uv_toml(self) -> Path:
        """The same for uv."""
        path = self.folder / "uv.toml"
        path.write_text(f'no-index = true\nfind-links = ["{self.index}"]\n')
        return path

    def env(self) -> dict[str, str]:
        """Variables that name those settings."""
        return {
            "PIP_CONFIG_FILE": str(self.pip_conf),
            "UV_CONFIG_FILE": str(self.uv_toml),
            "UV_CACHE_DIR": str(self.folder / "uv-cache"),
        }


def _copy(source: str, path: str) -> None:
    if "/site-packages/pip/" in source:
        os.link(source, path)
    else:
        shutil.copy2(source, path)


def make_world(
    folder: Path,
    pip_version: str = "",
    torch_requires: Sequence[str] = ("triton==3.4.0",),
    builds: Builds | None = None,
    *,
    child: bool = False,
) -> World:
    """Builds it; with ``pip_version``, the target has that pip.

    Args:
        child: the builds are in another environment, which shows through in the target.
    """
    world = World(folder)
    builds = _builds(TORCH, *torch_requires) if builds is None else builds
    for name, (versions, requires) in PUBLIC.items():
        for version in versions:
            make_wheel(world.index, name, version, requires=requires)
    # another name, the same files
    make_wheel(world.index, "clobber", "1.0", {"torch.py": "CLOBBERED = 1\n"})
    for source in SDISTS:
        source.sdist(world.index)
    for name, version, requires in builds:
        make_wheel(world.vendor, name, version, requires=requires)
        make_wheel(world.other, name, version, {f"{name}.py": "OTHER = 1\n"}, requires=requires)
    for label in ("das.opt9", "das.opt10", "das.opt11"):
        make_wheel(world.other, "torch", f"2.10.0+{label}", {"torch.py": f"OTHER = '{label}'\n"})
    python = make_venv(folder / "above" if child else world.target)
    pip(python, "install", "--no-index", "--no-deps", "-f", str(world.vendor), "-f",
        str(world.index), *(f"{name}=={version}" for name, version, _ in builds if _valid(version)),
        "filelock==3.0", *(["numpy==1.26.4"] if "numpy" in str(builds) else ()))  # fmt: skip
    above = python
    if child:
        python = make_venv(world.target)
    if pip_version:
        kept = cached_wheels(f"pip-{pip_version}", f"pip=={pip_version}")
        pip(python, "install", "--no-index", "-f", str(kept), f"pip=={pip_version}")
    _add_by_hand(world, above)
    if child:
        (_site(python) / "above.pth").write_text(f"{_site(above)}\n")
    return world


def _site(python: Path) -> Path:
    (found,) = python.parents[1].glob("lib/python3*/site-packages")
    return found


def _add_by_hand(world: World, python: Path) -> None:
    """The vendor's wheels that no tool installs any more, nor anything beside them."""
    for wheel in world.vendor.glob("*.whl"):
        if not _valid(wheel.name.split("-")[1]):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(_site(python))


def _valid(version: str) -> bool:
    """Whether PEP 440 knows such a version."""
    try:
        return bool(Version(version))
    except InvalidVersion:
        return False


def tree(folder: Path) -> dict[str, str]:
    """Every file and link of a folder with what it holds; byte code and uv's lock left out."""
    found = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in set(files) - {".lock"}:
            path = Path(root, name)
            link = path.is_symlink()
            data = os.fsencode(os.readlink(path)) if link else path.read_bytes()
            found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found


def protected_part(
    files: dict[str, str], names: Iterable[str] = ("torch", "triton", "flash_attn")
) -> dict[str, str]:
    """The files of the vendor builds, wherever a copy of one lies, and packages that hide one."""
    packages = tuple(f"site-packages/{name}/__init__.py" for name in names)
    modules = {f"{name}.py" for name in names}
    infos = tuple(f"{name.removesuffix('.py')}-" for name in modules)
    return {
        path: data
        for path, data in files.items()
        if Path(path).name in modules
        or path.endswith(packages)
        or (Path(path).parent.name.startswith(infos) and ".dist-info" in path)
    }


def versions(files: Iterable[str]) -> dict[str, str]:
    """What is installed, by the names of its ``.dist-info`` folders."""
    infos = {Path(path).parent.name for path in files if path.endswith(".dist-info/METADATA")}
    found = (info.removesuffix(".dist-info").partition("-") for info in infos)
    return {name.replace("_", "-"): version for name, _, version in found}


def satisfied(builds: Builds, files: Iterable[str]) -> set[str]:
    """Requirements of vendor builds that what is installed meets."""
    installed = versions(files)
    return {
        f"{name}: {raw}"
        for name, _, requires in builds
        for raw in requires
        if (needed := Requirement(raw)).name in installed
        and needed.specifier.contains(installed[needed.name], prereleases=True)
    }

"""Small worlds for guard: an index of public builds, and a target with a vendor's."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

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
    "plain": (),
}

#: A build backend in a few lines: nothing has to be fetched to build with it.
BACKEND = """
import base64, hashlib, pathlib, zipfile
NAME, VERSION, REQUIRES = {name!r}, {version!r}, {requires!r}
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
def build_wheel(folder, settings=None, metadata=None):
    return _write(folder, {{NAME.replace("-", "_") + ".py": ""}})
def build_editable(folder, settings=None, metadata=None):
    return _write(folder, {{"__editable__." + NAME + ".pth": str(pathlib.Path.cwd()) + "\\n"}})
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Something to be built.

    Attributes:
        build: what its build requires.
    """

    name: str
    requires: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    version: str = "1.0"

    def members(self) -> dict[str, str]:
        """The files of the tree."""
        requires = ", ".join(f'"{one}"' for one in self.build)
        backend = BACKEND.format(name=self.name, version=self.version, requires=self.requires)
        return {
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
) -> World:
    """Builds it; with ``pip_version``, the target has that pip."""
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
    python = make_venv(world.target)
    pip(python, "install", "--no-index", "--no-deps", "-f", str(world.vendor), "-f",
        str(world.index), *(f"{name}=={version}" for name, version, _ in builds),
        "filelock==3.0", *(["numpy==1.26.4"] if "numpy" in str(builds) else ()))  # fmt: skip
    if pip_version:
        kept = cached_wheels(f"pip-{pip_version}", f"pip=={pip_version}")
        pip(python, "install", "--no-index", "-f", str(kept), f"pip=={pip_version}")
    return world


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
    """The files of the vendor builds, wherever a copy of one lies."""
    modules = {f"{name}.py" for name in names}
    infos = tuple(f"{name.removesuffix('.py')}-" for name in modules)
    return {
        path: data
        for path, data in files.items()
        if Path(path).name in modules
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

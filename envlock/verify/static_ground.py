"""What the static checks look at: the target's shared objects, and what a process would load."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from envlock.adapters.elf import is_elf
from envlock.adapters.installed import Installed
from envlock.adapters.limits import read_limits
from envlock.adapters.loader import Loaded, Loader, Scope
from envlock.adapters.machine import find_root, read_release
from envlock.model.check import Case, Status
from envlock.model.facts import Target
from envlock.model.manifest import Manifest
from envlock.model.profile import Profile
from envlock.verify.registry import ALSO_CALLED, IMPORTS

#: Its libraries are there when an extension that needs them is imported: it comes first.
_HOST = "torch"
_GLOBAL = "libtorch_global_deps.so"  # torch loads it for everybody
UNOWNED = "(no distribution)"
#: Variables that checks are told of. No others: a report is shared.
_TOLD = (
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HCU_VISIBLE_DEVICES"),
    *("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL", "AMD_SERIALIZE_COPY"),
    *("TORCH_USE_HIP_DSA", "TORCH_USE_CUDA_DSA", "PYTORCH_NO_CUDA_MEMORY_CACHING"),
    *("PYTORCH_NO_HIP_MEMORY_CACHING", "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"),
    *("PYTORCH_TUNABLEOP_ENABLED", "HSA_OVERRIDE_GFX_VERSION", "TRITON_INTERPRET", "NCCL_DEBUG"),
    *(
        "NCCL_P2P_DISABLE",
        "NCCL_SHM_DISABLE",
        "NVIDIA_TF32_OVERRIDE",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
    ),
    *(
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONOPTIMIZE",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "MAX_JOBS",
    ),
    *("TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TRITON_HOME", "TORCHINDUCTOR_CACHE_DIR"),
    *("ROCM_PATH", "ROCM_HOME", "HIP_PATH", "DTKROOT", "DTK_HOME", "CUDA_HOME", "CUDA_PATH"),
)
_NAMED = 3  # problems named in a reason; the metrics hold more of them
_LISTED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """A shared object of the environment.

    Attributes:
        place: below its site folder, as reports show it.
        owner: ``torch 2.10.0+das``, or that it is nobody's.
        name: canonical name of the owner; empty without one.
    """

    place: str
    owner: str
    name: str
    loaded: Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An object, and what is loaded with it.

    Attributes:
        owned: the object.
        scope: itself and its libraries.
        around: what is global before it comes.
        reached: Python imports it, or something that Python imports needs it.
    """

    owned: Owned
    scope: Scope
    around: tuple[Scope, ...]
    reached: bool


@dataclass(frozen=True)
class Scene:
    """The target as it lies on the disk, with the environment its checks run in.

    Attributes:
        target: the target.
        profile: what is expected of the vendor's builds.
        manifest: what should be there; None without one.
        installed: every distribution.
        env: with the vendor's variables.
    """

    target: Target
    profile: Profile
    manifest: Manifest | None
    installed: Sequence[Installed]
    env: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def root(self) -> str:
        """The stack's folder; empty when it is not on this machine."""
        return find_root(self.profile, self.env)

    @cached_property
    def release(self) -> str:
        """The stack's release as its files say it."""
        return read_release(self.profile, self.root)

    @cached_property
    def _weighty(self) -> frozenset[str]:
        """Canonical names of what this is about: the vendor's builds, and what has checks."""
        listed = self.manifest.distributions if self.manifest else ()
        locked = {dist.name for dist in listed if dist.protected or dist.vendor}
        labelled = {dist.name for dist in self.installed if self.profile.knows_label(dist.version)}
        return frozenset({*self.profile.names, *IMPORTS, *ALSO_CALLED, *locked, *labelled})

    def matters(self, one: Owned) -> bool:
        """Whether a module that cannot be imported makes the environment a broken one."""
        return one.name in self._weighty

    @property
    def given(self) -> dict[str, Any]:
        """What check scripts are told of device and runtime, as JSON values."""
        found: dict[str, Any] = asdict(self.profile.runtime)
        found["architectures"] = list(self.profile.architectures)
        found["tools"] = list(self.profile.tools)
        found["tool_folders"] = list(self.profile.tool_folders)
        found["env_script"] = self.profile.env_script
        found["root"], found["release"] = self.root, self.release
        # the children's own are others: what they run with is chosen for them
        found["variables"] = {name: self.env[name] for name in _TOLD if name in self.env}
        found["home"] = self.env.get("HOME", "")
        found["limits"] = read_limits().document()
        return found

    @cached_property
    def loader(self) -> Loader:
        return Loader(self.target.executable, self.env)

    @cached_property
    def sites(self) -> tuple[str, ...]:
        """Folders with distributions on the import path, each once."""
        layout = self.target.layout
        found: dict[str, str] = {}
        for folder in (layout.purelib, layout.platlib, *self.target.sys_path):
            if os.path.basename(folder) in ("site-packages", "dist-packages"):
                found.setdefault(os.path.realpath(folder), folder)
        return tuple(found.values())

    @cached_property
    def objects(self) -> tuple[Owned, ...]:
        """Every shared object in those folders that is for this machine."""
        owners = dict(self._owners())
        found = []
        for site in self.sites:
            for path in sorted(_shared(site)):
                one = self.loader.object(path)
                if not self.loader.fits(one.elf):
                    continue  # for another machine: nothing here can load it
                name, owner = owners.get(path, ("", UNOWNED))
                place = os.path.relpath(path, site)
                found.append(Owned(place=place, owner=owner, name=name, loaded=one))
        return tuple(found)

    def _owners(self) -> Iterator[tuple[str, tuple[str, str]]]:
        for dist in self.installed:
            shown = (dist.name, f"{dist.name} {dist.version}")
            for row in dist.rows or ():
                if ".so" in row.path:
                    yield os.path.normpath(os.path.join(dist.site, row.path)), shown

    @cached_property
    def host(self) -> Scope:
        """What is loaded once torch is; empty without torch."""
        scope = Scope()
        for owned in self.objects:
            folder, base = os.path.split(owned.place)
            if folder == _HOST and base.startswith("_C.") and owned.loaded.elf.is_extension:
                scope = self.loader.closure(owned.loaded, self.loader.start)
        for path, one in self.shared.objects.items():
            scope.add(os.path.basename(path), one)
        for name, path in self.loader.start.names.items():
            scope.names.setdefault(name, path)
        return scope

    @cached_property
    def shared(self) -> Scope:
        """What torch loads for everybody, before its own modules."""
        for one in self.objects:
            if one.place == os.path.join(_HOST, "lib", _GLOBAL):
                return self.loader.closure(one.loaded, self.loader.start)
        return Scope()

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Every object with what is loaded with it; extension modules first."""
        modules = [one for one in self.objects if self._is_root(one)]
        links = [self._imported(one) for one in modules]
        reached = {path for link in links for path in link.scope.objects}
        rest = [one for one in self.objects if one.loaded.path not in reached]
        return (*links, *(self._plugin(one) for one in rest))

    @staticmethod
    def _is_root(one: Owned) -> bool:
        return one.loaded.elf.is_extension or os.path.basename(one.place) == _GLOBAL

    def _imported(self, one: Owned) -> Link:
        start = self.loader.start
        scope = self.loader.closure(one.loaded, start)
        brought = {name for name, path in self.host.names.items() if self._is_own(path)}
        if any(lost.name in brought for lost in scope.missing):
            # only torch brings it: this one is imported after torch, and finds all that torch has
            scope = self.loader.closure(one.loaded, self.host)
            return Link(owned=one, scope=scope, around=(start, self.shared), reached=True)
        return Link(owned=one, scope=scope, around=(start,), reached=True)

    def _is_own(self, path: str) -> bool:
        return any(path.startswith(site + os.sep) for site in self.sites)

    def _plugin(self, one: Owned) -> Link:
        """What no module needs is opened by its own distribution, when that is loaded already."""
        family = Scope()
        for other in self.objects:
            if other.owner == one.owner and other.loaded.path != one.loaded.path:
                family.add(os.path.basename(other.place), other.loaded)
        for name, path in self.host.names.items():
            family.names.setdefault(name, path)
        scope = self.loader.closure(one.loaded, family)
        return Link(owned=one, scope=scope, around=(self.loader.start, family), reached=False)


def _shared(folder: str) -> Iterator[str]:
    """Paths of the shared objects below a folder."""
    waiting = [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif (entry.name.endswith(".so") or ".so." in entry.name) and is_elf(entry.path):
                yield entry.path


def case_of(
    name: str, failed: Sequence[str], warned: Sequence[str] = (), **metrics: object
) -> Case:
    """One case from its problems: none, and it passed."""
    problems = [*failed, *warned]
    more = f" and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
    status = Status.FAILED if failed else Status.WARNED if warned else Status.PASSED
    found = {"problems": problems[:_LISTED]} if problems else {}
    reason = "; ".join(problems[:_NAMED]) + more
    return Case(name=name, status=status, reason=reason, metrics={**metrics, **found})


def skipped(name: str, reason: str) -> Case:
    """A case with nothing to judge."""
    return Case(name=name, status=Status.SKIPPED, reason=reason)

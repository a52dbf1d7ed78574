"""An environment of compiled objects: torch with libraries of its own, flash-attn, and a stack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from envlock.adapters.installed import read_installed
from envlock.model.check import Case, Status
from envlock.model.facts import Target
from envlock.model.profile import Profile
from envlock.model.runtime import Runtime
from envlock.verify.static_ground import Scene
from envlock.verify.static_suite import STATIC
from tests.support.fake_manifest import fake_layout
from tests.support.objects import SUFFIX, extension, library

TORCH = "2.10.0+das.opt1.dtk2604"
PROFILE = Profile(
    name="dtk",
    title="DTK",
    labels=(r"dtk\d",),
    names=("torch", "flash-attn"),
    env_script="env.sh",
    architectures=("gfx928", "gfx936"),
    runtime=Runtime(
        kind="hip", libraries=("libgalaxyhip.so",), driver_libraries=("libdriver.so.1",)
    ),
)


class World:
    """A torch with libraries of its own, a flash-attn that needs them, and a stack beside."""

    def __init__(self, folder: Path, target: Target) -> None:
        self.layout = fake_layout(folder / "env")
        self.site = Path(self.layout.purelib)
        self.stack = folder / "stack"
        self.target = replace(target, layout=self.layout, sys_path=(str(self.site),))
        self.env: dict[str, str] = {"LD_LIBRARY_PATH": str(self.stack / "lib")}
        self.profile = replace(PROFILE, roots=(str(self.stack),))
        self.libs = self.site / "torch" / "lib"
        self.cpu, self.c10, self.hip = (
            self.libs / f"lib{name}.so" for name in ("torch_cpu", "c10", "torch_hip")
        )
        self.flash = self.site / f"flash_attn_2_cuda{SUFFIX}"

    def build(self) -> None:
        runtime = library(self.stack / "lib" / "libgalaxyhip.so.5", "hipLaunch")
        origin = "-Wl,-rpath,$ORIGIN"
        library(self.c10, "c10_error")
        library(self.cpu, "at_add", origin, needs=[self.c10])
        library(self.hip, "at_hip", origin, needs=[runtime])
        own = [self.cpu, self.c10, self.hip]
        extension(self.site / "torch", "_C", "-Wl,-rpath,$ORIGIN/lib", calls="at_add", needs=own)
        self.build_flash()

    def build_flash(self, *options: str, calls: str = "c10_error", **more: Any) -> Path:
        """flash-attn has no path to torch's libraries: torch is imported before it."""
        needs = more.get("needs", [self.cpu, self.c10])
        return extension(self.site, "flash_attn_2_cuda", *options, calls=calls, needs=needs)

    def record(self) -> None:
        for name, version, tops in (
            ("torch", TORCH, ("torch",)),
            ("flash_attn", "2.8.3+das.opt1.dtk2604", ("flash_attn", "flash_attn_2_cuda")),
        ):
            info = self.site / f"{name}-{version}.dist-info"
            info.mkdir(exist_ok=True)
            (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
            rows = [
                f"{path.relative_to(self.site)},,\n"
                for path in sorted(self.site.rglob("*"))
                if path.is_file() and path.relative_to(self.site).parts[0].split(".")[0] in tops
            ]
            (info / "RECORD").write_text("".join([*rows, f"{info.name}/RECORD,,\n"]))

    def cases(self, check: str) -> dict[str, Case]:
        self.record()
        scene = Scene(
            target=self.target,
            profile=self.profile,
            manifest=None,
            installed=read_installed(self.layout),
            env=self.env,
        )
        return {case.name.split("+")[0]: case for case in STATIC[check](scene)}

    def statuses(self) -> dict[str, set[Status]]:
        checks = ("static.ldd", "static.cxxabi", "static.onehip", "static.gfx")
        return {check: {case.status for case in self.cases(check).values()} for check in checks}

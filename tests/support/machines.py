"""Recorded machines: a folder that stands for "/", with the files, links and tools of a real one.

Each is a document in ``tests/machines``. What it says of paths and variables is what the machine
itself says: ``/opt/dtk``, never a place of the test. Code under test is given ``root``; a command
is run after :meth:`Recorded.enter`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from envlock.cli import options
from envlock.model.facts import Layout, Target
from tests.adapters.site import Site
from tests.support.elf_files import shared_object

FOLDER = Path(__file__).parents[1] / "machines"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


@dataclass(frozen=True)
class Recorded:
    """A machine that was built.

    Attributes:
        root: the folder that stands for ``/``.
        env: the variables of a shell on it; paths as on the machine.
        document: what was recorded; ``expect`` is what has to be found.
    """

    name: str
    root: str
    env: Mapping[str, str]
    document: Mapping[str, Any]

    @property
    def expect(self) -> Mapping[str, Any]:
        return dict(self.document["expect"])

    def path(self, place: str) -> Path:
        """Where a path of the machine is."""
        return Path(self.root, place.lstrip("/"))

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From here on commands run on this machine, in this shell."""
        for name in list(os.environ):
            if not name.startswith(("PYTEST", "XDG_", "PIP_", "UV_")):
                monkeypatch.delenv(name)
        for name, value in self.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(options, "ROOT", self.root)

    def target(self) -> Target:
        """The recorded Python, by its files alone."""
        recorded = self.document["python"]
        site = _site(Path(self.root), recorded["purelib"])
        return Target(
            executable=str(site.prefix / "bin/python3"),
            source="recorded",
            python="3.10.12",
            markers={"python_version": "3.10", "sys_platform": "linux"},
            tags=("cp310-cp310-linux_x86_64",),
            layout=site.layout,
            sys_path=tuple(str(self.path(p)) for p in recorded.get("path", [recorded["purelib"]])),
            glibc=(2, 35),
            venv=False,
            pip=None,
            externally_managed=None,
        )


def build(name: str, folder: Path) -> Recorded:
    """Makes the machine in a new folder below one that is there."""
    document = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    root = folder / name
    root.mkdir()
    for place, text in document.get("files", {}).items():
        _write(root, place, text)
    for place, answers in document.get("tools", {}).items():
        _write(root, place, _script(answers)).chmod(0o755)
    for place, target in document.get("links", {}).items():
        link = Path(root, place.lstrip("/"))
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    for number, card in enumerate(document.get("cards", [])):
        _card(root, number, card)
    _distributions(root, document["python"])
    return Recorded(name, str(root), dict(document.get("env", {})), document)


def _write(root: Path, place: str, text: str) -> Path:
    path = Path(root, place.lstrip("/"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _script(answers: Mapping[str, Any]) -> str:
    """A program that knows some command lines, each a pattern of the shell's."""
    lines = ["#!/bin/sh", 'case "$*" in']
    for pattern, answer in answers.items():
        given = answer if isinstance(answer, dict) else {"output": answer}
        glob = pattern.replace(" ", "\\ ") or "''"
        if given.get("hang"):  # in the driver, as far as anybody can tell: TERM does nothing
            lines.append(f"{glob}) trap '' TERM; exec /bin/sleep 600;;")
            continue
        text = given.get("output", "").rstrip("\n")
        lines.append(f"{glob}) /bin/cat <<'ANSWER'\n{text}\nANSWER\nexit {given.get('code', 0)};;")
    return "\n".join([*lines, "esac", 'echo "unrecognized arguments: $*" >&2', "exit 2", ""])


def _card(root: Path, number: int, card: Mapping[str, Any]) -> None:
    """What the kernel shows of a device: its place on the bus, and its node where it computes."""
    bus = card["bus"]
    pci = f"/sys/bus/pci/devices/{bus}"
    speed = card.get("speed", "32.0 GT/s PCIe")
    texts = {
        "vendor": card["vendor"],
        "class": card.get("class", "0x038000"),
        "numa_node": card.get("numa", -1),
        "current_link_speed": card.get("speed_now", speed),
        "max_link_speed": speed,
        "current_link_width": card.get("width_now", card.get("width", 16)),
        "max_link_width": card.get("width", 16),
    }
    for name, value in texts.items():
        _write(root, f"{pci}/{name}", f"{value}\n")
    if card.get("driver"):
        _write(root, f"/sys/bus/pci/drivers/{card['driver']}/uevent", "")
        Path(root, pci.lstrip("/"), "driver").symlink_to(f"../../drivers/{card['driver']}")
    if kfd := card.get("kfd"):
        _kfd(root, number, bus, {**kfd, "vendor": int(card["vendor"], 16)})


def _kfd(root: Path, number: int, bus: str, kfd: Mapping[str, Any]) -> None:
    top = "/sys/class/kfd/kfd/topology/nodes"
    domain, place, rest = bus.split(":")
    device, function = rest.split(".")
    location = int(place, 16) << 8 | int(device, 16) << 3 | int(function)
    _write(root, f"{top}/0/properties", "cpu_cores_count 64\nsimd_count 0\n")
    properties = {
        "cpu_cores_count": 0,
        "simd_count": kfd["units"] * 4,
        "wave_front_size": kfd.get("wave", 64),
        "simd_per_cu": 4,
        "gfx_target_version": kfd["target"],
        "vendor_id": kfd["vendor"],
        "location_id": location,
        "domain": int(domain, 16),
        "unique_id": 7137920824841,
        "max_engine_clk_fcompute": kfd["clock"],
    }
    node = f"{top}/{number + 1}"
    _write(root, f"{node}/properties", "".join(f"{k} {v}\n" for k, v in properties.items()))
    _write(root, f"{node}/mem_banks/0/properties", f"heap_type 1\nsize_in_bytes {kfd['memory']}\n")
    for other, kind in enumerate(kfd.get("links", [])):
        text = f"type {kind}\nnode_from {number + 1}\nnode_to {other}\n"
        _write(root, f"{node}/io_links/{other}/properties", text)


def _site(root: Path, purelib: str) -> Site:
    """The recorded folder of distributions, whatever its name."""
    prefix, _, rest = purelib.partition("/lib/")
    site = Site.__new__(Site)
    site.prefix = Path(root, prefix.lstrip("/"))
    site.site = site.prefix / "lib" / rest
    site.site.mkdir(parents=True, exist_ok=True)
    site.layout = Layout(
        prefix=str(site.prefix),
        purelib=str(site.site),
        platlib=str(site.site),
        scripts=str(site.prefix / "bin"),
        headers=str(site.prefix / "include/python3.10"),
        data=str(site.prefix),
    )
    return site


def _distributions(root: Path, recorded: Mapping[str, Any]) -> None:
    site = _site(root, recorded["purelib"])
    for name, given in recorded["distributions"].items():
        one = given if isinstance(given, dict) else {"version": given}
        objects = {place: shared_object(needed) for place, needed in one.get("linked", {}).items()}
        files: dict[str, str | bytes] = {**one.get("files", {}), **objects}
        site.add(name, one["version"], files or None)

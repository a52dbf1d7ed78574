"""What should be the same on every node, as the checks of a report found it out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from envlock.model.check import number

_GIB = 1024**3
_INDEX = re.compile(r"[0-9]{1,4}\Z")


def plain(text: str) -> str:
    """Text for a terminal and a file: without control characters and halves of characters."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def split_id(name: str) -> tuple[str, int]:
    """Check and device number of ``num.gemm_exact@1``; 0 where the device has no number."""
    base, _, index = name.partition("@")
    return (base, int(index)) if _INDEX.match(index) else (name, 0)


class Facts:
    """What the checks of one report found out."""

    def __init__(self, report: Mapping[str, Any], checks: Mapping[str, Mapping[str, Any]]) -> None:
        self.report, self.checks = report, checks
        self.suite = str(_part(report, "config").get("suite", ""))
        self.devices = _mappings(self._of("dev.enum").get("devices"))
        device = _part(report, "device")
        on_cpu = device.get("kind") == "cpu"
        # a run that did not come as far does not know its device
        self.first = str(device.get("device") or ("cpu" if on_cpu else ""))

    def _of(self, check: str) -> Mapping[str, Any]:
        return _part(self.checks.get(check), "facts")

    def _metrics(self, check: str, case: str) -> Mapping[str, Any]:
        cases = self._cases(check)
        return next((_part(one, "metrics") for one in cases if one.get("name") == case), {})

    def _cases(self, check: str) -> list[Mapping[str, Any]]:
        return _mappings(self.checks.get(check, {}).get("cases"))

    def kind(self) -> str:
        """Names of the devices, each once; empty where nobody knows."""
        names = dict.fromkeys(str(one.get("name")) for one in self.devices)
        return plain(" and ".join(names) or self.first)

    def device(self, check: Mapping[str, Any]) -> str:
        """Name of the device that a check ran on."""
        return plain(self._device(check))

    def _device(self, check: Mapping[str, Any]) -> str:
        own = _part(check, "facts").get("device")
        if isinstance(own, str):
            return own
        at = split_id(check["id"])[1]
        return str(self.devices[at].get("name")) if at < len(self.devices) else self.first

    def traits(self) -> Iterator[tuple[str, str]]:
        report, device = self.report, _part(self.report, "device")
        manifest = _part(report, "manifest")
        found = {
            "envlock": report.get("tool"),
            "level": report.get("level"),
            "check scripts": self.suite[:19],
            "python": _part(report, "target").get("python"),
            "profile": report.get("profile"),
            "manifest": f"{manifest.get('name')} {str(manifest.get('digest'))[:19]}"
            if manifest
            else "none",
            **{key: device.get(key) for key in ("torch", "hip", "cuda", "arch")},
            **self._driver(),
            **self._limits(),
            "devices": len(self.devices) or device.get("device_count"),
            "variables": self._variables(),
        }
        yield from ((name, plain(str(value))) for name, value in found.items() if value is not None)
        yield from self._stack()

    def _variables(self) -> str | None:
        """Names of those that change what is tested."""
        said = self._of("env.vars").get("set")
        return ", ".join(map(str, said)) or "none" if isinstance(said, list) else None

    def _driver(self) -> dict[str, Any]:
        found = self._of("dev.versions")
        return {"driver": found.get("driver") or None, "release": found.get("release") or None}

    def _limits(self) -> dict[str, Any]:
        """Whole numbers, which are the same or not, and whether there are limits at all."""
        processors = self._metrics("env.cgroup", "processors")
        resources = self._metrics("env.cgroup", "resources")
        memory = self._metrics("env.cgroup", "memory")
        found = {"processors": processors.get("processors"), "open files": resources.get("files")}
        for name, metrics, key in (
            ("processor quota", processors, "quota"),
            ("memory limit", memory, "limit"),
            ("limit of processes", resources, "processes"),
        ):
            if key in metrics:
                found[name] = "none" if metrics[key] is None else "set"
        return found

    def _stack(self) -> Iterator[tuple[str, str]]:
        """Versions, as the check of the files names them; without a manifest, those with shared
        objects."""
        for one in self._cases("static.lock") or self._cases("static.ldd"):
            dist, _, version = str(one.get("name")).rpartition(" ")
            if dist and " " not in dist:
                yield plain(f"version of {dist}"), plain(version)

    def amounts(self) -> Iterator[tuple[str, float]]:
        resources = self._metrics("env.cgroup", "resources")
        memory = self._metrics("env.cgroup", "memory")
        found = {
            "processors by quota": (self._metrics("env.cgroup", "processors").get("quota"), 1),
            "memory limit, GiB": (memory.get("limit"), _GIB),
            "locked memory, GiB": (resources.get("locked"), _GIB),
            "processes": (resources.get("processes"), 1),
            "/dev/shm, GiB": (self._metrics("env.shm", "shared memory").get("bytes"), _GIB),
            "device memory, GiB": (_part(self.report, "device").get("memory_gib"), 1),
        }
        for name, (value, unit) in found.items():
            if (amount := number(value)) is not None:
                # -1 is no limit
                yield name, amount / unit if amount >= 0 else -1.0


def _part(value: Any, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    """The mappings of a list; none of what is no list."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, Mapping)]

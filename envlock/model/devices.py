"""What the vendors' tools say of devices: clocks, power, temperature, use, names. Pure.

``nvidia-smi`` answers in columns that are asked for. ``hy-smi`` and ``rocm-smi`` answer in JSON
whose keys change with the release, behind warnings that are none, or in tables with other columns
in every release: those are read by their headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.model.agents import bus_address
from envlock.model.facts import Device

#: Asked of nvidia-smi, in this order.
NVIDIA_COLUMNS = (
    "index", "power.draw", "clocks.sm", "temperature.gpu", "utilization.gpu",
    "name", "memory.total", "driver_version",
)  # fmt: skip
#: What newer ones are asked besides.
NVIDIA_MORE = (*NVIDIA_COLUMNS, "pci.bus_id", "compute_cap", "clocks.max.sm")
_WARP = 32  # threads in step on every device that runs CUDA

_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]+)?")  # more of them are no figure of anything
_INDEX = re.compile(r"[0-9]{1,9}\Z")
_CARD = re.compile(r"card([0-9]{1,9})\Z")
_USE = re.compile(r"(HCU|DCU|GPU) use \(%\)\Z", re.I)
_POWER = re.compile(r"(Average|Current).*Power \(W\)\Z", re.I)
# the hottest spot first: it is what slows the device down
_TEMPERATURES = ("junction", "edge", "core")
_CLOCK = re.compile(r"sclk\b", re.I)
_MEGAHERTZ = re.compile(r"(\d+(\.\d+)?)\s*Mhz", re.I)
_TOTAL = re.compile(r"vram Total Memory \((B|MiB)\)\Z", re.I)
_HEADS = frozenset({"HCU", "DCU", "GPU"})
_DRIVER = re.compile(r"^\s*Driver Version:\s*(\S+)", re.M | re.I)
_LINE = re.compile(r"\s*(?:HCU|DCU|GPU)\[([0-9]{1,9})\]\s*:\s*(.+?)\s*:\s+(.*?)\s*\Z")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_VERSION = re.compile(r"version\s*:?\s*v?(\d+\.[\w.+-]*\w)", re.I)
_DAY = re.compile(r"\b20\d\d-\d\d-\d\d\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One device at one moment; None for what the tool did not say.

    Attributes:
        index: as the tool counts, whatever is visible to a program.
        power_w: watts.
        clock_mhz: of the cores.
        temperature_c: of the hottest spot that is known.
        use_percent: share of time with work.
    """

    index: int
    power_w: float | None = None
    clock_mhz: float | None = None
    temperature_c: float | None = None
    use_percent: float | None = None


def number(text: object) -> float | None:
    """The first number of ``(1500Mhz)``, ``79.0C``, ``0%``; None for ``N/A``."""
    found = _NUMBER.search(str(text))
    return float(found.group()) if found else None


def _rows(text: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        columns = NVIDIA_MORE if len(cells) == len(NVIDIA_MORE) else NVIDIA_COLUMNS
        if len(cells) == len(columns) and _INDEX.match(cells[0]):
            yield dict(zip(columns, cells, strict=True))


def nvidia_readings(text: str) -> tuple[Reading, ...]:
    """From nvidia-smi's columns, without header and units."""
    return tuple(
        Reading(
            index=int(row["index"]),
            power_w=number(row["power.draw"]),
            clock_mhz=number(row["clocks.sm"]),
            temperature_c=number(row["temperature.gpu"]),
            use_percent=number(row["utilization.gpu"]),
        )
        for row in _rows(text)
    )


def nvidia_devices(text: str) -> tuple[tuple[Device, ...], str]:
    """Devices, and the driver's version, from the same columns."""
    rows = list(_rows(text))
    return tuple(map(_nvidia_device, rows)), rows[0]["driver_version"] if rows else ""


def _nvidia_device(row: Mapping[str, str]) -> Device:
    capability = number(row.get("compute_cap", ""))
    return Device(
        name=row["name"],
        memory_mib=int(number(row["memory.total"]) or 0),
        architecture="" if capability is None else f"sm_{row['compute_cap'].replace('.', '')}",
        wavefront=0 if capability is None else _WARP,
        clock_mhz=int(number(row.get("clocks.max.sm", "")) or 0),
        bus=bus_address(row.get("pci.bus_id", "")),
    )


def smi_cards(text: str) -> dict[int, dict[str, Any]]:
    """Cards of the first JSON document in a text; warnings may stand before it. Without one, the
    lines ``HCU[0] : key: value``."""
    _, found = _document(text)
    if found:
        cards = {_CARD.match(str(key)): value for key, value in found.items()}
        return {int(m[1]): value for m, value in cards.items() if m and isinstance(value, dict)}
    lines: dict[int, dict[str, Any]] = {}
    for line in filter(None, map(_LINE.match, text.splitlines())):
        lines.setdefault(int(line[1]), {})[line[2]] = line[3]
    return lines


def _document(text: str) -> tuple[int, dict[str, Any]]:
    """The first JSON object in a text, and where it begins."""
    decoder = json.JSONDecoder()
    for brace in re.finditer(r"\{", text):
        try:
            found, _ = decoder.raw_decode(text, brace.start())
        except ValueError:
            continue
        except RecursionError:  # nobody's answer is that deep
            break
        return brace.start(), found
    return 0, {}


def noise(text: str) -> str:
    """What a tool says before its document: a warning that is often none; empty without."""
    start, _ = _document(text)
    return " | ".join(line.strip() for line in plain(text[:start]).splitlines() if line.strip())


def plain(text: str) -> str:
    """Without the codes of colours."""
    return _COLOURS.sub("", text)


def _value(card: Mapping[str, Any], pattern: re.Pattern[str]) -> float | None:
    return next((number(value) for key, value in card.items() if pattern.match(key)), None)


def _clock(card: Mapping[str, Any]) -> float | None:
    """Only what says that it is a clock: the same keys hold the number of a level."""
    texts = (str(value) for key, value in card.items() if _CLOCK.match(key))
    found = (_MEGAHERTZ.search(text) for text in texts)
    return next((float(one[1]) for one in found if one), None)


def _temperature(card: Mapping[str, Any]) -> float | None:
    for sensor in _TEMPERATURES:
        found = number(card.get(f"Temperature (Sensor {sensor}) (C)", ""))
        if found is not None:
            return found
    return None


def smi_readings(text: str) -> tuple[Reading, ...]:
    """From hy-smi's or rocm-smi's answer, JSON or table."""
    cards = smi_cards(text)
    if not cards:
        return _table(text)
    return tuple(
        Reading(
            index=index,
            power_w=_value(card, _POWER),
            clock_mhz=_clock(card),
            temperature_c=_temperature(card),
            use_percent=_value(card, _USE),
        )
        for index, card in sorted(cards.items())
    )


def _table(text: str) -> tuple[Reading, ...]:
    header: list[str] = []
    found: dict[int, Reading] = {}
    for line in text.splitlines():
        cells = re.sub(r"\s*\([^)]*\)", "", line).split()
        if cells and cells[0] in _HEADS and "Temp" in cells:
            header = cells
        elif header and len(cells) == len(header) and _INDEX.match(cells[0]):
            reading = _row(dict(zip(header, cells, strict=True)), header[0])
            found[reading.index] = reading
    return tuple(found.values())


def _row(row: Mapping[str, str], head: str) -> Reading:
    return Reading(
        index=int(row[head]),
        power_w=number(row.get("AvgPwr", "")),
        clock_mhz=number(row.get("SCLK", "")),
        temperature_c=number(row.get("Temp", "")),
        use_percent=number(row.get(f"{head}%", "")),
    )


def smi_devices(text: str, buses: str = "") -> tuple[Device, ...]:
    """From the answer to ``--showproductname --showmeminfo vram``, and to ``--showbus``; of a table
    only how many."""
    cards, places = smi_cards(text), smi_buses(buses)
    if not cards:
        return tuple(Device() for _ in _table(text))
    return tuple(
        Device(
            name=str(card.get("Card Series", "")),
            memory_mib=_memory(card),
            bus=places.get(index, ""),
        )
        for index, card in sorted(cards.items())
    )


def smi_buses(text: str) -> dict[int, str]:
    """Card to its address, from the answer to ``--showbus``."""
    cards = smi_cards(text).items()
    found = {index: bus_address(card.get("PCI Bus", "")) for index, card in cards}
    return {index: bus for index, bus in found.items() if bus}


def smi_version(text: str) -> str:
    """From the answer to ``--version``: ``1.24.0``, with the day it was built where it says so."""
    found, day = _VERSION.search(text), _DAY.search(text)
    shown = found[1] if found else ""
    return f"{shown} ({day.group()})" if shown and day else shown


def _memory(card: Mapping[str, Any]) -> int:
    for key, value in card.items():
        unit = _TOTAL.match(key)
        if unit:
            size = int(number(value) or 0)
            return size >> 20 if unit[1].lower() == "b" else size
    return 0


def smi_driver(text: str) -> str:
    """From the answer to ``--showdriverversion``, which is never JSON."""
    found = _DRIVER.search(text)
    return found[1] if found else ""


def chosen(env: Mapping[str, str], variable: str, index: int) -> tuple[str, str] | None:
    """The variable, and its value, that leaves one of the visible devices visible.

    Args:
        env: the caller's environment; it may leave some devices out already.
        variable: of the vendor; ``CUDA_VISIBLE_DEVICES`` is heard by all.
        index: as torch counts those that are visible.

    Returns:
        None where the environment shows fewer devices.
    """
    names = dict.fromkeys((variable, "CUDA_VISIBLE_DEVICES"))
    named = next((name for name in names if env.get(name)), None)
    if named is None:  # set to nothing, it hides them all
        return None if any(name in env for name in names) else (variable, str(index))
    visible = [item.strip() for item in env[named].split(",")]
    return (named, visible[index]) if index < len(visible) else None


def of_device(readings: Sequence[Reading], place: str) -> Reading | None:
    """The reading of a device by its place in the visibility variable.

    None where it cannot be told: several devices, and one named by something but a number.
    """
    if len(readings) == 1:
        return readings[0]
    return next((one for one in readings if str(one.index) == place), None)

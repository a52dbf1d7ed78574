"""The vendor's own tools: found, asked with a time limit, and their answers read leniently.

They print warnings before a document, spell keys differently from release to release, and give
every number as text.
"""

import json
import os
import re
import shutil
import subprocess

SECONDS = 30.0
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_BUS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.(\d)")


def tool(name, given):
    """Path of a tool: on PATH, in the profile's folders, in the stack; empty without one."""
    folders = list(given.get("tool_folders") or ())
    if given.get("root"):
        folders.append(os.path.join(given["root"], "bin"))
    found = shutil.which(name)
    return found or shutil.which(name, path=os.pathsep.join(folders)) or ""


def ask(command):
    """What a tool prints; empty when it cannot be asked, ends badly or does not end."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return _COLOURS.sub("", done.stdout.decode("utf-8", "replace")) if done.returncode == 0 else ""


def document(text):
    """The first JSON object in a text with other lines; empty when there is none."""
    for start in (found.start() for found in re.finditer(r"\{", text)):
        try:
            found, _ = json.JSONDecoder().raw_decode(text[start:])
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def number(value):
    """The first number in a value; None for ``N/A``."""
    found = _NUMBER.search(str(value))
    return float(found.group()) if found else None


def bus(text):
    """``0000:09:00.0`` however it is written; empty when there is none."""
    found = _BUS.search(str(text))
    if not found:
        return ""
    domain, number_, device, function = found.groups()
    return "{:04x}:{}:{}.{}".format(int(domain, 16), number_, device, function).lower()


def from_bdfid(value):
    """rocminfo's BDFID: 2304 is 0x0900, ``0000:09:00.0``."""
    return "{:04x}:{:02x}:{:02x}.{}".format(
        value >> 16, value >> 8 & 0xFF, value >> 3 & 0x1F, value & 7
    )


def agents(text):
    """Devices that rocminfo lists: name, bus and memory in MiB, in order."""
    found, current = [], {}
    for line in text.splitlines():
        key, colon, value = line.strip().partition(":")
        value = value.strip()
        if re.match(r"Agent [0-9]+", line.strip()):
            current = {"name": "", "bus": "", "memory": 0.0, "type": ""}
            found.append(current)
        elif not colon or not current:
            continue
        elif key == "Name" and not current["name"]:
            current["name"] = value
        elif key == "BDFID" and re.match(r"[0-9]{1,10}\Z", value):
            current["bus"] = from_bdfid(int(value))
        elif key == "Device Type":
            current["type"] = value
        elif key == "Size" and "KB" in value:
            current["memory"] = max(current["memory"], (number(value) or 0.0) / 1024)
    return [one for one in found if one["type"] in ("HCU", "DCU", "GPU")]


def cards(memory, buses):
    """Devices that hy-smi or rocm-smi lists: bus and memory in MiB, in order."""
    found = []
    for name in sorted(
        (key for key in memory if re.match(r"card[0-9]{1,9}\Z", key)), key=card_number
    ):
        size = 0.0
        for key, value in memory[name].items():
            if re.match(r"vram total memory", key.lower()):
                size = (number(value) or 0.0) / (2**20 if "(b)" in key.lower() else 1)
        place = " ".join(str(value) for value in (buses.get(name) or {}).values())
        found.append({"name": "", "bus": bus(place), "memory": size})
    return found


def card_number(name):
    return int(name[len("card") :])


def rows(text):
    """Devices of ``nvidia-smi --query-gpu=pci.bus_id,memory.total,name --format=csv``."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",", 2)]
        if len(parts) == 3 and bus(parts[0]):
            found.append(
                {"name": parts[2], "bus": bus(parts[0]), "memory": number(parts[1]) or 0.0}
            )
    return found

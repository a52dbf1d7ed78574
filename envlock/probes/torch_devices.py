"""Asks the torch of the Python that runs it about its devices. Python 3.8 and newer.

usage: torch_devices.py ANSWER

Writes one JSON document to the file ANSWER. Importing torch may take minutes without a device, or
hang with a driver that is stuck: whoever starts this has a time limit.
"""

import sys

HERE = sys.path.pop(0) if sys.path and sys.path[0].endswith("probes") else ""

import json  # noqa: E402  # the folder of this script must not shadow the target's modules
import os  # noqa: E402


def bus(properties):
    """``0000:55:00.0``; empty where this torch does not say."""
    try:
        return "{:04x}:{:02x}:{:02x}.0".format(
            properties.pci_domain_id, properties.pci_bus_id, properties.pci_device_id
        )
    except (AttributeError, TypeError, ValueError):
        return ""


def architecture(properties):
    """``gfx936`` and ``sramecc+:xnack-``; ``sm_90`` and nothing."""
    name, _, features = str(getattr(properties, "gcnArchName", "")).partition(":")
    if name.startswith("gfx"):
        return name, features
    return "sm_{}{}".format(properties.major, properties.minor), ""


def supports_bf16(torch, index):
    try:
        with torch.cuda.device(index):
            return bool(torch.cuda.is_bf16_supported())
    except Exception:
        return None


def describe(torch, index):
    properties = torch.cuda.get_device_properties(index)
    name, features = architecture(properties)
    return {
        "name": str(properties.name),
        "memory_mib": int(properties.total_memory) >> 20,
        "compute_units": int(properties.multi_processor_count),
        "architecture": name,
        "features": features,
        "wavefront": int(getattr(properties, "warp_size", 0)),
        "bus": bus(properties),
        "bf16": supports_bf16(torch, index),
    }


def ask():
    try:
        import torch

        found = [describe(torch, index) for index in range(torch.cuda.device_count())]
    except Exception as error:
        return {"devices": [], "reason": "{}: {}".format(type(error).__name__, error)}
    return {"devices": found, "reason": "" if found else "it finds none"}


def main():
    answer = sys.argv[1]
    with open(answer + ".part", "w", encoding="utf-8") as file:
        json.dump(ask(), file)
    os.replace(answer + ".part", answer)


if __name__ == "__main__":
    main()

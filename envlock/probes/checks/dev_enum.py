"""dev.enum: torch sees the devices that the vendor's own tools see."""

import harness

tools = harness.sibling("_tools")

#: Part of a device's memory that tool and runtime may differ by, and that others may use.
MEMORY_OFF, MEMORY_USED = 0.02, 0.05


def seen_by_torch(torch):
    """What torch says of each device."""
    found = []
    for index in range(torch.cuda.device_count()):
        one = torch.cuda.get_device_properties(index)
        place = ""
        if hasattr(one, "pci_bus_id"):
            place = "{:04x}:{:02x}:{:02x}.0".format(
                getattr(one, "pci_domain_id", 0), one.pci_bus_id, getattr(one, "pci_device_id", 0)
            )
        architecture = getattr(one, "gcnArchName", "") if torch.version.hip else ""
        found.append(
            {
                "name": one.name,
                "arch": architecture.split(":")[0] or "sm_{}{}".format(one.major, one.minor),
                "units": one.multi_processor_count,
                "lanes": getattr(one, "warp_size", 0),
                "memory": one.total_memory / 2**20,
                "bus": place,
            }
        )
    return found


def by_rocminfo(given):
    path = tools.tool("rocminfo", given)
    return tools.agents(tools.ask([path])) if path else []


def by_smi(given):
    """By the profile's first tool that is there."""
    for name in given.get("tools") or ():
        path = tools.tool(name, given)
        if not path:
            continue
        if name == "nvidia-smi":
            wanted = "--query-gpu=pci.bus_id,memory.total,name"
            return tools.rows(tools.ask([path, wanted, "--format=csv,noheader,nounits"]))
        memory = tools.document(tools.ask([path, "--showmeminfo", "vram", "--json"]))
        return tools.cards(memory, tools.document(tools.ask([path, "--showbus", "--json"])))
    return []


def properties(torch, devices, given):
    """Each device is one that this stack is for, and nobody else uses it."""
    known, wrong, busy = given.get("architectures") or (), [], []
    for index, one in enumerate(devices):
        if torch.version.hip and known and one["arch"] not in known:
            wrong.append(
                "device {} is {}, not one of {}".format(index, one["arch"], ", ".join(known))
            )
        if one["memory"] <= 0 or one["units"] <= 0:
            wrong.append(
                "device {} has {} units and {} MiB".format(index, one["units"], one["memory"])
            )
        free, total = torch.cuda.mem_get_info(index)
        if total > 0 and free < (1 - MEMORY_USED) * total:
            busy.append(
                "device {}: {:.0f} % of its memory is in use".format(
                    index, 100 - 100 * free / total
                )
            )
    if wrong:
        raise harness.Failure("; ".join(wrong))
    return {"count": len(devices), **({"warning": "; ".join(busy)} if busy else {})}


def agree(devices, others, tool, limited):
    """The same devices, by bus where both know it, else by number; and their memory."""
    if not others:
        raise harness.Skip("{} is not here, or lists nothing".format(tool))
    metrics = {"count": len(devices), "by_tool": len(others)}
    by_bus = {one["bus"]: one for one in others if one["bus"]}
    strangers = [
        one["bus"] for one in devices if one["bus"] and by_bus and one["bus"] not in by_bus
    ]
    if strangers:
        text = "{} does not know {}".format(tool, ", ".join(strangers))
        raise harness.Failure(text, **metrics)
    if len(devices) > len(others) or (len(devices) < len(others) and not limited):
        text = "torch sees {} devices, {} {}".format(len(devices), tool, len(others))
        raise harness.Failure(text, **metrics)
    for index, one in enumerate(devices):
        other = by_bus.get(one["bus"]) or (None if limited else others[index])
        check_one(index, one, other, tool)
    return metrics


def is_slice(one):
    """Whether it is a part of a device: tools tell of the whole."""
    return " MIG " in one["name"]


def check_one(index, one, other, tool):
    if other is None or is_slice(one):
        return  # chosen by number, and nobody says which of them it is; or a part of one
    name = other["name"].split(":")[0]
    if name.startswith("gfx") and name != one["arch"]:
        raise harness.Failure(
            "device {} is {} to torch, {} to {}".format(index, one["arch"], name, tool)
        )
    size = other["memory"]
    if size and abs(one["memory"] - size) > MEMORY_OFF * size:
        text = "device {} has {:.0f} MiB to torch, {:.0f} to {}"
        raise harness.Failure(text.format(index, one["memory"], size, tool))


def present(torch, context):
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count and context.expected:
        raise harness.Failure("no device is visible to torch")
    if not count:
        raise harness.Skip("no device: none is visible to torch")
    return seen_by_torch(torch)


def check(context):
    if context.on_cpu:
        raise harness.Skip("no device is asked for")
    given = context.given
    torch = harness.subject(__import__, "torch")
    devices = harness.subject(present, torch, context)
    said = given.get("variables") or {}
    limited = any(said.get(name) is not None for name in given.get("visible") or ())
    limited = limited or any(is_slice(one) for one in devices)
    context.facts.update(devices=devices)
    yield context.case("properties", harness.subject, properties, torch, devices, given)
    if torch.version.hip:
        yield context.case("rocminfo", agree, devices, by_rocminfo(given), "rocminfo", limited)
    tool = next((name for name in given.get("tools") or () if tools.tool(name, given)), "its tool")
    yield context.case("vendor tool", agree, devices, by_smi(given), tool, limited)

"""env.vars: variables that make a device slow, or that test something else than the device."""

import os

import harness

#: With one of these set, what runs is not what people think.
WRONG = {
    "HSA_OVERRIDE_GFX_VERSION": "kernels for another architecture are run",
    "TRITON_INTERPRET": "Triton's kernels run on the processor",
}
SLOW = {
    "CUDA_LAUNCH_BLOCKING": "every launch waits",
    "HIP_LAUNCH_BLOCKING": "every launch waits",
    "AMD_SERIALIZE_KERNEL": "kernels run one after the other",
    "AMD_SERIALIZE_COPY": "copies run one after the other",
    "TORCH_USE_HIP_DSA": "kernels check themselves",
    "TORCH_USE_CUDA_DSA": "kernels check themselves",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "memory is asked of the driver each time",
    "PYTORCH_NO_HIP_MEMORY_CACHING": "memory is asked of the driver each time",
    "TORCHDYNAMO_DISABLE": "torch.compile does nothing",
    "TORCH_COMPILE_DISABLE": "torch.compile does nothing",
    "NCCL_P2P_DISABLE": "devices exchange data through the host",
    "NCCL_SHM_DISABLE": "devices exchange data over the network",
}
OTHER = {
    "PYTORCH_TUNABLEOP_ENABLED": "kernels are chosen by a file of earlier measurements",
    "NVIDIA_TF32_OVERRIDE": "the precision of float32 products is not torch's choice",
    "PYTHONOPTIMIZE": "assertions are left out",
    "PYTHONHOME": "Python takes its own library from there",
}
OFF = ("", "0", "false", "off", "no")


def harmless(name, value, why, fails):
    """Set and switched on: what it does."""
    if value.lower() in OFF and name != "NVIDIA_TF32_OVERRIDE":
        return {"value": value}
    text = "{}='{}': {}".format(name, value, why)
    if fails:
        raise harness.Failure(text, value=value)
    return {"value": value, "warning": text}


def preloaded(value):
    """Every preloaded library is there; it is part of every process."""
    names = [part for part in value.replace(":", " ").split() if part]
    lost = [name for name in names if "/" in name and not os.path.exists(name)]
    text = "LD_PRELOAD='{}' is loaded into every process".format(value)
    if lost:
        text = "LD_PRELOAD: {} is not there".format(", ".join(lost))
    return {"warning": text} if names else {}


def python_path(value):
    """Folders that come before everything installed."""
    folders = [part for part in value.split(os.pathsep) if part]
    lost = [folder for folder in folders if not os.path.isdir(folder)]
    if lost:
        return {"warning": "PYTHONPATH: {} is not there".format(", ".join(lost))}
    return {"folders": len(folders)}


def check(context):
    said = context.given.get("variables") or {}
    context.facts.update(set=sorted(said))
    count = len(WRONG) + len(SLOW) + len(OTHER)
    for table, fails in ((WRONG, True), (SLOW, False), (OTHER, False)):
        for name, why in table.items():
            if name in said:
                yield context.case(name, harmless, name, said[name], why, fails)
    if "LD_PRELOAD" in said:
        yield context.case("LD_PRELOAD", preloaded, said["LD_PRELOAD"])
    if "PYTHONPATH" in said:
        yield context.case("PYTHONPATH", python_path, said["PYTHONPATH"])
    yield context.case("looked for", dict, names=count)

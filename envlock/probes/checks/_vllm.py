"""What the vLLM checks share: settings that have to be there before the import."""

import os

import harness
import torch

#: No network, no statistics, one process: a child that dies takes its check with it, not a parent
#: that waits.
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}


def prepare(context):
    """vLLM, imported with the settings that the person has not made otherwise."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    found = harness.subject(__import__, "vllm")
    context.facts["version"] = str(getattr(found, "__version__", "unknown"))
    return found


def platform():
    """vLLM's idea of the machine. The log line about it misleads; the class decides."""
    from vllm.platforms import current_platform

    return current_platform


def registered(names):
    """The extension was loaded: without it vLLM imports all the same."""
    from vllm import _custom_ops  # noqa: F401

    missing = [name for name in names if not hasattr(torch.ops._C, name)]
    if missing:
        text = "not registered: {}; the extension of vLLM was not loaded"
        raise harness.Failure(text.format(", ".join(missing)), error=len(missing), limit=0)
    return {"error": 0, "limit": 0, "margin": 0.0}


def runs_on(found, context):
    """Skips where this build of vLLM is for something else than the device under test."""
    if context.on_cpu and not found.is_cpu():
        text = "this vLLM is built for '{}'; it has no path for the processor"
        raise harness.Skip(text.format(found.device_type or "nothing"))

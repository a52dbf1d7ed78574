"""vllm.platform: vLLM has recognised the device, as the runtime that torch was built for, and has
loaded its own extension.

Where it recognises nothing, or the other vendor's device, it starts all the same and fails in the
middle of a model, or uses kernels that are not there.
"""

import harness
import torch

common = harness.sibling("_vllm")

#: Part of the class's name, in lower case. Some vendors bring a platform of their own.
ROCM_NAMES = ("rocm", "hcu", "dcu")


def recognised(context):
    found = harness.subject(common.platform)
    name = type(found).__name__
    context.facts.update(platform=name, device_type=str(found.device_type))
    if found.device_type == "" or "unspecified" in name.lower():
        raise harness.Failure("vLLM recognises no device: {}".format(name))
    if context.on_cpu:
        common.runs_on(found, context)
    elif torch.version.hip:
        rocm = found.is_rocm() or any(part in name.lower() for part in ROCM_NAMES)
        if found.is_cuda() or not rocm:
            text = "torch is built for HIP, vLLM recognises {}".format(name)
            raise harness.Failure(text)
    elif not found.is_cuda():
        raise harness.Failure("torch is built for CUDA, vLLM recognises {}".format(name))
    return {"error": 0, "limit": 0, "margin": 0.0}


def same_device(context):
    """The number and the name of the devices are torch's."""
    if context.on_cpu:
        raise harness.Skip("a processor has no number")
    found = common.platform()
    name, torch_name = str(found.get_device_name(0)), torch.cuda.get_device_name(0)
    context.facts.update(device=name)
    metrics = {"error": 0, "limit": 0, "margin": 0.0}
    if name != torch_name:  # spelt by another library
        metrics["warning"] = "vLLM calls the device '{}', torch '{}'".format(name, torch_name)
    return metrics


def check(context):
    common.prepare(context)
    yield context.case("device recognised", recognised, context)
    yield context.case("extension loaded", harness.subject, common.registered, ["rms_norm"])
    yield context.case("same device", harness.subject, same_device, context)

"""smoke.seed: the four-stage script that people compare their machines with, under its own field
names and seed, so that a report can be laid beside a published one.

The stages and the numbers are those of that script: matrix products, torch's attention, a Triton
addition, flash-attn. It asks little ("finite"); the num, sdpa, tri and fa checks judge.
"""

import os
import platform
import time

import harness
import torch
import torch.nn.functional as F

flash = harness.sibling("_flash")

SEED = 336
SIZE, WARM, REPEATS = 2048, 2, 8
#: A processor without 16-bit units takes 44 s for one product of 2048.
CPU_SIZE = 256
ATTENTION_SHAPE = (2, 8, 128, 64)
FLASH_SHAPE = (2, 128, 8, 64)
ELEMENTS, BLOCK = 65_537, 256


def wait(device):
    if device != "cpu":
        torch.cuda.synchronize()


def must_be_finite(**tensors):
    for name, tensor in tensors.items():
        if tensor is None or not bool(torch.isfinite(tensor).all()):
            raise harness.Failure("{} is not finite".format(name))


def system(device):
    found = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "hip": torch.version.hip,
        "device": "cpu",
        "device_count": 0,
        "memory_gib": None,
        "bf16_supported": None,
    }
    if device != "cpu":
        memory = torch.cuda.get_device_properties(0).total_memory
        found.update(
            device=torch.cuda.get_device_name(0),
            device_count=torch.cuda.device_count(),
            memory_gib=round(memory / 1024**3, 2),
            bf16_supported=torch.cuda.is_bf16_supported(),
        )
    return found


def timed_matmul(dtype, device):
    size = CPU_SIZE if device == "cpu" else SIZE
    torch.manual_seed(SEED)
    left = torch.randn((size, size), device=device, dtype=dtype)
    right = torch.randn((size, size), device=device, dtype=dtype)
    for _ in range(WARM):
        left @ right
    wait(device)
    started = time.perf_counter()
    for _ in range(REPEATS):
        result = left @ right
    wait(device)
    elapsed = (time.perf_counter() - started) / REPEATS
    must_be_finite(result=result)
    return {
        "dtype": str(dtype).replace("torch.", ""),
        "shape": "{0}x{0}".format(size),
        "average_ms": round(elapsed * 1000, 3),
        "tflops": round(2 * size**3 / elapsed / 1e12, 3),
        "finite": True,
    }


def attended(function, shape, device):
    """Forward and backward of an attention, as the script does it."""
    torch.manual_seed(SEED)
    q = torch.randn(shape, device=device, dtype=torch.bfloat16, requires_grad=True)
    k = torch.randn_like(q, requires_grad=True)
    v = torch.randn_like(q, requires_grad=True)
    output = function(q, k, v)
    output.float().square().mean().backward()
    must_be_finite(output=output, dq=q.grad, dk=k.grad, dv=v.grad)
    return {
        "shape": list(output.shape),
        "dtype": "bfloat16",
        "forward_finite": True,
        "backward_finite": True,
    }


def check_sdpa(device):
    def native(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return attended(native, ATTENTION_SHAPE, device)


def check_triton(device):
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined
    try:
        import triton

        kernels = harness.sibling("_kernels")
    except ImportError as error:
        raise harness.Skip(str(error)) from error
    if device == "cpu":
        target = "interpreter"
        needs_numpy()
    else:
        target = str(triton.runtime.driver.active.get_current_target())
    torch.manual_seed(SEED)
    x = torch.randn(ELEMENTS, device=device, dtype=torch.float32)
    y = torch.randn_like(x)
    output = torch.empty_like(x)
    kernels.add[(triton.cdiv(ELEMENTS, BLOCK),)](x, y, output, ELEMENTS, BLOCK=BLOCK)
    wait(device)
    max_error = float((output - (x + y)).abs().max())
    if not torch.allclose(output, x + y):
        raise harness.Failure("the sum is off", max_abs_error=max_error)
    return {
        "version": triton.__version__,
        "target": target,
        "elements": ELEMENTS,
        "max_abs_error": max_error,
        "passed": True,
    }


def needs_numpy():
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise harness.Skip("the interpreter needs numpy: {}".format(error)) from error


def check_flash_attention(device):
    try:
        function = flash.imported()
    except ImportError as error:
        raise harness.Skip(str(error)) from error
    if device == "cpu":
        flash.accepts_cpu(function)
    return attended(lambda q, k, v: function(q, k, v, causal=True), FLASH_SHAPE, device)


def check(context):
    device, facts = context.device, context.facts
    facts["system"] = harness.subject(system, device)
    facts["matmul"] = []

    def keep(name, function, *args):
        found = harness.subject(function, *args)
        if name == "matmul":
            facts[name].append(found)
        else:
            facts[name] = found
        return found

    for dtype in (torch.float16, torch.bfloat16):
        name = "matmul " + str(dtype).replace("torch.", "")
        yield context.case(name, keep, "matmul", timed_matmul, dtype, device)
    yield context.case("sdpa", keep, "sdpa", check_sdpa, device)
    yield context.case("triton", keep, "triton", check_triton, device)
    yield context.case("flash_attention", keep, "flash_attention", check_flash_attention, device)

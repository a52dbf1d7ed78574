"""tri.add: Triton compiles for the device, and what it compiles is right.

On a processor the kernels run in Triton's interpreter: that shows that Triton is whole, not that
it can compile for a device. The interpreter's bf16 arithmetic is wrong, so bf16 is for devices.
"""

import os

import harness
import torch

compare = harness.sibling("_compare")

SEED = 336
COUNT = 65_537  # one more than a whole number of blocks
BLOCK = 256
GUARD = 512  # elements on each side that the kernel must not touch
ROWS, COLUMNS, WIDE = 64, 781, 1024
#: Softmax of real numbers in float32, stored in the type of the input.
SOFTMAX_FRO = {torch.float32: 1e-6, torch.float16: 6e-4, torch.bfloat16: 5e-3}


def prepare(context):
    """Triton and its kernels, for the device or in the interpreter."""
    if context.on_cpu:
        os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined
        for name in ("triton", "numpy"):
            try:
                __import__(name)
            except ImportError as error:
                text = "the interpreter needs {}: {}".format(name, error)
                raise harness.Skip(text) from error
    kernels = harness.subject(harness.sibling, "_kernels")
    import triton

    context.facts["version"] = triton.__version__
    context.facts["target"] = "interpreter"
    if not context.on_cpu:
        driver = harness.subject(lambda: triton.runtime.driver.active.get_current_target())
        context.facts["target"] = str(driver)
    return kernels


def guarded(count, dtype, device):
    """NaN everywhere: what was not written, or written outside, shows."""
    whole = torch.full((count + 2 * GUARD,), float("nan"), dtype=dtype, device=device)
    return whole, whole[GUARD : GUARD + count]


def guards_intact(whole):
    outside = torch.cat([whole[:GUARD], whole[-GUARD:]]).cpu()
    touched = int((~torch.isnan(outside)).sum())
    if touched:
        text = "{} elements outside the output were written".format(touched)
        raise harness.Failure(text, outside=touched)


def added(kernels, dtype, device):
    source = compare.generator(SEED)
    x, y = compare.randn((COUNT,), dtype, source), compare.randn((COUNT,), dtype, source)
    whole, out = guarded(COUNT, dtype, device)

    def launch():
        blocks = (COUNT + BLOCK - 1) // BLOCK
        kernels.add[(blocks,)](x.to(device), y.to(device), out, COUNT, BLOCK=BLOCK)
        return out.cpu()

    metrics = compare.exact(harness.subject(launch), x.double() + y.double(), "sum")
    guards_intact(whole)
    return metrics


def softmax(kernels, dtype, device):
    values = compare.randn((ROWS, COLUMNS), dtype, compare.generator(SEED))
    golden = values.double().softmax(-1)
    whole, out = guarded(ROWS * COLUMNS, dtype, device)

    def launch():
        kernels.softmax[(ROWS,)](values.to(device), out, COLUMNS, BLOCK=WIDE)
        return out.cpu()

    found = harness.subject(launch).view(ROWS, COLUMNS)
    rounding = float((compare.rounded_once(golden, dtype).double() - golden).abs().max())
    limit = 2 * rounding + 1e-6
    metrics = compare.within(found, golden, limit, SOFTMAX_FRO[dtype], "softmax")
    guards_intact(whole)
    return metrics


def check(context):
    kernels = prepare(context)
    dtypes = [torch.float32, torch.float16] + ([] if context.on_cpu else [torch.bfloat16])
    for dtype in dtypes:
        shown = compare.short(dtype)
        name = "add {} n={} block={}".format(shown, COUNT, BLOCK)
        yield context.case(name, added, kernels, dtype, context.device)
        name = "softmax {} {}x{} block={}".format(shown, ROWS, COLUMNS, WIDE)
        yield context.case(name, softmax, kernels, dtype, context.device)

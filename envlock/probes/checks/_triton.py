"""What the Triton checks share: the kernels, and outputs with guards around them."""

import os

import harness
import torch

compare = harness.sibling("_compare")

SEED = 336
GUARD = 512  # elements on each side that the kernel must not touch
#: The back end that belongs to a build of torch; "hcu" is what newer builds of one vendor call it.
BACKENDS = {"hip": ("hip", "hcu"), "cuda": ("cuda",)}
NO_VALUE = -77  # in outputs of integers, which have no NaN


def prepare(context, kernels="_kernels"):
    """A module of kernels, for the device or in the interpreter."""
    if context.on_cpu:
        os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined
        for name in ("triton", "numpy"):
            try:
                __import__(name)
            except ImportError as error:
                text = "the interpreter needs {}: {}".format(name, error)
                raise harness.Skip(text) from error
    found = harness.subject(harness.sibling, kernels)
    import triton

    context.facts["version"] = triton.__version__
    context.facts["target"] = "interpreter"
    if not context.on_cpu:
        target = harness.subject(lambda: triton.runtime.driver.active.get_current_target())
        context.facts["target"] = str(target)
        belongs(target)
    return found


def belongs(target):
    """Triton has to compile for the runtime that torch was built for."""
    wanted = BACKENDS["hip" if torch.version.hip else "cuda"]
    backend = getattr(target, "backend", None)
    if backend is not None and backend not in wanted:
        text = "Triton compiles for '{}', torch was built for '{}'"
        raise harness.Failure(text.format(backend, wanted[0]))


def blocks(count, size):
    """How many blocks cover ``count``."""
    return (count + size - 1) // size


def guarded(count, dtype, device):
    """The buffer and its middle. NaN (integers: a value that no result has) everywhere: what was
    not written, or written outside, shows."""
    value = float("nan") if dtype.is_floating_point else NO_VALUE
    whole = torch.full((count + 2 * GUARD,), value, dtype=dtype, device=device)
    return whole, whole[GUARD : GUARD + count]


def guards_intact(whole):
    outside = torch.cat([whole[:GUARD], whole[-GUARD:]]).cpu()
    same = torch.isnan(outside) if outside.is_floating_point() else outside == NO_VALUE
    touched = int((~same).sum())
    if touched:
        text = "{} elements outside the output were written".format(touched)
        raise harness.Failure(text, outside=touched)


def close(found, golden, fro, what):
    """A result that was computed in float32 and stored in its type, against double precision."""
    rounding = float((compare.rounded_once(golden, found.dtype).double() - golden).abs().max())
    floor = 1e-6 * max(1.0, float(golden.abs().max()))
    return compare.within(found, golden, 2 * rounding + floor, fro, what)


def floats(context):
    """Types to try; the interpreter's bf16 arithmetic is wrong."""
    return [torch.float32, torch.float16] + ([] if context.on_cpu else [torch.bfloat16])

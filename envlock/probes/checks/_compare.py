"""Judging numbers: a result against a reference in higher precision.

Every rule is relative to a reference that was computed on the CPU, in double precision, from the
same inputs. "Finite" is never enough, and a fixed tolerance is too tight for long sums and too
loose for small ones: a result may be a few times as far from the double-precision reference as a
plain low-precision computation is.
"""

import math

import harness
import torch

#: Largest relative Frobenius error of a right result. Pure rounding gives 2.1e-4 (fp16), 1.7e-3
#: (bf16) and 2.8e-7 (fp32), whatever the size; TF32 arithmetic in fp32 gives 7.7e-4.
GEMM_FRO = {torch.float16: 6e-4, torch.bfloat16: 5e-3, torch.float32: 1e-5, torch.float64: 1e-13}
#: The same for attention, whose intermediate values are rounded too: measured 3e-3 to 5e-3.
ATTENTION_FRO = {torch.float16: 2.5e-3, torch.bfloat16: 2e-2}
#: Absolute floor below which an error never counts.
FLOOR = 1e-5
#: Root mean square below which a result counts as zero, and has no relative error.
ZERO = 1e-3


def short(dtype):
    """``fp16``, ``bf16``, ``fp32``, ``fp64``."""
    bits = str(dtype).replace("torch.", "")
    return bits.replace("bfloat", "bf").replace("float", "fp")


def generator(seed):
    """Random numbers come from the CPU: the device's own are under test too."""
    return torch.Generator(device="cpu").manual_seed(seed)


def randn(shape, dtype, source):
    """Normal numbers, rounded to ``dtype``."""
    return torch.randn(shape, generator=source, dtype=torch.float32).to(dtype)


def integers(shape, dtype, source, limit):
    """Whole numbers in [-limit, limit]: sums of their products are exact."""
    return torch.randint(-limit, limit + 1, shape, generator=source).to(dtype)


def measure(found, golden):
    """nan, inf, max_abs and fro_rel of a result; errors are those of the finite elements."""
    found, golden = found.detach().cpu().double(), golden.detach().double()
    if found.shape != golden.shape:
        shapes = "shape is {}, not {}".format(list(found.shape), list(golden.shape))
        raise harness.Failure(shapes)
    finite = torch.isfinite(found)
    off = torch.where(finite, found - golden, torch.zeros_like(golden))
    norm = max(float(golden.norm()), ZERO * math.sqrt(max(golden.numel(), 1)))
    return {
        "nan": int(torch.isnan(found).sum()),
        "inf": int(torch.isinf(found).sum()),
        "max_abs": float(off.abs().max()) if off.numel() else 0.0,
        "fro_rel": float(off.norm()) / norm,
    }


def within(found, golden, limit, fro_limit, what="result"):
    """Metrics of a result, with the margin to the nearer of its two limits (above 1: wrong).

    Raises Failure for NaN, infinities, or an error over a limit.
    """
    metrics = measure(found, golden)
    metrics.update(error=metrics["max_abs"], limit=limit, fro_limit=fro_limit)
    metrics["margin"] = round(max(metrics["max_abs"] / limit, metrics["fro_rel"] / fro_limit), 4)
    if metrics["nan"] or metrics["inf"]:
        text = "{} has {} NaN and {} infinite values".format(what, metrics["nan"], metrics["inf"])
        raise harness.Failure(text, **metrics)
    if metrics["max_abs"] > limit:
        text = "{} is off by {:.3g}, allowed is {:.3g}".format(what, metrics["max_abs"], limit)
        raise harness.Failure(text, **metrics)
    if metrics["fro_rel"] > fro_limit:
        text = "{} is off by {:.3g} relative (Frobenius), allowed is {:.3g}"
        raise harness.Failure(text.format(what, metrics["fro_rel"], fro_limit), **metrics)
    return metrics


def rounded_once(golden, dtype):
    """The best a result of that type can be."""
    return golden.to(dtype)


def as_rounded(found, golden, what="result"):
    """A matrix product of real numbers: at most twice the rounding of the exact result."""
    dtype = found.dtype
    rounding = float((rounded_once(golden, dtype).double() - golden).abs().max())
    if dtype == torch.float64:  # the reference itself is no better
        rounding = float(golden.abs().max()) * 1e-13
    if dtype == torch.float32:  # accumulates in the type of the result: no one rounding to compare
        rounding = float(golden.abs().max()) * GEMM_FRO[dtype]
    metrics = within(found, golden, 2 * rounding + FLOOR, GEMM_FRO[dtype], what)
    metrics["ref_err"] = rounding
    return metrics


def exact(found, golden, what="result"):
    """Bit for bit the double-precision result, rounded once."""
    wanted = rounded_once(golden, found.dtype)
    metrics = measure(found, wanted)
    wrong = int((found.detach().cpu() != wanted).sum())
    metrics.update(wrong=wrong, error=metrics["max_abs"], limit=0.0)
    if wrong:
        text = "{} of {} elements of the {} are not the exact ones".format(
            wrong, wanted.numel(), what
        )
        raise harness.Failure(text, **metrics)
    return {**metrics, "margin": 0.0}


def worst(parts):
    """Metrics of several results as one: those of the result with the largest margin."""
    name = max(parts, key=lambda key: parts[key].get("margin", 0.0))
    return {**parts[name], "part": name, "margins": {k: v["margin"] for k, v in parts.items()}}

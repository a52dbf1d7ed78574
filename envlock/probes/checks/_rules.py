"""More rules for judging numbers: elementwise, relative, bit for bit, by statistics.

Each returns the metrics of a right result, with ``error``, ``limit`` and ``margin`` (error over
limit, above 1: wrong), or raises Failure with them. Special values are never a matter of
tolerance: what has to be NaN or infinite has to be exactly that, and nothing else may be.
"""

import math

import harness
import torch

compare = harness.sibling("_compare")

#: Relative and absolute tolerance of torch's own tests for one elementwise operation.
CLOSE = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
}
#: Largest relative Frobenius error of convolutions, norms and losses.
LAYER_FRO = {torch.float16: 2e-3, torch.bfloat16: 1e-2, torch.float32: 1e-5, torch.float64: 1e-12}
#: Rounding of a type that accumulates in itself, relative to the largest value.
_OWN_ROUNDING = {torch.float32: 1e-5, torch.float64: 1e-13}
#: Standard deviations by which a right random number may be off: one run in two million.
SIGMAS = 5.0


def same_shape(found, wanted, what):
    if found.shape != wanted.shape:
        text = "shape of the {} is {}, not {}".format(what, list(found.shape), list(wanted.shape))
        raise harness.Failure(text)
    return found.detach().cpu()


def specials(found, wanted, what):
    """NaN and infinities are where they belong. Both on the CPU, of the same shape."""
    odd = ~(torch.isfinite(found) & torch.isfinite(wanted))
    same = (found == wanted) | (torch.isnan(found) & torch.isnan(wanted))
    wrong = int((odd & ~same).sum())
    if wrong:
        text = "{} special values of the {} are wrong: {} NaN and {} infinite, not {} and {}"
        counts = [
            int(kind(x).sum()) for x in (found, wanted) for kind in (torch.isnan, torch.isinf)
        ]
        raise harness.Failure(text.format(wrong, what, *counts), special=wrong, nan=counts[0])


def _finished(metrics, what):
    metrics["margin"] = round(metrics["margin"], 4)
    if not metrics["margin"] <= 1.0:
        text = "{} is off by {:.3g}, allowed is {:.3g}"
        raise harness.Failure(text.format(what, metrics["error"], metrics["limit"]), **metrics)
    return metrics


def close(found, golden, what="result", tolerance=None):
    """One operation on each element; the limit is the element's own.

    golden: double precision, from the same rounded inputs.
    """
    found = same_shape(found, golden, what)
    rtol, atol = tolerance or CLOSE[found.dtype]
    specials(found, golden.to(found.dtype), what)
    off = (found.double() - golden).abs()
    limits = atol + rtol * golden.abs()
    ratio = torch.where(torch.isfinite(found) & torch.isfinite(golden), off / limits, off * 0)
    ratio = ratio.nan_to_num(0.0)
    if not ratio.numel():
        return {"error": 0.0, "limit": atol, "margin": 0.0}
    at = int(ratio.argmax())
    error, limit = float(off.reshape(-1)[at]), float(limits.reshape(-1)[at])
    return _finished({"error": error, "limit": limit, "margin": float(ratio.max())}, what)


def identical(found, wanted, what="result"):
    """Bit for bit, NaN equal to NaN, the sign of zero too.

    Numbers below the type's smallest normal one may be flushed to zero; they are counted.
    """
    found = same_shape(found, wanted, what)
    if found.dtype != wanted.dtype:
        text = "{} is {}, not {}".format(what, found.dtype, wanted.dtype)
        raise harness.Failure(text)
    same, flushed = found == wanted, 0
    if found.dtype.is_floating_point:
        small = (wanted.abs() < torch.finfo(wanted.dtype).tiny) & (wanted != 0) & (found == 0)
        flushed = int(small.sum())
        same = same & (torch.signbit(found) == torch.signbit(wanted))
        same = same | small | (torch.isnan(found) & torch.isnan(wanted))
    wrong = int((~same).sum())
    metrics = {"error": float(wrong), "limit": 0.0, "wrong": wrong, "flushed": flushed}
    if wrong:
        text = "{} of {} elements of the {} are not the exact ones"
        raise harness.Failure(text.format(wrong, wanted.numel(), what), **metrics)
    return {**metrics, "margin": 0.0}


def one_rounding(golden, peak, dtype):
    """Largest rounding of a right result, relative to its largest value.

    A few numbers may happen to need none: never less than a quarter of the type's step.
    """
    if dtype in _OWN_ROUNDING or not peak:
        return _OWN_ROUNDING.get(dtype, 0.0)
    measured = float((golden.to(dtype).double() - golden).abs().max()) / peak
    return max(measured, torch.finfo(dtype).eps / 4)


def rounded(found, golden, what="result", factor=2.0, fro=None):
    """At most ``factor`` roundings of the largest value, and a relative Frobenius error."""
    found = same_shape(found, golden, what)
    fro_limit = LAYER_FRO[found.dtype] if fro is None else fro
    specials(found, golden.to(found.dtype), what)
    finite = torch.isfinite(golden)
    right = torch.where(finite, golden, torch.zeros_like(golden))
    off = torch.where(finite, found.double() - right, torch.zeros_like(right))
    peak = float(right.abs().max()) if right.numel() else 0.0
    limit = factor * peak * one_rounding(right, peak, found.dtype)
    limit = limit or torch.finfo(torch.float32).tiny
    error, norm = float(off.abs().max()) if off.numel() else 0.0, float(right.norm())
    relative = float(off.norm()) / norm if norm else float(off.norm() > 0) * math.inf
    if not norm and not error:
        relative = 0.0
    metrics = {"error": error, "limit": limit, "fro_rel": relative, "fro_limit": fro_limit}
    metrics["margin"] = max(error / limit, relative / fro_limit)
    return _finished(metrics, what)


def statistic(value, expected, sigma, what):
    """A measured average is within some standard deviations of the expected one."""
    error = abs(value - expected) / sigma if math.isfinite(value) else math.inf
    metrics = {"value": value, "expected": expected, "error": error, "limit": SIGMAS}
    return _finished({**metrics, "margin": error / SIGMAS}, what)


def must(condition, text, **metrics):
    """A fact that has to be true."""
    if not condition:
        raise harness.Failure(text, **metrics)


def unchanged(tensors, copies):
    """Inputs are what they were before the call."""
    for number, (now, before) in enumerate(zip(tensors, copies)):
        same = (now == before) | ((now != now) & (before != before))
        must(bool(same.all()), "input {} was changed by the call".format(number))


def seed_of(context, default=336):
    return int(context.arguments.get("seed", default))

"""fa.determinism and fa.race: the same call again and again gives the same bits.

Output, dk and dv have to be equal always; dq is summed by atomic additions, in any order, unless
``deterministic=True`` is asked for. A race shows as a rare difference, so it takes many repeats.
Arguments: repeats.
"""

import harness
import torch

reference = harness.sibling("_attention")
flash = harness.sibling("_flash")
compare = reference.compare

SEED = 336
REPEATS = 25
CPU_REPEATS = 3
#: batch, query heads, key heads, query length, key length, head dimension: many blocks at once.
SHAPES = ((60, 4, 4, 239, 239, 128), (30, 4, 4, 768, 768, 64))
CPU_SHAPES = ((2, 4, 4, 65, 65, 64),)
NAMES = ("out", "dq", "dk", "dv", "lse")


def once(function, given, more):
    """Output, gradients and, where the function gives it, the log-sum-exp; on the device."""
    *tensors, grad = given
    leaves = [tensor.detach().clone().requires_grad_(True) for tensor in tensors]
    found = function(*leaves, causal=True, **more)
    out, lse = (found[0], [found[1]]) if isinstance(found, tuple) else (found, [])
    out.backward(grad)
    return [out.detach()] + [leaf.grad for leaf in leaves] + [item.detach() for item in lse]


def rounding(grad):
    """How far a sum in another order may be: flash-attn's own measure."""
    return 2 * float(((grad + 0.3 - 0.3) - grad).abs().max().float())


def compare_runs(first, again, number, deterministic):
    """Distance of dq; a failure where something else differs."""
    for name, one, two in zip(NAMES, first, again):
        if name == "dq" and not deterministic:
            continue
        if not torch.equal(one, two):
            off = float((one.float() - two.float()).abs().max())
            text = "repeat {} gives another {}, by {:.3g}".format(number, name, off)
            raise harness.Failure(text, error=off, limit=0.0)
    return float((first[1].float() - again[1].float()).abs().max())


def repeated(function, case, deterministic, repeats, device):
    flash.left_out(case[1])
    more = {"return_attn_probs": True}
    if deterministic:
        if flash.on_triton():
            raise harness.Skip("not tested upstream with FLASH_ATTENTION_TRITON_AMD_ENABLE")
        more["deterministic"] = True
    flash.takes(function, *more)
    given = [i.transpose(1, 2).contiguous().to(device) for i in reference.inputs(*case)]
    first = once(function, given, more)
    if not all(bool(torch.isfinite(item).all()) for item in first[:4]):
        raise harness.Failure("the first result is not finite")
    worst, limit = 0.0, max(rounding(first[1]), 1e-6)
    for number in range(1, repeats + 1):
        again = once(function, given, more)
        worst = max(worst, compare_runs(first, again, number, deterministic))
    metrics = {"error": worst, "limit": limit, "margin": round(worst / limit, 4)}
    metrics["repeats"] = repeats
    if not worst <= limit:
        raise harness.Failure(
            "dq differs by {:.3g}, allowed is {:.3g}".format(worst, limit), **metrics
        )
    return metrics


def check(context):
    function = flash.find_function(context)
    seed = int(context.arguments.get("seed", SEED))
    repeats = int(context.arguments.get("repeats", REPEATS))
    shapes, dtype = SHAPES, torch.bfloat16
    if context.on_cpu:
        repeats, shapes = CPU_REPEATS, CPU_SHAPES
    for number, shape in enumerate(shapes):
        for deterministic in (False, True):
            name = flash.name_of(shape, dtype, reference.CAUSAL)
            name += " deterministic" if deterministic else ""
            case = (shape, dtype, seed + number)
            yield context.case(
                name, harness.subject, repeated, function, case, deterministic, repeats,
                context.device,
            )  # fmt: skip

"""fa.dropout: the right fraction is dropped, the rest is scaled, and backward drops the same.

With q = 0 every weight is one part of the key length, and with the identity as values the output
is the matrix of weights itself: it shows what was dropped, without asking the kernel for its mask.
"""

import harness
import torch

reference = harness.sibling("_attention")
flash = harness.sibling("_flash")
compare = reference.compare

SEED = 336
RATE = 0.17
SIZE = 128  # keys, and head dimension
BATCH, HEADS = 2, 6
#: 196,608 draws have a standard deviation of 8.5e-4; the kernel rounds the rate to 1/256.
FRACTION_LIMIT = 0.01
EPSILON = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def inputs(dtype, seed):
    """q = 0, random keys, the identity as values; the gradient of the output is random."""
    source = compare.generator(seed)
    shape = (BATCH, SIZE, HEADS, SIZE)
    k, grad = compare.randn(shape, dtype, source), compare.randn(shape, dtype, source)
    v = torch.eye(SIZE, dtype=dtype)[None, :, None].expand(shape).contiguous()
    return torch.zeros(shape, dtype=dtype), k, v, grad


def run(function, given, seed, device):
    """Output and gradients with the device's random numbers set; CPU tensors."""
    torch.manual_seed(seed)

    def called(q, k, v):
        return function(q, k, v, dropout_p=RATE)

    *tensors, grad = given
    return reference.on_device(called, tensors, grad, device)


def fraction(out, dtype):
    """Zeros are what was dropped; everything else has one value."""
    kept = out.double()
    dropped = float((kept == 0).double().mean())
    wanted = 1.0 / (SIZE * (1.0 - RATE))
    off = float((kept[kept != 0] - wanted).abs().max()) if dropped < 1 else wanted
    limit = 2 * EPSILON[dtype] * wanted
    error = abs(dropped - RATE)
    margin = max(error / FRACTION_LIMIT, off / limit)
    metrics = {"error": error, "limit": FRACTION_LIMIT, "dropped": dropped, "value_error": off}
    metrics["margin"] = round(margin, 4)
    if not error <= FRACTION_LIMIT:
        text = "{:.4f} of the weights were dropped, not {}".format(dropped, RATE)
        raise harness.Failure(text, **metrics)
    if not off <= limit:
        text = "a weight that is left is off by {:.3g}, allowed is {:.3g}".format(off, limit)
        raise harness.Failure(text, **metrics)
    return metrics


def patterns_differ(out):
    """No two heads may drop the same: the random numbers would be used twice."""
    kept = (out != 0).transpose(1, 2).reshape(BATCH * HEADS, -1)
    for one in range(len(kept)):
        for two in range(one):
            if torch.equal(kept[one], kept[two]):
                raise harness.Failure("two heads drop the same weights")


def backward(given, found, dtype):
    """dv = weights^T g, and dq by the derivative of the softmax, with the same weights dropped."""
    _, k, _, grad = (item.double().transpose(1, 2) for item in given)
    out, dq, _, dv = (item.transpose(1, 2) for item in found)
    kept = (out != 0).double() / (1.0 - RATE)
    weights = kept / SIZE
    right_dv = weights.transpose(-1, -2) @ grad
    through = grad * kept  # v is the identity
    inner = (through - (through / SIZE).sum(-1, keepdim=True)) / SIZE
    right_dq = inner @ k / SIZE**0.5
    parts = {}
    for name, value, golden in (("dv", dv, right_dv), ("dq", dq, right_dq)):
        limit = 8 * EPSILON[dtype] * float(golden.abs().max()) + reference.GRAD_FLOOR
        fro = compare.ATTENTION_FRO[dtype]
        parts[name] = compare.within(value, golden, limit, fro, name)
    return compare.worst(parts)


def repeats(function, given, first, seed, device):
    """The same seed drops the same, another seed does not."""
    again = run(function, given, seed, device)[0]
    if not torch.equal(first, again):
        raise harness.Failure("the same seed gives another output")
    if torch.equal(first, run(function, given, seed + 1, device)[0]):
        raise harness.Failure("another seed gives the same output")
    return {"error": 0.0, "limit": 0.0, "margin": 0.0}


def dropped(function, given, kind, seed, device):
    """The three questions, each a case of its own."""
    dtype, question = kind
    flash.left_out(dtype)
    flash.takes(function, "dropout_p")
    found = harness.subject(run, function, given, seed, device)
    if question == "fraction":
        patterns_differ(found[0])
        return fraction(found[0], dtype)
    if question == "backward":
        return backward(given, found, dtype)
    return harness.subject(repeats, function, given, found[0], seed, device)


def check(context):
    function = flash.find_function(context)
    seed = int(context.arguments.get("seed", SEED))
    for dtype in (torch.bfloat16, torch.float16):
        given = inputs(dtype, seed)
        for question in ("fraction", "backward", "repeats"):
            name = "{} {} {}".format(compare.short(dtype), question, RATE)
            kind = (dtype, question)
            yield context.case(name, dropped, function, given, kind, seed, context.device)

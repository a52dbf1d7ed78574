"""num.nan_prop: a NaN or an infinity reaches the results that it has to reach, and no others.

A kernel that takes a maximum with the wrong instruction swallows NaN, and a training that has gone
wrong goes on as if nothing had happened; one that spreads it spoils the whole batch.
"""

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
NAN, INF = float("nan"), float("inf")
MATRIX = (65, 67)


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


#: name -> (function, shapes of its inputs)
KINDS = {
    "mm": (torch.mm, ((65, 129), (129, 67))),
    "add": (torch.add, (MATRIX, MATRIX)),
    "maximum": (torch.maximum, (MATRIX, MATRIX)),
    "relu": (torch.relu, (MATRIX,)),
    "clamp": (lambda x: x.clamp(-1, 1), (MATRIX,)),
    "gelu": (F.gelu, (MATRIX,)),
    "sum rows": (lambda x: x.sum(0), (MATRIX,)),
    "sum columns": (lambda x: x.sum(1), (MATRIX,)),
    "amax": (lambda x: x.amax(0), (MATRIX,)),
    "amin": (lambda x: x.amin(1), (MATRIX,)),
    "softmax": (lambda x: x.softmax(-1), (MATRIX,)),
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[-1:]), (MATRIX,)),
    "where": (lambda x, y: torch.where(x == x, x, y), (MATRIX, MATRIX)),
    # 1x1: padding and transformed tiles may spread NaN, each kernel in its own way
    "conv": (F.conv2d, ((2, 3, 17, 19), (5, 3, 1, 1))),
    "max_pool": (lambda x: F.max_pool2d(x, 2), ((2, 3, 18, 20),)),
    "attention": (attend, ((2, 3, 33, 40), (2, 3, 35, 40), (2, 3, 35, 40))),
    "sort": (lambda x: x.sort(-1)[0], (MATRIX,)),
}
#: What an infinity does inside these is not one number: inf - inf, or a fused kernel's own way.
NAN_ONLY = ("softmax", "layer_norm", "attention", "gelu", "conv")


def spoiled(tensors, number, value):
    """Copies, with ``value`` somewhere in the middle of one of them."""
    copies = [tensor.clone() for tensor in tensors]
    flat = copies[number].view(-1)
    flat[flat.numel() // 2 + 1] = value
    return copies


def one(function, tensors, number, value, device):
    inputs = spoiled(tensors, number, value)
    placed = [tensor.to(device) for tensor in inputs]
    before = [tensor.clone() for tensor in placed]
    found = harness.subject(lambda: function(*placed).cpu())
    rules.unchanged(placed, before)
    golden = function(*[tensor.double() for tensor in inputs])
    what = "result of {} in input {}".format(value, number)
    return rules.rounded(found, golden, what, factor=4.0)


def reaches(name, function, shapes, dtype, seed, device):
    """In every input in turn, one value at a time."""
    source, parts = compare.generator(seed), {}
    tensors = [compare.randn(shape, dtype, source) for shape in shapes]
    for number in range(len(tensors)):
        for value in (NAN,) if name in NAN_ONLY else (NAN, INF, -INF):
            shown = "{} in input {}".format(value, number)
            parts[shown] = one(function, tensors, number, value, device)
    return compare.worst(parts)


def check(context):
    seed, device = rules.seed_of(context), context.device
    torch.backends.cudnn.allow_tf32 = False
    for dtype in DTYPES:
        for name, (function, shapes) in KINDS.items():
            shown = "{} {}".format(compare.short(dtype), name)
            yield context.case(shown, reaches, name, function, shapes, dtype, seed, device)

"""num.poison: nothing is read from, and nothing written to, memory that is not one's own.

Most of the free memory is filled with NaN and given back to the allocator first, so that what a
kernel forgets to write is NaN. Outputs lie between guards of NaN that have to be NaN afterwards.
"""

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

GUARD = 512  # elements on each side
CHUNK = 2**30  # bytes
SHARE = 0.8  # of the free memory of a device
CPU_BYTES = 2**26
SMALL_BLOCKS, SMALL = 256, 2**19  # elements of fp16: blocks that allocators keep apart
SHAPES = ((127, 513, 65), (1, 7, 3), (257, 129, 331))


def poison(context):
    """Fills memory with NaN and gives it back; bytes."""
    device = context.device
    share = CPU_BYTES if context.on_cpu else int(torch.cuda.mem_get_info()[0] * SHARE)
    size, kept, done = min(CHUNK, share // 4), [], 0
    while done + size <= share:
        try:
            kept.append(torch.full((size // 2,), float("nan"), dtype=torch.float16, device=device))
        except RuntimeError:  # somebody else took it meanwhile
            break
        done += size
    for _ in range(SMALL_BLOCKS if not context.on_cpu else 16):
        kept.append(torch.full((SMALL,), float("nan"), dtype=torch.float16, device=device))
    if not context.on_cpu:
        torch.cuda.synchronize()
    return done


def guarded(shape, dtype, device, shift):
    """NaN everywhere; the middle, with the shape, is for the output."""
    count = 1
    for size in shape:
        count *= size
    start = GUARD + shift
    whole = torch.full((count + 2 * GUARD + shift,), float("nan"), dtype=dtype, device=device)
    return whole, whole[start : start + count].view(shape), (start, start + count)


def intact(whole, inside):
    outside = torch.cat([whole[: inside[0]], whole[inside[1] :]]).cpu()
    touched = int((~torch.isnan(outside)).sum())
    rules.must(not touched, "{} elements outside the output were written".format(touched))


def into(function, tensors, golden, device, judged=rules.identical):
    """``function(*tensors, out=...)``, aligned and not; every element written, none outside."""
    parts, dtype = {}, tensors[0].dtype
    placed = [tensor.to(device) for tensor in tensors]
    for shift in (0, 1):
        whole, out, inside = guarded(tuple(golden.shape), dtype, device, shift)
        harness.subject(function, *placed, out=out)
        intact(whole, inside)
        wanted = golden if judged is not rules.identical else golden.to(dtype)
        parts["offset {}".format(shift)] = judged(out.cpu(), wanted)
    return compare.worst(parts)


def product(shape, dtype, seed, device):
    rows, columns, inner = shape
    source = compare.generator(seed)
    left = compare.integers((rows, inner), dtype, source, 1)
    right = compare.integers((inner, columns), dtype, source, 1)
    return into(torch.mm, (left, right), left.double() @ right.double(), device)


def added(shape, dtype, seed, device):
    source = compare.generator(seed)
    x, y = (compare.randn(shape[:2], dtype, source) for _ in range(2))
    return into(torch.add, (x, y), x.double() + y.double(), device)


def summed(shape, dtype, seed, device):
    values = compare.integers(shape[:2], dtype, compare.generator(seed), 8)
    parts = {}
    for dim in (0, 1):

        def function(x, out, dim=dim):
            return torch.sum(x, dim, out=out)

        parts["dim {}".format(dim)] = into(function, (values,), values.double().sum(dim), device)
    return compare.worst(parts)


def softmax(shape, dtype, seed, device):
    values = compare.randn(shape[:2], dtype, compare.generator(seed))

    def function(x, out):
        return torch.softmax(x, -1, out=out)

    golden = values.double().softmax(-1)
    return into(function, (values,), golden, device, rules.rounded)


def allocated(function, tensors, device):
    """An operation that allocates its own result, out of the poisoned memory."""
    found = harness.subject(lambda: function(*[t.to(device) for t in tensors]).cpu())
    return rules.rounded(found, function(*[t.double() for t in tensors]), factor=4.0)


def attention(shape, dtype, seed, device):
    source = compare.generator(seed)
    q, k, v = (compare.randn((2, 3, shape[0], 40), dtype, source) for _ in range(3))
    return allocated(F.scaled_dot_product_attention, (q, k, v), device)


def convolution(shape, dtype, seed, device):
    source = compare.generator(seed)
    image = compare.randn((2, 5, 19, 23), dtype, source)
    weight = compare.randn((7, 5, 3, 3), dtype, source)
    return allocated(lambda x, w: F.conv2d(x, w, stride=2, padding=1), (image, weight), device)


def normalised(shape, dtype, seed, device):
    values = compare.randn(shape[:2], dtype, compare.generator(seed))
    return allocated(lambda x: F.layer_norm(x, x.shape[-1:]), (values,), device)


KINDS = {
    "mm": (product, (torch.float16, torch.bfloat16, torch.float32)),
    "add": (added, (torch.float16, torch.float32)),
    "sum": (summed, (torch.float32,)),
    "softmax": (softmax, (torch.float32, torch.bfloat16)),
    "layer_norm": (normalised, (torch.float32,)),
}
ONCE = {"attention": attention, "convolution": convolution}


def check(context):
    seed, device = rules.seed_of(context), context.device
    torch.backends.cudnn.allow_tf32 = False
    context.facts["poisoned_bytes"] = harness.subject(poison, context)
    for name, (judged, dtypes) in KINDS.items():
        for dtype in dtypes:
            for shape in SHAPES:
                shown = "{} {} {}".format(name, compare.short(dtype), "x".join(map(str, shape)))
                yield context.case(shown, judged, shape, dtype, seed, device)
    for name, judged in ONCE.items():
        shown = "{} fp32".format(name)
        yield context.case(shown, judged, SHAPES[0], torch.float32, seed, device)

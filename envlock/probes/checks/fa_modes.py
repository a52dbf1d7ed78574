"""fa.modes: what flash-attn can be asked besides causal: windows, softcap, ALiBi, a scale, packed
inputs, other strides, large values. What the build's functions do not take is skipped.
"""

import harness
import torch

reference = harness.sibling("_attention")
flash = harness.sibling("_flash")
compare = reference.compare

SEED = 336
#: batch, query heads, key heads, query length, key length, head dimension.
SHAPE = (2, 6, 2, 113, 203, 64)
SQUARE = (2, 6, 6, 128, 128, 64)
WIDE = (2, 4, 4, 127, 127, 128)
SOFTCAP = 50.0
SPREAD = reference.LARGE._replace(dq=10.0, dkv=10.0)
#: Lengths of the overflow test: below and above a block.
LARGE_LENGTHS = (1, 2, 5, 17, 128)


def slopes(shape, source):
    """ALiBi slopes for (batch, heads), as flash-attn's tests draw them."""
    return torch.rand(shape[:2], generator=source) * 0.3


def modes(source):
    """Name, shape and mode of each case."""
    causal, full = reference.CAUSAL, reference.FULL
    yield "window 37,0", SHAPE, causal._replace(window=(37, 0))
    yield "window 5,61", SHAPE, full._replace(window=(5, 61))
    yield "window 129,-1", SHAPE, full._replace(window=(129, -1))
    yield "softcap", SQUARE, full._replace(softcap=SOFTCAP)
    yield "softcap", WIDE, causal._replace(softcap=SOFTCAP)
    yield "alibi", SHAPE, causal._replace(slopes=slopes(SHAPE, source))
    yield "alibi", WIDE, full._replace(slopes=slopes(WIDE, source))
    yield "scale 0.3", SQUARE, causal._replace(scale=0.3)


def capped(function, case, device):
    """With softcap the scores have to reach the cap, or nothing is tested."""
    q, k, v, grad = reference.inputs(*case[:3])
    return flash.judged(function, case[3], (q * SOFTCAP, k, v, grad), device, SPREAD)


def large(function, length, seed, device):
    """q five times, k and v three times as large: weights are nearly 0 and 1."""
    q, k, v, grad = reference.inputs((2, 4, 4, length, length, 64), torch.float16, seed)
    given = (q * 5, k * 3, v * 3, grad)
    return flash.judged(function, reference.CAUSAL, given, device, reference.LARGE)


def packed_qkv(q, k, v):
    function = flash.other("flash_attn_qkvpacked_func")
    stacked = torch.stack([q, k, v], dim=3).transpose(1, 2)  # batch, length, heads, three, dim
    return function(stacked.transpose(2, 3), causal=True).transpose(1, 2)


def packed_kv(q, k, v):
    function = flash.other("flash_attn_kvpacked_func")
    stacked = torch.stack([k, v], dim=3).transpose(1, 2)
    return function(q.transpose(1, 2), stacked.transpose(2, 3), causal=True).transpose(1, 2)


def contiguous(q, k, v):
    """Rows of one head after another are not what the other cases give."""
    q, k, v = (item.transpose(1, 2).contiguous() for item in (q, k, v))
    return flash.imported()(q, k, v, causal=True).transpose(1, 2)


def offset(q, k, v):
    """Inside a larger buffer: neither its start nor its strides are those of the tensor."""
    parts = []
    for item in (q, k, v):
        item = item.transpose(1, 2)
        wide = item.new_zeros(*item.shape[:-1], item.shape[-1] + 16)
        wide[..., 8:-8] = item
        parts.append(wide[..., 8:-8])
    return flash.imported()(*parts, causal=True).transpose(1, 2)


def laid_out(called, shape, seed, device):
    flash.left_out(torch.bfloat16)
    given = reference.inputs(shape, torch.bfloat16, seed)
    rule = flash.rule(reference.CAUSAL)
    return reference.judge_call(called, reference.attention, given, device, rule)


def eight_bits(context):
    """flash-attn 2 has no 8-bit kernels; a profile may say so of the device."""
    if "fp8" in context.unsupported:
        raise harness.Skip("the profile names fp8 as unsupported")
    flash.takes(flash.imported(), "q_descale", "k_descale", "v_descale")
    return one_of_eight_bits(flash.imported(), context.device)


def one_of_eight_bits(function, device):
    """Inputs in 8 bits, against the same numbers in double precision; forward alone."""
    kind = torch.float8_e4m3fn
    short = [item.to(kind) for item in reference.inputs(SQUARE, torch.float32, SEED)[:3]]
    golden = reference.attention(*[item.double() for item in short])
    # the weights too are stored in 8 bits, of which three are the fraction
    low = reference.attention(*[item.float() for item in short], dtype=kind)
    ones = torch.ones(SQUARE[0], SQUARE[2], device=device)

    def called():
        q, k, v = (item.transpose(1, 2).to(device) for item in short)
        scales = {"q_descale": ones, "k_descale": ones, "v_descale": ones}
        return function(q, k, v, causal=True, **scales).transpose(1, 2).float().cpu()

    found = harness.subject(called)
    limit = reference.compare.measure(low, golden)
    return compare.within(found, golden, 2 * limit["max_abs"] + 1e-3, 2 * limit["fro_rel"], "out")


LAYOUTS = {
    "contiguous": (contiguous, SHAPE),
    "inside a buffer": (offset, SHAPE),
    "qkv packed": (packed_qkv, SQUARE),
    "kv packed": (packed_kv, SHAPE),
}


def check(context):
    function = flash.find_function(context)
    seed = int(context.arguments.get("seed", SEED))
    device = context.device
    for number, (shown, shape, mode) in enumerate(modes(compare.generator(seed))):
        dtype = torch.float16 if number % 2 else torch.bfloat16
        name = "{} {}".format(shown, flash.name_of(shape, dtype, mode))
        called = capped if mode.softcap else flash.one
        yield context.case(name, called, function, (shape, dtype, seed + number, mode), device)
    for name, (called, shape) in LAYOUTS.items():
        name = "{} {}".format(name, flash.name_of(shape, torch.bfloat16, reference.CAUSAL))
        yield context.case(name, laid_out, called, shape, seed, device)
    for length in LARGE_LENGTHS:
        name = "large values fp16 length {}".format(length)
        yield context.case(name, large, function, length, seed + length, device)
    yield context.case("fp8", eight_bits, context)

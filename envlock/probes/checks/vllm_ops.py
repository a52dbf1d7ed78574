"""vllm.ops: vLLM's own compiled operations against the CPU in double precision."""

import harness
import torch

common = harness.sibling("_vllm")
compare = harness.sibling("_compare")

SEED = 336
TOKENS, WIDE, HEADS, DIM = 83, 1024, 8, 64
EPSILON = 1e-6
BLOCK, BLOCKS = 16, 12
#: The rounding of the result; some kernels round in the middle as well.
FRO = {torch.float16: 1.2e-3, torch.bfloat16: 1e-2, torch.float32: 1e-5}


def judged(found, golden, dtype, what):
    """Twice the rounding of the right result, and of one step before it."""
    step = float(golden.abs().max()) * float(torch.finfo(dtype).eps)
    return compare.within(found, golden, 2 * step + compare.FLOOR, FRO[dtype], what)


def rms(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * weight


def rms_norm(dtype, device):
    from vllm import _custom_ops as ops

    source = compare.generator(SEED)
    x, weight = compare.randn((TOKENS, WIDE), dtype, source), compare.randn((WIDE,), dtype, source)
    out = torch.full((TOKENS, WIDE), float("nan"), dtype=dtype, device=device)
    ops.rms_norm(out, x.to(device), weight.to(device), EPSILON)
    return judged(out.cpu(), rms(x.double(), weight.double()), dtype, "rms_norm")


def add_and_norm(dtype, device):
    """In place: the sum goes where the residual was."""
    from vllm import _custom_ops as ops

    source = compare.generator(SEED)
    x, rest = (compare.randn((TOKENS, WIDE), dtype, source) for _ in "xr")
    weight = compare.randn((WIDE,), dtype, source)
    found, total = x.to(device).clone(), rest.to(device).clone()
    ops.fused_add_rms_norm(found, total, weight.to(device), EPSILON)
    golden = x.double() + rest.double()
    parts = {
        "sum": judged(total.cpu(), golden, dtype, "residual"),
        "norm": judged(found.cpu(), rms(golden, weight.double()), dtype, "fused_add_rms_norm"),
    }
    return compare.worst(parts)


def silu_and_mul(dtype, device):
    x = compare.randn((TOKENS, 2 * WIDE), dtype, compare.generator(SEED))
    out = torch.full((TOKENS, WIDE), float("nan"), dtype=dtype, device=device)
    torch.ops._C.silu_and_mul(out, x.to(device))
    gate, up = x.double().chunk(2, -1)
    return judged(out.cpu(), torch.nn.functional.silu(gate) * up, dtype, "silu_and_mul")


def rotary(dtype, device):
    """In place, halves of the dimension as pairs; positions in no order."""
    from vllm import _custom_ops as ops

    source = compare.generator(SEED)
    q, k = (compare.randn((TOKENS, n * DIM), dtype, source) for n in (HEADS, 2))
    angles = torch.arange(256)[:, None] * 10000.0 ** (-torch.arange(0, DIM, 2) / DIM)
    table = torch.cat([angles.cos(), angles.sin()], -1).to(dtype)
    positions = torch.randint(0, 256, (TOKENS,), generator=source)
    found = [item.to(device).clone() for item in (q, k)]
    ops.rotary_embedding(positions.to(device), *found, DIM, table.to(device), True)
    cos, sin = (part[:, None] for part in table.double()[positions].chunk(2, -1))
    parts = {}
    for name, given, got in (("q", q, found[0]), ("k", k, found[1])):
        first, second = given.double().view(TOKENS, -1, DIM).chunk(2, -1)
        golden = torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
        parts[name] = judged(got.cpu(), golden.view(given.shape), dtype, "rotary " + name)
    return compare.worst(parts)


def cache(dtype, device):
    """Keys and values go to their slots, bit for bit, and nowhere else."""
    caches = getattr(torch.ops, "_C_cache_ops", None)
    function = getattr(caches, "reshape_and_cache_flash", None)
    if function is None:
        raise harness.Skip("this vLLM has no reshape_and_cache_flash")
    source = compare.generator(SEED)
    k, v = (compare.randn((TOKENS, HEADS, DIM), dtype, source) for _ in "kv")
    # the first and the last slot stay free: writing beside a slot shows
    slots = 1 + torch.randperm(BLOCK * BLOCKS - 2, generator=source)[:TOKENS]
    slots[5] = -1  # padding: not stored
    stores = [torch.zeros(BLOCKS, BLOCK, HEADS, DIM, dtype=dtype, device=device) for _ in "kv"]
    one = torch.ones(1, device=device)
    function(k.to(device), v.to(device), *stores, slots.to(device), "auto", one, one)
    kept = slots >= 0
    for letter, given, store in (("k", k, stores[0]), ("v", v, stores[1])):
        wanted = torch.zeros(BLOCKS * BLOCK, HEADS, DIM, dtype=dtype)
        wanted[slots[kept]] = given[kept]
        metrics = compare.exact(store.cpu().view(wanted.shape), wanted.double(), "cache " + letter)
    return metrics


OPERATIONS = {
    "rms_norm": rms_norm,
    "fused_add_rms_norm": add_and_norm,
    "silu_and_mul": silu_and_mul,
    "rotary_embedding": rotary,
    "reshape_and_cache_flash": cache,
}


def check(context):
    common.prepare(context)
    common.runs_on(harness.subject(common.platform), context)
    names = [name for name in OPERATIONS if "cache" not in name]
    yield context.case("registered", harness.subject, common.registered, names)
    # the processor's kernels are for bf16 and float32 alone in some versions
    dtypes = (torch.bfloat16,) if context.on_cpu else (torch.bfloat16, torch.float16)
    for dtype in dtypes:
        for name, function in OPERATIONS.items():
            shown = "{} {}".format(name, compare.short(dtype))
            yield context.case(shown, harness.subject, function, dtype, context.device)

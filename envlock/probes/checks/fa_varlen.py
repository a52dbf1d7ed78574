"""fa.varlen: sequences of different lengths packed one after another, forward and backward.

Among them one with no queries: kernels left NaN, or what was there before, in its dk and dv, which
have to be exactly zero.
"""

import harness
import torch

reference = harness.sibling("_attention")
flash = harness.sibling("_flash")
compare = reference.compare

SEED = 336
#: Name, query lengths, key lengths, (query heads, key heads, head dimension), causal.
CASES = (
    ("odd lengths", (17, 113, 1, 64), (17, 113, 1, 64), (6, 2, 64), True),
    ("cross", (5, 90, 33), (77, 90, 203), (6, 6, 96), True),
    ("cross", (5, 90, 33), (77, 40, 203), (6, 1, 128), False),
)
#: flash-attn's own test of a sequence without queries: nothing, 256, 256 queries.
EMPTY = ("no queries", (0, 256, 256), (503, 265, 768), (8, 8, 64), False)
EMPTY_GROUPED = ("no queries", (0, 256, 256), (503, 265, 768), (8, 1, 64), False)
CPU_EMPTY = ("no queries", (0, 25, 60), (50, 26, 76), (4, 1, 64), False)
DEVICE_CASES = (("long", (511, 1000, 77), (511, 1000, 77), (8, 2, 128), True),)


def bounds(lengths):
    """Where each sequence starts, and where the last one ends."""
    found = [0]
    for length in lengths:
        found.append(found[-1] + length)
    return found


def separately(case):
    """The reference for packed tensors of (tokens, heads, dimension): one sequence at a time."""
    _, rows, columns, _, causal = case
    mode = reference.CAUSAL if causal else reference.FULL
    pairs = list(zip(rows, columns))
    starts, key_starts = bounds(rows), bounds(columns)

    def right(q, k, v, dtype=None):
        parts = []
        for number, (queries, keys) in enumerate(pairs):
            start, key_start = starts[number], key_starts[number]
            own = q[start : start + queries].transpose(0, 1)[None]
            near = slice(key_start, key_start + keys)
            part = reference.attention(
                own, k[near].transpose(0, 1)[None], v[near].transpose(0, 1)[None], mode, dtype
            )
            parts.append(part[0].transpose(0, 1))
        return torch.cat(parts)

    return right


def packed_inputs(case, dtype, seed):
    """q, k, v and the gradient of the output, packed."""
    _, rows, columns, (heads, kv_heads, dim), _ = case
    source = compare.generator(seed)
    queries, keys = (sum(rows), heads, dim), (sum(columns), kv_heads, dim)
    return [compare.randn(shape, dtype, source) for shape in (queries, keys, keys, queries)]


def varlen(case, dtype, seed, device):
    _, rows, columns, _, causal = case
    flash.left_out(dtype)
    function = flash.other("flash_attn_varlen_func")
    starts = torch.tensor(bounds(rows), dtype=torch.int32, device=device)
    key_starts = torch.tensor(bounds(columns), dtype=torch.int32, device=device)
    most = (max(rows), max(columns))

    def called(q, k, v):
        return function(q, k, v, starts, key_starts, *most, causal=causal)

    given = packed_inputs(case, dtype, seed)
    rule = flash.rule(reference.CAUSAL if causal else reference.FULL, packed=True)
    if 0 in rows:
        called = watched(called, columns[rows.index(0)], rows.index(0), columns)
    return reference.judge_call(called, separately(case), given, device, rule)


def watched(called, keys, place, columns):
    """The same call, whose gradients for the keys that nobody asks are compared with zero."""
    start = bounds(columns)[place]

    def with_hooks(q, k, v):
        for name, leaf in (("dk", k), ("dv", v)):
            leaf.register_hook(must_be_zero(name, start, keys))
        return called(q, k, v)

    return with_hooks


def must_be_zero(name, start, count):
    def look(grad):
        part = grad[start : start + count]
        wrong = int((part != 0).sum())  # NaN is not zero either
        if wrong:
            text = "{} of a sequence without queries has {} elements that are not zero"
            raise harness.Failure(text.format(name, wrong), error=wrong, limit=0.0)

    return look


def check(context):
    flash.find_function(context)
    seed = int(context.arguments.get("seed", SEED))
    cases = (*CASES, CPU_EMPTY)
    if not context.on_cpu:
        cases = (*CASES, EMPTY, EMPTY_GROUPED, *DEVICE_CASES)
    for number, case in enumerate(cases):
        shown, rows, columns, sizes, causal = case
        for dtype in (torch.bfloat16, torch.float16):
            name = "{} {} {}:{} {}/{}x{}".format(
                compare.short(dtype), shown, list(rows), list(columns), *sizes
            )
            name += " causal" if causal else ""
            yield context.case(name, varlen, case, dtype, seed + number, context.device)

"""fa.kvcache: one step of decoding with a cache of keys and values, forward alone.

The new keys are appended in place, at another length for every sequence. What is in the cache
afterwards is compared bit for bit, also where nothing should have been written.
"""

import harness
import torch

reference = harness.sibling("_attention")
flash = harness.sibling("_flash")
compare = reference.compare

SEED = 336
PAGE = 256  # flash-attn wants whole multiples of it
#: Name, new tokens, lengths before, room, (query heads, key heads, head dimension), paged.
CASES = (
    ("append", 1, (5, 100, 255), 300, (6, 2, 64), False),
    ("append", 7, (0, 41, 128), 200, (4, 4, 128), False),
    ("read", 0, (33, 1, 97), 128, (6, 1, 96), False),
    ("paged", 1, (255, 300, 17), 2 * PAGE, (6, 2, 64), True),
)
#: One sequence, many keys: the kernel splits them among blocks and joins the parts.
SPLIT = ("split", 1, (4000,), 4096, (8, 2, 128), False)
CPU_SPLIT = ("split", 1, (700,), 768, (4, 2, 64), False)


def drawn(case, dtype, seed):
    """q, new keys, new values, the caches as (batch, room, heads, dimension)."""
    _, new, lengths, room, (heads, kv_heads, dim), _ = case
    batch, source = len(lengths), compare.generator(seed)
    q = compare.randn((batch, max(new, 1), heads, dim), dtype, source)
    added = [compare.randn((batch, new, kv_heads, dim), dtype, source) for _ in "kv"]
    caches = [compare.randn((batch, room, kv_heads, dim), dtype, source) for _ in "kv"]
    return q, added, caches


def appended(cache, added, lengths):
    """What a cache has to be afterwards."""
    after = cache.clone()
    for number, length in enumerate(lengths):
        after[number, length : length + added.shape[1]] = added[number]
    return after


def right(q, caches, totals, dtype=None):
    """The output for each sequence from what its cache holds."""
    parts = []
    for number, total in enumerate(totals):
        own = q[number : number + 1].transpose(1, 2)
        keys, values = (c[number : number + 1, :total].transpose(1, 2) for c in caches)
        parts.append(reference.attention(own, keys, values, reference.CAUSAL, dtype))
    return torch.cat(parts).transpose(1, 2)


def pages(caches, source):
    """The caches as pages in another order, and the table that finds them."""
    batch, room = caches[0].shape[:2]
    each = room // PAGE
    order = torch.randperm(batch * each, generator=source)
    paged = []
    for cache in caches:
        whole = cache.reshape(batch * each, PAGE, *cache.shape[2:])
        mixed = torch.empty_like(whole)
        mixed[order] = whole
        paged.append(mixed)
    return paged, order.reshape(batch, each).to(torch.int32)


def unpaged(paged, table):
    """Back in order: (batch, room, heads, dimension)."""
    found = paged[table.long()]
    return found.reshape(table.shape[0], -1, *paged.shape[2:])


def called_with(function, case, drawn_now, device, source):
    """Calls with the caches on the device; the output and the caches afterwards, in order."""
    _, new, lengths, _, _, paged = case
    q, added, caches = drawn_now
    more, table = {}, None
    if paged:
        caches, table = pages(caches, source)
        more["block_table"] = table.to(device)
    if new:
        more["k"], more["v"] = (item.to(device) for item in added)
    placed = [cache.to(device).clone() for cache in caches]
    counts = torch.tensor(lengths, dtype=torch.int32, device=device)
    out = function(q.to(device), *placed, cache_seqlens=counts, causal=True, **more).cpu()
    after = [cache.cpu() for cache in placed]
    return out, after if table is None else [unpaged(cache, table) for cache in after]


def decode(case, dtype, seed, device):
    _, new, lengths, _, _, paged = case
    flash.left_out(dtype)
    function = flash.other("flash_attn_with_kvcache")
    flash.takes(function, "cache_seqlens", *(["block_table"] if paged else []))
    q, added, caches = drawn(case, dtype, seed)
    source = compare.generator(seed)
    out, after = harness.subject(called_with, function, case, (q, added, caches), device, source)
    wanted = [appended(cache, item, lengths) for cache, item in zip(caches, added)]
    for letter, found, expected in zip("kv", after, wanted):
        compare.exact(found, expected.double(), "cache of {}".format(letter))
    totals = [length + new for length in lengths]
    golden = right(q.double(), [item.double() for item in wanted], totals)
    low = right(q.float(), [item.float() for item in wanted], totals, dtype)
    rule = flash.rule(reference.CAUSAL, packed=True)
    return reference.judge_part("out", out, golden, low, rule)


def check(context):
    flash.find_function(context)
    seed = int(context.arguments.get("seed", SEED))
    cases = (*CASES, CPU_SPLIT if context.on_cpu else SPLIT)
    for number, case in enumerate(cases):
        name, new, lengths, _, sizes, _ = case
        for dtype in (torch.bfloat16, torch.float16):
            shown = "{} {} {}+{} {}/{}x{}".format(
                compare.short(dtype), name, list(lengths), new, *sizes
            )
            yield context.case(shown, decode, case, dtype, seed + number, context.device)

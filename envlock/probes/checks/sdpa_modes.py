"""sdpa.modes: masks, grouped heads, scale, dropout, hard inputs, and gradients of some inputs."""

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")
steps = harness.sibling("_attention")
sdpa = harness.sibling("_sdpa")

ROWS, COLUMNS, DIM = 96, 131, 64
HALF = (torch.bfloat16, torch.float16)
DROPPED, LENGTH = 0.17, 128


def bool_mask(source):
    mask = torch.rand(ROWS, COLUMNS, generator=source) > 0.3
    mask[:, 0] = True
    return mask


def float_mask(source):
    """Values that every 16-bit type holds."""
    return torch.randint(-8, 9, (ROWS, COLUMNS), generator=source) / 4.0


def hidden_rows(source):
    mask = bool_mask(source)
    mask[5] = mask[-1] = False
    return mask


#: name -> options, made from a generator; key heads are 4 unless grouped.
MODES = {
    "no mask": lambda source: {},
    "causal": lambda source: {"is_causal": True},
    "bool mask": lambda source: {"attn_mask": bool_mask(source)},
    "float mask": lambda source: {"attn_mask": float_mask(source)},
    "scale": lambda source: {"scale": 0.3},
    "grouped heads": lambda source: {"enable_gqa": True},
    "grouped heads causal": lambda source: {"enable_gqa": True, "is_causal": True},
}
#: name -> (factor of q, of k, of one channel of both)
HARD = {"large inputs": (5.0, 3.0, 1.0), "one large channel": (1.0, 1.0, 50.0)}


def inputs(dtype, seed, options):
    heads, kv_heads = (8, 2) if options.get("enable_gqa") else (4, 4)
    return steps.inputs((2, heads, kv_heads, ROWS, COLUMNS, DIM), dtype, seed)


def mode(made, dtype, seed, device):
    options = made(compare.generator(seed + 1))
    return sdpa.judge(inputs(dtype, seed, options), options, device)


def hard(factors, dtype, seed, device):
    """Scores far apart, with an outlier as trained models have them."""
    q, k, v, grad = inputs(dtype, seed, {})
    q, k = q * factors[0], k * factors[1]
    v[..., 3] *= factors[2]
    return sdpa.judge((q, k, v, grad), {"is_causal": True}, device, fro_factor=sdpa.HARD)


def no_key(dtype, seed, device):
    """Rows that see no key disturb no other row.

    What they give is undefined: zero on the processor, what the kernel makes of it on a device.
    """
    mask = hidden_rows(compare.generator(seed))
    q, k, v, _ = inputs(dtype, seed, {})
    options = {"attn_mask": mask}
    found = harness.subject(
        lambda: sdpa.native(q.to(device), k.to(device), v.to(device), options).cpu()
    )
    golden = sdpa.plain(q.double(), k.double(), v.double(), options)
    empty, metrics = ~mask.any(-1), {}
    if not bool((found[:, :, empty] == 0).all()):
        given = "NaN" if bool(found[:, :, empty].isnan().any()) else "numbers"
        text = "rows that see no key give {}, on the processor they give zero"
        metrics["warning"] = text.format(given)
    low = sdpa.plain(q, k, v, options)[:, :, ~empty]
    reference = compare.measure(low, golden[:, :, ~empty])["max_abs"]
    limit = sdpa.OUT_FACTOR * reference + sdpa.OUT_FLOOR
    wanted = golden[:, :, ~empty]
    return {**compare.within(found[:, :, ~empty], wanted, limit, sdpa.FRO[dtype], "out"), **metrics}


def some_gradients(wanted, dtype, seed, device):
    """Gradients for some inputs only are those that all of them would have."""
    q, k, v, grad = inputs(dtype, seed, {})
    named = zip("qkv", (q, k, v))
    placed = {name: t.to(device).requires_grad_(name in wanted) for name, t in named}

    def run():
        out = F.scaled_dot_product_attention(placed["q"], placed["k"], placed["v"])
        out.backward(grad.to(device))
        return {name: leaf.grad for name, leaf in placed.items()}

    found = harness.subject(run)

    def plain(*leaves):
        return sdpa.plain(*leaves, {})

    golden = steps.with_gradients(plain, [t.double() for t in (q, k, v)], grad.double())
    low, parts = steps.with_gradients(plain, (q, k, v), grad), {}
    for number, name in enumerate("qkv", 1):
        present = found[name] is not None
        rules.must(present == (name in wanted), "gradient of {}: {}".format(name, present))
        if present:
            reference = compare.measure(low[number], golden[number])["max_abs"]
            limit = sdpa.GRAD_FACTOR * reference + sdpa.GRAD_FLOOR
            parts[name] = compare.within(
                found[name], golden[number], limit, sdpa.FRO[dtype], "gradient of " + name
            )
    return compare.worst(parts)


def dropout(dtype, seed, device):
    """With q = 0 and v = 1 the output *is* the matrix of weights: what is dropped can be read."""
    heads = (2, 6, LENGTH, LENGTH)
    q = torch.zeros(heads, dtype=dtype, device=device)
    k = compare.randn(heads, dtype, compare.generator(seed)).to(device)
    v = torch.eye(LENGTH, dtype=dtype).expand(heads).contiguous().to(device)
    grad = compare.randn(heads, dtype, compare.generator(seed + 1))

    def run(number):
        torch.manual_seed(number)
        leaf = v.clone().requires_grad_(True)
        out = F.scaled_dot_product_attention(q, k, leaf, dropout_p=DROPPED)
        out.backward(grad.to(device))
        return out.detach().cpu(), leaf.grad.cpu()

    first, slope = harness.subject(run, seed)
    again, other = harness.subject(run, seed)[0], harness.subject(run, seed + 1)[0]
    rules.must(torch.equal(first, again), "the same seed drops other weights")
    rules.must(not torch.equal(first, other), "another seed drops the same weights")
    kept, count = first[first != 0], first.numel()
    sigma = (DROPPED * (1 - DROPPED) / count) ** 0.5
    share = 1.0 - kept.numel() / count
    metrics = rules.statistic(share, DROPPED, sigma, "share of dropped weights")
    right = torch.full_like(kept, 1.0 / (LENGTH * (1 - DROPPED)), dtype=torch.float64)
    compare.within(kept, right, 1e-4, compare.GEMM_FRO[dtype] * 2, "kept weight")
    weights = (first != 0).double() / (LENGTH * (1 - DROPPED))
    golden = weights.transpose(-1, -2) @ grad.double()
    fro = compare.measure(slope, golden)["fro_rel"]
    rules.must(fro <= sdpa.FRO[dtype], "gradient of v is not that of the kept weights", fro_rel=fro)
    return {**metrics, "fro_rel": fro}


def check(context):
    seed, device = rules.seed_of(context), context.device
    for dtype in HALF:
        shown = compare.short(dtype)
        for name, made in MODES.items():
            yield context.case("{} {}".format(shown, name), mode, made, dtype, seed, device)
        for name, factors in HARD.items():
            yield context.case("{} {}".format(shown, name), hard, factors, dtype, seed, device)
        yield context.case("{} rows without a key".format(shown), no_key, dtype, seed, device)
        for wanted in ("q", "k", "qv"):
            name = "{} gradient of {} only".format(shown, wanted)
            yield context.case(name, some_gradients, wanted, dtype, seed, device)
    yield context.case("fp16 dropout", dropout, torch.float16, seed, device)
    yield context.case("bf16 dropout", dropout, torch.bfloat16, seed, device)
    for name in ("bool mask", "causal"):
        yield context.case("fp32 " + name, mode, MODES[name], torch.float32, seed, device)

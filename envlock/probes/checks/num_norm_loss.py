"""num.norm_loss: normalisations, activations, losses, indexing and scattering, with gradients."""

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

ROWS, COLUMNS, WORDS = 129, 333, 1003
#: A processor adds up the gradient of a weight in the type of the weight.
SUMMED_SHORT = 4.0
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def rotated(x, angles):
    """Rotary positions: pairs of numbers turned by an angle."""
    left, right = x.chunk(2, -1)
    return torch.cat([left * angles.cos() - right * angles.sin(),
                      right * angles.cos() + left * angles.sin()], -1)  # fmt: skip


#: name -> (function, shapes of its inputs); all inputs get a gradient.
LAYERS = {
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
        ((ROWS, COLUMNS), (COLUMNS,), (COLUMNS,)),
    ),
    "rms_norm": (
        lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
        ((ROWS, COLUMNS), (COLUMNS,)),
    ),
    "group_norm": (
        lambda x, w, b: F.group_norm(x, 4, w, b),
        ((3, 8, 17, 19), (8,), (8,)),
    ),
    "gelu": (F.gelu, ((ROWS, COLUMNS),)),
    "silu": (F.silu, ((ROWS, COLUMNS),)),
    # few enough that a gradient is not below the smallest fp16
    "mse": (F.mse_loss, ((17, 33), (17, 33))),
}


def with_gradients(function, tensors, grad):
    leaves = [tensor.detach().clone().requires_grad_(True) for tensor in tensors]
    out = function(*leaves)
    return [out.detach(), *torch.autograd.grad(out, leaves, grad.to(out.dtype))]


def judged(function, tensors, seed, device):
    """Output and all gradients against double precision."""
    double = [tensor.double() for tensor in tensors]
    shape = function(*double).shape
    grad = compare.randn(shape, tensors[0].dtype, compare.generator(seed + 1))
    grad = grad + grad.sign()  # one number alone may be nearly zero
    golden = with_gradients(function, double, grad.double())
    found = harness.subject(
        lambda: [
            item.cpu()
            for item in with_gradients(function, [t.to(device) for t in tensors], grad.to(device))
        ]
    )
    parts = {}
    for number, (item, right) in enumerate(zip(found, golden)):
        name = "gradient {}".format(number - 1) if number else "out"
        crude = SUMMED_SHORT if number > 1 and device == "cpu" else 1.0
        fro = rules.LAYER_FRO[item.dtype] * crude
        # a loss is a sum as well, and of numbers that were rounded before
        factor = 10.0 if number or not item.dim() else 4.0
        parts[name] = rules.rounded(item, right, name, crude * factor, fro)
    return compare.worst(parts)


def layer(function, shapes, dtype, seed, device):
    source = compare.generator(seed)
    return judged(function, [compare.randn(s, dtype, source) for s in shapes], seed, device)


def entropy(dtype, seed, device):
    """Some targets are to be ignored."""
    source = compare.generator(seed)
    logits = compare.randn((ROWS, WORDS), dtype, source) * 3
    targets = torch.randint(0, WORDS, (ROWS,), generator=source)
    targets[::5] = -100

    def function(x):
        return F.cross_entropy(x, targets.to(x.device))

    return judged(function, (logits,), seed, device)


def rope(dtype, seed, device):
    source = compare.generator(seed)
    x, angles = compare.randn((2, ROWS, 64), dtype, source), torch.rand(ROWS, 32, generator=source)
    turned = angles.to(dtype)

    def run():
        return rotated(x.to(device).float(), turned.to(device).float()).to(dtype).cpu()

    found = harness.subject(run)
    return rules.rounded(found, rotated(x.double(), turned.double()), factor=4.0)


def places(count, source):
    """Places of which many are the same: the sums meet."""
    return torch.randint(0, 37, (count,), generator=source)


def added_up(values, where, size):
    """The reference, one after the other."""
    out = torch.zeros((size, *values.shape[1:]), dtype=torch.float64)
    for place in range(size):
        out[place] = values[where == place].double().sum(0)
    return out


def scatter(kind, dtype, seed, device):
    """Whole numbers: exact in every order."""
    source = compare.generator(seed)
    values = compare.integers((10_007, 3), dtype, source, 2)
    where = places(10_007, source)
    zero = torch.zeros(37, 3, dtype=dtype, device=device)
    index = where.to(device)

    def run():
        if kind == "index_add":
            return zero.index_add(0, index, values.to(device)).cpu()
        if kind == "scatter_add":
            return zero.scatter_add(0, index[:, None].expand(-1, 3), values.to(device)).cpu()
        return zero.index_put((index,), values.to(device), accumulate=True).cpu()

    wanted = added_up(values, where, 37)
    return rules.identical(harness.subject(run), wanted.to(dtype))


def embedding(dtype, seed, device):
    """The gradient of a word that comes often is the sum over all its places."""
    source = compare.generator(seed)
    table = compare.integers((37, 65), dtype, source, 8)
    where = places(4099, source)
    grad = compare.integers((4099, 65), dtype, source, 1)

    def run():
        leaf = table.to(device).requires_grad_(True)
        out = F.embedding(where.to(device), leaf)
        out.backward(grad.to(device))
        return out.detach().cpu(), leaf.grad.cpu()

    out, slope = harness.subject(run)
    rules.identical(out, table[where], "rows")
    return rules.identical(slope, added_up(grad, where, 37).to(dtype), "gradient")


def chosen(dtype, seed, device):
    """Rows, elements and blocks, read and written by their numbers."""
    source = compare.generator(seed)
    table = compare.randn((257, 129), dtype, source)
    rows = torch.randint(0, 257, (1021,), generator=source)
    columns = torch.randint(0, 129, (257, 65), generator=source)
    order = torch.randperm(257, generator=source)
    here = table.to(device)

    def run():
        return {
            "index_select": here.index_select(0, rows.to(device)).cpu(),
            "gather": here.gather(1, columns.to(device)).cpu(),
            "index": here[rows.to(device), 5].cpu(),
            "masked_select": here[(here > 0)].cpu(),
            "index_copy": here.index_copy(0, order.to(device), here).cpu(),
            "nonzero": (here > 0).nonzero().cpu(),
        }

    flat = [list(range(257)), rows.tolist()]
    back = torch.empty_like(table)
    for at, place in enumerate(order.tolist()):
        back[place] = table[at]
    wanted = {
        "index_select": torch.stack([table[row] for row in flat[1]]),
        "gather": torch.stack([table[row][columns[row]] for row in flat[0]]),
        "index": torch.stack([table[row, 5] for row in flat[1]]),
        "masked_select": table.reshape(-1)[table.reshape(-1) > 0],
        "index_copy": back,
        "nonzero": torch.tensor([[r, c] for r, row in enumerate((table > 0).tolist())
                                 for c, seen in enumerate(row) if seen]),
    }  # fmt: skip
    found = harness.subject(run)
    return compare.worst({k: rules.identical(found[k], wanted[k], k) for k in wanted})


def check(context):
    seed, device = rules.seed_of(context), context.device
    for dtype in DTYPES:
        shown = compare.short(dtype)
        for name, (function, shapes) in LAYERS.items():
            yield context.case(shown + " " + name, layer, function, shapes, dtype, seed, device)
        for name, judge in (("cross_entropy", entropy), ("rope", rope), ("indexing", chosen)):
            yield context.case(shown + " " + name, judge, dtype, seed, device)
    for kind in ("scatter_add", "index_add", "index_put"):
        for dtype in (torch.float32, torch.int32, torch.int64):
            name = "{} {}".format(compare.short(dtype), kind)
            yield context.case(name, scatter, kind, dtype, seed, device)
    yield context.case("fp32 embedding", embedding, torch.float32, seed, device)

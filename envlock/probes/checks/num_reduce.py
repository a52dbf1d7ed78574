"""num.reduce: sums, extremes, sorting and softmax over each dimension.

Whole numbers make sums exact in every order. The first dimension is the one that kernels get wrong:
there threads walk along rows, and partial sums meet in memory.
"""

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

SHAPES = ((1, 1), (3, 65_537), (65_537, 3), (1000, 333), (1, 2**20))
DIMS = (0, 1, None)
#: Sorting a million takes a processor seconds; a device has a kernel of its own for that.
SORTED, DEVICE_SORTED = SHAPES[:4], SHAPES[4:]
SMALL = ((1, 1), (3, 4097), (4097, 3), (1000, 333))
#: float32 in float32: exact exponentials, sums in any order.
IN_ORDER = 6e-8  # times the root of the length: a sum that is added up from one end
SMOOTH_FRO = {torch.float32: 1e-6, torch.float16: 1.2e-3, torch.bfloat16: 6e-3}


def over(shapes, dims, judged, seed):
    """The worst of every shape and dimension; ``judged`` gets shape, dimension, generator."""
    parts = {}
    for number, shape in enumerate(shapes):
        for dim in dims:
            name = "{}x{} dim {}".format(shape[0], shape[1], "all" if dim is None else dim)
            parts[name] = judged(shape, dim, compare.generator(seed + number))
    return compare.worst(parts)


def reduced(function, values, dim, device):
    placed = values.to(device)
    return harness.subject(lambda: function(placed, dim).cpu())


def _all(function):
    """``function`` over one dimension, or over all where there is none."""
    return lambda x, dim: function(x) if dim is None else function(x, dim=dim)


EXACT = {
    "sum": _all(torch.sum),
    "amax": lambda x, dim: torch.amax(x, dim=() if dim is None else dim),
    "amin": lambda x, dim: torch.amin(x, dim=() if dim is None else dim),
    "count_nonzero": _all(torch.count_nonzero),
    "any": _all(torch.any),
    "cumsum": lambda x, dim: torch.cumsum(x.reshape(-1) if dim is None else x, dim or 0),
}
MOMENTS = {
    "mean": _all(torch.mean),
    "var": lambda x, dim: torch.var(x, dim=dim, unbiased=False),
    "norm": lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
}
SMOOTH = {
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "logsumexp": torch.logsumexp,
}


def exact(function, dtype, seed, device):
    def judged(shape, dim, source):
        values = compare.integers(shape, dtype, source, 8)
        golden = function(values.double(), dim)
        found = reduced(function, values, dim, device)
        return rules.identical(found, golden.to(found.dtype))

    # in 16 bits a processor rounds what its threads have added up
    half = dtype in (torch.float16, torch.bfloat16)
    return over(SMALL if half else SHAPES, DIMS[:2] if half else DIMS, judged, seed)


def moments(function, dtype, seed, device):
    def judged(shape, dim, source):
        values = compare.randn(shape, dtype, source) + 3
        found = reduced(function, values, dim, device)
        return rules.rounded(found, function(values.double(), dim))

    return over(SHAPES, DIMS, judged, seed)


def smooth(function, dtype, seed, device):
    shapes = SHAPES if dtype == torch.float32 else SMALL

    def judged(shape, dim, source):
        values = compare.randn(shape, dtype, source) * 2
        found = reduced(function, values, dim, device)
        golden = function(values.double(), dim)
        in_order = IN_ORDER * shape[dim] ** 0.5
        # in 16 bits logsumexp is made of parts, each of them rounded
        factor = 2.0 if dtype == torch.float32 else 4.0
        return rules.rounded(found, golden, factor=factor, fro=max(SMOOTH_FRO[dtype], in_order))

    return over(shapes, DIMS[:2], judged, seed)


def gradient(function, dtype, seed, device):
    """A gradient of a softmax or sum, for a random gradient of its result."""

    def judged(shape, dim, source):
        values = compare.randn(shape, dtype, source)
        grad = compare.randn(function(values, dim).shape, dtype, source)
        golden = _gradient(function, values.double(), grad.double(), dim)
        found = harness.subject(
            lambda: _gradient(function, values.to(device), grad.to(device), dim).cpu()
        )
        return rules.rounded(found, golden, factor=4.0)

    return over(SMALL[1:], DIMS[:2], judged, seed)


def _gradient(function, values, grad, dim):
    leaf = values.clone().requires_grad_(True)
    (found,) = torch.autograd.grad(function(leaf, dim), leaf, grad)
    return found


def sorted_shapes(device):
    return SORTED if device == "cpu" else SORTED + DEVICE_SORTED


def ordered(dtype, seed, device):
    """Sorted values exactly, and indices that say where each came from, in order if stable."""

    def judged(shape, dim, source):
        values = compare.integers(shape, dtype, source, 100)
        placed = values.to(device)
        found, places = harness.subject(
            lambda: [item.cpu() for item in torch.sort(placed, dim=dim, stable=True)]
        )
        wanted, order = torch.sort(values, dim=dim, stable=True)
        rules.identical(places, order, "order")
        return rules.identical(found, wanted, "sorted values")

    return over(sorted_shapes(device), DIMS[:2], judged, seed)


def largest(dtype, seed, device):
    """The k largest, and where they are: each place once, holding its value."""

    def judged(shape, dim, source):
        values = compare.integers(shape, dtype, source, 100)
        count, placed = min(17, shape[dim]), values.to(device)
        found, places = harness.subject(
            lambda: [item.cpu() for item in torch.topk(placed, count, dim=dim)]
        )
        inside = (places >= 0) & (places < shape[dim])
        rules.must(bool(inside.all()), "places are outside of the tensor")
        wanted = torch.sort(values, dim=dim, descending=True)[0].narrow(dim, 0, count)
        again = torch.sort(places, dim=dim)[0].diff(dim=dim)
        rules.must(not bool((again == 0).any()), "one place is named twice")
        rules.identical(values.gather(dim, places), wanted, "values at the places")
        return rules.identical(found, wanted, "largest values")

    return over(sorted_shapes(device), DIMS[:2], judged, seed)


def where_largest(dtype, seed, device):
    """argmax points at a largest value."""

    def judged(shape, dim, source):
        values = compare.randn(shape, dtype, source)
        places = reduced(lambda x, d: x.argmax(d, keepdim=True), values, dim, device)
        inside = (places >= 0) & (places < shape[dim])
        rules.must(bool(inside.all()), "places are outside of the tensor")
        return rules.identical(values.gather(dim, places), values.amax(dim, keepdim=True))

    return over(sorted_shapes(device), DIMS[:2], judged, seed)


#: fp16 runs out of whole numbers in a running sum; a device may add it up in fp16.
PLAN = (
    (exact, EXACT, (torch.float32, torch.int64)),
    (
        exact,
        {name: EXACT[name] for name in ("sum", "amax", "count_nonzero")},
        (torch.float16, torch.bfloat16),
    ),
    (moments, MOMENTS, (torch.float32,)),
    (smooth, SMOOTH, (torch.float32, torch.float16, torch.bfloat16)),
)


def check(context):
    seed, device = rules.seed_of(context), context.device
    for judged, table, dtypes in PLAN:
        for dtype in dtypes:
            for name, function in table.items():
                shown = "{} {}".format(compare.short(dtype), name)
                yield context.case(shown, judged, function, dtype, seed, device)
    for name, function in (("softmax", torch.softmax), ("sum", EXACT["sum"])):
        shown = "fp32 gradient of {}".format(name)
        yield context.case(shown, gradient, function, torch.float32, seed, device)
    for name, judged in (("sort", ordered), ("topk", largest), ("argmax", where_largest)):
        for dtype in (torch.float32, torch.float16):
            shown = "{} {}".format(compare.short(dtype), name)
            yield context.case(shown, judged, dtype, seed, device)
    yield context.case("int64 sort", ordered, torch.int64, seed, device)

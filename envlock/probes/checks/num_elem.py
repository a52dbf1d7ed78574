"""num.elem: operations on each element, over types, sizes and layouts.

Adding, multiplying, comparing, choosing and converting are exact, special values included; the
functions are allowed what torch's own tests allow. Sizes lie around the width of a wave front, of
a block and of a vectorised load, where tails are forgotten.
"""

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

SIZES = (1, 63, 64, 65, 257, 65_537)
#: More than one pass of a grid, for the operations that stand for their kind.
LARGE, LARGE_TYPES = 2**20 + 3, (torch.float32, torch.float16, torch.int32)
LARGE_NAMES = ("add", "exp", "less", "where")
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
INTS = (torch.int8, torch.int16, torch.int32, torch.int64)
TYPES = (*FLOATS, *INTS, torch.uint8, torch.bool)

EXACT = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "neg": lambda x, y: -x,
    "abs": lambda x, y: x.abs(),
    # the sign of a zero that two zeros give is nobody's promise
    "maximum": lambda x, y: torch.maximum(x, y) + 0.0,
    "where": lambda x, y: torch.where(x > y, x, y),
    "floor": lambda x, y: x.floor(),
    "relu": lambda x, y: x.relu() + 0.0,
}
FUNCTIONS = {
    "exp": torch.exp,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "sin": torch.sin,
    "div": lambda x: torch.ones_like(x).div(x),
    "sqrt": lambda x: x.abs().sqrt(),
    "rsqrt": lambda x: x.abs().rsqrt(),
    "log": lambda x: x.abs().log(),
}
COMPARED = {"less": torch.lt, "equal": torch.eq, "isnan": lambda x, y: x.isnan()}
WHOLE = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "and": lambda x, y: x & y,
    "xor": lambda x, y: x ^ y,
    "shift": lambda x, y: x << (y & 3),
    "floor_divide": lambda x, y: torch.floor_divide(x, y.abs().clamp(min=1)),
    "remainder": lambda x, y: torch.remainder(x, y.abs().clamp(min=1)),
    "clamp": lambda x, y: x.clamp(-5, 5),
}
SPECIAL = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.0)


def applied(function, tensors, device):
    """On the device and back; inputs must come back as they were."""
    placed = [tensor.to(device) for tensor in tensors]
    copies = [tensor.clone() for tensor in placed]
    found = harness.subject(lambda: function(*placed).cpu())
    rules.unchanged(placed, copies)
    return found


def values(size, dtype, source, tiny=False):
    """Normal numbers, the special ones at the end where there is room for them."""
    made = compare.randn((size,), torch.float32, source) * 3
    special = list(SPECIAL)
    if tiny:
        smallest = torch.finfo(dtype).tiny
        special += [smallest / 4, -smallest / 4, torch.finfo(dtype).max]
    if size > 2 * len(special):
        made = made.to(torch.float64)
        made[-len(special) :] = torch.tensor(special, dtype=torch.float64)
    return made.to(dtype)


def sizes(name, dtype):
    return SIZES + ((LARGE,) if name in LARGE_NAMES and dtype in LARGE_TYPES else ())


def over_sizes(judged, named, dtype, seed):
    """The worst of all sizes."""
    parts = {}
    for size in sizes(named, dtype):
        parts["n={}".format(size)] = judged(size, compare.generator(seed + size))
    return compare.worst(parts)


def exact(named, function, dtype, seed, device):
    def judged(size, source):
        x, y = (values(size, dtype, source, tiny=True) for _ in range(2))
        wanted = function(x.double(), y.double().roll(1)).to(dtype)
        return rules.identical(applied(function, (x, y.roll(1)), device), wanted)

    return over_sizes(judged, named, dtype, seed)


def smooth(named, function, dtype, seed, device):
    def judged(size, source):
        x = values(size, dtype, source)
        return rules.close(applied(function, (x,), device), function(x.double()))

    return over_sizes(judged, named, dtype, seed)


def compared(named, function, dtype, seed, device):
    def judged(size, source):
        x, y = (values(size, dtype, source).round() for _ in range(2))
        wanted = function(x.double(), y.double())
        return rules.identical(applied(function, (x, y), device), wanted)

    return over_sizes(judged, named, dtype, seed)


def whole(named, function, dtype, seed, device):
    """Whole numbers wrap around; the reference has 64 bits."""

    def judged(size, source):
        limit = 100 if dtype == torch.int8 else 2**14
        x, y = (compare.integers((size,), dtype, source, limit) for _ in range(2))
        wanted = function(x.long(), y.long()).to(dtype)
        return rules.identical(applied(function, (x, y), device), wanted)

    return over_sizes(judged, named, dtype, seed)


def converted(dtype, seed, device):
    """From one type to all others; fractions are cut, what is not zero is true."""
    source, parts = compare.generator(seed), {}
    made = torch.rand(4099, generator=source) * 110
    start = made.round() if not dtype.is_floating_point else made
    start = (start > 40).to(dtype) if dtype == torch.bool else start.to(dtype)
    for kind in TYPES:
        wanted = start.double().trunc() if kind in (*INTS, torch.uint8) else start.double()
        found = applied(lambda x, kind=kind: x.to(kind), (start,), device)
        parts[compare.short(kind)] = rules.identical(found, wanted.to(kind))
    return compare.worst(parts)


def strided(dtype, seed, device):
    """Transposed, every second element, broadcast, an odd offset, nothing at all."""
    base = compare.randn((67, 131), dtype, compare.generator(seed))
    placed = base.to(device)
    views = {
        "transposed": lambda x: x.t(),
        "every second": lambda x: x[::2, ::2],
        "broadcast": lambda x: x[:, :1].expand(67, 131),
        "odd offset": lambda x: x.reshape(-1)[3:4000],
        "empty": lambda x: x[:0],
    }
    parts = {}
    for name, view in views.items():
        found = harness.subject(lambda view=view: (view(placed) + view(placed) * 2).cpu())
        exact_sum = view(base).double() + (view(base).double() * 2).to(dtype).double()
        parts[name] = rules.identical(found, exact_sum.to(dtype), name)
        target = torch.full_like(view(base), 7.0)
        found = harness.subject(
            lambda view=view, target=target: target.to(device).copy_(view(placed)).cpu()
        )
        parts[name + " copy"] = rules.identical(found, view(base).contiguous(), name + " copy")
    return compare.worst(parts)


def eight_bits(context, name, seed):
    """float8 keeps the numbers it has and rounds the others as the processor does."""
    if "fp8" in context.unsupported:
        raise harness.Skip("the profile says that this device has no fp8")
    dtype = getattr(torch, name, None)
    if dtype is None:
        raise harness.Skip("this torch has no {}".format(name))
    start = compare.randn((4099,), torch.float32, compare.generator(seed)) * 16
    wanted = start.to(dtype).float()
    found = applied(lambda x: x.to(dtype).float(), (start,), context.device)
    step = (wanted - start).abs() / start.abs().clamp(min=1.0)
    rules.must(float(step.max()) <= 0.125, "the processor's own rounding is off")
    return rules.identical(found, wanted)


def check(context):
    seed, device = rules.seed_of(context), context.device
    for dtype in FLOATS:
        for table, judged in ((EXACT, exact), (FUNCTIONS, smooth), (COMPARED, compared)):
            for name, function in table.items():
                shown = "{} {}".format(compare.short(dtype), name)
                yield context.case(shown, judged, name, function, dtype, seed, device)
        shown = "{} layouts".format(compare.short(dtype))
        yield context.case(shown, strided, dtype, seed, device)
    for dtype in INTS:
        for name, function in WHOLE.items():
            shown = "{} {}".format(compare.short(dtype), name)
            yield context.case(shown, whole, name, function, dtype, seed, device)
    for dtype in TYPES:
        shown = "from {}".format(compare.short(dtype))
        yield context.case(shown, converted, dtype, seed, device)
    for name in ("float8_e4m3fn", "float8_e5m2"):
        yield context.case(name, eight_bits, context, name, seed)

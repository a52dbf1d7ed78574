"""num.large_index: more elements than 32 bits can count.

Offsets that are computed in 32 bits wrap around: the wrong place is read or written, or the device
stops with a memory fault. Memory permitting; every case frees what it took.
"""

import harness
import torch

rules = harness.sibling("_rules")

ELEMENTS = 2**31 + 2**16
INNER, COLUMNS = 2048, 8  # of the product
FULL = {"error": 0.0, "limit": 0.0, "margin": 0.0}


def room(context, wanted):
    """Skips where the case does not fit."""
    if context.on_cpu:
        if "elements" not in context.arguments:
            raise harness.Skip("needs a device: {:.0f} GiB".format(wanted / 2**30))
        return
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info()[0]
    if free < wanted * 1.1:
        text = "needs {:.1f} GiB, {:.1f} are free"
        raise harness.Skip(text.format(wanted / 2**30, free / 2**30))


def all_equal(tensor, value, what):
    """Counted in pieces: the counting is by the device too, but below 32 bits each time."""
    wrong = 0
    for piece in tensor.split(2**28):
        wrong += int((piece != value).sum())
    text = "{} of {} elements are wrong: {}".format(wrong, tensor.numel(), what)
    rules.must(not wrong, text, wrong=wrong)


def written(count, dtype, device):
    """Filled, copied, added to, and the last element by its number."""

    def run():
        whole = torch.zeros(count, dtype=dtype, device=device)
        whole.fill_(3)
        all_equal(whole, 3, "fill")
        copy = whole.clone()
        all_equal(copy, 3, "copy")
        copy.add_(whole)
        all_equal(copy, 6, "add")
        del whole
        copy[count - 1] = 9
        copy[count - 2**16] = 10
        found = copy[count - 2**16].item(), copy[-1].item(), copy[0].item()
        rules.must(found == (10, 9, 6), "elements by their number are {}".format(found))
        places = torch.tensor([0, count // 3, count - 2**16, count - 1], device=device)
        found = copy.index_select(0, places).tolist()
        rules.must(found == [6, 6, 10, 9], "selected elements are {}".format(found))

    harness.subject(run)
    return FULL


def joined(count, device):
    """Two halves put together: the second one begins beyond what 31 bits can count."""

    def run():
        left = torch.full((count - 2**15,), 1, dtype=torch.int8, device=device)
        right = torch.full((2**16,), 2, dtype=torch.int8, device=device)
        whole = torch.cat([left, right])
        del left
        all_equal(whole[: count - 2**15], 1, "cat, first part")
        all_equal(whole[count - 2**15 :], 2, "cat, second part")

    harness.subject(run)
    return FULL


def product(count, device):
    """Each row of the large operand is one number: the result is known."""
    rows = count // INNER + 1
    source = torch.Generator().manual_seed(336)
    right = torch.randint(-1, 2, (INNER, COLUMNS), generator=source)
    numbers = torch.arange(rows) % 5 - 2

    def run():
        left = torch.empty(rows, INNER, dtype=torch.float16, device=device)
        left.copy_(numbers.to(device=device, dtype=torch.float16)[:, None].expand_as(left))
        return (left @ right.to(device=device, dtype=torch.float16)).cpu()

    found = harness.subject(run)
    wanted = (numbers[:, None] * right.sum(0)[None]).to(torch.float16)
    return rules.identical(found, wanted + 0)


def moved(count, device):
    """To the processor and back, more than 32 bits of bytes."""

    def run():
        whole = torch.arange(256, dtype=torch.int16, device=device).repeat(count // 256)
        again = whole.cpu().to(device)
        wrong = sum(int((a != b).sum()) for a, b in zip(whole.split(2**28), again.split(2**28)))
        rules.must(not wrong, "{} elements changed on the way".format(wrong))

    harness.subject(run)
    return FULL


def fits(context, wanted, function, *args):
    room(context, wanted)
    try:
        return function(*args)
    finally:
        if not context.on_cpu:
            torch.cuda.empty_cache()


def check(context):
    count, device = int(context.arguments.get("elements", ELEMENTS)), context.device
    for dtype, size in ((torch.int8, 1), (torch.float16, 2)):
        name = "elements {}".format(str(dtype).replace("torch.", ""))
        wanted = 2 * count * size + 2**30
        yield context.case(name, fits, context, wanted, written, count, dtype, device)
    yield context.case("cat int8", fits, context, 2 * count, joined, count, device)
    yield context.case("product fp16", fits, context, 2 * count, product, count, device)
    yield context.case("copies int16", fits, context, 4 * count, moved, count, device)

"""tri.atomics: additions, a maximum and compare-and-swap from many programs at once.

Everything is in whole numbers: the result does not depend on the order, and has to be exact.
"""

import harness
import torch

common = harness.sibling("_triton")
compare = common.compare

COUNT, BINS, BLOCK = 10_007, 37, 256
PROGRAMS, SLOTS = 512, 19
EXACT = {"error": 0, "limit": 0, "margin": 0.0}


def histogram(kernels, device):
    """Many elements of one block fall into the same bin."""
    values = torch.randint(0, BINS, (COUNT,), generator=compare.generator(common.SEED))
    whole, counts = common.guarded(BINS, torch.int32, device)
    counts.zero_()

    def launch():
        grid = (common.blocks(COUNT, BLOCK),)
        kernels.histogram[grid](values.int().to(device), counts, COUNT, BLOCK=BLOCK)
        return counts.cpu()

    found = harness.subject(launch)
    metrics = compare.exact(found, torch.bincount(values, minlength=BINS).double(), "histogram")
    common.guards_intact(whole)
    return metrics


def sums(kernels, device):
    """A sum of floats that are whole numbers, and the largest of them."""
    values = compare.integers((COUNT,), torch.float32, compare.generator(common.SEED), 50)
    values[COUNT // 2] = 1000
    total = torch.zeros(1, device=device)
    most = torch.zeros(1, dtype=torch.int32, device=device)

    def launch():
        grid = (common.blocks(COUNT, BLOCK),)
        kernels.add_all[grid](values.to(device), total, most, COUNT, BLOCK=BLOCK)
        return total.cpu(), most.cpu()

    found, largest = harness.subject(launch)
    metrics = compare.exact(found, values.double().sum()[None], "sum")
    compare.exact(largest, torch.tensor([1000.0]).double(), "maximum")
    return metrics


def swaps(kernels, device):
    """One program wins each slot, and all the others see it there."""
    slots = torch.zeros(SLOTS, dtype=torch.int32, device=device)
    seen = torch.full((PROGRAMS,), common.NO_VALUE, dtype=torch.int32, device=device)

    def launch():
        kernels.claim[(PROGRAMS,)](slots, seen, SLOTS=SLOTS)
        return slots.cpu().tolist(), seen.cpu().tolist()

    owners, found = harness.subject(launch)
    winners = [number for number, before in enumerate(found) if before == 0]
    if sorted(number % SLOTS for number in winners) != list(range(SLOTS)):
        text = "{} programs won the {} slots".format(len(winners), SLOTS)
        raise harness.Failure(text, error=abs(len(winners) - SLOTS), limit=0)
    if any(owners[number % SLOTS] != number + 1 for number in winners):
        raise harness.Failure("a slot does not hold the program that won it", **EXACT)
    wrong = [n for n, before in enumerate(found) if before not in (0, owners[n % SLOTS])]
    if wrong:
        text = "{} programs saw something else than the winner".format(len(wrong))
        raise harness.Failure(text, error=len(wrong), limit=0)
    return dict(EXACT)


def check(context):
    kernels = common.prepare(context, "_kernels_more")
    device = context.device
    yield context.case("add int32 {} in {}".format(COUNT, BINS), histogram, kernels, device)
    yield context.case("add fp32 and max int32 {}".format(COUNT), sums, kernels, device)
    yield context.case("compare and swap {} in {}".format(PROGRAMS, SLOTS), swaps, kernels, device)

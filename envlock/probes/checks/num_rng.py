"""num.rng: random numbers can be repeated, differ where they should, and are spread as claimed."""

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

COUNT = 2**22
BINS = 256
DROPPED = 0.17
#: Also a few: a kernel that gives each thread the same start shows at the first numbers.
FEW = 4099


def drawn(make, seed, device):
    """Numbers of a seed, back on the processor in double precision."""

    def run():
        torch.manual_seed(seed)
        return make(device).cpu()

    return harness.subject(run)


KINDS = {
    "randn": lambda device: torch.randn(FEW, device=device),
    "rand": lambda device: torch.rand(FEW, device=device),
    "randint": lambda device: torch.randint(0, 2**31, (FEW,), device=device),
    "randperm": lambda device: torch.randperm(FEW, device=device),
    "bernoulli": lambda device: torch.full((FEW,), 0.5, device=device).bernoulli(),
    "dropout": lambda device: F.dropout(torch.ones(FEW, device=device), DROPPED),
    "randn fp16": lambda device: torch.randn(FEW, device=device, dtype=torch.float16),
}


def repeated(make, seed, device):
    """The same seed gives the same, another one and the next call give others; the state that was
    kept can be gone back to."""
    first, again = drawn(make, seed, device), drawn(make, seed, device)
    other = drawn(make, seed + 1, device)
    rules.must(torch.equal(first, again), "the same seed gives other numbers")
    rules.must(not torch.equal(first, other), "another seed gives the same numbers")
    place = torch.cuda if device != "cpu" else torch

    def onwards():
        torch.manual_seed(seed)
        make(device)
        state = place.get_rng_state()
        following = make(device).cpu()
        place.set_rng_state(state)
        return following, make(device).cpu()

    following, back = harness.subject(onwards)
    rules.must(not torch.equal(first, following), "the next numbers are the same again")
    rules.must(torch.equal(following, back), "a kept state does not give the same numbers")
    return {"error": 0.0, "limit": 0.0, "margin": 0.0}


def spread(values, mean, var, fourth):
    """Mean, variance, and how much a number says about the next, in standard deviations."""
    count, centred = values.numel(), values - mean
    following = float((centred[:-1] * centred[1:]).mean()) / var
    halves = centred[: count // 2] * centred[count // 2 : count // 2 * 2]
    return {
        "mean": rules.statistic(float(values.mean()), mean, (var / count) ** 0.5, "mean"),
        "variance": rules.statistic(
            float((centred**2).mean()), var, ((fourth - var * var) / count) ** 0.5, "variance"
        ),
        "next": rules.statistic(following, 0.0, count**-0.5, "correlation with the next"),
        "half": rules.statistic(
            float(halves.mean()) / var, 0.0, (count // 2) ** -0.5, "correlation of the halves"
        ),
    }


def even(shares, what):
    """All bins are hit equally often: chi-square, as a normal number."""
    expected = float(shares.sum()) / shares.numel()
    free = shares.numel() - 1
    chi = float(((shares - expected) ** 2 / expected).sum())
    return rules.statistic(chi, free, (2 * free) ** 0.5, what)


def binned(uniform):
    return torch.histc(uniform.float(), BINS, 0.0, 1.0).double()


def normal(seed, device):
    values = drawn(lambda d: torch.randn(COUNT, device=d), seed, device).double()
    rules.must(bool(values.isfinite().all()), "a number is not finite")
    parts = spread(values, 0.0, 1.0, 3.0)
    parts["bins"] = even(binned(torch.special.ndtr(values)), "spread over the bins")
    rules.must(float(values.abs().max()) < 7.0, "a number is too far out")
    return compare.worst(parts)


def uniform(seed, device):
    values = drawn(lambda d: torch.rand(COUNT, device=d), seed, device).double()
    inside = bool(((values >= 0) & (values < 1)).all())
    rules.must(inside, "a number is outside of [0, 1)")
    parts = spread(values, 0.5, 1 / 12, 1 / 80)
    parts["bins"] = even(binned(values), "spread over the bins")
    return compare.worst(parts)


def whole(seed, device):
    values = drawn(lambda d: torch.randint(0, BINS, (COUNT,), device=d), seed, device)
    inside = bool(((values >= 0) & (values < BINS)).all())
    rules.must(inside, "a number is outside of the range")
    return even(torch.bincount(values, minlength=BINS).double(), "spread over the numbers")


def order(seed, device):
    values = drawn(lambda d: torch.randperm(FEW * 17, device=d), seed, device)
    rules.must(torch.equal(values.sort()[0], torch.arange(FEW * 17)), "not every number once")
    gone = float((values == torch.arange(FEW * 17)).double().sum())
    return rules.statistic(gone, 1.0, 1.0, "numbers that stayed in their place")


def dropped(seed, device):
    """A share is zero, the rest is scaled so that the mean stays."""
    values = drawn(lambda d: F.dropout(torch.ones(COUNT, device=d), DROPPED), seed, device)
    share = float((values == 0).double().mean())
    kept = values[values != 0].double()
    rules.must(bool(((kept * (1 - DROPPED) - 1).abs() < 1e-6).all()), "what is kept is not scaled")
    sigma = (DROPPED * (1 - DROPPED) / COUNT) ** 0.5
    return rules.statistic(share, DROPPED, sigma, "share that is dropped")


def chosen(seed, device):
    """Choices by weight."""
    weights = torch.tensor([1.0, 2.0, 0.0, 5.0])
    count = 2**18
    values = drawn(
        lambda d: torch.multinomial(weights.to(d), count, replacement=True), seed, device
    )
    hits = torch.bincount(values, minlength=4).double()
    rules.must(float(hits[2]) == 0, "a choice without weight was made")
    parts = {}
    for number, weight in enumerate((0.125, 0.25, 0.0, 0.625)):
        if weight:
            sigma = (weight * (1 - weight) * count) ** 0.5
            what = "choice {}".format(number)
            parts[what] = rules.statistic(float(hits[number]), weight * count, sigma, what)
    return compare.worst(parts)


SPREAD = {
    "randn": normal,
    "rand": uniform,
    "randint": whole,
    "randperm": order,
    "dropout": dropped,
    "multinomial": chosen,
}


def check(context):
    seed, device = rules.seed_of(context), context.device
    for name, make in KINDS.items():
        yield context.case("repeat " + name, repeated, make, seed, device)
    for name, judged in SPREAD.items():
        yield context.case("spread " + name, judged, seed, device)

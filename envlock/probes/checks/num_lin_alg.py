"""num.lin_alg: solving, factorising, Fourier transforms, judged by what is left over."""

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

SIZES = (64, 257)
DTYPES = (torch.float32, torch.float64)
FACTOR = 10.0  # times size and rounding of the type


def matrix(size, dtype, seed, positive=False):
    made = compare.randn((size, size), torch.float64, compare.generator(seed))
    made = made.double() + (2 * size**0.5) * torch.eye(size, dtype=torch.float64)
    return (made @ made.t() / size if positive else made).to(dtype)


def left_over(rest, norm, size, dtype, what):
    limit = FACTOR * size * torch.finfo(dtype).eps
    error = float(rest.norm()) / norm
    metrics = {"error": error, "limit": limit, "margin": round(error / limit, 4)}
    text = "{} leaves {:.3g}, allowed is {:.3g}".format(what, error, limit)
    rules.must(error <= limit, text, **metrics)  # NaN is not
    return metrics


def solve(size, dtype, seed, device):
    a, b = matrix(size, dtype, seed), compare.randn((size, 3), dtype, compare.generator(seed + 1))
    x = harness.subject(lambda: torch.linalg.solve(a.to(device), b.to(device)).cpu()).double()
    norm = float(a.double().norm() * x.norm())
    return left_over(a.double() @ x - b.double(), norm, size, dtype, "solving")


def cholesky(size, dtype, seed, device):
    a = matrix(size, dtype, seed, positive=True)
    found = harness.subject(lambda: torch.linalg.cholesky(a.to(device)).cpu()).double()
    rules.must(not bool(found.triu(1).any()), "the factor is not triangular")
    return left_over(
        found @ found.t() - a.double(), float(a.double().norm()), size, dtype, "factor"
    )


def orthogonal(found, size, dtype, what):
    rest = found.t() @ found - torch.eye(found.shape[1], dtype=torch.float64)
    return left_over(rest, size**0.5, size, dtype, what)


def qr(size, dtype, seed, device):
    a = matrix(size, dtype, seed)
    found = harness.subject(lambda: [t.cpu() for t in torch.linalg.qr(a.to(device))])
    q, r = (item.double() for item in found)
    rest = left_over(q @ r - a.double(), float(a.double().norm()), size, dtype, "product")
    return compare.worst({"product": rest, "q": orthogonal(q, size, dtype, "q")})


def svd(size, dtype, seed, device):
    a = matrix(size, dtype, seed)
    found = harness.subject(lambda: [t.cpu() for t in torch.linalg.svd(a.to(device))])
    u, s, v = (item.double() for item in found)
    rules.must(bool((s[:-1] >= s[1:]).all()) and float(s[-1]) >= 0, "values are not in order")
    norm = float(a.double().norm())
    rest = left_over(u @ torch.diag(s) @ v - a.double(), norm, size, dtype, "product")
    parts = {"product": rest, "u": orthogonal(u, size, dtype, "u")}
    return compare.worst({**parts, "v": orthogonal(v.t(), size, dtype, "v")})


def fourier(size, dtype, seed, device):
    """Against the sum that defines it, and there and back."""
    x = compare.randn((3, size), dtype, compare.generator(seed))
    found = harness.subject(lambda: torch.fft.fft(x.to(device)).cpu())
    back = harness.subject(lambda: torch.fft.ifft(torch.fft.fft(x.to(device))).real.cpu())
    step = torch.arange(size, dtype=torch.float64)
    angles = -2 * torch.pi * (step[:, None] * step[None] % size) / size
    wanted = torch.complex(x.double() @ angles.cos(), x.double() @ angles.sin())
    rest = (found.to(torch.complex128) - wanted).abs()
    parts = {
        "there": left_over(rest, float(wanted.abs().norm()), 10, dtype, "transform"),
        "back": left_over(back.double() - x.double(), float(x.norm()), 10, dtype, "there and back"),
    }
    return compare.worst(parts)


def check(context):
    seed, device = rules.seed_of(context), context.device
    for dtype in DTYPES:
        shown = compare.short(dtype)
        for judged in (solve, cholesky, qr, svd):
            for size in SIZES:
                name = "{} {} {}".format(shown, judged.__name__, size)
                yield context.case(name, judged, size, dtype, seed, device)
        for size in (1000, 1024):
            yield context.case("{} fft {}".format(shown, size), fourier, size, dtype, seed, device)

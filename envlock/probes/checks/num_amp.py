"""num.amp: automatic mixed precision chooses types as promised, and the scaler does its work."""

import math

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

DTYPES = (torch.bfloat16, torch.float16)
SCALE = 1024.0
#: Computed in the short type, in float32.
LOW = {
    "matmul": lambda x, w: x @ w,
    "linear": lambda x, w: F.linear(x, w.t()),
    "conv": lambda x, w: F.conv2d(x[None, None], w[None, None, :3, :3]),
}
FULL = {
    "softmax": lambda x, w: x.softmax(-1),
    "loss": lambda x, w: F.mse_loss(x, w),
    "norm": lambda x, w: torch.linalg.vector_norm(x),
}
#: torch keeps these in float32 on devices; on a processor they follow their inputs.
DEVICE_ONLY = ("softmax", "norm")


def types(dtype, seed, device):
    source, wrong = compare.generator(seed), []
    x, w = (compare.randn((32, 32), torch.float32, source).to(device) for _ in range(2))
    for table, wanted in ((LOW, dtype), (FULL, torch.float32)):
        for name, function in table.items():
            if name in DEVICE_ONLY and device == "cpu":
                continue

            def run(function=function):
                with torch.autocast(device, dtype=dtype):
                    return function(x, w).dtype

            found = harness.subject(run)
            if found != wanted:
                wrong.append("{} in {}".format(name, found))
    rules.must(not wrong, "wrong types: " + ", ".join(wrong), wrong=wrong)
    return {"error": 0.0, "limit": 0.0, "margin": 0.0}


def layers(seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        parts = torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 32)
        return torch.nn.Sequential(*parts)


def scaler(device):
    return torch.amp.GradScaler(device, init_scale=SCALE, growth_interval=2)


def gradients(dtype, seed, device):
    """Those of float64, as far as the short type can tell; the scale is out of them again."""
    source = compare.generator(seed)
    x, y = compare.randn((48, 64), torch.float32, source), torch.randint(0, 32, (48,))
    golden = layers(seed).double()
    F.cross_entropy(golden(x.double()), y).backward()

    def run():
        model = layers(seed).to(device)
        grown = scaler(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.autocast(device, dtype=dtype):
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
        grown.scale(loss).backward()
        grown.unscale_(optimizer)
        return [p.grad.cpu() for p in model.parameters()]

    parts = {}
    for number, (found, p) in enumerate(zip(harness.subject(run), golden.parameters())):
        limit = 3e-2 * float(p.grad.abs().max())
        fro = 2e-2 if dtype == torch.bfloat16 else 4e-3
        name = "gradient {}".format(number)
        parts[name] = compare.within(found, p.grad, limit, fro, name)
    return compare.worst(parts)


def overflow(seed, device):
    """An infinite gradient: the step is left out and the scale halves; then it grows again."""

    def run():
        model = layers(seed).to(device)
        grown, optimizer = scaler(device), torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.ones(4, 64, device=device)
        before = [p.detach().clone() for p in model.parameters()]
        scales, moved = [], []
        for factor in (1.0, math.inf, 1.0, 1.0):
            optimizer.zero_grad()
            grown.scale(model(x).square().mean() * factor).backward()
            grown.step(optimizer)
            grown.update()
            now = [p.detach().clone() for p in model.parameters()]
            moved.append(any(not torch.equal(a, b) for a, b in zip(before, now)))
            before, _ = now, scales.append(grown.get_scale())
        return scales, moved

    scales, moved = harness.subject(run)
    rules.must(moved == [True, False, True, True], "steps taken: {}".format(moved))
    wanted = [SCALE, SCALE / 2, SCALE / 2, SCALE]
    rules.must(scales == wanted, "scales are {}, not {}".format(scales, wanted))
    return {"error": 0.0, "limit": 0.0, "margin": 0.0, "scales": scales}


def check(context):
    seed, device = rules.seed_of(context), context.device
    for dtype in DTYPES:
        shown = compare.short(dtype)
        yield context.case(shown + " types", types, dtype, seed, device)
        yield context.case(shown + " gradients", gradients, dtype, seed, device)
    yield context.case("overflow", overflow, seed, device)

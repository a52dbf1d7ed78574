"""num.optim: optimizers in each of their implementations do the same three steps."""

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

SHAPES = ((64, 33), (129,), (1,), (257, 65))
STEPS = 3
MOVED = 0.99
LIMIT = 1e-6  # of 1 + |parameter|
#: name -> (class, options, implementations)
KINDS = {
    "SGD": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "Adam": (torch.optim.Adam, {"lr": 0.01}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
}
WAYS = {
    "one by one": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


def stepped(kind, options, start, slopes, device):
    parameters = [torch.nn.Parameter(p.clone().to(device)) for p in start]
    optimizer = kind(parameters, **options)
    for grads in slopes:
        for parameter, grad in zip(parameters, grads):
            parameter.grad = grad.to(device=device, dtype=parameter.dtype)
        optimizer.step()
    return [p.detach().cpu() for p in parameters]


def compared(kind, options, way, seed, device):
    source = compare.generator(seed)
    start = [compare.randn(shape, torch.float32, source) for shape in SHAPES]
    slopes = [[compare.randn(s, torch.float32, source) for s in SHAPES] for _ in range(STEPS)]
    plain = {**options, **WAYS["one by one"]}
    golden = stepped(kind, plain, [p.double() for p in start], slopes, "cpu")
    found = harness.subject(stepped, kind, {**options, **WAYS[way]}, start, slopes, device)
    error = 0.0
    for before, now, right in zip(start, found, golden):
        # not every number: three steps may by chance end where they began
        moved = float((now != before).double().mean())
        rules.must(moved > MOVED, "only {:.0%} of a parameter were moved".format(moved))
        error = max(error, float(((now.double() - right).abs() / (1 + right.abs())).max()))
    metrics = {"error": error, "limit": LIMIT, "margin": round(error / LIMIT, 4)}
    rules.must(error <= LIMIT, "parameters are off by {:.3g}".format(error), **metrics)
    return metrics


def check(context):
    seed, device = rules.seed_of(context), context.device
    for name, (kind, options) in KINDS.items():
        for way in WAYS:
            shown = "{} {}".format(name, way)
            yield context.case(shown, compared, kind, options, way, seed, device)

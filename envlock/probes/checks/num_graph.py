"""num.graph: a captured graph computes what the calls it was captured from compute."""

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

REPLAYS, SIZE = 10, 256


def block(x, w):
    return F.gelu(x @ w)


def replayed(dtype, seed, device):
    """The captured input is written anew before each replay."""
    source = compare.generator(seed)
    inputs = [compare.randn((SIZE, SIZE), dtype, source).to(device) for _ in range(REPLAYS)]
    w = compare.randn((SIZE, SIZE), dtype, source).to(device)
    place, side = inputs[0].clone(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            block(place, w)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = block(place, w)
    pairs = []
    for x in inputs:
        place.copy_(x)
        out.fill_(float("nan"))
        graph.replay()
        pairs.append((out.cpu(), block(x, w).cpu()))
    return pairs


def judged(dtype, seed, context):
    if context.on_cpu:
        raise harness.Skip("a processor has no graphs")
    parts = {}
    for number, (found, eager) in enumerate(harness.subject(replayed, dtype, seed, context.device)):
        parts["replay {}".format(number)] = rules.identical(found, eager)
    return compare.worst(parts)


def check(context):
    seed = rules.seed_of(context)
    for dtype in (torch.float32, torch.float16):
        name = "{} {} replays".format(compare.short(dtype), REPLAYS)
        yield context.case(name, judged, dtype, seed, context)

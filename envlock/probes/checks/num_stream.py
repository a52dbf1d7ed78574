"""num.stream: work on several streams keeps the order that events give it."""

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

ROUNDS, COUNT, BUSY = 200, 2**20, 1024


def ordered(seed, device):
    """One stream makes, the other one waits for it and uses: exact in every round."""
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    busy = torch.randn(BUSY, BUSY, device=device)
    torch.cuda.synchronize()
    wrong = 0
    for number in range(ROUNDS):
        value, made = float(number % 97), torch.cuda.Event()
        with torch.cuda.stream(first):
            busy @ busy  # so that the writing comes late
            data = torch.full((COUNT,), value, device=device)
            made.record(first)
        with torch.cuda.stream(second):
            second.wait_event(made)
            data.record_stream(second)
            result = data * 2 + 1
        del data
        second.synchronize()
        wrong += int((result != value * 2 + 1).sum())
    return wrong


def copied(seed, device):
    """Pinned memory to the device and back, asynchronously, while another stream computes."""
    source = compare.generator(seed)
    start = torch.randint(-1000, 1000, (COUNT,), generator=source, dtype=torch.int32).pin_memory()
    stream, wrong = torch.cuda.Stream(), 0
    for _ in range(ROUNDS // 4):
        back = torch.empty_like(start, pin_memory=True)
        with torch.cuda.stream(stream):
            there = start.to(device, non_blocking=True)
            back.copy_(there + 1, non_blocking=True)
        stream.synchronize()
        wrong += int((back != start + 1).sum())
    return wrong


def judged(function, seed, context):
    if context.on_cpu:
        raise harness.Skip("a processor has no streams")
    wrong = harness.subject(function, seed, context.device)
    rules.must(not wrong, "{} elements are wrong".format(wrong), wrong=wrong)
    return {"error": 0.0, "limit": 0.0, "margin": 0.0, "rounds": ROUNDS}


def check(context):
    seed = rules.seed_of(context)
    for name, function in (("order", ordered), ("copies", copied)):
        yield context.case(name, judged, function, seed, context)

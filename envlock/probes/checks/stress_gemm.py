"""stress.gemm: the same product again and again, for many minutes; every answer is the first one.

Finds what heat and power bring out: a bit that flips once in a thousand products, and clocks that
sink. Argument: seconds.
"""

import time

import harness
import torch

compare = harness.sibling("_compare")
timing = harness.sibling("_timing")

SEED = 336
SIZE, CPU_SIZE = 8192, 256
#: Products between two looks at the clock and at the number of wrong answers.
ROUND = 50
#: Percent a minute: a slope beyond it is a device that gets too hot.
SINKING = 2.0


def burn(context, seconds):
    size = CPU_SIZE if context.on_cpu else SIZE
    left = timing.randn((size, size), torch.bfloat16, context.device, SEED)
    right = timing.randn((size, size), torch.bfloat16, context.device, SEED + 1)
    out = torch.empty_like(left)
    torch.matmul(left, right, out=out)
    first, wrong = out.clone(), torch.zeros((), dtype=torch.int64, device=context.device)
    started, rounds = time.perf_counter(), []
    clock = timing.Clock(context.on_cpu)
    while not rounds or rounds[-1][0] < seconds:
        found, _ = clock.samples(lambda: again(left, right, out, first, wrong), ROUND, 1, out.zero_)
        rounds.append((time.perf_counter() - started, sum(found) / ROUND))
        if int(wrong):
            text = "{} of {} elements changed after {:.0f} s"
            count, passed = len(rounds) * ROUND * size * size, rounds[-1][0]
            raise harness.Failure(text.format(int(wrong), count, passed), wrong=int(wrong))
    return verdict(rounds, 2 * size**3)


def again(left, right, out, first, wrong):
    torch.matmul(left, right, out=out)
    wrong.add_((out != first).sum())


def verdict(rounds, flops):
    """Figures of the rounds; the speed is that of product and comparison together."""
    rates = [flops / seconds / 1e12 for _, seconds in rounds]
    settled = rates[len(rates) // 2 :]
    metrics = timing.statistics_of([seconds for _, seconds in rounds], ROUND)
    minutes = max(rounds[-1][0] - rounds[len(rounds) // 2][0], 1.0) / 60
    slope = 100 * (settled[-1] / settled[0] - 1) / minutes
    metrics.update(products=len(rounds) * ROUND, wrong=0, slope_percent_a_minute=round(slope, 3))
    if slope < -SINKING and minutes > 1:
        metrics["warning"] = "it gets slower by {:.1f} % a minute".format(-slope)
    return metrics


def check(context):
    timing.describe(context)
    seconds = context.arguments.get("seconds", 900)
    yield context.case("gemm bf16, every answer equal", burn, context, seconds)

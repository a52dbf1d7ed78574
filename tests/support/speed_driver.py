# mypy: ignore-errors
"""Runs performance checks with faults put in. Run by a Python that has torch.

usage: speed_driver.py PROBES JOBS ANSWER

JOBS is a JSON list of ``[check, fault]``; ANSWER gets the cases of each.
"""

import json
import os
import sys
import time
from contextlib import ExitStack
from unittest import mock

PROBES, JOBS, ANSWER = sys.argv[1:4]
sys.path.insert(0, PROBES)

import harness  # noqa: E402
import torch  # noqa: E402

CHECKS = os.path.join(PROBES, "checks")
timing = harness.sibling("_timing")
MATMUL, ADD, COPY = torch.matmul, torch.add, torch.Tensor.copy_
ATTEND = torch.nn.functional.scaled_dot_product_attention
SAMPLES = timing.Clock.samples


class Event:
    """An event of a device that is the processor; ``fault`` is what a broken runtime answers."""

    fault = ""

    def __init__(self, enable_timing):
        self.at = 0.0

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, last):
        wrong = {"zero": 0.0, "negative": -1.78, "nan": float("nan"), "endless": float("inf")}
        passed = 1000 * (last.at - self.at)
        return wrong.get(self.fault, 3 * passed if self.fault == "threefold" else passed)


def wrong_rows(left, right, out):
    MATMUL(left, right, out=out)
    out[::2] = 0


def one_nan(left, right, out):
    MATMUL(left, right, out=out)
    out[7, 9] = float("nan")


def flipping(left, right, out):
    """Right the first time; later one element in a great many calls is another one."""
    flipping.calls += 1
    MATMUL(left, right, out=out)
    if flipping.calls == 40:
        out[3, 5] = -out[3, 5]


flipping.calls = 0


def half_copied(end, start, **more):
    COPY(end, start)
    if end.dim() == 1 and end.numel() > 4096 and start.numel() == end.numel():
        end[end.numel() // 2 :] = 1
    return end


def attention_without(name):
    def attend(q, k, v, is_causal):
        if name == "mask":
            return ATTEND(q, k, v)
        return ATTEND(q, k, v, is_causal=True) * (0 if name == "work" else 1)

    return attend


class WrongGradient(torch.autograd.Function):
    """Attention that is right forward; the gradient of q is off by a tenth."""

    @staticmethod
    def forward(context, q):
        return q.clone()

    @staticmethod
    def backward(context, grad):
        return grad * 1.1


def wrong_gradient(q, k, v, is_causal):
    return ATTEND(WrongGradient.apply(q), k, v, is_causal=True)


def nothing(*arguments, **more):
    return None


PATCHES = {
    "not-run": (torch, "matmul", nothing),
    "wrong-rows": (torch, "matmul", wrong_rows),
    "one-nan": (torch, "matmul", one_nan),
    "flips": (torch, "matmul", flipping),
    "half-copied": (torch.Tensor, "copy_", half_copied),
    "not-added": (torch, "add", nothing),
    "not-launched": (torch.Tensor, "add_", nothing),
    "no-mask": (torch.nn.functional, "scaled_dot_product_attention", attention_without("mask")),
    "zeros": (torch.nn.functional, "scaled_dot_product_attention", attention_without("work")),
    "wrong-dq": (torch.nn.functional, "scaled_dot_product_attention", wrong_gradient),
    "flat-numbers": (torch, "randn", lambda shape, **more: torch.zeros(shape, dtype=more["dtype"])),
}


def one_copy(context, way):
    """The copies of a device, with the processor in its place."""
    copy = harness.sibling("perf_copy")
    yield context.case(way, copy.one_copy, context, way, "pageable", 1)


def events(context, fault):
    """A product timed with events, cold and hot."""
    gemm = harness.sibling("perf_gemm")
    Event.fault = fault
    quick = dict(timing.DEVICE, warm=0.05, measure=0.02, most=0.2, settle=0.2, samples=5)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(timing, "DEVICE", quick))
        stack.enter_context(mock.patch.object(timing, "FLUSH_BYTES", 1 << 20))
        for name, value in (
            ("Event", Event),
            ("synchronize", nothing),
            ("empty_cache", nothing),
            ("reset_peak_memory_stats", nothing),
            ("max_memory_allocated", lambda: 4096),
        ):
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        context.device = torch.device("cpu")  # not the word: a device in the eyes of the check
        for cold in (False, True):
            name = "cold" if cold else "hot"
            yield context.case(name, gemm.one_product, context, torch.float32, 256, cold)


def cases(check, fault):
    arguments = {"sizes": [256], "dtypes": ["fp32"]} if check == "perf_gemm" else {}
    arguments.update({"kernel": "sdpa", "seconds": 0.01})
    if check == "perf_memory":
        arguments["sizes"] = [1]
    context = harness.Context({"device": "cpu", "arguments": arguments})
    if check == "events":
        return list(events(context, fault))
    with ExitStack() as stack:
        if fault:
            stack.enter_context(mock.patch.object(*PATCHES[fault]))
        if check == "copy":
            return [case for way in ("h2d", "d2h") for case in one_copy(context, way)]
        module = harness.load(os.path.join(CHECKS, check + ".py"), "envlock_check")
        return list(module.check(context))


def main():
    with open(JOBS, encoding="utf-8") as file:
        jobs = json.load(file)
    answers = [cases(check, fault) for check, fault in jobs]
    with open(ANSWER, "w", encoding="utf-8") as file:
        json.dump(answers, file, allow_nan=False)


main()

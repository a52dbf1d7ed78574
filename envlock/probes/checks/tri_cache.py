"""tri.cache: compiled kernels are kept and found again, and are those of the source.

Three rounds in processes of their own, with one cache: two at once with nothing in it, one that
finds everything, one with the same kernel changed. A stale or garbled cache gives wrong numbers
and says nothing.
"""

import os
import subprocess
import sys
import tempfile

import harness

#: Seconds for a process: the import, the device, one compilation.
PATIENCE = 120.0
_SOURCE = """
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * {factor} + 1, mask=mask)


x = torch.arange(4099, dtype=torch.int32).to("cuda")
out = torch.full_like(x, -77)
scale[(33,)](x, out, 4099, BLOCK=128)
wrong = int((out.cpu() != torch.arange(4099, dtype=torch.int32) * {factor} + 1).sum())
with open(sys.argv[1], "w") as file:
    file.write(str(wrong))
"""


class Round:
    """Processes that run the kernel with one cache.

    folder: holds the script, always at the same place, the cache and the answers.
    """

    def __init__(self, folder):
        self.folder = folder
        self.cache = os.path.join(folder, "cache")
        self.script = os.path.join(folder, "kernel.py")
        os.mkdir(self.cache)

    def run(self, factor, count=1):
        """Numbers of wrong elements, one for each process."""
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(_SOURCE.format(factor=factor))
        env = dict(os.environ, TRITON_CACHE_DIR=self.cache)
        answers = [os.path.join(self.folder, "answer{}".format(n)) for n in range(count)]
        for answer in answers:
            if os.path.exists(answer):
                os.unlink(answer)
        command = [sys.executable, "-s", self.script]
        processes = [subprocess.Popen([*command, answer], env=env) for answer in answers]
        codes = []
        for process in processes:
            try:
                codes.append(process.wait(PATIENCE))
            except subprocess.TimeoutExpired:
                for one in processes:
                    one.kill()
                raise harness.Failure("no end after {:.0f} s".format(PATIENCE)) from None
        return [self.answer(answer, code) for answer, code in zip(answers, codes)]

    def answer(self, path, code):
        if code != 0 or not os.path.exists(path):
            raise harness.Failure("a process ended with {} and no answer".format(code))
        with open(path, encoding="utf-8") as file:
            return int(file.read())

    def kept(self):
        """Files in the cache, with their time of change."""
        found = {}
        for folder, _, names in os.walk(self.cache):
            for name in names:
                path = os.path.join(folder, name)
                found[os.path.relpath(path, self.cache)] = os.stat(path).st_mtime_ns
        return found


def judged(wrong, **more):
    if any(wrong):
        text = "{} of 4099 elements are wrong".format(max(wrong))
        raise harness.Failure(text, error=max(wrong), limit=0)
    return {"error": 0, "limit": 0, "margin": 0.0, **more}


def cold(one):
    metrics = judged(one.run(3, count=2))
    files = len(one.kept())
    if not files:
        raise harness.Failure("nothing was kept in the cache: nothing was compiled")
    return dict(metrics, files=files)


def warm(one):
    before = one.kept()
    metrics = judged(one.run(3))
    written = [name for name, time in one.kept().items() if before.get(name) != time]
    if written:
        metrics["warning"] = "compiled again: {} files were written".format(len(written))
    return metrics


def changed(one):
    """At the same place, under the same name, but another kernel."""
    return judged(one.run(5))


def check(context):
    if context.on_cpu:
        raise harness.Skip("nothing is compiled for a processor")
    with tempfile.TemporaryDirectory() as folder:
        one = Round(folder)
        yield context.case("two at once, cold", cold, one)
        yield context.case("warm", warm, one)
        yield context.case("changed source", changed, one)

"""torch.compile: whether it can be asked here, and whether it really compiled."""

import os
import shutil

import harness
import torch

COMPILERS = ("c++", "g++", "clang++")


def ready(context):
    """A skip on a processor without a compiler: what it builds there is C++.

    On a device it builds Triton kernels, and everything that this needs is part of the stack.
    """
    if not context.on_cpu or os.environ.get("CXX"):
        return
    if not any(shutil.which(name) for name in COMPILERS):
        raise harness.Skip("no C++ compiler for torch.compile on the processor")


def compiled(function, **options):
    """One whole graph: where a part falls back to eager, this raises."""
    return torch.compile(function, fullgraph=True, **options)


def forget():
    """Nothing of an earlier case is used again."""
    import torch._dynamo
    import torch._inductor.metrics

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._inductor.metrics.reset()


def built():
    """Graphs that were captured, breaks of them, and kernels that were really generated."""
    import torch._dynamo.utils as utils
    import torch._inductor.metrics as metrics

    counters = utils.counters
    return {
        "graphs": int(counters["stats"].get("unique_graphs", 0)),
        "breaks": int(sum(counters["graph_break"].values())),
        "kernels": int(metrics.generated_kernel_count),
    }

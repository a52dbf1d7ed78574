"""perf.quick: one product, one copy each way, the device's memory: is the order of size right?"""

import harness
import torch

timing = harness.sibling("_timing")
gemm = harness.sibling("perf_gemm")
copy = harness.sibling("perf_copy")
memory = harness.sibling("perf_memory")


def check(context):
    timing.describe(context)
    small = context.on_cpu
    size, moved = (gemm.CPU_SIZES[0], memory.CPU_SIZES[0]) if small else (4096, 256)
    kind = torch.float32 if small else torch.float16
    name = "gemm {} {}".format(gemm.compare.short(kind), size)
    yield context.case(name, gemm.one_product, context, kind, size, False)
    yield context.case("copy {} MiB".format(moved), memory.copied, context, moved)
    for way in () if small else copy.WAYS:
        name = "{} pinned {} MiB".format(way, moved)
        yield context.case(name, copy.one_copy, context, way, "pinned", moved)
    yield context.case("launch", memory.launched, context)

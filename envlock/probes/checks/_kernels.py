"""Triton kernels. Loaded only after the choice between device and interpreter was made."""

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax(in_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(in_ptr + row * columns + offsets, mask=mask, other=-float("inf"))
    values = values.to(tl.float32)
    raised = tl.exp(values - tl.max(values, axis=0))
    tl.store(out_ptr + row * columns + offsets, raised / tl.sum(raised, axis=0), mask=mask)

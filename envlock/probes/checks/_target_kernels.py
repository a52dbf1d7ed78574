"""Kernels that are compiled and never run."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    total = tl.load(x + place, mask=inside) + tl.load(y + place, mask=inside)
    tl.store(out + place, total, mask=inside)


@triton.jit
def dot(x, y, out, SIDE: tl.constexpr):
    row = tl.arange(0, SIDE)[:, None]
    column = tl.arange(0, SIDE)[None, :]
    place = row * SIDE + column
    tl.store(out + place, tl.dot(tl.load(x + place), tl.load(y + place)))

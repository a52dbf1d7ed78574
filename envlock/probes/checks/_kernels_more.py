"""More Triton kernels: products, norms, atomics, scans, attention, far offsets.

Loaded only after the choice between device and interpreter was made.
"""

import triton
import triton.language as tl


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, rows, columns, inner,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ACC: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=ACC)
    for start in range(0, inner, BK):
        k = start + tl.arange(0, BK)
        a_mask = (row[:, None] < rows) & (k[None, :] < inner)
        b_mask = (k[:, None] < inner) & (column[None, :] < columns)
        a = tl.load(a_ptr + row[:, None] * inner + k[None, :], mask=a_mask, other=0)
        b = tl.load(b_ptr + k[:, None] * columns + column[None, :], mask=b_mask, other=0)
        total += tl.dot(a, b, input_precision=PRECISION)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    tl.store(c_ptr + row[:, None] * columns + column[None, :], total, mask=mask)


@triton.jit
def norm(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, scale_ptr, columns, EPS: tl.constexpr,
         BLOCK: tl.constexpr):  # fmt: skip
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    off = tl.where(mask, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(off * off, axis=0) / columns + EPS)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * columns + offsets, off * scale * w + b, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(scale_ptr + row, scale)


@triton.jit
def norm_rows(dy_ptr, x_ptr, w_ptr, mean_ptr, scale_ptr, dx_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    mean, scale = tl.load(mean_ptr + row), tl.load(scale_ptr + row)
    normal = tl.where(mask, (x - mean) * scale, 0.0)
    through = dy * w
    first = tl.sum(normal * through, axis=0) / columns
    second = tl.sum(through, axis=0) / columns
    tl.store(dx_ptr + row * columns + offsets, (through - normal * first - second) * scale,
             mask=mask)  # fmt: skip


@triton.jit
def norm_columns(
    dy_ptr, x_ptr, mean_ptr, scale_ptr, dw_ptr, db_ptr, rows, columns,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Sums over dimension 0, in parts."""
    column = tl.program_id(0) * BN + tl.arange(0, BN)
    dw = tl.zeros((BM, BN), dtype=tl.float32)
    db = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, rows, BM):
        row = start + tl.arange(0, BM)
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        where = row[:, None] * columns + column[None, :]
        dy = tl.load(dy_ptr + where, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + where, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row, mask=row < rows, other=0.0)
        scale = tl.load(scale_ptr + row, mask=row < rows, other=0.0)
        db += dy
        dw += tl.where(mask, dy * (x - mean[:, None]) * scale[:, None], 0.0)
    tl.store(dw_ptr + column, tl.sum(dw, axis=0), mask=column < columns)
    tl.store(db_ptr + column, tl.sum(db, axis=0), mask=column < columns)


@triton.jit
def histogram(values_ptr, counts_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    bins = tl.load(values_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(counts_ptr + bins, 1, mask=mask)


@triton.jit
def add_all(values_ptr, total_ptr, most_ptr, count, BLOCK: tl.constexpr):
    """One float sum and one integer maximum, from all programs."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    values = tl.load(values_ptr + offsets, mask=mask, other=0.0)
    tl.atomic_add(total_ptr, tl.sum(values, axis=0))
    tl.atomic_max(most_ptr, tl.max(values.to(tl.int32), axis=0))


@triton.jit
def claim(slots_ptr, seen_ptr, SLOTS: tl.constexpr):
    """Each program tries to be the first in its slot, and notes what was there."""
    mine = tl.program_id(0)
    before = tl.atomic_cas(slots_ptr + mine % SLOTS, 0, mine + 1)
    tl.store(seen_ptr + mine, before)


@triton.jit
def scan(x_ptr, sums_ptr, sorted_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=2147483647)
    tl.store(sums_ptr + row * columns + offsets, tl.cumsum(tl.where(mask, x, 0), axis=0), mask=mask)
    tl.store(sorted_ptr + row * columns + offsets, tl.sort(x), mask=mask)


@triton.jit
def far(out_ptr, start, stride, BLOCK: tl.constexpr):
    """Writes blocks whose places need more than 32 bits."""
    block = tl.program_id(0).to(tl.int64)
    offsets = start + block * stride + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, (tl.arange(0, BLOCK) % 100 + block + 1).to(tl.int8))


@triton.jit
def attend(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale, DIM: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Causal attention of one head, (heads, length, dimension), in one pass over the keys."""
    start = tl.program_id(0) * BM
    base = tl.program_id(1) * length * DIM
    row, d = start + tl.arange(0, BM), tl.arange(0, DIM)
    inside = row[:, None] < length
    q = tl.load(q_ptr + base + row[:, None] * DIM + d[None, :], mask=inside, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    out = tl.zeros((BM, DIM), dtype=tl.float32)
    for near in range(0, start + BM, BN):
        column = near + tl.arange(0, BN)
        where = base + column[:, None] * DIM + d[None, :]
        k = tl.load(k_ptr + where, mask=column[:, None] < length, other=0.0)
        v = tl.load(v_ptr + where, mask=column[:, None] < length, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        seen = (column[None, :] <= row[:, None]) & (column[None, :] < length)
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(most, tl.max(scores, axis=1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(most - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        out = out * shrink[:, None] + tl.dot(weights.to(v.dtype), v)
        most = higher
    tl.store(out_ptr + base + row[:, None] * DIM + d[None, :], out / total[:, None], mask=inside)

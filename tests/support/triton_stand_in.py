# mypy: ignore-errors
"""Stand-ins for the Triton kernels of the checks, in torch: right ones and broken ones.

The names of the faults are in fake_kernels.py.

A kernel is called as ``kernel[grid](...)`` and writes into the tensors it is given.
"""

import torch


class Launcher:
    def __init__(self, function):
        self.function = function

    def __getitem__(self, grid):
        return self.function


class Kernels:
    """All kernels of the checks, with one fault."""

    def __init__(self, fault):
        self.fault = fault
        names = (
            "add", "softmax", "matmul", "norm", "norm_rows", "norm_columns", "histogram",
            "add_all", "claim", "scan", "far", "attend",
        )  # fmt: skip
        for name in names:
            setattr(self, name, Launcher(getattr(self, "_" + name)))

    def _past_the_end(self, out, count=40):
        if self.fault == "mask-ignored":
            start = out.storage_offset() + out.numel()
            out._base[start : start + count] = 0

    def _add(self, x, y, out, count, BLOCK):
        if self.fault == "no-compiler":
            raise RuntimeError("device kernel image is invalid")
        if self.fault == "not-run":
            return
        out.copy_(x + y)
        if self.fault == "tail-not-written":
            out[-1] = float("nan") if out.is_floating_point() else -77
        self._past_the_end(out, BLOCK - count % BLOCK)
        if self.fault == "first-block-twice":
            out[BLOCK : 2 * BLOCK] = out[:BLOCK]
        if self.fault == "last-bit":
            out[1000] = out[1000] * (1 + 2.0**-9)

    def _softmax(self, values, out, columns, BLOCK):
        if self.fault == "not-run":
            return
        scores = values.float()
        if self.fault == "lanes-counted":
            wide = torch.nn.functional.pad(scores, (0, BLOCK - columns))
            weights = wide.softmax(-1)[:, :columns]
        else:
            weights = scores.softmax(-1)
        out.copy_(weights.to(values.dtype).reshape(-1))
        self._past_the_end(out)
        if self.fault == "row-not-normal":
            out[:columns] *= 1.01

    def _shortened(self, matrix, bits):
        return (matrix.contiguous().view(torch.int32) & -(1 << (23 - bits))).view(torch.float32)

    def _matmul(self, a, b, c, rows, columns, inner, BM, BN, BK, ACC, PRECISION, num_warps=4):
        left, right = a.float(), b.float()
        if self.fault == "inner-tail":
            inner -= inner % BK
            left, right = left[:, :inner], right[:inner]
        if a.dtype == torch.float32:
            if self.fault == "ieee-shortened" and PRECISION == "ieee":
                left, right = self._shortened(left, 10), self._shortened(right, 10)
            if self.fault == "default-poor" and PRECISION is None:
                left, right = self._shortened(left, 7), self._shortened(right, 7)
        out = left @ right
        if self.fault == "low-accumulate":
            out = torch.zeros(rows, columns, dtype=torch.float16)
            for start in range(0, inner, BK):
                part = left[:, start : start + BK] @ right[start : start + BK]
                out = (out.float() + part + 2048).half() - 2048
        if self.fault == "edge-tile" or (self.fault == "eight-warps" and num_warps == 8):
            out[(rows - 1) // BM * BM :] = 0
        c.copy_(out.to(c.dtype).reshape(-1))
        self._past_the_end(c)

    def _norm(self, x, w, b, y, mean, scale, columns, EPS, BLOCK):
        values = x.float()
        middle = values.mean(-1)
        off = values - middle[:, None]
        squares = off.pow(2).sum(-1)
        if self.fault == "variance-of-block":
            squares = squares + (BLOCK - columns) * middle.pow(2)
        size = 1 / (squares / columns + EPS).sqrt()
        out = off * size[:, None] * w.float()
        if self.fault != "bias-ignored":
            out = out + b.float()
        y.copy_(out.to(y.dtype).reshape(-1))
        mean.copy_(middle)
        scale.copy_(size)

    def _norm_rows(self, dy, x, w, mean, scale, dx, columns, BLOCK):
        normal = (x.float() - mean[:, None]) * scale[:, None]
        through = dy.float() * w.float()
        first = (normal * through).mean(-1, keepdim=True)
        second = through.mean(-1, keepdim=True)
        if self.fault == "dx-term":
            second = 0
        dx.copy_(((through - normal * first - second) * scale[:, None]).to(dx.dtype).reshape(-1))

    def _norm_columns(self, dy, x, mean, scale, dw, db, rows, columns, BM, BN):
        last = rows - rows % BM if self.fault == "rows-dropped" else rows
        normal = (x.float() - mean[:, None]) * scale[:, None]
        dw.copy_((dy.float() * normal)[:last].sum(0))
        db.copy_(dy.float()[:last].sum(0))

    def _histogram(self, values, counts, count, BLOCK):
        for start in range(0, count, BLOCK):
            part = values[start : start + BLOCK].long()
            if self.fault == "lost-updates":
                part = part.unique()
            counts += torch.bincount(part, minlength=len(counts)).to(counts.dtype)

    def _add_all(self, values, total, most, count, BLOCK):
        parts = values.split(BLOCK)
        total += parts[-1].sum() if self.fault == "sum-of-one" else values.sum()
        most.fill_(int((parts[-1] if self.fault == "maximum-lost" else values).max()))

    def _claim(self, slots, seen, SLOTS):
        for mine in range(len(seen)):
            before = int(slots[mine % SLOTS])
            if self.fault == "two-winners" or before == 0:
                slots[mine % SLOTS] = mine + 1
            seen[mine] = 0 if self.fault == "two-winners" else before
            if self.fault == "stale-compare" and before:
                seen[mine] = before + SLOTS

    def _scan(self, x, sums, ordered, columns, BLOCK):
        parts = x.split(64, -1) if self.fault == "sum-per-warp" else (x,)
        sums.copy_(torch.cat([part.cumsum(-1) for part in parts], -1).to(x.dtype).reshape(-1))
        parts = x.split(128, -1) if self.fault == "not-sorted" else (x,)
        ordered.copy_(torch.cat([part.sort(-1).values for part in parts], -1).reshape(-1))

    def _far(self, out, start, stride, BLOCK):
        for block in range(8):
            place = start + block * stride
            if self.fault == "wrapped":
                place %= 2**31
            if self.fault == "not-written" and place >= 2**31:
                continue
            out[place : place + BLOCK] = (torch.arange(BLOCK) % 100 + block + 1).to(torch.int8)

    def _attend(self, q, k, v, out, length, scale, DIM, BM, BN):
        used = 32 if self.fault == "half-head" else DIM
        scores = q.float()[..., :used] @ k.float()[..., :used].transpose(-1, -2) * scale
        ahead = torch.ones(length, length, dtype=torch.bool).triu(
            2 if self.fault == "next-token" else 1
        )
        scores = scores.masked_fill(ahead, float("-inf"))
        weights = scores.softmax(-1)
        if self.fault == "no-rescale":  # every block of keys is weighed by its own maximum
            raised = [(p - p.amax(-1, keepdim=True).clamp(min=-1e9)).exp()
                      for p in scores.split(BN, -1)]  # fmt: skip
            raised = torch.cat(raised, -1)
            weights = raised / raised.sum(-1, keepdim=True)
        out.copy_((weights.to(v.dtype).float() @ v.float()).to(out.dtype).reshape(-1))

"""``python3 benchmarks/plain_loops.py``: the figures of verify beside plain loops written by hand.

Run by a Python that has torch and a device; envlock need not be installed there. Both do the same
work in the same process, in turn; every round begins with the check. Ends with 1 when a figure is
more than 3 % away from its plain loop.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PROBES = Path(__file__).parents[1] / "envlock" / "probes"
sys.path.insert(0, str(PROBES))
harness = importlib.import_module("harness")
torch = importlib.import_module("torch")
gemm = harness.sibling("perf_gemm")
copy = harness.sibling("perf_copy")
memory = harness.sibling("perf_memory")

#: Largest distance from a plain loop.
ALLOWED = 0.03
WARM, FEWEST, SECONDS = 10, 30, 0.5
MIB = 1 << 20

Case = tuple[str, Callable[[], Any], Callable[[], float]]


def plain(call: Callable[[], object], device: str) -> float:
    """Seconds of one call: ten to warm up, then thirty or half a second between two waits."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(WARM):
        call()
    wait()
    started = time.perf_counter()
    call()
    wait()
    repeats = max(FEWEST, int(SECONDS / (time.perf_counter() - started)))
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    wait()
    return (time.perf_counter() - started) / repeats


def plain_gemm(dtype: Any, size: int, device: str) -> float:
    a = torch.randn(size, size, dtype=dtype, device=device)
    b = torch.randn(size, size, dtype=dtype, device=device)
    c = torch.empty(size, size, dtype=dtype, device=device)
    return 2 * size**3 / plain(lambda: torch.matmul(a, b, out=c), device) / 1e12


def plain_bus(way: str, kind: str, size: int, device: str) -> float:
    host = torch.arange(size * MIB // 4, dtype=torch.int32)
    host = host.pin_memory() if kind == "pinned" else host
    card = torch.zeros_like(host, device=device)
    start, end = (host, card) if way == "h2d" else (card, host)
    pinned = kind == "pinned"
    return size * MIB / plain(lambda: end.copy_(start, non_blocking=pinned), device) / 1e9


def plain_memory(kind: str, size: int, device: str) -> float:
    x = torch.randn(size * MIB // 4, device=device)
    y = torch.randn(size * MIB // 4, device=device)
    if kind == "copy":
        return 2 * size * MIB / plain(lambda: y.copy_(x), device) / 1e9
    out = torch.empty_like(x)
    return 3 * size * MIB / plain(lambda: torch.add(x, y, out=out), device) / 1e9


def cases(context: Any, small: bool) -> Iterator[Case]:
    """Name, the check's own metrics, the rate of a plain loop."""
    device = context.device
    for dtype in gemm.DTYPES:
        for size in (256,) if small else (4096, 8192, 12288):
            name = f"gemm {gemm.compare.short(dtype)} {size}"
            yield (
                name,
                lambda t=dtype, n=size: gemm.one_product(context, t, n, False),
                lambda t=dtype, n=size: plain_gemm(t, n, device),
            )
    for size in () if small else (256, 1024):
        for way in copy.WAYS:
            for kind in copy.KINDS:
                yield (
                    f"{way} {kind} {size} MiB",
                    lambda w=way, k=kind, n=size: copy.one_copy(context, w, k, n),
                    lambda w=way, k=kind, n=size: plain_bus(w, k, n, device),
                )
    for size in (16,) if small else (256, 1024, 4096):
        yield (
            f"copy {size} MiB",
            lambda n=size: memory.copied(context, n),
            lambda n=size: plain_memory("copy", n, device),
        )
        yield (
            f"add fp32 {size} MiB",
            lambda n=size: memory.added(context, n, memory.torch_add),
            lambda n=size: plain_memory("add", n, device),
        )


def compared(case: Case, rounds: int) -> dict[str, Any]:
    """Median of the check's rates, of the plain ones, and how far apart they are."""
    name, check, loop = case
    found, beside, unit = [], [], ""
    for _ in range(rounds):
        metrics = check()
        unit = "tflops" if "tflops" in metrics else "gbps"
        found.append(metrics[unit])
        beside.append(loop())
    ours, theirs = statistics.median(found), statistics.median(beside)
    return {"name": name, "unit": unit, "check": ours, "plain": theirs, "off": ours / theirs - 1}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    chosen = parser.parse_args()
    context = harness.Context({"device": chosen.device})
    rows = []
    print("| case | verify | plain loop | unit | off |\n|---|---|---|---|---|", flush=True)
    for case in cases(context, chosen.device == "cpu"):
        row = compared(case, chosen.rounds)
        rows.append(row)
        words = f"| {row['name']} | {row['check']:.4g} | {row['plain']:.4g} | {row['unit']}"
        print(f"{words} | {row['off']:+.2%} |", flush=True)
    far = [row["name"] for row in rows if abs(row["off"]) > ALLOWED]
    print(f"\n{len(rows) - len(far)} of {len(rows)} within {ALLOWED:.0%}", *far, sep="\n")
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())

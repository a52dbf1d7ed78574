"""``python3 benchmarks/plain_loops.py``: the figures of verify beside plain loops written by hand.

Run by a Python that has torch and a device; envlock need not be installed there. Both do the same
work in the same process, in turn, and the order changes with every round: clocks that drift meet
both alike. The medians are compared. Ends with 1 when a figure is more than 3 % away from its plain
loop; copies of pageable memory, which the host's other work disturbs, may be as far away as the
rounds of either are from each other.
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
WARM, FEWEST, SECONDS = 5, 10, 0.2
#: The same for the check: its own warm-up is for a cold device, and here the other one was before.
BRIEF = {"warm": 0.1, "measure": 0.2, "samples": 10, "most": 1.0, "settle": 1.0}
MIB = 1 << 20

Case = tuple[str, Callable[[], Any], Callable[[], float]]


def plain(call: Callable[[], object], device: str) -> float:
    """Seconds of one call: a few to warm up, then ten or a fifth of a second between two waits."""
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
    """Median of the check's rates, of the plain ones, how far apart they and their rounds are."""
    name, check, loop = case
    found, beside, unit = [], [], ""
    for number in range(rounds):
        if number % 2:
            beside.append(loop())
        metrics = check()
        unit = "tflops" if "tflops" in metrics else "gbps"
        found.append(metrics[unit])
        if not number % 2:
            beside.append(loop())
    ours, theirs = statistics.median(found), statistics.median(beside)
    spread = max((max(rates) - min(rates)) / statistics.median(rates) for rates in (found, beside))
    noisy = "pageable" in name
    return {
        "name": name,
        "unit": unit,
        "check": ours,
        "plain": theirs,
        "off": ours / theirs - 1,
        "spread": spread,
        "allowed": max(ALLOWED, spread) if noisy else ALLOWED,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rounds", type=int, default=4, help="of a case, where there is time")
    parser.add_argument("--seconds", type=float, default=80.0, help="for all; two rounds are least")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    chosen = parser.parse_args()
    context = harness.Context({"device": chosen.device})
    gemm.timing.DEVICE.update(BRIEF)
    rows = []
    print("| case | verify | plain loop | unit | off | spread |\n|" + "---|" * 6, flush=True)
    every = list(cases(context, chosen.device == "cpu"))
    started = time.monotonic()
    for number, case in enumerate(every):
        late = time.monotonic() - started > chosen.seconds * number / len(every)
        row = compared(case, min(2, chosen.rounds) if late else chosen.rounds)
        rows.append(row)
        if chosen.json:  # a run that is cut short keeps what it has
            chosen.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        words = f"| {row['name']} | {row['check']:.4g} | {row['plain']:.4g} | {row['unit']}"
        print(f"{words} | {row['off']:+.2%} | {row['spread']:.2%} |", flush=True)
    far = [row["name"] for row in rows if abs(row["off"]) > row["allowed"]]
    print(f"\n{len(rows) - len(far)} of {len(rows)} within {ALLOWED:.0%}", *far, sep="\n")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())

"""Reports of many nodes merged into one verdict, beside the least that reading them takes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.support import simulated
from tests.support.pythons import clean_env
from tests.support.simulated import Cluster

SIZES = (10, 100, 1000, 10_000)
_MERGE = """
import json, sys, time
from envlock.fleet.merge import merge_reports
from envlock.fleet.page import to_html
from tests.support.processes import peak_kib
began = time.process_time()
found = merge_reports(sys.argv[1])
merged = time.process_time()
page = to_html(found)
done = time.process_time()
peak = peak_kib() / 1024
print(json.dumps([found.exit_code, merged - began, done - merged, peak, len(page) / 1000]))
"""


def fleet(scratch: Path, runs: int) -> None:
    """Merges clusters of growing size; nodes of two cards, and one row with eight.

    Processor seconds: the merge is one process, and a busy machine changes them less.
    """
    print("\n## reports merged into one verdict\n")
    print(
        "| nodes | MB of reports | processor seconds | reports a second | of json.loads alone |",
        end="",
    )
    print(" most memory, MB | page: seconds | kB |")
    print("|---|---|---|---|---|---|---|---|")
    for nodes, devices in (*((size, 2) for size in SIZES), (1000, 8)):
        folder = scratch / f"{nodes}-{devices}"
        folder.mkdir(parents=True)
        simulated.write(folder, Cluster(nodes=nodes, devices=devices))
        _row(folder, nodes, runs)
        shutil.rmtree(folder)


def _row(folder: Path, nodes: int, runs: int) -> None:
    files = [folder / name for name in os.listdir(folder)]
    size = sum(path.stat().st_size for path in files) / 1e6
    merged, bare = [], []
    for _ in range(runs):
        merged.append(_merge(folder))
        began = time.process_time()
        for path in files:
            json.loads(path.read_bytes())
        bare.append(time.process_time() - began)
    seconds, page, peak, kilobytes = sorted(merged)[runs // 2]
    ratio = seconds / sorted(bare)[runs // 2]
    print(
        f"| {nodes:,} | {size:.1f} | {seconds:.2f} | {nodes / seconds:,.0f} | {ratio:.1f} × "
        f"| {peak:.0f} | {page:.2f} | {kilobytes:.0f} |",
        flush=True,
    )


def _merge(folder: Path) -> tuple[float, float, float, float]:
    """Processor seconds of merge and page, most memory in MB, size of the page in kB."""
    done = subprocess.run(
        [sys.executable, "-c", _MERGE, str(folder)],
        env=clean_env(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    code, seconds, page, peak, kilobytes = json.loads(done.stdout)
    if code != 0:
        raise SystemExit(f"{folder}: a clean cluster was not passed: {code}")
    return seconds, page, peak, kilobytes

"""One process of col.allreduce; started by torch's launcher, imports nothing of envlock."""

import datetime
import json
import os
import time
import traceback

import torch
import torch.distributed as dist

SECONDS = 60
SIZES = (1, 1027, (1 << 20) + 3)
#: Largest magnitude of the numbers: sums of 16 processes are exact in every type.
MOST = {torch.int32: 1000, torch.int64: 1000, torch.float32: 1000, torch.bfloat16: 3}
BANDWIDTH_BYTES = 256 << 20
CPU_BANDWIDTH_BYTES = 4 << 20
REPEATS = 10


def numbers(rank, size, dtype):
    """Whole numbers that differ from process to process, the same wherever they are made."""
    most = MOST[dtype]
    made = torch.arange(size, dtype=torch.int64) * (2 * rank + 3) + rank
    return (made % (2 * most + 1) - most).to(dtype)


def of_all(processes, size, dtype):
    return torch.stack([numbers(rank, size, dtype).double() for rank in range(processes)])


def wrong(found, golden):
    return int((found.cpu().double() != golden).sum())


def reduced(rank, processes, device, size, dtype, kind):
    mine = numbers(rank, size, dtype).to(device)
    dist.all_reduce(mine, op=getattr(dist.ReduceOp, kind))
    rows = of_all(processes, size, dtype)
    return {"wrong": wrong(mine, rows.sum(0) if kind == "SUM" else rows.max(0).values)}


def gathered(rank, processes, device, size, dtype):
    mine = numbers(rank, size, dtype).to(device)
    parts = [torch.zeros_like(mine) for _ in range(processes)]
    dist.all_gather(parts, mine)
    return {"wrong": wrong(torch.stack(parts), of_all(processes, size, dtype))}


def sent(rank, device, size, dtype):
    """The first process's numbers in every process."""
    mine = numbers(rank, size, dtype).to(device)
    dist.broadcast(mine, 0)
    return {"wrong": wrong(mine, numbers(0, size, dtype).double())}


def bandwidth(processes, device):
    """All-reduce of a large vector; bytes counted as on the busiest link, 2 (n - 1) / n."""
    size = CPU_BANDWIDTH_BYTES if device.type == "cpu" else BANDWIDTH_BYTES
    vector = torch.ones(size // 4, device=device)
    seconds = []
    for _ in range(REPEATS):
        vector.fill_(1)
        wait(device)
        started = time.perf_counter()
        dist.all_reduce(vector)
        wait(device)
        seconds.append(time.perf_counter() - started)
    median = sorted(seconds)[REPEATS // 2]
    moved = size * 2 * (processes - 1) / processes
    found = {"wrong": int((vector != processes).sum()), "seconds_median": median}
    return dict(found, bytes=moved, gbps=moved / median / 1e9) if moved else found


def wait(device):
    if device.type != "cpu":
        torch.cuda.synchronize()


def cases(rank, processes, device):
    for dtype in MOST:
        short = str(dtype).replace("torch.", "")
        for size in SIZES:
            name = "sum {} {}".format(short, size)
            yield name, reduced(rank, processes, device, size, dtype, "SUM")
        yield "max {}".format(short), reduced(rank, processes, device, 1027, dtype, "MAX")
    yield "gather", gathered(rank, processes, device, 1027, torch.int64)
    yield "broadcast", sent(rank, device, 1027, torch.int64)
    yield "all-reduce speed", bandwidth(processes, device)


def main():
    rank, processes = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    backend = os.environ["ENVLOCK_BACKEND"]
    device = torch.device("cpu")
    if backend != "gloo":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    answer = {"error": "", "cases": {}}
    try:
        dist.init_process_group(backend, timeout=datetime.timedelta(seconds=SECONDS))
        answer["cases"] = dict(cases(rank, processes, device))
        dist.barrier()
        dist.destroy_process_group()
    except Exception as error:
        traceback.print_exc()
        answer["error"] = "{}: {}".format(type(error).__name__, error)
    with open(
        os.path.join(os.environ["ENVLOCK_FOLDER"], "{}.json".format(rank)), "w", encoding="utf-8"
    ) as file:
        json.dump(answer, file)
    if answer["error"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

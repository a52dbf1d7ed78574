"""One process of a collective over several nodes; started by torch's launcher on each of them,
imports nothing of envlock.

Whole numbers as in col.allreduce, from 4 bytes to 256 MiB: over this node and each of its partners,
then over all. The answer is written after every size: a link that hangs still shows at which.
"""

import datetime
import json
import os
import time
import traceback

import _col_worker as one_node
import torch
import torch.distributed as dist

#: A node that is early waits for those that still work with others.
SECONDS = 150
SIZES = (4, 4 << 10, 1 << 20, 16 << 20, 256 << 20)
REPEATS = 2
DTYPE = torch.int32
#: The numbers of a process come again after so many: a golden answer needs no more of them.
PERIOD = 2 * one_node.MOST[DTYPE] + 1


def filled(rank, count, device):
    """The numbers of a process."""
    few = one_node.numbers(rank, min(count, PERIOD), DTYPE).to(device)
    return few.repeat(-(-count // len(few)))[:count].contiguous()


def wrong(found, golden):
    """Elements that are not the exact ones."""
    whole = len(found) // PERIOD * PERIOD
    bad = int((found[:whole].view(-1, PERIOD) != golden).sum()) if whole else 0
    rest = found[whole:]
    return bad + int((rest != golden[: len(rest)]).sum())


def reduced(ranks, device, size, group):
    """All-reduce of so many bytes; the time is that of the fastest repeat."""
    golden = sum(one_node.numbers(rank, PERIOD, DTYPE).long() for rank in ranks)
    golden = golden.to(DTYPE).to(device)
    bad, seconds = 0, []
    for _ in range(REPEATS):
        mine = filled(dist.get_rank(), size // 4, device)
        one_node.wait(device)
        started = time.perf_counter()
        dist.all_reduce(mine, group=group)
        one_node.wait(device)
        seconds.append(time.perf_counter() - started)
        bad += wrong(mine, golden)
    moved = size * 2 * (len(ranks) - 1) / len(ranks)
    return {
        "wrong": bad,
        "bytes": moved,
        "seconds": min(seconds),
        "gbps": moved / min(seconds) / 1e9,
    }


def partners(rounds, node):
    """The node that this one meets in each round; itself where it rests."""
    for pairs in rounds:
        own = next((pair for pair in pairs if node in pair), [node])
        yield own[-1] if own[0] == node else own[0]


def groups(rounds):
    """Those whom this process belongs to: with whom, the ranks, the group."""
    here, each = int(os.environ["GROUP_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    for partner in partners(rounds, here):
        nodes = sorted({here, partner})
        ranks = [node * each + local for node in nodes for local in range(each)]
        # only its members make it: thousands of groups are no work for all. torch tells them apart
        # by how many a process has made, so one that rests makes one, too
        group = dist.new_group(
            ranks, use_local_synchronization=True, timeout=datetime.timedelta(seconds=SECONDS)
        )
        if partner != here:
            yield str(partner), ranks, group
    yield "all", list(range(dist.get_world_size())), None


def name(size):
    """``256 MiB``."""
    for unit, step in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= step:
            return "{} {}".format(size // step, unit)
    return "{} B".format(size)


def write(path, answer):
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(answer, file)
    os.replace(path + ".part", path)


def main():
    backend, rounds = os.environ["ENVLOCK_BACKEND"], json.loads(os.environ["ENVLOCK_ROUNDS"])
    path = os.path.join(os.environ["ENVLOCK_FOLDER"], "{}.json".format(os.environ["LOCAL_RANK"]))
    answer = {"error": "", "at": "", "with": {}, "done": False}
    write(path, answer)
    try:
        device = torch.device("cpu")
        if backend != "gloo":
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(device)
        dist.init_process_group(backend, timeout=datetime.timedelta(seconds=SECONDS))
        for partner, ranks, group in groups(rounds):
            found = answer["with"][partner] = {}
            for size in SIZES:
                answer["at"] = "{} at {}".format(partner, name(size))
                found[name(size)] = reduced(ranks, device, size, group)
                write(path, answer)
        dist.barrier()
        dist.destroy_process_group()
        answer["done"] = True
    except Exception as error:
        traceback.print_exc()
        answer["error"] = "{}: {}".format(type(error).__name__, str(error).strip()[:500])
    write(path, answer)
    if answer["error"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

"""col.allreduce: sums of whole numbers over all devices are exact.

Started with torch's own launcher, as training is: one process for each visible device (nccl, or
what the vendor puts in its place), one where there is one device, two on a processor (gloo). Each
process answers in a file of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import harness

#: Seconds for the launcher; a library that waits for a peer that never comes waits for ever.
LIMIT = 180.0
CPU_PROCESSES = 2


def launch(processes, backend, folder):
    """Runs the workers to their end; what they printed, and how long it took."""
    worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_col_worker.py")
    command = [sys.executable, "-s", "-m", "torch.distributed.run", "--standalone"]
    command += ["--local-addr", "127.0.0.1", "--nproc-per-node", str(processes)]
    env = dict(os.environ, OMP_NUM_THREADS="1", ENVLOCK_FOLDER=folder, ENVLOCK_BACKEND=backend)
    if backend == "gloo":  # a container's own name may not resolve
        env.setdefault("GLOO_SOCKET_IFNAME", "lo")
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [*command, worker],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired as error:
        print((error.stdout or b"").decode("utf-8", "replace"))
        raise harness.Failure("the processes did not end within {:.0f} s".format(LIMIT)) from error
    print(done.stdout.decode("utf-8", "replace"))
    return done.returncode, time.perf_counter() - started


def answers(folder, processes):
    """What each process found, in the order of their ranks."""
    found = []
    for rank in range(processes):
        path = os.path.join(folder, "{}.json".format(rank))
        if not os.path.exists(path):
            raise harness.Failure("process {} of {} gave no answer".format(rank, processes))
        with open(path, encoding="utf-8") as file:
            found.append(json.load(file))
    return found


def joined(processes, backend, cases):
    """All processes came, and left; their cases go into ``cases`` by name."""
    with tempfile.TemporaryDirectory() as folder:
        code, seconds = launch(processes, backend, folder)
        for rank, answer in enumerate(answers(folder, processes)):
            if answer["error"]:
                raise harness.Failure("process {}: {}".format(rank, answer["error"]))
            for name, metrics in answer["cases"].items():
                cases.setdefault(name, []).append(metrics)
        if code != 0:
            raise harness.Failure("the launcher ended with {}".format(code))
    return {"processes": processes, "launch_seconds": round(seconds, 3)}


def all_right(found, processes):
    """One case, from the answers of all processes: the slowest counts."""
    if len(found) != processes:
        raise harness.Failure("{} of {} processes came so far".format(len(found), processes))
    wrong = [rank for rank, metrics in enumerate(found) if metrics["wrong"]]
    if wrong:
        text = "wrong in process {}: {} elements".format(wrong[0], found[wrong[0]]["wrong"])
        raise harness.Failure(text, wrong=sum(metrics["wrong"] for metrics in found))
    return min(found, key=lambda metrics: metrics.get("gbps", 0.0))


def check(context):
    import torch

    distributed = torch.distributed
    backend = "gloo" if context.on_cpu else "nccl"
    if (
        not distributed.is_available()
        or not getattr(distributed, "is_{}_available".format(backend))()
    ):
        raise harness.Skip("this torch was built without {}".format(backend))
    processes = CPU_PROCESSES if context.on_cpu else torch.cuda.device_count()
    processes = context.arguments.get("processes", processes)
    if not processes:
        raise harness.Failure("no device is visible to torch")
    context.facts.update(backend=backend, processes=processes)
    cases = {}
    first = context.case("{} processes".format(processes), joined, processes, backend, cases)
    yield first
    for name, found in cases.items() if first["status"] == harness.PASSED else ():
        yield context.case(name, all_right, found, processes)

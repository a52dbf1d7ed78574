"""Timing: warm-up, samples, and what must hold for a figure to be believed.

The first call is left out: it compiles. Then come at least WARM seconds of work, and more until two
windows of samples agree: clocks settle, and power limits begin to count. A timed sample is one
call, or as many as take BATCH together where one is so short that its launch would be measured.
All samples are queued at once, each between two events, and the host waits once, at the end.

On the processor the samples are timed by the host, and everything is shorter.
"""

import math
import statistics
import time

import harness
import torch

#: Seconds of warm-up, of one sample, of all samples; samples wanted; most seconds for the samples
#: and for a warm-up that does not settle.
DEVICE = {"warm": 1.0, "batch": 0.01, "measure": 0.5, "samples": 30, "most": 5.0, "settle": 8.0}
HOST = {"warm": 0.05, "batch": 0.002, "measure": 0.05, "samples": 5, "most": 1.0, "settle": 0.3}
WARM_CALLS = 10
WINDOW, STEADY = 6, 0.10
FEWEST = 5
#: Samples with an empty cache are single calls, and more of them.
COLD_SAMPLES = 60
#: Zeroed before every call to empty the caches; larger than the last-level cache of any device.
FLUSH_BYTES = 256 * 1024 * 1024
#: Events cannot say more than the host saw pass, apart from the resolution of both.
CLOCKS = 1.15


class Clock:
    """Seconds of each sample."""

    def __init__(self, on_cpu):
        self.on_cpu = on_cpu

    def wait(self):
        if not self.on_cpu:
            torch.cuda.synchronize()

    def samples(self, call, count, calls, before=None):
        """Seconds of ``count`` samples of ``calls`` calls, and what the host saw pass in all.

        ``before`` is called ahead of every sample and is not timed.
        """
        self.wait()
        started = time.perf_counter()
        found = self._timed(call, count, calls, before)
        self.wait()
        total = time.perf_counter() - started
        if not self.on_cpu:
            found = [first.elapsed_time(last) / 1000 for first, last in found]
        return found, total

    def _timed(self, call, count, calls, before):
        found = []
        for _ in range(count):
            if before is not None:
                before()
            first = self._mark()
            for _ in range(calls):
                call()
            last = self._mark()
            found.append(last - first if self.on_cpu else (first, last))
        return found

    def _mark(self):
        if self.on_cpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def flusher(device):
    """Empties the caches."""
    buffer = torch.empty(FLUSH_BYTES, dtype=torch.int8, device=device)
    return buffer.zero_


def measure(context, call, cold=False):
    """Times a call that only queues work for the device; metrics of METRICS in model/check.py.

    cold: the caches are emptied before every call.

    Raises Unsound where the clocks gave what no call can take.
    """
    clock, limits = Clock(context.on_cpu), HOST if context.on_cpu else DEVICE
    before = flusher(context.device) if cold else None
    call()
    found = believable(*clock.samples(call, 3, 1, before))
    calls = 1 if cold else max(1, math.ceil(limits["batch"] / min(found)))
    seconds, steady = warm_up(clock, call, calls, before, limits)
    wanted = COLD_SAMPLES if cold else limits["samples"]
    count = max(wanted, math.ceil(limits["measure"] / seconds))
    count = max(FEWEST, min(count, int(limits["most"] / seconds)))
    found = believable(*clock.samples(call, count, calls, before))
    metrics = statistics_of([one / calls for one in found], calls)
    metrics["cache"] = "cold" if cold else "hot"
    metrics["steady"] = steady
    if not steady and not context.on_cpu:  # a processor is everybody's
        metrics["warning"] = "the clocks did not settle: windows differ by more than 10 %"
    return metrics


def warm_up(clock, call, calls, before, limits):
    """Seconds of a sample at the end of the warm-up, and whether it had settled."""
    started, done, last = time.perf_counter(), 0, None
    while True:
        found = believable(*clock.samples(call, WINDOW, calls, before))
        median = statistics.median(found)
        done += WINDOW * calls
        passed = time.perf_counter() - started
        steady = last is not None and abs(median - last) <= STEADY * last
        last = median
        warm = passed >= limits["warm"] and done >= WARM_CALLS
        if (warm and steady) or passed >= limits["settle"]:
            return median, steady


def believable(found, total):
    """The samples. Raises Unsound where they cannot be: runtimes answered zero, less, and NaN."""
    for one in found:
        if not one > 0 or math.isinf(one):
            raise harness.Unsound("a sample took {} s".format(one))
    if sum(found) > CLOCKS * total:
        text = "the events say {:.4f} s, and only {:.4f} s passed on the host"
        raise harness.Unsound(text.format(sum(found), total))
    return found


def statistics_of(seconds, calls):
    """Times of one call, from samples."""
    ordered = sorted(seconds)
    mean = statistics.fmean(ordered)
    return {
        "seconds_median": statistics.median(ordered),
        "seconds_p95": ordered[min(len(ordered) - 1, math.ceil(0.95 * len(ordered)) - 1)],
        "seconds_least": ordered[0],
        "spread": round(statistics.pstdev(ordered) / mean, 5),
        "samples": len(ordered),
        "calls": calls,
    }


#: Large products and copies reach at least this share of what the maker promises.
FLOOR = 0.5


def rated(metrics, resource, flops=0, moved=0, floor=None):
    """The same with rates, from the median, and the work that was counted.

    floor: share of the maker's figure for the resource that a healthy device reaches; None where
    something else bounds the work too.
    """
    seconds = metrics["seconds_median"]
    if flops:
        metrics.update(tflops=flops / seconds / 1e12, flops=flops)
    if moved:
        metrics.update(gbps=moved / seconds / 1e9, bytes=moved)
    metrics["resource"] = resource
    return metrics if floor is None else dict(metrics, floor=floor)


class Memory:
    """Most device memory in use from here on; nothing on the processor."""

    def __init__(self, context):
        self.on_cpu = context.on_cpu
        if not self.on_cpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def metrics(self):
        return {} if self.on_cpu else {"peak_bytes": torch.cuda.max_memory_allocated()}


def describe(context):
    """What the parent needs to judge figures: which device, and where the host's work was done."""
    context.facts["cpu_throttled"] = throttled()
    if context.on_cpu:
        context.facts["device"] = "cpu"
        return
    found = torch.cuda.get_device_properties(0)
    context.facts.update(device=found.name, compute_units=found.multi_processor_count)


def throttled():
    """Periods in which the container's processor quota was used up; None without one."""
    try:
        with open("/sys/fs/cgroup/cpu.stat", encoding="utf-8") as file:
            lines = dict(line.split() for line in file)
        return int(lines["nr_throttled"])
    except (OSError, ValueError, KeyError):
        return None


def randn(shape, dtype, device, seed):
    """Normal numbers made on the device, the same in every run: what they are changes power and
    speed, zeros are faster. Raises Unsound where they are not spread as they should be."""
    source = torch.Generator(device=device).manual_seed(seed)
    made = torch.randn(shape, generator=source, dtype=dtype, device=device)
    spread = float(made.flatten()[: 1 << 20].float().std())
    if not 0.9 < spread < 1.1:
        raise harness.Unsound("the random numbers have a deviation of {}".format(spread))
    return made

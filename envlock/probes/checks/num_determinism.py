"""num.determinism: the same call gives the same bits, again and in another process.

What torch itself calls deterministic has to be; what it does not is recorded, and no failure.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when the library starts

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

REPEATS, PROCESSES, SECONDS = 20, 2, 120.0


def product(source, device):
    left, right = (compare.randn((257, 333), torch.float16, source) for _ in range(2))
    left, right = left.to(device), right.to(device)
    return lambda: left @ right.t()


def attention(source, device):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    parts = [compare.randn((2, 3, 65, 64), torch.bfloat16, source).to(device) for _ in range(3)]

    def run():
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(*parts, is_causal=True)

    return run


def convolution(source, device):
    image = compare.randn((2, 8, 17, 19), torch.float32, source).to(device)
    weight = compare.randn((8, 8, 3, 3), torch.float32, source).to(device).requires_grad_(True)
    grad = compare.randn((2, 8, 15, 17), torch.float32, source).to(device)
    return lambda: torch.autograd.grad(F.conv2d(image, weight), weight, grad)[0]


def scattered(source, device):
    values = compare.randn((10_007,), torch.float32, source).to(device)
    where = torch.randint(0, 37, (10_007,), generator=source).to(device)
    return lambda: torch.zeros(37, device=device).index_add(0, where, values)


KINDS = {"gemm": product, "attention": attention, "conv": convolution}
#: Sums that meet in memory: torch promises nothing without its switch.
FREE = {"index_add": scattered}


def digest(tensor):
    whole = tensor.detach().cpu().contiguous().view(-1)
    return hashlib.sha256(bytes(whole.view(torch.uint8).tolist())).hexdigest()[:16]


def digests(make, seed, device, repeats):
    """One for each call."""
    call = make(compare.generator(seed), device)
    return [digest(call()) for _ in range(repeats)]


def again(context, seed):
    """The same in a process of its own: digest by kind."""
    with tempfile.TemporaryDirectory() as folder:
        request, answer = os.path.join(folder, "request"), os.path.join(folder, "answer")
        with open(request, "w", encoding="utf-8") as file:
            json.dump({"device": context.device, "arguments": {"child": True, "seed": seed}}, file)
        # the harness is the program that runs us: by its path, not by its module
        script = os.path.join(os.path.dirname(harness.__file__), "checks", "num_determinism.py")
        command = [sys.executable, "-s", harness.__file__, script, request, answer]
        subprocess.run(command, timeout=SECONDS, check=True, stdin=subprocess.DEVNULL)
        with open(answer, encoding="utf-8") as file:
            return json.load(file)["facts"].get("digests", {})


def same(make, seed, device, others, name):
    torch.use_deterministic_algorithms(True)
    try:
        found = harness.subject(digests, make, seed, device, REPEATS)
    finally:
        torch.use_deterministic_algorithms(False)
    kinds = len(set(found))
    metrics = {"error": kinds - 1, "limit": 0, "calls": REPEATS, "processes": len(others)}
    text = "{} different results in {} calls".format(kinds, REPEATS)
    rules.must(kinds == 1, text, **metrics)
    apart = sum(1 for other in others if other.get(name) != found[0])
    rules.must(not apart, "{} other processes got another result".format(apart), **metrics)
    return {**metrics, "margin": 0.0}


def recorded(make, seed, device):
    """How many different results there are, of what may have several."""
    kinds = len(set(harness.subject(digests, make, seed, device, REPEATS)))
    return {"results": kinds, "calls": REPEATS}


def child(context, seed):
    torch.use_deterministic_algorithms(True)
    context.facts["digests"] = {
        name: digests(make, seed, context.device, 1)[0] for name, make in KINDS.items()
    }
    return {}


def check(context):
    seed = rules.seed_of(context)
    if context.arguments.get("child"):
        yield context.case("child", child, context, seed)
        return
    processes = int(context.arguments.get("processes", PROCESSES))
    others = [harness.subject(again, context, seed) for _ in range(processes)]
    for name, make in KINDS.items():
        yield context.case(name, same, make, seed, context.device, others, name)
    for name, make in FREE.items():
        yield context.case(name + " without promise", recorded, make, seed, context.device)

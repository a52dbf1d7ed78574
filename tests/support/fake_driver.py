# mypy: ignore-errors
"""Runs checks with faults put in, many in one process. Run by a Python that has torch.

usage: fake_driver.py PROBES JOBS ANSWER

JOBS is a JSON list of ``{check, fault, seed}``; ANSWER gets the cases of each. The stand-in for
flash-attn has to be on the path.
"""

import json
import os
import sys

PROBES, JOBS, ANSWER = sys.argv[1:4]
sys.path.insert(0, PROBES)
os.environ["TRITON_INTERPRET"] = "1"

import fake_kernels  # noqa: E402
import harness  # noqa: E402
import torch  # noqa: E402
import triton_stand_in  # noqa: E402

CHECKS = os.path.join(PROBES, "checks")


def put_into_flash(fault):
    import flash_attn

    flash_attn.become(fault)


def put_into_sdpa(fault):
    """torch's attention with the faults of the stand-in."""
    import flash_attn

    flash_attn.FAULT = fault
    torch.nn.functional.scaled_dot_product_attention = lambda q, k, v, is_causal: (
        flash_attn.attention(q, k, v)
    )


def low_accumulate(left, right):
    total = torch.zeros(left.shape[0], right.shape[1], dtype=left.dtype)
    for start in range(0, left.shape[1], 64):
        total += left[:, start : start + 64] @ right[start : start + 64]
    return total


def one_off(left, right):
    """One element off by five per cent of a standard deviation, and a step of the type."""
    out = left @ right
    out.view(-1)[out.numel() // 2] += 0.05 * out.float().std().to(out.dtype) + 1
    return out


def one_nan(left, right):
    out = left @ right
    out.view(-1)[-1] = float("nan")
    return out


def stale_tile(left, right):
    out = left @ right
    out[-32:, -32:] = 0
    return out


def transposed_tile(left, right):
    out = left @ right
    out[:32, :32] = out[:32, :32].t().clone()
    return out


def half_twice(left, right):
    half = left.shape[1] // 2
    return 2 * (left[:, :half] @ right[:half])


def shortened(left, right):
    """TF32: ten bits of mantissa, for float32 alone."""
    if left.dtype == torch.float32:
        left, right = (
            (m.contiguous().view(torch.int32) & -8192).view(torch.float32) for m in (left, right)
        )
    return left @ right


PRODUCTS = {
    "": lambda left, right: left @ right,
    "last-dropped": lambda left, right: left[:, :-1] @ right[:-1],
    "low-accumulate": low_accumulate,
    "one-off": one_off,
    "one-nan": one_nan,
    "stale-tile": stale_tile,
    "half-twice": half_twice,
    "transposed-tile": transposed_tile,
    "shortened": shortened,
}


def put_into_products(fault):
    """Matrix products with the faults of real kernels. Fewer shapes: float16 is slow on a
    processor, and this runs many times."""
    products = harness.sibling("_products")
    products.SHAPES = ((257, 129, 1031), (127, 513, 65), (64, 64, 4096))
    products.LAYOUTS = ("nn",)
    faulty = PRODUCTS[fault]

    def product(left, right, layout, device):
        return faulty(left, right) if left.shape[1] else left @ right

    products.product = product


def put_into_kernels(fault):
    """Stand-ins for the Triton kernels, in place of both modules of kernels."""
    for name in ("kernels", "kernels_more"):
        sys.modules["envlock_check_" + name] = triton_stand_in.Kernels(fault)


def put_into_vllm(fault):
    import vllm

    vllm.FAULT, vllm.RUNS[0] = fault, 0
    vllm.register()
    # a build for HIP, whose device has the name that the stand-in gives it
    torch.version.hip = "6.3" if fault == "cuda-on-hip" else None
    torch.cuda.get_device_name = lambda number: "card"


FLASH_CHECKS = (
    "fa_causal", "fa_dims", "fa_sweep", "fa_modes", "fa_varlen", "fa_kvcache", "fa_dropout",
    "fa_repeat",
)  # fmt: skip

PUT = {
    **dict.fromkeys(FLASH_CHECKS, put_into_flash),
    "sdpa_causal": put_into_sdpa,
    "gemm_exact": put_into_products,
    "gemm_real": put_into_products,
    "gemm_ident": put_into_products,
    **dict.fromkeys(fake_kernels.FAULTS, put_into_kernels),
    **dict.fromkeys(("vllm_platform", "vllm_ops", "vllm_generate"), put_into_vllm),
}


class Chosen(harness.Context):
    """Runs the cases alone whose name has certain words in it."""

    only = ""

    def case(self, name, function, *args, **kwargs):
        if self.only not in name:
            return harness.case(name, harness.SKIPPED, "not asked for")
        return super().case(name, function, *args, **kwargs)


def run(job):
    PUT[job["check"]](job["fault"])
    if job["check"].startswith("tri_"):  # these have one seed for all
        harness.sibling("_triton").SEED = job["seed"] or 336
    if job["check"].startswith("vllm_"):
        harness.sibling("_vllm_model").SEED = job["seed"]
    module = harness.load(os.path.join(CHECKS, job["check"] + ".py"), "envlock_check")
    device = "cuda" if job["fault"] == "cuda-on-hip" else "cpu"
    request = {"device": device, "arguments": {"seed": job["seed"]}}
    context = Chosen(dict(request, unsupported=job.get("unsupported", ())))
    context.only = job.get("only", "")
    cases = []
    for found in module.check(context):
        cases.append(found)
        if job.get("first") and found["status"] == "failed":
            break
    return cases


def main():
    with open(JOBS, encoding="utf-8") as file:
        jobs = json.load(file)
    answers = [run(job) for job in jobs]
    with open(ANSWER, "w", encoding="utf-8") as file:
        json.dump(answers, file, allow_nan=False)


main()

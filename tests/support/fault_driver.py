# mypy: ignore-errors
"""Runs checks with broken kernels, many in one process. Run by a Python that has torch.

usage: fault_driver.py PROBES JOBS ANSWER

JOBS is a JSON list of ``{check, operator, fault, only, seed, arguments}``. While a check calls what
is under test, and only then, the results of ``operator`` are falsified on their way out of torch's
dispatcher: the references stay right. ``only`` is part of the names of the cases to run. ANSWER
gets the cases of each job; one with a fault ends with its first failed case.
"""

import functools
import json
import os
import sys

PROBES, JOBS, ANSWER = sys.argv[1:4]
sys.path.insert(0, PROBES)

import harness  # noqa: E402
import torch  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

CHECKS = os.path.join(PROBES, "checks")
real_subject = harness.subject


def largest(out):
    return int(out.double().abs().reshape(-1).nan_to_num(0.0, 0.0, 0.0).argmax())


def one_element(out, args):
    """The largest element one and a half times too large."""
    at = largest(out)
    flat = out.view(-1) if out.is_contiguous() else out.reshape(-1)
    if out.dtype == torch.bool:
        flat[at] = not flat[at]
    else:
        flat[at] = flat[at] * 1.5 if out.is_floating_point() else flat[at] + 1
    if flat.data_ptr() != out.data_ptr():
        out.copy_(flat.view(out.shape))


def last_missing(out, args):
    """The end of the result was never written; in fresh memory, or in poisoned one."""
    last = out[(-1,) * out.dim()]
    last.fill_(float("nan") if out.is_floating_point() else 0)


def stale(out, args):
    """The end of the result is zero."""
    out[-1:].zero_()


def first_row_everywhere(out, args):
    if out.dim():
        out.copy_(out[:1].clone().expand_as(out))


def beyond(out, args):
    """One element after the end of the result is written."""
    end = out.storage_offset() + out.numel()
    whole = torch.as_strided(out, (1,), (1,), end)
    whole.zero_()


def before(out, args):
    """The element before the start of the result is written."""
    torch.as_strided(out, (1,), (1,), out.storage_offset() - 1).zero_()


def shortened(out, args):
    """Computed in a type with eight bits of mantissa."""
    out.copy_(out.bfloat16().to(out.dtype))


def nan_hidden(out, args):
    out.nan_to_num_(0.0)


def input_changed(out, args):
    first = next(a for a in args if isinstance(a, torch.Tensor))
    first.view(-1)[0] += 1


def shifted(out, args):
    out.copy_(out.roll(1, -1))


def unsigned_zero(out, args):
    """No number is wrong but that minus zero is zero."""
    out.add_(0.0)


def unseeded(out, args):
    """Not what the generator says: other numbers each time."""
    out.copy_(torch.rand(out.shape, generator=OTHER).to(out.dtype))


def off_centre(out, args):
    out.add_(0.01)


def period(out, args):
    """The second half is the first one again."""
    half = out.numel() // 2
    flat = out.view(-1)
    flat[half : 2 * half] = flat[:half]


def one_nan(out, args):
    out[(0,) * out.dim()] = float("nan")


def late(out, args):
    """A grid that is too small: what comes after its end is zero."""
    if out.numel() > 65_536 and out.is_contiguous():
        out.view(-1)[65_536:].zero_()


def one_off(out, args):
    """One element off by a step of the type: an index, a count."""
    out.view(-1)[out.numel() // 2] += 1


FAULTS = {
    "": None,
    "zero": lambda out, args: out.zero_(),
    "not-run": lambda out, args: out.fill_(float("nan") if out.is_floating_point() else 0),
    "one-element": one_element,
    "last-missing": last_missing,
    "stale-end": stale,
    "first-row": first_row_everywhere,
    "scaled": lambda out, args: out.mul_(1.05),
    "doubled": lambda out, args: out.mul_(2),
    "negated": lambda out, args: out.neg_(),
    "one-nan": one_nan,
    "late": late,
    "beyond": beyond,
    "before": before,
    "shortened": shortened,
    "nan-hidden": nan_hidden,
    "input-changed": input_changed,
    "shifted": shifted,
    "unsigned-zero": unsigned_zero,
    "unseeded": unseeded,
    "off-centre": off_centre,
    "period": period,
    "one-off": one_off,
    "noise": lambda out, args: out.add_(torch.randn(out.shape, generator=OTHER).to(out) * 0.1),
    "raises": lambda out, args: (_ for _ in ()).throw(RuntimeError("invalid device function")),
}
OTHER = torch.Generator().manual_seed(987)


def no_mask(real, q, k, v, attn_mask=None, is_causal=False, **rest):
    return real(q, k, v, **rest)


def next_token(real, q, k, v, attn_mask=None, is_causal=False, **rest):
    if is_causal:
        attn_mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(1)
    return real(q, k, v, attn_mask=attn_mask, **rest)


def bottom_right(real, q, k, v, attn_mask=None, is_causal=False, **rest):
    if is_causal:
        rows, columns = q.shape[2], k.shape[2]
        attn_mask = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
    return real(q, k, v, attn_mask=attn_mask, **rest)


def own_scale(real, q, k, v, scale=None, **rest):
    return real(q, k, v, **rest)


def interleaved(real, q, k, v, enable_gqa=False, **rest):
    if enable_gqa:
        order = torch.arange(q.shape[1]) % k.shape[1]
        k, v = k[:, order], v[:, order]
    return real(q, k, v, **rest)


def keeps_all(real, q, k, v, dropout_p=0.0, **rest):
    return real(q, k, v, **rest)


def own_seed(real, q, k, v, dropout_p=0.0, **rest):
    if dropout_p:
        torch.seed()
    return real(q, k, v, dropout_p=dropout_p, **rest)


def not_scaled(real, q, k, v, dropout_p=0.0, **rest):
    return real(q, k, v, dropout_p=dropout_p, **rest) * (1 - dropout_p)


def average(real, q, k, v, attn_mask=None, **rest):
    """A row that sees no key sees all of them."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = attn_mask | ~attn_mask.any(-1, keepdim=True)
    return real(q, k, v, attn_mask=attn_mask, **rest)


def mask_is_added(real, q, k, v, attn_mask=None, **rest):
    """True is one, false is zero, and both are seen."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = attn_mask.to(q.dtype)
    return real(q, k, v, attn_mask=attn_mask, **rest)


def packed(real, q, k, v, **rest):
    """Strides are not looked at."""
    return real(*(t.as_strided(t.shape, t.contiguous().stride()) for t in (q, k, v)), **rest)


#: Attention that is asked rightly and does something else.
ATTENDS = {
    function.__name__.replace("_", "-"): function
    for function in (
        no_mask, next_token, bottom_right, own_scale, interleaved, keeps_all, own_seed,
        not_scaled, average, mask_is_added, packed,
    )
}  # fmt: skip


class Spoiled(torch.autograd.Function):
    """Right forward, wrong backward."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * 1.01


def compiles(real):
    """torch.compile that does not, or builds something wrong."""
    return {
        "eager": lambda function, **options: function,
        "forward": lambda function, **options: lambda *args: real(function)(*args) * 1.001,
        "backward": lambda function, **options: lambda *args: Spoiled.apply(real(function)(*args)),
        "first-shape": lambda function, **options: torch.compile(function, dynamic=False),
    }


def see_the_future(training):
    """A model and a reference that both do: nothing but the task can tell."""
    attend = torch.nn.functional.scaled_dot_product_attention
    training.plain = lambda q, k, v: attend(q, k, v)
    training.native = training.plain


class Patch:
    """Another function in the place of one, for one job."""

    def __init__(self, operator, fault):
        functional = torch.nn.functional
        if operator == "sdpa":
            self.where, self.name = functional, "scaled_dot_product_attention"
            real = functional.scaled_dot_product_attention
            self.function = functools.partial(ATTENDS[fault], real)
        else:
            self.where, self.name = harness.sibling("_compiling"), "compiled"
            self.function = compiles(self.where.compiled)[fault]
        self.real, self.used = getattr(self.where, self.name), 0

    def __enter__(self):
        def counted(*args, **kwargs):
            self.used += 1
            return self.function(*args, **kwargs)

        setattr(self.where, self.name, counted)

    def __exit__(self, *error):
        setattr(self.where, self.name, self.real)


class Future:
    """The whole of it, as :func:`see_the_future` says."""

    def __init__(self):
        self.training, self.used = harness.sibling("_training"), 1
        self.real = self.training.plain, self.training.native

    def __enter__(self):
        see_the_future(self.training)

    def __exit__(self, *error):
        self.training.plain, self.training.native = self.real


def broken_by(job):
    """What breaks something for this job; None for a sound one."""
    operator, fault = job["operator"], job["fault"]
    if not fault:
        return None
    if operator == "future":
        return Future()
    return Patch(operator, fault) if operator in ("sdpa", "compile") else Broken(operator, fault)


class Broken(TorchDispatchMode):
    """Falsifies the result number ``part`` of one operator; counts how often it could."""

    def __init__(self, operator, fault):
        super().__init__()
        self.operator, _, part = operator.partition(":")
        self.part, self.fault, self.used = int(part or 0), FAULTS[fault], 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if str(function).startswith("aten." + self.operator + "."):
            results = args[0] if out is None else out  # in place, in a list
            hit = results[self.part] if isinstance(results, (tuple, list)) else results
            if isinstance(hit, torch.Tensor) and hit.numel():
                self.used += 1
                with torch.no_grad():
                    self.fault(hit, args)
        return out


def chosen(context, only):
    """Cases that are not asked for are not run."""
    real = context.case

    def case(name, function, *args, **kwargs):
        if only and only not in name:
            return harness.case(name, harness.SKIPPED, "not asked for")
        return real(name, function, *args, **kwargs)

    return case


def run(job):
    broken = broken_by(job)
    if isinstance(broken, (Patch, Future)):
        with broken:
            return cases(job, broken)
    return cases(job, broken)


def cases(job, broken):
    inside = [not isinstance(broken, Broken)]

    def subject(function, *args, **kwargs):
        if inside[-1]:
            return real_subject(function, *args, **kwargs)
        inside.append(True)
        try:
            with broken:
                return real_subject(function, *args, **kwargs)
        finally:
            inside.pop()

    harness.subject = subject
    module = harness.load(os.path.join(CHECKS, job["check"] + ".py"), "envlock_check")
    arguments = {"seed": job["seed"], **job.get("arguments", {})}
    request = {"device": "cpu", "arguments": arguments, "unsupported": job.get("unsupported", ())}
    context = harness.Context(request)
    context.case, found = chosen(context, job.get("only", "")), []
    for case in module.check(context):
        if case["reason"] != "not asked for":
            found.append(case)
        if broken is not None and case["status"] == "failed":
            break
    return {"cases": found, "used": broken.used if broken else 0}


def main():
    with open(JOBS, encoding="utf-8") as file:
        jobs = json.load(file)
    answers = [run(job) for job in jobs]
    with open(ANSWER, "w", encoding="utf-8") as file:
        json.dump(answers, file, allow_nan=False)


main()

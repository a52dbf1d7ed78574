"""perf.sdpa, perf.fa: causal attention, forward and backward. Argument: kernel, ``sdpa`` or ``fa``.

Two products of 2 b h s**2 d operations, half of them behind the mask; the backward pass is counted
as two and a half times the forward one. One head of each answer is compared with double precision.
"""

import math

import harness
import torch

compare = harness.sibling("_compare")
timing = harness.sibling("_timing")

SEED = 336
#: batch, heads, length, head dimension
SHAPES = ((4, 16, 2048, 128), (2, 16, 8192, 128), (4, 32, 2048, 64))
CPU_SHAPES = ((1, 2, 256, 64),)
HALF = (torch.bfloat16, torch.float16)
#: Above this length one head in double precision takes the host too long, and only the beginning is
#: compared: with a causal mask it does not depend on the rest.
COMPARED = 1024
BACKWARD = 2.5


def find_kernel(context, kind):
    """The function under test, on (batch, length, heads, dimension)."""
    if kind == "fa":
        function = harness.sibling("_flash").find_function(context)
        return lambda q, k, v: function(q, k, v, causal=True)
    attend = torch.nn.functional.scaled_dot_product_attention

    def sdpa(q, k, v):
        q, k, v = (item.transpose(1, 2) for item in (q, k, v))
        return attend(q, k, v, is_causal=True).transpose(1, 2)

    return sdpa


def flops(shape):
    batch, heads, length, dim = shape
    return 4 * batch * heads * length**2 * dim // 2


def inputs(context, shape, dtype):
    """q, k, v and the gradient of the output."""
    batch, heads, length, dim = shape
    sizes = (batch, length, heads, dim)
    made = [timing.randn(sizes, dtype, context.device, SEED + number) for number in range(4)]
    return [item.requires_grad_(number < 3) for number, item in enumerate(made)]


def forward(context, kernel, shape, dtype):
    memory = timing.Memory(context)
    q, k, v, _ = inputs(context, shape, dtype)
    with torch.no_grad():
        metrics = harness.subject(timing.measure, context, lambda: kernel(q, k, v))
        out = harness.subject(kernel, q, k, v)
    metrics.update(memory.metrics())
    golden = golden_head(q, k, v)
    metrics.update(compared("out", out, golden))
    return timing.rated(metrics, compare.short(dtype), flops=flops(shape))


def backward(context, kernel, shape, dtype):
    memory = timing.Memory(context)
    q, k, v, grad = inputs(context, shape, dtype)
    out = harness.subject(kernel, q, k, v)
    call = lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True)  # noqa: E731
    metrics = harness.subject(timing.measure, context, call)
    found = harness.subject(call)
    metrics.update(memory.metrics())
    for number, one in enumerate(found):
        if not torch.isfinite(one).all():
            raise harness.Failure("d{} is not finite after the timed calls".format("qkv"[number]))
    metrics.update(compared("dq", found[0], golden_dq(q, k, v, grad)))
    return timing.rated(metrics, compare.short(dtype), flops=int(BACKWARD * flops(shape)))


def first_head(*tensors):
    """The first rows of the first head, in double precision on the host."""
    return [item.detach()[0, :COMPARED, 0].cpu().double() for item in tensors]


def golden_head(q, k, v):
    q, k, v = first_head(q, k, v)
    return weights(q, k) @ v


def weights(q, k):
    scores = q @ k.t() / math.sqrt(q.shape[-1])
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, float("-inf")).softmax(-1)


def golden_dq(q, k, v, grad):
    """Row i of dq depends on the keys before it alone, so that the beginning is enough."""
    q, k, v, grad = first_head(q, k, v, grad)
    seen = weights(q, k)
    along = grad @ v.t()
    inner = (seen * along).sum(-1, keepdim=True)
    return (seen * (along - inner)) @ k / math.sqrt(q.shape[-1])


def compared(name, found, golden):
    limit = compare.ATTENTION_FRO[found.dtype]
    (head,) = first_head(found)
    measured = compare.measure(head, golden)
    if measured["nan"] or measured["inf"] or not measured["fro_rel"] <= limit:
        text = "{}: relative error {:.2e} after the timed calls, over {:.0e}"
        raise harness.Failure(text.format(name, measured["fro_rel"], limit), **measured)
    return {"fro_rel": measured["fro_rel"], "fro_limit": limit}


def check(context):
    timing.describe(context)
    kind = context.arguments["kernel"]
    kernel = find_kernel(context, kind)
    for shape in CPU_SHAPES if context.on_cpu else SHAPES:
        for dtype in HALF if shape == SHAPES[0] else HALF[:1]:
            shown = "{} {} b{} h{} s{} d{}".format(kind, compare.short(dtype), *shape)
            for function in (forward, backward):
                name = "{} {}".format(shown, function.__name__)
                yield context.case(name, function, context, kernel, shape, dtype)

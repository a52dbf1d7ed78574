"""What torch.compile is asked to compile, and how its answer is judged: against eager, and both
against double precision on the processor."""

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")
compiling = harness.sibling("_compiling")

#: A compiled result may be this many times as far from double precision as the eager one is.
FACTOR, FLOOR = 3.0, 1e-5


def block(x, w, scale, bias):
    """Product, activation, normalisation."""
    return F.layer_norm(F.gelu(x @ w), scale.shape, scale, bias)


def attention(x, w, scale, bias):
    q, k, v = (x @ w).view(1, x.shape[0], 4, -1).transpose(1, 2).chunk(3, -1)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.transpose(1, 2).reshape(x.shape[0], -1)


def columns(x, w, scale, bias):
    """Sums along the first dimension: right forward and wrong backward, once."""
    y = x @ w
    return (y.softmax(0) * scale).sum(0) + y.var(0) + y.mean(0) * bias


def loss(x, w, scale, bias):
    """Words, their vectors, a loss."""
    words = torch.arange(x.shape[0], device=x.device) * 7 % w.shape[0]
    rows = F.embedding(words, w) * scale + bias
    return F.cross_entropy(rows, words % w.shape[1])[None]


KINDS = {"block": block, "attention": attention, "columns": columns, "loss": loss}
ROWS, INNER, WIDE = 96, 64, 192


def inputs(seed, dtype=torch.float32, rows=ROWS):
    source = compare.generator(seed)
    shapes = ((rows, INNER), (INNER, WIDE), (WIDE,), (WIDE,))
    return [compare.randn(shape, dtype, source) for shape in shapes]


def with_gradients(function, tensors, grad):
    """Output and gradients; zero where an input has no part in the output."""
    leaves = [tensor.detach().clone().requires_grad_(True) for tensor in tensors]
    out = function(*leaves)
    out.backward(grad)
    grads = [torch.zeros_like(t) if t.grad is None else t.grad for t in leaves]
    return [item.detach().cpu() for item in (out, *grads)]


def judged(function, made, tensors, seed, device):
    """``made`` is the compiled function. Every result and gradient against eager's error."""
    double = [tensor.double() for tensor in tensors]
    shape = function(*double).shape
    grad = compare.randn(shape, tensors[0].dtype, compare.generator(seed + 1))
    golden = with_gradients(function, double, grad.double())
    placed = [tensor.to(device) for tensor in tensors]
    eager = with_gradients(function, placed, grad.to(device))
    found = harness.subject(with_gradients, made, placed, grad.to(device))
    parts = {}
    for number, (item, plain, right) in enumerate(zip(found, eager, golden)):
        name = "gradient {}".format(number - 1) if number else "out"
        reference = compare.measure(plain, right)
        size = float(right.abs().max())
        limit = FACTOR * reference["max_abs"] + FLOOR * max(size, 1.0)
        fro_limit = FACTOR * reference["fro_rel"] + FLOOR
        parts[name] = compare.within(item, right, limit, fro_limit, name)
    return compare.worst(parts)


def really(metrics):
    """Something was captured and built, and no part was left to eager."""
    counted = compiling.built()
    rules.must(counted["graphs"] > 0, "no graph was captured", **counted)
    rules.must(counted["kernels"] > 0, "no kernel was built", **counted)
    rules.must(not counted["breaks"], "the graph breaks", **counted)
    return {**metrics, **counted}


def one(name, seed, context, dtype=torch.float32, **options):
    """One case: compiled anew, forward and backward."""
    compiling.ready(context)
    compiling.forget()
    function = KINDS[name]
    made = harness.subject(compiling.compiled, function, **options)
    return really(judged(function, made, inputs(seed, dtype), seed, context.device))

"""tri.layernorm: forward and backward of a layer norm. The gradients of weight and bias are sums
over dimension 0, where compilers went wrong while the forward was right."""

import harness
import torch

common = harness.sibling("_triton")
compare = common.compare

ROWS, COLUMNS, WIDE = 1000, 333, 512
CPU_ROWS = 50
EPSILON = 1e-5
PARTS = {"BM": 32, "BN": 64}
#: Long float32 sums, and the rounding of the type the result is stored in.
FRO = {torch.float32: 2e-6, torch.float16: 6e-4, torch.bfloat16: 5e-3}


def drawn(rows, dtype):
    """Input, weight, bias, gradient of the output; not centred, so that the mean matters."""
    source = compare.generator(common.SEED)
    x = (compare.randn((rows, COLUMNS), torch.float32, source) * 2 + 0.5).to(dtype)
    w, b = (compare.randn((COLUMNS,), dtype, source) for _ in "wb")
    return x, w, b, compare.randn((rows, COLUMNS), dtype, source)


def golden(x, w, b, dy):
    """Output and gradients of x, w, b in double precision."""
    leaves = [item.double().requires_grad_(True) for item in (x, w, b)]
    y = torch.nn.functional.layer_norm(leaves[0], (COLUMNS,), leaves[1], leaves[2], EPSILON)
    y.backward(dy.double())
    return dict(zip(("y", "dx", "dw", "db"), [y.detach()] + [leaf.grad for leaf in leaves]))


def launched(kernels, given, device):
    """The same by the kernels; and the buffers with their guards."""
    x, w, b, dy = (item.to(device) for item in given)
    rows, dtype = len(x), x.dtype
    buffers = {name: common.guarded(rows * COLUMNS, dtype, device) for name in ("y", "dx")}
    buffers.update({n: common.guarded(COLUMNS, torch.float32, device) for n in ("dw", "db")})
    buffers.update({n: common.guarded(rows, torch.float32, device) for n in ("mean", "scale")})
    out = {name: middle for name, (_, middle) in buffers.items()}
    kernels.norm[(rows,)](
        x, w, b, out["y"], out["mean"], out["scale"], COLUMNS, EPS=EPSILON, BLOCK=WIDE
    )
    kernels.norm_rows[(rows,)](dy, x, w, out["mean"], out["scale"], out["dx"], COLUMNS, BLOCK=WIDE)
    kernels.norm_columns[(common.blocks(COLUMNS, PARTS["BN"]),)](
        dy, x, out["mean"], out["scale"], out["dw"], out["db"], rows, COLUMNS, **PARTS
    )
    found = {name: out[name].cpu() for name in ("y", "dx", "dw", "db")}
    return found, [whole for whole, _ in buffers.values()]


def layer_norm(kernels, rows, dtype, device):
    given = drawn(rows, dtype)
    right = golden(*given)
    found, buffers = harness.subject(launched, kernels, given, device)
    parts = {}
    for name, value in found.items():
        value = value.view(right[name].shape)
        parts[name] = common.close(value, right[name], FRO[value.dtype], name)
    for whole in buffers:
        common.guards_intact(whole)
    return compare.worst(parts)


def check(context):
    kernels = common.prepare(context, "_kernels_more")
    rows = CPU_ROWS if context.on_cpu else ROWS
    for dtype in common.floats(context):
        name = "layer norm {} {}x{}".format(compare.short(dtype), rows, COLUMNS)
        yield context.case(name, layer_norm, kernels, rows, dtype, context.device)

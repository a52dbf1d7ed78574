"""num.conv: convolutions and batch normalisation, forward and backward, in both memory orders.

Also shows that the library's own kernels or its compiler and its database are there.
"""

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
#: name -> (shape of the image, of the weight, options)
KINDS = {
    "3x3 stride 2": ((2, 16, 33, 35), (24, 16, 3, 3), {"stride": 2, "padding": 1}),
    "1x1": ((2, 16, 33, 35), (24, 16, 1, 1), {}),
    "grouped": ((2, 16, 17, 19), (24, 4, 3, 3), {"padding": 1, "groups": 4}),
    "depthwise": ((2, 16, 17, 19), (16, 1, 5, 5), {"padding": 2, "groups": 16}),
    "dilated": ((2, 16, 17, 19), (8, 16, 3, 3), {"dilation": 2}),
}
TRANSPOSED = ((2, 16, 9, 11), (16, 12, 3, 3), {"stride": 2, "padding": 1})
#: Roundings of the largest value; a processor adds some of them up in fp16.
FACTOR = 10.0
PARTS = ("out", "gradient of the input", "gradient of the weight", "gradient of the bias")


def with_gradients(function, tensors, grad, order=torch.contiguous_format):
    leaves = [
        t.detach().clone(memory_format=order if t.dim() == 4 else torch.preserve_format)
        for t in tensors
    ]
    leaves = [leaf.requires_grad_(True) for leaf in leaves]
    out = function(*leaves)
    return [out.detach(), *torch.autograd.grad(out, leaves, grad)]


def judged(function, tensors, seed, device, order=torch.contiguous_format):
    """Output and all gradients, for a random gradient of the output."""
    double = [t.double() for t in tensors]
    grad = compare.randn(function(*double).shape, tensors[0].dtype, compare.generator(seed + 1))
    golden = with_gradients(function, double, grad.double())

    def run():
        placed = [t.to(device) for t in tensors]
        found = with_gradients(function, placed, grad.to(device), order)
        return [item.cpu() for item in found]

    found, parts = harness.subject(run), {}
    for name, item, right in zip(PARTS, found, golden):
        parts[name] = rules.rounded(item, right, name, factor=FACTOR)
    return compare.worst(parts)


def convolution(kind, dtype, order, seed, device, function=F.conv2d):
    image, weight, options = kind
    source = compare.generator(seed)
    bias = weight[1] if function is F.conv_transpose2d else weight[0]
    tensors = [compare.randn(shape, dtype, source) for shape in (image, weight, (bias,))]
    return judged(lambda *parts: function(*parts, **options), tensors, seed, device, order)


def batch_norm(dtype, seed, device):
    source = compare.generator(seed)
    values = compare.randn((4, 6, 15, 17), dtype, source)
    weight, bias = compare.randn((6,), dtype, source), compare.randn((6,), dtype, source)
    return judged(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (values, weight, bias),
                  seed, device)  # fmt: skip


def running(seed, device):
    """Running averages move as they should."""
    values = compare.randn((8, 6, 5, 5), torch.float32, compare.generator(seed)) + 2
    mean, var = torch.zeros(6, device=device), torch.ones(6, device=device)
    harness.subject(lambda: F.batch_norm(values.to(device), mean, var, training=True, momentum=0.1))
    flat = values.double().transpose(0, 1).reshape(6, -1)
    parts = {
        "mean": rules.rounded(mean, 0.1 * flat.mean(1), "running mean"),
        "variance": rules.rounded(var, 0.9 + 0.1 * flat.var(1), "running variance"),
    }
    return compare.worst(parts)


def check(context):
    seed, device = rules.seed_of(context), context.device
    torch.backends.cudnn.allow_tf32 = False  # torch's own default would cut float32 here
    orders = (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last))
    for dtype in DTYPES:
        shown = compare.short(dtype)
        for name, kind in KINDS.items():
            for order_name, order in orders:
                case = "{} {} {}".format(shown, name, order_name)
                yield context.case(case, convolution, kind, dtype, order, seed, device)
        case = "{} transposed".format(shown)
        arguments = (TRANSPOSED, dtype, torch.contiguous_format, seed, device, F.conv_transpose2d)
        yield context.case(case, convolution, *arguments)
    yield context.case("fp32 batch norm", batch_norm, torch.float32, seed, device)
    yield context.case("fp32 running averages", running, seed, device)

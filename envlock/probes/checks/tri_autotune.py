"""tri.autotune: Triton times several configurations and takes the best; each of them is right.

The interpreter cannot time anything, so on a processor the configurations are run one by one.
"""

import harness
import torch

common = harness.sibling("_triton")
compare = common.compare

SHAPE = (129, 97, 203)
CPU_SHAPE = (33, 40, 50)
#: Blocks and warps of each configuration.
CONFIGS = (((32, 32, 32), 1), ((64, 32, 32), 2), ((64, 64, 32), 4), ((128, 64, 32), 8))


def operands(shape):
    """Whole numbers in fp16, and their exact product."""
    rows, columns, inner = shape
    source = compare.generator(common.SEED)
    left = compare.integers((rows, inner), torch.float16, source, 2)
    right = compare.integers((inner, columns), torch.float16, source, 2)
    return left, right, left.double() @ right.double()


def one_by_one(kernels, shape, config, device):
    import triton.language as tl

    left, right, golden = operands(shape)
    (rows, inner), columns = left.shape, right.shape[1]
    (bm, bn, bk), warps = config
    whole, out = common.guarded(rows * columns, torch.float32, device)

    def launch():
        grid = (common.blocks(rows, bm), common.blocks(columns, bn))
        kernels.matmul[grid](
            left.to(device), right.to(device), out, rows, columns, inner,
            BM=bm, BN=bn, BK=bk, ACC=tl.float32, PRECISION=None, num_warps=warps,
        )  # fmt: skip
        return out.cpu().view(rows, columns)

    metrics = compare.exact(harness.subject(launch), golden, "product")
    common.guards_intact(whole)
    return metrics


def tuned(kernels):
    """The kernel with its configurations to choose from."""
    import triton

    configs = [
        triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps)
        for (bm, bn, bk), warps in CONFIGS
    ]
    return triton.autotune(configs=configs, key=["rows", "columns", "inner"])(kernels.matmul)


def chosen(kernels, shape, device, facts):
    import triton.language as tl

    left, right, golden = operands(shape)
    (rows, inner), columns = left.shape, right.shape[1]
    whole, out = common.guarded(rows * columns, torch.float32, device)
    kernel = harness.subject(tuned, kernels)

    def launch():
        def grid(meta):
            return common.blocks(rows, meta["BM"]), common.blocks(columns, meta["BN"])

        kernel[grid](
            left.to(device), right.to(device), out, rows, columns, inner,
            ACC=tl.float32, PRECISION=None,
        )  # fmt: skip
        return out.cpu().view(rows, columns)

    metrics = compare.exact(harness.subject(launch), golden, "product")
    common.guards_intact(whole)
    best = kernel.best_config
    facts["best"] = str(best)
    blocks = tuple(best.kwargs[name] for name in ("BM", "BN", "BK"))
    if (blocks, best.num_warps) not in CONFIGS:
        raise harness.Failure("chose a configuration that was not offered: {}".format(best))
    return metrics


def check(context):
    kernels = common.prepare(context, "_kernels_more")
    shape = CPU_SHAPE if context.on_cpu else SHAPE
    for config in CONFIGS:
        (bm, bn, bk), warps = config
        name = "blocks {}x{}x{} warps={}".format(bm, bn, bk, warps)
        yield context.case(name, one_by_one, kernels, shape, config, context.device)
    if context.on_cpu:
        return
    name = "choose among {}".format(len(CONFIGS))
    yield context.case(name, chosen, kernels, shape, context.device, context.facts)

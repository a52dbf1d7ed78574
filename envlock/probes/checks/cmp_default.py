"""cmp.default: what torch.compile builds gives eager's results and gradients, with fresh caches."""

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")
compiled = harness.sibling("_compiled")


def check(context):
    seed = rules.seed_of(context)
    dtypes = [torch.float32] + ([] if context.on_cpu else [torch.bfloat16])
    for dtype in dtypes:
        for kind in compiled.KINDS:
            name = "{} {}".format(compare.short(dtype), kind)
            yield context.case(name, compiled.one, kind, seed, context, dtype)

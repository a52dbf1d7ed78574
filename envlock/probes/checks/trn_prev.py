"""trn.prev: a tiny model learns to name the previous token, which it cannot without attention."""

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")
training = harness.sibling("_training")


def check(context):
    seed = rules.seed_of(context)
    for dtype in (torch.float32, torch.bfloat16):
        name = "{} {} steps".format(compare.short(dtype), training.steps_of(context))
        yield context.case(name, training.trained, "prev", dtype, seed, context)

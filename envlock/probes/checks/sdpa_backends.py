"""sdpa.backends: each implementation of torch's attention, asked by name.

Which one torch chooses by itself depends on shapes and types; a broken one hides behind a whole
one until a model with another head dimension comes. One that this build does not have is a skip.
"""

import warnings

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")
steps = harness.sibling("_attention")
sdpa = harness.sibling("_sdpa")

BACKENDS = ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION")
#: What torch says where an implementation cannot take a call; anything else is a fault of it.
ABSENT = ("No available kernel", "No viable backend")
SHAPE = (2, 4, 4, 129, 129, 64)
DTYPES = {
    "MATH": (torch.float32, torch.bfloat16, torch.float16),
    "FLASH_ATTENTION": (torch.bfloat16, torch.float16),
    "EFFICIENT_ATTENTION": (torch.float32, torch.bfloat16, torch.float16),
    "CUDNN_ATTENTION": (torch.bfloat16, torch.float16),
}
REASONS = 300  # characters


def forced(backend):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    chosen = getattr(SDPBackend, backend, None)
    if chosen is None:
        raise harness.Skip("this torch has no {}".format(backend))

    def function(q, k, v, options):
        with sdpa_kernel(chosen), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                return sdpa.native(q, k, v, options)
            except RuntimeError as error:
                if not any(words in str(error) for words in ABSENT):
                    raise
                reasons = "; ".join(str(one.message).split("(Triggered")[0] for one in said)
                text = "not available here: {}".format(reasons or error)
                raise harness.Skip(text[:REASONS]) from error

    return function


def judged(context, backend, dtype, options, seed):
    function = forced(backend)
    tensors = steps.inputs(SHAPE, dtype, seed)
    metrics = sdpa.judge(tensors, options, context.device, function)
    known = context.facts.setdefault("available", [])
    if backend not in known:
        known.append(backend)
    return metrics


def chosen(context):
    """Which implementation torch takes by itself, where it says so."""
    tensor = torch.zeros(2, 4, 129, 64, dtype=torch.bfloat16, device=context.device)
    try:
        from torch.nn.attention import SDPBackend

        number = torch._fused_sdp_choice(tensor, tensor, tensor)
        return SDPBackend(number).name
    except Exception:
        return "unknown"


def check(context):
    seed = rules.seed_of(context)
    context.facts["chosen"] = chosen(context)
    for backend in BACKENDS:
        for dtype in DTYPES[backend]:
            for options in ({}, {"is_causal": True}):
                causal = " causal" if options else ""
                name = "{} {}{}".format(backend.lower(), compare.short(dtype), causal)
                yield context.case(name, judged, context, backend, dtype, options, seed)

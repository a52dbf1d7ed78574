"""Finding flash-attn's function, and whether it can be asked on a processor."""

import harness
import torch


def imported():
    from flash_attn import flash_attn_func

    return flash_attn_func


def accepts_cpu(function):
    """Skips where the function has no path for a processor, as the real one has none."""
    tiny = torch.zeros(1, 1, 1, 32, dtype=torch.bfloat16)
    try:
        function(tiny, tiny, tiny, causal=True)
    except Exception as error:
        text = "flash-attn has no path for the processor: {}".format(harness.describe(error))
        raise harness.Skip(text) from error


def find_function(context):
    """The function under test. A failure where it is missing, a skip where that is to be expected
    of a machine without a device."""
    try:
        function = harness.subject(imported)
    except harness.Failure as failure:
        if context.on_cpu:
            text = "flash-attn does not work without a device: {}".format(failure)
            raise harness.Skip(text) from failure
        raise
    if context.on_cpu:
        accepts_cpu(function)
    return function

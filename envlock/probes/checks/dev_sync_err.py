"""dev.sync_err: errors come as errors: the device is clean after work, and survives a refusal.

A request for more memory than there is must raise, and leave the process able to go on. A runtime
that answers with a pointer all the same, or that never works again, loses training runs.
"""

import harness

SIDE = 512
#: More bytes than any device has, and few enough for a 64-bit size.
TOO_MUCH = 2**50


def works(torch, context):
    """A product of ones, whose every element is known."""
    ones = torch.ones(SIDE, SIDE, device=context.device)
    found = ones @ ones
    if not context.on_cpu:
        torch.cuda.synchronize()
    wrong = int((found != SIDE).sum().item())
    if wrong:
        raise harness.Failure("{} elements are not {}".format(wrong, SIDE), wrong=wrong)
    return {"wrong": 0}


def refused(torch, context):
    """More memory than there is: an error of the right kind, and no more than that."""
    try:
        kept = torch.empty(TOO_MUCH, dtype=torch.uint8, device=context.device)
    except MemoryError as error:
        kind = type(error).__name__
    except RuntimeError as error:
        kind = type(error).__name__
        if not context.on_cpu and kind != "OutOfMemoryError":
            raise harness.Failure("not OutOfMemoryError: " + harness.describe(error)) from error
    else:
        raise harness.Failure("{} bytes were given".format(kept.numel()))
    return {"raised": kind}


def check(context):
    torch = harness.subject(__import__, "torch")
    if not context.on_cpu and not torch.cuda.is_available():
        raise harness.Skip("no device: none is visible to torch")
    yield context.case("work", harness.subject, works, torch, context)
    yield context.case("more memory than there is", refused, torch, context)
    yield context.case("work after a refusal", harness.subject, works, torch, context)

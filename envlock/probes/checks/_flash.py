"""flash-attn's functions: finding them, what they can be asked, and how they are called.

What a build does not support is read from the signature of its function, never from an error.
"""

import inspect
import os

import harness
import torch

reference = harness.sibling("_attention")


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


def other(name):
    """Another function of flash-attn by name; a skip where this version has none."""
    import flash_attn

    function = getattr(flash_attn, name, None)
    if function is None:
        raise harness.Skip("this flash-attn has no {}".format(name))
    return function


def takes(function, *names):
    """Skips where the function has no parameter of such a name. A wrapper that passes on whatever
    it is given says nothing: it is called, and has to manage."""
    known = inspect.signature(function).parameters
    anything = any(one.kind is one.VAR_KEYWORD for one in known.values())
    for name in names:
        if name not in known and not anything:
            text = "this flash-attn does not know '{}': {} has no such parameter"
            raise harness.Skip(text.format(name, getattr(function, "__name__", "the function")))


def on_triton():
    """Whether flash-attn was told to use its Triton kernels for AMD; upstream's own tests leave out
    bf16, windows and determinism with these."""
    return os.environ.get("FLASH_ATTENTION_TRITON_AMD_ENABLE", "").upper() == "TRUE"


def left_out(dtype, mode=reference.FULL):
    """Skips what upstream does not test either."""
    if on_triton() and (dtype == torch.bfloat16 or mode.window != (-1, -1)):
        raise harness.Skip("not tested upstream with FLASH_ATTENTION_TRITON_AMD_ENABLE")


def options(function, mode, device):
    """A mode as the arguments of a function; only what differs from the defaults, since old
    versions lack some. A skip for what this one lacks."""
    chosen = {"causal": mode.causal}
    if mode.window != (-1, -1):
        chosen["window_size"] = mode.window
    if mode.softcap > 0:
        chosen["softcap"] = mode.softcap
    if mode.slopes is not None:
        chosen["alibi_slopes"] = mode.slopes.float().to(device)
    if mode.scale is not None:
        chosen["softmax_scale"] = mode.scale
    takes(function, *chosen)
    return chosen


def rule(mode, packed=False, usual=reference.USUAL):
    """flash-attn's own tests allow the output twice as much on ROCm where it is causal or packed
    sequences are."""
    if torch.version.hip and (mode.causal or packed):
        return usual._replace(out=reference.NATIVE_OUT_FACTOR)
    return usual


def dense(function, **chosen):
    """The function for (batch, heads, length, dimension); it wants the length before the heads."""

    def called(q, k, v):
        q, k, v = (item.transpose(1, 2) for item in (q, k, v))
        return function(q, k, v, **chosen).transpose(1, 2)

    return called


def judged(function, mode, given, device, usual=reference.USUAL):
    """A call with a mode, for q, k, v and the gradient of the output."""
    left_out(given[-1].dtype, mode)
    called = dense(function, **options(function, mode, device))

    def right(q, k, v, dtype=None):
        return reference.attention(q, k, v, mode, dtype)

    return reference.judge_call(called, right, given, device, rule(mode, usual=usual))


def one(function, case, device):
    """The usual case. case: shape, type, seed, mode."""
    return judged(function, case[3], reference.inputs(*case[:3]), device)


def name_of(shape, dtype, mode):
    """``bf16 4x6/2x113x203x64 causal``."""
    shown = "{} {}x{}/{}x{}x{}x{}".format(reference.compare.short(dtype), *shape)
    return shown + (" causal" if mode.causal else "")

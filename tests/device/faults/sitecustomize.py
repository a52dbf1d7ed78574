# mypy: ignore-errors
"""Breaks one kernel in every Python that has this folder on PYTHONPATH; ENVLOCK_FAULT says which.

Python imports this module at its start. What is broken is changed when its module has been
imported, so that nothing is imported that would not have been.
"""

import importlib.util
import os
import sys


def drop_last(torch):
    """Products without the last slice of the inner dimension."""
    whole = torch.Tensor.__matmul__

    def product(left, right):
        if left.dtype == torch.float64 or left.dim() != 2 or left.shape[1] < 2:
            return whole(left, right)  # references are in double precision
        return whole(left[:, :-1], right[:-1])

    torch.Tensor.__matmul__ = product


def shorten(torch):
    """Products of float32 in TF32."""
    torch.backends.cuda.matmul.allow_tf32 = True


def scaled(torch, factor):
    """The identity, with a gradient that is off by a factor."""

    class Off(torch.autograd.Function):
        @staticmethod
        def forward(context, tensor):
            return tensor.clone()

        @staticmethod
        def backward(context, grad):
            return grad * factor

    return Off.apply


def grow_gradient(torch):
    """torch's attention; the gradient of v is a tenth too large."""
    functional = torch.nn.functional
    attend, off = functional.scaled_dot_product_attention, scaled(torch, 1.1)

    def attention(q, k, v, *arguments, **more):
        return attend(q, k, off(v), *arguments, **more)

    functional.scaled_dot_product_attention = attention


def lose_gradient(flash_attn):
    """flash-attn without a gradient for k."""
    function, off = flash_attn.flash_attn_func, scaled(sys.modules["torch"], 0.0)

    def attention(q, k, v, *arguments, **more):
        return function(q, off(k), v, *arguments, **more)

    flash_attn.flash_attn_func = attention


def touch_element(triton):
    """Every Triton kernel: the first element of its last tensor is one too large."""
    kind = triton.runtime.jit.JITFunction
    whole = kind.run

    def run(self, *arguments, grid, warmup, **more):
        result = whole(self, *arguments, grid=grid, warmup=warmup, **more)
        tensors = [item for item in arguments if hasattr(item, "data_ptr")]
        if tensors and not warmup:
            tensors[-1].view(-1)[:1] += 1
        return result

    kind.run = run


#: fault -> module that it is in, what is done to it
FAULTS = {
    "gemm-slice": ("torch", drop_last),
    "gemm-tf32": ("torch", shorten),
    "sdpa-gradient": ("torch", grow_gradient),
    "flash-gradient": ("flash_attn", lose_gradient),
    "triton-element": ("triton", touch_element),
}


class Breaking:
    """Finds the module, and breaks it once it has been imported."""

    def __init__(self, name, harm):
        self.name, self.harm = name, harm

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.harm is None:
            return None
        harm, self.harm = self.harm, None
        spec = importlib.util.find_spec(name)
        if spec is None:
            return None
        load = spec.loader.exec_module

        def broken(module):
            load(module)
            harm(module)

        spec.loader.exec_module = broken
        return spec


if os.environ.get("ENVLOCK_FAULT"):
    sys.meta_path.insert(0, Breaking(*FAULTS[os.environ["ENVLOCK_FAULT"]]))

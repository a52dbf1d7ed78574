"""The checks, one line each, in the order they run.

A check is one file in ``probes/checks/`` and one line here. Its id is what reports, ``--only`` and
``--skip`` call it.
"""

from __future__ import annotations

from typing import Any

from envlock.model.check import Check

#: Asked again after a device check crashed or failed: is the device still there?
CANARY = "dev.first"
#: Done by envlock itself, without a child.
STATIC_LOCK = "static.lock"
#: What a subject is imported with; where that check fails, the others about it are pointless.
IMPORTS = {"torch": "imp.torch", "triton": "imp.triton", "flash-attn": "imp.flash_attn"}

# Seconds. A first import can take 20 s, the first initialisation of a device 30 s, a first
# compilation 4 s; attention compiles once for each head dimension.
_TIMEOUTS = {"imp": 180.0, "dev": 180.0, "fa": 900.0}


def _run(name: str, level: str, subject: str, script: str, title: str, **more: Any) -> Check:
    """A check that a child runs; what is left over are the script's arguments."""
    device = more.pop("device", False)
    return Check(
        id=name,
        title=title,
        level=level,
        subject=subject,
        script=script,
        timeout=_TIMEOUTS.get(name.partition(".")[0], 300.0),
        device=device,
        arguments=tuple(more.items()),
    )


def _import(name: str, subject: str, module: str, *names: str, device: bool = False) -> Check:
    title = f"{module} can be imported"
    more = {"module": module, "names": list(names), "device": device}
    return _run(name, "quick", subject, "imports.py", title, **more)


CHECKS: tuple[Check, ...] = (
    Check(id=STATIC_LOCK, title="files are those of the manifest", level="static"),
    _import("imp.torch", "torch", "torch"),
    _import("imp.triton", "triton", "triton", "jit"),
    _import("imp.flash_attn", "flash-attn", "flash_attn", "flash_attn_func", device=True),
    _run(CANARY, "quick", "torch", "dev_first.py", "first kernel on the device"),
    _run("smoke.seed", "quick", "torch", "smoke_seed.py", "four-stage smoke test"),
    _run("num.gemm_exact", "standard", "torch", "gemm_exact.py", "matrix products, exact"),
    _run("num.gemm_real", "standard", "torch", "gemm_real.py", "matrix products, rounding"),
    _run("num.gemm_ident", "standard", "torch", "gemm_ident.py", "matrix times one"),
    _run("sdpa.causal", "standard", "torch", "sdpa_causal.py", "torch attention and gradients"),
    _run("tri.add", "standard", "triton", "tri_add.py", "Triton kernels", device=True),
    _run(
        "fa.causal",
        "standard",
        "flash-attn",
        "fa_causal.py",
        "flash-attn and gradients",
        device=True,
    ),
)

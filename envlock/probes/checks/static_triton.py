"""static.triton_target: Triton compiles for the profile's device, on any machine.

No device is asked. An upstream Triton that took the vendor's place cannot compile for the vendor's
architecture, and a missing linker or compiler back end shows as well.
"""

import re

import harness

#: A vendor's backend may have a name of its own for the same thing.
BACKENDS = {"hip": ("hip", "hcu"), "cuda": ("cuda",)}
#: What every backend of the kind can compile for: tells a broken Triton from a foreign one.
CONTROL = {"hip": "gfx942", "cuda": 80}
SIGNATURES = {
    "add": ({"x": "*fp32", "y": "*fp32", "out": "*fp32", "count": "i32"}, {"BLOCK": 256}),
    "dot": ({"x": "*fp16", "y": "*fp16", "out": "*fp32"}, {"SIDE": 64}),
}
_SPILLS = re.compile(r"\.[sv]gpr_spill_count:\s*(\d+)")


def target_for(triton, kind, architecture, lanes):
    """The target, of the first backend that takes it."""
    from triton.backends.compiler import GPUTarget

    known = triton.backends.backends.values()
    for name in BACKENDS[kind]:
        target = GPUTarget(name, architecture, lanes)
        if any(backend.compiler.supports_target(target) for backend in known):
            return target
    raise harness.Failure(
        "no backend for {}: Triton has {}".format(kind, sorted(triton.backends.backends))
    )


def compiled(triton, kernel, name, target):
    """What the compiler gives, by stage."""
    from triton.compiler import ASTSource

    signature, constants = SIGNATURES[name]
    whole = dict(signature, **dict.fromkeys(constants, "constexpr"))
    try:
        source = ASTSource(fn=kernel, signature=whole, constexprs=constants)
    except TypeError:  # before Triton 3.3
        source = ASTSource(fn=kernel, signature=signature, constants=constants)
    return triton.compile(source, target=target).asm


def right_code(asm, kind, architecture, lanes):
    """Whether it is code for that device and no other; what was measured."""
    binary, text = ("cubin", "ptx") if kind == "cuda" else ("hsaco", "amdgcn")
    if not asm.get(binary):
        raise harness.Failure("no {}: only {}".format(binary, ", ".join(sorted(asm))))
    wanted = "sm_{}".format(architecture) if kind == "cuda" else architecture
    said = str(asm.get(text, ""))
    if wanted not in said:
        raise harness.Failure("the code is not for {}".format(wanted))
    if kind != "cuda" and not re.search(r"\.wavefront_size:\s*{}\b".format(lanes), said):
        raise harness.Failure("a warp does not have {} lanes".format(lanes))
    spills = sum(int(found) for found in _SPILLS.findall(said))
    return {"bytes": len(asm[binary]), "spills": spills}


def one_kernel(triton, kernels, name, wanted):
    kind, architecture, lanes = wanted
    target = target_for(triton, kind, architecture, lanes)
    asm = compiled(triton, getattr(kernels, name), name, target)
    metrics = right_code(asm, kind, architecture, lanes)
    return dict(metrics, backend=target.backend)


def is_labelled(version):
    """Whether somebody built it himself: releases from the index have no label."""
    return "+" in version


def judged(context, triton, kernels, name, wanted):
    """A failure where it is Triton's; a warning where a labelled build has not been seen to do it.

    A vendor's build is expected to compile without a device, which nobody has shown on all of them.
    """
    kind, architecture, lanes = wanted
    control = (kind, CONTROL[kind], lanes)
    try:
        return harness.subject(one_kernel, triton, kernels, name, wanted)
    except harness.Failure as failure:
        if not is_labelled(context.facts["version"]) or control == wanted:
            raise
        harness.subject(one_kernel, triton, kernels, name, control)
        text = "not for {} without a device: {}".format(architecture, failure)
        return {"warning": text, "control": control[1]}


def check(context):
    named = context.given.get("triton") or ()
    if len(named) != 3:
        raise harness.Skip("the profile has no target for Triton")
    kind, architecture, lanes = named
    wanted = (kind, int(architecture) if kind == "cuda" else architecture, int(lanes))
    triton = harness.subject(__import__, "triton")
    from importlib.metadata import version

    context.facts.update(version=version("triton"), target=list(wanted))
    kernels = harness.subject(harness.sibling, "_target_kernels")
    for name in SIGNATURES:
        yield context.case(name, judged, context, triton, kernels, name, wanted)

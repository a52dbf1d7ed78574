"""cmp.reduce_overhead: compiled into captured graphs of the device, called more than once."""

import harness

rules = harness.sibling("_rules")
compiled = harness.sibling("_compiled")
compiling = harness.sibling("_compiling")

CALLS = 4


def replayed(kind, seed, context):
    """The first calls warm up and record, the later ones replay; each has other numbers."""
    if context.on_cpu:
        raise harness.Skip("a processor has no graphs")
    compiling.forget()
    function, parts = compiled.KINDS[kind], {}
    made = harness.subject(compiling.compiled, function, mode="reduce-overhead")
    for number in range(CALLS):
        tensors = compiled.inputs(seed + number)
        found = compiled.judged(function, made, tensors, seed, context.device)
        parts["call {}".format(number)] = found
    return compiled.really(compiled.compare.worst(parts))


def check(context):
    seed = rules.seed_of(context)
    for kind in ("block", "attention"):
        yield context.case("fp32 " + kind, replayed, kind, seed, context)

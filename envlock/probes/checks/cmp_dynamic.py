"""cmp.dynamic: one compiled graph serves several lengths."""

import harness

rules = harness.sibling("_rules")
compiled = harness.sibling("_compiled")
compiling = harness.sibling("_compiling")

ROWS = (96, 33, 130)


def lengths(kind, seed, context):
    """The same compiled function for each; it is not built again for each."""
    compiling.ready(context)
    compiling.forget()
    function, parts = compiled.KINDS[kind], {}
    made = harness.subject(compiling.compiled, function, dynamic=True)
    for rows in ROWS:
        tensors = compiled.inputs(seed, rows=rows)
        found = compiled.judged(function, made, tensors, seed, context.device)
        parts["{} rows".format(rows)] = found
    metrics = compiled.really(compiled.compare.worst(parts))
    text = "{} graphs for {} lengths".format(metrics["graphs"], len(ROWS))
    rules.must(metrics["graphs"] < len(ROWS), text, **metrics)
    return metrics


def check(context):
    seed = rules.seed_of(context)
    for kind in ("block", "columns"):
        yield context.case("fp32 " + kind, lengths, kind, seed, context)

"""How many devices torch sees; as a fact, for whoever spreads the checks over them."""

import harness


def check(context):
    torch = harness.subject(__import__, "torch")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    context.facts["count"] = count
    yield context.case("count", lambda: {"count": count})

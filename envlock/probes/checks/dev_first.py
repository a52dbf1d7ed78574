"""dev.first: the device is there and a first kernel gives the right number. Also the canary that
is asked again after another check crashed or failed."""

import harness

SEED = 336
COUNT = 1024


def architecture(torch, found):
    """``gfx936``, without its feature flags, or ``sm_90``."""
    if torch.version.hip:
        return getattr(found, "gcnArchName", "").split(":")[0]
    return "sm_{}{}".format(found.major, found.minor)


def describe_device(torch, context):
    """What the device says of itself."""
    facts = {
        "torch": torch.__version__,
        "hip": torch.version.hip,
        "cuda": torch.version.cuda,
        "device": "cpu",
        "device_count": 0,
    }
    if not context.on_cpu:
        found = torch.cuda.get_device_properties(0)
        facts.update(
            device=torch.cuda.get_device_name(0),
            device_count=torch.cuda.device_count(),
            memory_gib=round(found.total_memory / 1024**3, 2),
            arch=architecture(torch, found),
            compute_units=found.multi_processor_count,
            bf16_supported=torch.cuda.is_bf16_supported(),
        )
    return facts


def visible(torch, context):
    """A device is visible; a skip where none is known to be there."""
    if context.on_cpu:
        return {"count": 0}
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count and context.expected:
        raise harness.Failure("no device is visible to torch", count=0)
    if not count:
        raise harness.Skip("no device: none is visible to torch")
    torch.cuda.init()
    return {"count": count}


def first_kernel(torch, device):
    """1 + 1, brought back."""
    value = (torch.ones(1, device=device) + 1).item()
    if value != 2.0:
        raise harness.Failure("1 + 1 gave {}".format(value), value=value)
    return {"value": value}


def sum_of(torch, device):
    """A sum against the CPU in double precision."""
    source = torch.Generator(device="cpu").manual_seed(SEED)
    numbers = torch.randn(COUNT, generator=source)
    right = float(numbers.double().sum())
    found = float(numbers.to(device).sum().cpu())
    # a float32 sum is off by at most n * eps * sum of magnitudes; pairwise sums are far better
    limit = float(numbers.abs().double().sum()) * 2.0**-24 * 10
    off = abs(found - right)
    metrics = {"max_abs": off, "limit": limit, "margin": round(off / limit, 4)}
    if not off <= limit:
        raise harness.Failure("the sum is {}, not {}".format(found, right), **metrics)
    return metrics


def check(context):
    torch = harness.subject(__import__, "torch")
    seen = context.case("device visible", harness.subject, visible, torch, context)
    yield seen
    if seen["status"] != harness.PASSED:
        return
    context.facts.update(harness.subject(describe_device, torch, context))
    device = context.device
    yield context.case("first kernel", harness.subject, first_kernel, torch, device)
    yield context.case("sum of 1024", harness.subject, sum_of, torch, device)

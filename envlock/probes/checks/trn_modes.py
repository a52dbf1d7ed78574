"""trn.modes: the same training in fp16 with a scaler, from a checkpoint, twice, and compiled."""

import io

import harness
import torch

rules = harness.sibling("_rules")
training = harness.sibling("_training")
compiling = harness.sibling("_compiling")

STEPS = 20


def scaled(seed, context):
    return training.trained("prev", torch.float16, seed, context)


def once(seed, context, steps):
    run = training.Run(training.made(seed), context.device)
    return harness.subject(run.go, "prev", seed, steps)


def twice(seed, context):
    """Two runs begin with the same losses; how far apart they end is recorded."""
    first, second = (once(seed, context, STEPS).losses for _ in range(2))
    off = max(abs(a - b) for a, b in zip(first, second))
    limit = training.LIMITS[torch.float32][1]
    early = max(abs(a - b) for a, b in zip(first[:10], second[:10]))
    metrics = {"error": early, "limit": limit, "margin": round(early / limit, 4), "later_off": off}
    rules.must(early <= limit, "two runs are {:.3g} apart".format(early), **metrics)
    return metrics


def stored(run):
    file = io.BytesIO()
    torch.save({"model": run.model.state_dict(), "optimizer": run.optimizer.state_dict()}, file)
    file.seek(0)
    return torch.load(file, map_location="cpu", weights_only=True)


def resumed(seed, context):
    """Stopped, written, read and gone on with: the losses are those of a run without a stop."""
    half = STEPS // 2
    whole = once(seed, context, STEPS)

    def stopped():
        first = training.Run(training.made(seed), context.device).go("prev", seed, half)
        again = training.Run(training.made(seed + 1), context.device)
        state = stored(first)
        again.model.load_state_dict(state["model"])
        again.optimizer.load_state_dict(state["optimizer"])
        again.losses = first.losses
        return again.go("prev", seed, STEPS).losses[half:]

    losses = harness.subject(stopped)
    off = max(abs(a - b) for a, b in zip(losses[:10], whole.losses[half:]))
    limit = training.LIMITS[torch.float32][1]
    metrics = {"error": off, "limit": limit, "margin": round(off / limit, 4)}
    rules.must(off <= limit, "after the checkpoint losses are {:.3g} off".format(off), **metrics)
    return metrics


def compiled(seed, context):
    compiling.ready(context)
    wanted = training.reference("prev", seed)

    def go():
        model = training.made(seed)
        run = training.Run(model, context.device, prepared=compiling.compiled)
        return run.go("prev", seed, training.FIRST)

    return training.compared(harness.subject(go), wanted, torch.float32)


def check(context):
    seed = rules.seed_of(context)
    for name, judged in (
        ("fp16 with a scaler", scaled),
        ("fp32 twice", twice),
        ("fp32 from a checkpoint", resumed),
        ("fp32 compiled", compiled),
    ):
        yield context.case(name, judged, seed, context)

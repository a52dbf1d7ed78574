"""The tiny model and its two tasks. One of them needs attention, the other cannot be learnt.

"The loss falls" is nearly blind: with the gradients of q, k and v gone, doubled or negated it falls
to the same end. What sees faults are the gradients of the first step and the first losses, each
against float32 on the processor.
"""

import contextlib
import math

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

WIDTH, HEADS, WORDS, LENGTH, BATCH = 128, 4, 32, 64, 32
RATE, CLIP, FIRST = 3e-3, 1.0, 10
#: The task is learnt after 40; a device has time for more.
STEPS, CPU_STEPS = 150, 60
#: Type -> allowed difference of the first loss, of the first ten, of a gradient (Frobenius).
#: Measured in bf16: 1.6e-4 and 4.9e-3.
LIMITS = {
    torch.float32: (1e-5, 1e-4, 1e-4),
    torch.bfloat16: (2e-3, 2e-3, 3e-2),
    torch.float16: (2e-3, 2e-3, 3e-2),
}
#: A learnt task ends below this, and below this share of where it began.
LEARNT, LEARNT_SHARE = 0.05, 0.05
#: Guessing costs ln(words); what nobody can know must not cost less than this share of it.
GUESSED = 0.95 * math.log(WORDS)


class Model(torch.nn.Module):
    """Embedding, one layer of causal attention and of a perceptron, output."""

    def __init__(self, attend=None):
        super().__init__()
        self.attend = attend or native
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Embedding(LENGTH, WIDTH)
        self.before, self.between = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.mixed = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 256), torch.nn.Linear(256, WIDTH)
        self.after, self.out = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WORDS)

    def heads(self, values):
        return values.view(*values.shape[:2], HEADS, -1).transpose(1, 2)

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight
        y = self.before(x)
        y = self.attend(*(self.heads(part(y)) for part in (self.q, self.k, self.v)))
        x = x + self.mixed(y.transpose(1, 2).reshape(x.shape))
        x = x + self.narrow(F.gelu(self.wide(self.between(x))))
        return self.out(self.after(x))


def native(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def plain(q, k, v):
    """The same, step by step."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v


def made(seed, attend=None):
    """A model with the same weights everywhere: made on the processor."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Model(attend)


def batches(task, seed, count):
    """Tokens and targets; -100 where nothing is asked."""
    source = compare.generator(seed)
    for _ in range(count):
        line = torch.randint(0, WORDS, (BATCH, LENGTH + 1), generator=source)
        tokens = line[:, :-1]
        if task == "next":  # random, so unknowable
            yield tokens, line[:, 1:]
        else:
            targets = tokens.roll(1, 1)
            targets[:, 0] = -100
            yield tokens, targets


class Run:
    """One training: losses, and the gradients of its first step."""

    def __init__(self, model, device, dtype=torch.float32, prepared=None):
        self.model, self.device, self.dtype = model.to(device), device, dtype
        self.call = prepared(self.model) if prepared else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=RATE)
        scaled = dtype == torch.float16
        self.scaler = torch.amp.GradScaler(device, enabled=scaled, init_scale=1024.0)
        self.losses, self.first = [], {}

    def cast(self):
        if self.dtype == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device, dtype=self.dtype)

    def step(self, tokens, targets):
        tokens, targets = tokens.to(self.device), targets.to(self.device)
        with self.cast():
            logits = self.call(tokens)
            loss = F.cross_entropy(logits.float().view(-1, WORDS), targets.reshape(-1))
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        if not self.first:
            named = self.model.named_parameters()
            self.first = {name: p.grad.detach().cpu().clone() for name, p in named}
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.losses.append(loss.detach())

    def go(self, task, seed, steps):
        """Goes on until that many steps were done."""
        done = len(self.losses)
        for number, (tokens, targets) in enumerate(batches(task, seed, steps)):
            if number >= done:
                self.step(tokens, targets)
        self.losses = [float(loss) for loss in self.losses]
        return self


def reference(task, seed):
    """The first steps in float32 on the processor, with attention step by step."""
    return Run(made(seed, plain), "cpu").go(task, seed, FIRST)


def gradients(found, wanted, limit):
    """Largest relative Frobenius error of a gradient of the first step; every parameter has one.

    The keys' bias has none but rounding: it adds the same to all scores of a row.
    """
    worst, where = 0.0, ""
    for name, golden in wanted.items():
        if name == "k.bias":
            continue
        off = compare.measure(found[name], golden)
        rules.must(not off["nan"] + off["inf"], "gradient of {} is not finite".format(name))
        norm = float(golden.double().norm())
        error = float((found[name].double() - golden.double()).norm()) / norm
        if error > worst:
            worst, where = error, name
    text = "gradient of {} is off by {:.3g} (Frobenius), allowed is {:.3g}"
    metrics = {"fro_rel": worst, "fro_limit": limit, "parameter": where}
    rules.must(worst <= limit, text.format(where, worst, limit), **metrics)
    return {**metrics, "margin": worst / limit}


def compared(run, wanted, dtype):
    """First gradients, first loss and the first losses against the reference."""
    first, early, fro = LIMITS[dtype]
    rules.must(all(map(math.isfinite, run.losses)), "a loss is not finite", losses=run.losses[:10])
    metrics = gradients(run.first, wanted.first, fro)
    off = [abs(a - b) for a, b in zip(run.losses, wanted.losses)]
    metrics.update(first_off=off[0], error=max(off), limit=early)
    text = "the first loss is off by {:.3g}, allowed is {:.3g}".format(off[0], first)
    rules.must(off[0] <= first, text, **metrics)
    text = "the first losses are off by {:.3g}, allowed is {:.3g}".format(max(off), early)
    rules.must(max(off) <= early, text, **metrics)
    margin = max(metrics["margin"], off[0] / first, max(off) / early)
    return {**metrics, "margin": round(margin, 4)}


def learnt(run, metrics):
    """The task that needs attention was learnt."""
    final, start = run.losses[-1], run.losses[0]
    text = "the loss ends at {:.3g} after {} steps".format(final, len(run.losses))
    rules.must(final < LEARNT and final < LEARNT_SHARE * start, text, **metrics)
    return {**metrics, "final": final}


def not_learnt(run, metrics):
    """What cannot be known was not learnt: nothing leaks from the future."""
    final = min(run.losses)
    text = "the loss of random tokens falls to {:.3g}: the future is seen".format(final)
    rules.must(final > GUESSED, text, **metrics)
    return {**metrics, "final": final}


def steps_of(context):
    if context.on_cpu:  # threads that wait for each other take longer than one alone
        torch.set_num_threads(1)
    return CPU_STEPS if context.on_cpu else STEPS


def trained(task, dtype, seed, context):
    """One case: the reference, the run, and what has to be true of it."""
    steps, wanted = steps_of(context), reference(task, seed)
    run = harness.subject(lambda: Run(made(seed), context.device, dtype).go(task, seed, FIRST))
    metrics = compared(run, wanted, dtype)
    harness.subject(run.go, task, seed, steps)
    return (learnt if task == "prev" else not_learnt)(run, metrics)

"""vllm.generate and vllm.compiled: a small model answers, token by token, as the CPU computes.

Argument eager: without compilation and graphs (generate), or with both (compiled).
"""

import tempfile

import harness
import torch

common = harness.sibling("_vllm")
model = harness.sibling("_vllm_model")

SEED = 336
PROMPTS, TOKENS = 4, 16
#: A log-probability of bf16 arithmetic may be off by as much.
LIMIT = 0.1


def prompts():
    """Token ids, of different lengths, also longer than one block of the cache."""
    source = torch.Generator(device="cpu").manual_seed(SEED)
    lengths = (5, 16, 33, 70)[:PROMPTS]
    return [torch.randint(3, model.VOCABULARY, (n,), generator=source).tolist() for n in lengths]


def started(folder, eager, device):
    """The engine. No tokenizer: the model has none."""
    from vllm import LLM

    more = {} if device == "cpu" else {"gpu_memory_utilization": 0.3}
    return LLM(
        model=folder, skip_tokenizer_init=True, dtype="bfloat16", enforce_eager=eager,
        max_model_len=model.LENGTH, seed=0, max_logprobs=5, **more,
    )  # fmt: skip


def answers(engine, asked):
    """For each prompt: its tokens, the new ones, and the log-probability of each but the first."""
    from vllm import SamplingParams

    wanted = SamplingParams(
        temperature=0.0, max_tokens=TOKENS, logprobs=1, prompt_logprobs=1, detokenize=False,
        ignore_eos=True,
    )  # fmt: skip
    found = engine.generate([{"prompt_token_ids": ids} for ids in asked], wanted, use_tqdm=False)
    made = []
    for ids, one in zip(asked, found):
        new = list(one.outputs[0].token_ids)
        parts = list(one.prompt_logprobs)[1:] + list(one.outputs[0].logprobs)
        tokens = ids + new
        made.append((ids, new, [p[t].logprob for p, t in zip(parts, tokens[1:])]))
    return made


def whole(made):
    """As many tokens as asked for, all in the vocabulary."""
    if len(made) != PROMPTS:
        raise harness.Failure("{} answers to {} prompts".format(len(made), PROMPTS))
    for ids, new, values in made:
        if len(new) != TOKENS or len(values) != len(ids) - 1 + TOKENS:
            text = "{} tokens and {} log-probabilities, not {} and {}"
            wanted = (TOKENS, len(ids) - 1 + TOKENS)
            raise harness.Failure(text.format(len(new), len(values), *wanted))
        outside = [token for token in new if not 0 <= token < model.VOCABULARY]
        if outside:
            raise harness.Failure("token {} is not in the vocabulary".format(outside[0]))
    return {"error": 0, "limit": 0, "margin": 0.0, "tokens": PROMPTS * TOKENS}


def metrics_of(error, limit, **more):
    return {"error": error, "limit": limit, "margin": round(error / limit, 4), **more}


def probabilities(made, right):
    """Log-probabilities of prompts and answers against the CPU."""
    errors = []
    for (ids, new, values), golden in zip(made, right):
        tokens = torch.tensor((ids + new)[1:])
        wanted = golden[:-1].gather(1, tokens[:, None])[:, 0]
        errors.append(float((torch.tensor(values).double() - wanted).abs().max()))
    error = max(errors)
    if not error <= LIMIT:  # NaN is not either
        text = "a log-probability is off by {:.3g}, allowed is {:.3g}".format(error, LIMIT)
        raise harness.Failure(text, **metrics_of(error, LIMIT))
    return metrics_of(error, LIMIT)


def greedy(made, right):
    """Each new token is the likeliest one, or as likely as rounding can tell."""
    worst, other = 0.0, 0
    for (ids, new, _), golden in zip(made, right):
        for place, token in enumerate(new):
            row = golden[len(ids) - 1 + place]
            behind = float(row.max() - row[token])
            worst, other = max(worst, behind), other + int(behind > 0)
    if not worst <= 2 * LIMIT:
        text = "a token is {:.3g} less likely than the best one".format(worst)
        raise harness.Failure(text, **metrics_of(worst, 2 * LIMIT))
    return metrics_of(worst, 2 * LIMIT, other_tokens=other)


def twice(made, again):
    """Two runs give the same tokens."""
    differ = sum(one[1] != two[1] for one, two in zip(made, again))
    if differ:
        text = "{} of {} answers differ in a second run".format(differ, len(made))
        raise harness.Failure(text, error=differ, limit=0)
    return {"error": 0, "limit": 0, "margin": 0.0}


def check(context):
    eager = bool(context.arguments.get("eager", True))
    if context.on_cpu and not eager:
        raise harness.Skip("nothing is captured in a graph on a processor")
    common.prepare(context)
    common.runs_on(harness.subject(common.platform), context)
    made_of = model.weights()
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder, made_of)
        engine = harness.subject(started, folder, eager, context.device)
        made = harness.subject(answers, engine, prompts())
        again = harness.subject(answers, engine, prompts())
    answered = context.case("{}x{} tokens".format(PROMPTS, TOKENS), whole, made)
    yield answered
    if answered["status"] != harness.PASSED:
        return
    right = [model.log_probabilities(made_of, ids + new) for ids, new, _ in made]
    yield context.case("log-probabilities", probabilities, made, right)
    yield context.case("greedy tokens", greedy, made, right)
    yield context.case("second run", twice, made, again)

# mypy: ignore-errors
"""Stand-in for vLLM: what the checks ask of it, in torch. FAULT names what is broken.

The engine computes with the model of the checks; that this model is Llama is shown with the real
vLLM, not here.
"""

import json
import struct
import sys
import types

import torch

__version__ = "0.0.stand-in"
FAULT = ""
RUNS = [0]
KNOWN = {}  # by weights and tokens: most faults are not in the weights
EPSILON = 1e-6


def norm(x, weight, epsilon):
    values = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + epsilon)
    return (values if FAULT == "norm-no-weight" else values * weight.float()).to(x.dtype)


def rms_norm(out, x, weight, epsilon):
    out.copy_(norm(x, weight, epsilon))


def fused_add_rms_norm(x, residual, weight, epsilon):
    total = x + residual
    if FAULT != "sum-lost":
        residual.copy_(total)
    x.copy_(norm(total, weight, epsilon))


def silu_and_mul(out, x):
    gate, up = x.float().chunk(2, -1)
    if FAULT == "gate-exchanged":
        gate, up = up, gate
    out.copy_((torch.nn.functional.silu(gate) * up).to(x.dtype))


def rotary_embedding(positions, query, key, size, table, neox):
    cos, sin = (part[:, None].float() for part in table[positions].chunk(2, -1))
    for item in (query,) if FAULT == "rotary-keys" else (query, key):
        values = item.float().view(len(item), -1, size)
        if FAULT == "rotary-pairs":
            first, second = values[..., ::2], values[..., 1::2]
        else:
            first, second = values.chunk(2, -1)
        turned = torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
        item.copy_(turned.view(item.shape).to(item.dtype))


def reshape_and_cache_flash(k, v, k_cache, v_cache, slots, kind, k_scale, v_scale):
    for given, cache in ((k, k_cache), (v, v_cache)):
        flat = cache.view(-1, *cache.shape[2:])
        for number, slot in enumerate(slots.tolist()):
            if slot < 0:
                if FAULT == "padding-stored":
                    flat[-1] = given[number]
                continue
            flat[slot + (1 if FAULT == "slot-shifted" else 0)] = given[number]


def register():
    """What an extension does when it is loaded."""
    operations = types.SimpleNamespace(silu_and_mul=silu_and_mul)
    if FAULT != "not-registered":
        operations.rms_norm, operations.rotary_embedding = rms_norm, rotary_embedding
        operations.fused_add_rms_norm = fused_add_rms_norm
    caches = types.SimpleNamespace(reshape_and_cache_flash=reshape_and_cache_flash)
    torch.ops._C, torch.ops._C_cache_ops = operations, caches


class CpuPlatform:
    device_type = "cpu"
    KIND = "cpu"

    def is_cpu(self):
        return self.KIND == "cpu"

    def is_cuda(self):
        return self.KIND == "cuda"

    def is_rocm(self):
        return self.KIND == "rocm"

    def get_device_name(self, number):
        return "card"


class RocmPlatform(CpuPlatform):
    device_type, KIND = "cuda", "rocm"


class NvmlCudaPlatform(CpuPlatform):
    device_type, KIND = "cuda", "cuda"


class UnspecifiedPlatform(CpuPlatform):
    device_type, KIND = "", ""


def platform():
    if FAULT == "unspecified":
        return UnspecifiedPlatform()
    if FAULT == "cuda-on-hip":
        return NvmlCudaPlatform()
    return RocmPlatform() if torch.version.hip else CpuPlatform()


class SamplingParams:
    def __init__(self, **wanted):
        self.max_tokens = wanted["max_tokens"]


def read_weights(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, one in header.items():
        if name != "__metadata__":
            start, end = (8 + length + place for place in one["data_offsets"])
            values = torch.frombuffer(bytearray(data[start:end]), dtype=torch.bfloat16)
            found[name] = values.view(one["shape"])
    return found


def spoiled(made):
    for name, values in made.items():
        if FAULT == "dummy-weights":
            made[name] = torch.zeros_like(values).uniform_(-1e-3, 1e-3)
        if FAULT == "norm-weights" and "norm" in name:
            made[name] = torch.ones_like(values)
        if FAULT == "one-layer" and "layers.1" in name and ("o_proj" in name or "down" in name):
            made[name] = torch.zeros_like(values)
        if FAULT == "heads-exchanged" and "k_proj" in name:
            made[name] = torch.cat(values.chunk(2)[::-1])
    return made


class LLM:
    def __init__(self, model, **_):
        self.model = sys.modules["envlock_check_vllm_model"]
        before = read_weights(model + "/model.safetensors")
        self.made = spoiled(dict(before))
        same = all(torch.equal(before[name], values) for name, values in self.made.items())
        self.loaded = "" if same else FAULT

    def logs(self, tokens):
        key = (self.loaded, self.model.SEED, *tokens)
        if key not in KNOWN:
            KNOWN[key] = self.model.log_probabilities(self.made, tokens)
        found = KNOWN[key]
        if FAULT == "noise":
            found = found + 0.3
        return found

    def generate(self, prompts, wanted, use_tqdm):
        RUNS[0] += 1
        asked = [list(prompt["prompt_token_ids"]) for prompt in prompts]
        found = [self.one(ids, wanted.max_tokens) for ids in asked]
        if FAULT == "other-prompt":
            for one in found:
                one.outputs = found[0].outputs
        return found

    def one(self, ids, count):
        tokens = list(ids)
        if FAULT == "few-tokens":
            count -= 1
        for place in range(count):
            best = self.logs(tokens)[-1].topk(2).indices.tolist()
            second = FAULT == "not-greedy" or (FAULT == "not-repeatable" and RUNS[0] % 2 == 0)
            tokens.append(best[1 if second and place == 3 else 0])
        return self.answer(ids, tokens)

    def answer(self, ids, tokens):
        logs = self.logs(tokens)
        values = [None]
        for place, token in enumerate(tokens[1:]):
            value = float(logs[place, token])
            values.append({token: types.SimpleNamespace(logprob=value)})
        new = tokens[len(ids) :]
        if FAULT == "nan":
            values[-1][new[-1]].logprob = float("nan")
        if FAULT == "outside":
            values[-1] = {600: types.SimpleNamespace(logprob=-1.0)}
            new[-1] = 600
        out = types.SimpleNamespace(token_ids=new, logprobs=values[len(ids) :])
        return types.SimpleNamespace(prompt_logprobs=values[: len(ids)], outputs=[out])

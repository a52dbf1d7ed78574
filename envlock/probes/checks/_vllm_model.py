"""A Llama of two layers with saved seeded weights, and the same by hand on the CPU.

vLLM's own dummy weights are nearly zero: every logit is the same then, and a wrong kernel goes
unseen.
"""

import json
import os
import struct

import harness
import torch

compare = harness.sibling("_compare")

SEED = 336
HIDDEN, LAYERS, HEADS, KV_HEADS, DIM, INNER, VOCABULARY = 256, 2, 4, 2, 64, 512, 512
EPSILON, BASE, LENGTH = 1e-5, 10000.0, 512
DTYPE = torch.bfloat16
#: Standard deviation of what comes in, and of what makes the logits: they differ, and the rounding
#: of bf16 at their size is well below the limit. The layers keep theirs.
SPREAD, OUT_SPREAD = 0.2, 0.1

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": DIM,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": LENGTH,
    "rms_norm_eps": EPSILON,
    "rope_theta": BASE,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "bfloat16",
}


def shapes():
    """Every weight by its name in a checkpoint."""
    found = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    for number in range(LAYERS):
        layer = "model.layers.{}.".format(number)
        for name, rows in (("q", HEADS * DIM), ("k", KV_HEADS * DIM), ("v", KV_HEADS * DIM)):
            found[layer + "self_attn.{}_proj.weight".format(name)] = (rows, HIDDEN)
        found[layer + "self_attn.o_proj.weight"] = (HIDDEN, HEADS * DIM)
        found[layer + "mlp.gate_proj.weight"] = (INNER, HIDDEN)
        found[layer + "mlp.up_proj.weight"] = (INNER, HIDDEN)
        found[layer + "mlp.down_proj.weight"] = (HIDDEN, INNER)
        found[layer + "input_layernorm.weight"] = (HIDDEN,)
        found[layer + "post_attention_layernorm.weight"] = (HIDDEN,)
    found["model.norm.weight"] = (HIDDEN,)
    found["lm_head.weight"] = (VOCABULARY, HIDDEN)
    return found


def weights():
    """Seeded weights in bf16. Norms are near one and not all the same."""
    source = compare.generator(SEED)
    made = {}
    for name, shape in shapes().items():
        values = torch.randn(shape, generator=source)
        if len(shape) == 1:
            values = 1 + 0.1 * values
        elif "embed" in name:
            values = values * SPREAD
        elif "lm_head" in name:
            values = values * OUT_SPREAD
        else:
            values = values / shape[1] ** 0.5
        made[name] = values.to(DTYPE)
    return made


def save(folder, made):
    """config.json and model.safetensors: a length, a JSON header, the numbers."""
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)
    header, place = {"__metadata__": {"format": "pt"}}, 0
    for name, values in made.items():
        size = values.numel() * 2
        header[name] = {
            "dtype": "BF16",
            "shape": list(values.shape),
            "data_offsets": [place, place + size],
        }
        place += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in made.values():
            file.write(bytes(values.contiguous().view(torch.uint8).flatten().tolist()))


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * weight


def rotated(x):
    """Rotary embedding of (heads, length, dimension), halves of the dimension as pairs."""
    length, dim = x.shape[1:]
    speeds = BASE ** (-torch.arange(0, dim, 2, dtype=x.dtype) / dim)
    angles = torch.arange(length, dtype=x.dtype)[:, None] * speeds
    cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def attended(x, made, layer):
    length = len(x)

    def heads(name, count):
        values = x @ made[layer + "self_attn.{}_proj.weight".format(name)].t()
        return values.view(length, count, DIM).transpose(0, 1)

    groups = HEADS // KV_HEADS
    q, k = rotated(heads("q", HEADS)), rotated(heads("k", KV_HEADS))
    k, v = k.repeat_interleave(groups, 0), heads("v", KV_HEADS).repeat_interleave(groups, 0)
    ahead = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(-1, -2) / DIM**0.5).masked_fill(ahead, float("-inf"))
    out = (scores.softmax(-1) @ v).transpose(0, 1).reshape(length, HEADS * DIM)
    return out @ made[layer + "self_attn.o_proj.weight"].t()


def log_probabilities(made, tokens):
    """(length, vocabulary): of the token after each of ``tokens``, in double precision."""
    made = {name: values.double() for name, values in made.items()}
    x = made["model.embed_tokens.weight"][torch.tensor(tokens)]
    for number in range(LAYERS):
        layer = "model.layers.{}.".format(number)
        x = x + attended(norm(x, made[layer + "input_layernorm.weight"]), made, layer)
        inner = norm(x, made[layer + "post_attention_layernorm.weight"])
        gate = torch.nn.functional.silu(inner @ made[layer + "mlp.gate_proj.weight"].t())
        up = inner @ made[layer + "mlp.up_proj.weight"].t()
        x = x + (gate * up) @ made[layer + "mlp.down_proj.weight"].t()
    x = norm(x, made["model.norm.weight"])
    return (x @ made["lm_head.weight"].t()).log_softmax(-1)

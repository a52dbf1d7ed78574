"""A stand-in for vLLM on the processor: a platform, operations, an engine; right and broken."""

from __future__ import annotations

from pathlib import Path

#: Faults by the check that has to see them.
FAULTS = {
    "vllm_platform": {
        "unspecified": "no device is recognised",
        "cuda-on-hip": "the other vendor's platform",
        "not-registered": "the extension was not loaded",
    },
    "vllm_ops": {
        "not-registered": "the extension was not loaded",
        "norm-no-weight": "the weight of the norm is not used",
        "sum-lost": "the residual is not updated",
        "gate-exchanged": "gate and value are exchanged",
        "rotary-pairs": "neighbours are pairs instead of halves",
        "rotary-keys": "keys are not rotated",
        "padding-stored": "a padded token is stored in the last slot",
        "slot-shifted": "values are stored one slot further",
    },
    "vllm_generate": {
        "dummy-weights": "the saved weights are not loaded",
        "norm-weights": "weights of norms are one",
        "one-layer": "the second layer does nothing",
        "heads-exchanged": "the two key heads are exchanged",
        "noise": "log-probabilities are off by 0.3",
        "nan": "a log-probability is NaN",
        "not-greedy": "the second likeliest token is taken",
        "few-tokens": "one token too few",
        "outside": "a token that is not in the vocabulary",
        "other-prompt": "every prompt gets the answer of the first",
        "not-repeatable": "another answer in the second run",
    },
}

_MODULE = Path(__file__).with_name("vllm_stand_in.py")
#: Asked each time, since the fault may be another by then.
_PARTS = {
    "platforms": "import vllm\n\n\ndef __getattr__(name):\n    return vllm.platform()\n",
    "_custom_ops": "import vllm\n\n\ndef __getattr__(name):\n    return getattr(vllm, name)\n",
}


def write_vllm(site: Path) -> None:
    """Puts the stand-in where it can be imported, with its submodules."""
    folder = site / "vllm"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(_MODULE.read_text(encoding="utf-8"), encoding="utf-8")
    for name, text in _PARTS.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")

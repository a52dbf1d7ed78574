"""Stand-ins for flash-attn: a right one for the processor, and broken ones.

Each fault is one that real kernels had: nothing of it raises, all of it is finite unless the fault
is NaN itself, and all of it is wrong.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

#: Words of the cases that have to see a fault, where the others need not be run for it.
ONLY = {
    "outliers-256": "large channels",
    "window-ignored": "window",
    "window-off-by-one": "window",
    "softcap-ignored": "softcap",
    "softcap-backward": "softcap",
    "alibi-ignored": "alibi",
    "alibi-sign": "alibi",
    "alibi-first-batch": "alibi",
    "alibi-top-left": "alibi",
    "scale-ignored": "scale",
    "no-maximum": "large values",
    "offset-ignored": "inside a buffer",
    "packed-swapped": "qkv packed",
    "kv-packed-swapped": "kv packed",
    "empty-nan": "no queries",
    "empty-stale": "no queries",
    "table-ignored": "paged",
    "split-lost": "split",
    "eight-bits": "fp8",
    "eight-bits-wrong": "fp8",
}

_MODULE = Path(__file__).with_name("flash_stand_in.py")

#: Faults by name, and what they are.
FAULTS = {
    "dq-zero": "no gradient for q",
    "dk-zero": "no gradient for k",
    "dv-zero": "no gradient for v",
    "dq-negated": "the gradient of q has the wrong sign",
    "gradients-scaled": "all gradients five per cent too large",
    "dk-second-batch": "the gradient of k is the first batch's everywhere",
    "dq-nan": "one NaN in the gradient of q",
    "dv-one-element": "one element of the gradient of v a fifth too large",
    "nan": "one NaN in the output",
    "infinite": "one infinity in the output",
    "one-element": "one element of the output one and a half times too large",
    "top-left": "the causal mask is aligned top-left where lengths differ",
    "next-token": "the causal mask lets one future token through",
    "no-mask": "not causal at all",
    "scale": "the scale of the padded head dimension",
    "half-head": "only the first 64 elements of a longer head",
    "heads-interleaved": "key heads are assigned in turn instead of in groups",
    "last-keys": "the last key is dropped",
    "second-batch": "the first batch's output everywhere",
    "input-changed": "q is scaled in place",
}

#: Faults that cannot show where lengths are equal and every head has its own keys.
ONLY_GROUPED_OR_CROSS = frozenset({"top-left", "heads-interleaved"})

#: Faults of what is asked for less often, by the check that has to see them.
MORE_FAULTS = {
    "fa_dims": {
        "wide-heads": "only the first 128 elements of a head of 160 or more",
        "outliers-256": "wrong gradients with 256, batches of several and large values",
        "heads-interleaved": "key heads are assigned in turn instead of in groups",
        "top-left": "the causal mask is aligned top-left where lengths differ",
        "dk-second-batch": "the gradient of k is the first batch's everywhere",
        "scale": "the scale of the padded head dimension",
    },
    "fa_sweep": {
        "dq-72-104": "no gradient for q with heads of 72 and 104",
        "wide-heads": "only the first 128 elements of a head of 160 or more",
        "scale": "the scale of the padded head dimension",
    },
    "fa_modes": {
        "window-ignored": "the window has no left end",
        "window-off-by-one": "the window is one key too wide",
        "softcap-ignored": "no cap",
        "softcap-backward": "the cap has no derivative",
        "alibi-ignored": "no bias",
        "alibi-sign": "the bias has the wrong sign",
        "alibi-first-batch": "the bias of the first batch everywhere",
        "alibi-top-left": "the bias is aligned top-left where lengths differ",
        "scale-ignored": "the scale asked for is not used",
        "no-maximum": "exp without subtracting the maximum, in fp16",
        "strides": "strided inputs of several batches are read as if they were not",
        "offset-ignored": "a tensor inside a buffer is read from the buffer's start",
        "packed-swapped": "k and v of a packed input are exchanged",
        "kv-packed-swapped": "k and v of a packed pair are exchanged",
    },
    "fa_varlen": {
        "empty-nan": "NaN in dk and dv of a sequence without queries",
        "empty-stale": "dk and dv of a sequence without queries are not written",
        "sequences-mixed": "a sequence sees the last key of the one before",
        "last-sequence": "the last sequence is not computed",
        "top-left": "the causal mask is aligned top-left where lengths differ",
    },
    "fa_kvcache": {
        "append-lost": "new keys are used, and not kept",
        "append-shifted": "new keys are written one place further",
        "append-too-much": "the place after the new keys is overwritten",
        "table-ignored": "pages are read in the order they lie",
        "length-ignored": "the whole cache is read, whatever its length",
        "split-lost": "the last part of a long cache is dropped",
    },
    "fa_dropout": {
        "dropout-none": "nothing is dropped",
        "dropout-rate": "a quarter is dropped",
        "dropout-unscaled": "what is left is not scaled",
        "dropout-same-heads": "all heads drop the same",
        "dropout-unseeded": "the seed is not used",
        "dropout-one-seed": "every call drops the same",
        "dropout-other-mask": "backward drops other weights than forward",
    },
    "fa_repeat": {
        "race-out": "one element of the output differs, sometimes",
        "race-dk": "one element of dk differs, sometimes",
        "race-lse": "the log-sum-exp differs, sometimes",
        "not-deterministic": "deterministic=True changes nothing",
        "dq-much-noise": "dq differs by more than the order of a sum explains",
    },
}


def write_flash_attn(site: Path, fault: str = "", version: str = "2.8.3+das.opt1.dtk2604") -> Path:
    """Installs the stand-in as a distribution; ``fault`` is a key of :data:`FAULTS` or empty.

    Returns:
        The module's file.
    """
    assert not fault or fault in FAULTS
    text = _MODULE.read_text(encoding="utf-8")
    text = text.replace('FAULT = ""', f"FAULT = {fault!r}", 1)
    module = _put(site / "flash_attn" / "__init__.py", text)
    info = site / f"flash_attn-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: flash_attn\nVersion: {version}\n"
    files = [module, _put(info / "METADATA", metadata), _put(info / "INSTALLER", "fake\n")]
    rows = [f"{path.relative_to(site)},{_hash(path)},{path.stat().st_size}" for path in files]
    _put(info / "RECORD", "\n".join([*rows, f"{info.name}/RECORD,,"]) + "\n")
    return module


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _hash(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

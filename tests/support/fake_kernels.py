"""Faults of Triton kernels, one for each kind that real ones had; broken in triton_stand_in.py."""

from __future__ import annotations

#: Faults by the check that has to see them.
FAULTS = {
    "tri_add": {
        "no-compiler": "nothing can be compiled for the device",
        "not-run": "nothing is written",
        "tail-not-written": "the last element is not written",
        "mask-ignored": "the last block writes past the end",
        "first-block-twice": "the second block is the first one's",
        "last-bit": "one element is off by a bit",
    },
    "tri_softmax": {
        "not-run": "nothing is written",
        "row-not-normal": "one row sums up to 1.01",
        "mask-ignored": "the last row writes past its end",
        "lanes-counted": "the masked lanes count in the sum",
    },
    "tri_dot": {
        "inner-tail": "the last part of the inner dimension is dropped",
        "edge-tile": "the last tile of rows is zero",
        "eight-warps": "wrong with eight warps alone",
        "low-accumulate": "sums are kept in fp16",
        "ieee-shortened": "float32 is shortened although ieee was asked for",
        "default-poor": "the default for float32 keeps seven bits",
        "mask-ignored": "the last tile writes past the end",
    },
    "tri_autotune": {
        "eight-warps": "wrong with eight warps alone",
        "edge-tile": "the last tile of rows is zero",
    },
    "tri_layernorm": {
        "variance-of-block": "the masked lanes count in the variance",
        "rows-dropped": "sums over dimension 0 leave out the last part",
        "dx-term": "one of the two terms of dx is missing",
        "bias-ignored": "no bias",
    },
    "tri_atomics": {
        "lost-updates": "two elements of a block in one bin count once",
        "sum-of-one": "the last block alone is in the sum",
        "maximum-lost": "the maximum is the last block's",
        "two-winners": "compare and swap lets everybody win",
        "stale-compare": "compare and swap gives back an old value",
    },
    "tri_scan": {
        "sum-per-warp": "running sums start again every 64 lanes",
        "not-sorted": "the two halves are sorted apart",
    },
    "tri_offsets": {
        "wrapped": "offsets are cut to 31 bits and land at the start",
        "not-written": "nothing is written above 2^31",
    },
    "tri_attention": {
        "next-token": "the causal mask lets one future token through",
        "no-rescale": "the running sum is not rescaled",
        "half-head": "only the first 32 elements of a head",
    },
}

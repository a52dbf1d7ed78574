"""Labels that vendors have published: file names, direct URLs, installed metadata; verbatim."""

from __future__ import annotations

from dataclasses import dataclass

from envlock.model.label import Label


@dataclass(frozen=True)
class Seen:
    """What a label says; everything not named is not in it."""

    stack: str | None = None
    release: tuple[int, int] | None = None
    torch: str | None = None
    abi: int | None = None
    das: str | None = None
    stamp: str | None = None
    commit: str | None = None
    rest: tuple[str, ...] = ()

    @classmethod
    def of(cls, label: Label) -> Seen:
        return cls(**{name: getattr(label, name) for name in cls.__dataclass_fields__})


def dtk(tag: str, yymm: int, patch: int = 0) -> tuple[str, tuple[int, int]]:
    return tag, (yymm, patch)


OPT1, D2604 = ("opt1",), dtk("dtk2604", 2604)

FILES: dict[str, Seen] = {
    # dtk21: no tag at all
    "apex-0.1-cp36-cp36m-linux_x86_64.whl": Seen(),
    "torch-1.10.0a0+gitcc7c9c7-cp36-cp36m-linux_x86_64.whl": Seen(commit="cc7c9c7"),
    # dtk22.04: underscores
    "apex-0.1_dtk22.04.1-cp37-cp37m-manylinux2014_x86_64.whl": Seen(*dtk("dtk22041", 2204, 1)),
    "apex-0.1_gita38191a_dtk22.04.2-cp37-cp37m-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk22042", 2204, 2), commit="a38191a"
    ),
    "torch-1.10.0a0_gitc7f69d6_dtk22.04.2-cp37-cp37m-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk22042", 2204, 2), commit="c7f69d6"
    ),
    "torch-1.10.0a0+git450cdd1.dtk22.4.1-cp37-cp37m-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk22041", 2204, 1), commit="450cdd1"
    ),
    "faiss-1.7.2_dtk22.10_gitb7348e7df780-py3-none-any.whl": Seen(
        *dtk("dtk2210", 2210), commit="b7348e7df780"
    ),
    # dtk22.10
    "fastmoe-0.3.0+dtk22.10-cp37-cp37m-manylinux2014_x86_64.whl": Seen(*dtk("dtk2210", 2210)),
    "apex-0.1+gitdb7007a.dtk2210-cp38-cp38-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2210", 2210), commit="db7007a"
    ),
    "torch-1.10.0a0+git2040069.dtk2210-cp39-cp39-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2210", 2210), commit="2040069"
    ),
    "torch-1.13.0a0+gitefb907c.dtk2210-cp38-cp38-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2210", 2210), commit="efb907c"
    ),
    "fastfold-0.2.0+git52919c6.dtk2210-cp38-cp38-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2210", 2210), commit="52919c6"
    ),
    # dtk23.04, dtk23.10: the commit first, the ABI, the torch it was built for
    "apex-0.1+f49ddd4.abi1.dtk2304.torch1.10-cp37-cp37m-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2304", 2304), torch="1.10", abi=1, commit="f49ddd4"
    ),
    "torch-1.10.0+gite378c3c.abi0.dtk2304-cp37-cp37m-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2304", 2304), abi=0, commit="e378c3c"
    ),
    "torch-1.13.1+git55d300e.abi1.dtk2304-cp39-cp39-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2304", 2304), abi=1, commit="55d300e"
    ),
    "torch-1.13.1+git7d2dd01.abi0.dtk2310-cp310-cp310-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2310", 2310), abi=0, commit="7d2dd01"
    ),
    "apex-1.1.0+701fc4d.abi0.dtk2310.torch2.1-cp310-cp310-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2310", 2310), torch="2.1", abi=0, commit="701fc4d"
    ),
    "deepspeed-0.9.2+gitf94a51e.abi0.dtk2310.torch1.13.1-cp39-cp39-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2310", 2310), torch="1.13.1", abi=0, commit="f94a51e"
    ),
    "vllm-0.3.3+gitf0647bb.abi0.dtk2310.torch2.1-cp38-cp38-linux_x86_64.whl": Seen(
        *dtk("dtk2310", 2310), torch="2.1", abi=0, commit="f0647bb"
    ),
    "tensorflow_serving_api_gpu-2.9+gitbfd4c50d.abi0.dtk23.04.1-cp38-cp38-manylinux2014_x86_64"
    ".whl": Seen(*dtk("dtk23041", 2304, 1), abi=0, commit="bfd4c50d"),
    "tensorflow_serving-2.11.0+gitdf6517b1.abi0.dtk23.10-py2.py3-none-any.whl": Seen(
        *dtk("dtk2310", 2310), abi=0, commit="df6517b1"
    ),
    # DAS 1.0: two plus signs
    "torch-2.1.0+das1.0+git00661e0.abi0.dtk2404-cp310-cp310-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2404", 2404), abi=0, das="1.0", commit="00661e0"
    ),
    "triton-2.1.0+das1.0+git3841f975.abi0.dtk2404-cp310-cp310-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2404", 2404), abi=0, das="1.0", commit="3841f975"
    ),
    "apex-1.1.0+das1.0+0dd7f68.abi0.dtk2404.torch2.1-cp310-cp310-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2404", 2404), torch="2.1", abi=0, das="1.0", commit="0dd7f68"
    ),
    "vllm-0.3.3+das1.0+git3380931.abi0.dtk2404.torch2.1-cp310-cp310-manylinux2014_x86_64.whl": Seen(
        *dtk("dtk2404", 2404), torch="2.1", abi=0, das="1.0", commit="3380931"
    ),
    "deepspeed-0.12.3+das1.0+gita724046.abi0.dtk2404.torch2.1.0-cp310-cp310-manylinux2014_x86_64"
    ".whl": Seen(*dtk("dtk2404", 2404), torch="2.1.0", abi=0, das="1.0", commit="a724046"),
    # DAS 1.1
    "vllm-0.3.3+das1.1.gitdf6349c.abi1.dtk2404.torch2.1.0-cp311-cp311-manylinux_2_31_x86_64"
    ".whl": Seen(*dtk("dtk2404", 2404), torch="2.1.0", abi=1, das="1.1", commit="df6349c"),
    "apex-1.1.0+das1.1.gitf477a3a.abi1.dtk2404.torch2.1.0-cp310-cp310-manylinux_2_31_x86_64"
    ".whl": Seen(*dtk("dtk2404", 2404), torch="2.1.0", abi=1, das="1.1", commit="f477a3a"),
    "deepspeed-0.12.3+gita724046.abi1.dtk2404.torch2.1.0-cp310-cp310-manylinux_2_31_x86_64"
    ".whl": Seen(*dtk("dtk2404", 2404), torch="2.1.0", abi=1, commit="a724046"),
    "torch_migraphx-0.1+das1.1.gita775b0f.abi1.dtk2404.migraphx4.3.0-cp310-cp310-manylinux_2_31"
    "_x86_64.whl": Seen(
        *dtk("dtk2404", 2404), abi=1, das="1.1", commit="a775b0f", rest=("migraphx4", "3", "0")
    ),
    "fastpt-1.0.0+das1.1.abi1.dtk2404-cp310-cp310-manylinux_2_31_x86_64.whl": Seen(
        *dtk("dtk2404", 2404), abi=1, das="1.1"
    ),
    "fastpt-1.1.0+das1.2.abi1.dtk2404-cp310-cp310-linux_x86_64.whl": Seen(
        *dtk("dtk2404", 2404), abi=1, das="1.2"
    ),
    "aitemplate-0.0.1+das1.1.git5d8aa20.dtk2404.torch2.1.0-py3-none-any.whl": Seen(
        *dtk("dtk2404", 2404), torch="2.1.0", das="1.1", commit="5d8aa20"
    ),
    "vllm-0.5.0+das.opt1.3e2c63a.dtk2404.torch2.1.0-cp310-cp310-linux_x86_64.whl": Seen(
        *dtk("dtk2404", 2404), torch="2.1.0", das="", commit="3e2c63a", rest=OPT1
    ),
    # DAS 1.2 to 1.7
    "apex-1.3.0+das.opt1.dtk24042-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk24042", 2404, 2), das="", rest=OPT1
    ),
    "aitemplate-0.0.2+das.dtk24042-py3-none-any.whl": Seen(*dtk("dtk24042", 2404, 2), das=""),
    "pytorch3d-0.7.6+das.dtk24043-cp311-cp311-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk24043", 2404, 3), das=""
    ),
    "vllm-0.5.0+das.opt4.dtk24043-cp38-cp38-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk24043", 2404, 3), das="", rest=("opt4",)
    ),
    "vllm-0.6.2+das.opt1.dtk24043-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk24043", 2404, 3), das="", rest=OPT1
    ),
    "torch_cluster-1.6.0+das.opt1.dtk24043-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk24043", 2404, 3), das="", rest=OPT1
    ),
    "tinycudann-1.7+das.opt1.dtk24043-cp38-cp38-manylinux_2_31_x86_64.whl": Seen(
        *dtk("dtk24043", 2404, 3), das="", rest=OPT1
    ),
    "torch-2.4.1+das.opt2.dtk2504-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk2504", 2504), das="", rest=("opt2",)
    ),
    "lmslim-0.2.1+das.dtk2504-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk2504", 2504), das=""
    ),
    "flash_attn-2.6.1+das.opt4.dtk2504-cp38-cp38-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk2504", 2504), das="", rest=("opt4",)
    ),
    "rotary_emb-2.6.1+das.opt4.dtk2504-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk2504", 2504), das="", rest=("opt4",)
    ),
    "vllm-0.6.2+das.opt3.dtk2504-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk2504", 2504), das="", rest=("opt3",)
    ),
    "deepspeed-0.14.2+das.opt2.dtk2504-cp38-cp38-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk2504", 2504), das="", rest=("opt2",)
    ),
    "flashinfer-0.2.0+das.opt1.dtk2504-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk2504", 2504), das="", rest=OPT1
    ),
    "torch-2.4.1+das.opt1.dtk25041-cp311-cp311-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk25041", 2504, 1), das="", rest=OPT1
    ),
    "triton-3.0.0+das.opt1.dtk25041-cp311-cp311-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk25041", 2504, 1), das="", rest=OPT1
    ),
    "jax_rocm60_plugin-0.4.34+das.opt1.dtk25041-cp311-cp311-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk25041", 2504, 1), das="", rest=OPT1
    ),
    "flash_attn-2.6.1+das.opt1.dtk25042-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk25042", 2504, 2), das="", rest=OPT1
    ),
    "torch-2.5.1+das.opt1.dtk25042-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk25042", 2504, 2), das="", rest=OPT1
    ),
    "tilelang-0.1.6.post2+das.opt1.dtk25042-cp310-cp310-linux_x86_64.whl": Seen(
        *dtk("dtk25042", 2504, 2), das="", rest=OPT1
    ),
    "paddlepaddle_dcu-3.0.0+das.opt1.dtk25042-cp310-cp310-linux_x86_64.whl": Seen(
        *dtk("dtk25042", 2504, 2), das="", rest=OPT1
    ),
    "tensorflow-2.18.0+das.opt1.dtk25042-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *dtk("dtk25042", 2504, 2), das="", rest=OPT1
    ),
    # DAS 1.8
    "torch-2.7.1+das.opt1.dtk2604-cp311-cp311-manylinux_2_28_x86_64.whl": Seen(
        *D2604, das="", rest=OPT1
    ),
    "torchvision-0.22.0+das.opt1.dtk2604.torch271-cp312-cp312-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.7.1", das="", rest=OPT1
    ),
    "torchvision-0.24.0+das.opt1.dtk2604.torch290-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.9.0", das="", rest=OPT1
    ),
    "triton-3.1.0+das.opt1.dtk2604.torch271-cp311-cp311-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.7.1", das="", rest=OPT1
    ),
    "flash_attn-2.8.3+das.opt1.dtk2604.torch271-cp311-cp311-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.7.1", das="", rest=OPT1
    ),
    "flash_attn-2.8.3+das.opt1.dtk2604-cp310-cp310-linux_x86_64.whl": Seen(
        *D2604, das="", rest=OPT1
    ),
    "xformers-0.0.33+das.opt1.dtk2604.torch251-py3-none-any.whl": Seen(
        *D2604, torch="2.5.1", das="", rest=OPT1
    ),
    "deepspeed-0.15.4+das.opt1.dtk2604.torch251-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.5.1", das="", rest=OPT1
    ),
    "deepspeed-0.18.2+das.opt1.dtk2604.torch290-cp312-cp312-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.9.0", das="", rest=OPT1
    ),
    "sgl_kernel-0.3.20+das.opt1.dtk2604.torch251-cp39-abi3-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.5.1", das="", rest=OPT1
    ),
    "sglang_router-0.3.0+das.opt1.dtk2604.torch251-cp38-abi3-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.5.1", das="", rest=OPT1
    ),
    "sglang-0.5.7+das.opt1.dtk2604.torch251-py3-none-any.whl": Seen(
        *D2604, torch="2.5.1", das="", rest=OPT1
    ),
    "tilelang-0.1.6.post2+das.dtk2604.torch251-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.5.1", das=""
    ),
    "fastpt-2.1.1+das.dtk2604-cp312-cp312-linux_x86_64.whl": Seen(*D2604, das=""),
    "tensorflow-2.13.1+das.opt1.dtk2604-cp311-cp311-manylinux_2_28_x86_64.whl": Seen(
        *D2604, das="", rest=OPT1
    ),
    "apex-1.7.0+das.opt1.dtk2604.torch290-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *D2604, torch="2.9.0", das="", rest=OPT1
    ),
    "vllm-0.18.1+das.dtk2604-cp310-cp310-linux_x86_64.whl": Seen(*D2604, das=""),
    "vllm-0.18.1+das.dtk2604.hy3-cp310-cp310-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl": Seen(
        *D2604, das="", rest=("hy3",)
    ),
    "vllm_hcu-0.28.1rc1.dev491+das.691f8ba.dtk2604-cp310-cp310-linux_x86_64.whl": Seen(
        *D2604, das="", commit="691f8ba"
    ),
    "vllm-0.25.1+das185.dtk2604.torch2110.2608171710.g7b108a-cp310-cp310-linux_x86_64.whl": Seen(
        *D2604, torch="2.11.0", das="185", stamp="2608171710", commit="7b108a"
    ),
}

#: The last part of a direct URL, as ``pip freeze`` prints it.
URLS: dict[str, Seen] = {
    "torch-2.9.0%2Bdas.opt1.dtk2604.20260206.g275d08c2-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(
        *D2604, das="", stamp="20260206", commit="275d08c2", rest=OPT1
    ),
    "triton-3.3.0%2Bdas.opt2.dtk2604.torch291.20260210.g1329924c-cp310-cp310-manylinux_2_28_x86_64"
    ".whl": Seen(
        *D2604, torch="2.9.1", das="", stamp="20260210", commit="1329924c", rest=("opt2",)
    ),
    "vllm-0.11.0%2Bdas.opt1.rc2.torch29.dtk2604.20260211.g2e73602b-cp310-cp310-manylinux_2_28"
    "_x86_64.whl": Seen(
        *D2604, torch="2.9", das="", stamp="20260211", commit="2e73602b", rest=("opt1", "rc2")
    ),
    "vllm-0.11.0%2Bdas.opt1.rc4.dtk2604.torch271.20260305.g49a30c70-cp310-cp310-manylinux_2_28"
    "_x86_64.whl": Seen(
        *D2604, torch="2.7.1", das="", stamp="20260305", commit="49a30c70", rest=("opt1", "rc4")
    ),
    "flash_attn-2.6.1%2Bdas.opt1.dtk2604.torch291.20260210.g7808665e-cp310-cp310-manylinux_2_28"
    "_x86_64.whl": Seen(
        *D2604, torch="2.9.1", das="", stamp="20260210", commit="7808665e", rest=OPT1
    ),
    "dcu_megatron-0.15.0%2Bdas.opt1.dtk2604.torch271.20260204.gae67d7e2-py3-none-any.whl": Seen(
        *D2604, torch="2.7.1", das="", stamp="20260204", commit="ae67d7e2", rest=OPT1
    ),
    "flash_mla-1.0.0-cp310-cp310-manylinux_2_28_x86_64.whl": Seen(),
    "cupy-12.3.0-cp310-cp310-linux_x86_64.whl": Seen(),
    "ray-2.48.0-cp310-cp310-manylinux2014_x86_64.whl": Seen(),
    "amdsmi-24.5.3%2B02cbffb.dirty-py3-none-any.whl": Seen(commit="02cbffb", rest=("dirty",)),
}

VERSIONS: dict[str, Seen] = {
    "0.3.1+das.opt4.dtk2604.torch291.20260211.gc8327617": Seen(
        *D2604, torch="2.9.1", das="", stamp="20260211", commit="c8327617", rest=("opt4",)
    ),
    "0.6.0+das.dtk2604.torch291.20260211.g1fdc3ed2": Seen(
        *D2604, torch="2.9.1", das="", stamp="20260211", commit="1fdc3ed2"
    ),
    "2.10.0+das.opt1.dtk2604.20260202.gd954fc54": Seen(
        *D2604, das="", stamp="20260202", commit="d954fc54", rest=OPT1
    ),
    "1.5.0+das.opt1.dtk2604.20260128.g89c00191": Seen(
        *D2604, das="", stamp="20260128", commit="89c00191", rest=OPT1
    ),
    "2.10.0+das.opt1.dtk2604.20260325.g6b060a": Seen(
        *D2604, das="", stamp="20260325", commit="6b060a", rest=OPT1
    ),
    "2.8.3+das.opt1.dtk2604.torch2100.20260330.g3f0061": Seen(
        *D2604, torch="2.10.0", das="", stamp="20260330", commit="3f0061", rest=OPT1
    ),
    "3.4.0+git1ef59765": Seen(commit="1ef59765"),
    "0.1.dev1+g9daa788.d20260401": Seen(commit="9daa788", rest=("d20260401",)),
    "3.6.0+gitc73250c4.staging": Seen(commit="c73250c4", rest=("staging",)),
    "0.18.1+das.fa71803.dtk2604": Seen(*D2604, das="", commit="fa71803"),
    "2.11.0+das.opt1.dtk2604.202604021232.g1175f0": Seen(
        *D2604, das="", stamp="202604021232", commit="1175f0", rest=OPT1
    ),
    "0.25.1+das.f1f7a06.dtk2604": Seen(*D2604, das="", commit="f1f7a06"),
    "1.1.0+das185.dtk2604.torch2110.2608181058.gb5b9ab": Seen(
        *D2604, torch="2.11.0", das="185", stamp="2608181058", commit="b5b9ab"
    ),
    "0.6.0+das.dtk2604.torch2110.2608171227.g8c835c": Seen(
        *D2604, torch="2.11.0", das="", stamp="2608171227", commit="8c835c"
    ),
    "0.28.1+dtk2604.torch2110.2609171627.g77acaf": Seen(
        *D2604, torch="2.11.0", stamp="2609171627", commit="77acaf"
    ),
    "0.5.12+das.opt1.dtk2604.torch2100.2606021957.gdad582.hcuopt1": Seen(
        *D2604,
        torch="2.10.0",
        das="",
        stamp="2606021957",
        commit="dad582",
        rest=("opt1", "hcuopt1"),
    ),
    "0.5.12+das.opt.dtk2604": Seen(*D2604, das="", rest=("opt",)),
    "0.4.4+das.opt1.dtk2604.torch2100.2608132334.g97a193": Seen(
        *D2604, torch="2.10.0", das="", stamp="2608132334", commit="97a193", rest=OPT1
    ),
    "0.1.9+das185.dtk2604.torch2100.2608121523.gf631c9": Seen(
        *D2604, torch="2.10.0", das="185", stamp="2608121523", commit="f631c9"
    ),
    "0.1.3+das.opt1.dtk2604.torch2100.2605291819.g46abe1": Seen(
        *D2604, torch="2.10.0", das="", stamp="2605291819", commit="46abe1", rest=OPT1
    ),
    "2.1.0+das.opt1.dtk2604.torch2100.2606152155.g6a53e9": Seen(
        *D2604, torch="2.10.0", das="", stamp="2606152155", commit="6a53e9", rest=OPT1
    ),
    "0.3.3+git3380931.abi0.dtk2404.torch2.1": Seen(
        *dtk("dtk2404", 2404), torch="2.1", abi=0, commit="3380931"
    ),
    "1.0+dtk240401": Seen(*dtk("dtk240401", 2404, 1)),
    "0.18.1+das": Seen(das=""),
    "0.5.0-rc2.post1+hcu": Seen(rest=("hcu",)),
    # the plus lost on the way through a web page
    "18.1das.dtk2604": Seen(*D2604, das=""),
    "0.18.1das.dtk2604": Seen(*D2604, das=""),
    "0.18.1das": Seen(das=""),
    # other vendors, and labels that are no vendor's
    "2.10.0+rocm6.4": Seen("rocm6.4"),
    "2.4.0.dev20240520+rocm6.0": Seen("rocm6.0"),
    "2.11.0+rocm7.2.20260401": Seen("rocm7.2", stamp="20260401"),
    "2.9.0+rocmsdk20251116": Seen("rocmsdk20251116"),
    "2.9.0+cu130": Seen("cu130"),
    "2.5.0a0+872d972e41.nv24.08": Seen("nv24.08", commit="872d972e41"),
    "1.3.0+ngcpytorch2602": Seen("ngcpytorch2602"),
    "2.3.0a0+ebedce2": Seen(commit="ebedce2"),
    "2.13.0+cpu": Seen("cpu"),
    "2.1.0+cpu.cxx11.abi": Seen("cpu", rest=("cxx11", "abi")),
    "1.1+ubuntu0.2": Seen(rest=("ubuntu0", "2")),
    "25.1.0+8dc45db": Seen(commit="8dc45db"),
    # a commit may be all digits, and a date may look like a commit
    "1.0+1234567.dtk2604": Seen(*D2604, commit="1234567"),
    "1.0+das1.20260325": Seen(das="1", stamp="20260325"),
    "1.0+d20260401": Seen(rest=("d20260401",)),
    "2.1.0+git" + "a1" * 20: Seen(commit="a1" * 20),
}

"""Vendors as data."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.adapters.profiles import bundled_profiles, load_profile
from envlock.errors import UnusableInput
from envlock.model.profile import choose_profile, read_profile
from envlock.model.reading import Node
from tests.model.labels import FILES, URLS, VERSIONS, Seen

DTK, CPU = load_profile("dtk"), load_profile("cpu")

#: Vendor builds that a label cannot tell: the reason for the other signals.
WITHOUT_MARK = [
    "0.1",
    "1.10.0a0+gitcc7c9c7",
    "3.4.0+git1ef59765",
    "3.6.0+gitc73250c4.staging",
    "0.1.dev1+g9daa788.d20260401",
    "1.0.0",
    "12.3.0",
    "24.5.3+02cbffb.dirty",
]


def _version(file: str) -> str:
    return file.split("-")[1].replace("%2B", "+")


def _marked() -> list[str]:
    seen: dict[str, Seen] = {_version(file): what for file, what in {**FILES, **URLS}.items()}
    seen |= VERSIONS
    return [
        version
        for version, label in seen.items()
        if label.das is not None or (label.stack or "").startswith("dtk")
    ]


def test_bundled() -> None:
    assert [profile.name for profile in bundled_profiles()] == [
        "dtk",
        "rocm",
        "cuda",
        "ascend",
        "cpu",
    ]
    assert DTK.device == "cuda"
    assert CPU.device == "cpu"
    assert {"torch", "triton", "flash-attn", "vllm"} <= set(DTK.names)


@pytest.mark.parametrize("version", [*_marked(), "0.5.0-rc2.post1+hcu"])
def test_dtk_knows_its_labels(version: str) -> None:
    assert DTK.knows_label(version)
    assert not CPU.knows_label(version)


@pytest.mark.parametrize(
    "version",
    [
        *("1.1+ubuntu0.2", "25.1.0+8dc45db", "2.10.0", "2.10.0+cpu", "2.9.0+cu130"),
        *("2.10.0+rocm6.4", "1.0+dashboard", "1.0+hdtk", "dtk2604", "das", *WITHOUT_MARK),
    ],
)
def test_dtk_knows_no_other_label(version: str) -> None:
    """Distributions of Debian and builds from a commit are no vendor's by their label."""
    assert not DTK.knows_label(version)


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("2.13.0+cpu", True),
        ("2.1.0+CPU", True),
        ("2.1.0+cpu.cxx11.abi", True),
        ("2.13.0", False),
        ("1.0+cpus", False),
        ("1.0+nocpu", False),
        ("1.1+ubuntu0.2", False),
        ("25.1.0+8dc45db", False),
    ],
)
def test_cpu_labels(version: str, known: bool) -> None:
    assert CPU.knows_label(version) is known


MINIMAL = {"name": "x", "title": "X", "labels": ["^x"], "names": ["a"], "device": "cpu"}


def test_defaults() -> None:
    profile = read_profile(Node(MINIMAL))
    assert (profile.roots, profile.env_script, profile.unsupported) == ((), "", ())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": ["ok", "("]}, "x.yaml: labels[1]: expected a regular expression"),
        ({"labels": "x"}, "x.yaml: labels: expected a list, found 'x'"),
        ({"name": None}, "x.yaml: name: expected text, found nothing"),
        ({"names": [["a"]]}, "x.yaml: names[0]: expected text, found ['a']"),
        ({"device": "tpu"}, "x.yaml: device: expected cuda | cpu, found 'tpu'"),
    ],
)
def test_wrong_profile(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        read_profile(Node({**MINIMAL, **change}, file="x.yaml"))
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("versions", "present", "chosen"),
    [
        ([], [], "cpu"),
        (["2.10.0"], [], "cpu"),
        (["2.10.0+das.dtk2604"], [], "dtk"),
        (["2.10.0+cpu"], [], "cpu"),
        (["2.10.0+cpu", "1.0+das.dtk2604", "2.0+das.dtk2604"], [], "dtk"),
        (["1.0"], ["dtk"], "dtk"),
        (["1.0"], ["rocm", "dtk"], "dtk"),  # a DTK has ROCm's tools too
        (["1.1+ubuntu0.2", "25.1.0+8dc45db"], [], "cpu"),
        (["2.10.0+cpu", "1.0+das.dtk2604"], ["dtk"], "dtk"),
        (["2.9.0+rocm6.4"], ["cuda"], "rocm"),
        (["2.9.0+rocmsdk20251116"], [], "rocm"),
        (["2.5.0a0+872d972e41.nv24.08"], [], "cuda"),  # for Jetson
        (["1.3.0+ngcpytorch2602"], [], "cuda"),
        (["2.3.0a0+ebedce2"], [], "cpu"),  # of an NGC image, by nothing but a commit
    ],
)
def test_automatic_choice(versions: list[str], present: list[str], chosen: str) -> None:
    installed = {f"d{index}": version for index, version in enumerate(versions)}
    assert choose_profile(bundled_profiles(), installed, present) == chosen


def test_an_image_that_is_known_by_a_distribution() -> None:
    installed = {"torch": "2.8.0+cpu", "torchvision": "0.23.0+cpu", "torch-npu": "2.8.0"}
    assert choose_profile(bundled_profiles(), installed, []) == "ascend"
    del installed["torch-npu"]
    assert choose_profile(bundled_profiles(), installed, []) == "cpu"


def test_no_profiles() -> None:
    assert choose_profile([], {"a": "1.0+das"}, []) == "cpu"

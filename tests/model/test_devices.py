"""What recorded tools said, whichever release they were of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.model.agents import agents, properties
from envlock.model.devices import (
    Reading,
    chosen,
    noise,
    number,
    nvidia_devices,
    nvidia_readings,
    of_device,
    plain,
    smi_buses,
    smi_cards,
    smi_devices,
    smi_driver,
    smi_readings,
    smi_version,
)
from envlock.model.facts import Device

RULE = "=" * 96

NVIDIA = """\
0, 92.31, 345, 31, 0, NVIDIA H200, 143771, 580.159.04
1, [N/A], 1980, 64, 100, NVIDIA H200, 143771, 580.159.04
"""
# DTK 26.04: two more columns for coders
BW = f"""
================================= System Management Interface ==================================
{RULE}
HCU     Temp     AvgPwr     Perf     PwrCap     VRAM%      HCU%      Dec%      Enc%      Mode
0       43.0C    131.0W     auto     800.0W     98%        0.0%      0.0%      0.0%      Normal
7       36.0C    135.0W     auto     800.0W     0%         12.5%     0.0%      0.0%      Normal
{RULE}
======================================== End of SMI Log ========================================
"""
K100 = """
HCU     Temp     AvgPwr     Perf     PwrCap     VRAM%      HCU%      Mode
0       63.0C    109.0W     auto     400.0W     0%         0.0%      Normal
"""
Z100 = """
============================ System Management Interface =============================
DCU     Temp     AvgPwr     Perf     PwrCap     VRAM%      DCU%      Mode
0       49.0C    25.0W      auto     300.0W     0%         0%        N/A
"""
OLD = """
==========================System Management Interface ==========================
DCU  Temp   AvgPwr  Fan   Perf    PwrCap  VRAM%  DCU%
0    44.0c  20.0W   0.0%  manual  450.0W    0%   3%
"""
OLD_CLOCKS = """
DCU  Temp   AvgPwr   SCLK    MCLK  Fan   Perf    PwrCap  VRAM%  DCU%
0    44.0c  20.0W   1250Mhz 800Mhz 0.0%  manual  450.0W    0%   0%
"""
AMD = """
========================= ROCm System Management Interface =========================
GPU  Temp (DieEdge)  AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
0    35.0c           41.0W   800Mhz  1600Mhz  0%   auto  560.0W    0%   0%
"""
LINE = (
    '{"card0": {"Device ID": "0x6210", "Card Series": "K100_AI", '
    '"Average Graphics Package Power (W)": "77.0", "Temperature (Sensor edge) (C)": "37.0", '
    '"Temperature (Sensor junction) (C)": "35.0", "Temperature (Sensor mem) (C)": "38.0", '
    '"Temperature (Sensor core) (C)": "35.0", "HCU use (%)": "0.0", '
    '"vram Total Memory (MiB)": "65520", "vram Total Used Memory (MiB)": "2"}}'
)
WARNED = "Warning: unsupported format {\nrocm_smi_lib fallback\n" + LINE + "\n"
ROCM = (
    '{"card1": {"sclk clock level:": "7", "sclk clock speed:": "(1500Mhz)", '
    '"Current Socket Graphics Package Power (W)": "131.0", '
    '"Temperature (Sensor junction) (C)": "N/A", "Temperature (Sensor edge) (C)": "50.0", '
    '"GPU use (%)": "99", "Max Graphics Package Power (W)": "560"}, "system": {"x": "y"}}'
)


def _one(**values: float | None) -> tuple[Reading, ...]:
    return (Reading(index=0, **values),)


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        (
            BW,
            (
                Reading(index=0, power_w=131.0, temperature_c=43.0, use_percent=0.0),
                Reading(index=7, power_w=135.0, temperature_c=36.0, use_percent=12.5),
            ),
        ),
        (K100, _one(power_w=109.0, temperature_c=63.0, use_percent=0.0)),
        (Z100, _one(power_w=25.0, temperature_c=49.0, use_percent=0.0)),
        (OLD, _one(power_w=20.0, temperature_c=44.0, use_percent=3.0)),
        (OLD_CLOCKS, _one(power_w=20.0, clock_mhz=1250.0, temperature_c=44.0, use_percent=0.0)),
        (AMD, _one(power_w=41.0, clock_mhz=800.0, temperature_c=35.0, use_percent=0.0)),
        (LINE, _one(power_w=77.0, temperature_c=35.0, use_percent=0.0)),
        (WARNED, _one(power_w=77.0, temperature_c=35.0, use_percent=0.0)),
        (LINE.replace("HCU use", "DCU use"), _one(power_w=77.0, temperature_c=35.0, use_percent=0)),
        (
            ROCM,
            (
                Reading(
                    index=1, power_w=131.0, clock_mhz=1500.0, temperature_c=50.0, use_percent=99.0
                ),
            ),
        ),
        ("hy-smi: command failed\n", ()),
        ("", ()),
        ("{}", ()),
        ('["card0"]', ()),
    ],
)
def test_smi_answers(text: str, readings: tuple[Reading, ...]) -> None:
    assert smi_readings(text) == readings


def test_nvidia_answers() -> None:
    assert nvidia_readings(NVIDIA) == (
        Reading(index=0, power_w=92.31, clock_mhz=345, temperature_c=31, use_percent=0),
        Reading(index=1, power_w=None, clock_mhz=1980, temperature_c=64, use_percent=100),
    )
    assert nvidia_devices(NVIDIA) == (
        (Device(name="NVIDIA H200", memory_mib=143771),) * 2,
        "580.159.04",
    )
    failed = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    assert nvidia_readings(failed) == ()
    assert nvidia_devices(failed) == ((), "")


def test_devices_and_driver() -> None:
    assert smi_devices(WARNED) == (Device(name="K100_AI", memory_mib=65520),)
    older = '{"card0": {"Card Series": "Z100", "VRAM Total Memory (B)": "34342961152"}}'
    assert smi_devices(older) == (Device(name="Z100", memory_mib=32752),)
    assert smi_devices('{"card0": {}}') == (Device(name=""),)
    text = f"Warning: unsupported format\n\n{RULE}\nDriver Version: 6.3.31-V1.5.0a\n{RULE}\n"
    assert smi_driver(text) == "6.3.31-V1.5.0a"
    assert smi_driver("nothing\n") == ""
    assert smi_cards("{ not json") == {}


NOISE = st.text(max_size=200) | st.sampled_from(
    ['{"a":' * 13_000, "{" * 500, "0, " * 11, "HCU[0] : x: ", "9" * 5000, '{"card0": {"a": null}}']
)
WORDS = st.sampled_from(
    ["", "HCU[0] : PCI Bus: ", '{"card0": {"vram Total Memory (MiB)": "', "Driver Version: ",
     "BDFID: ", "simd_count ", "Agent 1\nDevice Type: GPU\nCompute Unit: ", "HCU Temp\n0 "]
)  # fmt: skip


@pytest.mark.parametrize("figure", ["9" * 5000, "\N{SUPERSCRIPT TWO}", "1e999", "-", "nan", "inf"])
def test_figures_of_nothing(figure: str) -> None:
    row = "0, 92.31, 345, 31, 0, NVIDIA H200, 143771, 580.159.04, 00000000:19:00.0, 9.0, 1980"
    for place in range(11):
        cells = row.split(", ")
        cells[place] = figure
        nvidia_devices(", ".join(cells))
        nvidia_readings(", ".join(cells))
    for text in (
        f'{{"card0": {{"vram Total Memory (MiB)": "{figure}", "HCU use (%)": "{figure}"}}}}',
        f'{{"card{figure}": {{}}}}',
        f"HCU[{figure}] : vram Total Memory (MiB): {figure}",
        f"HCU Temp HCU%\n{figure} {figure} {figure}",
    ):
        smi_devices(text)
        smi_readings(text)


@given(WORDS, NOISE, NOISE)
def test_whatever_a_tool_says(word: str, before: str, after: str) -> None:
    """It is an answer or none, and never an error."""
    text = f"{before}\n{word}{after}"
    for read in (smi_devices, smi_buses, smi_driver, smi_version, smi_readings, noise, plain,
                 nvidia_devices, nvidia_readings, agents, properties):  # fmt: skip
        read(text)


def test_buses_and_versions() -> None:
    text = 'warn\n{"card1": {"PCI Bus": "0000:B3:00.0"}, "card0": {"PCI Bus": "N/A"}}'
    assert smi_buses(text) == {1: "0000:b3:00.0"}
    line = "HCU[0]  : PCI Bus: 0000:09:00.0 --> SN: 01 --> OAM ID: 1"
    assert smi_buses(line) == {0: "0000:09:00.0"}
    names = '{"card3": {"Card Series": "b"}, "card1": {"Card Series": "a"}}'
    assert [(one.name, one.bus) for one in smi_devices(names, text)] == [
        ("a", "0000:b3:00.0"),
        ("b", ""),
    ]
    assert noise(text) == "warn"
    assert noise(LINE) == noise(BW) == ""
    assert smi_version("Version 1.25.0\n") == "1.25.0"
    assert smi_version("Version 1.24.0 2026-03-23") == "1.24.0 (2026-03-23)"
    assert smi_version("ROCM-SMI-LIB version: 7.6.0-0.10") == "7.6.0-0.10"
    assert smi_version("usage: hy-smi [-h]\n2026-03-23") == ""


def test_lines_where_there_is_no_document() -> None:
    lines = """
HCU[0]          : Card Series: BW
HCU[0]          : vram Total Memory (MiB): 65520
HCU[0]          : vram Total Used Memory (MiB): 2
GPU[1]    : VRAM Total Memory (B): 34342961152
DCU[2] : Card Series: K100_AI
"""
    assert smi_devices(lines) == (
        Device(name="BW", memory_mib=65520),
        Device(memory_mib=32752),
        Device(name="K100_AI"),
    )
    assert smi_devices(BW) == (Device(), Device())  # how many, and no more


def test_newer_columns() -> None:
    row = "0, 92.31, 345, 31, 0, NVIDIA H200, 143771, 580.159.04, 00000000:19:00.0, 9.0, 1980"
    [found], driver = nvidia_devices(row)
    assert found == Device(
        name="NVIDIA H200", memory_mib=143771, architecture="sm_90", wavefront=32,
        clock_mhz=1980, bus="0000:19:00.0",
    )  # fmt: skip
    assert driver == "580.159.04"
    assert nvidia_readings(row)[0].power_w == 92.31
    [found], _ = nvidia_devices(row.replace("9.0, 1980", "[N/A], [N/A]"))
    assert (found.architecture, found.wavefront, found.clock_mhz) == ("", 0, 0)
    [found], _ = nvidia_devices(row.replace(" 9.0,", " 12.1,"))
    assert found.architecture == "sm_121"


@pytest.mark.parametrize(
    ("text", "value"), [("(1500Mhz)", 1500.0), ("N/A", None), ("", None), ("-1.5 W", -1.5)]
)
def test_numbers(text: str, value: float | None) -> None:
    assert number(text) == value


HIP, CUDA = "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    ("env", "index", "found"),
    [
        ({}, 1, (HIP, "1")),
        ({HIP: "4,6"}, 1, (HIP, "6")),
        ({CUDA: " 2 , 3"}, 0, (CUDA, "2")),  # the runtime hears both; the one in use is narrowed
        ({HIP: "", CUDA: "GPU-8d3f,GPU-11aa"}, 1, (CUDA, "GPU-11aa")),
        ({HIP: "4"}, 1, None),
        ({CUDA: ""}, 0, None),
    ],
)
def test_one_device_is_left_visible(
    env: dict[str, str], index: int, found: tuple[str, str] | None
) -> None:
    assert chosen(env, HIP, index) == found


def test_whose_reading_it_is() -> None:
    first, second = Reading(index=0), Reading(index=3)
    assert of_device([first, second], "3") is second
    assert of_device([first, second], "GPU-8d3f") is None  # no guess
    assert of_device([second], "0") is second
    assert of_device([], "0") is None

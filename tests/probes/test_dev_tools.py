"""dev.enum and dev.versions: torch and the vendor's tools, on recorded machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from types import ModuleType
from typing import Any

import pytest

from envlock.adapters.profiles import load_profile
from tests.support.asking import Asked, reason, statuses

DTK: dict[str, Any] = {
    **asdict(load_profile("dtk").runtime),
    "architectures": list(load_profile("dtk").architectures),
    "tools": ["hy-smi", "rocm-smi"],
}
CUDA: dict[str, Any] = {
    **asdict(load_profile("cuda").runtime),
    "architectures": ["sm_90"],
    "tools": ["nvidia-smi"],
}


@pytest.fixture
def tools(load: Callable[[str], ModuleType]) -> ModuleType:
    return load("_tools")


_AGENT = """  Name:                    gfx936
  Uuid:                    GPU-a
  Marketing Name:          BW
  BDFID:                   {bdfid}
  Device Type:             HCU
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    67092480(0x3ffc000) KB
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx936:sramecc+:xnack-
"""
_HOST = """hygon module is loaded
Agent 1
  Name:                    Hygon C86 Processor
  Device Type:             CPU
  Pool Info:
    Pool 1
      Size:                    131072000(0x7d00000) KB
"""


def rocminfo(*bdfids: int) -> str:
    return _HOST + "".join(
        f"Agent {index}\n{_AGENT.format(bdfid=bdfid)}" for index, bdfid in enumerate(bdfids, 2)
    )


def hy_smi(*buses: str, memory: str = "65520") -> dict[str, str]:
    """What hy-smi prints: a warning, then the document."""
    sizes = {f"card{i}": {"vram Total Memory (MiB)": memory} for i in range(len(buses))}
    places = {
        f"card{i}": {"PCI Bus": f"{bus} --> SN: 01-000206-07SCC2 --> OAM ID: 1"}
        for i, bus in enumerate(buses)
    }
    warning = "Warning: rocm_smi_lib fallback\n"
    return {"showmeminfo": warning + json.dumps(sizes), "showbus": warning + json.dumps(places)}


FAKE_TORCH = """
class version: hip, cuda = {hip!r}, {cuda!r}
class _One:
    name, multi_processor_count, warp_size = {name!r}, {units}, 64
    major, minor = 9, 0
    gcnArchName = {arch!r}
    total_memory = {memory} * 2**20
    def __init__(self, bus):
        self.pci_domain_id, self.pci_bus_id, self.pci_device_id = 0, bus, 0
class cuda:
    buses = {buses!r}
    is_available = staticmethod(lambda: bool(cuda.buses))
    device_count = staticmethod(lambda: len(cuda.buses))
    get_device_properties = staticmethod(lambda index: _One(cuda.buses[index]))
    mem_get_info = staticmethod(lambda index: ({free} * 2**20, {memory} * 2**20))
"""


def put_torch(asked: Asked, *buses: int, **other: Any) -> None:
    values = {
        "hip": "6.3.26093", "cuda": None, "units": 80, "memory": 65520, "free": 65000,
        "arch": "gfx936:sramecc+:xnack-", "name": "BW", **other,
    }  # fmt: skip
    asked.module("torch", FAKE_TORCH.format(buses=buses, **values))


def test_torch_and_the_tools_agree(asked: Asked) -> None:
    put_torch(asked, 0x09, 0xD5)
    asked.tool("rocminfo", _=rocminfo(0x0900, 0xD500))
    asked.tool("hy-smi", **hy_smi("0000:09:00.0", "0000:d5:00.0"))
    found = asked.ask("dev_enum", DTK)
    assert statuses(found) == {
        "properties": "passed", "rocminfo": "passed", "vendor tool": "passed",
    }  # fmt: skip
    assert found["facts"]["devices"][1]["bus"] == "0000:d5:00.0"


def test_an_older_tool_has_other_words(asked: Asked) -> None:
    put_torch(asked, 0x09, memory=32752, free=32700)
    asked.tool("rocminfo", _=rocminfo(0x0900).replace("67092480", "33538048"))
    sizes = '{"card0": {"VRAM Total Memory (B)": "34342961152"}}'
    asked.tool("rocm-smi", showmeminfo=sizes, showbus='{"card0": {"PCI Bus": "0000:09:00.0"}}')
    assert set(statuses(asked.ask("dev_enum", DTK)).values()) == {"passed"}


def test_one_of_several_chosen_by_a_variable(asked: Asked) -> None:
    put_torch(asked, 0xD5)
    asked.tool("rocminfo", _=rocminfo(0x0900, 0xD500))
    given = {**DTK, "variables": {"HIP_VISIBLE_DEVICES": "1"}}
    found = statuses(asked.ask("dev_enum", given))
    assert found == {"properties": "passed", "rocminfo": "passed", "vendor tool": "skipped"}


def _one_less(asked: Asked) -> None:
    put_torch(asked, 0x09)


def _other_card(asked: Asked) -> None:
    put_torch(asked, 0x09, 0x0A)


def _other_architecture(asked: Asked) -> None:
    put_torch(asked, 0x09, 0xD5, arch="gfx928:sramecc+:xnack-")


def _foreign_architecture(asked: Asked) -> None:
    put_torch(asked, 0x09, 0xD5, arch="gfx942")


def _less_memory(asked: Asked) -> None:
    put_torch(asked, 0x09, 0xD5, memory=32768, free=32768)


def _no_units(asked: Asked) -> None:
    put_torch(asked, 0x09, 0xD5, units=0)


def _tool_sees_one(asked: Asked) -> None:
    asked.tool("hy-smi", **hy_smi("0000:09:00.0"))


@pytest.mark.parametrize(
    ("change", "case", "words"),
    [
        (_one_less, "rocminfo", "torch sees 1 devices, rocminfo 2"),
        (_other_card, "rocminfo", "rocminfo does not know 0000:0a:00.0"),
        (_other_architecture, "rocminfo", "device 0 is gfx928 to torch, gfx936 to rocminfo"),
        (_foreign_architecture, "properties", "device 0 is gfx942, not one of gfx906"),
        (_less_memory, "vendor tool", "device 0 has 32768 MiB to torch, 65520 to hy-smi"),
        (_no_units, "properties", "device 0 has 0 units"),
        (_tool_sees_one, "vendor tool", "hy-smi does not know 0000:d5:00.0"),
    ],
)
def test_what_torch_sees_differently(
    asked: Asked, change: Callable[[Asked], None], case: str, words: str
) -> None:
    put_torch(asked, 0x09, 0xD5)
    asked.tool("rocminfo", _=rocminfo(0x0900, 0xD500))
    asked.tool("hy-smi", **hy_smi("0000:09:00.0", "0000:d5:00.0"))
    change(asked)
    found = asked.ask("dev_enum", DTK)
    assert statuses(found)[case] == "failed"
    assert words in reason(found)


def test_a_busy_device_is_a_warning(asked: Asked) -> None:
    put_torch(asked, 0x09, free=30000)
    found = asked.ask("dev_enum", DTK)
    assert statuses(found)["properties"] == "warned"
    assert "device 0: 54 % of its memory is in use" in reason(found)


@pytest.mark.parametrize("expected", [False, True])
def test_torch_sees_none(asked: Asked, expected: bool) -> None:
    put_torch(asked)
    found = statuses(asked.ask("dev_enum", DTK, expected=expected))
    assert found == ({"prepare": "failed"} if expected else {"skip": found["skip"]})


@pytest.mark.parametrize("text", ["exec sleep 600", "exit 1", "echo '{'", "kill -SEGV $$"])
def test_a_tool_that_gives_no_answer_says_nothing(
    asked: Asked, text: str, load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.script("hy-smi", text)
    monkeypatch.setenv("PATH", asked.env["PATH"])
    enum = load("dev_enum")
    monkeypatch.setattr(enum.tools, "SECONDS", 0.5)
    assert enum.by_smi({"tools": ["hy-smi"]}) == []


def test_a_part_of_a_device(asked: Asked) -> None:
    """The tool tells of whole ones."""
    name = "NVIDIA H200 MIG 1g.18gb"
    put_torch(asked, 0x18, hip=None, cuda="13.0", memory=16384, free=16384, name=name)
    whole = "00000000:18:00.0, 143771, NVIDIA H200\n00000000:2A:00.0, 143771, NVIDIA H200"
    asked.tool("nvidia-smi", **{"query-gpu": whole})
    found = statuses(asked.ask("dev_enum", CUDA))
    assert found == {"properties": "passed", "vendor tool": "passed"}


def test_nvidia(asked: Asked) -> None:
    put_torch(asked, 0x18, hip=None, cuda="13.0", memory=143156, free=142000)
    line = "00000000:18:00.0, 143771, NVIDIA H200"
    asked.tool("nvidia-smi", **{"query-gpu": line})
    found = asked.ask("dev_enum", CUDA)
    assert statuses(found) == {"properties": "passed", "vendor tool": "passed"}
    assert found["facts"]["devices"][0]["arch"] == "sm_90"


# --- versions -------------------------------------------------------------------------------

_SMI = (
    "\n====== System Management Interface ======\nDriver Version: {}\n====== End of SMI Log ======"
)


@pytest.mark.parametrize(
    ("driver", "release", "status"),
    [
        ("6.3.31-V1.5.0a", "DTK-26.04-DCC2602-0317", "passed"),
        ("6.3.30-V1.4.1a", "26.04", "passed"),
        ("6.3.13-v1.12.0a", "25.04.4", "passed"),
        ("6.3.29-V1.4.0b", "DTK-26.04-rc4", "warned"),
        ("6.3.5", "25.04", "warned"),
        ("6.3.31-V1.5.0a", "24.04", "skipped"),
    ],
)
def test_the_driver_and_the_stack(asked: Asked, driver: str, release: str, status: str) -> None:
    asked.tool("hy-smi", showdriverversion="Warning: unsupported format\n" + _SMI.format(driver))
    found = asked.ask("dev_versions", {**DTK, "release": release})
    assert statuses(found) == {"driver": status}
    assert found["facts"]["driver"] == driver


@pytest.mark.parametrize(
    ("driver", "built", "status"),
    [
        ("580.95.05", "13.0", "passed"),
        ("550.54.14", "13.0", "warned"),
        ("550.54.14", "12.8", "passed"),
    ],
)
def test_nvidias_driver_and_torch(asked: Asked, driver: str, built: str, status: str) -> None:
    asked.tool("nvidia-smi", **{"query-gpu": driver})
    (asked.modules / "torch").mkdir()
    (asked.modules / "torch" / "__init__.py").write_text("raise RuntimeError('not to be imported')")
    text = f"from typing import Optional\ncuda: Optional[str] = '{built}'\nhip = None\n"
    (asked.modules / "torch" / "version.py").write_text(text)
    assert statuses(asked.ask("dev_versions", CUDA)) == {"driver": status}


def test_nobody_says_the_version(asked: Asked) -> None:
    assert "skip" in statuses(asked.ask("dev_versions", {**DTK, "release": "26.04"}))


@pytest.mark.parametrize("number", ["²", "9" * 5000, "٣٤"])
def test_figures_that_are_none(tools: ModuleType, number: str) -> None:
    """What ``int`` refuses, or takes though no tool means it, leaves a device without that fact."""
    text = f"Agent {number}\nAgent 2\n  Name: gfx936\n  BDFID: {number}\n  Device Type: HCU\n"
    assert tools.agents(text) == [{"name": "gfx936", "bus": "", "memory": 0.0, "type": "HCU"}]
    assert tools.cards({f"card{number}": {}}, {}) == []


def test_a_document_without_an_end(tools: ModuleType) -> None:
    assert tools.document('{"a":' * 5000) == {}

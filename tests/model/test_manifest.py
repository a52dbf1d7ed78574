"""The manifest as a document: its exact text, and every way in which it can be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from envlock.errors import UnusableInput
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Device, Finding, Machine
from envlock.model.manifest import (
    LockedTarget,
    Manifest,
    Stack,
    dump,
    is_newer_minor,
    load,
    parse_yaml,
    with_wheels,
)

GOLDEN = (Path(__file__).parent / "golden_manifest.yaml").read_text(encoding="utf-8")

TORCH_WHEEL = WheelRef(
    file="torch-2.10.0+das.opt1.dtk2604-cp310-cp310-linux_x86_64.whl",
    sha256="1" * 64,
    size=199_000_000,
    origin="rebuilt",
    compressor="isa-l 2.31.1 level 2",
)

MANIFEST = Manifest(
    name="dtk2604-cp310",
    created="2026-11-30T08:00:00Z",
    tool="envlock 0.1.0",
    profile="dtk",
    stack=Stack(tag="dtk2604", root="/opt/dtk", release="dtk-26.04-DCC2602-0317"),
    target=LockedTarget(
        python="3.10.12",
        markers={"python_version": "3.10", "sys_platform": "linux"},
        tags=("cp310-cp310-manylinux_2_35_x86_64", "py3-none-any"),
        paths={"purelib": "lib/python3.10/site-packages", "scripts": "bin"},
    ),
    machine=Machine(
        os="Ubuntu 22.04",
        kernel="5.15.0",
        cpu="数字 C86",
        driver="6.3.31-V1.5.0a",
        tool="hy-smi 1.24.0 (2026-03-23)",
        hip="6.2.0-0",
        compiler="dcc 25.10.0-0, clang 17.0.0",
        topology="pcie",
        limits={"cpus": 15, "host_cpus": 128, "memory": 63350767616},
        devices=(
            Device(
                name="BW",
                memory_mib=65520,
                compute_units=80,
                architecture="gfx936",
                features="sramecc+:xnack-",
                wavefront=64,
                clock_mhz=1500,
                bus="0000:55:00.0",
                link="32.0 GT/s x16",
                numa=2,
                driver="hycu",
                bf16=True,
            ),
        ),
    ),
    health=(
        Finding(
            code="health.missing",
            subject="vllm",
            what="vllm 0.18.1 needs triton ==3.6.0, 3.4.0 is installed",
        ),
    ),
    distributions=(
        Distribution(
            name="apex", version="0.1_dtk22.04.1", reason="no RECORD: its files are not known"
        ),
        Distribution(name="mine", version="1.0", editable=True, reason="editable install"),
        Distribution(
            name="torch",
            version="2.10.0+das.opt1.dtk2604.20260325.g6b060a",
            vendor=("label", "runtime-library"),
            protected=True,
            requires=("filelock", "typing-extensions>=4.10.0"),
            content="sha256:" + "0" * 64,
            files=12249,
            bytes=700_128_625,
            executable=("lib/torch/bin/protoc",),
            wheel=TORCH_WHEEL,
        ),
    ),
)


def test_golden_text() -> None:
    assert dump(MANIFEST) == GOLDEN


def test_golden_manifest() -> None:
    assert load(GOLDEN) == MANIFEST
    assert load(GOLDEN) == load(GOLDEN)


def test_by_hand_without_marks() -> None:
    """Marks are needed only where a file begins with one."""
    assert load(GOLDEN.removeprefix("---\n").removesuffix("...\n")) == MANIFEST


@pytest.mark.parametrize("end", ["\n", "\n\n  \n"])
def test_space_after_the_end_mark(end: str) -> None:
    assert load(GOLDEN + end) == MANIFEST


def test_every_line_is_needed() -> None:
    """Cut off after any line, it is not taken for a shorter manifest."""
    lines = GOLDEN.splitlines(keepends=True)
    for count in range(len(lines)):
        with pytest.raises(UnusableInput, match=r"^lock\.yaml: "):
            load("".join(lines[:count]), "lock.yaml")


@pytest.mark.parametrize(
    "version", ["3.10", "1e3", "yes", "no", "null", "~", "2026-11-30", "0x1F", "1_000", "on", ".5"]
)
def test_values_stay_text(version: str) -> None:
    """Whatever other readers of YAML would make of it, quoted or not."""
    manifest = replace(MANIFEST, distributions=(Distribution(name="a", version=version),))
    assert load(dump(manifest)) == manifest
    plain = GOLDEN.replace("version: 0.1_dtk22.04.1", f"version: {version}")
    assert load(plain).distributions[0].version == version


def test_an_empty_version_is_kept() -> None:
    dist = Distribution(name="odd", version="", reason="no METADATA")
    manifest = replace(MANIFEST, distributions=(dist,))
    assert load(dump(manifest)).distributions == (dist,)


def test_a_name_that_is_no_unicode_is_shown() -> None:
    """It can be written at all, and the file stays valid for every reader of YAML."""
    dist = Distribution(name="a", version="1", executable=("lib/\udcff.sh",))
    text = dump(replace(MANIFEST, distributions=(dist,)))
    assert load(text).distributions[0].executable == ("lib/\N{REPLACEMENT CHARACTER}.sh",)


def test_other_readers_of_yaml_agree() -> None:
    assert yaml.safe_load(GOLDEN)["distributions"][2]["wheel"]["sha256"] == "1" * 64


SHA = "1" * 64
FILE = f"file: {TORCH_WHEEL.file}"
NO_FILE = "distributions[2].wheel.file: expected a wheel's file name, found"
CONTENT = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (f"{CONTENT}\n", "x\n", "distributions[2].content: expected sha256:…, found 'x'"),
        (
            f"{CONTENT}\n",
            "md5:00\n",
            "distributions[2].content: expected sha256:…, found 'md5:00'",
        ),
        (
            "files: 12249",
            "files: many",
            "distributions[2].files: expected a whole number, found 'many'",
        ),
        (
            "files: 12249",
            "files: -1",
            "distributions[2].files: expected a whole number, found '-1'",
        ),
        (
            "protected: true",
            "protected: maybe",
            "distributions[2].protected: expected true or false, found 'maybe'",
        ),
        ("name: apex", "title: apex", "distributions[0].name: expected text, found nothing"),
        ("name: apex", "name: [apex]", "distributions[0].name: expected text, found ['apex']"),
        (FILE, "file: C:a.whl", f"{NO_FILE} 'C:a.whl'"),
        (FILE, 'file: "a\\n.whl"', f"{NO_FILE} 'a\\n.whl'"),
        (FILE, "file: ../a.whl", f"{NO_FILE} '../a.whl'"),
        (FILE, "file: C:\\a.whl", f"{NO_FILE} 'C:\\\\a.whl'"),
        (FILE, "file: a.zip", f"{NO_FILE} 'a.zip'"),
        (
            f"sha256: '{SHA}'",
            "sha256: '11'",
            "distributions[2].wheel.sha256: expected 64 hexadecimal digits, found '11'",
        ),
        (
            "origin: rebuilt",
            "origin: made",
            (
                "distributions[2].wheel.origin: "
                "expected index | url | file | built | rebuilt, found 'made'"
            ),
        ),
        (
            "level: warning",
            "level: loud",
            "health[0].level: expected error | warning | info, found 'loud'",
        ),
        (
            "  tags: [cp310-cp310-manylinux_2_35_x86_64, py3-none-any]\n",
            "",
            "target.tags: expected a list of wheel tags, found nothing",
        ),
        ("python: 3.10.12", "python: {}", "target.python: expected text, found {}"),
        (
            "requires:\n  - filelock",
            "requires:\n  - {a: b}",
            "distributions[2].requires[0]: expected text, found {'a': 'b'}",
        ),
        ("machine:\n", "machine: none\nother:\n", "machine: expected a mapping, found 'none'"),
        ("schema: '1.1'", "chema: '1.1'", "schema: expected text, found nothing"),
        (
            "    numa: 2",
            "    numa: -1",
            "machine.devices[0].numa: expected a whole number, found '-1'",
        ),
        ("cpus: 15", "cpus: all", "machine.limits.cpus: expected a number, found 'all'"),
        (
            "cpus: 15",
            "cpus: -1",
            "machine.limits.cpus: expected a number, zero or more, found '-1'",
        ),
        (
            "cpus: 15",
            "cpus: inf",
            "machine.limits.cpus: expected a number, zero or more, found 'inf'",
        ),
        ("distributions:\n", "dists:\n", "distributions: expected a list, found nothing"),
        (
            "distributions:\n-",
            "distributions: {}\nx:\n-",
            "distributions: expected a list, found {}",
        ),
    ],
)
def test_bad_value_is_named_by_its_path(old: str, new: str, message: str) -> None:
    assert old in GOLDEN
    with pytest.raises(UnusableInput) as caught:
        load(GOLDEN.replace(old, new), "lock.yaml")
    assert caught.value.message == f"lock.yaml: {message}"
    assert caught.value.hint
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("name", ["/tmp/evil", "..", "a/b", r"a\b", "A_b", "", r"a\nb"])
def test_a_name_that_is_a_path(name: str) -> None:
    """Files are named by it."""
    with pytest.raises(UnusableInput, match=r"distributions\[0\].name: expected a canonical name"):
        load(
            GOLDEN.replace("name: apex", f'name: "{name}"' if r"\n" in name else f"name: '{name}'")
        )


@pytest.mark.parametrize("version", ["1/2", "..", r"1\\2", r"1\nName: x", r"1\L2", r"1\0"])
def test_a_version_that_is_a_path_or_two_lines(version: str) -> None:
    with pytest.raises(UnusableInput, match=r"distributions\[0\].version: expected a version"):
        load(GOLDEN.replace("version: 0.1_dtk22.04.1", f'version: "{version}"'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lock.yaml: expected a manifest, found nothing"),
        ("- a\n", "lock.yaml: expected a manifest, found ['a']"),
        ("a: [b\n", "lock.yaml: line 2: did not find expected ',' or ']'"),
        ("a: \x07\n", "lock.yaml: not YAML: unacceptable character #x0007"),
        ("a: \ud800\n", "lock.yaml: not YAML: 'utf-8' codec can't encode"),
        ("[" * 100_000, "lock.yaml: line 1: "),
    ],
)
def test_no_manifest(text: str, message: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        load(text, "lock.yaml")
    assert caught.value.message.startswith(message)


def test_without_a_file_name() -> None:
    with pytest.raises(UnusableInput, match=r"^document: line 2: "):
        parse_yaml("a: [b\n")


@pytest.mark.parametrize("schema", ["2.0", "0.9", "two"])
def test_unknown_major(schema: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        load(GOLDEN.replace("schema: '1.1'", f"schema: '{schema}'"), "lock.yaml")
    assert caught.value.message == f"lock.yaml: schema: '{schema}' is not one this envlock reads"
    assert "this envlock reads 1.x" in caught.value.hint


@pytest.mark.parametrize(
    ("schema", "newer"),
    [("1.0", False), ("1", False), ("1.1", False), ("1.2", True), ("1.10", True), ("1.x", False)],
)
def test_newer_minor_is_read(schema: str, newer: bool) -> None:
    """Fields of a later envlock are passed over."""
    text = GOLDEN.replace("schema: '1.1'", f"schema: '{schema}'\nlater: field")
    found = load(text)
    assert is_newer_minor(found) is newer
    assert replace(found, schema="1.1") == MANIFEST


def test_an_older_minor_is_read() -> None:
    """What was not known of a machine then is unknown now, and the file stays what it was."""
    text = (Path(__file__).parent / "golden_manifest_1.0.yaml").read_text(encoding="utf-8")
    found = load(text)
    assert found.schema == "1.0"
    assert found.machine.devices == (Device(name="BW", memory_mib=65520),)
    assert found.distributions == MANIFEST.distributions
    assert dump(found) == text


def test_protected_and_find() -> None:
    assert [dist.name for dist in MANIFEST.protected] == ["torch"]
    torch = MANIFEST.find("torch")
    assert torch is not None
    assert str(torch) == "torch 2.10.0+das.opt1.dtk2604.20260325.g6b060a"
    assert MANIFEST.find("none") is None


def test_with_wheels() -> None:
    other = replace(TORCH_WHEEL, origin="url")
    changed = with_wheels(MANIFEST, {"torch": other, "not-there": other})
    assert [dist.wheel for dist in changed.distributions] == [None, None, other]
    assert with_wheels(changed, {"torch": TORCH_WHEEL}) == MANIFEST


@pytest.mark.parametrize("read", [dump, repr])
def test_order_of_keys_is_fixed(read: Callable[[Manifest], str]) -> None:
    assert read(MANIFEST) == read(load(GOLDEN))

"""Hypothesis strategies for the values of the model."""

from __future__ import annotations

from hypothesis import strategies as st

from envlock.model.dist import ORIGINS, Distribution, WheelRef
from envlock.model.facts import Device, Finding, Machine
from envlock.model.manifest import LockedTarget, Manifest, Stack
from envlock.model.wheels import is_file_name

#: What people and tools write where text may stand, and what YAML takes for something else.
AWKWARD = ["3.10", "1e3", "yes", "null", "~", "2026-11-30", "0x10", "- a", "a: b", "#", "", " "]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(AWKWARD)
names = st.from_regex(r"[a-z0-9]{1,4}(-[a-z0-9]{1,4}){0,2}", fullmatch=True)
hexa = st.integers(0, 2**256 - 1).map(lambda number: f"{number:064x}")
digests = hexa.map(lambda digits: f"sha256:{digits}")
sizes = st.integers(0, 2**40)

LABELS = ["", "+das.opt1.dtk2604.torch2100.20260330.g3f0061", "+das1.0+git00661e0.abi0.dtk2404"]
LABELS += ["_gita38191a_dtk22.04.2", "das.dtk2604", "+cpu", "+rocm6.4", "+ubuntu0.2", "+8dc45db"]
versions = st.builds(
    "{}{}".format,
    st.from_regex(r"[0-9]\.[0-9]{1,2}(\.[0-9])?", fullmatch=True) | texts,
    st.sampled_from(LABELS),
).filter(lambda version: not version or is_file_name(version))


def several(what: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    """A short tuple."""
    return st.lists(what, max_size=3).map(tuple)


wheels = st.builds(
    WheelRef,
    file=st.from_regex(r"[a-z_]{1,6}-1\.0(\+das\.dtk2604)?-py3-none-any\.whl", fullmatch=True),
    sha256=hexa,
    size=st.none() | sizes,
    origin=st.sampled_from(ORIGINS),
    compressor=texts,
    url=st.sampled_from(["", "https://example.org/a%2Bb.whl#sha256=0"]),
)

distributions = st.builds(
    Distribution,
    name=names,
    version=versions,
    vendor=several(st.sampled_from(["label", "direct-url", "runtime-library"])),
    protected=st.booleans(),
    requires=several(texts),
    content=st.just("") | digests,
    files=sizes,
    bytes=sizes,
    executable=several(texts),
    wheel=st.none() | wheels,
    module=st.dictionaries(texts, texts, max_size=2).map(lambda found: tuple(found.items())),
    editable=st.booleans(),
    reason=texts,
)

findings = st.builds(
    Finding,
    code=texts,
    subject=texts,
    what=texts,
    why=texts,
    hint=texts,
    level=st.sampled_from(["error", "warning", "info"]),
)

targets = st.builds(
    LockedTarget,
    python=texts,
    markers=st.dictionaries(texts, texts, max_size=3),
    tags=st.lists(texts, min_size=1, max_size=3).map(tuple),
    paths=st.dictionaries(texts, texts, max_size=3),
)

devices = st.builds(
    Device,
    name=texts,
    memory_mib=sizes,
    compute_units=sizes,
    architecture=texts,
    features=texts,
    wavefront=sizes,
    clock_mhz=sizes,
    bus=texts,
    link=texts,
    numa=st.none() | st.integers(0, 64),
    driver=texts,
    bf16=st.sampled_from([None, True, False]),
)

machines = st.builds(
    Machine,
    os=texts,
    kernel=texts,
    cpu=texts,
    driver=texts,
    tool=texts,
    hip=texts,
    compiler=texts,
    topology=texts,
    limits=st.dictionaries(texts, sizes | st.floats(0, 1e6).map(lambda n: round(n, 3)), max_size=3),
    devices=st.lists(devices, max_size=2).map(tuple),
)

manifests = st.builds(
    Manifest,
    name=texts,
    created=texts,
    tool=texts,
    profile=texts,
    stack=st.builds(Stack, tag=texts, root=texts, release=texts),
    target=targets,
    machine=machines,
    health=st.lists(findings, max_size=2).map(tuple),
    distributions=st.lists(distributions, max_size=3).map(tuple),
)

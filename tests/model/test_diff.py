"""What is lost between two manifests, and everything else that differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envlock.model.diff import Kind, compare, losses, vanished
from envlock.model.diff_words import Files, fact_row, said, verdict, whose
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Device, Finding, Machine
from envlock.model.manifest import Manifest
from tests.support.fake_manifest import locked

A, B = (f"sha256:{letter * 64}" for letter in "ab")
TORCH = Distribution(
    name="torch", version="2.10.0+das.dtk2604", vendor=("label",), protected=True, content=A
)
CASES = [
    (TORCH, "", ""),
    (replace(TORCH, protected=False), "", ""),
    (replace(TORCH, vendor=()), "", ""),  # the same bytes are the same build
    (replace(TORCH, version="2.10+das.dtk2604"), "", ""),
    (None, "not installed any more", "not installed any more"),
    (replace(TORCH, content="", reason="no RECORD"), "no RECORD", "no RECORD"),
    (replace(TORCH, content=B), "other bytes", ""),
    (replace(TORCH, version="2.11.0+das.dtk2604", content=B), "is now '2.11.0+das.dtk2604'", ""),
    (replace(TORCH, version="2.11.0", vendor=(), content=B), "no vendor build", "no vendor build"),
    (replace(TORCH, vendor=(), content=B), "no vendor build", "no vendor build"),
]


@pytest.mark.parametrize(("now", "loss", "gone"), CASES)
def test_loss(now: Distribution | None, loss: str, gone: str) -> None:
    new = locked(*[now] if now else [])
    for find, expected in ((losses, loss), (vanished, gone)):
        found = [finding.what for finding in find(locked(TORCH), new)]
        assert len(found) == bool(expected)
        assert all(expected in what for what in found)


def test_only_what_is_protected_can_be_lost() -> None:
    assert losses(locked(replace(TORCH, protected=False)), locked()) == []


def test_what_had_no_content_cannot_lose_it() -> None:
    bare = replace(TORCH, content="", reason="no RECORD")
    assert losses(locked(bare), locked(TORCH)) == []
    assert losses(locked(bare), locked(bare)) == []


def test_a_public_build_that_gave_way_to_the_vendors_is_no_loss() -> None:
    public = replace(TORCH, version="2.11.0", vendor=(), content=B)
    assert losses(locked(public), locked(TORCH)) == []
    assert [one.subject for one in losses(locked(public), locked())] == ["torch"]
    newer = replace(public, version="2.12.0")
    assert [one.subject for one in losses(locked(public), locked(newer))] == ["torch"]


def test_every_loss_is_named() -> None:
    triton = replace(TORCH, name="triton")
    assert [one.subject for one in losses(locked(TORCH, triton), locked())] == ["torch", "triton"]


# --- everything that differs ----------------------------------------------------------------


TQDM = Distribution(name="tqdm", version="4.67.1", content=A, files=3, bytes=10)
PAIRS: list[tuple[Distribution | None, Distribution | None, Kind, str]] = [
    (TORCH, None, Kind.REMOVED, "protected; dtk2604 vendor build"),
    (None, TQDM, Kind.ADDED, "public build"),
    (
        TORCH,
        replace(TORCH, version="2.11.0", vendor=(), protected=False, content=B),
        Kind.REPLACED,
        "protected; dtk2604 vendor build -> public build; protected only in A",
    ),
    (
        TORCH,
        replace(TORCH, version="2.10.0+cu130", vendor=(), content=B, requires=("a>=1", "b")),
        Kind.REPLACED,
        "protected; dtk2604 vendor build -> cu130 build; requires 'a>=1', 'b'",
    ),
    (
        TORCH,
        replace(TORCH, version="2.11.0+das.dtk2604", content=B),
        Kind.REPLACED,
        "protected; still a dtk2604 vendor build",
    ),
    (
        TQDM,
        replace(TQDM, content=B, files=4),
        Kind.BYTES,
        "sha256:aaaaaaaaaaaa -> sha256:bbbbbbbbbbbb; 3 -> 4 files",
    ),
    (
        TQDM,
        replace(TQDM, content="", files=0, bytes=0, reason="no RECORD"),
        Kind.UNREADABLE,
        "cannot be read any more: no RECORD",
    ),
    (
        TQDM,
        replace(TQDM, executable=("bin/tqdm",)),
        Kind.MODES,
        "executable now: 'bin/tqdm'",
    ),
    (TQDM, replace(TQDM, protected=True), Kind.ENTRY, "protected; protected only in B"),
    (TQDM, replace(TQDM, bytes=11), Kind.ENTRY, "bytes: 10 -> 11"),
    (
        TQDM,
        replace(TQDM, version="4.67.1.0"),
        Kind.ENTRY,
        "the same version, written '4.67.1' and '4.67.1.0'",
    ),
    (
        TQDM,
        replace(TQDM, vendor=("direct-url",)),
        Kind.ENTRY,
        "vendor signals: nothing -> direct-url",
    ),
]


def optional(dist: Distribution | None) -> Manifest:
    return locked(*[dist] if dist else [])


@pytest.mark.parametrize(("old", "new", "kind", "words"), PAIRS)
def test_change(old: Distribution | None, new: Distribution | None, kind: Kind, words: str) -> None:
    (change,) = compare(optional(old), optional(new)).changes
    assert change.kind is kind
    assert "; ".join(said(change)) == words
    (back,) = compare(optional(new), optional(old)).changes
    assert back == change.mirrored()
    assert said(back)


@pytest.mark.parametrize(
    ("version", "vendor", "words"),
    [
        ("2.10.0+das.opt1.dtk2604.g6b060a", ("label",), "dtk2604 vendor build"),
        ("1.0.0", ("runtime-library",), "vendor build"),
        ("2.10.0+cu130", (), "cu130 build"),
        ("3.4.0+git1ef59765", (), "build 'git1ef59765'"),
        ("2.10.0", (), "public build"),
    ],
)
def test_whose(version: str, vendor: tuple[str, ...], words: str) -> None:
    assert whose(Distribution(name="a", version=version, vendor=vendor)) == words


def test_protected_ones_come_first() -> None:
    old = locked(replace(TQDM, name="a"), replace(TORCH, name="b"), replace(TORCH, name="c"))
    new = locked(replace(TORCH, name="b", content=B), replace(TQDM, name="d"))
    found = compare(old, new)
    assert [one.name for one in found.changes] == ["c", "b", "a", "d"]
    assert [one.name for one in found.only({"protected"}).changes] == ["c", "b"]
    assert [one.name for one in found.only({"d"}).changes] == ["d"]
    assert found.only(set()) == found


def test_when_it_was_made_is_no_difference() -> None:
    old = locked(TORCH)
    new = replace(old, created="2027-01-01T00:00:00Z", tool="envlock 9")
    assert compare(old, new).count == 0
    assert compare(old, replace(old, name="other")).count == 1


def test_facts() -> None:
    old = locked()
    machine = Machine(driver="1", devices=(Device(name="BW", memory_mib=65520),) * 8)
    target = replace(old.target, tags=("cp311-cp311-manylinux_2_28_x86_64",))
    new = replace(old, machine=machine, target=target)
    rows = [fact_row(fact)[1:] for fact in compare(old, new).facts]
    assert rows == [
        ("target.glibc", "nothing", "2.28", ""),
        ("target.tags", "cp311-cp311-any", "cp311-cp311-manylinux_2_28_x86_64", ""),
        ("machine.devices", "nothing", "8 x BW", ""),
        ("machine.driver", "nothing", "1", ""),
    ]


def test_a_property_of_all_devices_is_one_fact() -> None:
    old, new = (
        replace(locked(), machine=Machine(devices=tuple(devices)))
        for devices in (
            [Device(name="BW", memory_mib=65520)] * 8,
            [Device(name="BW", memory_mib=65520)] * 7 + [Device(name="BW", memory_mib=32768)],
        )
    )
    (fact,) = compare(old, new).facts
    assert fact_row(fact)[1:4] == (
        "machine.devices.memory_mib",
        "8 x 65520",
        "7 x 65520, 32768",
    )


def test_long_lists_tell_what_differs() -> None:
    tags = tuple(f"cp311-cp311-manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1))
    old, new = (replace(locked().target, tags=some) for some in (tags, tags[5:]))
    found = compare(replace(locked(), target=old), replace(locked(), target=new))
    glibc, listed = (fact_row(fact) for fact in found.facts)
    assert glibc == ("fact", "target.glibc", "2.36", "2.31", "")
    assert listed[2:4] == ("32 values", "27 values")
    assert listed[4].startswith("5 only in A: 'cp311-cp311-manylinux_2_36_x86_64', ")
    turned = replace(old, tags=tags[::-1])
    (fact,) = compare(replace(locked(), target=old), replace(locked(), target=turned)).facts
    assert fact_row(fact)[4] == "the same in another order"


def test_an_older_schema_has_no_word_for_it() -> None:
    old = replace(locked(TORCH), schema="1.0", machine=Machine(devices=(Device(name="BW"),)))
    known = Machine(driver="6.3.26", devices=(Device(name="BW", architecture="gfx936"),))
    told = replace(TORCH, module=(("hip", "6.3"),))
    new = replace(locked(told), machine=known)
    assert compare(old, replace(new, schema="1.7")).count == 0
    assert compare(replace(new, schema="1.7"), old).count == 0
    assert compare(old, replace(new, schema="1.0")).count == 3
    other = replace(new, schema="1.7", machine=replace(known, devices=(Device(name="Z100"),)))
    assert [fact.subject for fact in compare(old, other).facts] == ["machine.devices.name"]


def test_what_a_module_says_is_not_read_of_every_target() -> None:
    told = replace(TORCH, module=(("hip", "6.3"),))
    assert compare(locked(told), locked(TORCH), "new").count == 0
    (change,) = compare(locked(told), locked(TORCH)).changes
    assert said(change)[-1] == "its module says: hip 6.3 -> nothing"
    other = replace(TORCH, module=(("hip", "6.4"),))
    assert compare(locked(told), locked(other), "new").count == 1


def test_health() -> None:
    one, other = (Finding(code="requires.missing", subject=name, what="needs 'x'") for name in "ab")
    old, new = (replace(locked(), health=health) for health in ((one, one), (one, other)))
    found = compare(old, new)
    assert (found.appeared, found.gone, found.count) == ((other,), (one,), 2)


def test_a_target_has_no_wheels_and_no_wishes() -> None:
    wheel = WheelRef(file="tqdm-1-py3-none-any.whl", sha256="0" * 64, origin="index")
    wanted = replace(TQDM, wheel=wheel, protected=True, executable=("lib/a",))
    live = replace(TQDM, executable=("bin/tqdm", "lib/a"))
    assert compare(locked(wanted), locked(live), "new").count == 0
    assert compare(locked(live), locked(wanted), "old").count == 0
    assert compare(locked(wanted), locked(live)).count == 1
    (lost,) = compare(locked(wanted), locked(replace(live, executable=())), "new").changes
    assert lost.kind is Kind.MODES
    bare = replace(wanted, wheel=None)
    assert compare(locked(bare), locked(wanted), wheels=False).count == 0


def test_twins() -> None:
    """A name that is there twice: the same version belongs together."""
    first, second = TQDM, replace(TQDM, version="5.0", content=B)
    changed = replace(first, content=B)
    found = compare(locked(first, second), locked(second, changed))
    assert [(one.kind, one.old, one.new) for one in found.changes] == [(Kind.BYTES, first, changed)]
    (gone,) = compare(locked(first, second), locked(second)).changes
    assert (gone.kind, gone.old) == (Kind.REMOVED, first)


def test_files_are_named() -> None:
    (change,) = compare(locked(TQDM), locked(replace(TQDM, content=B))).changes
    files = Files(changed=("lib/a", "lib/b"), gone=("lib/c",), damaged=("lib/a",))
    assert said(change, files)[1:] == [
        "not as its own RECORD says: 'lib/a'",
        "changed: 'lib/b'",
        "only in A: 'lib/c'",
    ]


def test_verdict() -> None:
    old = locked(TORCH, TQDM)
    assert verdict(compare(old, old)) == "no difference; 2 distributions compared"
    assert verdict(compare(old, locked(replace(TORCH, content=B)))) == (
        "2 differences, 1 protected build among them: 1 removed, 1 other bytes; "
        "1 distribution compared"
    )

"""Wheels: names, members, RECORD."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.model.record import Row
from envlock.model.wheels import (
    MemberFacts,
    decode_hash,
    dist_info_folder,
    encode_hash,
    member_name,
    parse_wheel_info,
    parse_wheel_name,
    record_problems,
    unsafe_path,
    wheel_file_name,
    wheel_place,
    wheel_tags_part,
)

HEX = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_label_is_kept_in_the_file_name() -> None:
    version = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"
    file = wheel_file_name("torch", version, "", "cp310-cp310-linux_x86_64")
    assert file == f"torch-{version}-cp310-cp310-linux_x86_64.whl"
    assert parse_wheel_name(file).version == version


@pytest.mark.parametrize(
    ("name", "version", "build", "file"),
    [
        ("flash-attn", "2.8.3", "", "flash_attn-2.8.3-py3-none-any.whl"),
        ("a", "1.0-1", "", "a-1.0.post1-py3-none-any.whl"),
        ("a", "1-dev-x", "", "a-1_dev_x-py3-none-any.whl"),
        ("a", "1", "2local", "a-1-2local-py3-none-any.whl"),
        ("a", "1", "odd", "a-1-py3-none-any.whl"),
        ("a", "1!2.0RC1", "", "a-1!2.0RC1-py3-none-any.whl"),
    ],
)
def test_file_name(name: str, version: str, build: str, file: str) -> None:
    assert wheel_file_name(name, version, build, "py3-none-any") == file


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("torch-2.0%2Bdas-py3-none-any.whl", "URL-encoded"),
        ("torch.zip", "not a .whl"),
        ("torch-2.0.whl", "not of the form"),
    ],
)
def test_bad_file_names(file: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_wheel_name(file)


def test_tags_are_a_set() -> None:
    tags = ["py2-none-any", "py3-none-any"]
    assert wheel_tags_part(tags) == "py2.py3-none-any"
    assert wheel_tags_part(tags[::-1]) == "py2.py3-none-any"


@pytest.mark.parametrize(
    ("member", "why"),
    [
        ("/etc/passwd", "absolute path"),
        ("C:/windows/x", "a drive letter, an absolute path on Windows"),
        ("../x", "leads out of the wheel"),
        ("a/../../x", "leads out of the wheel"),
        ("a\\b", "a backslash, which parts folders on Windows"),
        ("a\0b", "control character or line end in the name"),
        ("", "no name"),
        ("a\nb", "control character or line end in the name"),
        ("a\u2028b", "control character or line end in the name"),
        ("a\x1b[2J", "control character or line end in the name"),
        ("./a", "not a normal path"),
        ("a//b", "not a normal path"),
        ("a/b", ""),
        ("a/", ""),
        ("..a/b..", ""),
    ],
)
def test_unsafe_path(member: str, why: str) -> None:
    assert unsafe_path(member) == why


def test_dist_info_folder() -> None:
    assert dist_info_folder(["A_b-1.0.dist-info/METADATA", "a.py"], "a-b", "1.0") == (
        "A_b-1.0.dist-info"
    )
    with pytest.raises(ValueError, match=r"no \.dist-info"):
        dist_info_folder(["a.py"], "a", "1")
    with pytest.raises(ValueError, match=r"2 \.dist-info folders"):
        dist_info_folder(["a-1.dist-info/x", "b-1.dist-info/x"], "a", "1")
    with pytest.raises(ValueError, match="does not belong to 'a 1'"):
        dist_info_folder(["b-1.dist-info/x"], "a", "1")


_PART = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1)
_PATH = st.lists(_PART.filter(lambda part: part not in (".", "..")), min_size=1, max_size=3)


@given(st.sampled_from(["lib", "bin", "include", "data"]), _PATH, st.booleans(), st.booleans())
def test_place_round_trip(scheme: str, parts: list[str], script: bool, purelib: bool) -> None:
    """The spread of a wheel puts a member where it was taken from (binary distribution format)."""
    place = f"{scheme}/{'/'.join(parts)}"
    name = member_name(place, "pkg-1", script=script, purelib=purelib)
    if scheme != "data" or parts[0] not in ("bin", "include", "lib", "lib64"):
        assert wheel_place(name, "pkg") == place


def test_folder_that_looks_like_a_scheme() -> None:
    assert member_name("lib/x.data/y", "p-1", script=False) == "p-1.data/purelib/x.data/y"
    assert member_name("lib/x.data", "p-1", script=False) == "p-1.data/purelib/x.data"
    assert member_name("lib/x.data/y", "p-1", script=False, purelib=False) == (
        "p-1.data/platlib/x.data/y"
    )


def test_nested_scripts_come_back_as_data() -> None:
    assert member_name("bin/a/b", "p-1", script=True) == "p-1.data/data/bin/a/b"
    assert member_name("bin/b", "p-1", script=False) == "p-1.data/data/bin/b"
    assert member_name("bin/b", "p-1", script=True) == "p-1.data/scripts/b"


def test_unknown_scheme() -> None:
    with pytest.raises(ValueError, match="unknown scheme 'etc'"):
        wheel_place("p-1.data/etc/x", "p")
    with pytest.raises(ValueError, match="unknown scheme ''"):
        wheel_place("x.data", "p")


def test_wheel_info() -> None:
    info = parse_wheel_info(
        "Wheel-Version: 1.0\n\nRoot-Is-Purelib: FALSE\nBuild: 3\nTag: py2.py3-none-any\nTag: odd\n"
    )
    assert (info.version, info.build, info.purelib) == ("1.0", "3", False)
    assert {str(tag) for tag in info.tag_set} == {"py2-none-any", "py3-none-any"}
    assert parse_wheel_info("").tags == ()


@given(st.binary(min_size=32, max_size=32))
def test_hash_round_trip(digest: bytes) -> None:
    assert decode_hash(encode_hash(digest.hex())) == ("sha256", digest.hex())


def test_bad_hashes() -> None:
    assert decode_hash("") == ("", "")
    with pytest.raises(ValueError, match="'md5' is not sha256"):
        decode_hash("md5=abc")
    with pytest.raises(ValueError, match="is no digest"):
        decode_hash("sha256=a")


def test_record_problems() -> None:
    facts = MemberFacts({"sha256": HEX}, 0)
    info = "a-1.dist-info"
    members = dict.fromkeys(("good", "extra", "size", "md5", "bare", "other"), facts)
    members |= {f"{info}/RECORD": facts, f"{info}/RECORD.jws": facts}
    rows = [
        Row("good", encode_hash(HEX), 0),
        Row("good", encode_hash(HEX), 0),
        Row("gone", encode_hash(HEX), 0),
        Row("size", encode_hash(HEX), 1),
        Row("md5", "md5=x", None),
        Row("bare", "", None),
        Row("other", encode_hash("00" * 32), None),
        Row(f"{info}/RECORD", "", None),
    ]
    assert record_problems(rows, members, info) == [
        ("error", "RECORD lists 'good' twice"),
        ("error", "RECORD lists 'gone', the wheel does not have it"),
        ("error", "'size' has 0 bytes, RECORD says 1"),
        ("error", "RECORD: 'md5': 'md5' is not sha256, sha384, sha512"),
        ("warning", "RECORD has no digest for 'bare'"),
        ("error", "'other' has other bytes than RECORD says"),
        ("error", "'extra' is not in RECORD"),
    ]

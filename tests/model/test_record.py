"""RECORD, places of installation and the content digest."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.model.facts import Layout
from envlock.model.record import (
    HEAD_BYTES,
    Row,
    content_digest,
    data_place,
    entry_point_names,
    installed_place,
    is_bytecode,
    is_content,
    is_generated_script,
    parse_record,
    place_path,
    script_head,
)


def layout(prefix: str, library: str, headers: str, platform: str = "") -> Layout:
    return Layout(
        prefix=prefix,
        purelib=f"{prefix}/{library}",
        platlib=f"{prefix}/{platform or library}",
        scripts=f"{prefix}/bin",
        headers=headers if headers.startswith("/") else f"{prefix}/{headers}",
        data=prefix,
    )


VENV = layout("/v", "lib/python3.10/site-packages", "include/site/python3.10")
CONDA = layout("/opt/conda", "lib/python3.10/site-packages", "include/python3.10")
DEBIAN = layout("/usr/local", "lib/python3.10/dist-packages", "/usr/include/python3.10")
SPLIT = layout(
    "/usr", "lib/python3.11/site-packages", "include/python3.11", "lib64/python3.11/site-packages"
)


# --- RECORD ---------------------------------------------------------------------------------


def test_record_rows() -> None:
    text = "a.py,sha256=abc,12\nRECORD,,\nb.py\n\n,sha256=x,1\nc.py,,x\nd.py,,²\ne.py,,\r\n"
    assert parse_record(text) == (
        Row("a.py", "sha256=abc", 12),
        Row("RECORD", "", None),
        Row("b.py", "", None),
        Row("c.py", "", None),
        Row("d.py", "", None),
        Row("e.py", "", None),
    )


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('"a,b.txt",,', "a,b.txt"),
        ('"say ""hi"".txt",,', 'say "hi".txt'),
        ('"two\nlines.txt",,', "two\nlines.txt"),
        ("数据/été.txt,,", "数据/été.txt"),
        ("para\u2028graph.txt,,", "para\u2028graph.txt"),
        ("page\x0cfeed.txt,,", "page\x0cfeed.txt"),
        (" spaced .txt,,", " spaced .txt"),
    ],
)
def test_record_quoting(line: str, path: str) -> None:
    assert parse_record(f"first.py,,\n{line}\nlast.py,,\n") == (
        Row("first.py", "", None),
        Row(path, "", None),
        Row("last.py", "", None),
    )


def test_record_that_is_no_csv() -> None:
    with pytest.raises(ValueError, match="field larger"):
        parse_record("x" * 200_000)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_record_reads_or_says_why(text: str) -> None:
    """A broken RECORD is a ValueError with words, nothing else."""
    try:
        rows = parse_record(text)
    except ValueError as error:
        assert str(error)
    else:
        assert all(row.path for row in rows)


# --- places ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "path", "place"),
    [
        (VENV, "/v/lib/python3.10/site-packages/torch/_C.so", "lib/torch/_C.so"),
        (VENV, "/v/bin/torchrun", "bin/torchrun"),
        (VENV, "/v/include/site/python3.10/Torch/a/b.h", "include/a/b.h"),
        (VENV, "/v/include/site/python3.10/other/b.h", "data/include/site/python3.10/other/b.h"),
        (VENV, "/v/include/python3.10/torch/b.h", "include/b.h"),
        (VENV, "/v/include/torch.h", "data/include/torch.h"),
        (VENV, "/v/share/torch/x", "data/share/torch/x"),
        (VENV, "/v/lib/python3.9/site-packages/x.py", "lib/x.py"),
        (VENV, "/v/lib/torch.so", "data/lib/torch.so"),
        (VENV, "/w/share/x", None),
        (VENV, "/vault/share/x", None),
        (VENV, "/etc/passwd", None),
        (CONDA, "/opt/conda/lib/python3.10/site-packages/x.py", "lib/x.py"),
        (CONDA, "/opt/conda/include/python3.10/torch/b.h", "include/b.h"),
        (CONDA, "/opt/conda/include/python3.10/Python.h", "data/include/python3.10/Python.h"),
        (CONDA, "/opt/conda/bin/x", "bin/x"),
        (DEBIAN, "/usr/local/lib/python3.10/dist-packages/x.py", "lib/x.py"),
        (DEBIAN, "/usr/local/bin/x", "bin/x"),
        (DEBIAN, "/usr/include/python3.10/torch/b.h", "include/b.h"),
        (DEBIAN, "/usr/local/include/python3.10/torch/b.h", "include/b.h"),
        (DEBIAN, "/usr/local/share/x", "data/share/x"),
        (DEBIAN, "/usr/lib/python3/dist-packages/x.py", None),
        (SPLIT, "/usr/lib/python3.11/site-packages/x.py", "lib/x.py"),
        (SPLIT, "/usr/lib64/python3.11/site-packages/x.so", "lib/x.so"),
    ],
)
def test_place_of_an_installed_file(where: Layout, path: str, place: str | None) -> None:
    assert installed_place(path, where, "torch") == place


@pytest.mark.parametrize(
    ("member", "place"),
    [
        ("bin/x", "bin/x"),
        ("share/man/man1/x.1", "data/share/man/man1/x.1"),
        ("include/x.h", "data/include/x.h"),
        ("include/python3.12/flash_attn/x.h", "include/x.h"),
        ("include/site/python3.12/Flash.Attn/sub/x.h", "include/sub/x.h"),
        ("include/python3.12/torch/x.h", "data/include/python3.12/torch/x.h"),
        ("lib/python3.12/site-packages/x.py", "lib/x.py"),
        ("lib64/python3.12/site-packages/x.py", "lib/x.py"),
        ("lib/libx.so", "data/lib/libx.so"),
        ("binary", "data/binary"),
    ],
)
def test_place_of_a_data_file(member: str, place: str) -> None:
    assert data_place(member, "flash-attn") == place


@pytest.mark.parametrize("where", [VENV, CONDA, DEBIAN, SPLIT])
@pytest.mark.parametrize(
    "place", ["lib/torch/a.py", "bin/torchrun", "include/a/b.h", "data/share/x", "data/etc/x"]
)
def test_a_place_leads_back_to_itself(where: Layout, place: str) -> None:
    assert installed_place(place_path(place, where, "torch"), where, "torch") == place


# --- what is content ------------------------------------------------------------------------

OWN = "lib/torch-2.0.dist-info"


@pytest.mark.parametrize(
    ("place", "content"),
    [
        (f"{OWN}/RECORD", False),
        (f"{OWN}/RECORD.jws", False),
        (f"{OWN}/RECORD.p7s", False),
        (f"{OWN}/INSTALLER", False),
        (f"{OWN}/REQUESTED", False),
        (f"{OWN}/direct_url.json", False),
        (f"{OWN}/provenance_url.json", False),
        (f"{OWN}/uv_cache.json", False),
        (f"{OWN}/uv_build.json", False),
        (f"{OWN}/METADATA", True),
        (f"{OWN}/WHEEL", True),
        (f"{OWN}/entry_points.txt", True),
        (f"{OWN}/licenses/RECORD", True),
        (f"{OWN}/RECORDS", True),
        (f"{OWN}/uv.json", True),
        (f"{OWN}/direct_url.json.txt", True),
        ("lib/other-1.0.dist-info/RECORD", True),
        ("lib/RECORD", True),
        ("lib/torch/__pycache__/a.cpython-310.pyc", False),
        ("lib/__pycache__/a.cpython-310.opt-1.pyc", False),
        ("bin/__pycache__/tool.cpython-310.pyc", False),
        ("lib/torch/sourceless.pyc", True),
        ("lib/torch/__pycache__/sub/a.pyc", True),
        ("lib/torch/my__pycache__/a.pyc", True),
        ("lib/torch/__pycache__/a.py", True),
        ("bin/torchrun", False),
        ("bin/torchrun-script.py", False),
        ("bin/torchrun.exe", False),
        ("bin/sub/torchrun", True),
        ("bin/protoc", True),
        ("lib/torchrun", True),
        ("data/torchrun", True),
    ],
)
def test_content(place: str, content: bool) -> None:
    scripts = frozenset({"torchrun"})
    assert is_content(place, "torch-2.0.dist-info", "torch", scripts) is content


@pytest.mark.parametrize(
    ("script", "name", "generated"),
    [
        ("pip", "pip", True),
        ("pip3.11", "pip", True),
        ("pip3", "pip", True),
        ("pip3.11", "other", False),
        ("easy_install-3.8", "setuptools", True),
        ("pipx", "pip", False),
    ],
)
def test_versioned_scripts_of_pip(script: str, name: str, generated: bool) -> None:
    assert is_generated_script(script, name, frozenset({"pip"} if name == "pip" else ())) is (
        generated
    )


def test_bytecode_only_in_its_cache() -> None:
    assert is_bytecode("a/__pycache__/b.pyc")
    assert not is_bytecode("a/b.pyc")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[console_scripts]\nTool = a:b\nother=a:c [extra]\n", {"Tool", "other"}),
        ("[console_scripts]\nx = a:b\n[gui_scripts]\ny = a:b\n[other]\nz = a:b\n", {"x", "y"}),
        ("[console_scripts]\nx = a:b\nx = a:c\n", {"x"}),
        ("[console_scripts]\nper%cent = a:b\n", {"per%cent"}),
        ("no section", set()),
        ("", set()),
    ],
)
def test_entry_points(text: str, names: set[str]) -> None:
    assert entry_point_names(text) == names


# --- first lines of scripts -----------------------------------------------------------------

LONG = "/" + "x" * 140 + "/bin/python3.10"
BODY = b"import sys\n"


@pytest.mark.parametrize(
    "head",
    [
        b"#!python\n",
        b"#!pythonw\n",
        b"#!python -E\n",
        b"#!python\r\n",
        b"#!/usr/bin/env python3\n",
        b"#!/usr/bin/env -S python3 -I\n",
        b"#!/v/bin/python3.10\n",
        b"#! /v/bin/python\n",
        b'#!"/with space/bin/python"\n',
        f"#!{LONG}\n".encode(),
        # distlib's, as pip writes it
        f"#!/bin/sh\n'''exec' {LONG} \"$0\" \"$@\"\n' '''\n".encode(),
        b"#!/bin/sh\n'''exec' \"/with space/bin/python\" \"$0\" \"$@\"\n' '''\n",
        # uv's, then the one of a relocatable venv
        f"#!/bin/sh\n'''exec' '{LONG}' \"$0\" \"$@\"\n' '''\n".encode(),
        b"#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\"\n' '''\n",
    ],
)
def test_first_line_of_a_python_script(head: bytes) -> None:
    """A first line ``#!…python…`` or the three-line trampoline counts as ``#!python``."""
    shown, length = script_head(head + BODY)
    assert shown + (head + BODY)[length:] == b"#!python\n" + BODY


@pytest.mark.parametrize(
    "head",
    [
        b"#!/bin/sh\nexec python3 x\n",
        b"#!/bin/bash\n",
        b"\x7fELF\x02python\n",
        b"# python\n",
        b"",
        b"#!",
        b"#!/usr/bin/perl\npython\n",
        b"#!/" + b"x" * HEAD_BYTES,
    ],
)
def test_first_line_of_anything_else(head: bytes) -> None:
    assert script_head(head) == (b"", 0)


def test_first_line_without_an_end() -> None:
    """pip ends the line that the wheel left open."""
    assert script_head(b"#!python") == (b"#!python\n", 8)


# --- the digest -----------------------------------------------------------------------------

EMPTY_FILE = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
HELLO = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"  # "hello\n"


def test_digest_of_nothing() -> None:
    assert content_digest({}) == f"sha256:{EMPTY_FILE}"


def test_golden_digest() -> None:
    """Made with ``printf '%s\\0%s\\n' bin/x $EMPTY lib/a.py $HELLO | sha256sum``."""
    found = content_digest({"lib/a.py": HELLO, "bin/x": EMPTY_FILE})
    assert found == "sha256:eabc70a65b5f6c7df18d37802b2d17447a78709e4e047e1910b3fe2d19d6c20f"


def test_golden_digest_with_unicode() -> None:
    """Sorted as bytes: ``lib/Z`` < ``lib/a`` < ``lib/é`` < ``lib/数``."""
    lines = (
        b"lib/Z.py\0" + HELLO.encode() + b"\n"
        b"lib/a.py\0" + HELLO.encode() + b"\n"
        b"lib/\xc3\xa9.py\0" + EMPTY_FILE.encode() + b"\n"
        b"lib/\xe6\x95\xb0.py\0" + EMPTY_FILE.encode() + b"\n"
    )
    golden = "15efa169450426de4e3a13493044c534ab63f020be4405062d3d64eaf3e13ad1"
    assert hashlib.sha256(lines).hexdigest() == golden
    files = {"lib/数.py": EMPTY_FILE, "lib/a.py": HELLO, "lib/é.py": EMPTY_FILE, "lib/Z.py": HELLO}
    assert content_digest(files) == f"sha256:{golden}"


def test_a_name_that_is_no_unicode() -> None:
    name = b"lib/\xff.py"
    lines = name + b"\0" + HELLO.encode() + b"\n"
    expected = hashlib.sha256(lines).hexdigest()
    assert content_digest({name.decode(errors="surrogateescape"): HELLO}) == f"sha256:{expected}"


@given(
    st.dictionaries(st.text(min_size=1), st.sampled_from([HELLO, EMPTY_FILE]), max_size=6),
    st.randoms(use_true_random=False),
)
def test_order_does_not_matter(files: dict[str, str], random: object) -> None:
    """The lines are sorted by ``SCHEME/PATH`` as bytes."""
    pairs = list(files.items())
    random.shuffle(pairs)  # type: ignore[attr-defined]
    assert content_digest(pairs) == content_digest(files)

"""Installed distributions, sound ones and every kind of broken one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.adapters.installed import (
    content_paths,
    read_contents,
    read_installed,
    read_inventory,
    recorded_digests,
    site_folders,
)
from envlock.model.facts import Layout
from envlock.model.record import content_digest
from tests.adapters.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "v")


def hexa(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


# --- sound ----------------------------------------------------------------------------------


def test_sound(site: Site) -> None:
    info = site.add(
        files={
            "torch/__init__.py": "x = 1\n",
            "torch/bin/protoc": b"\x7fELF",
            "torch/__pycache__/__init__.cpython-310.pyc": b"cached",
            "torch/sourceless.pyc": b"code",
            "../../../bin/torchrun": "#!/v/bin/python\nmain()\n",
            "../../../bin/helper": "#!/v/bin/python3\nhelp()\n",
            "../../../share/torch/a": "data",
            "../../../include/site/python3.10/torch/a.h": "header",
            "torch-2.0.dist-info/entry_points.txt": "[console_scripts]\ntorchrun = torch:main\n",
            "torch-2.0.dist-info/INSTALLER": "pip\n",
        }
    )
    (site.site / "torch/bin/protoc").chmod(0o755)
    (site.prefix / "bin/helper").chmod(0o755)
    dist, content = site.one(), site.content()
    assert (dist.name, dist.version, dist.path, dist.reason) == ("torch", "2.0", str(info), "")
    assert {place: found.hex for place, found in content.files.items()} == {
        "lib/torch-2.0.dist-info/METADATA": hexa("Name: torch\nVersion: 2.0\n"),
        "lib/torch-2.0.dist-info/entry_points.txt": hexa(
            "[console_scripts]\ntorchrun = torch:main\n"
        ),
        "lib/torch/__init__.py": hexa("x = 1\n"),
        "lib/torch/bin/protoc": hexa(b"\x7fELF"),
        "lib/torch/sourceless.pyc": hexa(b"code"),
        "bin/helper": hexa("#!python\nhelp()\n"),
        "data/share/torch/a": hexa("data"),
        "include/a.h": hexa("header"),
    }
    assert content.digest == content_digest((p, f.hex) for p, f in content.files.items())
    assert content.executable == ("bin/helper", "lib/torch/bin/protoc")
    assert content.size == sum(found.size for found in content.files.values())
    assert content.paths["bin/helper"] == str(site.prefix / "bin/helper")
    assert (content.mismatched, content.missing, content.reason) == ((), (), "")


def test_unicode_and_quoted_names(site: Site) -> None:
    names = ["数据/été.py", "a,b.py", "with space.py", "para\u2028graph.py", "ünïcode/\U0001f600"]
    site.add(files=dict.fromkeys(names, "x"))
    content = site.content()
    assert content.reason == ""
    assert {f"lib/{name}" for name in names} < set(content.files)


def test_name_that_is_no_unicode(site: Site) -> None:
    info = site.add()
    path = os.path.join(os.fsencode(site.site), b"\xff.py")
    with open(path, "wb") as file:
        file.write(b"x")
    with (info / "RECORD").open("ab") as record:
        record.write(b"\xff.py,,\n")
    assert site.content().files["lib/\udcff.py"].hex == hexa("x")


def test_sorted_by_name(site: Site) -> None:
    for name in ("zeta", "Alpha", "beta_x", "beta-a"):
        site.add(name)
    assert [dist.name for dist in site.dists()] == ["alpha", "beta-a", "beta-x", "zeta"]


def test_nothing_installed(site: Site) -> None:
    assert site.dists() == []
    assert read_contents([], site.layout) == []


def test_folders_that_are_one(tmp_path: Path) -> None:
    """``lib64`` is a link to ``lib`` in many environments: nothing is found twice."""
    site = Site(tmp_path / "v")
    (site.prefix / "lib64").symlink_to("lib")
    platlib = str(site.prefix / "lib64/python3.10/site-packages")
    layout = Layout(**{**site.layout.relative(), "prefix": str(site.prefix)}).moved(
        str(site.prefix)
    )
    both = Layout(
        prefix=layout.prefix,
        purelib=str(site.site),
        platlib=platlib,
        scripts=layout.scripts,
        headers=layout.headers,
        data=layout.data,
    )
    site.add()
    assert site_folders(both) == [str(site.site)]
    assert len(read_installed(both)) == 1


# --- broken ---------------------------------------------------------------------------------


def no_record(site: Site, info: Path) -> None:
    (info / "RECORD").unlink()


def record_is_no_csv(site: Site, info: Path) -> None:
    (info / "RECORD").write_text("x" * 200_000)


def record_is_empty(site: Site, info: Path) -> None:
    (info / "RECORD").write_text("")


def empty_metadata(site: Site, info: Path) -> None:
    (info / "METADATA").write_text("")


def no_metadata(site: Site, info: Path) -> None:
    (info / "METADATA").unlink()


def twin(site: Site, info: Path) -> None:
    site.add(version="2.1")


def twin_in_other_spelling(site: Site, info: Path) -> None:
    site.add("Torch", "2.1", {})


def editable(site: Site, info: Path) -> None:
    (info / "direct_url.json").write_text(
        json.dumps({"url": "file:///src", "dir_info": {"editable": True}})
    )


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (no_record, "no RECORD: its files are not known"),
        (record_is_no_csv, "RECORD cannot be read: field larger than field limit (131072)"),
        (record_is_empty, "RECORD is empty: its files are not known"),
        (empty_metadata, "no METADATA"),
        (no_metadata, "no METADATA"),
        (twin, "two .dist-info for one name: torch-2.0.dist-info, torch-2.1.dist-info"),
        (
            twin_in_other_spelling,
            "two .dist-info for one name: Torch-2.1.dist-info, torch-2.0.dist-info",
        ),
        (editable, "editable install"),
    ],
)
def test_broken(site: Site, harm: Callable[[Site, Path], None], reason: str) -> None:
    """Listed with its name, its version and the reason; never skipped."""
    harm(site, site.add())
    dists = site.dists()
    assert [dist.name for dist in dists] == ["torch"] * len(dists)
    assert [dist.version for dist in dists] == ["2.0", "2.1"][: len(dists)]
    for trust in (False, True):
        contents = read_contents(dists, site.layout, trust_record=trust)
        assert [(one.digest, one.reason) for one in contents] == [("", reason)] * len(dists)
    assert dists[0].editable is (harm is editable)


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", '{"dir_info": {"editable": "yes"}}', '{"dir_info": []}']
)
def test_odd_direct_url(site: Site, text: str) -> None:
    (site.add() / "direct_url.json").write_text(text)
    assert not site.one().editable
    assert site.content().digest


@pytest.mark.parametrize(
    "version", ["0.1_dtk22.04.1", "1.1.0+das1.0+0dd7f68", "not a version", "1"]
)
def test_any_version_is_kept_as_it_is(site: Site, version: str) -> None:
    site.add(version=version)
    assert site.one().version == version
    assert site.content().digest


def test_leftover_of_an_interrupted_install(site: Site) -> None:
    """It is no second torch."""
    info = site.add()
    info.rename(site.site / "~orch-2.0.dist-info")
    (site.site / "~orch").mkdir()
    site.add(version="2.1")
    inventory = read_inventory(site.layout)
    assert [str(dist.version) for dist in inventory.distributions] == ["2.1"]
    assert inventory.distributions[0].reason == ""
    assert [(one.code, one.subject) for one in inventory.findings] == [
        ("dist.leftover", "~orch"),
        ("dist.leftover", "~orch-2.0.dist-info"),
    ]
    assert str(site.site / "~orch") in inventory.findings[0].hint


def test_eggs(site: Site) -> None:
    """As distribution packages of Debian have them: there is no list of files."""
    (site.site / "six-1.16.0.egg-info").write_text("Name: six\nVersion: 1.16.0\n")
    (site.site / "old-1.0-py3.10.egg-info").mkdir()
    (site.site / "old-1.0-py3.10.egg-info/PKG-INFO").write_text(
        "Name: Old\nVersion: 1.1+ubuntu0.2\n"
    )
    (site.site / "zipped-2.0-py3.10-linux-x86_64.egg").write_bytes(b"PK")
    (site.site / "open-3.0-py3.10.egg/EGG-INFO").mkdir(parents=True)
    (site.site / "open-3.0-py3.10.egg/EGG-INFO/PKG-INFO").write_text("Name: open\nVersion: 3.0\n")
    found = {dist.name: (dist.version, dist.reason) for dist in site.dists()}
    reason = "no .dist-info (an egg): its files are not known"
    assert found == {
        "six": ("1.16.0", reason),
        "old": ("1.1+ubuntu0.2", reason),
        "zipped": ("2.0", reason),
        "open": ("3.0", reason),
    }


def test_file_in_the_place_of_a_dist_info(site: Site) -> None:
    (site.site / "torch-2.0.dist-info").write_text("x")
    assert site.one().reason == "no METADATA"


# --- RECORD and the disk disagree ------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["../../../../etc/x", "/etc/passwd", "../../../../../../../etc/passwd", "//etc/passwd"]
)
def test_record_leads_outside(site: Site, path: str) -> None:
    """Files elsewhere are not this distribution's, and are not read."""
    site.add(extra_rows=f"{path},sha256=x,1\n")
    for trust in (False, True):
        content = site.content(trust_record=trust)
        assert content.digest == ""
        assert content.reason == f"RECORD leads outside the target: '{path}'"
    places, _ = content_paths(site.one(), site.layout)
    assert all(found.startswith(str(site.prefix)) for found in places.values())


def test_missing_files(site: Site) -> None:
    site.add(files={"torch/a.py": "a", "torch/b.py": "b", "torch/c.py": "c"})
    (site.site / "torch/a.py").unlink()
    (site.site / "torch/c.py").unlink()
    for trust in (False, True):
        content = site.content(trust_record=trust)
        assert content.digest == ""
        assert content.missing == ("lib/torch/a.py", "lib/torch/c.py")
        assert content.reason == "'lib/torch/a.py' and 1 more: No such file or directory"


def test_missing_byte_code_does_not_matter(site: Site) -> None:
    site.add(extra_rows="torch/__pycache__/a.cpython-310.pyc,,\n")
    assert site.content().digest


def test_one_changed_byte(site: Site) -> None:
    site.add(files={"torch/a.py": "a = 1\n", "../../../bin/tool": "#!python\n"})
    before = site.content()
    (site.site / "torch/a.py").write_text("a = 2\n")
    (site.prefix / "bin/tool").write_text("#!/v/bin/python\n")
    after = site.content()
    assert after.mismatched == ("lib/torch/a.py",)
    assert after.digest not in ("", before.digest)
    assert after.reason == ""


@pytest.mark.parametrize(
    "row",
    [
        "./,,",
        ".,,",
        "torch,,",
        "torch/nul\0,,",
        "torch/__init__.py/x,,",
    ],
)
def test_rows_that_name_no_file(site: Site, row: str) -> None:
    site.add(extra_rows=f"{row}\n")
    content = site.content()
    assert content.digest == ""
    assert content.reason


def test_rows_spelled_differently(site: Site) -> None:
    site.add()
    plain = site.content()
    record = site.site / "torch-2.0.dist-info/RECORD"
    record.write_text(record.read_text().replace("torch/__init__", "./torch//x/../__init__"))
    assert site.content() == plain


def test_digests_of_record(site: Site) -> None:
    site.add(
        files={"torch/a.py": "a"},
        extra_rows="torch/b.py,md5=xx,1\ntorch/c.py,,\ntorch/d.py,sha256=\u00e9,1\n/x,sha256=aa,\n",
    )
    found = recorded_digests(site.one(), site.layout)
    assert found == {
        "lib/torch/a.py": hexa("a"),
        "lib/torch-2.0.dist-info/METADATA": hexa("Name: torch\nVersion: 2.0\n"),
    }


# --- trusting RECORD -------------------------------------------------------------------------


def test_trusted_record_is_a_full_read_of_sound_files(site: Site) -> None:
    site.add(
        files={
            "torch/a.py": "a",
            "torch/tool": "t",
            "数据.py": "d",
            "../../../bin/script": "#!/v/bin/python\nx\n",
            "../../../share/x": "x",
        }
    )
    (site.site / "torch/tool").chmod(0o755)
    (site.site / "torch/unhashed.py").write_text("u")
    record = site.site / "torch-2.0.dist-info/RECORD"
    record.write_text(record.read_text() + "torch/unhashed.py,,\ntorch/unhashed.py,md5=x,1\n")
    full = site.content()
    assert full.digest
    assert site.content(trust_record=True) == full


def test_trusted_record_reads_only_what_it_must(site: Site) -> None:
    site.add(files={"torch/a.py": "a", "../../../bin/script": "#!/v/bin/python\nx\n"})
    trusted = site.content(trust_record=True)
    (site.site / "torch/a.py").write_text("b")
    assert site.content(trust_record=True) == trusted
    (site.prefix / "bin/script").write_text("#!/v/bin/python\ny\n")
    assert site.content(trust_record=True) != trusted


def test_progress(site: Site) -> None:
    for name in ("a", "b"):
        site.add(name)
    steps: list[int] = []
    read_contents(site.dists(), site.layout, advance=steps.append)
    assert sum(steps) == 4

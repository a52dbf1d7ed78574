"""Holding builds in the tools' own configuration, and giving every file back."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.adapters import files, managed, pip_conf, uv_toml
from envlock.adapters.managed import Edit, apply, find_part, to_bytes, to_lines, with_part
from envlock.adapters.marker import Marker
from envlock.adapters.pip_conf import ConstraintsFile, PipConf, overruled, parse
from envlock.adapters.uv_toml import UvToml
from envlock.errors import Refused, UnusableInput
from envlock.guard.always import Places, contradictions, disable, enable, inspect, pairs
from envlock.guard.decide import Protected

TORCH = Protected(name="torch", version="2.10.0+das", installed="2.10.0+das")
PLAIN = Protected(name="cupy", version="12.3.0", installed="12.3.0")
LOST = Protected(name="triton", version="3.4.0+git1", installed="3.6.0")
BUILDS = pairs([PLAIN, TORCH])


def make(prefix: Path, env: Mapping[str, str] | None = None, *, venv: bool = False) -> Places:
    """The places of a target at ``prefix``, with settings of nobody."""
    prefix.mkdir(exist_ok=True)
    home = prefix.parent / "home"
    listed = str(prefix / "envlock-constraints.txt")
    settings = {"HOME": str(home), "XDG_CONFIG_DIRS": str(home / "etc"), **(env or {})}
    return Places(
        constraints=ConstraintsFile(path=listed),
        pip=PipConf(path=str(prefix / "pip.conf"), constraints=listed, env=settings),
        uv=UvToml(path=str(home / ".config/uv/uv.toml"), prefix=str(prefix)),
        marker=None if venv else Marker(path=str(prefix / "EXTERNALLY-MANAGED")),
    )


def hold(places: Places, *, uv: bool = True, strict: bool = True) -> list[str]:
    return enable(places.wanted(uv=uv, strict=strict), BUILDS)


def value(path: Path) -> str:
    return parse(to_lines(path.read_bytes()), str(path))["install"]["constraint"]


PIP_CONFS = [
    b"",
    b"\n\n",
    b"# nothing but a comment",
    b"[global]\nindex-url = https://one\n",
    b"[global]\nindex-url = https://one",
    b"[global]\r\nindex-url = https://one\r\n\r\n; mine\r\n[install]\r\nno-deps = true\r\n",
    b"[install]\n",
    b"[install]",
    b"; top\n[install]\n# about\nconstraint = /a.txt\nno-deps = false\n\n[list]\nformat = json\n",
    b"[install]\nConstraint:/a.txt\n",
    b"[install]\nconstraint =\n    /a.txt\n    # a comment\n    /b.txt\n\n[list]\nformat=json",
    (b"  [install]\n    no-deps = false\n    extra-index-url =\n      https://a\n\n      https://b\n"
    b"  [list]\n    format = json\n"),
    b"[list]\nformat = json\n[install]\n  no-deps=false\n\n\n# last\n[freeze]\nall = 1\n",
    b"[global]\nindex-url = https://\xe4\xff\n",
    "[global]\nfind-links = /w\u2028ä\n".encode(),
]  # fmt: skip

UV_TOMLS = [
    b"",
    b"# mine\r\noffline = true\r\n[pip]\r\nsystem = false\r\n",
    b"[pip]\nsystem = false",
    b"constraint-dependencies = ['numpy<2']\n",
    (
        b'"constraint-dependencies"=[ # all\n "numpy<2", # not ]\n  \'idna ; extra == "a"\' ]'
        b' # end\noffline = true\n[[index]]\nurl = "https://one"\n'
    ),
    b"constraint-dependencies = []",
]


@pytest.mark.parametrize("text", PIP_CONFS)
def test_pip_conf_comes_back_byte_for_byte(text: bytes, tmp_path: Path) -> None:
    places = make(tmp_path / "T")
    path = tmp_path / "T" / "pip.conf"
    path.write_bytes(text)
    before = parse(to_lines(text), "")
    assert hold(places)
    after = parse(to_lines(path.read_bytes()), "")
    theirs = before.get("install", {}).pop("constraint", "").split()
    assert after["install"].pop("constraint").split() == [
        (tmp_path / "T/envlock-constraints.txt").as_uri(), *theirs]  # fmt: skip
    assert after == {"install": {}, **before}
    assert inspect(places, [TORCH, PLAIN]) == []
    assert hold(places) == []
    assert disable(places)
    assert path.read_bytes() == text
    assert disable(places) == []
    assert sorted(os.listdir(tmp_path / "T")) == ["pip.conf"]


@pytest.mark.parametrize("text", UV_TOMLS)
def test_uv_toml_comes_back_byte_for_byte(text: bytes, tmp_path: Path) -> None:
    places = make(tmp_path / "T")
    path = tmp_path / "home/.config/uv/uv.toml"
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    path.chmod(0o600)
    hold(places)
    lines = path.read_text().split("\n")
    assert '    "torch==2.10.0+das",' in [line.rstrip("\r") for line in lines]
    assert ("numpy<2" in text.decode()) == ('    "numpy<2",' in lines)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert hold(places) == []
    disable(places)
    assert path.read_bytes() == text


@given(
    st.lists(st.sampled_from(["a\n", "b\r\n", "\n", "# was: c\n", "  d = 1\n", "é\n"]), max_size=6),
    st.sampled_from(["", "last", "# last\r"]),
    st.data(),
)
def test_what_a_part_replaced_is_in_it(lines: list[str], end: str, data: st.DataObject) -> None:
    whole = [*lines, *([end] if end else [])]
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    label = data.draw(st.sampled_from(["", 'for "/a; b"', "for the last line had no end"]))
    new = with_part(whole, ["ours", "more"], (start, stop), label=label)
    part = find_part(to_lines(to_bytes(new)), "f")
    assert part is not None
    assert part.rest == to_lines(to_bytes(whole))
    assert [line.rstrip("\r\n") for line in part.body] == ["ours", "more"]
    assert (part.label, part.created) == (label, False)


def test_no_file_is_there_that_was_not(tmp_path: Path) -> None:
    places = make(tmp_path / "T")
    assert hold(places) == [place.path for place in places.all()]
    assert sorted(os.listdir(tmp_path / "T")) == [
        "EXTERNALLY-MANAGED", "envlock-constraints.txt", "pip.conf"]  # fmt: skip
    listed = Path(places.constraints.path)
    assert listed.read_text().splitlines()[1:] == ["cupy===12.3.0", "torch==2.10.0+das"]
    assert stat.S_IMODE(listed.stat().st_mode) == 0o644
    disable(places)
    assert os.listdir(tmp_path / "T") == []
    assert not os.path.exists(places.uv.path)


def test_what_the_person_wrote_meanwhile_stays(tmp_path: Path) -> None:
    places = make(tmp_path / "T")
    conf, toml = Path(places.pip.path), Path(places.uv.path)
    hold(places)
    conf.write_text(f"[list]\nformat = json\n\n{conf.read_text()}# and\nno-deps = true\n")
    toml.write_text(f"{toml.read_text()}offline = true\n")
    assert places.pip.holds(BUILDS)
    disable(places)
    assert conf.read_text() == "[list]\nformat = json\n\n[install]\n# and\nno-deps = true\n"
    assert toml.read_text() == "offline = true\n"


def test_a_file_that_pip_wrote_anew_loses_our_part_too(tmp_path: Path) -> None:
    """``pip config set`` keeps no comment."""
    places = make(tmp_path / "T")
    conf = Path(places.pip.path)
    uri = (tmp_path / "T/envlock-constraints.txt").as_uri()
    hold(places)
    conf.write_text(f"[install]\nconstraint = {uri} /a.txt\n\n[global]\ntimeout = 3\n\n")
    assert inspect(places, [TORCH, PLAIN])[0].code == "always.differs"
    disable(places)
    assert conf.read_text() == "[install]\nconstraint = /a.txt\n\n[global]\ntimeout = 3\n\n"


def test_constraints_that_ours_would_hide_are_named_again(tmp_path: Path) -> None:
    etc, user = tmp_path / "home/etc/pip", tmp_path / "home/.config/pip"
    named = tmp_path / "named.conf"
    for folder in (etc, user):
        folder.mkdir(parents=True)
    places = make(tmp_path / "T", {"PIP_CONFIG_FILE": str(named)})
    conf = Path(places.pip.path)

    def others() -> list[str]:
        hold(places)
        return value(conf).split()[1:]

    (etc / "pip.conf").write_text("[global]\nconstraint = /machine.txt\n")
    assert others() == ["/machine.txt"]
    (user / "pip.conf").write_text("[global]\nconstraint = /user.txt /more.txt\n")
    assert others() == ["/user.txt", "/more.txt"]
    named.write_text("[global]\nconstraint = /named.txt\n")
    assert others() == ["/named.txt"]
    (etc / "pip.conf").write_text("[install]\nconstraint = /install.txt\n")
    assert others() == ["/install.txt"]
    (user / "pip.conf").write_text("not an ini file")
    assert others() == ["/install.txt"]


def test_what_this_shell_puts_in_its_place(tmp_path: Path) -> None:
    own = tmp_path / "own.conf"
    own.write_text("[global]\nconstraint = /a.txt\n")
    assert overruled({"PIP_CONFIG_FILE": str(own)}) == ""
    assert "own.conf" not in overruled({"PIP_CONSTRAINT": "x", "PIP_CONFIG_FILE": str(own)})
    assert os.devnull in overruled({"PIP_CONFIG_FILE": os.devnull})
    own.write_text("[install]\nconstraint = /a.txt\n")
    assert "own.conf" in overruled({"PIP_CONFIG_FILE": str(own)})


def test_the_marker_that_was_there_comes_back(tmp_path: Path) -> None:
    places = make(tmp_path / "T")
    marker = tmp_path / "T/EXTERNALLY-MANAGED"
    text = "[externally-managed]\nError=To install …\n apt\n .\n\n see README"
    marker.write_text(text)
    hold(places, uv=False)
    found = parse(to_lines(marker.read_bytes()), "")["externally-managed"]["Error".lower()]
    assert "envlock guard pip install" in found
    assert "apt" not in found
    disable(places)
    assert marker.read_text() == text


def test_uv_holds_the_builds_of_one_target(tmp_path: Path) -> None:
    first, second = make(tmp_path / "A; ü\n"), make(tmp_path / "B")
    hold(first)
    with pytest.raises(Refused, match="holds the builds of"):
        hold(second)
    assert os.listdir(tmp_path / "B") == []
    hold(second, uv=False)
    disable(second)
    assert first.uv.present()
    disable(first)
    hold(first)
    os.rename(tmp_path / "A; ü\n", tmp_path / "gone")
    hold(second)
    assert second.uv.present()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pip.conf", "no section = 1\n"),
        ("pip.conf", "[install]\na = 1\n[install]\n"),
        ("pip.conf", "[DEFAULT]\ntimeout = 1\n"),
        ("pip.conf", f"[list]\n{managed.BEGIN}\n"),
        ("pip.conf", f"{managed.BEGIN}\n{managed.END}\n{managed.BEGIN}\n{managed.END}\n"),
        ("../home/.config/uv/uv.toml", "a = \n"),
        ("../home/.config/uv/uv.toml", "constraint-dependencies = [1]\n"),
        ("../home/.config/uv/uv.toml", "constraint-dependencies = 'x'\n"),
        ("envlock-constraints.txt", "torch\n"),
    ],
)
def test_what_cannot_be_edited_safely_is_left_alone(name: str, text: str, tmp_path: Path) -> None:
    places = make(tmp_path / "T")
    path = tmp_path / "T" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    with pytest.raises(UnusableInput) as raised:
        hold(places)
    assert os.path.basename(name) in raised.value.message
    assert path.read_text() == text
    assert set(os.listdir(tmp_path / "T")) <= {name}


def test_a_link_to_a_shared_pip_conf_is_no_place_for_one_targets_builds(tmp_path: Path) -> None:
    places = make(tmp_path / "T")
    (tmp_path / "shared").write_text("")
    os.symlink(tmp_path / "shared", places.pip.path)
    with pytest.raises(UnusableInput, match="a link to"):
        hold(places)


def test_a_link_into_a_folder_of_settings_stays_one(tmp_path: Path) -> None:
    places = make(tmp_path / "T")
    path = Path(places.uv.path)
    path.parent.mkdir(parents=True)
    (tmp_path / "dotfile").write_text("offline = true\n")
    path.symlink_to(tmp_path / "dotfile")
    hold(places)
    assert path.is_symlink()
    assert "torch" in (tmp_path / "dotfile").read_text()
    disable(places)
    assert (tmp_path / "dotfile").read_text() == "offline = true\n"


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("error", [OSError(30, "Read-only file system"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_nothing_changed(
    number: int, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = make(tmp_path / "T")
    Path(places.pip.path).write_text("[list]\n")
    written: list[str] = []
    real = files.write_whole

    def failing(path: str, data: bytes, *, mode: int | None = None) -> None:
        if len(written) == number:
            written.append("")
            raise error
        written.append(path)
        real(path, data, mode=mode)

    monkeypatch.setattr(files, "write_whole", failing)
    with pytest.raises(UnusableInput if isinstance(error, OSError) else KeyboardInterrupt):
        hold(places)
    assert os.listdir(tmp_path / "T") == ["pip.conf"]
    assert Path(places.pip.path).read_text() == "[list]\n"
    assert not os.path.exists(places.uv.path)


def test_a_file_that_somebody_is_changing_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"theirs")
    with pytest.raises(UnusableInput, match="somebody is changing it"):
        apply([Edit(path=str(path), old=b"before", new=b"ours")])
    assert path.read_bytes() == b"theirs"


def codes(places: Places, *protected: Protected) -> list[tuple[str, str]]:
    return [(f.code, os.path.basename(f.subject)) for f in inspect(places, protected)]


def test_status_sees_what_has_drifted(tmp_path: Path) -> None:
    places = make(tmp_path / "T")
    assert codes(places, TORCH) == [("always.off", "pip.conf")]
    hold(places)
    assert codes(places, TORCH, PLAIN) == []
    assert codes(places, TORCH) == [
        ("always.differs", "envlock-constraints.txt"), ("always.differs", "uv.toml")]  # fmt: skip
    new = Protected(name="vllm", version="1+das", installed="1+das")
    assert codes(places, TORCH, PLAIN, new) == [
        ("always.changed", "envlock-constraints.txt"), ("always.changed", "uv.toml")]  # fmt: skip
    os.unlink(places.constraints.path)
    assert codes(places, TORCH, PLAIN) == [("always.missing", "envlock-constraints.txt")]
    hold(places)
    os.unlink(places.pip.path)
    assert codes(places, TORCH, PLAIN) == [("always.changed", "pip.conf")]
    hold(places)
    marker = tmp_path / "T/EXTERNALLY-MANAGED"
    marker.write_text(marker.read_text().replace("envlock guard pip", "pip"))
    assert codes(places, TORCH, PLAIN) == [("always.changed", "EXTERNALLY-MANAGED")]


def test_a_build_that_is_lost_is_not_held_and_stays_listed(tmp_path: Path) -> None:
    """A public build in its place would never be accepted again, and nothing that needs it."""
    places = make(tmp_path / "T")
    enable(places.wanted(uv=False, strict=False), pairs([TORCH, LOST]))
    assert codes(places, TORCH, LOST) == []
    enable(places.wanted(uv=False, strict=False), pairs([TORCH]))
    assert codes(places, TORCH, LOST) == []


def test_a_target_that_has_moved_is_not_held(tmp_path: Path) -> None:
    hold(make(tmp_path / "T"), uv=False)
    os.rename(tmp_path / "T", tmp_path / "moved")
    moved = make(tmp_path / "moved")
    assert codes(moved, TORCH, PLAIN) == [("always.changed", "pip.conf")]
    hold(moved, uv=False)
    assert codes(moved, TORCH, PLAIN) == []
    disable(moved)
    assert os.listdir(tmp_path / "moved") == []


def test_builds_that_contradict_each_other_are_named() -> None:
    torch = Protected(
        name="torch", version="2.10.0+das", installed="2.10.0+das",
        requires=("triton==3.6.0", "cupy>=12"),
    )  # fmt: skip
    triton = Protected(name="triton", version="3.4.0+git1", installed="3.4.0+git1")
    (found,) = contradictions([torch, triton, PLAIN])
    assert (found.code, found.subject) == ("always.contradiction", "torch")
    assert "'triton==3.6.0', and 'triton 3.4.0+git1' is held" in found.what
    assert contradictions([torch, LOST]) == []


def test_a_plan_does_not_see_what_is_held(tmp_path: Path) -> None:
    places = make(tmp_path / "T ü")
    uri = Path(places.constraints.path).as_uri()
    home = str(tmp_path / "T ü")
    assert pip_conf.released(["/a.txt", uri, "/b c.txt"], home) == {"PIP_CONSTRAINT": "/a.txt"}
    assert pip_conf.released([uri], home) == {"PIP_CONSTRAINT": os.devnull}
    assert pip_conf.released(["/a.txt"], home) == {}
    stand_in = tmp_path / "stand-in"
    stand_in.mkdir()
    env = {"HOME": str(tmp_path / "home")}
    (tmp_path / "home/.config/git").mkdir(parents=True)
    assert uv_toml.released(env, home, str(stand_in)) == {}
    Path(places.uv.path).parent.mkdir()
    Path(places.uv.path).write_text("offline = true\n")
    hold(places)
    assert uv_toml.released(env, str(tmp_path), str(stand_in)) == {}
    assert uv_toml.released(env, home, str(stand_in)) == {"XDG_CONFIG_HOME": str(stand_in)}
    assert (stand_in / "uv" / "uv.toml").read_text() == "offline = true\n"
    assert (stand_in / "git").is_dir()

"""The vendor's stack on a machine, from fake trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.adapters import machine
from envlock.adapters.machine import find_root, read_machine, read_release
from envlock.adapters.profiles import BUNDLED, bundled_profiles, load_profile
from envlock.errors import UnusableInput
from envlock.model.profile import Profile

PROFILE = """
name: fake
title: A fake card
labels: [dtk]
names: [torch]
device: cuda
roots: [{opt}/dtk, {opt}/dtk-old]
root_variables: [FAKE_ROOT]
release_files: [.dtk_version, .info/version]
"""


@pytest.fixture
def opt(tmp_path: Path) -> Path:
    folder = tmp_path / "opt"
    folder.mkdir()
    return folder


@pytest.fixture
def profile(opt: Path, tmp_path: Path) -> Profile:
    path = tmp_path / "fake.yaml"
    path.write_text(PROFILE.format(opt=opt))
    return load_profile(str(path))


def test_no_stack(profile: Profile) -> None:
    assert find_root(profile, {}) == ""
    assert read_release(profile, "") == ""


def test_root_is_kept_as_it_is_linked(profile: Profile, opt: Path) -> None:
    (opt / "dtk-26.04").mkdir()
    (opt / "dtk").symlink_to("dtk-26.04")
    assert find_root(profile, {}) == str(opt / "dtk")
    assert read_release(profile, str(opt / "dtk")) == "dtk-26.04"
    assert read_release(profile, str(opt / "dtk-26.04")) == ""


def test_variable_comes_first_where_it_is_a_folder(profile: Profile, opt: Path) -> None:
    (opt / "dtk").mkdir()
    (opt / "mine").mkdir()
    assert find_root(profile, {"FAKE_ROOT": str(opt / "mine")}) == str(opt / "mine")
    assert find_root(profile, {"FAKE_ROOT": str(opt / "none")}) == str(opt / "dtk")
    assert find_root(profile, {"FAKE_ROOT": ""}) == str(opt / "dtk")


def test_release_is_the_first_line_of_the_first_file(profile: Profile, opt: Path) -> None:
    root = opt / "dtk"
    (root / ".info").mkdir(parents=True)
    (root / ".info/version").write_text("26.04.1\n")
    assert read_release(profile, str(root)) == "26.04.1"
    (root / ".dtk_version").write_bytes(b"\n")
    assert read_release(profile, str(root)) == "26.04.1"
    (root / ".dtk_version").write_bytes(b"  dtk-26.04-DCC2602-0317 \nmore\xff\n")
    assert read_release(profile, str(root)) == "dtk-26.04-DCC2602-0317"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('PRETTY_NAME="Debian GNU/Linux 12"', "Debian GNU/Linux 12"),
        ("PRETTY_NAME='Kylin V10'", "Kylin V10"),
        ("PRETTY_NAME=Alpine", "Alpine"),
        ("NAME=x", "Linux"),
    ],
)
def test_operating_system(line: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_lines", lambda path: [line] if "os-release" in path else [])
    found = read_machine()
    assert found.os == shown
    assert found.kernel and found.cpu


def test_bundled_profiles_are_sound() -> None:
    assert [profile.name for profile in bundled_profiles()] == list(BUNDLED)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"name: [", "line"),
        (b"name: x\n", "title"),
        (b"name: x\ntitle: x\nlabels: ['(']\n", "regular expression"),
    ],
)
def test_profile_that_cannot_be_used(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnusableInput, match=said):
        load_profile(str(path))


def test_profile_that_is_not_there() -> None:
    with pytest.raises(UnusableInput, match="there is no 'hygon'") as caught:
        load_profile("hygon")
    assert "dtk" in caught.value.hint
